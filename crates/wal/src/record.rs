//! Records: what the log is made of.
//!
//! ```text
//!  0        4         8          16     17
//!  | len u32 | crc u32 | lsn u64 | kind | fields of the kind …
//! ```
//! `len` counts the header too. `crc` is crc32c of everything from `kind` on. `lsn` is the record's
//! own start, so bytes left over in a recycled segment are never taken for a record, and `crc` is
//! combined with the [timeline](TimelineId), so those of another one are not either. The checksum
//! does not cover the header: a wrong `lsn` is seen by itself, a wrong `len` makes the checksum
//! cover other bytes. That lets the whole record be prepared before its place in the log is known.

use crate::bytes::{Cursor, put_varint};
use crate::ops::{Ops, OpsWriter};
use crate::timeline::TimelineId;
use throng_observe::{Counter, count};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, FileId, Lsn, Oid, PageId, Xid};

/// Bytes before a record's kind.
pub const RECORD_HEADER: usize = 16;
/// Where in the header the record's own position stands.
pub(crate) const LSN_AT: usize = 8;
/// The shortest record: a header and a kind.
pub(crate) const MIN_RECORD: usize = RECORD_HEADER + 1;
/// The longest record: more than a commit with a million subtransactions takes, and little enough
/// to hold in memory twice.
pub const MAX_RECORD: usize = 64 << 20;

const KIND_PAGES: u8 = 1;
const KIND_COMMIT: u8 = 2;
const KIND_ABORT: u8 = 3;
const KIND_FILE_CREATE: u8 = 4;
const KIND_FILE_DROP: u8 = 5;
const KIND_FILE_TRUNCATE: u8 = 6;
const KIND_NEXT_IDS: u8 = 7;
const KIND_CHECKPOINT: u8 = 8;
/// As [`KIND_COMMIT`], and behind what was durable.
const KIND_DATED_COMMIT: u8 = 9;
/// As [`KIND_CHECKPOINT`], and of which data directory.
const KIND_NAMED_CHECKPOINT: u8 = 10;
/// As [`KIND_DATED_COMMIT`], and when.
const KIND_TIMED_COMMIT: u8 = 11;
const KIND_RESTORE_POINT: u8 = 12;
const KIND_TIMELINE: u8 = 13;
const KIND_FILLER: u8 = 14;
const KIND_PREPARE: u8 = 15;

/// Bytes of a restore point's name, as in PostgreSQL.
pub const MAX_RESTORE_POINT: usize = 63;

/// One record, decoded and checked; page ops stay in the reader's buffer.
#[derive(Clone, Debug)]
pub enum Record<'a> {
    /// A mini-transaction: all of its edits or none.
    Pages {
        /// [`Xid::NONE`] where the change belongs to no transaction (pruning, a split's cleanup).
        xid: Xid,
        edits: Edits<'a>,
    },
    Commit {
        xid: Xid,
        subxids: Vec<Xid>,
        /// Files that no longer exist once the commit is durable.
        dropped: Vec<FileId>,
        /// The log was durable up to here when this was inserted: whoever reads this record must
        /// have been able to read that. [`Lsn::ZERO`] in logs of old.
        durable: Lsn,
        /// When, in microseconds since 1970; 0 in logs of old.
        time: u64,
    },
    Abort {
        xid: Xid,
        subxids: Vec<Xid>,
        /// Files that the transaction had created.
        dropped: Vec<FileId>,
    },
    /// A transaction that is to be ended by another session, after a restart, too: all of its work
    /// is in the log before this.
    Prepare {
        xid: Xid,
        subxids: Vec<Xid>,
        /// Files that no longer exist once it has committed.
        dropped: Vec<FileId>,
        /// Files that it has made.
        made: Vec<FileId>,
        /// What else it holds.
        state: &'a [u8],
    },
    FileCreate {
        /// The creator; its abort, or a crash before its commit, removes the file.
        xid: Xid,
        file: FileId,
    },
    FileDrop {
        file: FileId,
    },
    FileTruncate {
        file: FileId,
        /// How many blocks stay.
        blocks: BlockNo,
    },
    NextIds(NextIds),
    Checkpoint(CheckpointRecord),
    /// A place with a name, for a recovery to end at.
    RestorePoint {
        name: &'a str,
        /// In microseconds since 1970.
        time: u64,
    },
    /// The first record of a timeline.
    Timeline {
        timeline: TimelineId,
        /// The one that it leaves here.
        previous: TimelineId,
        time: u64,
    },
    /// Fills a segment up to its end, so that it can be archived.
    Filler,
}

