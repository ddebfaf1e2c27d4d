//! Boxes in memory that others had just before.
//!
//! What lives for one statement, such as its future, and is kept in its session's memory has left
//! the core's cache when the session's next statement comes, where sessions are a crowd; an
//! allocator goes through a page of blocks before it hands out one again. Here all that run on a
//! thread take turns with a few blocks, and the one that was given back last is the next.
//!
//! ```text
//!   session 1  ─ statement ─┐          ┌─ statement ─
//!   session 2               ├─ block ──┤              block: taken, used, given back, taken again
//!   session 3               └─ statement
//! ```

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::ptr::NonNull;

/// Blocks that a thread keeps.
const MOST_KEPT: usize = 64;

std::thread_local! {
    /// The one that was given back last is at the end.
    static KEPT: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

/// Memory of this layout, without content.
struct Block {
    at: NonNull<u8>,
    layout: Layout,
}

impl Block {
    #[inline]
    fn take(layout: Layout) -> Block {
        let kept = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            let at = kept.iter().rposition(|block| block.layout == layout)?;
            Some(kept.remove(at))
        });
        kept.ok().flatten().unwrap_or_else(|| Block::new(layout))
    }

    #[cold]
    fn new(layout: Layout) -> Block {
        assert!(layout.size() > 0, "there is nothing to be placed");
        // SAFETY: not of size zero.
        let Some(at) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout)
        };
        Block { at, layout }
    }

    /// To be kept for the next, unless the thread ends. Where there is no room for it, the one that
    /// has been kept longest goes: it may be of a size that nobody asks for any more.
    #[inline]
    fn give_back(self) {
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() == MOST_KEPT {
                kept.remove(0);
            }
            kept.push(self);
        });
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody else frees it.
        unsafe { dealloc(self.at.as_ptr(), self.layout) };
    }
}

/// A box in such memory.
pub struct Pooled<T> {
    /// In a block of its layout.
    at: NonNull<T>,
    content: PhantomData<Box<T>>,
}

impl<T> Pooled<T> {
    const LAYOUT: Layout = Layout::new::<T>();

    /// Places what `make` makes.
    #[inline(always)]
    pub fn new(make: impl FnOnce() -> T) -> Pooled<T> {
        let block = Block::take(Self::LAYOUT);
        let at = block.at.cast();
        // SAFETY: of this layout, and nobody else's.
        unsafe { at.write(make()) };
        std::mem::forget(block);
        Pooled {
            at,
            content: PhantomData,
        }
    }

    /// As `Box::pin`.
    #[inline(always)]
    pub fn pin(make: impl FnOnce() -> T) -> Pin<Pooled<T>> {
        // SAFETY: the content lies still until it is dropped, and nobody gets the box out of this.
        unsafe { Pin::new_unchecked(Pooled::new(make)) }
    }

    #[inline]
    pub fn into_inner(self) -> T {
        let this = ManuallyDrop::new(self);
        // SAFETY: written when this was made, and read here for the last time: it is not dropped.
        let content = unsafe { this.at.read() };
        this.block().give_back();
        content
    }

    /// What its content lies in: for whoever ends it, once.
    #[inline]
    fn block(&self) -> Block {
        Block {
            at: self.at.cast(),
            layout: Self::LAYOUT,
        }
    }
}

impl<T> Deref for Pooled<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: written when this was made, and borrowed as this is.
        unsafe { self.at.as_ref() }
    }
}

impl<T> DerefMut for Pooled<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { self.at.as_mut() }
    }
}

impl<T> Drop for Pooled<T> {
    #[inline]
    fn drop(&mut self) {
        // Freed, should the content's end panic.
        let block = self.block();
        // SAFETY: written when this was made, and dropped here alone.
        unsafe { self.at.drop_in_place() };
        block.give_back();
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};

    fn poll<F: Future>(future: &mut Pin<Pooled<F>>) -> Poll<F::Output> {
        future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }

    fn lies<F>(future: &Pin<Pooled<F>>) -> usize {
        std::ptr::from_ref(&**future).addr()
    }

    async fn waits_once(held: Rc<u32>) -> u32 {
        let mut polled = false;
        std::future::poll_fn(|_| match std::mem::replace(&mut polled, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        *held
    }

    #[test]
    fn the_next_one_has_the_last_ones_memory() {
        let held = Rc::new(7);
        let mut first = Pooled::pin(|| waits_once(held.clone()));
        let mut second = Pooled::pin(|| waits_once(held.clone()));
        let at_first = lies(&first);
        assert_ne!(at_first, lies(&second));
        assert_eq!(poll(&mut first), Poll::Pending);
        assert_eq!(poll(&mut second), Poll::Pending);
        assert_eq!(poll(&mut first), Poll::Ready(7));
        drop(first);
        let mut third = Pooled::pin(|| waits_once(held.clone()));
        assert_eq!(lies(&third), at_first);
        assert_eq!(poll(&mut second), Poll::Ready(7));
        // One that is dropped before its end drops what it holds.
        assert_eq!(poll(&mut third), Poll::Pending);
        drop((second, third));
        assert_eq!(Rc::strong_count(&held), 1);
    }

    #[test]
    fn sizes_are_not_confused() {
        drop((Pooled::new(|| [1_u64; 3]), Pooled::new(|| 1_u8)));
        let mut small = Pooled::new(|| 2_u8);
        let large = Pooled::new(|| [2_u64; 3]);
        *small += 1;
        assert_eq!((*large, *small), ([2; 3], 3));
    }

    #[test]
    fn the_content_may_be_taken_out() {
        let held = Rc::new(());
        let pooled = Pooled::new(|| held.clone());
        assert_eq!(Rc::strong_count(&held), 2);
        let content = pooled.into_inner();
        assert_eq!(KEPT.with_borrow(Vec::len), 1);
        drop(content);
        assert_eq!(Rc::strong_count(&held), 1);
    }

    #[test]
    fn no_more_are_kept_than_that() {
        let many: Vec<_> = (0..2 * MOST_KEPT).map(|_| Pooled::new(|| 0_u8)).collect();
        drop(many);
        assert_eq!(KEPT.with_borrow(Vec::len), MOST_KEPT);
        // Those that were a crowd once do not keep others out.
        let other = Pooled::pin(|| 1_u64);
        let lay = lies(&other);
        drop(other);
        assert_eq!(lies(&Pooled::pin(|| 2_u64)), lay);
        assert_eq!(KEPT.with_borrow(Vec::len), MOST_KEPT);
    }

    #[test]
    fn one_that_cannot_be_made_leaves_nothing() {
        let made = std::panic::catch_unwind(|| Pooled::new(|| -> u8 { panic!() }));
        assert!(made.is_err());
        assert_eq!(KEPT.with_borrow(Vec::len), 0);
    }
}
