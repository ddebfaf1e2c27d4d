//! Physical replication slots: names under which the log is kept for a client that comes back.
//!
//! A slot that is not temporary is a file `DIR/slots/NAME`, written when it is made and with each
//! checkpoint that finds it moved:
//!
//! ```text
//!   | magic u64 | from u64 | lost u32 | crc32c |
//! ```
//! The log is kept `from` on; 0: nothing is reserved.
//!
//! What a crash loses of how far a slot has come keeps more of the log than is needed, never less.

use std::collections::BTreeMap;
use std::sync::Arc;

use throng_disk::Disk;
use throng_sync::lock::Mutex;
use throng_types::error::state;
use throng_types::{Error, Lsn, Result};
use throng_wal::{Wal, WalHold};

use crate::control::{Fields, missing, read_file, replace_file, seal, unseal};

const MAGIC: u64 = u64::from_le_bytes(*b"THRGSLT1");
const DIR: &str = "slots";
const TEMPORARY: &str = "new.slot";
/// As many bytes as PostgreSQL's names have.
const MAX_NAME: usize = 63;

/// `pg_replication_slots`.
#[derive(Clone, Debug)]
pub struct SlotInfo {
    pub name: String,
    pub temporary: bool,
    /// The session that uses it.
    pub active_pid: Option<u32>,
    /// The log is kept from here on; None: nothing is reserved, or it was lost.
    pub restart: Option<Lsn>,
    /// More log came than `max_slot_wal_keep_size` keeps.
    pub lost: bool,
}

pub struct ReplicationSlots {
    disk: Arc<dyn Disk>,
    wal: Arc<Wal>,
    slots: Mutex<BTreeMap<String, Slot>>,
}

struct Slot {
    temporary: bool,
    active_pid: Option<u32>,
    hold: Option<WalHold>,
    lost: bool,
    /// What its file says.
    saved: Option<Lsn>,
}

impl Slot {
    fn restart(&self) -> Option<Lsn> {
        self.hold.as_ref().map(WalHold::from)
    }
}

impl ReplicationSlots {
    /// Reads what there is. To be called before a checkpoint gives back what they keep.
    pub(crate) fn open(disk: &Arc<dyn Disk>, wal: &Arc<Wal>) -> Result<ReplicationSlots> {
        let mut slots = BTreeMap::new();
        let names = match disk.exists(DIR)? {
            true => disk.list(DIR)?,
            false => Vec::new(),
        };
        for name in names.into_iter().filter(|name| is_name(name)) {
            let (from, lost) = read(&**disk, &name)?;
            let hold = (from != Lsn::ZERO && !lost).then(|| wal.hold(from));
            let slot = Slot {
                temporary: false,
                active_pid: None,
                hold,
                lost,
                saved: Some(from),
            };
            slots.insert(name, slot);
        }
        Ok(ReplicationSlots {
            disk: disk.clone(),
            wal: wal.clone(),
            slots: Mutex::new(slots),
        })
    }

    /// Makes a slot, used by session `temporary_of` alone if that is given. `reserve`: the log is
    /// kept from the last checkpoint's redo point on, `redo`, and not only from its first use.
    ///
    /// # Errors
    /// 42602 for what is no name, 42710 where there is one, 53400 beyond `most`.
    pub fn create(
        &self,
        name: &str,
        temporary_of: Option<u32>,
        reserve: Option<Lsn>,
        most: usize,
    ) -> Result<Option<Lsn>> {
        must_be_name(name)?;
        let mut slots = self.slots.lock();
        if slots.contains_key(name) {
            let message = format!("replication slot \"{name}\" already exists");
            return Err(Error::new(state::DUPLICATE_OBJECT, message));
        }
        if slots.len() >= most {
            let message = "all replication slots are in use";
            return Err(Error::new(state::CONFIGURATION_LIMIT_EXCEEDED, message)
                .hint("Free one or increase \"max_replication_slots\"."));
        }
        let hold = reserve.map(|from| self.wal.hold(from));
        let mut slot = Slot {
            temporary: temporary_of.is_some(),
            active_pid: temporary_of,
            hold,
            lost: false,
            saved: None,
        };
        if !slot.temporary {
            self.write(name, &mut slot)?;
        }
        let restart = slot.restart();
        slots.insert(name.to_owned(), slot);
        Ok(restart)
    }

    /// # Errors
    /// 42704 where there is none, 55006 where a session uses it.
    pub fn drop_slot(&self, name: &str, pid: u32) -> Result<()> {
        let mut slots = self.slots.lock();
        let slot = slots.get(name).ok_or_else(|| does_not_exist(name))?;
        must_be_free(name, slot, pid)?;
        if !slot.temporary {
            self.disk.remove(&path(name))?;
            self.disk.sync_dir(DIR)?;
        }
        slots.remove(name);
        Ok(())
    }