/// Upper bounds of the ids given out: after a crash, ids start here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextIds {
    pub xid: Xid,
    pub oid: Oid,
    pub file: FileId,
}

/// The end of a checkpoint: redo starts at `redo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointRecord {
    pub redo: Lsn,
    pub next: NextIds,
    /// Of the data directory; 0 in logs of old.
    pub identifier: u64,
}

/// The pages of a [`Record::Pages`], in the order they were added. Iterates over [`Edit`]s.
#[derive(Clone, Copy)]
pub struct Edits<'a> {
    rest: Cursor<'a>,
    left: usize,
}

/// What one record does to one page.
#[derive(Clone, Copy, Debug)]
pub struct Edit<'a> {
    pub page: PageId,
    pub ops: Ops<'a>,
}

impl<'a> Edits<'a> {
    fn parse(mut cursor: Cursor<'a>) -> Option<Edits<'a>> {
        let left = usize::try_from(cursor.varint()?).ok()?;
        let edits = Edits { rest: cursor, left };
        for _ in 0..left {
            decode_edit(&mut cursor)?;
        }
        cursor.is_empty().then_some(edits)
    }
}

impl<'a> Iterator for Edits<'a> {
    type Item = Edit<'a>;
    fn next(&mut self) -> Option<Edit<'a>> {
        self.left = self.left.checked_sub(1)?;
        decode_edit(&mut self.rest)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
impl ExactSizeIterator for Edits<'_> {}

impl std::fmt::Debug for Edits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

fn decode_edit<'a>(cursor: &mut Cursor<'a>) -> Option<Edit<'a>> {
    let (file, block) = (cursor.varint_u32()?, cursor.varint_u32()?);
    let len = usize::try_from(cursor.varint()?).ok()?;
    let ops = Ops::parse(cursor.take(len)?)?;
    Some(Edit {
        page: PageId::new(FileId(file), block),
        ops,
    })
}

