//! A table as the executor uses it: its heap, how its rows lie in bytes, its indexes' trees.
//!
//! Made from the catalog's definition once per event loop and found again by the definition's
//! address, so that a statement neither locks nor counts references that other cores touch.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::FixedState;
use throng_access::Heap;
use throng_access::btree::BTree;
use throng_buffer::Try;
use throng_catalog::{ColumnDef, IndexDef, TableDef};
use throng_types::error::state;
use throng_types::key::{self, KeyOrder};
use throng_types::row::{Phys, RowLayout};
use throng_types::{Datum, Error, Oid, Result, SqlType};
use throng_values::func::EvalContext;
use throng_values::inverted::{Keys, OperatorClass};

use crate::large;
use crate::store::Store;
use crate::versions::Rows;

/// A table ready to be read and written.
pub struct Table {
    pub def: Arc<TableDef>,
    pub heap: Heap,
    pub layout: RowLayout,
    /// What rows written before a column was added read as there; None where that is NULL.
    missing: Vec<Option<Datum>>,
    has_missing: bool,
}

/// An index ready to be read and written.
pub struct Index {
    pub def: Arc<IndexDef>,
    pub tree: BTree,
    /// Places of the key columns in the table's row, from 0; from [`COMPUTED`] on, in the index's
    /// expressions.
    pub columns: Vec<usize>,
    pub orders: Vec<KeyOrder>,
    /// Of an inverted index the operator class of each key column.
    pub inverted: Option<Vec<&'static OperatorClass>>,
}

/// The place of an index's first expression among [`Index::columns`]: no table has so many columns.
pub const COMPUTED: usize = 1 << 16;

#[derive(Default)]
struct Cache {
    tables: HashMap<Oid, Rc<Table>, FixedState>,
    indexes: HashMap<Oid, Rc<Index>, FixedState>,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

/// Entries kept by one thread before it starts afresh: a bound on memory, far above what is in use
/// at once.
const MOST_CACHED: usize = 10_000;

impl Table {
    /// The table of this definition.
    pub fn of(def: &Arc<TableDef>, store: &Store, ctx: &EvalContext<'_>) -> Result<Rc<Table>> {
        let found = CACHE.with_borrow(|cache| cache.tables.get(&def.oid).cloned());
        if let Some(table) = found.filter(|t| Arc::ptr_eq(&t.def, def)) {
            return Ok(table);
        }
        let table = Rc::new(Table::new(def, store, ctx)?);
        CACHE.with_borrow_mut(|cache| {
            if cache.tables.len() >= MOST_CACHED {
                cache.tables.clear();
            }
            cache.tables.insert(def.oid, table.clone());
        });
        Ok(table)
    }

    /// One of its own, for a definition that is not published and may never be.
    pub fn unshared(def: &Arc<TableDef>, store: &Store, ctx: &EvalContext<'_>) -> Result<Table> {
        Table::new(def, store, ctx)
    }

    fn new(def: &Arc<TableDef>, store: &Store, ctx: &EvalContext<'_>) -> Result<Table> {
        let phys: Vec<Phys> = def.columns.iter().map(phys_of).collect::<Result<_>>()?;
        let missing: Vec<Option<Datum>> = def
            .columns
            .iter()
            .map(|c| {
                let text = c.missing.as_deref().filter(|_| !c.dropped);
                text.map(|text| throng_values::io::input_text(ctx, text, c.ty))
                    .transpose()
            })
            .collect::<Result<_>>()?;
        let heap = store.relations.heap(def.file);
        if let Some(percent) = def.options.iter().find(|(name, _)| name == "fillfactor") {
            heap.rel().set_fill_factor(percent.1.parse().unwrap_or(100));
        }
        let has_missing = missing.iter().any(Option::is_some);
        Ok(Table {
            def: def.clone(),
            heap,
            layout: RowLayout::new(&phys),
            missing,
            has_missing,
        })
    }

    /// Replaces `out` by the row's first `wanted` columns; values kept outside the row are still
    /// references.
    pub fn decode(&self, row: &[u8], wanted: usize, out: &mut Vec<Datum>) -> Result<()> {
        out.clear();
        self.layout.decode_first(row, wanted, out)?;
        if self.has_missing {
            let present = RowLayout::attributes(row)?;
            for (value, missing) in out.iter_mut().zip(&self.missing).skip(present) {
                if let Some(missing) = missing {
                    *value = missing.clone();
                }
            }
        }
        Ok(())
    }

    /// Puts values of a row into `out`, of each wanted column at the place beside it: see
    /// [`RowLayout::decode_into`].
    pub fn decode_into(
        &self,
        row: &[u8],
        wanted: &[(usize, usize)],
        out: &mut [Datum],
    ) -> Result<()> {
        if wanted.is_empty() {
            return Ok(());
        }
        self.layout.decode_into(row, wanted, out)?;
        if self.has_missing {
            let present = RowLayout::attributes(row)?;
            for &(column, place) in wanted.iter().filter(|(column, _)| *column >= present) {
                if let Some(missing) = &self.missing[column] {
                    out[place] = missing.clone();
                }
            }
        }
        Ok(())
    }

