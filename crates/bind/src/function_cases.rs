//! Cases written as SQL expressions: a line is the expression, a tab, and PostgreSQL 18's answer.
//!
//! The answer is `=` and the text, `NULL`, or `E` with SQLSTATE and message; the rows of a set are
//! parted by `;`, and `none` is a set without rows. The session is in New York, so that a day may
//! have 23 hours.

use crate::testing::Workbench;
use throng_syntax::parse::ast::{self, Node};
use throng_types::datum::Dim;
use throng_types::error::Result;
use throng_types::sqltype::{array_of, element_of, type_by_name};
use throng_types::{Array, Datum, Numeric, Oid, SqlType, oid};
use throng_values::func::*;
use throng_values::io::{FormatSettings, Zone, input_text, to_text, typmod};

type Value = (Datum, SqlType);

struct Evaluator<'a> {
    ctx: EvalContext<'a>,
}

fn plain<T>(result: Result<T, EvalStop>) -> Result<T> {
    result.map_err(EvalStop::into_error)
}

impl Evaluator<'_> {
    fn cast(&self, (value, from): Value, to: SqlType) -> Result<Datum> {
        if from.oid == to.oid || matches!(to.oid, oid::ANY) {
            return typmod::apply(value, to, true);
        }
        if from.oid == oid::UNKNOWN {
            return match value.as_str() {
                Some(text) => input_text(&self.ctx, text, to),
                None => Ok(Datum::Null),
            };
        }
        let cast = find_cast(from.oid, to.oid, CastContext::Explicit)
            .unwrap_or_else(|| panic!("no cast from {} to {}", from.oid, to.oid));
        if value.is_null() {
            return Ok(value);
        }
        typmod::apply(plain(cast.apply(&self.ctx, &value))?, to, true)
    }

    fn operator(&self, name: &str, args: Vec<Value>) -> Result<Value> {
        let left = (args.len() == 2).then(|| args[0].1.oid);
        let found = resolve_operator(name, left, args[args.len() - 1].1.oid)?;
        let wanted = [found.left, found.right];
        let wanted = &wanted[2 - args.len()..];
        let values: Result<Vec<Datum>> = args
            .into_iter()
            .zip(wanted)
            .map(|(a, t)| self.cast(a, SqlType::plain(*t)))
            .collect();
        let value = plain(found.operator.call(&self.ctx, &values?))?;
        Ok((value, SqlType::plain(found.ret)))
    }

    fn call(&self, name: &str, args: Vec<Value>) -> Result<(Vec<Datum>, SqlType)> {
        let types: Vec<Oid> = args.iter().map(|a| a.1.oid).collect();
        let found = resolve_function(name, &types)?;
        let values: Result<Vec<Datum>> = args
            .into_iter()
            .zip(&found.arg_types)
            .map(|(a, t)| self.cast(a, SqlType::plain(*t)))
            .collect();
        let (values, ret) = (values?, SqlType::plain(found.ret));
        match found.callee {
            Callee::Scalar(f) => Ok((vec![plain(f.call(&self.ctx, &values))?], ret)),
            Callee::Set(f) => {
                let Body::Set(rows) = f.body else {
                    panic!("{name} has no rows")
                };
                if f.strict && values.iter().any(Datum::is_null) {
                    return Ok((vec![], ret));
                }
                // A series without end shows its beginning.
                let rows: Result<Vec<Datum>> = plain(rows(&self.ctx, &values))?
                    .take(20)
                    .map(plain)
                    .collect();
                Ok((rows?, ret))
            }
            Callee::Aggregate(_) | Callee::Window(_) | Callee::Routine(_) => {
                panic!("{name} is no plain function")
            }
        }
    }

    fn array(&self, items: &[ast::Expr]) -> Result<Value> {
        let items: Result<Vec<Value>> = items.iter().map(|i| self.value(i)).collect();
        let items = items?;
        let types: Vec<Oid> = items.iter().map(|i| i.1.oid).collect();
        let common = select_common_type(&types, "ARRAY")?;
        let values: Result<Vec<Datum>> = items
            .into_iter()
            .map(|i| self.cast(i, SqlType::plain(common)))
            .collect();
        let values = values?;
        let Some(element) = element_of(common) else {
            let ty = SqlType::plain(array_of(common).expect("element types have arrays"));
            return Ok((Datum::array(Array::from_items(common, values)), ty));
        };
        let mut dims = vec![Dim {
            len: values.len() as i32,
            lower: 1,
        }];
        let mut all = Vec::new();
        for (i, value) in values.iter().enumerate() {
            let Datum::Array(inner) = value else {
                panic!("a NULL among arrays")
            };
            if i == 0 {
                dims.extend(&inner.dims);
            }
            all.extend(inner.items.iter().cloned());
        }
        Ok((
            Datum::array(Array {
                element,
                dims,
                items: all,
            }),
            SqlType::plain(common),
        ))
    }

    fn value(&self, expr: &ast::Expr) -> Result<Value> {
        let (mut rows, ty) = self.rows(expr)?;
        assert!(rows.len() <= 1, "a set inside an expression");
        Ok((rows.pop().unwrap_or(Datum::Null), ty))
    }

    fn rows(&self, expr: &ast::Expr) -> Result<(Vec<Datum>, SqlType)> {
        let (value, ty) = match &expr.node {
            Node::Null => (Datum::Null, SqlType::UNKNOWN),
            Node::Bool(v) => (Datum::Bool(*v), SqlType::BOOL),
            Node::Text(s) => (Datum::text(s), SqlType::UNKNOWN),
            Node::Integer(s) => match (s.parse::<i32>(), s.parse::<i64>()) {
                (Ok(v), _) => (Datum::Int4(v), SqlType::INT4),
                (_, Ok(v)) => (Datum::Int8(v), SqlType::INT8),
                _ => (Datum::Numeric(number(s)), SqlType::NUMERIC),
            },
            Node::Decimal(s) => (Datum::Numeric(number(s)), SqlType::NUMERIC),
            Node::Unary { op, arg } => self.operator(&op.name, vec![self.value(arg)?])?,
            Node::Binary { op, left, right } => {
                self.operator(&op.name, vec![self.value(left)?, self.value(right)?])?
            }
            Node::IsNull { arg, negated } => (
                (self.value(arg)?.0.is_null() != *negated).into(),
                SqlType::BOOL,
            ),
            Node::Cast { arg, ty } => {
                let info = type_by_name(ty.name.last())
                    .unwrap_or_else(|| panic!("no type {}", ty.name.last()));
                let to = if ty.array { info.array } else { info.oid };
                let typmod = match (info.oid, ty.modifiers.as_slice()) {
                    (_, []) => ty.typmod.unwrap_or(-1),
                    (oid::NUMERIC, [p, s]) => SqlType::numeric_modifier(*p, *s),
                    (oid::VARCHAR | oid::BPCHAR, [n]) => SqlType::string_modifier(*n),
                    (_, [n, ..]) => *n,
                };
                let to = SqlType::new(to, typmod);
                (self.cast(self.value(arg)?, to)?, to)
            }
            Node::Array(items) => self.array(items)?,
            Node::Like {
                kind,
                arg,
                pattern,
                escape,
                negated,
            } => {
                let mut pattern = self.value(pattern)?;
                let escape = escape.as_ref().map(|e| self.value(e)).transpose()?;
                let (function, op) = match kind {
                    ast::LikeKind::Like => ("like_escape", "~~"),
                    ast::LikeKind::ILike => ("like_escape", "~~*"),
                    ast::LikeKind::Similar => ("similar_to_escape", "~"),
                };
                if *kind == ast::LikeKind::Similar || escape.is_some() {
                    let args = std::iter::once(pattern).chain(escape).collect();
                    let (mut rows, ty) = self.call(function, args)?;
                    pattern = (rows.remove(0), ty);
                }
                let op = if *negated {
                    format!("!{op}")
                } else {
                    op.to_string()
                };
                self.operator(&op, vec![self.value(arg)?, pattern])?
            }
            Node::Call(call) => {
                let args: Result<Vec<Value>> = call.args.iter().map(|a| self.value(a)).collect();
                return self.call(call.name.last(), args?);
            }
            other => panic!("not evaluated here: {other:?}"),
        };
        Ok((vec![value], ty))
    }

    fn show(&self, expr: &ast::Expr) -> Result<String> {
        let (rows, ty) = self.rows(expr)?;
        if rows.is_empty() {
            return Ok("none".into());
        }
        let ty = if ty.oid == oid::UNKNOWN {
            SqlType::TEXT
        } else {
            ty
        };
        let shown: Vec<String> = rows
            .iter()
            .map(|row| match row {
                Datum::Null => "NULL".to_string(),
                row => format!("={}", to_text(&self.ctx, row, ty)),
            })
            .collect();
        Ok(shown.join(";"))
    }
}

