//! Relations that a definition is about, by what they are said to be.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::command::{Target, TargetKind};
use throng_catalog::Relation;
use throng_syntax::parse::ast::{self, ObjectKind};

impl Binder<'_> {
    pub(in crate::binder) fn find_relation_object(
        &mut self,
        kind: ObjectKind,
        name: &ast::Name,
    ) -> Result<Target> {
        let what = match kind {
            ObjectKind::Index => "index",
            ObjectKind::Sequence => "sequence",
            ObjectKind::View => "view",
            ObjectKind::MaterializedView => "materialized view",
            _ => "table",
        };
        let missing_schema = name
            .schema()
            .is_some_and(|s| self.schema_named(s).is_none());
        if missing_schema {
            let message = format!("schema \"{}\" does not exist", name.schema().unwrap_or(""));
            return Err(Error::new(state::INVALID_SCHEMA_NAME, message));
        }
        let Some(found) = self.find_relation(name)? else {
            let (code, what) = match kind {
                ObjectKind::Index => (state::UNDEFINED_OBJECT, "index"),
                // ALTER and DROP speak of what they were told to find.
                _ => (state::UNDEFINED_TABLE, what),
            };
            let message = format!("{what} \"{name}\" does not exist");
            return Err(Error::new(code, message));
        };
        let (target, owner) = match (kind, &found) {
            (ObjectKind::Table, Relation::Table(t)) if !t.is_materialized() => {
                (TargetKind::Table, t.owner)
            }
            (ObjectKind::MaterializedView, Relation::Table(t)) if t.is_materialized() => {
                (TargetKind::MaterializedView, t.owner)
            }
            (ObjectKind::View, Relation::View(v)) => (TargetKind::View, v.owner),
            (ObjectKind::Sequence, Relation::Sequence(s)) => (TargetKind::Sequence, s.owner),
            (ObjectKind::Index, Relation::Index(i)) => {
                let owner = self.catalog().table(i.table).map_or(Oid::NONE, |t| t.owner);
                (TargetKind::Index, owner)
            }
            (_, Relation::Virtual(table)) => {
                let message = format!("permission denied: \"{}\" is a system catalog", table.name);
                return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
            }
            (_, other) => {
                let article = if what == "index" { "an" } else { "a" };
                let message = format!("\"{}\" is not {article} {what}", name.last());
                let is = other.word();
                let article = if is == "index" { "an" } else { "a" };
                let hint = format!("Use DROP {} to remove {article} {is}.", is.to_uppercase());
                return Err(Error::new(state::WRONG_OBJECT_TYPE, message).hint(hint));
            }
        };
        self.must_own(owner, what, found.name())?;
        Ok(Target {
            kind: target,
            oid: found.oid(),
        })
    }
}
