//! A client's socket without encryption, watched for what it brings and not for what it takes.
//!
//! ```text
//!   watched for reading and writing                 for reading alone
//!   client reads a reply ─► the loop is woken       nothing
//!   client sends         ─► the loop is woken       client sends ─► the loop is woken
//! ```
//! Linux tells whoever watches a Unix-domain socket for writing of each message that the other end
//! has read, room or not (`unix_write_space`; TCP does so only once a write has found no room). A
//! loop that sleeps would be woken by every reply that is read, for nothing. A write that finds no
//! room is rare, and watches for that alone.
//!
//! What is [posted](super::outbox) lies here until the loop's turn ends; whatever is written after
//! it waits for it.

use std::cell::{Cell, Ref, RefCell};
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::task::{Poll, ready};

use socket2::SockRef;
use throng_sync::WakerSlot;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::outbox::Outbox;
use super::stream::{self, Origin};

pub struct PlainSocket {
    socket: AsyncFd<OwnedFd>,
    pub origin: Origin,
    outbox: Rc<Outbox>,
    posted: RefCell<Vec<u8>>,
    /// The outbox has it on its list.
    is_listed: Cell<bool>,
    /// There was no room for what was posted, or the client is gone: the session is to send it
    /// itself.
    is_stuck: Cell<bool>,
    session: WakerSlot,
}

impl PlainSocket {
    /// A socket that does not block, on the loop whose outbox this is.
    pub fn new(socket: OwnedFd, origin: Origin, outbox: Rc<Outbox>) -> io::Result<PlainSocket> {
        Ok(PlainSocket {
            socket: watch(socket, Interest::READABLE)?,
            origin,
            outbox,
            posted: RefCell::default(),
            is_listed: Cell::new(false),
            is_stuck: Cell::new(false),
            session: WakerSlot::new(),
        })
    }

