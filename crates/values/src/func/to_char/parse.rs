//! `to_timestamp` and `to_date`: text read by a template.
//!
//! Fields take as many digits as they may have, or, where no other number follows at once, as many
//! as there are. Blanks and marks between fields match any others.

use crate::func::datetime::{checked_timestamp, overflow};
use crate::func::string::text;
use crate::func::to_char::{Case, DAYS, Field, Item, MONTHS, Piece, ROMAN_MONTHS, template};
use crate::func::{EvalContext, EvalResult};
use crate::io::Zone;
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::{Datum, Error, Result};

/// Which calendar a template's fields are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Convention {
    Gregorian,
    IsoWeek,
}

fn convention(field: Field) -> Option<Convention> {
    match field {
        Field::DayNumber
        | Field::DayOfMonth
        | Field::DayOfYear
        | Field::Month
        | Field::MonthName
        | Field::MonthShort
        | Field::Roman
        | Field::Week
        | Field::WeekOfMonth
        | Field::YearComma
        | Field::Year(_) => Some(Convention::Gregorian),
        Field::IsoDayOfYear | Field::IsoDay | Field::IsoWeek | Field::IsoYear(_) => {
            Some(Convention::IsoWeek)
        }
        _ => None,
    }
}

/// What was read. A field that was not, or is 0, may be set by another of its kind.
#[derive(Default)]
pub(in crate::func) struct Read {
    convention: Option<Convention>,
    year: Option<i64>,
    /// Digits of the year's field.
    year_size: u32,
    century: Option<i64>,
    bc: bool,
    month: Option<i64>,
    day: Option<i64>,
    weekday: Option<i64>,
    day_of_year: Option<i64>,
    week_of_month: Option<i64>,
    week: Option<i64>,
    julian: Option<i64>,
    hour: Option<i64>,
    twelve_hours: bool,
    pm: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    second_of_day: Option<i64>,
    millis: Option<i64>,
    micros: Option<i64>,
    /// FF: digits of the second that are kept.
    digits: Option<u32>,
    pub(in crate::func) zone_hour: Option<i64>,
    pub(in crate::func) zone_minute: i64,
    zone_is_west: bool,
    pub(in crate::func) zone: Option<Zone>,
}

impl Read {
    /// The zone that was read.
    pub(in crate::func) fn zone(&self) -> Option<Zone> {
        match self.zone_hour {
            Some(hour) => {
                let minutes = hour.abs() * 60 + self.zone_minute;
                let east = if self.zone_is_west { -minutes } else { minutes };
                Zone::fixed(i32::try_from(east * 60).ok()?)
            }
            None => self.zone.clone(),
        }
    }
}

#[cold]
pub(in crate::func) fn invalid(value: &str, field: &str) -> Error {
    Error::new(
        state::INVALID_DATETIME_FORMAT,
        format!("invalid value \"{value}\" for \"{field}\""),
    )
}

#[cold]
fn conflict(field: &str) -> Error {
    let message = format!("conflicting values for \"{field}\" field in formatting string");
    Error::new(state::INVALID_DATETIME_FORMAT, message)
        .detail("This value contradicts a previous setting for the same field type.")
}

fn set(to: &mut Option<i64>, value: i64, field: &str) -> Result<()> {
    match to.replace(value) {
        Some(before) if before != 0 && before != value => Err(conflict(field)),
        _ => Ok(()),
    }
}

pub(in crate::func) struct Reader<'a> {
    pub(in crate::func) rest: &'a str,
    pub(in crate::func) exact: bool,
    /// Characters passed over that the template does not have.
    extra: i32,
    /// The last of them.
    passed: Option<char>,
}

const FILL_HINT: &str = "If your source string is not fixed-width, try using the \"FM\" modifier.";

