//! What operators work with: the statement's view of the data, its parameters, its time and memory.

use std::rc::Rc;
use std::time::{Duration, Instant};

use throng_bind::expr::RelId;
use throng_catalog::Catalog;
use throng_observe::heap;
use throng_txn::{CancelFlag, Snapshot};
use throng_types::error::state;
use throng_types::{Datum, Error, Result, Tid, interrupt};
use throng_values::func::{EvalContext, string::length};

use super::hashed::datum_bytes;
use super::items::ItemTables;
use super::lock::Locked;
use super::routine::Routines;
use super::subplan::SubPlan;
use super::{Step, Suspension};
use crate::run::effects::Effects;
use crate::spill::RowList;
use crate::store::Store;

/// Work between two looks at the clock. A unit is about a row; some tens of microseconds pass in
/// all.
const TICKS: u32 = 128;
/// How long a statement may hold its core before others get their turn: a few short statements
/// long, so that one that reads much takes about its share of the core and not more.
const SLICE: Duration = Duration::from_micros(100);

/// Bytes that an operator may have of what no file can take, where `work_mem` is less.
const MOST_AS_A_WHOLE: usize = 1 << 30;

/// What a statement runs in; borrowed from the session for one call of `next`.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    pub store: &'a Store,
    pub catalog: &'a Catalog,
    pub snapshot: &'a Snapshot,
    pub eval: EvalContext<'a>,
    pub cancel: &'a CancelFlag,
    pub params: &'a [Datum],
    /// Rows of a system catalog; see `session::system`.
    pub system: &'a dyn throng_catalog::SystemState,
    /// What functions have done in the evaluation in hand.
    pub effects: &'a Effects,
    /// Who runs users' functions; none where they cannot run.
    pub routines: Option<&'a dyn Routines>,
}

/// What an operator did, for EXPLAIN ANALYZE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    pub loops: u64,
    pub rows: u64,
    pub nanos: u64,
    /// Until the first row of each loop.
    pub first_nanos: u64,
}

/// Where a scan has found a row: of which table's entry, which version, and the slot that index
/// entries name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub rel: RelId,
    pub tid: Tid,
    pub root: Tid,
}

/// What a statement keeps between calls.
pub struct Memory {
    /// By the number of the plan's node; None when nobody asked.
    pub counters: Option<Vec<NodeCounters>>,
    pub outer: Vec<Datum>,
    /// None while one is running.
    pub subplans: Vec<Option<SubPlan>>,
    /// The rows of each recursion's last step.
    pub work_tables: Vec<RowList>,
    pub locked: Option<Locked>,
    /// The version that a scan gave last, and its chain's root.
    pub found: Option<Found>,
    pub part: Option<(u32, RowList)>,
    /// Operators that the analytics pool runs, if there is somebody to ask it.
    pub parts: Vec<u32>,
    /// By the number of an expression that is computed once.
    pub once: Vec<Option<Datum>>,
    pub items: ItemTables,
    turn: Turn,
    /// Bytes kept by sorts, hash tables and kept rows.
    used: usize,
    limit: usize,
}

/// How much of its turn on the core a statement has used; it goes on from row to row.
struct Turn {
    ticks: u32,
    /// When the turn began, once there has been reason to look at the clock.
    began: Option<Instant>,
}

impl Memory {
    /// `limit`: `work_mem` in bytes.
    pub fn new(outer_params: u32, subplans: usize, limit: usize) -> Memory {
        Memory {
            counters: None,
            outer: vec![Datum::Null; outer_params as usize],
            subplans: std::iter::repeat_with(|| None).take(subplans).collect(),
            work_tables: Vec::new(),
            locked: None,
            found: None,
            part: None,
            parts: Vec::new(),
            once: Vec::new(),
            items: ItemTables::default(),
            turn: Turn::default(),
            used: 0,
            limit,
        }
    }

