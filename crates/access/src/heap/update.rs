//! Replacing, deleting and locking one version.
//!
//! The steps are the same for all three, under the page's latch:
//!
//! 1. What does the version's own header say ([`standing`])? It is mine to change only while
//!    nobody's `xmax` counts.
//! 2. Has another transaction locked the row in a way that conflicts?
//! 3. Then change it, in one log record; or note the lock.
//!
//! An update and a lock both look at both places under the latch (exclusive there, shared here), so
//! neither can slip past the other.

use throng_buffer::{ExclusiveGuard, Mtr, Try};
use throng_sync::SpinWait;
use throng_types::page::OFF_FLAGS as PAGE_FLAGS;
use throng_types::row::RowLayout;
use throng_types::{Cid, Tid, Xid};

use super::page::{self, PRUNABLE};
use super::read::{Ended, ender, maker};
use super::room::Room;
use super::tuple::{self, TUPLE_HEADER, TupleHeader};
use super::{Change, Heap, NewVersion, write};
use crate::{RowLockMode, TxContext, admit_write};

/// What step 1 finds.
enum Standing {
    Free,
    /// `xmax` is this transaction and runs.
    Held(Xid),
    Updated(Tid),
    Moved,
    Deleted,
    SelfModified,
    Invisible,
}

impl Standing {
    /// What to answer when the version is not free.
    fn refuse<T>(self) -> Option<Change<T>> {
        match self {
            Standing::Free => None,
            Standing::Held(xid) => Some(Change::Busy(xid)),
            Standing::Updated(tid) => Some(Change::Updated(tid)),
            Standing::Moved => Some(Change::Moved),
            Standing::Deleted => Some(Change::Deleted),
            Standing::SelfModified => Some(Change::SelfModified),
            Standing::Invisible => Some(Change::Invisible),
        }
    }
}

/// Whether `ctx` may change this version, by PostgreSQL's rules for command numbers.
fn standing(header: &TupleHeader, ctx: &dyn TxContext) -> Standing {
    match maker(header, ctx) {
        Ended::No(_) | Ended::Undone => Standing::Invisible,
        // My own running command, or a later one, made it.
        Ended::Done if ctx.is_mine(header.xmin) && header.cmin >= ctx.cid() => Standing::Invisible,
        Ended::Done => ending(header, ctx),
    }
}

/// The part of [`standing`] that `xmax` decides.
fn ending(header: &TupleHeader, ctx: &dyn TxContext) -> Standing {
    match ender(header, ctx) {
        Ended::Undone => Standing::Free,
        Ended::No(xid) => Standing::Held(xid),
        Ended::Done if ctx.is_mine(header.xmax) => {
            if header.cmax >= ctx.cid() {
                Standing::SelfModified
            } else {
                Standing::Invisible
            }
        }
        Ended::Done if header.next == Tid::MOVED => Standing::Moved,
        Ended::Done => header
            .successor()
            .map_or(Standing::Deleted, Standing::Updated),
    }
}

/// What an update or a delete writes into the version it ends.
pub(super) struct End {
    xmax: Xid,
    cmax: Cid,
    next: Tid,
    /// Flags to have; the ones about `xmax` that are not here go.
    flags: u16,
}

impl End {
    /// How a version has ended.
    pub fn of(header: &TupleHeader) -> End {
        End {
            xmax: header.xmax,
            cmax: header.cmax,
            next: header.next,
            flags: header.flags & (tuple::HOT_UPDATED | tuple::KEEPS_KEY),
        }
    }

    /// This end and that of the version after it as one: the key is kept if both keep it.
    pub fn then(&self, after: &TupleHeader) -> End {
        let mut both = End::of(after);
        both.flags &= self.flags | !tuple::KEEPS_KEY;
        both
    }

