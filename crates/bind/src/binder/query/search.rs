//! SEARCH and CYCLE of a recursive query, which are short for columns that the query computes.
//!
//! ```text
//! q AS (A UNION B) SEARCH … CYCLE …
//!   ─► q AS (WITH RECURSIVE "*q*" AS (
//!        SELECT …, first row, unmarked, first path FROM (A)
//!        UNION
//!        SELECT …, and this row, marked if on the path, path and this row FROM (B) WHERE unmarked
//!      ) SELECT … FROM "*q*")
//! ```
//! `B` reads `"*q*"` under the name that `q` had, and hands its further columns on.

use throng_types::error::state;
use throng_types::lexical::quote_ident;
use throng_types::{Error, Result};

use crate::binder::Binder;
use crate::binder::query::scope::{CteName, Scope};
use crate::binder::query::with::Recursion;
use throng_syntax::parse::{self, ast};

/// A column that is computed: its name, its value in the first rows, and in those of a step.
struct Computed {
    name: String,
    first: String,
    step: String,
}

fn refused(message: String, pos: ast::Pos) -> Error {
    Error::new(state::SYNTAX_ERROR, message).position(pos + 1)
}

/// `x.a, x.b`
fn listed(table: &str, columns: &[String]) -> String {
    let columns = columns.iter().map(|name| match table {
        "" => quote_ident(name),
        table => format!("{table}.{}", quote_ident(name)),
    });
    columns.collect::<Vec<_>>().join(", ")
}

/// 42601 for a column that the query does not have, or that is listed twice.
fn check_columns(of: &str, list: &[String], columns: &[String], pos: ast::Pos) -> Result<()> {
    for (i, name) in list.iter().enumerate() {
        if !columns.contains(name) {
            let message = format!("{of} column \"{name}\" not in WITH query column list");
            return Err(refused(message, pos));
        }
        if list[..i].contains(name) {
            let message = format!("{of} column \"{name}\" specified more than once");
            let error = Error::new(state::DUPLICATE_COLUMN, message);
            return Err(error.position(pos + 1));
        }
    }
    Ok(())
}

fn is_new(what: &str, name: &str, columns: &[String], pos: ast::Pos) -> Result<()> {
    match columns.iter().any(|column| column == name) {
        true => {
            let message = format!("{what} \"{name}\" already used in WITH query column list");
            Err(refused(message, pos))
        }
        false => Ok(()),
    }
}

fn differ(a: (&str, &str), b: (&str, &str), pos: ast::Pos) -> Result<()> {
    match a.1 == b.1 {
        true => Err(refused(format!("{} and {} are the same", a.0, b.0), pos)),
        false => Ok(()),
    }
}

const SEQUENCE: &str = "search sequence column name";
const MARK: &str = "cycle mark column name";
const PATH: &str = "cycle path column name";

fn check_clauses(cte: &ast::Cte, columns: &[String]) -> Result<()> {
    if let Some(search) = &cte.search {
        check_columns("search", &search.columns, columns, search.pos)?;
        is_new(SEQUENCE, &search.sequence, columns, search.pos)?;
    }
    let Some(cycle) = &cte.cycle else {
        return Ok(());
    };
    check_columns("cycle", &cycle.columns, columns, cycle.pos)?;
    is_new(MARK, &cycle.mark, columns, cycle.pos)?;
    is_new(PATH, &cycle.path, columns, cycle.pos)?;
    differ((MARK, &cycle.mark), (PATH, &cycle.path), cycle.pos)?;
    if let Some(search) = &cte.search {
        let sequence = (SEQUENCE, search.sequence.as_str());
        differ(sequence, (MARK, &cycle.mark), search.pos)?;
        differ(sequence, (PATH, &cycle.path), search.pos)?;
    }
    Ok(())
}

