//! CREATE and DROP DATABASE: what is done beside the definition.

use std::sync::Arc;
use std::time::Duration;

use throng_catalog::{Catalog, Object, ObjectKind, builtin};
use throng_observe::{Holder, Object as Waited, WaitEvent, waiting};
use throng_txn::{CancelReason, LockMode};
use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::database::Database;
use crate::objects;
use crate::session::Session;

/// How often, and how many times, a database is looked at for sessions that are about to leave it:
/// five seconds, as in PostgreSQL's `CountOtherDBBackends`.
const PAUSE: Duration = Duration::from_millis(100);
const LOOKS: usize = 50;

fn no_database(oid: Oid) -> Error {
    let message = format!("database with OID {oid} does not exist");
    Error::new(state::INVALID_CATALOG_NAME, message)
}

/// What a new database has of its template: everything but what rows are kept in, of which there
/// must be nothing.
fn copied(template: &Database) -> Result<Vec<Object>> {
    let catalog = template.catalog();
    let own = |object: &&Object| {
        let made = object.oid().0 >= Oid::FIRST_USER.0 || object.oid() == builtin::PUBLIC;
        made && !object.is_shared()
    };
    let objects: Vec<Object> = catalog.objects().filter(own).cloned().collect();
    let has_rows = |object: &Object| {
        matches!(
            object.kind(),
            ObjectKind::Table | ObjectKind::Sequence | ObjectKind::Index
        )
    };
    if objects.iter().any(has_rows) {
        let message = "CREATE DATABASE with a template that holds tables or sequences";
        return Err(Error::unsupported(message)
            .hint("Make it of template0, and restore a dump of the other one into it."));
    }
    Ok(objects)
}

impl Session {
    /// Makes the heap of a new database's definitions.
    pub(in crate::session) async fn create_database(
        &self,
        database: Oid,
        template: Oid,
        edited: &Catalog,
    ) -> Result<()> {
        let engine = &self.engine;
        let def = edited
            .database(database)
            .ok_or_else(|| no_database(database))?;
        let own = match engine.databases.by_oid(template) {
            Some(template) => copied(&template)?,
            None => vec![Catalog::public_schema().into()],
        };
        let (file, txn) = (def.definitions, &self.transaction()?.txn);
        let places = objects::fill(&engine.store, txn, file, &own).await?;
        let engine = engine.clone();
        txn.on_commit(move |_| engine.databases.add(database, file, places, own));
        Ok(())
    }

    /// Keeps everybody out of a database while this transaction lasts.
    pub(in crate::session) async fn close_database(&self, oid: Oid, force: bool) -> Result<()> {
        let Some(database) = self.engine.databases.by_oid(oid) else {
            return Ok(());
        };
        database.set_closed(true);
        let opened = database.clone();
        let txn = &self.transaction()?.txn;
        txn.on_abort(move || opened.set_closed(false));
        let name = database.catalog().current_database_name().to_owned();
        let (mut there, mut wait) = (Vec::new(), None);
        for look in 0..=LOOKS {
            there = self.engine.clients_of(&name);
            if there.is_empty() {
                return self.must_have_no_prepared(oid, &name);
            }
            if force && look == 0 {
                for pid in &there {
                    self.engine.sys.cancel(*pid, CancelReason::Terminate);
                }
            }
            self.handle.cancel_flag().check()?;
            if look < LOOKS {
                let waited = Waited::catalog(builtin::class::DATABASE.0, oid.0);
                let holder = Holder::session(there[0]);
                wait.get_or_insert_with(|| {
                    waiting(WaitEvent::DatabaseInUse, waited).held_by(holder)
                });
                tokio::time::sleep(PAUSE).await;
            }
        }
        let message = format!("database \"{name}\" is being accessed by other users");
        let detail = match there.len() {
            1 => "There is 1 other session using the database.".to_owned(),
            n => format!("There are {n} other sessions using the database."),
        };
        Err(Error::new(state::OBJECT_IN_USE, message).detail(detail))
    }

    /// Prepared transactions use a database as sessions do.
    fn must_have_no_prepared(&self, oid: Oid, name: &str) -> Result<()> {
        let prepared = self.engine.sys.prepared();
        let detail = match prepared.iter().filter(|p| p.database == oid).count() {
            0 => return Ok(()),
            1 => "There is 1 prepared transaction using the database.".to_owned(),
            n => format!("There are {n} prepared transactions using the database."),
        };
        let message = format!("database \"{name}\" is being accessed by other users");
        Err(Error::new(state::OBJECT_IN_USE, message).detail(detail))
    }

    /// Removes all files of a closed database when this transaction commits.
    pub(in crate::session) async fn drop_database(&self, oid: Oid) -> Result<()> {
        let database = self.engine.databases.by_oid(oid);
        let database: Arc<Database> = database.ok_or_else(|| no_database(oid))?;
        let txn = &self.transaction()?.txn;
        // The background's work gives way.
        for table in database.catalog().tables() {
            txn.lock_relation(table.oid, LockMode::AccessExclusive)
                .await?;
        }
        for file in database.files() {
            self.drop_file(file)?;
        }
        let engine = self.engine.clone();
        txn.on_commit(move |_| engine.databases.remove(oid));
        Ok(())
    }
}