impl<'a> Record<'a> {
    /// Decodes what follows the header (from the kind on); `None` for anything that no
    /// [`RecordBuilder`] makes.
    pub fn decode(body: &'a [u8]) -> Option<Record<'a>> {
        let mut c = Cursor(body);
        let kind = c.u8()?;
        if kind == KIND_PAGES {
            let xid = Xid(c.varint()?);
            return Some(Record::Pages {
                xid,
                edits: Edits::parse(c)?,
            });
        }
        let record = match kind {
            KIND_COMMIT | KIND_DATED_COMMIT | KIND_TIMED_COMMIT => {
                let durable = match kind {
                    KIND_COMMIT => Lsn::ZERO,
                    _ => Lsn(c.varint()?),
                };
                let time = match kind {
                    KIND_TIMED_COMMIT => c.varint()?,
                    _ => 0,
                };
                let (xid, subxids, dropped) = decode_end(&mut c)?;
                Record::Commit {
                    xid,
                    subxids,
                    dropped,
                    durable,
                    time,
                }
            }
            KIND_ABORT => {
                let (xid, subxids, dropped) = decode_end(&mut c)?;
                Record::Abort {
                    xid,
                    subxids,
                    dropped,
                }
            }
            KIND_PREPARE => {
                let (xid, subxids, dropped) = decode_end(&mut c)?;
                Record::Prepare {
                    xid,
                    subxids,
                    dropped,
                    made: decode_files(&mut c)?,
                    state: c.take(c.0.len())?,
                }
            }
            KIND_FILE_CREATE => Record::FileCreate {
                xid: Xid(c.varint()?),
                file: FileId(c.varint_u32()?),
            },
            KIND_FILE_DROP => Record::FileDrop {
                file: FileId(c.varint_u32()?),
            },
            KIND_FILE_TRUNCATE => Record::FileTruncate {
                file: FileId(c.varint_u32()?),
                blocks: c.varint_u32()?,
            },
            KIND_NEXT_IDS => Record::NextIds(decode_next_ids(&mut c)?),
            KIND_CHECKPOINT | KIND_NAMED_CHECKPOINT => Record::Checkpoint(CheckpointRecord {
                redo: Lsn(c.varint()?),
                next: decode_next_ids(&mut c)?,
                identifier: match kind {
                    KIND_NAMED_CHECKPOINT => c.varint()?,
                    _ => 0,
                },
            }),
            KIND_RESTORE_POINT => {
                let time = c.varint()?;
                let name = std::str::from_utf8(c.take(c.0.len())?).ok()?;
                Record::RestorePoint { name, time }
            }
            KIND_TIMELINE => Record::Timeline {
                timeline: TimelineId(c.varint_u32()?),
                previous: TimelineId(c.varint_u32()?),
                time: c.varint()?,
            },
            KIND_FILLER => {
                c.take(c.0.len())?;
                Record::Filler
            }
            _ => return None,
        };
        c.is_empty().then_some(record)
    }
}

fn decode_next_ids(c: &mut Cursor<'_>) -> Option<NextIds> {
    Some(NextIds {
        xid: Xid(c.varint()?),
        oid: Oid(c.varint_u32()?),
        file: FileId(c.varint_u32()?),
    })
}

/// A transaction's end: its xid, its subtransactions as differences, the files that go with it.
fn decode_end(c: &mut Cursor<'_>) -> Option<(Xid, Vec<Xid>, Vec<FileId>)> {
    let xid = c.varint()?;
    let count = c.varint()?;
    // No capacity from a number that may be garbage: each entry takes a byte at least.
    let mut subxids = Vec::with_capacity(usize::try_from(count).ok()?.min(c.0.len()));
    let mut last = xid;
    for _ in 0..count {
        last = last.wrapping_add(c.varint()?);
        subxids.push(Xid(last));
    }
    Some((Xid(xid), subxids, decode_files(c)?))
}

fn decode_files(c: &mut Cursor<'_>) -> Option<Vec<FileId>> {
    let count = c.varint()?;
    let mut files = Vec::with_capacity(usize::try_from(count).ok()?.min(c.0.len()));
    for _ in 0..count {
        files.push(FileId(c.varint_u32()?));
    }
    Some(files)
}

/// Makes one record after another, reusing its buffers: after the first few there is no allocation.
///
/// A mini-transaction calls [`pages`](Self::pages), then [`add_page`](Self::add_page) for each page
/// and the ops by the page's index; the other kinds are one call each. Then
/// [`Wal::insert`](crate::Wal::insert).
#[derive(Default)]
pub struct RecordBuilder {
    /// The whole record once sealed; until then header and fixed fields.
    out: Vec<u8>,
    /// The first `used` belong to the record being made.
    pages: Vec<(PageId, OpsWriter)>,
    used: usize,
    state: RecordState,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum RecordState {
    #[default]
    Empty,
    /// Pages and ops may still be added.
    Pages,
    /// All fields are in `out`; length and checksum are not.
    Fields,
    Sealed,
}

impl RecordBuilder {
    /// More than this is given back when the builder is reused.
    const KEEP: usize = 256 << 10;

    pub fn new() -> RecordBuilder {
        RecordBuilder::default()
    }

