//! Definitions: CREATE, ALTER, DROP and their kin, what they lock, and what they do to files and
//! rows.

pub(super) mod adopt;
pub(super) mod compound;
pub(super) mod database;
pub(super) mod ddl;
pub(super) mod detach;
mod fill_index;
pub(super) mod in_use;
pub(super) mod keys;
pub(super) mod locks;
pub(super) mod pages;
pub(super) mod refresh;
pub(super) mod reindex;
pub(super) mod repack;
