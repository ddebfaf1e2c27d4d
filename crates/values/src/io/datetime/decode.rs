//! What the fields of a date or time mean.

use super::Fault;
use super::token::{Kind, Token, tokenize};
use crate::eval::EvalContext;
use crate::io::{DateOrder, Zone};
use throng_types::calendar::*;
use throng_types::{Oid, oid};

/// What the text says, before it becomes a value of some type.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    Infinity,
    NegInfinity,
    At(Moment),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// Days since 2000-01-01.
    pub days: Option<i64>,
    /// Microseconds since midnight.
    pub time: Option<i64>,
    /// The zone the text names.
    pub zone: Option<Zone>,
}

impl Moment {
    /// Microseconds since 2000-01-01, in the text's own zone; midnight where it has no time.
    pub fn local(&self) -> Option<i128> {
        let days = i128::from(self.days?);
        Some(days * i128::from(MICROS_PER_DAY) + i128::from(self.time.unwrap_or(0)))
    }
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

#[derive(Clone, Debug, PartialEq)]
enum Word {
    Month(i32),
    Weekday,
    Meridian(bool),
    Era { bc: bool },
    Now,
    Day(i32),
    Epoch,
    Infinity,
    Midnight,
    Julian,
    IsoTime,
    Ignore,
    Zone(Zone),
}

fn word(text: &str) -> Option<Word> {
    // Months and days by name or their first three letters.
    let named = |names: &[&str]| {
        names
            .iter()
            .position(|n| *n == text || (text.len() == 3 && n.starts_with(text)))
    };
    if let Some(m) = named(&MONTHS) {
        return Some(Word::Month(m as i32 + 1));
    }
    if named(&DAYS).is_some() || matches!(text, "tues" | "weds" | "wednes" | "thur" | "thurs") {
        return Some(Word::Weekday);
    }
    Some(match text {
        "sept" => Word::Month(9),
        "am" => Word::Meridian(false),
        "pm" => Word::Meridian(true),
        "ad" => Word::Era { bc: false },
        "bc" => Word::Era { bc: true },
        "now" => Word::Now,
        "today" => Word::Day(0),
        "tomorrow" => Word::Day(1),
        "yesterday" => Word::Day(-1),
        "epoch" => Word::Epoch,
        "infinity" | "inf" => Word::Infinity,
        "allballs" => Word::Midnight,
        "j" | "jd" | "julian" => Word::Julian,
        "t" => Word::IsoTime,
        "at" | "on" => Word::Ignore,
        _ => Word::Zone(Zone::abbreviation(text)?),
    })
}

/// Which parts of a date a number may still be.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i32>,
    day: Option<i32>,
    /// The month came as a word.
    text_month: bool,
    /// The year came with one or two digits.
    short_year: bool,
    /// Days since 2000 that need no checking: a Julian day, or a word such as `today`.
    days: Option<i64>,
    /// The day of the year.
    day_of_year: Option<i32>,
    time: Option<i64>,
    hour: i64,
    zone: Option<Zone>,
    bc: Option<bool>,
    meridian: Option<bool>,
    weekday: bool,
    julian_next: bool,
    time_next: bool,
    infinity: Option<bool>,
}

impl Fields {
    fn has_date(&self) -> bool {
        self.days.is_some()
            || (self.year.is_some() && self.month.is_some() && self.day.is_some())
            || (self.year.is_some() && self.day_of_year.is_some())
    }
    fn has_any_date(&self) -> bool {
        self.days.is_some() || self.year.is_some() || self.month.is_some() || self.day.is_some()
    }
    /// Whether the month and the day, as far as they are told, are some.
    fn may_be_of_a_date(&self) -> bool {
        self.month.is_none_or(|m| (1..=12).contains(&m))
            && self.day.is_none_or(|d| (1..=31).contains(&d))
    }
    fn set_time(&mut self, time: i64, hour: i64) -> Result<(), Fault> {
        if self.time.is_some() {
            return Err(Fault::Format);
        }
        (self.time, self.hour) = (Some(time), hour);
        Ok(())
    }
    fn set_zone(&mut self, zone: Zone) -> Result<(), Fault> {
        if self.zone.is_some() {
            return Err(Fault::Format);
        }
        self.zone = Some(zone);
        Ok(())
    }
}

