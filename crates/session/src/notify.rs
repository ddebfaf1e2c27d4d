//! LISTEN and NOTIFY between sessions: who listens to what, and what waits to be told.
//!
//! ```text
//! NOTIFY ──▶ the transaction's outbox ──commit──▶ mailboxes of the channel's listeners ──idle──▶ their clients
//! ```
//! A commit puts its notifications into the mailboxes itself, right after it has become visible,
//! and wakes the listeners. There is no queue that all share, and no lock that a notifying commit
//! holds while its log is flushed: PostgreSQL orders such commits by one (`PreCommit_Notify`), so
//! that they flush one by one. Here transactions that commit at the same moment may be told in
//! either order; one that began after another's commit was answered is always told after it.
//!
//! What waits is there once, however many it waits for: in memory, and past [`MOST_IN_MEMORY`] in a
//! file without a name. It is bounded: a commit that would bring it past [`MOST_BYTES`], which is
//! PostgreSQL's queue, is refused.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use throng_exec::client::Notification;
use throng_sync::WakerSlot;
use throng_types::error::state;
use throng_types::{Error, Result};

/// What may wait in a database: 8 GB, as PostgreSQL's `max_notify_queue_pages` is by default.
const MOST_BYTES: usize = 8 << 30;
/// What of it may wait in memory.
const MOST_IN_MEMORY: usize = 16 << 20;
/// What one notification takes beside its text.
const PLACE: usize = 64;

/// Bytes that a notification takes while it waits.
pub fn size(notification: &Notification) -> usize {
    PLACE + notification.channel.len() + notification.payload.len()
}

/// A notification with the number of the session it came from.
pub struct Letter {
    pub pid: i32,
    pub notification: Notification,
}

/// Where a notification waits.
enum QueuePosition {
    Memory(Notification),
    /// In the file: the channel, then the payload.
    File {
        at: u64,
        channel: usize,
        payload: usize,
    },
}

/// A notification that waits, for as long as a mailbox has it.
struct Waiting {
    notifier: Arc<Queue>,
    bytes: usize,
    place: QueuePosition,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.notifier
            .waiting
            .fetch_sub(self.bytes, Ordering::Relaxed);
        match self.place {
            QueuePosition::Memory(_) => {
                let memory = &self.notifier.in_memory;
                memory.fetch_sub(self.bytes, Ordering::Relaxed);
            }
            QueuePosition::File { .. } => self.notifier.overflow.lock().give_back(),
        }
    }
}

/// What one session is still to be told.
#[derive(Default)]
struct Mailbox {
    letters: Mutex<VecDeque<(i32, Arc<Waiting>)>>,
    /// The session's task, while it is idle.
    waker: WakerSlot,
}

/// The file for what is too much for memory; it begins anew whenever nothing in it is wanted any
/// more.
#[derive(Default)]
struct Overflow {
    file: Option<Arc<File>>,
    end: u64,
    wanted: usize,
}

impl Overflow {
    fn give_back(&mut self) {
        self.wanted -= 1;
        if self.wanted == 0 {
            self.end = 0;
            if let Some(file) = &self.file {
                // What is left of it is written over: its room alone would be wasted.
                let _ = file.set_len(0);
            }
        }
    }

    fn keep(&mut self, directory: &Path, notification: &Notification) -> io::Result<QueuePosition> {
        if self.file.is_none() {
            std::fs::create_dir_all(directory)?;
            self.file = Some(Arc::new(tempfile_in(directory)?));
        }
        let Some(file) = &self.file else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let (channel, payload) = (notification.channel.len(), notification.payload.len());
        let text = [
            notification.channel.as_bytes(),
            notification.payload.as_bytes(),
        ]
        .concat();
        let at = self.end;
        file.write_all_at(&text, at)?;
        self.end += text.len() as u64;
        self.wanted += 1;
        Ok(QueuePosition::File {
            at,
            channel,
            payload,
        })
    }
}