    /// A session uses the slot from here on. Where the log is kept from.
    ///
    /// # Errors
    /// 42704 where there is none, 55006 where another session uses it, 55000 where what it kept is
    /// gone.
    pub fn acquire(&self, name: &str, pid: u32) -> Result<Option<Lsn>> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(name).ok_or_else(|| does_not_exist(name))?;
        must_be_free(name, slot, pid)?;
        if slot.lost {
            return Err(is_lost(name));
        }
        slot.active_pid = Some(pid);
        Ok(slot.restart())
    }

    /// # Errors
    /// 55000 where what the slot kept is given up.
    pub fn must_be_kept(&self, name: &str) -> Result<()> {
        let slots = self.slots.lock();
        match slots.get(name).is_some_and(|slot| slot.lost) {
            true => Err(is_lost(name)),
            false => Ok(()),
        }
    }

    /// The session ends its use; temporary slots of its own go when it ends altogether.
    pub fn release(&self, name: &str, pid: u32) {
        if let Some(slot) = self.slots.lock().get_mut(name)
            && slot.active_pid == Some(pid)
            && !slot.temporary
        {
            slot.active_pid = None;
        }
    }

    /// The session is gone.
    pub(crate) fn release_all(&self, pid: u32) {
        self.slots.lock().retain(|_, slot| {
            let is_own = slot.active_pid == Some(pid);
            if is_own {
                slot.active_pid = None;
            }
            !(is_own && slot.temporary)
        });
    }

    /// The client has the log up to `to` on its disk.
    pub fn advance(&self, name: &str, to: Lsn) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(name).filter(|slot| !slot.lost) else {
            return;
        };
        match &slot.hold {
            Some(hold) => hold.advance(to),
            None => slot.hold = Some(self.wal.hold(to)),
        }
    }

    pub fn list(&self) -> Vec<SlotInfo> {
        let slots = self.slots.lock();
        let infos = slots.iter().map(|(name, slot)| SlotInfo {
            name: name.clone(),
            temporary: slot.temporary,
            active_pid: slot.active_pid,
            restart: slot.restart(),
            lost: slot.lost,
        });
        infos.collect()
    }

    /// What a checkpoint does before the log is recycled: gives up slots that keep more than
    /// `most` bytes of the log, and writes how far the others have come.
    pub(crate) fn checkpoint(&self, most: Option<u64>) -> Result<()> {
        let mut slots = self.slots.lock();
        let inserted = self.wal.inserted();
        for (name, slot) in slots.iter_mut() {
            let kept = slot
                .restart()
                .map_or(0, |from| inserted.0.saturating_sub(from.0));
            if most.is_some_and(|most| kept > most) {
                tracing::warn!(
                    "invalidating obsolete replication slot \"{name}\": it keeps {kept} bytes of \
                     the log, more than max_slot_wal_keep_size"
                );
                slot.hold = None;
                slot.lost = true;
            }
            if !slot.temporary && slot.saved != Some(slot.restart().unwrap_or(Lsn::ZERO)) {
                self.write(name, slot)?;
            }
        }
        Ok(())
    }

    fn write(&self, name: &str, slot: &mut Slot) -> Result<()> {
        let from = slot.restart().unwrap_or(Lsn::ZERO);
        let mut bytes = Vec::with_capacity(24);
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend(from.0.to_le_bytes());
        bytes.extend(u32::from(slot.lost).to_le_bytes());
        seal(&mut bytes);
        self.disk.create_dir(DIR)?;
        replace_file(&*self.disk, DIR, name, TEMPORARY, &bytes)?;
        self.disk.sync_dir(DIR)?;
        self.disk.sync_dir("")?;
        slot.saved = Some(from);
        Ok(())
    }
}

fn path(name: &str) -> String {
    format!("{DIR}/{name}")
}

fn is_name(name: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_part)
}

fn must_be_name(name: &str) -> Result<()> {
    let refuse = |code, message: String| Err(Error::new(code, message));
    if name.is_empty() {
        let message = format!("replication slot name \"{name}\" is too short");
        return refuse(state::INVALID_NAME, message);
    }
    if name.len() > MAX_NAME {
        let message = format!("replication slot name \"{name}\" is too long");
        return refuse(state::NAME_TOO_LONG, message);
    }
    match is_name(name) {
        true => Ok(()),
        false => Err(Error::new(
            state::INVALID_NAME,
            format!("replication slot name \"{name}\" contains invalid character"),
        )
        .hint(
            "Replication slot names may only contain lower case letters, numbers, and the \
             underscore character.",
        )),
    }
}

