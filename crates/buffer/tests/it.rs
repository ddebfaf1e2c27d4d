//! The pool over a simulated disk and a real log.
#![cfg(not(loom))]

#[cfg(not(shuttle))]
#[path = "it/basics.rs"]
mod basics;
#[cfg(not(shuttle))]
#[path = "it/crash.rs"]
mod crash;
#[cfg(not(shuttle))]
#[path = "it/errors.rs"]
mod errors;
#[cfg(not(shuttle))]
#[path = "it/files.rs"]
mod files;
#[cfg(not(shuttle))]
#[path = "it/model.rs"]
mod model;
#[cfg(not(shuttle))]
#[path = "it/rings.rs"]
mod rings;
#[cfg(shuttle)]
#[path = "it/schedules.rs"]
mod schedules;
#[cfg(not(shuttle))]
#[path = "it/stress.rs"]
mod stress;
#[path = "it/world.rs"]
#[cfg_attr(shuttle, expect(dead_code, reason = "the other tests need the rest"))]
mod world;
