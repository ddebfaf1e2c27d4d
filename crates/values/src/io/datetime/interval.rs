//! Intervals as text: PostgreSQL's units, clock times, SQL's `y-m d h:m:s`, ISO 8601 durations.

use super::Fault;
use super::decode::fraction_micros;
use super::output::write_seconds;
use super::token::{Kind, tokenize};
use crate::io::IntervalStyle;
use crate::io::scalar::write_int;
use throng_types::calendar::*;
use throng_types::sqltype::interval_field;
use throng_types::{Interval, Result, oid};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    /// So many years.
    Years(i32),
}

impl Unit {
    fn bit(self) -> u16 {
        1 << match self {
            Unit::Microsecond => 0,
            Unit::Millisecond => 1,
            Unit::Second => 2,
            Unit::Minute => 3,
            Unit::Hour => 4,
            Unit::Day => 5,
            Unit::Week => 6,
            Unit::Month => 7,
            Unit::Years(n) => 8 + n.ilog10(),
        }
    }
}
/// What seconds with a fraction stand for: seconds, milliseconds, microseconds.
const SECOND_UNITS: u16 = 0b111;
/// What `h:m:s` stands for.
const CLOCK_UNITS: u16 = 0b1_1111;

fn unit(word: &str) -> Option<Unit> {
    Some(match word {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds"
        | "microsecon" => Unit::Microsecond,
        "ms" | "msec" | "msecs" | "mseconds" | "msecond" | "millisecond" | "milliseconds"
        | "millisecon" => Unit::Millisecond,
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
        "d" | "day" | "days" => Unit::Day,
        "w" | "week" | "weeks" => Unit::Week,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Years(1),
        "dec" | "decs" | "decade" | "decades" => Unit::Years(10),
        "c" | "cent" | "century" | "centuries" => Unit::Years(100),
        "mil" | "mils" | "millennium" | "millennia" => Unit::Years(1000),
        _ => return None,
    })
}

/// Adds up the parts, checked.
#[derive(Default)]
struct Sum {
    /// Units seen: none may come twice.
    seen: u16,
    years: i64,
    months: i64,
    days: i64,
    micros: i64,
}

impl Sum {
    fn micros(&mut self, value: i64, fraction: f64, scale: i64) -> Result<(), Fault> {
        let whole = value
            .checked_mul(scale)
            .and_then(|v| self.micros.checked_add(v));
        self.micros = whole.ok_or(Fault::FieldOverflow)?;
        self.fraction_micros(fraction, scale)
    }
    fn fraction_micros(&mut self, fraction: f64, scale: i64) -> Result<(), Fault> {
        let exact = fraction * scale as f64;
        let mut rounded = exact as i64;
        let rest = exact - rounded as f64;
        if rest > 0.5 {
            rounded += 1;
        } else if rest < -0.5 {
            rounded -= 1;
        }
        self.micros = self
            .micros
            .checked_add(rounded)
            .ok_or(Fault::FieldOverflow)?;
        Ok(())
    }
    fn days(&mut self, value: i64, scale: i64) -> Result<(), Fault> {
        let sum = value
            .checked_mul(scale)
            .and_then(|v| self.days.checked_add(v));
        self.days = sum
            .filter(|d| i32::try_from(*d).is_ok())
            .ok_or(Fault::FieldOverflow)?;
        Ok(())
    }
    fn fraction_days(&mut self, fraction: f64, scale: i64) -> Result<(), Fault> {
        let exact = fraction * scale as f64;
        self.days(exact as i64, 1)?;
        self.fraction_micros(exact - (exact as i64) as f64, MICROS_PER_DAY)
    }
    fn months(&mut self, value: i64) -> Result<(), Fault> {
        let sum = self.months.checked_add(value);
        self.months = sum
            .filter(|m| i32::try_from(*m).is_ok())
            .ok_or(Fault::FieldOverflow)?;
        Ok(())
    }
    fn years(&mut self, value: i64, scale: i64) -> Result<(), Fault> {
        let sum = value
            .checked_mul(scale)
            .and_then(|v| self.years.checked_add(v));
        self.years = sum
            .filter(|y| i32::try_from(*y).is_ok())
            .ok_or(Fault::FieldOverflow)?;
        Ok(())
    }
    /// Notes units; one that was there before is an error.
    fn mark(&mut self, units: u16) -> Result<(), Fault> {
        if self.seen & units != 0 {
            return Err(Fault::Format);
        }
        self.seen |= units;
        Ok(())
    }
    fn clock(&mut self, micros: i64) -> Result<(), Fault> {
        self.mark(CLOCK_UNITS)?;
        self.micros(micros, 0.0, 1)
    }

