//! CREATE, ALTER and DROP DATABASE: what their options mean, and who may.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::command::{CreateDatabase, DatabaseChanges, Ddl};
use throng_catalog::{DatabaseDef, builtin};
use throng_syntax::parse::ast::DatabaseOption;
use throng_values::settings::value::parse_bool;

/// The only locale there is, as it may be written.
const LOCALES: [&str; 3] = ["C.UTF-8", "C.utf8", "C.UTF8"];
/// Those that order text as it does.
const PLAIN: [&str; 2] = ["C", "POSIX"];

fn denied(message: &str) -> Error {
    Error::new(state::INSUFFICIENT_PRIVILEGE, message)
}

fn invalid(message: String) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

fn bool_of(option: &DatabaseOption, unless: bool) -> Result<bool> {
    let Some(text) = &option.value else {
        return Ok(unless);
    };
    parse_bool(text).ok_or_else(|| {
        let message = format!("{} requires a Boolean value", option.name);
        Error::new(state::SYNTAX_ERROR, message)
    })
}

fn limit_of(option: &DatabaseOption) -> Result<i32> {
    let Some(text) = &option.value else {
        return Ok(-1);
    };
    let limit: i32 = text.parse().map_err(|_| {
        let message = format!("{} requires an integer value", option.name);
        Error::new(state::SYNTAX_ERROR, message)
    })?;
    match limit {
        ..-1 => Err(invalid(format!("invalid connection limit: {limit}"))),
        limit => Ok(limit),
    }
}

/// Each option once.
fn distinct(options: &[DatabaseOption]) -> Result<()> {
    for (at, option) in options.iter().enumerate() {
        if options[..at].iter().any(|other| other.name == option.name) {
            let message = "conflicting or redundant options";
            return Err(Error::new(state::SYNTAX_ERROR, message).position(option.pos + 1));
        }
    }
    Ok(())
}

fn unknown(option: &DatabaseOption) -> Error {
    let message = format!("option \"{}\" not recognized", option.name);
    Error::new(state::SYNTAX_ERROR, message).position(option.pos + 1)
}

/// Options about how text is stored and ordered: there is one way.
fn must_be_ours(option: &DatabaseOption) -> Result<()> {
    let Some(value) = option.value.as_deref() else {
        return Ok(());
    };
    let ours = match option.name.as_str() {
        "encoding" => matches!(
            value.to_ascii_lowercase().as_str(),
            "utf8" | "utf-8" | "unicode" | "6"
        ),
        "locale" | "lc_collate" | "lc_ctype" => {
            let ours = LOCALES
                .iter()
                .any(|known| known.eq_ignore_ascii_case(value));
            ours || PLAIN.contains(&value)
        }
        "locale_provider" => value.eq_ignore_ascii_case("libc"),
        _ => false,
    };
    match ours {
        true => Ok(()),
        false if matches!(option.name.as_str(), "locale" | "lc_collate" | "lc_ctype") => {
            let what = match option.name.as_str() {
                "lc_ctype" => "LC_CTYPE",
                _ => "LC_COLLATE",
            };
            let message = format!("invalid {what} locale name: \"{value}\"");
            Err(Error::new(state::WRONG_OBJECT_TYPE, message))
        }
        false => {
            let what = option.name.to_ascii_uppercase();
            Err(Error::unsupported(format!("{what} \"{value}\""))
                .hint("Databases have the encoding UTF8 and the locale C.UTF-8 of libc."))
        }
    }
}

