//! The fast forms: comparisons, checked arithmetic and connectives over whole columns.
//!
//! [`column`] answers only where the rows' own evaluation could give nothing else; `None` sends the
//! caller to the rows.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray, RecordBatch,
};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::{and_kleene, is_not_null, is_null, not, or_kleene};
use datafusion::arrow::datatypes::{Float64Type, Int16Type, Int32Type, Int64Type};
use foldhash::fast::FixedState;
use throng_bind::expr::Expr;
use throng_types::numeric::Decimal;
use throng_types::row::Phys;
use throng_types::{Datum, Oid, oid};
use throng_values::func::string::like::like;
use throng_values::func::{CastMethod, Operator, operator_by_oid};

use crate::column::{self, Kind};
use crate::vector::Selection;

/// So many items are compared with each row's value one after the other.
const FEW_ITEMS: usize = 8;

/// The values of `expr` over a batch, or None where the rows must decide.
pub fn column(
    expr: &Expr,
    batch: &RecordBatch,
    kinds: &[Kind],
    selected: &Selection,
    params: &[Datum],
) -> Option<ArrayRef> {
    Kernel {
        batch,
        kinds,
        params,
    }
    .vector(expr, selected)?
    .into_array(Kind::of(expr.ty())?)
}

/// The rows of `selected` where `column` is not false.
pub fn but_false(selected: &Selection, column: &BooleanArray) -> BooleanBuffer {
    let not_false = match column.nulls() {
        Some(nulls) => column.values() | &!nulls.inner(),
        None => column.values().clone(),
    };
    match selected {
        Some(selected) => selected & &not_false,
        None => not_false,
    }
}

/// A column, or one value for all rows.
enum Vector<'a> {
    Ints(Lanes<'a, i64>),
    Floats(Lanes<'a, f64>),
    Decimals(Lanes<'a, Decimal>),
    Bools(BooleanArray),
    Texts(ArrayRef),
    Text(&'a str),
}

struct Lanes<'a, T: Clone> {
    values: Values<'a, T>,
    nulls: Option<NullBuffer>,
}

enum Values<'a, T: Clone> {
    Column(Cow<'a, [T]>),
    Constant(T),
}

impl<T: Copy> Lanes<'_, T> {
    #[inline]
    fn get(&self, i: usize) -> T {
        match &self.values {
            Values::Column(values) => values[i],
            Values::Constant(value) => *value,
        }
    }
    fn constant(value: T) -> Self {
        Lanes {
            values: Values::Constant(value),
            nulls: None,
        }
    }
    fn map<U: Copy>(self, f: impl Fn(T) -> U) -> Lanes<'static, U> {
        Lanes {
            values: match self.values {
                Values::Constant(v) => Values::Constant(f(v)),
                Values::Column(v) => Values::Column(v.iter().map(|v| f(*v)).collect()),
            },
            nulls: self.nulls,
        }
    }
}

impl Vector<'_> {
    fn into_array(self, kind: Kind) -> Option<ArrayRef> {
        Some(match (self, kind) {
            (Vector::Bools(a), Kind::Bool) => Arc::new(a),
            (Vector::Texts(a), Kind::Text) => a,
            (
                Vector::Ints(Lanes {
                    values: Values::Column(v),
                    nulls,
                }),
                kind,
            ) => match kind {
                Kind::Int2 => {
                    let narrow = v.iter().map(|v| *v as i16);
                    Arc::new(PrimitiveArray::<Int16Type>::new(narrow.collect(), nulls))
                }
                Kind::Int4 | Kind::Date => {
                    let narrow = v.iter().map(|v| *v as i32);
                    Arc::new(PrimitiveArray::<Int32Type>::new(narrow.collect(), nulls))
                }
                Kind::Int8 | Kind::Time | Kind::Timestamp | Kind::TimestampTz => Arc::new(
                    PrimitiveArray::<Int64Type>::new(v.into_owned().into(), nulls),
                ),
                _ => return None,
            },
            (
                Vector::Floats(Lanes {
                    values: Values::Column(v),
                    nulls,
                }),
                Kind::Float8,
            ) => Arc::new(PrimitiveArray::<Float64Type>::new(
                v.into_owned().into(),
                nulls,
            )),
            (
                Vector::Decimals(Lanes {
                    values: Values::Column(v),
                    nulls,
                }),
                Kind::Packed(Phys::Numeric),
            ) => column::of_decimals(v.iter().copied(), nulls.as_ref()),
            _ => return None,
        })
    }
}

