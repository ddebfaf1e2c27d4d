//! A connection to a server: non-blocking, one statement at a time, as little work a round trip as
//! can be.
//!
//! ```text
//!                       ┌─ Postgres  protocol 3.0: simple, extended, prepared, COPY; trust and SCRAM
//! Connection ─ speaks ──┤
//!     │                 └─ MySql     protocol 10: COM_QUERY, prepared; three ways of passwords
//!     └─ Session: the stream, the rows that were kept, whether a transaction is open
//! ```
//!
//! After an error of the server's the connection is in step again. Rows are counted; they are
//! copied only for statements that ask for it.

use super::dialect::Dialect;
use super::mysql::MySql;
use super::postgres::Postgres;
use super::reactor::{self, Reactor};
use super::rows::Rows;
use super::sql::{Arg, Change, Mode, Sql};
use super::stream::Stream;
use super::trouble::Result;
use super::url::Target;

/// What one statement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows that came back.
    pub rows: u64,
    /// Rows that the command is said to have found or made.
    pub affected: u64,
}

pub struct Connection {
    session: Session,
    speaks: Speaks,
}

/// What both protocols need.
pub struct Session {
    pub stream: Stream,
    pub mode: Mode,
    pub rows: Rows,
    /// Of the last result that was described while its rows were kept.
    pub column_names: Vec<String>,
    pub in_transaction: bool,
}

enum Speaks {
    Postgres(Postgres),
    MySql(MySql),
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

impl Connection {
    pub async fn open(reactor: &Reactor, target: &Target, mode: Mode) -> Result<Connection> {
        let mut session = Session {
            stream: Stream::connect(reactor, &target.address).await?,
            mode,
            rows: Rows::default(),
            column_names: Vec::new(),
            in_transaction: false,
        };
        let speaks = match target.dialect {
            Dialect::Postgres => Speaks::Postgres(Postgres::enter(&mut session, target).await?),
            Dialect::MySql => Speaks::MySql(MySql::enter(&mut session, target).await?),
        };
        Ok(Connection { session, speaks })
    }

    /// Runs a statement to its end. An error of the server's leaves the connection ready for the
    /// next.
    pub async fn run(&mut self, sql: &Sql, args: &[Arg<'_>]) -> Result<Tally> {
        match &mut self.speaks {
            Speaks::Postgres(postgres) => postgres.run(&mut self.session, sql, args).await,
            Speaks::MySql(mysql) => mysql.run(&mut self.session, sql, args).await,
        }
    }

    /// Changes rows and reads them; the tally has both.
    pub async fn change(&mut self, change: &Change, args: &[Arg<'_>]) -> Result<Tally> {
        match change {
            Change::Returning(sql) => self.run(sql, args).await,
            Change::Locking { read, write } => {
                let read = self.run(read, args).await?;
                let written = self.run(write, args).await?;
                Ok(Tally {
                    rows: read.rows,
                    affected: written.affected,
                })
            }
        }
    }

    /// Runs SQL text as it is, whatever the mode; its rows are kept.
    pub async fn simple(&mut self, text: &str) -> Result<Tally> {
        match &mut self.speaks {
            Speaks::Postgres(postgres) => postgres.simple(&mut self.session, text).await,
            Speaks::MySql(mysql) => mysql.simple(&mut self.session, text).await,
        }
    }

    /// Brings the rows that `more` writes into a table, until it says false: lines of COPY's text
    /// form, in which nothing is escaped but NULL.
    pub async fn fill(
        &mut self,
        table: &str,
        more: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<Tally> {
        match &mut self.speaks {
            Speaks::Postgres(postgres) => postgres.fill(&mut self.session, table, more).await,
            Speaks::MySql(mysql) => mysql.fill(&mut self.session, table, more).await,
        }
    }

    /// The rows of the last statement that was to keep them.
    pub fn rows(&self) -> &Rows {
        &self.session.rows
    }

    /// The columns of [`Connection::rows`].
    pub fn column_names(&self) -> &[String] {
        &self.session.column_names
    }

    /// Whether a transaction block is open, failed ones included.
    pub fn in_transaction(&self) -> bool {
        self.session.in_transaction
    }

    /// Says goodbye; whether the server hears it does not matter.
    pub async fn close(mut self) {
        match &mut self.speaks {
            Speaks::Postgres(_) => Postgres::leave(&mut self.session),
            Speaks::MySql(mysql) => mysql.leave(&mut self.session),
        }
        let _ = self.session.stream.flush().await;
    }
}
