//! Pruning: taking dead versions off one page.
//!
//! Needs nothing but the page and its exclusive latch. Readers copy rows out and validate, so
//! nobody holds on to a tuple's place; only slot numbers last.
//!
//! ```text
//!  root slot 1 ─► dead ─► dead ─► live       1 becomes a redirect to live's slot, the dead ones' other slots unused
//!  root slot 1 ─► dead ─► dead               1 becomes dead: indexes may still name it
//!  heap-only tuple that no chain reaches     (its maker was rolled back) its slot becomes unused
//!
//!  old ─► between ─► between ─► live         old ─► live: it ends now as the last of them did
//! ```
//! In the last line a long reader's snapshot shows `old`, and no snapshot shows those between
//! (`TxContext::gaps`): a row that a crowd changes does not grow while somebody looks at the table.
//! The first version of a page's chain stays, seen or not: another page's may lead to it. (Böttcher
//! et al., "Scalable Garbage Collection for In-Memory MVCC Systems", VLDB 2019, take versions out
//! of the middle of chains, too.)
//!
//! The tuples that stay slide to the page's end, so that its room is one hole.

use throng_buffer::{ExclusiveGuard, Mtr, Try};
use throng_types::page::{HEADER, OFF_FLAGS, OFF_LOWER, OFF_UPPER, PAGE_SIZE};
use throng_types::{BlockNo, Csn, Tid, Xid};

use super::page::{
    self, ALIGN, FREE_SLOTS, MAX_SLOTS, PRUNABLE, PageBytes, SLOT, Slot, aligned, slot_offset,
};
use super::read::{Chain, Version};
use super::tuple::{self, TupleHeader};
use super::update::End;
use super::{Heap, room};
use crate::{Gaps, TxContext, XidStatus};

/// What pruning a page did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Versions taken away.
    pub removed: u16,
    /// Slots that became dead.
    pub new_dead: u16,
    /// Room on the page afterwards, in bytes.
    pub room: usize,
}

/// How a version stands to everybody, now and later.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nobody sees it, nobody will.
    Dead,
    /// Nobody sees it, nobody will, but a version before it is still seen.
    Between,
    /// Somebody may, but it is deleted or replaced, or being so.
    Ending,
    Staying,
}

/// What is on a page, by slot.
type Tuples = [Option<Look>; MAX_SLOTS as usize];

/// A tuple, looked at once.
#[derive(Clone, Copy)]
struct Look {
    fate: Fate,
    is_heap_only: bool,
}

/// How far back anybody looks: see [`TxContext::prunable`], [`TxContext::horizon`] and
/// [`TxContext::gaps`].
#[derive(Clone, Copy)]
struct Horizons {
    prunable: Csn,
    durable: Csn,
    gaps: Gaps,
}

impl Horizons {
    /// With the gaps between snapshots, which only a page's chains ask for.
    fn and_between(ctx: &dyn TxContext) -> Horizons {
        let horizons = Horizons::of(ctx);
        Horizons {
            gaps: ctx.gaps(),
            ..horizons
        }
    }

    fn of(ctx: &dyn TxContext) -> Horizons {
        Horizons {
            durable: ctx.horizon(),
            prunable: ctx.prunable(),
            gaps: Gaps::default(),
        }
    }
}

/// A version's fate, and the hints that were found out on the way: those are not logged, so they
/// wait for the disk.
fn fate(header: &TupleHeader, ctx: &dyn TxContext, horizons: &Horizons) -> (Fate, u16) {
    let &Horizons {
        prunable,
        durable,
        ref gaps,
    } = horizons;
    let hint = |csn: Csn, bit: u16| if csn <= durable { bit } else { 0 };
    // Who finds a row's next version in its place learns of the commit that made it. Where nothing
    // is found nothing tells of the commit that took it away, so that one is on disk.
    let gone_by = match header.is_hot_updated() {
        true => prunable,
        false => durable,
    };
    let mut hints = 0;
    let mut made = None;
    if header.xmin_aborted() {
        return (Fate::Dead, 0);
    }
    if !header.xmin_seen_by_all() {
        match ctx.status(header.xmin) {
            XidStatus::Aborted => return (Fate::Dead, tuple::XMIN_ABORTED),
            XidStatus::Committed(csn) => {
                hints |= hint(csn, tuple::XMIN_ALL);
                made = Some(csn);
            }
            _ => {}
        }
    }
    if header.xmax_is_void() {
        return (Fate::Staying, hints);
    }
    if header.xmax_seen_by_all() {
        return (Fate::Dead, hints);
    }
    match ctx.status(header.xmax) {
        XidStatus::Aborted => (Fate::Staying, hints | tuple::XMAX_ABORTED),
        XidStatus::Committed(csn) if csn <= gone_by => {
            (Fate::Dead, hints | hint(csn, tuple::XMAX_ALL))
        }
        XidStatus::Committed(csn) if made.is_some_and(|made| gaps.cover(made, csn)) => {
            (Fate::Between, hints)
        }
        _ => (Fate::Ending, hints),
    }
}

