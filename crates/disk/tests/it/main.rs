//! The disks held to one contract, crashes of the simulated one, and relation files over both.

mod contract;
mod crash;
mod relfiles;
