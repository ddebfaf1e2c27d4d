//! One running server: its storage, its databases, its settings, its background work.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use throng_access::RelationStore;
use throng_buffer::{ExtendLock, Extension, PoolConfig, Victims};
use throng_catalog::{Catalog, DatabaseDef, builtin};
use throng_disk::{CheckedDisk, Disk, FailingDisk, Reading, RealDisk, SlowDisk, Tell, set_fsync};
use throng_observe::WaitEvent;
use throng_sync::Nodes;
use throng_sync::lab::Choice;
use throng_txn::{Archiving, CancelReason, OpenConfig, TxnConfig, TxnSystem};
use throng_types::error::state;
use throng_types::page::PAGE_SIZE;
use throng_types::sqltype::made;
use throng_types::{Error, Oid, Result};
use throng_values::io::datetime::is_kept_before;
use throng_values::settings::{Id, ServerSettings, Source};
use throng_wal::WalConfig;

use crate::archive::{self, ArchiveCommand, ByCommand};
use crate::cleaner::Cleaner;
use crate::database::{Database, Databases};
use crate::locks::Reporter;
use crate::maintenance::Maintenance;
use crate::objects;
use crate::prepared;
use crate::senders::WalSenders;
use crate::session::now;
use throng_exec::analytics::Analytics;
use throng_exec::placement::Placement;
use throng_exec::sequence;
use throng_exec::spill::SpillSpace;
use throng_exec::store::Store;

/// What an engine is opened with.
pub struct EngineConfig {
    pub data: PathBuf,
    pub cores: Vec<usize>,
    pub pool_bytes: usize,
    pub settings: GivenSettings,
    pub passwords: Passwords,
    /// Called when a write or a sync has failed: from then on nothing more can be written, and a
    /// restart is due.
    pub storage_failed: Tell,
}

/// What is kept of passwords.
#[derive(Clone, Copy)]
pub struct Passwords {
    /// The SCRAM secret of a password, with so many iterations.
    pub of_password: fn(&str, u32) -> String,
    /// Whether a SCRAM secret is that of a password; None for what is no such secret.
    pub opens: fn(&str, &str) -> Option<bool>,
}

/// What authentication must know of a role.
#[derive(Clone, Debug)]
pub struct RoleLogin {
    pub oid: Oid,
    pub name: String,
    pub superuser: bool,
    pub can_login: bool,
    /// `SCRAM-SHA-256$…`.
    pub verifier: Option<String>,
    /// VALID UNTIL has passed: the password is no longer good.
    pub is_expired: bool,
}

/// What a client's session is called among the server's.
pub(crate) const CLIENT_BACKEND: &str = "client backend";

pub struct Engine {
    /// Tells the engines of a process apart, where a thread keeps something of each.
    pub(crate) number: u32,
    pub(crate) sys: Arc<TxnSystem>,
    pub(crate) store: Store,
    pub(crate) passwords: Passwords,
    /// When the server started, and when the configuration was last read: microseconds since
    /// 2000-01-01 UTC.
    pub(crate) started: i64,
    loaded: AtomicI64,
    pub(crate) databases: Databases,
    settings: RwLock<ServerSettings>,
    command_line: Vec<(String, String)>,
    /// Cancel keys by session number.
    secrets: Mutex<HashMap<u32, Arc<[u8]>>>,
    sessions: AtomicUsize,
    pub(crate) maintenance: Maintenance,
    closing: AtomicBool,
    cleaner: Mutex<Option<Cleaner>>,
    analytics: OnceLock<Arc<dyn Analytics>>,
    archive: Option<Arc<ArchiveCommand>>,
    pub(crate) data: PathBuf,
    pub(crate) senders: WalSenders,
}

/// Server-wide values of settings, by where they were given.
#[derive(Clone, Debug, Default)]
pub struct GivenSettings {
    /// In the configuration file; of two values of a setting the later one counts.
    pub file: Vec<(String, String)>,
    /// These count before the file's.
    pub command_line: Vec<(String, String)>,
}

