//! Views: made, replaced, and kept true to the names of what they read.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use crate::binder;
use crate::command::{AlterTable, CreateView, Target, TargetKind};
use throng_catalog::builtin::class;
use throng_catalog::{Catalog, CheckOption, Relation, ViewDef, ViewDefault, ViewUse};
use throng_values::acl::Kind;

/// Whether a query bound over one relation means the same over the other, which has its oid.
fn reads_the_same(bound: &Relation, now: &Relation) -> bool {
    match (bound, now) {
        (Relation::Table(a), Relation::Table(b)) => {
            let shape = |t: &throng_catalog::TableDef| {
                let column = |c: &throng_catalog::ColumnDef| (c.name.clone(), c.ty, c.dropped);
                t.columns.iter().map(column).collect::<Vec<_>>()
            };
            a.name == b.name && a.schema == b.schema && shape(a) == shape(b)
        }
        (Relation::View(a), Relation::View(b)) => a == b,
        (a, b) => a.name() == b.name() && a.schema() == b.schema(),
    }
}

impl Run<'_> {
    pub(super) fn create_view(&mut self, create: &CreateView) -> Result<()> {
        // Others may have changed what the definition was bound over while its locks were waited
        // for.
        for bound in &create.over {
            let now = self.catalog().relation(bound.oid());
            if !now.is_some_and(|now| reads_the_same(bound, &now)) {
                let message = format!("relation \"{}\" was changed meanwhile", bound.name());
                return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
            }
        }
        self.are_there(&create.view.uses)?;
        let mut view = create.view.clone();
        view.schema = self.place(view.schema);
        match &create.old {
            Some(old) if self.catalog().view(old.oid) == Some(old) => {}
            Some(old) => {
                let message = format!("view \"{}\" was changed meanwhile", old.name);
                return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
            }
            None => {
                self.name_is_free(view.schema, &view.name)?;
                self.row_type_is_free(view.schema, &view.name)?;
                view.oid = self.host.next_oid();
                let (oid, owner, schema) = (view.oid, view.owner, view.schema);
                self.grant_defaults(class::RELATION, oid, owner, schema, Kind::Relation);
            }
        }
        self.edit.put(view);
        Ok(())
    }

    /// 42704 where something that a view names has gone meanwhile.
    pub(super) fn are_there(&self, uses: &[ViewUse]) -> Result<()> {
        match uses
            .iter()
            .find(|used| self.catalog().object(used.object).is_none())
        {
            None => Ok(()),
            Some(used) => {
                let message = format!("object with OID {} does not exist", used.object);
                Err(Error::new(state::UNDEFINED_OBJECT, message))
            }
        }
    }

    pub(super) fn alter_view(
        &mut self,
        oid: Oid,
        check: Option<CheckOption>,
        (options, defaults): (&[(String, String)], &[ViewDefault]),
    ) -> Result<()> {
        let view = (*self.view(oid)?).clone();
        self.edit.put(ViewDef {
            check,
            options: options.to_vec(),
            defaults: defaults.to_vec(),
            ..view
        });
        Ok(())
    }

    pub(super) fn view(&self, oid: Oid) -> Result<Arc<ViewDef>> {
        self.catalog().view(oid).cloned().ok_or_else(|| {
            let message = format!("relation with OID {oid} does not exist");
            Error::new(state::UNDEFINED_TABLE, message)
        })
    }

    /// After something got another name: writes the definitions anew of those among `views` that
    /// say it.
    pub(super) fn rewrite_views(&mut self, before: &Catalog, views: Vec<Oid>) -> Result<()> {
        for oid in views {
            let Some(view) = self.catalog().rule_of(oid) else {
                continue;
            };
            let query = binder::rewritten(&view, before, self.catalog(), self.host.eval())?;
            if query == view.query {
                continue;
            }
            match self.catalog().table(oid).cloned() {
                None => self.edit.put(ViewDef {
                    query,
                    ..(*view).clone()
                }),
                Some(table) => {
                    let mut table = (*table).clone();
                    if let Some(materialized) = &mut table.materialized {
                        materialized.query = query;
                    }
                    self.put_table(table);
                }
            }
        }
        Ok(())
    }

    /// After a table has got columns or lost some: what a view or a policy says of its columns may
    /// mean others now.
    pub(super) fn views_see_columns(
        &mut self,
        before: &Catalog,
        table: Oid,
        actions: &[AlterTable],
    ) -> Result<()> {
        let changes = |action: &AlterTable| {
            matches!(
                action,
                AlterTable::AddColumn { .. } | AlterTable::DropColumn { .. }
            )
        };
        if !actions.iter().any(changes) || self.catalog().table(table).is_none() {
            return Ok(());
        }
        self.policies_see_columns(before, table)?;
        let kind = TargetKind::Column(0);
        let mut views = self.views_naming(Target { kind, oid: table });
        views.retain(|view| before.rule_of(*view).is_some());
        self.rewrite_views(before, views)
    }

    /// The views whose definitions say the name of an object.
    pub(super) fn views_naming(&self, target: Target) -> Vec<Oid> {
        match target.kind {
            TargetKind::Schema => self.views_over_schema(target.oid),
            // A table's own sequences go to its new schema with it.
            TargetKind::Table | TargetKind::MaterializedView => {
                let sequences = self.catalog().sequences_of(target.oid).iter().copied();
                let relations = std::iter::once(target.oid).chain(sequences);
                let mut views: Vec<Oid> = relations
                    .flat_map(|oid| self.catalog().views_of(oid).to_vec())
                    .collect();
                views.sort();
                views.dedup();
                views
            }
            // A column is renamed in the table's children, too.
            TargetKind::Column(_) => {
                let tables = self.catalog().descendants(target.oid).into_iter();
                let mut views: Vec<Oid> = tables
                    .flat_map(|oid| self.catalog().views_of(oid).to_vec())
                    .collect();
                views.sort();
                views.dedup();
                views
            }
            _ => self.catalog().views_of(target.oid).to_vec(),
        }
    }

    /// The views that name a relation or a type of a schema.
    fn views_over_schema(&self, schema: Oid) -> Vec<Oid> {
        let catalog = self.catalog();
        let inside = |oid: Oid| {
            let relation = catalog.relation(oid).map(|r| r.schema());
            let of = relation
                .or_else(|| Some(catalog.made_type(oid)?.schema))
                .or_else(|| Some(catalog.routine(oid)?.schema));
            of == Some(schema)
        };
        catalog
            .rules()
            .into_iter()
            .filter(|view| view.uses.iter().any(|u| inside(u.object)))
            .map(|view| view.oid)
            .collect()
    }

    /// 0A000 for another type of a column that a view names.
    pub(super) fn views_keep_type(&self, relation: Oid, attnum: u16) -> Result<()> {
        let Some(view) = self.views_over_column(relation, attnum).into_iter().next() else {
            return Ok(());
        };
        let message = "cannot alter type of a column used by a view or rule";
        let detail = format!(
            "rule _RETURN on {} depends on column \"{}\"",
            self.describe(view),
            self.table(relation)?.column(attnum).name
        );
        Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(detail))
    }

    /// The views that name a column of a relation.
    pub(super) fn views_over_column(&self, relation: Oid, attnum: u16) -> Vec<Oid> {
        let names = |view: &&Oid| {
            self.catalog().rule_of(**view).is_some_and(|view| {
                view.uses
                    .iter()
                    .any(|u| u.object == relation && u.columns.contains(&attnum))
            })
        };
        let views = self.catalog().views_of(relation);
        views.iter().filter(names).copied().collect()
    }
}
