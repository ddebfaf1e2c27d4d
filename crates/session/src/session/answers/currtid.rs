//! `currtid2`: the newest version of a row that the statement sees, from the place of an older one.

use throng_access::Visibility;
use throng_bind::binder;
use throng_catalog::{Relation, TableDef};
use throng_types::error::state;
use throng_types::{Error, Result, Tid};
use throng_values::acl::right;
use throng_values::func::EvalStop;

use crate::session::answers::eval_host::SessionHost;
use throng_exec::run::Suspension;
use throng_exec::table::Table;

impl SessionHost<'_> {
    pub(in crate::session) fn latest_place(&self, name: &str, at: Tid) -> Result<Tid, EvalStop> {
        let relation = self.relation(name)?;
        match &relation {
            Relation::Table(table) => self.latest_in(table, at),
            Relation::View(view) => {
                let source = binder::ctid_source(view, self.catalog, self.eval())?;
                match self.catalog.table(source) {
                    Some(table) => self.latest_in(table, at),
                    None => Err(Error::internal("a view of a table that is gone").into()),
                }
            }
            Relation::Sequence(_) => Ok(at),
            Relation::Index(index) => {
                let message = format!("cannot open relation \"{}\"", index.name);
                Err(Error::new(state::WRONG_OBJECT_TYPE, message)
                    .detail("This operation is not supported for indexes.")
                    .into())
            }
            other => Err(self.no_places(other.schema(), other.name()).into()),
        }
    }

    fn no_places(&self, schema: throng_types::Oid, name: &str) -> Error {
        let schema = self.catalog.schema(schema).map_or("", |s| s.name.as_str());
        let message = format!("cannot look at latest visible tid for relation \"{schema}.{name}\"");
        Error::new(state::FEATURE_NOT_SUPPORTED, message)
    }

    fn latest_in(&self, def: &std::sync::Arc<TableDef>, mut at: Tid) -> Result<Tid, EvalStop> {
        let relation = Relation::Table(def.clone());
        let role = self.session.current_role_oid();
        if self.catalog.relation_rights(role, &relation, right::SELECT) == 0 {
            let message = format!("permission denied for table {}", def.name);
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message).into());
        }
        if def.is_partitioned() {
            return Err(self.no_places(def.schema, &def.name).into());
        }
        let table = Table::of(def, &self.session.engine.store, &self.eval())?;
        if at.block >= table.heap.blocks().map_err(Suspension::from)? {
            let message = format!(
                "tid ({}, {}) is not valid for relation \"{}\"",
                at.block, at.slot, def.name
            );
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message).into());
        }
        let snapshot = self.session.transaction()?.txn.latest_snapshot();
        let mut bytes = Vec::new();
        let mut latest = at;
        let mut made_by = None;
        loop {
            self.session.handle.cancel_flag().check()?;
            let version = table.heap.read_version(at, &mut bytes);
            let Some(header) = version.map_err(Suspension::from)? else {
                return Ok(latest);
            };
            // The place may have been given to another row.
            if made_by.is_some_and(|xid| header.xmin != xid) {
                return Ok(latest);
            }
            if snapshot.visible(&header) {
                latest = at;
            }
            if header.xmax_is_void() || header.next == at {
                return Ok(latest);
            }
            (at, made_by) = (header.next, Some(header.xmax));
        }
    }
}
