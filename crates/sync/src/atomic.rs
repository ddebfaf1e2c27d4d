//! Atomics: the standard library's, or the model checker's under `--cfg loom` or `--cfg shuttle`.
//!
//! Loom's cannot stand in a `static` and their `new` is not `const`. Shuttle's take every order for
//! `SeqCst`.

#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering, fence,
};
#[cfg(shuttle)]
pub use shuttle::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering, fence,
};
#[cfg(not(any(loom, shuttle)))]
pub use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering, fence,
};
