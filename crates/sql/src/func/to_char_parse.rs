//! `to_timestamp` and `to_date`: text read by a template.
//!
//! Fields take as many digits as they may have, or, where another field follows at once, as many as they show. Blanks and marks
//! between fields match any others.

use super::datetime::{checked_timestamp, overflow};
use super::string::text;
use super::to_char::{Case, DAYS, Field, Item, MONTHS, Piece, ROMAN_MONTHS, template};
use super::{EvalContext, EvalResult};
use crate::io::Zone;
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::{Datum, Error, Result};

#[derive(Default)]
pub(super) struct Read {
    year: Option<i64>,
    /// The year was given with its last digits only.
    century: Option<i64>,
    bc: bool,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    week_of_month: Option<i64>,
    week: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    /// From Monday, 1.
    iso_day: Option<i64>,
    julian: Option<i64>,
    hour: i64,
    twelve_hours: bool,
    pm: Option<bool>,
    minute: i64,
    second: i64,
    second_of_day: Option<i64>,
    micros: i64,
    pub(super) zone_hour: Option<i64>,
    pub(super) zone_minute: i64,
    pub(super) zone: Option<Zone>,
}

#[cold]
pub(super) fn invalid(value: &str, field: &str) -> Error {
    Error::new(
        state::INVALID_DATETIME_FORMAT,
        format!("invalid value \"{value}\" for \"{field}\""),
    )
}

pub(super) struct Reader<'a> {
    pub(super) rest: &'a str,
    pub(super) exact: bool,
}

