//! ALTER TABLE.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{made, type_name};
use throng_types::{Error, Oid, Result, SqlType, oid};

use crate::binder::ddl::alter_other::{is_other, must_be_called, must_be_ours};
use crate::binder::ddl::alter_pass::{
    Pass, Retyped, added_constraint, in_passes, is_foreign_key, not_validated, validate_new,
};
use crate::binder::ddl::domain::Declared;
use crate::binder::ddl::table::{Draft, check_storable, identity, no_position};
use crate::binder::ddl::{alter_tag, said_relation};
use crate::binder::dml::row_names;
use crate::binder::query::scope::Scope;
use crate::binder::{Binder, Clause, ddl::options, slots_of_row};
use crate::command::{AlterTable, Ddl, NewConstraintKind, SetExpression, Target, TargetKind};
use crate::tree::expr::Expr;
use throng_catalog::{ColumnDef, ConstraintDef, ConstraintKind, Persistence, Relation, TableDef};
use throng_syntax::parse::ast::{
    self, AlterAction, NameOrNumber, ObjectChange, ObjectKind, Pos, TableConstraintKind as T,
};
use throng_values::func::{CastContext, find_cast};

impl Binder<'_> {
    pub(in crate::binder) fn alter_table(
        &mut self,
        (kind, name): (ObjectKind, &ast::Name),
        only: bool,
        if_exists: bool,
        actions: &[AlterAction],
    ) -> Result<Ddl> {
        let found = self.find_relation(name)?;
        // Any relation may be given away as a table.
        if let [AlterAction::OwnerTo(role)] = actions
            && found
                .as_ref()
                .is_some_and(|found| !matches!(found, Relation::Table(_)))
        {
            let change = ObjectChange::Owner(role.clone());
            return self.alter_object(kind, name, if_exists, &change);
        }
        if let Some(other) = found.filter(is_other) {
            return self.alter_other(kind, &other, actions);
        }
        let Some(table) = self.owned_table(name, if_exists)? else {
            return Ok(Ddl::Nothing {
                tag: alter_tag(kind),
            });
        };
        must_be_called(kind, &Relation::Table(table.clone()))?;
        let has_key = self.catalog().primary_key(table.oid).is_some();
        let mut draft = Draft {
            table: (*table).clone(),
            has_key,
            constraints: vec![],
        };
        let mut bound = Vec::with_capacity(actions.len());
        for action in actions {
            self.may_alter(&table, action)?;
        }
        self.identities_stay_numbers(&table, actions)?;
        let mut retyped = Retyped::new(&table);
        // Foreign keys of new columns come when all keys that they may refer to are there.
        let mut foreign = Vec::new();
        for action in in_passes(actions) {
            if Pass::of(action) >= Pass::OldIndex {
                retyped.take_indexes(self, &draft.table, &mut bound)?;
            }
            if Pass::of(action) >= Pass::AddOther {
                bound.append(&mut foreign);
            }
            retyped.must_be_first(action, &draft.table)?;
            let before = bound.len();
            self.alter_action(action, &mut draft, &mut bound)?;
            if Pass::of(action) == Pass::AddColumn {
                foreign.extend(bound.extract_if(before.., |new| is_foreign_key(new)));
            }
        }
        bound.append(&mut foreign);
        retyped.take_indexes(self, &draft.table, &mut bound)?;
        for action in &mut bound {
            if let AlterTable::EnableTriggers(change) = action {
                change.only = only;
            }
        }
        Ok(Ddl::AlterTable {
            table: table.oid,
            actions: bound,
            only,
            said: said_relation(kind).unwrap_or(TargetKind::Table),
        })
    }

    pub(in crate::binder) fn alter_action(
        &mut self,
        action: &AlterAction,
        draft: &mut Draft,
        out: &mut Vec<AlterTable>,
    ) -> Result<()> {
        let column = |b: &Self, draft: &Draft, name: &str| {
            b.target_column(&draft.table, name, 0).map_err(no_position)
        };
        match action {
            AlterAction::EnableTrigger(_) | AlterAction::RowSecurity(_) => {
                out.extend(self.switched(action, &mut draft.table)?);
            }
            AlterAction::AddColumn {
                column,
                if_not_exists,
            } => {
                if draft.table.attnum(&column.name).is_some() {
                    let message = format!(
                        "column \"{}\" of relation \"{}\" already exists",
                        column.name, draft.table.name
                    );
                    if *if_not_exists {
                        let notice = Error::new(state::DUPLICATE_COLUMN, message + ", skipping");
                        self.notice(notice);
                        return Ok(());
                    }
                    return Err(Error::new(state::DUPLICATE_COLUMN, message));
                }
                let mut new = self.column_def(column, &draft.table)?;
                self.must_not_hold_itself(&draft.table, new.def.shown_type())?;
                draft.table.columns.push(new.def.clone());
                self.column_constraints(column, &mut new, draft)?;
                if let Some(last) = draft.table.columns.last_mut() {
                    *last = new.def.clone();
                }
                // A foreign key goes to the partitions too, which have the column only after this.
                let (keys, constraints): (Vec<_>, Vec<_>) = std::mem::take(&mut draft.constraints)
                    .into_iter()
                    .partition(|c| matches!(c.kind, NewConstraintKind::ForeignKey { .. }));
                out.push(AlterTable::AddColumn {
                    column: Box::new(new),
                    constraints,
                });
                out.extend(keys.into_iter().map(AlterTable::AddConstraint));
            }
            AlterAction::DropColumn {
                column: name,
                if_exists,
                cascade,
            } => {
                let Some(attnum) = draft.table.attnum(name) else {
                    if *if_exists {
                        self.notice(Error::new(
                            state::SUCCESSFUL_COMPLETION,
                            format!(
                                "column \"{name}\" of relation \"{}\" does not exist, skipping",
                                draft.table.name
                            ),
                        ));
                        return Ok(());
                    }
                    return column(self, draft, name).map(|_| ());
                };
                draft.table.columns[attnum as usize - 1].dropped = true;
                let key = self.catalog().primary_key(draft.table.oid);
                if key.is_some_and(|key| key.columns.iter().any(|c| c.attnum == attnum)) {
                    draft.has_key = false;
                }
                out.push(AlterTable::DropColumn {
                    attnum,
                    cascade: *cascade,
                });
            }
            AlterAction::SetDefault {
                column: name,
                default,
            } => {
                let attnum = column(self, draft, name)?;
                let mut def = draft.table.column(attnum).clone();
                if let Some(generated) = &def.generated {
                    let what = match (default, generated.stored) {
                        (Some(_), _) => Some("SET EXPRESSION"),
                        (None, true) => Some("DROP EXPRESSION"),
                        (None, false) => None,
                    };
                    return Err(is_generated(&draft.table, name, what));
                }
                if def.identity.is_some() {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" is an identity column",
                        draft.table.name
                    );
                    let error = Error::new(state::SYNTAX_ERROR, message);
                    return Err(match default {
                        Some(_) => error,
                        None => error
                            .hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."),
                    });
                }
                def.default = None;
                def.sequence = None;
                if let Some(source) = default {
                    self.set_default(&mut def, source).map_err(no_position)?;
                }
                out.push(AlterTable::SetDefault {
                    attnum,
                    default: def.default.clone(),
                    sequence: def.sequence,
                });
                draft.table.columns[attnum as usize - 1] = def;
            }
            AlterAction::SetNotNull(name) => {
                let attnum = column(self, draft, name)?;
                let value = self.virtual_value(&draft.table, attnum)?;
                draft.table.columns[attnum as usize - 1].not_null = true;
                out.push(AlterTable::SetNotNull {
                    attnum,
                    value,
                    name: None,
                    no_inherit: false,
                });
            }
            AlterAction::DropNotNull(name) => {
                let attnum = column(self, draft, name)?;
                if draft.table.column(attnum).identity.is_some() {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" is an identity column",
                        draft.table.name
                    );
                    return Err(Error::new(state::SYNTAX_ERROR, message));
                }
                let key = self.catalog().primary_key(draft.table.oid);
                let key = key.filter(|_| draft.has_key);
                if key.is_some_and(|key| key.columns.iter().any(|c| c.attnum == attnum)) {
                    let message = format!("column \"{name}\" is in a primary key");
                    return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
                }
                draft.table.columns[attnum as usize - 1].not_null = false;
                out.push(AlterTable::DropNotNull(attnum));
            }
            AlterAction::SetType {
                column: name,
                ty,
                collation,
                using,
                pos,
            } => {
                let attnum = column(self, draft, name)?;
                let action = self.set_type(
                    &draft.table,
                    attnum,
                    ty,
                    collation.as_ref(),
                    using.as_ref(),
                    *pos,
                )?;
                if let AlterTable::SetType { ty, domain, .. } = &action {
                    let column = &mut draft.table.columns[attnum as usize - 1];
                    (column.ty, column.domain) = (*ty, *domain);
                }
                out.push(action);
            }
            AlterAction::AddIdentity {
                column: name,
                always,
                options,
            } => {
                let attnum = column(self, draft, name)?;
                let def = draft.table.column(attnum);
                let of = format!("column \"{name}\" of relation \"{}\"", draft.table.name);
                let wrong = |message: String| {
                    Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
                };
                let options = self.identity_options(def.ty, options)?;
                if !def.not_null {
                    return wrong(format!(
                        "{of} must be declared NOT NULL before identity can be added"
                    ));
                }
                if def.identity.is_some() {
                    return wrong(format!("{of} is already an identity column"));
                }
                if def.default.is_some() || def.sequence.is_some() || def.generated.is_some() {
                    return wrong(format!("{of} already has a default value"));
                }
                draft.table.columns[attnum as usize - 1].identity = Some(identity(*always));
                out.push(AlterTable::AddIdentity {
                    attnum,
                    identity: identity(*always),
                    options,
                });
            }
            AlterAction::SetIdentity {
                column: name,
                always,
                options,
            } => {
                let attnum = column(self, draft, name)?;
                if draft.table.column(attnum).identity.is_none() {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" is not an identity column",
                        draft.table.name
                    );
                    return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
                }
                let (options, _) = self.sequence_options(options)?;
                let identity = always.map(identity);
                out.push(AlterTable::SetIdentity {
                    attnum,
                    identity,
                    options,
                });
            }
            AlterAction::DropIdentity {
                column: name,
                if_exists,
            } => {
                let attnum = column(self, draft, name)?;
                if draft.table.column(attnum).identity.is_none() {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" is not an identity column",
                        draft.table.name
                    );
                    let code = state::OBJECT_NOT_IN_PREREQUISITE_STATE;
                    if !if_exists {
                        return Err(Error::new(code, message));
                    }
                    self.notice(Error::new(code, message + ", skipping"));
                    return Ok(());
                }
                let def = &mut draft.table.columns[attnum as usize - 1];
                (def.identity, def.sequence) = (None, None);
                out.push(AlterTable::DropIdentity { attnum });
            }
            AlterAction::SetExpression {
                column: name,
                source,
            } => {
                let attnum = column(self, draft, name)?;
                let action = self.set_expression(&draft.table, attnum, source)?;
                draft.table.columns[attnum as usize - 1].generated = Some(action.generated.clone());
                out.push(AlterTable::SetExpression(action));
            }
            AlterAction::DropExpression {
                column: name,
                if_exists,
            } => {
                let attnum = column(self, draft, name)?;
                let def = draft.table.column(attnum);
                if def.is_virtual() {
                    let what = "ALTER TABLE / DROP EXPRESSION is not supported for virtual generated columns";
                    return Err(on_virtual(&draft.table, name, what));
                }
                if def.generated.is_none() {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" is not a generated column",
                        draft.table.name
                    );
                    if !if_exists {
                        return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
                    }
                    let message = message + ", skipping";
                    self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                    return Ok(());
                }
                draft.table.columns[attnum as usize - 1].generated = None;
                out.push(AlterTable::DropExpression { attnum });
            }
            AlterAction::AddConstraint(constraint) => {
                if let T::NotNull(name) = &constraint.kind {
                    let attnum = column(self, draft, name)?;
                    let value = self.virtual_value(&draft.table, attnum)?;
                    let no_inherit = constraint.no_inherit;
                    let of = &mut draft.table.columns[attnum as usize - 1];
                    if !of.not_null {
                        of.not_null_name.clone_from(&constraint.name);
                    }
                    of.not_null = true;
                    if constraint.not_valid {
                        return Err(Error::unsupported("NOT VALID of a NOT NULL constraint"));
                    }
                    if no_inherit && draft.table.is_partitioned() {
                        let message =
                            "not-null constraints on partitioned tables cannot be NO INHERIT";
                        return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
                    }
                    out.push(AlterTable::SetNotNull {
                        attnum,
                        value,
                        name: constraint.name.clone(),
                        no_inherit,
                    });
                    return Ok(());
                }
                let new = self.table_constraint(constraint, draft);
                let placed = matches!(constraint.kind, T::UsingIndex { .. });
                let new = new.map_err(|e| if placed { e } else { no_position(e) })?;
                out.push(AlterTable::AddConstraint(new));
            }
            AlterAction::DropConstraint {
                name,
                if_exists,
                cascade,
            } => match self.constraint_that_stays(&draft.table, name, out) {
                Err(_) if draft.table.not_null_named(name).is_some() => {
                    out.extend(self.drop_not_null_named(&draft.table, name)?);
                }
                Ok(constraint) => {
                    let key = self.catalog().primary_key(draft.table.oid);
                    if key.is_some_and(|key| key.constraint == Some(constraint)) {
                        draft.has_key = false;
                    }
                    out.push(AlterTable::DropConstraint {
                        constraint,
                        cascade: *cascade,
                    });
                }
                Err(e) if *if_exists => {
                    let message = format!("{}, skipping", e.message());
                    self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                }
                Err(e) => return Err(e),
            },
            AlterAction::ValidateConstraint(name) => {
                if let Some(new) = added_constraint(name, out) {
                    return validate_new(new, name, &draft.table.name);
                }
                if draft.table.not_null_named(name).is_some() {
                    return Ok(());
                }
                let constraint = self.constraint_that_stays(&draft.table, name, out)?;
                let found = self.catalog().constraint(constraint);
                if found.is_some_and(|c| c.index().is_some()) {
                    return Err(not_validated(name, &draft.table.name));
                }
                let check = self.stored_check(&draft.table, constraint)?;
                out.push(AlterTable::ValidateConstraint { constraint, check });
            }
            AlterAction::AlterConstraint { name, said } => {
                let no_key = || {
                    let message = format!(
                        "constraint \"{name}\" of relation \"{}\" is not a foreign key constraint",
                        draft.table.name
                    );
                    Err(Error::new(state::WRONG_OBJECT_TYPE, message))
                };
                if let Some(new) = added_constraint(name, out) {
                    if !matches!(new.kind, NewConstraintKind::ForeignKey { .. }) {
                        return no_key();
                    }
                    new.deferral = new.deferral.altered(*said);
                    return Ok(());
                }
                let constraint = self.constraint_that_stays(&draft.table, name, out)?;
                let found = self.catalog().constraint(constraint);
                if found.is_some_and(|c| c.foreign_key().is_none()) {
                    return no_key();
                }
                let before = found.map(|c| c.deferral).unwrap_or_default();
                let deferral = before.altered(*said);
                out.push(AlterTable::AlterConstraint {
                    constraint,
                    deferral,
                });
            }
            AlterAction::SetOptions(options) => {
                options::check(options, options::TABLE)?;
                out.push(AlterTable::SetOptions(options.clone()));
            }
            AlterAction::ResetOptions(names) => {
                out.push(AlterTable::ResetOptions(names.clone()));
            }
            AlterAction::SetLogged(logged) => out.push(AlterTable::SetPersistence(match logged {
                true => Persistence::Permanent,
                false => Persistence::Unlogged,
            })),
            AlterAction::OwnerTo(role) => {
                let owner = self.role(role)?;
                let kind = TargetKind::Table;
                let oid = draft.table.oid;
                self.may_give(Target { kind, oid }, owner)?;
                out.push(AlterTable::SetOwner(owner));
            }
            AlterAction::Inherit(name) => {
                let parent = self.parent_to_inherit(name, &draft.table)?;
                out.push(AlterTable::Inherit(parent));
            }
            AlterAction::NoInherit(name) => {
                let parent = self.relation(name).map_err(no_position)?;
                out.push(AlterTable::NoInherit(parent.oid()));
            }
            AlterAction::Mark(mark) => out.extend(self.mark(&draft.table, mark)?),
            AlterAction::SetStatistics(NameOrNumber::Number(_), _) => {
                let message = "cannot refer to non-index column by number";
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
            }
            AlterAction::SetStatistics(NameOrNumber::Name(name), target) => {
                let attnum = self.column_to_analyze(&draft.table, name)?;
                let target = self.statistics_target(*target)?;
                out.push(AlterTable::SetStatistics { attnum, target });
            }
            AlterAction::SetTablespace(name) => must_be_ours(name)?,
            AlterAction::SetColumnOptions(name, options) => {
                let attnum = self.column_to_analyze(&draft.table, name)?;
                options::check(options, options::COLUMN)?;
                let options = options.clone();
                out.push(AlterTable::SetColumnOptions { attnum, options });
            }
            AlterAction::ResetColumnOptions(name, names) => {
                let attnum = self.column_to_analyze(&draft.table, name)?;
                let names = names.clone();
                out.push(AlterTable::ResetColumnOptions { attnum, names });
            }
        }
        Ok(())
    }

    /// A table's rows have no rows of the table in them.
    fn must_not_hold_itself(&self, table: &TableDef, ty: Oid) -> Result<()> {
        match made::composite_oid(table.oid) {
            Some(row) if made::is_made(ty) => self.must_not_contain(ty, row),
            _ => Ok(()),
        }
    }

    fn set_expression(
        &mut self,
        table: &TableDef,
        attnum: u16,
        source: &ast::Source,
    ) -> Result<SetExpression> {
        let column = table.column(attnum);
        let Some(old) = &column.generated else {
            let message = format!(
                "column \"{}\" of relation \"{}\" is not a generated column",
                column.name, table.name
            );
            return Err(Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        };
        let constraints = self.catalog().constraints_of(table.oid).to_vec();
        let is_check = |c: &ConstraintDef| matches!(c.kind, ConstraintKind::Check { .. });
        if !old.stored && constraints.iter().any(|c| is_check(c)) {
            let what = "ALTER TABLE / SET EXPRESSION is not supported for virtual generated columns in tables with check constraints";
            return Err(on_virtual(table, &column.name, what));
        }
        let (generated, value) = self
            .generation(table, column, source, old.stored)
            .map_err(no_position)?;
        let mut checks = Vec::new();
        for constraint in constraints {
            if let ConstraintKind::Check { columns, .. } = &constraint.kind
                && columns.contains(&attnum)
                && let Some(check) = self.stored_check(table, constraint.oid)?
            {
                checks.push((constraint.name.clone(), check));
            }
        }
        Ok(SetExpression {
            attnum,
            generated,
            value,
            checks,
        })
    }

    /// A CHECK constraint's condition over the row; None for other constraints.
    pub(in crate::binder) fn stored_check(
        &mut self,
        table: &TableDef,
        constraint: Oid,
    ) -> Result<Option<Expr>> {
        let kind = self.catalog().constraint(constraint).map(|c| &c.kind);
        let Some(ConstraintKind::Check { expr, .. }) = kind else {
            return Ok(None);
        };
        let ast = throng_syntax::parse::parse_expr(expr)?;
        let bound = self.expr_over_table(&ast, table, None)?;
        Ok(Some(slots_of_row(bound)))
    }

    /// RENAME CONSTRAINT of a NOT NULL.
    pub(in crate::binder) fn rename_not_null(
        &mut self,
        table: &TableDef,
        name: &str,
        to: &str,
        only: bool,
    ) -> Result<Ddl> {
        let Some(attnum) = table.not_null_named(name) else {
            return Err(Error::internal("a constraint that was found is gone"));
        };
        let column = table.column(attnum);
        for child in self.catalog().children_of(table.oid) {
            let Some(child) = self.catalog().table(*child).filter(|_| !only) else {
                continue;
            };
            if child.not_null_named(name).is_none() {
                let message = format!(
                    "constraint \"{name}\" for table \"{}\" does not exist",
                    child.name
                );
                return Err(Error::new(state::UNDEFINED_OBJECT, message));
            }
        }
        if self.inherits_not_null(table, column) {
            let message = format!("cannot rename inherited constraint \"{name}\"");
            return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
        }
        Ok(Ddl::AlterTable {
            table: table.oid,
            only,
            said: TargetKind::Table,
            actions: vec![AlterTable::RenameNotNull {
                attnum,
                name: to.to_owned(),
            }],
        })
    }

    /// Whether a column is NOT NULL because a parent's is.
    fn inherits_not_null(&self, table: &TableDef, column: &ColumnDef) -> bool {
        let parents = table.parents.iter();
        let mut parents = parents.filter_map(|parent| self.catalog().table(*parent));
        parents.any(|p| {
            let of_parent = p.attnum(&column.name).map(|n| p.column(n));
            of_parent.is_some_and(ColumnDef::hands_on_not_null)
        })
    }

    /// DROP CONSTRAINT of a NOT NULL.
    fn drop_not_null_named(&self, table: &TableDef, name: &str) -> Result<Option<AlterTable>> {
        let Some(attnum) = table.not_null_named(name) else {
            return Ok(None);
        };
        let column = table.column(attnum);
        if column.identity.is_some() {
            let message = format!(
                "column \"{}\" of relation \"{}\" is an identity column",
                column.name, table.name
            );
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        if self.inherits_not_null(table, column) {
            let message = format!(
                "cannot drop inherited constraint \"{name}\" of relation \"{}\"",
                table.name
            );
            return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
        }
        Ok(Some(AlterTable::DropNotNull(attnum)))
    }

    pub(in crate::binder) fn table_constraint_named(
        &self,
        table: &TableDef,
        name: &str,
    ) -> Result<Oid> {
        let found = self.catalog().constraint_by_name(table.oid, name);
        found
            .map(|c| c.oid)
            .ok_or_else(|| no_constraint(table, name))
    }

    pub(in crate::binder) fn set_type(
        &mut self,
        table: &TableDef,
        attnum: u16,
        ty: &ast::TypeName,
        collation: Option<&ast::Name>,
        using: Option<&ast::Expr>,
        pos: Pos,
    ) -> Result<AlterTable> {
        let Declared { ty: to, domain } = self.declared_for_new(ty)?;
        self.must_not_hold_itself(table, domain.unwrap_or(to.oid))?;
        let column = table.column(attnum);
        check_storable(&column.name, to.oid)?;
        let triggers = self.catalog().triggers_of(table.oid).iter();
        if let Some(trigger) = triggers.into_iter().find(|t| t.names(attnum)) {
            let message = "cannot alter type of a column used in a trigger definition";
            return Err(
                Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(format!(
                    "trigger {} on table {} depends on column \"{}\"",
                    trigger.name, table.name, column.name
                )),
            );
        }
        if let Some((_, by)) = table.generated_from(attnum).next() {
            let message = "cannot alter type of a column used by a generated column";
            return Err(
                Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(format!(
                    "Column \"{}\" is used by generated column \"{}\".",
                    column.name, by.name
                )),
            );
        }
        if let Some(generated) = &column.generated {
            let typed = ColumnDef {
                ty: to,
                domain,
                ..column.clone()
            };
            crate::binder::dml::generated::check_virtual_type(&typed, generated.stored)?;
            if using.is_some() {
                let message = "cannot specify USING when altering type of generated column";
                return Err(Error::new(state::INVALID_COLUMN_DEFINITION, message)
                    .detail(format!("Column \"{}\" is a generated column.", column.name))
                    .position(pos + 1));
            }
        }
        let collation = match collation {
            Some(name) => self.column_collation(name, to)?,
            None => None,
        };
        let shared = Arc::new(table.clone());
        let rel = self.new_rel();
        let names = row_names(&shared, &table.name, rel);
        let scope = Scope::within(&names, None);
        let value = match using {
            Some(ast) => self.in_clause(Clause::Other("transform expressions"), |b| {
                b.expr(ast, &scope)
            })?,
            None => self.column(std::slice::from_ref(&column.name), pos, &scope)?,
        };
        if value.any(&mut |e| matches!(e, Expr::Subquery(_))) {
            let message = "cannot use subquery in transform expression";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let cast = self.try_coerce(value, to, CastContext::Assignment, pos)?;
        let Some(cast) = cast else {
            let target = throng_types::sqltype::format_type(to);
            let (message, hint) = match using {
                None => (
                    format!(
                        "column \"{}\" cannot be cast automatically to type {}",
                        column.name,
                        type_name(to.oid)
                    ),
                    format!(
                        "You might need to specify \"USING {}::{target}\".",
                        throng_types::lexical::quote_ident(&column.name)
                    ),
                ),
                Some(_) => (
                    format!(
                        "result of USING clause for column \"{}\" cannot be cast automatically to type {}",
                        column.name,
                        type_name(to.oid)
                    ),
                    "You might need to add an explicit cast.".to_string(),
                ),
            };
            return Err(Error::new(state::DATATYPE_MISMATCH, message).hint(hint));
        };
        self.check_default_fits(column, to)?;
        // Nothing of a virtual column lies in rows.
        let same_bytes =
            column.is_virtual() || using.is_none() && domain.is_none() && same_bytes(column.ty, to);
        let cast = match column.is_virtual() {
            true => Expr::null(to),
            false => self.in_domain(cast, domain)?,
        };
        let using = Box::new(slots_of_row(cast));
        Ok(AlterTable::SetType {
            attnum,
            ty: to,
            domain,
            collation,
            using,
            same_bytes,
        })
    }

    /// A column's default must go into its new type.
    pub(in crate::binder) fn check_default_fits(
        &mut self,
        column: &ColumnDef,
        to: SqlType,
    ) -> Result<()> {
        let misfit = || {
            let message = format!(
                "default for column \"{}\" cannot be cast automatically to type {}",
                column.name,
                type_name(to.oid)
            );
            Err(Error::new(state::DATATYPE_MISMATCH, message))
        };
        if column.sequence.is_some() {
            return match find_cast(oid::INT8, to.oid, CastContext::Assignment).is_some()
                || to.oid == oid::INT8
            {
                true => Ok(()),
                false => misfit(),
            };
        }
        let Some(text) = &column.default else {
            return Ok(());
        };
        let ast = throng_syntax::parse::parse_expr(text)?;
        let bound = self.default_expr(&ast).map_err(no_position)?;
        match self
            .try_coerce(bound, to, CastContext::Assignment, 0)
            .map_err(no_position)?
        {
            Some(_) => Ok(()),
            None => misfit(),
        }
    }
}

#[cold]
pub(in crate::binder) fn no_constraint(table: &TableDef, name: &str) -> Error {
    let message = format!(
        "constraint \"{name}\" of relation \"{}\" does not exist",
        table.name
    );
    Error::new(state::UNDEFINED_OBJECT, message)
}

#[cold]
fn is_generated(table: &TableDef, column: &str, instead: Option<&str>) -> Error {
    let message = format!(
        "column \"{column}\" of relation \"{}\" is a generated column",
        table.name
    );
    let error = Error::new(state::SYNTAX_ERROR, message);
    match instead {
        Some(what) => error.hint(format!(
            "Use ALTER TABLE ... ALTER COLUMN ... {what} instead."
        )),
        None => error,
    }
}

#[cold]
fn on_virtual(table: &TableDef, column: &str, what: &str) -> Error {
    Error::new(state::FEATURE_NOT_SUPPORTED, what).detail(format!(
        "Column \"{column}\" of relation \"{}\" is a virtual generated column.",
        table.name
    ))
}

/// Whether every stored value of one type is the same bytes in the other.
fn same_bytes(from: SqlType, to: SqlType) -> bool {
    let text = |ty: SqlType| matches!(ty.oid, oid::TEXT | oid::VARCHAR);
    if from == to {
        return true;
    }
    if text(from) && text(to) {
        return to.typmod == -1 || (from.typmod != -1 && from.typmod <= to.typmod);
    }
    if from.oid == oid::NUMERIC && to.oid == oid::NUMERIC {
        let (old, new) = (
            SqlType::numeric_precision(from.typmod),
            SqlType::numeric_precision(to.typmod),
        );
        return match (old, new) {
            (_, None) => true,
            (Some((p, s)), Some((q, t))) => s == t && p <= q,
            (None, Some(_)) => false,
        };
    }
    false
}
