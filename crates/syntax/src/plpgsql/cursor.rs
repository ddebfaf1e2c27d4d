//! OPEN, FETCH, MOVE, CLOSE, and GET DIAGNOSTICS.

use throng_types::error::state;
use throng_types::{Error, Result, oid};

use super::code::*;
use super::parse::Body;
use crate::parse::lexer::Kind;

impl Body<'_> {
    fn cursor_variable(&mut self) -> Result<Slot> {
        let pos = self.pos();
        let found = self.known();
        let Some((slot, used)) = found else {
            return match self.peek_name(0) {
                Some(name) => Err(self.error(format!("\"{name}\" is not a known variable"), pos)),
                None => Err(self.unexpected()),
            };
        };
        let variable = &self.code.variables[usize::from(slot)];
        if variable.held.ty.oid != oid::REFCURSOR {
            let message = match self.is_row(slot) {
                true => "cursor variable must be a simple variable".to_owned(),
                false => format!(
                    "variable \"{}\" must be of type cursor or refcursor",
                    variable.name
                ),
            };
            return Err(Error::new(state::DATATYPE_MISMATCH, message).position(pos + 1));
        }
        self.at += used * 2 - 1;
        Ok(slot)
    }

    pub(super) fn open_statement(&mut self, line: u32) -> Result<()> {
        self.advance();
        let slot = self.cursor_variable()?;
        if self.code.variables[usize::from(slot)].cursor.is_some() {
            let args = self.cursor_args(slot)?;
            self.expect(';')?;
            let op = Op::Open {
                slot,
                what: Opened::Bound { args },
                scroll: None,
            };
            self.emit(op, line, "OPEN");
            return Ok(());
        }
        let scroll = self.scroll_option();
        if !self.word("for") {
            return Err(self.wrong("syntax error, expected \"FOR\""));
        }
        let what = match self.word("execute") {
            true => {
                let dynamic = self.dynamic(&|b: &Self| b.is_punct(';'), ";")?;
                self.expect(';')?;
                Opened::Dynamic(dynamic)
            }
            false => Opened::Query(self.query_to_semicolon()?),
        };
        self.emit(Op::Open { slot, what, scroll }, line, "OPEN");
        Ok(())
    }

    /// The arguments of a bound cursor, in its own order.
    pub(super) fn cursor_args(&mut self, slot: Slot) -> Result<Vec<SourceId>> {
        let variable = &self.code.variables[usize::from(slot)];
        let cursor_name = variable.name.clone();
        let wanted: Vec<(Slot, String)> = match &variable.cursor {
            Some(cursor) => cursor
                .args
                .iter()
                .map(|slot| (*slot, self.code.variables[usize::from(*slot)].name.clone()))
                .collect(),
            None => vec![],
        };
        if wanted.is_empty() {
            if self.is_punct('(') {
                let message = format!("cursor \"{cursor_name}\" has no arguments");
                return Err(self.error(message, self.pos()));
            }
            return Ok(vec![]);
        }
        if !self.punct('(') {
            let message = format!("cursor \"{cursor_name}\" has arguments");
            return Err(self.error(message, self.pos()));
        }
        let mut given: Vec<Option<SourceId>> = vec![None; wanted.len()];
        let mut count = 0;
        loop {
            let pos = self.pos();
            let named = matches!(self.kind_at(1), Kind::Arrow);
            let place = match named {
                true => {
                    let name = match self.kind() {
                        Kind::Word(name) | Kind::Quoted(name) => name.clone(),
                        _ => return Err(self.unexpected()),
                    };
                    let Some(place) = wanted.iter().position(|(_, n)| *n == name) else {
                        let message =
                            format!("cursor \"{cursor_name}\" has no argument named \"{name}\"");
                        return Err(self.error(message, pos));
                    };
                    self.at += 2;
                    place
                }
                false => count,
            };
            let Some(slot) = given.get_mut(place) else {
                let message = format!("too many arguments for cursor \"{cursor_name}\"");
                return Err(self.error(message, pos));
            };
            if slot.is_some() {
                let message = format!(
                    "value for parameter \"{}\" of cursor \"{cursor_name}\" specified more than once",
                    wanted[place].1
                );
                return Err(self.error(message, pos));
            }
            let over = |b: &Self| b.is_punct(',') || b.is_punct(')');
            let source = self.expression_until(")", &over)?;
            given[place] = Some(source);
            count += 1;
            if !self.punct(',') {
                break;
            }
        }
        let pos = self.pos();
        self.expect(')')?;
        given
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| {
                let message = format!("not enough arguments for cursor \"{cursor_name}\"");
                self.error(message, pos)
            })
    }

    pub(super) fn fetch_statement(&mut self, line: u32) -> Result<()> {
        let moves = self.is("move");
        let what = if moves { "MOVE" } else { "FETCH" };
        self.advance();
        let mut fetch = Fetch {
            cursor: 0,
            way: Way::Forward,
            count: 1,
            count_of: None,
            into: None,
            many: false,
        };
        self.direction(&mut fetch)?;
        fetch.cursor = self.cursor_variable()?;
        if !moves {
            if !self.word("into") {
                return Err(self.unexpected());
            }
            fetch.into = Some(self.destination()?);
            if fetch.many {
                let message = "FETCH statement cannot return multiple rows";
                return Err(
                    Error::new(state::FEATURE_NOT_SUPPORTED, message).position(self.pos() + 1)
                );
            }
        }
        self.expect(';')?;
        self.emit(Op::Fetch(Box::new(fetch)), line, what);
        Ok(())
    }

    fn direction(&mut self, fetch: &mut Fetch) -> Result<()> {
        let word = match self.kind() {
            // A cursor of that name.
            Kind::Word(_) if self.known().is_some() && !self.is_at(1, "from") => return Ok(()),
            Kind::Word(word) => word.clone(),
            _ => String::new(),
        };
        let mut takes_from = true;
        match word.as_str() {
            "next" => self.advance(),
            "prior" => {
                self.advance();
                fetch.way = Way::Backward;
            }
            "first" => {
                self.advance();
                fetch.way = Way::Absolute;
            }
            "last" => {
                self.advance();
                (fetch.way, fetch.count) = (Way::Absolute, -1);
            }
            "absolute" | "relative" => {
                self.advance();
                fetch.way = match word.as_str() {
                    "absolute" => Way::Absolute,
                    _ => Way::Relative,
                };
                let over = |b: &Self| b.is("from") || b.is("in");
                fetch.count_of = Some(self.expression_until("FROM", &over)?);
            }
            "all" => {
                self.advance();
                (fetch.count, fetch.many) = (i64::MAX, true);
            }
            "forward" | "backward" => {
                self.advance();
                fetch.way = match word.as_str() {
                    "forward" => Way::Forward,
                    _ => Way::Backward,
                };
                if self.known().is_some() {
                    return Ok(());
                }
                if self.word("all") {
                    (fetch.count, fetch.many) = (i64::MAX, true);
                } else if !self.is("from") && !self.is("in") {
                    let over = |b: &Self| b.is("from") || b.is("in");
                    fetch.count_of = Some(self.expression_until("FROM", &over)?);
                    fetch.many = true;
                }
            }
            "from" | "in" => {}
            _ if self.known().is_some() => takes_from = false,
            _ => {
                let over = |b: &Self| b.is("from") || b.is("in");
                fetch.count_of = Some(self.expression_until("FROM", &over)?);
                fetch.many = true;
            }
        }
        if takes_from && !self.word("from") && !self.word("in") {
            return Err(self.wrong("expected FROM or IN"));
        }
        Ok(())
    }

    pub(super) fn close_statement(&mut self, line: u32) -> Result<()> {
        self.advance();
        let slot = self.cursor_variable()?;
        self.expect(';')?;
        self.emit(Op::Close(slot), line, "CLOSE");
        Ok(())
    }

    pub(super) fn diagnostics_statement(&mut self, line: u32) -> Result<()> {
        self.advance();
        let stacked = match () {
            _ if self.word("current") => false,
            _ => self.word("stacked"),
        };
        self.keyword("diagnostics")?;
        let mut items = Vec::new();
        loop {
            let pos = self.pos();
            let target = self.target()?;
            let is_whole = target.parts.is_empty();
            if !is_whole || self.is_row(target.slot) && target.field.is_none() {
                let name = &self.code.variables[usize::from(target.slot)].name;
                let message = format!("\"{name}\" is not a scalar variable");
                return Err(self.error(message, pos));
            }
            if !self.is_assign_at(0) {
                return Err(self.unexpected());
            }
            self.advance();
            let word = match self.kind() {
                Kind::Word(word) => word.clone(),
                _ => return Err(self.wrong("unrecognized GET DIAGNOSTICS item")),
            };
            use Diagnostic as D;
            let item = match word.as_str() {
                "row_count" => D::RowCount,
                "pg_routine_oid" => D::RoutineOid,
                "pg_context" => D::Context,
                "pg_exception_detail" => D::ErrorDetail,
                "pg_exception_hint" => D::ErrorHint,
                "pg_exception_context" => D::ErrorContext,
                "column_name" => D::ColumnName,
                "constraint_name" => D::ConstraintName,
                "pg_datatype_name" => D::DatatypeName,
                "message_text" => D::MessageText,
                "table_name" => D::TableName,
                "schema_name" => D::SchemaName,
                "returned_sqlstate" => D::ReturnedSqlstate,
                _ => return Err(self.wrong("unrecognized GET DIAGNOSTICS item")),
            };
            let of_current = matches!(item, D::RowCount | D::RoutineOid);
            if stacked && of_current || !stacked && !of_current && item != D::Context {
                let which = if stacked { "STACKED" } else { "CURRENT" };
                let message = format!(
                    "diagnostics item {} is not allowed in GET {which} DIAGNOSTICS",
                    word.to_uppercase()
                );
                return Err(self.error(message, pos));
            }
            self.advance();
            items.push((target, item));
            if !self.punct(',') {
                break;
            }
        }
        self.expect(';')?;
        let what = match stacked {
            true => "GET STACKED DIAGNOSTICS",
            false => "GET DIAGNOSTICS",
        };
        self.emit(Op::Diagnostics { stacked, items }, line, what);
        Ok(())
    }
}
