//! A bound query as SQL again, laid out as PostgreSQL does it (`pg_get_viewdef`).
//!
//! Promise: the text, read and bound again where only `pg_catalog` is on the search path, means the
//! same query. Names come from the catalog by oid and number, so the text follows what was renamed
//! since the query was bound.
//!
//! ```text
//! SELECT a.id,                 each clause begins a line; `indent` is where clauses of this query begin, and a clause's
//!     b.name                   word stands 8 to the left of it, its first letters aligned to the right
//!    FROM a
//!      JOIN b ON a.id = b.id
//!   WHERE a.id > 1
//! ```

mod expr;
mod from;
mod json;
mod operator;
mod own;
mod query;
mod range_type;
mod row;
mod using;
mod window;
mod xml;

use throng_types::sqltype::made;
use throng_types::{Oid, SqlType};

use crate::tree::expr::{Expr, RelId};
use crate::tree::query::{Cte, Query, Target};
use crate::tree::window::Window;
use throng_catalog::{Catalog, TableDef, ViewDef};
use throng_types::lexical::quote_ident;
use throng_values::func::EvalContext;

/// How a text is written.
pub struct Style<'a> {
    /// For being read again: what columns are called is written out wherever it matters then.
    pub kept: bool,
    pub catalog: &'a Catalog,
    /// Relations found along it are named alone, others with their schema.
    pub search_path: &'a [Oid],
    /// Leave out the parentheses that precedence makes needless.
    pub pretty: bool,
    /// How constants are written.
    pub eval: EvalContext<'a>,
}

/// A query with the WITH queries of its statement. `names`: what its columns are called, where that
/// is not by their own names.
pub fn query(query: &Query, ctes: &[Cte], names: Option<&[String]>, style: &Style<'_>) -> String {
    let mut writer = Writer {
        style,
        ctes,
        out: String::new(),
        indent: 0,
        scopes: Vec::new(),
        result: names.map(<[String]>::to_vec),
        names_shown: true,
        function: None,
    };
    writer.query(query);
    writer.out
}

/// An expression over no relation.
pub fn expression(expr: &Expr, style: &Style<'_>) -> String {
    let mut writer = Writer {
        style,
        ctes: &[],
        out: String::new(),
        indent: 0,
        scopes: Vec::new(),
        result: None,
        names_shown: false,
        function: None,
    };
    writer.expr(expr);
    writer.out
}

/// A statement of a function's body, or the value that its RETURN gives.
pub enum BodyPart<'q> {
    Query(&'q Query, &'q [Cte]),
    Value(&'q Expr),
}

/// A part of the body of a function of that name and with arguments of these, which set it in by
/// `indent`.
pub fn body(
    part: &BodyPart<'_>,
    function: (&str, &[String]),
    indent: i32,
    style: &Style<'_>,
) -> String {
    let ctes = match part {
        BodyPart::Query(_, ctes) => ctes,
        BodyPart::Value(_) => &[][..],
    };
    let mut writer = Writer {
        style,
        ctes,
        out: String::new(),
        indent,
        scopes: Vec::new(),
        result: None,
        names_shown: false,
        function: Some(function),
    };
    match part {
        BodyPart::Query(query, _) => writer.query(query),
        BodyPart::Value(value) => writer.expr(value),
    }
    writer.out
}

/// An expression over a table's row, whose entry is `rel`; columns by their names alone.
pub fn row_expr(expr: &Expr, table: &TableDef, rel: RelId, style: &Style<'_>) -> String {
    over_rows(expr, &[], table, &[(rel, &table.name)], style)
}

/// As [`row_expr`], of what may have queries in it, which the WITH queries are of.
pub fn policy_condition(
    expr: &Expr,
    ctes: &[Cte],
    table: &TableDef,
    rel: RelId,
    style: &Style<'_>,
) -> String {
    over_rows(expr, ctes, table, &[(rel, &table.name)], style)
}

/// A trigger's condition over the rows that were and are, by the names of their entries.
pub fn trigger_condition(
    expr: &Expr,
    table: &TableDef,
    rows: [(RelId, &str); 2],
    style: &Style<'_>,
) -> String {
    over_rows(expr, &[], table, &rows, style)
}

