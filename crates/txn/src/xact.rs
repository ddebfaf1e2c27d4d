//! `DIR/xact`: how all transactions stand, as the last checkpoint found it.
//!
//! One file for [`PER_FILE`] segments of the status log, named by its number in hexadecimal:
//!
//! ```text
//!   | magic u32 | identifier u64 | number u64 | as of u64 | segments u32 | segment … | crc32c |
//!                                                             a segment:  0, count u16, aborted offsets u16 …
//!                                                                       1, a bit for each xid that committed
//! ```
//!
//! A file says of which data directory it is, its number, and the end of the checkpoint's record
//! that it was written with; of the last one nothing is older than the control file says. Files of
//! format 1 have none of these three.
//!
//! A file whose segments are all final is written once more and then never again, so a checkpoint's
//! cost does not grow with the number of transactions there have been.

use std::collections::{BTreeMap, BTreeSet};

use throng_disk::Disk;
use throng_types::{Lsn, Result, Xid};
use throng_wal::Wal;

use crate::control::{Control, Fields, missing, read_file, replace_file, seal, unseal};
use crate::status::{Exported, OldSegment, SEGMENT, StatusBuilder, StatusLog, WORDS};

const MAGIC: u32 = u32::from_le_bytes(*b"XAC2");
/// Of format 1.
const MAGIC_BEFORE: u32 = u32::from_le_bytes(*b"XACT");
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

    /// What [`XactFiles::write`] will write: taken in a moment, to be written when the log is on
    /// disk.
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
            (file, is_final, segments)
        });
        Collected {
            files: files.collect(),
        }
    }

    /// Returns how many files there are.
    pub(crate) fn write(
        &mut self,
        disk: &dyn Disk,
        collected: Collected,
        identifier: u64,
        as_of: Lsn,
    ) -> Result<u64> {
        let mut final_so_far = true;
        let mut count = self.final_below;
        for (file, is_final, segments) in collected.files {
            count = file + 1;
            let head = Head {
                identifier,
                number: file,
                // What is final need not be written again, and is as of any time.
                as_of: if is_final { Lsn::MAX } else { as_of },
            };
            let bytes = encode(head, &segments);
            replace_file(disk, DIR, &format!("{file:08x}"), TEMPORARY, &bytes)?;
            final_so_far &= is_final;
            if final_so_far {
                self.final_below = file + 1;
            }
        }
        disk.sync_dir(DIR)?;
        Ok(count)
    }

    /// # Errors
    /// XX001 naming the file that is missing, damaged, or not the one that the control file means.
    pub(crate) fn load(
        disk: &dyn Disk,
        control: &Control,
        builder: &mut StatusBuilder,
    ) -> Result<XactFiles> {
        let wrong = |file: u64, what: &str| {
            missing(format!(
                "the transaction status file {DIR}/{file:08x} {what}"
            ))
        };
        let names = match disk.exists(DIR)? {
            true => disk.list(DIR)?,
            false => return Err(missing(format!("the directory {DIR} is missing"))),
        };
        let mut there: Vec<u64> = names
            .iter()
            .filter_map(|name| u64::from_str_radix(name, 16).ok())
            .collect();
        there.sort_unstable();
        // Format 1 does not say how many there are: one after the first checkpoint, and none is
        // left out.
        let known = control.kept.checkpoint != Lsn::ZERO;
        let count = match known {
            true => control.kept.xact_files,
            false if control.redo > Wal::FIRST => there.last().map_or(1, |last| last + 1),
            false => 0,
        };
        if let Some(gone) = (0..count).find(|file| !there.contains(file)) {
            return Err(wrong(gone, "is missing"));
        }
        let mut full = BTreeSet::new();
        for file in there {
            let bytes = read_file(disk, &format!("{DIR}/{file:08x}"))?;
            let (head, segments) = decode(&bytes).ok_or_else(|| wrong(file, "is damaged"))?;
            match &head {
                Some(head) if head.identifier != control.identifier => {
                    let what = format!("is of data directory {}", head.identifier);
                    return Err(wrong(file, &what));
                }
                Some(head) if head.number != file => {
                    return Err(wrong(file, &format!("is file {:08x}", head.number)));
                }
                Some(head) if head.as_of < control.kept.checkpoint => {
                    return Err(wrong(file, "is older than the control file"));
                }
                None if known => return Err(wrong(file, "is of another data directory")),
                _ => {}
            }
            let is_final = head.is_some_and(|head| head.as_of == Lsn::MAX);
            if is_final && segments.len() as u64 == PER_FILE {
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
    files: Vec<(u64, bool, Vec<OldSegment>)>,
}

/// What a file says of itself.
struct Head {
    identifier: u64,
    number: u64,
    as_of: Lsn,
}

fn encode(head: Head, segments: &[OldSegment]) -> Vec<u8> {
    let mut b = Vec::new();
    b.extend(MAGIC.to_le_bytes());
    for number in [head.identifier, head.number, head.as_of.0] {
        b.extend(number.to_le_bytes());
    }
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

/// No head in format 1.
fn decode(bytes: &[u8]) -> Option<(Option<Head>, BTreeMap<u64, OldSegment>)> {
    let mut at = Fields {
        rest: unseal(bytes)?,
    };
    let head = match at.u32()? {
        MAGIC => Some(Head {
            identifier: at.u64()?,
            number: at.u64()?,
            as_of: Lsn(at.u64()?),
        }),
        MAGIC_BEFORE => None,
        _ => return None,
    };
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
    at.rest.is_empty().then_some((head, segments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{StartRequirements, sample};
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
        let as_of = Lsn(Wal::FIRST.0 + 100);
        let count = files.write(&disk, collected, 7, as_of).expect("written");
        assert_eq!((files.final_below, count), (1, 2));
        assert_eq!(files.collect(&status, Xid(last)).files.len(), 1);
        let mut builder = StatusBuilder::default();
        let control = Control {
            identifier: 7,
            kept: StartRequirements {
                checkpoint: as_of,
                xact_files: count,
                files: Vec::new(),
            },
            ..sample()
        };
        let again = XactFiles::load(&disk, &control, &mut builder).expect("loaded");
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

        let refusal = |control: &Control| {
            let loaded = XactFiles::load(&disk, control, &mut StatusBuilder::default());
            loaded
                .err()
                .map(|e| e.message().to_owned())
                .unwrap_or_default()
        };
        let mut of_another = control.clone();
        of_another.identifier = 8;
        assert!(refusal(&of_another).contains("is of data directory 7"));
        let mut newer = control.clone();
        newer.kept.checkpoint = Lsn(as_of.0 + 1);
        assert!(refusal(&newer).contains("xact/00000001 is older than the control file"));
        let mut more = control.clone();
        more.kept.xact_files = 3;
        assert!(refusal(&more).contains("xact/00000002 is missing"));
        disk.remove("xact/00000000").expect("removed");
        assert!(refusal(&control).contains("xact/00000000 is missing"));
    }
}
