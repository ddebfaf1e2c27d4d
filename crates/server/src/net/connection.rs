//! One client from its first packet to its last.
//!
//! ```text
//! startup ─► (TLS?) ─► (SCRAM?) ─► ready ─┬─ Query ───────────────► ReadyForQuery
//!    │                                    ├─ Parse Bind … ─ Sync ─► ReadyForQuery
//!    └─ cancel request                    └─ Terminate, end of stream
//! ```
//! Replies gather in the output buffer and leave when there is no more input to understand, so a
//! batch of messages that came in one read is answered in one write. After an error in the extended
//! protocol everything up to Sync is skipped, as the protocol demands.

use std::convert::Infallible;
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use throng_exec::client::Client;
use throng_observe::accounted;
use throng_session::replication::WalSender;
use throng_session::{Engine, Login, Session};
use throng_sync::{Pooled, VectorPool};
use throng_txn::SessionEntry;
use throng_types::error::{Severity, state};
use throng_types::{Error, Result};

use super::auth;
use super::disconnection::ended_by_disconnection;
use super::door::{Guest, Room};
use super::output::Peer;
use super::replication;
use super::shutdown::Shutdown;
use super::stream::{self, Origin, READ, Stream};
use super::tls::Tls;
use super::wire::{self, Frontend, Startup};

/// The minor protocol version we speak at most.
const NEWEST_MINOR: u16 = 2;
/// A cancel key's length where the client speaks 3.0.
const SHORT_SECRET: usize = 4;

/// What every connection of a loop shares.
pub struct LoopShared {
    pub engine: Arc<Engine>,
    pub tls: Option<Tls>,
    pub stop: Rc<Shutdown>,
}

/// How long a client has to take the reason why its session ends.
const FAREWELL: Duration = Duration::from_millis(500);
/// A client that comes while every socket is taken has so long to hear so.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves one client; returns when it has gone.
pub async fn serve(host: Rc<LoopShared>, stream: Stream, guest: Guest) {
    let timeout = match guest.room {
        Room::Free => host.engine.authentication_timeout(),
        Room::Full => REFUSAL_TIMEOUT,
    };
    let origin = stream.origin();
    let peer = Peer::new(stream);
    // What a session needs once lies elsewhere: its own memory is for as long as it is there.
    let starting = Pooled::pin(|| start(&host, peer, &origin, &guest));
    let (mut peer, mut session, sender) = {
        let started = tokio::select! {
            biased;
            started = tokio::time::timeout(timeout, starting) => started,
            () = guest.shown_out() => {
                tracing::info!(%origin, "connection closed before login: others wait");
                return;
            }
            // It has no session yet that could be told why it ends.
            () = host.stop.clone().said() => return,
        };
        match started {
            Ok(Ok(Some(started))) => started,
            Ok(Ok(None)) => return,
            Ok(Err(e)) => {
                tell_refused(&origin, &e);
                return;
            }
            Err(_) => {
                tracing::info!(%origin, "canceling authentication due to timeout");
                return;
            }
        }
    };
    drop(guest);
    let waits = session.waits();
    peer.serve(session.entry());
    let ended = tokio::select! {
        biased;
        ended = accounted(waits, async {
            match &sender {
                None => converse(&mut peer, &mut session).await,
                // Elsewhere: there are few, and each connection has room for what it may become.
                Some(sender) => {
                    Box::pin(replication::converse(&mut peer, &mut session, sender)).await
                }
            }
        }) => ended,
        () = host.stop.clone().said() => Err(host.stop.error()),
    };
    if let Err(e) = ended {
        if e.code() != state::CONNECTION_FAILURE {
            peer.error(&e.severity(Severity::Fatal));
        }
        // The client may be gone already, or not read; there is nobody else to tell.
        let _ = tokio::time::timeout(FAREWELL, peer.send()).await;
    }
    session.log_disconnection();
    Pooled::pin(|| session.close()).await;
    peer.close().await;
}

/// The log has clients that were refused; not those that went away by themselves, and failed
/// passwords only once.
fn tell_refused(origin: &Origin, e: &Error) {
    match e.code() {
        state::INVALID_PASSWORD | state::CONNECTION_FAILURE | state::IO_ERROR => {
            tracing::debug!(%origin, error = %e, "connection not started");
        }
        code => tracing::warn!(%origin, sqlstate = code.as_str(), "{}", e.message()),
    }
}