/// Both operands' NULLs: what a strict operator gives.
fn nulls_of(a: &Option<NullBuffer>, b: &Option<NullBuffer>) -> Option<NullBuffer> {
    NullBuffer::union(a.as_ref(), b.as_ref())
}

struct Kernel<'a> {
    batch: &'a RecordBatch,
    kinds: &'a [Kind],
    params: &'a [Datum],
}

impl<'a> Kernel<'a> {
    fn vector(&self, expr: &'a Expr, selected: &Selection) -> Option<Vector<'a>> {
        match expr {
            Expr::Slot(at, _) => self.slot(*at as usize),
            Expr::Const(value, _) => constant(value),
            Expr::Param(at, _) => constant(self.params.get(*at as usize)?),
            Expr::Op { op, args, .. } => match &args[..] {
                [left, right] => self.binary(
                    op,
                    self.vector(left, selected)?,
                    self.vector(right, selected)?,
                    selected,
                ),
                _ => None,
            },
            Expr::Cast { arg, cast, to, .. } if to.typmod < 0 => {
                let same = cast.is_none_or(|c| matches!(c.method, CastMethod::Binary));
                let (from, to) = (arg.ty().oid, to.oid);
                let value = self.vector(arg, selected)?;
                match value {
                    value if same && Kind::of(arg.ty()) == Kind::of(expr.ty()) => Some(value),
                    Vector::Ints(ints) if is_int(from) && to == oid::INT8 => {
                        Some(Vector::Ints(ints))
                    }
                    Vector::Ints(ints) if from == oid::INT2 && to == oid::INT4 => {
                        Some(Vector::Ints(ints))
                    }
                    Vector::Ints(ints) if is_int(from) && to == oid::FLOAT8 => {
                        Some(Vector::Floats(ints.map(|v| v as f64)))
                    }
                    Vector::Ints(ints) if is_int(from) && to == oid::NUMERIC => {
                        Some(Vector::Decimals(ints.map(|v| Decimal {
                            coefficient: v.into(),
                            scale: 0,
                        })))
                    }
                    _ => None,
                }
            }
            Expr::ArrayCompare {
                op,
                left,
                array,
                all,
            } => match &**array {
                Expr::Const(Datum::Array(items), _) => {
                    self.among(op, left, &items.items, *all, selected)
                }
                _ => None,
            },
            Expr::And(parts) => self.connective(parts, selected, true),
            Expr::Or(parts) => self.connective(parts, selected, false),
            Expr::Not(arg) => Some(Vector::Bools(not(&self.bools(arg, selected)?).ok()?)),
            Expr::IsNull(arg) => Some(Vector::Bools(is_null(self.tested(arg)?).ok()?)),
            Expr::IsNotNull(arg) => Some(Vector::Bools(is_not_null(self.tested(arg)?).ok()?)),
            _ => None,
        }
    }

    fn slot(&self, at: usize) -> Option<Vector<'a>> {
        let array = self.batch.column(at);
        let nulls = array.nulls().cloned();
        let ints = |values| {
            Vector::Ints(Lanes {
                values: Values::Column(values),
                nulls: nulls.clone(),
            })
        };
        Some(match self.kinds[at] {
            Kind::Bool => Vector::Bools(array.as_boolean().clone()),
            Kind::Int2 => ints(
                array
                    .as_primitive::<Int16Type>()
                    .values()
                    .iter()
                    .map(|v| i64::from(*v))
                    .collect(),
            ),
            Kind::Int4 | Kind::Date => ints(
                array
                    .as_primitive::<Int32Type>()
                    .values()
                    .iter()
                    .map(|v| i64::from(*v))
                    .collect(),
            ),
            Kind::Int8 | Kind::Time | Kind::Timestamp | Kind::TimestampTz => ints(Cow::Borrowed(
                &array.as_primitive::<Int64Type>().values()[..],
            )),
            Kind::Float8 => Vector::Floats(Lanes {
                values: Values::Column(Cow::Borrowed(
                    &array.as_primitive::<Float64Type>().values()[..],
                )),
                nulls,
            }),
            Kind::Text => Vector::Texts(array.clone()),
            Kind::Packed(Phys::Numeric) => Vector::Decimals(Lanes {
                values: Values::Column(column::decimals(array)?.into()),
                nulls,
            }),
            _ => return None,
        })
    }

