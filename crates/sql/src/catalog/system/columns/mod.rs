//! What the virtual relations are called and which columns they have; nothing about their rows.

mod catalog;
mod catalog_rest;
mod information_schema;
mod view;

use super::VirtualTable;

/// Every relation, by where it is listed.
pub(super) fn lists() -> [&'static [VirtualTable]; 4] {
    [
        catalog::TABLES,
        catalog_rest::TABLES,
        view::TABLES,
        information_schema::TABLES,
    ]
}
