//! ALTER TABLE of what is no table: views, indexes and sequences, by whichever word.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::ddl::said_relation;
use crate::binder::ddl::table::no_position;
use crate::binder::ddl::trigger::columns_of;
use crate::binder::ddl::view::set_view_option;
use crate::binder::{Binder, ddl::options};
use crate::command::{Ddl, Target, TargetKind};
use throng_catalog::{Enabled, IndexDef, Relation, TableDef, ViewDef, ViewDefault};
use throng_syntax::parse::ast::{self, AlterAction, Mark, NameOrNumber, ObjectKind, Triggers};
use throng_values::acl::right;

pub(in crate::binder) fn is_other(found: &Relation) -> bool {
    matches!(
        found,
        Relation::View(_) | Relation::Index(_) | Relation::Sequence(_)
    )
}

fn wrong_object(message: String) -> Error {
    Error::new(state::WRONG_OBJECT_TYPE, message)
}

/// 42809 for a relation that is not of the kind it was called; a table is what all may be called.
pub(in crate::binder) fn must_be_called(kind: ObjectKind, found: &Relation) -> Result<()> {
    let (is_one, what) = match kind {
        ObjectKind::View => (matches!(found, Relation::View(_)), "a view"),
        ObjectKind::Index => (matches!(found, Relation::Index(_)), "an index"),
        ObjectKind::MaterializedView => {
            let is_one = matches!(found, Relation::Table(t) if t.is_materialized());
            (is_one, "a materialized view")
        }
        _ => (true, ""),
    };
    match is_one {
        true => Ok(()),
        false => Err(wrong_object(format!("\"{}\" is not {what}", found.name()))),
    }
}

/// The tablespace that everything is in is the only one for it.
pub(in crate::binder) fn must_be_ours(tablespace: &str) -> Result<()> {
    match tablespace {
        "pg_default" => Ok(()),
        "pg_global" => {
            let message = "only shared relations can be placed in pg_global tablespace";
            Err(Error::new(state::INVALID_PARAMETER_VALUE, message))
        }
        name => {
            let message = format!("tablespace \"{name}\" does not exist");
            Err(Error::new(state::UNDEFINED_OBJECT, message))
        }
    }
}

/// What messages call an action.
pub(in crate::binder) fn action_name(action: &AlterAction) -> &'static str {
    match action {
        AlterAction::Inherit(_) => "INHERIT",
        AlterAction::NoInherit(_) => "NO INHERIT",
        AlterAction::AddColumn { .. } => "ADD COLUMN",
        AlterAction::DropColumn { .. } => "DROP COLUMN",
        // DROP DEFAULT is called so, too.
        AlterAction::SetDefault { .. } => "ALTER COLUMN ... SET DEFAULT",
        AlterAction::SetNotNull(_) => "ALTER COLUMN ... SET NOT NULL",
        AlterAction::DropNotNull(_) => "ALTER COLUMN ... DROP NOT NULL",
        AlterAction::SetType { .. } => "ALTER COLUMN ... SET DATA TYPE",
        AlterAction::SetStatistics(..) => "ALTER COLUMN ... SET STATISTICS",
        AlterAction::ResetColumnOptions(..) => "ALTER COLUMN ... RESET",
        AlterAction::AddIdentity { .. } => "ALTER COLUMN ... ADD IDENTITY",
        AlterAction::SetIdentity { .. } | AlterAction::SetColumnOptions(..) => {
            "ALTER COLUMN ... SET"
        }
        AlterAction::DropIdentity { .. } => "ALTER COLUMN ... DROP IDENTITY",
        AlterAction::SetExpression { .. } => "ALTER COLUMN ... SET EXPRESSION",
        AlterAction::DropExpression { .. } => "ALTER COLUMN ... DROP EXPRESSION",
        AlterAction::AddConstraint(_) => "ADD CONSTRAINT",
        AlterAction::DropConstraint { .. } => "DROP CONSTRAINT",
        AlterAction::ValidateConstraint(_) => "VALIDATE CONSTRAINT",
        AlterAction::AlterConstraint { .. } => "ALTER CONSTRAINT",
        AlterAction::EnableTrigger(change) => match (change.enabled, &change.which) {
            (Enabled::Disabled, Triggers::Named(_)) => "DISABLE TRIGGER",
            (Enabled::Disabled, Triggers::All) => "DISABLE TRIGGER ALL",
            (Enabled::Disabled, Triggers::User) => "DISABLE TRIGGER USER",
            (_, Triggers::Named(_)) => "ENABLE TRIGGER",
            (_, Triggers::All) => "ENABLE TRIGGER ALL",
            (_, Triggers::User) => "ENABLE TRIGGER USER",
        },
        AlterAction::RowSecurity(change) => change.name(),
        AlterAction::SetOptions(_) => "SET",
        AlterAction::ResetOptions(_) => "RESET",
        AlterAction::SetLogged(true) => "SET LOGGED",
        AlterAction::SetLogged(false) => "SET UNLOGGED",
        AlterAction::Mark(Mark::Storage { .. }) => "ALTER COLUMN ... SET STORAGE",
        AlterAction::Mark(Mark::Compression { .. }) => "ALTER COLUMN ... SET COMPRESSION",
        AlterAction::Mark(Mark::ClusterOn(Some(_))) => "CLUSTER ON",
        AlterAction::Mark(Mark::ClusterOn(None)) => "SET WITHOUT CLUSTER",
        AlterAction::Mark(Mark::ReplicaIdentity(_)) => "REPLICA IDENTITY",
        AlterAction::Mark(Mark::AccessMethod(_)) => "SET ACCESS METHOD",
        AlterAction::SetTablespace(_) => "SET TABLESPACE",
        AlterAction::OwnerTo(_) => "OWNER TO",
    }
}

