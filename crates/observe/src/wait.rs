//! Recording waits and adding them up.
//!
//! | call | who waits | when over |
//! |---|---|---|
//! | [`waiting`], [`waited`] | the session's task, which gives its core back; in the background, the thread | when it is woken |
//! | [`blocking`] | the thread, and with it every session on it | when the call returns |

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering;

use crate::clock::now_nanos;
use crate::event::WaitEvent;
use crate::histogram::{HistogramSnapshot, add};
use crate::key::Key;
use crate::object::{Holder, Object};
use crate::present::PresentWait;
use crate::record::record_held;
use crate::session;
use crate::slots::{self, Slot};

/// A wait under way; recorded when dropped.
#[must_use = "the wait ends when this is dropped"]
pub struct Waiting {
    wait: PresentWait,
    who: Who,
}

enum Who {
    /// The one that runs on this thread; its waits begin and end while it does, or with it.
    Session,
    /// A task that is no session yet, on a thread that it shares: counted, but nowhere shown.
    Nobody,
    /// Of this index: the wait's end may be noticed by another.
    Thread(usize),
    /// As [`Who::Thread`], and its sessions with it.
    Core(usize),
}

/// Begins a wait of the session that runs here, or of this thread if none does.
#[inline]
pub fn waiting(event: WaitEvent, object: impl Into<Object>) -> Waiting {
    let who = if session::with_current(|current| current.is_some()) {
        Who::Session
    } else if slots::mine().is_background() {
        Who::Thread(throng_sync::thread_index())
    } else {
        Who::Nobody
    };
    Waiting::begin(event, object.into(), who)
}

/// Begins a wait of this thread, with all that is to run on it.
#[inline]
pub fn blocking(event: WaitEvent, object: impl Into<Object>) -> Waiting {
    Waiting::begin(event, object.into(), Who::Core(throng_sync::thread_index()))
}

impl Waiting {
    fn begin(event: WaitEvent, object: Object, who: Who) -> Waiting {
        let since = match (&who, slots::is_tracking()) {
            (_, false) => 0,
            (Who::Session, true) => session::began(),
            (_, true) => now_nanos(),
        };
        let wait = PresentWait {
            event,
            object,
            since,
            holder: Holder::NONE,
        };
        let waiting = Waiting { wait, who };
        waiting.show();
        waiting
    }

    /// Who has what is waited for.
    pub fn held_by(mut self, holder: Holder) -> Waiting {
        self.wait.holder = holder;
        self.show();
        self
    }

    fn show(&self) {
        match &self.who {
            Who::Session => session::with_current(|session| {
                session.inspect(|session| session.present.set(self.wait));
            }),
            Who::Nobody => {}
            Who::Thread(index) | Who::Core(index) => {
                if let Some(slot) = slots::at(*index) {
                    slot.present.set(self.wait);
                }
            }
        }
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Waiting({:?} on {:?})",
            self.wait.event, self.wait.object
        )
    }
}

impl Drop for Waiting {
    #[inline]
    fn drop(&mut self) {
        let PresentWait {
            event,
            object,
            since,
            holder,
        } = self.wait;
        let tracked = since != 0 && slots::is_tracking();
        match &self.who {
            Who::Session => {
                session::with_current(|session| {
                    session.inspect(|session| session.present.clear());
                });
                if tracked {
                    let nanos = session::ended(since).saturating_sub(since);
                    record_held(event, object, nanos, holder);
                }
            }
            Who::Nobody => {
                if tracked {
                    record_held(event, object, now_nanos().saturating_sub(since), holder);
                }
            }
            Who::Thread(index) => {
                slots::at(*index).inspect(|slot| slot.present.clear());
                if tracked {
                    record_held(event, object, now_nanos().saturating_sub(since), holder);
                }
            }
            Who::Core(index) => {
                let slot = slots::at(*index);
                slot.inspect(|slot| slot.present.clear());
                if tracked {
                    let nanos = now_nanos().saturating_sub(since);
                    record_held(event, object, nanos, holder);
                    // Its sessions will count their part of it when they get to run.
                    slot.inspect(|slot| {
                        slot.last_block.set(self.wait);
                        add(&slot.blocked, nanos);
                    });
                }
            }
        }
    }
}

/// Waits for `future`, recording the time from where it is first not ready: none if it is at once.
pub async fn waited<F: Future>(
    event: WaitEvent,
    object: impl Into<Object>,
    future: F,
) -> F::Output {
    let object = object.into();
    let mut future = pin!(future);
    let mut wait = None;
    poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        if polled.is_pending() && wait.is_none() {
            wait = Some(waiting(event, object));
        }
        polled
    })
    .await
}

