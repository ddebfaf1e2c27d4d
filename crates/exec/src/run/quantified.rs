//! `left op ANY (subquery)` and `ALL`, over the rows that the subquery has given.
//!
//! Where equality decides, the rows are found by key, from tables made when they are first asked. A
//! row with NULLs is found by the columns that both it and the question have:
//!
//! ```text
//! question (1, NULL, 3)     tables[NULL in column 2]    keys are columns 1 and 3 of rows without NULL,
//!                                                       column 3 of rows with NULL in column 1, …
//! ```
//! so each question looks once for each set of columns that are NULL in some row. Else the rows are
//! gone through one by one. Either may take longer than a turn: how far it came is kept, and the
//! next try goes on from there.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use throng_bind::expr::Expr;
use throng_types::Datum;
use throng_types::key::{self, KeyOrder};
use throng_values::func::{Operator as SqlOperator, operator_by_oid};

use super::context::RowMemory;
use super::eval::eval;
use super::hashed::is_equal_by_key;
use super::{Cx, Step};
use crate::spill::RowList;

/// Fewer rows are compared sooner than a table is made.
const FEW: usize = 16;
/// Tables beyond this, or sets of NULL columns in one, are not worth it.
const MOST: usize = 64;

/// What is known of a subquery's rows, and of the question in hand.
#[derive(Default)]
pub struct Answers {
    tables: Vec<Table>,
    /// Keys do not decide.
    useless: bool,
    asked: Option<OpenQuestion>,
}

/// Which columns of a row are NULL, a bit each.
type Nulls = u64;

/// The rows by key, for questions with NULL in the same columns.
struct Table {
    nulls: Nulls,
    /// Which columns are NULL in some row.
    patterns: Vec<Nulls>,
    /// The number of the row's pattern, and the columns that are NULL neither in it nor in the
    /// question.
    keys: HashSet<Box<[u8]>, FixedState>,
    /// These many rows are in it.
    made: usize,
}

/// A question that was not answered before its turn was over.
struct OpenQuestion {
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
    /// Whether the comparison holds for a row, with SQL's three values. `kept` is charged for what
    /// is kept.
    pub fn answer(
        &mut self,
        question: &Question<'_>,
        rows: &mut RowList,
        row: &[Datum],
        kept: &mut RowMemory,
        cx: &mut Cx,
    ) -> Step<Datum> {
        let mut values = Vec::with_capacity(question.left.len());
        for expr in question.left {
            values.push(eval(expr, row, cx)?);
        }
        if rows.len() >= FEW && !self.useless && question.is_by_key() {
            let nulls = question.nulls_of(&values);
            if let Some(at) = self.table(nulls, question, rows, kept, cx)?
                && let Some(found) = self.tables[at].find(question, &values)
            {
                return Ok(question.verdict(found));
            }
        }
        self.one_by_one(question, rows, values, cx)
    }

    /// The place of the table for questions with these NULLs; none where keys do not decide.
    fn table(
        &mut self,
        nulls: Nulls,
        question: &Question<'_>,
        rows: &mut RowList,
        kept: &mut RowMemory,
        cx: &mut Cx,
    ) -> Step<Option<usize>> {
        let at = match self.tables.iter().position(|t| t.nulls == nulls) {
            Some(at) => at,
            None if self.tables.len() == MOST => return Ok(None),
            None => {
                self.tables.push(Table::new(nulls));
                self.tables.len() - 1
            }
        };
        let table = &mut self.tables[at];
        while let Some(row) = rows.get(table.made)? {
            let Some(bytes) = table.add(question, row) else {
                self.tables.clear();
                self.useless = true;
                return Ok(None);
            };
            // Each question asks for all of them.
            kept.need(bytes, cx)?;
            table.made += 1;
            cx.tick()?;
        }
        Ok(Some(at))
    }

