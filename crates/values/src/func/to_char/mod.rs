//! `to_char` of dates and intervals, and the reading of templates it shares with `to_timestamp` and
//! `to_date`.

pub(super) mod number;
pub(super) mod parse;

use super::datetime::{interval, is_infinite, moment};
use super::string::text;
use super::{EvalContext, EvalResult, Function};
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::{Datum, Error, Interval, Result, oid::*};

/// How letters are to be written: as the keyword was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Upper,
    Capital,
    Lower,
}

impl Case {
    pub fn apply(self, name: &str) -> String {
        match self {
            Case::Upper => name.to_ascii_uppercase(),
            Case::Lower => name.to_ascii_lowercase(),
            Case::Capital => name.into(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A.D., AD, BC…: whether with points.
    Era(bool),
    /// A.M., AM, PM…
    Meridian(bool),
    Century,
    DayNumber,
    DayName,
    DayShort,
    DayOfMonth,
    DayOfYear,
    /// Digits of a second.
    Fraction(u32),
    Hour12,
    Hour24,
    IsoDayOfYear,
    IsoDay,
    IsoWeek,
    IsoYear(u32),
    Julian,
    Minute,
    Month,
    MonthName,
    MonthShort,
    Displacement,
    Quarter,
    Roman,
    SecondOfDay,
    Second,
    ZoneHour,
    ZoneMinute,
    Zone,
    Week,
    WeekOfMonth,
    YearComma,
    /// The last so many digits of the year.
    Year(u32),
}

/// Keywords; of those that begin alike, the longest comes first.
const KEYWORDS: &[(&str, Field)] = &[
    ("A.D.", Field::Era(true)),
    ("A.M.", Field::Meridian(true)),
    ("AD", Field::Era(false)),
    ("AM", Field::Meridian(false)),
    ("B.C.", Field::Era(true)),
    ("BC", Field::Era(false)),
    ("CC", Field::Century),
    ("DAY", Field::DayName),
    ("DDD", Field::DayOfYear),
    ("DD", Field::DayOfMonth),
    ("DY", Field::DayShort),
    ("D", Field::DayNumber),
    ("FF1", Field::Fraction(1)),
    ("FF2", Field::Fraction(2)),
    ("FF3", Field::Fraction(3)),
    ("FF4", Field::Fraction(4)),
    ("FF5", Field::Fraction(5)),
    ("FF6", Field::Fraction(6)),
    ("HH24", Field::Hour24),
    ("HH12", Field::Hour12),
    ("HH", Field::Hour12),
    ("IDDD", Field::IsoDayOfYear),
    ("ID", Field::IsoDay),
    ("IW", Field::IsoWeek),
    ("IYYY", Field::IsoYear(4)),
    ("IYY", Field::IsoYear(3)),
    ("IY", Field::IsoYear(2)),
    ("I", Field::IsoYear(1)),
    ("J", Field::Julian),
    ("MI", Field::Minute),
    ("MM", Field::Month),
    ("MONTH", Field::MonthName),
    ("MON", Field::MonthShort),
    ("MS", Field::Fraction(3)),
    ("OF", Field::Displacement),
    ("P.M.", Field::Meridian(true)),
    ("PM", Field::Meridian(false)),
    ("Q", Field::Quarter),
    ("RM", Field::Roman),
    ("SSSSS", Field::SecondOfDay),
    ("SSSS", Field::SecondOfDay),
    ("SS", Field::Second),
    ("TZH", Field::ZoneHour),
    ("TZM", Field::ZoneMinute),
    ("TZ", Field::Zone),
    ("US", Field::Fraction(6)),
    ("WW", Field::Week),
    ("W", Field::WeekOfMonth),
    ("Y,YYY", Field::YearComma),
    ("YYYY", Field::Year(4)),
    ("YYY", Field::Year(3)),
    ("YY", Field::Year(2)),
    ("Y", Field::Year(1)),
];

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    pub field: Field,
    pub case: Case,
    /// FM: no padding.
    pub fill: bool,
    /// TH, th: an ordinal's ending.
    pub ordinal: Option<Case>,
    /// FF1 to FF6: how many digits.
    pub kept: Option<u32>,
}
/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Item(Item),
    /// FX: the text to be read must have the template's shape.
    Exact,
    /// A character as it is, and whether it was in quotes.
    Literal(char, bool),
}

/// A keyword at the start, with the letter case it asks for.
fn keyword(rest: &str) -> Option<(Field, Case, usize)> {
    let names = |field| {
        matches!(
            field,
            Field::MonthName | Field::MonthShort | Field::DayName | Field::DayShort
        )
    };
    KEYWORDS.iter().find_map(|&(word, field)| {
        let head = rest.get(..word.len())?;
        if !head.eq_ignore_ascii_case(word) {
            return None;
        }
        let second_is_small = head.as_bytes().get(1).is_some_and(u8::is_ascii_lowercase);
        let case = match head.as_bytes()[0].is_ascii_lowercase() {
            true => Case::Lower,
            false if second_is_small && names(field) => Case::Capital,
            false => Case::Upper,
        };
        Some((field, case, word.len()))
    })
}

/// Takes a template apart.
pub fn template(format: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = format;
    let starts = |s: &str, word: &str| {
        s.get(..word.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(word))
    };
    while let Some(c) = rest.chars().next() {
        if starts(rest, "FX") {
            pieces.push(Piece::Exact);
            rest = &rest[2..];
            continue;
        }
        let (mut body, mut fill) = (rest, false);
        while starts(body, "FM") || starts(body, "TM") {
            fill |= starts(body, "FM");
            body = &body[2..];
        }
        if let Some((field, case, len)) = keyword(body) {
            rest = &body[len..];
            let ordinal = match rest.get(..2) {
                Some("TH") => Some(Case::Upper),
                Some("th") => Some(Case::Lower),
                _ => None,
            };
            rest = &rest[if ordinal.is_some() { 2 } else { 0 }..];
            pieces.push(Piece::Item(Item {
                field,
                case,
                fill,
                ordinal,
                kept: match field {
                    Field::Fraction(digits) if starts(body, "FF") => Some(digits),
                    _ => None,
                },
            }));
            continue;
        }
        if body.len() < rest.len() {
            rest = body;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => rest = quoted(rest, &mut pieces),
            '\\' if rest.starts_with('"') => {
                pieces.push(Piece::Literal('"', false));
                rest = &rest[1..];
            }
            c => pieces.push(Piece::Literal(c, false)),
        }
    }
    pieces
}
/// What is in double quotes, to the closing one; gives what follows.
fn quoted<'a>(text: &'a str, pieces: &mut Vec<Piece>) -> &'a str {
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => break,
            '\\' => pieces.extend(characters.next().map(|c| Piece::Literal(c, true))),
            c => pieces.push(Piece::Literal(c, true)),
        }
    }
    characters.as_str()
}

pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// From Sunday.
pub const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
pub const ROMAN_MONTHS: [&str; 12] = [
    "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII",
];

/// The ending of an ordinal number.
pub fn ordinal(digits: &str, case: Case) -> String {
    let tail = digits.as_bytes();
    let teens = tail.len() > 1 && tail[tail.len() - 2] == b'1';
    let ending = match tail.last() {
        Some(b'1') if !teens => "st",
        Some(b'2') if !teens => "nd",
        Some(b'3') if !teens => "rd",
        _ => "th",
    };
    case.apply(ending)
}

/// What is to be written.
struct Moment {
    /// Astronomical; of an interval, its years.
    year: i64,
    month: i64,
    day: i64,
    /// Days since 2000, for what a calendar says; None for an interval.
    days: Option<i64>,
    hour: i64,
    minute: i64,
    /// Microseconds within the minute.
    micros: i64,
    /// Displacement and abbreviation of the zone.
    zone: Option<(i32, String)>,
}

impl Moment {
    fn of_local(local: i64, zone: Option<(i32, String)>) -> Moment {
        let days = local.div_euclid(MICROS_PER_DAY);
        let time = local.rem_euclid(MICROS_PER_DAY);
        let (year, month, day) = date_from_days(days);
        Moment {
            year: year.into(),
            month: month.into(),
            day: day.into(),
            days: Some(days),
            hour: time / MICROS_PER_HOUR,
            minute: time / MICROS_PER_MINUTE % 60,
            micros: time % MICROS_PER_MINUTE,
            zone,
        }
    }
    fn of_interval(span: Interval) -> Moment {
        Moment {
            year: i64::from(span.months / 12),
            month: i64::from(span.months % 12),
            day: span.days.into(),
            days: None,
            hour: span.micros / MICROS_PER_HOUR,
            minute: span.micros / MICROS_PER_MINUTE % 60,
            micros: span.micros % MICROS_PER_MINUTE,
            zone: None,
        }
    }
    /// Thursday of the same week: what an ISO year and week are counted by.
    fn thursday(&self) -> i64 {
        let days = self.days.unwrap_or_default();
        days - (days + 5).rem_euclid(7) + 3
    }
    fn day_of_year(&self) -> i64 {
        match self.days {
            Some(days) => days - days_from_date(self.year as i32, 1, 1) + 1,
            None => (self.year * 12 + self.month) * 30 + self.day,
        }
    }
    /// A year as it is called: 0 is 1 BC.
    fn called(&self, year: i64) -> i64 {
        if self.days.is_some() && year <= 0 {
            1 - year
        } else {
            year
        }
    }
}

