//! Dates and times written in each DateStyle.

use crate::io::scalar::write_padded;
use crate::io::{DateFormat, DateOrder, DateStyle, FormatSettings};
use throng_types::TimeTz;
use throng_types::calendar::*;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
const DAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];

fn infinite(negative: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if negative { b"-infinity" } else { b"infinity" });
}

/// Year shown, with its era: 0 is 1 BC.
fn shown_year(year: i32) -> (u64, bool) {
    if year > 0 {
        (year as u64, false)
    } else {
        (u64::from(year.unsigned_abs()) + 1, true)
    }
}

pub fn date(days: i32, style: DateStyle, out: &mut Vec<u8>) {
    if days == DATE_INFINITY || days == DATE_NEG_INFINITY {
        return infinite(days == DATE_NEG_INFINITY, out);
    }
    let (year, month, day) = date_from_days(days.into());
    let bc = write_date(year, month, day, style, b'-', out);
    if bc {
        out.extend_from_slice(b" BC");
    }
}

/// Writes the date part; `postgres_separator` is what that style puts between numbers. Tells
/// whether BC must follow.
fn write_date(
    year: i32,
    month: i32,
    day: i32,
    style: DateStyle,
    postgres_separator: u8,
    out: &mut Vec<u8>,
) -> bool {
    let (shown, bc) = shown_year(year);
    let (month, day) = (month as u64, day as u64);
    let day_first = style.order == DateOrder::Dmy;
    let (separator, a, b) = match style.format {
        DateFormat::Iso => {
            write_padded(shown, 4, out);
            out.push(b'-');
            write_padded(month, 2, out);
            out.push(b'-');
            write_padded(day, 2, out);
            return bc;
        }
        DateFormat::German => (b'.', day, month),
        DateFormat::Sql if day_first => (b'/', day, month),
        DateFormat::Sql => (b'/', month, day),
        DateFormat::Postgres if day_first => (postgres_separator, day, month),
        DateFormat::Postgres => (postgres_separator, month, day),
    };
    write_padded(a, 2, out);
    out.push(separator);
    write_padded(b, 2, out);
    out.push(separator);
    write_padded(shown, 4, out);
    bc
}

/// `hh:mm:ss` with as many decimals as there are.
pub fn time(micros: i64, out: &mut Vec<u8>) {
    write_padded((micros / MICROS_PER_HOUR) as u64, 2, out);
    out.push(b':');
    write_padded((micros / MICROS_PER_MINUTE % 60) as u64, 2, out);
    out.push(b':');
    write_seconds(micros.rem_euclid(MICROS_PER_MINUTE), 2, out);
}

/// Seconds with at least so many digits before the point, and the microseconds without trailing
/// zeros.
pub fn write_seconds(micros: i64, width: usize, out: &mut Vec<u8>) {
    write_padded((micros / MICROS_PER_SECOND) as u64, width, out);
    let fraction = (micros % MICROS_PER_SECOND) as u64;
    if fraction != 0 {
        out.push(b'.');
        write_padded(fraction, 6, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// `+hh[:mm[:ss]]`
pub fn displacement(east: i32, out: &mut Vec<u8>) {
    out.push(if east < 0 { b'-' } else { b'+' });
    let seconds = u64::from(east.unsigned_abs());
    write_padded(seconds / 3600, 2, out);
    if !seconds.is_multiple_of(3600) {
        out.push(b':');
        write_padded(seconds / 60 % 60, 2, out);
        if !seconds.is_multiple_of(60) {
            out.push(b':');
            write_padded(seconds % 60, 2, out);
        }
    }
}

pub fn timetz(value: TimeTz, out: &mut Vec<u8>) {
    time(value.micros, out);
    displacement(-value.zone, out);
}

pub fn timestamp(micros: i64, style: DateStyle, out: &mut Vec<u8>) {
    if micros == TIMESTAMP_INFINITY || micros == TIMESTAMP_NEG_INFINITY {
        return infinite(micros == TIMESTAMP_NEG_INFINITY, out);
    }
    write_timestamp(micros, None, style, out);
}

pub fn timestamptz(micros: i64, format: &FormatSettings, out: &mut Vec<u8>) {
    if micros == TIMESTAMP_INFINITY || micros == TIMESTAMP_NEG_INFINITY {
        return infinite(micros == TIMESTAMP_NEG_INFINITY, out);
    }
    let east = format.time_zone.east_at(micros);
    let local = micros.saturating_add(i64::from(east) * MICROS_PER_SECOND);
    // Other styles than ISO tell the zone by its abbreviation.
    let name = match format.date_style.format {
        DateFormat::Iso => None,
        _ => format.time_zone.abbreviation_at(micros),
    };
    write_timestamp(local, Some((east, name)), format.date_style, out);
}

fn write_timestamp(
    local: i64,
    zone: Option<(i32, Option<String>)>,
    style: DateStyle,
    out: &mut Vec<u8>,
) {
    let days = local.div_euclid(MICROS_PER_DAY);
    let of_day = local.rem_euclid(MICROS_PER_DAY);
    let (year, month, day) = date_from_days(days);
    let write_zone = |out: &mut Vec<u8>| match &zone {
        Some((_, Some(name))) if !name.starts_with(['+', '-']) => {
            out.push(b' ');
            out.extend_from_slice(name.as_bytes());
        }
        Some((east, _)) => {
            // The old styles set a numeric zone apart by a space.
            if style.format == DateFormat::Postgres {
                out.push(b' ');
            }
            displacement(*east, out);
        }
        None => {}
    };
    let (shown, mut bc) = shown_year(year);
    if style.format == DateFormat::Postgres {
        // 2000-01-01 was a Saturday.
        out.extend_from_slice(DAYS[(days + 6).rem_euclid(7) as usize]);
        out.push(b' ');
        let name = MONTHS[month as usize - 1];
        if style.order == DateOrder::Dmy {
            write_padded(day as u64, 2, out);
            out.push(b' ');
            out.extend_from_slice(name);
        } else {
            out.extend_from_slice(name);
            out.push(b' ');
            write_padded(day as u64, 2, out);
        }
        out.push(b' ');
        time(of_day, out);
        out.push(b' ');
        write_padded(shown, 4, out);
        write_zone(out);
    } else {
        bc = write_date(year, month, day, style, b'-', out);
        out.push(b' ');
        time(of_day, out);
        write_zone(out);
    }
    if bc {
        out.extend_from_slice(b" BC");
    }
}
