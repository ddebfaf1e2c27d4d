//! WITH: queries by name, in an order in which each finds what it reads, and recursion.

use throng_types::error::state;
use throng_types::sqltype::format_type;
use throng_types::{Error, Result, SqlType};

use crate::binder::Binder;
use crate::binder::query::scope::{CteName, CteReading, Scope};
use crate::tree::query::{Cte, CteBody, Query};
use throng_syntax::parse::ast;
use throng_syntax::parse::walk::{self, ReferencePosition};
use throng_values::func::RelColumn;
use throng_values::func::compare::is_hashable;

/// The two operands of a recursive query.
pub(in crate::binder) struct Recursion<'a> {
    /// The query that holds the UNION, whose WITH both operands see.
    pub union: &'a ast::Query,
    pub all: bool,
    pub init: &'a ast::Query,
    pub term: &'a ast::Query,
}

fn invalid(message: String) -> Error {
    Error::new(state::INVALID_RECURSION, message)
}

impl Binder<'_> {
    pub(in crate::binder) fn bind_ctes(
        &mut self,
        with: &[ast::Cte],
        recursive: bool,
        outer: Option<&Scope<'_>>,
    ) -> Result<Vec<CteName>> {
        for (i, cte) in with.iter().enumerate() {
            if with[..i].iter().any(|other| other.name == cte.name) {
                let message = format!("WITH query name \"{}\" specified more than once", cte.name);
                return Err(Error::new(state::DUPLICATE_ALIAS, message).position(cte.pos + 1));
            }
        }
        let order = match recursive {
            true => in_order(with)?,
            false => (0..with.len()).map(|i| (i, false)).collect(),
        };
        let mut visible: Vec<CteName> = Vec::with_capacity(with.len());
        if !recursive {
            visible.extend(with.iter().map(|later| CteName {
                name: later.name.clone(),
                reading: CteReading::Later,
                columns: vec![],
            }));
        }
        for (at, of_itself) in order {
            let cte = &with[at];
            let name = match of_itself {
                true => self.bind_recursive(cte, &visible, outer)?,
                false => self.bind_cte(cte, &visible, outer)?,
            };
            match recursive {
                true => visible.push(name),
                false => visible[at] = name,
            }
        }
        Ok(visible)
    }

    fn bind_cte(
        &mut self,
        cte: &ast::Cte,
        visible: &[CteName],
        outer: Option<&Scope<'_>>,
    ) -> Result<CteName> {
        let scope = Scope::behind(visible, outer);
        if cte.search.is_some() || cte.cycle.is_some() {
            let error = Error::new(state::SYNTAX_ERROR, "WITH query is not recursive");
            return Err(error.position(cte.pos + 1));
        }
        let (body, columns) = match &cte.statement {
            ast::Statement::Query(query) => {
                let query = self.query(query, Some(&scope))?;
                let columns = query.columns();
                (CteBody::Query(query), columns)
            }
            _ if outer.is_some() => {
                let message =
                    "WITH clause containing a data-modifying statement must be at the top level";
                let error = Error::new(state::FEATURE_NOT_SUPPORTED, message);
                return Err(error.position(cte.pos + 1));
            }
            write => {
                let write = self.query_kind(write, Some(&scope))?;
                let columns = write.columns();
                (CteBody::Write(Box::new(write)), columns)
            }
        };
        let columns = cte_columns(cte, columns)?;
        let index = self.add_cte(cte, body);
        Ok(CteName {
            name: cte.name.clone(),
            reading: CteReading::Result(index),
            columns,
        })
    }

    fn add_cte(&mut self, cte: &ast::Cte, body: CteBody) -> u32 {
        self.ctes.push(Cte {
            name: cte.name.clone(),
            body,
            aliases: cte.columns.clone(),
            materialized: cte.materialized,
            uses: 0,
        });
        self.ctes.len() as u32 - 1
    }

    /// A query that reads itself: the types of its columns are those of the operand that does not.
    fn bind_recursive(
        &mut self,
        cte: &ast::Cte,
        visible: &[CteName],
        outer: Option<&Scope<'_>>,
    ) -> Result<CteName> {
        let recursion = well_formed(cte)?;
        if cte.search.is_some() || cte.cycle.is_some() {
            let plain = self.without_search(cte, &recursion, visible, outer)?;
            return self.bind_cte(&plain, visible, outer);
        }
        let around = Scope::behind(visible, outer);
        let inner = self.bind_ctes(
            &recursion.union.with,
            recursion.union.recursive,
            Some(&around),
        )?;
        let scope = Scope::behind(&inner, Some(&around));
        let init = self.operand(recursion.init, &scope)?;
        let types: Vec<SqlType> = init
            .columns()
            .iter()
            .map(|c| match c.ty.oid == throng_types::oid::UNKNOWN {
                true => SqlType::TEXT,
                false => c.ty,
            })
            .collect();
        let mut init = self.cast_columns(init, &types, recursion.init.pos)?;
        for cte in &inner {
            if let CteReading::Result(index) = cte.reading {
                let outside = self.ctes[index as usize].body.outside();
                init.outside.extend(outside);
            }
        }
        let columns = cte_columns(cte, init.columns())?;
        let index = self.add_cte(cte, CteBody::Query(init.clone()));
        let own = [CteName {
            name: cte.name.clone(),
            reading: CteReading::LastStep(index),
            columns: columns.clone(),
        }];
        // A name of the inner WITH hides the query's own.
        let itself = Scope::behind(&own, Some(&around));
        let scope = Scope::behind(&inner, Some(&itself));
        let term = self.operand(recursion.term, &scope)?;
        let term = self.term_of_types(cte, &recursion, &init, term)?;
        self.ctes[index as usize].body = CteBody::Recursive {
            init,
            term,
            all: recursion.all,
        };
        Ok(CteName {
            name: cte.name.clone(),
            reading: CteReading::Result(index),
            columns,
        })
    }

    /// The recursive term with its columns cast to those of the other: what UNION makes of both
    /// must be no wider.
    fn term_of_types(
        &mut self,
        cte: &ast::Cte,
        recursion: &Recursion<'_>,
        init: &Query,
        term: Query,
    ) -> Result<Query> {
        let (first, second) = (init.columns(), term.columns());
        let place = |i: usize, query: &ast::Query| match &query.body {
            ast::Body::Select(select) => {
                select.targets.get(i).map_or(query.pos, |t| start(&t.expr))
            }
            _ => query.pos,
        };
        if first.len() != second.len() {
            let message = "each UNION query must have the same number of columns";
            let error = Error::new(state::SYNTAX_ERROR, message);
            return Err(error.position(place(0, recursion.term) + 1));
        }
        let types: Vec<SqlType> = first.iter().map(|c| c.ty).collect();
        if !recursion.all && types.iter().any(|ty| !is_hashable(ty.oid)) {
            let message = "could not implement recursive UNION";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message)
                .detail("All column datatypes must be hashable."));
        }
        for (i, (a, b)) in first.iter().zip(&second).enumerate() {
            let common = self
                .common_type(&[a.ty, b.ty], "UNION")
                .map_err(|e| crate::binder::at(e, place(i, recursion.term)))?;
            if common != a.ty {
                let message = format!(
                    "recursive query \"{}\" column {} has type {} in non-recursive term but type {} overall",
                    cte.name,
                    i + 1,
                    format_type(a.ty),
                    format_type(common),
                );
                return Err(Error::new(state::DATATYPE_MISMATCH, message)
                    .hint("Cast the output of the non-recursive term to the correct type.")
                    .position(place(i, recursion.init) + 1));
            }
        }
        self.cast_columns(term, &types, recursion.term.pos)
    }
}