impl<'a> Reader<'a> {
    pub(in crate::func) fn new(text: &'a str) -> Reader<'a> {
        Reader {
            rest: text,
            exact: false,
            extra: 0,
            passed: None,
        }
    }

    fn pass(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        self.passed = Some(c);
        Some(c)
    }

    fn skip_spaces(&mut self) {
        while self.rest.starts_with(|c: char| c.is_ascii_whitespace()) {
            self.pass();
            self.extra += 1;
        }
    }

    /// An integer of at most so many characters, its sign among them.
    pub(in crate::func) fn number(&mut self, width: usize, name: &str) -> Result<i64> {
        self.digits(width, width, false, name)
            .map(|(value, _)| value)
    }

    /// An integer of at most `most` characters, and how many it has. `len` is the field's length;
    /// `whole`: it has just that.
    fn digits(&mut self, most: usize, len: usize, whole: bool, name: &str) -> Result<(i64, usize)> {
        if !self.exact {
            self.rest = self.rest.trim_start();
        }
        let shown: String = self.rest.chars().take(len.min(32)).collect();
        let there = shown.chars().count();
        if whole && there < len {
            let message = format!("source string too short for \"{name}\" formatting field");
            let detail = format!("Field requires {len} characters, but only {there} remain.");
            return Err(Error::new(state::INVALID_DATETIME_FORMAT, message)
                .detail(detail)
                .hint(FILL_HINT));
        }
        let signed = usize::from(self.rest.starts_with(['-', '+']));
        let digits = self.rest[signed..]
            .bytes()
            .take(most.saturating_sub(signed))
            .take_while(u8::is_ascii_digit)
            .count();
        if digits == 0 {
            return Err(invalid(&shown, name).detail("Value must be an integer."));
        }
        let (taken, rest) = self.rest.split_at(signed + digits);
        if whole && taken.len() < len {
            let parsed = taken.len();
            let detail =
                format!("Field requires {len} characters, but only {parsed} could be parsed.");
            return Err(invalid(&shown, name).detail(detail).hint(FILL_HINT));
        }
        self.rest = rest;
        let value = taken.parse::<i32>().map_err(|_| {
            let message = format!("value for \"{name}\" in source string is out of range");
            Error::new(state::DATETIME_FIELD_OVERFLOW, message)
                .detail("Value must be in the range -2147483648 to 2147483647.")
        })?;
        Ok((value.into(), taken.len()))
    }

    /// One of the names, whole or by so many letters; its place in the list.
    fn name(&mut self, names: &[&str], letters: Option<usize>, field: &str) -> Result<i64> {
        if !self.exact {
            self.rest = self.rest.trim_start();
        }
        let found = names.iter().enumerate().filter_map(|(i, name)| {
            let len = letters.unwrap_or(name.len()).min(name.len());
            let start = self.rest.get(..len)?;
            start.eq_ignore_ascii_case(&name[..len]).then_some((len, i))
        });
        match found.max() {
            Some((len, i)) => {
                self.rest = &self.rest[len..];
                Ok(i as i64)
            }
            None => {
                let end = self.rest.find(' ').unwrap_or(self.rest.len());
                let message =
                    "The given value did not match any of the allowed values for this field.";
                Err(invalid(&self.rest[..end], field).detail(message))
            }
        }
    }

    /// The sign of a displacement: one that was passed over as a separator counts where the
    /// template had fewer of them.
    fn is_west(&mut self) -> bool {
        match self.rest.chars().next() {
            Some(sign @ ('+' | '-' | ' ')) => {
                self.rest = &self.rest[1..];
                sign == '-'
            }
            _ => self.extra > 0 && self.passed == Some('-'),
        }
    }
}

/// Whether a field may take all digits there are: none of another number follow.
fn is_open(item: &Item, next: Option<&Piece>) -> bool {
    let number_follows = match next {
        Some(Piece::Item(next)) => !matches!(
            next.field,
            Field::Era(_)
                | Field::Meridian(_)
                | Field::DayName
                | Field::DayShort
                | Field::MonthName
                | Field::MonthShort
                | Field::Displacement
                | Field::Roman
                | Field::ZoneHour
                | Field::Zone
        ),
        Some(Piece::Literal(c, _)) => c.is_ascii_digit(),
        Some(Piece::Exact) | None => false,
    };
    item.fill || item.ordinal.is_some() || !number_follows
}

fn field_name(item: &Item) -> &'static str {
    match item.field {
        Field::Hour24 => "HH24",
        Field::Hour12 => "HH12",
        Field::Minute => "MI",
        Field::Second => "SS",
        Field::Month => "MM",
        Field::MonthName => match item.case {
            Case::Upper => "MONTH",
            Case::Lower => "month",
            Case::Capital => "Month",
        },
        Field::MonthShort => match item.case {
            Case::Upper => "MON",
            Case::Lower => "mon",
            Case::Capital => "Mon",
        },
        Field::DayName => match item.case {
            Case::Upper => "DAY",
            Case::Lower => "day",
            Case::Capital => "Day",
        },
        Field::DayShort => match item.case {
            Case::Upper => "DY",
            Case::Lower => "dy",
            Case::Capital => "Dy",
        },
        Field::DayOfMonth => "DD",
        Field::DayOfYear => "DDD",
        Field::Year(4) => "YYYY",
        Field::Year(3) => "YYY",
        Field::Year(2) => "YY",
        Field::Year(_) => "Y",
        Field::YearComma => "Y,YYY",
        Field::IsoYear(4) => "IYYY",
        Field::IsoYear(3) => "IYY",
        Field::IsoYear(2) => "IY",
        Field::IsoYear(_) => "I",
        Field::IsoDayOfYear => "IDDD",
        Field::IsoDay => "ID",
        Field::DayNumber => "D",
        Field::Quarter => "Q",
        Field::Roman => "RM",
        Field::Era(true) => "B.C.",
        Field::Era(false) => "BC",
        Field::Meridian(true) => "A.M.",
        Field::Meridian(false) => "AM",
        Field::Displacement => "OF",
        Field::IsoWeek => "IW",
        Field::Julian => "J",
        Field::Fraction(3) => "MS",
        Field::Fraction(_) => "US",
        Field::SecondOfDay => "SSSS",
        Field::Century => "CC",
        Field::Week => "WW",
        Field::WeekOfMonth => "W",
        Field::ZoneHour => "TZH",
        Field::ZoneMinute => "TZM",
        _ => "field",
    }
}

