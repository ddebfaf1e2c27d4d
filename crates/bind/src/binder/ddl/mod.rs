//! Definitions: names looked up, options checked, into [`Ddl`].

pub(super) mod alter;
pub(super) mod alter_other;
pub(super) mod alter_pass;
pub(super) mod cast;
pub(super) mod comment;
pub(super) mod comment_built_in;
pub(super) mod composite;
pub(super) mod database;
pub(super) mod define;
pub(super) mod definition;
pub(super) mod domain;
pub(super) mod domain_value;
pub(super) mod drop_absent;
mod exclusion;
pub(super) mod extension;
mod foreign_key;
pub(super) mod grant;
pub(super) mod index;
pub(super) mod index_order;
pub(super) mod inherit;
pub(super) mod like;
pub(super) mod maintain;
pub(super) mod mark;
pub(super) mod matview;
pub(super) mod object;
pub(super) mod operator;
pub(super) mod options;
pub(super) mod partition;
pub(super) mod policy;
pub(super) mod privilege;
mod range_type;
pub(super) mod reindex;
pub(super) mod role_setting;
pub(super) mod table;
pub(super) mod trigger;
pub(super) mod view;

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{element_of, made, type_name};
use throng_types::{Error, Oid, Result, oid};

use super::Binder;
use crate::command::{
    BoundStatement, Ddl, Detach, NewSequence, RoleOptions, SequenceOptions, Target, TargetKind,
};
use privilege::any_right;
use throng_catalog::{Relation, TEMPORARY, TableDef, builtin};
use throng_syntax::parse::ast::{
    self, ObjectChange, ObjectKind, SequenceOption as O, Statement as S,
};
use throng_values::acl::right;