/// The columns under the names that are written after the WITH query's own.
fn cte_columns(cte: &ast::Cte, mut columns: Vec<RelColumn>) -> Result<Vec<RelColumn>> {
    if cte.columns.len() > columns.len() {
        let message = format!(
            "WITH query \"{}\" has {} columns available but {} columns specified",
            cte.name,
            columns.len(),
            cte.columns.len()
        );
        let error = Error::new(state::INVALID_COLUMN_REFERENCE, message);
        return Err(error.position(cte.pos + 1));
    }
    columns
        .iter_mut()
        .zip(&cte.columns)
        .for_each(|(c, n)| c.name = n.clone());
    Ok(columns)
}

/// An order in which each query comes after those it reads, with whether it reads itself.
fn in_order(with: &[ast::Cte]) -> Result<Vec<(usize, bool)>> {
    let mut reads: Vec<Vec<usize>> = Vec::with_capacity(with.len());
    for cte in with {
        let mut found = Vec::new();
        walk::table_names(&cte.statement, &mut |name, _, _| {
            if let Some(at) = with.iter().position(|other| other.name == name)
                && !found.contains(&at)
            {
                found.push(at);
            }
        });
        reads.push(found);
    }
    let mut order: Vec<(usize, bool)> = Vec::with_capacity(with.len());
    let mut done = vec![false; with.len()];
    let mut waiting: Vec<usize> = (0..with.len()).collect();
    while !waiting.is_empty() {
        let next = waiting
            .iter()
            .position(|at| reads[*at].iter().all(|read| read == at || done[*read]));
        let Some(next) = next else {
            let error = Error::new(
                state::FEATURE_NOT_SUPPORTED,
                "mutual recursion between WITH items is not implemented",
            );
            return Err(error.position(with[waiting[0]].pos + 1));
        };
        let at = waiting.remove(next);
        done[at] = true;
        order.push((at, reads[at].contains(&at)));
    }
    Ok(order)
}

