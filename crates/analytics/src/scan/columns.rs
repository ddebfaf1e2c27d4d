//! Columns taken out of rows.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, NullArray};
use throng_access::TupleBatch;
use throng_bind::expr::system;
use throng_exec::table::Table;
use throng_types::row::{RowLayout, Stored};
use throng_types::{Datum, Result, Tid};

use crate::cache::Attribute;
use crate::column::{ColumnBuilder, Kind};

/// Some of the scan's columns being filled.
pub struct Columns {
    /// As the plan names them: attribute numbers, or system columns.
    numbers: Vec<i16>,
    /// The attributes among them, ascending from 0, and whose they are.
    stored: Vec<usize>,
    owners: Vec<usize>,
    builders: Vec<ColumnBuilder>,
}

impl Columns {
    pub fn new(numbers: Vec<i16>, kinds: &[Kind]) -> Columns {
        let mut attributes: Vec<(usize, usize)> = numbers
            .iter()
            .enumerate()
            .filter(|(_, n)| **n > 0)
            .map(|(owner, n)| (*n as usize - 1, owner))
            .collect();
        attributes.sort_unstable();
        let (stored, owners) = attributes.into_iter().unzip();
        Columns {
            numbers,
            stored,
            owners,
            builders: ColumnBuilder::of_all(kinds),
        }
    }

    pub fn bytes(&self) -> usize {
        self.builders.iter().map(ColumnBuilder::bytes).sum()
    }

    pub fn finish(&mut self) -> Vec<ArrayRef> {
        self.builders
            .iter_mut()
            .map(ColumnBuilder::finish)
            .collect()
    }

    /// Takes in the rows of some pages, all or those that are marked; how many they are.
    pub async fn take(
        &mut self,
        table: &Table,
        pages: &[TupleBatch],
        marks: Option<&[bool]>,
        values: &mut Vec<Datum>,
    ) -> Result<usize> {
        let (mut first, mut taken) = (0, 0);
        for page in pages {
            let marks = marks.map(|marks| &marks[first..][..page.len()]);
            first += page.len();
            for (row, (tid, bytes)) in page.iter().enumerate() {
                if marks.is_some_and(|marks| !marks[row]) {
                    continue;
                }
                if !self.take_at_once(table, tid, bytes)? {
                    self.take_slowly(table, tid, bytes, values).await?;
                }
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Takes in a row that has all its values in itself; else the answer is false.
    #[inline]
    fn take_at_once(&mut self, table: &Table, tid: Tid, bytes: &[u8]) -> Result<bool> {
        if RowLayout::has_external(bytes) || table.fills_in(bytes)? {
            return Ok(false);
        }
        let Columns {
            numbers,
            stored,
            owners,
            builders,
        } = self;
        table.layout.stored(bytes, stored, |nth, value| {
            let builder = &mut builders[owners[nth]];
            match value {
                Stored::Bytes(bytes) => builder.push_stored(bytes),
                _ => builder.push(&Datum::Null),
            }
        })?;
        if stored.len() < numbers.len() {
            for (number, builder) in numbers.iter().zip(builders) {
                push_system(*number, builder, table, tid)?;
            }
        }
        Ok(true)
    }

    /// A row of which a value lies elsewhere.
    async fn take_slowly(
        &mut self,
        table: &Table,
        tid: Tid,
        bytes: &[u8],
        values: &mut Vec<Datum>,
    ) -> Result<()> {
        let wanted = self.stored.last().map_or(0, |last| last + 1);
        table.decode(bytes, wanted, values)?;
        if RowLayout::has_external(bytes) {
            table.read_external(values).await?;
        }
        for (number, builder) in self.numbers.iter().zip(&mut self.builders) {
            match *number {
                n if n > 0 => builder.push(&values[n as usize - 1])?,
                n => push_system(n, builder, table, tid)?,
            }
        }
        Ok(())
    }
}

fn push_system(number: i16, builder: &mut ColumnBuilder, table: &Table, tid: Tid) -> Result<()> {
    match number {
        n if n > 0 => Ok(()),
        system::CTID => builder.push(&Datum::Tid(tid)),
        _ => builder.push(&Datum::Oid(table.def.oid.0)),
    }
}

/// A column of all rows of some pages; None where a row does not have its value in itself, and so
/// might have another one under another definition of the table, or elsewhere.
pub fn whole(
    table: &Table,
    pages: &[TupleBatch],
    attributes: &[Attribute],
) -> Result<Option<Vec<ArrayRef>>> {
    let mut order: Vec<(usize, usize)> = attributes
        .iter()
        .enumerate()
        .filter(|(_, attribute)| attribute.number > 0)
        .map(|(owner, attribute)| (attribute.number as usize - 1, owner))
        .collect();
    order.sort_unstable();
    let (stored, owners): (Vec<usize>, Vec<usize>) = order.into_iter().unzip();
    let mut builders: Vec<ColumnBuilder> = attributes
        .iter()
        .map(|a| ColumnBuilder::new(a.kind))
        .collect();
    for page in pages {
        for (_, bytes) in page.iter() {
            let mut whole = true;
            table.layout.stored(bytes, &stored, |nth, value| {
                let builder = &mut builders[owners[nth]];
                match value {
                    Stored::Bytes(bytes) => builder.push_stored(bytes)?,
                    Stored::Null => builder.push(&Datum::Null)?,
                    Stored::Absent | Stored::External => whole = false,
                }
                Ok(())
            })?;
            if !whole {
                return Ok(None);
            }
        }
    }
    let rows = pages.iter().map(TupleBatch::len).sum();
    let columns = attributes
        .iter()
        .zip(&mut builders)
        .map(|(attribute, builder)| {
            let mut column: ArrayRef = match attribute.number {
                0 => Arc::new(NullArray::new(rows)),
                _ => builder.finish(),
            };
            if let Some(column) = Arc::get_mut(&mut column) {
                column.shrink_to_fit();
            }
            column
        });
    Ok(Some(columns.collect()))
}
