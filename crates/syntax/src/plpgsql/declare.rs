//! DECLARE: variables, constants, cursors, aliases; and the types they are of.

use throng_types::error::state;
use throng_types::{Error, Result, SqlType, oid};

use super::code::*;
use super::parse::{Body, shifted};
use crate::parse::ast;
use crate::parse::lexer::Kind;
use crate::parse::{parse_name, parse_type};

impl Body<'_> {
    /// What stands between DECLARE and BEGIN; each variable's beginning is emitted.
    pub(super) fn declarations(&mut self) -> Result<()> {
        while !self.is("begin") {
            if self.word("declare") {
                continue;
            }
            if self.is_op("<<") {
                let message = "block label must be placed before DECLARE, not after";
                return Err(self.error(message, self.pos()));
            }
            self.declaration()?;
        }
        Ok(())
    }

    fn declaration(&mut self) -> Result<()> {
        let line = self.line();
        let name = self.name()?;
        let own = self.code.scopes[self.scope].names.iter();
        if own.clone().any(|(n, _)| *n == name) {
            self.at -= 1;
            return Err(self.wrong("duplicate declaration"));
        }
        if self.word("alias") {
            self.keyword("for")?;
            let parts: Vec<String> = match self.kind() {
                Kind::Param(n) => vec![format!("${n}")],
                _ => self.dotted().into_iter().map(str::to_owned).collect(),
            };
            let refs: Vec<&str> = parts.iter().map(String::as_str).collect();
            let found = refs.first().and_then(|_| self.find(&refs));
            let Some((slot, _)) = found else {
                let message = format!("variable \"{}\" does not exist", parts.join("."));
                return Err(Error::new(state::UNDEFINED_COLUMN, message).position(self.pos() + 1));
            };
            match self.kind() {
                Kind::Param(_) => self.advance(),
                _ => self.at += parts.len() * 2 - 1,
            }
            self.name_it(&name, slot);
            return self.expect(';');
        }
        if self.is("scroll") || self.is("no") && self.is_at(1, "scroll") || self.is("cursor") {
            return self.cursor_declaration(name, line);
        }
        let constant = self.word("constant");
        let (held, _) = self.data_type(&["collate", "not", "default"])?;
        if self.word("collate") {
            self.at += self.dotted().len() * 2 - 1;
        }
        let mut not_null = false;
        let null_pos = self.pos();
        if self.word("not") {
            self.keyword("null")?;
            not_null = true;
        }
        let default = match () {
            _ if self.punct(';') => None,
            _ if self.is_assign_at(0) || self.is("default") => {
                self.advance();
                Some(self.expression_to(';')?)
            }
            _ => return Err(self.unexpected()),
        };
        if not_null && default.is_none() {
            let message = format!(
                "variable \"{name}\" must have a default value, since it's declared NOT NULL"
            );
            return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message).position(null_pos + 1));
        }
        let slot = self.variable(&name, held, line)?;
        let variable = &mut self.code.variables[usize::from(slot)];
        variable.constant = constant;
        variable.not_null = not_null;
        self.name_it(&name, slot);
        self.emit(Op::Declare { slot, default }, line, "statement block");
        Ok(())
    }

    fn cursor_declaration(&mut self, name: String, line: u32) -> Result<()> {
        let scroll = self.scroll_option();
        self.keyword("cursor")?;
        let held = Held {
            ty: SqlType::plain(oid::REFCURSOR),
            domain: None,
        };
        let outer = self.open_scope(None);
        let mut args = Vec::new();
        if self.punct('(') {
            loop {
                let arg_line = self.line();
                let arg = self.name()?;
                let (arg_held, _) = self.data_type(&[])?;
                let slot = self.variable(&arg, arg_held, arg_line)?;
                self.name_it(&arg, slot);
                args.push(slot);
                if !self.punct(',') {
                    break;
                }
            }
            self.expect(')')?;
        }
        if !self.word("is") {
            self.keyword("for")?;
        }
        let query = self.query_to_semicolon()?;
        self.scope = outer;
        let slot = self.variable(&name, held, line)?;
        self.code.variables[usize::from(slot)].cursor = Some(BoundCursor {
            query,
            args,
            scroll,
        });
        self.name_it(&name, slot);
        let default = None;
        self.emit(Op::Declare { slot, default }, line, "statement block");
        Ok(())
    }

    pub(super) fn scroll_option(&mut self) -> Option<bool> {
        if self.word("scroll") {
            return Some(true);
        }
        if self.is("no") && self.is_at(1, "scroll") {
            self.at += 2;
            return Some(false);
        }
        None
    }

    pub(super) fn query_to_semicolon(&mut self) -> Result<SourceId> {
        let (text, at) = self.text_until(false, ";", &|b: &Self| b.is_punct(';'))?;
        self.check_statement(&text, at)?;
        self.advance();
        Ok(self.source(text, SourceKind::Statement))
    }

    /// A type, up to one of these words or a sign that ends it; and its text.
    pub(super) fn data_type(&mut self, ends: &[&str]) -> Result<(Held, String)> {
        let start = self.pos();
        if let Some(held) = self.copied_type()? {
            return Ok((held, String::new()));
        }
        let mut depth = 0;
        let first = self.at;
        loop {
            let over = match self.kind() {
                Kind::Punct(';') | Kind::End => {
                    if depth != 0 {
                        return Err(self.wrong("mismatched parentheses"));
                    }
                    true
                }
                Kind::Punct(',' | ')') if depth == 0 => true,
                Kind::Arrow => depth == 0,
                Kind::Op(op) => depth == 0 && op == "=",
                Kind::Word(word) => depth == 0 && ends.contains(&word.as_str()),
                _ => false,
            };
            if over {
                break;
            }
            match self.kind() {
                Kind::Punct('(') => depth += 1,
                Kind::Punct(')') => depth -= 1,
                _ => {}
            }
            self.advance();
        }
        if self.at == first {
            return Err(match self.at_end() {
                true => self.wrong("incomplete data type declaration"),
                false => self.wrong("missing data type declaration"),
            });
        }
        let text = self.text[start as usize..self.last_end() as usize].to_owned();
        if text.eq_ignore_ascii_case("record") {
            let ty = SqlType::RECORD;
            return Ok((Held { ty, domain: None }, text));
        }
        let parsed = parse_type(&text).map_err(|e| shifted(e, start, 0))?;
        let held = self
            .types
            .named(&parsed)
            .map_err(|e| shifted(e, start, 0))?;
        Ok((held, text))
    }

    /// `variable%TYPE`, `table.column%TYPE`, `table%ROWTYPE`, perhaps as an array.
    fn copied_type(&mut self) -> Result<Option<Held>> {
        let parts: Vec<String> = self.dotted().into_iter().map(str::to_owned).collect();
        if parts.is_empty() {
            return Ok(None);
        }
        let after = parts.len() * 2 - 1;
        let percent = matches!(self.kind_at(after), Kind::Op(op) if op == "%");
        let of_type = percent && self.is_at(after + 1, "type");
        let of_row = percent && self.is_at(after + 1, "rowtype");
        if !of_type && !of_row {
            return Ok(None);
        }
        let pos = self.pos();
        let written = &self.text[pos as usize..self.tokens[self.at + after - 1].end as usize];
        let mut name: ast::Name = parse_name(written)?;
        name.pos = 0;
        let refs: Vec<&str> = parts.iter().map(String::as_str).collect();
        let known = self.find(&refs).filter(|_| of_type);
        let held = match known {
            Some((slot, used)) if used == parts.len() => self.held(slot),
            Some((slot, used)) if used + 1 == parts.len() && self.is_row(slot) => {
                let row = self.held(slot).ty;
                self.types
                    .of_column(&ast::Name {
                        parts: vec![format!("%{}", row.oid.0), parts[used].clone()],
                        pos: 0,
                    })
                    .map_err(|e| shifted(e, pos, 0))?
            }
            _ if of_type => self.types.of_column(&name)?,
            _ => self.types.of_row(&name)?,
        };
        self.at += after + 2;
        let mut held = held;
        let mut array = self.word("array");
        loop {
            if self.punct('[') {
                if matches!(self.kind(), Kind::Integer(_)) {
                    self.advance();
                }
                self.expect(']')?;
                array = true;
                continue;
            }
            break;
        }
        if array {
            held = self.types.array_of(held)?;
        }
        Ok(Some(held))
    }
}
