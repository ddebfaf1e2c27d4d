//! Settings of PostgreSQL that steer nothing here. Each is known, shown and checked as PostgreSQL's
//! is.
//!
//! One that is *free* tunes what there is not: any value is taken, with a NOTICE where it is
//! another than the one in force. One that is *fixed* would promise something: only its one value
//! is taken.

use std::collections::HashMap;
use std::sync::LazyLock;

use throng_types::error::state;
use throng_types::{Error, Result};

use super::registry::{Context, Setting};
use super::value::{Kind, Unit, any_text, raw};

/// A setting without effect.
pub struct Inert {
    pub setting: Setting,
    /// Whether it may have another value than its default.
    pub free: bool,
    pub reason: &'static str,
}

impl Inert {
    /// A value in the setting's own unit.
    ///
    /// # Errors
    /// 22023 for what is no value of it, 0A000 for another than its one value.
    pub fn checked(&self, text: &str) -> Result<String> {
        let setting = &self.setting;
        let value = raw(&setting.kind.parse(setting.name, text)?);
        // A list of names has '' as one name without letters.
        if value == "\"\"" && setting.default.is_empty() {
            return Ok(String::new());
        }
        if self.free || value == setting.default {
            return Ok(value);
        }
        if !self.is_listed() {
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, self.reason));
        }
        let message = format!(
            "setting \"{}\" to \"{text}\" is not supported",
            setting.name
        );
        Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(self.because()))
    }

    /// A value in the setting's own unit, as SHOW prints it.
    pub fn shown(&self, value: &str) -> String {
        let setting = &self.setting;
        match setting.kind.parse(setting.name, value) {
            Ok(value) => setting.kind.show(&value),
            Err(_) => value.to_owned(),
        }
    }

    /// Whether `pg_settings` has it: not a setting that PostgreSQL takes only from old dumps.
    pub fn is_listed(&self) -> bool {
        self.setting.name != "default_with_oids"
    }

    /// The reason as a sentence.
    pub fn because(&self) -> String {
        let (first, rest) = self.reason.split_at(1);
        format!("{}{rest}.", first.to_ascii_uppercase())
    }
}

/// The setting without effect that has this name, in any case.
pub fn find_inert(name: &str) -> Option<&'static Inert> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Inert>> =
        LazyLock::new(|| INERT.iter().map(|i| (i.setting.name, i)).collect());
    BY_NAME.get(name.to_ascii_lowercase().as_str()).copied()
}

macro_rules! inert {
    ($($class:ident $reason:literal {
        $($name:literal $kind:expr, $default:literal, $context:ident; $category:literal, $description:literal)*
    })*) => {
        /// By the reason for which they have no effect.
        pub static INERT: &[Inert] = &[$($(Inert {
            setting: Setting {
                name: $name,
                kind: $kind,
                default: $default,
                context: Context::$context,
                report: false,
                category: $category,
                description: concat!($description, " (told; ", $reason, ")"),
            },
            free: inert!(@free $class),
            reason: $reason,
        },)*)*];
    };
    (@free free) => { true };
    (@free fixed) => { false };
}

const BOOL: Kind = Kind::Bool;
const STRING: Kind = Kind::Text(any_text);
const MS: Unit = Unit::Milliseconds;
const KB: Unit = Unit::Kilobytes;
const MAX: i64 = i32::MAX as i64;

const fn int(min: i64, max: i64, unit: Unit) -> Kind {
    Kind::Int { min, max, unit }
}

const fn real(min: f64, max: f64) -> Kind {
    Kind::Real { min, max }
}

