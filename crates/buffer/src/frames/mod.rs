//! The frames, the table that finds the one of a page, and the list of those that are free.

mod frame;
pub(crate) mod free_list;
pub(crate) mod table;

pub(crate) use frame::{Entrance, Frame, FrameNo, Frames, FreeFrame};