fn number(text: &str) -> Numeric {
    text.parse()
        .unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// The answer to one expression.
pub fn answer(expression: &str) -> String {
    let format = FormatSettings {
        time_zone: Zone::by_name("America/New_York").expect("a known zone"),
        ..FormatSettings::default()
    };
    let parsed = throng_syntax::parse::parse(&format!("SELECT {expression}"))
        .unwrap_or_else(|e| panic!("{expression}: {e}"));
    let ast::Statement::Query(query) = &parsed[0].statement else {
        panic!("not a query")
    };
    let ast::Body::Select(select) = &query.body else {
        panic!("not a SELECT")
    };
    let shown = Workbench::new("").evaluating(&format, |ctx| {
        Evaluator { ctx }.show(&select.targets[0].expr)
    });
    match shown {
        Ok(shown) => shown,
        Err(e) => format!("E{} {e}", e.code().as_str()),
    }
}

/// Runs a file of cases; gives those whose answer differs.
pub fn check(cases: &str) {
    let mut wrong = Vec::new();
    for line in cases.lines().filter(|l| !l.is_empty()) {
        let (expression, expected) = line.split_once('\t').expect("a tab before the answer");
        let got = answer(expression);
        if got != expected {
            wrong.push(format!(
                "{expression}\n    expected {expected}\n    but got  {got}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong answers\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn sets_and_session() {
    check(include_str!("function_cases/sets.tsv"));
}
#[test]
fn time_arithmetic_and_zones() {
    check(include_str!("function_cases/timezone.tsv"));
}
#[test]
fn arrays() {
    check(include_str!("function_cases/arrays.tsv"));
}
#[test]
fn strings() {
    check(include_str!("function_cases/strings.tsv"));
}
#[test]
fn regular_expressions() {
    check(include_str!("function_cases/regex.tsv"));
}
#[test]
fn fields_and_ages() {
    check(include_str!("function_cases/extract.tsv"));
}
#[test]
fn templates() {
    check(include_str!("function_cases/to_char.tsv"));
}
#[test]
fn miscellany() {
    check(include_str!("function_cases/misc.tsv"));
}
#[test]
fn numbers_hashes_and_extremes() {
    check(include_str!("function_cases/more.tsv"));
}
