//! Time zones: names from the tz database, fixed displacements, abbreviations.

use chrono::{LocalResult, NaiveDateTime, Offset, TimeZone};
use chrono_tz::{OffsetName, TZ_VARIANTS, Tz};
use std::collections::HashMap;
use std::sync::LazyLock;
use throng_types::Text;
use throng_types::calendar::{
    MICROS_PER_DAY, MICROS_PER_SECOND, UNIX_EPOCH_MICROS, date_from_days, days_from_date,
    is_leap_year,
};

/// A session's or an expression's time zone.
#[derive(Clone, Debug, PartialEq)]
pub enum Zone {
    Named(Tz),
    /// Seconds EAST of Greenwich, and the name SHOW tells.
    Fixed {
        east: i32,
        name: Text,
    },
}

/// The largest displacement: below 16 hours.
const MAX_EAST: i32 = 16 * 3600 - 1;

/// Abbreviations taken in input, with seconds east: those of PostgreSQL's default set that are in daily use.
pub(crate) const ABBREVIATIONS: &[(&str, i32)] = &[
    ("utc", 0),
    ("uct", 0),
    ("gmt", 0),
    ("z", 0),
    ("zulu", 0),
    ("ut", 0),
    ("wet", 0),
    ("west", 3600),
    ("bst", 3600),
    ("cet", 3600),
    ("met", 3600),
    ("cest", 7200),
    ("mest", 7200),
    ("eet", 7200),
    ("ist", 7200),
    ("sast", 7200),
    ("eest", 10800),
    ("msk", 10800),
    ("eat", 10800),
    ("msd", 14400),
    ("pkt", 18000),
    ("cct", 28800),
    ("hkt", 28800),
    ("awst", 28800),
    ("pht", 28800),
    ("jst", 32400),
    ("kst", 32400),
    ("acst", 34200),
    ("aest", 36000),
    ("acdt", 37800),
    ("aedt", 39600),
    ("nzst", 43200),
    ("nzdt", 46800),
    ("nst", -12600),
    ("ndt", -9000),
    ("art", -10800),
    ("brt", -10800),
    ("ast", -14400),
    ("adt", -10800),
    ("est", -18000),
    ("edt", -14400),
    ("cst", -21600),
    ("cdt", -18000),
    ("mst", -25200),
    ("mdt", -21600),
    ("pst", -28800),
    ("pdt", -25200),
    ("akst", -32400),
    ("akdt", -28800),
    ("hst", -36000),
];

/// Every zone of the database by its name in lower case.
static BY_NAME: LazyLock<HashMap<String, Tz>> = LazyLock::new(|| {
    TZ_VARIANTS
        .iter()
        .map(|tz| (tz.name().to_ascii_lowercase(), *tz))
        .collect()
});

impl Zone {
    pub fn utc() -> Zone {
        Zone::Named(Tz::UTC)
    }

    /// A displacement as a zone, or None beyond 15:59:59.
    pub fn fixed(east: i32) -> Option<Zone> {
        if east.abs() > MAX_EAST {
            return None;
        }
        let sign = if east < 0 { '-' } else { '+' };
        let (h, m, s) = (east.abs() / 3600, east.abs() / 60 % 60, east.abs() % 60);
        let mut shown = format!("{sign}{h:02}");
        if m != 0 || s != 0 {
            shown += &format!(":{m:02}");
        }
        if s != 0 {
            shown += &format!(":{s:02}");
        }
        // POSIX counts west, hence the other sign behind the name.
        let posix = shown.replacen(sign, if east < 0 { "+" } else { "-" }, 1);
        Some(Zone::Fixed {
            east,
            name: format!("<{shown}>{posix}").into(),
        })
    }

    /// A zone by a name of the tz database, whatever its case, or a POSIX form such as `EST5` or `<+03>-03`. Not abbreviations.
    pub fn by_name(name: &str) -> Option<Zone> {
        let name = name.trim();
        if name.is_empty() || name.starts_with(' ') {
            return None;
        }
        if let Some(tz) = BY_NAME.get(&name.to_ascii_lowercase()) {
            return Some(Zone::Named(*tz));
        }
        posix_zone(name)
    }

    /// The displacement an abbreviation stands for, in seconds east.
    pub fn abbreviation(name: &str) -> Option<i32> {
        ABBREVIATIONS
            .iter()
            .find(|(a, _)| a.eq_ignore_ascii_case(name))
            .map(|&(_, east)| east)
    }

    /// As SHOW tells it.
    pub fn name(&self) -> &str {
        match self {
            Zone::Named(tz) => tz.name(),
            Zone::Fixed { name, .. } => name,
        }
    }