/// A year of fewer than four digits: the one nearest to 2020.
fn full_year(year: i64) -> i64 {
    match year {
        ..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

pub(in crate::func) fn read_item(
    reader: &mut Reader<'_>,
    item: &Item,
    next: Option<&Piece>,
    to: &mut Read,
) -> Result<()> {
    let name = field_name(item);
    if let Some(of) = convention(item.field) {
        match to.convention.replace(of) {
            Some(before) if before != of => {
                let message = "invalid combination of date conventions";
                return Err(Error::new(state::INVALID_DATETIME_FORMAT, message).hint(
                    "Do not mix Gregorian and ISO week date conventions in a formatting template.",
                ));
            }
            _ => {}
        }
    }
    let open = is_open(item, next);
    let number = |reader: &mut Reader<'_>, len: usize| {
        reader.digits(if open { usize::MAX } else { len }, len, !open, name)
    };
    let value = |reader: &mut Reader<'_>, len: usize| Ok::<i64, Error>(number(reader, len)?.0);
    match item.field {
        Field::Year(size) | Field::IsoYear(size) => {
            let (year, taken) = number(reader, size as usize)?;
            let year = match size < 4 && taken < 4 {
                true => full_year(year),
                false => year,
            };
            set(&mut to.year, year, name)?;
            to.year_size = size;
        }
        Field::YearComma => {
            let thousands = reader.number(usize::MAX, name)?;
            reader.rest = reader.rest.strip_prefix(',').unwrap_or(reader.rest);
            set(
                &mut to.year,
                thousands * 1000 + reader.number(3, name)?,
                name,
            )?;
            to.year_size = 4;
        }
        Field::Month => set(&mut to.month, value(reader, 2)?, name)?,
        Field::MonthName => set(&mut to.month, reader.name(&MONTHS, None, name)? + 1, name)?,
        Field::MonthShort => set(
            &mut to.month,
            reader.name(&MONTHS, Some(3), name)? + 1,
            name,
        )?,
        Field::Roman => set(
            &mut to.month,
            reader.name(&ROMAN_MONTHS, None, name)? + 1,
            name,
        )?,
        Field::DayName => set(&mut to.weekday, reader.name(&DAYS, None, name)? + 1, name)?,
        Field::DayShort => set(
            &mut to.weekday,
            reader.name(&DAYS, Some(3), name)? + 1,
            name,
        )?,
        Field::DayNumber => set(&mut to.weekday, value(reader, 1)?, name)?,
        // From Monday, but kept as the others, from Sunday.
        Field::IsoDay => set(&mut to.weekday, value(reader, 1)? % 7 + 1, name)?,
        Field::DayOfMonth => set(&mut to.day, value(reader, 2)?, name)?,
        Field::DayOfYear | Field::IsoDayOfYear => {
            set(&mut to.day_of_year, value(reader, 3)?, name)?;
        }
        Field::Quarter => {
            value(reader, 1)?;
        }
        Field::IsoWeek | Field::Week => set(&mut to.week, value(reader, 2)?, name)?,
        Field::WeekOfMonth => set(&mut to.week_of_month, value(reader, 1)?, name)?,
        Field::Julian => set(&mut to.julian, value(reader, 1)?, name)?,
        Field::Century => set(&mut to.century, value(reader, 2)?, name)?,
        Field::Hour24 => set(&mut to.hour, value(reader, 2)?, name)?,
        Field::Hour12 => {
            set(&mut to.hour, value(reader, 2)?, name)?;
            to.twelve_hours = true;
        }
        Field::Minute => set(&mut to.minute, value(reader, 2)?, name)?,
        Field::Second => set(&mut to.second, value(reader, 2)?, name)?,
        Field::SecondOfDay => set(&mut to.second_of_day, value(reader, 5)?, name)?,
        Field::Fraction(digits) => {
            let (fraction, taken) = number(reader, digits as usize)?;
            // 25 is 0.25, and 025 is 0.025.
            let scaled = |places: u32| fraction * 10i64.pow(places.saturating_sub(taken as u32));
            match item.kept {
                None if digits == 3 => set(&mut to.millis, scaled(3), name)?,
                kept => {
                    set(&mut to.micros, scaled(6), name)?;
                    to.digits = kept;
                }
            }
        }
        Field::Meridian(points) => {
            let names = if points {
                ["a.m.", "p.m."]
            } else {
                ["am", "pm"]
            };
            let pm = reader.name(&names, None, name)? == 1;
            if to.pm.replace(pm).is_some_and(|before| before && !pm) {
                return Err(conflict(name));
            }
            to.twelve_hours = true;
        }
        Field::Era(points) => {
            let names = if points {
                ["a.d.", "b.c."]
            } else {
                ["ad", "bc"]
            };
            to.bc = reader.name(&names, None, name)? == 1;
        }
        Field::ZoneHour => {
            to.zone_is_west = reader.is_west();
            to.zone_hour = Some(value(reader, 2)?);
        }
        Field::ZoneMinute => {
            to.zone_minute = value(reader, 2)?;
            to.zone_hour.get_or_insert(0);
        }
        Field::Zone if reader.rest.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            let end = reader
                .rest
                .find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(reader.rest.len());
            let (zone, rest) = reader.rest.split_at(end);
            to.zone = Some(
                crate::func::datetime::timezone::zone_named(zone).map_err(|_| {
                    invalid(zone, "TZ").detail("Time zone abbreviation is not recognized.")
                })?,
            );
            reader.rest = rest;
        }
        Field::Zone | Field::Displacement => {
            to.zone_is_west = reader.is_west();
            to.zone_hour = Some(reader.number(2, name)?);
            if let Some(rest) = reader.rest.strip_prefix(':') {
                reader.rest = rest;
                to.zone_minute = reader.number(2, name)?;
            }
        }
    }
    if item.ordinal.is_some() {
        reader.rest = reader.rest.get(2..).unwrap_or("");
    }
    Ok(())
}

