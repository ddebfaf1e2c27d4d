//! Where definitions are kept: one real heap of rows (oid, kind, definition as JSON).
//!
//! DDL writes here under its own transaction, so definitions have its atomicity, its durability and its isolation with no
//! code of their own. The heap has a file number no other file can get. It is read whole at start, so its index needs no
//! file ([`Places`]).

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use parking_lot::Mutex;

use throng_access::{Heap, RowLockMode, TupleBatch, TxContext};
use throng_buffer::{Ring, retry, retry_blocking};
use throng_sql::catalog::{Catalog, Change, Object, ObjectKind};
use throng_txn::rows::{RowOutcome, RowRef, RowTurn};
use throng_txn::{Isolation, SessionInfo, Txn, TxnSystem};
use throng_types::row::{Phys, RowLayout, encode_row};
use throng_types::{Datum, Error, FileId, Oid, Result, Tid};

use crate::large;
use crate::store::Store;
use crate::versions::Rows;

/// Far above any number that is given out.
pub const OBJECTS_FILE: FileId = FileId(u32::MAX - 1);

const OID: usize = 0;
const KIND: usize = 1;
const JSON: usize = 2;

/// Where rows of each object begin: the heap's index.
///
/// As in any index a place may be that of a version that nobody sees, or of another object's row, for which the slot was free.
#[derive(Default)]
pub struct Places(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    by_object: HashMap<Oid, Vec<Place>, FixedState>,
    count: u64,
}

#[derive(Clone, Copy)]
struct Place {
    root: Tid,
    /// Which note of all this is.
    number: u64,
}

impl Places {
    fn note(&self, oid: Oid, root: Tid) {
        let mut noted = self.0.lock();
        noted.count += 1;
        let number = noted.count;
        let places = noted.by_object.entry(oid).or_default();
        places.retain(|place| place.root != root);
        places.push(Place { root, number });
    }

    /// The newest first.
    fn of(&self, oid: Oid) -> Vec<Tid> {
        let noted = self.0.lock();
        let places = noted.by_object.get(&oid).into_iter().flatten();
        places.rev().map(|place| place.root).collect()
    }

    /// Forgets places that the cleaner has freed.
    ///
    /// # Errors
    /// What reading the heap gives.
    pub fn forget_freed(&self, heap: &Heap) -> Result<()> {
        let all: Vec<Place> = {
            let noted = self.0.lock();
            noted.by_object.values().flatten().copied().collect()
        };
        let mut freed = HashSet::new();
        for place in all {
            if !retry_blocking(|| heap.has_slot(place.root))? {
                freed.insert(place.number);
            }
        }
        // One that was noted again since has another number.
        self.0.lock().by_object.retain(|_, places| {
            places.retain(|place| !freed.contains(&place.number));
            !places.is_empty()
        });
        Ok(())
    }
}

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
        let tid = retry_blocking(|| heap.insert(&txn, &bytes))?;
        store.objects.note(object.oid(), tid);
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
        for i in 0..batch.len() {
            let object = read(&heap, batch.row(i))?;
            store.objects.note(object.oid(), batch.root(i));
            objects.push(object);
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
    let (heap, layout) = (store.relations.heap(OBJECTS_FILE), layout());
    let rows = Rows {
        heap: &heap,
        layout: &layout,
    };
    let mut written = HashSet::new();
    for change in changes.iter().rev() {
        let (Change::Put { oid, .. } | Change::Delete { oid, .. }) = change;
        if !written.insert(*oid) {
            continue;
        }
        match change {
            Change::Put { oid, kind, json } => {
                let row = row_of(*oid, *kind, json);
                let bytes = large::encode(&heap, txn, &layout, &row).await?;
                let new = match find(store, &heap, txn, *oid).await? {
                    Some(row) => replace(rows, txn, row, &bytes).await?,
                    None => {
                        txn.xid();
                        Some(retry(|| heap.insert(txn, &bytes)).await?)
                    }
                };
                if let Some(tid) = new {
                    store.objects.note(*oid, tid);
                }
            }
            Change::Delete { oid, .. } => {
                if let Some(row) = find(store, &heap, txn, *oid).await? {
                    remove(rows, txn, row).await?;
                }
            }
        }
    }
    txn.next_command()
}

/// The visible row of an object.
async fn find(store: &Store, heap: &Heap, txn: &Txn, oid: Oid) -> Result<Option<RowRef>> {
    // What earlier commands of this transaction wrote is seen; others' changes are kept out by the object's lock.
    let snapshot = txn.latest_snapshot();
    let mut bytes = Vec::new();
    for root in store.objects.of(oid) {
        let found = retry(|| heap.fetch(root, &snapshot, &mut bytes)).await?;
        if let Some(tid) = found
            && layout().decode_column(&bytes, OID)? == Datum::Oid(oid.0)
        {
            return Ok(Some(RowRef { tid, root }));
        }
    }
    Ok(None)
}

/// Where the row begins now, if that is another place.
async fn replace(rows: Rows<'_>, txn: &Txn, row: RowRef, new: &[u8]) -> Result<Option<Tid>> {
    let (mode, mut turn) = (RowLockMode::NoKeyUpdate, RowTurn::default());
    match rows.update(txn, row, new, (mode, true), &mut turn).await? {
        RowOutcome::Done(version) => Ok((!version.hot).then_some(version.tid)),
        _ => Err(updated_concurrently()),
    }
}

async fn remove(rows: Rows<'_>, txn: &Txn, row: RowRef) -> Result<()> {
    let mut turn = RowTurn::default();
    match rows.delete(txn, row, &mut turn).await? {
        RowOutcome::Done(()) => Ok(()),
        _ => Err(updated_concurrently()),
    }
}

/// PostgreSQL's message for two sessions that change one object at once.
fn updated_concurrently() -> Error {
    Error::internal("tuple concurrently updated")
}
