//! Making room: a full leaf is split, and whatever above it is too full for the new separator, in
//! one mini-transaction.
//!
//! A split only makes room; whoever needed it then looks for its leaf again. So there is one way to
//! insert, and a tree between a split and the insertion that asked for it is like any other.
//!
//! 1. *Guess*, optimistically, the lowest page above the leaf that will take a separator without
//!    being split itself.
//! 2. *Latch* that page if it has not changed since (or, after a few vain tries, the root, whatever
//!    it is like), and from there on down to the leaf each child before anything is let go.
//! 3. *Plan* upwards from the leaf: where each page is cut, which separator goes up. Ends at a page
//!    with room, or splits the root; when the guess was too low, start again.
//! 4. *Allocate* the new pages. This is the last thing that can fail.
//! 5. *Edit* and commit: one record for all pages.
//!
//! The root's block never changes: when it is split, two new pages take what it had and it becomes
//! their parent.

use throng_buffer::{ExclusiveGuard, Mtr, Try};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, Xid};

use super::edit::{self, Bytes, Keys, Limit, Room, Shape};
use super::node::{Node, separator, tid_from};
use super::tree::{Goal, Step};
use super::{BTree, MtrPage, ROOT};
use crate::admit::admit_write;

/// Vain guesses before the whole way from the root is latched.
const GUESSES: usize = 3;
/// Per cent that stay on the left when a split is due to ascending insertions, as PostgreSQL's fill
/// factor.
const APPEND_FILL: usize = 90;

/// Where a node is cut: `at` keys stay, `separator` goes up.
struct Cut {
    at: usize,
    separator: Vec<u8>,
    /// The tree grows at its right end: the left page stays nearly full.
    append: bool,
}

/// A full page on the way down and how it will be split.
struct Split {
    keys: Keys,
    cut: Cut,
    /// Which of `keys` leads to the page that the split below makes.
    new_child: usize,
}

/// The page that has room for the last separator: `depth` steps below the path's top, in slot `at`.
struct Taker {
    depth: usize,
    at: usize,
    room: Room,
}

/// The pages that are split, leaf first, and the one above them that takes the last separator: none
/// when the root is split.
type Plan = (Vec<Split>, Option<Taker>);

/// What is to go on a leaf that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coming {
    /// An entry.
    One,
    /// An entry and others that follow it where it goes.
    Run,
}

impl BTree {
    /// Splits the leaf that `entry` belongs on, unless there is room by now or marked entries can
    /// go instead.
    pub(super) fn make_room(&self, entry: &[u8], coming: Coming, xid: Xid) -> Try<()> {
        if self.forget_marked(entry, xid)? {
            return Ok(());
        }
        let mut vain = 0;
        loop {
            admit_write(&self.pool)?;
            let top = if vain < GUESSES {
                self.guess_top(entry)?
            } else {
                Some(self.latch_exclusive(ROOT)?)
            };
            let Some(top) = top else {
                vain += 1;
                continue;
            };
            let path = self.latch_down(top, entry)?;
            if self.split_path(path, entry, coming, xid)? {
                return Ok(());
            }
            vain = GUESSES;
        }
    }