/// Reads text for one of the date and time types (not interval).
pub fn decode(ctx: &EvalContext<'_>, text: &str, ty: Oid) -> Result<Decoded, Fault> {
    match iso(text.as_bytes()) {
        Some(moment) if matches!(ty, oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ) => {
            Ok(Decoded::At(moment))
        }
        _ => decode_tokens(ctx, text, ty),
    }
}

/// `2024-05-06`, `2024-05-06 07:08:09` and `2024-05-06 07:08:09.123456`, what loads and drivers
/// send, read at a glance: they mean the same in every date style. `None`: something else, or
/// something wrong.
fn iso(text: &[u8]) -> Option<Moment> {
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range)?;
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0, |n, d| 10 * n + i64::from(d - b'0')))
    };
    let is = |at: usize, mark: u8| text.get(at) == Some(&mark);
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let sound = is(4, b'-') && is(7, b'-') && year > 0 && (1..=12).contains(&month) && day > 0;
    if !sound || day > days_in_month(year as i32, month as i32).into() {
        return None;
    }
    let days = Some(days_from_date(year as i32, month as i32, day as i32));
    if text.len() == 10 {
        return Some(Moment {
            days,
            ..Moment::default()
        });
    }
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !(is(10, b' ') && is(13, b':') && is(16, b':')) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let micros = match text.len() {
        19 => 0,
        21..=26 if is(19, b'.') => number(20..text.len())? * 10_i64.pow(26 - text.len() as u32),
        _ => return None,
    };
    let time = hour * MICROS_PER_HOUR + minute * MICROS_PER_MINUTE + second * MICROS_PER_SECOND;
    Some(Moment {
        days,
        time: Some(time + micros),
        zone: None,
    })
}

/// A word, or a letter that stands for a unit: digits behind it are not a part of a zone's name.
fn is_known(text: &str) -> bool {
    word(text).is_some() || matches!(text, "d" | "h" | "m" | "mm" | "s" | "y")
}

/// The name in a text that no zone has: its field of this number.
pub(super) fn unknown_zone(text: &str, field: usize) -> String {
    let tokens = tokenize(text, is_known).unwrap_or_default();
    tokens.get(field).map_or("", |t| &t.text).to_owned()
}

fn decode_tokens(ctx: &EvalContext<'_>, text: &str, ty: Oid) -> Result<Decoded, Fault> {
    let tokens = tokenize(text, is_known)?;
    if tokens.is_empty() {
        return Err(Fault::Format);
    }
    let order = ctx.format.date_style.order;
    let time_only = matches!(ty, oid::TIME | oid::TIMETZ);
    let mut fields = Fields::default();
    for (i, token) in tokens.iter().enumerate() {
        if fields.infinity.is_some() {
            return Err(Fault::Format);
        }
        match token.kind {
            Kind::Date => {
                date_token(&mut fields, token, order, time_only).map_err(|fault| match fault {
                    Fault::UnknownZone(_) => Fault::UnknownZone(i),
                    other => other,
                })?;
            }
            Kind::Time => {
                let (time, hour) = clock(&token.text)?;
                fields.set_time(time, hour)?;
                fields.time_next = false;
            }
            Kind::Signed => signed_token(&mut fields, &tokens, i)?,
            Kind::Number => number_token(&mut fields, &token.text, order, time_only)?,
            Kind::Special => match token.text.as_str() {
                "+infinity" | "+inf" => fields.infinity = Some(true),
                "-infinity" | "-inf" => fields.infinity = Some(false),
                _ => return Err(Fault::Format),
            },
            Kind::Word => word_token(ctx, &mut fields, &tokens, i)?,
        }
    }
    if fields.julian_next || fields.time_next {
        return Err(Fault::Format);
    }
    if let Some(positive) = fields.infinity {
        let alone = tokens.len() == 1 && !time_only;
        return match (alone, positive) {
            (false, _) => Err(Fault::Format),
            (true, true) => Ok(Decoded::Infinity),
            (true, false) => Ok(Decoded::NegInfinity),
        };
    }
    finish(fields, time_only).map(Decoded::At)
}

