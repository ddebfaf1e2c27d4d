//! `DIR/control`: where recovery begins, and what it must know before it has read the log.
//!
//! ```text
//!   0        8         12        16                                                            end-4
//!   | magic  | version | clean   | identifier, redo, ids, segment size, made files, doomed files,
//!                                  end of the checkpoint's record, number of status files,
//!                                  relation files and lengths, timeline, timelines before,
//!                                  minimum recovery point                                      | crc32c |
//! ```
//!
//! What is named here must be there at the next start: the log from `redo` up to the checkpoint's
//! record, the status files, and the relation files with their lengths. Format 1 names neither of
//! these, and format 2 no timeline; a start writes format 3.
//!
//! Little endian. Written whole under another name, synced, and renamed, so that there is always
//! one whole file.

use std::io;
use std::sync::Arc;

use throng_disk::Disk;
use throng_types::{Error, FileId, Lsn, Oid, Result, Xid};
use throng_wal::{EndedTimeline, NextIds, TimelineHistory, TimelineId};

const MAGIC: u64 = u64::from_le_bytes(*b"THRONG\r\n");
const VERSION: u32 = 3;
/// Formats before, which are read: without requirements, and without timelines.
const WITHOUT_REQUIREMENTS: u32 = 1;
const WITHOUT_TIMELINES: u32 = 2;
const NAME: &str = "control";
const TEMPORARY: &str = "control.new";

/// The control file's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    /// Tells data directories apart.
    pub(crate) identifier: u64,
    /// The server that wrote it had stopped, with all pages written.
    pub(crate) clean: bool,
    /// Redo begins here.
    pub(crate) redo: Lsn,
    /// No id at or above these had been used at `redo`.
    pub(crate) next: NextIds,
    pub(crate) wal_segment_size: u64,
    /// Files whose makers had not ended: to be removed if those turn out not to have committed.
    pub(crate) made: Vec<(Xid, FileId)>,
    /// Files whose end had been committed, but which were still there.
    pub(crate) doomed: Vec<FileId>,
    pub(crate) kept: StartRequirements,
    pub(crate) history: Arc<TimelineHistory>,
    /// The pages may be as far as this, as in a backup, which is copied while others write: they
    /// fit together only once redo has come so far. [`Lsn::ZERO`] once a checkpoint has seen to it.
    pub(crate) minimum_recovery: Lsn,
}

/// What the next start must find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StartRequirements {
    /// Where the record of the checkpoint ends that began at `redo`; [`Lsn::ZERO`] before the first
    /// one, and in format 1.
    pub(crate) checkpoint: Lsn,
    /// Files of transactions' status.
    pub(crate) xact_files: u64,
    /// Relation files with the blocks that each has at least.
    pub(crate) files: Vec<(FileId, u32)>,
}

impl Control {
    pub(crate) fn read(disk: &dyn Disk) -> Result<Option<Control>> {
        if !disk.exists(NAME)? {
            return Ok(None);
        }
        let bytes = read_file(disk, NAME)?;
        Control::decode(&bytes).map(Some)
    }