/// From the first packet to the first ReadyForQuery. `None` if the packet asked for something else
/// than a session.
async fn start(
    host: &LoopShared,
    mut peer: Peer,
    origin: &Origin,
    guest: &Guest,
) -> Result<Option<(Peer, Session, Option<Box<WalSender>>)>> {
    loop {
        let Some(range) = next_startup(&mut peer).await? else {
            return Ok(None);
        };
        guest.has_spoken();
        match wire::startup(peer.bytes(range)) {
            Ok(Startup::Ssl) => match &host.tls {
                Some(tls) if !origin.is_unix() => {
                    peer.output.push(b'S');
                    peer.send().await?;
                    peer = peer.secure(&tls.acceptor).await?;
                }
                _ => peer.output.push(b'N'),
            },
            Ok(Startup::Gss) => peer.output.push(b'N'),
            Ok(Startup::Cancel { pid, secret }) => {
                host.engine.cancel(pid, secret);
                peer.close().await;
                return Ok(None);
            }
            Ok(Startup::Start {
                major,
                minor,
                parameters,
            }) => {
                if guest.room == Room::Full {
                    let message = "sorry, too many clients already";
                    let full = Error::new(state::TOO_MANY_CONNECTIONS, message);
                    return refuse(&mut peer, full).await;
                }
                let request = Request::new(major, minor, &parameters);
                return match session(host, &mut peer, origin, request).await {
                    Ok((session, sender)) => Ok(Some((peer, session, sender))),
                    Err(e) => refuse(&mut peer, e).await,
                };
            }
            Err(malformed) => return refuse(&mut peer, malformed.into()).await,
        }
    }
}

async fn refuse<T>(peer: &mut Peer, e: Error) -> Result<T> {
    peer.error(&e.clone().severity(Severity::Fatal));
    peer.send().await?;
    peer.close().await;
    Err(e)
}

async fn next_startup(peer: &mut Peer) -> Result<Option<std::ops::Range<usize>>> {
    loop {
        if let Some(length) = wire::startup_length(peer.pending())?
            && peer.pending().len() >= length
        {
            return Ok(Some(peer.take(length)));
        }
        if !peer.fill().await? {
            return Ok(None);
        }
    }
}

/// What a startup packet asks for.
struct Request {
    major: u16,
    minor: u16,
    user: Option<String>,
    database: Option<String>,
    application_name: String,
    /// Settings, from `options` and from parameters that are no keyword of the protocol.
    options: Vec<(String, String)>,
    /// Protocol extensions (`_pq_.…`) that we do not know.
    extensions: Vec<String>,
    /// `replication`, where that is given.
    replication: Option<String>,
}

impl Request {
    fn new(major: u16, minor: u16, parameters: &[(&str, &str)]) -> Request {
        let mut request = Request {
            major,
            minor,
            user: None,
            database: None,
            application_name: String::new(),
            options: Vec::new(),
            extensions: Vec::new(),
            replication: None,
        };
        for &(name, value) in parameters {
            match name {
                "user" => request.user = Some(value.to_owned()),
                "database" => request.database = Some(value.to_owned()),
                "application_name" => request.application_name = value.to_owned(),
                "replication" => request.replication = Some(value.to_owned()),
                "options" => request.options.extend(command_line_options(value)),
                _ if name.starts_with("_pq_.") => request.extensions.push(name.to_owned()),
                _ => request.options.push((name.to_owned(), value.to_owned())),
            }
        }
        request
    }
}

/// The settings in a libpq `options` string: `-c name=value` and `--name=value`, backslash escaping
/// the next character.
fn command_line_options(text: &str) -> Vec<(String, String)> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.extend(chars.next()),
            c if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    let mut settings = Vec::new();
    let mut words = words.into_iter().filter(|w| !w.is_empty());
    while let Some(word) = words.next() {
        let assignment = match word.strip_prefix("-c").or_else(|| word.strip_prefix("--")) {
            Some("") => words.next().unwrap_or_default(),
            Some(rest) => rest.to_owned(),
            None => continue,
        };
        if let Some((name, value)) = assignment.split_once('=') {
            settings.push((name.replace('-', "_"), value.to_owned()));
        }
    }
    settings
}