    fn add(&mut self, value: i64, fraction: f64, unit: Unit) -> Result<(), Fault> {
        // Seconds with a fraction take the smaller units too.
        let small = if unit == Unit::Second && fraction != 0.0 {
            SECOND_UNITS
        } else {
            0
        };
        self.mark(unit.bit() | small)?;
        match unit {
            Unit::Microsecond => self.micros(value, fraction, 1),
            Unit::Millisecond => self.micros(value, fraction, 1000),
            Unit::Second => self.micros(value, fraction, MICROS_PER_SECOND),
            Unit::Minute => self.micros(value, fraction, MICROS_PER_MINUTE),
            Unit::Hour => self.micros(value, fraction, MICROS_PER_HOUR),
            Unit::Day => {
                self.days(value, 1)?;
                self.fraction_micros(fraction, MICROS_PER_DAY)
            }
            Unit::Week => {
                self.days(value, 7)?;
                self.fraction_days(fraction, 7)
            }
            Unit::Month => {
                self.months(value)?;
                self.fraction_days(fraction, 30)
            }
            Unit::Years(n) => {
                self.years(value, i64::from(n))?;
                self.months((fraction * f64::from(n) * 12.0).round_ties_even() as i64)
            }
        }
    }

    fn finish(self, ago: bool) -> Result<Interval, Fault> {
        let sign = if ago { -1 } else { 1 };
        let narrow = |v: i64| v.checked_mul(sign).and_then(|v| i32::try_from(v).ok());
        let (Some(months), Some(days), Some(micros)) = (
            narrow(self.years * 12 + self.months),
            narrow(self.days),
            self.micros.checked_mul(sign),
        ) else {
            return Err(Fault::IntervalRange);
        };
        Ok(Interval {
            months,
            days,
            micros,
        })
    }
}

/// Reads an interval; a modifier tells what a bare last number counts (`INTERVAL '5' DAY`).
pub fn parse(text: &str, style: IntervalStyle, typmod: i32) -> Result<Interval> {
    let result = match decode(text, style, typmod) {
        // ISO 8601 text looks like a bad word to the other reader.
        Err(Fault::Format) => decode_iso(text.trim()),
        result => result,
    };
    result.map_err(|fault| {
        let fault = if fault == Fault::FieldOverflow {
            Fault::IntervalOverflow
        } else {
            fault
        };
        fault.error(oid::INTERVAL, text)
    })
}

fn default_unit(typmod: i32) -> Unit {
    use interval_field::*;
    if typmod < 0 {
        return Unit::Second;
    }
    let range = (typmod >> 16) & FULL_RANGE;
    // The smallest field named is what the last number counts.
    if range == FULL_RANGE || range & SECOND != 0 {
        Unit::Second
    } else if range & MINUTE != 0 {
        Unit::Minute
    } else if range & HOUR != 0 {
        Unit::Hour
    } else if range & DAY != 0 {
        Unit::Day
    } else if range & MONTH != 0 {
        Unit::Month
    } else {
        Unit::Years(1)
    }
}

