//! `DIR/xact`: how all transactions stand, as the last checkpoint found it.
//!
//! One file for [`PER_FILE`] segments of the status log, named by its number in hexadecimal:
//!
//! ```text
//!   | magic u32 | segments u32 | segment … | crc32c |       a segment:  0, count u16, aborted offsets u16 …
//!                                                                       1, a bit for each xid that committed
//! ```
//!
//! A file whose segments are all final is written once more and then never again, so a checkpoint's cost does not grow with
//! the number of transactions there have been.

use std::collections::{BTreeMap, BTreeSet};

use throng_disk::Disk;
use throng_types::{Error, Result, Xid};

use crate::control::{Fields, read_file, replace_file, seal, unseal};
use crate::status::{Exported, OldSegment, SEGMENT, StatusBuilder, StatusLog, WORDS};

const MAGIC: u32 = u32::from_le_bytes(*b"XACT");
const DIR: &str = "xact";
const TEMPORARY: &str = "new";
/// Segments in a file: 16 million transactions.
const PER_FILE: u64 = if cfg!(test) { 16 } else { 1024 };

/// Which files need not be written again.
#[derive(Default)]
pub(crate) struct XactFiles {
    /// Those below this are final.
    final_below: u64,
}

impl XactFiles {
    pub(crate) fn create(disk: &dyn Disk) -> Result<()> {
        disk.create_dir(DIR)?;
        Ok(())
    }

    /// What [`XactFiles::write`] will write: taken in a moment, to be written when the log is on disk.
    pub(crate) fn collect(&self, status: &StatusLog, next: Xid) -> Collected {
        let last = next.0.saturating_sub(1) / SEGMENT / PER_FILE;
        let files = (self.final_below..=last).map(|file| {
            let mut is_final = true;
            let segments =
                (file * PER_FILE..(file + 1) * PER_FILE).take_while(|n| n * SEGMENT < next.0);
            let segments: Vec<OldSegment> = segments
                .map(|n| match status.export(n) {
                    Exported::Final(segment) => segment,
                    Exported::Open(segment) => {
                        is_final = false;
                        segment
                    }
                })
                .collect();
            let is_final = is_final && segments.len() as u64 == PER_FILE;
            (file, is_final, encode(&segments))
        });
        Collected {
            files: files.collect(),
        }
    }

    pub(crate) fn write(&mut self, disk: &dyn Disk, collected: Collected) -> Result<()> {
        let mut final_so_far = true;
        for (file, is_final, bytes) in collected.files {
            replace_file(disk, DIR, &format!("{file:08x}"), TEMPORARY, &bytes)?;
            final_so_far &= is_final;
            if final_so_far {
                self.final_below = file + 1;
            }
        }
        disk.sync_dir(DIR)?;
        Ok(())
    }

    pub(crate) fn load(disk: &dyn Disk, builder: &mut StatusBuilder) -> Result<XactFiles> {
        let mut full = BTreeSet::new();
        for name in disk.list(DIR)? {
            let Ok(file) = u64::from_str_radix(&name, 16) else {
                continue;
            };
            let bytes = read_file(disk, &format!("{DIR}/{name}"))?;
            let segments = decode(&bytes).ok_or_else(|| {
                Error::corrupted(format!(
                    "the transaction status file {DIR}/{name} is damaged"
                ))
            })?;
            if segments.len() as u64 == PER_FILE {
                full.insert(file);
            }
            for (n, segment) in segments {
                builder.load(file * PER_FILE + n, segment);
            }
        }
        let final_below = (0..).find(|file| !full.contains(file)).unwrap_or(0);
        Ok(XactFiles { final_below })
    }

    /// The log has told more of this segment: its file is to be written again.
    pub(crate) fn touched(&mut self, segment: u64) {
        self.final_below = self.final_below.min(segment / PER_FILE);
    }
}

/// File contents, with their numbers and whether they are final.
pub(crate) struct Collected {
    files: Vec<(u64, bool, Vec<u8>)>,
}

fn encode(segments: &[OldSegment]) -> Vec<u8> {
    let mut b = Vec::new();
    b.extend(MAGIC.to_le_bytes());
    b.extend((segments.len() as u32).to_le_bytes());
    for segment in segments {
        match segment {
            OldSegment::Aborted(list) => {
                b.push(0);
                b.extend((list.len() as u16).to_le_bytes());
                list.iter()
                    .for_each(|offset| b.extend(offset.to_le_bytes()));
            }
            OldSegment::Bits(bits) => {
                b.push(1);
                bits.iter().for_each(|word| b.extend(word.to_le_bytes()));
            }
        }
    }
    seal(&mut b);
    b
}

fn decode(bytes: &[u8]) -> Option<BTreeMap<u64, OldSegment>> {
    let mut at = Fields {
        rest: unseal(bytes)?,
    };
    if at.u32()? != MAGIC {
        return None;
    }
    let count = at.u32()?;
    let mut segments = BTreeMap::new();
    for n in 0..count {
        let segment = match at.u8()? {
            0 => {
                let count = at.u16()?;
                OldSegment::Aborted((0..count).map(|_| at.u16()).collect::<Option<_>>()?)
            }
            1 => {
                let mut bits = Box::new([0; WORDS]);
                for word in bits.iter_mut() {
                    *word = at.u64()?;
                }
                OldSegment::Bits(bits)
            }
            _ => return None,
        };
        segments.insert(n.into(), segment);
    }
    at.rest.is_empty().then_some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Standing;
    use throng_disk::SimDisk;
    use throng_types::Csn;

    #[test]
    fn statuses_are_found_again_and_final_files_are_left_alone() {
        let disk = SimDisk::new();
        XactFiles::create(&disk).expect("made");
        let status = StatusLog::new([]);
        let last = SEGMENT * PER_FILE + 100;
        for x in 3..last {
            status.begin(Xid(x));
            if x % 3 == 0 {
                status.abort(Xid(x));
            } else if x % 7 != 0 || x < SEGMENT * PER_FILE {
                status.commit(Xid(x), &[], || Csn(x));
            }
        }
        status.trim(Xid(last), Csn(last));
        let mut files = XactFiles::default();
        let collected = files.collect(&status, Xid(last));
        files.write(&disk, collected).expect("written");
        assert_eq!(files.final_below, 1);
        assert_eq!(files.collect(&status, Xid(last)).files.len(), 1);
        let mut builder = StatusBuilder::default();
        let again = XactFiles::load(&disk, &mut builder).expect("loaded");
        assert_eq!(again.final_below, 1);
        let (loaded, _) = builder.finish(Xid(last));
        for x in 3..last {
            let committed = matches!(status.standing(Xid(x)), Standing::Committed(_));
            assert_eq!(
                matches!(loaded.standing(Xid(x)), Standing::Committed(_)),
                committed,
                "xid {x}"
            );
        }
    }
}