impl GivenSettings {
    /// All of them, those that count more later.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &(String, String)> {
        self.file.iter().chain(&self.command_line)
    }

    /// # Errors
    /// 42704 for names that are none, 22023 for values that are none of their setting's.
    pub fn settings(&self) -> Result<ServerSettings> {
        let mut settings = ServerSettings::default();
        for (given, source) in [
            (&self.file, Source::ConfigurationFile),
            (&self.command_line, Source::CommandLine),
        ] {
            for (name, value) in given {
                settings.set(name, value, source)?;
            }
        }
        Ok(settings)
    }
}

/// A setting of a fixed list of words, as the room that it steers knows it.
fn chosen<T: FromStr + Default>(settings: &ServerSettings, id: Id) -> T {
    // The setting's own list of words has been kept to; a test holds it against the room's.
    settings.text(id).parse().unwrap_or_default()
}

/// What of the pool is fixed while the server runs.
pub(crate) fn pool_config(settings: &ServerSettings, bytes: usize, nodes: Nodes) -> PoolConfig {
    let lock = chosen(settings, Id::LabExtendLock);
    let usual = match lock {
        ExtendLock::Wide => Victims::Inside,
        ExtendLock::Narrow => Victims::Outside,
    };
    // The word that is none of the pool's is "auto".
    let victims = settings.text(Id::LabExtendVictims).parse();
    PoolConfig {
        extension: Extension {
            lock,
            victims: victims.unwrap_or(usual),
            bulk: settings.int(Id::LabExtendBulk) as u32,
        },
        nodes,
        lab_latch_hold: Duration::from_micros(settings.int(Id::LabLatchHold) as u64),
        ..PoolConfig::new(bytes)
    }
}

/// What of the log is fixed while the server runs.
pub(crate) fn wal_config(settings: &ServerSettings) -> WalConfig {
    WalConfig {
        insert: chosen(settings, Id::LabWalInsert),
        insert_lanes: settings.int(Id::LabWalLanes) as usize,
        ..WalConfig::default()
    }
}

/// What of the transaction system is fixed while the server runs.
fn txn_config(settings: &ServerSettings) -> TxnConfig {
    TxnConfig {
        snapshot: chosen(settings, Id::LabSnapshot),
        ..TxnConfig::default()
    }
}

/// The forms of the primitives, for the whole process; and that waits for spinlocks are seen.
fn choose_forms(settings: &ServerSettings) -> Result<()> {
    let choice = Choice {
        spin: chosen(settings, Id::LabSpinlock),
        back_off: chosen(settings, Id::LabSpinBackoff),
        latch: chosen(settings, Id::LabLatch),
        pin: chosen(settings, Id::LabPin),
    };
    throng_sync::lab::select(choice)
        .map_err(|e| Error::new(state::INVALID_PARAMETER_VALUE, e.to_string()))?;
    throng_sync::set_contention_hook(throng_observe::now_nanos, |name, since| {
        let nanos = throng_observe::now_nanos().saturating_sub(since);
        throng_observe::record_wait(
            WaitEvent::SpinLock,
            throng_observe::Object::lock(name),
            nanos,
        );
    });
    Ok(())
}

/// The data directory's disk, read as `lab_read` says, made slower by `lab_slow_disk_us` or fragile
/// by `lab_disk_fault`.
pub(crate) fn open_disk(
    data: &Path,
    settings: &ServerSettings,
    failed: Tell,
) -> Result<Arc<dyn Disk>> {
    let reading: Reading = chosen(settings, Id::LabRead);
    let pause = Duration::from_micros(settings.int(Id::LabSlowDisk) as u64);
    let real = RealDisk::with_reading(data, reading)?;
    Ok(match (pause, settings.bool(Id::LabDiskFault)) {
        (_, true) => Arc::new(CheckedDisk::telling(FailingDisk::new(real), failed)),
        (Duration::ZERO, false) => Arc::new(CheckedDisk::telling(real, failed)),
        (pause, false) => Arc::new(CheckedDisk::telling(SlowDisk::new(real, pause), failed)),
    })
}

