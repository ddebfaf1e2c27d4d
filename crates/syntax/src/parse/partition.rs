//! PARTITION BY, PARTITION OF and FOR VALUES, and the commands about partitions.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::Parser;
use super::ast::{ColumnConstraint, CreateTable, Expr, Name, Pos, Source, Statement};

/// `PARTITION BY strategy (…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionBy {
    pub strategy: String,
    pub parts: Vec<PartitionPart>,
    pub pos: Pos,
}

/// A column or an expression of a partition key.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionPart {
    /// A plain column's name.
    pub column: Option<String>,
    pub source: Source,
    pub collation: Option<Name>,
    pub class: Option<Name>,
    pub pos: Pos,
}

/// `PARTITION OF parent FOR VALUES …`.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionOf {
    pub parent: Name,
    /// What is said of the parent's columns.
    pub columns: Vec<ColumnOptions>,
    pub bound: BoundSpec,
}

/// `column [WITH OPTIONS] constraints`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnOptions {
    pub name: String,
    pub constraints: Vec<ColumnConstraint>,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BoundSpec {
    pub kind: BoundKind,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BoundKind {
    Default,
    In(Vec<Expr>),
    Range { from: Vec<Expr>, to: Vec<Expr> },
    With { modulus: i64, remainder: i64 },
}

impl Parser<'_> {
    /// After the elements of CREATE TABLE.
    pub(super) fn partition_by(&mut self) -> Result<Option<PartitionBy>> {
        if !self.words(&["partition", "by"]) {
            return Ok(None);
        }
        let pos = self.pos();
        let strategy = self.label()?;
        let parts = self.parens(|p| p.list(Self::partition_part))?;
        Ok(Some(PartitionBy {
            strategy,
            parts,
            pos,
        }))
    }

    fn partition_part(&mut self) -> Result<PartitionPart> {
        let pos = self.pos();
        let start = pos;
        let (column, source) = if self.is_punct('(') {
            (None, self.parens(|p| p.source(Self::expr))?)
        } else if self.is_punct_at(1, '(') || self.is_punct_at(1, '.') {
            (None, self.source(Self::function_call)?)
        } else {
            let name = self.name()?;
            let expr = Expr {
                node: super::ast::Node::Column(vec![name.clone()]),
                pos,
            };
            let text = self.text_from(start);
            (Some(name), Source { expr, text })
        };
        let collation = match self.word("collate") {
            true => Some(self.any_name()?),
            false => None,
        };
        let class = match self.is_name() {
            true => Some(self.any_name()?),
            false => None,
        };
        Ok(PartitionPart {
            column,
            source,
            collation,
            class,
            pos,
        })
    }

    /// A call, or a special form that looks like one.
    fn function_call(&mut self) -> Result<Expr> {
        self.restricted_expr()
    }

    /// After `PARTITION OF`.
    pub(super) fn partition_of(&mut self, table: &mut CreateTable) -> Result<PartitionOf> {
        let parent = self.any_name()?;
        let mut columns = Vec::new();
        if self.is_punct('(') {
            self.parens(|p| {
                p.list(|p| {
                    if p.constraint_ahead() {
                        table.constraints.push(p.table_constraint()?);
                    } else {
                        columns.push(p.column_options()?);
                    }
                    Ok(())
                })
            })?;
        }
        let bound = self.bound_spec()?;
        Ok(PartitionOf {
            parent,
            columns,
            bound,
        })
    }

    fn column_options(&mut self) -> Result<ColumnOptions> {
        let (name, pos) = self.name_pos()?;
        self.words(&["with", "options"]);
        let mut constraints = Vec::new();
        while let Some(constraint) = self.column_constraint()? {
            constraints.push(constraint);
        }
        Ok(ColumnOptions {
            name,
            constraints,
            pos,
        })
    }

    /// `FOR VALUES …` or `DEFAULT`.
    pub(super) fn bound_spec(&mut self) -> Result<BoundSpec> {
        let mut pos = self.pos();
        if self.word("default") {
            let kind = BoundKind::Default;
            return Ok(BoundSpec { kind, pos });
        }
        self.keywords(&["for", "values"])?;
        pos = self.pos();
        let kind = if self.word("in") {
            BoundKind::In(self.parens(|p| p.list(Self::expr))?)
        } else if self.word("from") {
            let from = self.parens(|p| p.list(Self::expr))?;
            self.keyword("to")?;
            let to = self.parens(|p| p.list(Self::expr))?;
            BoundKind::Range { from, to }
        } else {
            self.keyword("with")?;
            self.hash_bound()?
        };
        Ok(BoundSpec { kind, pos })
    }

    fn hash_bound(&mut self) -> Result<BoundKind> {
        let (mut modulus, mut remainder) = (None, None);
        self.parens(|p| {
            p.list(|p| {
                let pos = p.pos();
                let name = p.label()?;
                let place = match name.as_str() {
                    "modulus" => &mut modulus,
                    "remainder" => &mut remainder,
                    _ => {
                        let message =
                            format!("unrecognized hash partition bound specification \"{name}\"");
                        return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
                    }
                };
                if place.is_some() {
                    let message = format!("{name} for hash partition provided more than once");
                    return Err(Error::new(state::DUPLICATE_OBJECT, message).position(pos + 1));
                }
                *place = Some(p.integer()?);
                Ok(())
            })
        })?;
        let missing = |what: &str| {
            let message = format!("{what} for hash partition must be specified");
            Error::new(state::SYNTAX_ERROR, message)
        };
        Ok(BoundKind::With {
            modulus: modulus.ok_or_else(|| missing("modulus"))?,
            remainder: remainder.ok_or_else(|| missing("remainder"))?,
        })
    }

    /// `ATTACH PARTITION …` or `DETACH PARTITION …` of an ALTER TABLE.
    pub(super) fn partition_command(&mut self, table: Name, if_exists: bool) -> Result<Statement> {
        let attach = self.word("attach");
        if !attach {
            self.keyword("detach")?;
        }
        self.keyword("partition")?;
        let partition = self.any_name()?;
        if attach {
            let bound = self.bound_spec()?;
            return Ok(Statement::AttachPartition {
                table,
                if_exists,
                partition,
                bound,
            });
        }
        let concurrently = self.word("concurrently");
        let finalize = !concurrently && self.word("finalize");
        Ok(Statement::DetachPartition {
            table,
            if_exists,
            partition,
            concurrently,
            finalize,
        })
    }
}
