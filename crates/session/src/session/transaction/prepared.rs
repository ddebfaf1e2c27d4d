//! PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED.

use std::sync::Arc;

use throng_catalog::Change;
use throng_exec::client::Client;
use throng_syntax::vocabulary::TwoPhase;
use throng_txn::{LockTag, MAX_GID, PrepareRequest, PreparedInfo};
use throng_types::error::state;
use throng_types::{Error, Oid, Result};
use throng_values::settings::Id;

use super::{Block, no_transaction};
use crate::database::Own;
use crate::session::Session;
use crate::{objects, prepared};

impl Session {
    /// A step of two-phase commit; its tag.
    pub(in crate::session) async fn two_phase(
        &mut self,
        step: TwoPhase,
        client: &mut dyn Client,
    ) -> Result<&'static str> {
        match step {
            TwoPhase::Prepare(gid) => self.prepare_block(gid, client).await,
            TwoPhase::Commit(gid) => self.finish_prepared(&gid, true).await,
            TwoPhase::Rollback(gid) => self.finish_prepared(&gid, false).await,
        }
    }

    /// PREPARE TRANSACTION. Its tag: where there is nothing to prepare it is a rollback.
    async fn prepare_block(
        &mut self,
        gid: String,
        client: &mut dyn Client,
    ) -> Result<&'static str> {
        match self.block {
            Block::Failed => {
                self.rollback_block(false).await?;
                Ok("ROLLBACK")
            }
            Block::None => {
                self.commit().await?;
                self.notices(vec![no_transaction()], client);
                Ok("ROLLBACK")
            }
            Block::Open => {
                if let Err(e) = self.prepare_open(gid).await {
                    self.rollback().await;
                    return Err(e);
                }
                Ok("PREPARE TRANSACTION")
            }
        }
    }

    async fn prepare_open(&mut self, gid: String) -> Result<()> {
        if self.portals.get_mut().holds_any() {
            return Err(refused("created a cursor WITH HOLD"));
        }
        self.check_deferred(None).await?;
        let ended = self.portals.borrow_mut().committing();
        ended.drop_in_turns().await;
        if self.has_used_temporary()? {
            return Err(refused("operated on temporary objects"));
        }
        let most = self.may_prepare(&gid)?;
        if !self.outbox.get_mut().is_empty() {
            return Err(refused("executed LISTEN, UNLISTEN, or NOTIFY"));
        }
        self.deferred.clear();
        self.block = Block::None;
        let ended = self.portals.borrow_mut().committed();
        ended.drop_in_turns().await;
        let Some(transaction) = self.transaction.take() else {
            return Ok(());
        };
        let changes = transaction.changes.take();
        let rest = prepared::encode(&changes);
        if !changes.is_empty() {
            let databases = (&*self.database, &**self.engine.databases.first());
            let store = &self.engine.store;
            if let Err(e) = objects::write(store, &transaction.txn, databases, &changes).await {
                return self.committed(Err(e)).await;
            }
            let own = transaction.own.take().map(|own| Own {
                catalog: Arc::clone(&own.catalog),
                over: own.over,
            });
            // Not the engine's own: it has all prepared transactions.
            let (engine, database) = (Arc::downgrade(&self.engine), self.database.clone());
            transaction.txn.on_commit(move |_| {
                if let Some(engine) = engine.upgrade() {
                    // The definitions were made by this server from the same text.
                    let published = engine.databases.publish(&database, &changes, own);
                    published.expect("a definition that was written can be read");
                }
            });
        }
        let request = PrepareRequest {
            gid,
            owner: self.current_role_oid(),
            database: self.database.oid,
            rest,
            most,
        };
        let engine = self.engine.clone();
        let prepared = engine.sys.prepare(transaction.txn, request).await;
        if prepared.is_ok()
            && let Some(level) = self.hot_settings().waits_for_standbys
        {
            self.wait_for_standbys(level).await;
        }
        self.committed(prepared).await
    }

    /// How many there may be, if this identifier can be one's.
    fn may_prepare(&self, gid: &str) -> Result<usize> {
        if gid.len() > MAX_GID {
            let message = format!("transaction identifier \"{gid}\" is too long");
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
        }
        let most = self.settings.borrow().int(Id::MaxPreparedTransactions);
        if most == 0 {
            let message = "prepared transactions are disabled";
            let hint = "Set \"max_prepared_transactions\" to a nonzero value.";
            return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message).hint(hint));
        }
        Ok(most as usize)
    }

    /// Whether the transaction has locked, or has changed, what only this session sees: it cannot
    /// be another's then.
    fn has_used_temporary(&self) -> Result<bool> {
        let catalog = self.catalog();
        let Some(schema) = self.temporary.schema(&catalog) else {
            return Ok(false);
        };
        // Those that it has dropped are others' to see still.
        let published = self.published.borrow().clone();
        let is_own = |oid: Oid| {
            let mut relation = [&catalog, &published].into_iter();
            let relation = relation.find_map(|catalog| catalog.relation(oid));
            relation.is_some_and(|relation| relation.schema() == schema)
        };
        let transaction = self.transaction()?;
        let changed = |change: &Change| {
            let oid = change.oid();
            oid == schema || is_own(oid) || was_made_in(change, schema)
        };
        let locked = transaction.txn.locks();
        Ok(transaction.changes.borrow().iter().any(changed)
            || locked.iter().any(|tag| match tag {
                LockTag::Relation(oid) => is_own(*oid),
                _ => false,
            }))
    }

    /// COMMIT PREPARED and ROLLBACK PREPARED.
    async fn finish_prepared(&mut self, gid: &str, commit: bool) -> Result<&'static str> {
        let what = if commit {
            "COMMIT PREPARED"
        } else {
            "ROLLBACK PREPARED"
        };
        self.must_be_outside_block(what)?;
        let engine = self.engine.clone();
        let may = |info: &PreparedInfo| {
            if info.owner != self.current_role_oid() && !self.is_superuser() {
                let message = "permission denied to finish prepared transaction";
                let hint = "Must be superuser or the user that prepared the transaction.";
                return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message).hint(hint));
            }
            if info.database != self.database.oid {
                let message = "prepared transaction belongs to another database";
                let hint =
                    "Connect to the database where the transaction was prepared to finish it.";
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).hint(hint));
            }
            Ok(())
        };
        let claimed = engine.sys.claim_prepared(gid, may)?;
        match commit {
            true => {
                let settings = self.hot_settings();
                let standbys = settings.waits_for_standbys;
                // Another session's work: whoever hears that it is committed may rely on it.
                engine
                    .sys
                    .commit_prepared(claimed, &self.handle, true)
                    .await?;
                if let Some(level) = standbys {
                    self.wait_for_standbys(level).await;
                }
            }
            false => engine.sys.rollback_prepared(claimed).await?,
        }
        Ok(what)
    }
}

fn refused(done: &str) -> Error {
    Error::new(
        state::FEATURE_NOT_SUPPORTED,
        format!("cannot PREPARE a transaction that has {done}"),
    )
}

/// Whether an object of a schema that is gone again was put there.
fn was_made_in(change: &Change, schema: Oid) -> bool {
    match change {
        Change::Put { json, .. } => json.contains(&format!("\"schema\":{},", schema.0)),
        Change::Delete { .. } => false,
    }
}