/// Negotiates, authenticates and greets.
async fn session(
    host: &LoopShared,
    peer: &mut Peer,
    origin: &Origin,
    request: Request,
) -> Result<(Session, Option<Box<WalSender>>)> {
    let replicates = asks_for_replication(request.replication.as_deref())?;
    if request.major != 3 {
        return Err(Error::new(
            state::FEATURE_NOT_SUPPORTED,
            format!(
                "unsupported frontend protocol {}.{}: server supports 3.0 to 3.{NEWEST_MINOR}",
                request.major, request.minor
            ),
        ));
    }
    if request.minor > NEWEST_MINOR || !request.extensions.is_empty() {
        wire::message(&mut peer.output, b'v', |b| {
            wire::put_i32(b, (3 << 16) | i32::from(request.minor.min(NEWEST_MINOR)));
            wire::put_i32(b, request.extensions.len() as i32);
            for name in &request.extensions {
                wire::put_cstr(b, name);
            }
        });
    }
    let user = request.user.filter(|u| !u.is_empty()).ok_or_else(|| {
        Error::new(
            state::INVALID_AUTHORIZATION_SPECIFICATION,
            "no PostgreSQL user name specified in startup packet",
        )
    })?;
    let database = request
        .database
        .filter(|d| !d.is_empty())
        .unwrap_or_else(|| user.clone());

    let encryption = peer.encryption();
    let tls = host.tls.as_ref().filter(|_| encryption.is_some());
    let end_point = tls.and_then(|tls| tls.end_point.as_deref());
    let method = auth::authenticate(&host.engine, peer, &user, origin, end_point).await?;
    // What takes the log belongs to no database.
    let database = match replicates {
        true => host.engine.first_database(),
        false => database,
    };
    if !host.engine.database_exists(&database) {
        return Err(Error::new(
            state::INVALID_CATALOG_NAME,
            format!("database \"{database}\" does not exist"),
        ));
    }
    let login = Login {
        user,
        database,
        application_name: request.application_name,
        options: request.options,
        client: origin.to_string(),
        encryption,
    };
    let engine = host.engine.clone();
    let (session, sender) = match replicates {
        false => (Session::new(engine, login)?, None),
        true => {
            let (session, sender) = Session::wal_sender(engine, login)?;
            (session, Some(Box::new(sender)))
        }
    };
    session.log_connection(method.name());

    wire::message(&mut peer.output, b'R', |b| wire::put_i32(b, 0));
    for (name, value) in session.reported_settings() {
        peer.parameter_status(&name, &value);
    }
    let secret = session.secret();
    let secret = if request.minor >= 2 {
        secret
    } else {
        &secret[..SHORT_SECRET]
    };
    wire::message(&mut peer.output, b'K', |b| {
        wire::put_i32(b, session.pid());
        b.extend_from_slice(secret);
    });
    session.greet(peer);
    wire::ready_for_query(&mut peer.output, session.status());
    Ok((session, sender))
}

/// Whether a client wants the log, and not SQL.
fn asks_for_replication(value: Option<&str>) -> Result<bool> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("false" | "off" | "no" | "0") => Ok(false),
        Some("true" | "on" | "yes" | "1") => Ok(true),
        Some("database") => Err(Error::unsupported("logical replication")),
        Some(other) => Err(Error::new(
            state::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"replication\": \"{other}\""),
        )
        .hint("Valid values are: \"false\", 0, \"true\", 1, \"database\".")),
    }
}

/// Answers messages until the client leaves. An error here ends the connection.
async fn converse(peer: &mut Peer, session: &mut Session) -> Result<()> {
    let mut skipping = false;
    let entry = session.entry();
    loop {
        if session.is_listening() {
            // A notification may cut short what waits for the next message; that must not be a
            // write.
            tokio::select! {
                biased;
                sent = peer.send_due() => sent?,
                why = session.interrupted() => return Err(why),
            }
        }
        let message = match peer.whole_message()? {
            Some(range) => Some(range),
            None => tokio::select! {
                biased;
                never = fetching_ahead(session, &entry) => match never {},
                message = peer.next_message() => message?,
                () = session.notified() => {
                    session.tell_notifications(peer);
                    continue;
                }
                why = session.interrupted() => return Err(why),
            },
        };
        let Some(first) = message else { return Ok(()) };
        let (socket, interval) = (peer.socket(), session.client_check_interval());
        let answered = Pooled::pin(|| answer(peer, session, first, skipping));
        match ended_by_disconnection(socket, interval, entry.cancel_flag(), answered).await? {
            Some(so) => skipping = so,
            None => return Ok(()),
        }
    }
}