/// A file that is gone when it is closed.
fn tempfile_in(directory: &Path) -> io::Result<File> {
    let path = directory.join(format!("notify-{:x}", rand::random::<u64>()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// What waits in a database.
struct Queue {
    directory: PathBuf,
    /// Bytes of all that waits, and of commits under way.
    waiting: AtomicUsize,
    in_memory: AtomicUsize,
    overflow: Mutex<Overflow>,
}

impl Queue {
    fn keep(self: &Arc<Queue>, notification: Notification) -> Waiting {
        let bytes = size(&notification);
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let place = match self.in_memory.load(Ordering::Relaxed) + bytes > MOST_IN_MEMORY {
            true => self.overflow.lock().keep(&self.directory, &notification),
            false => Err(io::ErrorKind::Unsupported.into()),
        };
        let place = place.unwrap_or_else(|e| {
            if e.kind() != io::ErrorKind::Unsupported {
                tracing::warn!(error = %e, "notifications stay in memory");
            }
            self.in_memory.fetch_add(bytes, Ordering::Relaxed);
            QueuePosition::Memory(notification)
        });
        Waiting {
            notifier: self.clone(),
            bytes,
            place,
        }
    }

    fn read(&self, place: &QueuePosition) -> io::Result<Notification> {
        let (at, channel, payload) = match place {
            QueuePosition::Memory(notification) => return Ok(notification.clone()),
            QueuePosition::File {
                at,
                channel,
                payload,
            } => (*at, *channel, *payload),
        };
        let file = self.overflow.lock().file.clone();
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        let mut text = vec![0; channel + payload];
        file.read_exact_at(&mut text, at)?;
        let payload = text.split_off(channel);
        let read = |bytes| String::from_utf8(bytes).map_err(io::Error::other);
        Ok(Notification {
            channel: read(text)?,
            payload: read(payload)?,
        })
    }
}

/// The listeners of a database.
pub struct Notifier {
    channels: Mutex<HashMap<String, Vec<Arc<Mailbox>>>>,
    queue: Arc<Queue>,
}

impl Notifier {
    /// `directory`: where its file is, should it need one.
    pub fn new(directory: &Path) -> Notifier {
        Notifier {
            channels: Mutex::default(),
            queue: Arc::new(Queue {
                directory: directory.to_owned(),
                waiting: AtomicUsize::new(0),
                in_memory: AtomicUsize::new(0),
                overflow: Mutex::default(),
            }),
        }
    }

    pub fn directory(&self) -> &Path {
        &self.queue.directory
    }

    /// The share of the room that is taken, as `pg_notification_queue_usage` tells it.
    pub fn usage(&self) -> f64 {
        self.queue.waiting.load(Ordering::Relaxed) as f64 / MOST_BYTES as f64
    }

    /// Makes room for what a transaction is about to commit.
    pub fn reserve(self: &Arc<Self>, notifications: &[Notification]) -> Result<Reservation> {
        let bytes = {
            let channels = self.channels.lock();
            let is_heard = |n: &&Notification| channels.contains_key(&n.channel);
            let heard = notifications.iter().filter(is_heard);
            heard.map(size).sum()
        };
        let before = self.queue.waiting.fetch_add(bytes, Ordering::Relaxed);
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
            let waiting = Arc::new(self.queue.keep(notification));
            for mailbox in listeners {
                let letter = (pid, waiting.clone());
                mailbox.letters.lock().push_back(letter);
                mailbox.waker.wake();
            }
        }
    }
}

/// Room for the notifications of a transaction that commits; given back when they are in the
/// mailboxes, or never will be.
pub struct Reservation {
    notifier: Arc<Notifier>,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let waiting = &self.notifier.queue.waiting;
        waiting.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A session as a listener. When it goes it listens to nothing, and what it was not told is
/// forgotten.
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
        loop {
            let (pid, waiting) = self.mailbox.letters.lock().pop_front()?;
            match self.notifier.queue.read(&waiting.place) {
                Ok(notification) => return Some(Letter { pid, notification }),
                Err(e) => tracing::error!(error = %e, "a notification could not be read back"),
            }
        }
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
        self.mailbox.letters.lock().clear();
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
        let directory = std::env::temp_dir();
        let notifier = Arc::new(Notifier::new(&directory));
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
        let directory = std::env::temp_dir();
        let notifier = Arc::new(Notifier::new(&directory));
        let large = note("x", &"p".repeat(1 << 20));
        // Nobody listens: nothing waits.
        assert!(notifier.reserve(&vec![large.clone(); 100]).is_ok());
        let [a, b] = [(); 2].map(|()| Listener::new(notifier.clone()));
        a.listen("x".to_owned());
        b.listen("x".to_owned());
        let sent = 3 * MOST_IN_MEMORY / size(&large);
        for number in 0..sent {
            let one = note("x", &format!("{number}{}", large.payload));
            let _room = notifier.reserve(std::slice::from_ref(&one)).expect("room");
            notifier.publish(1, vec![one]);
        }
        let queue = &notifier.queue;
        assert!(queue.in_memory.load(Ordering::Relaxed) <= MOST_IN_MEMORY);
        assert!(queue.overflow.lock().wanted > 0);
        // It waits once for both.
        let usage = notifier.usage() * MOST_BYTES as f64;
        assert!((usage as usize).abs_diff(sent * size(&large)) < sent * 10);
        for listener in [&a, &b] {
            let got = told(listener);
            assert_eq!(got.len(), sent);
            for (number, payload) in got.iter().enumerate() {
                assert_eq!(*payload, format!("{number}{}", large.payload));
            }
        }
        assert_eq!(notifier.usage(), 0.0);
        assert_eq!(queue.overflow.lock().end, 0);
        let full = queue.waiting.fetch_add(MOST_BYTES, Ordering::Relaxed);
        assert!(notifier.reserve(std::slice::from_ref(&large)).is_err());
        queue.waiting.store(full, Ordering::Relaxed);
        let listener = a;
        notifier.publish(1, vec![large]);
        drop((listener, b));
        assert_eq!(notifier.usage(), 0.0);
        assert!(notifier.channels.lock().is_empty());
    }
}
