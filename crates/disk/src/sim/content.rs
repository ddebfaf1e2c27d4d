//! A simulated file's bytes, and how to undo what is not durable.

use super::Rng;
use std::collections::BTreeMap;

/// What a disk writes whole: the unit of loss.
pub(super) const SECTOR: usize = 512;

/// A sector's durable bytes; None for zeros.
type Old = Option<Box<[u8; SECTOR]>>;

#[derive(Default)]
pub(super) struct Content {
    /// What readers see.
    data: Vec<u8>,
    /// The length that survives a crash for certain.
    durable_len: u64,
    /// Sectors that differ, or may differ, from their durable bytes, with these. Numbers are
    /// offsets / SECTOR.
    old: BTreeMap<usize, Old>,
    /// As `old`, but a failed sync has made the system believe that they are durable.
    lost: BTreeMap<usize, Old>,
}

impl Content {
    pub(super) fn durable(data: Vec<u8>) -> Content {
        Content {
            durable_len: data.len() as u64,
            data,
            ..Content::default()
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.data.len() as u64
    }

    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let from = usize::try_from(offset).map_or(self.data.len(), |at| at.min(self.data.len()));
        let n = buf.len().min(self.data.len() - from);
        buf[..n].copy_from_slice(&self.data[from..from + n]);
        n
    }

    pub(super) fn write(&mut self, data: &[u8], offset: u64) {
        if data.is_empty() {
            return;
        }
        let from = offset as usize;
        let end = from + data.len();
        self.remember(from / SECTOR..end.div_ceil(SECTOR));
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        self.data[from..end].copy_from_slice(data);
    }

    pub(super) fn set_len(&mut self, len: u64) {
        let len = len as usize;
        self.remember(len / SECTOR..self.data.len().div_ceil(SECTOR));
        self.data.resize(len, 0);
    }

    /// Keeps the durable bytes of sectors that are about to change.
    fn remember(&mut self, sectors: std::ops::Range<usize>) {
        for sector in sectors {
            if self.old.contains_key(&sector) {
                continue;
            }
            let old = self
                .lost
                .remove(&sector)
                .unwrap_or_else(|| self.sector(sector));
            self.old.insert(sector, old);
        }
    }

    fn sector(&self, sector: usize) -> Old {
        let from = (sector * SECTOR).min(self.data.len());
        let end = (from + SECTOR).min(self.data.len());
        let bytes = &self.data[from..end];
        if bytes.iter().all(|&b| b == 0) {
            return None;
        }
        let mut whole = Box::new([0; SECTOR]);
        whole[..bytes.len()].copy_from_slice(bytes);
        Some(whole)
    }

    pub(super) fn sync(&mut self) {
        self.old.clear();
        self.durable_len = self.len();
    }

    pub(super) fn sync_failed(&mut self) {
        self.lost.append(&mut self.old);
    }

    /// What a crash now might leave.
    pub(super) fn crash(&self, rng: &mut Rng) -> Content {
        let len = self.crash_len(rng);
        let mut data = self.data.clone();
        data.resize(
            self.data
                .len()
                .max(self.durable_len as usize)
                .next_multiple_of(SECTOR),
            0,
        );
        // All, none, or some: each of the extremes would hardly ever come from tossing for every
        // sector.
        let mood = rng.below(4);
        for (&sector, old) in self.old.iter().chain(&self.lost) {
            let undo = match mood {
                0 => true,
                1 => false,
                _ => rng.coin(),
            };
            let at = sector * SECTOR;
            if undo && at < data.len() {
                data[at..at + SECTOR].copy_from_slice(old.as_deref().unwrap_or(&[0; SECTOR]));
            }
        }
        data.resize(len as usize, 0);
        Content::durable(data)
    }

    fn crash_len(&self, rng: &mut Rng) -> u64 {
        let (was, is) = (self.durable_len, self.len());
        match rng.below(3) {
            0 => was,
            1 if is > was => was + rng.below(is - was + 1),
            _ => is,
        }
    }
}