/// Answers a message that has been read, at `first` in the peer's input, and those that came with
/// it. `skipping`: up to Sync, after an error. Whether it is so afterwards; `None`: the client
/// leaves.
async fn answer(
    peer: &mut Peer,
    session: &mut Session,
    first: Range<usize>,
    mut skipping: bool,
) -> Result<Option<bool>> {
    let mut scratch = Scratch(READ.with(VectorPool::take));
    let mut next = Some(first);
    while let Some(range) = next {
        session.must_go_on()?;
        // A statement writes to the peer while it runs, so its text is moved out of the peer's
        // input first.
        let scratch = &mut scratch.0;
        scratch.clear();
        scratch.extend_from_slice(peer.bytes(range));
        // In a box: an error beside each statement that runs would be part of every connection.
        let garbled = peer.understood(scratch).err().map(Box::new);
        let message = wire::frontend(scratch)?;
        let ends_batch = matches!(message, Frontend::Query(_) | Frontend::Sync);
        match message {
            Frontend::Terminate => return Ok(None),
            Frontend::Query(sql) => {
                skipping = false;
                peer.release();
                let answered = match garbled {
                    None => simple_query(session, sql, peer).await,
                    Some(e) => {
                        session.message_failed().await;
                        Err(*e)
                    }
                };
                if let Err(e) = answered {
                    report(peer, session, e)?;
                }
                wire::ready_for_query(&mut peer.output, session.status());
            }
            Frontend::Sync => {
                skipping = false;
                peer.release();
                if let Err(e) = session.sync(peer).await {
                    report(peer, session, e)?;
                }
                wire::ready_for_query(&mut peer.output, session.status());
            }
            Frontend::Flush if !skipping => peer.send().await?,
            _ if skipping => {}
            other => {
                peer.hold();
                let answered = match garbled {
                    None => extended(session, other, peer).await,
                    Some(e) => Err(*e),
                };
                if let Err(e) = answered {
                    skipping = true;
                    let e = session.spelled(e);
                    session.message_failed().await;
                    report(peer, session, e)?;
                }
            }
        }
        next = peer.whole_message()?;
        if next.is_some() && ends_batch {
            // The next statement may take long.
            peer.let_go().await?;
        }
    }
    Ok(Some(skipping))
}

/// A message's bytes; their room goes back to the loop's sessions.
struct Scratch(Vec<u8>);

impl Drop for Scratch {
    fn drop(&mut self) {
        stream::give_back(&mut self.0);
    }
}

/// Polled before the socket is looked at, it asks for the session's memory: in a crowd others' has
/// taken its place in the core's cache, and it comes while the kernel reads.
async fn fetching_ahead(session: &Session, entry: &SessionEntry) -> Infallible {
    poll_fn(|_| {
        session.fetch_ahead();
        entry.fetch_ahead();
        Poll::Pending
    })
    .await
}

/// Sends an error, which does not wait for Sync; one that ends the session or the server is passed
/// on instead.
fn report(peer: &mut Peer, session: &Session, e: Error) -> Result<()> {
    match e.fields().severity {
        Severity::Fatal | Severity::Panic => Err(e),
        _ if e.code() == state::CONNECTION_FAILURE => Err(e),
        _ => {
            session.log_error(&e);
            peer.release();
            peer.error(&e);
            Ok(())
        }
    }
}

fn text(sql: &[u8]) -> Result<&str> {
    std::str::from_utf8(sql).map_err(|e| {
        let bad: Vec<String> = sql[e.valid_up_to()..]
            .iter()
            .take(3)
            .map(|b| format!("0x{b:02x}"))
            .collect();
        Error::new(
            state::CHARACTER_NOT_IN_REPERTOIRE,
            format!(
                "invalid byte sequence for encoding \"UTF8\": {}",
                bad.join(" ")
            ),
        )
    })
}

async fn simple_query(session: &mut Session, sql: &[u8], peer: &mut Peer) -> Result<()> {
    // A statement that is no text fails its transaction, too.
    match text(sql) {
        Ok(sql) => session.simple_query(sql, peer).await,
        Err(e) => {
            session.message_failed().await;
            Err(e)
        }
    }
}