/// For whom a wait was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Sessions: somebody's statement took longer.
    Sessions,
    /// The server's own threads.
    Background,
}

/// All waits for one event on one object since the last [`reset`](crate::reset).
#[derive(Clone, Debug)]
pub struct WaitRow {
    pub event: WaitEvent,
    pub scope: Scope,
    /// [`Object::NONE`] also for all the objects that were too many, and waited for too little, to
    /// be told apart.
    pub object: Object,
    pub count: u64,
    pub nanos: u64,
    pub longest_nanos: u64,
    pub histogram: HistogramSnapshot,
    /// Who had it in the longest wait of which that is known: the one to ask.
    pub holder: Holder,
}

impl WaitRow {
    fn new(key: Key) -> WaitRow {
        WaitRow {
            event: key.event,
            scope: match key.background {
                true => Scope::Background,
                false => Scope::Sessions,
            },
            object: key.object,
            count: 0,
            nanos: 0,
            longest_nanos: 0,
            histogram: HistogramSnapshot::default(),
            holder: Holder::NONE,
        }
    }

    fn add_cell(&mut self, slot: &Slot) {
        let role = usize::from(self.scope == Scope::Background);
        let cell = &slot.waits[role][self.event as usize];
        self.nanos += cell.nanos.load(Ordering::Relaxed);
        let longest = cell.longest.load(Ordering::Relaxed);
        self.longest_nanos = self.longest_nanos.max(longest);
        cell.histogram.add_to(&mut self.histogram);
    }
}

/// Every event and object with its waits; the rows of one event add up to all its waits. In no
/// order.
pub fn waits() -> Vec<WaitRow> {
    let mut rows = of_objects();
    rows.extend(of_cores());
    let others = |event: &&WaitEvent| **event != WaitEvent::CoreQueue;
    for &event in WaitEvent::ALL.iter().filter(others) {
        for background in [false, true] {
            let mut rest = WaitRow::new(Key {
                event,
                background,
                object: Object::NONE,
            });
            slots::all_current().for_each(|slot| rest.add_cell(slot));
            let scope = rest.scope;
            let named = |row: &&mut WaitRow| row.event == event && row.scope == scope;
            let mut whole = None;
            for row in rows.iter_mut().filter(named) {
                rest.nanos = rest.nanos.saturating_sub(row.nanos);
                rest.histogram.subtract(&row.histogram);
                if row.object == Object::NONE {
                    whole = Some(row);
                }
            }
            rest.count = rest.histogram.count();
            match whole {
                // Waits for nothing in particular, and those for objects not named, are one row.
                Some(row) => row.absorb(&rest),
                None if rest.count > 0 => rows.push(rest),
                None => {}
            }
        }
    }
    rows
}

impl WaitRow {
    /// This row's waits and another's of the same event, as waits for no object in particular.
    pub fn with(mut self, other: &WaitRow) -> WaitRow {
        self.absorb(other);
        self.object = Object::NONE;
        self.longest_nanos = self.longest_nanos.max(other.longest_nanos);
        self.holder = Holder::NONE;
        self
    }

    fn absorb(&mut self, rest: &WaitRow) {
        self.count += rest.count;
        self.nanos += rest.nanos;
        self.histogram.add(&rest.histogram);
    }
}

/// What the threads' tables have, added up by object.
fn of_objects() -> Vec<WaitRow> {
    // With how long the holder that is shown had it.
    let mut rows: HashMap<Key, (u64, WaitRow)> = HashMap::new();
    for measured in slots::all_current().flat_map(|slot| slot.objects.measured()) {
        let (held, row) = rows
            .entry(measured.key)
            .or_insert_with(|| (0, WaitRow::new(measured.key)));
        row.count += measured.histogram.count();
        row.nanos += measured.nanos;
        row.longest_nanos = row.longest_nanos.max(measured.longest);
        row.histogram.add(&measured.histogram);
        if !measured.holder.is_none() && measured.held >= *held {
            (*held, row.holder) = (measured.held, measured.holder);
        }
    }
    let rows = rows.into_values().map(|(_, row)| row);
    rows.filter(|row| row.count > 0).collect()
}

/// The queues for the cores: each thread's own numbers.
fn of_cores() -> Vec<WaitRow> {
    let of_slot = |slot: &Slot| {
        let core = slot.core.load(Ordering::Relaxed).checked_sub(1);
        let mut row = WaitRow::new(Key {
            event: WaitEvent::CoreQueue,
            background: slot.is_background(),
            object: core.map_or(Object::NONE, Object::core),
        });
        row.add_cell(slot);
        row.count = row.histogram.count();
        row
    };
    slots::all_current()
        .map(of_slot)
        .filter(|row| row.count > 0)
        .collect()
}

