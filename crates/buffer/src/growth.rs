//! The order in which a file grows, apart from what it grows by: one source for the pool and for
//! its models.
//!
//! Growing takes the file's lock. What must be under it is little: the length is read (so that
//! nobody starts at the same block), the new frames are published there, the file is made longer,
//! and the blocks are offered to whoever has waited. Two choices, made when the pool is opened, say
//! where the rest is done (PolarDB's case, see `docs/design/extension.md`):
//!
//! ```text
//!                          narrow, outside   narrow, inside   wide, outside   wide, inside
//!   1. frames are found         before            ║              before            ║
//!   2. their pages zeroed       before           after              ║              ║
//!   3. length is read              ║               ║                ║              ║
//!   4. frames published            ║               ║                ║              ║       ║  under the lock
//!   5. file made longer            ║               ║                ║              ║
//!   6. blocks offered              ║               ║                ║              ║
//!   7. pages opened             after            after              ║              ║
//! ```
//!
//! *Inside* also means that whoever grows the file finds its frames itself and writes what is dirty
//! in them; *outside*, that it takes those that the page writer has cleaned ahead. "Wide, inside"
//! is the form that collapsed: 64 loads, 98.7 % of their waiting on this one lock. "Narrow,
//! outside" is the one in use.
//!
//! *Waiters look again.* Whoever had to wait for the lock, or finds the file longer than when he
//! looked, asks once more, holding it, whether there is room now: the one before has offered what
//! he did not need himself (6), under the same lock. So ten that wait make the file longer once,
//! not ten times.

use std::str::FromStr;

use throng_observe::{Holder, HolderCell};
use throng_sync::Latch;

/// How much of growing a file is done under its lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExtendLock {
    /// All of it.
    Wide,
    /// What others must not see half done.
    #[default]
    Narrow,
}

impl ExtendLock {
    pub const ALL: [ExtendLock; 2] = [ExtendLock::Wide, ExtendLock::Narrow];

    /// As the setting `lab_extend_lock` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            ExtendLock::Wide => "wide",
            ExtendLock::Narrow => "narrow",
        }
    }
}

impl FromStr for ExtendLock {
    type Err = ();
    fn from_str(name: &str) -> Result<ExtendLock, ()> {
        ExtendLock::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or(())
    }
}

/// Where whoever makes a file longer finds frames for the new pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    /// Under the lock, by the clock, writing what is dirty.
    Inside,
    /// Before the lock, from the stock that the page writer keeps.
    Outside,
}

impl Victims {
    pub const ALL: [Victims; 2] = [Victims::Inside, Victims::Outside];

    /// As the setting `lab_extend_victims` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Victims::Inside => "inside",
            Victims::Outside => "outside",
        }
    }
}

impl FromStr for Victims {
    type Err = ();
    fn from_str(name: &str) -> Result<Victims, ()> {
        Victims::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or(())
    }
}

/// How the pool makes files longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    pub lock: ExtendLock,
    pub victims: Victims,
    /// Pages one extension adds at most, [`Extension::MOST`] or fewer.
    pub bulk: u32,
}

impl Extension {
    /// 4 MB: the most that PolarDB's bulk extension adds, and few enough to be latched at once.
    pub const MOST: u32 = 512;
    /// 512 KB: a few loads at once leave room for others.
    pub const USUAL: u32 = 64;

    fn finds_before(self) -> bool {
        self.victims == Victims::Outside
    }
    fn zeroes_before(self) -> bool {
        self.finds_before() && self.lock == ExtendLock::Narrow
    }
    fn zeroes_after(self) -> bool {
        !self.finds_before() && self.lock == ExtendLock::Narrow
    }
}

impl Default for Extension {
    fn default() -> Extension {
        Extension {
            lock: ExtendLock::Narrow,
            victims: Victims::Outside,
            bulk: Extension::USUAL,
        }
    }
}

/// A file's growth: whoever holds it reads the length and changes it.
#[derive(Default)]
pub(crate) struct GrowthLock {
    latch: Latch,
    holder: HolderCell,
}

/// Proof that nobody else makes the file longer or shorter.
pub(crate) struct Growing<'a>(&'a Latch);

impl GrowthLock {
    pub(crate) fn try_lock(&self) -> Option<Growing<'_>> {
        self.latch.try_exclusive().then(|| self.held())
    }

    pub(crate) fn lock(&self) -> Growing<'_> {
        self.latch.exclusive();
        self.held()
    }

    fn held(&self) -> Growing<'_> {
        self.holder.note();
        Growing(&self.latch)
    }

    /// Who has it, for the reports of those who wait.
    pub(crate) fn holder(&self) -> Holder {
        self.holder.holder()
    }
}

impl Drop for Growing<'_> {
    fn drop(&mut self) {
        self.0.unlock_exclusive();
    }
}

/// What growing acts on. Each method is a step of the module's picture.
pub(crate) trait Grow {
    /// Room that somebody else has made.
    type Found;
    /// Why it cannot go on.
    type Stop;

    /// 1. At least one frame, and as many more as are wanted and to be had.
    fn find_frames(&mut self, victims: Victims) -> Result<(), Self::Stop>;
    /// 2. The frames' pages, published or not, become zeros.
    fn zero(&mut self);
    /// For who is late: whether there is room now.
    fn look_again(&mut self) -> Result<Option<Self::Found>, Self::Stop>;
    /// 3. and 4. At the file's length, all of them latched exclusively.
    fn publish(&mut self) -> Result<(), Self::Stop>;
    /// 5. On failure what was published is taken back.
    fn lengthen(&mut self) -> Result<(), Self::Stop>;
    /// 6. Tells of the new blocks.
    fn offer(&mut self);
    /// 7. Gives the latches back.
    fn open(&mut self);
    /// Frames that were found and not published go back.
    fn give_back(&mut self);
}

/// Makes a file longer, or finds that somebody has done it meanwhile. `lock` returns the file's
/// lock, held, and whether somebody else may have held it since the caller looked for room.
pub(crate) fn grow<'l, G: Grow>(
    how: Extension,
    lock: impl FnOnce() -> (Growing<'l>, bool),
    it: &mut G,
) -> Result<Option<G::Found>, G::Stop> {
    if how.finds_before() {
        it.find_frames(how.victims)?;
        if how.zeroes_before() {
            it.zero();
        }
    }
    let (growing, late) = lock();
    let done = grow_locked(how, late, it);
    drop(growing);
    match done {
        Ok(None) if how.lock == ExtendLock::Narrow => {
            if how.zeroes_after() {
                it.zero();
            }
            it.open();
        }
        Ok(None) => {}
        Ok(Some(_)) | Err(_) => it.give_back(),
    }
    done
}

fn grow_locked<G: Grow>(
    how: Extension,
    late: bool,
    it: &mut G,
) -> Result<Option<G::Found>, G::Stop> {
    if late && let Some(found) = it.look_again()? {
        return Ok(Some(found));
    }
    if !how.finds_before() {
        it.find_frames(how.victims)?;
    }
    if how.lock == ExtendLock::Wide {
        it.zero();
    }
    it.publish()?;
    it.lengthen()?;
    it.offer();
    if how.lock == ExtendLock::Wide {
        it.open();
    }
    Ok(None)
}