/// A mark that parts fields.
fn is_separator(c: char) -> bool {
    c.is_ascii_punctuation()
}

fn read(s: &str, format: &str) -> Result<Read> {
    let pieces = template(format);
    let mut reader = Reader::new(s);
    let mut to = Read::default();
    for (i, piece) in pieces.iter().enumerate() {
        if reader.rest.is_empty() {
            break;
        }
        if !reader.exact && (i == 0 || matches!(piece, Piece::Item(_))) {
            reader.skip_spaces();
        }
        match piece {
            Piece::Exact => reader.exact = true,
            Piece::Literal(c, false) if is_separator(*c) || c.is_ascii_whitespace() => {
                let takes = |n: char| n.is_ascii_whitespace() || is_separator(n);
                if reader.exact || reader.rest.starts_with(takes) {
                    reader.pass();
                } else {
                    reader.extra -= 1;
                }
            }
            // More was passed over than the template has: this stands for it.
            Piece::Literal(..) if !reader.exact && reader.extra > 0 => reader.extra -= 1,
            Piece::Literal(..) => {
                reader.pass();
            }
            Piece::Item(item) => {
                if reader.rest.is_empty() {
                    break;
                }
                read_item(&mut reader, item, pieces.get(i + 1), &mut to)?;
                if !reader.exact {
                    reader.extra = 0;
                    reader.skip_spaces();
                }
            }
        }
    }
    Ok(to)
}

