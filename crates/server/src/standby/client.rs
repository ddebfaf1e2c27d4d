//! A connection to a primary: replication commands, and the stream of the log.
//!
//! It blocks, for a standby has a thread for it. The protocol's login is `postgres-protocol`'s.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use throng_lab::load::url::{Address, Target};
use throng_types::error::{SqlState, state};
use throng_types::{Error, Result};

/// A primary that does not answer for so long is lost.
const PATIENCE: Duration = Duration::from_secs(30);
/// Connecting takes no longer, so that a standby can be told something else meanwhile.
const CONNECTING: Duration = Duration::from_secs(5);
/// A longer message is none.
const LONGEST: usize = 64 << 20;

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn connect(address: &Address) -> io::Result<Stream> {
        Ok(match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, CONNECTING)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            Address::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
        })
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        // A timeout of zero would be none.
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
        }
    }
}

/// A message of the primary.
pub struct Message {
    pub tag: u8,
    pub body: Vec<u8>,
}

pub type Row = Vec<Option<String>>;

pub struct Primary {
    stream: Stream,
    input: Vec<u8>,
    /// Where the next message begins in it.
    start: usize,
}

impl Primary {
    /// Connects as a client that takes the log.
    ///
    /// # Errors
    /// 08006 where nobody is there, and what the primary says.
    pub fn connect(target: &Target, name: &str) -> Result<Primary> {
        let stream = Stream::connect(&target.address).map_err(lost)?;
        let mut primary = Primary {
            stream,
            input: Vec::new(),
            start: 0,
        };
        let parameters = [
            ("user", target.user.as_str()),
            ("replication", "true"),
            ("application_name", name),
        ];
        primary.send(|out| frontend::startup_message(parameters, out))?;
        primary.log_in(target)?;
        loop {
            let message = primary.next()?;
            match message.tag {
                b'Z' => return Ok(primary),
                b'E' => return Err(refusal(&message.body)),
                _ => {}
            }
        }
    }

    fn log_in(&mut self, target: &Target) -> Result<()> {
        const OK: u32 = 0;
        const CLEARTEXT: u32 = 3;
        const SASL: u32 = 10;
        let password = target.password.clone().unwrap_or_default();
        let mut scram = None;
        loop {
            let message = self.next()?;
            let kind = match message.tag {
                b'R' => message.body.first_chunk().map(|b| u32::from_be_bytes(*b)),
                b'E' => return Err(refusal(&message.body)),
                _ => None,
            };
            let rest = message.body.get(4..).unwrap_or_default();
            match (kind, &mut scram) {
                (Some(OK), _) => return Ok(()),
                (Some(CLEARTEXT), _) => {
                    self.send(|out| frontend::password_message(password.as_bytes(), out))?;
                }
                (Some(SASL), _) => {
                    let begun =
                        ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
                    let first = begun.message().to_vec();
                    self.send(|out| frontend::sasl_initial_response(SCRAM_SHA_256, &first, out))?;
                    scram = Some(begun);
                }
                (Some(11), Some(scram)) => {
                    scram.update(rest).map_err(lost)?;
                    let next = scram.message().to_vec();
                    self.send(|out| frontend::sasl_response(&next, out))?;
                }
                (Some(12), Some(scram)) => scram.finish(rest).map_err(lost)?,
                _ => return Err(unexpected("a way of logging in that is not spoken here")),
            }
        }
    }

    /// Runs a command; the rows of each result.
    pub fn query(&mut self, text: &str) -> Result<Vec<Row>> {
        self.start(text)?;
        let mut rows = Vec::new();
        let mut refused = None;
        loop {
            let message = self.next()?;
            match message.tag {
                b'D' => rows.push(row(&message.body)?),
                b'E' => refused = Some(refusal(&message.body)),
                b'Z' => return refused.map_or(Ok(rows), Err),
                _ => {}
            }
        }
    }

    /// Sends a command whose answer is read message by message.
    pub fn start(&mut self, text: &str) -> Result<()> {
        self.send(|out| frontend::query(text, out))
    }

    pub fn copy_data(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.send(|out| {
            frontend::CopyData::new(&bytes[..])?.write(out);
            Ok(())
        })
    }

    pub fn copy_done(&mut self) -> Result<()> {
        self.send(|out| {
            frontend::copy_done(out);
            Ok(())
        })
    }

    fn send(&mut self, write: impl FnOnce(&mut BytesMut) -> io::Result<()>) -> Result<()> {
        let mut out = BytesMut::new();
        write(&mut out).map_err(lost)?;
        self.stream.write_all(&out).map_err(lost)
    }

    /// The next message, for which it waits.
    pub fn next(&mut self) -> Result<Message> {
        let began = Instant::now();
        loop {
            if let Some(message) = self.next_within(PATIENCE)? {
                return Ok(message);
            }
            if began.elapsed() > PATIENCE {
                return Err(unexpected("no answer"));
            }
        }
    }

    /// A message that has come whole already.
    pub fn pending(&mut self) -> Result<Option<Message>> {
        let bytes = &self.input[self.start..];
        let Some(head) = bytes.first_chunk::<5>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..=LONGEST).contains(&length) {
            return Err(unexpected("a message of no sensible length"));
        }
        let Some(body) = bytes.get(5..=length) else {
            return Ok(None);
        };
        let message = Message {
            tag: head[0],
            body: body.to_vec(),
        };
        self.start += length + 1;
        Ok(Some(message))
    }

    /// The next message, if it comes in time.
    pub fn next_within(&mut self, patience: Duration) -> Result<Option<Message>> {
        loop {
            if let Some(message) = self.pending()? {
                return Ok(Some(message));
            }
            self.input.drain(..self.start);
            self.start = 0;
            self.stream.set_timeout(patience).map_err(lost)?;
            let had = self.input.len();
            self.input.resize(had + (256 << 10), 0);
            let read = self.stream.read(&mut self.input[had..]);
            self.input.truncate(had + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(unexpected("the connection was closed")),
                Ok(_) => {}
                Err(e) => match e.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => return Ok(None),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(lost(e)),
                },
            }
        }
    }
}

fn row(body: &[u8]) -> Result<Row> {
    let wrong = || unexpected("a row that is none");
    let mut rest = body.get(2..).ok_or_else(wrong)?;
    let mut row = Row::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = i32::from_be_bytes(*length);
        let (value, after) = match usize::try_from(length) {
            Ok(length) => {
                let (value, after) = after.split_at_checked(length).ok_or_else(wrong)?;
                (Some(String::from_utf8_lossy(value).into_owned()), after)
            }
            Err(_) => (None, after),
        };
        row.push(value);
        rest = after;
    }
    Ok(row)
}

/// What an ErrorResponse says.
pub fn refusal(body: &[u8]) -> Error {
    let mut code = state::CONNECTION_FAILURE;
    let mut message = String::new();
    for field in body.split(|b| *b == 0) {
        let Some((kind, text)) = field.split_first() else {
            continue;
        };
        let text = String::from_utf8_lossy(text);
        match kind {
            b'C' if text.len() == 5 => code = SqlState::new(&text),
            b'M' => message = text.into_owned(),
            _ => {}
        }
    }
    Error::new(code, format!("the primary says: {message}"))
}

fn lost(e: io::Error) -> Error {
    Error::new(
        state::CONNECTION_FAILURE,
        format!("the primary is not to be reached: {e}"),
    )
}

fn unexpected(what: &str) -> Error {
    Error::new(
        state::CONNECTION_FAILURE,
        format!("from the primary: {what}"),
    )
}
