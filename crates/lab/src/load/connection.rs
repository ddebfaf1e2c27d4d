//! A connection to a server: non-blocking, one statement at a time, as little work a round trip as can be.
//!
//! ```text
//! connect ─► startup ─► authentication (trust, SCRAM-SHA-256) ─► ready ─┬─► run, copy_in ─┐
//!                                                                       └──── ready ◄─────┘
//! ```
//!
//! Replies are read message by message up to ReadyForQuery, so after an error the connection is in step again.
//! Rows are counted; they are copied only for statements that ask for it.

use std::io::{ErrorKind, Read, Write};
use std::mem;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use super::reactor::{self, Reactor};
use super::scram::{self, Proved, Scram};
use super::sql::{Arg, Keep, Mode, Sql};
use super::trouble::{Result, Trouble};
use super::url::{Address, Target};
use super::wire::{self, Message, Out, Rows};

/// The read buffer at first; it doubles while replies fill it.
const SMALL: usize = 4 << 10;
/// No read asks for more, so a thousand scanning clients stay within 64 MB.
const LARGE: usize = 64 << 10;
/// COPY data is sent in pieces of about this size.
const COPY_PIECE: usize = 64 << 10;
/// A full accept queue of a Unix socket answers at once instead of making the client wait: ask again after this.
const BACKLOG_WAIT: Duration = Duration::from_millis(1);
/// … but not for longer than this.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// What one statement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows that came back.
    pub rows: u64,
    /// Rows that the command's tag tells of.
    pub affected: u64,
}

pub struct Connection {
    reactor: Reactor,
    socket: Socket,
    mode: Mode,
    out: Vec<u8>,
    input: Input,
    rows: Rows,
    /// Of the last result that was described while its rows were kept.
    column_names: Vec<String>,
    /// Which of the workload's statements are prepared here.
    prepared: Vec<bool>,
    in_transaction: bool,
}

/// Opens a connection on a reactor of its own, lets `work` use it, and closes it.
pub fn with<T>(target: &Target, work: impl AsyncFnOnce(&mut Connection) -> Result<T>) -> Result<T> {
    reactor::block_on(async |reactor| {
        let mut connection = Connection::open(&reactor, target, Mode::Simple).await?;
        let done = work(&mut connection).await?;
        connection.close().await;
        Ok(done)
    })?
}

