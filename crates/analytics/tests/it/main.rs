//! Statements run both ways, on the row operators and on the analytics pool, through a whole
//! engine.

mod cached;
mod database;
mod limits;
mod parts;
mod same;