impl Binder<'_> {
    pub(super) fn ddl(&mut self, statement: &ast::Statement) -> Result<BoundStatement> {
        let ddl = match statement {
            S::CreateTable(create) => self.create_table(create)?,
            S::AlterTable {
                kind,
                name,
                only,
                if_exists,
                actions,
            } => self.alter_table((*kind, name), *only, *if_exists, actions)?,
            S::AttachPartition {
                table,
                if_exists,
                partition,
                bound,
            } => self.attach_partition(table, *if_exists, partition, bound)?,
            S::DetachPartition {
                table,
                if_exists,
                partition,
                concurrently,
                finalize,
            } => {
                let step = match (*concurrently, *finalize) {
                    (true, _) => Detach::Concurrently,
                    (_, true) => Detach::Finish,
                    _ => Detach::AtOnce,
                };
                self.detach_partition(table, *if_exists, partition, step)?
            }
            S::AttachIndex { index, partition } => self.attach_index(index, partition)?,
            S::AlterObject {
                kind,
                name,
                if_exists,
                change,
            } => self.alter_object(*kind, name, *if_exists, change)?,
            S::RenameColumn {
                kind,
                table,
                column,
                to,
                ..
            } if matches!(self.find_relation(table)?, Some(Relation::View(_))) => {
                self.rename_view_column((*kind, table), column, to)?
            }
            S::CreateView(create) => self.create_view(create)?,
            S::RefreshMaterialized(refresh) => self.refresh(refresh)?,
            S::RenameColumn {
                kind,
                table,
                only,
                if_exists,
                column,
                to,
            } => match self.table_with_columns(table, *if_exists)? {
                None => Ddl::Nothing {
                    tag: alter_tag(*kind),
                },
                Some(def) => {
                    let attnum = def.attnum(column).ok_or_else(|| {
                        let message = format!("column \"{column}\" does not exist");
                        Error::new(state::UNDEFINED_COLUMN, message)
                    })?;
                    let target = Target {
                        kind: TargetKind::Column(attnum),
                        oid: def.oid,
                    };
                    Ddl::Rename {
                        target,
                        name: to.clone(),
                        only: *only,
                        said: said_relation(*kind),
                    }
                }
            },
            S::RenameConstraint {
                table,
                only,
                if_exists,
                constraint,
                to,
            } => match self.owned_table(table, *if_exists)? {
                None => Ddl::Nothing { tag: "ALTER TABLE" },
                Some(def) if def.not_null_named(constraint).is_some() => {
                    self.rename_not_null(&def, constraint, to, *only)?
                }
                Some(def) => {
                    let message = format!(
                        "constraint \"{constraint}\" for table \"{}\" does not exist",
                        def.name
                    );
                    let found = self.catalog().constraint_by_name(def.oid, constraint);
                    let found =
                        found.ok_or_else(|| Error::new(state::UNDEFINED_OBJECT, message))?;
                    let target = Target {
                        kind: TargetKind::Constraint,
                        oid: found.oid,
                    };
                    Ddl::Rename {
                        target,
                        name: to.clone(),
                        only: *only,
                        said: None,
                    }
                }
            },
            S::CreateIndex(create) => self.create_index(create)?,
            S::CreateSchema {
                name,
                owner,
                if_not_exists,
                elements: _,
            } => self.create_schema(name.as_deref(), owner.as_deref(), *if_not_exists)?,
            S::CreateSequence {
                name,
                temporary,
                if_not_exists,
                options,
            } => {
                let (options, owned_by) = self.unnamed_sequence_options(options)?;
                let sequence = NewSequence {
                    schema: self.place(name, *temporary)?.0,
                    name: name.last().to_string(),
                    owner: self.ctx.user,
                    options,
                    owned_by: owned_by.flatten(),
                };
                Ddl::CreateSequence {
                    sequence,
                    if_not_exists: *if_not_exists,
                }
            }
            S::AlterSequence {
                name,
                if_exists,
                options,
            } => {
                if self.find_relation(name)?.is_none() {
                    let message = format!("relation \"{name}\" does not exist");
                    if !if_exists {
                        return Err(Error::new(state::UNDEFINED_TABLE, message));
                    }
                    let message = format!("relation \"{}\" does not exist", name.last());
                    self.notice(Error::new(
                        state::SUCCESSFUL_COMPLETION,
                        message + ", skipping",
                    ));
                    let nothing = Ddl::Nothing {
                        tag: "ALTER SEQUENCE",
                    };
                    return Ok(BoundStatement::Ddl(Box::new(nothing)));
                }
                match self.owned(ObjectKind::Sequence, name, *if_exists)? {
                    None => Ddl::Nothing {
                        tag: "ALTER SEQUENCE",
                    },
                    Some(target) => {
                        let (changes, owned_by) = self.unnamed_sequence_options(options)?;
                        Ddl::AlterSequence {
                            sequence: target.oid,
                            changes,
                            owned_by,
                        }
                    }
                }
            }
            S::CreateEnum { name, labels } => self.create_enum(name, labels)?,
            S::CreateRange { name, options } => self.create_range(name, options)?,
            S::CreateDomain(create) => self.create_domain(create)?,
            S::CreateComposite { name, fields } => self.create_composite(name, fields)?,
            S::AlterComposite { name, changes } => self.alter_composite(name, changes)?,
            S::AlterDomain { name, change } => self.alter_domain(name, change)?,
            S::AlterEnum { name, change } => Ddl::AlterEnum {
                ty: self.find_enum(name)?,
                change: change.clone(),
            },
            S::Drop {
                kind,
                names,
                if_exists,
                cascade,
                concurrently,
            } => {
                let ddl = self.drop_objects(*kind, names, *if_exists, *cascade)?;
                match (concurrently, ddl) {
                    (true, Ddl::Drop { targets, .. }) => self.drop_index(&targets, *cascade)?,
                    (_, ddl) => ddl,
                }
            }
            S::Truncate {
                tables,
                restart_identity,
                cascade,
            } => {
                let (oids, alone) = self.truncated(tables)?;
                Ddl::Truncate {
                    tables: oids,
                    only: alone,
                    restart_identity: *restart_identity,
                    cascade: *cascade,
                }
            }
            S::Comment {
                kind,
                name,
                column,
                text,
            } => self.comment(*kind, name, column.as_deref(), text.as_deref())?,
            S::CreateRoutine(_)
            | S::AlterRoutine { .. }
            | S::DropRoutine { .. }
            | S::CommentRoutine { .. } => self.routine_ddl(statement)?,
            S::CreateRole { name, options } => {
                if name.starts_with("pg_") {
                    let message = format!("role name \"{name}\" is reserved");
                    return Err(Error::new(state::RESERVED_NAME, message)
                        .detail("Role names starting with \"pg_\" are reserved."));
                }
                Ddl::CreateRole {
                    name: name.clone(),
                    changes: self.role_options(options)?,
                }
            }
            S::AlterRole { name, options } => Ddl::AlterRole {
                role: self.role(name)?,
                changes: self.role_options(options)?,
            },
            S::AlterRoleSet {
                role,
                database,
                name,
                value,
            } => self.alter_role_set((role, database.as_deref()), (name.as_deref(), value))?,
            S::CreateDatabase { name, options } => self.create_database(name, options)?,
            S::AlterDatabase { name, options } => self.alter_database(name, options)?,
            S::DropDatabase {
                name,
                if_exists,
                force,
            } => self.drop_database(name, *if_exists, *force)?,
            S::GrantRole(grant) => self.grant_role(grant)?,
            S::Grant(grant) => self.grant(grant)?,
            S::AlterDefaultPrivileges {
                roles,
                schemas,
                grant,
            } => self.alter_default_privileges(roles, schemas, grant)?,
            S::ReassignOwned { roles, to } => Ddl::ReassignOwned {
                roles: self.roles(roles)?,
                to: self.role(to)?,
            },
            S::DropOwned { roles, cascade } => Ddl::DropOwned {
                roles: self.roles(roles)?,
                cascade: *cascade,
            },
            other => self.other_ddl(other)?,
        };
        self.check_role_rights(&ddl)?;
        Ok(BoundStatement::Ddl(Box::new(ddl)))
    }

    /// Whether the current role may act as the owner.
    pub(super) fn acts_as(&self, owner: Oid) -> bool {
        self.catalog().acts_as(self.user, owner)
    }

    pub(super) fn role(&self, name: &str) -> Result<Oid> {
        if matches!(name, "current_user" | "current_role") {
            return Ok(self.ctx.user);
        }
        let session_user;
        let name = match name {
            "session_user" => {
                session_user = self.ctx.eval.host.session_user();
                &session_user
            }
            name => name,
        };
        self.catalog()
            .role_by_name(name)
            .map(|r| r.oid)
            .ok_or_else(|| {
                Error::new(
                    state::UNDEFINED_OBJECT,
                    format!("role \"{name}\" does not exist"),
                )
            })
    }

    /// The schema of a new function or type; a superuser's may be in `pg_catalog`, where relations
    /// may not.
    pub(super) fn place_beside_relations(&self, name: &ast::Name) -> Result<Oid> {
        if name.schema() != Some("pg_catalog") {
            return Ok(self.place(name, false)?.0);
        }
        self.check_database(name)?;
        let schema = builtin::PG_CATALOG;
        let catalog = self.catalog();
        match catalog.schema_rights(self.user, schema, right::CREATE) {
            0 => Err(self.schema_denied(schema)),
            _ => Ok(schema),
        }
    }

    /// The schema of a new relation, and whether that is the session's temporary one: NONE while
    /// that is still to be made.
    pub(super) fn place(&self, name: &ast::Name, temporary: bool) -> Result<(Oid, bool)> {
        let own = self.ctx.temporary_schema.unwrap_or(Oid::NONE);
        let temporary_place = || self.may_create_temporary().map(|()| (own, true));
        match name.schema() {
            Some(TEMPORARY) => temporary_place(),
            None if temporary => temporary_place(),
            Some(_) if temporary => {
                let message = "cannot create temporary relation in non-temporary schema";
                Err(Error::new(state::INVALID_TABLE_DEFINITION, message).position(name.pos + 1))
            }
            _ => Ok((self.creation_schema(name)?, false)),
        }
    }

    /// The schema a new object's name puts it in.
    pub(super) fn creation_schema(&self, name: &ast::Name) -> Result<Oid> {
        self.check_database(name)?;
        let schema = match name.schema() {
            Some(schema) => self.schema(schema).map_err(|e| super::at(e, name.pos))?,
            None => self.ctx.creation_schema.ok_or_else(|| {
                Error::new(
                    state::INVALID_SCHEMA_NAME,
                    "no schema has been selected to create in",
                )
                .position(name.pos + 1)
            })?,
        };
        if builtin::SYSTEM_SCHEMAS.contains(&schema) {
            let schema = self.catalog().schema(schema).map_or("", |s| &s.name);
            let message = format!("permission denied to create \"{schema}.{}\"", name.last());
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message)
                .detail("System catalog modifications are currently disallowed."));
        }
        let pos = name.pos;
        let may = Some(schema) == self.ctx.temporary_schema
            || self
                .catalog()
                .schema_rights(self.user, schema, right::CREATE)
                != 0;
        if !may {
            return Err(self.schema_denied(schema).position(pos + 1));
        }
        Ok(schema)
    }

    /// A table to change; None (and a notice) where it is missing and may be.
    pub(super) fn owned_table(
        &mut self,
        name: &ast::Name,
        if_exists: bool,
    ) -> Result<Option<Arc<TableDef>>> {
        self.changed_table(name, if_exists, false)
    }

    pub(super) fn truncated_table(&mut self, name: &ast::Name) -> Result<Option<Arc<TableDef>>> {
        self.changed_table(name, false, true)
    }

    fn changed_table(
        &mut self,
        name: &ast::Name,
        if_exists: bool,
        truncated: bool,
    ) -> Result<Option<Arc<TableDef>>> {
        let found = match self.find_relation(name)? {
            Some(found) => found,
            None if if_exists => {
                let message = format!("relation \"{}\" does not exist, skipping", name.last());
                self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                return Ok(None);
            }
            None => {
                let message = format!("relation \"{name}\" does not exist");
                return Err(Error::new(state::UNDEFINED_TABLE, message));
            }
        };
        match found {
            Relation::Table(table) if truncated && table.is_materialized() => {
                let message = format!("\"{}\" is not a table", table.name);
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
            Relation::Table(table) => {
                match truncated {
                    true => {
                        let relation = Relation::Table(table.clone());
                        any_right(self.catalog(), self.user, &relation, right::TRUNCATE)?;
                    }
                    false => {
                        let word = Relation::Table(table.clone()).word();
                        self.must_own(table.owner, word, &table.name)?;
                    }
                }
                Ok(Some(table))
            }
            Relation::Virtual(table) => {
                let message = format!("permission denied: \"{}\" is a system catalog", table.name);
                Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message))
            }
            other => {
                let message = format!("\"{}\" is not a table", other.name());
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
        }
    }

    /// An object of any kind to change or drop.
    pub(super) fn owned(
        &mut self,
        kind: ObjectKind,
        name: &ast::Name,
        if_exists: bool,
    ) -> Result<Option<Target>> {
        // What is not in a schema that is there is named alone.
        let alone = |mut e: Error| {
            let qualified = name.parts.len() == 2 && e.code() != state::INVALID_SCHEMA_NAME;
            if qualified && names_relation(kind) && is_missing(&e) {
                let message = e.message().replacen(&name.to_string(), name.last(), 1);
                e.fields_mut().message = message;
            }
            e
        };
        let found = self.find_object(kind, name).map_err(alone);
        match found {
            Ok(target) => Ok(Some(target)),
            Err(e) if if_exists && is_missing(&e) => {
                let message = format!("{}, skipping", e.message());
                self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    pub(super) fn find_object(&mut self, kind: ObjectKind, name: &ast::Name) -> Result<Target> {
        let last = name.last();
        match kind {
            ObjectKind::Schema => {
                let oid = self.schema(last)?;
                let owner = self.catalog().schema(oid).map_or(Oid::NONE, |s| s.owner);
                self.must_own(owner, "schema", last)?;
                Ok(Target {
                    kind: TargetKind::Schema,
                    oid,
                })
            }
            ObjectKind::Role => Ok(Target {
                kind: TargetKind::Role,
                oid: self.role(last)?,
            }),
            ObjectKind::Database => Ok(Target {
                kind: TargetKind::Database,
                oid: self.owned_database(last)?.oid,
            }),
            ObjectKind::Type => self.find_type_object(name),
            ObjectKind::Domain => self.find_domain(name),
            ObjectKind::Other("extension") => self.find_extension(last),
            ObjectKind::Other(what) => {
                let message = format!("{what} \"{name}\" does not exist");
                Err(Error::new(state::UNDEFINED_OBJECT, message))
            }
            _ => self.find_relation_object(kind, name),
        }
    }

    pub(super) fn find_type_object(&mut self, name: &ast::Name) -> Result<Target> {
        let Some(def) = self.made_type(name) else {
            if let Some((array, element)) = self.array_and_element(name) {
                let message =
                    format!("cannot drop type {array} because type {element} requires it");
                return Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .hint(format!("You can drop type {element} instead.")));
            }
            if let Some(schema) = name.schema().filter(|s| self.schema_named(s).is_none()) {
                let message = format!("schema \"{schema}\" does not exist");
                return Err(Error::new(state::INVALID_SCHEMA_NAME, message));
            }
            let plain = name.schema().is_none_or(|s| s == "pg_catalog");
            if let Some(info) = throng_types::sqltype::type_by_name(name.last()).filter(|_| plain) {
                let shown = throng_types::sqltype::type_name(info.oid);
                let message = format!(
                    "cannot drop type {shown} because it is required by the database system"
                );
                return Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message));
            }
            let message = format!("type \"{name}\" does not exist");
            return Err(Error::new(state::UNDEFINED_OBJECT, message));
        };
        self.not_a_row_type(&def)?;
        self.must_own(def.owner, "type", &def.name)?;
        Ok(self.composite_target(&def))
    }

    fn find_enum(&mut self, name: &ast::Name) -> Result<Oid> {
        let made = self.made_type(name).map(|def| def.oid);
        let found = made.or_else(|| self.array_type_named(name));
        let builtin = self.builtin_type(name).map(|info| info.oid);
        match found.or(builtin).filter(|ty| !made::is_enum(*ty)) {
            Some(other) => {
                let message = format!("{} is not an enum", type_name(other));
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
            None => Ok(self.find_type_object(name)?.oid),
        }
    }

    /// What messages call the array type of that name, and its element's.
    fn array_and_element(&self, name: &ast::Name) -> Option<(String, String)> {
        let array = self.array_type_named(name)?;
        Some((type_name(array), type_name(element_of(array)?)))
    }

    pub(super) fn alter_object(
        &mut self,
        kind: ObjectKind,
        name: &ast::Name,
        if_exists: bool,
        change: &ObjectChange,
    ) -> Result<Ddl> {
        if let ObjectKind::Type = kind
            && let Some((array, element)) = self.array_and_element(name)
        {
            let message = format!("cannot alter array type {array}");
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message).hint(format!(
                "You can alter type {element}, which will alter the array type as well."
            )));
        }
        // ALTER TABLE works on indexes and sequences too, and ALTER INDEX … RENAME on all.
        let said = kind;
        let mut kind = kind;
        let any = match kind {
            ObjectKind::Table => true,
            ObjectKind::Index => matches!(change, ObjectChange::Rename(_)),
            _ => false,
        };
        if let (true, Some(found)) = (any, self.find_relation(name)?) {
            kind = match found {
                Relation::Index(_) => ObjectKind::Index,
                Relation::Sequence(_) => ObjectKind::Sequence,
                Relation::View(_) => ObjectKind::View,
                Relation::Table(t) if t.is_materialized() => ObjectKind::MaterializedView,
                Relation::Table(_) => ObjectKind::Table,
                Relation::Virtual(_) => kind,
            };
        }
        let relation = names_relation(kind);
        let missing =
            if_exists && relation && self.find_relation(name).is_ok_and(|found| found.is_none());
        if missing {
            let message = format!("relation \"{}\" does not exist, skipping", name.last());
            self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
            return Ok(Ddl::Nothing {
                tag: alter_tag(said),
            });
        }
        let target = match self.owned(kind, name, if_exists) {
            // It was called a table.
            Ok(Some(target))
                if said == ObjectKind::Table && kind == ObjectKind::MaterializedView =>
            {
                Target {
                    kind: TargetKind::Table,
                    ..target
                }
            }
            Ok(Some(target)) => target,
            Ok(None) => {
                return Ok(Ddl::Nothing {
                    tag: alter_tag(said),
                });
            }
            Err(e) if relation && is_missing(&e) && e.code() != state::INVALID_SCHEMA_NAME => {
                let message = format!("relation \"{name}\" does not exist");
                return Err(Error::new(state::UNDEFINED_TABLE, message));
            }
            Err(mut e) => {
                if e.code() == state::WRONG_OBJECT_TYPE {
                    e.fields_mut().hint = None;
                }
                return Err(e);
            }
        };
        let said = said_relation(said);
        Ok(match change {
            ObjectChange::Rename(to) => {
                if target.kind == TargetKind::Database {
                    self.may_rename_database(target.oid)?;
                }
                Ddl::Rename {
                    target,
                    name: to.clone(),
                    only: false,
                    said,
                }
            }
            ObjectChange::SetSchema(schema) => {
                let schema = self.schema_to_move_to(target, schema)?;
                Ddl::SetSchema {
                    target,
                    schema,
                    said,
                }
            }
            ObjectChange::Owner(role) => {
                let owner = self.role(role)?;
                match target.kind {
                    TargetKind::Database => self.may_give_database(owner)?,
                    TargetKind::Index => {}
                    _ => self.may_give(target, owner)?,
                }
                Ddl::SetOwner {
                    target,
                    owner,
                    said,
                }
            }
        })
    }

    fn drop_objects(
        &mut self,
        kind: ObjectKind,
        names: &[ast::Name],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Ddl> {
        let mut targets = Vec::with_capacity(names.len());
        for name in names {
            if let Some(target) = self.owned(kind, name, if_exists)?
                && !targets.contains(&target)
            {
                targets.push(target);
            }
        }
        if kind == ObjectKind::Role {
            return Ok(Ddl::DropRole {
                roles: targets.iter().map(|t| t.oid).collect(),
            });
        }
        if targets.is_empty() {
            return Ok(Ddl::Nothing {
                tag: match kind {
                    ObjectKind::Index => "DROP INDEX",
                    ObjectKind::Sequence => "DROP SEQUENCE",
                    ObjectKind::View => "DROP VIEW",
                    ObjectKind::Schema => "DROP SCHEMA",
                    ObjectKind::Other("extension") => "DROP EXTENSION",
                    ObjectKind::MaterializedView => "DROP MATERIALIZED VIEW",
                    ObjectKind::Domain => "DROP DOMAIN",
                    ObjectKind::Type | ObjectKind::Other(_) => "DROP TYPE",
                    _ => "DROP TABLE",
                },
            });
        }
        Ok(Ddl::Drop { targets, cascade })
    }

    fn create_schema(
        &mut self,
        name: Option<&str>,
        owner: Option<&str>,
        if_not_exists: bool,
    ) -> Result<Ddl> {
        let owner = match owner {
            Some(role) => self.role(role)?,
            None => self.ctx.user,
        };
        self.may_create_schemas()?;
        self.may_become(owner)?;
        let name = match name {
            Some(name) => name.to_string(),
            None => self
                .catalog()
                .role(owner)
                .map_or(String::new(), |r| r.name.clone()),
        };
        if name.starts_with("pg_") {
            let message = format!("unacceptable schema name \"{name}\"");
            return Err(Error::new(state::RESERVED_NAME, message)
                .detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        Ok(Ddl::CreateSchema {
            name,
            owner,
            if_not_exists,
        })
    }

    /// The elements in the order in which they can name each other.
    pub(super) fn schema_with_elements(
        &mut self,
        name: Option<&str>,
        owner: Option<&str>,
        elements: &[ast::Statement],
    ) -> Result<BoundStatement> {
        let schema = self.create_schema(name, owner, false)?;
        let Ddl::CreateSchema { name, .. } = &schema else {
            return Err(Error::internal("CREATE SCHEMA that makes something else"));
        };
        let mut ordered: Vec<(u8, ast::Statement)> = Vec::with_capacity(elements.len());
        for element in elements {
            let mut element = element.clone();
            let place = match &mut element {
                S::CreateSequence {
                    name: made,
                    temporary,
                    ..
                } => (0, (!*temporary).then_some(made)),
                S::CreateTable(create) => {
                    let temporary = create.persistence.is_temporary();
                    (1, (!temporary).then_some(&mut create.name))
                }
                S::CreateView(create) => (2, (!create.temporary).then_some(&mut create.name)),
                S::CreateIndex(create) => (3, Some(&mut create.table)),
                S::Trigger(trigger) => match &mut **trigger {
                    ast::TriggerStatement::Create(create) => (3, Some(&mut create.table)),
                    ast::TriggerStatement::Change(_) => (4, None),
                },
                _ => (4, None),
            };
            if let (_, Some(made)) = place {
                match made.schema() {
                    None => made.parts.insert(0, name.clone()),
                    Some(other) if other != *name => {
                        let message = format!(
                            "CREATE specifies a schema ({other}) different from the one being created ({name})"
                        );
                        return Err(Error::new(state::INVALID_SCHEMA_DEFINITION, message));
                    }
                    Some(_) => {}
                }
            }
            let (rank, _) = place;
            ordered.push((rank, element));
        }
        ordered.sort_by_key(|(rank, _)| *rank);
        Ok(BoundStatement::CreateSchema {
            schema: Box::new(schema),
            elements: ordered.into_iter().map(|(_, element)| element).collect(),
        })
    }

    /// A sequence's options, and `OWNED BY` where it was given (`Some(None)`: NONE).
    #[allow(clippy::type_complexity)] // An option that may be given as none.
    pub(super) fn sequence_options(
        &mut self,
        list: &[O],
    ) -> Result<(SequenceOptions, Option<Option<(Oid, u16)>>)> {
        let mut options = SequenceOptions::default();
        let mut owned_by = None;
        let twice = || Error::new(state::SYNTAX_ERROR, "conflicting or redundant options");
        fn set<T>(slot: &mut Option<T>, value: T, twice: impl Fn() -> Error) -> Result<()> {
            if slot.is_some() {
                return Err(twice());
            }
            *slot = Some(value);
            Ok(())
        }
        for option in list {
            match option {
                O::As(name) => {
                    let ty = self.type_of(name)?.oid;
                    if !matches!(ty, oid::INT2 | oid::INT4 | oid::INT8) {
                        let message = "sequence type must be smallint, integer, or bigint";
                        return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                    }
                    set(&mut options.ty, ty, twice)?;
                }
                O::Start(n) => set(&mut options.start, *n, twice)?,
                O::Increment(0) => {
                    let message = "INCREMENT must not be zero";
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                }
                O::Increment(n) => set(&mut options.increment, *n, twice)?,
                O::Min(n) => set(&mut options.min, *n, twice)?,
                O::Max(n) => set(&mut options.max, *n, twice)?,
                O::Cache(n) if *n < 1 => {
                    let message = format!("CACHE ({n}) must be greater than zero");
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                }
                O::Cache(n) => set(&mut options.cache, *n, twice)?,
                O::Cycle(on) => set(&mut options.cycle, *on, twice)?,
                O::Restart(n) => set(&mut options.restart, *n, twice)?,
                O::OwnedBy(None) => owned_by = Some(None),
                O::OwnedBy(Some(name)) => owned_by = Some(Some(self.owning_column(name)?)),
                O::Name(name) => {
                    let schema = self.creation_schema(name)?;
                    set(&mut options.name, (schema, name.last().to_string()), twice)?;
                }
            }
        }
        Ok((options, owned_by))
    }

    /// The options of a sequence that has a name already.
    #[allow(clippy::type_complexity)] // As those of `sequence_options`.
    fn unnamed_sequence_options(
        &mut self,
        list: &[O],
    ) -> Result<(SequenceOptions, Option<Option<(Oid, u16)>>)> {
        let (options, owned_by) = self.sequence_options(list)?;
        if options.name.is_some() {
            let message = "invalid sequence option SEQUENCE NAME";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        Ok((options, owned_by))
    }

    fn owning_column(&mut self, name: &ast::Name) -> Result<(Oid, u16)> {
        let Some((column, table)) = name.parts.split_last().filter(|(_, t)| !t.is_empty()) else {
            return Err(Error::new(state::SYNTAX_ERROR, "invalid OWNED BY option")
                .hint("Specify OWNED BY table.column or OWNED BY NONE."));
        };
        let table = ast::Name {
            parts: table.to_vec(),
            pos: name.pos,
        };
        match self.relation(&table)? {
            Relation::Table(def) => {
                let attnum = self
                    .target_column(&def, column, name.pos)
                    .map_err(|mut e| {
                        e.fields_mut().position = None;
                        e
                    })?;
                Ok((def.oid, attnum))
            }
            other => {
                let message = format!("sequence cannot be owned by relation \"{}\"", other.name());
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
        }
    }

    fn role_options(&self, list: &[ast::RoleOption]) -> Result<RoleOptions> {
        use ast::RoleOption as R;
        let mut options = RoleOptions::default();
        let find = |names: &[String]| {
            names
                .iter()
                .map(|n| self.role(n))
                .collect::<Result<Vec<_>>>()
        };
        for option in list {
            match option {
                R::Superuser(on) => options.superuser = Some(*on),
                R::Inherit(on) => options.inherit = Some(*on),
                R::CreateRole(on) => options.create_role = Some(*on),
                R::CreateDb(on) => options.create_db = Some(*on),
                R::Login(on) => options.login = Some(*on),
                R::Replication(on) => options.replication = Some(*on),
                R::BypassRls(on) => options.bypass_rls = Some(*on),
                R::ConnectionLimit(n) if *n < -1 => {
                    let message = format!("invalid connection limit: {n}");
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                }
                R::ConnectionLimit(n) => options.connection_limit = Some(*n),
                R::Password(password) => options.password = Some(password.clone()),
                R::ValidUntil(time) => {
                    let moment =
                        throng_values::io::datetime::parse_timestamptz(&self.ctx.eval, time)?;
                    options.valid_until = Some(throng_values::io::datetime::kept_moment(moment));
                }
                R::InRole(names) => options.in_roles.extend(find(names)?),
                R::Members(names) => options.members.extend(find(names)?),
                R::Admins(names) => options.admins.extend(find(names)?),
            }
        }
        Ok(options)
    }
}

/// What ALTER says of a relation that a statement called so.
pub(super) fn said_relation(kind: ObjectKind) -> Option<TargetKind> {
    Some(match kind {
        ObjectKind::Table => TargetKind::Table,
        ObjectKind::Index => TargetKind::Index,
        ObjectKind::Sequence => TargetKind::Sequence,
        ObjectKind::View => TargetKind::View,
        ObjectKind::MaterializedView => TargetKind::MaterializedView,
        _ => return None,
    })
}

/// The tag of an ALTER that has nothing to do.
pub(super) fn alter_tag(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::MaterializedView => "ALTER MATERIALIZED VIEW",
        ObjectKind::View => "ALTER VIEW",
        ObjectKind::Index => "ALTER INDEX",
        ObjectKind::Sequence => "ALTER SEQUENCE",
        ObjectKind::Type => "ALTER TYPE",
        ObjectKind::Domain => "ALTER DOMAIN",
        _ => "ALTER TABLE",
    }
}

fn names_relation(kind: ObjectKind) -> bool {
    use ObjectKind::{Index, MaterializedView, Sequence, Table, View};
    matches!(kind, Table | Index | Sequence | View | MaterializedView)
}

/// Whether an error says that a thing is not there.
fn is_missing(e: &Error) -> bool {
    [
        state::UNDEFINED_TABLE,
        state::UNDEFINED_OBJECT,
        state::INVALID_SCHEMA_NAME,
        state::INVALID_CATALOG_NAME,
    ]
    .contains(&e.code())
}
