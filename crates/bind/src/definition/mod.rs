//! Carrying out definitions on a catalog being edited.
//!
//! [`apply`] changes the catalog only. What has to happen to files and rows is the [`Work`] it
//! hands back, in order; the caller does it in the same transaction, before it publishes the
//! catalog, so that an error in it undoes everything.

mod alter;
mod create;
mod database;
mod drop;
mod exclusion;
mod extension;
mod foreign_key;
mod grant;
mod inherit;
mod mark;
mod matview;
mod membership;
mod names;
mod not_null_name;
mod operator;
pub mod owned;
mod partition;
mod password;
mod policy;
mod range_type;
mod repack;
mod role;
mod routine;
mod rows;
mod stored_expression;
mod trigger;
mod types;
mod view;

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::FixedState;
use throng_types::error::{Severity, state};
use throng_types::{Error, FileId, Oid, Result};

use crate::command::{Ddl, DomainTest, EnumChange, Target, TargetKind};
use crate::tree::expr::Expr;
use crate::tree::query::BoundQuery;
use throng_catalog::{Catalog, CatalogEdit, CommentDef, Object, SchemaDef, TableDef, builtin};
use throng_values::func::EvalContext;

/// What definitions need from the engine.
pub trait DdlHost {
    fn next_oid(&mut self) -> Oid;
    fn next_file(&mut self) -> FileId;
    /// Evaluates an expression without input row and gives its text form (None: NULL): the
    /// default of a column added to rows that are already there.
    fn evaluate(&mut self, expr: &Expr) -> Result<Option<String>>;
    /// A plain password's stored form.
    fn password_verifier(&mut self, password: &str) -> Result<String>;
    /// Whether a SCRAM secret is that of a password; None for what is no such secret.
    fn opens(&self, secret: &str, password: &str) -> Option<bool>;
    /// The session's schemas, for names in messages.
    fn search_path(&self) -> &[Oid];
    fn current_user(&self) -> Oid;
    /// What constants are read and written with.
    fn eval(&self) -> EvalContext<'_>;
    /// What the session's schema of temporary relations is called, or will be.
    fn temporary_schema(&self) -> String;
    /// Whether another transaction is about to give something in the schema this name: where one
    /// is chosen, it is not that one.
    fn is_being_named(&self, schema: Oid, name: &str) -> bool;
    /// How many objects of other databases need a role, by the databases' names.
    fn needed_elsewhere(&self, role: Oid) -> Vec<(String, usize)>;
}

/// Files and rows to see to. Definitions are found in the edited catalog.
#[derive(Clone, Debug)]
pub enum Work {
    /// Make the empty heap of a table, in its definition's file.
    CreateHeap(Oid),
    /// Make an index's file; `build`: and fill it from the table's rows (23505 on a duplicate).
    CreateIndex { index: Oid, build: bool },
    /// Make a sequence's file, at its start value.
    CreateSequence(Oid),
    /// Set a sequence's counter: `value` comes next.
    RestartSequence { sequence: Oid, value: i64 },
    /// Remove at commit.
    DropFile(FileId),
    /// Copy all rows of the file `from`, which are rows of `old`, into the table's heap (made by
    /// the `CreateHeap` before), through `values`: one for each column, over the old row by
    /// `Slot(attnum - 1)`. Indexes follow as `CreateIndex`.
    Rewrite {
        table: Oid,
        from: FileId,
        old: Arc<TableDef>,
        values: Vec<Expr>,
    },
    /// Copy all versions of rows from the file `from` into the table's heap (made by the
    /// `CreateHeap` before), in the order of an index if one is given. Indexes follow as
    /// `IndexVersions`.
    Repack {
        table: Oid,
        from: FileId,
        order: Option<Oid>,
    },
    /// Make an index's file and fill it from every version in the table's heap, which `Repack` has
    /// filled.
    IndexVersions(Oid),
    /// Check rows that are there: 23502 for a NULL.
    /// `value`: the column's, over `Slot(attnum - 1)`, where rows do not hold it.
    CheckNotNull {
        table: Oid,
        attnum: u16,
        value: Option<Expr>,
    },
    /// 23514 for a row for which `expr` (over `Slot(attnum - 1)`) is false.
    CheckRows {
        table: Oid,
        name: String,
        expr: Expr,
    },
    /// 23514 for a row of `table` that `partition`, which it is or is a part of, does not take any
    /// more. `default`: for another partition has come that takes it.
    CheckPartition {
        table: Oid,
        partition: Oid,
        default: bool,
    },
    /// 23514 or 23502 for a column's value that its domain does not allow any more.
    CheckDomain(DomainTest),
    /// 23503 for a row of the constraint's table without its referenced row.
    CheckForeignKey { constraint: Oid },
    /// 23503 for a row of the constraint's table that points at a row of a partition that goes.
    CheckPointsElsewhere { constraint: Oid, partition: Oid },
    /// Insert the rows of a materialized view's query into its new heap.
    Refresh(Oid),
    /// Make a materialized view's rows those of its query, by changing the ones that differ.
    RefreshInPlace(Oid),
    /// Make the heap of a new database's definitions, with what the template has.
    CreateDatabase { database: Oid, template: Oid },
    /// Nobody is to be in a database until the transaction ends; 55006 where somebody is and stays.
    /// `force`: whoever is there is ended.
    CloseDatabase { database: Oid, force: bool },
    /// Remove everything of a database at commit.
    DropDatabase(Oid),
    /// CREATE TABLE AS: insert the query's rows.
    Fill { table: Oid, query: Box<BoundQuery> },
}

