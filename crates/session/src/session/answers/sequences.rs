//! What a session has had of its sequences, and how it takes more of their [`sequence`]s.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use throng_buffer::Wait;
use throng_catalog::SequenceDef;
use throng_observe::{Object, WaitEvent};
use throng_txn::{LockMode, LockScope, LockTag, WaitPolicy};
use throng_types::error::state;
use throng_types::{Error, FileId, Oid, Result};
use throng_values::acl::right;
use throng_values::func::EvalStop;

use crate::session::Session;
use crate::session::answers::eval_host::SessionHost;
use throng_exec::run::Suspension;
use throng_exec::sequence;

/// What a session has had of its sequences.
#[derive(Default)]
pub struct Used {
    by_sequence: HashMap<Oid, Had, FixedState>,
    latest: Option<Oid>,
}

struct Had {
    /// The counter these came from; ALTER and TRUNCATE may give a sequence another.
    file: FileId,
    last: i64,
    /// Of values taken in advance, the last; `last` when there are none.
    cached: i64,
}

impl Used {
    /// DISCARD SEQUENCES.
    pub fn clear(&mut self) {
        self.by_sequence.clear();
        self.latest = None;
    }
}

fn not_yet(name: &str) -> Error {
    Error::new(
        state::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("currval of sequence \"{name}\" is not yet defined in this session"),
    )
}

impl SessionHost<'_> {
    fn sequence(&self, oid: Oid) -> Result<&SequenceDef> {
        if let Some(def) = self.catalog.sequence(oid) {
            return Ok(def);
        }
        Err(match self.catalog.relation(oid) {
            Some(other) => {
                let what = match other.relkind() {
                    b'i' => "indexes",
                    b'v' => "views",
                    _ => "tables",
                };
                let message = format!("cannot open relation \"{}\"", other.name());
                Error::new(state::WRONG_OBJECT_TYPE, message)
                    .detail(format!("This operation is not supported for {what}."))
            }
            None => Error::new(
                state::UNDEFINED_TABLE,
                format!("could not open relation with OID {oid}"),
            ),
        })
    }

    /// Locks a sequence as one is whose values are taken: who alters it waits for this
    /// transaction's end, and is waited for.
    fn lock_sequence(&self, sequence: Oid) -> Result<(), EvalStop> {
        let entry = self.session.handle.entry();
        let (tag, mode) = (LockTag::Relation(sequence), LockMode::RowExclusive);
        if entry.try_lock(tag, mode, LockScope::Transaction) {
            return Ok(());
        }
        let entry = entry.clone();
        let wait = Wait::for_recorded(WaitEvent::LockRelation, Object::NONE, async move {
            let policy = WaitPolicy::Block;
            entry
                .lock(tag, mode, LockScope::Transaction, policy)
                .await?;
            Ok(())
        });
        Err(Suspension::Wait(wait).into())
    }

    /// Locks a sequence for using it, then does that with the definitions as they are now; the
    /// statement's own may be older.
    fn with_sequence<T>(
        &self,
        sequence: Oid,
        then: impl FnOnce(&SessionHost<'_>) -> Result<T, EvalStop>,
    ) -> Result<T, EvalStop> {
        self.sequence(sequence)?;
        self.lock_sequence(sequence)?;
        let newer = self.session.catalog();
        // A definition under way knows a sequence that it makes itself.
        if newer.version() == self.catalog.version() || newer.sequence(sequence).is_none() {
            return then(self);
        }
        then(&self.session.host(&newer))
    }

    /// `of_identity`: for the column that the sequence is of.
    pub(in crate::session) fn next_value(
        &self,
        sequence: Oid,
        of_identity: bool,
    ) -> Result<i64, EvalStop> {
        self.with_sequence(sequence, |host| {
            host.next_value_locked(sequence, of_identity)
        })
    }

    fn next_value_locked(&self, sequence: Oid, of_identity: bool) -> Result<i64, EvalStop> {
        let def = self.sequence(sequence)?;
        // Who may insert takes an identity column's next value.
        if !of_identity {
            self.may_use(def, right::USAGE | right::UPDATE)?;
        }
        let session: &Session = self.session;
        session.must_be_writable("nextval()")?;
        let mut used = session.sequences.borrow_mut();
        let used = &mut *used;
        if let Some(had) = used.by_sequence.get_mut(&sequence)
            && had.file == def.file
            && had.last != had.cached
        {
            had.last += def.increment;
            used.latest = Some(sequence);
            return Ok(had.last);
        }
        let store = &session.engine.store;
        let (first, last, lsn) =
            sequence::take(store, def, def.cache.max(1)).map_err(Suspension::from)?;
        if lsn > store.pool.wal().flushed() {
            // The commit then waits for the record that makes the value safe.
            session.transaction()?.txn.assign_top_xid();
        }
        used.by_sequence.insert(
            sequence,
            Had {
                file: def.file,
                last: first,
                cached: last,
            },
        );
        used.latest = Some(sequence);
        Ok(first)
    }

    pub(in crate::session) fn current_value(&self, sequence: Oid) -> Result<i64> {
        let def = self.sequence(sequence)?;
        self.may_use(def, right::USAGE | right::SELECT)?;
        let used = self.session.sequences.borrow();
        used.by_sequence
            .get(&sequence)
            .map(|had| had.last)
            .ok_or_else(|| not_yet(&def.name))
    }

    pub(in crate::session) fn last_value(&self) -> Result<i64> {
        let used = self.session.sequences.borrow();
        let latest = used
            .latest
            .filter(|oid| self.catalog.sequence(*oid).is_some());
        if let Some(def) = latest.and_then(|oid| self.catalog.sequence(oid)) {
            self.may_use(def, right::USAGE | right::SELECT)?;
        }
        latest
            .and_then(|oid| used.by_sequence.get(&oid))
            .map(|had| had.last)
            .ok_or_else(|| {
                Error::new(
                    state::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "lastval is not yet defined in this session",
                )
            })
    }

    pub(in crate::session) fn set_value(
        &self,
        sequence: Oid,
        value: i64,
        called: bool,
    ) -> Result<i64, EvalStop> {
        self.with_sequence(sequence, |host| {
            host.set_value_locked(sequence, value, called)
        })
    }

    fn set_value_locked(&self, sequence: Oid, value: i64, called: bool) -> Result<i64, EvalStop> {
        let def = self.sequence(sequence)?;
        self.may_use(def, right::UPDATE)?;
        let session: &Session = self.session;
        session.must_be_writable("setval()")?;
        if !(def.min..=def.max).contains(&value) {
            return Err(Error::new(
                state::NUMERIC_VALUE_OUT_OF_RANGE,
                format!(
                    "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                    def.name, def.min, def.max
                ),
            )
            .into());
        }
        sequence::set_now(&session.engine.store, def.file, value, called)
            .map_err(Suspension::from)?;
        session.transaction()?.txn.assign_top_xid();
        let mut used = session.sequences.borrow_mut();
        if called {
            used.by_sequence.insert(
                sequence,
                Had {
                    file: def.file,
                    last: value,
                    cached: value,
                },
            );
        } else if let Some(had) = used.by_sequence.get_mut(&sequence) {
            had.cached = had.last;
        }
        Ok(value)
    }
}