fn must_be_free(name: &str, slot: &Slot, pid: u32) -> Result<()> {
    match slot.active_pid {
        Some(user) if user != pid => Err(Error::new(
            state::OBJECT_IN_USE,
            format!("replication slot \"{name}\" is active for PID {user}"),
        )),
        _ => Ok(()),
    }
}

fn is_lost(name: &str) -> Error {
    let message = format!("can no longer access replication slot \"{name}\"");
    Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .detail("This replication slot has been invalidated due to \"wal_removed\".")
}

fn does_not_exist(name: &str) -> Error {
    let message = format!("replication slot \"{name}\" does not exist");
    Error::new(state::UNDEFINED_OBJECT, message)
}

fn read(disk: &dyn Disk, name: &str) -> Result<(Lsn, bool)> {
    let bytes = read_file(disk, &path(name))?;
    let parsed = unseal(&bytes).and_then(|rest| {
        let mut at = Fields { rest };
        (at.u64()? == MAGIC).then_some(())?;
        Some((Lsn(at.u64()?), at.u32()? != 0))
    });
    parsed.ok_or_else(|| missing(format!("the file {} is damaged", path(name))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_disk::SimDisk;
    use throng_wal::{RecordBuilder, WalConfig};

    fn open(disk: &SimDisk, start: Lsn) -> (Arc<Wal>, ReplicationSlots) {
        let config = WalConfig {
            segment_size: 64 << 10,
            buffer: 64 << 10,
            ..WalConfig::default()
        };
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        let wal = Wal::open(disk.clone(), config, start).expect("opened");
        let slots = ReplicationSlots::open(&disk, &wal).expect("read");
        (wal, slots)
    }

    fn log(wal: &Wal) -> Lsn {
        let mut record = RecordBuilder::new();
        record.restore_point(&"x".repeat(60), 0);
        (0..2000).for_each(|_| _ = wal.insert(&mut record));
        let end = wal.inserted();
        wal.flush_blocking(end).expect("flushed");
        end
    }

    #[test]
    fn a_slot_keeps_the_log_over_a_crash() {
        let disk = SimDisk::new();
        let (wal, slots) = open(&disk, Wal::FIRST);
        slots.create("a", None, Some(Wal::FIRST), 2).expect("made");
        slots
            .create("t", Some(7), Some(Wal::FIRST), 2)
            .expect("made");
        let full = slots.create("c", None, None, 2).expect_err("too many");
        assert_eq!(full.code(), state::CONFIGURATION_LIMIT_EXCEEDED);
        let middle = log(&wal);
        slots.advance("a", middle);
        slots.checkpoint(None).expect("written");
        let end = log(&wal);
        wal.recycle_before(end).expect("recycled");
        assert_eq!(wal.oldest(), Wal::FIRST, "for the temporary one");
        slots.release_all(7);
        wal.recycle_before(end).expect("recycled");
        assert_eq!(wal.oldest().0, middle.0 / (64 << 10) * (64 << 10));
        let image = disk.crash_image(1);
        drop((wal, slots));
        let (wal, slots) = open(&image, end);
        let listed = slots.list();
        assert_eq!((listed.len(), listed[0].restart), (1, Some(middle)));
        // More than it may keep.
        log(&wal);
        slots.checkpoint(Some(10)).expect("written");
        let lost = slots.acquire("a", 3).expect_err("lost");
        assert_eq!(lost.code(), state::OBJECT_NOT_IN_PREREQUISITE_STATE);
        slots.drop_slot("a", 3).expect("dropped");
        assert!(slots.list().is_empty());
    }

    #[test]
    fn one_session_uses_a_slot() {
        let disk = SimDisk::new();
        let (_wal, slots) = open(&disk, Wal::FIRST);
        slots.create("a", None, None, 9).expect("made");
        assert_eq!(slots.acquire("a", 1).expect("free"), None);
        let codes = [
            slots.acquire("a", 2).expect_err("in use").code(),
            slots.drop_slot("a", 2).expect_err("in use").code(),
            slots.acquire("b", 2).expect_err("none").code(),
            slots.create("a", None, None, 9).expect_err("there").code(),
            slots
                .create("A", None, None, 9)
                .expect_err("no name")
                .code(),
            slots.create("", None, None, 9).expect_err("no name").code(),
        ];
        assert_eq!(
            codes.map(|code| code.as_str().to_owned()),
            ["55006", "55006", "42704", "42710", "42602", "42602"]
        );
        slots.release("a", 1);
        assert!(slots.acquire("a", 2).is_ok());
    }
}