    /// Starts a mini-transaction's record, forgetting what was there.
    pub fn pages(&mut self, xid: Xid) {
        self.start(KIND_PAGES);
        self.varint(xid.0);
        self.state = RecordState::Pages;
    }
    /// Adds a page; ops name it by the index returned. A page is added once a record.
    pub fn add_page(&mut self, page: PageId) -> usize {
        assert!(
            self.state == RecordState::Pages,
            "no record of pages has been started"
        );
        if self.used == self.pages.len() {
            self.pages.push((page, OpsWriter::default()));
        } else {
            self.pages[self.used].0 = page;
            self.pages[self.used].1.clear();
        }
        self.used += 1;
        self.used - 1
    }
    /// `bytes` were written at `off`.
    pub fn write(&mut self, page: usize, off: usize, bytes: &[u8]) {
        self.ops(page).write(off, bytes);
    }
    /// `len` bytes were moved from `src` to `dst`, as `memmove`.
    pub fn move_within(&mut self, page: usize, src: usize, dst: usize, len: usize) {
        self.ops(page).move_within(src, dst, len);
    }
    pub fn zero(&mut self, page: usize, off: usize, len: usize) {
        self.ops(page).zero(off, len);
    }
    /// The whole page as it is now, in place of everything recorded for it so far. Bytes that hold
    /// nothing, as the page's kind says ([`throng_types::page::hole`]), are not kept: redo makes
    /// them zero.
    pub fn image(&mut self, page: usize, bytes: &[u8; PAGE_SIZE]) {
        self.ops(page).image(bytes);
        count(Counter::WalPageImage, 1);
    }
    /// Whether any op was recorded for any page.
    pub fn has_ops(&self) -> bool {
        self.pages[..self.used]
            .iter()
            .any(|(_, ops)| !ops.bytes().is_empty())
    }

    /// `durable`: how far the log is known to be flushed. `time`: in microseconds since 1970.
    pub fn commit(
        &mut self,
        xid: Xid,
        subxids: &[Xid],
        dropped: &[FileId],
        durable: Lsn,
        time: u64,
    ) {
        self.start(KIND_TIMED_COMMIT);
        self.varint(durable.0);
        self.varint(time);
        self.end_of_transaction(xid, subxids, dropped);
    }
    pub fn abort(&mut self, xid: Xid, subxids: &[Xid], dropped: &[FileId]) {
        self.start(KIND_ABORT);
        self.end_of_transaction(xid, subxids, dropped);
    }
    /// `state`: what the transaction holds besides.
    pub fn prepare(
        &mut self,
        xid: Xid,
        subxids: &[Xid],
        dropped: &[FileId],
        made: &[FileId],
        state: &[u8],
    ) {
        self.start(KIND_PREPARE);
        self.end_of_transaction(xid, subxids, dropped);
        self.put_files(made);
        self.out.extend_from_slice(state);
    }
    pub fn file_create(&mut self, xid: Xid, file: FileId) {
        self.start(KIND_FILE_CREATE);
        self.varint(xid.0);
        self.varint(file.0.into());
    }
    pub fn file_drop(&mut self, file: FileId) {
        self.start(KIND_FILE_DROP);
        self.varint(file.0.into());
    }
    pub fn file_truncate(&mut self, file: FileId, blocks: BlockNo) {
        self.start(KIND_FILE_TRUNCATE);
        self.varint(file.0.into());
        self.varint(blocks.into());
    }
    pub fn next_ids(&mut self, next: NextIds) {
        self.start(KIND_NEXT_IDS);
        self.put_next_ids(next);
    }
    pub fn checkpoint(&mut self, checkpoint: CheckpointRecord) {
        self.start(KIND_NAMED_CHECKPOINT);
        self.varint(checkpoint.redo.0);
        self.put_next_ids(checkpoint.next);
        self.varint(checkpoint.identifier);
    }
    pub fn restore_point(&mut self, name: &str, time: u64) {
        self.start(KIND_RESTORE_POINT);
        self.varint(time);
        self.out.extend_from_slice(name.as_bytes());
    }
    pub fn timeline(&mut self, timeline: TimelineId, previous: TimelineId, time: u64) {
        self.start(KIND_TIMELINE);
        self.varint(timeline.0.into());
        self.varint(previous.0.into());
        self.varint(time);
    }
    /// A record of `len` bytes, header and kind included, that says nothing.
    pub(crate) fn filler(&mut self, len: usize) {
        debug_assert!((MIN_RECORD..=MAX_RECORD).contains(&len));
        self.start(KIND_FILLER);
        self.out.resize(len, 0);
    }

