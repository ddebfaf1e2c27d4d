//! COPY, in its new and old spellings.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::Parser;
use super::ast::*;
use super::lexer::Kind;
use crate::vocabulary::CopyTarget;

impl Parser<'_> {
    pub(super) fn copy(&mut self) -> Result<Statement> {
        self.keyword("copy")?;
        let binary_first = self.word("binary");
        let subject = if self.is_punct('(') {
            self.advance();
            let refused = Self::refused_into("COPY (SELECT INTO) is not supported");
            let query = self.preparable().map_err(refused)?;
            self.expect(')')?;
            CopySubject::Query(Box::new(query))
        } else {
            let name = self.any_name()?;
            let columns = match self.is_punct('(') {
                true => self.parens(|p| p.list(Self::name_pos))?,
                false => vec![],
            };
            CopySubject::Table { name, columns }
        };
        let from = self.word("from");
        if !from {
            self.keyword("to")?;
        }
        if from && matches!(subject, CopySubject::Query(_)) {
            self.at -= 1;
            return Err(self.unexpected());
        }
        let target = if self.word("stdin") || self.word("stdout") {
            CopyTarget::Client
        } else if self.word("program") {
            CopyTarget::Program(self.string()?)
        } else {
            CopyTarget::File(self.string()?)
        };
        let mut options = Vec::new();
        if binary_first {
            options.push(self.option("format", CopyValue::Text("binary".into())));
        }
        if !self.word("using") {
            self.word("with");
            if self.is_punct('(') {
                options.extend(self.parens(|p| p.list(Self::copy_option))?);
            } else {
                self.old_options(&mut options)?;
            }
        } else {
            self.keyword("delimiters")?;
            let value = CopyValue::Text(self.string()?);
            options.push(self.option("delimiter", value));
        }
        let at = self.pos();
        let filter = self.where_clause()?;
        if filter.is_some() && !from {
            let message = "WHERE clause not allowed with COPY TO";
            return Err(Error::new(state::SYNTAX_ERROR, message).position(at + 1));
        }
        Ok(Statement::Copy(Box::new(Copy {
            subject,
            from,
            target,
            options,
            filter,
        })))
    }

    fn option(&self, name: &str, value: CopyValue) -> CopyOption {
        CopyOption {
            name: name.to_string(),
            value,
            pos: self.pos(),
        }
    }

    /// `FORMAT csv`, `FORCE_QUOTE (a, b)`, `HEADER`.
    fn copy_option(&mut self) -> Result<CopyOption> {
        let pos = self.pos();
        let name = self.label()?;
        let value = if self.is_punct(',') || self.is_punct(')') {
            CopyValue::None
        } else if self.op("*") {
            CopyValue::Star
        } else if self.is_punct('(') {
            CopyValue::List(self.name_list()?)
        } else {
            CopyValue::Text(self.option_value()?)
        };
        Ok(CopyOption { name, value, pos })
    }

    /// `DELIMITER AS '|' NULL AS '' CSV HEADER QUOTE … FORCE NOT NULL a, b`.
    fn old_options(&mut self, options: &mut Vec<CopyOption>) -> Result<()> {
        while let Kind::Word(word) = self.kind().clone() {
            let pos = self.pos();
            let mut put = |name: &str, value| {
                options.push(CopyOption {
                    name: name.to_string(),
                    value,
                    pos,
                });
            };
            match word.as_str() {
                "binary" | "csv" => {
                    self.advance();
                    put("format", CopyValue::Text(word));
                }
                "freeze" | "header" => {
                    self.advance();
                    put(&word, CopyValue::None);
                }
                "delimiter" | "null" | "quote" | "escape" => {
                    self.advance();
                    self.word("as");
                    put(&word, CopyValue::Text(self.string()?));
                }
                "encoding" => {
                    self.advance();
                    put("encoding", CopyValue::Text(self.string()?));
                }
                "force" => {
                    self.advance();
                    let name = if self.word("quote") {
                        "force_quote"
                    } else if self.words(&["not", "null"]) {
                        "force_not_null"
                    } else {
                        self.keyword("null")?;
                        "force_null"
                    };
                    let value = match self.op("*") {
                        true => CopyValue::Star,
                        false => CopyValue::List(self.list(Self::name)?),
                    };
                    put(name, value);
                }
                _ => break,
            }
        }
        Ok(())
    }
}
