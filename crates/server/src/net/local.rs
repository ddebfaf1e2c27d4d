//! A client's Unix-domain socket, watched for what it brings and not for what it takes.
//!
//! ```text
//!   watched for reading and writing                 for reading alone
//!   client reads a reply ─► the loop is woken       nothing
//!   client sends         ─► the loop is woken       client sends ─► the loop is woken
//! ```
//! Linux tells whoever watches a Unix-domain socket for writing of each message that the other end has read, room or not
//! (`unix_write_space`; TCP does so only once a write has found no room). A loop that sleeps would be woken by every reply that
//! is read, for nothing. A write that finds no room is rare, and watches for that alone.

use std::io;
use std::os::unix::net::UnixStream;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub struct LocalSocket {
    socket: AsyncFd<UnixStream>,
    /// As whom the client runs; none if it was gone before it could be asked.
    peer: Option<u32>,
}

impl LocalSocket {
    /// A socket that does not block, on the loop that this runs on.
    pub fn new(socket: UnixStream, peer: Option<u32>) -> io::Result<LocalSocket> {
        let socket = watch(socket, Interest::READABLE)?;
        Ok(LocalSocket { socket, peer })
    }

    pub fn peer(&self) -> Option<u32> {
        self.peer
    }

    /// Reads what is there, at most about `chunk` bytes more, waiting for at least one. False at the end of the stream.
    pub async fn read_more(&self, into: &mut Vec<u8>, chunk: usize) -> io::Result<bool> {
        loop {
            let mut ready = self.socket.readable().await?;
            into.reserve(chunk);
            let room = into.capacity() - into.len();
            match rustix::io::read(&self.socket, spare_capacity(into)) {
                Ok(read) => {
                    // It was emptied: what comes next is told anew.
                    if read < room {
                        ready.clear_ready();
                    }
                    return Ok(read > 0);
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.socket, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::AGAIN) => self.has_room().await?,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
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

fn watch(socket: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
    // SAFETY: a `UnixStream` owns its descriptor, names the same one each time it is asked, and closes it when it is dropped; in the
    // `AsyncFd` it is neither replaced nor taken out while it is registered.
    let watched = unsafe { AsyncFd::register_with_interest(socket, interest) };
    Ok(watched?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[tokio::test]
    async fn more_than_there_is_room_for_arrives_whole() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("set");
        let socket = LocalSocket::new(ours, None).expect("watched");
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
}