    /// The finished record, whose LSN is not known yet: length and checksum are in place.
    /// `timeline`: the log's.
    ///
    /// # Panics
    /// When nothing was started, or the record is longer than [`MAX_RECORD`].
    pub(crate) fn seal(&mut self, timeline: TimelineId) -> &mut [u8] {
        assert!(
            self.state != RecordState::Empty,
            "an empty record was sealed"
        );
        if self.state == RecordState::Pages {
            put_varint(&mut self.out, self.used as u64);
            for (page, ops) in &self.pages[..self.used] {
                put_varint(&mut self.out, page.file().0.into());
                put_varint(&mut self.out, page.block().into());
                put_varint(&mut self.out, ops.bytes().len() as u64);
                self.out.extend_from_slice(ops.bytes());
            }
        }
        if self.state != RecordState::Sealed {
            let len = self.out.len();
            assert!(
                len <= MAX_RECORD,
                "a log record of {len} bytes is longer than the {MAX_RECORD} allowed"
            );
            let crc = crc_fast::crc32_iscsi(&self.out[RECORD_HEADER..]) ^ timeline.salt();
            self.out[0..4].copy_from_slice(&(len as u32).to_le_bytes());
            self.out[4..8].copy_from_slice(&crc.to_le_bytes());
            self.state = RecordState::Sealed;
        }
        &mut self.out
    }

    fn start(&mut self, kind: u8) {
        self.out.clear();
        self.out.shrink_to(Self::KEEP);
        self.out.resize(RECORD_HEADER, 0);
        self.out.push(kind);
        self.used = 0;
        self.state = RecordState::Fields;
    }
    fn ops(&mut self, page: usize) -> &mut OpsWriter {
        assert!(
            self.state == RecordState::Pages,
            "ops are added to a record of pages that is not sealed"
        );
        &mut self.pages[..self.used][page].1
    }
    fn varint(&mut self, value: u64) {
        put_varint(&mut self.out, value);
    }
    fn put_next_ids(&mut self, next: NextIds) {
        self.varint(next.xid.0);
        self.varint(next.oid.0.into());
        self.varint(next.file.0.into());
    }
    fn end_of_transaction(&mut self, xid: Xid, subxids: &[Xid], dropped: &[FileId]) {
        self.varint(xid.0);
        self.varint(subxids.len() as u64);
        let mut last = xid.0;
        for sub in subxids {
            self.varint(sub.0.wrapping_sub(last));
            last = sub.0;
        }
        self.put_files(dropped);
    }
    fn put_files(&mut self, files: &[FileId]) {
        self.varint(files.len() as u64);
        for file in files {
            self.varint(file.0.into());
        }
    }
}

/// A record's header as read back; says nothing yet about the body.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub len: usize,
    crc: u32,
}

impl Header {
    /// `None` unless the header can be that of a record starting at `at`.
    pub fn read(bytes: &[u8; RECORD_HEADER], at: Lsn) -> Option<Header> {
        let u32_at =
            |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        let len = u32_at(0) as usize;
        let lsn = u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32;
        ((MIN_RECORD..=MAX_RECORD).contains(&len) && lsn == at.0).then_some(Header {
            len,
            crc: u32_at(4),
        })
    }
    pub fn matches(&self, body: &[u8], timeline: TimelineId) -> bool {
        crc_fast::crc32_iscsi(body) ^ timeline.salt() == self.crc
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{PageOp, apply};
    use proptest::prelude::*;

    fn decode(builder: &mut RecordBuilder) -> Record<'_> {
        Record::decode(&builder.seal(TimelineId::FIRST)[RECORD_HEADER..])
            .expect("a sealed record decodes")
    }

