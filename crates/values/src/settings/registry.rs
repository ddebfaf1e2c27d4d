//! Every setting there is: PostgreSQL's names, units, limits and defaults where PostgreSQL has the
//! thing.
//!
//! An entry marked *told* has no effect but to be shown: clients ask for it, and its one value says
//! how we behave.

use super::value::{Kind, Unit};

/// When a setting may change, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Never: it says how the server is built.
    Internal,
    /// At server start.
    Postmaster,
    /// When the configuration file is reread.
    Sighup,
    /// By superusers, at any time.
    Superuser,
    /// When a session starts.
    Backend,
    /// By anybody, at any time.
    User,
}

impl Context {
    /// As `pg_settings.context` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Context::Internal => "internal",
            Context::Postmaster => "postmaster",
            Context::Sighup => "sighup",
            Context::Superuser => "superuser",
            Context::Backend => "backend",
            Context::User => "user",
        }
    }
}

/// One setting as it is defined.
pub struct Setting {
    pub name: &'static str,
    pub kind: Kind,
    /// In text form, in the setting's own unit.
    pub default: &'static str,
    pub context: Context,
    /// Clients are told each change (ParameterStatus).
    pub report: bool,
    pub category: &'static str,
    pub description: &'static str,
}

/// The server version whose behaviour we follow.
pub const SERVER_VERSION: &str = concat!("18.6 (Throng ", env!("CARGO_PKG_VERSION"), ")");

macro_rules! registry {
    ($($id:ident $name:literal $kind:expr, $default:expr, $context:ident $(, $report:ident)?; $category:literal, $description:literal)*) => {
        /// A setting by its place in [`SETTINGS`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Id { $($id,)* }

        impl Id {
            pub const ALL: &[Id] = &[$(Id::$id,)*];
        }

        pub static SETTINGS: &[Setting] = &[$(Setting {
            name: $name,
            kind: $kind,
            default: $default,
            context: Context::$context,
            report: registry!(@report $($report)?),
            category: $category,
            description: $description,
        },)*];
    };
    (@report report) => { true };
    (@report) => { false };
}

const BOOL: Kind = Kind::Bool;
const STRING: Kind = Kind::Text(super::value::any_text);

const fn int(min: i64, max: i64, unit: Unit) -> Kind {
    Kind::Int { min, max, unit }
}

const MS: Unit = Unit::Milliseconds;
const KB: Unit = Unit::Kilobytes;
const MAX: i64 = i32::MAX as i64;

const LEVELS: Kind = Kind::Enum(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
]);
const LOG_LEVELS: Kind = Kind::Enum(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error", "log",
    "fatal", "panic",
]);
const ISOLATION: Kind = Kind::Enum(&[
    "serializable",
    "repeatable read",
    "read committed",
    "read uncommitted",
]);

