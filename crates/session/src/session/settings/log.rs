//! What the server's log tells of sessions and their statements, as the settings ask for it.
//! Nothing here runs where they do not.

use std::time::Instant;

use throng_syntax::parse::{self, ast::Statement};
use throng_types::Error;
use throng_values::settings::{Id, SessionSettings};

use tracing::field::display;

use crate::session::Session;

/// The target of these lines, by which `THRONG_LOG` and readers of the log know them. It stays
/// where the module moves.
const TARGET: &str = "throng_exec::session::log";

/// A statement that the log may be about.
pub(in crate::session) struct Logged {
    began: Instant,
    how: &'static str,
    text: String,
    /// `log_statement` has told it.
    told: bool,
}

/// Whether any setting asks for statements.
pub(in crate::session) fn is_on(settings: &SessionSettings) -> bool {
    settings.text(Id::LogStatement) != "none" || settings.int(Id::LogMinDurationStatement) >= 0
}

/// From which `log_statement` on a statement is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Ddl,
    Mod,
    All,
}

fn class_of(statement: &Statement) -> Class {
    use Statement as S;
    match statement {
        S::Query(query) => match query.with.iter().all(|cte| is_query(&cte.statement)) {
            true => Class::All,
            false => Class::Mod,
        },
        S::Copy(copy) if !copy.from => Class::All,
        S::Insert(_) | S::Update(_) | S::Delete(_) | S::Merge(_) => Class::Mod,
        S::Truncate { .. } | S::Copy(_) => Class::Mod,
        S::Explain { .. } | S::Call(..) | S::Do(_) | S::Show(_) => Class::All,
        S::Set { .. } | S::SetTransaction { .. } | S::SetRole { .. } | S::Reset(_) => Class::All,
        S::SetSessionAuthorization { .. } | S::SetConstraints { .. } | S::Checkpoint => Class::All,
        S::Begin(_) | S::Commit { .. } | S::Rollback { .. } | S::Savepoint(_) => Class::All,
        S::TwoPhase(_) => Class::All,
        S::RollbackTo(_) | S::Release(_) | S::Prepare { .. } | S::Execute { .. } => Class::All,
        S::Deallocate(_) | S::Declare { .. } | S::Fetch { .. } | S::Close(_) => Class::All,
        S::Lock { .. } | S::Vacuum { .. } | S::Analyze { .. } | S::Reindex { .. } => Class::All,
        S::Discard(_) | S::Listen(_) | S::Notify { .. } | S::Unlisten(_) => Class::All,
        _ => Class::Ddl,
    }
}

fn is_query(statement: &Statement) -> bool {
    matches!(statement, Statement::Query(_))
}

/// The severities, as `log_min_messages` and `log_min_error_statement` order them.
const ERROR: usize = 8;
const LEVELS: [&str; 12] = [
    "debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error", "log",
    "fatal", "panic",
];

impl Session {
    fn log_level(&self, id: Id) -> usize {
        let settings = self.settings.borrow();
        let text = settings.text(id);
        let found = LEVELS.iter().position(|level| *level == text);
        found.unwrap_or(ERROR)
    }

    fn log_class(&self) -> Option<Class> {
        match self.settings.borrow().text(Id::LogStatement) {
            "ddl" => Some(Class::Ddl),
            "mod" => Some(Class::Mod),
            "all" => Some(Class::All),
            _ => None,
        }
    }

    /// A statement begins; `how` it runs.
    #[cold]
    pub(in crate::session) fn log_began(&self, how: &'static str, text: &str) -> Logged {
        let told = self.log_class().is_some_and(|upto| {
            let parsed = parse::parse(text).unwrap_or_default();
            upto == Class::All || parsed.iter().any(|p| class_of(&p.statement) <= upto)
        });
        if told {
            tracing::info!(target: TARGET, pid = self.pid(), "{how}: {text}");
        }
        Logged {
            began: Instant::now(),
            how,
            text: text.to_owned(),
            told,
        }
    }

    #[cold]
    pub(in crate::session) fn log_ended(&self, logged: Logged) {
        let least = self.settings.borrow().int(Id::LogMinDurationStatement);
        let took = logged.began.elapsed();
        if least < 0 || took.as_millis() < least as u128 {
            return;
        }
        let took = took.as_secs_f64() * 1e3;
        let Logged { how, text, .. } = &logged;
        match logged.told {
            true => tracing::info!(target: TARGET, pid = self.pid(), "duration: {took:.3} ms"),
            false => tracing::info!(
                target: TARGET,
                pid = self.pid(),
                "duration: {took:.3} ms  {how}: {text}"
            ),
        }
    }

    /// The client is told of an error, and the log too where it is to be.
    #[cold]
    pub fn log_error(&self, error: &Error) {
        if self.log_level(Id::LogMinMessages) > ERROR {
            return;
        }
        let fields = error.fields();
        let (pid, sqlstate) = (self.pid(), fields.code.as_str());
        let detail = fields.detail.as_ref().map(display);
        let statement = match self.log_level(Id::LogMinErrorStatement) <= ERROR {
            true => Some(display(self.handle.entry().query())),
            false => None,
        };
        tracing::warn!(
            target: TARGET,
            pid,
            sqlstate,
            detail,
            statement,
            "ERROR: {}",
            fields.message
        );
    }

    /// A client has come in.
    pub fn log_connection(&self, method: &str) {
        let settings = self.settings.borrow();
        let asked = settings.text(Id::LogConnections);
        if asked.is_empty() {
            return;
        }
        let asks = |aspect: &str| {
            let mut words = asked.split(',').map(str::trim);
            words.any(|word| word == aspect || matches!(word, "on" | "all"))
        };
        let (pid, info) = (self.pid(), self.handle.entry().status().info);
        let client = info.client_addr.as_deref().unwrap_or("[local]");
        if asks("receipt") {
            let port = info.client_port.unwrap_or_default();
            tracing::info!(target: TARGET, pid, "connection received: host={client} port={port}");
        }
        if asks("authentication") {
            let user = &info.user;
            tracing::info!(
                target: TARGET,
                pid,
                "connection authenticated: identity=\"{user}\" method={method}"
            );
        }
        if asks("authorization") {
            let (user, database) = (&info.user, &info.database);
            let application = &info.application_name;
            tracing::info!(
                target: TARGET,
                pid,
                "connection authorized: user={user} database={database} application_name={application}"
            );
        }
    }

    /// A client has gone.
    pub fn log_disconnection(&self) {
        if !self.settings.borrow().bool(Id::LogDisconnections) {
            return;
        }
        let status = self.handle.entry().status();
        let seconds = (throng_txn::now_micros() - status.backend_start) as f64 / 1e6;
        let (hours, minutes) = ((seconds / 3600.0) as u64, (seconds / 60.0) as u64 % 60);
        let (user, database) = (&status.info.user, &status.info.database);
        let client = status.info.client_addr.as_deref().unwrap_or("[local]");
        tracing::info!(
            target: TARGET,
            pid = self.pid(),
            "disconnection: session time: {hours}:{minutes:02}:{:06.3} user={user} database={database} host={client}",
            seconds % 60.0
        );
    }
}