/// What was read and not yet understood.
struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Connection {
    pub async fn open(reactor: &Reactor, target: &Target, mode: Mode) -> Result<Connection> {
        let socket = connect(reactor, &target.address).await?;
        let mut connection = Connection {
            reactor: reactor.clone(),
            socket,
            mode,
            out: Vec::with_capacity(512),
            input: Input {
                bytes: vec![0; SMALL],
                start: 0,
                end: 0,
            },
            rows: Rows::default(),
            column_names: Vec::new(),
            prepared: Vec::new(),
            in_transaction: false,
        };
        Out(&mut connection.out).startup(&target.user, &target.database);
        connection.flush().await?;
        connection.authenticate(target).await?;
        Ok(connection)
    }

    /// Runs a statement to its end. An error of the server's leaves the connection ready for the next.
    pub async fn run(&mut self, sql: &Sql, args: &[Arg<'_>]) -> Result<Tally> {
        debug_assert_eq!(sql.params(), args.len(), "{}", sql.text());
        self.queue(sql, args);
        self.flush().await?;
        let done = self.until_ready(sql.keep).await;
        if self.mode == Mode::Prepared && done.is_ok() {
            self.remember(sql.id);
        }
        done
    }

    /// Runs SQL text by the simple protocol, whatever the mode; its rows are kept.
    pub async fn simple(&mut self, text: &str) -> Result<Tally> {
        Out(&mut self.out).query(|out| out.extend_from_slice(text.as_bytes()));
        self.flush().await?;
        self.until_ready(Keep::Rows).await
    }

    /// Sends what `more` writes as the data of `COPY … FROM STDIN`, until it says false.
    pub async fn copy_in(
        &mut self,
        text: &str,
        mut more: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<Tally> {
        Out(&mut self.out).query(|out| out.extend_from_slice(text.as_bytes()));
        self.flush().await?;
        if !self.copy_starts().await? {
            return self.until_ready(Keep::Count).await;
        }
        let mut goes_on = true;
        while goes_on {
            Out(&mut self.out).copy_data(|out| {
                let start = out.len();
                while goes_on && out.len() - start < COPY_PIECE {
                    goes_on = more(out);
                }
            });
            if !goes_on {
                Out(&mut self.out).copy_done();
            }
            self.flush().await?;
        }
        self.until_ready(Keep::Count).await
    }

    /// The rows of the last statement that was to keep them.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The columns of [`Connection::rows`].
    pub fn column_names(&self) -> &[String] {
        &self.column_names
    }

    /// Whether a transaction block is open, failed ones included.
    pub fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Says goodbye; whether the server hears it does not matter.
    pub async fn close(mut self) {
        Out(&mut self.out).terminate();
        let _ = self.flush().await;
    }

    fn queue(&mut self, sql: &Sql, args: &[Arg<'_>]) {
        let mut out = Out(&mut self.out);
        match self.mode {
            Mode::Simple => return out.query(|text| sql.write_simple(args, text)),
            Mode::Extended => {
                out.parse("", sql.text());
                out.bind("", args);
            }
            Mode::Prepared => {
                let name = Name::of(sql.id);
                if !self.prepared.get(sql.id).is_some_and(|p| *p) {
                    out.parse(name.text(), sql.text());
                }
                out.bind(name.text(), args);
            }
        }
        if sql.keep == Keep::Named {
            out.describe_portal();
        }
        out.execute();
        out.sync();
    }

    fn remember(&mut self, id: usize) {
        if self.prepared.len() <= id {
            self.prepared.resize(id + 1, false);
        }
        self.prepared[id] = true;
    }

    /// Writes what was queued.
    async fn flush(&mut self) -> Result<()> {
        let mut written = 0;
        while written < self.out.len() {
            match (&self.socket).write(&self.out[written..]) {
                Ok(n) => written += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.reactor.filled();
                    self.reactor.writable().await;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.out.clear();
        self.out.shrink_to(2 * COPY_PIECE);
        Ok(())
    }

    /// Reads replies up to ReadyForQuery; the first error among them is the result.
    async fn until_ready(&mut self, keep: Keep) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut trouble = None;
        if keep != Keep::Count {
            self.rows.clear();
        }
        loop {
            while let Some(message) = self.input.take()? {
                match message.tag {
                    b'D' => {
                        tally.rows += 1;
                        if keep != Keep::Count {
                            self.rows.push(message.body)?;
                        }
                    }
                    b'T' if keep == Keep::Named => {
                        self.column_names = wire::column_names(message.body)?
                    }
                    b'C' => tally.affected = wire::affected(message.body),
                    b'Z' => {
                        self.in_transaction = message.body != b"I";
                        return trouble.map_or(Ok(tally), Err);
                    }
                    b'E' => {
                        let refused = Trouble::Refused(Box::new(wire::refusal(message.body)));
                        // The server hangs up after this: there will be no ReadyForQuery.
                        if refused.ends_connection() {
                            return Err(refused);
                        }
                        trouble.get_or_insert(refused);
                    }
                    // RowDescription, ParseComplete, BindComplete, NoData, EmptyQueryResponse,
                    // ParameterStatus, NoticeResponse, PortalSuspended, CloseComplete
                    b'T' | b'1' | b'2' | b'n' | b'I' | b'S' | b'N' | b's' | b'3' => {}
                    tag => return Err(unexpected(tag)),
                }
            }
            self.fill().await?;
        }
    }

    /// Whether the server wants COPY data; otherwise what it says instead is still to be read.
    async fn copy_starts(&mut self) -> Result<bool> {
        loop {
            match self.input.peek()? {
                Some(b'G') => {
                    self.input.take()?;
                    return Ok(true);
                }
                Some(b'N' | b'S') => {
                    self.input.take()?;
                }
                Some(_) => return Ok(false),
                None => self.fill().await?,
            }
        }
    }

    async fn authenticate(&mut self, target: &Target) -> Result<()> {
        let mut scram: Option<Scram> = None;
        let mut proved: Option<Proved> = None;
        loop {
            let Some(message) = self.input.take()? else {
                self.fill().await?;
                continue;
            };
            let answer = match message.tag {
                b'R' => match Challenge::read(message.body)? {
                    Challenge::Ok => None,
                    Challenge::Sasl(mechanisms) => {
                        if !mechanisms.contains(&scram::MECHANISM) {
                            return Err(Trouble::broken(format!(
                                "authentication by {} is not spoken here",
                                mechanisms.join(", ")
                            )));
                        }
                        let password = target.password.as_deref().ok_or_else(|| {
                            Trouble::broken(
                                "the server asks for a password and the target has none",
                            )
                        })?;
                        let first = scram.insert(Scram::new(password)).first();
                        Some((true, first))
                    }
                    Challenge::Continue(challenge) => {
                        let scram = scram.as_ref().ok_or_else(|| unexpected(b'R'))?;
                        let (answer, expects) = scram.answer(challenge)?;
                        proved = Some(expects);
                        Some((false, answer))
                    }
                    Challenge::Final(signature) => {
                        let proved = proved.as_ref().ok_or_else(|| unexpected(b'R'))?;
                        proved.verify(signature)?;
                        None
                    }
                },
                b'E' => return Err(Trouble::Refused(Box::new(wire::refusal(message.body)))),
                // ParameterStatus, BackendKeyData, NoticeResponse, NegotiateProtocolVersion
                b'S' | b'K' | b'N' | b'v' => None,
                b'Z' => return Ok(()),
                tag => return Err(unexpected(tag)),
            };
            if let Some((is_first, data)) = answer {
                let mut out = Out(&mut self.out);
                match is_first {
                    true => out.sasl_first(scram::MECHANISM, &data),
                    false => out.sasl_next(&data),
                }
                self.flush().await?;
            }
        }
    }

    /// Waits for more input and reads it.
    async fn fill(&mut self) -> Result<()> {
        loop {
            self.reactor.readable().await;
            let space = self.input.space();
            let wanted = space.len();
            match (&self.socket).read(space) {
                Ok(0) => return Err(Trouble::broken("closed by the server")),
                Ok(n) => {
                    self.input.end += n;
                    // A short read has emptied the socket (epoll(7), question 9): the next event will say when
                    // there is more, and a read that finds nothing is saved.
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

impl Input {
    /// The next whole message, if there is one.
    #[inline]
    fn take(&mut self) -> Result<Option<Message<'_>>> {
        let found = wire::first(&self.bytes[self.start..self.end])?;
        Ok(found.map(|(message, length)| {
            self.start += length;
            message
        }))
    }

    /// The tag of the next whole message.
    fn peek(&self) -> Result<Option<u8>> {
        let found = wire::first(&self.bytes[self.start..self.end])?;
        Ok(found.map(|(message, _)| message.tag))
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

/// AuthenticationXxx.
enum Challenge<'a> {
    Ok,
    Sasl(Vec<&'a str>),
    Continue(&'a str),
    Final(&'a str),
}

impl Challenge<'_> {
    fn read(body: &[u8]) -> Result<Challenge<'_>> {
        let malformed = || Trouble::broken("a malformed authentication request");
        let (kind, rest) = body.split_first_chunk::<4>().ok_or_else(malformed)?;
        let text = || std::str::from_utf8(rest).map_err(|_| malformed());
        match u32::from_be_bytes(*kind) {
            0 => Ok(Challenge::Ok),
            10 => Ok(Challenge::Sasl(
                text()?.split('\0').filter(|m| !m.is_empty()).collect(),
            )),
            11 => Ok(Challenge::Continue(text()?)),
            12 => Ok(Challenge::Final(text()?)),
            other => Err(Trouble::broken(format!(
                "authentication request {other} is not spoken here, only trust and SCRAM-SHA-256"
            ))),
        }
    }
}

/// A prepared statement's name, made without allocating: `s` and eight hexadecimal digits.
struct Name([u8; 9]);

impl Name {
    fn of(id: usize) -> Name {
        let mut name = *b"s00000000";
        for (nibble, digit) in name[1..].iter_mut().rev().enumerate() {
            *digit = b"0123456789abcdef"[(id >> (4 * nibble)) & 15];
        }
        Name(name)
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.0).expect("digits are ASCII")
    }
}

fn unexpected(tag: u8) -> Trouble {
    Trouble::broken(format!("an unexpected message {:?}", char::from(tag)))
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
    reactor.writable().await;
    match socket.take_error()? {
        Some(e) => Err(e.into()),
        None => Ok(socket),
    }
}
