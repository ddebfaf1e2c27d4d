//! A connection's two buffers as a running statement sees them: rows and tags go into the output
//! buffer, COPY data comes out of the input buffer.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::pin::pin;
use std::sync::Arc;

use throng_exec::client::Notification;
use throng_exec::client::{Client, ClientFuture, Format, RowShape};
use throng_observe::{Object, WaitEvent, serves_one_session, waited};
use throng_session::Encryption;
use throng_txn::SessionEntry;
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, Text, oid};
use throng_values::func::EvalContext;
use throng_values::io::{self as value, Charset};

use super::recode;
use super::stream::Stream;
use super::wire::{self, Frontend};

/// Input taken from the kernel in one read: as much again as the last time where that was all there
/// was room for.
const READ_CHUNK: usize = 16 * 1024;
const LARGEST_READ: usize = 256 * 1024;
/// A buffer that grew past this for one large message is given back once it is empty.
const KEEP: usize = 64 * 1024;

/// Answers that wait for Flush or Sync take no more than this, as in PostgreSQL.
const MOST_HELD: usize = 8 * 1024;

/// Longer replies leave by themselves.
const MOST_POSTED: usize = 16 * 1024;

/// A client's socket with what was read but not yet understood, and what was written but not yet
/// sent.
pub struct Peer {
    stream: Stream,
    input: Vec<u8>,
    /// Where the next message starts in `input`.
    start: usize,
    /// How much is asked for in the next read.
    chunk: usize,
    pub output: Vec<u8>,
    /// So many bytes of `output` have left already: a client that does not read has kept the rest
    /// from leaving, and a cancel the statement from waiting for it.
    sent: usize,
    /// Long values that are part of what is written, each before the byte of `output` with its
    /// number; and how much of the first has left.
    long: VecDeque<(usize, LongValue)>,
    long_sent: usize,
    /// What ends the wait for a client that does not read.
    session: Option<Arc<SessionEntry>>,
    /// Where in `output` the last CommandComplete began, when it was written.
    tag: usize,
    /// What is in `output` may wait for the client's Flush or Sync.
    holds: bool,
    /// What the client speaks.
    charset: Charset,
}

impl Peer {
    pub fn new(stream: Stream) -> Peer {
        Peer {
            stream,
            input: Vec::new(),
            start: 0,
            chunk: READ_CHUNK,
            output: Vec::new(),
            sent: 0,
            long: VecDeque::new(),
            long_sent: 0,
            session: None,
            tag: usize::MAX,
            holds: false,
            charset: Charset::UTF8,
        }
    }

    /// A session begins: what interrupts it interrupts what it sends.
    pub fn serve(&mut self, session: Arc<SessionEntry>) {
        self.session = Some(session);
    }

    /// A message was answered that is not the last of its batch: as long as it is short, the answer
    /// waits for Flush or Sync.
    pub fn hold(&mut self) {
        self.holds = true;
    }

    /// What was answered is to leave.
    pub fn release(&mut self) {
        self.holds = false;
    }

    fn is_held(&self) -> bool {
        self.holds && self.output.len() < MOST_HELD && self.long.is_empty()
    }

    /// Tells an error or a notice.
    pub fn error(&mut self, e: &Error) {
        let start = self.output.len();
        wire::error(&mut self.output, e);
        self.recode_from(start, 0);
    }

    /// Writes the last message, from `start` on, in what the client speaks: after `skipped` bytes
    /// its body is nothing but text.
    fn recode_from(&mut self, start: usize, skipped: usize) {
        if !self.charset.is_plain() {
            recode::answer(self.charset, start, skipped, &mut self.output);
        }
    }

    fn described(&self, shape: &RowShape) -> Vec<u8> {
        let mut told = Vec::new();
        wire::row_description(&mut told, &shape.fields, &shape.formats, self.charset);
        told
    }

    /// Makes UTF-8 of the texts of a client's message.
    ///
    /// # Errors
    /// 22021, 22P05; then the message is as it was.
    pub fn understood(&self, message: &mut Vec<u8>) -> Result<()> {
        match self.charset.is_plain() {
            true => Ok(()),
            false => recode::message(self.charset, message),
        }
    }

    /// Sends what does not wait for Flush or Sync.
    pub async fn send_due(&mut self) -> io::Result<()> {
        match self.is_held() {
            true => Ok(()),
            false => self.send().await,
        }
    }

