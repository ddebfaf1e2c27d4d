//! `LIKE source` in CREATE TABLE: the columns where it stands, the rest once the table is there.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Result};

use crate::binder::ddl::privilege::any_right;
use crate::binder::ddl::table::{Draft, check_storable};
use crate::binder::{Binder, at};
use crate::command::{
    Copied, CreateIndex, NewColumn, NewConstraint, NewConstraintKind, NewExclusion, SequenceOptions,
};
use throng_catalog::{
    ColumnDef, ConstraintKind, Generated, Lineage, Relation, SequenceDef, TableDef, builtin,
};
use throng_syntax::parse::ast;
use throng_values::acl::right;

/// A LIKE clause whose columns are in the table.
pub(in crate::binder) struct Copy<'a> {
    like: &'a ast::Like,
    /// None for a view and such, which have columns only.
    source: Option<Arc<TableDef>>,
}

impl Binder<'_> {
    /// Adds the source's columns.
    pub(in crate::binder) fn like_columns<'a>(
        &mut self,
        like: &'a ast::Like,
        draft: &mut Draft,
        columns: &mut Vec<NewColumn>,
    ) -> Result<Copy<'a>> {
        let name = &like.source;
        let refused = |name: &str, kind: &str| {
            let message = format!("relation \"{name}\" is invalid in LIKE clause");
            Error::new(state::WRONG_OBJECT_TYPE, message)
                .detail(format!("This operation is not supported for {kind}."))
        };
        let (new, source) = match self.relation(name)? {
            Relation::Table(table) => {
                let relation = Relation::Table(table.clone());
                any_right(self.catalog(), self.user, &relation, right::SELECT)?;
                let new: Vec<NewColumn> = table
                    .live_columns()
                    .map(|(_, column)| {
                        let name = column.not_null.then(|| table.not_null_name(column));
                        self.like_column(like, column, name)
                    })
                    .collect();
                (new, Some(table))
            }
            Relation::View(view) => {
                let relation = Relation::View(view.clone());
                any_right(self.catalog(), self.user, &relation, right::SELECT)?;
                let columns = view.columns.iter();
                let new = columns.map(|c| plain(ColumnDef::new(&c.name, c.ty)));
                (new.collect(), None)
            }
            Relation::Virtual(table) => {
                let columns = table.columns.iter();
                let new = columns.map(|(name, ty)| plain(ColumnDef::new(*name, *ty)));
                (new.collect(), None)
            }
            Relation::Sequence(sequence) => {
                return Err(at(refused(&sequence.name, "sequences"), name.pos));
            }
            Relation::Index(index) => {
                return Err(at(refused(&index.name, "indexes"), name.pos));
            }
        };
        for column in new {
            let name = &column.def.name;
            if draft.table.attnum(name).is_some() {
                let message = format!("column \"{name}\" specified more than once");
                return Err(Error::new(state::DUPLICATE_COLUMN, message));
            }
            check_storable(name, column.def.ty.oid)?;
            draft.table.columns.push(column.def.clone());
            columns.push(column);
        }
        Ok(Copy { like, source })
    }

    fn like_column(
        &self,
        like: &ast::Like,
        column: &ColumnDef,
        not_null_name: Option<String>,
    ) -> NewColumn {
        let mut def = ColumnDef::new(&column.name, column.ty);
        def.not_null = column.not_null;
        def.not_null_name = not_null_name;
        def.not_null_alone = column.not_null_alone;
        def.collation = column.collation.clone();
        def.domain = column.domain;
        def.generated = column.generated.clone().filter(|_| like.generated);
        def.storage = column.storage.filter(|_| like.storage);
        def.compression = column.compression.filter(|_| like.compression);
        let mut new = plain(def);
        let behind = column.sequence.and_then(|oid| self.catalog().sequence(oid));
        match (column.identity, behind) {
            (Some(identity), Some(sequence)) if like.identity => {
                new.def.identity = Some(identity);
                new.sequence = Some(options_of(sequence));
            }
            (None, _) if like.defaults => {
                new.def.default = column.default.clone();
                new.def.sequence = column.sequence;
            }
            _ => {}
        }
        new
    }

    /// Adds the source's constraints, and to `copied` its indexes and comments.
    pub(in crate::binder) fn like_rest(
        &mut self,
        copy: Copy<'_>,
        draft: &mut Draft,
        copied: &mut Vec<Copied>,
    ) -> Result<()> {
        let Copy {
            like,
            source: Some(source),
        } = copy
        else {
            return Ok(());
        };
        let comments = |class, object, column| {
            let comment = self.catalog().comment(class, object, column);
            comment
                .filter(|_| like.comments)
                .map(|comment| comment.text.clone())
        };
        for (old, column) in source.live_columns() {
            let new = draft.table.attnum(&column.name);
            let text = comments(builtin::class::RELATION, source.oid, old);
            if let (Some(attnum), Some(text)) = (new, text) {
                copied.push(Copied::ColumnComment { attnum, text });
            }
        }
        self.like_generated(&source, draft)?;
        let constraints = self.catalog().constraints_of(source.oid);
        for constraint in constraints.iter().filter(|_| like.constraints) {
            if let ConstraintKind::Check { .. } = &constraint.kind
                && let Some(text) = comments(builtin::class::CONSTRAINT, constraint.oid, 0)
            {
                let name = constraint.name.clone();
                copied.push(Copied::ConstraintComment { name, text });
            }
        }
        if like.indexes {
            self.like_indexes(&source, draft, copied, &comments)?;
        }
        for constraint in constraints.iter().filter(|_| like.constraints) {
            let ConstraintKind::Check { expr, .. } = &constraint.kind else {
                continue;
            };
            let check = ast::TableConstraint {
                name: Some(constraint.name.clone()),
                kind: ast::TableConstraintKind::Check(ast::Source {
                    expr: throng_syntax::parse::parse_expr(expr)?,
                    text: expr.clone(),
                }),
                not_valid: false,
                deferral: constraint.deferral,
                no_inherit: constraint.lineage.no_inherit,
                pos: like.source.pos,
            };
            let new = self.table_constraint(&check, draft)?;
            draft.constraints.push(new);
        }
        Ok(())
    }

    /// What generated columns use has other numbers here.
    fn like_generated(&self, source: &TableDef, draft: &mut Draft) -> Result<()> {
        for (_, column) in source.live_columns() {
            let Some(attnum) = draft.table.attnum(&column.name) else {
                continue;
            };
            let Some(generated) = draft.table.columns[attnum as usize - 1].generated.clone() else {
                continue;
            };
            let used = generated.columns.iter();
            let used = used.map(|n| draft.table.attnum(&source.column(*n).name));
            let columns: Option<Vec<u16>> = used.collect();
            let columns = columns
                .ok_or_else(|| Error::internal("a column in use that LIKE has not copied"))?;
            draft.table.columns[attnum as usize - 1].generated = Some(Generated {
                columns,
                ..generated
            });
        }
        Ok(())
    }

    fn like_indexes(
        &self,
        source: &TableDef,
        draft: &mut Draft,
        copied: &mut Vec<Copied>,
        comments: &dyn Fn(throng_types::Oid, throng_types::Oid, u16) -> Option<String>,
    ) -> Result<()> {
        let mut indexes = self.catalog().indexes_of(source.oid).to_vec();
        indexes.sort_by_key(|index| index.oid);
        for index in indexes {
            let mut columns = index.columns.clone();
            let moved = |old: u16| {
                let name = &source.column(old).name;
                let gone = || Error::internal("an index's column that LIKE has not copied");
                draft.table.attnum(name).ok_or_else(gone)
            };
            for column in columns.iter_mut().filter(|column| column.attnum > 0) {
                column.attnum = moved(column.attnum)?;
            }
            let mut terms = index.terms.clone();
            for attnum in terms.uses.iter_mut().chain(&mut terms.include) {
                *attnum = moved(*attnum)?;
            }
            let included = || {
                let name = |n: &u16| draft.table.column(*n).name.clone();
                terms.include.iter().map(name).collect()
            };
            let names = || {
                let name =
                    |c: &throng_catalog::IndexColumn| draft.table.column(c.attnum).name.clone();
                columns.iter().map(name).collect()
            };
            let own = index.constraint.and_then(|c| self.catalog().constraint(c));
            let deferral = own.map_or(Default::default(), |c| c.deferral);
            let key = |kind| -> Copied {
                Copied::Key(NewConstraint {
                    only: false,
                    name: None,
                    kind,
                    not_valid: false,
                    deferral,
                    lineage: Lineage::default(),
                })
            };
            let options = index.options.clone();
            copied.push(match (index.primary, index.constraint) {
                (true, _) if draft.has_key => {
                    let message = format!(
                        "multiple primary keys for table \"{}\" are not allowed",
                        draft.table.name
                    );
                    return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
                }
                (true, _) => {
                    draft.has_key = true;
                    key(NewConstraintKind::PrimaryKey {
                        columns: names(),
                        without_overlaps: !terms.exclusion.is_empty(),
                        include: included(),
                        options,
                    })
                }
                (false, Some(_))
                    if !index.unique && !self.catalog().is_without_overlaps(&index) =>
                {
                    let new = copied_exclusion(
                        &columns,
                        terms.clone(),
                        &draft.table,
                        included(),
                        options,
                    );
                    key(NewConstraintKind::Exclude(Box::new(new)))
                }
                (false, Some(_)) => key(NewConstraintKind::Unique {
                    columns: names(),
                    without_overlaps: !terms.exclusion.is_empty(),
                    include: included(),
                    nulls_not_distinct: index.nulls_not_distinct,
                    options,
                }),
                (false, None) => Copied::Index(CreateIndex {
                    name: None,
                    table: throng_types::Oid::NONE,
                    only: false,
                    columns,
                    unique: index.unique,
                    nulls_not_distinct: index.nulls_not_distinct,
                    if_not_exists: false,
                    concurrently: false,
                    options,
                    terms,
                }),
            });
            if let Some(text) = comments(builtin::class::RELATION, index.oid, 0) {
                copied.push(Copied::IndexComment(text));
            }
        }
        Ok(())
    }
}

fn plain(def: ColumnDef) -> NewColumn {
    NewColumn {
        def,
        sequence: None,
        default: None,
        generated: None,
    }
}

/// A sequence like another.
fn options_of(sequence: &SequenceDef) -> SequenceOptions {
    SequenceOptions {
        ty: Some(sequence.ty),
        start: Some(sequence.start),
        increment: Some(sequence.increment),
        min: Some(Some(sequence.min)),
        max: Some(Some(sequence.max)),
        cache: Some(sequence.cache),
        cycle: Some(sequence.cycle),
        restart: None,
        name: None,
    }
}

/// An exclusion constraint of another table on the columns that are called so in this one.
fn copied_exclusion(
    columns: &[throng_catalog::IndexColumn],
    terms: throng_catalog::IndexTerms,
    table: &TableDef,
    include: Vec<String>,
    options: Vec<(String, String)>,
) -> NewExclusion {
    let name = |attnum: &u16| table.column(*attnum).name.clone();
    let keys = columns.iter().map(|c| match c.attnum {
        0 => (None, *c),
        attnum => (Some(name(&attnum)), *c),
    });
    NewExclusion {
        keys: keys.collect(),
        uses: terms.uses.iter().map(name).collect(),
        include,
        options,
        terms,
    }
}
