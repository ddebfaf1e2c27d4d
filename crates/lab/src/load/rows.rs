//! Rows of one result, copied out of the read buffer cell by cell into one piece of memory that is
//! used again.

use super::trouble::{Result, Trouble};

/// No workload keeps rows that come near this: what does is not what was asked for.
const MOST_BYTES: usize = if cfg!(test) { 64 } else { 1 << 30 };

#[derive(Default)]
pub struct Rows {
    bytes: Vec<u8>,
    /// Where each cell lies; `None` is NULL.
    cells: Vec<Option<(u32, u32)>>,
    columns: usize,
}

impl Rows {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.cells.clear();
    }

    /// A row of so many cells, which follow by [`Rows::cell`] and [`Rows::null`].
    pub fn begin_row(&mut self, columns: usize) {
        self.columns = columns;
    }

    pub fn null(&mut self) {
        self.cells.push(None);
    }

    /// A cell, whose text `write` appends.
    pub fn cell(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let start = self.bytes.len();
        write(&mut self.bytes);
        if self.bytes.len() > MOST_BYTES {
            return Err(Trouble::broken("more rows than can be kept"));
        }
        // Both are at most MOST_BYTES.
        let length = self.bytes.len() - start;
        self.cells.push(Some((start as u32, length as u32)));
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.cells.len().checked_div(self.columns).unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// A cell's text; `None` is NULL.
    pub fn text(&self, row: usize, column: usize) -> Result<Option<&str>> {
        let cell = match column < self.columns {
            true => self.cells.get(row * self.columns + column),
            false => None,
        };
        match cell {
            None => Err(Trouble::wrong(format!(
                "no column {column} of row {row} in the answer"
            ))),
            Some(None) => Ok(None),
            Some(Some((start, length))) => {
                let bytes = &self.bytes[*start as usize..][..*length as usize];
                let text = std::str::from_utf8(bytes);
                text.map(Some)
                    .map_err(|_| Trouble::broken("a value that is not UTF-8"))
            }
        }
    }

    pub fn string(&self, row: usize, column: usize) -> Result<&str> {
        self.text(row, column)?
            .ok_or_else(|| Trouble::wrong("a null where there can be none"))
    }

    pub fn int(&self, row: usize, column: usize) -> Result<i64> {
        let text = self.string(row, column)?;
        text.parse()
            .map_err(|_| Trouble::wrong(format!("{text} where an integer was expected")))
    }

    /// A number with up to two decimals, in hundredths.
    pub fn cents(&self, row: usize, column: usize) -> Result<i64> {
        self.scaled(row, column, 2)
    }

    /// A number in units of 10^-`places`; it must have no more decimals than that.
    pub fn scaled(&self, row: usize, column: usize, places: usize) -> Result<i64> {
        let text = self.string(row, column)?;
        scaled(text, places)
            .ok_or_else(|| Trouble::wrong(format!("{text} where a number was expected")))
    }
}

fn scaled(text: &str, places: usize) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = match fraction.len() > places {
        true => fraction.trim_end_matches('0'),
        false => fraction,
    };
    if fraction.len() > places {
        return None;
    }
    format!("{whole}{fraction:0<places$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals() {
        assert_eq!(scaled("12.3", 2), Some(1230));
        assert_eq!(scaled("-12.34", 2), Some(-1234));
        assert_eq!(scaled("7", 2), Some(700));
        assert_eq!(scaled("0.1250", 2), None);
        assert_eq!(scaled("0.1200", 2), Some(12));
        assert_eq!(scaled("-0.05", 2), Some(-5));
    }

    #[test]
    fn what_is_not_there_and_what_is_too_much_is_an_error() {
        let mut rows = Rows::default();
        assert!(rows.string(0, 0).is_err());
        rows.begin_row(2);
        rows.null();
        rows.cell(|out| out.extend_from_slice(b"7")).expect("room");
        assert_eq!(rows.text(0, 0).expect("there"), None);
        assert_eq!(rows.int(0, 1).expect("there"), 7);
        assert!(rows.text(0, 2).is_err() && rows.text(1, 0).is_err());
        let much = [b'x'; MOST_BYTES];
        assert!(rows.cell(|out| out.extend_from_slice(&much)).is_err());
    }
}
