//! The kinds of socket a client may come through, behind one set of calls.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use throng_session::Encryption;
use throng_sync::VectorPool;

use super::plain::PlainSocket;

thread_local! {
    /// For what was read and is looked at: given back before its session waits for more.
    pub static READ: VectorPool<u8> = const { VectorPool::new(8, 64 << 10) };
}

/// Room for `chunk` bytes more; whoever has none yet gets another's.
pub fn make_room(into: &mut Vec<u8>, chunk: usize) {
    if into.capacity() == 0 {
        *into = READ.with(VectorPool::take);
    }
    into.reserve(chunk);
}

/// For the next session.
pub fn give_back(read: &mut Vec<u8>) {
    READ.with(|rooms| rooms.give_back(std::mem::take(read)));
}

/// A cipher suite as OpenSSL calls it, and its key's length in bits. The registry's name, as rustls
/// has it, is `TLS13_AES_256_GCM_SHA384` or `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`.
fn cipher_name(registered: &str) -> (String, i32) {
    let bits = if registered.contains("AES_128") {
        128
    } else {
        256
    };
    let name = match registered.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => {
            let plain = registered.trim_start_matches("TLS_").replace("_WITH", "");
            let plain = plain
                .replace("AES_", "AES")
                .replace("POLY1305_SHA256", "POLY1305");
            plain.replace('_', "-")
        }
    };
    (name, bits)
}

pub enum Stream {
    /// TCP and Unix-domain sockets.
    Plain(Rc<PlainSocket>),
    Tls(Box<TlsStream<TcpStream>>, Origin),
}

/// Where a client comes from.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    Tcp(SocketAddr),
    /// The Unix socket; `owner` if the client runs as the server's own user.
    Unix {
        owner: bool,
    },
    /// The client was gone before it could be asked.
    Unknown,
}

impl Origin {
    pub fn is_unix(&self) -> bool {
        matches!(self, Origin::Unix { .. })
    }
    pub fn is_owner(&self) -> bool {
        matches!(self, Origin::Unix { owner: true })
    }
    /// Whether the client's bytes never leave the machine.
    pub fn is_near(&self) -> bool {
        match self {
            Origin::Tcp(a) => a.ip().is_loopback(),
            Origin::Unix { .. } => true,
            Origin::Unknown => false,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Tcp(a) => a.fmt(f),
            Origin::Unix { .. } => f.write_str("[local]"),
            Origin::Unknown => f.write_str("[unknown]"),
        }
    }
}

impl Stream {
    pub fn origin(&self) -> Origin {
        match self {
            Stream::Plain(s) => s.origin,
            Stream::Tls(_, origin) => *origin,
        }
    }

    /// The number of the socket below, for as long as this is there.
    pub fn socket(&self) -> RawFd {
        match self {
            Stream::Plain(s) => s.as_raw_fd(),
            Stream::Tls(s, _) => s.get_ref().0.as_raw_fd(),
        }
    }

    /// As `pg_stat_ssl` tells it.
    pub fn encryption(&self) -> Option<Encryption> {
        let Stream::Tls(stream, _) = self else {
            return None;
        };
        let connection = stream.get_ref().1;
        let suite = connection.negotiated_cipher_suite()?.suite();
        let version = match connection.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2",
            rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "unknown",
        };
        let (cipher, bits) = cipher_name(suite.as_str().unwrap_or_default());
        Some(Encryption {
            version,
            cipher,
            bits,
        })
    }

    pub async fn secure(self, tls: &TlsAcceptor) -> io::Result<Stream> {
        let Stream::Plain(socket) = self else {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "TLS is for connections that are not encrypted",
            ));
        };
        let origin = socket.origin;
        let socket = Rc::try_unwrap(socket).map_err(|_| {
            io::Error::other("a client that asks for TLS before it has its answers")
        })?;
        let tcp = TcpStream::from_std(socket.into_inner().into())?;
        Ok(Stream::Tls(Box::new(tls.accept(tcp).await?), origin))
    }

    /// Says goodbye where the protocol below has a word for it; a client that does not listen is
    /// not waited for.
    pub async fn close(&mut self) {
        const PATIENCE: Duration = Duration::from_secs(1);
        if let Stream::Tls(s, _) = self {
            // Whether it arrives is the client's affair.
            let _ = tokio::time::timeout(PATIENCE, s.shutdown()).await;
        }
    }

    /// Reads what is there, at most about `chunk` bytes more, waiting for at least one. False at
    /// the end of the stream. An idle connection, with nothing read, holds no buffer: room is made
    /// only when there are bytes to read.
    pub async fn read_more(&mut self, into: &mut Vec<u8>, chunk: usize) -> io::Result<bool> {
        if into.is_empty() {
            give_back(into);
        }
        match self {
            Stream::Plain(s) => s.read_more(into, chunk).await,
            Stream::Tls(s, _) => {
                let read = poll_fn(|cx| {
                    make_room(into, chunk);
                    let read = pin!(s.read_buf(into)).poll(cx);
                    if read.is_pending() && into.is_empty() {
                        give_back(into);
                    }
                    read
                });
                Ok(read.await? > 0)
            }
        }
    }

    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Plain(s) => s.write_all(bytes).await,
            Stream::Tls(s, _) => {
                s.write_all(bytes).await?;
                s.flush().await
            }
        }
    }

    /// Sends some of `bytes`; how many. Dropped before it ends, it has sent nothing.
    pub async fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(s) => s.write_some(bytes).await,
            Stream::Tls(s, _) => s.write(bytes).await,
        }
    }

    /// Has what was written leave.
    pub async fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(s, _) => s.flush().await,
        }
    }

    /// Sends `bytes` and empties them: at the end of the loop's turn, where that is soon enough.
    pub async fn post(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Stream::Plain(s) => s.post(bytes).await,
            Stream::Tls(..) => {
                self.write_all(bytes).await?;
                bytes.clear();
                Ok(())
            }
        }
    }
}
