//! Keys, exclusion constraints and what foreign keys reference.

use throng_types::Result;

use super::Parser;
use super::ast::*;
use crate::vocabulary::FkAction;

impl Parser<'_> {
    pub(super) fn key_constraint(&mut self, primary: bool) -> Result<TableConstraintKind> {
        let nulls_not_distinct = !primary && self.nulls_distinct()?;
        if self.words(&["using", "index"]) {
            return Ok(TableConstraintKind::UsingIndex {
                index: self.name()?,
                primary,
            });
        }
        let (columns, without_overlaps) = self.parens(|p| {
            let columns = p.list(Self::name_pos)?;
            Ok((columns, p.words(&["without", "overlaps"])))
        })?;
        let include = self.include()?;
        let options = self.index_options()?;
        Ok(match primary {
            true => TableConstraintKind::PrimaryKey {
                columns,
                without_overlaps,
                include,
                options,
            },
            false => TableConstraintKind::Unique {
                columns,
                without_overlaps,
                include,
                nulls_not_distinct,
                options,
            },
        })
    }

    /// A column of a foreign key, of which the last may be a PERIOD.
    pub(super) fn period_column(&mut self, period: &mut bool) -> Result<(String, Pos)> {
        if *period {
            return Err(self.unexpected());
        }
        let named_so = self.is_punct_at(1, ',') || self.is_punct_at(1, ')');
        *period = !named_so && self.word("period");
        self.name_pos()
    }

    /// What follows EXCLUDE.
    pub(super) fn exclusion_constraint(&mut self) -> Result<Exclusion> {
        let method = match self.word("using") {
            true => Some(self.name_pos()?),
            false => None,
        };
        let elements = self.parens(|p| {
            p.list(|p| {
                let column = p.index_column()?;
                p.keyword("with")?;
                Ok((column, p.operator()?))
            })
        })?;
        let include = self.include()?;
        let options = self.index_options()?;
        let predicate = match self.word("where") {
            true => Some(self.parens(Self::expr)?),
            false => None,
        };
        Ok(Exclusion {
            method,
            elements,
            include,
            options,
            predicate,
        })
    }

    pub(super) fn index_options(&mut self) -> Result<Vec<(String, String)>> {
        let options = self.with_options()?;
        if self.is("using") && self.is_at(1, "index") && self.is_at(2, "tablespace") {
            self.at += 2;
            self.tablespace()?;
        }
        Ok(options)
    }

    pub(super) fn references(&mut self) -> Result<References> {
        self.keyword("references")?;
        let table = self.any_name()?;
        let mut period = false;
        let columns = if self.is_punct('(') {
            let columns = self.parens(|p| p.list(|p| p.period_column(&mut period)))?;
            columns.into_iter().map(|(name, _)| name).collect()
        } else {
            vec![]
        };
        let mut references = References {
            table,
            columns,
            period,
            match_full: false,
            on_update: FkAction::NoAction,
            on_delete: FkAction::NoAction,
        };
        loop {
            let pos = self.pos();
            if self.word("match") {
                match self.peek_word() {
                    Some("full") => references.match_full = true,
                    Some("simple") => {}
                    Some("partial") => {
                        return Err(self.unsupported("MATCH PARTIAL", pos));
                    }
                    _ => return Err(self.unexpected()),
                }
                self.advance();
            } else if self.is("on") && self.is_at(1, "delete") {
                self.at += 2;
                references.on_delete = self.fk_action()?;
                if self.is_punct('(') {
                    return Err(self.unsupported("a column list in ON DELETE SET", self.pos()));
                }
            } else if self.is("on") && self.is_at(1, "update") {
                self.at += 2;
                references.on_update = self.fk_action()?;
            } else {
                return Ok(references);
            }
        }
    }

    pub(super) fn fk_action(&mut self) -> Result<FkAction> {
        if self.words(&["no", "action"]) {
            Ok(FkAction::NoAction)
        } else if self.word("restrict") {
            Ok(FkAction::Restrict)
        } else if self.word("cascade") {
            Ok(FkAction::Cascade)
        } else if self.words(&["set", "null"]) {
            Ok(FkAction::SetNull)
        } else if self.words(&["set", "default"]) {
            Ok(FkAction::SetDefault)
        } else {
            Err(self.unexpected())
        }
    }
}
