//! Where definitions are kept: one real heap of rows (oid, kind, definition as JSON).
//!
//! DDL writes here under its own transaction, so definitions have its atomicity, its durability and its isolation with no
//! code of their own. The heap has a file number no other file can get and no index: it is read whole at start, and looked
//! through for a row to change.

use std::collections::HashSet;

use throng_access::{Heap, RowLockMode, TupleBatch, TxContext, Visibility};
use throng_buffer::{Ring, retry, retry_blocking};
use throng_sql::catalog::{Catalog, Change, Object, ObjectKind};
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, delete_row, update_row};
use throng_txn::{Isolation, SessionInfo, Txn, TxnSystem};
use throng_types::row::{Phys, RowLayout, encode_row};
use throng_types::{Datum, Error, FileId, Oid, Result};

use crate::large;
use crate::store::Store;

/// Far above any number that is given out.
pub const OBJECTS_FILE: FileId = FileId(u32::MAX - 1);

const OID: usize = 0;
const KIND: usize = 1;
const JSON: usize = 2;

fn layout() -> RowLayout {
    RowLayout::new(&[Phys::Oid, Phys::Text, Phys::Text])
}

fn row_of(oid: Oid, kind: ObjectKind, json: &str) -> [Datum; 3] {
    [
        Datum::Oid(oid.0),
        Datum::text(kind.tag()),
        Datum::text(json),
    ]
}

/// Fills a new data directory's heap and gives what it holds.
pub fn create(sys: &TxnSystem, store: &Store) -> Result<Vec<Object>> {
    let files = sys.files();
    if !files.list()?.contains(&OBJECTS_FILE) {
        files.create(OBJECTS_FILE)?;
    }
    let session = sys.register(SessionInfo {
        backend_type: "bootstrap",
        ..SessionInfo::default()
    });
    let txn = session.begin(Isolation::ReadCommitted);
    let heap = store.relations.heap(OBJECTS_FILE);
    // A start that was cut off may have left rows of a transaction that never committed; they are dead.
    let objects = Catalog::initial_objects();
    for object in &objects {
        let mut bytes = Vec::new();
        encode_row(
            &layout(),
            &row_of(object.oid(), object.kind(), &object.to_json()),
            &mut bytes,
        )?;
        txn.xid();
        retry_blocking(|| heap.insert(&txn, &bytes))?;
    }
    futures_block_on(txn.commit(true))?;
    sys.checkpoint_blocking()?;
    Ok(objects)
}

/// Waits for a future on a thread that serves nobody else.
fn futures_block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?
        .block_on(future)
}

/// Everything that is committed.
pub fn load(sys: &TxnSystem, store: &Store) -> Result<Vec<Object>> {
    if !sys.files().list()?.contains(&OBJECTS_FILE) {
        return create(sys, store);
    }
    let session = sys.register(SessionInfo {
        backend_type: "startup",
        ..SessionInfo::default()
    });
    let txn = session.begin(Isolation::ReadCommitted);
    let snapshot = txn.snapshot();
    let heap = store.relations.heap(OBJECTS_FILE);
    let mut objects = Vec::new();
    let blocks = retry_blocking(|| heap.blocks())?;
    let mut ring = Ring::for_scan(&store.pool, blocks);
    for block in 0..blocks {
        let mut batch = TupleBatch::new();
        retry_blocking(|| {
            batch.clear();
            heap.scan_page(block, &snapshot, &mut ring, &mut batch)
        })?;
        for (_, bytes) in batch.iter() {
            objects.push(read(&heap, bytes)?);
        }
    }
    drop(snapshot);
    txn.abort();
    if objects.is_empty() {
        create(sys, store)
    } else {
        Ok(objects)
    }
}

fn read(heap: &Heap, bytes: &[u8]) -> Result<Object> {
    let mut row = Vec::new();
    layout().decode(bytes, &mut row)?;
    let mut progress = large::Fetch::default();
    retry_blocking(|| large::fetch(heap, &layout(), &mut row, &mut progress))?;
    let (Some(kind), Some(json)) = (row[KIND].as_str(), row[JSON].as_str()) else {
        return Err(Error::corrupted("a catalog row is damaged"));
    };
    Object::from_json(kind, json)
}

/// Writes changed definitions under `txn`: of each object what it is in the end.
pub async fn write(store: &Store, txn: &Txn, changes: &[Change]) -> Result<()> {
    let heap = store.relations.heap(OBJECTS_FILE);
    let mut written = HashSet::new();
    for change in changes.iter().rev() {
        let (Change::Put { oid, .. } | Change::Delete { oid, .. }) = change;
        if !written.insert(*oid) {
            continue;
        }
        match change {
            Change::Put { oid, kind, json } => {
                let row = row_of(*oid, *kind, json);
                let bytes = large::encode(&heap, txn, &layout(), &row).await?;
                match find(&heap, txn, *oid).await? {
                    Some(row) => replace(&heap, txn, row, Some(&bytes)).await?,
                    None => {
                        txn.xid();
                        retry(|| heap.insert(txn, &bytes)).await?;
                    }
                }
            }
            Change::Delete { oid, .. } => {
                if let Some(row) = find(&heap, txn, *oid).await? {
                    replace(&heap, txn, row, None).await?;
                }
            }
        }
    }
    txn.next_command()
}

/// The visible row of an object.
async fn find(heap: &Heap, txn: &Txn, oid: Oid) -> Result<Option<RowRef>> {
    // What earlier commands of this transaction wrote is seen; others' changes are kept out by the object's lock.
    let snapshot = txn.latest_snapshot();
    let vis: &dyn Visibility = &snapshot;
    let blocks = retry(|| heap.blocks()).await?;
    let mut ring = Ring::for_scan(heap.pool(), blocks);
    for block in 0..blocks {
        let mut batch = TupleBatch::new();
        retry(|| {
            batch.clear();
            heap.scan_page(block, vis, &mut ring, &mut batch)
        })
        .await?;
        for i in 0..batch.len() {
            if layout().decode_column(batch.row(i), OID)? == Datum::Oid(oid.0) {
                return Ok(Some(RowRef {
                    tid: batch.tid(i),
                    root: batch.root(i),
                }));
            }
        }
    }
    Ok(None)
}

async fn replace(heap: &Heap, txn: &Txn, row: RowRef, new: Option<&[u8]>) -> Result<()> {
    let mut turn = RowTurn::default();
    let done = match new {
        Some(bytes) => {
            let mode = RowLockMode::NoKeyUpdate;
            matches!(
                update_row(txn, heap, row, bytes, mode, true, &mut turn).await?,
                RowOutcome::Done(_)
            )
        }
        None => matches!(
            delete_row(txn, heap, row, &mut turn).await?,
            RowOutcome::Done(())
        ),
    };
    if done {
        return Ok(());
    }
    // PostgreSQL's message for two sessions that change one object at once.
    Err(Error::internal("tuple concurrently updated"))
}
