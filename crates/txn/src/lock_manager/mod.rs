//! The lock manager: how sessions take locks and give them back, wait for them, and are found in a
//! deadlock. What is held and wanted stands in [`lock`](crate::lock).

mod acquire;
pub(crate) mod deadlock;
mod report;
mod wait;

pub(crate) use acquire::QueuePlace;