inert! {
    fixed "there are no restart points, no archive modules and no summaries of the log" {
        "archive_cleanup_command" STRING, "", Sighup; "Write-Ahead Log / Archive Recovery", "Sets the shell command that will be executed at every restart point."
        "archive_library" STRING, "", Sighup; "Write-Ahead Log / Archiving", "Sets the library that will be called to archive a WAL file."
        "recovery_end_command" STRING, "", Sighup; "Write-Ahead Log / Archive Recovery", "Sets the shell command that will be executed once at the end of recovery."
        "summarize_wal" BOOL, "off", Sighup; "Write-Ahead Log / Summarization", "Starts the WAL summarizer process to enable incremental backup."
        "wal_summary_keep_time" int(0, 35_791_394, Unit::Minutes), "14400", Sighup; "Write-Ahead Log / Summarization", "Time for which WAL summary files should be kept."
    }
    fixed "there is no replication" {
        "hot_standby_feedback" BOOL, "off", Sighup; "Replication / Standby Servers", "Allows feedback from a hot standby to the primary that will avoid query conflicts."
        "idle_replication_slot_timeout" int(0, MAX, Unit::Seconds), "0", Sighup; "Replication / Sending Servers", "Sets the duration a replication slot can remain idle before it is invalidated."
        "output_plugin_libraries" STRING, "pgoutput, test_decoding", Superuser; "Replication / Sending Servers", "Lists libraries that may be named as logical decoding output plugins."
        "primary_conninfo" STRING, "", Sighup; "Replication / Standby Servers", "Sets the connection string to be used to connect to the sending server."
        "primary_slot_name" STRING, "", Sighup; "Replication / Standby Servers", "Sets the name of the replication slot to use on the sending server."
        "recovery_min_apply_delay" int(0, MAX, MS), "0", Sighup; "Replication / Standby Servers", "Sets the minimum delay for applying changes during recovery."
        "sync_replication_slots" BOOL, "off", Sighup; "Replication / Standby Servers", "Enables a physical standby to synchronize logical failover replication slots from the primary server."
        "synchronized_standby_slots" STRING, "", Sighup; "Replication / Primary Server", "Lists streaming replication standby server replication slot names that logical WAL sender processes will wait for."
        "track_commit_timestamp" BOOL, "off", Postmaster; "Replication / Sending Servers", "Collects transaction commit time."
    }
    free "there is no replication" {
        "debug_logical_replication_streaming" Kind::Enum(&["buffered", "immediate"]), "buffered", User; "Developer Options", "Forces immediate streaming or serialization of changes in large transactions."
        "hot_standby" BOOL, "on", Postmaster; "Replication / Standby Servers", "Allows connections and queries during recovery."
        "log_recovery_conflict_waits" BOOL, "off", Sighup; "Reporting and Logging / What to Log", "Logs standby recovery conflict waits."
        "log_replication_commands" BOOL, "off", Superuser; "Reporting and Logging / What to Log", "Logs each replication command."
        "logical_decoding_work_mem" int(64, MAX, KB), "65536", User; "Resource Usage / Memory", "Sets the maximum memory to be used for logical decoding."
        "max_active_replication_origins" int(0, 262_143, Unit::None), "10", Postmaster; "Replication / Subscribers", "Sets the maximum number of active replication origins."
        "max_logical_replication_workers" int(0, 262_143, Unit::None), "4", Postmaster; "Replication / Subscribers", "Maximum number of logical replication worker processes."
        "max_parallel_apply_workers_per_subscription" int(0, 1_024, Unit::None), "2", Sighup; "Replication / Subscribers", "Maximum number of parallel apply workers per subscription."
        "max_standby_archive_delay" int(-1, MAX, MS), "30000", Sighup; "Replication / Standby Servers", "Sets the maximum delay before canceling queries when a hot standby server is processing archived WAL data."
        "max_standby_streaming_delay" int(-1, MAX, MS), "30000", Sighup; "Replication / Standby Servers", "Sets the maximum delay before canceling queries when a hot standby server is processing streamed WAL data."
        "max_sync_workers_per_subscription" int(0, 262_143, Unit::None), "2", Sighup; "Replication / Subscribers", "Maximum number of table synchronization workers per subscription."
        "recovery_prefetch" Kind::Enum(&["off", "on", "try"]), "try", Sighup; "Write-Ahead Log / Recovery", "Prefetch referenced blocks during recovery."
        "wal_decode_buffer_size" int(65_536, 1_073_741_823, Unit::Bytes), "524288", Postmaster; "Write-Ahead Log / Recovery", "Buffer size for reading ahead in the WAL during recovery."
        "wal_receiver_create_temp_slot" BOOL, "off", Sighup; "Replication / Standby Servers", "Sets whether a WAL receiver should create a temporary replication slot if no permanent slot is configured."
        "wal_receiver_status_interval" int(0, 2_147_483, Unit::Seconds), "10", Sighup; "Replication / Standby Servers", "Sets the maximum interval between WAL receiver status reports to the sending server."
        "wal_receiver_timeout" int(0, MAX, MS), "60000", Sighup; "Replication / Standby Servers", "Sets the maximum wait time to receive data from the sending server."
        "wal_retrieve_retry_interval" int(1, MAX, MS), "5000", Sighup; "Replication / Standby Servers", "Sets the time to wait before retrying to retrieve WAL after a failed attempt."
    }
    fixed "it is not supported" {
        "allow_system_table_mods" BOOL, "off", Superuser; "Developer Options", "Allows modifications of the structure of system tables."
        "backtrace_functions" STRING, "", Superuser; "Developer Options", "Log backtrace for errors in these functions."
        "createrole_self_grant" STRING, "", User; "Client Connection Defaults / Statement Behavior", "Sets whether a CREATEROLE user automatically grants the role to themselves, and with which options."
        "data_sync_retry" BOOL, "off", Postmaster; "Error Handling", "Whether to continue running after a failure to sync data files."
        "debug_discard_caches" int(0, 0, Unit::None), "0", Superuser; "Developer Options", "Aggressively flush system caches for debugging purposes."
        "debug_io_direct" STRING, "", Postmaster; "Developer Options", "Use direct I/O for file access."
        "debug_print_parse" BOOL, "off", User; "Reporting and Logging / What to Log", "Logs each query's parse tree."
        "debug_print_plan" BOOL, "off", User; "Reporting and Logging / What to Log", "Logs each query's execution plan."
        "debug_print_rewritten" BOOL, "off", User; "Reporting and Logging / What to Log", "Logs each query's rewritten parse tree."
        "exit_on_error" BOOL, "off", User; "Error Handling", "Terminate session on any error."
        "ignore_checksum_failure" BOOL, "off", Superuser; "Developer Options", "Continues processing after a checksum failure."
        "ignore_invalid_pages" BOOL, "off", Postmaster; "Developer Options", "Continues recovery after an invalid pages failure."
        "ignore_system_indexes" BOOL, "off", Backend; "Developer Options", "Disables reading from system indexes."
        "jit_debugging_support" BOOL, "off", Backend; "Developer Options", "Register JIT-compiled functions with debugger."
        "jit_dump_bitcode" BOOL, "off", Superuser; "Developer Options", "Write out LLVM bitcode to facilitate JIT debugging."
        "jit_profiling_support" BOOL, "off", Backend; "Developer Options", "Register JIT-compiled functions with perf profiler."
        "lo_compat_privileges" BOOL, "off", Superuser; "Version and Platform Compatibility / Previous PostgreSQL Versions", "Enables backward compatibility mode for privilege checks on large objects."
        "post_auth_delay" int(0, 2_147, Unit::Seconds), "0", Backend; "Developer Options", "Sets the amount of time to wait after authentication on connection startup."
        "pre_auth_delay" int(0, 60, Unit::Seconds), "0", Sighup; "Developer Options", "Sets the amount of time to wait before authentication on connection startup."
        "temp_file_limit" int(-1, MAX, KB), "-1", Superuser; "Resource Usage / Disk", "Limits the total size of all temporary files used by each process."
        "temp_tablespaces" STRING, "", User; "Client Connection Defaults / Statement Behavior", "Sets the tablespace(s) to use for temporary tables and sort files."
        "trace_connection_negotiation" BOOL, "off", Postmaster; "Developer Options", "Logs details of pre-authentication connection handshake."
        "trace_notify" BOOL, "off", User; "Developer Options", "Generates debugging output for LISTEN and NOTIFY."
        "trace_sort" BOOL, "off", User; "Developer Options", "Emit information about resource usage in sorting."
        "track_functions" Kind::Enum(&["none", "pl", "all"]), "none", Superuser; "Statistics / Cumulative Query and Index Statistics", "Collects function-level statistics on database activity."
        "transform_null_equals" BOOL, "off", User; "Version and Platform Compatibility / Other Platforms and Clients", "Treats \"expr=NULL\" as \"expr IS NULL\"."
        "wal_consistency_checking" STRING, "", Superuser; "Developer Options", "Sets the WAL resource managers for which WAL consistency checks are done."
        "zero_damaged_pages" BOOL, "off", Superuser; "Developer Options", "Continues processing past damaged page headers."
    }
    fixed "libraries are not loaded" {
        "dynamic_library_path" STRING, "$libdir", Superuser; "Client Connection Defaults / Other Defaults", "Sets the path for dynamically loadable modules."
        "extension_control_path" STRING, "$system", Superuser; "Client Connection Defaults / Other Defaults", "Sets the path for extension control files."
        "jit_provider" STRING, "llvmjit", Postmaster; "Client Connection Defaults / Shared Library Preloading", "JIT provider to use."
        "local_preload_libraries" STRING, "", User; "Client Connection Defaults / Shared Library Preloading", "Lists unprivileged shared libraries to preload into each backend."
        "oauth_validator_libraries" STRING, "", Sighup; "Connections and Authentication / Authentication", "Lists libraries that may be called to validate OAuth v2 bearer tokens."
        "session_preload_libraries" STRING, "", Superuser; "Client Connection Defaults / Shared Library Preloading", "Lists shared libraries to preload into each backend."
        "shared_preload_libraries" STRING, "", Postmaster; "Client Connection Defaults / Shared Library Preloading", "Lists shared libraries to preload into server."
    }
    fixed "the server has no such file" {
        "config_file" STRING, "", Postmaster; "File Locations", "Sets the server's main configuration file."
        "external_pid_file" STRING, "", Postmaster; "File Locations", "Writes the postmaster PID to the specified file."
        "hba_file" STRING, "", Postmaster; "File Locations", "Sets the server's \"hba\" configuration file."
        "ident_file" STRING, "", Postmaster; "File Locations", "Sets the server's \"ident\" configuration file."
    }
    fixed "TLS is as the server was built" {
        "ssl_ca_file" STRING, "", Sighup; "Connections and Authentication / SSL", "Location of the SSL certificate authority file."
        "ssl_ciphers" STRING, "none", Sighup; "Connections and Authentication / SSL", "Sets the list of allowed TLSv1.2 (and lower) ciphers."
        "ssl_crl_dir" STRING, "", Sighup; "Connections and Authentication / SSL", "Location of the SSL certificate revocation list directory."
        "ssl_crl_file" STRING, "", Sighup; "Connections and Authentication / SSL", "Location of the SSL certificate revocation list file."
        "ssl_dh_params_file" STRING, "", Sighup; "Connections and Authentication / SSL", "Location of the SSL DH parameters file."
        "ssl_groups" STRING, "none", Sighup; "Connections and Authentication / SSL", "Sets the group(s) to use for Diffie-Hellman key exchange."
        "ssl_max_protocol_version" Kind::Enum(&["", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"]), "", Sighup; "Connections and Authentication / SSL", "Sets the maximum SSL/TLS protocol version to use."
        "ssl_min_protocol_version" Kind::Enum(&["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"]), "TLSv1.2", Sighup; "Connections and Authentication / SSL", "Sets the minimum SSL/TLS protocol version to use."
        "ssl_passphrase_command" STRING, "", Sighup; "Connections and Authentication / SSL", "Command to obtain passphrases for SSL."
        "ssl_passphrase_command_supports_reload" BOOL, "off", Sighup; "Connections and Authentication / SSL", "Controls whether \"ssl_passphrase_command\" is called during server reload."
        "ssl_prefer_server_ciphers" BOOL, "on", Sighup; "Connections and Authentication / SSL", "Give priority to server ciphersuite order."
        "ssl_tls13_ciphers" STRING, "", Sighup; "Connections and Authentication / SSL", "Sets the list of allowed TLSv1.3 cipher suites."
    }
    fixed "there is no such authentication" {
        "bonjour" BOOL, "off", Postmaster; "Connections and Authentication / Connection Settings", "Enables advertising the server via Bonjour."
        "bonjour_name" STRING, "", Postmaster; "Connections and Authentication / Connection Settings", "Sets the Bonjour service name."
        "gss_accept_delegation" BOOL, "off", Sighup; "Connections and Authentication / Authentication", "Sets whether GSSAPI delegation should be accepted from the client."
        "krb_caseins_users" BOOL, "off", Sighup; "Connections and Authentication / Authentication", "Sets whether Kerberos and GSSAPI user names should be treated as case-insensitive."
        "krb_server_keyfile" STRING, "", Sighup; "Connections and Authentication / Authentication", "Sets the location of the Kerberos server key file."
    }
    fixed "the log is one stream of lines" {
        "event_source" STRING, "PostgreSQL", Postmaster; "Reporting and Logging / Where to Log", "Sets the application name used to identify PostgreSQL messages in the event log."
        "log_destination" STRING, "stderr", Sighup; "Reporting and Logging / Where to Log", "Sets the destination for server log output."
        "log_directory" STRING, "log", Sighup; "Reporting and Logging / Where to Log", "Sets the destination directory for log files."
        "log_error_verbosity" Kind::Enum(&["terse", "default", "verbose"]), "default", Superuser; "Reporting and Logging / What to Log", "Sets the verbosity of logged messages."
        "log_file_mode" int(0, 511, Unit::None), "384", Sighup; "Reporting and Logging / Where to Log", "Sets the file permissions for log files."
        "log_filename" STRING, "postgresql-%Y-%m-%d_%H%M%S.log", Sighup; "Reporting and Logging / Where to Log", "Sets the file name pattern for log files."
        "log_line_prefix" STRING, "%m [%p] ", Sighup; "Reporting and Logging / What to Log", "Controls information prefixed to each log line."
        "log_rotation_age" int(0, 35_791_394, Unit::Minutes), "1440", Sighup; "Reporting and Logging / Where to Log", "Sets the amount of time to wait before forcing log file rotation."
        "log_rotation_size" int(0, MAX, KB), "10240", Sighup; "Reporting and Logging / Where to Log", "Sets the maximum size a log file can reach before being rotated."
        "log_timezone" STRING, "GMT", Sighup; "Reporting and Logging / What to Log", "Sets the time zone to use in log messages."
        "log_truncate_on_rotation" BOOL, "off", Sighup; "Reporting and Logging / Where to Log", "Truncate existing log files of same name during log rotation."
        "logging_collector" BOOL, "off", Postmaster; "Reporting and Logging / Where to Log", "Start a subprocess to capture stderr, csvlog and/or jsonlog into log files."
        "syslog_facility" Kind::Enum(&["local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"]), "local0", Sighup; "Reporting and Logging / Where to Log", "Sets the syslog \"facility\" to be used when syslog enabled."
        "syslog_ident" STRING, "postgres", Sighup; "Reporting and Logging / Where to Log", "Sets the program name used to identify PostgreSQL messages in syslog."
        "syslog_sequence_numbers" BOOL, "on", Sighup; "Reporting and Logging / Where to Log", "Add sequence number to syslog messages to avoid duplicate suppression."
        "syslog_split_messages" BOOL, "on", Sighup; "Reporting and Logging / Where to Log", "Split messages sent to syslog by lines and to fit into 1024 bytes."
    }
    fixed "tables declared WITH OIDS are not supported" {
        "default_with_oids" BOOL, "off", User; "Version and Platform Compatibility / Previous PostgreSQL Versions", "WITH OIDS is no longer supported; this can only be false."
    }
    fixed "it is not logged" {
        "log_autovacuum_min_duration" int(-1, MAX, MS), "600000", Sighup; "Reporting and Logging / What to Log", "Sets the minimum execution time above which autovacuum actions will be logged."
        "log_checkpoints" BOOL, "on", Sighup; "Reporting and Logging / What to Log", "Logs each checkpoint."
        "log_duration" BOOL, "off", Superuser; "Reporting and Logging / What to Log", "Logs the duration of each completed SQL statement."
        "log_executor_stats" BOOL, "off", Superuser; "Statistics / Monitoring", "Writes executor performance statistics to the server log."
        "log_hostname" BOOL, "off", Sighup; "Reporting and Logging / What to Log", "Logs the host name in the connection logs."
        "log_lock_failures" BOOL, "off", Superuser; "Reporting and Logging / What to Log", "Logs lock failures."
        "log_min_duration_sample" int(-1, MAX, MS), "-1", Superuser; "Reporting and Logging / When to Log", "Sets the minimum execution time above which a sample of statements will be logged. Sampling is determined by \"log_statement_sample_rate\"."
        "log_parameter_max_length" int(-1, 1_073_741_823, Unit::Bytes), "-1", Superuser; "Reporting and Logging / What to Log", "Sets the maximum length in bytes of data logged for bind parameter values when logging statements."
        "log_parameter_max_length_on_error" int(-1, 1_073_741_823, Unit::Bytes), "0", User; "Reporting and Logging / What to Log", "Sets the maximum length in bytes of data logged for bind parameter values when logging statements, on error."
        "log_parser_stats" BOOL, "off", Superuser; "Statistics / Monitoring", "Writes parser performance statistics to the server log."
        "log_planner_stats" BOOL, "off", Superuser; "Statistics / Monitoring", "Writes planner performance statistics to the server log."
        "log_startup_progress_interval" int(0, MAX, MS), "10000", Sighup; "Reporting and Logging / When to Log", "Time between progress updates for long-running startup operations."
        "log_statement_sample_rate" real(0.0, 1.0), "1", Superuser; "Reporting and Logging / When to Log", "Fraction of statements exceeding \"log_min_duration_sample\" to be logged."
        "log_statement_stats" BOOL, "off", Superuser; "Statistics / Monitoring", "Writes cumulative performance statistics to the server log."
        "log_temp_files" int(-1, MAX, KB), "-1", Superuser; "Reporting and Logging / What to Log", "Log the use of temporary files larger than this number of kilobytes."
        "log_transaction_sample_rate" real(0.0, 1.0), "0", Superuser; "Reporting and Logging / When to Log", "Sets the fraction of transactions from which to log all statements."
    }
    free "there is no genetic optimizer" {
        "geqo_effort" int(1, 10, Unit::None), "5", User; "Query Tuning / Genetic Query Optimizer", "GEQO: effort is used to set the default for other GEQO parameters."
        "geqo_generations" int(0, MAX, Unit::None), "0", User; "Query Tuning / Genetic Query Optimizer", "GEQO: number of iterations of the algorithm."
        "geqo_pool_size" int(0, MAX, Unit::None), "0", User; "Query Tuning / Genetic Query Optimizer", "GEQO: number of individuals in the population."
        "geqo_seed" real(0.0, 1.0), "0", User; "Query Tuning / Genetic Query Optimizer", "GEQO: seed for random path selection."
        "geqo_selection_bias" real(1.5, 2.0), "2", User; "Query Tuning / Genetic Query Optimizer", "GEQO: selective pressure within the population."
    }
    free "there is no JIT" {
        "jit_expressions" BOOL, "on", User; "Developer Options", "Allow JIT compilation of expressions."
        "jit_inline_above_cost" real(-1.0, f64::MAX), "500000", User; "Query Tuning / Planner Cost Constants", "Perform JIT inlining if query is more expensive."
        "jit_optimize_above_cost" real(-1.0, f64::MAX), "500000", User; "Query Tuning / Planner Cost Constants", "Optimize JIT-compiled functions if query is more expensive."
        "jit_tuple_deforming" BOOL, "on", User; "Developer Options", "Allow JIT compilation of tuple deforming."
    }
    free "the planner has no such choice" {
        "enable_async_append" BOOL, "on", User; "Query Tuning / Planner Method Configuration", "Enables the planner's use of async append plans."
        "recursive_worktable_factor" real(0.001, 1000000.0), "10", User; "Query Tuning / Other Planner Options", "Sets the planner's estimate of the average size of a recursive query's working table."
    }
    free "transaction ids have 64 bits and there are no multixacts" {
        "autovacuum_freeze_max_age" int(100_000, 2_000_000_000, Unit::None), "200000000", Postmaster; "Vacuuming / Automatic Vacuuming", "Age at which to autovacuum a table to prevent transaction ID wraparound."
        "autovacuum_multixact_freeze_max_age" int(10_000, 2_000_000_000, Unit::None), "400000000", Postmaster; "Vacuuming / Automatic Vacuuming", "Multixact age at which to autovacuum a table to prevent multixact wraparound."
        "multixact_member_buffers" int(16, 131_072, Unit::Pages), "32", Postmaster; "Resource Usage / Memory", "Sets the size of the dedicated buffer pool used for the MultiXact member cache."
        "multixact_offset_buffers" int(16, 131_072, Unit::Pages), "16", Postmaster; "Resource Usage / Memory", "Sets the size of the dedicated buffer pool used for the MultiXact offset cache."
        "vacuum_max_eager_freeze_failure_rate" real(0.0, 1.0), "0.03", User; "Vacuuming / Freezing", "Fraction of pages in a relation vacuum can scan and fail to freeze before disabling eager scanning."
        "vacuum_multixact_failsafe_age" int(0, 2_100_000_000, Unit::None), "1600000000", User; "Vacuuming / Freezing", "Multixact age at which VACUUM should trigger failsafe to avoid a wraparound outage."
    }
    free "the cleaner goes by its own rule" {
        "autovacuum_max_workers" int(1, 262_143, Unit::None), "3", Sighup; "Vacuuming / Automatic Vacuuming", "Sets the maximum number of simultaneously running autovacuum worker processes."
        "autovacuum_vacuum_insert_scale_factor" real(0.0, 100.0), "0.2", Sighup; "Vacuuming / Automatic Vacuuming", "Number of tuple inserts prior to vacuum as a fraction of reltuples."
        "autovacuum_vacuum_insert_threshold" int(-1, MAX, Unit::None), "1000", Sighup; "Vacuuming / Automatic Vacuuming", "Minimum number of tuple inserts prior to vacuum."
        "autovacuum_vacuum_max_threshold" int(-1, MAX, Unit::None), "100000000", Sighup; "Vacuuming / Automatic Vacuuming", "Maximum number of tuple updates or deletes prior to vacuum."
        "autovacuum_work_mem" int(-1, MAX, KB), "-1", Sighup; "Resource Usage / Memory", "Sets the maximum memory to be used by each autovacuum worker process."
        "autovacuum_worker_slots" int(1, 262_143, Unit::None), "16", Postmaster; "Vacuuming / Automatic Vacuuming", "Sets the number of backend slots to allocate for autovacuum workers."
        "vacuum_buffer_usage_limit" int(0, 16_777_216, KB), "2048", User; "Resource Usage / Memory", "Sets the buffer pool size for VACUUM, ANALYZE, and autovacuum."
        "vacuum_cost_page_dirty" int(0, 10_000, Unit::None), "20", User; "Vacuuming / Cost-Based Vacuum Delay", "Vacuum cost for a page dirtied by vacuum."
        "vacuum_cost_page_hit" int(0, 10_000, Unit::None), "1", User; "Vacuuming / Cost-Based Vacuum Delay", "Vacuum cost for a page found in the buffer cache."
        "vacuum_cost_page_miss" int(0, 10_000, Unit::None), "2", User; "Vacuuming / Cost-Based Vacuum Delay", "Vacuum cost for a page not found in the buffer cache."
    }
    free "there are no such buffers" {
        "commit_timestamp_buffers" int(0, 131_072, Unit::Pages), "0", Postmaster; "Resource Usage / Memory", "Sets the size of the dedicated buffer pool used for the commit timestamp cache."
        "notify_buffers" int(16, 131_072, Unit::Pages), "16", Postmaster; "Resource Usage / Memory", "Sets the size of the dedicated buffer pool used for the LISTEN/NOTIFY message cache."
        "serializable_buffers" int(16, 131_072, Unit::Pages), "32", Postmaster; "Resource Usage / Memory", "Sets the size of the dedicated buffer pool used for the serializable transaction cache."
        "subtransaction_buffers" int(0, 131_072, Unit::Pages), "0", Postmaster; "Resource Usage / Memory", "Sets the size of the dedicated buffer pool used for the subtransaction cache."
        "transaction_buffers" int(0, 131_072, Unit::Pages), "0", Postmaster; "Resource Usage / Memory", "Sets the size of the dedicated buffer pool used for the transaction status cache."
        "wal_buffers" int(-1, 262_143, Unit::Pages), "-1", Postmaster; "Write-Ahead Log / Settings", "Sets the number of disk-page buffers in shared memory for WAL."
    }
    free "the log is written in its own way" {
        "checkpoint_warning" int(0, MAX, Unit::Seconds), "30", Sighup; "Write-Ahead Log / Checkpoints", "Sets the maximum time before warning if checkpoints triggered by WAL volume happen too frequently."
        "min_wal_size" int(2, MAX, Unit::Megabytes), "80", Sighup; "Write-Ahead Log / Checkpoints", "Sets the minimum size to shrink the WAL to."
        "wal_compression" Kind::Enum(&["pglz", "on", "off"]), "off", Superuser; "Write-Ahead Log / Settings", "Compresses full-page writes written in WAL file with specified method."
        "wal_init_zero" BOOL, "on", Superuser; "Write-Ahead Log / Settings", "Writes zeroes to new WAL files before first use."
        "wal_log_hints" BOOL, "off", Postmaster; "Write-Ahead Log / Settings", "Writes full pages to WAL when first modified after a checkpoint, even for a non-critical modification."
        "wal_recycle" BOOL, "on", Superuser; "Write-Ahead Log / Settings", "Recycles WAL files by renaming them."
        "wal_skip_threshold" int(0, MAX, KB), "2048", User; "Write-Ahead Log / Settings", "Minimum size of new file to fsync instead of writing WAL."
        "wal_sync_method" Kind::Enum(&["fsync", "fdatasync", "open_sync", "open_datasync"]), "fdatasync", Sighup; "Write-Ahead Log / Settings", "Selects the method used for forcing WAL updates to disk."
        "wal_writer_delay" int(1, 10_000, MS), "200", Sighup; "Write-Ahead Log / Settings", "Time between WAL flushes performed in the WAL writer."
        "wal_writer_flush_after" int(0, MAX, Unit::Pages), "128", Sighup; "Write-Ahead Log / Settings", "Amount of WAL written out by WAL writer that triggers a flush."
    }
    free "pages are read and written in the pool's own way" {
        "backend_flush_after" int(0, 256, Unit::Pages), "0", User; "Resource Usage / I/O", "Number of pages after which previously performed writes are flushed to disk."
        "bgwriter_delay" int(10, 10_000, MS), "200", Sighup; "Resource Usage / Background Writer", "Background writer sleep time between rounds."
        "bgwriter_lru_maxpages" int(0, 1_073_741_823, Unit::None), "100", Sighup; "Resource Usage / Background Writer", "Background writer maximum number of LRU pages to flush per round."
        "bgwriter_lru_multiplier" real(0.0, 10.0), "2", Sighup; "Resource Usage / Background Writer", "Multiple of the average buffer usage to free per round."
        "dynamic_shared_memory_type" Kind::Enum(&["posix", "sysv", "mmap"]), "posix", Postmaster; "Resource Usage / Memory", "Selects the dynamic shared memory implementation used."
        "effective_io_concurrency" int(0, 1_000, Unit::None), "16", User; "Resource Usage / I/O", "Number of simultaneous requests that can be handled efficiently by the disk subsystem."
        "file_copy_method" Kind::Enum(&["copy", "clone"]), "copy", User; "Resource Usage / Disk", "Selects the file copy method."
        "file_extend_method" Kind::Enum(&["posix_fallocate", "write_zeros"]), "posix_fallocate", Sighup; "Resource Usage / Disk", "Selects the method used for extending data files."
        "huge_page_size" int(0, MAX, KB), "0", Postmaster; "Resource Usage / Memory", "The size of huge page that should be requested."
        "huge_pages" Kind::Enum(&["off", "on", "try"]), "try", Postmaster; "Resource Usage / Memory", "Use of huge pages on Linux or Windows."
        "io_combine_limit" int(1, 128, Unit::Pages), "16", User; "Resource Usage / I/O", "Limit on the size of data reads and writes."
        "io_max_combine_limit" int(1, 128, Unit::Pages), "16", Postmaster; "Resource Usage / I/O", "Server-wide limit that clamps io_combine_limit."
        "io_max_concurrency" int(-1, 1_024, Unit::None), "-1", Postmaster; "Resource Usage / I/O", "Max number of IOs that one process can execute simultaneously."
        "io_method" Kind::Enum(&["sync", "worker"]), "worker", Postmaster; "Resource Usage / I/O", "Selects the method for executing asynchronous I/O."
        "io_workers" int(1, 32, Unit::None), "3", Sighup; "Resource Usage / I/O", "Number of IO worker processes, for io_method=worker."
        "maintenance_io_concurrency" int(0, 1_000, Unit::None), "16", User; "Resource Usage / I/O", "A variant of \"effective_io_concurrency\" that is used for maintenance work."
        "max_files_per_process" int(64, MAX, Unit::None), "1000", Postmaster; "Resource Usage / Kernel Resources", "Sets the maximum number of files each server process is allowed to open simultaneously."
        "min_dynamic_shared_memory" int(0, MAX, Unit::Megabytes), "0", Postmaster; "Resource Usage / Memory", "Amount of dynamic shared memory reserved at startup."
        "shared_memory_type" Kind::Enum(&["sysv", "mmap"]), "mmap", Postmaster; "Resource Usage / Memory", "Selects the shared memory implementation used for the main shared memory region."
    }
    free "searches of GIN indexes find all there is" {
        "gin_fuzzy_search_limit" int(0, MAX, Unit::None), "0", User; "Client Connection Defaults / Other Defaults", "Sets the maximum allowed result for exact search by GIN."
    }
    free "GIN indexes have no pending list" {
        "gin_pending_list_limit" int(64, MAX, KB), "4096", User; "Client Connection Defaults / Statement Behavior", "Sets the maximum size of the pending list for GIN index."
    }
    free "the lock table grows as it must" {
        "max_locks_per_transaction" int(10, MAX, Unit::None), "64", Postmaster; "Lock Management", "Sets the maximum number of locks per transaction."
        "max_pred_locks_per_page" int(0, MAX, Unit::None), "2", Sighup; "Lock Management", "Sets the maximum number of predicate-locked tuples per page."
        "max_pred_locks_per_relation" int(i32::MIN as i64, MAX, Unit::None), "-2", Sighup; "Lock Management", "Sets the maximum number of predicate-locked pages and tuples per relation."
        "max_pred_locks_per_transaction" int(10, MAX, Unit::None), "64", Postmaster; "Lock Management", "Sets the maximum number of predicate locks per transaction."
    }
    free "there are no worker processes" {
        "max_worker_processes" int(0, 262_143, Unit::None), "8", Postmaster; "Resource Usage / Worker Processes", "Maximum number of concurrent worker processes."
    }
    free "it is not measured" {
        "compute_query_id" Kind::Enum(&["auto", "regress", "on", "off"]), "auto", Superuser; "Statistics / Monitoring", "Enables in-core computation of query identifiers."
        "track_activity_query_size" int(100, 1_048_576, Unit::Bytes), "1024", Postmaster; "Statistics / Cumulative Query and Index Statistics", "Sets the size reserved for pg_stat_activity.query, in bytes."
        "track_cost_delay_timing" BOOL, "off", Superuser; "Statistics / Cumulative Query and Index Statistics", "Collects timing statistics for cost-based vacuum delay."
        "track_io_timing" BOOL, "off", Superuser; "Statistics / Cumulative Query and Index Statistics", "Collects timing statistics for database I/O activity."
        "track_wal_io_timing" BOOL, "off", Superuser; "Statistics / Cumulative Query and Index Statistics", "Collects timing statistics for WAL I/O activity."
    }
    free "counters are read where they are counted" {
        "stats_fetch_consistency" Kind::Enum(&["none", "cache", "snapshot"]), "cache", User; "Statistics / Cumulative Query and Index Statistics", "Sets the consistency of accesses to statistics data."
    }
    free "the operating system decides" {
        "tcp_keepalives_count" int(0, MAX, Unit::None), "0", User; "Connections and Authentication / TCP Settings", "Maximum number of TCP keepalive retransmits."
        "tcp_keepalives_idle" int(0, MAX, Unit::Seconds), "0", User; "Connections and Authentication / TCP Settings", "Time between issuing TCP keepalives."
        "tcp_keepalives_interval" int(0, MAX, Unit::Seconds), "0", User; "Connections and Authentication / TCP Settings", "Time between TCP keepalive retransmits."
        "tcp_user_timeout" int(0, MAX, MS), "0", User; "Connections and Authentication / TCP Settings", "TCP user timeout."
        "unix_socket_group" STRING, "", Postmaster; "Connections and Authentication / Connection Settings", "Sets the owning group of the Unix-domain socket."
        "unix_socket_permissions" int(0, 511, Unit::None), "511", Postmaster; "Connections and Authentication / Connection Settings", "Sets the access permissions of the Unix-domain socket."
    }
    free "in UTF-8 a quote is no part of another letter" {
        "backslash_quote" Kind::Enum(&["safe_encoding", "on", "off"]), "safe_encoding", User; "Version and Platform Compatibility / Previous PostgreSQL Versions", "Sets whether \"\\'\" is allowed in string literals."
    }
    free "it has nothing to work on here" {
        "allow_alter_system" BOOL, "on", Sighup; "Version and Platform Compatibility / Other Platforms and Clients", "Allows running the ALTER SYSTEM command."
        "cluster_name" STRING, "", Postmaster; "Reporting and Logging / Process Title", "Sets the name of the cluster, which is included in the process title."
        "debug_pretty_print" BOOL, "on", User; "Reporting and Logging / What to Log", "Indents parse and plan tree displays."
        "event_triggers" BOOL, "on", Superuser; "Client Connection Defaults / Statement Behavior", "Enables event triggers."
        "icu_validation_level" Kind::Enum(&["disabled", "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"]), "warning", User; "Client Connection Defaults / Locale and Formatting", "Log level for reporting invalid ICU locale strings."
        "max_notify_queue_pages" int(64, MAX, Unit::None), "1048576", Postmaster; "Resource Usage / Disk", "Sets the maximum number of allocated pages for NOTIFY / LISTEN queue."
        "max_stack_depth" int(100, MAX, KB), "2048", Superuser; "Resource Usage / Memory", "Sets the maximum stack depth, in kilobytes."
        "md5_password_warnings" BOOL, "on", User; "Connections and Authentication / Authentication", "Enables deprecation warnings for MD5 passwords."
        "recovery_init_sync_method" Kind::Enum(&["fsync", "syncfs"]), "fsync", Sighup; "Error Handling", "Sets the method for synchronizing the data directory before crash recovery."
        "remove_temp_files_after_crash" BOOL, "on", Sighup; "Developer Options", "Remove temporary files after backend crash."
        "restart_after_crash" BOOL, "on", Sighup; "Error Handling", "Reinitialize server after backend crash."
        "send_abort_for_crash" BOOL, "off", Sighup; "Developer Options", "Send SIGABRT not SIGQUIT to child processes after backend crash."
        "send_abort_for_kill" BOOL, "off", Sighup; "Developer Options", "Send SIGABRT not SIGKILL to stuck child processes."
        "update_process_title" BOOL, "on", Superuser; "Reporting and Logging / Process Title", "Updates the process title to show the active SQL command."
    }
    fixed "as the server is built" {
        "data_checksums" BOOL, "off", Internal; "Preset Options", "Shows whether data checksums are turned on for this cluster."
        "data_directory_mode" int(0, 511, Unit::None), "448", Internal; "Preset Options", "Shows the mode of the data directory."
        "debug_assertions" BOOL, "off", Internal; "Preset Options", "Shows whether the running server has assertion checks enabled."
        "huge_pages_status" Kind::Enum(&["off", "on", "unknown"]), "unknown", Internal; "Preset Options", "Indicates the status of huge pages."
        "max_function_args" int(100, 100, Unit::None), "100", Internal; "Preset Options", "Shows the maximum number of function arguments."
        "num_os_semaphores" int(0, MAX, Unit::None), "0", Internal; "Preset Options", "Shows the number of semaphores required for the server."
        "segment_size" int(131_072, 131_072, Unit::Pages), "131072", Internal; "Preset Options", "Shows the number of pages per disk file."
        "shared_memory_size" int(0, MAX, Unit::Megabytes), "0", Internal; "Preset Options", "Shows the size of the server's main shared memory area (rounded up to the nearest MB)."
        "shared_memory_size_in_huge_pages" int(-1, MAX, Unit::None), "-1", Internal; "Preset Options", "Shows the number of huge pages needed for the main shared memory area."
        "ssl_library" STRING, "", Internal; "Preset Options", "Shows the name of the SSL library."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_has_one_definition_and_a_valid_default() -> Result<()> {
        for inert in INERT {
            let setting = &inert.setting;
            assert!(
                super::super::find(setting.name).is_none(),
                "{}",
                setting.name
            );
            assert_eq!(
                inert.checked(setting.default)?,
                setting.default,
                "{}",
                setting.name
            );
        }
        Ok(())
    }
}