/// What [`apply`] did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub work: Vec<Work>,
    pub notices: Vec<Error>,
    /// Tables beyond those the command names that CASCADE or a foreign key reached; the caller
    /// locks them before it does the work.
    pub touched: Vec<Oid>,
    /// Tables that a new foreign key points at, their partitions among them: nobody writes to them
    /// until it is there.
    pub referenced: Vec<Oid>,
}

/// Carries out a definition. The named objects are locked by the caller, and still there.
pub fn apply(edit: &mut CatalogEdit, ddl: &Ddl, host: &mut dyn DdlHost) -> Result<Outcome> {
    let mut ddl_run = Run {
        edit,
        host,
        out: Outcome::default(),
        touched: HashSet::default(),
    };
    ddl_run.apply(ddl)?;
    Ok(ddl_run.out)
}

/// A definition being carried out.
struct Run<'a> {
    edit: &'a mut CatalogEdit,
    host: &'a mut dyn DdlHost,
    out: Outcome,
    /// Those of [`Outcome::touched`].
    touched: HashSet<Oid, FixedState>,
}

impl Run<'_> {
    fn catalog(&self) -> &Catalog {
        self.edit.catalog()
    }
    fn work(&mut self, work: Work) {
        self.out.work.push(work);
    }
    fn notice(&mut self, error: Error) {
        self.out.notices.push(error.severity(Severity::Notice));
    }
    fn warning(&mut self, error: Error) {
        self.out.notices.push(error.severity(Severity::Warning));
    }
    /// The schema a new relation is bound to go to; the session's temporary one is made when it is
    /// needed first.
    fn place(&mut self, schema: Oid) -> Oid {
        if schema != Oid::NONE {
            return schema;
        }
        let name = self.host.temporary_schema();
        if let Some(made) = self.catalog().schema_by_name(&name) {
            return made.oid;
        }
        let oid = self.host.next_oid();
        self.edit.put(SchemaDef {
            oid,
            name,
            owner: builtin::SUPERUSER,
        });
        oid
    }
    fn touch(&mut self, table: Oid) {
        if self.touched.insert(table) {
            self.out.touched.push(table);
        }
    }
    /// A foreign key points at the table from here on.
    fn refer_to(&mut self, table: Oid) {
        let tables = self.catalog().descendants(table);
        self.out.referenced.extend(tables);
    }
    /// A table the command was bound to.
    fn table(&self, oid: Oid) -> Result<Arc<TableDef>> {
        self.catalog().table(oid).cloned().ok_or_else(|| {
            let message = format!("relation with OID {oid} does not exist");
            Error::new(state::UNDEFINED_TABLE, message)
        })
    }
    fn put_table(&mut self, table: TableDef) -> Arc<TableDef> {
        let table = Arc::new(table);
        self.edit.put(Object::Table(table.clone()));
        table
    }

    fn apply(&mut self, ddl: &Ddl) -> Result<()> {
        match ddl {
            Ddl::Nothing { .. } => Ok(()),
            Ddl::CreateSchema {
                name,
                owner,
                if_not_exists,
            } => self.create_schema(name, *owner, *if_not_exists),
            Ddl::CreateTable(create) => self.create_table(create),
            Ddl::CreateIndex(create) => self.create_index(create),
            Ddl::CreateView(create) => self.create_view(create),
            Ddl::AlterView {
                view,
                check,
                options,
                defaults,
                ..
            } => self.alter_view(*view, *check, (options, defaults)),
            Ddl::AlterIndex {
                index,
                options,
                targets,
                ..
            } => self.alter_index(*index, options, targets),
            Ddl::CreateSequence {
                sequence,
                if_not_exists,
            } => self.create_sequence(sequence, *if_not_exists),
            Ddl::AlterSequence {
                sequence,
                changes,
                owned_by,
            } => self.alter_sequence(*sequence, changes, owned_by.as_ref()),
            Ddl::AlterTable {
                table,
                actions,
                only,
                ..
            } => {
                let before = self.catalog().clone();
                self.alter_family(*table, actions, *only)?;
                self.views_see_columns(&before, *table, actions)
            }
            Ddl::AttachPartition {
                table,
                partition,
                bound,
            } => self.attach_partition(*table, *partition, bound),
            Ddl::DetachPartition {
                table,
                partition,
                step,
            } => self.detach_partition(*table, *partition, *step),
            Ddl::AttachIndex { index, partition } => {
                self.attach_index_partition(*index, *partition)
            }
            Ddl::Rename {
                target, name, only, ..
            } => {
                let (before, views) = (self.catalog().clone(), self.views_naming(*target));
                self.rename_family(*target, name, *only)?;
                self.rewrite_kept(&before, *target)?;
                self.rewrite_views(&before, views)
            }
            Ddl::SetSchema { target, schema, .. } => {
                let (before, views) = (self.catalog().clone(), self.views_naming(*target));
                self.set_schema(*target, *schema)?;
                self.rewrite_kept(&before, *target)?;
                self.rewrite_views(&before, views)
            }
            Ddl::SetOwner { target, owner, .. } => self.set_owner(*target, *owner),
            Ddl::Drop { targets, cascade } => self.drop_targets(targets, *cascade),
            Ddl::Truncate {
                tables,
                only,
                restart_identity,
                cascade,
            } => self.truncate(tables, only, *restart_identity, *cascade),
            Ddl::Repack { table, order } => self.repack(*table, *order),
            Ddl::RefreshMaterialized {
                table,
                concurrently,
                with_data,
            } => self.refresh(*table, *concurrently, *with_data),
            Ddl::CreateDatabase(create) => self.create_database(create),
            Ddl::AlterDatabase { database, changes } => self.alter_database(*database, changes),
            Ddl::DropDatabase { database, force } => self.drop_database(*database, *force),
            Ddl::CreateRole { name, changes } => self.create_role(name, changes),
            Ddl::AlterRole { role, changes } => self.alter_role(*role, changes),
            Ddl::AlterRoleSet {
                role,
                database,
                name,
                value,
            } => self.alter_role_set(*role, *database, name.as_deref(), value.as_deref()),
            Ddl::DropRole { roles } => self.drop_roles(roles),
            Ddl::GrantRole(grant) => self.grant_role(grant),
            Ddl::Grant(grant) => self.grant(grant),
            Ddl::AlterDefaultPrivileges(alter) => self.alter_default_privileges(alter),
            Ddl::ReassignOwned { roles, to } => self.reassign_owned(roles, *to),
            Ddl::DropOwned { roles, cascade } => self.drop_owned(roles, *cascade),
            Ddl::CreateEnum { .. }
            | Ddl::CreateRange { .. }
            | Ddl::CreateDomain(_)
            | Ddl::CreateComposite(_) => self.create_type(ddl),
            Ddl::AlterDomain(alter) => self.alter_domain(alter),
            Ddl::AlterComposite(def) => self.alter_composite(def),
            Ddl::AlterEnum { ty, change } => self.alter_enum_and_users(*ty, change),
            Ddl::CreateRoutine { def, old, .. } => self.create_routine(def, old.as_ref()),
            Ddl::CreateOperator(_) | Ddl::CreateCast(_) => self.create_form(ddl),
            Ddl::CreateTrigger { def, old } => self.create_trigger(def, old.as_ref()),
            Ddl::Policy(policy) => self.put_policy(policy),
            Ddl::AlterRoutine { target, attributes } => self.alter_routine(target.oid, attributes),
            Ddl::DropIndexConcurrently(index) => self.drop_targets(&[*index], false),
            Ddl::Reindex { indexes, .. } => self.reindex(indexes),
            Ddl::Extension(ddl) => self.extension(ddl),
            Ddl::Comment { target, text } => self.comment(*target, text.as_deref()),
        }
    }

    /// An enum is changed, and what says its labels.
    fn alter_enum_and_users(&mut self, ty: Oid, change: &EnumChange) -> Result<()> {
        let before = self.catalog().clone();
        self.alter_enum(ty, change)?;
        if let EnumChange::Rename { from, to } = change {
            self.rewrite_label(&before, (from, to))?;
        }
        self.rewrite_views(&before, before.views_of(ty).to_vec())
    }

    fn comment(&mut self, target: Target, text: Option<&str>) -> Result<()> {
        let (class, column) = match target.kind {
            TargetKind::Table
            | TargetKind::View
            | TargetKind::MaterializedView
            | TargetKind::Index
            | TargetKind::Sequence => (builtin::class::RELATION, 0),
            TargetKind::Column(attnum) | TargetKind::ViewColumn(attnum) => {
                (builtin::class::RELATION, attnum)
            }
            TargetKind::Schema => (builtin::class::NAMESPACE, 0),
            TargetKind::Role => (builtin::class::ROLE, 0),
            TargetKind::Database => (builtin::class::DATABASE, 0),
            TargetKind::Constraint => (builtin::class::CONSTRAINT, 0),
            TargetKind::Type | TargetKind::Domain => (builtin::class::TYPE, 0),
            TargetKind::Routine(_) => (builtin::class::PROCEDURE, 0),
            TargetKind::Trigger => (builtin::class::TRIGGER, 0),
            TargetKind::Policy => (builtin::class::POLICY, 0),
            TargetKind::Operator => (builtin::class::OPERATOR, 0),
            TargetKind::Cast => (builtin::class::CAST, 0),
            TargetKind::Extension => (builtin::class::EXTENSION, 0),
            TargetKind::Language => (builtin::class::LANGUAGE, 0),
            TargetKind::BuiltIn(class) => (class, 0),
        };
        let old = self
            .catalog()
            .comment(class, target.oid, column)
            .map(|c| c.oid);
        match text.filter(|t| !t.is_empty()) {
            None => old.into_iter().for_each(|oid| self.edit.delete(oid)),
            Some(text) => {
                let oid = old.unwrap_or_else(|| self.host.next_oid());
                let text = text.to_string();
                self.edit.put(CommentDef {
                    oid,
                    class,
                    object: target.oid,
                    column,
                    text,
                });
            }
        }
        Ok(())
    }

    /// What is only about an object, or about a column, that is going: comments and grants.
    fn drop_comments(&mut self, object: Oid, column: Option<u16>) {
        self.drop_privileges(object, column);
        let catalog = self.catalog();
        let columns = match catalog.object(object) {
            Some(Object::Table(table)) => table.columns.len(),
            Some(Object::View(view)) => view.columns.len(),
            _ => 0,
        };
        let mut gone = catalog.comments_on(object, columns as u16);
        let about = |oid: &Oid| catalog.comment_def(*oid).map(|c| c.column);
        gone.retain(|oid| column.is_none_or(|n| about(oid) == Some(n)));
        gone.into_iter().for_each(|oid| self.edit.delete(oid));
    }
}

#[cfg(test)]
mod tests;
