//! What a new table has of its parents: columns and CHECK constraints, merged with its own by name.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::format_type;
use throng_types::{Error, Oid, Result};

use crate::binder::ddl::table::{Draft, no_position};
use crate::binder::{Binder, other_kind, slots_of_row};
use crate::command::{NewColumn, NewConstraint, NewConstraintKind};
use throng_catalog::{ColumnDef, ConstraintKind, Lineage, Persistence, Relation, TableDef};
use throng_syntax::parse::ast;

/// Columns as they come from the parents, and those of the table itself at their places among them.
pub(in crate::binder) struct Columns {
    pub all: Vec<NewColumn>,
    /// For each column that was written: its place.
    pub written: Vec<usize>,
}

fn wrong_kind(message: String) -> Error {
    Error::new(state::WRONG_OBJECT_TYPE, message)
}

impl Binder<'_> {
    /// The tables of INHERITS or PARTITION OF.
    pub(in crate::binder) fn parents(
        &mut self,
        ast: &ast::CreateTable,
        persistence: Persistence,
    ) -> Result<Vec<Arc<TableDef>>> {
        let mut parents: Vec<Arc<TableDef>> = Vec::new();
        if let Some(of) = &ast.partition_of {
            let parent = self.partitioned(&of.parent)?;
            let temporary = parent.persistence.is_temporary();
            if temporary != persistence.is_temporary() {
                let (child, kind) = match temporary {
                    true => ("permanent", "temporary"),
                    false => ("temporary", "permanent"),
                };
                return Err(wrong_kind(format!(
                    "cannot create a {child} relation as partition of {kind} relation \"{}\"",
                    parent.name
                )));
            }
            return Ok(vec![parent]);
        }
        for name in &ast.inherits {
            let parent = self.parent(name)?;
            if parent.persistence.is_temporary() && !persistence.is_temporary() {
                return Err(wrong_kind(format!(
                    "cannot inherit from temporary relation \"{}\"",
                    parent.name
                )));
            }
            if parents.iter().any(|p| p.oid == parent.oid) {
                let message = format!(
                    "relation \"{}\" would be inherited from more than once",
                    parent.name
                );
                return Err(Error::new(state::DUPLICATE_TABLE, message));
            }
            parents.push(parent);
        }
        if !parents.is_empty() && ast.partition_by.is_some() {
            let message = "cannot create partitioned table as inheritance child";
            return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
        }
        Ok(parents)
    }

    /// The table of ALTER TABLE … INHERIT.
    pub(in crate::binder) fn parent_to_inherit(
        &mut self,
        name: &ast::Name,
        child: &TableDef,
    ) -> Result<Oid> {
        let parent = self.parent(name)?;
        if parent.persistence.is_temporary() && !child.persistence.is_temporary() {
            return Err(wrong_kind(format!(
                "cannot inherit from temporary relation \"{}\"",
                parent.name
            )));
        }
        Ok(parent.oid)
    }

    /// The tables of TRUNCATE, and those of them whose children are not meant.
    pub(in crate::binder) fn truncated(
        &mut self,
        tables: &[(ast::Name, bool)],
    ) -> Result<(Vec<Oid>, Vec<Oid>)> {
        let (mut all, mut alone) = (Vec::with_capacity(tables.len()), Vec::new());
        for (name, only) in tables {
            let Some(table) = self.truncated_table(name)? else {
                continue;
            };
            if *only && table.is_partitioned() {
                let message = "cannot truncate only a partitioned table";
                return Err(wrong_kind(message.to_owned()).hint(
                    "Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions directly.",
                ));
            }
            if *only {
                alone.push(table.oid);
            }
            if !all.contains(&table.oid) {
                all.push(table.oid);
            }
        }
        Ok((all, alone))
    }

    /// A table to inherit from.
    fn parent(&mut self, name: &ast::Name) -> Result<Arc<TableDef>> {
        let parent = match self.relation(name).map_err(no_position)? {
            Relation::Table(table) if !table.is_materialized() => table,
            other => {
                return Err(wrong_kind(format!(
                    "inherited relation \"{}\" is not a table or foreign table",
                    other.name()
                )));
            }
        };
        self.must_own(parent.owner, "table", &parent.name)?;
        if parent.is_partitioned() {
            return Err(wrong_kind(format!(
                "cannot inherit from partitioned table \"{}\"",
                parent.name
            )));
        }
        if parent.bound.is_some() {
            return Err(wrong_kind(format!(
                "cannot inherit from partition \"{}\"",
                parent.name
            )));
        }
        Ok(parent)
    }

    /// The parents' columns, each name once. `written`: names that are given a default of their
    /// own.
    pub(in crate::binder) fn inherited_columns(
        &mut self,
        parents: &[Arc<TableDef>],
        partition: bool,
        own_defaults: &[String],
    ) -> Result<Vec<NewColumn>> {
        let mut all: Vec<NewColumn> = Vec::new();
        for parent in parents {
            for (_, column) in parent.live_columns() {
                let mut def = column.clone();
                def.missing = None;
                match column.hands_on_not_null() {
                    true => def.not_null_name = Some(parent.not_null_name(column)),
                    false => def.drop_not_null(),
                }
                def.inherited = 1;
                def.local = false;
                if !partition && def.identity.is_some() {
                    def.identity = None;
                    def.sequence = None;
                }
                let Some(known) = all.iter_mut().find(|c| c.def.name == def.name) else {
                    all.push(NewColumn {
                        def,
                        sequence: None,
                        default: None,
                        generated: None,
                    });
                    continue;
                };
                self.notices.push(
                    Error::new(
                        state::SUCCESSFUL_COMPLETION,
                        format!(
                            "merging multiple inherited definitions of column \"{}\"",
                            def.name
                        ),
                    )
                    .severity(throng_types::error::Severity::Notice),
                );
                if known.def.ty != def.ty {
                    let message = format!("inherited column \"{}\" has a type conflict", def.name);
                    return Err(
                        Error::new(state::DATATYPE_MISMATCH, message).detail(format!(
                            "{} versus {}",
                            format_type(known.def.ty),
                            format_type(def.ty)
                        )),
                    );
                }
                let stored = |c: &ColumnDef| c.generated.as_ref().map(|g| g.stored);
                if stored(&known.def) != stored(&def) {
                    let message = format!(
                        "inherited column \"{}\" has a generation conflict",
                        def.name
                    );
                    return Err(Error::new(state::DATATYPE_MISMATCH, message));
                }
                let text = |c: &ColumnDef| c.generated.as_ref().map(|g| g.expr.clone());
                if text(&known.def) != text(&def) && !own_defaults.contains(&def.name) {
                    let message = format!(
                        "column \"{}\" inherits conflicting generation expressions",
                        def.name
                    );
                    return Err(Error::new(state::INVALID_COLUMN_DEFINITION, message).hint(
                        "To resolve the conflict, specify a generation expression explicitly.",
                    ));
                }
                let has_default = |c: &ColumnDef| (c.default.clone(), c.sequence);
                let none = (None, None);
                let (old, new) = (has_default(&known.def), has_default(&def));
                known.def.inherited += 1;
                if !known.def.not_null {
                    known.def.not_null = def.not_null;
                    known.def.not_null_name = def.not_null_name.clone();
                }
                if old == none {
                    (known.def.default, known.def.sequence) = new;
                } else if new != none && old != new && !own_defaults.contains(&def.name) {
                    let message = format!(
                        "column \"{}\" inherits conflicting default values",
                        def.name
                    );
                    return Err(Error::new(state::INVALID_COLUMN_DEFINITION, message)
                        .hint("To resolve the conflict, specify a default explicitly."));
                }
            }
        }
        self.renumber(parents, &mut all);
        Ok(all)
    }

    /// What inherited columns are computed from has other numbers in the child.
    fn renumber(&self, parents: &[Arc<TableDef>], all: &mut [NewColumn]) {
        let names: Vec<String> = all.iter().map(|c| c.def.name.clone()).collect();
        let number = |name: &str| names.iter().position(|n| n == name).map(|at| at as u16 + 1);
        for column in all {
            let def = &mut column.def;
            let of = parents.iter().find(|p| p.attnum(&def.name).is_some());
            let (Some(generated), Some(parent)) = (&mut def.generated, of) else {
                continue;
            };
            let used = generated.columns.iter().map(|n| &parent.column(*n).name);
            generated.columns = used.filter_map(|name| number(name)).collect();
            generated.columns.sort_unstable();
        }
    }

    /// Puts the table's own columns among those of its parents.
    pub(in crate::binder) fn merge_columns(
        &mut self,
        mut all: Vec<NewColumn>,
        own: Vec<NewColumn>,
    ) -> Result<Columns> {
        let inherited = all.len();
        let mut written = Vec::with_capacity(own.len());
        for (position, column) in own.into_iter().enumerate() {
            let name = column.def.name.clone();
            let Some(at) = all[..inherited].iter().position(|c| c.def.name == name) else {
                written.push(all.len());
                all.push(column);
                continue;
            };
            let notice = match at == position {
                true => Error::new(
                    state::SUCCESSFUL_COMPLETION,
                    format!("merging column \"{name}\" with inherited definition"),
                ),
                false => Error::new(
                    state::SUCCESSFUL_COMPLETION,
                    format!("moving and merging column \"{name}\" with inherited definition"),
                )
                .detail("User-specified column moved to the position of the inherited column."),
            };
            self.notice(notice);
            let known = &mut all[at];
            if known.def.ty != column.def.ty {
                let message = format!("column \"{name}\" has a type conflict");
                return Err(
                    Error::new(state::DATATYPE_MISMATCH, message).detail(format!(
                        "{} versus {}",
                        format_type(known.def.ty),
                        format_type(column.def.ty)
                    )),
                );
            }
            known.def.local = true;
            written.push(at);
        }
        Ok(Columns { all, written })
    }

    /// The parents' CHECK constraints, merged with those of the draft, which come after them.
    pub(in crate::binder) fn inherited_checks(
        &mut self,
        parents: &[Arc<TableDef>],
        draft: &mut Draft,
    ) -> Result<()> {
        let mut found: Vec<NewConstraint> = Vec::new();
        for parent in parents {
            for constraint in self.catalog().constraints_of(parent.oid) {
                let ConstraintKind::Check { expr, .. } = &constraint.kind else {
                    continue;
                };
                if constraint.lineage.no_inherit {
                    continue;
                }
                let same_name =
                    |c: &&mut NewConstraint| c.name.as_deref() == Some(constraint.name.as_str());
                if let Some(known) = found.iter_mut().find(same_name) {
                    if !is_check(known, expr) {
                        let message = format!(
                            "check constraint name \"{}\" appears multiple times but with different expressions",
                            constraint.name
                        );
                        return Err(Error::new(state::DUPLICATE_OBJECT, message));
                    }
                    known.lineage.inherited += 1;
                    continue;
                }
                let ast = throng_syntax::parse::parse_expr(expr)?;
                let bound = self.expr_over_table(&ast, &draft.table, None)?;
                let mut columns: Vec<String> = Vec::new();
                bound.for_each_var(&mut |var| {
                    if var.column > 0 {
                        let name = &draft.table.column(var.column as u16).name;
                        if !columns.contains(name) {
                            columns.push(name.clone());
                        }
                    }
                });
                found.push(NewConstraint {
                    only: false,
                    name: Some(constraint.name.clone()),
                    kind: NewConstraintKind::Check {
                        expr: expr.clone(),
                        columns,
                        bound: slots_of_row(bound),
                    },
                    not_valid: false,
                    deferral: constraint.deferral,
                    lineage: Lineage {
                        inherited: 1,
                        local: false,
                        ..Lineage::default()
                    },
                });
            }
        }
        let mut merged = Vec::new();
        for own in std::mem::take(&mut draft.constraints) {
            let known = found
                .iter_mut()
                .find(|c| c.name.is_some() && c.name == own.name);
            match (known, &own.kind) {
                (Some(known), NewConstraintKind::Check { expr, .. }) if is_check(known, expr) => {
                    let name = own.name.as_deref().unwrap_or_default();
                    if own.lineage.no_inherit {
                        let message = format!(
                            "constraint \"{name}\" conflicts with inherited constraint on relation \"{}\"",
                            draft.table.name
                        );
                        return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message));
                    }
                    known.lineage.local = true;
                    let message =
                        format!("merging constraint \"{name}\" with inherited definition");
                    self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                }
                _ => merged.push(own),
            }
        }
        found.extend(merged);
        draft.constraints = found;
        Ok(())
    }
}