    /// Seconds east at a moment (microseconds since 2000 UTC).
    pub fn east_at(&self, utc: i64) -> i32 {
        match self {
            Zone::Fixed { east, .. } => *east,
            Zone::Named(Tz::UTC) => 0,
            Zone::Named(tz) => tz
                .offset_from_utc_datetime(&naive(utc))
                .fix()
                .local_minus_utc(),
        }
    }

    /// The abbreviation in use at a moment.
    pub fn abbreviation_at(&self, utc: i64) -> Option<String> {
        match self {
            Zone::Fixed { .. } => None,
            Zone::Named(tz) => tz
                .offset_from_utc_datetime(&naive(utc))
                .abbreviation()
                .map(str::to_string),
        }
    }

    /// Is daylight-saving time in force at a moment?
    pub fn is_dst_at(&self, utc: i64) -> bool {
        use chrono_tz::OffsetComponents;
        match self {
            Zone::Fixed { .. } => false,
            Zone::Named(tz) => !tz
                .offset_from_utc_datetime(&naive(utc))
                .dst_offset()
                .is_zero(),
        }
    }

    /// Seconds east for a local time. A time that a clock skips counts as before the change; one that it shows twice, as after.
    pub fn east_of_local(&self, local: i64) -> i32 {
        let tz = match self {
            Zone::Fixed { east, .. } => return *east,
            Zone::Named(Tz::UTC) => return 0,
            Zone::Named(tz) => tz,
        };
        match tz.offset_from_local_datetime(&naive(local)) {
            LocalResult::Single(offset) => offset.fix().local_minus_utc(),
            LocalResult::Ambiguous(_, after) => after.fix().local_minus_utc(),
            // A day earlier the old displacement is in force.
            LocalResult::None => self.east_at(local.saturating_sub(MICROS_PER_DAY)),
        }
    }

    /// Local time (microseconds) of a moment.
    pub fn to_local(&self, utc: i64) -> i64 {
        utc.saturating_add(i64::from(self.east_at(utc)) * MICROS_PER_SECOND)
    }
    /// The moment of a local time.
    pub fn to_utc(&self, local: i64) -> i64 {
        local.saturating_sub(i64::from(self.east_of_local(local)) * MICROS_PER_SECOND)
    }
}

/// As chrono counts. Its rules end with the year 2099, so a later year is replaced by one before with the same calendar: rules tell
/// changes by weekday.
fn naive(micros: i64) -> NaiveDateTime {
    const LAST: i32 = 2089;
    let (year, month, day) = date_from_days(micros.div_euclid(MICROS_PER_DAY));
    let micros = if year > LAST {
        let weekday = |y| days_from_date(y, 1, 1).rem_euclid(7);
        let alike =
            |y: &i32| is_leap_year(*y) == is_leap_year(year) && weekday(*y) == weekday(year);
        // Within 28 years without a century every calendar comes.
        let year = (LAST - 27..=LAST).find(alike).unwrap_or(LAST);
        days_from_date(year, month, day) * MICROS_PER_DAY + micros.rem_euclid(MICROS_PER_DAY)
    } else {
        micros
    };
    chrono::DateTime::from_timestamp_micros(micros.saturating_add(UNIX_EPOCH_MICROS))
        .map(|t| t.naive_utc())
        .unwrap_or_default()
}

/// `NAME±hh[:mm[:ss]]`, counted west, without daylight-saving rules.
fn posix_zone(name: &str) -> Option<Zone> {
    let (label_end, digits_from) = if name.starts_with('<') {
        let end = name.find('>')? + 1;
        (end, end)
    } else {
        let end = name.find(|c: char| !c.is_ascii_alphabetic())?;
        (end, end)
    };
    // The label may be left out altogether.
    if (1..3).contains(&label_end) {
        return None;
    }
    let west = parse_displacement(&name[digits_from..])?;
    Some(Zone::Fixed {
        east: -west,
        name: name.into(),
    })
}

/// `[±]h[h][:mm[:ss]]` in seconds.
pub fn parse_displacement(text: &str) -> Option<i32> {
    let (sign, body) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut parts = body.split(':');
    let number = |s: &str, limit: i32| -> Option<i32> {
        let fits = (1..=2).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| s.parse().ok())
            .flatten()
            .filter(|&v| v <= limit)
    };
    let h = number(parts.next()?, 15)?;
    let m = parts.next().map_or(Some(0), |s| number(s, 59))?;
    let s = parts.next().map_or(Some(0), |s| number(s, 59))?;
    parts
        .next()
        .is_none()
        .then_some(sign * (h * 3600 + m * 60 + s))
}
