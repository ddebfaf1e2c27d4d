//! Ids given out: transactions, objects, files.
//!
//! An upper bound of each is in the log before the first id under it is used, a batch at a time.
//! What carries an id reaches the disk only after the log up to it has, so after a crash ids start
//! above all that were ever used.

use throng_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use throng_sync::lock::Mutex;

use throng_sync::CachePadded;
use throng_types::{FileId, Oid, Xid};
use throng_wal::NextIds;

/// Ids a log record covers. A crash leaves up to this many unused.
const XID_BATCH: u64 = 4096;
const OID_BATCH: u32 = 1024;
const FILE_BATCH: u32 = 256;

pub(crate) struct Ids {
    xid: CachePadded<AtomicU64>,
    xid_limit: AtomicU64,
    oid: AtomicU32,
    oid_limit: AtomicU32,
    file: AtomicU32,
    file_limit: AtomicU32,
    logging: Mutex<()>,
    /// Puts bounds into the log.
    log: Box<dyn Fn(NextIds) + Send + Sync>,
}

impl Ids {
    pub(crate) fn new(next: NextIds, log: Box<dyn Fn(NextIds) + Send + Sync>) -> Ids {
        Ids {
            xid: CachePadded::new(AtomicU64::new(next.xid.0)),
            xid_limit: AtomicU64::new(next.xid.0),
            oid: AtomicU32::new(next.oid.0),
            oid_limit: AtomicU32::new(next.oid.0),
            file: AtomicU32::new(next.file.0),
            file_limit: AtomicU32::new(next.file.0),
            logging: Mutex::new(()),
            log,
        }
    }

    /// The next transaction id.
    #[inline]
    pub(crate) fn xid(&self) -> Xid {
        let xid = self.xid.fetch_add(1, Ordering::Relaxed);
        if xid >= self.xid_limit.load(Ordering::Acquire) {
            self.raise(xid, 0, 0);
        }
        Xid(xid)
    }

    /// The first xid not given out yet.
    pub(crate) fn next_xid(&self) -> Xid {
        Xid(self.xid.load(Ordering::Relaxed))
    }

    pub(crate) fn oid(&self) -> Oid {
        let oid = self.oid.fetch_add(1, Ordering::Relaxed);
        if oid >= self.oid_limit.load(Ordering::Acquire) {
            self.raise(0, oid, 0);
        }
        Oid(oid)
    }

    /// No later oid is `oid` or below: for objects that came with a number of their own.
    pub(crate) fn oid_at_least(&self, oid: Oid) {
        self.oid
            .fetch_max(oid.0.saturating_add(1), Ordering::Relaxed);
    }

    pub(crate) fn file(&self) -> FileId {
        let file = self.file.fetch_add(1, Ordering::Relaxed);
        if file >= self.file_limit.load(Ordering::Acquire) {
            self.raise(0, 0, file);
        }
        FileId(file)
    }

    /// The bounds in the log: what a checkpoint saves.
    pub(crate) fn limits(&self) -> NextIds {
        let _logging = self.logging.lock();
        self.bounds()
    }

    fn bounds(&self) -> NextIds {
        NextIds {
            xid: Xid(self.xid_limit.load(Ordering::Relaxed)),
            oid: Oid(self.oid_limit.load(Ordering::Relaxed)),
            file: FileId(self.file_limit.load(Ordering::Relaxed)),
        }
    }

    #[cold]
    fn raise(&self, xid: u64, oid: u32, file: u32) {
        let _logging = self.logging.lock();
        let now = self.bounds();
        let above =
            |used: u64, limit: u64, batch: u64| if used < limit { limit } else { used + batch };
        let next = NextIds {
            xid: Xid(above(xid, now.xid.0, XID_BATCH)),
            oid: Oid(above(oid.into(), now.oid.0.into(), OID_BATCH.into()) as u32),
            file: FileId(above(file.into(), now.file.0.into(), FILE_BATCH.into()) as u32),
        };
        if next == now {
            return;
        }
        (self.log)(next);
        // Release, after the record is in the log: an id below a limit has its bound in the log.
        self.xid_limit.store(next.xid.0, Ordering::Release);
        self.oid_limit.store(next.oid.0, Ordering::Release);
        self.file_limit.store(next.file.0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn bounds_are_logged_before_the_ids_under_them_are_used() {
        let logged = Arc::new(Mutex::new(Vec::new()));
        let log = logged.clone();
        let start = NextIds {
            xid: Xid(3),
            oid: Oid(16384),
            file: FileId(1),
        };
        let ids = Ids::new(start, Box::new(move |next| log.lock().push(next)));
        assert_eq!(ids.xid(), Xid(3));
        assert_eq!(
            logged.lock().last().map(|n| n.xid),
            Some(Xid(3 + XID_BATCH))
        );
        for _ in 0..XID_BATCH * 2 {
            let xid = ids.xid();
            assert!(logged.lock().last().is_some_and(|n| n.xid > xid));
        }
        assert!((3..=4).contains(&logged.lock().len()));
        assert_eq!(ids.oid(), Oid(16384));
        ids.oid_at_least(Oid(70000));
        assert_eq!(ids.oid(), Oid(70001));
        assert!(ids.limits().oid > Oid(70001) && ids.limits().file == FileId(1));
        assert_eq!(ids.file(), FileId(1));
    }
}