/// As many formats as Bind seldom has more.
const FEW: usize = 8;

async fn extended(session: &mut Session, message: Frontend<'_>, peer: &mut Peer) -> Result<()> {
    match message {
        Frontend::Parse { name, sql, types } => {
            let types: Vec<u32> = types.iter().collect();
            session.parse(name, text(sql)?, &types).await?;
            wire::message(&mut peer.output, b'1', |_| {});
        }
        Frontend::Bind(bind) => {
            let (mut few, mut many) = (([0; FEW], [0; FEW]), (Vec::new(), Vec::new()));
            let parameter_formats = bind.parameter_formats.read(&mut few.0, &mut many.0);
            let result_formats = bind.result_formats.read(&mut few.1, &mut many.1);
            if bind.portal.is_empty()
                && let Some(rest) = wire::rest_of_run(peer.pending())
                && let Some(once) = session.bind_once(
                    bind.statement,
                    parameter_formats,
                    bind.parameters.iter(),
                    result_formats,
                )?
            {
                wire::message(&mut peer.output, b'2', |_| {});
                if rest.describes {
                    describe(peer, once.shape());
                }
                session.run_once(once, peer).await?;
                // Of an error the rest is still there, to be skipped.
                peer.take(rest.length);
                return Ok(());
            }
            let mut ready = None;
            while !session.bind(
                bind.portal,
                bind.statement,
                parameter_formats,
                bind.parameters.iter(),
                result_formats,
                ready.take(),
            )? {
                let waited =
                    session.wait_to_bind(bind.statement, parameter_formats, bind.parameters.iter());
                ready = Some(Box::pin(waited).await?);
            }
            wire::message(&mut peer.output, b'2', |_| {});
        }
        Frontend::DescribeStatement(name) => {
            let (types, shape) = session.describe_statement(name).await?;
            wire::parameter_description(&mut peer.output, &types);
            describe(peer, shape.as_deref());
        }
        Frontend::DescribePortal(name) => {
            let shape = session.describe_portal(name).await?;
            describe(peer, shape.as_deref());
        }
        Frontend::Execute { portal, max_rows } => session.execute(portal, max_rows, peer).await?,
        Frontend::CloseStatement(name) => {
            session.close_statement(name);
            wire::message(&mut peer.output, b'3', |_| {});
        }
        Frontend::ClosePortal(name) => {
            session.close_portal(name);
            wire::message(&mut peer.output, b'3', |_| {});
        }
        // What is left of a COPY that failed before the client knew.
        Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => {}
        Frontend::FunctionCall => return Err(Error::unsupported("the function call protocol")),
        Frontend::Authentication(_) => {
            return Err(Error::new(
                state::PROTOCOL_VIOLATION,
                "unexpected password message after authentication",
            )
            .severity(Severity::Fatal));
        }
        Frontend::Query(_) | Frontend::Sync | Frontend::Flush | Frontend::Terminate => {
            unreachable!("handled where messages are read")
        }
    }
    Ok(())
}

fn describe(peer: &mut Peer, shape: Option<&throng_exec::client::RowShape>) {
    match shape {
        Some(shape) => peer.row_description(shape),
        None => wire::message(&mut peer.output, b'n', |_| {}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the session in it. Thousands of idle ones are to be borne, and each one's memory is
    /// looked for when it is woken.
    #[test]
    fn an_idle_connection_is_small() {
        fn whole<A, B, C, F: Future>(_: impl Fn(A, B, C) -> F) -> usize {
            size_of::<F>()
        }
        fn size<A, B, F: Future>(_: impl Fn(A, B) -> F) -> usize {
            size_of::<F>()
        }
        let connection = whole(serve);
        let session = size_of::<Session>();
        assert!(
            connection < session + 2048,
            "{connection} bytes, {session} of them the session"
        );
        let conversation = size::<&'static mut Peer, &'static mut Session, _>(converse);
        assert!(conversation <= 1536, "{conversation} bytes");
    }

    #[test]
    fn options_are_split_as_libpq_writes_them() {
        let parsed = command_line_options(r"-c search_path=a\ b --work-mem=4MB -cx=1");
        let expected = [("search_path", "a b"), ("work_mem", "4MB"), ("x", "1")];
        assert_eq!(parsed, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
    }
}