/// The year that its field, the century and the era make.
fn year_of(read: &Read) -> Option<i64> {
    let year = read.year.filter(|y| *y != 0);
    let century = read.century.filter(|c| *c != 0);
    let century = century.map(|c| if read.bc { -c } else { c });
    Some(match (year, century) {
        (Some(year), Some(century)) if read.year_size <= 2 => match (year % 100, century) {
            (0, 0..) => century * 100,
            (0, _) => century * 100 + 1,
            (year, 0..) => (century - 1) * 100 + year,
            (year, _) => (century + 1) * 100 - year + 1,
        },
        (Some(year), _) => match if read.bc { -year } else { year } {
            year if year < 0 => year + 1,
            year => year,
        },
        (None, Some(century @ 0..)) => (century - 1) * 100 + 1,
        (None, Some(century)) => century * 100 + 1,
        (None, None) => return None,
    })
}

/// Microseconds of the day; None out of range.
fn time_of(read: &Read) -> Result<Option<i64>> {
    let seconds = read.second_of_day.unwrap_or(0);
    let part = |value: Option<i64>, of: i64| value.filter(|v| *v != 0).unwrap_or(of);
    let mut hour = part(read.hour, seconds / 3600);
    let minute = part(read.minute, seconds / 60 % 60);
    let second = part(read.second, seconds % 60);
    if read.twelve_hours {
        if !(1..=12).contains(&hour) {
            let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
            return Err(Error::new(state::INVALID_DATETIME_FORMAT, message)
                .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        hour = match read.pm {
            Some(true) if hour < 12 => hour + 12,
            None | Some(false) if hour == 12 => 0,
            _ => hour,
        };
    }
    let micros = read.millis.unwrap_or(0) * 1000 + read.micros.unwrap_or(0);
    let in_range = (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second)
        && (0..MICROS_PER_SECOND).contains(&micros);
    if !in_range {
        return Ok(None);
    }
    Ok(Some(
        (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND + micros,
    ))
}

/// Rounds to the digits that FF keeps; what is before 2000 is rounded as if time ran backward.
fn rounded(read: &Read, (days, time): (i64, i64)) -> (i64, i64) {
    let step = 10i64.pow(6 - read.digits.unwrap_or(6).min(6));
    let half = step / 2 - i64::from(days < 0 && step > 1);
    (days, (time + half) / step * step)
}

/// Days since 2000 and microseconds of the day, as far as FF keeps them.
pub(in crate::func) fn value(read: &Read, s: &str) -> Result<(i64, i64)> {
    Ok(rounded(read, unrounded(read, s)?))
}

/// The same with all digits; the first of the first month of 1 BC where nothing else is said.
fn unrounded(read: &Read, s: &str) -> Result<(i64, i64)> {
    let out_of_range = || overflow(&format!("date/time field value out of range: \"{s}\""));
    let time = time_of(read)?.ok_or_else(out_of_range)?;
    if let Some(julian) = read.julian {
        return Ok((julian - i64::from(EPOCH_JULIAN), time));
    }
    let year = i32::try_from(year_of(read).unwrap_or(0)).map_err(|_| out_of_range())?;
    let of_year = read.day_of_year.filter(|d| *d != 0);
    if read.convention == Some(Convention::IsoWeek) {
        let january_4 = days_from_date(year, 1, 4);
        let first = january_4 - (january_4 + 5).rem_euclid(7);
        let week = read.week.filter(|w| *w != 0);
        let day = match (week, of_year, read.weekday) {
            (Some(week), _, None) => (week - 1) * 7,
            (Some(week), _, Some(sunday_1)) => (week - 1) * 7 + (sunday_1 + 5) % 7,
            (None, Some(day), _) => day - 1,
            (None, None, _) => return Ok((days_from_date(year, 1, 1), time)),
        };
        return Ok((first + day, time));
    }
    let of_year = of_year.or(read.week.filter(|w| *w != 0).map(|w| (w - 1) * 7 + 1));
    let day = read
        .week_of_month
        .filter(|w| *w != 0)
        .map(|w| (w - 1) * 7 + 1);
    let (month, day) = (read.month.unwrap_or(1), day.or(read.day).unwrap_or(1));
    if let Some(of_year) = of_year.filter(|_| month <= 1 || day <= 1) {
        let days = if is_leap_year(year) { 366 } else { 365 };
        if !(1..=days).contains(&of_year) {
            return Err(out_of_range());
        }
        return Ok((days_from_date(year, 1, 1) + of_year - 1, time));
    }
    let (month, day) = (
        if month == 0 { 1 } else { month },
        if day == 0 { 1 } else { day },
    );
    if !(1..=12).contains(&month)
        || !(1..=i64::from(days_in_month(year, month as i32))).contains(&day)
    {
        return Err(out_of_range());
    }
    Ok((days_from_date(year, month as i32, day as i32), time))
}

pub(in crate::func) fn to_timestamp(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, format) = (text(&args[0]), text(&args[1]));
    let read = read(s, format)?;
    let (days, time) = value(&read, s)?;
    let local = checked_timestamp(days.checked_mul(MICROS_PER_DAY).map(|d| d + time))?;
    let zone = read.zone();
    let utc = zone.as_ref().unwrap_or(&ctx.format.time_zone).to_utc(local);
    Ok(Datum::TimestampTz(checked_timestamp(Some(utc))?))
}
pub(in crate::func) fn to_date(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, format) = (text(&args[0]), text(&args[1]));
    let (days, _) = value(&read(s, format)?, s)?;
    if !date_in_range(days) {
        return Err(overflow(&format!("date out of range: \"{s}\"")).into());
    }
    Ok(Datum::Date(days as i32))
}