fn decode(text: &str, style: IntervalStyle, typmod: i32) -> Result<Interval, Fault> {
    let is_word = |w: &str| unit(w).is_some() || matches!(w, "ago" | "infinity" | "inf" | "at");
    let tokens = tokenize(text, is_word)?;
    let mut sum = Sum::default();
    let (mut any, mut ago, mut next) = (false, false, None::<Unit>);
    let mut waiting = false;
    // In SQL's style a leading sign is every field's, unless others have their own.
    let all_negative = style == IntervalStyle::SqlStandard
        && text.trim_start().starts_with('-')
        && tokens
            .iter()
            .skip(1)
            .all(|t| !matches!(t.kind, Kind::Signed | Kind::Special));
    let minutes_to_seconds = {
        use interval_field::*;
        typmod >= 0 && (typmod >> 16) & FULL_RANGE == MINUTE | SECOND
    };
    for (i, token) in tokens.iter().enumerate().rev() {
        match token.kind {
            Kind::Word => {
                if waiting {
                    return Err(Fault::Format);
                }
                match token.text.as_str() {
                    "ago" if i + 1 == tokens.len() && i > 0 => ago = true,
                    "infinity" | "inf" if i == 0 && !any && !ago => {
                        return Ok(Interval::INFINITY);
                    }
                    word => {
                        next = Some(unit(word).ok_or(Fault::Format)?);
                        waiting = true;
                    }
                }
            }
            Kind::Special => {
                return match token.text.as_str() {
                    "+infinity" | "+inf" if tokens.len() == 1 => Ok(Interval::INFINITY),
                    "-infinity" | "-inf" if tokens.len() == 1 => Ok(Interval::NEG_INFINITY),
                    _ => Err(Fault::Format),
                };
            }
            Kind::Time => {
                if waiting {
                    return Err(Fault::Format);
                }
                let micros = clock(&token.text, minutes_to_seconds)?;
                sum.clock(if all_negative { -micros } else { micros })?;
                (any, next) = (true, Some(Unit::Day));
            }
            Kind::Signed if token.text[1..].contains(':') => {
                let micros = clock(&token.text[1..], minutes_to_seconds)?;
                sum.clock(if token.text.starts_with('-') {
                    -micros
                } else {
                    micros
                })?;
                (any, next) = (true, Some(Unit::Day));
            }
            Kind::Signed | Kind::Number | Kind::Date => {
                let unit = next.unwrap_or_else(|| default_unit(typmod));
                let negative = token.text.starts_with('-') || (all_negative && i > 0);
                let body = token.text.trim_start_matches(['+', '-']);
                let (value, fraction, unit) = number(body, unit)?;
                let sign = if negative { -1 } else { 1 };
                sum.add(value * sign, fraction * f64::from(sign as i32), unit)?;
                waiting = false;
                any = true;
                // After hours come days; any other unit stays in force only for its own number.
                next = if unit == Unit::Hour {
                    Some(Unit::Day)
                } else {
                    next
                };
            }
        }
    }
    if !any || waiting {
        return Err(Fault::Format);
    }
    sum.finish(ago)
}

/// A number with its fraction, or SQL's `years-months`.
fn number(body: &str, unit: Unit) -> Result<(i64, f64, Unit), Fault> {
    let digits = body
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(body.len());
    let (whole, rest) = body.split_at(digits);
    let value: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| Fault::FieldOverflow)?
    };
    match rest.as_bytes() {
        [] if !whole.is_empty() => Ok((value, 0.0, unit)),
        [b'.', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => {
            if whole.is_empty() && digits.is_empty() {
                return Err(Fault::Format);
            }
            let fraction: f64 = format!("0{rest}").parse().map_err(|_| Fault::Format)?;
            Ok((value, fraction, unit))
        }
        [b'-', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            let months: i64 = rest[1..].parse().map_err(|_| Fault::FieldOverflow)?;
            if months >= 12 {
                return Err(Fault::FieldOverflow);
            }
            let total = value.checked_mul(12).and_then(|v| v.checked_add(months));
            Ok((total.ok_or(Fault::FieldOverflow)?, 0.0, Unit::Month))
        }
        _ => Err(Fault::Format),
    }
}

/// `h:mm`, `h:mm:ss[.f]`, `m:ss.f` — hours without limit.
fn clock(text: &str, minutes_to_seconds: bool) -> Result<i64, Fault> {
    let parts: Vec<&str> = text.split(':').collect();
    let number = |s: &str| -> Result<i64, Fault> {
        if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Fault::Format);
        }
        s.parse().map_err(|_| Fault::FieldOverflow)
    };
    let seconds = |s: &str| -> Result<(i64, i64), Fault> {
        let (whole, fraction) = s.split_once('.').unwrap_or((s, ""));
        Ok((number(whole)?, fraction_micros(fraction)?))
    };
    let (hour, minute, (second, micros)) = match parts[..] {
        [m, s] if s.contains('.') || minutes_to_seconds => (0, number(m)?, seconds(s)?),
        [h, m] => (number(h)?, number(m)?, (0, 0)),
        [h, m, s] => (number(h)?, number(m)?, seconds(s)?),
        _ => return Err(Fault::Format),
    };
    if minute > 59 || second > 60 {
        return Err(Fault::FieldOverflow);
    }
    hour.checked_mul(MICROS_PER_HOUR)
        .and_then(|h| {
            h.checked_add(minute * MICROS_PER_MINUTE + second * MICROS_PER_SECOND + micros)
        })
        .ok_or(Fault::FieldOverflow)
}

