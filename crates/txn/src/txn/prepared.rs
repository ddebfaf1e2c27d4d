//! Two-phase commit: transactions that are done with their work and wait to be told how they end.
//!
//! ```text
//!   Txn::prepare ─ what it holds goes to a session of its own ─► Prepare record ─► on disk
//!                                                                  │ again by each checkpoint
//!   its end ─ claim: nobody else ends it ─► Commit or Abort record, and off the list
//! ```
//!
//! A prepared transaction is a [`Txn`] like another, whose session nobody talks to: that one holds
//! its locks, and its place among those that run. So all that goes by sessions, locks or ids knows
//! it without being told.
//!
//! **What must hold.** A start finds the record of each prepared transaction behind the redo point,
//! unless the record of its end is there as well. So the list is held over every insertion: of the
//! Prepare record with the entry's coming, of the end's record with its going. A checkpoint, which
//! writes the records again behind its redo point, therefore meets either the entry, or an end that
//! is in the log already.
//!
//! Two-phase commit: Gray, "Notes on Data Base Operating Systems", 1978.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use throng_sync::lock::Mutex;
use throng_types::error::state;
use throng_types::{Error, FileId, Lsn, Oid, Result, Tid, Xid};
use throng_wal::RecordBuilder;

use crate::control::Fields;
use crate::lock::{LockMode, LockTag};
use crate::rowlock::LockedRow;
use crate::session::Core;
use crate::txn::Txn;

/// The type of a prepared transaction's own session: no listing shows it.
pub(crate) const HOLDER: &str = "prepared transaction";

/// Bytes of an identifier, as in PostgreSQL.
pub const MAX_GID: usize = 199;

/// What is known of a prepared transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedInfo {
    pub gid: String,
    pub xid: Xid,
    /// Who prepared it.
    pub owner: Oid,
    pub database: Oid,
    /// When, in microseconds since 1970.
    pub at: i64,
    /// What the room above needs to end it after a restart.
    pub rest: Arc<[u8]>,
}

struct Prepared {
    info: PreparedInfo,
    /// None: a session is about to prepare it, or to end it and has it.
    txn: Option<Txn>,
    /// A session is about to end it.
    is_claimed: bool,
}

/// All prepared transactions of a data directory.
#[derive(Default)]
pub(crate) struct PreparedTransactions(Mutex<BTreeMap<String, Prepared>>);

/// A prepared transaction that one session is about to end. Dropped, it stays as it is.
pub struct Claimed {
    all: Arc<PreparedTransactions>,
    info: PreparedInfo,
}

/// An identifier that is taken until the transaction is prepared. Dropped, it is free again.
pub(crate) struct Reserved {
    all: Arc<PreparedTransactions>,
    gid: Option<String>,
}

impl PreparedTransactions {
    /// Takes an identifier, of at most `most`.
    ///
    /// # Errors
    /// 42710 where it is in use, 53200 where there are too many.
    pub(crate) fn reserve(self: &Arc<Self>, info: &PreparedInfo, most: usize) -> Result<Reserved> {
        let mut all = self.0.lock();
        let count = all.len();
        match all.entry(info.gid.clone()) {
            Entry::Occupied(_) => {
                let message = format!("transaction identifier \"{}\" is already in use", info.gid);
                Err(Error::new(state::DUPLICATE_OBJECT, message))
            }
            Entry::Vacant(_) if count >= most => {
                let message = "maximum number of prepared transactions reached";
                Err(Error::new(state::OUT_OF_MEMORY, message).hint(format!(
                    "Increase \"max_prepared_transactions\" (currently {most})."
                )))
            }
            Entry::Vacant(entry) => {
                entry.insert(Prepared {
                    info: info.clone(),
                    txn: None,
                    is_claimed: false,
                });
                Ok(Reserved {
                    all: self.clone(),
                    gid: Some(info.gid.clone()),
                })
            }
        }
    }

    /// Logs the transaction as prepared and puts it on the list. Where the record ends.
    pub(crate) fn enter(
        &self,
        core: &Core,
        mut reserved: Reserved,
        info: PreparedInfo,
        mut txn: Txn,
    ) -> Lsn {
        let mut record = RecordBuilder::new();
        describe(&mut txn, &info, &mut record);
        let mut all = self.0.lock();
        let lsn = core.wal.insert(&mut record);
        if let Some(gid) = reserved.gid.take() {
            let prepared = Prepared {
                info,
                txn: Some(txn),
                is_claimed: false,
            };
            all.insert(gid, prepared);
        }
        lsn
    }

    /// One that a start has found in the log.
    pub(crate) fn restore(&self, info: PreparedInfo, txn: Txn) {
        let prepared = Prepared {
            info: info.clone(),
            txn: Some(txn),
            is_claimed: false,
        };
        self.0.lock().insert(info.gid, prepared);
    }

