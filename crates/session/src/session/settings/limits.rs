//! How long statements, transactions and idle sessions may take.
//!
//! ```text
//! statement_timeout     the statement's first message ───────► its end          57014, the statement fails
//! transaction_timeout   the transaction's first statement ───► its end          25P04, the session ends
//! idle_…_timeout        ReadyForQuery ───────► the next message                  25P03, 57P05, the session ends
//! ```
//! `client_connection_check_interval` is how often it is looked, while a statement runs, whether
//! its client has left (08006, the session ends).

use std::task::Poll;
use std::time::{Duration, Instant};

use throng_types::error::{Severity, state};
use throng_types::{Error, Result, SqlState};

use crate::session::transaction::Block;
use crate::session::{Session, now};

impl Session {
    /// Waits, between messages, for whatever ends an idle session: `pg_terminate_backend`, the
    /// idle-in-transaction timeout.
    pub async fn interrupted(&self) -> Error {
        let idle = self.idle_limit();
        let flag = self.handle.cancel_flag();
        let terminated = std::future::poll_fn(|cx| {
            flag.register(cx.waker());
            if flag.is_terminated() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        let over = match idle {
            Some((limit, why)) => {
                let ended = tokio::time::timeout(limit, terminated).await;
                ended.is_err().then_some(why)
            }
            None => {
                terminated.await;
                None
            }
        };
        match over {
            Some((code, message)) => Error::new(code, message).severity(Severity::Fatal),
            None => flag.terminated(),
        }
    }

    /// Whether the session is to end before the message that has just come: a statement so short
    /// that it never looks would be answered after `pg_terminate_backend` has said that it did its
    /// work.
    ///
    /// # Errors
    /// 57P01 where it is.
    #[inline]
    pub fn must_go_on(&self) -> Result<()> {
        let flag = self.handle.cancel_flag();
        match flag.is_terminated() {
            true => Err(flag.terminated()),
            false => Ok(()),
        }
    }

    /// How often it is looked, while a statement runs, whether the client is still there.
    pub fn client_check_interval(&self) -> Option<Duration> {
        self.hot_settings().client_check_interval
    }

    /// How long the session may wait for its client from now on, and why it ends then.
    fn idle_limit(&self) -> Option<(Duration, (SqlState, &'static str))> {
        let settings = self.hot_settings();
        if self.block == Block::None {
            let why = (
                state::IDLE_SESSION_TIMEOUT,
                "terminating connection due to idle-session timeout",
            );
            return Some((settings.idle_session_timeout?, why));
        }
        let idle = settings.idle_in_transaction_timeout.map(|limit| {
            let message = "terminating connection due to idle-in-transaction timeout";
            (limit, (state::IDLE_IN_TRANSACTION_TIMEOUT, message))
        });
        let whole = self.transaction_left().map(|left| {
            let message = "terminating connection due to transaction timeout";
            (left, (state::TRANSACTION_TIMEOUT, message))
        });
        idle.into_iter()
            .chain(whole)
            .min_by_key(|(limit, _)| *limit)
    }

    /// What is left of `transaction_timeout`, of a transaction that is under way or begins now.
    fn transaction_left(&self) -> Option<Duration> {
        let limit = self.hot_settings().transaction_timeout?;
        let began = self.transaction.as_ref().map(|t| t.began);
        let past = began.map_or(0, |began| now().saturating_sub(began));
        Some(limit.saturating_sub(Duration::from_micros(past.max(0) as u64)))
    }

    /// Has the timeouts as they are set now act on the statement that begins.
    pub(in crate::session) fn limit_statement(&self) {
        let settings = self.hot_settings();
        if settings.statement_timeout.is_none() && settings.transaction_timeout.is_none() {
            self.handle.cancel_flag().set_deadline(None);
            return;
        }
        let start = Instant::now();
        let flag = self.handle.cancel_flag();
        flag.set_deadline(settings.statement_timeout.map(|timeout| start + timeout));
        if let Some(left) = self.transaction_left() {
            flag.set_transaction_deadline(start + left);
        }
    }

    /// A message of the extended protocol begins to be worked on. Its statement's time runs from
    /// the first one on, until one was executed.
    pub(in crate::session) fn message_began(&mut self, text: &str) -> Result<()> {
        self.still_in_time()?;
        let deadline = self.handle.cancel_flag().deadline();
        self.statement_began(text);
        if deadline.is_some() {
            self.handle.cancel_flag().set_deadline(deadline);
        }
        Ok(())
    }

    /// 57014 where the time that began with an earlier message of the statement is over.
    pub(in crate::session) fn still_in_time(&self) -> Result<()> {
        let flag = self.handle.cancel_flag();
        match flag.deadline() {
            Some(_) => flag.check(),
            None => Ok(()),
        }
    }
}
