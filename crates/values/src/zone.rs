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

pub mod abbreviation;

/// A session's or an expression's time zone.
#[derive(Clone, Debug, PartialEq)]
pub enum Zone {
    Named(Tz),
    /// An abbreviation, which the zone's clocks give its meaning at a moment.
    Abbreviated(Tz, &'static str),
    /// Seconds EAST of Greenwich, and the name SHOW tells.
    Fixed {
        east: i32,
        name: Text,
    },
}

/// The largest displacement: below 16 hours.
const MAX_EAST: i32 = 16 * 3600 - 1;

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

    /// A zone by a name of the tz database, whatever its case, or a POSIX form such as `EST5` or
    /// `<+03>-03`. Not abbreviations.
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

    /// What an abbreviation stands for.
    pub fn abbreviation(name: &str) -> Option<Zone> {
        let mut fixed = abbreviation::FIXED.iter();
        if let Some((_, east, _)) = fixed.find(|(a, ..)| a.eq_ignore_ascii_case(name)) {
            return Zone::fixed(*east);
        }
        let mut changing = abbreviation::OF_ZONES.iter();
        let (known, zone) = changing.find(|(a, _)| a.eq_ignore_ascii_case(name))?;
        let tz = BY_NAME.get(&zone.to_ascii_lowercase())?;
        Some(Zone::Abbreviated(*tz, known))
    }

    /// As SHOW tells it.
    pub fn name(&self) -> &str {
        match self {
            Zone::Named(tz) => tz.name(),
            Zone::Abbreviated(_, name) => name,
            Zone::Fixed { name, .. } => name,
        }
    }

    /// Seconds east at a moment (microseconds since 2000 UTC).
    pub fn east_at(&self, utc: i64) -> i32 {
        match self {
            Zone::Fixed { east, .. } => *east,
            Zone::Abbreviated(tz, name) => abbreviated_east(*tz, name, utc),
            Zone::Named(Tz::UTC | Tz::GMT) => 0,
            Zone::Named(tz) => tz
                .offset_from_utc_datetime(&naive(utc))
                .fix()
                .local_minus_utc(),
        }
    }

    /// The abbreviation in use at a moment.
    pub fn abbreviation_at(&self, utc: i64) -> Option<String> {
        match self {
            Zone::Fixed { name, .. } => {
                let label = match name.strip_prefix('<') {
                    Some(rest) => rest.split('>').next(),
                    None => name.split(|c: char| !c.is_ascii_alphabetic()).next(),
                };
                label.filter(|l| !l.is_empty()).map(str::to_string)
            }
            Zone::Abbreviated(_, name) => Some(name.to_ascii_uppercase()),
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
            Zone::Named(tz) | Zone::Abbreviated(tz, _) => !tz
                .offset_from_utc_datetime(&naive(utc))
                .dst_offset()
                .is_zero(),
        }
    }

    /// Seconds east for a local time. A time that a clock skips counts as before the change; one
    /// that it shows twice, as after.
    pub fn east_of_local(&self, local: i64) -> i32 {
        let tz = match self {
            Zone::Fixed { east, .. } => return *east,
            Zone::Named(Tz::UTC | Tz::GMT) => return 0,
            // The moment by the zone's own clock decides.
            Zone::Abbreviated(tz, _) => return self.east_at(Zone::Named(*tz).to_utc(local)),
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

/// What an abbreviation last meant in a zone at a moment, else what it meant first; where the zone
/// does not use it, what the clock says.
fn abbreviated_east(tz: Tz, name: &str, utc: i64) -> i32 {
    /// No time that a clock keeps is much shorter; and who looks further gives up.
    const STEP: i64 = 20 * MICROS_PER_DAY;
    const STEPS: i64 = 400;
    let at = |utc: i64| {
        let offset = tz.offset_from_utc_datetime(&naive(utc));
        let named = offset
            .abbreviation()
            .is_some_and(|a| a.eq_ignore_ascii_case(name));
        named.then(|| offset.fix().local_minus_utc())
    };
    let near = |steps: i64| at(utc.saturating_add(steps * STEP));
    (0..STEPS)
        .find_map(|back| near(-back))
        .or_else(|| (1..STEPS).find_map(near))
        .unwrap_or_else(|| Zone::Named(tz).east_at(utc))
}

/// As chrono counts. Its rules end with the year 2099, so a later year is replaced by one before
/// with the same calendar: rules tell changes by weekday.
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
    // The label may be left out altogether.
    let label_end = match name.starts_with('<') {
        true => name.find('>')? + 1,
        false => name.find(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ','))?,
    };
    let west = displacement(&name[label_end..], MOST_HOURS)?;
    Some(Zone::Fixed {
        east: -west,
        name: name.into(),
    })
}

/// `[±]h[h][:mm[:ss]]` in seconds, below 16 hours.
pub fn parse_displacement(text: &str) -> Option<i32> {
    displacement(text, 15)
}

/// Of a POSIX form: a week of hours.
const MOST_HOURS: i32 = 167;

fn displacement(text: &str, most_hours: i32) -> Option<i32> {
    let (sign, body) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut parts = body.split(':');
    let number = |s: &str, limit: i32| -> Option<i32> {
        let most_digits = if limit < 100 { 2 } else { 3 };
        let fits = (1..=most_digits).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| s.parse().ok())
            .flatten()
            .filter(|&v| v <= limit)
    };
    let h = number(parts.next()?, most_hours)?;
    let m = parts.next().map_or(Some(0), |s| number(s, 59))?;
    let s = parts.next().map_or(Some(0), |s| number(s, 59))?;
    parts
        .next()
        .is_none()
        .then_some(sign * (h * 3600 + m * 60 + s))
}
