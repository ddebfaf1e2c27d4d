//! Range types: `pg_range`.

use throng_types::range::BUILT_IN;
use throng_types::sqltype::{made, oid};
use throng_types::{Oid, RangeType};

use super::{Rows, SystemState, operator_class, row};
use crate::Catalog;

/// The functions that make a built-in range type's values canonical and tell how far two values of
/// its subtype are apart.
fn functions(range: Oid) -> (Oid, Oid) {
    let (canonical, difference) = match range {
        oid::INT4RANGE => (3914, 3922),
        oid::INT8RANGE => (3928, 3923),
        oid::NUMRANGE => (0, 3924),
        oid::DATERANGE => (3915, 3925),
        oid::TSRANGE => (0, 3929),
        oid::TSTZRANGE => (0, 3930),
        _ => (0, 0),
    };
    (Oid(canonical), Oid(difference))
}

pub(super) fn pg_range(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let built_in = |range: &RangeType| {
        let (canonical, difference) = functions(range.range);
        row![
            range.range,
            range.subtype,
            range.multirange,
            Oid::NONE,
            operator_class::default_for(range.subtype),
            canonical,
            difference,
        ]
    };
    let mut rows: Rows = match catalog.has_built_in() {
        true => BUILT_IN.iter().map(built_in).collect(),
        false => Rows::new(),
    };
    for def in catalog.made_types() {
        if let Some(range) = &def.range {
            rows.push(row![
                def.oid,
                range.subtype,
                made::multirange_of(def.oid),
                range.collation,
                range.class,
                Oid::NONE,
                range.difference,
            ]);
        }
    }
    rows
}
