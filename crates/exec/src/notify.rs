//! LISTEN and NOTIFY between sessions: who listens to what, and what waits to be told.
//!
//! ```text
//! NOTIFY ──▶ the transaction's outbox ──commit──▶ mailboxes of the channel's listeners ──idle──▶ their clients
//! ```
//! A commit puts its notifications into the mailboxes itself, right after it has become visible, and wakes the listeners. There
//! is no queue that all share, and no lock that a notifying commit holds while its log is flushed: PostgreSQL orders such
//! commits by one (`PreCommit_Notify`), so that they flush one by one. Here transactions that commit at the same moment may be
//! told in either order; one that began after another's commit was answered is always told after it.
//!
//! What waits is bounded: a commit that would bring it past [`MOST_BYTES`] is refused.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use throng_sync::WakerSlot;
use throng_types::error::state;
use throng_types::{Error, Result};

/// What all mailboxes may hold together.
const MOST_BYTES: usize = 64 << 20;
/// What one notification takes in a mailbox, beside its text.
const PLACE: usize = 64;

/// A message on a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    pub channel: String,
    pub payload: String,
}

impl Notification {
    /// What it takes, in each mailbox: the text is counted as if none were shared.
    pub fn bytes(&self) -> usize {
        PLACE + self.channel.len() + self.payload.len()
    }
}

/// A notification with the number of the session it came from.
#[derive(Clone)]
pub struct Letter {
    pub pid: i32,
    pub notification: Arc<Notification>,
}

/// What one session is still to be told.
#[derive(Default)]
struct Mailbox {
    letters: Mutex<VecDeque<Letter>>,
    /// The session's task, while it is idle.
    waker: WakerSlot,
}

/// The listeners of a database.
#[derive(Default)]
pub struct Notifier {
    channels: Mutex<HashMap<String, Vec<Arc<Mailbox>>>>,
    /// Bytes in all mailboxes, and of commits under way.
    waiting: AtomicUsize,
}

impl Notifier {
    /// The share of the room that is taken, as `pg_notification_queue_usage` tells it.
    pub fn usage(&self) -> f64 {
        self.waiting.load(Ordering::Relaxed) as f64 / MOST_BYTES as f64
    }

    /// Makes room for what a transaction is about to commit.
    pub fn reserve(self: &Arc<Self>, notifications: &[Notification]) -> Result<Reservation> {
        let bytes = {
            let channels = self.channels.lock();
            let listeners = |n: &Notification| channels.get(&n.channel).map_or(0, Vec::len);
            notifications.iter().map(|n| listeners(n) * n.bytes()).sum()
        };
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let reservation = Reservation {
            notifier: self.clone(),
            bytes,
        };
        if bytes > 0 && before + bytes > MOST_BYTES {
            return Err(Error::new(
                state::PROGRAM_LIMIT_EXCEEDED,
                "too many notifications in the NOTIFY queue",
            )
            .hint("A session that listens reads nothing, or stays in its transaction."));
        }
        Ok(reservation)
    }

    /// Puts notifications into the mailboxes of those who listen, and wakes them.
    pub fn publish(&self, pid: i32, notifications: Vec<Notification>) {
        let channels = self.channels.lock();
        for notification in notifications {
            let Some(listeners) = channels.get(&notification.channel) else {
                continue;
            };
            let bytes = notification.bytes();
            let notification = Arc::new(notification);
            for mailbox in listeners {
                self.waiting.fetch_add(bytes, Ordering::Relaxed);
                mailbox.letters.lock().push_back(Letter {
                    pid,
                    notification: notification.clone(),
                });
                mailbox.waker.wake();
            }
        }
    }
}

