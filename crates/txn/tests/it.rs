//! The transaction system as rooms above use it, on a simulated disk.

mod it {
    pub mod archive;
    mod deadlocks;
    mod locks;
    mod prepared;
    mod recovery;
    mod rows;
    mod schedule;
    mod standby;
    mod stress;
    pub mod support;
    mod visibility;
}
