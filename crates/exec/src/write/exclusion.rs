//! Exclusion constraints and keys WITHOUT OVERLAPS: no two rows for which all operators hold.
//!
//! ```text
//!   enter ──► the row's entry is in the index ──► look for rows in conflict ── none ──► done
//!                                                   ▲            │     └─ one that lives: 23P01
//!                                                   └── wait ◄───┘ one whose maker or ender runs
//! ```
//! The entry is there before anybody looks. So of two who come at the same moment one at least
//! finds the other: it waits for him, and looks again. Where both wait, the deadlock is found as
//! any other; ON CONFLICT DO NOTHING takes its row back instead of waiting with it.
//!
//! What is read is a stretch of the index: its first columns are as the row's where their operator
//! is `=`, and the next one, where it is a range, begins before the row's ends. Ranges are in the
//! order of their lower bounds, and upper bounds say nothing of the order; but where the constraint
//! keeps the ranges of equal other columns from overlapping, the ranges that live there do not
//! overlap *now*. So the stretch is read from its end backwards, up to the first row that lives and
//! ends before ours begins: what overlaps ours and begins before that one overlaps that one, too.
//! (Of such a pair the second to come, or one of those between, has found the other.) That does not
//! hold of deferrable constraints, where rows may overlap for a while: there the stretch is read to
//! its beginning.

use std::ops::Bound;

use throng_access::btree::{Conflict, Direction, KeyRange};
use throng_access::{TupleHeader, Visibility};
use throng_buffer::retry;
use throng_catalog::ConstraintDef;
use throng_txn::rows::wait_for_unique;
use throng_types::error::state;
use throng_types::key;
use throng_types::reach::Reach;
use throng_types::{Datum, Error, Oid, Result, Tid, Xid, oid};
use throng_values::func::{Operator, Strategy, operator_by_oid};
use throng_values::range;

use super::deferred::Due;
use super::row::{about, conflict_with, index_key_text, shown_index_key, with_detail};
use super::{Context, Target};
use crate::large;
use crate::run::Row;
use crate::slices::Turn;
use crate::table::{COMPUTED, Index};

/// Entries that are taken from the index at once.
const BATCH: usize = 32;

/// Entries that are looked at after a row in conflict was found, for an older one.
const MOST_COMPARED: usize = 1_000;

/// Any version of a row: all those under one entry have the same key.
struct AnyVersion;

impl Visibility for AnyVersion {
    fn visible(&self, _: &TupleHeader) -> bool {
        true
    }
}

/// A row on its way in, by its entry.
#[derive(Clone, Copy)]
pub struct Entering<'a> {
    pub row: &'a [Datum],
    /// The values of the index's expressions.
    pub computed: &'a [Datum],
    /// None: it has no entry yet.
    pub tid: Option<Tid>,
}

/// Another row that is in conflict.
pub struct Other {
    pub tid: Tid,
    row: Row,
    computed: Row,
}

enum Found {
    Nothing,
    Lives(Other),
    Busy(Xid),
}

impl Found {
    fn of(other: Option<Other>) -> Found {
        other.map_or(Found::Nothing, Found::Lives)
    }
}

/// What becomes of a row whose conflict is not decided yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Undecided {
    /// It waits.
    Waits,
    /// It counts as in conflict.
    GivesWay,
}

/// How rows in conflict are looked for in one index.
struct Search<'a> {
    target: &'a Target,
    number: usize,
    index: &'a Index,
    operators: Vec<&'static Operator>,
    /// So many first columns are equal in all that is read.
    equal: usize,
    own: Vec<Datum>,
    range: KeyRange,
    /// What lives in the stretch does not overlap.
    disjoint: bool,
}

/// The values of an index's keys.
fn key_values(index: &Index, row: &[Datum], computed: &[Datum]) -> Vec<Datum> {
    let value = |at: &usize| match at.checked_sub(COMPUTED) {
        Some(at) => computed[at].clone(),
        None => row[*at].clone(),
    };
    index.columns.iter().map(value).collect()
}

/// The type of an index's key column.
fn key_type(target: &Target, index: &Index, nth: usize) -> Oid {
    let mut keys = index.def.keys();
    match keys.nth(nth) {
        Some((_, Some(expr))) => expr.ty.oid,
        Some((key, None)) => target.def().column(key.attnum).ty.oid,
        None => oid::UNKNOWN,
    }
}

