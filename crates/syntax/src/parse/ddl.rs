//! CREATE, ALTER and DROP of everything but tables' insides (see `table`).

use throng_types::Result;
use throng_types::error::state;

use super::Parser;
use super::ast::*;
use super::lexer::Kind;
use crate::vocabulary::{OnCommit, Persistence, SettingsOf};

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        let pos = self.pos();
        self.keyword("create")?;
        if self.word("or") {
            self.keyword("replace")?;
            if self.any_of(&["view", "recursive"]) {
                return self.create_view(true, false);
            }
            if self.any_of(&["temp", "temporary", "local", "global"]) {
                self.temporary()?;
                return self.create_view(true, true);
            }
            if self.any_of(&["function", "procedure"]) {
                return self.create_routine(true);
            }
            if self.is("aggregate") {
                return self.create_aggregate(true);
            }
            if self.any_of(&["trigger", "constraint"]) {
                return self.create_trigger(true, pos);
            }
            if self.is("materialized") {
                return Err(self.unexpected());
            }
            return Err(self.unsupported("CREATE OR REPLACE", pos));
        }
        let Some(word) = self.peek_word().map(str::to_string) else {
            return Err(self.unexpected());
        };
        match word.as_str() {
            "table" => {
                self.advance();
                self.create_table(Persistence::Permanent)
            }
            "unlogged" => {
                self.advance();
                if self.is("sequence") {
                    return Err(self.unsupported("CREATE UNLOGGED SEQUENCE", pos));
                }
                if self.is("materialized") {
                    return self.create_materialized_view(Persistence::Unlogged);
                }
                self.keyword("table")?;
                self.create_table(Persistence::Unlogged)
            }
            "temp" | "temporary" | "local" | "global" => {
                self.temporary()?;
                self.create_temporary()
            }
            "unique" | "index" => self.create_index(),
            "schema" => self.create_schema(),
            "sequence" => {
                self.advance();
                self.create_sequence(false)
            }
            "role" | "user" | "group" => {
                self.advance();
                if self.is("mapping") {
                    return Err(self.unsupported("CREATE USER MAPPING", pos));
                }
                let name = self.name()?;
                self.word("with");
                let mut options = self.role_options()?;
                if word == "user" {
                    options.insert(0, RoleOption::Login(true));
                }
                Ok(Statement::CreateRole { name, options })
            }
            "database" => self.create_database(),
            "view" | "recursive" => self.create_view(false, false),
            "materialized" => self.create_materialized_view(Persistence::Permanent),
            "function" | "procedure" => self.create_routine(false),
            "trigger" | "constraint" => self.create_trigger(false, pos),
            "type" => self.create_type(),
            "domain" => self.create_domain(),
            "extension" => self.create_extension(),
            "tablespace" => Ok(self.skip_unsupported("CREATE TABLESPACE")),
            "publication" => Ok(self.skip_unsupported("CREATE PUBLICATION")),
            "subscription" => Ok(self.skip_unsupported("CREATE SUBSCRIPTION")),
            "rule" => Ok(self.skip_unsupported("CREATE RULE")),
            "policy" => self.create_policy(),
            "statistics" => Ok(self.skip_unsupported("CREATE STATISTICS")),
            "aggregate" => self.create_aggregate(false),
            "operator" => self.create_operator(),
            "collation" => Ok(self.skip_unsupported("CREATE COLLATION")),
            "cast" => self.create_cast(),
            "language" | "trusted" => Ok(self.skip_unsupported("CREATE LANGUAGE")),
            "foreign" | "server" => Ok(self.skip_unsupported("foreign data")),
            "event" => Ok(self.skip_unsupported("CREATE EVENT TRIGGER")),
            "text" => Ok(self.skip_unsupported("text search configuration")),
            "access" | "conversion" | "transform" => Ok(self.skip_unsupported("this CREATE")),
            _ => Err(self.unexpected()),
        }
    }

    /// `CREATE TYPE name AS ENUM (…)`, `AS (…)`; other kinds of type there are none of.
    fn create_type(&mut self) -> Result<Statement> {
        self.advance();
        let name = self.any_name()?;
        if self.is("as") && self.is_punct_at(1, '(') {
            self.advance();
            return self.create_composite(name);
        }
        if self.words(&["as", "range"]) {
            let options = self.parens(|p| p.list(Self::range_option))?;
            return Ok(Statement::CreateRange { name, options });
        }
        if !self.words(&["as", "enum"]) {
            return Ok(self.skip_unsupported("CREATE TYPE of this kind"));
        }
        self.expect('(')?;
        let labels = match self.is_punct(')') {
            true => vec![],
            false => self.list(Self::string)?,
        };
        self.expect(')')?;
        Ok(Statement::CreateEnum { name, labels })
    }

    /// `name = value`, where the value is a name or a type's.
    fn range_option(&mut self) -> Result<RangeOption> {
        let pos = self.pos();
        let name = self.label()?;
        if !self.op("=") {
            return Err(self.unexpected());
        }
        Ok(RangeOption {
            name,
            value: self.type_name()?,
            pos,
        })
    }

    fn alter_type(&mut self) -> Result<Statement> {
        self.advance();
        let name = self.any_name()?;
        let change = if self.words(&["add", "value"]) {
            let if_not_exists = self.if_not_exists();
            let label = self.string()?;
            let neighbour = match (self.word("before"), self.is("after")) {
                (true, _) => Some((self.string()?, false)),
                (false, true) => {
                    self.advance();
                    Some((self.string()?, true))
                }
                (false, false) => None,
            };
            EnumChange::Add {
                label,
                if_not_exists,
                neighbour,
            }
        } else if self.words(&["rename", "value"]) {
            let from = self.string()?;
            self.keyword("to")?;
            let to = self.string()?;
            EnumChange::Rename { from, to }
        } else if self.is("rename") && self.is_at(1, "to")
            || self.any_of(&["owner"])
            || self.is("set") && self.is_at(1, "schema")
        {
            return Ok(Statement::AlterObject {
                kind: ObjectKind::Type,
                name,
                if_exists: false,
                change: self.object_change()?,
            });
        } else if let Some(changes) = self.field_changes()? {
            return Ok(Statement::AlterComposite { name, changes });
        } else {
            return Ok(self.skip_unsupported("this form of ALTER TYPE"));
        };
        Ok(Statement::AlterEnum { name, change })
    }

    /// Passes over the rest of a statement whose beginning says that it is not supported.
    pub(super) fn skip_unsupported(&mut self, what: &'static str) -> Statement {
        while !self.at_end() && !self.is_punct(';') {
            self.advance();
        }
        Statement::Unsupported(what)
    }

    fn create_sequence(&mut self, temporary: bool) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.any_name()?;
        let options = self.sequence_options()?;
        Ok(Statement::CreateSequence {
            name,
            temporary,
            if_not_exists,
            options,
        })
    }

    fn temporary(&mut self) -> Result<()> {
        // LOCAL and GLOBAL have no meaning of their own.
        let _ = self.word("local") || self.word("global");
        match self.word("temp") {
            true => Ok(()),
            false => self.keyword("temporary"),
        }
    }

    /// After TEMPORARY.
    fn create_temporary(&mut self) -> Result<Statement> {
        if self.word("sequence") {
            return self.create_sequence(true);
        }
        if self.is("view") || self.is("recursive") {
            return self.create_view(false, true);
        }
        self.keyword("table")?;
        self.create_table(Persistence::Temporary(OnCommit::PreserveRows))
    }

    fn create_schema(&mut self) -> Result<Statement> {
        self.keyword("schema")?;
        let if_not_exists = self.if_not_exists();
        let name = match self.is("authorization") {
            true => None,
            false => Some(self.name()?),
        };
        let owner = match self.word("authorization") {
            true => Some(self.role_name()?),
            false => None,
        };
        if name.is_none() && owner.is_none() {
            return Err(self.unexpected());
        }
        let mut elements = Vec::new();
        let pos = self.pos();
        while self.any_of(&["create", "grant"]) {
            elements.push(match self.is("create") {
                true => self.schema_element()?,
                false => self.grant()?,
            });
        }
        if !elements.is_empty() && if_not_exists {
            let message = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
            let code = state::FEATURE_NOT_SUPPORTED;
            return Err(super::error_at(code, message, pos));
        }
        Ok(Statement::CreateSchema {
            name,
            owner,
            if_not_exists,
            elements,
        })
    }

    fn schema_element(&mut self) -> Result<Statement> {
        const MADE: [&str; 12] = [
            "table",
            "temp",
            "temporary",
            "local",
            "global",
            "unlogged",
            "index",
            "unique",
            "sequence",
            "view",
            "recursive",
            "trigger",
        ];
        if MADE.iter().any(|word| self.is_at(1, word)) {
            return self.create();
        }
        self.advance();
        Err(self.unexpected())
    }

    /// A role's name; the words for the session's own come as they are.
    pub(super) fn role_name(&mut self) -> Result<String> {
        if self.any_of(&["current_user", "current_role", "session_user"]) {
            return self.label();
        }
        self.name()
    }

    pub(super) fn sequence_options(&mut self) -> Result<Vec<SequenceOption>> {
        let mut options = Vec::new();
        loop {
            let option = match self.peek_word() {
                Some("as") => {
                    self.advance();
                    SequenceOption::As(self.type_name()?)
                }
                Some("start") => {
                    self.advance();
                    self.word("with");
                    SequenceOption::Start(self.integer()?)
                }
                Some("increment") => {
                    self.advance();
                    self.word("by");
                    SequenceOption::Increment(self.integer()?)
                }
                Some("minvalue") => {
                    self.advance();
                    SequenceOption::Min(Some(self.integer()?))
                }
                Some("maxvalue") => {
                    self.advance();
                    SequenceOption::Max(Some(self.integer()?))
                }
                Some("no") => {
                    self.advance();
                    if self.word("minvalue") {
                        SequenceOption::Min(None)
                    } else if self.word("maxvalue") {
                        SequenceOption::Max(None)
                    } else {
                        self.keyword("cycle")?;
                        SequenceOption::Cycle(false)
                    }
                }
                Some("cache") => {
                    self.advance();
                    SequenceOption::Cache(self.integer()?)
                }
                Some("cycle") => {
                    self.advance();
                    SequenceOption::Cycle(true)
                }
                Some("restart") => {
                    self.advance();
                    let given =
                        self.word("with") || matches!(self.kind(), Kind::Integer(_) | Kind::Op(_));
                    SequenceOption::Restart(match given {
                        true => Some(self.integer()?),
                        false => None,
                    })
                }
                Some("owned") => {
                    self.advance();
                    self.keyword("by")?;
                    SequenceOption::OwnedBy(match self.word("none") {
                        true => None,
                        false => Some(self.any_name()?),
                    })
                }
                Some("sequence") if self.is_at(1, "name") => {
                    self.at += 2;
                    SequenceOption::Name(self.any_name()?)
                }
                _ => return Ok(options),
            };
            options.push(option);
        }
    }

    pub(super) fn role_options(&mut self) -> Result<Vec<RoleOption>> {
        let mut options = Vec::new();
        while let Some(word) = self.peek_word().map(str::to_string) {
            let pos = self.pos();
            self.advance();
            let option = match word.as_str() {
                "superuser" | "nosuperuser" => RoleOption::Superuser(word == "superuser"),
                "inherit" | "noinherit" => RoleOption::Inherit(word == "inherit"),
                "createrole" | "nocreaterole" => RoleOption::CreateRole(word == "createrole"),
                "createdb" | "nocreatedb" => RoleOption::CreateDb(word == "createdb"),
                "login" | "nologin" => RoleOption::Login(word == "login"),
                "replication" | "noreplication" => RoleOption::Replication(word == "replication"),
                "bypassrls" | "nobypassrls" => RoleOption::BypassRls(word == "bypassrls"),
                "connection" => {
                    self.keyword("limit")?;
                    RoleOption::ConnectionLimit(self.integer()? as i32)
                }
                "encrypted" => {
                    self.keyword("password")?;
                    RoleOption::Password(Some(self.string()?))
                }
                "password" => RoleOption::Password(match self.word("null") {
                    true => None,
                    false => Some(self.string()?),
                }),
                "valid" => {
                    self.keyword("until")?;
                    RoleOption::ValidUntil(self.string()?)
                }
                "in" => {
                    if !self.word("role") {
                        self.keyword("group")?;
                    }
                    RoleOption::InRole(self.list(Self::role_name)?)
                }
                "role" | "user" => RoleOption::Members(self.list(Self::role_name)?),
                "admin" => RoleOption::Admins(self.list(Self::role_name)?),
                "sysid" => {
                    self.integer()?;
                    continue;
                }
                _ => {
                    self.at -= 1;
                    return Err(self.error(format!("unrecognized role option \"{word}\""), pos));
                }
            };
            options.push(option);
        }
        Ok(options)
    }

    fn alter_schema(&mut self) -> Result<Statement> {
        self.advance();
        let (name, pos) = self.name_pos()?;
        let change = self.object_change()?;
        let name = Name {
            parts: vec![name],
            pos,
        };
        Ok(Statement::AlterObject {
            kind: ObjectKind::Schema,
            name,
            if_exists: false,
            change,
        })
    }

    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.keyword("alter")?;
        let Some(word) = self.peek_word().map(str::to_string) else {
            return Err(self.unexpected());
        };
        match word.as_str() {
            "table" => {
                self.advance();
                self.alter_table()
            }
            "index" => {
                self.advance();
                let if_exists = self.if_exists();
                let name = self.any_name()?;
                if self.words(&["attach", "partition"]) {
                    let partition = self.any_name()?;
                    return Ok(Statement::AttachIndex {
                        index: name,
                        partition,
                    });
                }
                let kind = ObjectKind::Index;
                if !self.is("rename") {
                    return self.alter_actions(kind, name, if_exists);
                }
                let change = self.object_change()?;
                Ok(Statement::AlterObject {
                    kind,
                    name,
                    if_exists,
                    change,
                })
            }
            "sequence" => {
                self.advance();
                let if_exists = self.if_exists();
                let name = self.any_name()?;
                let kind = ObjectKind::Sequence;
                if self.any_of(&["rename", "owner"]) || (self.is("set") && self.is_at(1, "schema"))
                {
                    let change = self.object_change()?;
                    return Ok(Statement::AlterObject {
                        kind,
                        name,
                        if_exists,
                        change,
                    });
                }
                // NO MINVALUE and its like are options, NO INHERIT is none.
                let options = match self.is("no") && self.is_at(1, "inherit") {
                    true => vec![],
                    false => self.sequence_options()?,
                };
                if options.is_empty() {
                    return self.alter_actions(kind, name, if_exists);
                }
                Ok(Statement::AlterSequence {
                    name,
                    if_exists,
                    options,
                })
            }
            "schema" => self.alter_schema(),
            "role" | "user" | "group" => self.alter_role(&word),
            "database" => self.alter_database(),
            "view" => self.alter_view(),
            "function" | "procedure" | "routine" | "aggregate" => self.alter_routine(&word),
            "operator" => self.alter_operator(),
            "trigger" => self.alter_trigger(),
            "policy" => self.alter_policy(),
            "system" => Ok(self.skip_unsupported("ALTER SYSTEM")),
            "type" => self.alter_type(),
            "domain" => self.alter_domain(),
            "default" => {
                self.advance();
                self.alter_default_privileges()
            }
            "extension" => self.alter_extension(),
            "materialized" => self.alter_materialized_view(),
            "collation" | "publication" | "subscription" | "tablespace" | "rule" | "statistics"
            | "server" | "foreign" | "language" | "event" | "text" | "conversion" | "large" => {
                Ok(self.skip_unsupported("this ALTER"))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// What ALTER TABLE can do, said of a relation of another kind.
    pub(super) fn alter_actions(
        &mut self,
        kind: ObjectKind,
        name: Name,
        if_exists: bool,
    ) -> Result<Statement> {
        let actions = self.list(Self::alter_action)?;
        Ok(Statement::AlterTable {
            kind,
            name,
            only: false,
            if_exists,
            actions,
        })
    }

    /// `RENAME TO`, `OWNER TO`, `SET SCHEMA`.
    pub(super) fn object_change(&mut self) -> Result<ObjectChange> {
        if self.word("rename") {
            self.keyword("to")?;
            return Ok(ObjectChange::Rename(self.name()?));
        }
        if self.word("owner") {
            self.keyword("to")?;
            return Ok(ObjectChange::Owner(self.role_name()?));
        }
        self.keywords(&["set", "schema"])?;
        Ok(ObjectChange::SetSchema(self.name()?))
    }

    fn alter_role(&mut self, word: &str) -> Result<Statement> {
        self.advance();
        if self.is("mapping") {
            return Ok(self.skip_unsupported("ALTER USER MAPPING"));
        }
        if word != "group" && self.is("all") {
            self.advance();
            return self.settings_of(SettingsOf::Everyone);
        }
        let pos = self.pos();
        let name = self.role_name()?;
        if word == "group" && self.any_of(&["add", "drop"]) {
            let revoke = self.is("drop");
            self.advance();
            self.keyword("user")?;
            let members = self.list(Self::role_name)?;
            return Ok(Statement::GrantRole(Box::new(GrantRole {
                roles: vec![name],
                members,
                revoke,
                options: vec![],
                grantor: None,
                cascade: false,
            })));
        }
        if self.is("rename") {
            let change = self.object_change()?;
            let name = Name {
                parts: vec![name],
                pos,
            };
            let kind = ObjectKind::Role;
            return Ok(Statement::AlterObject {
                kind,
                name,
                if_exists: false,
                change,
            });
        }
        if word == "group" {
            return Err(self.unexpected());
        }
        if self.any_of(&["set", "reset", "in"]) {
            return self.settings_of(SettingsOf::Role(name));
        }
        self.word("with");
        let options = self.role_options()?;
        Ok(Statement::AlterRole { name, options })
    }

    /// `[IN DATABASE name] SET …` or `RESET …`.
    fn settings_of(&mut self, role: SettingsOf<String>) -> Result<Statement> {
        let database = match self.words(&["in", "database"]) {
            true => Some(self.name()?),
            false => None,
        };
        let (name, value) = self.stored_setting()?;
        Ok(Statement::AlterRoleSet {
            role,
            database,
            name,
            value,
        })
    }

    /// `SET name TO value`, `SET name FROM CURRENT`, `RESET name`, `RESET ALL`.
    pub(super) fn stored_setting(&mut self) -> Result<(Option<String>, SetTo)> {
        if self.word("reset") {
            let name = match self.word("all") {
                true => None,
                false => Some(self.setting_name()?),
            };
            return Ok((name, SetTo::Default));
        }
        self.keyword("set")?;
        match self.set_rest(false)? {
            Statement::Set { name, value, .. } => Ok((Some(name), value)),
            Statement::SetRole { role, .. } => Ok((
                Some("role".to_owned()),
                role.unwrap_or_else(|| "none".to_owned()).into(),
            )),
            Statement::SetSessionAuthorization { role, .. } => {
                Ok((Some("session_authorization".to_owned()), role.into()))
            }
            _ => Err(self.unexpected()),
        }
    }

    pub(super) fn drop_statement(&mut self) -> Result<Statement> {
        self.keyword("drop")?;
        let Some(word) = self.peek_word().map(str::to_string) else {
            return Err(self.unexpected());
        };
        self.advance();
        let kind = match word.as_str() {
            "table" => ObjectKind::Table,
            "index" => ObjectKind::Index,
            "sequence" => ObjectKind::Sequence,
            "schema" => ObjectKind::Schema,
            "role" | "user" | "group" => {
                if self.is("mapping") {
                    return Ok(self.skip_unsupported("DROP USER MAPPING"));
                }
                ObjectKind::Role
            }
            "view" => ObjectKind::View,
            "materialized" => {
                self.keyword("view")?;
                ObjectKind::MaterializedView
            }
            "database" => return self.drop_database(),
            "type" => ObjectKind::Type,
            "domain" => ObjectKind::Domain,
            "extension" => ObjectKind::Other("extension"),
            "function" | "procedure" | "routine" | "aggregate" => {
                return self.drop_routine(&word);
            }
            "operator" if !self.any_of(&["class", "family"]) || self.is_punct_at(1, '.') => {
                return self.drop_operators();
            }
            "cast" => return self.drop_cast(),
            "owned" => return self.drop_owned(),
            "trigger" => return self.drop_trigger(),
            "policy" => return self.drop_policy(),
            "rule" | "operator" | "publication" | "subscription" | "tablespace" | "collation"
            | "statistics" | "server" | "foreign" | "language" | "procedural" | "event"
            | "text" | "conversion" | "transform" | "access" => {
                return self.drop_absent(&word);
            }
            _ => {
                self.at -= 1;
                return Err(self.unexpected());
            }
        };
        let concurrently = kind == ObjectKind::Index && self.word("concurrently");
        let if_exists = self.if_exists();
        let names = match kind {
            ObjectKind::Role => self.list(|p| {
                let pos = p.pos();
                Ok(Name {
                    parts: vec![p.role_name()?],
                    pos,
                })
            })?,
            _ => self.list(Self::any_name)?,
        };
        let cascade = self.cascade();
        Ok(Statement::Drop {
            kind,
            names,
            if_exists,
            cascade,
            concurrently,
        })
    }

    pub(super) fn truncate(&mut self) -> Result<Statement> {
        self.keyword("truncate")?;
        self.word("table");
        let tables = self.list(Self::table_name_only)?;
        let restart_identity = self.words(&["restart", "identity"]);
        if !restart_identity {
            self.words(&["continue", "identity"]);
        }
        let cascade = self.cascade();
        Ok(Statement::Truncate {
            tables,
            restart_identity,
            cascade,
        })
    }

    pub(super) fn comment(&mut self) -> Result<Statement> {
        self.keywords(&["comment", "on"])?;
        let Some(word) = self.peek_word().map(str::to_string) else {
            return Err(self.unexpected());
        };
        let mut kind = match word.as_str() {
            "table" => ObjectKind::Table,
            "index" => ObjectKind::Index,
            "sequence" => ObjectKind::Sequence,
            "view" => ObjectKind::View,
            "materialized" => ObjectKind::MaterializedView,
            "schema" => ObjectKind::Schema,
            "role" => ObjectKind::Role,
            "database" => ObjectKind::Database,
            "column" => ObjectKind::Column,
            "constraint" => ObjectKind::Constraint,
            "type" => ObjectKind::Type,
            "function" | "procedure" | "routine" | "aggregate" => {
                return self.comment_on_routine(&word);
            }
            "operator"
                if !matches!(self.kind_at(1), Kind::Word(word) if word == "class" || word == "family")
                    || self.is_punct_at(2, '.') =>
            {
                self.advance();
                return self.comment_on_operator();
            }
            "cast" => {
                self.advance();
                return self.comment_on_cast();
            }
            "domain" => ObjectKind::Domain,
            "trigger" => return self.comment_on_trigger(),
            "policy" => return self.comment_on_policy(),
            "extension" => ObjectKind::Other("extension"),
            "language" => ObjectKind::Other("language"),
            "procedural" if self.is_at(1, "language") => {
                self.advance();
                ObjectKind::Other("language")
            }
            _ => return self.comment_on_absent(),
        };
        self.advance();
        if kind == ObjectKind::MaterializedView {
            self.keyword("view")?;
        }
        let mut name = self.any_name()?;
        let mut column = None;
        match kind {
            ObjectKind::Column => {
                if name.parts.len() < 2 {
                    return Err(self.error("column name must be qualified", name.pos));
                }
                column = name.parts.pop();
            }
            ObjectKind::Constraint => {
                self.keyword("on")?;
                column = Some(name.last().to_string());
                if self.word("domain") {
                    kind = ObjectKind::DomainConstraint;
                }
                name = self.any_name()?;
            }
            _ => {}
        }
        self.keyword("is")?;
        let text = match self.word("null") {
            true => None,
            false => Some(self.string()?),
        };
        Ok(Statement::Comment {
            kind,
            name,
            column,
            text,
        })
    }
}
