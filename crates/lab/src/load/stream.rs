//! A socket on the reactor, what is to be written to it, and what was read from it and not yet
//! understood.

use std::io::{ErrorKind, Read, Write};
use std::mem;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use super::reactor::Reactor;
use super::trouble::{Result, Trouble};
use super::url::Address;

/// The read buffer at first; it doubles while replies fill it.
const SMALL: usize = 4 << 10;
/// No read asks for more, so a thousand scanning clients stay within 64 MB.
const LARGE: usize = 64 << 10;
/// What the write buffer keeps of its room when it was written out.
const KEPT: usize = 128 << 10;
/// A full accept queue of a Unix socket answers at once instead of making the client wait: ask
/// again after this.
const BACKLOG_WAIT: Duration = Duration::from_millis(1);
/// … but not for longer than this.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

pub struct Stream {
    reactor: Reactor,
    socket: Socket,
    /// Written by [`Stream::flush`].
    pub out: Vec<u8>,
    pub input: Input,
}

impl Stream {
    pub async fn connect(reactor: &Reactor, address: &Address) -> Result<Stream> {
        Ok(Stream {
            reactor: reactor.clone(),
            socket: connect(reactor, address).await?,
            out: Vec::with_capacity(512),
            input: Input {
                bytes: vec![0; SMALL],
                start: 0,
                end: 0,
            },
        })
    }

    /// Writes what was queued.
    pub async fn flush(&mut self) -> Result<()> {
        let mut written = 0;
        while written < self.out.len() {
            match (&self.socket).write(&self.out[written..]) {
                Ok(n) => written += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.reactor.writable(&self.socket).await?;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.out.clear();
        self.out.shrink_to(KEPT);
        Ok(())
    }

    /// Waits for more input and reads it.
    pub async fn fill(&mut self) -> Result<()> {
        loop {
            self.reactor.readable().await;
            let space = self.input.space();
            let wanted = space.len();
            match (&self.socket).read(space) {
                Ok(0) => return Err(Trouble::broken("closed by the server")),
                Ok(n) => {
                    self.input.end += n;
                    // A short read has emptied the socket (epoll(7), question 9): the next event
                    // will say when there is more, and a read that finds nothing is saved.
                    if n < wanted {
                        self.reactor.drained();
                    }
                    return Ok(());
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.reactor.drained(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// What was read and not yet understood.
pub struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// The next whole message, if there is one: `first` finds it in the bytes and says how long it
    /// is.
    #[inline]
    pub fn take<'a, M>(
        &'a mut self,
        first: impl FnOnce(&'a [u8]) -> Result<Option<(M, usize)>>,
    ) -> Result<Option<M>> {
        let found = first(&self.bytes[self.start..self.end])?;
        Ok(found.map(|(message, length)| {
            self.start += length;
            message
        }))
    }

    /// What is not understood yet.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Where to read to: what is left is moved to the front first, and a buffer that is full grows.
    fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            if self.end == self.bytes.len() && self.bytes.len() < LARGE {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
            (self.start, self.end) = (0, 0);
        } else if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= mem::take(&mut self.start);
            // The message that is not whole may be longer than the buffer.
            if self.end > self.bytes.len() / 2 {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
        }
        &mut self.bytes[self.end..]
    }
}

async fn connect(reactor: &Reactor, address: &Address) -> Result<Socket> {
    let (domain, address) = match address {
        Address::Tcp(at) => (Domain::for_address(*at), SockAddr::from(*at)),
        Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
    };
    let socket = Socket::new(domain, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    if domain != Domain::UNIX {
        socket.set_tcp_nodelay(true)?;
    }
    let since = Instant::now();
    loop {
        match socket.connect(&address) {
            Ok(()) => {
                reactor.register(&socket)?;
                return Ok(socket);
            }
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => break,
            Err(e) if e.kind() == ErrorKind::WouldBlock && since.elapsed() < CONNECT_LIMIT => {
                reactor.sleep(BACKLOG_WAIT).await;
            }
            Err(e) => return Err(e.into()),
        }
    }
    reactor.register(&socket)?;
    reactor.writable(&socket).await?;
    match socket.take_error()? {
        Some(e) => Err(e.into()),
        None => Ok(socket),
    }
}
