//! LOOP, WHILE, FOR and FOREACH.
//!
//! ```text
//!         ForInt                 the bounds
//!         Jump next
//! body:   …                      CONTINUE jumps to next, EXIT to end
//! next:   NextInt body           the next value, or on
//! end:    EndLoop                FOUND
//! ```

use throng_types::{Result, SqlType, oid};

use super::code::*;
use super::parse::{AroundKind, Body};
use crate::parse::lexer::Kind;

impl Body<'_> {
    pub(super) fn loop_statement(&mut self, label: Option<String>) -> Result<()> {
        let line = self.line();
        let outer = self.open_scope(label.clone());
        if self.word("loop") {
            let top = self.emit(Op::Nothing, line, "LOOP");
            self.plain_body(label, top, line, "LOOP", None)?;
        } else if self.word("while") {
            let condition = self.expression_before("loop")?;
            let top = self.emit(Op::Unless { condition, to: 0 }, line, "WHILE");
            self.plain_body(label, top, line, "WHILE", Some(top))?;
        } else if self.word("foreach") {
            self.foreach(label, line)?;
        } else {
            self.keyword("for")?;
            self.for_statement(label, line)?;
        }
        self.scope = outer;
        Ok(())
    }

    fn plain_body(
        &mut self,
        label: Option<String>,
        top: Pc,
        line: u32,
        what: &'static str,
        unless: Option<Pc>,
    ) -> Result<()> {
        self.enter(label.clone(), AroundKind::Loop);
        self.statements(&["end"])?;
        self.emit(Op::Jump(top), line, what);
        self.loop_end(label.as_deref())?;
        let end = self.pc();
        let around = self.leave(end);
        for at in around.continues {
            self.patch(at, top);
        }
        if let Some(unless) = unless {
            self.patch(unless, end);
        }
        Ok(())
    }

    /// The body of a loop that goes through values; `next` makes the instruction that takes the
    /// next one.
    fn state_body(
        &mut self,
        label: Option<String>,
        line: u32,
        what: &'static str,
        next: impl FnOnce(Pc) -> Op,
    ) -> Result<()> {
        let jump = self.emit(Op::Jump(0), line, what);
        let body = self.pc();
        self.enter(label.clone(), AroundKind::StateLoop);
        self.statements(&["end"])?;
        self.loop_end(label.as_deref())?;
        let at = self.emit(next(body), line, what);
        self.patch(jump, at);
        let end = self.emit(Op::EndLoop, line, what);
        let around = self.leave(end);
        for jump in around.continues {
            self.patch(jump, at);
        }
        Ok(())
    }

    fn for_statement(&mut self, label: Option<String>, line: u32) -> Result<()> {
        let start = self.at;
        let pos = self.pos();
        // What comes before IN, to be read once it is known what the loop is over.
        let mut count = 0;
        while !self.is("in") && !self.at_end() && !self.is_punct(';') {
            count += usize::from(self.is_punct(','));
            self.advance();
        }
        if self.at == start {
            return Err(self.unexpected());
        }
        self.keyword("in")?;
        if self.word("execute") {
            let dynamic = self.dynamic(&|b: &Self| b.is("loop"), "LOOP")?;
            self.advance();
            let what = "FOR over EXECUTE statement";
            return self.rows_loop(label, (start, pos), Rows::Dynamic(dynamic), line, what);
        }
        if let Some((slot, used)) = self.known()
            && self.held(slot).ty.oid == oid::REFCURSOR
            && matches!(self.kind_at(used * 2 - 1), Kind::Punct('(') | Kind::Word(_))
        {
            return self.cursor_loop(label, (start, pos), slot, used, line);
        }
        let reverse = self.is("reverse") && {
            self.advance();
            true
        };
        let over = |b: &Self| *b.kind() == Kind::Dots || b.is("loop");
        let (text, at) = self.text_until(true, "LOOP", &over)?;
        if *self.kind() == Kind::Dots {
            self.check_expression(&text, at)?;
            let from = self.source(text, SourceKind::Expression);
            self.advance();
            let over = |b: &Self| b.is("loop") || b.is("by");
            let until = self.expression_until("LOOP", &over)?;
            let step = match self.word("by") {
                true => Some(self.expression_before("loop")?),
                false => {
                    self.keyword("loop")?;
                    None
                }
            };
            if count > 0 {
                let message = "integer FOR loop must have only one target variable";
                return Err(self.error(message, pos));
            }
            let back = std::mem::replace(&mut self.at, start);
            let name = self.name()?;
            if !self.is("in") {
                return Err(self.unexpected());
            }
            self.at = back;
            let held = Held {
                ty: SqlType::INT4,
                domain: None,
            };
            let slot = self.variable(&name, held, line)?;
            self.name_it(&name, slot);
            let what = "FOR with integer loop variable";
            let op = Op::ForInt {
                slot,
                from,
                until,
                step,
                reverse,
            };
            self.emit(op, line, what);
            return self.state_body(label, line, what, |body| Op::NextInt { slot, body });
        }
        if reverse {
            let message = "cannot specify REVERSE in query FOR loop";
            return Err(self.error(message, at));
        }
        self.check_statement(&text, at)?;
        self.advance();
        let query = self.source(text, SourceKind::Statement);
        let what = "FOR over SELECT rows";
        self.rows_loop(label, (start, pos), Rows::Query(query), line, what)
    }

    fn loop_target(&mut self, (start, pos): (usize, u32)) -> Result<Destination> {
        let back = std::mem::replace(&mut self.at, start);
        if self.known().is_none() {
            let message = "loop variable of loop over rows must be a record variable or list of scalar variables";
            return Err(self.error(message, pos));
        }
        let into = self.destination()?;
        if !self.is("in") {
            return Err(self.unexpected());
        }
        self.at = back;
        Ok(into)
    }

    fn rows_loop(
        &mut self,
        label: Option<String>,
        target: (usize, u32),
        rows: Rows,
        line: u32,
        what: &'static str,
    ) -> Result<()> {
        let into = self.loop_target(target)?;
        let first = into.clone();
        self.emit(Op::ForRows { rows, into: first }, line, what);
        self.state_body(label, line, what, |body| Op::NextRow { into, body })
    }

    fn cursor_loop(
        &mut self,
        label: Option<String>,
        (start, pos): (usize, u32),
        slot: Slot,
        used: usize,
        line: u32,
    ) -> Result<()> {
        let cursor_pos = self.pos();
        if self.code.variables[usize::from(slot)].cursor.is_none() {
            let message = "cursor FOR loop must use a bound cursor variable";
            return Err(self.error(message, cursor_pos));
        }
        let back = std::mem::replace(&mut self.at, start);
        let name = self.name()?;
        if !self.is("in") {
            let message = "cursor FOR loop must have only one target variable";
            return Err(self.error(message, pos));
        }
        self.at = back + used * 2 - 1;
        let args = self.cursor_args(slot)?;
        self.keyword("loop")?;
        let held = Held {
            ty: SqlType::RECORD,
            domain: None,
        };
        let record = self.variable(&name, held, line)?;
        self.name_it(&name, record);
        let what = "FOR over cursor";
        let into = Destination::Record(record);
        let rows = Rows::Cursor { slot, args };
        let first = into.clone();
        self.emit(Op::ForRows { rows, into: first }, line, what);
        self.state_body(label, line, what, |body| Op::NextRow { into, body })
    }

    fn foreach(&mut self, label: Option<String>, line: u32) -> Result<()> {
        let pos = self.pos();
        if self.known().is_none() {
            let message = "loop variable of FOREACH must be a known variable or list of variables";
            return Err(self.error(message, pos));
        }
        let into = self.destination()?;
        let mut slice = 0;
        if self.word("slice") {
            let Kind::Integer(digits) = self.kind() else {
                return Err(self.unexpected());
            };
            slice = digits.parse().unwrap_or(u32::MAX);
            self.advance();
        }
        self.keyword("in")?;
        self.keyword("array")?;
        let array = self.expression_before("loop")?;
        let what = "FOREACH over array";
        let first = into.clone();
        let op = Op::ForEach {
            into: first,
            slice,
            array,
        };
        self.emit(op, line, what);
        self.state_body(label, line, what, |body| Op::NextItem { into, body })
    }
}