    /// `left = ANY (constants)`, of which none is NULL.
    /// `= ANY (items)` and `<> ALL (items)`.
    fn among(
        &self,
        op: &'static Operator,
        left: &'a Expr,
        items: &'a [Datum],
        all: bool,
        selected: &Selection,
    ) -> Option<Vector<'a>> {
        let equal = match (op.name, all) {
            ("=", false) => op,
            ("<>", true) => operator_by_oid(op.negator)?,
            _ => return None,
        };
        let found = match items.len() {
            ..=FEW_ITEMS => self.one_of(equal, left, items, selected)?,
            _ => self.member(equal, self.vector(left, selected)?, items)?,
        };
        Some(Vector::Bools(match all {
            true => not(&found).ok()?,
            false => found,
        }))
    }

    fn one_of(
        &self,
        equal: &Operator,
        left: &'a Expr,
        items: &'a [Datum],
        selected: &Selection,
    ) -> Option<BooleanArray> {
        let mut found: Option<BooleanArray> = None;
        for item in items {
            let left = self.vector(left, selected)?;
            let Vector::Bools(is_it) = self.binary(equal, left, constant(item)?, selected)? else {
                return None;
            };
            found = Some(match found {
                None => is_it,
                Some(before) => or_kleene(&before, &is_it).ok()?,
            });
        }
        found
    }

    /// The same from a hash table of the items. Where it is not found, a NULL among them decides.
    fn member(&self, equal: &Operator, left: Vector<'a>, items: &[Datum]) -> Option<BooleanArray> {
        let rows = self.batch.num_rows();
        let present = items.iter().filter(|item| !item.is_null());
        let (found, nulls) = match left {
            Vector::Ints(lanes) if comparable(equal) => {
                let known: HashSet<i64, FixedState> = present
                    .map(|item| match constant(item)? {
                        Vector::Ints(item) => Some(item.get(0)),
                        _ => None,
                    })
                    .collect::<Option<_>>()?;
                let found = BooleanBuffer::collect_bool(rows, |i| known.contains(&lanes.get(i)));
                (found, lanes.nulls)
            }
            Vector::Texts(texts) if is_text_equality(equal) => {
                let known: HashSet<&str, FixedState> =
                    present.map(Datum::as_str).collect::<Option<_>>()?;
                let texts = texts.as_string::<i64>();
                let found = BooleanBuffer::collect_bool(rows, |i| known.contains(texts.value(i)));
                (found, texts.nulls().cloned())
            }
            _ => return None,
        };
        let decided = match items.iter().any(Datum::is_null) {
            true => NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(found.clone()))),
            false => nulls,
        };
        Some(BooleanArray::new(found, decided))
    }

    fn bools(&self, expr: &'a Expr, selected: &Selection) -> Option<BooleanArray> {
        match self.vector(expr, selected)? {
            Vector::Bools(a) => Some(a),
            _ => None,
        }
    }

    /// The column of a NULL test; a row value's test looks at its fields.
    fn tested(&self, arg: &Expr) -> Option<&'a ArrayRef> {
        match arg {
            Expr::Slot(at, _) if self.kinds[*at as usize] != Kind::Packed(Phys::Record) => {
                Some(self.batch.column(*at as usize))
            }
            _ => None,
        }
    }

    /// AND (`and`) and OR: a part is asked only for the rows that the parts before have not
    /// decided.
    fn connective(&self, parts: &'a [Expr], selected: &Selection, and: bool) -> Option<Vector<'a>> {
        let mut alive = selected.clone();
        let mut result: Option<BooleanArray> = None;
        for part in parts {
            let column = self.bools(part, &alive)?;
            let undecided = if and {
                column.clone()
            } else {
                not(&column).ok()?
            };
            alive = Some(but_false(&alive, &undecided));
            result = Some(match result {
                None => column,
                Some(before) if and => and_kleene(&before, &column).ok()?,
                Some(before) => or_kleene(&before, &column).ok()?,
            });
        }
        result.map(Vector::Bools)
    }

    fn binary(
        &self,
        op: &Operator,
        left: Vector<'a>,
        right: Vector<'a>,
        selected: &Selection,
    ) -> Option<Vector<'a>> {
        let rows = self.batch.num_rows();
        match (left, right) {
            (Vector::Ints(a), Vector::Ints(b)) if comparable(op) => {
                let test = comparison(op)?;
                Some(compare(rows, &a, &b, |a, b| test(a.cmp(&b))))
            }
            (Vector::Ints(a), Vector::Ints(b)) if op.ret == oid::BOOL => {
                let (a, b) = match (op.left, op.right) {
                    (oid::DATE, oid::TIMESTAMP) => (midnights(a)?, b),
                    (oid::TIMESTAMP, oid::DATE) => (a, midnights(b)?),
                    _ => return None,
                };
                let test = comparison(op)?;
                Some(compare(rows, &a, &b, |a, b| test(a.cmp(&b))))
            }
            (Vector::Ints(a), Vector::Ints(b)) if is_int(op.left) && is_int(op.right) => {
                let (low, high) = match op.ret {
                    oid::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
                    oid::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
                    oid::INT8 => (i64::MIN, i64::MAX),
                    _ => return None,
                };
                let fit = |v: Option<i64>| v.filter(|v| (low..=high).contains(v));
                let out = match op.name {
                    "+" => compute(rows, &a, &b, selected, |a, b| fit(a.checked_add(b))),
                    "-" => compute(rows, &a, &b, selected, |a, b| fit(a.checked_sub(b))),
                    "*" => compute(rows, &a, &b, selected, |a, b| fit(a.checked_mul(b))),
                    "/" => compute(rows, &a, &b, selected, |a, b| fit(a.checked_div(b))),
                    "%" => compute(rows, &a, &b, selected, |a, b| {
                        if b == 0 {
                            None
                        } else {
                            fit(Some(a.wrapping_rem(b)))
                        }
                    }),
                    _ => return None,
                };
                out.map(Vector::Ints)
            }
            (Vector::Floats(a), Vector::Floats(b))
                if op.left == oid::FLOAT8 && op.right == oid::FLOAT8 =>
            {
                if let Some(test) = comparison(op) {
                    return Some(compare(rows, &a, &b, |a, b| test(float_order(a, b))));
                }
                // Infinities, NaN and zeros that were rounded to are the rows' business.
                let sure =
                    |v: f64, product: bool| (v.is_finite() && !(product && v == 0.0)).then_some(v);
                let out = match op.name {
                    "+" => compute(rows, &a, &b, selected, |a, b| sure(a + b, false)),
                    "-" => compute(rows, &a, &b, selected, |a, b| sure(a - b, false)),
                    "*" => compute(rows, &a, &b, selected, |a, b| {
                        sure(a * b, a != 0.0 && b != 0.0)
                    }),
                    "/" => compute(rows, &a, &b, selected, |a, b| sure(a / b, a != 0.0)),
                    _ => return None,
                };
                out.map(Vector::Floats)
            }
            (Vector::Decimals(a), Vector::Decimals(b))
                if op.left == oid::NUMERIC && op.right == oid::NUMERIC =>
            {
                if let Some(test) = comparison(op) {
                    return compare_decimals(rows, &a, &b, test);
                }
                let out = match op.name {
                    "+" => compute(rows, &a, &b, selected, Decimal::checked_add),
                    "-" => compute(rows, &a, &b, selected, Decimal::checked_sub),
                    "*" => compute(rows, &a, &b, selected, Decimal::checked_mul),
                    _ => return None,
                };
                out.map(Vector::Decimals)
            }
            (Vector::Texts(a), Vector::Text(b)) if is_padded_equality(op) => {
                let a = a.as_string::<i64>();
                let (equal, b) = (op.name == "=", b.trim_end_matches(' '));
                let bits = BooleanBuffer::collect_bool(rows, |i| {
                    (a.value(i).trim_end_matches(' ') == b) == equal
                });
                Some(Vector::Bools(BooleanArray::new(bits, a.nulls().cloned())))
            }
            (Vector::Texts(a), Vector::Text(b)) if is_text_equality(op) => {
                let a = a.as_string::<i64>();
                let equal = op.name == "=";
                let bits = BooleanBuffer::collect_bool(rows, |i| (a.value(i) == b) == equal);
                Some(Vector::Bools(BooleanArray::new(bits, a.nulls().cloned())))
            }
            (Vector::Texts(a), Vector::Text(pattern)) if is_like(op) => {
                let a = a.as_string::<i64>();
                let (wanted, mut sure) = (op.name == "~~", true);
                let bits = BooleanBuffer::collect_bool(rows, |i| match like(a.value(i), pattern) {
                    Ok(matches) => matches == wanted,
                    Err(_) => {
                        sure = false;
                        false
                    }
                });
                sure.then(|| Vector::Bools(BooleanArray::new(bits, a.nulls().cloned())))
            }
            _ => None,
        }
    }
}