    /// Fetches those of the wanted values that are kept outside the row.
    pub fn fetch_into(
        &self,
        wanted: &[(usize, usize)],
        out: &mut [Datum],
        fetch: &mut large::Fetch,
    ) -> Try<()> {
        for &(column, place) in wanted {
            let phys = self.layout.columns()[column];
            large::fetch_value(&self.heap, phys, &mut out[place], fetch)?;
        }
        Ok(())
    }

    /// Whether columns that the row does not have yet have a value all the same.
    pub fn fills_in(&self, row: &[u8]) -> Result<bool> {
        Ok(self.has_missing && RowLayout::attributes(row)? < self.def.columns.len())
    }

    /// Its rows as they are replaced and deleted.
    pub fn rows(&self) -> Rows<'_> {
        Rows {
            heap: &self.heap,
            layout: &self.layout,
        }
    }

    /// Fetches the values that are kept outside the row.
    pub fn fetch_external(&self, row: &mut [Datum], fetch: &mut large::Fetch) -> Try<()> {
        large::fetch(&self.heap, &self.layout, row, fetch)
    }

    /// The same, waiting for the values' pages, and for turns beside long ones.
    ///
    /// # Errors
    /// XX001 where a value is not there.
    pub async fn read_external(&self, row: &mut [Datum]) -> Result<()> {
        let mut fetch = large::Fetch::default();
        crate::turns::retry(None, || self.fetch_external(row, &mut fetch)).await
    }

    pub fn column_type(&self, at: usize) -> SqlType {
        self.def.columns[at].ty
    }
}

fn phys_of(column: &ColumnDef) -> Result<Phys> {
    Phys::of(column.ty.oid).ok_or_else(|| {
        Error::unsupported(format!(
            "storing values of the type of column \"{}\"",
            column.name
        ))
    })
}

impl Index {
    /// The index of this definition on `table`.
    pub fn of(def: &Arc<IndexDef>, table: &TableDef, store: &Store) -> Rc<Index> {
        let found = CACHE.with_borrow(|cache| cache.indexes.get(&def.oid).cloned());
        if let Some(index) = found.filter(|i| Arc::ptr_eq(&i.def, def)) {
            return index;
        }
        let mut columns = Vec::with_capacity(def.columns.len());
        let mut orders = Vec::with_capacity(def.columns.len());
        let mut computed = 0;
        for (key, expr) in def.keys() {
            let (place, ty) = match expr {
                Some(expr) => {
                    computed += 1;
                    (COMPUTED + computed - 1, expr.ty)
                }
                None => {
                    let place = usize::from(key.attnum) - 1;
                    (place, table.columns[place].ty)
                }
            };
            columns.push(place);
            orders.push(KeyOrder::new(ty.oid, key.descending, key.nulls_first));
        }
        let tree = BTree::open(store.pool.clone(), def.file);
        let index = Rc::new(Index {
            def: def.clone(),
            tree,
            columns,
            orders,
            inverted: def.inverted_classes(table),
        });
        CACHE.with_borrow_mut(|cache| {
            if cache.indexes.len() >= MOST_CACHED {
                cache.indexes.clear();
            }
            cache.indexes.insert(def.oid, index.clone());
        });
        index
    }

    /// Replaces `key` by the key of a whole row, in an index without expressions; true if one of
    /// its columns is NULL.
    pub fn key(&self, row: &[Datum], key: &mut Vec<u8>) -> Result<bool> {
        key.clear();
        self.append_key(row, &[], key)
    }

    /// Appends the key of a whole row, for which the expressions have these values, to `keys`; true
    /// if a part is NULL.
    pub fn append_key(
        &self,
        row: &[Datum],
        computed: &[Datum],
        keys: &mut Vec<u8>,
    ) -> Result<bool> {
        let start = keys.len();
        let mut any_null = false;
        debug_assert!(self.inverted.is_none(), "a row has many keys there");
        for (at, order) in self.columns.iter().zip(&self.orders) {
            let value = value_at(*at, row, computed);
            any_null |= value.is_null();
            key::encode_one(value, *order, keys)?;
        }
        let length = keys.len() - start;
        if length > key::MAX_KEY {
            return Err(throng_access::btree::key_too_large(length, &self.def.name));
        }
        Ok(any_null)
    }

    /// Replaces `keys` by those that the classes of an inverted index find in a whole row, for
    /// which the expressions have these values.
    pub fn inverted_keys(
        &self,
        classes: &[&'static OperatorClass],
        row: &[Datum],
        computed: &[Datum],
        keys: &mut Keys,
    ) -> Result<()> {
        keys.clear();
        for ((at, class), column) in self.columns.iter().zip(classes).zip(0..) {
            class.keys_of(column, value_at(*at, row, computed), keys)?;
        }
        match keys.longest() {
            length if length > key::MAX_KEY => {
                let message = format!(
                    "index row size {length} exceeds maximum {} for index \"{}\"",
                    key::MAX_KEY,
                    self.def.name
                );
                Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message))
            }
            _ => Ok(()),
        }
    }
}

/// The value of a key column, by its place.
fn value_at<'v>(at: usize, row: &'v [Datum], computed: &'v [Datum]) -> &'v Datum {
    match at.checked_sub(COMPUTED) {
        Some(at) => &computed[at],
        None => &row[at],
    }
}
