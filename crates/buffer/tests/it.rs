//! The pool over a simulated disk and a real log.
#![cfg(not(loom))]

#[path = "it/basics.rs"]
mod basics;
#[path = "it/crash.rs"]
mod crash;
#[path = "it/errors.rs"]
mod errors;
#[path = "it/files.rs"]
mod files;
#[path = "it/model.rs"]
mod model;
#[path = "it/rings.rs"]
mod rings;
#[path = "it/stress.rs"]
mod stress;
#[path = "it/world.rs"]
mod world;