fn constant(value: &Datum) -> Option<Vector<'_>> {
    Some(match value {
        Datum::Int2(v) => Vector::Ints(Lanes::constant((*v).into())),
        Datum::Int4(v) | Datum::Date(v) => Vector::Ints(Lanes::constant((*v).into())),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => {
            Vector::Ints(Lanes::constant(*v))
        }
        Datum::Float8(v) => Vector::Floats(Lanes::constant(*v)),
        Datum::Numeric(v) => Vector::Decimals(Lanes::constant(Decimal::of(v)?)),
        Datum::Text(s) => Vector::Text(s),
        _ => return None,
    })
}

fn is_int(ty: Oid) -> bool {
    matches!(ty, oid::INT2 | oid::INT4 | oid::INT8)
}

/// Whether operands of these types are ordered as the integers that carry them.
fn comparable(op: &Operator) -> bool {
    op.ret == oid::BOOL
        && ((is_int(op.left) && is_int(op.right))
            || (op.left == op.right
                && matches!(
                    op.left,
                    oid::DATE | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ
                )))
}

/// Strings whose equality is that of their bytes.
fn is_text_equality(op: &Operator) -> bool {
    let plain = |ty| matches!(ty, oid::TEXT | oid::VARCHAR | oid::NAME);
    plain(op.left) && plain(op.right) && matches!(op.name, "=" | "<>") && op.ret == oid::BOOL
}