    /// `limit`: `work_mem` in bytes.
    pub fn limit_to(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// A call took who knows how long: the next row looks at the clock.
    pub fn called(&mut self) {
        self.turn.ticks = 1;
    }

    /// As it was at first, of a run without subplans.
    pub fn reset(&mut self) {
        self.outer.fill(Datum::Null);
        self.work_tables.clear();
        self.parts.clear();
        self.once.fill(None);
        self.items.clear();
        self.locked = None;
        self.found = None;
        self.part = None;
        self.turn = Turn::default();
        self.used = 0;
    }
}

impl Default for Turn {
    fn default() -> Turn {
        Turn {
            ticks: TICKS,
            began: None,
        }
    }
}

/// What `next` is called with.
pub struct Cx<'a> {
    pub env: Env<'a>,
    pub eval: EvalContext<'a>,
    pub params: &'a [Datum],
    pub counters: Option<&'a mut Vec<NodeCounters>>,
    pub outer: &'a mut Vec<Datum>,
    pub subplans: &'a mut Vec<Option<SubPlan>>,
    pub work_tables: &'a mut Vec<RowList>,
    /// The answer to [`Suspension::Lock`].
    pub locked: &'a mut Option<Locked>,
    pub found: &'a mut Option<Found>,
    /// The answer to [`Suspension::Part`]: the rows, and which operator's they are.
    pub part: &'a mut Option<(u32, RowList)>,
    /// Operators that the analytics pool runs.
    pub parts: &'a [u32],
    /// Expressions that are computed once for all rows, by number; those beyond are computed each
    /// time.
    pub once: &'a mut [Option<Datum>],
    pub items: &'a mut ItemTables,
    /// Operands of the CASE expressions being evaluated.
    pub case_operands: Vec<Datum>,
    /// The rows that a [re-check](Recheck) is about.
    pub recheck: Option<Recheck>,
    used: &'a mut usize,
    limit: usize,
    turn: &'a mut Turn,
}

/// A row of a result that is asked for again, because a table's row of which it is made has a newer
/// version than the statement's snapshot shows. Each of these tables gives just the version named,
/// or no row, as on the side of an outer join that found none: what was locked for the row stays
/// what it is made of. PostgreSQL calls it `EvalPlanQual`.
pub type Recheck = Rc<[(RelId, Option<Tid>)]>;

impl<'a> Cx<'a> {
    pub fn new(env: Env<'a>, memory: &'a mut Memory) -> Cx<'a> {
        Cx {
            env,
            eval: env.eval,
            params: env.params,
            counters: memory.counters.as_mut(),
            outer: &mut memory.outer,
            subplans: &mut memory.subplans,
            work_tables: &mut memory.work_tables,
            locked: &mut memory.locked,
            found: &mut memory.found,
            part: &mut memory.part,
            parts: &memory.parts,
            once: &mut memory.once,
            items: &mut memory.items,
            case_operands: Vec::new(),
            recheck: None,
            used: &mut memory.used,
            limit: memory.limit,
            turn: &mut memory.turn,
        }
    }

    /// The only version that a table is to give, where a re-check says so: none, or one.
    #[inline]
    pub fn only_version(&self, rel: RelId) -> Option<Option<Tid>> {
        let versions = self.recheck.as_ref()?;
        let named = versions.iter().find(|(of, _)| *of == rel);
        named.map(|(_, version)| *version)
    }

    /// To be called for every row looked at: gives the core back when the slice is over, and
    /// notices a cancel.
    #[inline]
    pub fn tick(&mut self) -> Step<()> {
        self.turn.ticks -= 1;
        if self.turn.ticks == 0 {
            self.turn_over()
        } else {
            Ok(())
        }
    }

    /// Something was done that takes as long as looking at so many rows.
    #[inline]
    pub fn worked(&mut self, rows: u32) {
        self.turn.ticks = self.turn.ticks.saturating_sub(rows).max(1);
    }

    /// What is done with a long value takes long.
    #[inline]
    pub fn meet(&mut self, value: &Datum) {
        const LONG: usize = 1 << 16;
        match value {
            Datum::Text(text) if text.len() > LONG => self.turn.ticks = 1,
            Datum::Numeric(number) if number.is_wide() => self.turn.ticks = 1,
            _ => {}
        }
    }

    /// A value was made. 53200 for a long one while long values take more memory than they may; and
    /// whoever makes long values, or such as take their time, is asked for the time at the next
    /// row: a hundred of them are seconds.
    #[inline]
    pub fn weigh(&mut self, value: &Datum) -> Result<()> {
        self.meet(value);
        if interrupt::has_taken_time() {
            self.turn.ticks = 1;
        }
        match heap::is_full() {
            false => Ok(()),
            true => refuse_long(value),
        }
    }

    #[cold]
    fn turn_over(&mut self) -> Step<()> {
        self.turn.ticks = TICKS;
        self.env.cancel.check()?;
        let now = Instant::now();
        let began = *self.turn.began.get_or_insert(now);
        if now - began < SLICE {
            return Ok(());
        }
        self.turn.began = None;
        Err(Suspension::Yield)
    }

    /// The expressions of a row are evaluated: they will not be evaluated for it again.
    #[inline]
    pub fn evaluated(&self) {
        self.env.effects.done();
    }

    /// Whether the statement keeps no more than it may.
    pub fn has_room(&self) -> bool {
        *self.used <= self.limit
    }

    /// `work_mem` in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }
}

