//! One aggregate of one group.

use throng_bind::aggregate::OwnAggregate;
use throng_bind::expr::{AggCall, Expr};
use throng_bind::fold::is_volatile;
use throng_observe::heap;
use throng_types::key::{self, KeyOrder};
use throng_types::{Datum, Error, Result, interrupt};
use throng_values::func::aggregate::AggState;
use throng_values::func::{AggKind, Aggregate, OrderedFn, OrderedSet, string::length};

use crate::offload::Ending;
use crate::run::context::RowMemory;
use crate::run::eval::{eval, holds};
use crate::run::hashed::{self, Key, RowTable};
use crate::run::own_aggregate::OwnState;
use crate::run::sort::sort_key;
use crate::run::{Cx, Row, Step};
use crate::spill::Sorter;

pub(super) struct Accumulator {
    state: Option<AggState>,
    /// The state of a user's aggregate, in place of the other.
    own: Option<Box<OwnState>>,
    gathered: Option<Box<Gathered>>,
    ending: Ending,
}

/// What an aggregate with DISTINCT, ORDER BY or WITHIN GROUP has of its group's rows.
#[derive(Default)]
struct Gathered {
    /// With DISTINCT: the arguments seen, as long as they fit.
    seen: RowTable,
    seen_all: bool,
    /// Arguments that are taken when the group ends, by the key of ORDER BY and, with DISTINCT,
    /// their own behind it.
    ordered: Sorter,
    /// The key of those that were taken last, and the row.
    last: Option<Vec<u8>>,
    row: Row,
    /// Of an ordered-set aggregate: the direct arguments over the group's first row.
    direct: Option<Row>,
    /// Its rows in order, by their keys.
    rows: Vec<(Box<[u8]>, Row)>,
    whole: RowMemory,
}

/// What one aggregate takes from one row; computed for all aggregates before any state changes, so
/// that a row whose evaluation stops can be evaluated again.
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
    match call.agg.is_plain() {
        true => Ok(None),
        false => values(&call.direct, row, cx).map(Some),
    }
}

/// The direct arguments of an aggregate where every row has the same, once they are computed.
#[derive(Default)]
pub(super) struct Direct(Option<Row>);

impl Direct {
    fn values(&mut self, call: &'static AggCall, row: &[Datum], cx: &mut Cx) -> Step<Option<Row>> {
        if self.0.is_some() {
            return Ok(self.0.clone());
        }
        let values = direct_values(call, row, cx)?;
        let varies = |e: &Expr| matches!(e, Expr::Slot(..)) || is_volatile(e);
        if !call.direct.iter().any(|e| e.any(&mut |e| varies(e))) {
            self.0.clone_from(&values);
        }
        Ok(values)
    }
}

impl Intake {
    pub fn of(
        call: &'static AggCall,
        direct: &mut Direct,
        row: &[Datum],
        cx: &mut Cx,
    ) -> Step<Intake> {
        let direct = direct.values(call, row, cx)?;
        if let Some(filter) = &call.filter
            && !holds(filter, row, cx)?
        {
            let taken = None;
            return Ok(Intake { direct, taken });
        }
        let args = values(&call.args, row, cx)?;
        let order = match call.row_order() {
            [] => None,
            keys => Some(sort_key(keys, row, cx)?),
        };
        let taken = Some(Taken { args, order });
        Ok(Intake { direct, taken })
    }