/// Strings whose equality is that of their bytes but for blanks at the end.
fn is_padded_equality(op: &Operator) -> bool {
    op.left == oid::BPCHAR && op.right == oid::BPCHAR && matches!(op.name, "=" | "<>")
}

fn is_like(op: &Operator) -> bool {
    let text = |ty| matches!(ty, oid::TEXT | oid::NAME | oid::BPCHAR);
    text(op.left) && op.right == oid::TEXT && matches!(op.name, "~~" | "!~~")
}

/// Dates as timestamps; None where one of them is too far off.
fn midnights<'a>(dates: Lanes<'_, i64>) -> Option<Lanes<'a, i64>> {
    const FURTHEST: i64 = 100_000_000;
    const DAY: i64 = 86_400_000_000;
    let near = |day: &i64| day.abs() <= FURTHEST;
    let sure = match &dates.values {
        Values::Constant(day) => near(day),
        Values::Column(days) => days.iter().all(near),
    };
    sure.then(|| dates.map(|day| day * DAY))
}

fn comparison(op: &Operator) -> Option<fn(Ordering) -> bool> {
    Some(match op.name {
        "=" => Ordering::is_eq,
        "<>" => Ordering::is_ne,
        "<" => Ordering::is_lt,
        "<=" => Ordering::is_le,
        ">" => Ordering::is_gt,
        ">=" => Ordering::is_ge,
        _ => return None,
    })
}

/// NaN is above everything and equal to itself.
fn float_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn compare<T: Copy>(
    rows: usize,
    a: &Lanes<'_, T>,
    b: &Lanes<'_, T>,
    mut test: impl FnMut(T, T) -> bool,
) -> Vector<'static> {
    let nulls = nulls_of(&a.nulls, &b.nulls);
    let bits = match (&a.values, &b.values) {
        (Values::Column(a), Values::Constant(b)) => {
            BooleanBuffer::collect_bool(rows, |i| test(a[i], *b))
        }
        _ => BooleanBuffer::collect_bool(rows, |i| test(a.get(i), b.get(i))),
    };
    Vector::Bools(BooleanArray::new(bits, nulls))
}

