//! GRANT and REVOKE, and who may manage roles.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::command::{
    AlterDefaultPrivileges, Ddl, Grant, GrantRole, Granted, RoleOptions, TargetKind,
};
use throng_catalog::{Relation, Through};
use throng_syntax::parse::ast::{self, GrantKind, GrantOn};
use throng_syntax::vocabulary::SettingsOf;
use throng_values::acl::{Kind, right};

fn wrong_right(bit: u32, on: &str) -> Error {
    let message = format!("invalid privilege type {} for {on}", right::name(bit));
    Error::new(state::INVALID_GRANT_OPERATION, message)
}

fn right_named(name: &str) -> Result<u32> {
    right::named(name).ok_or_else(|| {
        let message = format!("unrecognized privilege type \"{name}\"");
        Error::new(state::SYNTAX_ERROR, message)
    })
}

/// What may be granted on things called so, and how errors call them.
fn grantable(kind: GrantKind) -> Result<(u32, &'static str, Kind)> {
    Ok(match kind {
        // Some of what is called a table may be a sequence.
        GrantKind::Table => (
            right::RELATION | right::SEQUENCE,
            "relation",
            Kind::Relation,
        ),
        GrantKind::Sequence => (right::SEQUENCE, "sequence", Kind::Sequence),
        GrantKind::Database => (right::DATABASE, "database", Kind::Database),
        GrantKind::Schema => (right::SCHEMA, "schema", Kind::Schema),
        GrantKind::Type => (right::USAGE, "type", Kind::Type),
        GrantKind::Function => (right::EXECUTE, "function", Kind::Function),
        GrantKind::Other(what) => {
            let what = format!("GRANT of privileges on a {what}");
            return Err(Error::unsupported(what));
        }
    })
}

/// Rights on whole objects (None: all), and on columns.
type Rights = (Option<u32>, Vec<(Option<u32>, Vec<String>)>);

fn rights_of(ast: &ast::Grant, all: u32, on: &str, columns_too: bool) -> Result<Rights> {
    let Some(list) = &ast.rights else {
        return Ok((None, vec![]));
    };
    let mut rights = 0;
    let mut columns = Vec::new();
    for item in list {
        let bit = item.name.as_deref().map(right_named).transpose()?;
        if !item.columns.is_empty() {
            if !columns_too {
                let message = "column privileges are only valid for relations";
                return Err(Error::new(state::INVALID_GRANT_OPERATION, message));
            }
            if let Some(bit) = bit.filter(|bit| bit & right::COLUMN == 0) {
                return Err(wrong_right(bit, "column"));
            }
            columns.push((bit, item.columns.clone()));
            continue;
        }
        let bit = bit.unwrap_or(0);
        if bit & all == 0 {
            return Err(wrong_right(bit, on));
        }
        rights |= bit;
    }
    Ok((Some(rights), columns))
}

