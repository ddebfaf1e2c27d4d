//! Transactions, settings, prepared statements, cursors, maintenance.

use std::sync::Arc;

use throng_types::{Result, SqlType};

use super::Parser;
use super::ast::*;
use super::lexer::Kind;
use crate::vocabulary::{CursorOptions, Discard, FetchDirection, Isolation, TransactionModes};
use crate::vocabulary::{TableLock, TwoPhase};

impl Parser<'_> {
    pub(super) fn utility(&mut self, word: &str) -> Result<Statement> {
        self.advance();
        match word {
            "begin" => {
                if !self.word("work") {
                    self.word("transaction");
                }
                Ok(Statement::Begin(self.transaction_modes(true)?))
            }
            "start" => {
                self.keyword("transaction")?;
                Ok(Statement::Begin(self.transaction_modes(true)?))
            }
            "commit" | "end" => {
                if word == "commit" && self.word("prepared") {
                    return Ok(Statement::TwoPhase(TwoPhase::Commit(self.string()?)));
                }
                Ok(Statement::Commit {
                    chain: self.chain()?,
                })
            }
            "rollback" if self.word("prepared") => {
                Ok(Statement::TwoPhase(TwoPhase::Rollback(self.string()?)))
            }
            "rollback" | "abort" => self.rollback(),
            "savepoint" => Ok(Statement::Savepoint(self.name()?)),
            "release" => {
                self.word("savepoint");
                Ok(Statement::Release(self.name()?))
            }
            "set" => {
                self.at -= 1;
                self.set()
            }
            "show" => self.show(),
            "reset" => self.reset(),
            "prepare" => self.prepare(),
            "execute" => {
                let (name, args) = self.execution()?;
                Ok(Statement::Execute { name, args })
            }
            "deallocate" => {
                self.word("prepare");
                Ok(Statement::Deallocate(match self.word("all") {
                    true => None,
                    false => Some(self.name()?),
                }))
            }
            "declare" => self.declare(),
            "fetch" | "move" => self.fetch(word == "move"),
            "close" => Ok(Statement::Close(match self.word("all") {
                true => None,
                false => Some(self.name()?),
            })),
            "lock" => self.lock(),
            "vacuum" => self.vacuum(),
            "analyze" | "analyse" => self.analyze(),
            "reindex" => self.reindex(),
            "checkpoint" => Ok(Statement::Checkpoint),
            "call" => self.call_statement(),
            "discard" => {
                let what = match self.peek_word() {
                    Some("all") => Discard::All,
                    Some("plans") => Discard::Plans,
                    Some("sequences") => Discard::Sequences,
                    Some("temp" | "temporary") => Discard::Temp,
                    _ => return Err(self.unexpected()),
                };
                self.advance();
                Ok(Statement::Discard(what))
            }
            "listen" => Ok(Statement::Listen(self.name()?)),
            "unlisten" => Ok(Statement::Unlisten(match self.op("*") {
                true => None,
                false => Some(self.name()?),
            })),
            "notify" => {
                let channel = self.name()?;
                let payload = match self.punct(',') {
                    true => self.string()?,
                    false => String::new(),
                };
                Ok(Statement::Notify { channel, payload })
            }
            "cluster" => self.cluster(),
            "do" => self.do_statement(),
            "load" => Ok(self.skip_unsupported("LOAD")),
            "refresh" => self.refresh(),
            "reassign" => self.reassign_owned(),
            "import" => Ok(self.skip_unsupported("IMPORT FOREIGN SCHEMA")),
            "security" => self.security_label(),
            _ => {
                self.at -= 1;
                Err(self.unexpected())
            }
        }
    }

    /// `LABEL FOR provider ON object IS 'label'`; which object and what label only a provider would
    /// ask.
    fn security_label(&mut self) -> Result<Statement> {
        self.keyword("label")?;
        let provider = match self.word("for") {
            false => None,
            true if self.peek_word().is_some() => Some(self.name()?),
            true => Some(self.string()?),
        };
        self.keyword("on")?;
        while !self.is("is") && !self.at_end() && !self.is_punct(';') {
            self.advance();
        }
        self.keyword("is")?;
        if !self.word("null") {
            self.string()?;
        }
        Ok(Statement::SecurityLabel(provider))
    }

    /// `BEGIN ISOLATION LEVEL …, READ ONLY`; commas are optional.
    fn transaction_modes(&mut self, may_be_none: bool) -> Result<TransactionModes> {
        let mut modes = TransactionModes::default();
        let mut any = false;
        loop {
            if self.words(&["isolation", "level"]) {
                modes.isolation = Some(self.isolation()?);
            } else if self.words(&["read", "only"]) {
                modes.read_only = Some(true);
            } else if self.words(&["read", "write"]) {
                modes.read_only = Some(false);
            } else if self.word("deferrable") {
                modes.deferrable = Some(true);
            } else if self.words(&["not", "deferrable"]) {
                modes.deferrable = Some(false);
            } else if any || may_be_none {
                return Ok(modes);
            } else {
                return Err(self.unexpected());
            }
            any = true;
            if self.punct(',') && (self.at_end() || self.is_punct(';')) {
                return Err(self.unexpected());
            }
        }
    }

    fn isolation(&mut self) -> Result<Isolation> {
        if self.word("serializable") {
            Ok(Isolation::Serializable)
        } else if self.words(&["repeatable", "read"]) {
            Ok(Isolation::RepeatableRead)
        } else if self.words(&["read", "committed"]) {
            Ok(Isolation::ReadCommitted)
        } else if self.words(&["read", "uncommitted"]) {
            Ok(Isolation::ReadUncommitted)
        } else {
            Err(self.unexpected())
        }
    }

    /// `[WORK | TRANSACTION] [AND [NO] CHAIN]`.
    fn chain(&mut self) -> Result<bool> {
        if !self.word("work") {
            self.word("transaction");
        }
        if !self.word("and") {
            return Ok(false);
        }
        let no = self.word("no");
        self.keyword("chain")?;
        Ok(!no)
    }

    fn rollback(&mut self) -> Result<Statement> {
        if !self.word("work") {
            self.word("transaction");
        }
        if self.word("to") {
            self.word("savepoint");
            return Ok(Statement::RollbackTo(self.name()?));
        }
        Ok(Statement::Rollback {
            chain: self.chain()?,
        })
    }

    fn set_constraints(&mut self) -> Result<Statement> {
        let names = match self.word("all") {
            true => Vec::new(),
            false => self.list(Self::any_name)?,
        };
        let deferred = self.word("deferred");
        if !deferred {
            self.keyword("immediate")?;
        }
        Ok(Statement::SetConstraints { names, deferred })
    }

    fn set(&mut self) -> Result<Statement> {
        self.keyword("set")?;
        if self.word("constraints") {
            return self.set_constraints();
        }
        let local = self.word("local");
        let session = !local && self.is("session");
        if session && self.is_at(1, "characteristics") {
            self.at += 2;
            self.keywords(&["as", "transaction"])?;
            let modes = self.transaction_modes(false)?;
            return Ok(Statement::SetTransaction {
                modes,
                session: true,
            });
        }
        if session && !self.is_at(1, "authorization") {
            self.advance();
        }
        if self.word("transaction") {
            if self.is("snapshot") {
                return Err(self.unsupported("SET TRANSACTION SNAPSHOT", self.pos()));
            }
            let modes = self.transaction_modes(false)?;
            return Ok(Statement::SetTransaction {
                modes,
                session: false,
            });
        }
        self.set_rest(local)
    }

    /// After SET: `name = value`, and the forms with words of their own.
    pub(super) fn set_rest(&mut self, local: bool) -> Result<Statement> {
        if self.words(&["time", "zone"]) {
            let value = self.time_zone()?;
            return Ok(Statement::Set {
                name: "timezone".into(),
                value,
                local,
            });
        }
        if self.is("names") && !self.is_assignment(1) {
            self.advance();
            let value = match self.kind() {
                Kind::Text(_) => Some(self.string()?),
                _ => {
                    self.word("default");
                    None
                }
            };
            return Ok(Statement::Set {
                name: "client_encoding".into(),
                value: value.into(),
                local,
            });
        }
        if self.is("schema") && !self.is_assignment(1) {
            self.advance();
            let name = "search_path".to_owned();
            let value = self.string()?.into();
            return Ok(Statement::Set { name, value, local });
        }
        if self.is("role") && !self.is_assignment(1) {
            self.advance();
            let role = self.role_or(&["none"])?;
            return Ok(Statement::SetRole { role, local });
        }
        if self.is("session") && self.is_at(1, "authorization") {
            self.at += 2;
            let role = self.role_or(&["default"])?;
            return Ok(Statement::SetSessionAuthorization { role, local });
        }
        let name = self.setting_name()?;
        if self.words(&["from", "current"]) {
            let value = SetTo::Current;
            return Ok(Statement::Set { name, value, local });
        }
        if !self.op("=") {
            self.keyword("to")?;
        }
        let value = self.setting_values()?;
        Ok(Statement::Set { name, value, local })
    }

    fn is_assignment(&self, ahead: usize) -> bool {
        self.is_at(ahead, "to") || matches!(self.kind_at(ahead), Kind::Op(op) if op == "=")
    }

    /// A role's name or string, or one of `words` for none.
    fn role_or(&mut self, words: &[&str]) -> Result<Option<String>> {
        if self.any_of(words) {
            self.advance();
            return Ok(None);
        }
        match self.kind() {
            // In quotes it is a name, but for the one that stands for none.
            Kind::Text(_) => {
                Ok(Some(self.string()?).filter(|name| name != "none" || !words.contains(&"none")))
            }
            _ => Ok(Some(self.name()?)),
        }
    }

    pub(super) fn setting_name(&mut self) -> Result<String> {
        let mut name = self.name()?;
        while self.punct('.') {
            name = format!("{name}.{}", self.label()?);
        }
        Ok(name)
    }

    /// One value or a list of them, or DEFAULT.
    fn setting_values(&mut self) -> Result<SetTo> {
        if self.word("default") {
            return Ok(SetTo::Default);
        }
        let values = self.list(|p| match p.is("on") || p.is("true") || p.is("false") {
            true => p.label(),
            false => p.option_value(),
        })?;
        Ok(SetTo::Values(values))
    }

    fn time_zone(&mut self) -> Result<SetTo> {
        if self.word("default") || self.word("local") {
            return Ok(SetTo::Default);
        }
        if self.word("interval") {
            return self.time_zone_interval();
        }
        Ok(self.option_value()?.into())
    }

    /// After INTERVAL: `'text' [HOUR [TO MINUTE]]` or `(precision) 'text'`.
    fn time_zone_interval(&mut self) -> Result<SetTo> {
        use throng_types::sqltype::interval_field::{FULL_RANGE, HOUR, MINUTE};
        let precision = self.type_modifiers()?.first().copied();
        let text = self.string()?;
        let pos = self.pos();
        let typmod = match precision {
            Some(precision) => Some(SqlType::interval_modifier(FULL_RANGE, precision)),
            None => self.interval_fields(None)?,
        };
        let fields = typmod.filter(|_| precision.is_none());
        if fields.is_some_and(|typmod| (typmod >> 16) & FULL_RANGE & !(HOUR | MINUTE) != 0) {
            return Err(self.error("time zone interval must be HOUR or HOUR TO MINUTE", pos));
        }
        Ok(SetTo::ZoneInterval(text, typmod.unwrap_or(-1)))
    }

    fn show(&mut self) -> Result<Statement> {
        if self.word("all") {
            return Ok(Statement::Show(None));
        }
        let name = if self.words(&["time", "zone"]) {
            "timezone".to_string()
        } else if self.words(&["transaction", "isolation", "level"]) {
            "transaction_isolation".to_string()
        } else if self.words(&["session", "authorization"]) {
            "session_authorization".to_string()
        } else {
            self.setting_name()?
        };
        Ok(Statement::Show(Some(name)))
    }

    fn reset(&mut self) -> Result<Statement> {
        if self.word("all") {
            return Ok(Statement::Reset(None));
        }
        if self.words(&["session", "authorization"]) {
            return Ok(Statement::SetSessionAuthorization {
                role: None,
                local: false,
            });
        }
        if self.is("role") {
            self.advance();
            return Ok(Statement::SetRole {
                role: None,
                local: false,
            });
        }
        let name = if self.words(&["time", "zone"]) {
            "timezone".to_string()
        } else if self.words(&["transaction", "isolation", "level"]) {
            "transaction_isolation".to_string()
        } else {
            self.setting_name()?
        };
        Ok(Statement::Reset(Some(name)))
    }

    fn prepare(&mut self) -> Result<Statement> {
        if self.is("transaction") && matches!(self.kind_at(1), Kind::Text(_)) {
            self.advance();
            return Ok(Statement::TwoPhase(TwoPhase::Prepare(self.string()?)));
        }
        let name = self.name()?;
        let types = match self.is_punct('(') {
            true => self.parens(|p| p.list(Self::type_name))?,
            false => vec![],
        };
        self.keyword("as")?;
        let statement = Arc::new(self.preparable()?);
        Ok(Statement::Prepare {
            name,
            types,
            statement,
        })
    }

    /// `name (argument, …)` after EXECUTE.
    pub(super) fn execution(&mut self) -> Result<(String, Vec<Expr>)> {
        let name = self.name()?;
        let args = match self.is_punct('(') {
            true => self.parens(|p| p.list(Self::expr))?,
            false => vec![],
        };
        Ok((name, args))
    }

    pub(super) fn preparable(&mut self) -> Result<Statement> {
        let query = self.is_punct('(')
            || self.any_of(&[
                "select", "values", "table", "with", "insert", "update", "delete", "merge",
            ]);
        if query {
            self.data_statement()
        } else {
            Err(self.unexpected())
        }
    }

    fn declare(&mut self) -> Result<Statement> {
        let name = self.name()?;
        let mut options = CursorOptions::default();
        loop {
            if self.words(&["no", "scroll"]) {
                options.scroll = Some(false);
            } else if self.word("scroll") {
                options.scroll = Some(true);
            } else if self.word("binary") {
                options.binary = true;
            } else if self.word("insensitive") {
                options.insensitive = true;
            } else if !self.word("asensitive") {
                break;
            }
        }
        self.keyword("cursor")?;
        options.hold = self.words(&["with", "hold"]);
        if !options.hold {
            self.words(&["without", "hold"]);
        }
        self.keyword("for")?;
        let query = Box::new(self.query()?);
        Ok(Statement::Declare {
            name,
            options,
            query,
        })
    }

    fn fetch(&mut self, moving: bool) -> Result<Statement> {
        let direction = self.fetch_direction()?;
        if !self.word("from") {
            self.word("in");
        }
        let name = self.name()?;
        Ok(Statement::Fetch {
            name,
            direction,
            moving,
        })
    }

    fn fetch_direction(&mut self) -> Result<FetchDirection> {
        use FetchDirection::*;
        if matches!(self.kind(), Kind::Integer(_) | Kind::Op(_)) {
            return Ok(Forward(self.integer()?));
        }
        let word = self.peek_word().unwrap_or("").to_string();
        // A word that is the cursor's name is no direction.
        let last = matches!(self.kind_at(1), Kind::End | Kind::Punct(';'));
        if last {
            return Ok(Forward(1));
        }
        let direction = match word.as_str() {
            "next" => Forward(1),
            "prior" => Backward(1),
            "first" => Absolute(1),
            "last" => Absolute(-1),
            "all" => Forward(i64::MAX),
            "absolute" => {
                self.advance();
                return Ok(Absolute(self.integer()?));
            }
            "relative" => {
                self.advance();
                return Ok(Relative(self.integer()?));
            }
            "forward" | "backward" => {
                self.advance();
                let count = if self.word("all") {
                    i64::MAX
                } else if matches!(self.kind(), Kind::Integer(_) | Kind::Op(_)) {
                    self.integer()?
                } else {
                    1
                };
                return Ok(if word == "forward" {
                    Forward(count)
                } else {
                    Backward(count)
                });
            }
            _ => return Ok(Forward(1)),
        };
        self.advance();
        Ok(direction)
    }

    fn lock(&mut self) -> Result<Statement> {
        self.word("table");
        let tables = self.list(Self::table_name)?;
        let mut mode = TableLock::AccessExclusive;
        if self.word("in") {
            const MODES: [(&[&str], TableLock); 8] = [
                (&["access", "share"], TableLock::AccessShare),
                (&["row", "share"], TableLock::RowShare),
                (&["row", "exclusive"], TableLock::RowExclusive),
                (
                    &["share", "update", "exclusive"],
                    TableLock::ShareUpdateExclusive,
                ),
                (&["share", "row", "exclusive"], TableLock::ShareRowExclusive),
                (&["share"], TableLock::Share),
                (&["exclusive"], TableLock::Exclusive),
                (&["access", "exclusive"], TableLock::AccessExclusive),
            ];
            let found = MODES.iter().find(|(words, _)| self.words(words));
            mode = found.ok_or_else(|| self.unexpected())?.1;
            self.keyword("mode")?;
        }
        let nowait = self.word("nowait");
        Ok(Statement::Lock {
            tables,
            mode,
            nowait,
        })
    }

    /// `(name [value], …)`.
    fn utility_options(&mut self) -> Result<Vec<(String, Option<String>)>> {
        self.parens(|p| {
            p.list(|p| {
                let name = p.label()?;
                let value = match p.is_punct(',') || p.is_punct(')') {
                    true => None,
                    false => Some(p.option_value()?),
                };
                Ok((name, value))
            })
        })
    }

    fn reindex(&mut self) -> Result<Statement> {
        let mut option = false;
        if self.is_punct('(') {
            let pos = self.pos();
            for (name, value) in self.utility_options()? {
                match name.as_str() {
                    "verbose" => {}
                    "concurrently" => option = option_is_on(value.as_deref()),
                    "tablespace" => return Err(self.unsupported("TABLESPACE", pos)),
                    _ => {
                        let message = format!("unrecognized REINDEX option \"{name}\"");
                        return Err(self.error(message, pos));
                    }
                }
            }
        }
        let kind = match self.peek_word() {
            Some("index") => ObjectKind::Index,
            Some("table") => ObjectKind::Table,
            Some("schema") => ObjectKind::Schema,
            Some("database" | "system") => ObjectKind::Database,
            _ => return Err(self.unexpected()),
        };
        self.advance();
        let concurrently = self.word("concurrently") || option;
        let pos = self.pos();
        let name = match kind {
            ObjectKind::Database if self.at_end() || self.is_punct(';') => {
                Name { parts: vec![], pos }
            }
            _ => self.any_name()?,
        };
        Ok(Statement::Reindex {
            kind,
            name,
            concurrently,
        })
    }

    pub(super) fn explain(&mut self) -> Result<Statement> {
        self.keyword("explain")?;
        let mut options = Vec::new();
        if self.is_punct('(') && !self.explains_query() {
            options = self.utility_options()?;
        } else {
            if self.word("analyze") || self.word("analyse") {
                options.push(("analyze".into(), None));
            }
            if self.word("verbose") {
                options.push(("verbose".into(), None));
            }
        }
        let statement = match self.peek_word() {
            Some(word @ ("execute" | "declare")) => {
                let word = word.to_owned();
                self.utility(&word)?
            }
            Some("create") => match self.create()? {
                Statement::CreateTable(create) if create.query.is_some() => {
                    Statement::CreateTable(create)
                }
                Statement::CreateTableAsExecute { .. } => {
                    return Err(self.unsupported("EXPLAIN CREATE TABLE AS EXECUTE", self.pos()));
                }
                Statement::Unsupported(what) => Statement::Unsupported(what),
                _ => return Err(self.unexpected()),
            },
            _ => self.preparable()?,
        };
        let statement = Box::new(statement);
        Ok(Statement::Explain { options, statement })
    }

    fn explains_query(&self) -> bool {
        matches!(self.kind_at(1), Kind::Punct('('))
            || ["select", "values", "table", "with"]
                .iter()
                .any(|w| self.is_at(1, w))
    }
}

/// Whether an option of EXPLAIN, VACUUM and the like is switched on.
pub fn option_is_on(value: Option<&str>) -> bool {
    match value {
        None => true,
        Some(v) => !matches!(
            v.to_ascii_lowercase().as_str(),
            "false" | "off" | "no" | "0"
        ),
    }
}
