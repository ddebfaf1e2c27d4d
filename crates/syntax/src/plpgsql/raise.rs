//! RAISE and ASSERT.

use throng_types::Result;

use super::code::*;
use super::condition::{state_text, states_named};
use super::parse::Body;
use crate::parse::lexer::Kind;

impl Body<'_> {
    pub(super) fn assert_statement(&mut self, line: u32) -> Result<()> {
        self.advance();
        let over = |b: &Self| b.is_punct(',') || b.is_punct(';');
        let condition = self.expression_until(";", &over)?;
        let message = match self.punct(',') {
            true => Some(self.expression_to(';')?),
            false => {
                self.expect(';')?;
                None
            }
        };
        self.emit(Op::Assert { condition, message }, line, "ASSERT");
        Ok(())
    }

    pub(super) fn raise_statement(&mut self, line: u32) -> Result<()> {
        self.advance();
        if self.punct(';') {
            self.emit(Op::Reraise, line, "RAISE");
            return Ok(());
        }
        let mut raise = Raise {
            level: Level::Exception,
            condition: None,
            message: None,
            params: vec![],
            options: vec![],
        };
        let level = match self.kind() {
            Kind::Word(word) => match word.as_str() {
                "exception" => Some(Level::Exception),
                "warning" => Some(Level::Warning),
                "notice" => Some(Level::Notice),
                "info" => Some(Level::Info),
                "log" => Some(Level::Log),
                "debug" => Some(Level::Debug),
                _ => None,
            },
            _ => None,
        };
        if let Some(level) = level {
            raise.level = level;
            self.advance();
        }
        if self.at_end() {
            return Err(self.wrong("unexpected end of function definition"));
        }
        if let Kind::Text(text) = self.kind() {
            raise.message = Some(text.clone());
            self.advance();
            self.raise_params(&mut raise)?;
        } else if !self.is("using") && !self.is_punct(';') {
            self.raise_condition(&mut raise)?;
            if !self.is_punct(';') && !self.is("using") {
                return Err(self.unexpected());
            }
        }
        if self.word("using") {
            self.raise_options(&mut raise)?;
        }
        self.expect(';')?;
        self.check_format(&raise)?;
        self.emit(Op::Raise(Box::new(raise)), line, "RAISE");
        Ok(())
    }

    fn raise_params(&mut self, raise: &mut Raise) -> Result<()> {
        if !self.is_punct(',') && !self.is_punct(';') && !self.is("using") {
            return Err(self.unexpected());
        }
        while self.punct(',') {
            let over = |b: &Self| b.is_punct(',') || b.is_punct(';') || b.is("using");
            raise
                .params
                .push(self.expression_until("; or USING", &over)?);
        }
        Ok(())
    }

    fn raise_condition(&mut self, raise: &mut Raise) -> Result<()> {
        let Some(name) = self.peek_name(0).map(str::to_owned) else {
            return Err(self.unexpected());
        };
        if name == "sqlstate" {
            self.advance();
            let Kind::Text(text) = self.kind() else {
                return Err(self.unexpected());
            };
            if state_text(text).is_none() {
                return Err(self.wrong("invalid SQLSTATE code"));
            }
            raise.condition = Some(text.clone());
        } else {
            if states_named(&name).is_empty() {
                let message = format!("unrecognized exception condition \"{name}\"");
                let code = throng_types::error::state::UNDEFINED_OBJECT;
                return Err(throng_types::Error::new(code, message));
            }
            raise.condition = Some(name);
        }
        self.advance();
        Ok(())
    }

    fn raise_options(&mut self, raise: &mut Raise) -> Result<()> {
        loop {
            let word = match self.kind() {
                Kind::Word(word) => word.clone(),
                _ => String::new(),
            };
            use RaiseOption as O;
            let option = match word.as_str() {
                "errcode" => O::Errcode,
                "message" => O::Message,
                "detail" => O::Detail,
                "hint" => O::Hint,
                "column" => O::Column,
                "constraint" => O::Constraint,
                "datatype" => O::Datatype,
                "table" => O::Table,
                "schema" => O::Schema,
                _ => return Err(self.wrong("unrecognized RAISE statement option")),
            };
            self.advance();
            if !self.is_assign_at(0) {
                return Err(self.wrong("syntax error, expected \"=\""));
            }
            self.advance();
            let over = |b: &Self| b.is_punct(',') || b.is_punct(';');
            let source = self.expression_until(";", &over)?;
            raise.options.push((option, source));
            if !self.punct(',') {
                return Ok(());
            }
        }
    }

    /// As many `%` as values.
    fn check_format(&self, raise: &Raise) -> Result<()> {
        let Some(message) = &raise.message else {
            return Ok(());
        };
        let places = message.replace("%%", "").matches('%').count();
        let error = match places.cmp(&raise.params.len()) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Greater => "too few parameters specified for RAISE",
            std::cmp::Ordering::Less => "too many parameters specified for RAISE",
        };
        let code = throng_types::error::state::SYNTAX_ERROR;
        Err(throng_types::Error::new(code, error))
    }
}