fn reach_of(op: &Operator) -> Option<Reach> {
    match (op.left, op.name) {
        (oid::ANYRANGE | oid::ANYMULTIRANGE, "&&") => Some(Reach::Overlaps),
        (oid::ANYRANGE | oid::ANYMULTIRANGE, "-|-") => Some(Reach::Adjacent),
        _ => None,
    }
}

impl<'a> Search<'a> {
    /// None where nothing can be in conflict with the row.
    fn of(target: &'a Target, number: usize, of: Entering<'_>) -> Result<Option<Search<'a>>> {
        let index = &*target.indexes[number];
        let own = key_values(index, of.row, of.computed);
        if own.iter().any(Datum::is_null) {
            return Ok(None);
        }
        let operators: Vec<&'static Operator> = index
            .def
            .terms
            .exclusion
            .iter()
            .map(|op| operator_by_oid(*op))
            .collect::<Option<_>>()
            .ok_or_else(|| Error::internal("an exclusion constraint with an unknown operator"))?;
        let is_equal = |op: &&&Operator| op.strategy == Some(Strategy::Equal);
        let equal = operators.iter().take_while(is_equal).count();
        let mut prefix = Vec::new();
        for (value, order) in own.iter().zip(&index.orders).take(equal) {
            key::encode_one(value, *order, &mut prefix)?;
        }
        let reach = operators.get(equal).and_then(|op| reach_of(op));
        let (mut low, mut high) = (Vec::new(), Bound::Included(Vec::new()));
        if let Some(reach) = reach {
            let stretch = reach.stretch(&own[equal], false)?;
            let Some((from, to)) = stretch else {
                return Ok(None);
            };
            if let Bound::Included(bytes) = from {
                low = bytes;
            }
            high = to;
        }
        let after = |bytes: Vec<u8>| [&prefix[..], &bytes].concat();
        let range = KeyRange {
            lower: Bound::Included(after(low)),
            upper: high.map(after),
        };
        let is_range = throng_types::range::is_range(key_type(target, index, equal));
        let disjoint = reach == Some(Reach::Overlaps)
            && is_range
            && equal + 1 == operators.len()
            && target.deferrable[number].is_none();
        Ok(Some(Search {
            target,
            number,
            index,
            operators,
            equal,
            own,
            range,
            disjoint,
        }))
    }

    /// Looks once. `passes`: rows that are not looked at.
    async fn look(
        &self,
        own: Option<Tid>,
        passes: &dyn Fn(Tid) -> bool,
        turn: &mut Turn,
        cx: &Context<'_>,
    ) -> Result<Found> {
        let tree = &self.index.tree;
        let cursor = tree.cursor(self.range.clone(), Direction::Backward);
        let mut cursor = cursor.with_batch(BATCH);
        let mut tids = Vec::new();
        // Of several the oldest is told, by its place.
        let mut oldest: Option<Other> = None;
        let mut left = MOST_COMPARED;
        loop {
            tids.clear();
            let more = retry(|| cursor.next(&mut tids)).await?;
            for &root in &tids {
                turn.worked(0, cx.env.cancel).await?;
                if own == Some(root) || passes(root) {
                    continue;
                }
                if let Some(found) = oldest.take_if(|_| left == 0) {
                    return Ok(Found::Lives(found));
                }
                left -= usize::from(oldest.is_some());
                let Some((row, computed)) = self.read(root, cx).await? else {
                    continue;
                };
                let theirs = key_values(self.index, &row, &computed);
                let conflicts = self.conflicts(&theirs, cx)?;
                let is_end = self.disjoint && !conflicts && self.is_before(&theirs);
                if !conflicts && !is_end {
                    continue;
                }
                let table = &self.target.table;
                match retry(|| conflict_with(table, root, own, cx.txn)).await? {
                    Conflict::Live(_) if is_end => return Ok(Found::of(oldest)),
                    Conflict::Live(tid) if oldest.as_ref().is_none_or(|other| tid < other.tid) => {
                        oldest = Some(Other { tid, row, computed });
                    }
                    Conflict::Busy(holder) if conflicts && oldest.is_none() => {
                        return Ok(Found::Busy(holder));
                    }
                    _ => {}
                }
            }
            if !more {
                return Ok(Found::of(oldest));
            }
        }
    }

    /// The row under an entry, and the values of the index's expressions over it.
    async fn read(&self, root: Tid, cx: &Context<'_>) -> Result<Option<(Row, Row)>> {
        let table = &self.target.table;
        let (mut bytes, mut row) = (Vec::new(), Row::new());
        let found = retry(|| table.heap.fetch(root, &AnyVersion, &mut bytes)).await?;
        if found.is_none() {
            return Ok(None);
        }
        table.decode(&bytes, table.def.columns.len(), &mut row)?;
        let mut fetch = large::Fetch::default();
        retry(|| table.fetch_external(&mut row, &mut fetch)).await?;
        let computed = self.target.computed(self.number, &row, cx).await?;
        Ok(computed.map(|computed| (row, computed)))
    }

    fn conflicts(&self, theirs: &[Datum], cx: &Context<'_>) -> Result<bool> {
        let pairs = self.own.iter().zip(theirs).zip(&self.operators);
        for ((own, theirs), op) in pairs.skip(self.equal) {
            let args = [own.clone(), theirs.clone()];
            let holds = op.call(&cx.env.eval, &args);
            if !holds.map_err(|stop| stop.into_error())?.is_true() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether another row's range ends before ours begins.
    fn is_before(&self, theirs: &[Datum]) -> bool {
        match (&theirs[self.equal], &self.own[self.equal]) {
            (Datum::Range(theirs), Datum::Range(own)) => range::before(theirs, own),
            _ => false,
        }
    }
}

/// A row that lives and is in conflict with this one; waits for those who may come to be, or end.
pub async fn find(
    target: &Target,
    number: usize,
    of: Entering<'_>,
    cx: &Context<'_>,
) -> Result<Option<Other>> {
    find_among(target, number, of, &|_| false, cx).await
}

/// As [`find`], but for rows that are passed by.
async fn find_among(
    target: &Target,
    number: usize,
    of: Entering<'_>,
    passes: &dyn Fn(Tid) -> bool,
    cx: &Context<'_>,
) -> Result<Option<Other>> {
    let Some(search) = Search::of(target, number, of)? else {
        return Ok(None);
    };
    let mut turn = Turn::new();
    loop {
        match search.look(of.tid, passes, &mut turn, cx).await? {
            Found::Nothing => return Ok(None),
            Found::Lives(other) => return Ok(Some(other)),
            Found::Busy(holder) => wait_for_unique(cx.txn, holder).await?,
        }
    }
}

/// Checks a row whose entry is made: false where it gives way, and is to be taken back.
///
/// # Errors
/// 23P01 for a row in conflict with one that lives; 23514 for an empty range in a key WITHOUT
/// OVERLAPS.
pub async fn entered(
    target: &Target,
    number: usize,
    of: Entering<'_>,
    undecided: Undecided,
    cx: &Context<'_>,
) -> Result<bool> {
    let index = &target.indexes[number];
    must_not_be_empty(target, index, of, cx)?;
    if let Some(constraint) = &target.deferrable[number] {
        return put_off(target, number, of, constraint, cx)
            .await
            .map(|()| true);
    }
    if undecided == Undecided::Waits {
        return match find(target, number, of, cx).await? {
            None => Ok(true),
            Some(other) => Err(violation(target, index, of, &other, cx)),
        };
    }
    let Some(search) = Search::of(target, number, of)? else {
        return Ok(true);
    };
    let found = search
        .look(of.tid, &|_| false, &mut Turn::new(), cx)
        .await?;
    Ok(matches!(found, Found::Nothing))
}

/// As [`entered`], of a row that came with others whose entries are made, too: those that `passes`
/// tells of look for this one themselves.
pub async fn loaded(
    target: &Target,
    number: usize,
    of: Entering<'_>,
    passes: &dyn Fn(Tid) -> bool,
    cx: &Context<'_>,
) -> Result<()> {
    if target.deferrable[number].is_some() {
        return entered(target, number, of, Undecided::Waits, cx)
            .await
            .map(drop);
    }
    let index = &target.indexes[number];
    must_not_be_empty(target, index, of, cx)?;
    match find_among(target, number, of, passes, cx).await? {
        None => Ok(()),
        Some(other) => Err(violation(target, index, of, &other, cx)),
    }
}

/// The check waits where there is something to check.
async fn put_off(
    target: &Target,
    number: usize,
    of: Entering<'_>,
    constraint: &ConstraintDef,
    cx: &Context<'_>,
) -> Result<()> {
    let (Some(search), Some(tid)) = (Search::of(target, number, of)?, of.tid) else {
        return Ok(());
    };
    let found = search
        .look(of.tid, &|_| false, &mut Turn::new(), cx)
        .await?;
    if !matches!(found, Found::Nothing) {
        cx.deferred.add(constraint, tid, Due::Unique);
    }
    Ok(())
}

/// 23514 for an empty range in the last column of a key WITHOUT OVERLAPS.
fn must_not_be_empty(
    target: &Target,
    index: &Index,
    of: Entering<'_>,
    cx: &Context<'_>,
) -> Result<()> {
    let Some(&last) = index.columns.last() else {
        return Ok(());
    };
    let is_empty = match of.row.get(last) {
        Some(Datum::Range(range)) => range.is_empty(),
        Some(Datum::Multirange(multirange)) => multirange.ranges.is_empty(),
        _ => false,
    };
    if !is_empty || !cx.env.catalog.is_without_overlaps(&index.def) {
        return Ok(());
    }
    let message = format!(
        "empty WITHOUT OVERLAPS value found in column \"{}\" in relation \"{}\"",
        target.def().columns[last].name,
        target.def().name
    );
    Err(Error::new(state::CHECK_VIOLATION, message))
}

/// 23P01.
pub fn violation(
    target: &Target,
    index: &Index,
    of: Entering<'_>,
    other: &Other,
    cx: &Context<'_>,
) -> Error {
    let message = format!(
        "conflicting key value violates exclusion constraint \"{}\"",
        index.def.name
    );
    let def = target.def();
    let own = shown_index_key(def, index, of.row, of.computed, cx.env);
    let theirs = shown_index_key(def, index, &other.row, &other.computed, cx.env);
    let detail = match (own, theirs) {
        (Some(own), Some(theirs)) => {
            format!("Key {own} conflicts with existing key {theirs}.")
        }
        _ => "Key conflicts with existing key.".to_owned(),
    };
    let error = Error::new(state::EXCLUSION_VIOLATION, message).constraint(&index.def.name);
    about(with_detail(error, detail), def, cx.env.catalog)
}

/// 23P01 for the first of these rows, all of whose entries are made, that is in conflict with
/// another.
pub async fn check_all(
    target: &Target,
    number: usize,
    roots: &[Tid],
    cx: &Context<'_>,
) -> Result<()> {
    let index = &target.indexes[number];
    let table = &target.table;
    let snapshot = cx.txn.latest_snapshot();
    let (mut bytes, mut row) = (Vec::new(), Row::new());
    for &root in roots {
        let found = retry(|| table.heap.fetch(root, &snapshot, &mut bytes)).await?;
        if found.is_none() {
            continue;
        }
        table.decode(&bytes, table.def.columns.len(), &mut row)?;
        let mut fetch = large::Fetch::default();
        retry(|| table.fetch_external(&mut row, &mut fetch)).await?;
        let Some(computed) = target.computed(number, &row, cx).await? else {
            continue;
        };
        let of = Entering {
            row: &row,
            computed: &computed,
            tid: Some(root),
        };
        must_not_be_empty(target, index, of, cx)?;
        let Some(other) = find(target, number, of, cx).await? else {
            continue;
        };
        let def = target.def();
        let own = index_key_text(def, index, &row, &computed, &cx.env.eval);
        let theirs = index_key_text(def, index, &other.row, &other.computed, &cx.env.eval);
        let message = format!(
            "could not create exclusion constraint \"{}\"",
            index.def.name
        );
        let error = Error::new(state::EXCLUSION_VIOLATION, message)
            .detail(format!("Key {own} conflicts with key {theirs}."))
            .constraint(&index.def.name);
        return Err(about(error, def, cx.env.catalog));
    }
    Ok(())
}
