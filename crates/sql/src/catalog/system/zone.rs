//! Time zones: `pg_timezone_names`, `pg_timezone_abbrevs`.

use throng_types::Interval;

use super::{Rows, SystemState, row};
use crate::catalog::Catalog;
use crate::io::{Zone, zone};

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

/// Whether an abbreviation means daylight-saving time.
fn is_dst(abbreviation: &str) -> bool {
    matches!(
        abbreviation,
        "bst" | "west" | "cest" | "mest" | "eest" | "msd"
    ) || abbreviation.ends_with("dt")
}

pub(super) fn pg_timezone_abbrevs(_: &Catalog, _: &dyn SystemState) -> Rows {
    let all = zone::ABBREVIATIONS.iter();
    all.map(|&(name, east)| row![name.to_ascii_uppercase(), seconds(east), is_dst(name)])
        .collect()
}