pub(super) fn is_dead_to_all(header: &TupleHeader, ctx: &dyn TxContext) -> bool {
    fate(header, ctx, &Horizons::of(ctx)).0 == Fate::Dead
}

/// What a page will be like: made by looking, carried out in a mini-transaction.
pub(super) struct Plan {
    /// Slot `n` at `n - 1`.
    slots: [Slot; MAX_SLOTS as usize],
    /// Slots now.
    count: u16,
    /// Slots afterwards: unused ones at the end are given up.
    keep: u16,
    flags: u8,
    pub removed: u16,
    pub new_dead: u16,
    pub dead: u16,
    /// Versions that stay.
    pub kept: u16,
    /// Those of them that are deleted or replaced, or being so.
    pub ending: u16,
    /// Bytes from the lowest tuple to the page's end now.
    filled: usize,
    /// Bytes that the tuples that stay take.
    used: usize,
    /// Of versions that stay: how those after them ended that do not.
    ends: Vec<(u16, End)>,
    /// Where on the page which hint may be set.
    pub hints: Vec<(usize, u8)>,
}

impl Plan {
    /// Looks at a heap page.
    pub fn new(page: &[u8; PAGE_SIZE], block: BlockNo, ctx: &dyn TxContext) -> Plan {
        let count = page::slot_count(page);
        let mut plan = Plan {
            slots: [Slot::Unused; MAX_SLOTS as usize],
            count,
            keep: 0,
            flags: page.u8(OFF_FLAGS) & !(PRUNABLE | FREE_SLOTS),
            removed: 0,
            new_dead: 0,
            dead: 0,
            kept: 0,
            ending: 0,
            filled: PAGE_SIZE - usize::from(page.u16(OFF_UPPER)),
            used: 0,
            ends: Vec::new(),
            hints: Vec::new(),
        };
        let mut tuples: Tuples = [None; MAX_SLOTS as usize];
        let horizons = Horizons::and_between(ctx);
        for n in 1..=count {
            let i = usize::from(n) - 1;
            plan.slots[i] = page::slot(page, n);
            if let Slot::Normal { off, .. } = plan.slots[i] {
                let header = TupleHeader::read(page, off.into());
                let (fate, found) = fate(&header, ctx, &horizons);
                tuples[i] = Some(Look {
                    fate,
                    is_heap_only: header.is_heap_only(),
                });
                if found != 0 {
                    plan.hints
                        .push((usize::from(off) + tuple::OFF_FLAGS, found as u8));
                }
            }
        }
        plan.cut_chains(page, block, &tuples);
        plan.sum_up(&tuples);
        plan
    }

    fn cut_chains(&mut self, page: &[u8; PAGE_SIZE], block: BlockNo, tuples: &Tuples) {
        let tuple = |slot: u16| tuples.get(usize::from(slot).checked_sub(1)?).copied()?;
        let fate_of = |slot: u16| tuple(slot).map_or(Fate::Staying, |tuple| tuple.fate);
        let mut reached = [false; MAX_SLOTS as usize];
        for root in 1..=self.count {
            let first = match self.slots[usize::from(root) - 1] {
                Slot::Redirect(target) => target,
                _ if tuple(root).is_some_and(|tuple| !tuple.is_heap_only) => root,
                // Nobody's root.
                _ => continue,
            };
            // Most rows are one version.
            if tuple(first).is_some_and(|tuple| tuple.fate == Fate::Staying) {
                reached[usize::from(first) - 1] = true;
                continue;
            }
            let mut dead = 0u16;
            let mut first_kept = None;
            let mut last_kept: Option<Version> = None;
            for version in Chain::new(page, Tid::new(block, root)) {
                let slot = version.slot;
                reached[usize::from(slot) - 1] = true;
                let fate = fate_of(slot);
                match (fate, &last_kept) {
                    (Fate::Dead, None) => {
                        dead += 1;
                        continue;
                    }
                    (Fate::Between, Some(before)) => {
                        self.skip(before, &version);
                        continue;
                    }
                    _ => {}
                }
                first_kept = first_kept.or(Some(slot));
                last_kept = Some(version);
                // What replaced it, if anything, was rolled back, though no hint says so yet.
                if fate == Fate::Staying {
                    break;
                }
            }
            if dead == 0 {
                continue;
            }
            for Version { slot, .. } in Chain::new(page, Tid::new(block, root)).take(dead.into()) {
                self.slots[usize::from(slot) - 1] = Slot::Unused;
            }
            self.removed += dead;
            self.slots[usize::from(root) - 1] = match first_kept {
                Some(slot) => Slot::Redirect(slot),
                None => {
                    self.new_dead += 1;
                    Slot::Dead
                }
            };
        }
        for (i, slot) in self.slots[..self.count.into()].iter_mut().enumerate() {
            // A heap-only tuple that no chain reaches.
            let is_orphan =
                |look: Look| !reached[i] && look.is_heap_only && look.fate == Fate::Dead;
            if matches!(slot, Slot::Normal { .. }) && tuples[i].is_some_and(is_orphan) {
                *slot = Slot::Unused;
                self.removed += 1;
            }
        }
    }