/// `P1Y2M3DT4H5M6S`, and `P0001-02-03T04:05:06`.
fn decode_iso(text: &str) -> Result<Interval, Fault> {
    let body = text.strip_prefix('P').ok_or(Fault::Format)?;
    if body.is_empty() {
        return Err(Fault::Format);
    }
    let (date, time) = match body.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (body, None),
    };
    let mut sum = Sum::default();
    let dashes = date.get(1..).is_some_and(|d| d.contains('-'))
        && !date.contains(|c: char| c.is_ascii_alphabetic());
    if dashes {
        let parts: Vec<i64> = date
            .split('-')
            .map(|p| p.parse().map_err(|_| Fault::Format))
            .collect::<Result<_, _>>()?;
        let [y, m, d] = parts[..] else {
            return Err(Fault::Format);
        };
        sum.add(y, 0.0, Unit::Years(1))?;
        sum.add(m, 0.0, Unit::Month)?;
        sum.add(d, 0.0, Unit::Day)?;
    } else {
        iso_fields(date, false, &mut sum)?;
    }
    match time {
        Some(time) if time.contains(':') => sum.clock(clock(time, false)?)?,
        Some(time) => iso_fields(time, true, &mut sum)?,
        None => {}
    }
    sum.finish(false)
}

fn iso_fields(mut text: &str, time: bool, sum: &mut Sum) -> Result<(), Fault> {
    while !text.is_empty() {
        let negative = text.starts_with('-');
        let body = text.strip_prefix(['-', '+']).unwrap_or(text);
        let end = body
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or(Fault::Format)?;
        let unit = match (body.as_bytes()[end], time) {
            (b'Y', false) => Unit::Years(1),
            (b'M', false) => Unit::Month,
            (b'W', false) => Unit::Week,
            (b'D', false) => Unit::Day,
            (b'H', true) => Unit::Hour,
            (b'M', true) => Unit::Minute,
            (b'S', true) => Unit::Second,
            _ => return Err(Fault::Format),
        };
        let (value, fraction, unit) = number(&body[..end], unit)?;
        let sign = if negative { -1 } else { 1 };
        sum.add(value * sign, fraction * f64::from(sign as i32), unit)?;
        text = &body[end + 1..];
    }
    Ok(())
}

/// Appends an interval in a style.
pub fn write(value: Interval, style: IntervalStyle, out: &mut Vec<u8>) {
    if !value.is_finite() {
        let name: &[u8] = if value == Interval::INFINITY {
            b"infinity"
        } else {
            b"-infinity"
        };
        out.extend_from_slice(name);
        return;
    }
    match style {
        IntervalStyle::Postgres => write_postgres(value, out),
        IntervalStyle::PostgresVerbose => write_verbose(value, out),
        IntervalStyle::SqlStandard => write_sql(value, out),
        IntervalStyle::Iso8601 => write_iso(value, out),
    }
}

fn write_clock(micros: i64, hour_width: usize, out: &mut Vec<u8>) {
    let micros = micros.unsigned_abs();
    let hour = micros / MICROS_PER_HOUR as u64;
    crate::io::scalar::write_padded(hour, hour_width, out);
    out.push(b':');
    crate::io::scalar::write_padded(micros / MICROS_PER_MINUTE as u64 % 60, 2, out);
    out.push(b':');
    write_seconds((micros % MICROS_PER_MINUTE as u64) as i64, 2, out);
}

fn write_postgres(value: Interval, out: &mut Vec<u8>) {
    let start = out.len();
    let mut after_negative = false;
    let mut part = |value: i64, name: &str, out: &mut Vec<u8>| {
        if value == 0 {
            return;
        }
        if out.len() > start {
            out.push(b' ');
        }
        // A positive part after a negative one says so.
        if after_negative && value > 0 {
            out.push(b'+');
        }
        write_int(value, out);
        out.push(b' ');
        out.extend_from_slice(name.as_bytes());
        if value != 1 {
            out.push(b's');
        }
        after_negative = value < 0;
    };
    part(i64::from(value.months / 12), "year", out);
    part(i64::from(value.months % 12), "mon", out);
    part(i64::from(value.days), "day", out);
    if value.micros != 0 || out.len() == start {
        if out.len() > start {
            out.push(b' ');
        }
        if value.micros < 0 {
            out.push(b'-');
        } else if after_negative {
            out.push(b'+');
        }
        write_clock(value.micros, 2, out);
    }
}