    pub fn write(&self, mtr: &mut Mtr<'_>, i: usize, at: usize, old: &TupleHeader) {
        const ABOUT_XMAX: u16 =
            tuple::XMAX_ALL | tuple::XMAX_ABORTED | tuple::HOT_UPDATED | tuple::KEEPS_KEY;
        let flags = old.flags & !ABOUT_XMAX | self.flags;
        let new = TupleHeader {
            xmax: self.xmax,
            cmax: self.cmax,
            next: self.next,
            flags,
            ..*old
        };
        let bytes = new.to_bytes();
        mtr.write(
            i,
            at + tuple::OFF_XMAX,
            &bytes[tuple::OFF_XMAX..tuple::OFF_CMIN],
        );
        mtr.write(i, at + tuple::OFF_TAIL, &bytes[tuple::OFF_TAIL..]);
        let page_flags = mtr.page(i)[PAGE_FLAGS];
        if page_flags & PRUNABLE == 0 {
            mtr.write(i, PAGE_FLAGS, &[page_flags | PRUNABLE]);
        }
    }
}

/// The version that is meant.
#[derive(Clone, Copy, Debug)]
pub struct VersionRef {
    pub tid: Tid,
    /// Who made it, if no snapshot keeps it there: its slot may have been given to another version.
    pub made_by: Option<Xid>,
}

impl VersionRef {
    fn is(&self, found: Option<&TupleHeader>) -> bool {
        let maker = found.map(|header| header.xmin);
        self.made_by.is_none() || self.made_by == maker
    }
}

impl From<Tid> for VersionRef {
    /// One that a snapshot shows.
    fn from(tid: Tid) -> VersionRef {
        VersionRef { tid, made_by: None }
    }
}

/// Where a new version goes.
enum Home<'p> {
    /// On the old one's page.
    Here(Room),
    /// On this page, latched too.
    There(ExclusiveGuard<'p>, Room),
}

impl Heap {
    /// Replaces a version by `row`. `mode` is [`RowLockMode::NoKeyUpdate`] when no key column
    /// changes, else [`RowLockMode::Update`]; `hot` says that no indexed column changes, so that
    /// the new version may share the old one's index entries if it finds room on its page.
    ///
    /// # Errors
    /// As [`Heap::insert`].
    pub fn update(
        &self,
        ctx: &dyn TxContext,
        which: impl Into<VersionRef>,
        row: &[u8],
        mode: RowLockMode,
        hot: bool,
    ) -> Try<Change<NewVersion>> {
        let which = which.into();
        let tid = which.tid;
        let size = write::tuple_size(row.len())?;
        admit_write(&self.pool)?;
        let xid = ctx.xid();
        let mut spin = SpinWait::new();
        loop {
            let guard = self.pool.exclusive(self.page_id(tid.block))?;
            if let Some(refusal) = self.refusal(&guard, ctx, which, mode) {
                return Ok(refusal);
            }
            let (guard, home) = match self.make_room(guard, ctx, size, 0) {
                (guard, Some(room)) => (guard, Home::Here(room)),
                (guard, None) => match self.other_page(&guard, ctx, size)? {
                    Other::Page(there, room) => (guard, Home::There(there, room)),
                    // Nothing is latched while the file grows, or while another inserter finishes.
                    Other::Full => {
                        drop(guard);
                        self.rel.extend(&self.pool, size)?;
                        continue;
                    }
                    Other::Latched => {
                        drop(guard);
                        if !spin.spin() {
                            std::thread::yield_now();
                        }
                        continue;
                    }
                },
            };
            return Ok(Change::Done(
                self.replace(ctx, xid, guard, home, tid, row, mode, hot),
            ));
        }
    }

    /// Steps 1 and 2.
    fn refusal<T>(
        &self,
        page: &ExclusiveGuard<'_>,
        ctx: &dyn TxContext,
        which: VersionRef,
        mode: RowLockMode,
    ) -> Option<Change<T>> {
        let found = version(page, which.tid).map(|(_, _, header)| header);
        if !which.is(found.as_ref()) {
            return Some(Change::Lost);
        }
        let Some(header) = found else {
            return Some(Change::Deleted);
        };
        standing(&header, ctx).refuse().or_else(|| {
            ctx.row_lock_conflict(self.file(), which.tid, mode)
                .map(Change::Busy)
        })
    }

