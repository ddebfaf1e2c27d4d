//! A client that speaks the wire protocol byte by byte, so that tests may also misspeak it.
//!
//! Blocking, on std alone: `start` sends a query, `poll` takes what has come so far, so one thread
//! can hold several sessions of which some wait.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long any answer may take before the test calls it lost.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Where a server listens.
#[derive(Clone, Debug)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn connect(address: &Address) -> io::Result<Stream> {
        match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Address::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
        }
    }

    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        // A zero time-out would mean for ever.
        let patience = Some(patience.max(Duration::from_millis(1)));
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(patience),
            Stream::Unix(stream) => stream.set_read_timeout(patience),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buf),
            Stream::Unix(stream) => stream.read(buf),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(buf),
            Stream::Unix(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One backend message.
pub struct Message {
    pub tag: u8,
    pub body: Vec<u8>,
}

/// What an error or a notice says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub severity: String,
    pub code: String,
    pub message: String,
    pub detail: Option<String>,
    pub position: Option<String>,
    pub context: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub type_oid: u32,
}

pub type Row = Vec<Option<String>>;

/// One thing that an answer consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerPart {
    Columns(Vec<Column>),
    Row(Row),
    Copied(String),
    Complete(String),
    Report(Report),
    /// The server has closed the connection.
    Closed,
}

/// All that a query brought up to ReadyForQuery.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub parts: Vec<AnswerPart>,
}

impl Answer {
    pub fn rows(&self) -> Vec<&Row> {
        self.parts
            .iter()
            .filter_map(|p| {
                if let AnswerPart::Row(row) = p {
                    Some(row)
                } else {
                    None
                }
            })
            .collect()
    }

    /// The only value of the only row.
    pub fn value(&self) -> &str {
        let rows = self.rows();
        match rows.as_slice() {
            [row] if row.len() == 1 => row[0].as_deref().unwrap_or("NULL"),
            _ => panic!("expected one value, got {:?}", self.parts),
        }
    }

    pub fn error(&self) -> Option<&Report> {
        self.parts.iter().find_map(|p| match p {
            AnswerPart::Report(r)
                if !matches!(r.severity.as_str(), "NOTICE" | "WARNING" | "INFO") =>
            {
                Some(r)
            }
            _ => None,
        })
    }

    /// The SQLSTATE of the error, or "" where there is none.
    pub fn code(&self) -> &str {
        self.error().map_or("", |e| e.code.as_str())
    }

    pub fn closed(&self) -> bool {
        self.parts.contains(&AnswerPart::Closed)
    }
}

/// One session.
pub struct Client {
    stream: Stream,
    address: Address,
    inbox: Vec<u8>,
    answer: Answer,
    /// What a COPY FROM STDIN is to be given.
    copy_data: Vec<u8>,
    pub pid: i32,
    secret: Vec<u8>,
    pub parameters: Vec<(String, String)>,
    pub status: u8,
}