/// Whether there is such an action for a relation that is no table.
fn is_for(action: &AlterAction, found: &Relation) -> bool {
    use AlterAction as A;
    match found {
        Relation::View(_) => matches!(
            action,
            A::SetDefault { .. }
                | A::AddIdentity { .. }
                | A::SetIdentity { .. }
                | A::DropIdentity { .. }
                | A::SetOptions(_)
                | A::ResetOptions(_)
                | A::OwnerTo(_)
        ),
        Relation::Index(_) => matches!(
            action,
            A::SetStatistics(..)
                | A::SetOptions(_)
                | A::ResetOptions(_)
                | A::SetTablespace(_)
                | A::OwnerTo(_)
        ),
        _ => matches!(action, A::SetLogged(_) | A::OwnerTo(_)),
    }
}

fn no_column(name: &str, relation: &str) -> Error {
    let message = format!("column \"{name}\" of relation \"{relation}\" does not exist");
    Error::new(state::UNDEFINED_COLUMN, message)
}

/// OWNER TO beside others.
fn with_owner() -> Error {
    Error::unsupported("OWNER TO beside other actions on what is no table")
}

fn is_no_identity(action: &AlterAction, column: &str, relation: &str) -> Error {
    let of = format!("column \"{column}\" of relation \"{relation}\"");
    let message = match action {
        AlterAction::AddIdentity { .. } => {
            format!("{of} must be declared NOT NULL before identity can be added")
        }
        _ => format!("{of} is not an identity column"),
    };
    Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

/// Storage parameters after some were set.
fn set_options(kept: &mut Vec<(String, String)>, given: &[(String, String)]) {
    for (name, value) in given {
        kept.retain(|(known, _)| known != name);
        kept.push((name.clone(), value.clone()));
    }
}

impl Binder<'_> {
    /// A view, an index or a sequence, as [`is_other`] tells.
    pub(in crate::binder) fn alter_other(
        &mut self,
        kind: ObjectKind,
        found: &Relation,
        actions: &[AlterAction],
    ) -> Result<Ddl> {
        let owner = match found {
            Relation::View(view) => view.owner,
            Relation::Sequence(sequence) => sequence.owner,
            Relation::Index(index) => {
                let table = self.catalog().table(index.table);
                table.map_or(Oid::NONE, |table| table.owner)
            }
            Relation::Table(_) | Relation::Virtual(_) => Oid::NONE,
        };
        self.must_own(owner, found.word(), found.name())?;
        must_be_called(kind, found)?;
        for action in actions {
            if !is_for(action, found) {
                let message = format!(
                    "ALTER action {} cannot be performed on relation \"{}\"",
                    action_name(action),
                    found.name()
                );
                let many = match found {
                    Relation::View(_) => "views",
                    Relation::Index(_) => "indexes",
                    _ => "sequences",
                };
                let detail = format!("This operation is not supported for {many}.");
                return Err(wrong_object(message).detail(detail));
            }
        }
        let said = said_relation(kind).unwrap_or(TargetKind::Table);
        match found {
            Relation::View(view) => self.alter_view(said, view, actions),
            Relation::Index(index) => self.alter_index(said, index, actions),
            _ => self.alter_logging(said, found, actions),
        }
    }

    fn alter_view(
        &mut self,
        said: TargetKind,
        view: &Arc<ViewDef>,
        actions: &[AlterAction],
    ) -> Result<Ddl> {
        let mut def = (**view).clone();
        for action in actions {
            match action {
                AlterAction::SetOptions(given) => {
                    for (name, value) in given {
                        match set_view_option(name, value)? {
                            Some(check) => def.check = Some(check),
                            None => set_options(&mut def.options, &[(name.clone(), value.clone())]),
                        }
                    }
                }
                AlterAction::ResetOptions(names) => {
                    def.options.retain(|(name, _)| !names.contains(name));
                    if names.iter().any(|name| name == "check_option") {
                        def.check = None;
                    }
                }
                AlterAction::SetDefault { column, default } => {
                    self.view_default(&mut def, column, default.as_ref())?;
                }
                AlterAction::AddIdentity { column, .. }
                | AlterAction::SetIdentity { column, .. }
                | AlterAction::DropIdentity { column, .. } => {
                    return Err(match view.columns.iter().any(|c| c.name == *column) {
                        true => is_no_identity(action, column, &view.name),
                        false => no_column(column, &view.name),
                    });
                }
                _ => return Err(with_owner()),
            }
        }
        if def.check.is_some() {
            self.check_option_allowed(view)?;
        }
        Ok(Ddl::AlterView {
            view: def.oid,
            check: def.check,
            options: def.options,
            defaults: def.defaults,
            said,
        })
    }

    fn view_default(
        &mut self,
        view: &mut ViewDef,
        column: &str,
        default: Option<&ast::Source>,
    ) -> Result<()> {
        let relation = Relation::View(Arc::new(view.clone()));
        let table = columns_of(&relation).ok_or_else(|| Error::internal("no view"))?;
        let attnum = self.target_column(&table, column, 0).map_err(no_position)?;
        view.defaults.retain(|own| own.attnum != attnum);
        let Some(source) = default else {
            return Ok(());
        };
        let mut def = table.column(attnum).clone();
        self.set_default(&mut def, source).map_err(no_position)?;
        if def.default.is_some() || def.sequence.is_some() {
            view.defaults.push(ViewDefault {
                attnum,
                text: def.default,
                sequence: def.sequence,
            });
        }
        Ok(())
    }

    fn alter_index(
        &mut self,
        said: TargetKind,
        index: &IndexDef,
        actions: &[AlterAction],
    ) -> Result<Ddl> {
        let mut options = index.options.clone();
        let mut targets = Vec::new();
        for action in actions {
            match action {
                AlterAction::SetOptions(given) => {
                    options::check(given, options::of_index(index.terms.method))?;
                    self.tell_inert_options(given);
                    set_options(&mut options, given);
                }
                AlterAction::ResetOptions(names) => {
                    options.retain(|(name, _)| !names.contains(name));
                }
                AlterAction::SetTablespace(name) => must_be_ours(name)?,
                AlterAction::SetStatistics(column, target) => {
                    let target = self.statistics_target(*target)?;
                    targets.push((self.index_expression(index, column)?, target));
                }
                _ => return Err(with_owner()),
            }
        }
        Ok(Ddl::AlterIndex {
            index: index.oid,
            options,
            targets,
            said,
        })
    }

    /// The number of an index's column that is an expression.
    fn index_expression(&self, index: &IndexDef, column: &NameOrNumber) -> Result<u16> {
        let table = self.catalog().table(index.table);
        let table = table.ok_or_else(|| Error::internal("an index without its table"))?;
        let names = index.column_names(table);
        let number = match column {
            NameOrNumber::Name(name) => {
                let place = names.iter().position(|own| own == name);
                place.ok_or_else(|| no_column(name, &index.name))? + 1
            }
            NameOrNumber::Number(number) if usize::from(*number) > names.len() => {
                let message = format!(
                    "column number {number} of relation \"{}\" does not exist",
                    index.name
                );
                return Err(Error::new(state::UNDEFINED_COLUMN, message));
            }
            NameOrNumber::Number(number) => usize::from(*number),
        };
        let refused = |what: &str| {
            let message = format!(
                "cannot alter statistics on {what} column \"{}\" of index \"{}\"",
                names[number - 1],
                index.name
            );
            Error::new(state::FEATURE_NOT_SUPPORTED, message)
        };
        match index.columns.get(number - 1) {
            None => Err(refused("included")),
            Some(key) if key.attnum != 0 => {
                Err(refused("non-expression").hint("Alter statistics on table column instead."))
            }
            Some(_) => Ok(number as u16),
        }
    }

    /// SET LOGGED of a sequence.
    fn alter_logging(
        &mut self,
        said: TargetKind,
        found: &Relation,
        actions: &[AlterAction],
    ) -> Result<Ddl> {
        for action in actions {
            match action {
                // All are, but temporary ones.
                AlterAction::SetLogged(true) if !self.is_temporary(found.oid()) => {}
                AlterAction::SetLogged(_) if self.is_temporary(found.oid()) => {
                    let message = format!(
                        "cannot change logged status of table \"{}\" because it is temporary",
                        found.name()
                    );
                    return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
                }
                AlterAction::SetLogged(_) => {
                    return Err(Error::unsupported("unlogged sequences"));
                }
                _ => return Err(with_owner()),
            }
        }
        let tag = match said {
            TargetKind::Sequence => "ALTER SEQUENCE",
            _ => "ALTER TABLE",
        };
        Ok(Ddl::Nothing { tag })
    }

    /// A relation whose columns are renamed.
    pub(in crate::binder) fn table_with_columns(
        &mut self,
        name: &ast::Name,
        if_exists: bool,
    ) -> Result<Option<Arc<TableDef>>> {
        if let Some(Relation::Sequence(sequence)) = self.find_relation(name)? {
            self.must_own(sequence.owner, "sequence", &sequence.name)?;
            let message = format!("cannot rename columns of relation \"{}\"", sequence.name);
            let detail = "This operation is not supported for sequences.";
            return Err(wrong_object(message).detail(detail));
        }
        self.owned_table(name, if_exists)
    }

    pub(in crate::binder) fn rename_view_column(
        &mut self,
        (kind, name): (ObjectKind, &ast::Name),
        column: &str,
        to: &str,
    ) -> Result<Ddl> {
        let Some(Relation::View(view)) = self.find_relation(name)? else {
            return Err(Error::internal("a view that was found is gone"));
        };
        self.must_own(view.owner, "view", &view.name)?;
        let Some(place) = view.columns.iter().position(|c| c.name == column) else {
            let message = format!("column \"{column}\" does not exist");
            return Err(Error::new(state::UNDEFINED_COLUMN, message));
        };
        Ok(Ddl::Rename {
            target: Target {
                kind: TargetKind::ViewColumn(place as u16 + 1),
                oid: view.oid,
            },
            name: to.to_owned(),
            only: false,
            said: said_relation(kind),
        })
    }

    /// Where SET SCHEMA moves an object to.
    pub(in crate::binder) fn schema_to_move_to(&self, target: Target, name: &str) -> Result<Oid> {
        let temporary = |schema: Oid| {
            let found = self.catalog().schema(schema);
            found.is_some_and(|s| s.name.starts_with(throng_catalog::TEMPORARY_PREFIX))
        };
        let refused = || {
            let message = "cannot move objects into or out of temporary schemas";
            Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
        };
        // The session's own may be still to be made.
        if name == throng_catalog::TEMPORARY && target.kind != TargetKind::Index {
            return refused();
        }
        let schema = self.schema(name)?;
        if self
            .catalog()
            .schema_rights(self.ctx.user, schema, right::CREATE)
            == 0
        {
            return Err(self.schema_denied(schema));
        }
        let moves = target.kind != TargetKind::Index;
        if moves && (temporary(schema) || self.is_temporary(target.oid)) {
            return refused();
        }
        Ok(schema)
    }
}