impl Engine {
    /// Opens a data directory, made at first start; recovers it if need be.
    ///
    /// # Errors
    /// F0000 for settings that are none; 58030, 53100 and XX001 from storage.
    pub fn open(mut config: EngineConfig) -> Result<Arc<Engine>> {
        std::fs::create_dir_all(&config.data)?;
        let path = std::path::absolute(&config.data)?;
        let told = (
            "data_directory".to_owned(),
            path.to_string_lossy().into_owned(),
        );
        config.settings.command_line.push(told);
        let settings = config.settings.settings()?;
        throng_observe::track(settings.bool(Id::TrackWaits));
        set_fsync(settings.bool(Id::Fsync));
        choose_forms(&settings)?;
        archive::adopt_streamed_log(&config.data)?;
        let recovery = archive::recovery(&config.data, &settings)?;
        let archive = ArchiveCommand::of(&config.data, &settings);
        let disk = open_disk(&config.data, &settings, config.storage_failed)?;
        let placement = Placement::new(&settings, &config.cores)?;
        let (sys, report) = TxnSystem::open(OpenConfig {
            disk,
            pool: pool_config(&settings, config.pool_bytes, placement.nodes()),
            wal: wal_config(&settings),
            txn: txn_config(&settings),
            recovery,
            archive: match archive.clone() {
                Some(command) => Archiving::To(Box::new(ByCommand(command))),
                None => Archiving::Off,
            },
        })?;
        if let Some(timeline) = report.new_timeline {
            archive::recovered(&config.data)?;
            let (timeline, end) = (timeline.0, report.end.to_halves());
            let commits = report.commits;
            tracing::info!(
                "archive recovery complete: {commits} commits, up to {end}; new timeline {timeline}"
            );
        }
        let free_space = chosen(&settings, Id::LabFreeSpace);
        let relations = RelationStore::with_free_space(sys.pool().clone(), free_space);
        let temporary = config.data.join("tmp");
        let store = Store {
            pool: sys.pool().clone(),
            relations: Arc::new(relations),
            sequences: Arc::default(),
            spill: Arc::new(SpillSpace::new(&temporary)),
        };
        let (places, objects) = objects::load_first(&sys, &store, report.first_start)?;
        let (oid, definitions) = (builtin::DATABASE, builtin::DEFINITIONS);
        let first = Database::new(oid, definitions, places, &temporary, objects);
        let load = |def: &DatabaseDef| objects::load(&sys, &store, def.definitions);
        let databases = Databases::open(first, load)?;
        for database in databases.all() {
            for object in database.catalog().objects() {
                // A type that a user made has an oid in a range of its own; the counter's share of
                // it is its number.
                let oid = object.oid();
                // Types of extensions have no share: their numbers are fixed.
                if !made::is_base(oid) {
                    sys.note_oid(made::serial(oid).unwrap_or(oid));
                }
            }
        }
        static ENGINES: AtomicU32 = AtomicU32::new(0);
        let engine = Arc::new(Engine {
            number: ENGINES.fetch_add(1, Ordering::Relaxed),
            databases,
            sys,
            store,
            passwords: config.passwords,
            started: now(),
            loaded: AtomicI64::new(now()),
            settings: RwLock::new(settings),
            command_line: config.settings.command_line,
            secrets: Mutex::default(),
            sessions: AtomicUsize::new(0),
            maintenance: Maintenance::default(),
            closing: AtomicBool::new(false),
            cleaner: Mutex::new(None),
            analytics: OnceLock::new(),
            archive,
            data: path,
            senders: WalSenders::default(),
        });
        let weak = Arc::downgrade(&engine);
        prepared::adopt(&engine.sys, &engine.databases, move |database, changes| {
            if let Some(engine) = weak.upgrade() {
                // A server has made them from the same text.
                let published = engine.databases.publish(database, changes, None);
                published.expect("a definition that was written can be read");
            }
        })?;
        engine
            .sys
            .set_lock_reporter(Box::new(Reporter(Arc::downgrade(&engine))));
        engine.apply_settings();
        *engine.cleaner.lock() = Some(Cleaner::start(&engine)?);
        Ok(engine)
    }

