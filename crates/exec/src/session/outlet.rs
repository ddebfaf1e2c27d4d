//! A running statement's client, which is told at once what functions say when the statement has to wait.
//!
//! Functions have the session tell the client something while operators are under way, which know of no client
//! ([`Session::tell`]). Whoever drives the statement sees it pause, for a lock perhaps, and sends what was said first: so a notice
//! is there before the wait and not after it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use throng_sql::func::EvalContext;
use throng_types::{Datum, Result};

use super::Session;
use crate::client::{Client, HIGH_WATER, RowShape};

/// A client that a statement and its driver share. It is not there while the statement waits for it to take what was sent.
pub struct Outlet<'c>(Cell<Option<&'c mut dyn Client>>);

impl<'c> Outlet<'c> {
    pub fn new(client: &'c mut dyn Client) -> Outlet<'c> {
        Outlet(Cell::new(Some(client)))
    }

    /// None: the client is being waited for.
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut dyn Client) -> T) -> Option<T> {
        let client = self.0.take()?;
        let done = f(client);
        self.0.set(Some(client));
        Some(done)
    }

    pub fn row(&self, row: &[Datum], shape: &RowShape, ctx: &EvalContext<'_>) -> Result<()> {
        let given = self.with(|client| client.row(row, shape, ctx));
        given.unwrap_or(Ok(()))
    }

    /// Lets the client drain where much is waiting for it.
    pub async fn drain(&self) -> Result<()> {
        match self.with(|client| client.backlog() > HIGH_WATER) {
            Some(true) => self.flush().await,
            _ => Ok(()),
        }
    }

    async fn flush(&self) -> Result<()> {
        let Some(client) = self.0.take() else {
            return Ok(());
        };
        let flushed = client.flush().await;
        self.0.set(Some(client));
        flushed
    }
}

impl Session {
    /// Runs `work`; whenever it pauses, the client is sent what it was told since.
    pub(super) async fn telling<T>(
        &self,
        outlet: &Outlet<'_>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut work = pin!(work);
        loop {
            let done = poll_fn(|cx| match work.as_mut().poll(cx) {
                Poll::Ready(done) => Poll::Ready(Some(done)),
                Poll::Pending if self.has_to_tell(outlet) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            if let Some(done) = done.await {
                return done;
            }
            outlet.with(|client| self.notices(self.warnings.take(), client));
            outlet.flush().await?;
            // What was woken for while the client took it is looked at next, but others come first.
            tokio::task::yield_now().await;
        }
    }

    fn has_to_tell(&self, outlet: &Outlet<'_>) -> bool {
        !self.warnings.borrow().is_empty()
            && outlet.with(|client| client.hears_at_once()) == Some(true)
    }
}