impl Binder<'_> {
    pub(in crate::binder) fn database(&self, name: &str) -> Result<Arc<DatabaseDef>> {
        let found = self.catalog().database_by_name(name);
        found.cloned().ok_or_else(|| {
            let message = format!("database \"{name}\" does not exist");
            Error::new(state::INVALID_CATALOG_NAME, message)
        })
    }

    pub(in crate::binder) fn owned_database(&self, name: &str) -> Result<Arc<DatabaseDef>> {
        let def = self.database(name)?;
        self.must_own(def.owner, "database", name)?;
        Ok(def)
    }

    fn may_create_databases(&self) -> bool {
        let role = self.catalog().role(self.ctx.user);
        role.is_some_and(|role| role.superuser || role.create_db)
    }

    pub(in crate::binder) fn create_database(
        &mut self,
        name: &str,
        options: &[DatabaseOption],
    ) -> Result<Ddl> {
        distinct(options)?;
        let mut create = CreateDatabase {
            oid: None,
            name: name.to_owned(),
            owner: self.ctx.user,
            template: builtin::TEMPLATE1,
            changes: DatabaseChanges::default(),
        };
        let mut template = "template1";
        for option in options {
            let value = option.value.as_deref();
            match (option.name.as_str(), value) {
                ("owner", Some(role)) => create.owner = self.role(role)?,
                ("template", Some(name)) => template = name,
                ("tablespace", Some("pg_global")) => {
                    let message = "pg_global cannot be used as default tablespace";
                    return Err(invalid(message.to_owned()));
                }
                ("tablespace", Some(space)) if space != "pg_default" => {
                    let message = format!("tablespace \"{space}\" does not exist");
                    return Err(Error::new(state::UNDEFINED_OBJECT, message));
                }
                // There is nothing to copy, so one way is as good as the other.
                ("strategy", Some(way))
                    if !["wal_log", "file_copy"].contains(&way.to_ascii_lowercase().as_str()) =>
                {
                    let message = format!("invalid create database strategy \"{way}\"");
                    let hint = "Valid strategies are \"wal_log\" and \"file_copy\".";
                    return Err(invalid(message).hint(hint));
                }
                ("owner" | "template" | "tablespace" | "strategy", _) => {}
                (
                    "encoding" | "locale" | "lc_collate" | "lc_ctype" | "locale_provider"
                    | "builtin_locale" | "icu_locale" | "icu_rules" | "collation_version" | "oid",
                    _,
                ) => {
                    must_be_ours(option)?;
                    let of_case = option.name != "lc_collate" && option.name != "encoding";
                    if of_case && value.is_some_and(|v| PLAIN.contains(&v)) {
                        let what = option.name.to_ascii_uppercase();
                        let said = value.unwrap_or_default();
                        let notice = format!("{what} \"{said}\" is taken as \"C.UTF-8\"");
                        let detail = "Upper and lower case are those of all letters.";
                        let code = state::SUCCESSFUL_COMPLETION;
                        self.notice(Error::new(code, notice).detail(detail));
                    }
                }
                _ => self.database_change(option, &mut create.changes)?,
            }
        }
        if !self.may_create_databases() {
            return Err(denied("permission denied to create database"));
        }
        self.may_become(create.owner)?;
        let found = self.catalog().database_by_name(template);
        let Some(template) = found else {
            let message = format!("template database \"{template}\" does not exist");
            return Err(Error::new(state::INVALID_CATALOG_NAME, message));
        };
        if !template.is_template && !self.acts_as(template.owner) {
            let message = format!("permission denied to copy database \"{}\"", template.name);
            return Err(denied(&message));
        }
        create.template = template.oid;
        Ok(Ddl::CreateDatabase(Box::new(create)))
    }

    fn database_change(
        &self,
        option: &DatabaseOption,
        changes: &mut DatabaseChanges,
    ) -> Result<()> {
        match option.name.as_str() {
            "is_template" => changes.is_template = Some(bool_of(option, false)?),
            "allow_connections" => changes.allow_connections = Some(bool_of(option, true)?),
            "connection_limit" => changes.connection_limit = Some(limit_of(option)?),
            _ => return Err(unknown(option)),
        }
        Ok(())
    }

    pub(in crate::binder) fn alter_database(
        &self,
        name: &str,
        options: &[DatabaseOption],
    ) -> Result<Ddl> {
        distinct(options)?;
        let mut changes = DatabaseChanges::default();
        for option in options {
            if option.name == "tablespace" {
                return Err(Error::unsupported("ALTER DATABASE ... TABLESPACE"));
            }
            self.database_change(option, &mut changes)?;
        }
        let def = self.owned_database(name)?;
        if changes.allow_connections == Some(false)
            && def.oid == self.catalog().current_database_oid()
        {
            let message = "cannot disallow connections for current database";
            return Err(invalid(message.to_owned()));
        }
        Ok(Ddl::AlterDatabase {
            database: def.oid,
            changes,
        })
    }

    pub(in crate::binder) fn drop_database(
        &mut self,
        name: &str,
        if_exists: bool,
        force: bool,
    ) -> Result<Ddl> {
        let def = match self.database(name) {
            Err(e) if if_exists => {
                let message = format!("{}, skipping", e.message());
                self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                return Ok(Ddl::Nothing {
                    tag: "DROP DATABASE",
                });
            }
            found => found?,
        };
        self.must_own(def.owner, "database", name)?;
        if def.is_template {
            let message = "cannot drop a template database";
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        }
        self.must_be_another(def.oid, "cannot drop the currently open database")?;
        if def.definitions == builtin::DEFINITIONS {
            return Err(Error::unsupported(format!("DROP DATABASE {name}"))
                .detail("What all databases share is kept in it."));
        }
        Ok(Ddl::DropDatabase {
            database: def.oid,
            force,
        })
    }

    /// ALTER DATABASE RENAME, by the owner.
    pub(in crate::binder) fn may_rename_database(&self, database: Oid) -> Result<()> {
        if !self.may_create_databases() {
            return Err(denied("permission denied to rename database"));
        }
        self.must_be_another(database, "current database cannot be renamed")
    }

    /// ALTER DATABASE OWNER, by the owner.
    pub(in crate::binder) fn may_give_database(&self, owner: Oid) -> Result<()> {
        self.may_become(owner)?;
        match self.may_create_databases() {
            true => Ok(()),
            false => Err(denied("permission denied to change owner of database")),
        }
    }

    fn must_be_another(&self, database: Oid, message: &str) -> Result<()> {
        match database == self.catalog().current_database_oid() {
            true => Err(Error::new(state::OBJECT_IN_USE, message)),
            false => Ok(()),
        }
    }
}