/// One framed message.
pub fn framed(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// A startup packet for protocol 3.0.
pub fn startup_packet(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = 196_608u32.to_be_bytes().to_vec();
    for (name, value) in parameters {
        for text in [name, value] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
    }
    body.push(0);
    let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
    packet.extend_from_slice(&body);
    packet
}

impl Client {
    /// Opens a connection and says nothing.
    pub fn open(address: &Address) -> io::Result<Client> {
        Ok(Client {
            stream: Stream::connect(address)?,
            address: address.clone(),
            inbox: Vec::new(),
            answer: Answer::default(),
            copy_data: Vec::new(),
            pid: 0,
            secret: Vec::new(),
            parameters: Vec::new(),
            status: 0,
        })
    }

    /// Somebody at the door of a database, and what is said to them.
    pub fn enter(address: &Address, user: &str, database: &str) -> io::Result<(Client, Answer)> {
        let mut client = Client::open(address)?;
        client.send(&startup_packet(&[("user", user), ("database", database)]))?;
        let greeting = client.finish()?;
        Ok((client, greeting))
    }

    /// A session of the superuser in the first database.
    pub fn connect(address: &Address) -> io::Result<Client> {
        let (client, greeting) = Client::enter(address, "postgres", "postgres")?;
        match greeting.error() {
            Some(refusal) => Err(io::Error::other(format!("refused: {refusal:?}"))),
            None if greeting.closed() => Err(io::ErrorKind::UnexpectedEof.into()),
            None => Ok(client),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a query and does not wait for its answer.
    pub fn start(&mut self, sql: &str) -> io::Result<()> {
        let mut body = sql.as_bytes().to_vec();
        body.push(0);
        self.send(&framed(b'Q', &body))
    }

    pub fn query(&mut self, sql: &str) -> io::Result<Answer> {
        self.start(sql)?;
        self.finish()
    }

    /// A query that must succeed.
    pub fn run(&mut self, sql: &str) -> Answer {
        let answer = self.query(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert!(
            answer.error().is_none() && !answer.closed(),
            "{sql}: {:?}",
            answer.parts
        );
        answer
    }

    /// A query with the data that its COPY FROM STDIN asks for.
    pub fn copy_in(&mut self, sql: &str, data: &[u8]) -> io::Result<Answer> {
        self.copy_data = data.to_vec();
        self.query(sql)
    }

    /// Waits for the whole answer.
    pub fn finish(&mut self) -> io::Result<Answer> {
        match self.poll(PATIENCE)? {
            Some(answer) => Ok(answer),
            None => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer")),
        }
    }

    /// The answer, if all of it comes within `patience`; what came of it is kept for the next call.
    pub fn poll(&mut self, patience: Duration) -> io::Result<Option<Answer>> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.receive(left)? {
                Received::Nothing => return Ok(None),
                Received::End => {
                    self.answer.parts.push(AnswerPart::Closed);
                    return Ok(Some(std::mem::take(&mut self.answer)));
                }
                Received::Message(message) => {
                    if self.take(message)? {
                        return Ok(Some(std::mem::take(&mut self.answer)));
                    }
                }
            }
        }
    }

    /// The next message.
    pub fn receive(&mut self, patience: Duration) -> io::Result<Received> {
        loop {
            if let Some(message) = self.framed_message() {
                return Ok(Received::Message(message));
            }
            self.stream.set_patience(patience)?;
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(Received::End),
                Ok(n) => self.inbox.extend_from_slice(&chunk[..n]),
                Err(e) => match e.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        return Ok(Received::Nothing);
                    }
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                        return Ok(Received::End);
                    }
                    _ => return Err(e),
                },
            }
        }
    }

    fn framed_message(&mut self) -> Option<Message> {
        let header = self.inbox.first_chunk::<5>()?;
        let tag = header[0];
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize + 1;
        let body = self.inbox.get(5..length)?.to_vec();
        self.inbox.drain(..length);
        Some(Message { tag, body })
    }

    /// Understands one message; true once the server is ready for the next query.
    fn take(&mut self, message: Message) -> io::Result<bool> {
        let Message { tag, body } = message;
        match tag {
            b'T' => self.answer.parts.push(AnswerPart::Columns(columns(&body))),
            b'D' => self.answer.parts.push(AnswerPart::Row(row(&body))),
            b'C' => self.answer.parts.push(AnswerPart::Complete(cstr(&body).0)),
            b'I' => self
                .answer
                .parts
                .push(AnswerPart::Complete("(empty)".to_owned())),
            b'E' | b'N' => self.answer.parts.push(AnswerPart::Report(report(&body))),
            b'd' => {
                let line = String::from_utf8_lossy(&body)
                    .trim_end_matches('\n')
                    .to_owned();
                self.answer.parts.push(AnswerPart::Copied(line));
            }
            b'G' => {
                let data = std::mem::take(&mut self.copy_data);
                self.send(&framed(b'd', &data))?;
                self.send(&framed(b'c', &[]))?;
            }
            b'K' => {
                self.pid = i32::from_be_bytes([body[0], body[1], body[2], body[3]]);
                self.secret = body[4..].to_vec();
            }
            b'S' => {
                let (name, rest) = cstr(&body);
                self.parameters.push((name, cstr(rest).0));
            }
            b'Z' => {
                self.status = body[0];
                return Ok(true);
            }
            // Authentication that asks for something ends the greeting: the caller goes on by
            // itself.
            b'R' => return Ok(body[..4] != [0; 4]),
            _ => {}
        }
        Ok(false)
    }

    /// Asks the server, over a connection of its own, to cancel what this session is doing.
    pub fn cancel(&self) -> io::Result<()> {
        let mut stream = Stream::connect(&self.address)?;
        let mut packet = (12 + self.secret.len() as u32).to_be_bytes().to_vec();
        packet.extend_from_slice(&80_877_102u32.to_be_bytes());
        packet.extend_from_slice(&self.pid.to_be_bytes());
        packet.extend_from_slice(&self.secret);
        stream.write_all(&packet)?;
        // The server closes when it has acted.
        let mut nothing = [0; 1];
        stream.set_patience(PATIENCE)?;
        stream.read(&mut nothing).map(|_| ())
    }
}

/// What came off the wire.
pub enum Received {
    Message(Message),
    /// Nothing more in the time given.
    Nothing,
    /// The server has closed the connection.
    End,
}

fn cstr(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let rest = bytes.get(end + 1..).unwrap_or_default();
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), rest)
}

fn columns(body: &[u8]) -> Vec<Column> {
    let count = u16::from_be_bytes([body[0], body[1]]);
    let mut rest = &body[2..];
    (0..count)
        .map(|_| {
            let (name, after) = cstr(rest);
            // Table oid, attribute number, type oid, size, modifier, format.
            let type_oid = u32::from_be_bytes([after[6], after[7], after[8], after[9]]);
            rest = &after[18..];
            Column { name, type_oid }
        })
        .collect()
}

fn row(body: &[u8]) -> Row {
    let count = u16::from_be_bytes([body[0], body[1]]);
    let mut rest = &body[2..];
    (0..count)
        .map(|_| {
            let length = i32::from_be_bytes([rest[0], rest[1], rest[2], rest[3]]);
            rest = &rest[4..];
            let length = usize::try_from(length).ok()?;
            let (value, after) = rest.split_at(length);
            rest = after;
            Some(String::from_utf8_lossy(value).into_owned())
        })
        .collect()
}

fn report(body: &[u8]) -> Report {
    let mut report = Report::default();
    let mut rest = body;
    while let Some((&key, after)) = rest.split_first().filter(|(key, _)| **key != 0) {
        let (text, next) = cstr(after);
        match key {
            b'V' => report.severity = text,
            b'C' => report.code = text,
            b'M' => report.message = text,
            b'D' => report.detail = Some(text),
            b'P' => report.position = Some(text),
            b'W' => report.context = Some(text),
            _ => {}
        }
        rest = next;
    }
    report
}
