//! One aggregate of one group.

use throng_observe::heap;
use throng_sql::expr::{AggCall, Expr};
use throng_sql::func::aggregate::AggState;
use throng_sql::func::{AggKind, OrderedFn, OrderedSet, length};
use throng_types::Datum;
use throng_types::key::{self, KeyOrder};

use crate::run::context::Kept;
use crate::run::eval::{eval, holds};
use crate::run::hashed::{self, Key, RowTable};
use crate::run::sort::sort_key;
use crate::run::{Cx, Row, Step};
use crate::spill::Sorter;

pub(super) struct Accumulator {
    state: Option<AggState>,
    gathered: Option<Box<Gathered>>,
}

/// What an aggregate with DISTINCT, ORDER BY or WITHIN GROUP has of its group's rows.
#[derive(Default)]
struct Gathered {
    /// With DISTINCT: the arguments seen, as long as they fit.
    seen: RowTable,
    seen_all: bool,
    /// Arguments that are taken when the group ends, by the key of ORDER BY and, with DISTINCT, their own behind it.
    ordered: Sorter,
    /// The key of those that were taken last, and the row.
    last: Option<Vec<u8>>,
    row: Row,
    /// Of an ordered-set aggregate: the direct arguments over the group's first row.
    direct: Option<Row>,
}

/// What one aggregate takes from one row; computed for all aggregates before any state changes, so that a row whose
/// evaluation stops can be evaluated again.
#[derive(Clone)]
pub(super) struct Intake {
    pub direct: Option<Row>,
    /// None where FILTER keeps the row out.
    pub taken: Option<Taken>,
}

#[derive(Clone)]
pub(super) struct Taken {
    pub args: Row,
    pub order: Option<Box<[u8]>>,
}

pub(super) fn values(exprs: &'static [Expr], row: &[Datum], cx: &mut Cx) -> Step<Row> {
    exprs.iter().map(|e| eval(e, row, cx)).collect()
}

fn direct_values(call: &'static AggCall, row: &[Datum], cx: &mut Cx) -> Step<Option<Row>> {
    match call.agg.kind.is_plain() {
        true => Ok(None),
        false => values(&call.direct, row, cx).map(Some),
    }
}

impl Intake {
    pub fn of(call: &'static AggCall, row: &[Datum], cx: &mut Cx) -> Step<Intake> {
        let direct = direct_values(call, row, cx)?;
        if let Some(filter) = &call.filter
            && !holds(filter, row, cx)?
        {
            let taken = None;
            return Ok(Intake { direct, taken });
        }
        let args = values(&call.args, row, cx)?;
        let order = match call.order.is_empty() {
            true => None,
            false => Some(sort_key(&call.order, row, cx)?),
        };
        let taken = Some(Taken { args, order });
        Ok(Intake { direct, taken })
    }

    /// Appends it to a row that waits; see [`Intake::read`].
    pub fn write(self, out: &mut Row) {
        out.extend(self.direct.into_iter().flatten());
        out.push(Datum::Bool(self.taken.is_some()));
        if let Some(Taken { args, order }) = self.taken {
            out.extend(args);
            out.extend(order.map(|order| Datum::bytea(&order[..])));
        }
    }

    /// Reads what [`Intake::write`] wrote.
    pub fn read(call: &AggCall, from: &mut impl Iterator<Item = Datum>) -> Intake {
        let direct = match call.agg.kind.is_plain() {
            true => None,
            false => Some(from.take(call.direct.len()).collect()),
        };
        let is_taken = from.next().is_some_and(|taken| taken.is_true());
        let taken = is_taken.then(|| Taken {
            args: from.take(call.args.len()).collect(),
            order: match call.order.is_empty() {
                true => None,
                false => match from.next() {
                    Some(Datum::Bytea(order)) => Some(Box::from(&order[..])),
                    _ => None,
                },
            },
        });
        Intake { direct, taken }
    }
}

/// Whether an aggregate keeps its arguments until the group ends.
pub(super) fn sorts(call: &AggCall) -> bool {
    call.distinct || !call.order.is_empty()
}

impl Accumulator {
    pub fn new(call: &AggCall) -> Accumulator {
        let gathers = sorts(call) || !call.agg.kind.is_plain();
        Accumulator {
            state: Some((call.agg.init)()),
            gathered: gathers.then(Box::default),
        }
    }

