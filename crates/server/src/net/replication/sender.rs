//! START_REPLICATION: the log's bytes from a position on, as they become durable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_disk::Disk;
use throng_exec::client::Client;
use throng_observe::{Object, WaitEvent, waited};
use throng_session::replication::{WalSender, clock};
use throng_session::senders::SenderState;
use throng_types::error::state;
use throng_types::{Error, Lsn, Result};
use throng_values::settings::Id;
use throng_wal::{TimelineId, Wal, WalHold, read_stream, segment_name};

use super::answer::{Answer, INT8, TEXT};
use super::{gone, send};
use crate::net::output::Peer;
use crate::net::wire::{self, Frontend};

/// Bytes of the log in one message, as in PostgreSQL.
const MOST_SENT: usize = 128 << 10;
/// How often it is looked whether there is more, where nothing that is logged is being flushed.
const LOOK: Duration = Duration::from_millis(10);

/// A stream about to begin.
pub struct Stream<'a> {
    sender: &'a WalSender,
    wal: Arc<Wal>,
    disk: Arc<dyn Disk>,
    slot: Option<String>,
    /// The log is kept from here on while it is sent.
    hold: WalHold,
    sent: Lsn,
    /// Where the requested timeline ended, and the one that followed.
    switch: Option<(Lsn, TimelineId)>,
    timeline: TimelineId,
}

/// What a client has said since.
enum Said {
    Nothing,
    /// It wants no more.
    Done,
    Left,
}