/// None if two values are too far apart in scale to be compared in 128 bits.
fn compare_decimals(
    rows: usize,
    a: &Lanes<'_, Decimal>,
    b: &Lanes<'_, Decimal>,
    test: fn(Ordering) -> bool,
) -> Option<Vector<'static>> {
    let mut sure = true;
    let result = compare(rows, a, b, |a, b| match a.compare(b) {
        Some(order) => test(order),
        None => {
            sure = false;
            false
        }
    });
    sure.then_some(result)
}

/// None if `f` is not sure of a row that counts.
fn compute<T: Copy + Default>(
    rows: usize,
    a: &Lanes<'_, T>,
    b: &Lanes<'_, T>,
    selected: &Selection,
    f: impl Fn(T, T) -> Option<T>,
) -> Option<Lanes<'static, T>> {
    let nulls = nulls_of(&a.nulls, &b.nulls);
    let counts = |i: usize| {
        nulls.as_ref().is_none_or(|n| n.is_valid(i)) && selected.as_ref().is_none_or(|s| s.value(i))
    };
    let mut out = Vec::with_capacity(rows);
    for i in 0..rows {
        match f(a.get(i), b.get(i)) {
            Some(v) => out.push(v),
            None if counts(i) => return None,
            None => out.push(T::default()),
        }
    }
    Some(Lanes {
        values: Values::Column(Cow::Owned(out)),
        nulls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use throng_exec::analytics::SessionFacts;
    use throng_types::{Numeric, Result, SqlType};
    use throng_values::func::{EvalContext, FAMILIES};
    use throng_values::io::FormatSettings;

    use crate::column::{ColumnBuilder, Reader, schema};
    use crate::vector::assemble;

    fn sample(ty: Oid, rng: &mut StdRng) -> Datum {
        let int = [
            0,
            1,
            -1,
            7,
            -13,
            1000,
            i64::MAX,
            i64::MIN,
            i64::from(i32::MAX),
            i64::from(i32::MIN),
            32767,
        ][rng.random_range(0..11)];
        match ty {
            _ if rng.random_ratio(1, 6) => Datum::Null,
            oid::INT2 => Datum::Int2(int as i16),
            oid::INT4 => Datum::Int4(int as i32),
            oid::INT8 => Datum::Int8(int),
            oid::DATE => Datum::Date(int as i32),
            oid::TIME => Datum::Time(int.rem_euclid(86_400_000_000)),
            oid::TIMESTAMP => Datum::Timestamp(int),
            oid::TIMESTAMPTZ => Datum::TimestampTz(int),
            oid::NUMERIC => {
                let scale = rng.random_range(0..5);
                Datum::Numeric(match rng.random_range(0..12) {
                    0 => Numeric::NAN,
                    1 => Numeric::NEG_INFINITY,
                    _ => Numeric::new(int, scale),
                })
            }
            oid::BOOL => Datum::Bool(int > 0),
            oid::FLOAT8 => Datum::Float8(
                [
                    0.0,
                    -0.0,
                    1.5,
                    -2.0,
                    f64::NAN,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    1e308,
                    1e-308,
                    3.0,
                ][rng.random_range(0..10)],
            ),
            _ => Datum::text(["", "a", "ab", "b ", "a%", "_b%a", "%\\"][rng.random_range(0..7)]),
        }
    }

    const TYPES: [Oid; 14] = [
        oid::INT2,
        oid::INT4,
        oid::INT8,
        oid::DATE,
        oid::TIME,
        oid::TIMESTAMP,
        oid::TIMESTAMPTZ,
        oid::BOOL,
        oid::FLOAT8,
        oid::TEXT,
        oid::VARCHAR,
        oid::NAME,
        oid::NUMERIC,
        oid::BPCHAR,
    ];

    /// Whatever a fast form answers is what the operator gives for each row; it answers for most
    /// batches of tame values.
    #[test]
    fn every_operator_gives_the_same_over_columns() -> Result<()> {
        let mut rng = StdRng::seed_from_u64(3);
        let (facts, format) = (SessionFacts::default(), FormatSettings::default());
        let cx = EvalContext {
            host: &facts,
            format: &format,
        };
        let mut answered = std::collections::BTreeSet::new();
        let operators = FAMILIES.iter().flat_map(|f| f.operators);
        for op in operators.filter(|o| TYPES.contains(&o.left) && TYPES.contains(&o.right)) {
            for round in 0..60 {
                let kinds: Vec<Kind> = [op.left, op.right]
                    .iter()
                    .filter_map(|t| Kind::of(SqlType::plain(*t)))
                    .collect();
                // Few rows: batches without an overflow come up often enough.
                let rows = rng.random_range(1..4);
                let mut builders = ColumnBuilder::of_all(&kinds);
                for _ in 0..rows {
                    builders[0].push(&sample(op.left, &mut rng))?;
                    builders[1].push(&sample(op.right, &mut rng))?;
                }
                let columns = builders.iter_mut().map(ColumnBuilder::finish).collect();
                let batch = assemble(&schema(&kinds), columns, rows)?;
                let constant = sample(op.right, &mut rng);
                let right = match round % 2 {
                    0 => Expr::Slot(1, SqlType::plain(op.right)),
                    _ => Expr::Const(constant.clone(), SqlType::plain(op.right)),
                };
                let ty = SqlType::plain(op.ret);
                let expr = Expr::Op {
                    op,
                    args: vec![Expr::Slot(0, SqlType::plain(op.left)), right],
                    ty,
                };
                let selected = rng
                    .random::<bool>()
                    .then(|| BooleanBuffer::collect_bool(rows, |_| rng.random()));
                let Some(out) = column(&expr, &batch, &kinds, &selected, &[]) else {
                    continue;
                };
                answered.insert((op.name, op.left.0, op.right.0));
                let Some(kind) = Kind::of(ty) else { continue };
                let (readers, out) = (
                    Reader::of_all(&kinds, batch.columns()),
                    Reader::new(kind, &*out),
                );
                for row in (0..rows).filter(|row| selected.as_ref().is_none_or(|s| s.value(*row))) {
                    let right = if round % 2 == 0 {
                        readers[1].get(row)?
                    } else {
                        constant.clone()
                    };
                    let args = [readers[0].get(row)?, right];
                    let expected = op.call(&cx, &args).map_err(|e| e.into_error())?;
                    assert_eq!(
                        format!("{:?}", out.get(row)?),
                        format!("{expected:?}"),
                        "{op:?} {args:?}"
                    );
                }
            }
        }
        // Six comparisons of nine pairs of integers, six of times, doubles and numerics;
        // arithmetic; equality of strings.
        assert!(answered.len() > 100, "{answered:?}");
        Ok(())
    }

    /// AND and OR of three values, with parts that are asked only for rows that are not decided.
    #[test]
    fn connectives_have_three_values_and_stop() -> Result<()> {
        let kinds = [Kind::Bool, Kind::Bool];
        let values = [Datum::Bool(true), Datum::Bool(false), Datum::Null];
        let mut builders = ColumnBuilder::of_all(&kinds);
        for a in &values {
            for b in &values {
                builders[0].push(a)?;
                builders[1].push(b)?;
            }
        }
        let columns = builders.iter_mut().map(ColumnBuilder::finish).collect();
        let batch = assemble(&schema(&kinds), columns, 9)?;
        let parts = || vec![Expr::Slot(0, SqlType::BOOL), Expr::Slot(1, SqlType::BOOL)];
        let read = |expr: Expr| -> Result<String> {
            let out = column(&expr, &batch, &kinds, &None, &[]).expect("a fast form");
            let out = Reader::new(Kind::Bool, &*out);
            let letter = |row| {
                Ok(match out.get(row)? {
                    Datum::Bool(true) => 't',
                    Datum::Bool(false) => 'f',
                    _ => 'n',
                })
            };
            (0..9).map(letter).collect()
        };
        assert_eq!(read(Expr::And(parts()))?, "tfnfffnfn");
        assert_eq!(read(Expr::Or(parts()))?, "ttttfntnn");
        Ok(())
    }
}
