//! Time zones: `pg_timezone_names`, `pg_timezone_abbrevs`.

use throng_types::Interval;

use super::{Rows, SystemState, row};
use crate::Catalog;
use throng_values::zone::{self, Zone};

fn seconds(east: i32) -> Interval {
    Interval {
        micros: i64::from(east) * 1_000_000,
        ..Interval::default()
    }
}

pub(super) fn pg_timezone_names(_: &Catalog, state: &dyn SystemState) -> Rows {
    let now = state.now();
    let zones = chrono_tz::TZ_VARIANTS.iter().map(|tz| Zone::Named(*tz));
    zones
        .map(|zone| {
            row![
                zone.name(),
                zone.abbreviation_at(now),
                seconds(zone.east_at(now)),
                zone.is_dst_at(now),
            ]
        })
        .collect()
}

pub(super) fn pg_timezone_abbrevs(_: &Catalog, state: &dyn SystemState) -> Rows {
    let now = state.now();
    let fixed = zone::abbreviation::FIXED.iter();
    let fixed =
        fixed.map(|(name, east, dst)| row![name.to_ascii_uppercase(), seconds(*east), *dst]);
    let changing = zone::abbreviation::OF_ZONES.iter();
    let changing = changing.filter_map(|(name, _)| {
        let zone = Zone::abbreviation(name)?;
        let upper = name.to_ascii_uppercase();
        Some(row![upper, seconds(zone.east_at(now)), zone.is_dst_at(now)])
    });
    fixed.chain(changing).collect()
}
