//! What a workload is: data that it loads, transactions that its clients run, and conditions that
//! must hold after.

use std::future::Future;
use std::pin::Pin;

use std::time::Duration;

use super::connection::Connection;
use super::reactor::Reactor;
use super::sql::Mode;
use super::trouble::Result;
use super::url::Target;

pub mod connect;
pub mod copy;
pub mod scan;
pub mod script;
pub mod select;
pub mod tpcb;
pub mod tpcc;
pub mod update;

/// A transaction on its way. One allocation a transaction, which is small beside its system calls.
pub type Doing<'a> = Pin<Box<dyn Future<Output = Result<Done>> + 'a>>;

pub trait Workload: Send + Sync {
    /// What the user types.
    fn name(&self) -> &'static str;

    /// The kinds of transactions, of which [`Client::draw`] names one by its place.
    fn kinds(&self) -> Vec<String> {
        vec![self.name().to_owned()]
    }

    /// Makes the tables anew and fills them. `say` is told what takes long.
    fn load(&self, target: &Target, say: &dyn Fn(&str)) -> Result<()>;

    /// What client `number` of `of` does, for as long as it lasts.
    fn client(&self, number: usize, of: usize, seed: u64) -> Box<dyn Client>;

    /// Conditions that hold when the load was served correctly, whatever ran, and nobody runs any
    /// more.
    fn check(&self, target: &Target) -> Result<Vec<Condition>>;

    /// Removes what no later run could use, after conditions that held: what violates one stays, to
    /// be looked at.
    fn tidy(&self, _target: &Target) -> Result<()> {
        Ok(())
    }

    /// Whether opening the connection is part of the transaction: then none is opened before the
    /// start.
    fn connects_itself(&self) -> bool {
        false
    }
}

pub trait Client {
    /// Decides what the next transaction is, with all its inputs, and names its kind.
    fn draw(&mut self) -> usize;

    /// Runs the transaction last drawn, from its beginning: called again after a failure that may
    /// be retried.
    fn run<'a>(&'a mut self, link: &'a mut Link) -> Doing<'a>;

    /// How long the user types before the transaction last drawn, and thinks after it.
    fn pauses(&mut self) -> Pauses {
        Pauses::default()
    }
}

/// How a transaction ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Committed,
    /// As the workload wanted it to.
    RolledBack,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    pub before: Duration,
    pub after: Duration,
}

/// A condition that was looked at.
#[derive(Clone, Debug)]
pub struct Condition {
    pub name: String,
    /// What was found instead, if it does not hold.
    pub fault: Option<String>,
}

impl Condition {
    pub fn of(name: impl Into<String>, holds: bool, found: impl FnOnce() -> String) -> Condition {
        Condition {
            name: name.into(),
            fault: (!holds).then(found),
        }
    }
}

/// A client's way to the server: a connection that is opened when needed, again after it broke.
pub struct Link {
    reactor: Reactor,
    target: Target,
    mode: Mode,
    connection: Option<Connection>,
}

impl Link {
    pub fn new(reactor: &Reactor, target: &Target, mode: Mode) -> Link {
        Link {
            reactor: reactor.clone(),
            target: target.clone(),
            mode,
            connection: None,
        }
    }

    pub async fn connection(&mut self) -> Result<&mut Connection> {
        if self.connection.is_none() {
            let opened = Connection::open(&self.reactor, &self.target, self.mode).await?;
            self.connection = Some(opened);
        }
        Ok(self.connection.as_mut().expect("opened above"))
    }

    pub fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    /// Ends the connection in an orderly way.
    pub async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
    }

    /// Forgets a connection that broke.
    pub fn abandon(&mut self) {
        self.connection = None;
    }

    /// After a failed transaction: rolls back what is open, so that the next starts afresh.
    pub async fn recover(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if connection.in_transaction() && connection.simple("ROLLBACK").await.is_err() {
            self.abandon();
        }
    }
}