impl Reader<'_> {
    /// An integer of at most so many characters, its sign among them.
    pub(super) fn number(&mut self, width: usize, name: &str) -> Result<i64> {
        self.number_like(width, width.min(32), name)
    }
    /// The same, where an error shows so many characters.
    fn number_like(&mut self, width: usize, shown: usize, name: &str) -> Result<i64> {
        if !self.exact {
            self.rest = self.rest.trim_start();
        }
        let signed = usize::from(self.rest.starts_with(['-', '+']));
        let digits = self.rest[signed..]
            .bytes()
            .take(width.saturating_sub(signed))
            .take_while(u8::is_ascii_digit)
            .count();
        let (taken, rest) = self.rest.split_at(signed + digits);
        if digits == 0 {
            let shown: String = self.rest.chars().take(shown).collect();
            return Err(invalid(&shown, name).detail("Value must be an integer."));
        }
        self.rest = rest;
        taken.parse().map_err(|_| {
            Error::new(
                state::DATETIME_FIELD_OVERFLOW,
                format!("value for \"{name}\" in source string is out of range"),
            )
        })
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
    fn skip_separators(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

/// How many characters a field may take: all digits there are, unless it is followed at once by another or FX or FM says so.
fn width(item: &Item, next: Option<&Piece>, shown: usize) -> usize {
    let next_is_number = matches!(next, Some(Piece::Item(_)));
    if next_is_number && !item.fill {
        shown
    } else {
        usize::MAX
    }
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
        Field::IsoYear(4) => "IYYY",
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
fn full_year(year: i64, digits: u32) -> i64 {
    match digits {
        1 => year + 2000,
        2 if year < 70 => year + 2000,
        2 => year + 1900,
        3 if year < 100 => year + 2000,
        3 if year < 520 => year + 2000,
        3 => year + 1000,
        _ => year,
    }
}

pub(super) fn read_item(
    reader: &mut Reader<'_>,
    item: &Item,
    next: Option<&Piece>,
    to: &mut Read,
) -> Result<()> {
    let name = field_name(item);
    let mut number =
        |shown: usize| reader.number_like(width(item, next, shown), shown.min(32), name);
    match item.field {
        Field::Year(digits) => {
            let before = reader.rest.trim_start().len();
            let year = reader.number(width(item, next, digits as usize), name)?;
            let taken = before - reader.rest.len();
            if digits < 4 && taken < 4 {
                to.century = Some(0);
                to.year = Some(full_year(year, taken.max(1) as u32));
            } else {
                to.year = Some(year);
            }
        }
        Field::YearComma => {
            let thousands = reader.number(usize::MAX, "Y,YYY")?;
            reader.rest = reader.rest.strip_prefix(',').unwrap_or(reader.rest);
            to.year = Some(thousands * 1000 + reader.number(3, "Y,YYY")?);
        }
        Field::IsoYear(digits) => {
            let year = number(digits as usize)?;
            to.iso_year = Some(if digits < 4 {
                full_year(year, digits)
            } else {
                year
            });
        }
        Field::Month => to.month = Some(number(2)?),
        Field::MonthName => to.month = Some(reader.name(&MONTHS, None, name)? + 1),
        Field::MonthShort => to.month = Some(reader.name(&MONTHS, Some(3), name)? + 1),
        Field::Roman => to.month = Some(reader.name(&ROMAN_MONTHS, None, "RM")? + 1),
        Field::DayName => {
            reader.name(&DAYS, None, name)?;
        }
        Field::DayShort => {
            reader.name(&DAYS, Some(3), name)?;
        }
        Field::DayOfMonth => to.day = Some(number(2)?),
        Field::DayOfYear => to.day_of_year = Some(number(3)?),
        Field::DayNumber | Field::Quarter => {
            number(1)?;
        }
        Field::IsoDay => to.iso_day = Some(number(1)?),
        Field::IsoWeek => to.iso_week = Some(number(2)?),
        Field::Week => to.week = Some(number(2)?),
        Field::WeekOfMonth => to.week_of_month = Some(number(1)?),
        Field::Julian => to.julian = Some(number(usize::MAX)?),
        Field::Century => to.century = Some(number(2)?),
        Field::IsoDayOfYear => to.day_of_year = Some(number(3)?),
        Field::Hour24 => to.hour = number(2)?,
        Field::Hour12 => {
            to.hour = number(2)?;
            to.twelve_hours = true;
        }
        Field::Minute => to.minute = number(2)?,
        Field::Second => to.second = number(2)?,
        Field::SecondOfDay => to.second_of_day = Some(number(5)?),
        Field::Fraction(digits) => {
            let before = reader.rest.len();
            let value = reader.number(
                width(item, next, digits as usize).min(digits as usize),
                name,
            )?;
            let taken = (before - reader.rest.len()) as u32;
            to.micros = value * 10i64.pow(6 - taken.min(6));
        }
        Field::Meridian(points) => {
            let names = if points {
                ["a.m.", "p.m."]
            } else {
                ["am", "pm"]
            };
            to.pm = Some(reader.name(&names, None, "AM")? == 1);
        }
        Field::Era(points) => {
            let names = if points {
                ["a.d.", "b.c."]
            } else {
                ["ad", "bc"]
            };
            to.bc = reader.name(&names, None, "AD")? == 1;
        }
        Field::ZoneHour => to.zone_hour = Some(number(3)?),
        Field::ZoneMinute => to.zone_minute = number(2)?,
        Field::Displacement => {
            to.zone_hour = Some(number(3)?);
            if let Some(rest) = reader.rest.strip_prefix(':') {
                reader.rest = rest;
                to.zone_minute = reader.number(2, "OF")?;
            }
        }
        Field::Zone => {
            let end = reader
                .rest
                .find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(reader.rest.len());
            let (zone, rest) = reader.rest.split_at(end);
            to.zone = Some(super::timezone::zone_named(zone).map_err(|_| {
                invalid(zone, "TZ").detail("Time zone abbreviation is not recognized.")
            })?);
            reader.rest = rest;
        }
    }
    if item.ordinal.is_some() {
        reader.rest = reader.rest.get(2..).unwrap_or("");
    }
    Ok(())
}

fn read(s: &str, format: &str) -> Result<Read> {
    let pieces = template(format);
    let mut reader = Reader {
        rest: s,
        exact: false,
    };
    let mut to = Read::default();
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Exact => reader.exact = true,
            Piece::Literal(c, _) if reader.exact => {
                let mut rest = reader.rest.chars();
                if rest.next() == Some(*c) || !c.is_alphanumeric() {
                    reader.rest = rest.as_str();
                }
            }
            Piece::Literal(c, quoted) => {
                let separator = !quoted && !c.is_ascii_alphanumeric();
                if separator {
                    reader.skip_separators();
                }
                let next = reader.rest.chars().next();
                let takes = match (separator, next) {
                    (_, None) => false,
                    // A sign before a digit belongs to the number.
                    (true, Some(n)) => {
                        !(n.is_alphanumeric() || n == '+' || (n == '-' && *c == ' '))
                    }
                    (false, Some(n)) => !quoted || n == *c || !n.is_ascii_digit(),
                };
                if takes {
                    reader.rest = &reader.rest[next.map_or(0, char::len_utf8)..];
                }
            }
            Piece::Item(item) => {
                if !reader.exact {
                    reader.skip_separators();
                }
                if reader.rest.is_empty() {
                    break;
                }
                read_item(&mut reader, item, pieces.get(i + 1), &mut to)?;
            }
        }
    }
    Ok(to)
}

/// Days since 2000 and microseconds of the day; the first of the first month of 1 BC where nothing else is said.
pub(super) fn value(read: &Read, s: &str) -> Result<(i64, i64)> {
    let out_of_range = || overflow(&format!("date/time field value out of range: \"{s}\""));
    let mut hour = read.hour;
    if read.twelve_hours {
        if !(1..=12).contains(&hour) {
            return Err(Error::new(
                state::INVALID_DATETIME_FORMAT,
                format!("hour \"{hour}\" is invalid for the 12-hour clock"),
            )
            .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        hour = match read.pm {
            Some(true) if hour < 12 => hour + 12,
            Some(false) if hour == 12 => 0,
            _ => hour,
        };
    }
    let (mut minute, mut second) = (read.minute, read.second);
    if let Some(seconds) = read.second_of_day {
        (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
        return Err(out_of_range());
    }
    let time = (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND + read.micros;
    if let Some(julian) = read.julian {
        return Ok((julian - i64::from(EPOCH_JULIAN), time));
    }
    if let Some(iso_year) = read.iso_year {
        let january_4 = days_from_date(iso_year as i32, 1, 4);
        let first = january_4 - (january_4 + 5).rem_euclid(7);
        let week = read.iso_week.unwrap_or(1) - 1;
        let day = read.day_of_year.unwrap_or(read.iso_day.unwrap_or(1)) - 1;
        return Ok((first + week * 7 + day, time));
    }
    let year = match (read.year, read.century) {
        (None, Some(century)) => (century - 1) * 100 + 1,
        (year, _) => year.unwrap_or(0),
    };
    let year = match (read.bc, year) {
        (true, year) if year > 0 => 1 - year,
        (false, year) if year < 0 => year + 1,
        (_, year) => year,
    };
    let year = i32::try_from(year).map_err(|_| out_of_range())?;
    if let (Some(day), None) = (read.day_of_year, read.month) {
        let days = if is_leap_year(year) { 366 } else { 365 };
        if !(1..=days).contains(&day) {
            return Err(out_of_range());
        }
        return Ok((days_from_date(year, 1, 1) + day - 1, time));
    }
    if let (Some(week), None) = (read.week, read.month) {
        return Ok((days_from_date(year, 1, 1) + (week - 1) * 7, time));
    }
    let month = read.month.unwrap_or(1);
    let day = read
        .day
        .or(read.week_of_month.map(|w| (w - 1) * 7 + 1))
        .unwrap_or(1);
    if !(1..=12).contains(&month)
        || !(1..=i64::from(days_in_month(year, month as i32))).contains(&day)
    {
        return Err(out_of_range());
    }
    Ok((days_from_date(year, month as i32, day as i32), time))
}

pub(super) fn to_timestamp(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, format) = (text(&args[0]), text(&args[1]));
    let read = read(s, format)?;
    let (days, time) = value(&read, s)?;
    let local = checked_timestamp(days.checked_mul(MICROS_PER_DAY).map(|d| d + time))?;
    let zone = match read.zone_hour {
        Some(hour) => {
            let minutes = hour.abs() * 60 + read.zone_minute;
            let east = if hour < 0 { -minutes } else { minutes } as i32 * 60;
            Zone::fixed(east)
        }
        None => read.zone,
    };
    let utc = zone.as_ref().unwrap_or(&ctx.format.time_zone).to_utc(local);
    Ok(Datum::TimestampTz(checked_timestamp(Some(utc))?))
}
pub(super) fn to_date(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, format) = (text(&args[0]), text(&args[1]));
    let (days, _) = value(&read(s, format)?, s)?;
    if !date_in_range(days) {
        return Err(overflow(&format!("date out of range: \"{s}\"")).into());
    }
    Ok(Datum::Date(days as i32))
}