    /// The lowest page above `entry`'s leaf that seems to have room for the separator, latched;
    /// else the root. `None` when it changed meanwhile.
    fn guess_top(&self, entry: &[u8]) -> Try<Option<ExclusiveGuard<'_>>> {
        let mut above = Vec::new();
        let mut page = self.optimistic(ROOT)?;
        let mut copy: Box<Bytes> = Box::new([0; PAGE_SIZE]);
        loop {
            match self.look(&page, Goal::Covering(entry), None)? {
                Step::Changed => return Ok(None),
                Step::Leaf => break,
                Step::Down { child, .. } => {
                    let next = self.optimistic(child)?;
                    if !page.validate() {
                        return Ok(None);
                    }
                    above.push(std::mem::replace(&mut page, next));
                }
            }
        }
        // The separator is not known yet. The entry itself is as long as most, and leads to the
        // same place.
        for page in above.iter().rev() {
            page.page().copy_page(&mut copy);
            if !page.validate() {
                return Ok(None);
            }
            let node = Node::read(&*copy);
            let at = node.child_covering(entry) + 1;
            if edit::room(&node, self.limit, at, entry) != Room::None {
                return Ok(page.try_exclusive());
            }
        }
        Ok(above.first().unwrap_or(&page).try_exclusive())
    }

    /// Latches the pages from `top` to `entry`'s leaf, top first.
    fn latch_down<'p>(
        &'p self,
        top: ExclusiveGuard<'p>,
        entry: &[u8],
    ) -> Try<Vec<ExclusiveGuard<'p>>> {
        let mut path = vec![top];
        loop {
            let node = Node::read(&**path.last().expect("it starts with one"));
            if node.is_leaf() {
                return Ok(path);
            }
            if !node.is_inner() {
                return Err(self.corrupted(path[path.len() - 1].page_id()));
            }
            let (child, level) = (node.child(node.child_covering(entry)), node.level());
            let page = self.latch_exclusive(child)?;
            if Node::read(&*page).level() + 1 != level {
                return Err(self.corrupted(page.page_id()));
            }
            path.push(page);
        }
    }

    /// Steps 3 to 5. False, with nothing changed, when the top of the path would have to be split
    /// and is not the root.
    fn split_path(
        &self,
        mut path: Vec<ExclusiveGuard<'_>>,
        entry: &[u8],
        coming: Coming,
        xid: Xid,
    ) -> Try<bool> {
        // 3. Plan.
        let Some(splits) = self.plan_leaf(&path, entry, coming)? else {
            return Ok(true);
        };
        let Some((splits, taker)) = self.plan_above(&path, splits, entry)? else {
            return Ok(false);
        };
        // Pages above the one that takes the last separator stay as they are.
        path.drain(..taker.as_ref().map_or(0, |taker| taker.depth));

        // 4. Allocate.
        let allocation = self.allocate(splits.len() + usize::from(taker.is_none()))?;

        // 5. Edit.
        let mut mtr = Mtr::new(&self.pool, xid);
        let mut pages: Vec<usize> = path.into_iter().map(|page| mtr.add(page)).collect();
        let mut fresh = allocation.enter(&mut mtr).into_iter();
        let mut fresh = || {
            fresh
                .next()
                .expect("one was allocated for each half that needs a page")
        };
        let mut made = (0, Vec::new());
        for (level, mut split) in splits.into_iter().enumerate() {
            let page = pages.pop().expect("each split has its page");
            if level > 0 {
                split.keys.set_child(split.new_child, made.0);
            }
            if pages.is_empty() {
                split_root(&mut mtr, page, level as u16, split, [fresh(), fresh()]);
            } else {
                made = split_page(&mut mtr, page, level as u16, self.limit, split, fresh());
            }
        }
        if let Some(Taker { at, room, .. }) = taker {
            edit::insert_as(
                &mut MtrPage::new(&mut mtr, pages[0]),
                room,
                at,
                &made.1,
                Some(made.0),
            );
        }
        mtr.commit();
        Ok(true)
    }

    /// How the leaf is split; `None` when it has room.
    fn plan_leaf(
        &self,
        path: &[ExclusiveGuard<'_>],
        entry: &[u8],
        coming: Coming,
    ) -> Try<Option<Vec<Split>>> {
        let leaf = path.last().expect("a path ends at a leaf");
        let node = Node::read(&**leaf);
        if edit::room(&node, self.limit, node.lower_bound(entry), entry) != Room::None {
            return Ok(None);
        }
        let keys = Keys::of(&node);
        let cut = cut_leaf(&node, &keys, self.limit, entry, coming)
            .ok_or_else(|| self.corrupted(leaf.page_id()))?;
        Ok(Some(vec![Split {
            keys,
            cut,
            new_child: 0,
        }]))
    }

    /// Goes on with the pages above. `None` when the path does not reach high enough.
    fn plan_above(
        &self,
        path: &[ExclusiveGuard<'_>],
        mut splits: Vec<Split>,
        entry: &[u8],
    ) -> Try<Option<Plan>> {
        let (leaf, above) = path.split_last().expect("a path ends at a leaf");
        let append = Node::read(&**leaf).high().is_none();
        for (depth, page) in above.iter().enumerate().rev() {
            let node = Node::read(&**page);
            let at = node.child_covering(entry) + 1;
            let separator = &splits.last().expect("the leaf's is there").cut.separator;
            let room = edit::room(&node, self.limit, at, separator);
            if room != Room::None {
                return Ok(Some((splits, Some(Taker { depth, at, room }))));
            }
            let mut keys = Keys::of(&node);
            // The new child's block is put in when it is known.
            keys.insert(at, separator, 0);
            let append = append && at == node.count();
            let cut = cut_inner(&keys, self.limit, append)
                .ok_or_else(|| self.corrupted(page.page_id()))?;
            splits.push(Split {
                keys,
                cut,
                new_child: at,
            });
        }
        Ok((path[0].page_id().block() == ROOT).then_some((splits, None)))
    }
}

/// Splits a page that is not the root; its right half goes to the new page `right`. Returns that
/// page's block and the separator for the parent.
fn split_page(
    mtr: &mut Mtr<'_>,
    page: usize,
    level: u16,
    limit: Limit,
    split: Split,
    (right, block): (usize, BlockNo),
) -> (BlockNo, Vec<u8>) {
    let Split { keys, cut, .. } = split;
    let node = Node::read(mtr.page(page));
    let (mut high, far) = (Vec::new(), node.right());
    let high = node.high_into(&mut high).then_some(&high[..]);
    let shape = Shape {
        level,
        right: far,
        high,
        spare_prefix: cut.append.into(),
    };
    let image = edit::image(&keys, cut.at, keys.len(), shape);
    edit::install(&mut MtrPage::new(mtr, right), &image);

    let mut left = MtrPage::new(mtr, page);
    let leaf = level == 0;
    if !(leaf && edit::cut(&mut left, limit, cut.at, Some(&cut.separator), block)) {
        let (right, high) = if leaf {
            (block, Some(&cut.separator[..]))
        } else {
            (0, None)
        };
        let image = edit::image(
            &keys,
            0,
            cut.at,
            Shape {
                level,
                right,
                high,
                spare_prefix: 0,
            },
        );
        edit::install(&mut left, &image);
    }
    (block, cut.separator)
}

/// Splits the root: both halves go to new pages, and it becomes their parent.
fn split_root(
    mtr: &mut Mtr<'_>,
    root: usize,
    level: u16,
    split: Split,
    [left, right]: [(usize, BlockNo); 2],
) {
    let Split { keys, cut, .. } = split;
    let (next, high) = if level == 0 {
        (right.1, Some(&cut.separator[..]))
    } else {
        (0, None)
    };
    let image = edit::image(
        &keys,
        0,
        cut.at,
        Shape {
            level,
            right: next,
            high,
            spare_prefix: 0,
        },
    );
    edit::install(&mut MtrPage::new(mtr, left.0), &image);
    let shape = Shape {
        level,
        right: 0,
        high: None,
        spare_prefix: cut.append.into(),
    };
    let image = edit::image(&keys, cut.at, keys.len(), shape);
    edit::install(&mut MtrPage::new(mtr, right.0), &image);

    let mut children = Keys::default();
    children.push(&[], left.1);
    children.push(&cut.separator, right.1);
    let shape = Shape {
        level: level + 1,
        right: 0,
        high: None,
        spare_prefix: 0,
    };
    let image = edit::image(&children, 0, 2, shape);
    edit::install(&mut MtrPage::new(mtr, root), &image);
}

/// Where a full leaf is cut before `entry` goes in. `None` when it has fewer than two entries: it
/// cannot be full.
///
/// Entries that ascend at one place of the tree, as those of one tenant among many, leave half of
/// each page empty behind them if it is cut in the middle. So it is cut where they go in: what is
/// above them makes room for them (as PostgreSQL's `nbtsplitloc.c` does for keys of several
/// columns).
fn cut_leaf(
    node: &Node<'_, Bytes>,
    keys: &Keys,
    limit: Limit,
    entry: &[u8],
    coming: Coming,
) -> Option<Cut> {
    let gap = node.lower_bound(entry);
    let ascending = coming == Coming::Run || gap > 0 && is_next_row(keys.key(gap - 1), entry);
    let append = gap == keys.len() && (node.high().is_none() || ascending);
    let high = node.high().map_or(0, |(_, len)| len);
    let fits = |at: usize, separator: &[u8]| {
        keys.size(0, at, false, separator.len()) <= limit.0
            && right_size(keys, at, false, high, append) <= limit.0
    };
    let in_gap = (ascending && 0 < gap && gap < keys.len())
        .then(|| separator(entry, keys.key(gap)))
        .filter(|separator| fits(gap, separator));
    let (at, separator) = match in_gap {
        Some(separator) => (gap, separator),
        None => {
            let separator = |at: usize| separator(keys.key(at - 1), keys.key(at));
            let at = choose(
                keys,
                append,
                |at| separator(at).len(),
                |at| fits(at, separator(at)),
            )?;
            (at, separator(at))
        }
    };
    Some(Cut {
        at,
        separator: separator.to_vec(),
        append,
    })
}

/// Whether `entry`'s row was stored right after that of `before`, or soon: on the same page or the
/// next.
fn is_next_row(before: &[u8], entry: &[u8]) -> bool {
    let tid = |entry: &[u8]| entry.last_chunk().map(|bytes| tid_from(*bytes));
    let (Some(before), Some(tid)) = (tid(before), tid(entry)) else {
        return false;
    };
    let blocks = tid.block.wrapping_sub(before.block);
    blocks == 1 || blocks == 0 && before.slot < tid.slot
}

/// Where an inner node that already counts its new child is cut.
fn cut_inner(keys: &Keys, limit: Limit, append: bool) -> Option<Cut> {
    let at = choose(
        keys,
        append,
        |at| keys.key(at).len(),
        |at| {
            keys.size(0, at, true, 0) <= limit.0 && right_size(keys, at, true, 0, append) <= limit.0
        },
    )?;
    Some(Cut {
        at,
        separator: keys.key(at).to_vec(),
        append,
    })
}

/// What the right half takes, with the spare byte of prefix that an append leaves.
fn right_size(keys: &Keys, at: usize, inner: bool, high: usize, append: bool) -> usize {
    keys.size(at, keys.len(), inner, high) + if append { keys.len() - at } else { 0 }
}

/// The best cut of those that leave two pages within bounds: near the point aimed at the one with
/// the shortest separator (short separators keep the pages above wide), else the one nearest to it.
fn choose(
    keys: &Keys,
    append: bool,
    separator_len: impl Fn(usize) -> usize,
    fits: impl Fn(usize) -> bool,
) -> Option<usize> {
    let total: usize = (0..keys.len()).map(|i| keys.weight(i)).sum();
    let aim = total * if append { APPEND_FILL } else { 50 } / 100;
    let mut left = 0;
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for at in 1..keys.len() {
        left += keys.weight(at - 1);
        let away = left.abs_diff(aim);
        if away > total / 16 {
            far.push((0, away, at));
        } else {
            near.push((separator_len(at), away, at));
        }
    }
    // The best nearly always fits: the others are not put in order for it.
    for mut cuts in [near, far] {
        while let Some(best) = (0..cuts.len()).min_by_key(|i| cuts[*i]) {
            let (.., at) = cuts.swap_remove(best);
            if fits(at) {
                return Some(at);
            }
        }
    }
    None
}