    /// Writes the record of each one again, for a start that does not see the first.
    pub(crate) fn log_again(&self, core: &Core) {
        let mut all = self.0.lock();
        for prepared in all.values_mut() {
            if let Some(txn) = &mut prepared.txn {
                let mut record = RecordBuilder::new();
                describe(txn, &prepared.info, &mut record);
                core.wal.insert(&mut record);
            }
        }
    }

    /// `pg_prepared_xacts`.
    pub(crate) fn list(&self) -> Vec<PreparedInfo> {
        let all = self.0.lock();
        let prepared = all.values().filter(|prepared| prepared.txn.is_some());
        prepared.map(|prepared| prepared.info.clone()).collect()
    }

    /// Has `hook` look at each one's transaction, as it is on the list.
    pub(crate) fn each(&self, mut hook: impl FnMut(&PreparedInfo, &Txn)) {
        for prepared in self.0.lock().values() {
            if let Some(txn) = &prepared.txn {
                hook(&prepared.info, txn);
            }
        }
    }

    /// # Errors
    /// 42704 where there is none, 55000 where another session is about to end it, and what `may`
    /// says.
    pub(crate) fn claim(
        self: &Arc<Self>,
        gid: &str,
        may: impl FnOnce(&PreparedInfo) -> Result<()>,
    ) -> Result<Claimed> {
        let mut all = self.0.lock();
        let Some(prepared) = all.get_mut(gid).filter(|prepared| prepared.txn.is_some()) else {
            let message = format!("prepared transaction with identifier \"{gid}\" does not exist");
            return Err(Error::new(state::UNDEFINED_OBJECT, message));
        };
        if prepared.is_claimed {
            let message = format!("prepared transaction with identifier \"{gid}\" is busy");
            return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        may(&prepared.info)?;
        prepared.is_claimed = true;
        Ok(Claimed {
            all: self.clone(),
            info: prepared.info.clone(),
        })
    }

    /// The server stops: those that are here are found again by the next start.
    pub(crate) fn leave_all(&self) {
        for (_, prepared) in std::mem::take(&mut *self.0.lock()) {
            if let Some(txn) = prepared.txn {
                txn.leave_prepared();
            }
        }
    }
}

impl Claimed {
    pub fn info(&self) -> &PreparedInfo {
        &self.info
    }

    /// Has `log` write the record of its end, and takes it off the list.
    pub(crate) fn end(self, log: impl FnOnce(&mut Txn) -> Lsn) -> Option<(Txn, Lsn)> {
        let mut all = self.all.0.lock();
        let prepared = all.get_mut(&self.info.gid)?;
        let mut txn = prepared.txn.take()?;
        let lsn = log(&mut txn);
        all.remove(&self.info.gid);
        drop(all);
        Some((txn, lsn))
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if let Some(prepared) = self.all.0.lock().get_mut(&self.info.gid) {
            prepared.is_claimed = false;
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(gid) = self.gid.take() {
            self.all.0.lock().remove(&gid);
        }
    }
}

/// Writes a transaction's Prepare record.
fn describe(txn: &mut Txn, info: &PreparedInfo, record: &mut RecordBuilder) {
    let work = txn.prepared_work();
    let held = Held {
        locks: work.locks,
        rows: work.rows,
    };
    let state = encode(info, &held);
    record.prepare(info.xid, &work.subs, &work.dropped, &work.made, &state);
}

/// What a prepared transaction has done and holds, as its record tells it.
pub(crate) struct PreparedWork {
    pub(crate) subs: Vec<Xid>,
    pub(crate) dropped: Vec<FileId>,
    pub(crate) made: Vec<FileId>,
    pub(crate) locks: Vec<(LockTag, LockMode)>,
    pub(crate) rows: Vec<LockedRow>,
}

/// What a record says of its own, as a start reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PreparedRecord {
    pub(crate) subxids: Vec<Xid>,
    pub(crate) dropped: Vec<FileId>,
    pub(crate) made: Vec<FileId>,
    pub(crate) state: Vec<u8>,
}

/// Locks of a prepared transaction.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) locks: Vec<(LockTag, LockMode)>,
    pub(crate) rows: Vec<LockedRow>,
}

const FORMAT: u8 = 1;

const RELATION: u8 = 0;
const OBJECT: u8 = 1;
const ADVISORY: u8 = 2;
const ADVISORY_PAIR: u8 = 3;