    /// What big queries run on from now on; without it they run on the row operators. Only the
    /// first one given counts.
    pub fn set_analytics(&self, analytics: Arc<dyn Analytics>) {
        // A second one finds its place taken, and is dropped.
        let _ = self.analytics.set(analytics);
    }

    pub(crate) fn analytics(&self) -> Option<&Arc<dyn Analytics>> {
        self.analytics.get()
    }

    /// Stops for good: background work ends, a last checkpoint is written.
    pub fn close(&self) -> Result<()> {
        if self.closing.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        if let Some(cleaner) = self.cleaner.lock().take() {
            cleaner.stop();
        }
        sequence::save(&self.store)?;
        self.sys.shutdown()
    }

    /// Takes the values of a configuration file read anew; the command line's win, and what needs
    /// a restart stays.
    pub fn reload(&self, file: Vec<(String, String)>) -> Result<()> {
        let command_line = self.command_line.clone();
        let mut settings = GivenSettings { file, command_line }.settings()?;
        let mut in_force = self.settings.write();
        for name in settings.keep_until_restart(&in_force) {
            tracing::warn!("parameter \"{name}\" cannot be changed without restarting the server");
        }
        *in_force = settings;
        drop(in_force);
        self.loaded.store(now(), Ordering::Relaxed);
        self.apply_settings();
        Ok(())
    }

    /// When the configuration was last read.
    pub(crate) fn loaded(&self) -> i64 {
        self.loaded.load(Ordering::Relaxed)
    }

    /// Hands the server-wide settings to the rooms they steer.
    fn apply_settings(&self) {
        let settings = self.settings.read();
        let txn = self.sys.config();
        let int = |id| settings.int(id) as u64;
        txn.deadlock_timeout_ms
            .store(int(Id::DeadlockTimeout), Ordering::Relaxed);
        txn.checkpoint_timeout_ms
            .store(int(Id::CheckpointTimeout) * 1000, Ordering::Relaxed);
        let target = settings.real(Id::CheckpointCompletionTarget) * 1000.0;
        txn.checkpoint_completion_target
            .store(target as u64, Ordering::Relaxed);
        txn.max_wal_size
            .store(int(Id::MaxWalSize) << 20, Ordering::Relaxed);
        txn.wal_keep_size
            .store(int(Id::WalKeepSize) << 20, Ordering::Relaxed);
        let most = u64::try_from(settings.int(Id::MaxSlotWalKeepSize));
        txn.max_slot_wal_keep_size
            .store(most.map_or(u64::MAX, |mb| mb << 20), Ordering::Relaxed);
        let flush_after = self.sys.pool().flush_after();
        flush_after
            .checkpoint
            .store(int(Id::CheckpointFlushAfter) as u32, Ordering::Relaxed);
        flush_after
            .page_writer
            .store(int(Id::BgwriterFlushAfter) as u32, Ordering::Relaxed);
        if let Some(archive) = &self.archive {
            archive.apply(&settings);
        }
        self.choose_standbys(settings.text(Id::SynchronousStandbyNames));
        throng_observe::track(settings.bool(Id::TrackWaits));
        set_fsync(settings.bool(Id::Fsync));
        let wal = self.sys.wal().config();
        wal.commit_delay_us
            .store(int(Id::CommitDelay) as u32, Ordering::Relaxed);
        wal.commit_siblings
            .store(int(Id::CommitSiblings) as u32, Ordering::Relaxed);
    }

    pub(crate) fn settings(&self) -> ServerSettings {
        self.settings.read().clone()
    }

    /// A server-wide setting as SHOW tells it.
    pub fn setting(&self, id: Id) -> String {
        id.definition().kind.show(self.settings.read().get(id))
    }

    /// Bytes that big queries may keep columns in.
    pub fn column_cache_bytes(&self) -> usize {
        let settings = self.settings.read();
        let pages = settings.int(Id::SharedBuffers) as usize;
        let kilobytes = usize::try_from(settings.int(Id::ColumnCacheSize));
        kilobytes.map_or(pages * PAGE_SIZE / 4, |kilobytes| kilobytes << 10)
    }

