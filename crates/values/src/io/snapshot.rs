//! `pg_snapshot` and, by its old name, `txid_snapshot`: which transactions a snapshot shows.
//!
//! Kept as numbers of eight bytes, big endian: the first transaction that runs, the first one that
//! is to come, and those between them that run, in order.

use std::io::Write;

use super::base::BaseInputOutput;
use super::binary::{Reader, invalid};
use super::invalid_syntax;
use throng_types::{Datum, Oid, Result, interrupt, oid};

/// Numbers of transactions that may be written.
const LAST: u64 = i64::MAX as u64;

/// What a value tells.
pub struct TransactionSnapshot {
    /// All before it have ended.
    pub xmin: u64,
    /// It and all behind it have not begun.
    pub xmax: u64,
    /// Those between that run.
    pub running: Vec<u64>,
}

impl TransactionSnapshot {
    pub fn from_stored(bytes: &[u8]) -> TransactionSnapshot {
        let (words, _) = bytes.as_chunks();
        let mut numbers = words.iter().map(|word| u64::from_be_bytes(*word));
        TransactionSnapshot {
            xmin: numbers.next().unwrap_or(0),
            xmax: numbers.next().unwrap_or(0),
            running: numbers.collect(),
        }
    }

    pub fn of(value: &Datum) -> TransactionSnapshot {
        match value {
            Datum::Base(value) => TransactionSnapshot::from_stored(&value.bytes),
            _ => unreachable!("not a snapshot: {value:?}"),
        }
    }

    pub fn stored(&self) -> Vec<u8> {
        let numbers = [self.xmin, self.xmax].into_iter();
        let numbers = numbers.chain(self.running.iter().copied());
        numbers.flat_map(u64::to_be_bytes).collect()
    }

    /// Whether it shows what a transaction has done.
    pub fn shows(&self, xid: u64) -> bool {
        xid < self.xmin || xid < self.xmax && self.running.binary_search(&xid).is_err()
    }
}

/// Digits, and the text behind them.
fn number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start_matches(super::scalar::is_space);
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let value = text[..end].parse().ok().filter(|value| *value <= LAST);
    Some((value?, &text[end..]))
}

fn parsed(text: &str) -> Option<TransactionSnapshot> {
    let (xmin, rest) = number(text)?;
    let (xmax, rest) = number(rest.strip_prefix(':')?)?;
    let mut rest = rest.strip_prefix(':')?;
    if xmin == 0 || xmax < xmin {
        return None;
    }
    let mut running: Vec<u64> = Vec::new();
    while !rest.is_empty() {
        let (xid, behind) = number(rest)?;
        let last = running.last().copied().unwrap_or(xmin);
        if xid < last || xid >= xmax {
            return None;
        }
        if running.last() != Some(&xid) {
            running.push(xid);
        }
        rest = match behind.strip_prefix(',') {
            Some(rest) => rest,
            None if behind.is_empty() => behind,
            None => return None,
        };
    }
    Some(TransactionSnapshot {
        xmin,
        xmax,
        running,
    })
}

fn parse(text: &str) -> Result<Vec<u8>> {
    let snapshot = parsed(text).ok_or_else(|| invalid_syntax(oid::PG_SNAPSHOT, text))?;
    Ok(snapshot.stored())
}

fn receive(binary: &[u8]) -> Result<Vec<u8>> {
    let wrong = || invalid("invalid external pg_snapshot data");
    let mut reader = Reader(binary);
    let count = i32::from_be_bytes(reader.take()?);
    let count = usize::try_from(count).map_err(|_| wrong())?;
    let bytes = reader.bytes(count.saturating_add(2).saturating_mul(8))?;
    reader.end()?;
    let snapshot = TransactionSnapshot::from_stored(bytes);
    let (xmin, xmax) = (snapshot.xmin, snapshot.xmax);
    let mut last = xmin;
    for xid in &snapshot.running {
        interrupt::poll()?;
        if *xid < last || *xid >= xmax {
            return Err(wrong());
        }
        last = *xid;
    }
    match xmin == 0 || xmax < xmin || xmax > LAST {
        true => Err(wrong()),
        false => Ok(bytes.to_vec()),
    }
}

const fn form(ty: Oid) -> BaseInputOutput {
    BaseInputOutput {
        ty,
        input: |_, text, _| parse(text),
        output: |_, value, out| {
            let snapshot = TransactionSnapshot::from_stored(value);
            _ = write!(out, "{}:{}:", snapshot.xmin, snapshot.xmax);
            for (at, xid) in snapshot.running.iter().enumerate() {
                _ = write!(out, "{}{xid}", if at > 0 { "," } else { "" });
            }
        },
        receive: |_, binary| receive(binary),
        send: |_, value, out| {
            let count = value.len() / 8 - 2;
            out.extend_from_slice(&(count as i32).to_be_bytes());
            out.extend_from_slice(value);
            Ok(())
        },
        modifier: None,
    }
}

pub(super) static PG_SNAPSHOT: BaseInputOutput = form(oid::PG_SNAPSHOT);
pub(super) static TXID_SNAPSHOT: BaseInputOutput = form(oid::TXID_SNAPSHOT);