fn over_rows(
    expr: &Expr,
    ctes: &[Cte],
    table: &TableDef,
    rows: &[(RelId, &str)],
    style: &Style<'_>,
) -> String {
    let named = rows.iter().map(|(rel, name)| Named {
        rel: *rel,
        name: (*name).to_owned(),
        columns: table.columns.iter().map(|c| c.name.clone()).collect(),
        live: table.live_columns().map(|(n, _)| n as i16).collect(),
        is_row: rows.len() > 1,
    });
    let named: Vec<Named> = named.collect();
    let mut writer = Writer {
        style,
        ctes,
        out: String::new(),
        indent: 0,
        scopes: vec![Scope {
            qualified: named.len() > 1,
            named,
            outputs: Vec::new(),
            windows: Vec::new(),
            output: RelId(u32::MAX),
            lifted: Vec::new(),
            merged: Vec::new(),
            joins: Vec::new(),
        }],
        result: None,
        names_shown: false,
        function: None,
    };
    writer.expr(expr);
    writer.out
}

/// What pg_get_viewdef gives: the query with a semicolon.
pub fn view(
    view: &ViewDef,
    bound: &crate::tree::query::BoundQuery,
    style: &Style<'_>,
) -> Option<String> {
    let crate::tree::query::QueryKind::Select(select) = &bound.kind else {
        return None;
    };
    let names: Vec<String> = view.columns.iter().map(|c| c.name.clone()).collect();
    Some(query(select, &bound.ctes, Some(&names), style) + ";")
}

/// Where clauses' words stand to the left of, and how far the lists under them are set in.
const STEP: i32 = 8;
const JOIN: i32 = 4;
const LIST: i32 = 4;
/// Deeper, and lines begin no further to the right.
const DEEPEST: i32 = 40;

/// A range-table entry's name in the text, and its columns' names by number.
struct Named {
    rel: RelId,
    name: String,
    columns: Vec<String>,
    /// The columns that its whole row is of.
    live: Vec<i16>,
    /// One of the rows of a trigger's condition.
    is_row: bool,
}

/// The entries of one query.
struct Scope {
    named: Vec<Named>,
    /// Columns are written with their table's name.
    qualified: bool,
    /// The output columns, while an ORDER BY is written: a plain name would mean one of them.
    outputs: Vec<Target>,
    /// What its window functions' numbers mean.
    windows: Vec<Window>,
    /// The query's own entry, and the aggregates that queries inside it know as columns of that.
    output: RelId,
    lifted: Vec<Expr>,
    /// Columns that FULL JOIN USING has merged, where their names alone mean them.
    merged: Vec<using::Shown>,
    /// Joins that go by names, the outer ones first.
    joins: Vec<using::NamedJoin>,
}

struct Writer<'a> {
    style: &'a Style<'a>,
    ctes: &'a [Cte],
    out: String,
    indent: i32,
    scopes: Vec<Scope>,
    /// The names of the whole query's columns, while it or an operand of it is written.
    result: Option<Vec<String>>,
    /// Whether anybody sees the names of the columns of the query being written.
    names_shown: bool,
    /// What a function whose body is written is called, and its arguments.
    function: Option<(&'a str, &'a [String])>,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn ident(&mut self, name: &str) {
        let quoted = quote_ident(name);
        self.out.push_str(&quoted);
    }

    /// Begins a line with `word`, moving the indentation before it and after it.
    fn line(&mut self, word: &str, before: i32, after: i32, plus: i32) {
        self.indent += before;
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        self.out.push('\n');
        let amount = match self.indent < DEEPEST {
            true => self.indent.max(0) + plus,
            // Beyond, lines go on moving right, but by half as much and not past a second bound.
            false => (DEEPEST + (self.indent - DEEPEST) / (STEP / 2)) % DEEPEST + plus,
        };
        for _ in 0..amount {
            self.out.push(' ');
        }
        self.out.push_str(word);
        self.indent = (self.indent + after).max(0);
    }

    /// A clause's word, to the left of where this query begins.
    fn clause(&mut self, word: &str, plus: i32) {
        self.line(word, -STEP, STEP, plus);
    }

    pub(super) fn type_name(&self, ty: SqlType) -> String {
        // What is `bpchar` without a length is not `character`, which has one.
        match (ty.oid, ty.typmod) {
            (throng_types::oid::BPCHAR, -1) => "bpchar".to_owned(),
            (throng_types::oid::BIT, -1) => "\"bit\"".to_owned(),
            _ => self.spelled(throng_types::sqltype::format_type(ty)),
        }
    }

    /// A type's text with the names of those that users made.
    fn spelled(&self, name: String) -> String {
        let (catalog, path) = (self.style.catalog, self.style.search_path);
        made::spelled(&name, |ty| catalog.type_display(path, ty)).unwrap_or(name)
    }

    /// A relation as it stands now.
    fn relation_name(&self, oid: Oid, fallback: &str) -> String {
        match self.style.catalog.relation(oid) {
            Some(relation) => self
                .style
                .catalog
                .display_name(self.style.search_path, &relation),
            None => quote_ident(fallback),
        }
    }
}