    pub(crate) fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        replace_file(disk, "", NAME, TEMPORARY, &self.encode())?;
        disk.sync_dir("")
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut b = Vec::with_capacity(256);
        b.extend(MAGIC.to_le_bytes());
        b.extend(VERSION.to_le_bytes());
        b.extend(u32::from(self.clean).to_le_bytes());
        for value in [
            self.identifier,
            self.redo.0,
            self.next.xid.0,
            self.wal_segment_size,
        ] {
            b.extend(value.to_le_bytes());
        }
        b.extend(self.next.oid.0.to_le_bytes());
        b.extend(self.next.file.0.to_le_bytes());
        b.extend((self.made.len() as u32).to_le_bytes());
        for (xid, file) in &self.made {
            b.extend(xid.0.to_le_bytes());
            b.extend(file.0.to_le_bytes());
        }
        b.extend((self.doomed.len() as u32).to_le_bytes());
        for file in &self.doomed {
            b.extend(file.0.to_le_bytes());
        }
        b.extend(self.kept.checkpoint.0.to_le_bytes());
        b.extend(self.kept.xact_files.to_le_bytes());
        b.extend((self.kept.files.len() as u32).to_le_bytes());
        for (file, blocks) in &self.kept.files {
            b.extend(file.0.to_le_bytes());
            b.extend(blocks.to_le_bytes());
        }
        b.extend(self.history.current().0.to_le_bytes());
        let ended = self.history.ended();
        b.extend((ended.len() as u32).to_le_bytes());
        for EndedTimeline { timeline, end } in ended {
            b.extend(timeline.0.to_le_bytes());
            b.extend(end.0.to_le_bytes());
        }
        b.extend(self.minimum_recovery.0.to_le_bytes());
        seal(&mut b);
        b
    }

    fn decode(bytes: &[u8]) -> Result<Control> {
        let damaged = || missing("the file control is damaged");
        let body = unseal(bytes).ok_or_else(damaged)?;
        let mut at = Fields { rest: body };
        if at.u64() != Some(MAGIC) {
            return Err(missing("the file control is not Throng's"));
        }
        let version = at.u32().ok_or_else(damaged)?;
        if !(WITHOUT_REQUIREMENTS..=VERSION).contains(&version) {
            return Err(Error::corrupted(format!(
                "the data directory has format {version}, this server reads format {VERSION}"
            )));
        }
        Control::fields(&mut at, version).ok_or_else(damaged)
    }

    fn fields(at: &mut Fields<'_>, version: u32) -> Option<Control> {
        let clean = at.u32()? != 0;
        let (identifier, redo, xid, wal_segment_size) =
            (at.u64()?, Lsn(at.u64()?), Xid(at.u64()?), at.u64()?);
        let next = NextIds {
            xid,
            oid: Oid(at.u32()?),
            file: FileId(at.u32()?),
        };
        let made = (0..at.u32()?)
            .map(|_| Some((Xid(at.u64()?), FileId(at.u32()?))))
            .collect::<Option<_>>()?;
        let doomed = (0..at.u32()?)
            .map(|_| Some(FileId(at.u32()?)))
            .collect::<Option<_>>()?;
        let kept = match version {
            WITHOUT_REQUIREMENTS => StartRequirements::default(),
            _ => StartRequirements::fields(at)?,
        };
        let (history, minimum_recovery) = match version {
            WITHOUT_REQUIREMENTS | WITHOUT_TIMELINES => (TimelineHistory::default(), Lsn::ZERO),
            _ => (history(at)?, Lsn(at.u64()?)),
        };
        at.rest.is_empty().then_some(Control {
            identifier,
            clean,
            redo,
            next,
            wal_segment_size,
            made,
            doomed,
            kept,
            history: Arc::new(history),
            minimum_recovery,
        })
    }
}

fn history(at: &mut Fields<'_>) -> Option<TimelineHistory> {
    let current = TimelineId(at.u32()?);
    let ended = (0..at.u32()?).map(|_| {
        Some(EndedTimeline {
            timeline: TimelineId(at.u32()?),
            end: Lsn(at.u64()?),
        })
    });
    TimelineHistory::new(ended.collect::<Option<_>>()?, current)
}

impl StartRequirements {
    fn fields(at: &mut Fields<'_>) -> Option<StartRequirements> {
        Some(StartRequirements {
            checkpoint: Lsn(at.u64()?),
            xact_files: at.u64()?,
            files: (0..at.u32()?)
                .map(|_| Some((FileId(at.u32()?), at.u32()?)))
                .collect::<Option<_>>()?,
        })
    }
}

/// Something of a data directory is not there, or not what it was: how that is told.
#[cold]
pub(crate) fn missing(message: impl Into<String>) -> Error {
    Error::corrupted(message.into())
        .hint("Put the file back, or restore the data directory from a backup.")
}