    /// The catalog of the first database, for what all databases share.
    pub(crate) fn shared(&self) -> Arc<Catalog> {
        self.databases.first().catalog()
    }

    pub fn find_role(&self, name: &str) -> Option<RoleLogin> {
        self.shared().role_by_name(name).map(|role| RoleLogin {
            oid: role.oid,
            name: role.name.clone(),
            superuser: role.superuser,
            can_login: role.login,
            verifier: role.password.clone(),
            is_expired: role
                .valid_until
                .as_deref()
                .is_some_and(|until| is_kept_before(until, now())),
        })
    }

    /// How many sessions of clients a role has.
    pub(crate) fn clients_as(&self, role: Oid) -> usize {
        let sessions = self.sys.sessions().into_iter();
        sessions
            .filter(|s| s.info.backend_type == CLIENT_BACKEND && s.info.user_oid == role.0)
            .count()
    }

    /// The numbers of clients' sessions in a database.
    pub(crate) fn clients_of(&self, database: &str) -> Vec<u32> {
        let sessions = self.sys.sessions().into_iter();
        let there = sessions
            .filter(|s| s.info.backend_type == CLIENT_BACKEND && s.info.database == database);
        there.map(|s| s.pid).collect()
    }

    pub fn database_exists(&self, name: &str) -> bool {
        self.shared().database_by_name(name).is_some()
    }

    /// How long a client may take to log in.
    pub fn authentication_timeout(&self) -> Duration {
        let seconds = self.settings.read().int(Id::AuthenticationTimeout);
        Duration::from_secs(seconds as u64)
    }

    /// Whether any role has a password.
    pub fn any_password(&self) -> bool {
        self.shared()
            .roles()
            .iter()
            .any(|role| role.password.is_some())
    }

    /// Interrupts the statement of a session, if the key is its own.
    pub fn cancel(&self, pid: i32, secret: &[u8]) -> bool {
        /// The shortest key that counts: protocol 3.0's.
        const SHORTEST: usize = 4;
        let kept = self.secrets.lock().get(&(pid as u32)).cloned();
        let fits = kept.is_some_and(|kept| secret.len() >= SHORTEST && kept.starts_with(secret));
        fits && self.sys.cancel(pid as u32, CancelReason::UserRequest)
    }

    pub fn session_count(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Takes one of `max_connections` places.
    pub(crate) fn admit(self: &Arc<Engine>) -> Result<Admission> {
        let most = self.settings.read().int(Id::MaxConnections) as usize;
        let before = self.sessions.fetch_add(1, Ordering::Relaxed);
        let admission = Admission {
            engine: self.clone(),
            pid: None,
            counted: true,
            free: most.saturating_sub(before + 1),
        };
        if before >= most {
            return Err(Error::new(
                state::TOO_MANY_CONNECTIONS,
                "sorry, too many clients already",
            ));
        }
        Ok(admission)
    }
}

/// A session's place; given back when dropped.
pub(crate) struct Admission {
    engine: Arc<Engine>,
    pid: Option<u32>,
    /// It is one of those that `max_connections` is about.
    counted: bool,
    /// Places that were left when it had its own.
    free: usize,
}

impl Admission {
    /// 53300 where the last places are kept for others than this role.
    pub(crate) fn must_have_place(&self, role: Oid, catalog: &Catalog) -> Result<()> {
        let (of_superusers, reserved) = {
            let settings = self.engine.settings.read();
            let int = |id| settings.int(id) as usize;
            (
                int(Id::SuperuserReservedConnections),
                int(Id::ReservedConnections),
            )
        };
        if !self.counted || self.free >= of_superusers + reserved || catalog.is_superuser(role) {
            return Ok(());
        }
        let message = if self.free < of_superusers {
            "remaining connection slots are reserved for roles with the SUPERUSER attribute"
        } else if !catalog.acts_as(role, builtin::PG_USE_RESERVED_CONNECTIONS) {
            "remaining connection slots are reserved for roles with privileges of the \"pg_use_reserved_connections\" role"
        } else {
            return Ok(());
        };
        Err(Error::new(state::TOO_MANY_CONNECTIONS, message))
    }

