//! `datetime(template)`: text read by a template as the SQL standard means them, every separator
//! where the template has it and nothing left over.

use super::exec::{Failure, Walk, soft};
use super::moment::Moment;
use crate::func::datetime::{checked_timestamp, overflow};
use crate::func::to_char::parse::{Read, Reader, invalid, read_item, value};
use crate::func::to_char::{Field, Item, Piece, template};
use crate::io::Zone;
use throng_types::calendar::*;
use throng_types::error::state;
use throng_types::{Datum, Error, Result, TimeTz};

/// What a template has fields of.
#[derive(Default)]
struct Parts {
    date: bool,
    time: bool,
    zone: bool,
}

impl Parts {
    fn note(&mut self, field: Field) {
        match field {
            Field::Meridian(_)
            | Field::Fraction(_)
            | Field::Hour12
            | Field::Hour24
            | Field::Minute
            | Field::SecondOfDay
            | Field::Second => self.time = true,
            Field::Displacement | Field::ZoneHour | Field::ZoneMinute | Field::Zone => {
                self.zone = true;
            }
            _ => self.date = true,
        }
    }
}

#[cold]
fn format_error(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_DATETIME_FORMAT, message)
}

/// The text as a moment of the type that the template's fields make. What is wrong is soft.
pub fn parse(text: &str, format: &str) -> Walk<Moment> {
    let pieces = template(format);
    check_separators(&pieces).map_err(Failure::Soft)?;
    let read = read(text, &pieces).map_err(Failure::Soft)?;
    let mut parts = Parts::default();
    for piece in &pieces {
        if let Piece::Item(item) = piece {
            parts.note(item.field);
        }
    }
    let (days, time) = value(&read, text).map_err(Failure::Soft)?;
    moment(&parts, &read, days, time, text)
}

fn check_separators(pieces: &[Piece]) -> Result<()> {
    for piece in pieces {
        match piece {
            Piece::Literal(c, false) if !"-./,':; ".contains(*c) => {
                return Err(format_error(format!(
                    "invalid datetime format separator: \"{c}\""
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

fn read(text: &str, pieces: &[Piece]) -> Result<Read> {
    let mut reader = Reader::new(text);
    let mut read = Read::default();
    for (i, piece) in pieces.iter().enumerate() {
        if reader.rest.is_empty() {
            let message = "input string is too short for datetime format";
            return Err(format_error(message));
        }
        match piece {
            Piece::Exact => reader.exact = true,
            Piece::Literal(c, quoted) => match reader.rest.strip_prefix(*c) {
                Some(rest) => reader.rest = rest,
                None => {
                    let what = if *quoted { "character" } else { "separator" };
                    return Err(format_error(format!("unmatched format {what} \"{c}\"")));
                }
            },
            Piece::Item(Item {
                field: Field::Zone, ..
            }) => zone(&mut reader, &mut read)?,
            Piece::Item(item) => read_item(&mut reader, item, pieces.get(i + 1), &mut read)?,
        }
    }
    if reader.rest.trim_start().is_empty() {
        return Ok(read);
    }
    let message = "trailing characters remain in input string after datetime format";
    Err(format_error(message))
}

/// An abbreviation, or a displacement with or without minutes.
fn zone(reader: &mut Reader<'_>, read: &mut Read) -> Result<()> {
    let text = reader.rest.trim_start();
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let end = text.find(|c: char| !c.is_ascii_alphabetic());
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        let found = Zone::abbreviation(name);
        read.zone = Some(found.ok_or_else(|| {
            invalid(name, "TZ").detail("Time zone abbreviation is not recognized.")
        })?);
        reader.rest = rest;
        return Ok(());
    }
    let negative = text.starts_with('-');
    reader.rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let hour = reader.number(2, "TZ")?;
    if let Some(rest) = reader.rest.strip_prefix(':') {
        reader.rest = rest;
        read.zone_minute = reader.number(2, "TZ")?;
    }
    let minutes = hour * 60 + std::mem::take(&mut read.zone_minute);
    let east = if negative { -minutes } else { minutes } * 60;
    let fixed = i32::try_from(east).ok().and_then(Zone::fixed);
    read.zone = Some(fixed.ok_or_else(|| invalid(text, "TZ"))?);
    Ok(())
}

/// Seconds east that the text tells.
fn east(read: &Read) -> Option<i32> {
    read.zone().map(|zone| zone.east_at(0))
}

fn moment(parts: &Parts, read: &Read, days: i64, time: i64, text: &str) -> Walk<Moment> {
    let missing = |ty: &str| {
        soft(
            state::INVALID_DATETIME_FORMAT,
            format!("missing time zone in input string for type {ty}"),
        )
    };
    let local = || {
        let micros = days.checked_mul(MICROS_PER_DAY).map(|d| d + time);
        checked_timestamp(micros).map_err(Failure::Soft)
    };
    let (value, east) = match (parts.date, parts.time, parts.zone) {
        (true, true, true) => {
            let east = east(read).ok_or_else(|| missing("timestamptz"))?;
            let utc = local()? - i64::from(east) * MICROS_PER_SECOND;
            let utc = checked_timestamp(Some(utc)).map_err(Failure::Soft)?;
            (Datum::TimestampTz(utc), east)
        }
        (true, true, false) => (Datum::Timestamp(local()?), 0),
        (true, false, false) => {
            if !date_in_range(days) {
                let message = format!("date out of range: \"{text}\"");
                return Err(Failure::Soft(overflow(&message)));
            }
            (Datum::Date(days as i32), 0)
        }
        (false, true, true) => {
            let east = east(read).ok_or_else(|| missing("timetz"))?;
            let value = TimeTz {
                micros: time,
                zone: -east,
            };
            (Datum::TimeTz(value), 0)
        }
        (false, true, false) => (Datum::Time(time), 0),
        (true, false, true) => {
            return Err(Failure::Soft(format_error(
                "datetime format is zoned but not timed",
            )));
        }
        (false, false, _) => {
            return Err(Failure::Soft(format_error(
                "datetime format is not dated and not timed",
            )));
        }
    };
    Ok(Moment { value, east })
}
