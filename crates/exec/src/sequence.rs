//! Sequences: counters outside of transactions.
//!
//! A sequence is one page in a file of its own. The page, and so the log, is ahead of the counter
//! in memory, so that most calls log nothing; after a crash the counter goes on behind what may
//! have been given out:
//!
//! ```text
//! given out   … 7 8 9                     memory: 9, 23 more are logged
//! page, log               … 32            after a crash the next value is 33
//! ```
//! Page, after the header: the last value (i64), whether it was given out (u8).

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use throng_access::TxContext;
use throng_buffer::{Mtr, PoolCore, Try, retry, retry_blocking};
use throng_catalog::SequenceDef;
use throng_txn::Txn;
use throng_types::error::state;
use throng_types::page::{HEADER, KIND_SEQUENCE, SEQUENCE_END};
use throng_types::{Error, FileId, Lsn, PageId, Result, Xid};

use crate::store::Store;

/// Values logged in advance (PostgreSQL's SEQ_LOG_VALS).
const AHEAD: i64 = 32;

const OFF_VALUE: usize = HEADER;
const OFF_CALLED: usize = HEADER + 8;
const _: () = assert!(
    OFF_CALLED + 1 == SEQUENCE_END,
    "an image of the page keeps what is before"
);

/// A counter, once it has been read.
type Slot = Arc<Mutex<Option<Counter>>>;

/// The counters in use, by file.
#[derive(Default)]
pub struct Counters {
    by_file: Mutex<HashMap<FileId, Slot, FixedState>>,
}

#[derive(Clone, Copy)]
pub struct Counter {
    pub value: i64,
    /// Whether `value` was given out; if not, it comes next.
    pub called: bool,
    /// Values after `value` that the page has passed already.
    pub logged: i64,
    /// The record that logged them: values are not safe before it is on disk.
    lsn: Lsn,
}

impl Counter {
    /// The value that was given out last: None before its first use.
    pub fn last(&self) -> Option<i64> {
        self.called.then_some(self.value)
    }
}

impl Counters {
    fn of(&self, file: FileId) -> Slot {
        self.by_file.lock().entry(file).or_default().clone()
    }

    fn forget(&self, file: FileId) {
        self.by_file.lock().remove(&file);
    }
}

fn page_of(file: FileId) -> PageId {
    PageId::new(file, 0)
}

fn read(pool: &PoolCore, file: FileId) -> Try<Counter> {
    let guard = pool.shared(page_of(file))?;
    let mut value = [0; 8];
    value.copy_from_slice(&guard[OFF_VALUE..OFF_VALUE + 8]);
    Ok(Counter {
        value: i64::from_le_bytes(value),
        called: guard[OFF_CALLED] != 0,
        logged: 0,
        lsn: Lsn::ZERO,
    })
}

fn write(pool: &PoolCore, file: FileId, value: i64, called: bool) -> Try<Lsn> {
    let guard = pool.exclusive(page_of(file))?;
    let mut mtr = Mtr::new(pool, Xid::NONE);
    let page = mtr.add(guard);
    mtr.write(page, OFF_VALUE, &value.to_le_bytes());
    mtr.write(page, OFF_CALLED, &[u8::from(called)]);
    Ok(mtr.commit())
}

/// Fills the empty file of a new sequence: its start value comes first.
pub async fn create(store: &Store, txn: &Txn, file: FileId, def: &SequenceDef) -> Result<()> {
    let xid = txn.xid();
    retry(|| {
        let pool: &PoolCore = &store.pool;
        let guard = pool.new_page(file)?;
        let mut mtr = Mtr::new(pool, xid);
        let page = mtr.add(guard);
        mtr.init(page, KIND_SEQUENCE, 0);
        mtr.write(page, OFF_VALUE, &def.start.to_le_bytes());
        mtr.write(page, OFF_CALLED, &[0]);
        mtr.commit();
        Ok(())
    })
    .await
}

/// Sets the counter: `value` was the last one (`called`), or comes next.
pub async fn set(store: &Store, file: FileId, value: i64, called: bool) -> Result<()> {
    retry(|| set_now(store, file, value, called))
        .await
        .map(drop)
}

