//! `left op ANY (subquery)` and `ALL`, over the rows that the subquery has given.
//!
//! Where equality decides, the rows are found by key, from a table made when they are first asked. Else they are gone
//! through one by one. Either may take longer than a turn: how far it came is kept, and the next try goes on from there.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use throng_sql::expr::Expr;
use throng_sql::func::{Operator as SqlOperator, Strategy};
use throng_types::key::{self, KeyOrder};
use throng_types::{Datum, Oid, oid};

use super::context::Kept;
use super::eval::eval;
use super::{Cx, Row, Step};

/// Fewer rows are compared sooner than a table is made.
const FEW: usize = 16;

/// What is known of a subquery's rows, and of the question in hand.
#[derive(Default)]
pub struct Answers {
    keys: Keys,
    asked: Option<Asked>,
}

/// The rows by key.
#[derive(Default)]
enum Keys {
    #[default]
    Unmade,
    /// These many rows are in it.
    Making(usize, Table),
    Made(Table),
    /// Keys do not decide.
    Useless,
}

#[derive(Default)]
struct Table {
    keys: HashSet<Box<[u8]>, FixedState>,
    has_null: bool,
}

/// A question that was not answered before its turn was over.
struct Asked {
    values: Vec<Datum>,
    /// The row to look at next.
    at: usize,
    /// A row said neither yes nor no.
    unknown: bool,
}

/// A quantified comparison.
pub struct Question<'a> {
    pub left: &'a [Expr],
    pub compare: &'a [&'static SqlOperator],
    pub all: bool,
}

impl Answers {
    /// Whether the comparison holds for a row, with SQL's three values. `kept` is charged for what is kept.
    pub fn answer(
        &mut self,
        question: &Question<'_>,
        rows: &[Row],
        row: &[Datum],
        kept: &mut Kept,
        cx: &mut Cx,
    ) -> Step<Datum> {
        let mut values = Vec::with_capacity(question.left.len());
        for expr in question.left {
            values.push(eval(expr, row, cx)?);
        }
        if rows.len() >= FEW && question.is_by_key() {
            self.make(question, rows, kept, cx)?;
            if let Keys::Made(table) = &self.keys
                && let Some(answer) = table.find(question, &values)
            {
                return Ok(answer);
            }
        }
        self.one_by_one(question, rows, values, cx)
    }

    fn make(
        &mut self,
        question: &Question<'_>,
        rows: &[Row],
        kept: &mut Kept,
        cx: &mut Cx,
    ) -> Step<()> {
        if matches!(self.keys, Keys::Unmade) {
            self.keys = Keys::Making(0, Table::default());
        }
        let Keys::Making(at, table) = &mut self.keys else {
            return Ok(());
        };
        let mut useless = false;
        while let Some(row) = rows.get(*at) {
            match question.key_of(row) {
                Some(key) => {
                    kept.add(key.len() + size_of::<Box<[u8]>>(), cx)?;
                    table.keys.insert(key);
                }
                // Of several columns those that are there may say no: such rows are compared.
                None if row.len() == 1 && row[0].is_null() => table.has_null = true,
                None => {
                    useless = true;
                    break;
                }
            }
            *at += 1;
            cx.tick()?;
        }
        self.keys = match std::mem::take(&mut self.keys) {
            Keys::Making(_, table) if !useless => Keys::Made(table),
            _ => Keys::Useless,
        };
        Ok(())
    }

    fn one_by_one(
        &mut self,
        question: &Question<'_>,
        rows: &[Row],
        values: Vec<Datum>,
        cx: &mut Cx,
    ) -> Step<Datum> {
        // Not-a-number is not equal to itself; its key is.
        let key = |values: &[Datum]| question.key_of(values);
        let same = |asked: &Asked| {
            asked.values == values || key(&asked.values).is_some_and(|k| Some(k) == key(&values))
        };
        if !self.asked.as_ref().is_some_and(same) {
            self.asked = Some(Asked {
                values,
                at: 0,
                unknown: false,
            });
        }
        let Some(asked) = &mut self.asked else {
            return Ok(Datum::Null);
        };
        while let Some(candidate) = rows.get(asked.at) {
            let verdict = question.compared(&asked.values, candidate, cx)?;
            match verdict {
                Datum::Bool(b) if b != question.all => {
                    self.asked = None;
                    return Ok(Datum::Bool(b));
                }
                Datum::Bool(_) => {}
                _ => asked.unknown = true,
            }
            asked.at += 1;
            cx.tick()?;
        }
        let unknown = asked.unknown;
        self.asked = None;
        Ok(match unknown {
            true => Datum::Null,
            false => Datum::Bool(question.all),
        })
    }
}

impl Table {
    /// None where a value is NULL that only one of several columns has.
    fn find(&self, question: &Question<'_>, values: &[Datum]) -> Option<Datum> {
        match question.key_of(values) {
            Some(key) if self.keys.contains(&key) => Some(Datum::Bool(true)),
            Some(_) if self.has_null => Some(Datum::Null),
            Some(_) => Some(Datum::Bool(false)),
            None if values.len() == 1 && values[0].is_null() => Some(Datum::Null),
            None => None,
        }
    }
}

impl Question<'_> {
    /// Equal values have equal keys where both sides are of one type.
    fn is_by_key(&self) -> bool {
        let of_one_type = |op: &&'static SqlOperator| {
            op.strategy == Some(Strategy::Equal) && op.left == op.right && op.left != oid::RECORD
        };
        !self.all && self.compare.iter().all(of_one_type)
    }

    /// A row's key; none where a value is NULL or has no key.
    fn key_of(&self, values: &[Datum]) -> Option<Box<[u8]>> {
        let mut bytes = Vec::new();
        for (value, op) in values.iter().zip(self.compare) {
            if value.is_null() {
                return None;
            }
            let ty: Oid = op.right;
            key::encode_one(value, KeyOrder::new(ty, false, false), &mut bytes).ok()?;
        }
        Some(bytes.into())
    }

    /// A row's columns compared pairwise, and ANDed.
    fn compared(&self, values: &[Datum], candidate: &[Datum], cx: &mut Cx) -> Step<Datum> {
        let mut verdict = Datum::Bool(true);
        for ((function, value), other) in self.compare.iter().zip(values).zip(candidate) {
            match function.call(&cx.eval, &[value.clone(), other.clone()])? {
                Datum::Bool(true) => {}
                Datum::Bool(false) => return Ok(Datum::Bool(false)),
                _ => verdict = Datum::Null,
            }
        }
        Ok(verdict)
    }
}