fn encode(info: &PreparedInfo, held: &Held) -> Vec<u8> {
    let mut b = vec![FORMAT];
    put_bytes(&mut b, info.gid.as_bytes());
    b.extend(info.owner.0.to_le_bytes());
    b.extend(info.database.0.to_le_bytes());
    b.extend(info.at.to_le_bytes());
    put_bytes(&mut b, &info.rest);
    let locks: Vec<_> = held.locks.iter().filter_map(lock_bytes).collect();
    b.extend((locks.len() as u32).to_le_bytes());
    locks.iter().for_each(|lock| b.extend(lock));
    b.extend((held.rows.len() as u32).to_le_bytes());
    for row in &held.rows {
        b.extend(row.xid.0.to_le_bytes());
        b.extend(row.file.0.to_le_bytes());
        b.extend(row.tid.block.to_le_bytes());
        b.extend(row.tid.slot.to_le_bytes());
        b.push(row.modes);
    }
    b
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

/// None of what no transaction keeps.
fn lock_bytes((tag, mode): &(LockTag, LockMode)) -> Option<Vec<u8>> {
    let (kind, a, b, c) = match *tag {
        LockTag::Relation(oid) => (RELATION, oid.0, 0, 0),
        LockTag::Object { class, object } => (OBJECT, class.0, object.0, 0),
        LockTag::Advisory { database, key } => {
            let key = key as u64;
            (ADVISORY, database.0, (key >> 32) as u32, key as u32)
        }
        LockTag::AdvisoryPair { database, keys } => {
            (ADVISORY_PAIR, database.0, keys.0 as u32, keys.1 as u32)
        }
        LockTag::Tuple { .. } | LockTag::Transaction(_) => return None,
    };
    let mut bytes = vec![kind, *mode as u8];
    [a, b, c]
        .iter()
        .for_each(|word| bytes.extend(word.to_le_bytes()));
    Some(bytes)
}

/// None for what [`encode`] does not write.
pub(crate) fn decode(xid: Xid, state: &[u8]) -> Option<(PreparedInfo, Held)> {
    let mut at = Fields { rest: state };
    if at.u8()? != FORMAT {
        return None;
    }
    let info = PreparedInfo {
        gid: String::from_utf8(take_bytes(&mut at)?.to_vec()).ok()?,
        xid,
        owner: Oid(at.u32()?),
        database: Oid(at.u32()?),
        at: at.u64()? as i64,
        rest: take_bytes(&mut at)?.into(),
    };
    let mut held = Held::default();
    for _ in 0..at.u32()? {
        let (kind, mode) = (at.u8()?, at.u8()?);
        let (a, b, c) = (at.u32()?, at.u32()?, at.u32()?);
        let tag = match kind {
            RELATION => LockTag::Relation(Oid(a)),
            OBJECT => LockTag::Object {
                class: Oid(a),
                object: Oid(b),
            },
            ADVISORY => LockTag::Advisory {
                database: Oid(a),
                key: (u64::from(b) << 32 | u64::from(c)) as i64,
            },
            ADVISORY_PAIR => LockTag::AdvisoryPair {
                database: Oid(a),
                keys: (b as i32, c as i32),
            },
            _ => return None,
        };
        let mode = LockMode::ALL.into_iter().find(|m| *m as u8 == mode)?;
        held.locks.push((tag, mode));
    }
    for _ in 0..at.u32()? {
        held.rows.push(LockedRow {
            xid: Xid(at.u64()?),
            file: FileId(at.u32()?),
            tid: Tid {
                block: at.u32()?,
                slot: at.u16()?,
            },
            modes: at.u8()?,
        });
    }
    at.rest.is_empty().then_some((info, held))
}

fn take_bytes<'a>(at: &mut Fields<'a>) -> Option<&'a [u8]> {
    let len = at.u32()? as usize;
    at.take(len)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_survives_the_record() {
        let info = PreparedInfo {
            gid: "änderung".into(),
            xid: Xid(77),
            owner: Oid(10),
            database: Oid(5),
            at: -3,
            rest: b"more"[..].into(),
        };
        let held = Held {
            locks: vec![
                (LockTag::Relation(Oid(7)), LockMode::RowExclusive),
                (
                    LockTag::Object {
                        class: Oid(1),
                        object: Oid(2),
                    },
                    LockMode::AccessExclusive,
                ),
                (
                    LockTag::Advisory {
                        database: Oid(5),
                        key: i64::MIN + 3,
                    },
                    LockMode::Exclusive,
                ),
                (
                    LockTag::AdvisoryPair {
                        database: Oid(5),
                        keys: (-1, 4),
                    },
                    LockMode::Share,
                ),
            ],
            rows: vec![LockedRow {
                xid: Xid(78),
                file: FileId(9),
                tid: Tid { block: 3, slot: 4 },
                modes: 3,
            }],
        };
        let bytes = encode(&info, &held);
        assert_eq!(decode(Xid(77), &bytes), Some((info, held)));
        for len in 0..bytes.len() {
            assert_eq!(decode(Xid(77), &bytes[..len]), None, "{len} bytes");
        }
    }
}