fn is_check(constraint: &NewConstraint, text: &str) -> bool {
    matches!(&constraint.kind, NewConstraintKind::Check { expr, .. } if expr == text)
}

/// What was written of a column that parents have too, put into what comes from them.
pub(in crate::binder) fn refine(inherited: &mut NewColumn, own: NewColumn) -> Result<()> {
    let def = &mut inherited.def;
    let refused = |what: String| Error::new(state::INVALID_COLUMN_DEFINITION, what);
    let name = &def.name;
    let by_default = own.def.default.is_some() || own.def.sequence.is_some();
    match (&def.generated, &own.def.generated) {
        (Some(_), _) if own.def.identity.is_some() => {
            return Err(refused(format!(
                "column \"{name}\" inherits from generated column but specifies identity"
            )));
        }
        (Some(_), None) if by_default || own.default.is_some() => {
            return Err(refused(format!(
                "column \"{name}\" inherits from generated column but specifies default"
            )));
        }
        (Some(parent), Some(child)) if parent.stored != child.stored => {
            return Err(other_kind(
                state::INVALID_COLUMN_DEFINITION,
                name,
                parent,
                child,
            ));
        }
        (None, Some(_)) => {
            let message = format!("child column \"{name}\" specifies generation expression");
            return Err(refused(message)
                .hint("A child table column cannot be generated unless its parent column is."));
        }
        _ => {}
    }
    if own.def.generated.is_some() {
        def.generated = own.def.generated;
        inherited.generated = own.generated;
    }
    if own.def.not_null {
        def.not_null = true;
        def.not_null_name = own.def.not_null_name;
        def.not_null_alone = own.def.not_null_alone;
    }
    if by_default || own.default.is_some() {
        def.default = own.def.default;
        def.sequence = own.def.sequence;
    }
    if own.def.identity.is_some() {
        def.identity = own.def.identity;
    }
    if own.sequence.is_some() {
        inherited.sequence = own.sequence;
    }
    inherited.default = own.default;
    Ok(())
}

/// Nothing but the parents' oids.
pub(in crate::binder) fn oids(parents: &[Arc<TableDef>]) -> Vec<Oid> {
    parents.iter().map(|p| p.oid).collect()
}
