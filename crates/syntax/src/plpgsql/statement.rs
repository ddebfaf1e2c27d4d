//! Statements: blocks, IF, CASE, EXIT, assignment, SQL.

use throng_types::error::state;
use throng_types::{Error, Result, SqlType, oid};

use super::code::*;
use super::condition::{state_text, states_named};
use super::parse::{AroundKind, Body};
use crate::parse::lexer::Kind;
use crate::parse::parse_parts;

impl Body<'_> {
    /// `<<label>>`, if it comes next.
    fn label(&mut self) -> Result<Option<String>> {
        if !self.is_op("<<") {
            return Ok(None);
        }
        self.advance();
        let name = self.name()?;
        match self.is_op(">>") {
            true => self.advance(),
            false => return Err(self.unexpected()),
        }
        Ok(Some(name))
    }

    fn end_label(&mut self, label: Option<&str>) -> Result<()> {
        let pos = self.pos();
        let Some(end) = self.peek_name(0).map(str::to_owned) else {
            return Ok(());
        };
        match label {
            None => {
                let message = format!("end label \"{end}\" specified for unlabeled block");
                Err(self.error(message, pos))
            }
            Some(label) if label != end => {
                let message = format!("end label \"{end}\" differs from block's label \"{label}\"");
                Err(self.error(message, pos))
            }
            Some(_) => {
                self.advance();
                Ok(())
            }
        }
    }

    /// A block with its label.
    pub(super) fn block_statement(&mut self) -> Result<()> {
        let label = self.label()?;
        match self.is("declare") || self.is("begin") {
            true => self.nested(|b| b.block(label)),
            false => Err(self.unexpected()),
        }
    }

    fn block(&mut self, label: Option<String>) -> Result<()> {
        let outer = self.open_scope(label.clone());
        if self.word("declare") {
            self.declarations()?;
        }
        let line = self.line();
        self.keyword("begin")?;
        let begin = self.emit(Op::Nothing, line, "statement block");
        self.enter(label.clone(), AroundKind::Block);
        self.statements(&["end", "exception"])?;
        if self.word("exception") {
            self.handlers(begin, line)?;
        }
        let end = self.pc();
        self.leave(end);
        self.keyword("end")?;
        self.end_label(label.as_deref())?;
        self.scope = outer;
        Ok(())
    }

    /// What stands behind EXCEPTION.
    fn handlers(&mut self, begin: Pc, line: u32) -> Result<()> {
        let text = Held {
            ty: SqlType::TEXT,
            domain: None,
        };
        let mut slots = [0; 2];
        for (slot, name) in slots.iter_mut().zip(["sqlstate", "sqlerrm"]) {
            *slot = self.variable(name, text, line)?;
            self.code.variables[usize::from(*slot)].constant = true;
            self.name_it(name, *slot);
        }
        // Whoever leaves the block from inside ends its subtransaction.
        let leaves = self
            .around
            .last_mut()
            .map(|a| std::mem::take(&mut a.leaves));
        for at in leaves.unwrap_or_default() {
            self.code.instrs[at].op = Op::EndTry;
        }
        if let Some(around) = self.around.last_mut() {
            around.kind = AroundKind::Handler;
        }
        self.emit(Op::EndTry, line, "statement block");
        let over = self.emit(Op::Jump(0), line, "statement block");
        let mut overs = vec![over];
        let mut handlers = Vec::new();
        while self.word("when") {
            let mut caught = Vec::new();
            loop {
                self.condition(&mut caught)?;
                if !self.word("or") {
                    break;
                }
            }
            self.keyword("then")?;
            handlers.push(Handler {
                caught,
                at: self.pc(),
            });
            self.statements(&["when", "end"])?;
            self.emit(Op::EndHandler, line, "statement block");
            overs.push(self.emit(Op::Jump(0), line, "statement block"));
        }
        if handlers.is_empty() {
            return Err(self.unexpected());
        }
        let end = self.pc();
        for over in overs {
            self.patch(over, end);
        }
        self.code.instrs[begin].op = Op::Try(Box::new(Try {
            handlers,
            sqlstate: slots[0],
            sqlerrm: slots[1],
        }));
        Ok(())
    }

    fn condition(&mut self, caught: &mut Vec<Caught>) -> Result<()> {
        let name = self.name()?;
        if name == "sqlstate" {
            let Kind::Text(text) = self.kind() else {
                return Err(self.unexpected());
            };
            let Some(code) = state_text(text) else {
                return Err(self.wrong("invalid SQLSTATE code"));
            };
            caught.push(Caught::State(code));
            self.advance();
            return Ok(());
        }
        if name == "others" {
            caught.push(Caught::Others);
            return Ok(());
        }
        let states = states_named(&name);
        if states.is_empty() {
            let message = format!("unrecognized exception condition \"{name}\"");
            return Err(Error::new(state::UNDEFINED_OBJECT, message));
        }
        caught.extend(states.into_iter().map(Caught::State));
        Ok(())
    }

    /// Statements up to one of these words.
    pub(super) fn statements(&mut self, ends: &[&str]) -> Result<()> {
        loop {
            let ended = ends.iter().any(|end| self.is(end));
            if ended && !(self.is("exception") && self.is_variable_statement()) {
                return Ok(());
            }
            self.nested(Self::statement)?;
        }
    }

    /// A variable begins a statement, whatever else its name might begin.
    fn is_variable_statement(&self) -> bool {
        let after = self.is_assign_at(1) || matches!(self.kind_at(1), Kind::Punct('[' | '.'));
        after && self.known().is_some()
    }

    fn statement(&mut self) -> Result<()> {
        let line = self.line();
        if self.is_op("<<") {
            let label = self.label()?;
            return match self.kind() {
                Kind::Word(word) => match word.as_str() {
                    "loop" | "while" | "for" | "foreach" => {
                        self.loop_statement(label)?;
                        Ok(())
                    }
                    "declare" | "begin" => {
                        self.block(label)?;
                        self.expect(';')
                    }
                    _ => Err(self.unexpected()),
                },
                _ => Err(self.unexpected()),
            };
        }
        if self.known().is_some() && (self.is_variable_statement() || !self.is_statement_word()) {
            return self.assignment(line);
        }
        let word = match self.kind() {
            Kind::Word(word) => word.clone(),
            Kind::Quoted(_) => String::new(),
            Kind::Param(n) => {
                let name = format!("${n}");
                match self.find(&[&name]) {
                    Some(_) => return self.assignment(line),
                    None => return Err(self.unexpected()),
                }
            }
            _ => return Err(self.unexpected()),
        };
        match word.as_str() {
            "declare" | "begin" => {
                self.block(None)?;
                self.expect(';')
            }
            "if" => self.if_statement(line),
            "case" => self.case_statement(line),
            "loop" | "while" | "for" | "foreach" => self.loop_statement(None),
            "exit" | "continue" => self.exit_statement(line),
            "return" => self.return_statement(line),
            "raise" => self.raise_statement(line),
            "assert" => self.assert_statement(line),
            "execute" => self.execute_statement(line),
            "perform" => self.perform_statement(line),
            "get" => self.diagnostics_statement(line),
            "open" => self.open_statement(line),
            "fetch" | "move" => self.fetch_statement(line),
            "close" => self.close_statement(line),
            "null" => {
                self.advance();
                self.emit(Op::Nothing, line, "NULL");
                self.expect(';')
            }
            "commit" | "rollback" => self.transaction_statement(&word, line),
            "call" | "do" => {
                let what = if word == "call" { "CALL" } else { "DO" };
                let source = self.query_to_semicolon()?;
                self.emit(Op::Call(source), line, what);
                Ok(())
            }
            "insert" | "import" | "merge" => self.sql_statement(line),
            word if super::parse::is_reserved(word) => Err(self.unexpected()),
            _ => {
                let parts = self.dotted();
                let after = parts.len() * 2 - 1;
                let assigned = self.is_assign_at(after)
                    || *self.kind_at(after) == Kind::Punct('[')
                    || parts.len() == 1 && *self.kind_at(1) == Kind::Punct('.');
                if assigned {
                    let message = format!("\"{}\" is not a known variable", parts.join("."));
                    return Err(self.error(message, self.pos()));
                }
                self.sql_statement(line)
            }
        }
    }

    /// A word that begins a statement where it is no variable that is assigned to.
    fn is_statement_word(&self) -> bool {
        let Kind::Word(word) = self.kind() else {
            return false;
        };
        matches!(
            word.as_str(),
            "exit"
                | "continue"
                | "return"
                | "raise"
                | "assert"
                | "perform"
                | "get"
                | "open"
                | "fetch"
                | "move"
                | "close"
                | "commit"
                | "rollback"
                | "call"
                | "do"
                | "insert"
                | "import"
                | "merge"
        )
    }

    /// What is assigned to, up to the sign of assignment or another end.
    pub(super) fn target(&mut self) -> Result<Target> {
        let pos = self.pos();
        if let Kind::Param(n) = self.kind() {
            let name = format!("${n}");
            let Some((slot, _)) = self.find(&[&name]) else {
                return Err(self.unexpected());
            };
            self.advance();
            return self.must_change(Target::of(slot));
        }
        let names: Vec<String> = self.dotted().into_iter().map(str::to_owned).collect();
        let refs: Vec<&str> = names.iter().map(String::as_str).collect();
        let known = match self.peek_name(0) {
            Some(_) => self.find(&refs),
            None => return Err(self.unexpected()),
        };
        let Some((slot, used)) = known else {
            let message = format!("\"{}\" is not a known variable", names.join("."));
            return Err(self.error(message, pos));
        };
        self.at += used * 2 - 1;
        let mut target = Target::of(slot);
        if used < names.len() && self.is_row(slot) {
            target.field = Some(names[used].clone());
            self.at += 2;
        }
        let start = self.pos();
        let mut depth = 0;
        while matches!(self.kind(), Kind::Punct('[' | '.')) || depth > 0 {
            match self.kind() {
                Kind::Punct('[') => depth += 1,
                Kind::Punct(']') => depth -= 1,
                Kind::End | Kind::Punct(';') => return Err(self.wrong("mismatched parentheses")),
                Kind::Punct('.') if depth == 0 => self.advance(),
                _ => {}
            }
            self.advance();
        }
        let end = self.last_end();
        if end > start {
            let text = &self.text[start as usize..end as usize];
            target.parts = parse_parts(text).map_err(|e| super::parse::shifted(e, start, 0))?;
        }
        self.must_change(target)
    }

    /// What rows are put into: a variable or a field of one, but no part of an array.
    fn whole_target(&mut self) -> Result<Target> {
        let start = self.at;
        let target = self.target()?;
        if target.parts.is_empty() {
            return Ok(target);
        }
        let end = std::mem::replace(&mut self.at, start);
        while self.at < end && !self.is_punct('[') {
            self.advance();
        }
        if self.at == end {
            return Err(Error::unsupported("INTO a part of a field"));
        }
        Err(self.unexpected())
    }

    fn must_change(&self, target: Target) -> Result<Target> {
        let variable = &self.code.variables[usize::from(target.slot)];
        if variable.constant {
            let message = format!("variable \"{}\" is declared CONSTANT", variable.name);
            let code = state::ERROR_IN_ASSIGNMENT;
            return Err(Error::new(code, message).position(self.pos() + 1));
        }
        Ok(target)
    }

    fn assignment(&mut self, line: u32) -> Result<()> {
        let start = self.pos();
        let pos = self.at;
        let target = self.target().map_err(|mut e| {
            // It is about the variable.
            if e.code() == state::ERROR_IN_ASSIGNMENT {
                e.fields_mut().position = Some(start + 1);
            }
            e
        })?;
        if !self.is_assign_at(0) {
            self.at = pos;
            let (text, at) = self.text_until(false, ";", &|b: &Self| b.is_punct(';'))?;
            self.check_statement(&text, at)?;
            return Err(self.unexpected());
        }
        self.advance();
        let (text, at) = self.text_until(true, ";", &|b: &Self| b.is_punct(';'))?;
        self.check_expression(&text, at)?;
        self.advance();
        let value = self.source(text, SourceKind::Assignment);
        let whole = &self.text[start as usize..self.tokens[self.at - 2].end as usize];
        self.code.sources[value].whole = Some(whole.to_owned());
        self.emit(Op::Assign { target, value }, line, "assignment");
        Ok(())
    }

    fn if_statement(&mut self, line: u32) -> Result<()> {
        self.advance();
        let mut overs = Vec::new();
        loop {
            let condition = self.expression_before("then")?;
            let unless = self.emit(Op::Unless { condition, to: 0 }, line, "IF");
            self.statements(&["elsif", "elseif", "else", "end"])?;
            overs.push(self.emit(Op::Jump(0), line, "IF"));
            let next = self.pc();
            self.patch(unless, next);
            if self.word("elsif") || self.word("elseif") {
                continue;
            }
            if self.word("else") {
                self.statements(&["end"])?;
            }
            break;
        }
        self.keyword("end")?;
        self.keyword("if")?;
        self.expect(';')?;
        let end = self.pc();
        overs.into_iter().for_each(|over| self.patch(over, end));
        Ok(())
    }

    fn case_statement(&mut self, line: u32) -> Result<()> {
        self.advance();
        let mut compared = None;
        if !self.is("when") {
            let value = self.expression_until("WHEN", &|b: &Self| b.is("when"))?;
            let held = Held {
                ty: SqlType::INT4,
                domain: None,
            };
            let name = format!("__Case__Variable_{}__", self.code.variables.len());
            let slot = self.variable(&name, held, line)?;
            self.code.variables[usize::from(slot)].any_type = true;
            self.name_it(&name, slot);
            self.emit(Op::CaseValue { slot, value }, line, "CASE");
            compared = Some(name);
        }
        let mut overs = Vec::new();
        while self.word("when") {
            let (text, at) = self.text_until(true, "THEN", &|b: &Self| b.is("then"))?;
            self.advance();
            self.check_expression(&text, at)?;
            let text = match &compared {
                Some(name) => format!("\"{name}\" IN ({text})"),
                None => text,
            };
            let condition = self.source(text, SourceKind::Expression);
            let unless = self.emit(Op::Unless { condition, to: 0 }, line, "CASE");
            self.statements(&["when", "else", "end"])?;
            overs.push(self.emit(Op::Jump(0), line, "CASE"));
            let next = self.pc();
            self.patch(unless, next);
        }
        match self.word("else") {
            true => self.statements(&["end"])?,
            false => {
                self.emit(Op::NoCase, line, "CASE");
            }
        }
        self.keyword("end")?;
        self.keyword("case")?;
        self.expect(';')?;
        let end = self.pc();
        overs.into_iter().for_each(|over| self.patch(over, end));
        Ok(())
    }

    fn exit_statement(&mut self, line: u32) -> Result<()> {
        let pos = self.pos();
        let exits = self.is("exit");
        let what = if exits { "EXIT" } else { "CONTINUE" };
        self.advance();
        let label_pos = self.pos();
        let label = match self.peek_name(0) {
            Some(_) => Some(self.name()?),
            None => None,
        };
        let depth = match &label {
            Some(label) => {
                let named = |a: &super::parse::Around| a.label.as_ref() == Some(label);
                let Some(depth) = self.around.iter().rposition(named) else {
                    let known = self
                        .code
                        .scopes
                        .iter()
                        .any(|s| s.label.as_ref() == Some(label));
                    let message = match known && self.signature.name.as_ref() == Some(label) {
                        true => format!("block label \"{label}\" cannot be used in {what}"),
                        false => format!(
                            "there is no label \"{label}\" attached to any block or loop enclosing this statement"
                        ),
                    };
                    return Err(self.error(message, label_pos));
                };
                if !exits && !self.around[depth].kind.is_loop() {
                    let message = format!("block label \"{label}\" cannot be used in CONTINUE");
                    return Err(self.error(message, label_pos));
                }
                depth
            }
            None => match self.around.iter().rposition(|a| a.kind.is_loop()) {
                Some(depth) => depth,
                None => {
                    let message = match exits {
                        true => "EXIT cannot be used outside a loop, unless it has a label",
                        false => "CONTINUE cannot be used outside a loop",
                    };
                    return Err(self.error(message, pos));
                }
            },
        };
        let unless = match self.word("when") {
            true => {
                let condition = self.expression_to(';')?;
                Some(self.emit(Op::Unless { condition, to: 0 }, line, what))
            }
            false => {
                self.expect(';')?;
                None
            }
        };
        self.unwind_to(depth, exits, line, what);
        let jump = self.emit(Op::Jump(0), line, what);
        let around = &mut self.around[depth];
        match exits {
            true => around.exits.push(jump),
            false => around.continues.push(jump),
        }
        if let Some(unless) = unless {
            let next = self.pc();
            self.patch(unless, next);
        }
        Ok(())
    }

    /// Ends what is left on the way to something around: the loops inside it, and the blocks'
    /// subtransactions.
    fn unwind_to(&mut self, depth: usize, exits: bool, line: u32, what: &'static str) {
        for at in (depth..self.around.len()).rev() {
            match self.around[at].kind {
                AroundKind::StateLoop if at > depth => {
                    self.emit(Op::EndLoop, line, what);
                }
                AroundKind::Block if at > depth || exits => {
                    let leave = self.emit(Op::Nothing, line, what);
                    self.around[at].leaves.push(leave);
                }
                AroundKind::Handler if at > depth || exits => {
                    self.emit(Op::EndHandler, line, what);
                }
                _ => {}
            }
        }
    }

    fn return_statement(&mut self, line: u32) -> Result<()> {
        self.advance();
        if self.word("next") {
            return self.return_next(line);
        }
        if self.word("query") {
            return self.return_query(line);
        }
        let of = self.signature;
        let refused = match () {
            _ if of.set => Some((
                "RETURN cannot have a parameter in function returning set",
                true,
            )),
            _ if of.procedure && of.outputs() == 0 => {
                Some(("RETURN cannot have a parameter in a procedure", false))
            }
            _ if of.ret == oid::VOID => Some((
                "RETURN cannot have a parameter in function returning void",
                false,
            )),
            _ if of.outputs() > 0 => Some((
                "RETURN cannot have a parameter in function with OUT parameters",
                false,
            )),
            _ => None,
        };
        if let Some((message, hint)) = refused {
            if self.punct(';') {
                self.emit(Op::Return(None), line, "RETURN");
                return Ok(());
            }
            let error = Error::new(state::DATATYPE_MISMATCH, message).position(self.pos() + 1);
            return Err(match hint {
                true => error.hint("Use RETURN NEXT or RETURN QUERY."),
                false => error,
            });
        }
        let value = self.expression_to(';')?;
        self.emit(Op::Return(Some(value)), line, "RETURN");
        Ok(())
    }

    fn return_next(&mut self, line: u32) -> Result<()> {
        if !self.signature.set {
            let message = "cannot use RETURN NEXT in a non-SETOF function";
            return Err(Error::new(state::DATATYPE_MISMATCH, message).position(self.pos() + 1));
        }
        let value = match self.signature.outputs() > 0 {
            true if self.punct(';') => None,
            true => {
                let message = "RETURN NEXT cannot have a parameter in function with OUT parameters";
                return Err(Error::new(state::DATATYPE_MISMATCH, message).position(self.pos() + 1));
            }
            false => Some(self.expression_to(';')?),
        };
        self.emit(Op::ReturnNext(value), line, "RETURN NEXT");
        Ok(())
    }

    fn return_query(&mut self, line: u32) -> Result<()> {
        if !self.signature.set {
            let message = "cannot use RETURN QUERY in a non-SETOF function";
            return Err(Error::new(state::DATATYPE_MISMATCH, message).position(self.pos() + 1));
        }
        let rows = match self.word("execute") {
            true => {
                let dynamic = self.dynamic(&|b: &Self| b.is_punct(';'), ";")?;
                self.expect(';')?;
                Rows::Dynamic(dynamic)
            }
            false => Rows::Query(self.query_to_semicolon()?),
        };
        self.emit(Op::ReturnQuery(rows), line, "RETURN QUERY");
        Ok(())
    }

    /// After EXECUTE: the text's expression and what is behind USING.
    pub(super) fn dynamic(
        &mut self,
        ends: &dyn Fn(&Self) -> bool,
        expected: &str,
    ) -> Result<Dynamic> {
        let over = |b: &Self| ends(b) || b.is("using");
        let query = self.expression_until(expected, &over)?;
        let mut using = Vec::new();
        if self.word("using") {
            loop {
                let over = |b: &Self| ends(b) || b.is_punct(',');
                using.push(self.expression_until(expected, &over)?);
                if !self.punct(',') {
                    break;
                }
            }
        }
        Ok(Dynamic { query, using })
    }

    fn execute_statement(&mut self, line: u32) -> Result<()> {
        self.advance();
        let over = |b: &Self| b.is("into") || b.is("using") || b.is_punct(';');
        let query = self.expression_until("INTO", &over)?;
        let (mut into, mut strict, mut using) = (None, false, Vec::new());
        loop {
            if self.is("into") {
                if into.is_some() {
                    return Err(self.unexpected());
                }
                self.advance();
                strict = self.word("strict");
                into = Some(self.destination()?);
            } else if self.is("using") {
                if !using.is_empty() {
                    return Err(self.unexpected());
                }
                self.advance();
                loop {
                    let over = |b: &Self| b.is_punct(',') || b.is_punct(';') || b.is("into");
                    using.push(self.expression_until("INTO", &over)?);
                    if !self.punct(',') {
                        break;
                    }
                }
            } else {
                self.expect(';')?;
                break;
            }
        }
        let op = Op::Execute {
            dynamic: Dynamic { query, using },
            into,
            strict,
        };
        self.emit(op, line, "EXECUTE");
        Ok(())
    }

    /// One record, or a list of places for values.
    pub(super) fn destination(&mut self) -> Result<Destination> {
        let pos = self.pos();
        let first = self.whole_target()?;
        if self.is_row(first.slot) && first.field.is_none() {
            if self.is_punct(',') {
                let message = "record variable cannot be part of multiple-item INTO list";
                return Err(self.error(message, pos));
            }
            return Ok(Destination::Record(first.slot));
        }
        let mut list = vec![first];
        while self.punct(',') {
            let pos = self.pos();
            let target = self.whole_target()?;
            if self.is_row(target.slot) && target.field.is_none() {
                let name = &self.code.variables[usize::from(target.slot)].name;
                let message = format!("\"{name}\" is not a scalar variable");
                return Err(self.error(message, pos));
            }
            list.push(target);
        }
        Ok(Destination::List(list))
    }

    fn perform_statement(&mut self, line: u32) -> Result<()> {
        self.advance();
        let (text, at) = self.text_until(false, ";", &|b: &Self| b.is_punct(';'))?;
        self.check_expression(&text, at)?;
        self.advance();
        let text = format!("SELECT {text}");
        let source = self.source(text, SourceKind::Statement);
        self.emit(Op::Perform(source), line, "PERFORM");
        Ok(())
    }

    /// A statement that is SQL's, its INTO taken out.
    fn sql_statement(&mut self, line: u32) -> Result<()> {
        let start = self.pos();
        let first = self.kind().clone();
        let is_word = |kind: &Kind, w: &str| matches!(kind, Kind::Word(word) if word == w);
        let mut into: Option<(Destination, bool, u32, u32)> = None;
        let mut depth = 0;
        // CREATE FUNCTION ... BEGIN ATOMIC has semicolons inside.
        let mut atomic = 0;
        let creates = is_word(&first, "create");
        let mut last = Kind::End;
        loop {
            let kind = self.kind().clone();
            match &kind {
                Kind::End => return Err(self.wrong("unexpected end of function definition")),
                Kind::Punct(';') if atomic == 0 => break,
                Kind::Punct('(') => depth += 1,
                Kind::Punct(')') => depth -= 1,
                Kind::Word(word) if word == "begin" && creates => {
                    atomic += i32::from(self.is_at(1, "atomic"))
                }
                Kind::Word(word) if word == "end" && atomic > 0 => atomic -= 1,
                Kind::Word(word) if word == "into" => {
                    let names_table = is_word(&last, "insert")
                        || is_word(&last, "merge")
                        || is_word(&first, "import")
                        || depth > 0 && is_word(&last, "values");
                    if !names_table {
                        if into.is_some() {
                            return Err(self.error("INTO specified more than once", self.pos()));
                        }
                        let from = self.pos();
                        self.advance();
                        let strict = self.word("strict");
                        let targets = self.destination()?;
                        into = Some((targets, strict, from, self.last_end()));
                        last = Kind::End;
                        continue;
                    }
                }
                _ => {}
            }
            last = kind;
            self.advance();
        }
        let end = self.last_end();
        self.advance();
        let mut text = self.text[start as usize..end as usize].to_owned();
        let (into, strict) = match into {
            None => (None, false),
            Some((targets, strict, from, to)) => {
                let (from, to) = ((from - start) as usize, (to - start) as usize);
                let blank = " ".repeat(to - from);
                text.replace_range(from..to, &blank);
                text.truncate(text.trim_end().len());
                (Some(targets), strict)
            }
        };
        self.check_statement(&text, start)?;
        let statement = self.source(text, SourceKind::Statement);
        let op = Op::Sql {
            statement,
            into,
            strict,
        };
        self.emit(op, line, "SQL statement");
        Ok(())
    }

    fn transaction_statement(&mut self, word: &str, line: u32) -> Result<()> {
        self.advance();
        let mut chain = false;
        if self.word("and") {
            chain = !self.word("no");
            self.keyword("chain")?;
        }
        self.expect(';')?;
        match word {
            "commit" => self.emit(Op::Commit { chain }, line, "COMMIT"),
            _ => self.emit(Op::Rollback { chain }, line, "ROLLBACK"),
        };
        Ok(())
    }

    /// The label that may stand behind END LOOP.
    pub(super) fn loop_end(&mut self, label: Option<&str>) -> Result<()> {
        self.keyword("end")?;
        self.keyword("loop")?;
        self.end_label(label)?;
        self.expect(';')
    }
}