    /// Has what was answered leave when the loop's turn ends: at once, if the statement that is
    /// next takes longer than that.
    pub async fn let_go(&mut self) -> io::Result<()> {
        let short = self.output.len() <= MOST_POSTED && self.long.is_empty() && self.sent == 0;
        if short && !self.output.is_empty() {
            self.stream.post(&mut self.output).await?;
        }
        self.send().await
    }

    /// Replaces the socket by one that encrypts; fails if the client already sent plain bytes after
    /// asking.
    pub async fn secure(self, tls: &tokio_rustls::TlsAcceptor) -> io::Result<Peer> {
        if self.start != self.input.len() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "received unencrypted data after SSL request",
            ));
        }
        Ok(Peer::new(self.stream.secure(tls).await?))
    }

    /// The number of its socket, for as long as this is there.
    pub fn socket(&self) -> RawFd {
        self.stream.socket()
    }

    /// How what goes over the socket is encrypted.
    pub fn encryption(&self) -> Option<Encryption> {
        self.stream.encryption()
    }

    /// Ends the connection; what was not sent is not sent.
    pub async fn close(&mut self) {
        self.stream.close().await;
    }

    /// What was read and not yet taken.
    pub fn pending(&self) -> &[u8] {
        &self.input[self.start..]
    }

    pub fn take(&mut self, n: usize) -> std::ops::Range<usize> {
        let from = self.start;
        self.start += n;
        from..self.start
    }

    pub fn bytes(&self, range: std::ops::Range<usize>) -> &[u8] {
        &self.input[range]
    }

    /// Waits for more input. Output is sent first: this is the one place a connection idles.
    /// Returns false at the end of the stream.
    pub async fn fill(&mut self) -> io::Result<bool> {
        if !self.is_held() {
            match serves_one_session() {
                true => self.send().await?,
                false => self.let_go().await?,
            }
        }
        if self.start > 0 {
            self.input.drain(..self.start);
            self.start = 0;
        }
        let before = self.input.len();
        let more = {
            // Where it lies: to be handed over it would be copied.
            let read = pin!(self.stream.read_more(&mut self.input, self.chunk));
            waited(WaitEvent::ClientRead, Object::NONE, read).await?
        };
        self.chunk = match self.input.len() - before {
            all if all >= self.chunk => LARGEST_READ.min(2 * self.chunk),
            _ => READ_CHUNK,
        };
        Ok(more)
    }

    /// Sends everything written so far. Dropped before it ends, it goes on with the next call where
    /// it was.
    pub async fn send(&mut self) -> io::Result<()> {
        if !self.output.is_empty() {
            if !self.long.is_empty() {
                // In a box: every connection has room for what it may wait in.
                Box::pin(self.send_long()).await?;
            }
            let write = async {
                while self.sent < self.output.len() {
                    self.sent += self.stream.write_some(&self.output[self.sent..]).await?;
                }
                self.stream.flush().await
            };
            waited(WaitEvent::ClientWrite, Object::NONE, write).await?;
            self.output.clear();
            self.sent = 0;
            if self.output.capacity() > KEEP {
                self.output = Vec::new();
            }
        }
        Ok(())
    }

    /// Sends what was written up to the last long value, and that one.
    async fn send_long(&mut self) -> io::Result<()> {
        let write = async {
            while let Some((at, value)) = self.long.front() {
                while self.sent < *at {
                    let before = &self.output[self.sent..*at];
                    self.sent += self.stream.write_some(before).await?;
                }
                let bytes = value.bytes();
                while self.long_sent < bytes.len() {
                    let rest = &bytes[self.long_sent..];
                    self.long_sent += self.stream.write_some(rest).await?;
                }
                self.long.pop_front();
                self.long_sent = 0;
            }
            Ok(())
        };
        waited(WaitEvent::ClientWrite, Object::NONE, write).await
    }

    /// The next whole message's place in the input, reading as needed; `None` when the client has
    /// gone.
    pub async fn next_message(&mut self) -> Result<Option<std::ops::Range<usize>>> {
        loop {
            if let Some(range) = self.whole_message()? {
                return Ok(Some(range));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// The next message's place in the input, if all of it has been read.
    pub fn whole_message(&mut self) -> Result<Option<std::ops::Range<usize>>> {
        match wire::message_length(self.pending())? {
            Some(length) if self.pending().len() >= length => Ok(Some(self.take(length))),
            _ => Ok(None),
        }
    }

    /// Appends COPY data: all that has been read already, or else the next message. False when
    /// there is no more.
    async fn next_copy_data(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        let mut any = false;
        loop {
            let start = self.start;
            let next = match any {
                true => self.whole_message()?,
                false => self.next_message().await?,
            };
            let Some(range) = next else {
                if any {
                    return Ok(true);
                }
                return Err(Error::new(
                    state::CONNECTION_FAILURE,
                    "unexpected EOF on client connection with an open transaction",
                ));
            };
            match wire::frontend(&self.input[range])? {
                Frontend::CopyData(bytes) => {
                    into.extend_from_slice(bytes);
                    any = true;
                }
                // What comes after the data is looked at again when that has been taken.
                _ if any => {
                    self.start = start;
                    return Ok(true);
                }
                Frontend::CopyDone => return Ok(false),
                Frontend::CopyFail(why) => {
                    return Err(Error::new(
                        state::QUERY_CANCELED,
                        format!("COPY from stdin failed: {why}"),
                    ));
                }
                // A client that pipelines sends these before it knows that COPY has begun.
                Frontend::Flush | Frontend::Sync => {}
                _ => {
                    return Err(Error::new(
                        state::PROTOCOL_VIOLATION,
                        "unexpected message type during COPY from stdin",
                    ));
                }
            }
        }
    }
}

/// A value that is sent from where it lies.
enum LongValue {
    Text(Text),
    Bytes(Arc<[u8]>),
}

impl LongValue {
    /// What is copied costs less than what is sent by itself.
    const SHORTEST: usize = 256 << 10;

    /// The value, if it is long and goes over the wire as it is.
    #[inline]
    fn of(datum: &Datum, ty: Oid, format: Format) -> Option<LongValue> {
        match (datum, format) {
            (Datum::Text(text) | Datum::Json(text), Format::Text)
                if text.len() >= LongValue::SHORTEST =>
            {
                Some(LongValue::Text(text.clone()))
            }
            (Datum::Bytea(bytes), Format::Binary)
                if bytes.len() >= LongValue::SHORTEST && ty == oid::BYTEA =>
            {
                Some(LongValue::Bytes(bytes.clone()))
            }
            _ => None,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            LongValue::Text(text) => text.as_bytes(),
            LongValue::Bytes(bytes) => bytes,
        }
    }
}

impl Peer {
    /// Forgets what was written after so many bytes.
    fn cut(&mut self, output: usize) {
        self.output.truncate(output);
        self.long.retain(|(at, _)| *at <= output);
    }
}

impl Client for Peer {
    fn row_description(&mut self, shape: &RowShape) {
        let told = shape.told(|shape| {
            let mut told = Vec::new();
            wire::row_description(&mut told, &shape.fields, &shape.formats, Charset::UTF8);
            told
        });
        match self.charset.is_plain() {
            true => self.output.extend_from_slice(told),
            false => {
                let told = self.described(shape);
                self.output.extend_from_slice(&told);
            }
        }
    }

    fn row(&mut self, row: &[Datum], shape: &RowShape, ctx: &EvalContext<'_>) -> Result<()> {
        let charset = ctx.format.charset;
        let is_plain = charset.is_plain();
        let out = &mut self.output;
        let start = out.len();
        out.push(b'D');
        out.extend_from_slice(&[0; 4]);
        wire::put_i16(out, row.len() as i16);
        let mut elsewhere = 0;
        for ((datum, field), format) in row.iter().zip(&shape.fields).zip(&shape.formats) {
            if datum.is_null() {
                wire::put_i32(out, -1);
                continue;
            }
            if is_plain && let Some(value) = LongValue::of(datum, field.ty.oid, *format) {
                let length = value.bytes().len();
                wire::put_i32(out, length as i32);
                self.long.push_back((out.len(), value));
                elsewhere += length;
                continue;
            }
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            let written = match format {
                Format::Text => {
                    value::output_text(ctx, datum, field.ty, out);
                    match is_plain {
                        true => Ok(()),
                        false => charset.encode_from(at + 4, out),
                    }
                }
                Format::Binary => value::output_binary(ctx, datum, field.ty, out),
            };
            if let Err(e) = written {
                self.cut(start);
                return Err(e);
            }
            let length = (out.len() - at - 4) as u32;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        let length = out.len() - start - 1 + elsewhere;
        if length > wire::MAX_MESSAGE {
            self.cut(start);
            return Err(Error::new(
                state::PROGRAM_LIMIT_EXCEEDED,
                "a row of the result is larger than 1 GB",
            ));
        }
        out[start + 1..start + 5].copy_from_slice(&(length as u32).to_be_bytes());
        Ok(())
    }

    fn written_by<'a>(&'a self, shape: &'a RowShape) -> Option<&'a RowShape> {
        Some(shape)
    }

    fn take_tag(&mut self) -> Option<Vec<u8>> {
        let last = self.output.get(self.tag..)?;
        if self.sent > self.tag {
            return None;
        }
        let is_tag = last.first() == Some(&b'C');
        let length = last.get(1..5)?.first_chunk::<4>()?;
        let is_last = u32::from_be_bytes(*length) as usize + 1 == last.len();
        (is_tag && is_last).then(|| self.output.split_off(self.tag))
    }

    fn give_tag(&mut self, tag: Vec<u8>) {
        self.output.extend_from_slice(&tag);
    }

    fn command_complete(&mut self, tag: &str) {
        self.tag = self.output.len();
        wire::message(&mut self.output, b'C', |b| {
            // Tags are ours, and have no zero byte in them.
            b.extend_from_slice(tag.as_bytes());
            b.push(0);
        });
    }

    fn empty_query(&mut self) {
        wire::message(&mut self.output, b'I', |_| {});
    }

    fn portal_suspended(&mut self) {
        wire::message(&mut self.output, b's', |_| {});
    }

    fn take_back(&mut self, shape: &RowShape) {
        let plain = shape.told(|_| Vec::new());
        let other = (!self.charset.is_plain()).then(|| self.described(shape));
        let told = other.as_deref().unwrap_or(plain);
        let unsent = &self.output[self.sent..];
        if !told.is_empty() && unsent.ends_with(told) {
            self.output.truncate(self.output.len() - told.len());
        }
    }

    fn notice(&mut self, notice: &Error) {
        self.holds = false;
        self.error(notice);
    }

    fn parameter_status(&mut self, name: &str, value: &str) {
        let start = self.output.len();
        wire::parameter_status(&mut self.output, name, value);
        self.recode_from(start, 0);
        if name == "client_encoding" {
            self.charset = Charset::named(value).unwrap_or(Charset::UTF8);
        }
    }

    fn notification(&mut self, pid: i32, notification: &Notification) {
        let start = self.output.len();
        wire::message(&mut self.output, b'A', |b| {
            wire::put_i32(b, pid);
            wire::put_cstr(b, &notification.channel);
            wire::put_cstr(b, &notification.payload);
        });
        self.recode_from(start, size_of::<i32>());
    }

    fn copy_in_start(&mut self, format: Format, columns: usize) {
        self.holds = false;
        wire::copy_response(&mut self.output, b'G', format, columns);
    }

    fn copy_read<'a>(&'a mut self, into: &'a mut Vec<u8>) -> ClientFuture<'a, bool> {
        Box::pin(self.next_copy_data(into))
    }

    fn copy_out_start(&mut self, format: Format, columns: usize) {
        wire::copy_response(&mut self.output, b'H', format, columns);
    }

    fn copy_data(&mut self, bytes: &[u8]) {
        wire::message(&mut self.output, b'd', |b| b.extend_from_slice(bytes));
    }

    fn copy_out_done(&mut self) {
        wire::message(&mut self.output, b'c', |_| {});
    }

    fn backlog(&self) -> usize {
        let long = self.long.iter().map(|(_, value)| value.bytes().len());
        self.output.len() - self.sent + long.sum::<usize>()
    }

    fn flush(&mut self) -> ClientFuture<'_, ()> {
        Box::pin(async {
            match self.session.clone() {
                Some(session) => {
                    let send = async { Ok(self.send().await?) };
                    session.cancel_flag().guard(send).await
                }
                None => Ok(self.send().await?),
            }
        })
    }
}