/// The columns that the clauses add, and those behind them that only the steps know.
fn computed(cte: &ast::Cte) -> (Vec<Computed>, Option<Computed>) {
    let (mut shown, mut depth) = (Vec::new(), None);
    if let Some(search) = &cte.search {
        let name = search.sequence.clone();
        let (first, step) = (listed("l", &search.columns), listed("r", &search.columns));
        shown.push(match search.breadth_first {
            true => {
                depth = Some(Computed {
                    name: "*DEPTH*".to_owned(),
                    first: "0::int8".to_owned(),
                    step: "r.\"*DEPTH*\" + 1".to_owned(),
                });
                Computed {
                    name,
                    first: format!("ROW(0::int8, {first})"),
                    step: format!("ROW(r.\"*DEPTH*\" + 1, {step})"),
                }
            }
            false => Computed {
                step: format!("r.{} || ROW({step})", quote_ident(&name)),
                first: format!("ARRAY[ROW({first})]"),
                name,
            },
        });
    }
    if let Some(cycle) = &cte.cycle {
        let (first, step) = (listed("l", &cycle.columns), listed("r", &cycle.columns));
        let (value, default) = (&cycle.value, &cycle.default);
        let path = format!("r.{}", quote_ident(&cycle.path));
        shown.push(Computed {
            name: cycle.mark.clone(),
            first: format!("CASE WHEN false THEN {value} ELSE {default} END"),
            step: format!("CASE WHEN ROW({step}) = ANY ({path}) THEN {value} ELSE {default} END"),
        });
        shown.push(Computed {
            name: cycle.path.clone(),
            first: format!("ARRAY[ROW({first})]"),
            step: format!("{path} || ROW({step})"),
        });
    }
    (shown, depth)
}

/// 42601 for a side of the UNION that is another set operation.
fn one_side(query: &ast::Query, which: &str) -> Result<()> {
    if matches!(query.body, ast::Body::Select(_) | ast::Body::Values(_))
        || query.as_select().is_some()
    {
        return Ok(());
    }
    let message =
        format!("with a SEARCH or CYCLE clause, the {which} side of the UNION must be a SELECT");
    Err(Error::new(state::SYNTAX_ERROR, message))
}

#[cold]
fn no_reference(name: &str) -> Error {
    Error::new(
        state::FEATURE_NOT_SUPPORTED,
        format!(
            "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must be at the top level of its right-hand SELECT"
        ),
    )
}

/// Makes the item that reads `from` read `to` under its name, and says that name.
fn read_instead(item: &mut ast::TableRef, from: &str, to: &str) -> Option<String> {
    match item {
        ast::TableRef::Table { name, alias, .. } => {
            if name.parts.as_slice() != [from] {
                return None;
            }
            name.parts = vec![to.to_owned()];
            let alias = alias.get_or_insert_with(|| ast::Alias {
                name: from.to_owned(),
                columns: Vec::new(),
            });
            Some(alias.name.clone())
        }
        ast::TableRef::Join { left, right, .. } => {
            read_instead(left, from, to).or_else(|| read_instead(right, from, to))
        }
        _ => None,
    }
}

/// Puts a query in the place of the only subquery in FROM.
fn put_into(side: &mut ast::Query, query: ast::Query) -> Result<()> {
    let wrong = || Error::internal("a side of a recursive query that was written otherwise");
    let ast::Body::Select(select) = &mut side.body else {
        return Err(wrong());
    };
    match select.from.as_mut_slice() {
        [ast::TableRef::Subquery { query: place, .. }] => **place = query,
        _ => return Err(wrong()),
    }
    Ok(())
}

