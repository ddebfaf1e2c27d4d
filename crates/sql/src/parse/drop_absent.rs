//! DROP of kinds of objects that only PostgreSQL has: none of a user's is there.

use throng_types::Result;

use super::Parser;
use super::ast::{AbsentObject, DropAbsent, Statement};
use super::lexer::Kind;

impl Parser<'_> {
    /// After DROP and the kind's first word; that word again where it is none of these.
    pub(super) fn drop_absent(&mut self, word: &str) -> Result<Statement> {
        let kind = match word {
            "publication" => "PUBLICATION",
            "subscription" => "SUBSCRIPTION",
            "collation" => "COLLATION",
            "conversion" => "CONVERSION",
            "statistics" => "STATISTICS",
            "server" => "SERVER",
            "language" => "LANGUAGE",
            "tablespace" => "TABLESPACE",
            "rule" => "RULE",
            "policy" => "POLICY",
            "cast" => "CAST",
            "aggregate" => "AGGREGATE",
            "procedural" if self.word("language") => "LANGUAGE",
            "access" if self.word("method") => "ACCESS METHOD",
            "event" if self.word("trigger") => "EVENT TRIGGER",
            "foreign" if self.word("table") => "FOREIGN TABLE",
            "foreign" if self.words(&["data", "wrapper"]) => "FOREIGN DATA WRAPPER",
            "operator" if self.is("class") && !self.is_at(1, "(") => {
                self.advance();
                "OPERATOR CLASS"
            }
            "operator" if self.word("family") => "OPERATOR FAMILY",
            "operator" => "OPERATOR",
            "text" if self.words(&["search", "configuration"]) => "TEXT SEARCH CONFIGURATION",
            "text" if self.words(&["search", "dictionary"]) => "TEXT SEARCH DICTIONARY",
            "text" if self.words(&["search", "parser"]) => "TEXT SEARCH PARSER",
            "text" if self.words(&["search", "template"]) => "TEXT SEARCH TEMPLATE",
            _ => return Ok(self.skip_unsupported("this DROP")),
        };
        let if_exists = self.if_exists();
        let objects = match kind {
            "RULE" | "POLICY" => {
                let name = self.name()?;
                self.keyword("on")?;
                let relation = self.any_name()?;
                vec![AbsentObject::On { name, relation }]
            }
            "OPERATOR CLASS" | "OPERATOR FAMILY" => {
                let name = self.any_name()?;
                self.keyword("using")?;
                let method = self.name()?;
                vec![AbsentObject::Class { name, method }]
            }
            "OPERATOR" => self.list(Self::operator_with_args)?,
            "AGGREGATE" => self.list(|p| Ok(AbsentObject::Aggregate(p.routine_with_args()?)))?,
            "CAST" => vec![self.parens(|p| {
                let from = p.type_name()?;
                p.keyword("as")?;
                Ok(AbsentObject::Cast(from, p.type_name()?))
            })?],
            "TABLESPACE" | "SUBSCRIPTION" | "CONVERSION" | "LANGUAGE" => {
                vec![AbsentObject::Named(self.any_name()?)]
            }
            _ => self.list(|p| Ok(AbsentObject::Named(p.any_name()?)))?,
        };
        self.cascade();
        Ok(Statement::DropAbsent(Box::new(DropAbsent {
            kind,
            objects,
            if_exists,
        })))
    }

    /// `schema.<<(int, none)`: the types are read and belong to nothing.
    fn operator_with_args(&mut self) -> Result<AbsentObject> {
        let mut name = String::new();
        while matches!(self.kind(), Kind::Word(_) | Kind::Quoted(_)) {
            name += &self.name()?;
            name.push('.');
            self.expect('.')?;
        }
        name += &self.op_name()?;
        self.parens(|p| {
            p.list(|p| match p.word("none") {
                true => Ok(()),
                false => p.type_name().map(|_| ()),
            })
        })?;
        Ok(AbsentObject::Operator(name))
    }
}