fn date_token(
    fields: &mut Fields,
    token: &Token,
    order: DateOrder,
    time_only: bool,
) -> Result<(), Fault> {
    let starts_with_digit = token.text.as_bytes()[0].is_ascii_digit();
    if fields.has_date()
        || fields.time_next
        || (time_only && fields.time.is_some() && !starts_with_digit)
    {
        if starts_with_digit || fields.time_next {
            // A run-together time with its displacement: 040506-08.
            let cut = token.text.rfind(['+', '-']).ok_or(Fault::Format)?;
            let (clock_text, zone_text) = token.text.split_at(cut);
            fields.set_zone(displacement(zone_text)?)?;
            return run_together_time(fields, clock_text);
        }
        let zone = Zone::by_name(&token.text).ok_or(Fault::UnknownZone(0))?;
        return fields.set_zone(zone);
    }
    if !starts_with_digit {
        // A zone's name may come before the date.
        let first = token
            .text
            .split(|c: char| !c.is_ascii_alphabetic())
            .next()
            .unwrap_or("");
        if !matches!(word(first), Some(Word::Month(_) | Word::Weekday))
            && let Some(zone) = Zone::by_name(&token.text)
        {
            return fields.set_zone(zone);
        }
    }
    // A date in one piece comes first; only a zone may stand before it.
    if fields.weekday || fields.time.is_some() || fields.has_any_date() {
        return Err(Fault::Format);
    }
    // First the month by name, then the numbers in order.
    let parts: Vec<&str> = token
        .text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|p| !p.is_empty())
        .collect();
    let is_word = |p: &&&str| p.as_bytes()[0].is_ascii_alphabetic();
    for part in parts.iter().filter(is_word) {
        match word(part) {
            Some(Word::Month(m)) if fields.month.is_none() => {
                fields.month = Some(m);
                fields.text_month = true;
            }
            Some(Word::Ignore) => {}
            _ => return Err(Fault::Format),
        }
    }
    for part in parts.iter().filter(|p| !is_word(p)) {
        if !part.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Fault::Format);
        }
        date_number(fields, part, order)?;
    }
    if !fields.has_date() {
        return Err(Fault::Format);
    }
    Ok(())
}

/// A number that is part of a date: which part, by what is known and the order of DateStyle.
fn date_number(fields: &mut Fields, text: &str, order: DateOrder) -> Result<(), Fault> {
    let value: i64 = text.parse().map_err(|_| Fault::FieldOverflow)?;
    let small = i32::try_from(value).map_err(|_| Fault::FieldOverflow)?;
    let wide = text.len() >= 3;
    if text.len() == 3
        && fields.year.is_some()
        && fields.month.is_none()
        && fields.day.is_none()
        && (1..=366).contains(&small)
    {
        fields.day_of_year = Some(small);
        return Ok(());
    }
    let set_year = |fields: &mut Fields| {
        fields.year = Some(value);
        fields.short_year = text.len() <= 2;
    };
    match (
        fields.year.is_some(),
        fields.month.is_some(),
        fields.day.is_some(),
    ) {
        (false, false, false) if wide || order == DateOrder::Ymd => set_year(fields),
        (false, false, false) if order == DateOrder::Dmy => fields.day = Some(small),
        (false, false, false) => fields.month = Some(small),
        (true, false, false) => fields.month = Some(small),
        (false, true, false) if fields.text_month && (wide || order == DateOrder::Ymd) => {
            set_year(fields);
        }
        (false, true, false) => fields.day = Some(small),
        (true, true, false) if fields.text_month && wide && fields.short_year => {
            // What was taken for the year was the day.
            fields.day = fields.year.map(|y| y as i32);
            set_year(fields);
        }
        (true, true, false) => fields.day = Some(small),
        (false, false, true) => fields.month = Some(small),
        (false, true, true) => set_year(fields),
        (true, false, true) => fields.month = Some(small),
        (true, true, true) => return Err(Fault::Format),
    }
    Ok(())
}