    /// A version goes; the one `before` it, which stays, ends as it did.
    fn skip(&mut self, before: &Version, version: &Version) {
        self.slots[usize::from(version.slot) - 1] = Slot::Unused;
        self.removed += 1;
        match self.ends.last_mut() {
            Some((slot, end)) if *slot == before.slot => *end = end.then(&version.header),
            _ => {
                let end = End::of(&before.header).then(&version.header);
                self.ends.push((before.slot, end));
            }
        }
    }

    fn sum_up(&mut self, tuples: &Tuples) {
        for (i, slot) in self.slots[..self.count.into()].iter().enumerate() {
            match *slot {
                Slot::Unused => continue,
                Slot::Normal { len, .. } => {
                    self.used += aligned(len.into());
                    self.kept += 1;
                    if tuples[i].is_some_and(|tuple| tuple.fate != Fate::Staying) {
                        self.flags |= PRUNABLE;
                        self.ending += 1;
                    }
                }
                Slot::Dead => self.dead += 1,
                Slot::Redirect(_) => {}
            }
            self.keep = i as u16 + 1;
        }
        if self.slots[..self.keep.into()].contains(&Slot::Unused) {
            self.flags |= FREE_SLOTS;
        }
    }

    /// Whether there is anything to do: slots to give up, or bytes among the tuples that none that
    /// stays takes.
    pub fn gains(&self) -> bool {
        self.keep < self.count || self.filled > self.used
    }

    /// Whether a tuple of `size` bytes will have room.
    pub fn fits(&self, size: usize) -> bool {
        let hole = PAGE_SIZE - self.used - HEADER - usize::from(self.keep) * SLOT;
        let new_slot = if self.flags & FREE_SLOTS != 0 {
            0
        } else {
            SLOT
        };
        (new_slot == 0 || self.keep < MAX_SLOTS) && hole >= aligned(size) + new_slot
    }

    /// The slot that a new tuple will get.
    pub fn slot_for_new(&self) -> u16 {
        let unused = self.slots[..self.keep.into()]
            .iter()
            .position(|slot| *slot == Slot::Unused);
        unused.map_or(self.keep, |i| i as u16) + 1
    }

    /// The tightest place of a tuple that goes which holds one of `size` bytes.
    pub fn place_of_dead(&self, page: &[u8; PAGE_SIZE], size: usize) -> Option<u16> {
        let places = (1..=self.count).filter_map(|n| match page::slot(page, n) {
            Slot::Normal { off, len } if !self.stays(n) => Some((aligned(len.into()), off)),
            _ => None,
        });
        places
            .filter(|&(room, _)| room >= aligned(size))
            .min()
            .map(|(_, off)| off)
    }

    /// Whether the tuple in slot `n` stays.
    fn stays(&self, n: u16) -> bool {
        matches!(self.slots[usize::from(n) - 1], Slot::Normal { .. })
    }

    /// Tells the page what was found out about its transactions.
    pub fn set_hints(&self, guard: &mut ExclusiveGuard<'_>) {
        for &(off, bits) in &self.hints {
            guard.hint(off, bits);
        }
    }

    /// Changes slots and header alone: no tuple moves, and what goes leaves gaps.
    pub fn apply_in_place(&self, mtr: &mut Mtr<'_>, i: usize) {
        for n in 1..=self.keep {
            let new = self.slots[usize::from(n) - 1];
            if page::slot(mtr.page(i), n) != new {
                mtr.write(i, slot_offset(n), &new.encode().to_le_bytes());
            }
        }
        let lower = (HEADER + usize::from(self.keep) * SLOT) as u16;
        mtr.write(i, OFF_FLAGS, &[self.flags | PRUNABLE]);
        mtr.write(i, OFF_LOWER, &lower.to_le_bytes());
        self.write_ends(mtr, i);
    }