/// A number padded with zeros; a minus sign takes a place of its own.
fn padded(value: i64, width: usize, fill: bool) -> String {
    match (fill, value < 0) {
        (true, _) => value.to_string(),
        (false, true) => format!("{value:0width$}", width = width + 1),
        (false, false) => format!("{value:0width$}"),
    }
}

fn item_text(item: &Item, at: &Moment) -> Result<String> {
    let Item {
        field, case, fill, ..
    } = *item;
    let number = |value: i64, width: usize| Ok(padded(value, width, fill));
    let name = |name: &str, width: usize| {
        let name = case.apply(name);
        Ok(if fill {
            name
        } else {
            format!("{name:<width$}")
        })
    };
    let of_calendar = || {
        at.days.ok_or_else(|| {
            Error::new(
                state::INVALID_DATETIME_FORMAT,
                "invalid format specification for an interval value",
            )
            .hint("Intervals are not tied to specific calendar dates.")
        })
    };
    let weekday = || of_calendar().map(|days| (days + 6).rem_euclid(7));
    let month = usize::try_from(at.month - 1).ok();
    match field {
        Field::Era(points) => {
            of_calendar()?;
            Ok(case.apply(match (at.year <= 0, points) {
                (false, false) => "AD",
                (false, true) => "A.D.",
                (true, false) => "BC",
                (true, true) => "B.C.",
            }))
        }
        Field::Meridian(points) => Ok(case.apply(match (at.hour % 24 >= 12, points) {
            (false, false) => "AM",
            (false, true) => "A.M.",
            (true, false) => "PM",
            (true, true) => "P.M.",
        })),
        Field::Century => number(
            match at.days {
                None => at.year / 100,
                Some(_) if at.year > 0 => (at.year - 1) / 100 + 1,
                Some(_) => at.year / 100 - 1,
            },
            2,
        ),
        Field::DayNumber => Ok((weekday()? + 1).to_string()),
        Field::DayName => name(DAYS[weekday()? as usize], 9),
        Field::DayShort => Ok(case.apply(&DAYS[weekday()? as usize][..3])),
        Field::DayOfMonth => number(at.day, 2),
        Field::DayOfYear => number(at.day_of_year(), 3),
        Field::Fraction(digits) => {
            let fraction = at.micros % MICROS_PER_SECOND / 10i64.pow(6 - digits);
            Ok(padded(fraction, digits as usize, false))
        }
        Field::Hour12 => {
            let hour = at.hour % 12;
            number(if hour == 0 { 12 } else { hour }, 2)
        }
        Field::Hour24 => number(at.hour, 2),
        Field::IsoDayOfYear => {
            of_calendar()?;
            let iso_year = date_from_days(at.thursday()).0;
            let january_4 = days_from_date(iso_year, 1, 4);
            let first = january_4 - (january_4 + 5).rem_euclid(7);
            number(at.days.unwrap_or_default() - first + 1, 3)
        }
        Field::IsoDay => Ok(match weekday()? {
            0 => 7,
            day => day,
        }
        .to_string()),
        Field::IsoWeek => {
            of_calendar()?;
            let thursday = at.thursday();
            let january = days_from_date(date_from_days(thursday).0, 1, 1);
            number((thursday - january) / 7 + 1, 2)
        }
        Field::IsoYear(digits) => {
            of_calendar()?;
            number(
                at.called(date_from_days(at.thursday()).0.into()) % 10i64.pow(digits),
                digits as usize,
            )
        }
        Field::Julian => Ok(match at.days {
            Some(days) => days + i64::from(EPOCH_JULIAN),
            // No month counts as the December before.
            None if at.month <= 0 => date_to_julian(at.year as i32 - 1, 12, at.day as i32),
            None => date_to_julian(at.year as i32, at.month as i32, at.day as i32),
        }
        .to_string()),
        Field::Minute => number(at.minute, 2),
        Field::Month => number(at.month, 2),
        Field::MonthName => {
            of_calendar()?;
            month.map_or(Ok(String::new()), |m| name(MONTHS[m], 9))
        }
        Field::MonthShort => {
            of_calendar()?;
            Ok(month.map_or(String::new(), |m| case.apply(&MONTHS[m][..3])))
        }
        Field::Quarter => Ok(month.map_or(String::new(), |m| (m / 3 + 1).to_string())),
        // An interval's months count back from December where there are none or fewer.
        Field::Roman => match (at.month, at.year) {
            (0, 0) => Ok(String::new()),
            (0, 1..) => name(ROMAN_MONTHS[11], 4),
            (0, _) => name(ROMAN_MONTHS[0], 4),
            (month @ ..0, _) => name(ROMAN_MONTHS[(12 + month).max(0) as usize], 4),
            (month, _) => name(ROMAN_MONTHS[(month as usize - 1) % 12], 4),
        },
        Field::SecondOfDay => {
            Ok((at.hour * 3600 + at.minute * 60 + at.micros / MICROS_PER_SECOND).to_string())
        }
        Field::Second => number(at.micros / MICROS_PER_SECOND, 2),
        Field::Zone => {
            of_calendar()?;
            Ok(at
                .zone
                .as_ref()
                .map_or(String::new(), |(_, name)| case.apply_whole(name)))
        }
        Field::Displacement | Field::ZoneHour | Field::ZoneMinute => {
            of_calendar()?;
            let east = at.zone.as_ref().map_or(0, |(east, _)| *east);
            let (sign, minutes) = (if east < 0 { '-' } else { '+' }, east.abs() / 60);
            Ok(match (field, minutes % 60) {
                (Field::ZoneMinute, minute) => format!("{minute:02}"),
                (Field::Displacement, minute @ 1..) => {
                    format!("{sign}{:02}:{minute:02}", minutes / 60)
                }
                _ => format!("{sign}{:02}", minutes / 60),
            })
        }
        Field::Week => number((at.day_of_year() - 1) / 7 + 1, 2),
        Field::WeekOfMonth => Ok(((at.day - 1) / 7 + 1).to_string()),
        Field::YearComma => {
            let year = at.called(at.year);
            Ok(format!("{},{:03}", year / 1000, year % 1000))
        }
        Field::Year(4) => number(at.called(at.year), 4),
        Field::Year(digits) => number(at.called(at.year) % 10i64.pow(digits), digits as usize),
    }
}