/// All waits for one event, on all threads, since the last [`reset`](crate::reset).
#[derive(Clone, Debug)]
pub struct WaitTotals {
    pub event: WaitEvent,
    pub count: u64,
    pub nanos: u64,
    pub longest_nanos: u64,
    pub histogram: HistogramSnapshot,
}

/// The totals of every event that was ever waited for.
pub fn snapshot() -> Vec<WaitTotals> {
    let totals = WaitEvent::ALL.iter().map(|&event| totals(event));
    totals.filter(|totals| totals.count > 0).collect()
}

fn totals(event: WaitEvent) -> WaitTotals {
    let mut row = WaitRow::new(Key {
        event,
        background: false,
        object: Object::NONE,
    });
    for scope in [Scope::Sessions, Scope::Background] {
        row.scope = scope;
        slots::all_current().for_each(|slot| row.add_cell(slot));
    }
    WaitTotals {
        event,
        count: row.histogram.count(),
        nanos: row.nanos,
        longest_nanos: row.longest_nanos,
        histogram: row.histogram,
    }
}

/// What the server's own threads wait for now, by their names; the idle ones too.
pub fn background_now() -> Vec<(&'static str, PresentWait)> {
    slots::all()
        .filter_map(|slot| Some((slot.name()?, slot.present.get()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::record_wait;

    fn of(event: WaitEvent) -> Option<WaitTotals> {
        snapshot().into_iter().find(|totals| totals.event == event)
    }

    #[test]
    fn waits_of_all_threads_add_up() {
        // An event that no other test of this crate uses.
        let event = WaitEvent::LockRelation;
        assert!(of(event).is_none());
        record_wait(event, Object::relation(7), 100);
        std::thread::spawn(move || {
            let _background = slots::background("test.waits");
            record_wait(event, Object::relation(8), 300);
            record_wait(event, Object::relation(7), 50);
        })
        .join()
        .unwrap();
        let totals = of(event).unwrap();
        assert_eq!((totals.count, totals.nanos), (3, 450));
        assert_eq!(totals.longest_nanos, 300);
        assert!(totals.histogram.quantile(1.0).unwrap() >= 300);

        let mut rows: Vec<_> = waits().into_iter().filter(|w| w.event == event).collect();
        rows.sort_by_key(|row| row.nanos);
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.scope, row.object.number, row.count, row.nanos))
            .collect();
        let expected = [
            (Scope::Background, 7, 1, 50),
            (Scope::Sessions, 7, 1, 100),
            (Scope::Background, 8, 1, 300),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn objects_too_many_to_name_still_count() {
        let event = WaitEvent::LockTuple;
        let all = 2000;
        std::thread::spawn(move || {
            for row in 0..all {
                record_wait(event, Object::tuple(200, row), 1000 + row);
            }
        })
        .join()
        .unwrap();
        let rows = waits();
        let ours = |row: &&WaitRow| {
            row.event == event && (row.object.scope == 200 || row.object == Object::NONE)
        };
        let (count, nanos) = rows
            .iter()
            .filter(ours)
            .fold((0, 0), |(count, nanos), row| {
                (count + row.count, nanos + row.nanos)
            });
        // Other tests wait for rows as well, of other files.
        assert!(count >= all && nanos >= all * 1000 + all * (all - 1) / 2);
        assert!(rows.iter().filter(ours).count() > 100);
    }

    #[test]
    fn pages_are_gathered_by_file_unless_latched() {
        let page = Object::page(0x55_0000_0003);
        // Long enough to keep their places beside what other tests left on this thread's slot.
        record_wait(WaitEvent::PageWrite, page, 1 << 40);
        record_wait(WaitEvent::LatchShared, page, 1 << 40);
        let rows = waits();
        let has = |event, object| rows.iter().any(|w| w.event == event && w.object == object);
        assert!(has(WaitEvent::PageWrite, Object::file(0x55)));
        assert!(has(WaitEvent::LatchShared, page));
    }

    #[test]
    fn a_dropped_wait_is_recorded() {
        let event = WaitEvent::Sleep;
        let wait = waiting(event, 1);
        while now_nanos() <= wait.wait.since {}
        drop(wait);
        let totals = of(event).unwrap();
        assert_eq!(totals.count, 1);
        assert!(totals.nanos > 0);
    }

    #[test]
    fn a_background_threads_wait_is_seen_while_it_lasts() {
        let _background = slots::background("test.present");
        let wait = blocking(WaitEvent::DataSync, Object::file(77));
        let seen = || {
            background_now()
                .into_iter()
                .find(|(name, _)| *name == "test.present")
        };
        assert_eq!(seen().expect("waits").1.object, Object::file(77));
        drop(wait);
        assert!(seen().is_none());
    }
}
