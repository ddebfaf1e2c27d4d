//! Operators of statements that have ended, kept by each core for the next run of the same plan.
//!
//! A look-up by key takes about as long as making its operators does, so those of plans that run
//! again and again are not made anew. What is kept is empty: it holds no row, and of each plan
//! there is one at most.

use std::cell::RefCell;
use std::sync::Arc;

use throng_plan::PlannedStatement;

use super::build::Execution;

/// Places of a core. Two plans with the same place push each other out.
const PLACES: usize = 256;

thread_local! {
    static SPARE: RefCell<Vec<Option<Box<Execution>>>> = const { RefCell::new(Vec::new()) };
}

fn place(plan: &Arc<PlannedStatement>) -> usize {
    // Fibonacci hashing: its best bits are at the top.
    let mixed = (Arc::as_ptr(plan) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as usize % PLACES
}

/// What is kept for a plan.
pub(super) fn take(plan: &Arc<PlannedStatement>) -> Option<Box<Execution>> {
    let of_plan = |spare: &mut Box<Execution>| Arc::ptr_eq(spare.plan(), plan);
    SPARE.with_borrow_mut(|places| places.get_mut(place(plan))?.take_if(of_plan))
}

pub(super) fn keep(execution: Box<Execution>) {
    let place = place(execution.plan());
    // Dropped only after the borrow has ended: whose place it was may have much to drop.
    let _before = SPARE.with_borrow_mut(|places| {
        if places.is_empty() {
            places.resize_with(PLACES, || None);
        }
        places[place].replace(execution)
    });
}