    /// Changes the page: tuples slide up, then slots and header follow.
    pub fn apply(&mut self, mtr: &mut Mtr<'_>, i: usize) {
        let upper = self.compact(mtr, i);
        let bytes = self.slots[..self.keep.into()]
            .iter()
            .flat_map(|slot| slot.encode().to_le_bytes());
        write_changed(mtr, i, slot_offset(1), &bytes.collect::<Vec<_>>());
        let lower = HEADER + usize::from(self.keep) * SLOT;
        mtr.write(i, OFF_FLAGS, &[self.flags]);
        mtr.write(i, OFF_LOWER, &room::bounds(lower, upper));
        self.write_ends(mtr, i);
    }

    /// When all tuples are in their places.
    fn write_ends(&self, mtr: &mut Mtr<'_>, i: usize) {
        for (slot, end) in &self.ends {
            let (at, _, old) = page::tuple(mtr.page(i), *slot).expect("a version that stays");
            end.write(mtr, i, at, &old);
        }
    }

    /// Slides the tuples that stay to the page's end, in runs that move together. Returns the new
    /// `upper`.
    fn compact(&mut self, mtr: &mut Mtr<'_>, i: usize) -> usize {
        let mut stay: Vec<(usize, usize, usize)> = Vec::with_capacity(self.kept.into());
        for (at, slot) in self.slots[..self.keep.into()].iter().enumerate() {
            if let Slot::Normal { off, len } = *slot {
                stay.push((off.into(), aligned(len.into()), at));
            }
        }
        // From the page's end down: a tuple's new place is then never above one still to be moved.
        stay.sort_unstable_by(|a, b| b.cmp(a));
        let mut upper = PAGE_SIZE;
        let mut run: Option<Run> = None;
        for (off, size, at) in stay {
            upper -= size;
            debug_assert!(upper >= off && off % ALIGN == 0);
            let Slot::Normal { off: place, .. } = &mut self.slots[at] else {
                unreachable!("only tuples were collected")
            };
            *place = upper as u16;
            run = Some(match run.take() {
                Some(r) if r.src == off + size && r.dst == upper + size => Run {
                    src: off,
                    dst: upper,
                    len: r.len + size,
                },
                done => {
                    Run::carry_out(done, mtr, i);
                    Run {
                        src: off,
                        dst: upper,
                        len: size,
                    }
                }
            });
        }
        Run::carry_out(run, mtr, i);
        upper
    }
}

/// Tuples next to each other that move by the same distance.
struct Run {
    src: usize,
    dst: usize,
    len: usize,
}

impl Run {
    fn carry_out(run: Option<Run>, mtr: &mut Mtr<'_>, i: usize) {
        if let Some(Run { src, dst, len }) = run
            && src != dst
        {
            mtr.move_within(i, src, dst, len);
        }
    }
}

/// Writes `bytes` at `off`, from the first byte that differs to the last.
fn write_changed(mtr: &mut Mtr<'_>, i: usize, off: usize, bytes: &[u8]) {
    let old = &mtr.page(i)[off..off + bytes.len()];
    let Some(first) = old.iter().zip(bytes).position(|(a, b)| a != b) else {
        return;
    };
    let last = old
        .iter()
        .zip(bytes)
        .rposition(|(a, b)| a != b)
        .expect("the first difference is one");
    mtr.write(i, off + first, &bytes[first..=last]);
}

impl Heap {
    /// Takes what is dead off the block.
    pub fn prune(&self, block: BlockNo, ctx: &dyn TxContext) -> Try<Pruned> {
        let guard = self.pool.exclusive(self.page_id(block))?;
        if !page::is_heap(&*guard) {
            return Ok(Pruned::default());
        }
        let plan = Plan::new(&guard, block, ctx);
        let (_guard, pruned) = self.carry_out(guard, plan);
        Ok(pruned)
    }

    /// Does what a plan made under this latch says.
    pub(super) fn carry_out<'p>(
        &'p self,
        mut guard: ExclusiveGuard<'p>,
        mut plan: Plan,
    ) -> (ExclusiveGuard<'p>, Pruned) {
        plan.set_hints(&mut guard);
        if plan.gains() {
            let mut mtr = Mtr::new(&self.pool, Xid::NONE);
            let i = mtr.add(guard);
            plan.apply(&mut mtr, i);
            let (_, mut guards) = mtr.commit_keep();
            guard = guards.pop().expect("the page was added");
            self.rel
                .note_pruned(plan.removed.into(), plan.new_dead.into());
        }
        let room = page::room(&*guard);
        (
            guard,
            Pruned {
                removed: plan.removed,
                new_dead: plan.new_dead,
                room,
            },
        )
    }
}