    fn socket(&self) -> SockRef<'_> {
        SockRef::from(&self.socket)
    }

    /// The socket alone, for who goes on with it in another way.
    pub fn into_inner(self) -> OwnedFd {
        self.socket.into_inner()
    }

    /// Reads what is there, at most about `chunk` bytes more, waiting for at least one. False at
    /// the end of the stream.
    pub async fn read_more(&self, into: &mut Vec<u8>, chunk: usize) -> io::Result<bool> {
        loop {
            let ready = poll_fn(|cx| {
                if self.is_stuck.get() {
                    return Poll::Ready(None);
                }
                let ready = ready!(self.socket.poll_read_ready(cx));
                Poll::Ready(Some(ready))
            });
            let Some(ready) = ready.await else {
                self.send_posted().await?;
                continue;
            };
            let mut ready = ready?;
            stream::make_room(into, chunk);
            let room = into.capacity() - into.len();
            match self.socket().recv(into.spare_capacity_mut()) {
                Ok(read) => {
                    // SAFETY: so many bytes behind the last one were just written.
                    unsafe { into.set_len(into.len() + read) };
                    // It was emptied: what comes next is told anew.
                    if read < room {
                        ready.clear_ready();
                    }
                    return Ok(read > 0);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends what was posted, then `bytes`, waiting until the client takes them.
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        if !self.posted.borrow().is_empty() {
            self.send_posted().await?;
        }
        self.write(bytes).await
    }

    /// Sends what was posted, then some of `bytes`; how many of these. Dropped before it ends, it
    /// has sent none of them, and what is left of what was posted is still there.
    pub async fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        if !self.posted.borrow().is_empty() {
            self.send_posted().await?;
        }
        loop {
            if let Some(sent) = self.send_now(bytes)? {
                return Ok(sent);
            }
            self.has_room().await?;
        }
    }

    async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.send_now(bytes)? {
                Some(sent) => bytes = &bytes[sent..],
                None => self.has_room().await?,
            }
        }
        Ok(())
    }

    /// How many of these bytes the kernel has taken; none where there is no room.
    fn send_now(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        loop {
            match self.socket().send(bytes) {
                Ok(sent) => return Ok(Some(sent)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    #[cold]
    async fn send_posted(&self) -> io::Result<()> {
        self.is_stuck.set(false);
        while !self.posted().is_empty() {
            let sent = self.send_now(&self.posted());
            match sent? {
                Some(sent) => self.has_sent(sent),
                None => self.has_room().await?,
            }
        }
        Ok(())
    }

    /// Has `bytes` leave with what other sessions of the loop have to send when its turn ends, and
    /// empties them.
    pub async fn post(self: &Rc<Self>, bytes: &mut Vec<u8>) -> io::Result<()> {
        if self.is_stuck.get() {
            self.send_posted().await?;
        }
        poll_fn(|cx| {
            self.session.register(cx.waker());
            Poll::Ready(())
        })
        .await;
        let mut posted = self.posted.borrow_mut();
        match posted.is_empty() {
            true => *posted = std::mem::replace(bytes, self.outbox.buffer()),
            false => posted.append(bytes),
        }
        if !self.is_listed.replace(true) {
            self.outbox.add(self.clone());
        }
        Ok(())
    }

    /// What waits here for the end of the turn.
    pub fn posted(&self) -> Ref<'_, [u8]> {
        Ref::map(self.posted.borrow(), |posted| &posted[..])
    }

    /// Of that, so many bytes have been sent.
    pub fn has_sent(&self, bytes: usize) {
        let mut posted = self.posted.borrow_mut();
        match bytes == posted.len() {
            true => posted.clear(),
            false => drop(posted.drain(..bytes)),
        }
    }

    /// Sends what was posted, as far as there is room; the rest is left to the session. The buffer,
    /// where it is empty.
    pub fn leave(&self) -> Option<Vec<u8>> {
        self.is_listed.set(false);
        while !self.posted().is_empty() {
            let sent = self.socket().send(&self.posted());
            match sent {
                Ok(sent) => self.has_sent(sent),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.is_stuck.set(true);
                    self.session.wake();
                    return None;
                }
            }
        }
        Some(self.posted.take())
    }

    /// Waits until the client has taken some of what it was sent.
    #[cold]
    async fn has_room(&self) -> io::Result<()> {
        // A descriptor of its own, for one is watched in one way.
        let again = self.socket.get_ref().try_clone()?;
        let watched = watch(again, Interest::WRITABLE)?;
        let _ready = watched.writable().await?;
        Ok(())
    }
}

impl AsRawFd for PlainSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn watch(socket: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` owns its descriptor, names the same one each time it is asked, and
    // closes it when it is dropped; in the `AsyncFd` it is neither replaced nor taken out while it
    // is registered.
    let watched = unsafe { AsyncFd::register_with_interest(socket, interest) };
    Ok(watched?)
}

#[cfg(test)]
mod tests {
    use super::super::ring::Ring;
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn pair() -> (Rc<PlainSocket>, UnixStream, Rc<Outbox>) {
        let outbox = Rc::new(Outbox::new(None));
        let (socket, theirs) = pair_on(&outbox);
        (socket, theirs, outbox)
    }

    fn pair_on(outbox: &Rc<Outbox>) -> (Rc<PlainSocket>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("set");
        let socket = PlainSocket::new(ours.into(), Origin::Unknown, outbox.clone());
        (Rc::new(socket.expect("watched")), theirs)
    }

    #[tokio::test]
    async fn more_than_there_is_room_for_arrives_whole() {
        let (socket, mut theirs, _) = pair();
        let sent: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
        let expected = sent.clone();
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; expected.len()];
            theirs.read_exact(&mut all).expect("read");
            assert!(all == expected);
            theirs.write_all(&all).expect("written");
        });
        socket.write_all(&sent).await.expect("written");
        let mut back = Vec::new();
        while socket.read_more(&mut back, 16 << 10).await.expect("read") {}
        assert!(back == sent);
        reader.join().expect("the reader ended");
    }

    /// Posted, more posted, then written: it arrives in this order, though there is room for a part
    /// only.
    #[tokio::test]
    async fn what_is_posted_comes_before_what_is_written_later() {
        let (socket, mut theirs, outbox) = pair();
        let sent: Vec<u8> = (0..3_000_000u32).map(|i| (i % 249) as u8).collect();
        let expected = sent.clone();
        let (first, rest) = sent.split_at(1_000_000);
        let (second, third) = rest.split_at(1_000_000);
        socket.post(&mut first.to_vec()).await.expect("posted");
        socket.post(&mut second.to_vec()).await.expect("posted");
        outbox.leave();
        assert!(socket.is_stuck.get());
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; expected.len()];
            theirs.read_exact(&mut all).expect("read");
            assert!(all == expected);
        });
        socket.write_all(third).await.expect("written");
        reader.join().expect("the reader ended");
    }

    /// A session that waits for its client sends what there was no room for as soon as there is.
    #[tokio::test]
    async fn what_is_stuck_is_sent_while_the_client_is_waited_for() {
        let (socket, mut theirs, outbox) = pair();
        let mut bytes = vec![7; 3_000_000];
        socket.post(&mut bytes).await.expect("posted");
        outbox.leave();
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; 3_000_000];
            theirs.read_exact(&mut all).expect("read");
            assert!(all.iter().all(|b| *b == 7));
            theirs.write_all(b"thanks").expect("written");
        });
        let mut input = Vec::new();
        assert!(socket.read_more(&mut input, 100).await.expect("read"));
        assert_eq!(input, b"thanks");
        reader.join().expect("the reader ended");
    }

    #[tokio::test]
    async fn a_client_that_is_gone_is_an_error_of_its_session() {
        let (socket, theirs, outbox) = pair();
        drop(theirs);
        socket.post(&mut b"hello".to_vec()).await.expect("posted");
        outbox.leave();
        let read = socket.read_more(&mut Vec::new(), 100).await;
        assert_eq!(read.map_err(|e| e.kind()), Err(io::ErrorKind::BrokenPipe));
    }

    /// More than one call takes, among them one whose client is gone and one whose client does not
    /// read.
    #[tokio::test]
    async fn replies_leave_together_each_as_far_as_its_client_lets_it() {
        for ring in [None, Ring::new().ok()] {
            let outbox = Rc::new(Outbox::new(ring));
            let pairs: Vec<_> = (0..300).map(|_| pair_on(&outbox)).collect();
            let (gone, slow) = (7, 290);
            let large: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
            let mut clients = Vec::new();
            let mut sockets = Vec::new();
            for (number, (socket, client)) in pairs.into_iter().enumerate() {
                let mut reply = match number == slow {
                    true => large.clone(),
                    false => format!("reply {number}").into_bytes(),
                };
                if number != gone {
                    clients.push((number, client));
                }
                socket.post(&mut reply).await.expect("posted");
                sockets.push(socket);
            }
            outbox.leave();
            for (number, socket) in sockets.iter().enumerate() {
                assert_eq!(socket.is_stuck.get(), number == gone || number == slow);
            }
            for (number, client) in &mut clients {
                let mut reply = format!("reply {number}").into_bytes();
                if *number != slow {
                    client.read_exact(&mut reply).expect("read");
                    assert_eq!(reply, format!("reply {number}").into_bytes());
                }
            }
            let gone = sockets[gone].read_more(&mut Vec::new(), 100).await;
            assert_eq!(gone.map_err(|e| e.kind()), Err(io::ErrorKind::BrokenPipe));
            let (_, mut client) = clients.swap_remove(slow - 1);
            let reader = std::thread::spawn(move || {
                let mut reply = vec![0; 3_000_000];
                client.read_exact(&mut reply).expect("read");
                client.write_all(b"thanks").expect("written");
                reply
            });
            let mut input = Vec::new();
            assert!(
                sockets[slow]
                    .read_more(&mut input, 100)
                    .await
                    .expect("read")
            );
            assert_eq!(input, b"thanks");
            assert!(reader.join().expect("the reader ended") == large);
        }
    }
}