    /// Takes in a row; whether there was room for what is kept of it.
    pub fn take(
        &mut self,
        call: &AggCall,
        intake: Intake,
        kept: &mut Kept,
        cx: &mut Cx,
    ) -> Step<bool> {
        if let Some(gathered) = &mut self.gathered
            && gathered.direct.is_none()
        {
            gathered.direct = intake.direct;
        }
        let Some(taken) = intake.taken else {
            return Ok(true);
        };
        let args = taken.args;
        if let Some(gathered) = &mut self.gathered {
            let mut order = taken.order.map(<[u8]>::into_vec);
            if call.distinct {
                let mut key = Key::default();
                hashed::key_of_row(&args, call.args.iter().map(|e| e.ty().oid), &mut key)?;
                if gathered.seen.first(&key).is_some() {
                    return Ok(true);
                }
                let bytes = hashed::row_bytes(&[]) + key.len();
                if !gathered.seen_all && kept.fits(bytes, cx) {
                    gathered.seen.insert(Some(&key), Row::new());
                } else {
                    gathered.seen_all = true;
                    order.get_or_insert_default();
                }
                if let Some(order) = &mut order {
                    order.extend_from_slice(key.bytes());
                }
            }
            if let Some(order) = order {
                gathered.ordered.add(order.into(), args, cx)?;
                return Ok(true);
            }
        }
        let state = self.state.get_or_insert_with(call.agg.init);
        (call.agg.step)(&cx.eval, state, &args)?;
        if !state.gathers() {
            return Ok(true);
        }
        let bytes = args.iter().map(hashed::datum_bytes).sum();
        let fits = kept.fits(bytes, cx);
        if !fits {
            // It is one value, which is in memory or nowhere.
            kept.need(bytes, cx)?;
            if heap::is_full() {
                return Err(length::no_room().into());
            }
        }
        Ok(fits)
    }

    /// The aggregate's value. May stop, to be called again.
    pub fn finish(&mut self, call: &'static AggCall, cx: &mut Cx) -> Step<Datum> {
        // An ordered-set aggregate of no rows still has its direct arguments: they may stop, so they come first.
        if let Some(gathered) = &mut self.gathered {
            if gathered.direct.is_none() {
                gathered.direct = direct_values(call, &[], cx)?;
            }
            gathered.ordered.finish(cx)?;
        }
        match call.agg.kind {
            AggKind::Plain => self.finish_plain(call, cx),
            AggKind::OrderedSet { compute, .. } | AggKind::Hypothetical(compute) => {
                let gathered = self.gathered.as_deref_mut();
                gathered.map_or(Ok(Datum::Null), |g| g.compute(call, compute, cx))
            }
        }
    }

    /// Gives back the memory of a group that nobody will finish.
    pub fn release(self, cx: &mut Cx) {
        if let Some(mut gathered) = self.gathered {
            gathered.ordered.clear(cx);
        }
    }

    fn finish_plain(&mut self, call: &AggCall, cx: &mut Cx) -> Step<Datum> {
        let state = self.state.get_or_insert_with(call.agg.init);
        if let Some(gathered) = &mut self.gathered {
            while gathered.ordered.next(cx, &mut gathered.row)? {
                let key = gathered.ordered.key();
                if call.distinct {
                    if gathered.last.as_deref() == Some(key) {
                        continue;
                    }
                    let last = gathered.last.get_or_insert_default();
                    last.clear();
                    last.extend_from_slice(key);
                }
                (call.agg.step)(&cx.eval, state, &gathered.row)?;
                cx.tick()?;
            }
            gathered.ordered.clear(cx);
        }
        let state = self.state.take().unwrap_or_else(call.agg.init);
        Ok((call.agg.finish)(&cx.eval, state)?)
    }
}

impl Gathered {
    fn compute(&mut self, call: &AggCall, compute: OrderedFn, cx: &mut Cx) -> Step<Datum> {
        let direct = self.direct.take().unwrap_or_default();
        let mut own_key = Vec::new();
        for (value, key) in direct.iter().zip(&call.order) {
            if matches!(call.agg.kind, AggKind::Hypothetical(_)) {
                let order = KeyOrder::new(key.expr.ty().oid, key.descending, key.nulls_first);
                key::encode_one(value, order, &mut own_key)?;
            }
        }
        let mut rows = Vec::new();
        let mut row = Row::new();
        let mut whole = Kept::default();
        while self.ordered.next(cx, &mut row)? {
            let key = self.ordered.key();
            whole.need(key.len() + hashed::row_bytes(&row), cx)?;
            rows.push((key.into(), std::mem::take(&mut row)));
        }
        let set = OrderedSet {
            direct: &direct,
            rows: &rows,
            own_key: &own_key,
        };
        let value = compute(&cx.eval, &set);
        whole.release(cx);
        self.ordered.clear(cx);
        Ok(value?)
    }
}