/// Reads little-endian numbers off the front.
pub(crate) struct Fields<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(head)
    }
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take(2)
            .and_then(|b| b.try_into().ok())
            .map(u16::from_le_bytes)
    }
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4)
            .and_then(|b| b.try_into().ok())
            .map(u32::from_le_bytes)
    }
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take(8)
            .and_then(|b| b.try_into().ok())
            .map(u64::from_le_bytes)
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Appends the checksum.
pub(crate) fn seal(bytes: &mut Vec<u8>) {
    let sum = checksum(bytes);
    bytes.extend(sum.to_le_bytes());
}

/// What the checksum at the end covers, if it is right.
pub(crate) fn unseal(bytes: &[u8]) -> Option<&[u8]> {
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    (checksum(body) == u32::from_le_bytes(*sum)).then_some(body)
}

pub(crate) fn read_file(disk: &dyn Disk, path: &str) -> io::Result<Vec<u8>> {
    let file = disk.open(path, false)?;
    let mut bytes = vec![0; file.len()? as usize];
    let n = file.read_at(&mut bytes, 0)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// Writes a file under a temporary name, makes it durable, and gives it its name. The directory is
/// synced by the caller.
pub(crate) fn replace_file(
    disk: &dyn Disk,
    dir: &str,
    name: &str,
    temporary: &str,
    bytes: &[u8],
) -> io::Result<()> {
    let path = |name: &str| {
        if dir.is_empty() {
            name.to_string()
        } else {
            format!("{dir}/{name}")
        }
    };
    let file = disk.open(&path(temporary), true)?;
    file.set_len(0)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    disk.rename(&path(temporary), &path(name))
}

#[cfg(test)]
pub(crate) use tests::sample;

#[cfg(test)]
mod tests {
    use super::*;
    use throng_disk::SimDisk;

    pub(crate) fn sample() -> Control {
        Control {
            identifier: 7,
            clean: false,
            redo: Lsn(1 << 24),
            next: NextIds {
                xid: Xid(3),
                oid: Oid(16384),
                file: FileId(1),
            },
            wal_segment_size: 16 << 20,
            made: vec![(Xid(9), FileId(4))],
            doomed: vec![FileId(2), FileId(3)],
            kept: StartRequirements {
                checkpoint: Lsn((1 << 24) + 40),
                xact_files: 1,
                files: vec![(FileId(1), 7)],
            },
            history: Arc::new(TimelineHistory::default().branched(Lsn(1 << 20), TimelineId(2))),
            minimum_recovery: Lsn(1 << 25),
        }
    }

    /// The last bytes but for the checksum: timeline, one that has ended, minimum recovery point.
    const TIMELINES: usize = 4 + 4 + 12 + 8;

    #[test]
    fn formats_before_are_read() {
        let mut control = Control {
            history: Arc::default(),
            minimum_recovery: Lsn::ZERO,
            ..sample()
        };
        let older = |version: u32, control: &Control, without: usize| {
            let mut bytes = sample().encode();
            if control.kept == StartRequirements::default() {
                bytes = Control {
                    kept: StartRequirements::default(),
                    ..sample()
                }
                .encode();
            }
            bytes.truncate(bytes.len() - 4 - without);
            bytes[8..12].copy_from_slice(&version.to_le_bytes());
            seal(&mut bytes);
            Control::decode(&bytes).expect("readable")
        };
        assert_eq!(older(WITHOUT_TIMELINES, &control, TIMELINES), control);
        control.kept = StartRequirements::default();
        assert_eq!(
            older(WITHOUT_REQUIREMENTS, &control, TIMELINES + 20),
            control
        );
    }

    #[test]
    fn it_is_found_as_written_even_after_a_crash() {
        let disk = SimDisk::new();
        assert_eq!(Control::read(&disk).expect("readable"), None);
        sample().write(&disk).expect("written");
        for seed in 0..20 {
            assert_eq!(
                Control::read(&disk.crash_image(seed)).expect("readable"),
                Some(sample())
            );
        }
    }

    #[test]
    fn damage_is_found() {
        let bytes = sample().encode();
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 4;
            assert!(Control::decode(&damaged).is_err(), "byte {i}");
            assert!(Control::decode(&bytes[..i]).is_err(), "cut at {i}");
        }
        assert_eq!(Control::decode(&bytes).expect("whole"), sample());
    }
}
