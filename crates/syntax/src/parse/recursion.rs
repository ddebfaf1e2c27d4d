//! SEARCH and CYCLE of a recursive query.

use throng_types::Result;

use super::Parser;
use super::ast::*;

impl Parser<'_> {
    pub(super) fn search_clause(&mut self) -> Result<Option<Search>> {
        let pos = self.pos();
        if !self.word("search") {
            return Ok(None);
        }
        let breadth_first = self.word("breadth");
        if !breadth_first {
            self.keyword("depth")?;
        }
        self.keywords(&["first", "by"])?;
        let columns = self.list(Self::name)?;
        self.keyword("set")?;
        Ok(Some(Search {
            breadth_first,
            columns,
            sequence: self.name()?,
            pos,
        }))
    }

    pub(super) fn cycle_clause(&mut self) -> Result<Option<Cycle>> {
        let pos = self.pos();
        if !self.word("cycle") {
            return Ok(None);
        }
        let columns = self.list(Self::name)?;
        self.keyword("set")?;
        let mark = self.name()?;
        let (mut value, mut default) = ("true".to_owned(), "false".to_owned());
        if self.word("to") {
            value = self.source(Self::restricted_expr)?.text;
            self.keyword("default")?;
            default = self.source(Self::restricted_expr)?.text;
        }
        self.keyword("using")?;
        Ok(Some(Cycle {
            columns,
            mark,
            value,
            default,
            path: self.name()?,
            pos,
        }))
    }
}