    /// Of a [simple](is_simple) aggregate.
    pub fn of_args(args: impl Iterator<Item = Datum>) -> Intake {
        let args = args.collect();
        Intake {
            direct: None,
            taken: Some(Taken { args, order: None }),
        }
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
        let direct = match call.agg.is_plain() {
            true => None,
            false => Some(from.take(call.direct.len()).collect()),
        };
        let is_taken = from.next().is_some_and(|taken| taken.is_true());
        let taken = is_taken.then(|| Taken {
            args: from.take(call.args.len()).collect(),
            order: match call.row_order().is_empty() {
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

/// Whether an aggregate takes the arguments of each row, as it comes.
pub(super) fn is_simple(call: &AggCall) -> bool {
    call.filter.is_none() && !sorts(call) && call.agg.is_plain() && call.agg.own().is_none()
}

/// Whether an aggregate keeps its arguments until the group ends.
pub(super) fn sorts(call: &AggCall) -> bool {
    call.distinct || !call.row_order().is_empty()
}

impl Accumulator {
    pub fn new(call: &AggCall) -> Accumulator {
        let gathers = sorts(call) || !call.agg.is_plain();
        Accumulator {
            state: call.agg.built_in().map(|agg| (agg.init)()),
            own: call
                .agg
                .own()
                .map(|own| Box::new(OwnState::new(&own.plain))),
            gathered: gathers.then(Box::default),
            ending: Ending::default(),
        }
    }

    /// Takes in a row; whether there was room for what is kept of it.
    pub fn take(
        &mut self,
        call: &AggCall,
        intake: Intake,
        kept: &mut RowMemory,
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
        if let Some(own) = &mut self.own {
            own.wait(args);
            return Ok(true);
        }
        self.step(call, &args, kept, cx)
    }

    /// Takes in what a user's aggregate has taken of its rows. May stop, to be called again.
    pub fn drain(&mut self, call: &AggCall, cx: &mut Cx) -> Step<()> {
        match (&mut self.own, call.agg.own()) {
            (Some(state), Some(own)) => state.drain(&own.plain, cx),
            _ => Ok(()),
        }
    }

    /// Takes arguments into the state; whether there was room for what is kept of them.
    pub fn step(
        &mut self,
        call: &AggCall,
        args: &[Datum],
        kept: &mut RowMemory,
        cx: &mut Cx,
    ) -> Step<bool> {
        let agg = built_in(call)?;
        let state = self.state.get_or_insert_with(agg.init);
        (agg.step)(&cx.eval, state, args)?;
        args.iter().for_each(|value| cx.meet(value));
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
        if let Some(value) = self.ending.value() {
            return Ok(value);
        }
        // An ordered-set aggregate of no rows still has its direct arguments: they may stop, so
        // they come first.
        if let Some(gathered) = &mut self.gathered {
            if gathered.direct.is_none() {
                gathered.direct = direct_values(call, &[], cx)?;
            }
            gathered.ordered.finish(cx)?;
        }
        if let Some(own) = call.agg.own() {
            return self.finish_own(call, own, cx);
        }
        match built_in(call)?.kind {
            AggKind::Plain => self.finish_plain(call, cx),
            AggKind::OrderedSet { compute, .. } | AggKind::Hypothetical(compute) => {
                let Some(gathered) = &mut self.gathered else {
                    return Ok(Datum::Null);
                };
                gathered.compute(call, compute, &mut self.ending, cx)
            }
        }
    }

    /// Gives back the memory of a group that nobody will finish.
    pub fn release(self, cx: &mut Cx) {
        if let Some(mut own) = self.own {
            own.release(cx);
        }
        if let Some(mut gathered) = self.gathered {
            gathered.ordered.clear(cx);
            gathered.whole.release(cx);
        }
    }

    fn finish_own(&mut self, call: &AggCall, own: &OwnAggregate, cx: &mut Cx) -> Step<Datum> {
        let Some(state) = &mut self.own else {
            return Ok(Datum::Null);
        };
        state.drain(&own.plain, cx)?;
        if let Some(gathered) = &mut self.gathered {
            while gathered.next(call, cx)? {
                state.wait(gathered.row.clone());
                state.drain(&own.plain, cx)?;
                cx.tick()?;
            }
        }
        let gathered = self.gathered.as_ref();
        let direct = gathered.and_then(|gathered| gathered.direct.as_deref());
        let value = state.finish(&own.plain, direct.unwrap_or_default(), cx)?;
        state.release(cx);
        if let Some(gathered) = &mut self.gathered {
            gathered.ordered.clear(cx);
        }
        Ok(value)
    }

    fn finish_plain(&mut self, call: &AggCall, cx: &mut Cx) -> Step<Datum> {
        let agg = built_in(call)?;
        let state = self.state.get_or_insert_with(agg.init);
        if let Some(gathered) = &mut self.gathered {
            while gathered.next(call, cx)? {
                (agg.step)(&cx.eval, state, &gathered.row)?;
                cx.tick()?;
            }
            gathered.ordered.clear(cx);
        }
        let state = self.state.take().unwrap_or_else(agg.init);
        let finish = agg.finish;
        self.ending
            .compute(state.ends_long(), cx, move |eval| finish(eval, state))
    }
}

/// What computes an aggregate that no user made.
fn built_in(call: &AggCall) -> Result<&'static Aggregate> {
    let agg = call.agg.built_in();
    agg.ok_or_else(|| Error::internal("an aggregate that is not built in"))
}

impl Gathered {
    /// The next row that waited for the group's end, in order; of those that are alike the first.
    fn next(&mut self, call: &AggCall, cx: &mut Cx) -> Step<bool> {
        while self.ordered.next(cx, &mut self.row)? {
            let key = self.ordered.key();
            if !call.distinct {
                return Ok(true);
            }
            if self.last.as_deref() != Some(key) {
                let last = self.last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn compute(
        &mut self,
        call: &AggCall,
        compute: OrderedFn,
        ending: &mut Ending,
        cx: &mut Cx,
    ) -> Step<Datum> {
        /// Rows that are looked through on an event loop.
        const FEW: usize = 16_384;
        let mut row = Row::new();
        while self.ordered.next(cx, &mut row)? {
            let key = self.ordered.key();
            self.whole.need(key.len() + hashed::row_bytes(&row), cx)?;
            self.rows.push((key.into(), std::mem::take(&mut row)));
            cx.tick()?;
        }
        let direct = self.direct.take().unwrap_or_default();
        let mut own_key = Vec::new();
        for (value, key) in direct.iter().zip(&call.order) {
            if matches!(built_in(call)?.kind, AggKind::Hypothetical(_)) {
                let order = KeyOrder::new(key.expr.ty().oid, key.descending, key.nulls_first);
                key::encode_one(value, order, &mut own_key)?;
            }
        }
        let rows = std::mem::take(&mut self.rows);
        self.whole.release(cx);
        self.ordered.clear(cx);
        let is_long = rows.len() > FEW || interrupt::are_long(&direct);
        ending.compute(is_long, cx, move |eval| {
            let set = OrderedSet {
                direct: &direct,
                rows: &rows,
                own_key: &own_key,
            };
            compute(eval, &set)
        })
    }
}
