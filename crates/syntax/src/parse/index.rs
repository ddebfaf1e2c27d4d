//! CREATE INDEX.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::Parser;
use super::ast::*;

#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    pub name: Option<String>,
    pub table: Name,
    /// Not on its partitions.
    pub only: bool,
    /// USING, and where it is written.
    pub method: Option<(String, Pos)>,
    pub columns: Vec<IndexColumn>,
    pub unique: bool,
    pub nulls_not_distinct: bool,
    pub if_not_exists: bool,
    pub concurrently: bool,
    pub options: Vec<(String, String)>,
    pub include: Vec<(String, Pos)>,
    pub predicate: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexKey {
    /// A column is one by its name alone.
    pub expr: Expr,
    pub collation: Option<Name>,
    /// The operator class.
    pub class: Option<Name>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexColumn {
    pub key: IndexKey,
    pub descending: bool,
    /// ASC or DESC was written.
    pub ordered: bool,
    pub nulls_first: Option<bool>,
    pub pos: Pos,
}

impl Parser<'_> {
    pub(super) fn create_index(&mut self) -> Result<Statement> {
        let unique = self.word("unique");
        self.keyword("index")?;
        let concurrently = self.word("concurrently");
        let if_not_exists = self.if_not_exists();
        let name = match self.is("on") {
            true if if_not_exists => return Err(self.unexpected()),
            true => None,
            false => Some(self.name()?),
        };
        self.keyword("on")?;
        let (table, only) = self.table_name_only()?;
        let method = match self.word("using") {
            true => Some(self.name_pos()?),
            false => None,
        };
        let columns = self.parens(|p| p.list(Self::index_column))?;
        let include = self.include()?;
        let nulls_not_distinct = self.nulls_distinct()?;
        let options = self.with_options()?;
        self.tablespace()?;
        let predicate = self.where_clause()?;
        Ok(Statement::CreateIndex(Box::new(CreateIndex {
            name,
            table,
            only,
            method,
            columns,
            unique,
            nulls_not_distinct,
            if_not_exists,
            concurrently,
            options,
            include,
            predicate,
        })))
    }

    /// `INCLUDE (…)`.
    pub(super) fn include(&mut self) -> Result<Vec<(String, Pos)>> {
        match self.word("include") {
            true => self.parens(|p| {
                p.list(|p| match p.is_punct('(') {
                    true => {
                        let message = "expressions are not supported in included columns";
                        Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
                    }
                    false => p.name_pos(),
                })
            }),
            false => Ok(vec![]),
        }
    }

    /// A column, a call or an expression in parentheses, with its collation and its operator class.
    pub(super) fn index_key(&mut self) -> Result<IndexKey> {
        let pos = self.pos();
        let mut collation = None;
        let expr = if self.is_punct('(') {
            let key = self.parens(Self::expr)?;
            match key.node {
                Node::Collate { arg, collation: of } => {
                    self.known_collation(&of)?;
                    collation = Some(of);
                    *arg
                }
                _ => key,
            }
        } else if self.is_punct_at(1, '(') || self.is_punct_at(1, '.') {
            let mut key = self.expr()?;
            if let Node::Collate { arg, collation: of } = key.node {
                self.known_collation(&of)?;
                collation = Some(of);
                key = *arg;
            }
            match &key.node {
                Node::Call(_) | Node::Coalesce(_) | Node::MinMax { .. } | Node::NullIf(..) => key,
                _ => return Err(self.error("syntax error", pos)),
            }
        } else {
            let node = Node::Column(vec![self.name()?]);
            Expr { node, pos }
        };
        if self.word("collate") {
            let name = self.any_name()?;
            self.known_collation(&name)?;
            collation = Some(name);
        }
        let class = match self.is_name() && !self.any_of(&["nulls", "with"]) {
            true => Some(self.any_name()?),
            false => None,
        };
        Ok(IndexKey {
            expr,
            collation,
            class,
        })
    }

    /// `NULLS [NOT] DISTINCT`; whether NOT.
    pub(super) fn nulls_distinct(&mut self) -> Result<bool> {
        if !self.word("nulls") {
            return Ok(false);
        }
        let not = self.word("not");
        self.keyword("distinct")?;
        Ok(not)
    }

    pub(super) fn index_column(&mut self) -> Result<IndexColumn> {
        let pos = self.pos();
        let key = self.index_key()?;
        let descending = self.word("desc");
        let ordered = descending || self.word("asc");
        let nulls_first = self.nulls_order()?;
        Ok(IndexColumn {
            key,
            descending,
            ordered,
            nulls_first,
            pos,
        })
    }

    fn known_collation(&self, collation: &Name) -> Result<()> {
        if ["default", "C", "POSIX"].contains(&collation.last()) {
            return Ok(());
        }
        let message = format!(
            "collation \"{}\" for encoding \"UTF8\" does not exist",
            collation.last()
        );
        Err(Error::new(state::UNDEFINED_OBJECT, message))
    }
}