fn number_token(
    fields: &mut Fields,
    text: &str,
    order: DateOrder,
    time_only: bool,
) -> Result<(), Fault> {
    if std::mem::take(&mut fields.julian_next) {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let julian: i64 = whole.parse().map_err(|_| Fault::FieldOverflow)?;
        fields.days = Some(julian - i64::from(EPOCH_JULIAN));
        if !fraction.is_empty() {
            let part: f64 = format!("0.{fraction}").parse().map_err(|_| Fault::Format)?;
            let micros = (part * MICROS_PER_DAY as f64) as i64;
            fields.set_time(micros, micros / MICROS_PER_HOUR)?;
        }
        return Ok(());
    }
    if std::mem::take(&mut fields.time_next) {
        return run_together_time(fields, text);
    }
    let digits = text.find('.').unwrap_or(text.len());
    if text.contains('.') {
        if time_only || fields.has_date() {
            return run_together_time(fields, text);
        }
        // `1999.01`, and `20011225.5` which no type takes.
        for part in text.split('.').filter(|p| !p.is_empty()) {
            date_number(fields, part, order)?;
        }
        return if fields.has_date() {
            Ok(())
        } else {
            Err(Fault::Format)
        };
    }
    if time_only && fields.time.is_none() && !fields.has_any_date() {
        return run_together_time(fields, text);
    }
    if fields.has_date() {
        return run_together_time(fields, text);
    }
    if digits >= 6 && !fields.has_any_date() {
        // Year, month and day run together.
        let (rest, day) = text.split_at(digits - 2);
        let (year, month) = rest.split_at(rest.len() - 2);
        fields.year = Some(year.parse().map_err(|_| Fault::FieldOverflow)?);
        fields.short_year = year.len() <= 2;
        fields.month = Some(month.parse().map_err(|_| Fault::Format)?);
        fields.day = Some(day.parse().map_err(|_| Fault::Format)?);
        return Ok(());
    }
    date_number(fields, text, order)
}

/// `hhmmss`, `hhmm`, perhaps with a fraction.
fn run_together_time(fields: &mut Fields, text: &str) -> Result<(), Fault> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !whole.bytes().all(|b| b.is_ascii_digit()) || !matches!(whole.len(), 4 | 6) {
        return Err(Fault::Format);
    }
    let mut spelled = format!("{}:{}", &whole[..2], &whole[2..4]);
    if whole.len() == 6 {
        spelled += &format!(":{}", &whole[4..]);
        if !fraction.is_empty() {
            spelled += &format!(".{fraction}");
        }
    } else if !fraction.is_empty() {
        return Err(Fault::Format);
    }
    let (time, hour) = clock(&spelled)?;
    fields.set_time(time, hour)
}

/// `h:mm[:ss[.f]]` in microseconds, with the hour apart for AM and PM.
fn clock(text: &str) -> Result<(i64, i64), Fault> {
    let mut parts = text.split(':');
    let number = |s: &str| -> Result<i64, Fault> {
        if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Fault::Format);
        }
        s.parse().map_err(|_| Fault::FieldOverflow)
    };
    let hour = number(parts.next().unwrap_or(""))?;
    let minute = number(parts.next().ok_or(Fault::Format)?)?;
    let (second, micros) = match parts.next() {
        None => (0, 0),
        Some(s) => {
            let (whole, fraction) = s.split_once('.').unwrap_or((s, ""));
            (number(whole)?, fraction_micros(fraction)?)
        }
    };
    if parts.next().is_some() {
        return Err(Fault::Format);
    }
    let time = hour
        .checked_mul(MICROS_PER_HOUR)
        .and_then(|h| {
            h.checked_add(
                minute.min(60) * MICROS_PER_MINUTE + second.min(61) * MICROS_PER_SECOND + micros,
            )
        })
        .ok_or(Fault::FieldOverflow)?;
    if minute > 59 || second > 60 || time > MICROS_PER_DAY {
        return Err(Fault::FieldOverflow);
    }
    Ok((time, hour))
}

