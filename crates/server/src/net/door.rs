//! Clients that have connected and not logged in: how many there may be, and who goes where there
//! are more.
//!
//! ```text
//!   accepted ─► guest ─► startup packet ─► password ─► session
//!                 │           has spoken        │
//!                 └── shown out, the one that has been silent for longest first ──┘
//! ```
//! Connecting costs a stranger nothing and the server a file descriptor. So whoever says nothing
//! makes way for those who come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A client that comes in a crowd may wait this long for its turn to be read.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the server has a socket for a client, or takes its connection only to say that it has
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Free,
    Full,
}

/// How many of the sockets guests may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// From so many on, those that have been silent for a while go.
    guests: usize,
    /// There are never more.
    most: usize,
}

impl Bounds {
    pub fn of(sockets: usize) -> Bounds {
        Bounds {
            guests: (sockets / 4).max(8),
            most: (sockets / 2).max(12),
        }
    }
}

struct Knock {
    came: Instant,
    has_spoken: AtomicBool,
    shown_out: Notify,
}

#[derive(Default)]
struct Guests {
    /// Guests that came; each has its number.
    count: u64,
    waiting: BTreeMap<u64, Arc<Knock>>,
}

/// Where clients come in.
pub struct Door {
    bounds: Bounds,
    guests: Mutex<Guests>,
}

impl Door {
    pub fn new(bounds: Bounds) -> Door {
        Door {
            bounds,
            guests: Mutex::default(),
        }
    }

    /// A client has connected. Another one may have to go for it.
    pub fn enter(self: &Arc<Door>, room: Room) -> Guest {
        let knock = Arc::new(Knock {
            came: Instant::now(),
            has_spoken: AtomicBool::new(false),
            shown_out: Notify::new(),
        });
        let mut guests = self.guests.lock();
        guests.count += 1;
        let number = guests.count;
        guests.waiting.insert(number, knock.clone());
        let count = guests.waiting.len();
        let leaves = match count > self.bounds.guests {
            true => guests.who_leaves(count > self.bounds.most),
            false => None,
        };
        if let Some(leaving) = leaves.and_then(|number| guests.waiting.remove(&number)) {
            leaving.shown_out.notify_one();
        }
        Guest {
            room,
            door: self.clone(),
            number,
            knock,
        }
    }
}

impl Guests {
    /// The oldest that has said nothing for a while; `must`: somebody goes in any case.
    fn who_leaves(&self, must: bool) -> Option<u64> {
        let is_silent = |knock: &Knock| !knock.has_spoken.load(Ordering::Relaxed);
        let mut silent = self.waiting.iter().filter(|(_, knock)| is_silent(knock));
        match silent.next() {
            Some((number, knock)) if must || knock.came.elapsed() >= PATIENCE => Some(*number),
            None if must => self.waiting.keys().next().copied(),
            _ => None,
        }
    }
}

/// A client that has not logged in, until this is dropped.
pub struct Guest {
    pub room: Room,
    door: Arc<Door>,
    number: u64,
    knock: Arc<Knock>,
}

impl Guest {
    /// It has sent a whole packet.
    pub fn has_spoken(&self) {
        self.knock.has_spoken.store(true, Ordering::Relaxed);
    }

    /// Completes when it is to go for others.
    pub async fn shown_out(&self) {
        self.knock.shown_out.notified().await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.door.guests.lock().waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_shown_out(guest: &Guest) -> bool {
        let leaving = std::pin::pin!(guest.shown_out());
        let waker = std::task::Waker::noop();
        leaving
            .poll(&mut std::task::Context::from_waker(waker))
            .is_ready()
    }

    #[test]
    fn the_oldest_silent_guest_makes_way() {
        let door = Arc::new(Door::new(Bounds::of(32)));
        let mut guests: Vec<_> = (0..16).map(|_| door.enter(Room::Free)).collect();
        guests[0].has_spoken();
        assert!(!guests.iter().any(is_shown_out), "nobody has waited long");
        let last = door.enter(Room::Free);
        assert!(is_shown_out(&guests[1]));
        assert!(!is_shown_out(&guests[0]) && !is_shown_out(&last));
        guests.clear();
        drop(last);
        assert!(door.guests.lock().waiting.is_empty());
    }
}