    /// A second page, for a version that does not fit beside its predecessor. Only tried, never
    /// waited for: whoever holds it may be waiting for ours.
    fn other_page(
        &self,
        here: &ExclusiveGuard<'_>,
        ctx: &dyn TxContext,
        size: usize,
    ) -> Try<Other<'_>> {
        let reserve = self.rel.reserve();
        loop {
            let Some(block) = self.rel.target(&self.pool, size)? else {
                return Ok(Other::Full);
            };
            if block == here.page_id().block() {
                self.rel.refused(block, size, page::room(&**here));
                continue;
            }
            let Some(there) = self.pool.try_exclusive(self.page_id(block))? else {
                return Ok(Other::Latched);
            };
            let (there, room) = self.make_room(there, ctx, size, reserve);
            if let Some(room) = room {
                return Ok(Other::Page(there, room));
            }
            self.rel.refused(block, size, page::room(&*there));
        }
    }

    /// Step 3 of an update. The new version first: its slot is what the old one's `next` names.
    #[expect(clippy::too_many_arguments, reason = "one call, the end of `update`")]
    fn replace(
        &self,
        ctx: &dyn TxContext,
        xid: Xid,
        guard: ExclusiveGuard<'_>,
        home: Home<'_>,
        tid: Tid,
        row: &[u8],
        mode: RowLockMode,
        hot: bool,
    ) -> NewVersion {
        let mut mtr = Mtr::new(&self.pool, xid);
        let here = mtr.add(guard);
        let (to, block, room) = match home {
            Home::Here(room) => (here, tid.block, room),
            Home::There(there, room) => {
                let block = there.page_id().block();
                (mtr.add(there), block, room)
            }
        };
        let new = Tid::new(block, room.slot);
        let hot = hot && to == here;
        let flag = |on: bool, flag: u16| if on { flag } else { 0 };
        let header = TupleHeader::new(xid, ctx.cid(), flag(hot, tuple::HEAP_ONLY));
        self.put(&mut mtr, to, room, &header, row);
        let (at, len, old) =
            page::tuple(mtr.page(here), tid.slot).expect("the version was there under this latch");
        let old_has_large = RowLayout::has_external(&mtr.page(here)[at..at + len][TUPLE_HEADER..]);
        let keeps_key = mode != RowLockMode::Update;
        let flags = flag(hot, tuple::HOT_UPDATED) | flag(keeps_key, tuple::KEEPS_KEY);
        End {
            xmax: xid,
            cmax: ctx.cid(),
            next: new,
            flags,
        }
        .write(&mut mtr, here, at, &old);
        ctx.row_moved(self.file(), tid, new);
        mtr.commit();
        self.rel.note_updated(hot);
        NewVersion {
            tid: new,
            hot,
            old_has_large,
        }
    }

    /// Ends a version with nothing after it.
    pub fn delete(&self, ctx: &dyn TxContext, which: impl Into<VersionRef>) -> Try<Change<()>> {
        self.end(ctx, which.into(), Tid::NONE)
    }

    /// Ends a version of a row that goes on in another relation: who waits for it learns that.
    pub fn take_out(&self, ctx: &dyn TxContext, which: impl Into<VersionRef>) -> Try<Change<()>> {
        self.end(ctx, which.into(), Tid::MOVED)
    }

    fn end(&self, ctx: &dyn TxContext, which: VersionRef, next: Tid) -> Try<Change<()>> {
        let tid = which.tid;
        admit_write(&self.pool)?;
        let xid = ctx.xid();
        let guard = self.pool.exclusive(self.page_id(tid.block))?;
        if let Some(refusal) = self.refusal(&guard, ctx, which, RowLockMode::Update) {
            return Ok(refusal);
        }
        let (at, _, old) = version(&guard, tid).expect("a version that may be changed is there");
        let mut mtr = Mtr::new(&self.pool, xid);
        let i = mtr.add(guard);
        End {
            xmax: xid,
            cmax: ctx.cid(),
            next,
            flags: 0,
        }
        .write(&mut mtr, i, at, &old);
        mtr.commit();
        self.rel.note_deleted();
        Ok(Change::Done(()))
    }

    /// Who made the version `tid`: what tells it from another one that is given its slot. `None`
    /// when there is no tuple there.
    pub fn maker_of(&self, tid: Tid) -> Try<Option<Xid>> {
        let page = self.pool.shared(self.page_id(tid.block))?;
        Ok(version(&page, tid).map(|(_, _, header)| header.xmin))
    }

    /// Locks the row at a version against others. Writes nothing to the page.
    ///
    /// [`RowLockMode::KeyShare`] does not wait for a running update that leaves the key alone, and
    /// does not mind a committed one; it then locks the versions that update has made as well, so
    /// that it holds whichever of them remains.
    pub fn lock(
        &self,
        ctx: &dyn TxContext,
        which: impl Into<VersionRef>,
        mode: RowLockMode,
    ) -> Try<Change<()>> {
        let which = which.into();
        let tid = which.tid;
        // The version to lock, and for a later one the `xmax` of the version before it.
        let mut at = tid;
        let mut made_by: Option<Xid> = None;
        // A committed update that is passed over leads here; so it does once a later version is in
        // the way.
        let mut successor: Option<Tid> = None;
        loop {
            let page = self.pool.shared(self.page_id(at.block))?;
            let found = version(&page, at).map(|(_, _, header)| header);
            if made_by.is_none() && !which.is(found.as_ref()) {
                return Ok(Change::Lost);
            }
            let Some(header) = found.filter(|header| made_by.is_none_or(|xid| header.xmin == xid))
            else {
                // Past the first one: the update was rolled back, and what it made is gone.
                return Ok(if made_by.is_some() {
                    Change::Done(())
                } else {
                    Change::Deleted
                });
            };
            let standing = if made_by.is_none() {
                standing(&header, ctx)
            } else {
                ending(&header, ctx)
            };
            let keeps_key = header.keeps_key() && mode == RowLockMode::KeyShare;
            let passes = match standing {
                Standing::Free => true,
                Standing::Held(_) => keeps_key,
                Standing::Updated(next) if keeps_key => {
                    successor.get_or_insert(next);
                    true
                }
                _ => false,
            };
            if !passes {
                if let Some(next) = successor
                    && !matches!(standing, Standing::Held(_))
                {
                    return Ok(Change::Updated(next));
                }
                if made_by.is_some() && !matches!(standing, Standing::Held(_)) {
                    // The update has been committed meanwhile: the first version tells the rest.
                    (at, made_by) = (tid, None);
                    continue;
                }
                return Ok(standing.refuse().unwrap_or(Change::Done(())));
            }
            if let Some(holder) = ctx.row_lock_acquire(self.file(), at, mode) {
                return Ok(Change::Busy(holder));
            }
            let Some(next) = header
                .successor()
                .filter(|_| !matches!(standing, Standing::Free))
            else {
                return Ok(Change::Done(()));
            };
            (at, made_by) = (next, Some(header.xmax));
        }
    }
}

/// What became of the search for a second page.
enum Other<'p> {
    Page(ExclusiveGuard<'p>, Room),
    /// No block is known to have room.
    Full,
    /// The one that has is in use just now.
    Latched,
}

fn version(
    page: &[u8; throng_types::page::PAGE_SIZE],
    tid: Tid,
) -> Option<(usize, usize, TupleHeader)> {
    if page::is_heap(page) {
        page::tuple(page, tid.slot)
    } else {
        None
    }
}