/// The digits after a second's point, rounded to microseconds.
pub fn fraction_micros(digits: &str) -> Result<i64, Fault> {
    if digits.is_empty() {
        return Ok(0);
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    if digits.len() <= 6 {
        let value: i64 = digits.parse().map_err(|_| Fault::Format)?;
        return Ok(value * 10i64.pow(6 - digits.len() as u32));
    }
    let value: f64 = format!("0.{digits}").parse().map_err(|_| Fault::Format)?;
    Ok((value * 1e6).round_ties_even() as i64)
}

fn displacement(text: &str) -> Result<Zone, Fault> {
    let (sign, body) = text.split_at(1);
    let spelled = match (body.contains(':'), body.len()) {
        (true, _) | (false, 1 | 2) => body.to_string(),
        (false, 3) => format!("{}:{}", &body[..1], &body[1..]),
        (false, 4) => format!("{}:{}", &body[..2], &body[2..]),
        (false, 6) => format!("{}:{}:{}", &body[..2], &body[2..4], &body[4..]),
        _ => return Err(Fault::Format),
    };
    if !spelled.bytes().all(|b| b.is_ascii_digit() || b == b':') {
        return Err(Fault::Format);
    }
    let seconds = crate::zone::parse_displacement(&spelled).ok_or(Fault::ZoneOverflow)?;
    Zone::fixed(if sign == "-" { -seconds } else { seconds }).ok_or(Fault::ZoneOverflow)
}

fn signed_token(fields: &mut Fields, tokens: &[Token], i: usize) -> Result<(), Fault> {
    if fields.time.is_none() && !fields.has_any_date() {
        return Err(Fault::Format);
    }
    let zone = displacement(&tokens[i].text)?;
    // After a zone's name the sign is POSIX's: `UTC+3` is west.
    if i > 0 && tokens[i - 1].kind == Kind::Word && fields.zone.is_some() {
        let Zone::Fixed { east, .. } = zone else {
            return Err(Fault::Format);
        };
        fields.zone = Zone::fixed(-east);
        return Ok(());
    }
    fields.set_zone(zone)
}

fn word_token(
    ctx: &EvalContext<'_>,
    fields: &mut Fields,
    tokens: &[Token],
    i: usize,
) -> Result<(), Fault> {
    let token = &tokens[i];
    let Some(found) = word(&token.text) else {
        // A zone without punctuation in its name: `Japan`.
        let zone = Zone::by_name(&token.text).ok_or(Fault::Format)?;
        return fields.set_zone(zone);
    };
    match found {
        // These say all of a date: nothing else may.
        Word::Now | Word::Day(_) | Word::Epoch | Word::Infinity if fields.has_any_date() => {
            return Err(Fault::Format);
        }
        Word::Month(m) => {
            if let Some(taken) = fields.month {
                if fields.text_month || fields.day.is_some() || !(1..=31).contains(&taken) {
                    return Err(Fault::Format);
                }
                // What was taken for the month was the day: `08 Jan 1999`.
                fields.day = fields.month;
            }
            fields.month = Some(m);
            fields.text_month = true;
        }
        Word::Weekday => fields.weekday = true,
        Word::Ignore => {}
        Word::Meridian(pm) => {
            if fields.meridian.replace(pm).is_some() {
                return Err(Fault::Format);
            }
            // `4 PM`: the number before was the hour.
            if fields.time.is_none() {
                return Err(Fault::Format);
            }
        }
        Word::Era { bc } => {
            if fields.bc.replace(bc).is_some() {
                return Err(Fault::Format);
            }
        }
        Word::Now => {
            let now = ctx
                .format
                .time_zone
                .to_local(ctx.host.transaction_timestamp());
            fields.days = Some(now.div_euclid(MICROS_PER_DAY));
            let time = now.rem_euclid(MICROS_PER_DAY);
            fields.set_time(time, time / MICROS_PER_HOUR)?;
            if fields.zone.is_none() {
                let east = ctx
                    .format
                    .time_zone
                    .east_at(ctx.host.transaction_timestamp());
                fields.zone = Zone::fixed(east);
            }
        }
        Word::Day(offset) => {
            let now = ctx
                .format
                .time_zone
                .to_local(ctx.host.transaction_timestamp());
            fields.days = Some(now.div_euclid(MICROS_PER_DAY) + i64::from(offset));
        }
        Word::Epoch => {
            fields.days = Some(-i64::from(UNIX_EPOCH_DAYS));
            fields.set_time(0, 0)?;
            fields.zone = Zone::fixed(0);
        }
        Word::Infinity => fields.infinity = Some(true),
        Word::Midnight => {
            fields.set_time(0, 0)?;
            fields.zone = Zone::fixed(0);
        }
        Word::Julian if fields.julian_next || fields.has_any_date() => return Err(Fault::Format),
        Word::Julian => fields.julian_next = true,
        Word::IsoTime => {
            let next_is_time = tokens
                .get(i + 1)
                .is_some_and(|t| matches!(t.kind, Kind::Time | Kind::Number | Kind::Date));
            if !next_is_time {
                return Err(Fault::Format);
            }
            fields.time_next = true;
        }
        Word::Zone(zone) => fields.set_zone(zone)?,
    }
    Ok(())
}

fn finish(mut fields: Fields, time_only: bool) -> Result<Moment, Fault> {
    if let Some(pm) = fields.meridian {
        if fields.hour > 12 {
            return Err(Fault::FieldOverflow);
        }
        let shift = match (pm, fields.hour) {
            (false, 12) => -12,
            (true, h) if h < 12 => 12,
            _ => 0,
        };
        fields.time = fields.time.map(|t| t + shift * MICROS_PER_HOUR);
    }
    let days = match fields.days {
        Some(days) => Some(days),
        None if fields.has_date() => Some(calendar_days(&fields)?),
        None if !fields.may_be_of_a_date() => return Err(Fault::MonthDayOverflow),
        None if fields.has_any_date() && !time_only => return Err(Fault::Format),
        None => None,
    };
    if days.is_none() && !time_only {
        return Err(Fault::Format);
    }
    // Without a date a zone must be the same on every day.
    let changing = matches!(fields.zone, Some(Zone::Named(_)));
    if time_only && (fields.time.is_none() || (changing && days.is_none())) {
        return Err(Fault::Format);
    }
    Ok(Moment {
        days,
        time: fields.time,
        zone: fields.zone,
    })
}

fn calendar_days(fields: &Fields) -> Result<i64, Fault> {
    let mut year = fields.year.ok_or(Fault::Format)?;
    if fields.bc == Some(true) {
        if year <= 0 {
            return Err(Fault::FieldOverflow);
        }
        year = 1 - year;
    } else if fields.short_year {
        year += if year < 70 { 2000 } else { 1900 };
    } else if year <= 0 {
        return Err(Fault::FieldOverflow);
    }
    let year = i32::try_from(year)
        .ok()
        .filter(|y| *y < 10_000_000)
        .ok_or(Fault::FieldOverflow)?;
    if let Some(day) = fields.day_of_year {
        return Ok(days_from_date(year, 1, 1) + i64::from(day) - 1);
    }
    if !fields.may_be_of_a_date() {
        return Err(Fault::MonthDayOverflow);
    }
    let (month, day) = (fields.month.unwrap_or(1), fields.day.unwrap_or(1));
    if day > days_in_month(year, month) {
        return Err(Fault::FieldOverflow);
    }
    Ok(days_from_date(year, month, day))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::func::testing::with_context;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_read_at_a_glance_is_read_alike_in_every_style(
            year in 0..10_000, month in 0..14, day in 0..33,
            time in proptest::option::of((0..26, 0..62, 0..62, proptest::option::of("[0-9]{1,7}"))),
            order in 0..3_usize,
        ) {
            let mut text = format!("{year:04}-{month:02}-{day:02}");
            if let Some((hour, minute, second, fraction)) = time {
                text += &format!(" {hour:02}:{minute:02}:{second:02}");
                if let Some(fraction) = fraction {
                    text += &format!(".{fraction}");
                }
            }
            with_context(|ctx| {
                let mut ctx = *ctx;
                let mut format = ctx.format.clone();
                format.date_style.order = [DateOrder::Ymd, DateOrder::Dmy, DateOrder::Mdy][order];
                ctx.format = &format;
                if let Some(moment) = iso(text.as_bytes()) {
                    let told = decode_tokens(&ctx, &text, oid::TIMESTAMP).ok();
                    prop_assert_eq!(told, Some(Decoded::At(moment)), "{}", text);
                }
                Ok(())
            })?;
        }
    }

    #[test]
    fn a_glance_is_enough_for_what_loads_bring() {
        for text in [
            "2024-02-29",
            "1999-12-31 23:59:59",
            "2024-05-06 07:08:09.5",
            "0001-01-01 00:00:00.123456",
        ] {
            assert!(iso(text.as_bytes()).is_some(), "{text}");
        }
        for text in [
            "",
            "2024-02-30",
            "2023-02-29",
            "0000-01-01",
            "2024-05-06 24:00:00",
            "2024-05-06 07:08",
            "2024-05-06 07:08:09.",
            "2024-05-06 07:08:09+02",
        ] {
            assert!(iso(text.as_bytes()).is_none(), "{text}");
        }
    }
}