impl Binder<'_> {
    pub(in crate::binder) fn grant(&mut self, ast: &ast::Grant) -> Result<Ddl> {
        if let Some(grantor) = &ast.grantor
            && self.role(grantor)? != self.ctx.user
        {
            let message = "grantor must be current user";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let (kind, objects) = match &ast.on {
            GrantOn::Objects(kind, names) => {
                let objects = names.iter().map(|name| self.granted(*kind, name));
                (*kind, objects.collect::<Result<Vec<_>>>()?)
            }
            GrantOn::Routines(word, names) => {
                let mut objects = Vec::with_capacity(names.len());
                for name in names {
                    objects.push(Granted {
                        kind: Kind::Function,
                        oid: self.find_routine(*word, name)?.oid,
                        as_table: false,
                    });
                }
                (GrantKind::Function, objects)
            }
            GrantOn::AllIn(kind, schemas) => (*kind, self.all_in(*kind, schemas)?),
            GrantOn::Future(_) => return Err(Error::internal("a grant on nothing")),
        };
        let (all, on, _) = grantable(kind)?;
        let grantees = self.grantees(&ast.grantees)?;
        let (rights, columns) = rights_of(ast, all, on, kind == GrantKind::Table)?;
        Ok(Ddl::Grant(Grant {
            revoke: ast.revoke,
            option: ast.option,
            rights,
            columns,
            objects,
            grantees,
            cascade: ast.cascade,
        }))
    }

    fn grantees(&self, names: &[String]) -> Result<Vec<Oid>> {
        let one = |name: &String| match name.as_str() {
            "public" => Ok(Oid::NONE),
            name => self.role(name),
        };
        names.iter().map(one).collect()
    }

    fn granted(&self, kind: GrantKind, name: &ast::Name) -> Result<Granted> {
        let object = |kind: Kind, oid: Oid| Granted {
            kind,
            oid,
            as_table: false,
        };
        Ok(match kind {
            GrantKind::Table | GrantKind::Sequence => {
                let relation = self.relation(name).map_err(|mut e| {
                    e.fields_mut().position = None;
                    e
                })?;
                let wrong = |what: &str| {
                    let message = format!("\"{}\" is {what}", relation.name());
                    Err(Error::new(state::WRONG_OBJECT_TYPE, message))
                };
                let is_sequence = matches!(relation, Relation::Sequence(_));
                match kind {
                    _ if matches!(relation, Relation::Index(_)) => return wrong("an index"),
                    GrantKind::Sequence if !is_sequence => return wrong("not a sequence"),
                    _ => Granted {
                        kind: relation.acl_kind(),
                        oid: relation.oid(),
                        as_table: kind == GrantKind::Table,
                    },
                }
            }
            GrantKind::Schema => object(Kind::Schema, self.schema(name.last())?),
            GrantKind::Database => object(Kind::Database, self.database(name.last())?.oid),
            GrantKind::Type => match self.made_type(name) {
                Some(def) => object(Kind::Type, def.oid),
                None if throng_types::sqltype::type_by_name(name.last()).is_some() => {
                    return Err(Error::unsupported(
                        "GRANT of privileges on a type of the system",
                    ));
                }
                None if self.array_type_named(name).is_some() => {
                    let message = "cannot set privileges of array types";
                    return Err(Error::new(state::INVALID_GRANT_OPERATION, message)
                        .hint("Set the privileges of the element type instead."));
                }
                None => {
                    let message = format!("type \"{name}\" does not exist");
                    return Err(Error::new(state::UNDEFINED_OBJECT, message));
                }
            },
            GrantKind::Function | GrantKind::Other(_) => {
                let (_, what, _) = grantable(kind)?;
                let what = format!("GRANT of privileges on a {what}");
                return Err(Error::unsupported(what));
            }
        })
    }

    fn all_in(&self, kind: GrantKind, schemas: &[String]) -> Result<Vec<Granted>> {
        let mut found = Vec::new();
        for name in schemas {
            let schema = self.schema(name)?;
            self.may_look_into(schema)?;
            let catalog = self.catalog();
            let mut oids: Vec<Oid> = match kind {
                GrantKind::Table => {
                    let tables = catalog.tables().into_iter().map(|t| (t.schema, t.oid));
                    let views = catalog.views().into_iter().map(|v| (v.schema, v.oid));
                    let both = tables.chain(views);
                    both.filter(|(s, _)| *s == schema)
                        .map(|(_, oid)| oid)
                        .collect()
                }
                GrantKind::Sequence => {
                    let all = catalog.sequences().into_iter();
                    all.filter(|s| s.schema == schema).map(|s| s.oid).collect()
                }
                GrantKind::Function => {
                    let all = catalog.routines().into_iter();
                    all.filter(|r| r.schema == schema).map(|r| r.oid).collect()
                }
                _ => {
                    let (_, what, _) = grantable(kind)?;
                    let what = format!("GRANT of privileges on all {what}s of a schema");
                    return Err(Error::unsupported(what));
                }
            };
            oids.sort_unstable();
            let (.., kind) = grantable(kind)?;
            found.extend(oids.into_iter().map(|oid| Granted {
                kind,
                oid,
                as_table: false,
            }));
        }
        Ok(found)
    }

    pub(in crate::binder) fn alter_default_privileges(
        &mut self,
        roles: &[String],
        schemas: &[String],
        ast: &ast::Grant,
    ) -> Result<Ddl> {
        let GrantOn::Future(kind) = ast.on else {
            return Err(Error::internal(
                "default privileges on something that is there",
            ));
        };
        let (all, on, acl_kind) = match kind {
            GrantKind::Table => (right::RELATION, "relation", Kind::Relation),
            kind => grantable(kind)?,
        };
        if kind == GrantKind::Schema && !schemas.is_empty() {
            let message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
            return Err(Error::new(state::INVALID_GRANT_OPERATION, message));
        }
        let (rights, columns) = rights_of(ast, all, on, true)?;
        if !columns.is_empty() {
            let message = "default privileges cannot be set for columns";
            return Err(Error::new(state::INVALID_GRANT_OPERATION, message));
        }
        let grantees = self.grantees(&ast.grantees)?;
        let roles = match roles {
            [] => vec![self.ctx.user],
            named => named.iter().map(|r| self.role(r)).collect::<Result<_>>()?,
        };
        let schemas = match schemas {
            [] => vec![Oid::NONE],
            named => named
                .iter()
                .map(|s| self.schema(s))
                .collect::<Result<_>>()?,
        };
        Ok(Ddl::AlterDefaultPrivileges(AlterDefaultPrivileges {
            roles,
            schemas,
            kind: acl_kind,
            revoke: ast.revoke,
            option: ast.option,
            rights,
            grantees,
            cascade: ast.cascade,
        }))
    }

    pub(in crate::binder) fn roles(&self, names: &[String]) -> Result<Vec<Oid>> {
        names.iter().map(|name| self.role(name)).collect()
    }

    pub(in crate::binder) fn grant_role(&mut self, ast: &ast::GrantRole) -> Result<Ddl> {
        let mut grant = GrantRole {
            roles: vec![],
            members: vec![],
            revoke: ast.revoke,
            admin: None,
            inherit: None,
            set: None,
            grantor: None,
            cascade: ast.cascade,
        };
        for (option, on) in &ast.options {
            match option.as_str() {
                "admin" => grant.admin = Some(*on),
                "inherit" => grant.inherit = Some(*on),
                "set" => grant.set = Some(*on),
                _ => {
                    let message = format!("unrecognized role option \"{option}\"");
                    return Err(Error::new(state::SYNTAX_ERROR, message));
                }
            }
        }
        if let Some(grantor) = &ast.grantor {
            grant.grantor = Some(self.role(grantor)?);
        }
        grant.members = self.roles(&ast.members)?;
        grant.roles = self.roles(&ast.roles)?;
        Ok(Ddl::GrantRole(grant))
    }

    /// Roles are managed by superusers, and by those with CREATEROLE where they may grant the role.
    pub(in crate::binder) fn check_role_rights(&self, ddl: &Ddl) -> Result<()> {
        let catalog = self.catalog();
        let user = self.ctx.user;
        let Some(own) = catalog.role(user).filter(|r| !r.superuser) else {
            return Ok(());
        };
        let denied = |verb: &str, detail: String| {
            let message = format!("permission denied to {verb} role");
            Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message).detail(detail))
        };
        let only = |attribute: &str, rest: &str| {
            format!(
                "Only roles with the {attribute} attribute may {rest} the {attribute} attribute."
            )
        };
        let name = |role: Oid| catalog.role(role).map_or("", |r| &r.name);
        let manages = |role: Oid| own.create_role && catalog.is_admin_of(user, role);
        let this = |verb: &str, role: Oid| {
            let name = name(role);
            format!(
                "Only roles with the CREATEROLE attribute and the ADMIN option on role \"{name}\" may {verb} this role."
            )
        };
        // What a role may give only if it has it.
        let beyond = |changes: &RoleOptions, creating: bool| {
            let asked = |option: Option<bool>| match creating {
                true => option == Some(true),
                false => option.is_some(),
            };
            [
                (asked(changes.create_db) && !own.create_db, "CREATEDB"),
                (
                    asked(changes.replication) && !own.replication,
                    "REPLICATION",
                ),
                (asked(changes.bypass_rls) && !own.bypass_rls, "BYPASSRLS"),
            ]
            .into_iter()
            .find_map(|(beyond, attribute)| beyond.then_some(attribute))
        };
        match ddl {
            Ddl::CreateRole { changes, .. } => {
                if !own.create_role {
                    let detail = "Only roles with the CREATEROLE attribute may create roles.";
                    return denied("create", detail.into());
                }
                if changes.superuser == Some(true) {
                    return denied("create", only("SUPERUSER", "create roles with"));
                }
                match beyond(changes, true) {
                    Some(attribute) => denied("create", only(attribute, "create roles with")),
                    None => Ok(()),
                }
            }
            Ddl::AlterRole { role, changes } => {
                if catalog.is_superuser(*role) {
                    return denied("alter", only("SUPERUSER", "alter roles with"));
                }
                if changes.superuser.is_some() {
                    return denied("alter", only("SUPERUSER", "change"));
                }
                if manages(*role) {
                    return match beyond(changes, false) {
                        Some(attribute) => denied("alter", only(attribute, "change")),
                        None => Ok(()),
                    };
                }
                let rest = RoleOptions {
                    password: None,
                    ..changes.clone()
                };
                if rest != RoleOptions::default() {
                    return denied("alter", this("alter", *role));
                }
                if changes.password.is_some() && *role != user {
                    let detail = "To change another role's password, the current user must have the CREATEROLE attribute and the ADMIN option on the role.";
                    return denied("alter", detail.into());
                }
                Ok(())
            }
            Ddl::AlterRoleSet {
                role: SettingsOf::Role(role),
                ..
            } => {
                if catalog.is_superuser(*role) {
                    return denied("alter", only("SUPERUSER", "alter roles with"));
                }
                match manages(*role) || *role == user {
                    true => Ok(()),
                    false => denied("alter", this("alter", *role)),
                }
            }
            Ddl::AlterRoleSet { database, .. } => {
                let database = database.and_then(|oid| catalog.database(oid));
                let owner = database.map_or(Oid::NONE, |d| d.owner);
                self.must_own(owner, "database", database.map_or("", |d| &d.name))
            }
            Ddl::DropRole { roles } => {
                if !own.create_role {
                    let detail = "Only roles with the CREATEROLE attribute and the ADMIN option on the target roles may drop roles.";
                    return denied("drop", detail.into());
                }
                for role in roles {
                    if catalog.is_superuser(*role) {
                        return denied("drop", only("SUPERUSER", "drop roles with"));
                    }
                    if *role != user && !catalog.is_admin_of(user, *role) {
                        return denied("drop", this("drop", *role));
                    }
                }
                Ok(())
            }
            Ddl::Rename { target, .. } if target.kind == TargetKind::Schema => {
                if catalog.database_rights(user, right::CREATE) == 0 {
                    let database = catalog.current_database_name();
                    let message = format!("permission denied for database {database}");
                    return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
                }
                Ok(())
            }
            Ddl::Comment { target, .. } if target.kind == TargetKind::Role => {
                let needed = match (catalog.is_superuser(target.oid), own.create_role) {
                    (true, _) => "SUPERUSER attribute".to_owned(),
                    (false, false) => "CREATEROLE attribute".to_owned(),
                    _ if catalog.is_admin_of(user, target.oid) => return Ok(()),
                    _ => format!("ADMIN option on role \"{}\"", name(target.oid)),
                };
                let message = "permission denied";
                Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message)
                    .detail(format!("The current user must have the {needed}.")))
            }
            Ddl::Rename { target, .. } if target.kind == TargetKind::Role => {
                if catalog.is_superuser(target.oid) {
                    return denied("rename", only("SUPERUSER", "rename roles with"));
                }
                match manages(target.oid) {
                    true => Ok(()),
                    false => denied("rename", this("rename", target.oid)),
                }
            }
            _ => Ok(()),
        }
    }

    /// An object may be given only to a role that the current one could become.
    pub(in crate::binder) fn may_become(&self, role: Oid) -> Result<()> {
        if self.catalog().in_role(self.ctx.user, role, Through::Set) {
            return Ok(());
        }
        let name = self.catalog().role(role).map_or("", |r| &r.name);
        let message = format!("must be able to SET ROLE \"{name}\"");
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    /// OWNER TO: the new owner must be able to make such a thing there itself.
    pub(in crate::binder) fn may_give(
        &self,
        target: crate::command::Target,
        owner: Oid,
    ) -> Result<()> {
        let catalog = self.catalog();
        if catalog.is_superuser(self.ctx.user) {
            return Ok(());
        }
        let relation = catalog.relation(target.oid);
        let schema = relation.as_ref().map(|r| r.schema());
        let schema = schema
            .or_else(|| Some(catalog.made_type(target.oid)?.schema))
            .or_else(|| Some(catalog.routine(target.oid)?.schema))
            .or_else(|| Some(catalog.operator(target.oid)?.schema));
        let old = match (&relation, catalog.schema(target.oid)) {
            (Some(relation), _) => Some(relation.owner(catalog)),
            (None, Some(schema)) => Some(schema.owner),
            _ => {
                let of_type = catalog.made_type(target.oid).map(|t| t.owner);
                of_type
                    .or_else(|| Some(catalog.routine(target.oid)?.owner))
                    .or_else(|| Some(catalog.operator(target.oid)?.owner))
            }
        };
        if old == Some(owner) {
            return Ok(());
        }
        self.may_become(owner)?;
        match schema {
            Some(schema) if catalog.schema_rights(owner, schema, right::CREATE) == 0 => {
                Err(self.schema_denied(schema))
            }
            None if catalog.schema(target.oid).is_some() => self.may_create_schemas(),
            _ => Ok(()),
        }
    }

    pub(in crate::binder) fn may_create_schemas(&self) -> Result<()> {
        if self.catalog().database_rights(self.ctx.user, right::CREATE) != 0 {
            return Ok(());
        }
        let message = format!(
            "permission denied for database {}",
            self.catalog().current_database_name()
        );
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    pub(in crate::binder) fn may_create_temporary(&self) -> Result<()> {
        if self
            .catalog()
            .database_rights(self.ctx.user, right::TEMPORARY)
            != 0
        {
            return Ok(());
        }
        let message = format!(
            "permission denied to create temporary tables in database \"{}\"",
            self.catalog().current_database_name()
        );
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message))
    }
}