fn write_verbose(value: Interval, out: &mut Vec<u8>) {
    out.push(b'@');
    let (mut zero, mut before) = (true, false);
    let mut part = |value: i64, name: &str, out: &mut Vec<u8>| {
        if value == 0 {
            return;
        }
        // The first part's sign becomes "ago", and turns the others around.
        if zero {
            before = value < 0;
        }
        let shown = if before { -value } else { value };
        out.push(b' ');
        write_int(shown, out);
        out.push(b' ');
        out.extend_from_slice(name.as_bytes());
        if shown != 1 {
            out.push(b's');
        }
        zero = false;
    };
    part(i64::from(value.months / 12), "year", out);
    part(i64::from(value.months % 12), "mon", out);
    part(i64::from(value.days), "day", out);
    part(value.micros / MICROS_PER_HOUR, "hour", out);
    part(value.micros / MICROS_PER_MINUTE % 60, "min", out);
    let seconds = value.micros % MICROS_PER_MINUTE;
    if seconds != 0 {
        if zero {
            before = seconds < 0;
        }
        zero = false;
        out.push(b' ');
        let shown = if before { -seconds } else { seconds };
        if shown < 0 {
            out.push(b'-');
        }
        write_seconds(shown.abs(), 1, out);
        let one = shown.abs() == MICROS_PER_SECOND;
        out.extend_from_slice(if one { b" sec" } else { b" secs" });
    }
    if zero {
        out.extend_from_slice(b" 0");
    }
    if before {
        out.extend_from_slice(b" ago");
    }
}

fn write_sql(value: Interval, out: &mut Vec<u8>) {
    let (months, days, micros) = (value.months, value.days, value.micros);
    let negative = months < 0 || days < 0 || micros < 0;
    let positive = months > 0 || days > 0 || micros > 0;
    let (year_month, day_time) = (months != 0, days != 0 || micros != 0);
    let mixed = (negative && positive) || (year_month && day_time);
    if !year_month && !day_time {
        out.push(b'0');
        return;
    }
    let sign = |negative: bool| if negative { b'-' } else { b'+' };
    if mixed {
        out.push(sign(months < 0));
        write_int(i64::from((months / 12).abs()), out);
        out.push(b'-');
        write_int(i64::from((months % 12).abs()), out);
        out.push(b' ');
        out.push(sign(days < 0));
        write_int(i64::from(days).abs(), out);
        out.push(b' ');
        out.push(sign(micros < 0));
        write_clock(micros, 1, out);
        return;
    }
    if negative {
        out.push(b'-');
    }
    if year_month {
        write_int(i64::from((months / 12).abs()), out);
        out.push(b'-');
        write_int(i64::from((months % 12).abs()), out);
    } else {
        if days != 0 {
            write_int(i64::from(days).abs(), out);
            out.push(b' ');
        }
        write_clock(micros, 1, out);
    }
}

fn write_iso(value: Interval, out: &mut Vec<u8>) {
    if value == Interval::default() {
        out.extend_from_slice(b"PT0S");
        return;
    }
    out.push(b'P');
    let part = |value: i64, unit: u8, out: &mut Vec<u8>| {
        if value != 0 {
            write_int(value, out);
            out.push(unit);
        }
    };
    part(i64::from(value.months / 12), b'Y', out);
    part(i64::from(value.months % 12), b'M', out);
    part(i64::from(value.days), b'D', out);
    if value.micros == 0 {
        return;
    }
    out.push(b'T');
    part(value.micros / MICROS_PER_HOUR, b'H', out);
    part(value.micros / MICROS_PER_MINUTE % 60, b'M', out);
    let seconds = value.micros % MICROS_PER_MINUTE;
    if seconds != 0 {
        if seconds < 0 {
            out.push(b'-');
        }
        write_seconds(seconds.abs(), 1, out);
        out.push(b'S');
    }
}
