//! The proleptic Gregorian calendar and the units of PostgreSQL's date and time types.

use crate::datum::Interval;

pub const MICROS_PER_SECOND: i64 = 1_000_000;
pub const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
pub const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
pub const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;
/// The Julian day of 2000-01-01, from which dates and timestamps count.
pub const EPOCH_JULIAN: i32 = 2_451_545;
/// The Julian day of 1970-01-01.
pub const UNIX_EPOCH_JULIAN: i32 = 2_440_588;
/// Days from 1970-01-01 to 2000-01-01.
pub const UNIX_EPOCH_DAYS: i32 = EPOCH_JULIAN - UNIX_EPOCH_JULIAN;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub const UNIX_EPOCH_MICROS: i64 = UNIX_EPOCH_DAYS as i64 * MICROS_PER_DAY;

pub const DATE_NEG_INFINITY: i32 = i32::MIN;
pub const DATE_INFINITY: i32 = i32::MAX;
pub const TIMESTAMP_NEG_INFINITY: i64 = i64::MIN;
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;

/// The first timestamp: 4714-11-24 BC.
pub const MIN_TIMESTAMP: i64 = -211_813_488_000_000_000;
/// The first timestamp too late: 294277-01-01.
pub const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;
/// The first date, as days since 2000-01-01.
pub const MIN_DATE: i32 = -EPOCH_JULIAN;
/// The first date too late: 5874898-01-01.
pub const END_DATE: i32 = 2_147_483_494 - EPOCH_JULIAN;

pub fn is_leap_year(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days in a month from 1 to 12; the year is astronomical (0 is 1 BC).
pub fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Julian day of a date. Year is astronomical; the month must be 1 to 12.
pub fn date_to_julian(year: i32, month: i32, day: i32) -> i64 {
    // Years are counted from March, so that the leap day ends one.
    let (y, m) = if month > 2 {
        (i64::from(year), month - 3)
    } else {
        (i64::from(year) - 1, month + 9)
    };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = i64::from((153 * m + 2) / 5 + day - 1);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era + 1_721_120
}

/// Year (astronomical), month and day of a Julian day.
pub fn julian_to_date(julian: i64) -> (i32, i32, i32) {
    let days = julian - 1_721_120;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * m + 2) / 5 + 1) as i32;
    let month = (if m < 10 { m + 3 } else { m - 9 }) as i32;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year as i32, month, day)
}

/// Days since 2000-01-01 of a date.
pub fn days_from_date(year: i32, month: i32, day: i32) -> i64 {
    date_to_julian(year, month, day) - i64::from(EPOCH_JULIAN)
}

/// Year (astronomical), month, day of days since 2000-01-01.
pub fn date_from_days(days: i64) -> (i32, i32, i32) {
    julian_to_date(days + i64::from(EPOCH_JULIAN))
}

/// Is a date within PostgreSQL's range?
pub fn date_in_range(days: i64) -> bool {
    (i64::from(MIN_DATE)..i64::from(END_DATE)).contains(&days)
}

/// Is a finite timestamp within PostgreSQL's range?
pub fn timestamp_in_range(micros: i64) -> bool {
    (MIN_TIMESTAMP..END_TIMESTAMP).contains(&micros)
}

impl Interval {
    pub const INFINITY: Interval = Interval {
        micros: i64::MAX,
        days: i32::MAX,
        months: i32::MAX,
    };
    pub const NEG_INFINITY: Interval = Interval {
        micros: i64::MIN,
        days: i32::MIN,
        months: i32::MIN,
    };

    pub const fn new(months: i32, days: i32, micros: i64) -> Interval {
        Interval {
            micros,
            days,
            months,
        }
    }
    pub fn is_finite(&self) -> bool {
        *self != Interval::INFINITY && *self != Interval::NEG_INFINITY
    }
    /// What intervals are compared by: microseconds, a month being 30 days of 24 hours.
    pub fn comparable(&self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(MICROS_PER_DAY) + i128::from(self.micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn julian_days() {
        assert_eq!(date_to_julian(2000, 1, 1), i64::from(EPOCH_JULIAN));
        assert_eq!(date_to_julian(1970, 1, 1), i64::from(UNIX_EPOCH_JULIAN));
        assert_eq!(date_to_julian(-4713, 11, 24), 0);
        for julian in (-40_000_000..80_000_000i64).step_by(9973) {
            let (y, m, d) = julian_to_date(julian);
            assert_eq!(date_to_julian(y, m, d), julian);
            assert!((1..=days_in_month(y, m)).contains(&d));
        }
    }

    #[test]
    fn range_edges() {
        assert_eq!(days_from_date(5_874_898, 1, 1), i64::from(END_DATE));
        assert_eq!(
            days_from_date(294_277, 1, 1) * MICROS_PER_DAY,
            END_TIMESTAMP
        );
        assert_eq!(
            days_from_date(-4713, 11, 24) * MICROS_PER_DAY,
            MIN_TIMESTAMP
        );
    }
}
