//! Futures in memory that others had just before.
//!
//! A future that lives for one statement, kept inside its session's, lies in that session's memory: with a crowd of sessions it has
//! left the core's cache when the session's next statement comes. Here all that run on a thread take turns with a few blocks.
//!
//! ```text
//!   session 1  ─ statement ─┐          ┌─ statement ─
//!   session 2               ├─ block ──┤              block: taken, used, given back, taken again
//!   session 3               └─ statement
//! ```

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

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
            Some(kept.swap_remove(at))
        });
        kept.ok().flatten().unwrap_or_else(|| Block::new(layout))
    }

    #[cold]
    fn new(layout: Layout) -> Block {
        assert!(layout.size() > 0, "an async function's future has a state");
        // SAFETY: not of size zero.
        let Some(at) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout)
        };
        Block { at, layout }
    }

    /// To be kept for the next, where there is room for it and the thread does not end.
    #[inline]
    fn give_back(self) {
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < MOST_KEPT {
                kept.push(self);
            }
        });
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody else frees it.
        unsafe { dealloc(self.at.as_ptr(), self.layout) };
    }
}

/// A future in such memory. Made by [`pooled`].
pub struct Pooled<F> {
    /// `None` only while it is dropped.
    block: Option<Block>,
    content: PhantomData<Box<F>>,
}

/// Places what `make` makes in memory of the thread's.
#[inline(always)]
pub fn pooled<F: Future>(make: impl FnOnce() -> F) -> Pooled<F> {
    let block = Block::take(Layout::new::<F>());
    // SAFETY: of this layout, and nobody else's.
    unsafe { block.at.cast::<F>().write(make()) };
    Pooled {
        block: Some(block),
        content: PhantomData,
    }
}

impl<F> Pooled<F> {
    fn content(&self) -> NonNull<F> {
        let block = self.block.as_ref().expect("not dropped");
        block.at.cast()
    }
}

impl<F: Future> Future for Pooled<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: written when this was made, ours alone, and not moved until it is dropped where it lies.
        let future = unsafe { Pin::new_unchecked(self.content().as_mut()) };
        future.poll(cx)
    }
}

impl<F> Drop for Pooled<F> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: written when this was made, and dropped here alone.
        unsafe { self.content().drop_in_place() };
        if let Some(block) = self.block.take() {
            block.give_back();
        }
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;
    use std::future::ready;
    use std::rc::Rc;
    use std::task::Waker;

    fn poll<F: Future>(future: &mut Pooled<F>) -> Poll<F::Output> {
        Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
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
        let mut first = pooled(|| waits_once(held.clone()));
        let mut second = pooled(|| waits_once(held.clone()));
        let lies = first.content();
        assert_ne!(lies, second.content());
        assert_eq!(poll(&mut first), Poll::Pending);
        assert_eq!(poll(&mut second), Poll::Pending);
        assert_eq!(poll(&mut first), Poll::Ready(7));
        drop(first);
        let mut third = pooled(|| waits_once(held.clone()));
        assert_eq!(third.content(), lies);
        assert_eq!(poll(&mut second), Poll::Ready(7));
        // One that is dropped before its end drops what it holds.
        assert_eq!(poll(&mut third), Poll::Pending);
        drop((second, third));
        assert_eq!(Rc::strong_count(&held), 1);
    }

    #[test]
    fn sizes_are_not_confused() {
        drop((pooled(|| ready([1_u64; 3])), pooled(|| ready(1_u8))));
        let mut small = pooled(|| ready(2_u8));
        let mut large = pooled(|| ready([2_u64; 3]));
        assert_eq!(poll(&mut large), Poll::Ready([2; 3]));
        assert_eq!(poll(&mut small), Poll::Ready(2));
    }

    #[test]
    fn no_more_are_kept_than_that() {
        let many: Vec<_> = (0..2 * MOST_KEPT).map(|_| pooled(|| ready(0_u8))).collect();
        drop(many);
        assert_eq!(KEPT.with_borrow(Vec::len), MOST_KEPT);
    }

    #[test]
    fn one_that_cannot_be_made_leaves_nothing() {
        let made = std::panic::catch_unwind(|| pooled(|| -> std::future::Ready<u8> { panic!() }));
        assert!(made.is_err());
        assert_eq!(KEPT.with_borrow(Vec::len), 0);
    }
}
