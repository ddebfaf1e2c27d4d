//! LISTEN, UNLISTEN and NOTIFY as a transaction's doings: they take effect when it commits, and are
//! told when it is over.

use std::collections::HashSet;

use throng_txn::Txn;
use throng_types::error::state;
use throng_types::{Error, Result};

use crate::notify::{Listener, size};
use crate::session::Session;
use crate::session::transaction::Block;
use throng_exec::client::Notification;
use throng_exec::client::{Client, HIGH_WATER};

/// A name is shorter than this, as every name (`NAMEDATALEN`).
const LONGEST_CHANNEL: usize = 64;
/// A payload is shorter than this, as PostgreSQL's.
const LONGEST_PAYLOAD: usize = 8000;
/// What one transaction may have to tell.
const MOST_BYTES: usize = 16 << 20;

enum Change {
    Listen(String),
    /// None: `*`.
    Unlisten(Option<String>),
}

/// What the transaction under way will do when it commits.
#[derive(Default)]
pub(in crate::session) struct Outbox {
    changes: Vec<Change>,
    notifications: Vec<Notification>,
    /// The same as `notifications`: what is said twice is told once.
    said: HashSet<Notification>,
    bytes: usize,
}

/// How much there was at a savepoint.
#[derive(Clone, Copy, Default)]
pub(in crate::session) struct Mark {
    changes: usize,
    notifications: usize,
}

impl Outbox {
    pub fn mark(&self) -> Mark {
        Mark {
            changes: self.changes.len(),
            notifications: self.notifications.len(),
        }
    }

    pub fn rollback_to(&mut self, mark: Mark) {
        self.changes.truncate(mark.changes);
        for taken_back in self.notifications.drain(mark.notifications..) {
            self.bytes -= size(&taken_back);
            self.said.remove(&taken_back);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.notifications.is_empty()
    }

    fn add(&mut self, channel: &str, payload: &str) -> Result<()> {
        let invalid = |message| Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
        if channel.is_empty() {
            return invalid("channel name cannot be empty");
        }
        if channel.len() >= LONGEST_CHANNEL {
            return invalid("channel name too long");
        }
        if payload.len() >= LONGEST_PAYLOAD {
            return invalid("payload string too long");
        }
        let notification = Notification {
            channel: channel.to_owned(),
            payload: payload.to_owned(),
        };
        if self.said.contains(&notification) {
            return Ok(());
        }
        if self.bytes + size(&notification) > MOST_BYTES {
            return Err(Error::new(
                state::PROGRAM_LIMIT_EXCEEDED,
                "too many notifications in one transaction",
            ));
        }
        self.bytes += size(&notification);
        self.said.insert(notification.clone());
        self.notifications.push(notification);
        Ok(())
    }
}

impl Session {
    pub(in crate::session) fn listen(&self, channel: String) {
        let changes = &mut self.outbox.borrow_mut().changes;
        changes.push(Change::Listen(channel));
    }

    pub(in crate::session) fn unlisten(&self, channel: Option<String>) {
        let changes = &mut self.outbox.borrow_mut().changes;
        // Where nothing is listened to there is nothing to end.
        if self.listener.is_some() || !changes.is_empty() {
            changes.push(Change::Unlisten(channel));
        }
    }

    pub(in crate::session) fn notify(&self, channel: &str, payload: &str) -> Result<()> {
        self.outbox.borrow_mut().add(channel, payload)
    }

    /// What `pg_listening_channels` lists.
    pub(in crate::session) fn listening(&self) -> Vec<String> {
        self.listener
            .as_ref()
            .map(Listener::channels)
            .unwrap_or_default()
    }

    /// To be called right before `txn` commits: has the commit tell what the transaction said, and
    /// listens and unlistens as it said, so that the session hears itself and misses nothing that
    /// commits from here on.
    pub(in crate::session) fn commit_notifications(&mut self, txn: &Txn) -> Result<()> {
        if self.outbox.get_mut().is_empty() {
            return Ok(());
        }
        let outbox = std::mem::take(self.outbox.get_mut());
        if !outbox.notifications.is_empty() {
            let notifier = self.database.notifier.clone();
            let room = notifier.reserve(&outbox.notifications)?;
            let pid = self.pid();
            txn.on_commit(move |_| {
                notifier.publish(pid, outbox.notifications);
                drop(room);
            });
        }
        for change in outbox.changes {
            match change {
                Change::Listen(channel) => self
                    .listener
                    .get_or_insert_with(|| Listener::new(self.database.notifier.clone()))
                    .listen(channel),
                Change::Unlisten(channel) => {
                    if let Some(listener) = &self.listener {
                        listener.unlisten(channel.as_deref());
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether notifications may come to this session.
    pub fn is_listening(&self) -> bool {
        self.listener.is_some()
    }

    /// Completes when there is something to tell and the session is in no transaction.
    pub async fn notified(&self) {
        match &self.listener {
            Some(listener) if self.may_be_told() => listener.letters().await,
            _ => std::future::pending().await,
        }
    }

    fn may_be_told(&self) -> bool {
        self.block == Block::None && self.transaction.is_none()
    }

    /// Tells the client what has come, as much as its buffer takes.
    pub fn tell_notifications(&self, client: &mut dyn Client) {
        let Some(listener) = self.listener.as_ref().filter(|_| self.may_be_told()) else {
            return;
        };
        while client.backlog() < HIGH_WATER
            && let Some(letter) = listener.next()
        {
            client.notification(letter.pid, &letter.notification);
        }
    }
}