/// Room for the notifications of a transaction that commits; given back when they are in the mailboxes, or never will be.
pub struct Reservation {
    notifier: Arc<Notifier>,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.notifier
            .waiting
            .fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A session as a listener. When it goes it listens to nothing, and what it was not told is forgotten.
pub struct Listener {
    notifier: Arc<Notifier>,
    mailbox: Arc<Mailbox>,
    /// What it listens to, in the order it began to.
    channels: Mutex<Vec<String>>,
}

impl Listener {
    pub fn new(notifier: Arc<Notifier>) -> Listener {
        Listener {
            notifier,
            mailbox: Arc::default(),
            channels: Mutex::default(),
        }
    }

    pub fn channels(&self) -> Vec<String> {
        self.channels.lock().clone()
    }

    pub fn listen(&self, channel: String) {
        let mut own = self.channels.lock();
        if own.contains(&channel) {
            return;
        }
        let mut channels = self.notifier.channels.lock();
        let listeners = channels.entry(channel.clone()).or_default();
        listeners.push(self.mailbox.clone());
        own.push(channel);
    }

    /// `None`: to nothing at all.
    pub fn unlisten(&self, channel: Option<&str>) {
        let mut own = self.channels.lock();
        let mut channels = self.notifier.channels.lock();
        own.retain(|listened| {
            if channel.is_some_and(|channel| channel != listened) {
                return true;
            }
            if let Some(listeners) = channels.get_mut(listened) {
                listeners.retain(|mailbox| !Arc::ptr_eq(mailbox, &self.mailbox));
                if listeners.is_empty() {
                    channels.remove(listened);
                }
            }
            false
        });
    }

    /// The next letter.
    pub fn next(&self) -> Option<Letter> {
        let letter = self.mailbox.letters.lock().pop_front()?;
        let bytes = letter.notification.bytes();
        self.notifier.waiting.fetch_sub(bytes, Ordering::Relaxed);
        Some(letter)
    }

    /// Completes when there is a letter.
    pub async fn letters(&self) {
        std::future::poll_fn(|cx| {
            self.mailbox.waker.register(cx.waker());
            match self.mailbox.letters.lock().is_empty() {
                true => std::task::Poll::Pending,
                false => std::task::Poll::Ready(()),
            }
        })
        .await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.unlisten(None);
        while self.next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(channel: &str, payload: &str) -> Notification {
        Notification {
            channel: channel.to_owned(),
            payload: payload.to_owned(),
        }
    }

    fn told(listener: &Listener) -> Vec<String> {
        std::iter::from_fn(|| listener.next())
            .map(|letter| letter.notification.payload.clone())
            .collect()
    }

    #[test]
    fn each_listener_is_told_in_order_what_it_listens_to() {
        let notifier = Arc::new(Notifier::default());
        let [a, b] = [(); 2].map(|()| Listener::new(notifier.clone()));
        a.listen("x".to_owned());
        a.listen("x".to_owned());
        b.listen("x".to_owned());
        b.listen("y".to_owned());
        notifier.publish(1, vec![note("x", "1"), note("y", "2"), note("z", "3")]);
        a.unlisten(Some("x"));
        notifier.publish(1, vec![note("x", "4")]);
        assert_eq!(told(&a), ["1"]);
        assert_eq!(told(&b), ["1", "2", "4"]);
        assert_eq!(b.channels(), ["x", "y"]);
        assert_eq!(notifier.usage(), 0.0);
    }

    #[test]
    fn what_waits_is_bounded_and_goes_with_its_listener() {
        let notifier = Arc::new(Notifier::default());
        let large = note("x", &"p".repeat(1 << 20));
        // Nobody listens: nothing waits.
        assert!(notifier.reserve(&vec![large.clone(); 100]).is_ok());
        let listener = Listener::new(notifier.clone());
        listener.listen("x".to_owned());
        let mut published = 0;
        while let Ok(_room) = notifier.reserve(std::slice::from_ref(&large)) {
            notifier.publish(1, vec![large.clone()]);
            published += 1;
        }
        assert_eq!(published, 63);
        drop(listener);
        assert_eq!(notifier.usage(), 0.0);
        assert!(notifier.channels.lock().is_empty());
    }
}
