//! GRANT and REVOKE, of rights on objects and of roles; ALTER DEFAULT PRIVILEGES; REASSIGN and DROP
//! OWNED.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::Parser;
use super::ast::{Name, RoutineName, RoutineWord, Statement};

/// GRANT or REVOKE of rights on objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    pub revoke: bool,
    /// WITH GRANT OPTION; of a REVOKE: GRANT OPTION FOR.
    pub option: bool,
    /// None: ALL PRIVILEGES.
    pub rights: Option<Vec<GrantedRight>>,
    pub on: GrantOn,
    /// `public` among them is everybody.
    pub grantees: Vec<String>,
    pub grantor: Option<String>,
    pub cascade: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GrantedRight {
    /// None: ALL PRIVILEGES, of columns.
    pub name: Option<String>,
    pub columns: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum GrantOn {
    Objects(GrantKind, Vec<Name>),
    Routines(RoutineWord, Vec<RoutineName>),
    /// ALL TABLES IN SCHEMA and its kin.
    AllIn(GrantKind, Vec<String>),
    /// In ALTER DEFAULT PRIVILEGES: objects that are still to be made.
    Future(GrantKind),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantKind {
    Table,
    Sequence,
    Database,
    Schema,
    Type,
    Function,
    /// Understood, not done: what to call it.
    Other(&'static str),
}

/// GRANT or REVOKE of roles.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantRole {
    pub roles: Vec<String>,
    pub members: Vec<String>,
    pub revoke: bool,
    /// `ADMIN`, `INHERIT`, `SET`; of a REVOKE those that are revoked alone.
    pub options: Vec<(String, bool)>,
    pub grantor: Option<String>,
    pub cascade: bool,
}

impl Parser<'_> {
    pub(super) fn grant(&mut self) -> Result<Statement> {
        let revoke = self.is("revoke");
        self.advance();
        let mut option = None;
        if revoke && self.is_at(1, "option") && self.is_at(2, "for") {
            option = Some(self.label()?);
            self.at += 2;
        }
        let rights = self.granted_rights()?;
        match self.word("on") {
            true => {
                let for_grant = option.as_deref().is_none_or(|option| option == "grant");
                if !for_grant {
                    return Err(self.unexpected());
                }
                let grant = self.grant_on_objects(revoke, option.is_some(), rights)?;
                Ok(Statement::Grant(Box::new(grant)))
            }
            false => self.grant_role(revoke, option, rights),
        }
    }

    /// `SELECT, UPDATE (a, b)`, `ALL [PRIVILEGES] [(a)]`.
    fn granted_rights(&mut self) -> Result<Option<Vec<GrantedRight>>> {
        if self.word("all") {
            self.word("privileges");
            return match self.is_punct('(') {
                false => Ok(None),
                true => Ok(Some(vec![GrantedRight {
                    name: None,
                    columns: self.name_list()?,
                }])),
            };
        }
        self.list(|p| {
            let name = if p.words(&["alter", "system"]) {
                "alter system".to_owned()
            } else if p.any_of(&["select", "references", "create"]) {
                p.label()?
            } else {
                p.role_name()?
            };
            let columns = match p.is_punct('(') {
                true => p.name_list()?,
                false => vec![],
            };
            Ok(GrantedRight {
                name: Some(name),
                columns,
            })
        })
        .map(Some)
    }

    /// After ON.
    fn grant_on_objects(
        &mut self,
        revoke: bool,
        revoked_option: bool,
        rights: Option<Vec<GrantedRight>>,
    ) -> Result<Grant> {
        let on = self.grant_target()?;
        self.grantees(revoke, revoked_option, rights, on)
    }

    fn grantees(
        &mut self,
        revoke: bool,
        revoked_option: bool,
        rights: Option<Vec<GrantedRight>>,
        on: GrantOn,
    ) -> Result<Grant> {
        self.keyword(if revoke { "from" } else { "to" })?;
        let grantees = self.list(|p| {
            p.word("group");
            p.role_name()
        })?;
        let option = match revoke {
            true => revoked_option,
            false => self.words(&["with", "grant", "option"]),
        };
        let grantor = self.granted_by()?;
        let cascade = revoke && self.cascade();
        Ok(Grant {
            revoke,
            option,
            rights,
            on,
            grantees,
            grantor,
            cascade,
        })
    }

    fn granted_by(&mut self) -> Result<Option<String>> {
        match self.words(&["granted", "by"]) {
            true => self.role_name().map(Some),
            false => Ok(None),
        }
    }

    fn grant_target(&mut self) -> Result<GrantOn> {
        if self.word("all") {
            let kind = self.plural_kind()?;
            self.keywords(&["in", "schema"])?;
            return Ok(GrantOn::AllIn(kind, self.list(Self::name)?));
        }
        let single = |p: &mut Self| {
            let pos = p.pos();
            let parts = vec![p.name()?];
            Ok(Name { parts, pos })
        };
        // A table may be called by one of these words: then what follows ends its name.
        let named = !matches!(self.kind_at(1), super::lexer::Kind::Punct(',' | '.'))
            && !self.is_at(1, "to")
            && !self.is_at(1, "from");
        let word = self.peek_word().filter(|_| named).unwrap_or("").to_owned();
        let kind = match word.as_str() {
            "table" => GrantKind::Table,
            "sequence" => GrantKind::Sequence,
            "database" => GrantKind::Database,
            "schema" => GrantKind::Schema,
            "type" | "domain" => GrantKind::Type,
            "function" | "procedure" | "routine" => {
                self.advance();
                let routines = self.list(Self::routine_with_args)?;
                return Ok(GrantOn::Routines(Self::routine_word(&word), routines));
            }
            "language" => GrantKind::Other("language"),
            "foreign" => GrantKind::Other("foreign object"),
            "large" => GrantKind::Other("large object"),
            "parameter" => GrantKind::Other("parameter"),
            "tablespace" => GrantKind::Other("tablespace"),
            _ => {
                return Ok(GrantOn::Objects(
                    GrantKind::Table,
                    self.list(Self::any_name)?,
                ));
            }
        };
        self.advance();
        Ok(GrantOn::Objects(
            kind,
            match kind {
                GrantKind::Database | GrantKind::Schema => self.list(single)?,
                GrantKind::Other(_) => {
                    while !self.at_end() && !self.is_punct(';') && !self.any_of(&["to", "from"]) {
                        self.advance();
                    }
                    vec![]
                }
                _ => self.list(Self::any_name)?,
            },
        ))
    }

    fn plural_kind(&mut self) -> Result<GrantKind> {
        let kind = match self.peek_word() {
            Some("tables") => GrantKind::Table,
            Some("sequences") => GrantKind::Sequence,
            Some("functions" | "routines" | "procedures") => GrantKind::Function,
            Some("types") => GrantKind::Type,
            Some("schemas") => GrantKind::Schema,
            Some("large") => {
                self.advance();
                self.keyword("objects")?;
                return Ok(GrantKind::Other("large object"));
            }
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(kind)
    }

    fn grant_role(
        &mut self,
        revoke: bool,
        revoked_option: Option<String>,
        rights: Option<Vec<GrantedRight>>,
    ) -> Result<Statement> {
        let Some(rights) = rights else {
            return Err(self.unexpected());
        };
        self.keyword(if revoke { "from" } else { "to" })?;
        let members = self.list(Self::role_name)?;
        let mut options: Vec<(String, bool)> = Vec::new();
        if let Some(option) = revoked_option {
            options.push((option, false));
        } else if !revoke && self.word("with") {
            options = self.list(|p| {
                let option = p.label()?;
                let on = if p.word("false") {
                    false
                } else if p.word("true") || p.word("option") {
                    true
                } else {
                    return Err(p.unexpected());
                };
                Ok((option, on))
            })?;
        }
        let grantor = self.granted_by()?;
        let cascade = revoke && self.cascade();
        let mut roles = Vec::with_capacity(rights.len());
        for right in rights {
            if !right.columns.is_empty() {
                let message = "column names cannot be included in GRANT/REVOKE ROLE";
                return Err(Error::new(state::INVALID_GRANT_OPERATION, message));
            }
            roles.extend(right.name);
        }
        Ok(Statement::GrantRole(Box::new(GrantRole {
            roles,
            members,
            revoke,
            options,
            grantor,
            cascade,
        })))
    }

    /// After ALTER DEFAULT.
    pub(super) fn alter_default_privileges(&mut self) -> Result<Statement> {
        self.keyword("privileges")?;
        let (mut roles, mut schemas) = (vec![], vec![]);
        loop {
            if self.words(&["in", "schema"]) {
                schemas.extend(self.list(Self::name)?);
            } else if self.words(&["for", "role"]) || self.words(&["for", "user"]) {
                roles.extend(self.list(Self::role_name)?);
            } else {
                break;
            }
        }
        let revoke = match self.word("revoke") {
            true => true,
            false => {
                self.keyword("grant")?;
                false
            }
        };
        let option = revoke && self.words(&["grant", "option", "for"]);
        let rights = self.granted_rights()?;
        self.keyword("on")?;
        let on = GrantOn::Future(self.plural_kind()?);
        let grant = Box::new(self.grantees(revoke, option, rights, on)?);
        Ok(Statement::AlterDefaultPrivileges {
            roles,
            schemas,
            grant,
        })
    }

    /// After REASSIGN.
    pub(super) fn reassign_owned(&mut self) -> Result<Statement> {
        self.keywords(&["owned", "by"])?;
        let roles = self.list(Self::role_name)?;
        self.keyword("to")?;
        let to = self.role_name()?;
        Ok(Statement::ReassignOwned { roles, to })
    }

    /// After DROP OWNED.
    pub(super) fn drop_owned(&mut self) -> Result<Statement> {
        self.keyword("by")?;
        let roles = self.list(Self::role_name)?;
        let cascade = self.cascade();
        Ok(Statement::DropOwned { roles, cascade })
    }
}
