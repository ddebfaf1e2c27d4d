//! ALTER TABLE's parts that are only kept: storage, compression, clustering, replica identity.

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Result, SqlType};

use crate::binder::Binder;
use crate::binder::ddl::table::no_position;
use crate::command::{AlterTable, TableMark};
use throng_catalog::{Compression, IndexDef, ReplicaIdentity, Storage, TableDef};
use throng_syntax::parse::ast::{self, Mark};

impl Binder<'_> {
    pub(in crate::binder) fn mark(
        &mut self,
        table: &TableDef,
        mark: &Mark,
    ) -> Result<Option<AlterTable>> {
        let column = |name: &str| self.target_column(table, name, 0).map_err(no_position);
        let mark = match mark {
            Mark::Storage { column: name, word } => {
                let attnum = column(name)?;
                let def = table.column(attnum);
                let storage = Storage::said(word, def.ty, &type_name(def.shown_type()))?;
                TableMark::Storage { attnum, storage }
            }
            Mark::Compression { column: name, word } => {
                let attnum = column(name)?;
                let def = table.column(attnum);
                let shown = type_name(def.shown_type());
                let compression = self.compression(word, def.ty, &shown)?;
                TableMark::Compression {
                    attnum,
                    compression,
                }
            }
            Mark::ClusterOn(None) => TableMark::ClusterOn(None),
            Mark::ClusterOn(Some(name)) => {
                TableMark::ClusterOn(Some(self.index_to_cluster(table, Some(name))?))
            }
            Mark::ReplicaIdentity(identity) => {
                TableMark::ReplicaIdentity(self.replica_identity(table, identity)?)
            }
            Mark::AccessMethod(name) => {
                must_be_heap(name.as_deref())?;
                return Ok(None);
            }
        };
        Ok(Some(AlterTable::Mark(mark)))
    }

    /// What COMPRESSION says, which is kept and steers nothing.
    pub(in crate::binder) fn compression(
        &mut self,
        word: &str,
        ty: SqlType,
        shown: &str,
    ) -> Result<Option<Compression>> {
        let said = Compression::said(word, ty, shown)?;
        if said.is_some() {
            let message = format!("compression method \"{word}\" is kept and has no effect");
            let notice = Error::new(state::SUCCESSFUL_COMPLETION, message);
            self.notice(notice.detail("Values are not compressed."));
        }
        Ok(said)
    }

    fn replica_identity(
        &self,
        table: &TableDef,
        said: &ast::ReplicaIdentity,
    ) -> Result<ReplicaIdentity> {
        let name = match said {
            ast::ReplicaIdentity::Default => return Ok(ReplicaIdentity::Default),
            ast::ReplicaIdentity::Nothing => return Ok(ReplicaIdentity::Nothing),
            ast::ReplicaIdentity::Full => return Ok(ReplicaIdentity::Full),
            ast::ReplicaIdentity::Index(name) => name,
        };
        let found = self.catalog().relation_in(table.schema, name);
        let index = match found.and_then(|found| self.catalog().index(found.oid()).cloned()) {
            Some(index) => index,
            None => {
                let message = format!(
                    "index \"{name}\" for table \"{}\" does not exist",
                    table.name
                );
                return Err(Error::new(state::UNDEFINED_OBJECT, message));
            }
        };
        self.may_identify(table, &index)?;
        Ok(ReplicaIdentity::Index(index.oid))
    }

    fn may_identify(&self, table: &TableDef, index: &IndexDef) -> Result<()> {
        let name = &index.name;
        let wrong = |message: String| Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        let refused = |what: &str| {
            let message = format!("cannot use {what} index \"{name}\" as replica identity");
            Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
        };
        if index.table != table.oid {
            return wrong(format!(
                "\"{name}\" is not an index for table \"{}\"",
                table.name
            ));
        }
        if !index.unique {
            return wrong(format!(
                "cannot use non-unique index \"{name}\" as replica identity"
            ));
        }
        if self.catalog().is_deferrable(index.oid) {
            return refused("non-immediate");
        }
        if !index.terms.exprs.is_empty() {
            return refused("expression");
        }
        if index.terms.predicate.is_some() {
            return refused("partial");
        }
        for key in &index.columns {
            let column = table.column(key.attnum);
            if !column.not_null {
                return wrong(format!(
                    "index \"{name}\" cannot be used as replica identity because column \"{}\" is nullable",
                    column.name
                ));
            }
        }
        Ok(())
    }
}

/// Tables have one access method.
fn must_be_heap(name: Option<&str>) -> Result<()> {
    match name {
        None | Some("heap") => Ok(()),
        Some(name @ ("btree" | "hash" | "gin" | "gist" | "spgist" | "brin")) => {
            let message = format!("access method \"{name}\" is not of type TABLE");
            Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
        }
        Some(name) => {
            let message = format!("access method \"{name}\" does not exist");
            Err(Error::new(state::UNDEFINED_OBJECT, message))
        }
    }
}
