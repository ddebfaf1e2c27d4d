//! Where the definitions of a database are kept: one real heap of rows (oid, kind, definition as
//! JSON).
//!
//! DDL writes here under its own transaction, so definitions have its atomicity, its durability and
//! its isolation with no code of their own. The heap of the first database has a file number no
//! other file can get, and rows of what all databases share. A heap is read whole at start, so its
//! index needs no file ([`Places`]).

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use parking_lot::Mutex;

use throng_access::{Heap, RowLockMode, TupleBatch, TupleHeader, TxContext, Visibility, XidStatus};
use throng_buffer::{Ring, retry, retry_blocking};
use throng_catalog::{Catalog, Change, Object, ObjectKind, builtin};
use throng_txn::rows::{RowOutcome, RowRef, RowTurn};
use throng_txn::{Isolation, SessionInfo, Txn, TxnSystem};
use throng_types::error::state;
use throng_types::row::{Phys, RowLayout};
use throng_types::{Datum, Error, FileId, Oid, Result, Tid, Xid};

use crate::database::Database;
use throng_exec::large;
use throng_exec::store::Store;
use throng_exec::versions::Rows;

const OID: usize = 0;
const KIND: usize = 1;
const JSON: usize = 2;

/// Where rows of each object begin: the heap's index.
///
/// As in any index a place may be that of a version that nobody sees, or of another object's row,
/// for which the slot was free.
#[derive(Default)]
pub struct Places(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    by_object: HashMap<Oid, Vec<ObjectLocation>, FixedState>,
    count: u64,
}

#[derive(Clone, Copy)]
struct ObjectLocation {
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
        places.push(ObjectLocation { root, number });
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
        let all: Vec<ObjectLocation> = {
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

/// What a heap of definitions holds, and where.
pub type Loaded = (Places, Vec<Object>);

/// Fills a new data directory's heap.
fn create(sys: &TxnSystem, store: &Store) -> Result<Loaded> {
    let files = sys.files();
    if !files.list()?.contains(&builtin::DEFINITIONS) {
        files.create(builtin::DEFINITIONS)?;
    }
    let session = sys.register(SessionInfo {
        backend_type: "bootstrap",
        ..SessionInfo::default()
    });
    let txn = session.begin(Isolation::ReadCommitted);
    txn.xid();
    // A start that was cut off may have left rows of a transaction that never committed; they are
    // dead.
    let objects = Catalog::initial_objects();
    let places = futures_block_on(fill(store, &txn, builtin::DEFINITIONS, &objects))?;
    futures_block_on(txn.commit(true))?;
    sys.checkpoint_blocking()?;
    Ok((places, objects))
}

/// Fills the heap of a new database.
///
/// # Errors
/// What writing rows gives.
pub async fn fill(store: &Store, txn: &Txn, file: FileId, objects: &[Object]) -> Result<Places> {
    let (heap, layout) = (store.relations.heap(file), layout());
    let places = Places::default();
    for object in objects {
        let row = row_of(object.oid(), object.kind(), &object.to_json());
        let bytes = large::encode(&heap, txn, &layout, &row).await?;
        let tid = retry(|| heap.insert(txn, &bytes)).await?;
        places.note(object.oid(), tid);
    }
    Ok(places)
}

/// Waits for a future on a thread that serves nobody else.
fn futures_block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?
        .block_on(future)
}

/// What the first database's heap holds, which is made if it is not there.
///
/// # Errors
/// What reading and writing give.
pub fn load_first(sys: &TxnSystem, store: &Store, new: bool) -> Result<Loaded> {
    if new || !sys.files().list()?.contains(&builtin::DEFINITIONS) {
        return create(sys, store);
    }
    let loaded = load(sys, store, builtin::DEFINITIONS)?;
    match loaded.1.is_empty() {
        true => create(sys, store),
        false => Ok(loaded),
    }
}

/// Everything in a heap that is committed.
///
/// # Errors
/// What reading gives; XX001 for a row that is no definition.
pub fn load(sys: &TxnSystem, store: &Store, file: FileId) -> Result<Loaded> {
    let session = sys.register(SessionInfo {
        backend_type: "startup",
        ..SessionInfo::default()
    });
    let txn = session.begin(Isolation::ReadCommitted);
    let snapshot = txn.snapshot();
    let heap = store.relations.heap(file);
    let (places, mut objects) = (Places::default(), Vec::new());
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
            places.note(object.oid(), batch.root(i));
            objects.push(object);
        }
    }
    drop(snapshot);
    txn.abort();
    note_prepared(sys, store, &heap, &places)?;
    Ok((places, objects))
}