impl Case {
    /// A zone's abbreviation has no case of its own.
    fn apply_whole(self, name: &str) -> String {
        if self == Case::Lower {
            name.to_ascii_lowercase()
        } else {
            name.into()
        }
    }
}

fn write(format: &str, at: &Moment) -> Result<String> {
    let mut out = String::new();
    for piece in template(format) {
        match piece {
            Piece::Exact => {}
            Piece::Literal(c, _) => out.push(c),
            Piece::Item(item) => {
                let shown = item_text(&item, at)?;
                out.push_str(&shown);
                if let Some(case) = item.ordinal {
                    out.push_str(&ordinal(&shown, case));
                }
            }
        }
    }
    Ok(out)
}

/// A finite timestamp of either kind by a template.
pub fn timestamp_text(
    ctx: &EvalContext<'_>,
    value: &Datum,
    format: &str,
) -> Result<String, super::EvalStop> {
    let t = moment(value);
    let zone = matches!(value, Datum::TimestampTz(_)).then(|| {
        let zone = &ctx.format.time_zone;
        (
            zone.east_at(t),
            zone.abbreviation_at(t)
                .unwrap_or_else(|| zone.name().into()),
        )
    });
    let east = zone.as_ref().map_or(0, |(east, _)| *east);
    let local = t + i64::from(east) * MICROS_PER_SECOND;
    Ok(write(format, &Moment::of_local(local, zone))?)
}
fn timestamp_to_char(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let format = text(&args[1]);
    if format.is_empty() || is_infinite(moment(&args[0])) {
        return Ok(Datum::Null);
    }
    Ok(timestamp_text(ctx, &args[0], format)?.into())
}
fn interval_to_char(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (span, format) = (interval(&args[0]), text(&args[1]));
    if format.is_empty() || !span.is_finite() {
        return Ok(Datum::Null);
    }
    Ok(write(format, &Moment::of_interval(span))?.into())
}

use number::{number_to_char, to_number};
use parse::{to_date, to_timestamp};

pub static FUNCTIONS: &[Function] = &[
    Function::new(1768, "to_char", &[INTERVAL, TEXT], TEXT, interval_to_char).stable(),
    Function::new(
        1770,
        "to_char",
        &[TIMESTAMPTZ, TEXT],
        TEXT,
        timestamp_to_char,
    )
    .stable(),
    Function::new(1772, "to_char", &[NUMERIC, TEXT], TEXT, number_to_char).stable(),
    Function::new(1773, "to_char", &[INT4, TEXT], TEXT, number_to_char).stable(),
    Function::new(1774, "to_char", &[INT8, TEXT], TEXT, number_to_char).stable(),
    Function::new(1775, "to_char", &[FLOAT4, TEXT], TEXT, number_to_char).stable(),
    Function::new(1776, "to_char", &[FLOAT8, TEXT], TEXT, number_to_char).stable(),
    Function::new(2049, "to_char", &[TIMESTAMP, TEXT], TEXT, timestamp_to_char).stable(),
    Function::new(1780, "to_date", &[TEXT, TEXT], DATE, to_date).stable(),
    Function::new(1777, "to_number", &[TEXT, TEXT], NUMERIC, to_number).stable(),
    Function::new(
        1778,
        "to_timestamp",
        &[TEXT, TEXT],
        TIMESTAMPTZ,
        to_timestamp,
    )
    .stable(),
];