registry! {
    AnalyticsAboveCost "analytics_above_cost" int(-1, MAX, Unit::None), "10000", User; "Query Tuning / Planner Method Configuration", "Runs queries whose estimated cost is higher on the analytics pool; -1 never does."
    ApplicationName "application_name" STRING, "", User, report; "Reporting and Logging / What to Log", "Sets the application name to be reported in statistics and logs."
    ArrayNulls "array_nulls" BOOL, "on", User; "Version and Platform Compatibility / Previous PostgreSQL Versions", "Enables input of NULL elements in arrays."
    AutovacuumNaptime "autovacuum_naptime" int(1, MAX / 1000, Unit::Seconds), "60", Sighup; "Vacuuming / Automatic Vacuuming", "Time to sleep between looks for tables with dead tuples to clean."
    Autovacuum "autovacuum" BOOL, "on", Sighup; "Vacuuming / Automatic Vacuuming", "Starts the background cleaner."
    AutovacuumVacuumThreshold "autovacuum_vacuum_threshold" int(0, MAX, Unit::None), "50", Sighup; "Vacuuming / Automatic Vacuuming", "Minimum number of dead tuples before a table is cleaned."
    AutovacuumVacuumScaleFactor "autovacuum_vacuum_scale_factor" Kind::Real { min: 0.0, max: 100.0 }, "0.2", Sighup; "Vacuuming / Automatic Vacuuming", "Share of dead tuples before a table is cleaned."
    AutovacuumAnalyzeThreshold "autovacuum_analyze_threshold" int(0, MAX, Unit::None), "50", Sighup; "Vacuuming / Automatic Vacuuming", "Minimum number of tuple inserts, updates, or deletes prior to analyze."
    AutovacuumAnalyzeScaleFactor "autovacuum_analyze_scale_factor" Kind::Real { min: 0.0, max: 100.0 }, "0.1", Sighup; "Vacuuming / Automatic Vacuuming", "Number of tuple inserts, updates, or deletes prior to analyze as a fraction of reltuples."
    BgwriterFlushAfter "bgwriter_flush_after" int(0, 256, Unit::Pages), "64", Sighup; "Resource Usage / Background Writer", "Number of pages after which previously performed writes are flushed to disk."
    ByteaOutput "bytea_output" Kind::Enum(&["escape", "hex"]), "hex", User; "Client Connection Defaults / Statement Behavior", "Sets the output format for bytea."
    CheckFunctionBodies "check_function_bodies" BOOL, "on", User; "Client Connection Defaults / Statement Behavior", "Checks routine bodies during CREATE FUNCTION."
    CheckpointCompletionTarget "checkpoint_completion_target" Kind::Real { min: 0.0, max: 1.0 }, "0.9", Sighup; "Write-Ahead Log / Checkpoints", "Time spent flushing dirty buffers during checkpoint, as fraction of checkpoint interval."
    CheckpointFlushAfter "checkpoint_flush_after" int(0, 256, Unit::Pages), "32", Sighup; "Write-Ahead Log / Checkpoints", "Number of pages after which previously performed writes are flushed to disk."
    CheckpointTimeout "checkpoint_timeout" int(1, 86_400, Unit::Seconds), "300", Sighup; "Write-Ahead Log / Checkpoints", "Sets the maximum time between automatic WAL checkpoints."
    ClientEncoding "client_encoding" Kind::Charset, "UTF8", User, report; "Client Connection Defaults / Locale and Formatting", "Sets the client's character set encoding."
    ClientMinMessages "client_min_messages" LEVELS, "notice", User; "Client Connection Defaults / Statement Behavior", "Sets the message levels that are sent to the client."
    ColumnCacheSize "column_cache_size" int(-1, MAX, KB), "-1", Postmaster; "Resource Usage / Memory", "Sets the memory for columns that big queries took out of rows and may use again; -1 is a quarter of shared_buffers, 0 is none."
    CommitDelay "commit_delay" int(0, 100_000, Unit::None), "0", Sighup; "Write-Ahead Log / Settings", "Sets the delay in microseconds between transaction commit and flushing WAL to disk."
    CommitSiblings "commit_siblings" int(0, 1000, Unit::None), "5", Sighup; "Write-Ahead Log / Settings", "Sets the minimum number of concurrent open transactions required before performing commit_delay."
    DataDirectory "data_directory" STRING, "", Postmaster; "File Locations", "Sets the server's data directory."
    DateStyle "DateStyle" Kind::Parts(super::value::date_style), "ISO, MDY", User, report; "Client Connection Defaults / Locale and Formatting", "Sets the display format for date and time values."
    DeadlockTimeout "deadlock_timeout" int(1, MAX, MS), "1000", Superuser; "Lock Management", "Sets the time to wait on a lock before checking for deadlock."
    DefaultTableAccessMethod "default_table_access_method" Kind::Enum(&["heap"]), "heap", User; "Client Connection Defaults / Statement Behavior", "Sets the default table access method for new tables. (told)"
    DefaultTablespace "default_tablespace" Kind::Enum(&["", "pg_default"]), "", User; "Client Connection Defaults / Statement Behavior", "Sets the default tablespace to create tables and indexes in. (told; there is one)"
    DefaultTransactionDeferrable "default_transaction_deferrable" BOOL, "off", User; "Client Connection Defaults / Statement Behavior", "Sets the default deferrable status of new transactions."
    DefaultTransactionIsolation "default_transaction_isolation" ISOLATION, "read committed", User; "Client Connection Defaults / Statement Behavior", "Sets the transaction isolation level of each new transaction."
    DefaultTransactionReadOnly "default_transaction_read_only" BOOL, "off", User, report; "Client Connection Defaults / Statement Behavior", "Sets the default read-only status of new transactions."
    EnableHashjoin "enable_hashjoin" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of hash join plans."
    EnableIndexscan "enable_indexscan" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of index-scan plans."
    EnableNestloop "enable_nestloop" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of nested-loop join plans."
    EnableSeqscan "enable_seqscan" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of sequential-scan plans."
    ExtraFloatDigits "extra_float_digits" int(-15, 3, Unit::None), "1", User; "Client Connection Defaults / Locale and Formatting", "Sets the number of digits displayed for floating-point values."
    Fsync "fsync" BOOL, "on", Sighup; "Write-Ahead Log / Settings", "Forces synchronization of updates to disk."
    FullPageWrites "full_page_writes" Kind::Enum(&["on"]), "on", Internal; "Write-Ahead Log / Settings", "Writes full pages to WAL when first modified after a checkpoint. (told)"
    IdleInTransactionSessionTimeout "idle_in_transaction_session_timeout" int(0, MAX, MS), "0", User; "Client Connection Defaults / Statement Behavior", "Sets the maximum allowed idle time between queries, when in a transaction."
    InHotStandby "in_hot_standby" Kind::Enum(&["off"]), "off", Internal, report; "Preset Options", "Shows whether hot standby is currently active. (told)"
    IntegerDatetimes "integer_datetimes" Kind::Enum(&["on"]), "on", Internal, report; "Preset Options", "Shows whether datetimes are integer based. (told)"
    IntervalStyle "IntervalStyle" Kind::Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]), "postgres", User, report; "Client Connection Defaults / Locale and Formatting", "Sets the display format for interval values."
    IsSuperuser "is_superuser" BOOL, "off", Internal, report; "Preset Options", "Shows whether the current user is a superuser. (told)"
    Jit "jit" Kind::Enum(&["off"]), "off", User; "Query Tuning / Other Planner Options", "Allows JIT compilation. (told)"
    LabDiskFault "lab_disk_fault" BOOL, "off", Postmaster; "Laboratory", "Makes a write or sync fail when there is a file disk-fault in the data directory, which is removed by that."
    LabExtendBulk "lab_extend_bulk" int(1, 512, Unit::Pages), "64", Postmaster; "Laboratory", "Sets how much one extension of a table or index adds at most."
    LabExtendLock "lab_extend_lock" Kind::Enum(&["wide", "narrow"]), "narrow", Postmaster; "Laboratory", "Sets how much of extending a table or index is done under its extension lock: all, or what others must not see half done."
    LabExtendVictims "lab_extend_victims" Kind::Enum(&["auto", "inside", "outside"]), "auto", Postmaster; "Laboratory", "Sets where frames for new pages are found: under the extension lock, by whoever extends, or before it, cleaned ahead; auto is inside where lab_extend_lock is wide."
    LabFakeNodes "lab_fake_nodes" int(0, 64, Unit::None), "0", Postmaster; "Laboratory", "Makes up so many memory nodes, at most one a core; 0 takes the machine's."
    LabFreeSpace "lab_free_space" Kind::Enum(&["shared", "split"]), "split", Postmaster; "Laboratory", "Sets whether cores share a table's free-space map or have parts of their own."
    LabNuma "lab_numa" Kind::Enum(&["shared", "split"]), "split", Postmaster; "Laboratory", "Sets whether memory nodes share the pool's memory and free frames or have parts of their own."
    LabPin "lab_pin" Kind::Enum(&["none", "spin", "cas", "add"]), "none", Postmaster; "Laboratory", "Sets whether who reads a page pins it and enters its latch, and how pins are counted: under a spinlock, by compare-and-swap, or by addition."
    LabPinThreads "lab_pin_threads" BOOL, "on", Postmaster; "Laboratory", "Binds event loops to cores, and other threads to the server's cores."
    LabRead "lab_read" Kind::Enum(&["pread", "mmap", "map_per_read"]), "pread", Postmaster; "Laboratory", "Sets how files are read: by offset, out of a mapping of the file, or out of a mapping made for each read."
    LabLatchHold "lab_latch_hold_us" int(0, 1_000_000, Unit::None), "0", Postmaster; "Laboratory", "Holds the latch of every changed page for so many microseconds longer."
    LabLatch "lab_latch" Kind::Enum(&["cas", "spin", "add"]), "cas", Postmaster; "Laboratory", "Sets how a latch's word is changed: by compare-and-swap, under a spinlock, or by readers who add themselves, look, and undo it."
    LabSlowDisk "lab_slow_disk_us" int(0, 10_000_000, Unit::None), "0", Postmaster; "Laboratory", "Makes every read, write and sync take so many microseconds longer."
    LabSpinlock "lab_spinlock" Kind::Enum(&["ttas", "tas", "cas", "llsc_full", "llsc", "lse"]), "ttas", Postmaster; "Laboratory", "Sets how a spinlock is tried: test, then test-and-set; test-and-set; compare-and-swap; the last three on aarch64 only."
    LabSpinBackoff "lab_spin_backoff" Kind::Enum(&["fixed", "adaptive"]), "fixed", Postmaster; "Laboratory", "Sets how a spinlock is waited for: with fixed pauses, or as long as spinning has paid before."
    LabSnapshot "lab_snapshot" Kind::Enum(&["walk", "bitmap", "csn"]), "csn", Postmaster; "Laboratory", "Sets how a snapshot learns which transactions run: a walk over all sessions, a bitmap of ids, or one commit sequence number."
    LabWalInsert "lab_wal_insert" Kind::Enum(&["lock", "lanes", "add"]), "add", Postmaster; "Laboratory", "Sets how records enter the log's buffer: under one lock, under one of lab_wal_lanes locks, or by an atomic addition."
    LabWalLanes "lab_wal_lanes" int(1, 128, Unit::None), "8", Postmaster; "Laboratory", "Sets the number of insertion locks where lab_wal_insert is lanes."
    LcCollate "lc_collate" Kind::Enum(&["C"]), "C", Internal; "Preset Options", "Shows the collation order locale. (told)"
    LcCtype "lc_ctype" Kind::Enum(&["C"]), "C", Internal; "Preset Options", "Shows the character classification locale. (told)"
    LcMessages "lc_messages" Kind::Enum(&["C"]), "C", Superuser; "Client Connection Defaults / Locale and Formatting", "Sets the language in which messages are displayed. (told)"
    ListenAddresses "listen_addresses" STRING, "127.0.0.1", Postmaster; "Connections and Authentication / Connection Settings", "Sets the address to listen to. (told; the server's --listen decides)"
    LockTimeout "lock_timeout" int(0, MAX, MS), "0", User; "Client Connection Defaults / Statement Behavior", "Sets the maximum allowed duration of any wait for a lock."
    LogLockWaits "log_lock_waits" BOOL, "off", Superuser; "Reporting and Logging / What to Log", "Logs long lock waits."
    SuperuserReservedConnections "superuser_reserved_connections" int(0, 262_143, Unit::None), "3", Postmaster; "Connections and Authentication / Connection Settings", "Sets the number of connection slots reserved for superusers."
    ReservedConnections "reserved_connections" int(0, 262_143, Unit::None), "0", Postmaster; "Connections and Authentication / Connection Settings", "Sets the number of connection slots reserved for roles with privileges of pg_use_reserved_connections."
    AuthenticationTimeout "authentication_timeout" int(1, 600, Unit::Seconds), "60", Sighup; "Connections and Authentication / Authentication", "Sets the maximum allowed time to complete client authentication."
    IdleSessionTimeout "idle_session_timeout" int(0, MAX, MS), "0", User; "Client Connection Defaults / Statement Behavior", "Sets the maximum allowed idle time between queries, when not in a transaction."
    ClientConnectionCheckInterval "client_connection_check_interval" int(0, MAX, MS), "1000", User; "Connections and Authentication / TCP Settings", "Sets the time interval between checks for disconnection while running queries. (on, unlike in PostgreSQL)"
    MaxConnections "max_connections" int(1, 262_143, Unit::None), "10000", Postmaster; "Connections and Authentication / Connection Settings", "Sets the maximum number of concurrent connections."
    MaxIdentifierLength "max_identifier_length" int(63, 63, Unit::None), "63", Internal; "Preset Options", "Shows the maximum identifier length. (told)"
    MaxIndexKeys "max_index_keys" int(32, 32, Unit::None), "32", Internal; "Preset Options", "Shows the maximum number of index keys. (told)"
    MaxPreparedTransactions "max_prepared_transactions" int(0, 262_143, Unit::None), "0", Postmaster; "Resource Usage / Memory", "Sets the maximum number of simultaneously prepared transactions."
    MaxWalSize "max_wal_size" int(32, MAX, Unit::Megabytes), "1024", Sighup; "Write-Ahead Log / Checkpoints", "Sets the WAL size that triggers a checkpoint."
    Port "port" int(0, 65_535, Unit::None), "5433", Postmaster; "Connections and Authentication / Connection Settings", "Sets the TCP port the server listens on. (told; the server's --listen decides)"
    QuoteAllIdentifiers "quote_all_identifiers" Kind::Enum(&["off"]), "off", User; "Version and Platform Compatibility", "Quotes all identifiers when definitions are written as SQL. (told)"
    RowSecurity "row_security" BOOL, "on", User; "Client Connection Defaults / Statement Behavior", "Enables row security."
    PasswordEncryption "password_encryption" Kind::Enum(&["md5", "scram-sha-256"]), "scram-sha-256", User; "Connections and Authentication / Authentication", "Chooses the algorithm for encrypting passwords. (md5 is refused when a password comes)"
    ScramIterations "scram_iterations" int(1, 1_000_000, Unit::None), "4096", User, report; "Connections and Authentication / Authentication", "Sets the iteration count for SCRAM secret generation."
    SearchPath "search_path" Kind::Text(super::value::search_path), "\"$user\", public", User, report; "Client Connection Defaults / Statement Behavior", "Sets the schema search order for names that are not schema-qualified."
    SessionReplicationRole "session_replication_role" Kind::Enum(&["origin", "replica", "local"]), "origin", Superuser; "Client Connection Defaults / Statement Behavior", "Sets the session's behavior for triggers and rewrite rules."
    ServerEncoding "server_encoding" Kind::Enum(&["UTF8"]), "UTF8", Internal, report; "Preset Options", "Shows the server (database) character set encoding. (told)"
    ServerVersion "server_version" STRING, SERVER_VERSION, Internal, report; "Preset Options", "Shows the server version. (told)"
    ServerVersionNum "server_version_num" int(180_006, 180_006, Unit::None), "180006", Internal; "Preset Options", "Shows the server version as an integer. (told)"
    SessionAuthorization "session_authorization" STRING, "", Internal, report; "Client Connection Defaults", "Shows the session user name. (told)"
    SharedBuffers "shared_buffers" int(128, MAX, Unit::Pages), "16384", Postmaster; "Resource Usage / Memory", "Sets the size of the buffer pool."
    SslCertFile "ssl_cert_file" STRING, "", Postmaster; "Connections and Authentication / SSL", "Location of the server's certificate, from the data directory."
    SslKeyFile "ssl_key_file" STRING, "", Postmaster; "Connections and Authentication / SSL", "Location of the server's private key, from the data directory."
    StandardConformingStrings "standard_conforming_strings" Kind::Enum(&["on"]), "on", User, report; "Version and Platform Compatibility", "Causes '...' strings to treat backslashes literally. (told)"
    StatementTimeout "statement_timeout" int(0, MAX, MS), "0", User; "Client Connection Defaults / Statement Behavior", "Sets the maximum allowed duration of any statement."
    SynchronizeSeqscans "synchronize_seqscans" Kind::Enum(&["off"]), "off", User; "Version and Platform Compatibility", "Lets sequential scans begin where others are. (told)"
    SynchronousCommit "synchronous_commit" Kind::Enum(&["local", "remote_write", "remote_apply", "on", "off"]), "on", User; "Write-Ahead Log / Settings", "Sets whether a commit waits until it is on disk."
    TextSearchConfiguration "default_text_search_config" Kind::Text(super::value::text_search_configuration), "pg_catalog.english", User; "Client Connection Defaults / Locale and Formatting", "Sets default text search configuration."
    TimeZone "TimeZone" Kind::Text(super::value::time_zone), "GMT", User, report; "Client Connection Defaults / Locale and Formatting", "Sets the time zone for displaying and interpreting time stamps."
    TrackWaits "track_waits" BOOL, "on", Sighup; "Statistics / Monitoring", "Collects what sessions wait for, for throng.waits."
    TransactionDeferrable "transaction_deferrable" BOOL, "off", User; "Client Connection Defaults / Statement Behavior", "Whether to defer a read-only serializable transaction until it can be executed with no possible serialization failures."
    TransactionIsolation "transaction_isolation" ISOLATION, "read committed", User; "Client Connection Defaults / Statement Behavior", "Sets the current transaction's isolation level."
    TransactionReadOnly "transaction_read_only" BOOL, "off", User; "Client Connection Defaults / Statement Behavior", "Sets the current transaction's read-only status."
    TransactionTimeout "transaction_timeout" int(0, MAX, MS), "0", User; "Client Connection Defaults / Statement Behavior", "Sets the maximum allowed duration of any transaction."
    UnixSocketDirectories "unix_socket_directories" STRING, "/tmp", Postmaster; "Connections and Authentication / Connection Settings", "Sets the directories where Unix-domain sockets will be created."
    AutovacuumVacuumCostDelay "autovacuum_vacuum_cost_delay" Kind::Pause { min: -1.0, max: 100.0 }, "2", Sighup; "Vacuuming / Automatic Vacuuming", "Pause of the background cleaner after each autovacuum_vacuum_cost_limit of work; -1: vacuum_cost_delay."
    AutovacuumVacuumCostLimit "autovacuum_vacuum_cost_limit" int(-1, 10_000, Unit::None), "-1", Sighup; "Vacuuming / Automatic Vacuuming", "Work of the background cleaner between two pauses; -1: vacuum_cost_limit."
    VacuumCostDelay "vacuum_cost_delay" Kind::Pause { min: 0.0, max: 100.0 }, "0", User; "Vacuuming / Cost-Based Vacuum Delay", "Pause of VACUUM after each vacuum_cost_limit of work."
    VacuumCostLimit "vacuum_cost_limit" int(1, 10_000, Unit::None), "200", User; "Vacuuming / Cost-Based Vacuum Delay", "Work of VACUUM between two pauses."
    VacuumFreezeMinAge "vacuum_freeze_min_age" int(0, 1_000_000_000, Unit::None), "50000000", User; "Vacuuming / Freezing", "Minimum age at which VACUUM should freeze a table row. (told; transaction ids have 64 bits and are never frozen)"
    VacuumFreezeTableAge "vacuum_freeze_table_age" int(0, 2_000_000_000, Unit::None), "150000000", User; "Vacuuming / Freezing", "Age at which VACUUM should scan whole table to freeze tuples. (told; transaction ids have 64 bits and are never frozen)"
    VacuumMultixactFreezeMinAge "vacuum_multixact_freeze_min_age" int(0, 1_000_000_000, Unit::None), "5000000", User; "Vacuuming / Freezing", "Minimum age at which VACUUM should freeze a MultiXactId in a table row. (told; there are no multixacts)"
    VacuumMultixactFreezeTableAge "vacuum_multixact_freeze_table_age" int(0, 2_000_000_000, Unit::None), "150000000", User; "Vacuuming / Freezing", "Multixact age at which VACUUM should scan whole table to freeze tuples. (told; there are no multixacts)"
    VacuumTruncate "vacuum_truncate" BOOL, "on", User; "Vacuuming / Default Behavior", "Enables VACUUM to cut empty pages off a table's end."
    VacuumFailsafeAge "vacuum_failsafe_age" int(0, 2_100_000_000, Unit::None), "1600000000", User; "Vacuuming / Freezing", "Age at which VACUUM should trigger failsafe to avoid a wraparound outage. (told; transaction ids have 64 bits)"
    ArchiveMode "archive_mode" Kind::Enum(&["always", "on", "off"]), "off", Postmaster; "Write-Ahead Log / Archiving", "Allows archiving of WAL files using \"archive_command\"."
    ArchiveCommand "archive_command" STRING, "", Sighup; "Write-Ahead Log / Archiving", "Sets the shell command that will be called to archive a WAL file."
    ArchiveTimeout "archive_timeout" int(0, 1_073_741_823, Unit::Seconds), "0", Sighup; "Write-Ahead Log / Archiving", "Sets the amount of time to wait before forcing a switch to the next WAL file."
    RecoveryTarget "recovery_target" Kind::Text(super::value::recovery_target), "", Postmaster; "Write-Ahead Log / Recovery Target", "Set to \"immediate\" to end recovery as soon as a consistent state is reached."
    RecoveryTargetAction "recovery_target_action" Kind::Enum(&["promote"]), "promote", Postmaster; "Write-Ahead Log / Recovery Target", "Sets the action to perform upon reaching the recovery target. (told; nothing is served before)"
    RecoveryTargetInclusive "recovery_target_inclusive" BOOL, "on", Postmaster; "Write-Ahead Log / Recovery Target", "Sets whether to include or exclude transaction with recovery target."
    RecoveryTargetLsn "recovery_target_lsn" Kind::Text(super::value::recovery_target_lsn), "", Postmaster; "Write-Ahead Log / Recovery Target", "Sets the LSN of the write-ahead log location up to which recovery will proceed."
    RecoveryTargetName "recovery_target_name" Kind::Text(super::value::recovery_target_name), "", Postmaster; "Write-Ahead Log / Recovery Target", "Sets the named restore point up to which recovery will proceed."
    RecoveryTargetTime "recovery_target_time" STRING, "", Postmaster; "Write-Ahead Log / Recovery Target", "Sets the time stamp up to which recovery will proceed."
    RecoveryTargetTimeline "recovery_target_timeline" Kind::Text(super::value::recovery_target_timeline), "latest", Postmaster; "Write-Ahead Log / Recovery Target", "Specifies the timeline to recover into."
    RecoveryTargetXid "recovery_target_xid" Kind::Text(super::value::recovery_target_xid), "", Postmaster; "Write-Ahead Log / Recovery Target", "Sets the transaction ID up to which recovery will proceed."
    RestoreCommand "restore_command" STRING, "", Sighup; "Write-Ahead Log / Archive Recovery", "Sets the shell command that will be called to retrieve an archived WAL file."
    MaxSlotWalKeepSize "max_slot_wal_keep_size" int(-1, MAX, Unit::Megabytes), "-1", Sighup; "Replication / Sending Servers", "Sets the maximum WAL size that can be reserved by replication slots."
    WalKeepSize "wal_keep_size" int(0, MAX, Unit::Megabytes), "0", Sighup; "Replication / Sending Servers", "Sets the size of WAL files held for standby servers."
    MaxReplicationSlots "max_replication_slots" int(0, 262_143, Unit::None), "10", Postmaster; "Replication / Sending Servers", "Sets the maximum number of simultaneously defined replication slots."
    MaxWalSenders "max_wal_senders" int(0, 262_143, Unit::None), "10", Postmaster; "Replication / Sending Servers", "Sets the maximum number of simultaneously running WAL sender processes."
    WalSenderTimeout "wal_sender_timeout" int(0, MAX, MS), "60000", User; "Replication / Sending Servers", "Sets the maximum time to wait for WAL replication."
    SynchronousStandbyNames "synchronous_standby_names" Kind::Text(super::standbys::checked), "", Sighup; "Replication / Primary Server", "Number of synchronous standbys and list of names of potential synchronous ones."
    WalBlockSize "wal_block_size" int(8192, 8192, Unit::None), "8192", Internal; "Preset Options", "Shows the block size in the write ahead log. (told)"
    BlockSize "block_size" int(8192, 8192, Unit::None), "8192", Internal; "Preset Options", "Shows the size of a disk block. (told)"
    WalLevel "wal_level" Kind::Enum(&["replica"]), "replica", Internal; "Write-Ahead Log / Settings", "Sets the level of information written to the WAL. (told)"
    WalSegmentSize "wal_segment_size" int(16, 16, Unit::Megabytes), "16", Internal; "Preset Options", "Shows the size of write ahead log segments. (told)"
    Xmlbinary "xmlbinary" Kind::Enum(&["base64", "hex"]), "base64", User; "Client Connection Defaults / Statement Behavior", "Sets how binary values are to be encoded in XML."
    Xmloption "xmloption" Kind::Enum(&["content", "document"]), "content", User; "Client Connection Defaults / Statement Behavior", "Sets whether XML data in implicit parsing and serialization operations is to be considered as documents or content fragments."
    EnableBitmapscan "enable_bitmapscan" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of bitmap-scan plans."
    EnableGathermerge "enable_gathermerge" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of gather merge plans. (told; the planner has no such choice)"
    EnableHashagg "enable_hashagg" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of hashed aggregation plans. (told; the planner has no such choice)"
    EnableIncrementalSort "enable_incremental_sort" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of incremental sort steps. (told; the planner has no such choice)"
    EnableIndexonlyscan "enable_indexonlyscan" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of index-only-scan plans. (told; the planner has no such choice)"
    EnableMaterial "enable_material" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of materialization. (told; the planner has no such choice)"
    EnableMemoize "enable_memoize" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of memoization. (told; the planner has no such choice)"
    EnableMergejoin "enable_mergejoin" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of merge join plans. (told; the planner has no such choice)"
    EnableParallelAppend "enable_parallel_append" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of parallel append plans. (told; the planner has no such choice)"
    EnableParallelHash "enable_parallel_hash" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of parallel hash plans. (told; the planner has no such choice)"
    EnablePartitionPruning "enable_partition_pruning" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables plan-time and execution-time partition pruning. (told; the planner has no such choice)"
    EnablePartitionwiseAggregate "enable_partitionwise_aggregate" BOOL, "off", User; "Query Tuning / Planner Method Configuration", "Enables partitionwise aggregation and grouping. (told; the planner has no such choice)"
    EnablePartitionwiseJoin "enable_partitionwise_join" BOOL, "off", User; "Query Tuning / Planner Method Configuration", "Enables partitionwise join. (told; the planner has no such choice)"
    EnablePresortedAggregate "enable_presorted_aggregate" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's ability to produce plans that provide presorted input for aggregates. (told; the planner has no such choice)"
    EnableSort "enable_sort" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of explicit sort steps. (told; the planner has no such choice)"
    EnableTidscan "enable_tidscan" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of TID scan plans. (told; the planner has no such choice)"
    EnableGroupByReordering "enable_group_by_reordering" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables reordering of GROUP BY keys. (told; the planner has no such choice)"
    EnableDistinctReordering "enable_distinct_reordering" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables reordering of DISTINCT keys. (told; the planner has no such choice)"
    EnableSelfJoinElimination "enable_self_join_elimination" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables removal of unique self-joins. (told; the planner has no such choice)"
    SeqPageCost "seq_page_cost" Kind::Real { min: 0.0, max: 1.7976931348623157e308 }, "1", User; "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of a sequentially fetched disk page. (told; costs here are the engine's own)"
    RandomPageCost "random_page_cost" Kind::Real { min: 0.0, max: 1.7976931348623157e308 }, "4", User; "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of a nonsequentially fetched disk page. (told; costs here are the engine's own)"
    CpuTupleCost "cpu_tuple_cost" Kind::Real { min: 0.0, max: 1.7976931348623157e308 }, "0.01", User; "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of processing each tuple (row). (told; costs here are the engine's own)"
    CpuIndexTupleCost "cpu_index_tuple_cost" Kind::Real { min: 0.0, max: 1.7976931348623157e308 }, "0.005", User; "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of processing each index entry during an index scan. (told; costs here are the engine's own)"
    CpuOperatorCost "cpu_operator_cost" Kind::Real { min: 0.0, max: 1.7976931348623157e308 }, "0.0025", User; "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of processing each operator or function call. (told; costs here are the engine's own)"
    ParallelSetupCost "parallel_setup_cost" Kind::Real { min: 0.0, max: 1.7976931348623157e308 }, "1000", User; "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of starting up worker processes for parallel query. (told; costs here are the engine's own)"
    ParallelTupleCost "parallel_tuple_cost" Kind::Real { min: 0.0, max: 1.7976931348623157e308 }, "0.1", User; "Query Tuning / Planner Cost Constants", "Sets the planner's estimate of the cost of passing each tuple (row) from worker to leader backend. (told; costs here are the engine's own)"
    EffectiveCacheSize "effective_cache_size" int(1, MAX, Unit::Pages), "524288", User; "Query Tuning / Planner Cost Constants", "Sets the planner's assumption about the total size of the data caches. (told; costs here are the engine's own)"
    MinParallelTableScanSize "min_parallel_table_scan_size" int(0, MAX / 3, Unit::Pages), "1024", User; "Query Tuning / Planner Cost Constants", "Sets the minimum amount of table data for a parallel scan. (told; the analytics pool decides)"
    MinParallelIndexScanSize "min_parallel_index_scan_size" int(0, MAX / 3, Unit::Pages), "64", User; "Query Tuning / Planner Cost Constants", "Sets the minimum amount of index data for a parallel scan. (told; the analytics pool decides)"
    MaxParallelWorkersPerGather "max_parallel_workers_per_gather" int(0, 1024, Unit::None), "2", User; "Resource Usage / Worker Processes", "Sets the maximum number of parallel processes per executor node. (told; the analytics pool decides)"
    MaxParallelWorkers "max_parallel_workers" int(0, 1024, Unit::None), "8", User; "Resource Usage / Worker Processes", "Sets the maximum number of parallel workers that can be active at one time. (told; the analytics pool decides)"
    MaxParallelMaintenanceWorkers "max_parallel_maintenance_workers" int(0, 1024, Unit::None), "2", User; "Resource Usage / Worker Processes", "Sets the maximum number of parallel processes per maintenance operation. (told; there are none)"
    ParallelLeaderParticipation "parallel_leader_participation" BOOL, "on", User; "Resource Usage / Worker Processes", "Controls whether Gather and Gather Merge also run subplans. (told; there are none)"
    DebugParallelQuery "debug_parallel_query" Kind::Enum(&["off", "on", "regress"]), "off", User; "Developer Options", "Forces the planner's use parallel query nodes. (told; there are none)"
    FromCollapseLimit "from_collapse_limit" int(1, MAX, Unit::None), "8", User; "Query Tuning / Other Planner Options", "Sets the FROM-list size beyond which subqueries are not collapsed."
    JoinCollapseLimit "join_collapse_limit" int(1, MAX, Unit::None), "8", User; "Query Tuning / Other Planner Options", "Sets the FROM-list size beyond which JOIN constructs are not flattened."
    ConstraintExclusion "constraint_exclusion" Kind::Enum(&["partition", "on", "off"]), "partition", User; "Query Tuning / Other Planner Options", "Enables the planner to use constraints to optimize queries. (told; it does not)"
    CursorTupleFraction "cursor_tuple_fraction" Kind::Real { min: 0.0, max: 1.0 }, "0.1", User; "Query Tuning / Other Planner Options", "Sets the planner's estimate of the fraction of a cursor's rows that will be retrieved. (told; cursors are planned as statements are)"
    DefaultStatisticsTarget "default_statistics_target" int(1, 10_000, Unit::None), "100", User; "Query Tuning / Other Planner Options", "Sets the default statistics target."
    PlanCacheMode "plan_cache_mode" Kind::Enum(&["auto", "force_generic_plan", "force_custom_plan"]), "auto", User; "Query Tuning / Other Planner Options", "Controls the planner's selection of custom or generic plan. (auto: generic)"
    Geqo "geqo" BOOL, "on", User; "Query Tuning / Genetic Query Optimizer", "Enables genetic query optimization. (told; there is none)"
    GeqoThreshold "geqo_threshold" int(2, MAX, Unit::None), "12", User; "Query Tuning / Genetic Query Optimizer", "Sets the threshold of FROM items beyond which GEQO is used. (told; there is none)"
    JitAboveCost "jit_above_cost" Kind::Real { min: -1.0, max: 1.7976931348623157e308 }, "100000", User; "Query Tuning / Planner Cost Constants", "Perform JIT compilation if query is more expensive. (told; there is no JIT)"
    MaintenanceWorkMem "maintenance_work_mem" int(64, MAX, KB), "65536", User; "Resource Usage / Memory", "Sets the maximum memory to be used for maintenance operations. (told; work_mem is the limit of each statement)"
    HashMemMultiplier "hash_mem_multiplier" Kind::Real { min: 1.0, max: 1000.0 }, "2", User; "Resource Usage / Memory", "Multiple of \"work_mem\" to use for hash tables. (told; work_mem is the limit of each statement)"
    TempBuffers "temp_buffers" int(100, MAX / 2, Unit::Pages), "1024", User; "Resource Usage / Memory", "Sets the maximum number of temporary buffers used by each session. (told; there are none)"
    LcMonetary "lc_monetary" Kind::Enum(&["C"]), "C", User; "Client Connection Defaults / Locale and Formatting", "Sets the locale for formatting monetary amounts. (told; there is one)"
    LcNumeric "lc_numeric" Kind::Enum(&["C"]), "C", User; "Client Connection Defaults / Locale and Formatting", "Sets the locale for formatting numbers. (told; there is one)"
    LcTime "lc_time" Kind::Enum(&["C"]), "C", User; "Client Connection Defaults / Locale and Formatting", "Sets the locale for formatting date and time values. (told; there is one)"
    TimezoneAbbreviations "timezone_abbreviations" Kind::Enum(&["Default"]), "Default", User; "Client Connection Defaults / Locale and Formatting", "Selects a file of time zone abbreviations. (told; there is one)"
    AllowInPlaceTablespaces "allow_in_place_tablespaces" BOOL, "off", Superuser; "Developer Options", "Allows tablespaces directly inside pg_tblspc, for testing. (told; there are no tablespaces to make)"
    DefaultToastCompression "default_toast_compression" Kind::Enum(&["pglz", "lz4"]), "pglz", User; "Client Connection Defaults / Statement Behavior", "Sets the default compression method for compressible values. (told; values are not compressed)"
    LogStatement "log_statement" Kind::Enum(&["none", "ddl", "mod", "all"]), "none", Superuser; "Reporting and Logging / What to Log", "Sets the type of statements logged."
    LogMinMessages "log_min_messages" LOG_LEVELS, "warning", Superuser; "Reporting and Logging / When to Log", "Sets the message levels that are logged."
    LogMinErrorStatement "log_min_error_statement" LOG_LEVELS, "error", Superuser; "Reporting and Logging / When to Log", "Causes all statements generating error at or above this level to be logged."
    LogConnections "log_connections" Kind::Text(super::value::log_connections), "", Backend; "Reporting and Logging / What to Log", "Logs specified aspects of connection establishment and setup."
    LogDisconnections "log_disconnections" BOOL, "off", Backend; "Reporting and Logging / What to Log", "Logs end of a session, including duration."
    LogMinDurationStatement "log_min_duration_statement" int(-1, MAX, MS), "-1", Superuser; "Reporting and Logging / When to Log", "Sets the minimum execution time above which all statements will be logged."
    TrackActivities "track_activities" Kind::Enum(&["on"]), "on", Superuser; "Statistics / Cumulative Query and Index Statistics", "Collects information about executing commands. (told; always)"
    TrackCounts "track_counts" Kind::Enum(&["on"]), "on", Superuser; "Statistics / Cumulative Query and Index Statistics", "Collects statistics on database activity. (told; always)"
    EscapeStringWarning "escape_string_warning" BOOL, "on", User; "Version and Platform Compatibility / Previous PostgreSQL Versions", "Warn about backslash escapes in ordinary string literals. (told; backslashes are plain there)"
    WorkMem "work_mem" int(64, MAX, KB), "262144", User; "Resource Usage / Memory", "Sets the maximum memory one statement may use for sorts, hash tables and kept rows."
}
