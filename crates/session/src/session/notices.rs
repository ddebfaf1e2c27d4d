//! What functions say reaches the client while their statement runs.
//!
//! ```text
//!   statement ─► function ─► RAISE ─► kept by the session      the statement waits, or gives way to others
//!        ▲                                   │                              │
//!        └──────── goes on ◄──────── flushed │ ◄─── the client is told ◄────┘
//! ```
//! A statement that neither waits nor gives rows gives way every few hundred microseconds, so
//! nothing is kept for long.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use throng_types::error::{Severity, state};
use throng_types::{Error, Result};
use throng_values::settings::Id;

use super::Session;
use throng_exec::client::{Client, Turns};

/// What functions had to say that the client has not been told.
#[derive(Default)]
pub(super) struct PendingNotices {
    list: RefCell<Vec<Error>>,
    bytes: Cell<usize>,
}

/// Messages that may wait to be told, where a statement has nobody to tell them to before it ends.
const MOST: usize = 100_000;
const MOST_BYTES: usize = 16 << 20;

impl PendingNotices {
    pub fn is_empty(&self) -> bool {
        self.list.borrow().is_empty()
    }

    fn is_full(&self) -> bool {
        self.list.borrow().len() >= MOST || self.bytes.get() >= MOST_BYTES
    }

    fn add(&self, notice: Error) {
        let fields = notice.fields();
        let parts = [&fields.detail, &fields.hint, &fields.context];
        let more: usize = parts.into_iter().flatten().map(String::len).sum();
        self.bytes
            .set(self.bytes.get() + fields.message.len() + more);
        self.list.borrow_mut().push(notice);
    }

    fn take(&self) -> Vec<Error> {
        self.bytes.set(0);
        self.list.take()
    }
}

impl Session {
    /// A function warns, or notices something.
    pub(crate) fn warn(&self, warning: Error) {
        // Past what may be told in one go the rest is not.
        let warning = match warning.fields().severity {
            Severity::Notice => warning,
            _ => warning.severity(Severity::Warning),
        };
        let _ = self.tell(warning);
    }

    /// Has the client be told something as soon as the statement waits, gives a row or ends; 54000
    /// where that is too much.
    pub(super) fn tell(&self, notice: Error) -> Result<()> {
        if !self.is_heard(&notice) {
            return Ok(());
        }
        if self.unsaid.is_full() {
            let message = format!("more than {MOST} messages in one statement");
            return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message));
        }
        self.unsaid.add(notice);
        Ok(())
    }

    /// Whether `client_min_messages` lets a message through.
    fn is_heard(&self, notice: &Error) -> bool {
        const ORDER: [&str; 5] = ["log", "notice", "warning", "error", "none"];
        let settings = self.settings.borrow();
        let least = settings.text(Id::ClientMinMessages);
        let least = match least.starts_with("debug") {
            true => 0,
            false => ORDER.iter().position(|l| *l == least).unwrap_or(1) + 1,
        };
        let level = match notice.fields().severity {
            Severity::Debug => 0,
            Severity::Log => 1,
            Severity::Notice => 2,
            Severity::Info => usize::MAX,
            _ => 3,
        };
        level >= least
    }

    /// Sends notices that `client_min_messages` lets through.
    pub(super) fn notices(&self, notices: Vec<Error>, client: &mut dyn Client) {
        for notice in notices {
            if self.is_heard(&notice) {
                client.notice(&self.spelled(notice));
            }
        }
    }

    /// Sends what functions had to say.
    pub(super) fn say(&self, client: &mut dyn Client) {
        if self.unsaid.is_empty() {
            return;
        }
        for notice in self.unsaid.take() {
            client.notice(&self.spelled(notice));
        }
    }

    /// Does some work; whenever it waits, the client is told what functions have said by then. The
    /// work stays where it lies, for it may be kilobytes.
    pub(super) async fn telling<T>(
        &self,
        client: &Turns<'_>,
        mut work: Pin<&mut impl Future<Output = Result<T>>>,
    ) -> Result<T> {
        loop {
            let ended = poll_fn(|cx| match work.as_mut().poll(cx) {
                Poll::Ready(ended) => Poll::Ready(Some(ended)),
                Poll::Pending if self.has_to_tell(client) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            })
            .await;
            client.with(|client| self.say(client));
            if let Some(ended) = ended {
                return ended;
            }
            client.flush().await?;
            // The work gave way to others, or waits; what it said was taken at once and must not
            // cost them the turn.
            throng_exec::turns::next_turn().await;
        }
    }

    /// Something is unsaid, and the client is there and hears it at once.
    fn has_to_tell(&self, client: &Turns<'_>) -> bool {
        !self.unsaid.is_empty() && client.with(|client| client.hears_at_once()) == Some(true)
    }
}