/// The same, or what must be waited for.
pub fn set_now(store: &Store, file: FileId, value: i64, called: bool) -> Try<Lsn> {
    let counter = store.sequences.of(file);
    let mut counter = counter.lock();
    let lsn = write(&store.pool, file, value, called)?;
    *counter = Some(Counter {
        value,
        called,
        logged: 0,
        lsn,
    });
    Ok(lsn)
}

/// A file that is gone has no counter.
pub fn forget(store: &Store, file: FileId) {
    store.sequences.forget(file);
}

/// Writes counters back as they are, so that an orderly stop skips no values.
pub fn save(store: &Store) -> Result<()> {
    let counters: Vec<_> = store
        .sequences
        .by_file
        .lock()
        .iter()
        .map(|(file, c)| (*file, c.clone()))
        .collect();
    for (file, counter) in counters {
        let mut counter = counter.lock();
        let Some(c) = counter.as_mut().filter(|c| c.logged > 0) else {
            continue;
        };
        if store.pool.blocks(file).is_ok_and(|blocks| blocks > 0) {
            retry_blocking(|| write(&store.pool, file, c.value, c.called))?;
            c.logged = 0;
        }
    }
    Ok(())
}

/// Where a counter stands.
pub fn state(store: &Store, file: FileId) -> Try<Counter> {
    let counter = store.sequences.of(file);
    let mut counter = counter.lock();
    let now = match *counter {
        Some(now) => now,
        None => *counter.insert(read(&store.pool, file)?),
    };
    Ok(now)
}

/// Takes the next `count` values, as far as the sequence goes: the first, the last, and the log
/// position that makes them safe.
pub fn take(store: &Store, def: &SequenceDef, count: i64) -> Try<(i64, i64, Lsn)> {
    let counter = store.sequences.of(def.file);
    let mut counter = counter.lock();
    let now = match &mut *counter {
        Some(now) => now,
        None => counter.insert(read(&store.pool, def.file)?),
    };
    let first = match (now.called, following(def, now.value)) {
        (false, _) => now.value,
        (true, Some(next)) => next,
        (true, None) => return Err(exhausted(def).into()),
    };
    // Cached values stop where the sequence would start over.
    let mut last = first;
    let mut taken = 1;
    while taken < count {
        match inner_following(def, last) {
            Some(next) => last = next,
            None => break,
        }
        taken += 1;
    }
    let wrapped = now.called && inner_following(def, now.value).is_none();
    if now.logged < taken || wrapped || !now.called {
        let mut ahead = last;
        let mut logged = 0;
        while logged < AHEAD {
            match inner_following(def, ahead) {
                Some(next) => ahead = next,
                None => break,
            }
            logged += 1;
        }
        let lsn = write(&store.pool, def.file, ahead, true)?;
        *now = Counter {
            value: last,
            called: true,
            logged,
            lsn,
        };
    } else {
        now.value = last;
        now.logged -= taken;
    }
    Ok((first, last, now.lsn))
}

/// The value after `value` without starting over.
fn inner_following(def: &SequenceDef, value: i64) -> Option<i64> {
    value
        .checked_add(def.increment)
        .filter(|next| match def.increment > 0 {
            true => *next <= def.max,
            false => *next >= def.min,
        })
}

/// The value after `value`; None at the end of a sequence that does not cycle.
fn following(def: &SequenceDef, value: i64) -> Option<i64> {
    inner_following(def, value).or(match (def.cycle, def.increment > 0) {
        (false, _) => None,
        (true, true) => Some(def.min),
        (true, false) => Some(def.max),
    })
}

fn exhausted(def: &SequenceDef) -> Error {
    let (end, limit) = match def.increment > 0 {
        true => ("maximum", def.max),
        false => ("minimum", def.min),
    };
    Error::new(
        state::SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
        format!(
            "nextval: reached {end} value of sequence \"{}\" ({limit})",
            def.name
        ),
    )
}
