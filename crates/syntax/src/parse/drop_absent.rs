//! DROP of kinds of objects that only PostgreSQL has, of which none of a user's is there, and
//! COMMENT ON them.

use throng_types::Result;

use super::Parser;
use super::ast::{AbsentObject, CommentAbsent, DropAbsent, Statement};

impl Parser<'_> {
    /// After DROP and the kind's first word.
    pub(super) fn drop_absent(&mut self, word: &str) -> Result<Statement> {
        let Some(kind) = self.absent_kind(word) else {
            return Ok(self.skip_unsupported("this DROP"));
        };
        let if_exists = self.if_exists();
        let one = [
            "RULE",
            "OPERATOR CLASS",
            "OPERATOR FAMILY",
            "TABLESPACE",
            "SUBSCRIPTION",
            "CONVERSION",
            "LANGUAGE",
        ];
        let objects = match one.contains(&kind) {
            true => vec![self.absent_object(kind)?],
            false => self.list(|p| p.absent_object(kind))?,
        };
        self.cascade();
        Ok(Statement::DropAbsent(Box::new(DropAbsent {
            kind,
            objects,
            if_exists,
        })))
    }

    /// After COMMENT ON, of a kind that no definition is of.
    pub(super) fn comment_on_absent(&mut self) -> Result<Statement> {
        let Some(word) = self.peek_word().map(str::to_string) else {
            return Err(self.unexpected());
        };
        self.advance();
        let kind = match word.as_str() {
            "large" if self.word("object") => "LARGE OBJECT",
            word => match self.absent_kind(word) {
                Some(kind) => kind,
                None => {
                    return Ok(self.skip_unsupported("COMMENT ON this kind of object"));
                }
            },
        };
        let object = self.absent_object(kind)?;
        self.keyword("is")?;
        let text = match self.word("null") {
            true => None,
            false => Some(self.string()?),
        };
        Ok(Statement::CommentAbsent(Box::new(CommentAbsent {
            kind,
            object,
            text,
        })))
    }

    /// The kind, after its first word.
    fn absent_kind(&mut self, word: &str) -> Option<&'static str> {
        Some(match word {
            "publication" => "PUBLICATION",
            "subscription" => "SUBSCRIPTION",
            "collation" => "COLLATION",
            "conversion" => "CONVERSION",
            "statistics" => "STATISTICS",
            "server" => "SERVER",
            "language" => "LANGUAGE",
            "tablespace" => "TABLESPACE",
            "rule" => "RULE",
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
            "text" if self.words(&["search", "configuration"]) => "TEXT SEARCH CONFIGURATION",
            "text" if self.words(&["search", "dictionary"]) => "TEXT SEARCH DICTIONARY",
            "text" if self.words(&["search", "parser"]) => "TEXT SEARCH PARSER",
            "text" if self.words(&["search", "template"]) => "TEXT SEARCH TEMPLATE",
            _ => return None,
        })
    }

    fn absent_object(&mut self, kind: &str) -> Result<AbsentObject> {
        Ok(match kind {
            "RULE" => {
                let name = self.name()?;
                self.keyword("on")?;
                let relation = self.any_name()?;
                AbsentObject::On { name, relation }
            }
            "OPERATOR CLASS" | "OPERATOR FAMILY" => {
                let name = self.any_name()?;
                self.keyword("using")?;
                let method = self.name()?;
                AbsentObject::Class { name, method }
            }
            "LARGE OBJECT" => AbsentObject::Numbered(self.integer()?),
            _ => AbsentObject::Named(self.any_name()?),
        })
    }
}