impl<'a> Stream<'a> {
    /// # Errors
    /// 42704, 55006 and 55000 for the slot; 58P01 where the log is gone that it asks for.
    pub fn new(
        sender: &'a WalSender,
        slot: Option<String>,
        from: Lsn,
        timeline: Option<TimelineId>,
    ) -> Result<Stream<'a>> {
        let system = sender.engine().system();
        let (wal, disk) = (system.wal().clone(), system.disk().clone());
        let history = wal.config().history.clone();
        let timeline = timeline.unwrap_or(history.current());
        let ended = history.ended();
        let place = ended.iter().position(|ended| ended.timeline == timeline);
        let switch = match place {
            Some(n) => {
                let next = ended.get(n + 1).map_or(history.current(), |e| e.timeline);
                Some((ended[n].end, next))
            }
            None if timeline == history.current() => None,
            None => {
                let message = format!(
                    "requested starting point {} on timeline {} is not in this server's history",
                    from.to_halves(),
                    timeline.0
                );
                return Err(Error::new(state::INTERNAL_ERROR, message));
            }
        };
        let flushed = wal.flushed();
        if from > switch.map_or(flushed, |(end, _)| end) {
            return Err(Error::new(
                state::INTERNAL_ERROR,
                format!(
                    "requested starting point {} is ahead of the WAL flush position of this server {}",
                    from.to_halves(),
                    flushed.to_halves()
                ),
            ));
        }
        let hold = wal.hold(from);
        let stream = Stream {
            sender,
            wal,
            disk,
            slot,
            hold,
            sent: from,
            switch,
            timeline,
        };
        if from < stream.wal.oldest() {
            return Err(stream.removed());
        }
        if let Some(slot) = &stream.slot {
            system.replication_slots().acquire(slot, sender.pid())?;
        }
        Ok(stream)
    }

    pub async fn run(mut self, peer: &mut Peer) -> Result<()> {
        wire::message(&mut peer.output, b'W', |b| {
            b.push(0);
            wire::put_i16(b, 0);
        });
        send(peer).await?;
        self.sender.update(|status| {
            status.state = SenderState::Catchup;
            status.sent = self.sent;
        });
        let streamed = self.stream(peer).await;
        if let Some(slot) = &self.slot {
            let slots = self.sender.engine().system().replication_slots();
            slots.release(slot, self.sender.pid());
        }
        self.sender
            .update(|status| status.state = SenderState::Startup);
        streamed
    }

    async fn stream(&mut self, peer: &mut Peer) -> Result<()> {
        let timeout = self.timeout();
        let (mut heard, mut asked) = (Instant::now(), false);
        loop {
            loop {
                match self.listen(peer)? {
                    Some(Said::Nothing) => (heard, asked) = (Instant::now(), false),
                    Some(Said::Done) => return self.end(peer, true).await,
                    Some(Said::Left) => return Ok(()),
                    None => break,
                }
            }
            if let Some((end, _)) = self.switch
                && self.sent >= end
            {
                return self.end(peer, false).await;
            }
            if self.send_some(peer).await? {
                continue;
            }
            self.sender
                .update(|status| status.state = SenderState::Streaming);
            if let Some(timeout) = timeout {
                if heard.elapsed() >= timeout {
                    return Err(timed_out());
                }
                if heard.elapsed() >= timeout / 2 && !asked {
                    asked = true;
                    // Sent below, before the wait.
                    self.put_keep_alive(peer, true);
                }
            }
            // What is written while something else is waited for could be cut short.
            send(peer).await?;
            if !self.wait(peer).await? {
                return Ok(());
            }
        }
    }

    /// Waits until the client says something or there may be more of the log; false: the client
    /// has gone.
    async fn wait(&self, peer: &mut Peer) -> Result<bool> {
        let more = async {
            match self.wal.inserted() > self.sent {
                // Where this fails, the server ends.
                true => _ = self.wal.flush(self.wal.inserted()).await,
                false => tokio::time::sleep(LOOK).await,
            }
        };
        let more = waited(WaitEvent::WalSenderIdle, Object::NONE, more);
        tokio::select! {
            biased;
            filled = peer.fill() => filled.map_err(|e| gone(&e)),
            () = more => Ok(true),
        }
    }

    /// Sends what is flushed, up to a message; whether there was anything.
    async fn send_some(&mut self, peer: &mut Peer) -> Result<bool> {
        let flushed = self.wal.flushed();
        let until = self.switch.map_or(flushed, |(end, _)| flushed.min(end));
        if self.sent >= until {
            return Ok(false);
        }
        let want = MOST_SENT.min((until.0 - self.sent.0) as usize);
        let (disk, size, at) = (self.disk.clone(), self.wal.config().segment_size, self.sent);
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; want];
            let read = read_stream(&*disk, size, at, &mut bytes)?;
            bytes.truncate(read);
            Ok::<_, Error>(bytes)
        });
        let bytes = read.await.map_err(|e| Error::internal(e.to_string()))??;
        if bytes.is_empty() {
            return Err(self.removed());
        }
        wire::message(&mut peer.output, b'd', |b| {
            b.push(b'w');
            b.extend_from_slice(&self.sent.0.to_be_bytes());
            b.extend_from_slice(&flushed.0.to_be_bytes());
            b.extend_from_slice(&clock().to_be_bytes());
            b.extend_from_slice(&bytes);
        });
        self.send_in_time(peer).await?;
        self.sent = Lsn(self.sent.0 + bytes.len() as u64);
        self.hold.advance(self.sent);
        self.sender.update(|status| status.sent = self.sent);
        Ok(true)
    }

    /// Sends what is written, to a client that takes it within `wal_sender_timeout`, and whose slot
    /// still keeps the log.
    async fn send_in_time(&self, peer: &mut Peer) -> Result<()> {
        if let Some(slot) = &self.slot {
            let slots = self.sender.engine().system().replication_slots();
            slots.must_be_kept(slot)?;
        }
        match self.timeout() {
            None => send(peer).await,
            Some(timeout) => match tokio::time::timeout(timeout, send(peer)).await {
                Ok(sent) => sent,
                Err(_) => Err(timed_out()),
            },
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let timeout = self.sender.engine().number(Id::WalSenderTimeout);
        (timeout > 0).then(|| Duration::from_millis(timeout as u64))
    }

    /// Writes how far the stream is; `reply`: the client is to say how far it is itself.
    fn put_keep_alive(&self, peer: &mut Peer, reply: bool) {
        wire::message(&mut peer.output, b'd', |b| {
            b.push(b'k');
            b.extend_from_slice(&self.sent.0.to_be_bytes());
            b.extend_from_slice(&clock().to_be_bytes());
            b.push(reply.into());
        });
    }

    /// The next message of the client that has been read; None: there is none.
    fn listen(&self, peer: &mut Peer) -> Result<Option<Said>> {
        let Some(range) = peer.whole_message()? else {
            return Ok(None);
        };
        let mut reply = false;
        let said = match wire::frontend(peer.bytes(range))? {
            Frontend::CopyData(bytes) => {
                reply = self.heard(bytes)?;
                Said::Nothing
            }
            Frontend::CopyDone | Frontend::CopyFail(_) => Said::Done,
            Frontend::Terminate => Said::Left,
            Frontend::Flush | Frontend::Sync => Said::Nothing,
            _ => {
                return Err(Error::new(
                    state::PROTOCOL_VIOLATION,
                    "unexpected message type during streaming",
                ));
            }
        };
        if reply {
            self.put_keep_alive(peer, false);
        }
        Ok(Some(said))
    }

    /// What a client tells of itself; whether it asks for an answer.
    fn heard(&self, bytes: &[u8]) -> Result<bool> {
        let number = |at: usize| {
            let field = bytes.get(at..at + 8).and_then(|b| b.first_chunk());
            field.map(|b| u64::from_be_bytes(*b))
        };
        let wrong = || Error::new(state::PROTOCOL_VIOLATION, "invalid standby message");
        match bytes.first() {
            Some(b'r') => {
                let fields = (number(1), number(9), number(17), number(25), bytes.get(33));
                let (Some(written), Some(flushed), Some(applied), Some(time), Some(reply)) = fields
                else {
                    return Err(wrong());
                };
                // A position beyond what was sent is not believed.
                let [written, flushed, applied] =
                    [written, flushed, applied].map(|lsn| Lsn(lsn).min(self.sent));
                self.sender.update(|status| {
                    status.written = written;
                    status.flushed = flushed;
                    status.applied = applied;
                    status.reply_time = Some(time as i64);
                });
                self.sender.confirm();
                if let Some(slot) = &self.slot
                    && flushed > Lsn::ZERO
                {
                    let slots = self.sender.engine().system().replication_slots();
                    slots.advance(slot, flushed);
                }
                Ok(*reply != 0)
            }
            // What its oldest snapshot is: nothing is kept for it.
            Some(b'h') => Ok(false),
            _ => Err(wrong()),
        }
    }

    /// Ends the stream. `asked`: the client has ended its side already.
    async fn end(&mut self, peer: &mut Peer, asked: bool) -> Result<()> {
        peer.copy_out_done();
        send(peer).await?;
        if !asked {
            loop {
                match self.listen(peer)? {
                    Some(Said::Done) => break,
                    Some(Said::Left) => return Ok(()),
                    Some(Said::Nothing) => {}
                    None if peer.fill().await.map_err(|e| gone(&e))? => {}
                    None => return Ok(()),
                }
            }
        }
        if let Some((end, next)) = self.switch.filter(|_| !asked) {
            let (end, next) = (end.to_halves(), next.0.to_string());
            Answer::new(&[("next_tli", INT8), ("next_tli_startpos", TEXT)])
                .row(&[Some(&next), Some(&end)])
                .send(peer, "SELECT");
        }
        peer.command_complete("START_STREAMING");
        Ok(())
    }

    fn removed(&self) -> Error {
        let size = self.wal.config().segment_size;
        let name = segment_name(self.timeline, self.sent.0 / size, size);
        let message = format!("requested WAL segment {name} has already been removed");
        Error::new(state::UNDEFINED_FILE, message)
    }
}

fn timed_out() -> Error {
    let message = "terminating walsender process due to replication timeout";
    tracing::info!("{message}");
    Error::new(state::CONNECTION_FAILURE, message)
}