/// Checks that a query that reads itself is one that can be computed step by step.
fn well_formed(cte: &ast::Cte) -> Result<Recursion<'_>> {
    let name = &cte.name;
    let ast::Statement::Query(query) = &cte.statement else {
        return Err(invalid(format!(
            "recursive query \"{name}\" must not contain data-modifying statements"
        ))
        .position(cte.pos + 1));
    };
    let union = unwrapped(query);
    let ast::Body::SetOp {
        op: ast::SetOp::Union,
        all,
        left,
        right,
    } = &union.body
    else {
        return Err(invalid(format!(
            "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
        ))
        .position(cte.pos + 1));
    };
    for inner in &union.with {
        if let ast::Statement::Query(inner) = &inner.statement {
            references(name, inner, ReferencePosition::Subquery, None)?;
        }
    }
    let refuse = |what: &str, pos: ast::Pos| {
        let message = format!("{what} in a recursive query is not implemented");
        Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1))
    };
    if let Some(key) = union.order.first() {
        return refuse("ORDER BY", key.expr.pos);
    }
    if let Some(offset) = &union.offset {
        return refuse("OFFSET", offset.pos);
    }
    if let Some(limit) = &union.limit {
        return refuse("LIMIT", limit.pos);
    }
    if !union.locks.is_empty() {
        let message = "FOR UPDATE/SHARE in a recursive query is not implemented";
        return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    let before = "its non-recursive term";
    references(name, left, ReferencePosition::Plain, Some(before))?;
    references(name, right, ReferencePosition::Plain, None)?;
    Ok(Recursion {
        union,
        all: *all,
        init: left,
        term: right,
    })
}

/// Where an expression begins: a cast's place is that of its sign.
fn start(expr: &ast::Expr) -> ast::Pos {
    match &expr.node {
        ast::Node::Cast { arg, .. } => start(arg).min(expr.pos),
        _ => expr.pos,
    }
}

/// Parentheses around a whole query mean nothing.
fn unwrapped(mut query: &ast::Query) -> &ast::Query {
    while let ast::Body::Nested(inner) = &query.body {
        let plain = query.with.is_empty()
            && query.order.is_empty()
            && query.limit.is_none()
            && query.offset.is_none()
            && query.locks.is_empty();
        if !plain {
            break;
        }
        query = inner;
    }
    query
}

/// Checks where a query reads `name`: where each step can add to what there is, and once. `barred`:
/// where this is, if it may not be read at all.
fn references(
    name: &str,
    query: &ast::Query,
    place: ReferencePosition,
    barred: Option<&str>,
) -> Result<()> {
    let mut seen = 0;
    let mut error: Option<Error> = None;
    walk::table_names_at(query, place, &mut |found, place, pos| {
        if found != name || error.is_some() {
            return;
        }
        let within = match place {
            ReferencePosition::Plain => barred,
            ReferencePosition::Subquery => Some("a subquery"),
            ReferencePosition::OuterJoin => barred.or(Some("an outer join")),
            ReferencePosition::Intersect => barred.or(Some("INTERSECT")),
            ReferencePosition::Except => barred.or(Some("EXCEPT")),
        };
        let what = match within {
            Some(within) => format!("must not appear within {within}"),
            None => {
                seen += 1;
                match seen {
                    1 => return,
                    _ => "must not appear more than once".to_owned(),
                }
            }
        };
        let message = format!("recursive reference to query \"{name}\" {what}");
        error = Some(invalid(message).position(pos + 1));
    });
    error.map_or(Ok(()), Err)
}
