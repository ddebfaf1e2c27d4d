//! Databases.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::{Run, Work};
use crate::command::{CreateDatabase, DatabaseChanges};
use throng_catalog::DatabaseDef;

impl DatabaseChanges {
    fn apply(&self, def: &mut DatabaseDef) {
        def.is_template = self.is_template.unwrap_or(def.is_template);
        def.allow_connections = self.allow_connections.unwrap_or(def.allow_connections);
        def.connection_limit = self.connection_limit.unwrap_or(def.connection_limit);
    }
}

impl Run<'_> {
    pub(super) fn database(&self, oid: Oid) -> Result<DatabaseDef> {
        let found = self.catalog().database(oid).map(|def| (**def).clone());
        found.ok_or_else(|| {
            let message = format!("database with OID {oid} does not exist");
            Error::new(state::INVALID_CATALOG_NAME, message)
        })
    }

    fn database_name_is_free(&self, name: &str) -> Result<()> {
        match self.catalog().database_by_name(name) {
            Some(_) => {
                let message = format!("database \"{name}\" already exists");
                Err(Error::new(state::DUPLICATE_DATABASE, message))
            }
            None => Ok(()),
        }
    }

    pub(super) fn create_database(&mut self, create: &CreateDatabase) -> Result<()> {
        self.database_name_is_free(&create.name)?;
        let oid = create.oid.unwrap_or_else(|| self.host.next_oid());
        let definitions = self.host.next_file();
        let mut def = DatabaseDef {
            owner: create.owner,
            ..DatabaseDef::new(oid, &create.name, definitions)
        };
        create.changes.apply(&mut def);
        self.edit.put(def);
        self.work(Work::CreateDatabase {
            database: oid,
            template: create.template,
        });
        Ok(())
    }

    pub(super) fn alter_database(&mut self, oid: Oid, changes: &DatabaseChanges) -> Result<()> {
        let mut def = self.database(oid)?;
        changes.apply(&mut def);
        self.edit.put(def);
        Ok(())
    }

    pub(super) fn rename_database(&mut self, oid: Oid, name: &str) -> Result<()> {
        let def = self.database(oid)?;
        self.database_name_is_free(name)?;
        self.edit.put(DatabaseDef {
            name: name.to_owned(),
            ..def
        });
        self.work(Work::CloseDatabase {
            database: oid,
            force: false,
        });
        Ok(())
    }

    pub(super) fn drop_database(&mut self, oid: Oid, force: bool) -> Result<()> {
        self.drop_comments(oid, None);
        self.edit.delete(oid);
        self.work(Work::CloseDatabase {
            database: oid,
            force,
        });
        self.work(Work::DropDatabase(oid));
        Ok(())
    }
}