/// Notes where rows of prepared transactions are, which are seen once these are committed.
fn note_prepared(sys: &TxnSystem, store: &Store, heap: &Heap, places: &Places) -> Result<()> {
    if sys.prepared().is_empty() {
        return Ok(());
    }
    let made_now = MadeNow(sys);
    let blocks = retry_blocking(|| heap.blocks())?;
    let mut ring = Ring::for_scan(&store.pool, blocks);
    for block in 0..blocks {
        let mut batch = TupleBatch::new();
        retry_blocking(|| {
            batch.clear();
            heap.scan_page(block, &made_now, &mut ring, &mut batch)
        })?;
        for i in 0..batch.len() {
            let object = read(heap, batch.row(i))?;
            places.note(object.oid(), batch.root(i));
        }
    }
    Ok(())
}

/// Sees what transactions under way have made and have not taken back: at a start, those are the
/// prepared ones.
struct MadeNow<'a>(&'a TxnSystem);

impl Visibility for MadeNow<'_> {
    fn visible(&self, header: &TupleHeader) -> bool {
        let is_under_way = |xid| self.0.status(xid) == XidStatus::InProgress;
        is_under_way(header.xmin) && (header.xmax == Xid::NONE || !is_under_way(header.xmax))
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

/// Writes changed definitions under `txn`: of each object what it is in the end. What all databases
/// share goes to the first.
///
/// # Errors
/// What reading and writing rows give; XX000 where somebody else has changed an object.
pub async fn write(
    store: &Store,
    txn: &Txn,
    (own, first): (&Database, &Database),
    changes: &[Change],
) -> Result<()> {
    /// Definitions written between two turns of others on this core.
    const TURN: usize = 32;
    let mut written = HashSet::new();
    for change in changes.iter().rev() {
        if written.insert(change.oid()) {
            if written.len().is_multiple_of(TURN) {
                throng_exec::turns::next_turn().await;
            }
            let database = if change.is_shared() { first } else { own };
            write_one(store, txn, database, change).await?;
        }
    }
    txn.next_command()
}

async fn write_one(store: &Store, txn: &Txn, database: &Database, change: &Change) -> Result<()> {
    let heap = store.relations.heap(database.definitions);
    let layout = layout();
    let rows = Rows {
        heap: &heap,
        layout: &layout,
    };
    let places = &database.places;
    match change {
        Change::Put {
            oid, kind, json, ..
        } => {
            let row = row_of(*oid, *kind, json);
            let bytes = large::encode(&heap, txn, &layout, &row).await?;
            let new = match find(places, &heap, txn, *oid).await? {
                Some(row) => replace(rows, txn, row, &bytes).await?,
                None => {
                    txn.xid();
                    Some(retry(|| heap.insert(txn, &bytes)).await?)
                }
            };
            if let Some(tid) = new {
                places.note(*oid, tid);
            }
        }
        Change::Delete { oid, .. } => {
            if let Some(row) = find(places, &heap, txn, *oid).await? {
                remove(rows, txn, row).await?;
            }
        }
    }
    Ok(())
}

/// The visible row of an object.
async fn find(places: &Places, heap: &Heap, txn: &Txn, oid: Oid) -> Result<Option<RowRef>> {
    // What earlier commands of this transaction wrote is seen; others' changes are kept out by the
    // object's lock.
    let snapshot = txn.latest_snapshot();
    let mut bytes = Vec::new();
    for root in places.of(oid) {
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
    Error::new(state::INTERNAL_ERROR, "tuple concurrently updated")
}