    #[test]
    fn every_kind_survives_the_round_trip() {
        let mut b = RecordBuilder::new();
        let (subs, files) = (
            [Xid(101), Xid(90), Xid(u64::MAX)],
            [FileId(7), FileId(u32::MAX)],
        );
        b.commit(Xid(100), &subs, &files, Lsn(77), 1_234_567);
        let Record::Commit {
            xid,
            subxids,
            dropped,
            durable,
            time,
        } = decode(&mut b)
        else {
            panic!()
        };
        assert_eq!(
            (xid, &subxids[..], &dropped[..], durable, time),
            (Xid(100), &subs[..], &files[..], Lsn(77), 1_234_567)
        );
        b.abort(Xid(5), &[], &[]);
        assert!(
            matches!(decode(&mut b), Record::Abort { xid: Xid(5), subxids, .. } if subxids.is_empty())
        );
        b.file_create(Xid(9), FileId(3));
        assert!(matches!(
            decode(&mut b),
            Record::FileCreate {
                xid: Xid(9),
                file: FileId(3)
            }
        ));
        b.file_drop(FileId(4));
        assert!(matches!(
            decode(&mut b),
            Record::FileDrop { file: FileId(4) }
        ));
        b.file_truncate(FileId(4), 99);
        assert!(matches!(
            decode(&mut b),
            Record::FileTruncate {
                file: FileId(4),
                blocks: 99
            }
        ));
        let next = NextIds {
            xid: Xid(1 << 40),
            oid: Oid(20000),
            file: FileId(1 << 31),
        };
        b.next_ids(next);
        assert!(matches!(decode(&mut b), Record::NextIds(n) if n == next));
        let checkpoint = CheckpointRecord {
            redo: Lsn(1 << 50),
            next,
            identifier: u64::MAX,
        };
        b.checkpoint(checkpoint);
        assert!(matches!(decode(&mut b), Record::Checkpoint(c) if c == checkpoint));
        b.restore_point("before the change", 8);
        assert!(matches!(
            decode(&mut b),
            Record::RestorePoint {
                name: "before the change",
                time: 8
            }
        ));
        b.timeline(TimelineId(3), TimelineId(2), 9);
        assert!(matches!(
            decode(&mut b),
            Record::Timeline {
                timeline: TimelineId(3),
                previous: TimelineId(2),
                time: 9
            }
        ));
        b.filler(1000);
        assert_eq!(b.seal(TimelineId::FIRST).len(), 1000);
        assert!(matches!(decode(&mut b), Record::Filler));
    }

    #[test]
    fn a_prepared_transaction_says_what_it_has_done() {
        let mut b = RecordBuilder::new();
        b.prepare(Xid(9), &[Xid(12)], &[FileId(7)], &[FileId(8)], b"held");
        let told = format!("{:?}", decode(&mut b));
        assert!(told.contains("subxids: [Xid(12)]") && told.contains("made: [FileId(8)]"));
        assert!(told.contains("dropped: [FileId(7)]") && told.contains("104, 101, 108, 100"));
    }

    #[test]
    fn a_record_is_of_its_timeline_alone() {
        let mut b = RecordBuilder::new();
        b.file_drop(FileId(4));
        let bytes = b.seal(TimelineId(2)).to_vec();
        let mut head = *bytes.first_chunk::<RECORD_HEADER>().unwrap();
        head[LSN_AT..].copy_from_slice(&5u64.to_le_bytes());
        let header = Header::read(&head, Lsn(5)).unwrap();
        let matches = |timeline| header.matches(&bytes[RECORD_HEADER..], TimelineId(timeline));
        assert!(matches(2));
        assert!(!matches(1) && !matches(3));
    }

