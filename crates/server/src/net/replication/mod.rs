//! Replication connections: clients that copy the data directory and take its log.
//!
//! ```text
//!   pg_basebackup ── BASE_BACKUP ──────────► a tar of the files, while others write
//!                 └─ START_REPLICATION ────► the log since the backup began, as it is flushed
//!   pg_receivewal ── START_REPLICATION ────► the log, for as long as the client stays
//! ```
//! The protocol is PostgreSQL's ("Streaming Replication Protocol" in its documentation), and its
//! unmodified tools speak it. To them the log and the files are bytes: what is in them is ours.

mod answer;
mod base_backup;
mod command;
mod manifest;
mod sender;

use throng_exec::client::Client;
use throng_session::Session;
use throng_session::replication::WalSender;
use throng_types::error::{Severity, state};
use throng_types::{Error, Result};

use crate::net::output::Peer;
use crate::net::wire::{self, Frontend};
use answer::Answer;
use command::Command;

/// Answers a replication client until it leaves.
pub async fn converse(peer: &mut Peer, session: &mut Session, sender: &WalSender) -> Result<()> {
    loop {
        peer.send().await?;
        let message = tokio::select! {
            biased;
            message = peer.next_message() => message?,
            why = session.interrupted() => return Err(why),
        };
        let Some(range) = message else { return Ok(()) };
        let bytes = peer.bytes(range).to_vec();
        let text = match wire::frontend(&bytes)? {
            Frontend::Terminate => return Ok(()),
            Frontend::Query(sql) => String::from_utf8_lossy(sql).into_owned(),
            // What is left of a stream that has ended, or of an extended query that was refused.
            Frontend::CopyData(_)
            | Frontend::CopyDone
            | Frontend::CopyFail(_)
            | Frontend::Flush => {
                continue;
            }
            Frontend::Sync => {
                wire::ready_for_query(&mut peer.output, b'I');
                continue;
            }
            _ => {
                peer.error(&Error::new(
                    state::PROTOCOL_VIOLATION,
                    "extended query protocol not supported in a replication connection",
                ));
                continue;
            }
        };
        tracing::debug!("received replication command: {text}");
        if let Err(e) = run(peer, session, sender, &text).await {
            let ends = matches!(e.fields().severity, Severity::Fatal | Severity::Panic);
            if ends || e.code() == state::CONNECTION_FAILURE {
                return Err(e);
            }
            session.log_error(&e);
            peer.error(&e);
        }
        wire::ready_for_query(&mut peer.output, b'I');
    }
}

async fn run(peer: &mut Peer, session: &mut Session, sender: &WalSender, text: &str) -> Result<()> {
    let command = command::parse(text)?;
    if command == Command::Show {
        return session.simple_query(text, peer).await;
    }
    let slots = sender.engine().system().replication_slots();
    let pid = sender.pid();
    match command {
        Command::IdentifySystem => answer::identify_system(peer, sender.engine()),
        Command::TimelineHistory(timeline) => {
            answer::timeline_history(peer, sender.engine(), timeline)?;
        }
        Command::CreateSlot {
            name,
            temporary,
            reserve,
        } => {
            let engine = sender.engine();
            let most = engine.number(throng_values::settings::Id::MaxReplicationSlots);
            let reserve = reserve.then(|| engine.system().redo_point());
            let restart = slots.create(&name, temporary.then_some(pid), reserve, most as usize)?;
            let point = restart.unwrap_or_default().to_halves();
            Answer::new(&[
                ("slot_name", answer::TEXT),
                ("consistent_point", answer::TEXT),
                ("snapshot_name", answer::TEXT),
                ("output_plugin", answer::TEXT),
            ])
            .row(&[Some(&name), Some(&point), None, None])
            .send(peer, "CREATE_REPLICATION_SLOT");
        }
        Command::ReadSlot(name) => answer::read_slot(peer, sender.engine(), &name),
        Command::DropSlot(name) => {
            slots.drop_slot(&name, pid)?;
            peer.command_complete("DROP_REPLICATION_SLOT");
        }
        Command::Start {
            slot,
            from,
            timeline,
        } => {
            let stream = sender::Stream::new(sender, slot, from, timeline)?;
            return unless_interrupted(session, stream.run(peer)).await;
        }
        Command::BaseBackup(options) => {
            let copied = base_backup::run(peer, sender, &options);
            return unless_interrupted(session, copied).await;
        }
        Command::Show => {}
    }
    Ok(())
}

/// Sends what is written.
///
/// # Errors
/// 08006 where the client has gone, which is no fault of the server's disk.
async fn send(peer: &mut Peer) -> Result<()> {
    peer.send().await.map_err(|e| gone(&e))
}

fn gone(e: &std::io::Error) -> Error {
    Error::new(state::CONNECTION_FAILURE, e.to_string())
}

/// What somebody ends from outside ends at once.
async fn unless_interrupted(
    session: &Session,
    work: impl Future<Output = Result<()>>,
) -> Result<()> {
    let work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = work => done,
        why = session.interrupted() => Err(why),
    }
}
