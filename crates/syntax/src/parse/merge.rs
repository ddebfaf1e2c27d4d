//! MERGE.

use throng_types::Result;

use super::Parser;
use super::ast::*;

impl Parser<'_> {
    pub(super) fn merge(&mut self, with: Vec<Cte>, recursive: bool) -> Result<Statement> {
        self.keywords(&["merge", "into"])?;
        let (table, only) = self.table_name_only()?;
        let alias = self.target_alias()?;
        self.keyword("using")?;
        let source = self.table_ref()?;
        self.keyword("on")?;
        let on = self.expr()?;
        let mut whens = vec![self.merge_when()?];
        while self.is("when") {
            whens.push(self.merge_when()?);
        }
        let returning = self.returning()?;
        Ok(Statement::Merge(Box::new(Merge {
            with,
            recursive,
            table,
            only,
            alias,
            source,
            on,
            whens,
            returning,
        })))
    }

    fn merge_when(&mut self) -> Result<MergeWhen> {
        self.keyword("when")?;
        let of = if self.word("matched") {
            MergeMatch::Matched
        } else {
            self.keywords(&["not", "matched"])?;
            if self.words(&["by", "source"]) {
                MergeMatch::NotMatchedBySource
            } else {
                if self.word("by") {
                    self.keyword("target")?;
                }
                MergeMatch::NotMatchedByTarget
            }
        };
        let condition = match self.word("and") {
            true => Some(self.expr()?),
            false => None,
        };
        self.keyword("then")?;
        let action = if self.words(&["do", "nothing"]) {
            MergeAction::Nothing
        } else if of == MergeMatch::NotMatchedByTarget {
            self.merge_insert()?
        } else if self.word("delete") {
            MergeAction::Delete
        } else {
            self.keywords(&["update", "set"])?;
            MergeAction::Update(self.list(Self::assignment)?)
        };
        Ok(MergeWhen {
            of,
            condition,
            action,
        })
    }

    fn merge_insert(&mut self) -> Result<MergeAction> {
        self.keyword("insert")?;
        if self.words(&["default", "values"]) {
            return Ok(MergeAction::Insert {
                columns: vec![],
                overriding: None,
                values: None,
            });
        }
        let columns = match self.is_punct('(') {
            true => {
                let at = self.pos();
                let (columns, parts) = self.insert_column_list()?;
                if !parts.is_empty() {
                    return Err(self.unsupported("assignment to part of a column here", at));
                }
                columns
            }
            false => vec![],
        };
        let overriding = self.overriding()?;
        self.keyword("values")?;
        let values = self.parens(|p| p.list(Self::expr))?;
        Ok(MergeAction::Insert {
            columns,
            overriding,
            values: Some(values),
        })
    }
}