impl Binder<'_> {
    /// The query without the clauses, which computes their columns itself.
    pub(in crate::binder) fn without_search(
        &mut self,
        cte: &ast::Cte,
        recursion: &Recursion<'_>,
        visible: &[CteName],
        outer: Option<&Scope<'_>>,
    ) -> Result<ast::Cte> {
        let columns = self.columns_of_recursion(cte, recursion, visible, outer)?;
        check_clauses(cte, &columns)?;
        one_side(recursion.init, "left")?;
        one_side(recursion.term, "right")?;
        let Some(mut term) = recursion.term.as_select().cloned() else {
            return Err(no_reference(&cte.name));
        };
        let inner = format!("*{}*", cte.name);
        let mut from = term.from.iter_mut();
        let Some(name) = from.find_map(|item| read_instead(item, &cte.name, &inner)) else {
            return Err(no_reference(&cte.name));
        };
        let (shown, depth) = computed(cte);
        let all: Vec<&Computed> = shown.iter().chain(&depth).collect();
        term.targets
            .extend(all.iter().map(|column| ast::SelectItem {
                expr: ast::Expr {
                    node: ast::Node::Column(vec![name.clone(), column.name.clone()]),
                    pos: recursion.term.pos,
                },
                alias: None,
            }));
        let mut plain =
            parsed(&self.text_of_recursion(cte, recursion.all, &columns, (&shown, &all)))?;
        let wrong = || Error::internal("a recursive query that was written otherwise");
        let Some(ast::Statement::Query(rows)) = plain.with.first_mut().map(|w| &mut w.statement)
        else {
            return Err(wrong());
        };
        let ast::Body::SetOp { left, right, .. } = &mut rows.body else {
            return Err(wrong());
        };
        put_into(left, recursion.init.clone())?;
        let term = ast::Query {
            body: ast::Body::Select(Box::new(term)),
            ..recursion.term.clone()
        };
        put_into(right, term)?;
        rows.with.clone_from(&recursion.union.with);
        rows.recursive = recursion.union.recursive;
        Ok(ast::Cte {
            columns: Vec::new(),
            statement: ast::Statement::Query(Box::new(plain)),
            search: None,
            cycle: None,
            ..cte.clone()
        })
    }

    fn text_of_recursion(
        &self,
        cte: &ast::Cte,
        all: bool,
        columns: &[String],
        (shown, computed): (&[Computed], &[&Computed]),
    ) -> String {
        let names = |computed: &[&Computed]| {
            let names = computed.iter().map(|column| column.name.clone());
            columns.iter().cloned().chain(names).collect::<Vec<_>>()
        };
        let values = |value: fn(&Computed) -> &str| {
            let values = computed.iter().map(|column| format!(", {}", value(column)));
            values.collect::<String>()
        };
        let union = if all { "UNION ALL" } else { "UNION" };
        let unmarked = cte.cycle.as_ref().map_or(String::new(), |cycle| {
            format!(" WHERE r.{} <> {}", quote_ident(&cycle.mark), cycle.value)
        });
        let inner = quote_ident(&format!("*{}*", cte.name));
        let known = names(computed);
        let outputs: Vec<&Computed> = shown.iter().collect();
        format!(
            "WITH RECURSIVE {inner} ({}) AS (SELECT {}{} FROM (SELECT 1) l ({}) \
             {union} SELECT {}{} FROM (SELECT 1) r ({}){unmarked}) SELECT {} FROM {inner}",
            listed("", &known),
            listed("l", columns),
            values(|column| &column.first),
            listed("", columns),
            listed("r", columns),
            values(|column| &column.step),
            listed("", &known),
            listed("", &names(&outputs)),
        )
    }

    /// What the columns of the rows that the query begins with are called.
    fn columns_of_recursion(
        &mut self,
        cte: &ast::Cte,
        recursion: &Recursion<'_>,
        visible: &[CteName],
        outer: Option<&Scope<'_>>,
    ) -> Result<Vec<String>> {
        let known = self.ctes.len();
        let around = Scope::behind(visible, outer);
        let union = recursion.union;
        let inner = self.bind_ctes(&union.with, union.recursive, Some(&around))?;
        let scope = Scope::behind(&inner, Some(&around));
        let columns = self.operand(recursion.init, &scope)?.columns();
        self.ctes.truncate(known);
        let mut names: Vec<String> = columns.into_iter().map(|column| column.name).collect();
        let named = names.iter_mut().zip(&cte.columns);
        named.for_each(|(name, given)| name.clone_from(given));
        Ok(names)
    }
}

fn parsed(text: &str) -> Result<ast::Query> {
    match parse::parsed_statement(text)? {
        ast::Statement::Query(query) => Ok(*query),
        _ => Err(Error::internal("a recursive query that is none")),
    }
}