    /// That of a session of the server's own.
    pub(crate) fn of_server(engine: &Arc<Engine>) -> Admission {
        Admission {
            engine: engine.clone(),
            pid: None,
            counted: false,
            free: 0,
        }
    }

    /// Registers the session's cancel key.
    pub(crate) fn enter(&mut self, pid: u32, secret: Arc<[u8]>) {
        self.pid = Some(pid);
        self.engine.secrets.lock().insert(pid, secret);
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            self.engine.secrets.lock().remove(&pid);
        }
        if self.counted {
            self.engine.sessions.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_access::FreeSpaceForm;
    use throng_sync::lab::{BackOffForm, LatchForm, PinForm, SpinForm};
    use throng_txn::SnapshotForm;
    use throng_values::settings::value::Kind;
    use throng_wal::InsertForm;

    #[test]
    fn every_word_of_a_setting_is_known_to_the_room_it_steers() {
        let words = |id: Id| match id.definition().kind {
            Kind::Enum(words) => words,
            _ => &[],
        };
        let names: Vec<_> = SpinForm::ALL.iter().map(|form| form.name()).collect();
        assert_eq!(words(Id::LabSpinlock), names);
        let names: Vec<_> = BackOffForm::ALL.iter().map(|form| form.name()).collect();
        assert_eq!(words(Id::LabSpinBackoff), names);
        let names: Vec<_> = LatchForm::ALL.iter().map(|form| form.name()).collect();
        assert_eq!(words(Id::LabLatch), names);
        let names: Vec<_> = PinForm::ALL.iter().map(|form| form.name()).collect();
        assert_eq!(words(Id::LabPin), names);
        let forms = SnapshotForm::ALL.map(SnapshotForm::name);
        assert_eq!(words(Id::LabSnapshot), forms);
        assert_eq!(
            words(Id::LabWalInsert),
            InsertForm::ALL.map(InsertForm::name)
        );
        let locks = ExtendLock::ALL.map(ExtendLock::name);
        assert_eq!(words(Id::LabExtendLock), locks);
        let victims = Victims::ALL.map(Victims::name);
        assert_eq!(words(Id::LabExtendVictims)[1..], victims);
        let spaces = FreeSpaceForm::ALL.map(FreeSpaceForm::name);
        assert_eq!(words(Id::LabFreeSpace), spaces);
        assert_eq!(words(Id::LabRead), Reading::ALL.map(Reading::name));
        let defaults = ServerSettings::default();
        let pool = pool_config(&defaults, 0, Nodes::one());
        assert_eq!(pool.extension, Extension::default());
        assert_eq!(txn_config(&defaults).snapshot, SnapshotForm::default());
        assert_eq!(wal_config(&defaults).insert, InsertForm::default());
    }

    #[test]
    fn victims_go_with_the_lock_unless_told_otherwise() -> Result<()> {
        let form = |lock: &str, victims: &str| {
            let mut settings = ServerSettings::default();
            settings.set("lab_extend_lock", lock, Source::CommandLine)?;
            settings.set("lab_extend_victims", victims, Source::CommandLine)?;
            settings.set("lab_extend_bulk", "4MB", Source::CommandLine)?;
            Ok(pool_config(&settings, 0, Nodes::one()).extension)
        };
        assert_eq!(form("wide", "auto")?.victims, Victims::Inside);
        assert_eq!(form("wide", "outside")?.victims, Victims::Outside);
        assert_eq!(form("narrow", "inside")?.victims, Victims::Inside);
        assert_eq!(form("narrow", "auto")?.bulk, Extension::MOST);
        let refused: Error = form("narrower", "auto").unwrap_err();
        assert_eq!(refused.code(), state::INVALID_PARAMETER_VALUE);
        Ok(())
    }
}
