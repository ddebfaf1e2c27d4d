//! Values too large for their row, on the way in and out.
//!
//! A row that would not fit a page gives up its longest values, one after another, to pages of
//! their own; in the row a 16-byte reference stays.

use std::sync::Arc;

use throng_access::heap::large::{LargeRead, LargeRef, LargeWrite};
use throng_access::{Heap, TxContext};
use throng_buffer::{Try, retry};
use throng_types::row::{Phys, REFERENCE_LEN, RowLayout, encode_row};
use throng_types::{Datum, Error, Result, shared};

/// The longest row a page takes; a longer one gives up values. Each value outside takes whole
/// pages, so none is moved early.
pub const LONGEST_ROW: usize = 8128;
/// Values shorter than this stay: a reference would save little.
const SHORTEST_MOVED: usize = 4 * REFERENCE_LEN;

/// How far the fetching of a row's large values has come.
#[derive(Default)]
pub struct Fetch {
    /// The value that is on its way.
    of: Option<LargeRef>,
    progress: LargeRead,
    /// As long as the value, and nobody else's yet.
    bytes: Option<Arc<[u8]>>,
}

/// Replaces references by their values. Columns fetched before a wait are not fetched again.
pub fn fetch(heap: &Heap, layout: &RowLayout, row: &mut [Datum], fetch: &mut Fetch) -> Try<()> {
    for (value, phys) in row.iter_mut().zip(layout.columns()) {
        fetch_value(heap, *phys, value, fetch)?;
    }
    Ok(())
}

/// Replaces a reference by its value, and leaves a value as it is.
pub fn fetch_value(heap: &Heap, phys: Phys, value: &mut Datum, fetch: &mut Fetch) -> Try<()> {
    let Datum::External(reference) = value else {
        return Ok(());
    };
    let reference = LargeRef::from_bytes(*reference);
    if fetch.of != Some(reference) {
        *fetch = Fetch {
            of: Some(reference),
            bytes: Some(shared::zeroed(reference.len as usize)),
            ..Fetch::default()
        };
    }
    let into = fetch.bytes.as_mut().and_then(Arc::get_mut);
    let into = into.ok_or_else(|| Error::internal("a value that is shared before it is read"))?;
    heap.read_large(&reference, &mut fetch.progress, into)?;
    *value = RowLayout::value(phys, fetch.bytes.take().unwrap_or_default())?;
    *fetch = Fetch::default();
    Ok(())
}

/// The row's bytes, its largest values stored elsewhere if it would be too long.
pub async fn encode(
    heap: &Heap,
    ctx: &dyn TxContext,
    layout: &RowLayout,
    row: &[Datum],
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if row.iter().any(|value| stored_bytes(value).is_some()) {
        let mut row = row.to_vec();
        for value in &mut row {
            if let Some(stored) = stored_bytes(value) {
                *value = Datum::External(store(heap, ctx, stored).await?);
            }
        }
        encode_row(layout, &row, &mut bytes)?;
    } else {
        encode_row(layout, row, &mut bytes)?;
    }
    while bytes.len() > LONGEST_ROW {
        let longest = layout
            .inline_values(&bytes)?
            .into_iter()
            .max_by_key(|(_, at)| at.len());
        let Some((column, at)) = longest.filter(|(_, at)| at.len() >= SHORTEST_MOVED) else {
            break;
        };
        let reference = store(heap, ctx, &bytes[at]).await?;
        bytes = layout.externalize(&bytes, &[(column, reference)])?;
    }
    Ok(bytes)
}

/// The bytes of a value that is stored as it is in memory, where no row has room for it: it goes
/// page by page from there.
#[inline]
fn stored_bytes(value: &Datum) -> Option<&[u8]> {
    let bytes = match value {
        Datum::Text(text) | Datum::Json(text) => text.as_bytes(),
        Datum::Bytea(bytes) => bytes,
        Datum::Base(value) => &value.bytes,
        Datum::Jsonb(value) => value.as_bytes(),
        _ => return None,
    };
    (bytes.len() > LONGEST_ROW).then_some(bytes)
}

async fn store(heap: &Heap, ctx: &dyn TxContext, value: &[u8]) -> Result<[u8; REFERENCE_LEN]> {
    let mut progress = LargeWrite::default();
    ctx.xid();
    let reference = retry(|| heap.store_large(ctx, value, &mut progress)).await?;
    Ok(reference.to_bytes())
}