/// What an operator may keep, one so-manieth of `work_mem`, and bytes: where others of the
/// statement keep the rest, it still gets on.
const LEAST_SHARE: (usize, usize) = (8, 64 << 10);

/// 53200 for a value that takes as much as the allocator counts.
#[cold]
fn refuse_long(value: &Datum) -> Result<()> {
    match datum_bytes(value) >= heap::LONG {
        true => Err(length::no_room()),
        false => Ok(()),
    }
}

/// 53200: `limit` is `work_mem` in bytes.
pub fn too_much_kept(limit: usize) -> Error {
    Error::new(state::OUT_OF_MEMORY, "out of memory")
        .detail(format!(
            "The statement needs more than work_mem, {} kB, for the rows it keeps.",
            limit / 1024
        ))
        .hint("Raise work_mem for this session, or have the statement sort, group or join fewer rows.")
}

/// The memory of the rows an operator keeps, as the statement's account has it.
#[derive(Default)]
pub struct RowMemory(usize);

impl RowMemory {
    /// So many bytes more, if there is room for them: in what the statement may keep, or else in
    /// the operator's least share.
    pub fn fits(&mut self, bytes: usize, cx: &mut Cx) -> bool {
        let least = (cx.limit / LEAST_SHARE.0).max(LEAST_SHARE.1);
        let fits =
            cx.used.saturating_add(bytes) <= cx.limit || self.0.saturating_add(bytes) <= least;
        if fits {
            self.insist(bytes, cx);
        }
        fits
    }

    /// So many bytes more, which nothing can be done without.
    pub fn insist(&mut self, bytes: usize, cx: &mut Cx) {
        self.0 += bytes;
        *cx.used += bytes;
    }

    /// So many bytes more of what must be in memory as a whole; 53200 past the most that this may
    /// be.
    pub fn need(&mut self, bytes: usize, cx: &mut Cx) -> Result<()> {
        let most = cx.limit.max(MOST_AS_A_WHOLE);
        self.insist(bytes, cx);
        match self.0 <= most {
            true => Ok(()),
            false => Err(too_much_kept(most)),
        }
    }

    /// So many bytes more; 53200 where they do not [fit](Self::fits).
    pub fn add(&mut self, bytes: usize, cx: &mut Cx) -> Result<()> {
        match self.fits(bytes, cx) {
            true => Ok(()),
            false => Err(too_much_kept(cx.limit)),
        }
    }

    /// So many bytes less: some of the rows are kept no more.
    pub fn give_back(&mut self, bytes: usize, cx: &mut Cx) {
        let bytes = bytes.min(self.0);
        self.0 -= bytes;
        *cx.used -= bytes;
    }

    /// The rows are let go.
    pub fn release(&mut self, cx: &mut Cx) {
        self.give_back(self.0, cx);
    }
}