    /// Logs of old have commits that do not say what was durable, and checkpoints that do not say
    /// of which directory.
    #[test]
    fn records_of_old_are_read() {
        let commit = [KIND_COMMIT, 100, 0, 1, 7];
        assert!(matches!(
            Record::decode(&commit),
            Some(Record::Commit { xid: Xid(100), durable: Lsn::ZERO, dropped, .. })
                if dropped == [FileId(7)]
        ));
        let checkpoint = [KIND_CHECKPOINT, 5, 1, 2, 3];
        assert!(matches!(
            Record::decode(&checkpoint),
            Some(Record::Checkpoint(CheckpointRecord {
                redo: Lsn(5),
                identifier: 0,
                ..
            }))
        ));
    }

    #[test]
    fn ops_of_several_pages_may_be_recorded_in_any_order() {
        let mut b = RecordBuilder::new();
        // Twice, because the second time every buffer is a reused one.
        for xid in [1, 2] {
            b.pages(Xid(xid));
            let left = b.add_page(PageId::new(FileId(1), 10));
            let right = b.add_page(PageId::new(FileId(1), 11));
            assert!(!b.has_ops());
            b.write(right, 50, b"right");
            b.write(left, 50, b"le");
            b.zero(right, 100, 8);
            b.write(left, 52, b"ft");
            assert!(b.has_ops());
            let Record::Pages { xid: got, edits } = decode(&mut b) else {
                panic!()
            };
            assert_eq!((got, edits.len()), (Xid(xid), 2));
            let edits: Vec<_> = edits.collect();
            assert_eq!(edits[0].page, PageId::new(FileId(1), 10));
            assert_eq!(
                edits[0].ops.collect::<Vec<_>>(),
                [PageOp::Write {
                    off: 50,
                    bytes: b"left"
                }]
            );
            assert_eq!(edits[1].ops.count(), 2);
        }
    }

    #[test]
    fn a_small_change_is_a_small_record() {
        let mut b = RecordBuilder::new();
        b.pages(Xid(1000));
        let page = b.add_page(PageId::new(FileId(300), 5000));
        b.write(page, 4000, &[1; 8]);
        assert!(
            b.seal(TimelineId::FIRST).len() <= RECORD_HEADER + 22,
            "{}",
            b.seal(TimelineId::FIRST).len()
        );
    }

    #[test]
    fn a_header_is_believed_only_at_its_own_place() {
        let mut b = RecordBuilder::new();
        b.file_drop(FileId(4));
        let mut bytes = b.seal(TimelineId::FIRST).to_vec();
        bytes[8..16].copy_from_slice(&777u64.to_le_bytes());
        let (head, body) = bytes.split_first_chunk::<RECORD_HEADER>().unwrap();
        assert!(Header::read(head, Lsn(776)).is_none());
        let header = Header::read(head, Lsn(777)).unwrap();
        assert!(header.matches(body, TimelineId::FIRST));
        assert!(!header.matches(&body[1..], TimelineId::FIRST));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(mut body in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..16) {
            if let Some(first) = body.first_mut() {
                *first = kind;
            }
            if let Some(Record::Pages { edits, .. }) = Record::decode(&body) {
                let mut page = [0; PAGE_SIZE];
                edits.for_each(|edit| apply(&mut page, edit.ops));
            }
        }

        #[test]
        fn a_damaged_record_never_panics(at in 0usize..10_000, flip in 1u8..) {
            let mut b = RecordBuilder::new();
            b.pages(Xid(3));
            let page = b.add_page(PageId::new(FileId(2), 1));
            b.write(page, 3, b"hello");
            b.move_within(page, 10, 4000, 100);
            let page = b.add_page(PageId::new(FileId(2), 2));
            b.image(page, &[5; PAGE_SIZE]);
            let mut body = b.seal(TimelineId::FIRST)[RECORD_HEADER..].to_vec();
            let at = at % body.len();
            body[at] ^= flip;
            if let Some(Record::Pages { edits, .. }) = Record::decode(&body) {
                let mut page = [0; PAGE_SIZE];
                edits.for_each(|edit| apply(&mut page, edit.ops));
            }
        }
    }
}