    fn one_by_one(
        &mut self,
        question: &Question<'_>,
        rows: &mut RowList,
        values: Vec<Datum>,
        cx: &mut Cx,
    ) -> Step<Datum> {
        // Not-a-number is not equal to itself; its key is.
        let key = |values: &[Datum]| {
            let mut key = Vec::new();
            question.add_key(values, 0, &mut key).map(|()| key)
        };
        let same = |asked: &OpenQuestion| {
            asked.values == values || key(&asked.values).is_some_and(|k| Some(k) == key(&values))
        };
        if !self.asked.as_ref().is_some_and(same) {
            self.asked = Some(OpenQuestion {
                values,
                at: 0,
                unknown: false,
            });
        }
        let Some(asked) = &mut self.asked else {
            return Ok(Datum::Null);
        };
        while let Some(candidate) = rows.get(asked.at)? {
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
    fn new(nulls: Nulls) -> Table {
        Table {
            nulls,
            patterns: Vec::new(),
            keys: HashSet::default(),
            made: 0,
        }
    }

    /// Adds a row and tells how much memory that took; none where it cannot be found by key.
    fn add(&mut self, question: &Question<'_>, row: &[Datum]) -> Option<usize> {
        let nulls = question.nulls_of(row);
        let pattern = match self.patterns.iter().position(|p| *p == nulls) {
            Some(at) => at,
            None if self.patterns.len() == MOST => return None,
            None => {
                self.patterns.push(nulls);
                self.patterns.len() - 1
            }
        };
        let mut key = vec![pattern as u8];
        question.add_key(row, nulls | self.nulls, &mut key)?;
        match self.keys.contains(&key[..]) {
            true => Some(0),
            false => {
                let bytes = key.len() + size_of::<Box<[u8]>>();
                self.keys.insert(key.into());
                Some(bytes)
            }
        }
    }

    /// Whether a row equals the values, which is unknown where NULLs decide. None where the values
    /// have no key.
    fn find(&self, question: &Question<'_>, values: &[Datum]) -> Option<Option<bool>> {
        let mut key = Vec::new();
        let mut unknown = false;
        for (at, nulls) in self.patterns.iter().enumerate() {
            let nulls = nulls | self.nulls;
            key.clear();
            key.push(at as u8);
            question.add_key(values, nulls, &mut key)?;
            match self.keys.contains(&key[..]) {
                true if nulls == 0 => return Some(Some(true)),
                found => unknown |= found,
            }
        }
        Some((!unknown).then_some(false))
    }
}

const _: () = assert!(
    MOST <= u8::MAX as usize,
    "a pattern's number is a byte of the key"
);

impl Question<'_> {
    /// Whether rows that are equal to the left side decide: they are found by key.
    fn is_by_key(&self) -> bool {
        match (self.all, self.compare) {
            (false, all) => {
                all.len() <= Nulls::BITS as usize && all.iter().all(|op| is_equal_by_key(op))
            }
            (true, [op]) => {
                op.name == "<>" && operator_by_oid(op.negator).is_some_and(is_equal_by_key)
            }
            _ => false,
        }
    }

    fn nulls_of(&self, values: &[Datum]) -> Nulls {
        let bit = |(at, value): (usize, &Datum)| Nulls::from(value.is_null()) << at;
        let compared = values.iter().take(self.compare.len());
        compared.enumerate().map(bit).sum()
    }

    /// The comparison's value, from whether a row is equal.
    fn verdict(&self, found: Option<bool>) -> Datum {
        match found {
            Some(found) => Datum::Bool(found != self.all),
            None => Datum::Null,
        }
    }

    /// Adds the key of the columns that are not among `left_out`; none where a value has no key.
    fn add_key(&self, values: &[Datum], left_out: Nulls, out: &mut Vec<u8>) -> Option<()> {
        for (at, (value, op)) in values.iter().zip(self.compare).enumerate() {
            if left_out >> at & 1 == 0 {
                let order = KeyOrder::new(op.right, false, false);
                key::encode_one(value, order, out).ok()?;
            }
        }
        Some(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::SessionFacts;
    use crate::run::Row;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use throng_types::{Result, oid};
    use throng_values::func::{EvalContext, EvalStop, operators_named};
    use throng_values::io::FormatSettings;

    fn operator(name: &str) -> &'static SqlOperator {
        let mut operators = operators_named(name).iter();
        operators
            .find(|op| (op.left, op.right) == (oid::INT4, oid::INT4))
            .unwrap_or_else(|| panic!("no operator {name}"))
    }

    fn row(width: usize, rng: &mut StdRng) -> Row {
        let value = |rng: &mut StdRng| match rng.random_ratio(1, 8) {
            true => Datum::Null,
            false => Datum::Int4(rng.random_range(0..4)),
        };
        (0..width).map(|_| value(rng)).collect()
    }

    /// SQL's definition: each row compared with each.
    fn by_definition(
        question: &Question<'_>,
        rows: &[Row],
        values: &[Datum],
        ctx: &EvalContext<'_>,
    ) -> Result<Datum> {
        let mut unknown = false;
        for row in rows {
            let mut verdict = Datum::Bool(true);
            for ((op, a), b) in question.compare.iter().zip(values).zip(row) {
                let pair = [a.clone(), b.clone()];
                match op.call(ctx, &pair).map_err(EvalStop::into_error)? {
                    Datum::Bool(true) => {}
                    Datum::Bool(false) => {
                        verdict = Datum::Bool(false);
                        break;
                    }
                    _ => verdict = Datum::Null,
                }
            }
            match verdict {
                Datum::Bool(b) if b != question.all => return Ok(Datum::Bool(b)),
                Datum::Bool(_) => {}
                _ => unknown = true,
            }
        }
        Ok(match unknown {
            true => Datum::Null,
            false => Datum::Bool(question.all),
        })
    }

    #[test]
    fn tables_answer_as_the_rows_do() -> Result<()> {
        let (host, format) = (SessionFacts::default(), FormatSettings::default());
        let ctx = EvalContext {
            host: &host,
            format: &format,
        };
        let mut rng = StdRng::seed_from_u64(3);
        let mut seen = [0; 3];
        for (name, all, width) in [
            ("=", false, 1),
            ("=", false, 2),
            ("=", false, 3),
            ("=", false, 5),
            ("<>", true, 1),
        ] {
            let compare = vec![operator(name); width];
            let question = Question {
                left: &[],
                compare: &compare,
                all,
            };
            assert!(question.is_by_key());
            for _ in 0..40 {
                let count = rng.random_range(1..30);
                let rows: Vec<Row> = (0..count).map(|_| row(width, &mut rng)).collect();
                for _ in 0..20 {
                    let values = row(width, &mut rng);
                    let mut table = Table::new(question.nulls_of(&values));
                    for row in &rows {
                        assert!(table.add(&question, row).is_some());
                    }
                    let got = table.find(&question, &values).map(|f| question.verdict(f));
                    let wanted = by_definition(&question, &rows, &values, &ctx)?;
                    assert_eq!(got.as_ref(), Some(&wanted), "{values:?} among {rows:?}");
                    seen[match wanted {
                        Datum::Bool(found) => usize::from(found),
                        _ => 2,
                    }] += 1;
                }
            }
        }
        assert!(seen.iter().all(|n| *n > 300), "{seen:?}");
        Ok(())
    }
}
