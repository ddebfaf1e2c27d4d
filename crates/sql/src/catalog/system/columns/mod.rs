//! What the virtual relations are called and which columns they have; nothing about their rows.

mod catalog;
mod catalog_rest;
mod information_schema;
mod throng;
mod view;

use super::VirtualTable;

/// Every relation, by where it is listed.
pub(super) fn lists() -> [&'static [VirtualTable]; 5] {
    [
        catalog::TABLES,
        catalog_rest::TABLES,
        view::TABLES,
        information_schema::TABLES,
        throng::TABLES,
    ]
}
