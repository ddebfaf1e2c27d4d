//! Columns of the views in `pg_catalog`, as PostgreSQL 18 has them.
//!
//! A network address is text here: there is no type `inet`.

use crate::system::relations;

relations! {
    PG_CATALOG;
    12085 pg_available_extension_versions in extension {
        name: NAME, version: TEXT, installed: BOOL, superuser: BOOL, trusted: BOOL,
        relocatable: BOOL, schema: NAME, requires: NAME_ARRAY, comment: TEXT,
    }
    12081 pg_available_extensions in extension {
        name: NAME, default_version: TEXT, installed_version: TEXT, comment: TEXT,
    }
    12077 pg_cursors in activity {
        name: TEXT, statement: TEXT, is_holdable: BOOL, is_binary: BOOL, is_scrollable: BOOL,
        creation_time: TIMESTAMPTZ,
    }
    12010 pg_group in role { groname: NAME, grosysid: OID, grolist: OID_ARRAY }
    12043 pg_indexes in view {
        schemaname: NAME, tablename: NAME, indexname: NAME, tablespace: NAME, indexdef: TEXT,
    }
    12073 pg_locks in activity {
        locktype: TEXT, database: OID, relation: OID, page: INT4, tuple: INT2, virtualxid: TEXT,
        transactionid: XID, classid: OID, objid: OID, objsubid: INT2, virtualtransaction: TEXT,
        pid: INT4, mode: TEXT, granted: BOOL, fastpath: BOOL, waitstart: TIMESTAMPTZ,
    }
    12038 pg_matviews in view {
        schemaname: NAME, matviewname: NAME, matviewowner: NAME, tablespace: NAME, hasindexes: BOOL,
        ispopulated: BOOL, definition: TEXT,
    }
    12018 pg_policies in policy {
        schemaname: NAME, tablename: NAME, policyname: NAME, permissive: TEXT, roles: NAME_ARRAY,
        cmd: TEXT, qual: TEXT, with_check: TEXT,
    }
    12095 pg_prepared_statements in activity {
        name: TEXT, statement: TEXT, prepare_time: TIMESTAMPTZ, parameter_types: REGTYPE_ARRAY,
        result_types: REGTYPE_ARRAY, from_sql: BOOL, generic_plans: INT8, custom_plans: INT8,
    }
    12090 pg_prepared_xacts in activity {
        transaction: XID, gid: TEXT, prepared: TIMESTAMPTZ, owner: NAME, database: NAME,
    }
    12068 pg_publication_tables {
        pubname: NAME, schemaname: NAME, tablename: NAME, attnames: NAME_ARRAY, rowfilter: TEXT,
    }
    12343 pg_replication_origin_status {
        local_id: OID, external_id: TEXT, remote_lsn: PG_LSN, local_lsn: PG_LSN,
    }
    12261 pg_replication_slots in replication {
        slot_name: NAME, plugin: NAME, slot_type: TEXT, datoid: OID, database: NAME,
        temporary: BOOL, active: BOOL, active_pid: INT4, xmin: XID, catalog_xmin: XID,
        restart_lsn: PG_LSN, confirmed_flush_lsn: PG_LSN, wal_status: TEXT, safe_wal_size: INT8,
        two_phase: BOOL, two_phase_at: PG_LSN, inactive_since: TIMESTAMPTZ, conflicting: BOOL,
        invalidation_reason: TEXT, failover: BOOL, synced: BOOL,
    }
    12000 pg_roles in role {
        rolname: NAME, rolsuper: BOOL, rolinherit: BOOL, rolcreaterole: BOOL, rolcreatedb: BOOL,
        rolcanlogin: BOOL, rolreplication: BOOL, rolconnlimit: INT4, rolpassword: TEXT,
        rolvaliduntil: TIMESTAMPTZ, rolbypassrls: BOOL, rolconfig: TEXT_ARRAY, oid: OID,
    }
    12023 pg_rules { schemaname: NAME, tablename: NAME, rulename: NAME, definition: TEXT }
    12099 pg_seclabels {
        objoid: OID, classoid: OID, objsubid: INT4, objtype: TEXT, objnamespace: OID, objname: TEXT,
        provider: TEXT, label: TEXT,
    }
    12048 pg_sequences in view {
        schemaname: NAME, sequencename: NAME, sequenceowner: NAME, data_type: REGTYPE,
        start_value: INT8, min_value: INT8, max_value: INT8, increment_by: INT8, cycle: BOOL,
        cache_size: INT8, last_value: INT8,
    }
    12104 pg_settings in activity {
        name: TEXT, setting: TEXT, unit: TEXT, category: TEXT, short_desc: TEXT, extra_desc: TEXT,
        context: TEXT, vartype: TEXT, source: TEXT, min_val: TEXT, max_val: TEXT,
        enumvals: TEXT_ARRAY, boot_val: TEXT, reset_val: TEXT, sourcefile: TEXT, sourceline: INT4,
        pending_restart: BOOL,
    }
    12005 pg_shadow in role {
        usename: NAME, usesysid: OID, usecreatedb: BOOL, usesuper: BOOL, userepl: BOOL,
        usebypassrls: BOOL, passwd: TEXT, valuntil: TIMESTAMPTZ, useconfig: TEXT_ARRAY,
    }
    12253 pg_stat_ssl in activity {
        pid: INT4, ssl: BOOL, version: TEXT, cipher: TEXT, bits: INT4, client_dn: TEXT,
        client_serial: NUMERIC, issuer_dn: TEXT,
    }
    12257 pg_stat_gssapi in activity {
        pid: INT4, gss_authenticated: BOOL, principal: TEXT, encrypted: BOOL,
        credentials_delegated: BOOL,
    }
    12226 pg_stat_activity in activity {
        datid: OID, datname: NAME, pid: INT4, leader_pid: INT4, usesysid: OID, usename: NAME,
        application_name: TEXT, client_addr: INET, client_hostname: TEXT, client_port: INT4,
        backend_start: TIMESTAMPTZ, xact_start: TIMESTAMPTZ, query_start: TIMESTAMPTZ,
        state_change: TIMESTAMPTZ, wait_event_type: TEXT, wait_event: TEXT, state: TEXT,
        backend_xid: XID, backend_xmin: XID, query_id: INT8, query: TEXT, backend_type: TEXT,
    }
    12289 pg_stat_archiver in activity {
        archived_count: INT8, last_archived_wal: TEXT, last_archived_time: TIMESTAMPTZ,
        failed_count: INT8, last_failed_wal: TEXT, last_failed_time: TIMESTAMPTZ,
        stats_reset: TIMESTAMPTZ,
    }
    12293 pg_stat_bgwriter in activity {
        buffers_clean: INT8, maxwritten_clean: INT8, buffers_alloc: INT8, stats_reset: TIMESTAMPTZ,
    }
    12297 pg_stat_checkpointer in activity {
        num_timed: INT8, num_requested: INT8, num_done: INT8, restartpoints_timed: INT8,
        restartpoints_req: INT8, restartpoints_done: INT8, write_time: FLOAT8, sync_time: FLOAT8,
        buffers_written: INT8, slru_written: INT8, stats_reset: TIMESTAMPTZ,
    }
    12305 pg_stat_wal in activity {
        wal_records: INT8, wal_fpi: INT8, wal_bytes: NUMERIC, wal_buffers_full: INT8,
        stats_reset: TIMESTAMPTZ,
    }
    12187 pg_stat_all_indexes in activity {
        relid: OID, indexrelid: OID, schemaname: NAME, relname: NAME, indexrelname: NAME,
        idx_scan: INT8, last_idx_scan: TIMESTAMPTZ, idx_tup_read: INT8, idx_tup_fetch: INT8,
    }
    12146 pg_stat_all_tables in activity {
        relid: OID, schemaname: NAME, relname: NAME, seq_scan: INT8, last_seq_scan: TIMESTAMPTZ,
        seq_tup_read: INT8, idx_scan: INT8, last_idx_scan: TIMESTAMPTZ, idx_tup_fetch: INT8,
        n_tup_ins: INT8, n_tup_upd: INT8, n_tup_del: INT8, n_tup_hot_upd: INT8,
        n_tup_newpage_upd: INT8, n_live_tup: INT8, n_dead_tup: INT8, n_mod_since_analyze: INT8,
        n_ins_since_vacuum: INT8, last_vacuum: TIMESTAMPTZ, last_autovacuum: TIMESTAMPTZ,
        last_analyze: TIMESTAMPTZ, last_autoanalyze: TIMESTAMPTZ, vacuum_count: INT8,
        autovacuum_count: INT8, analyze_count: INT8, autoanalyze_count: INT8,
        total_vacuum_time: FLOAT8, total_autovacuum_time: FLOAT8, total_analyze_time: FLOAT8,
        total_autoanalyze_time: FLOAT8,
    }
    12270 pg_stat_database in activity {
        datid: OID, datname: NAME, numbackends: INT4, xact_commit: INT8, xact_rollback: INT8,
        blks_read: INT8, blks_hit: INT8, tup_returned: INT8, tup_fetched: INT8, tup_inserted: INT8,
        tup_updated: INT8, tup_deleted: INT8, conflicts: INT8, temp_files: INT8, temp_bytes: INT8,
        deadlocks: INT8, checksum_failures: INT8, checksum_last_failure: TIMESTAMPTZ,
        blk_read_time: FLOAT8, blk_write_time: FLOAT8, session_time: FLOAT8, active_time: FLOAT8,
        idle_in_transaction_time: FLOAT8, sessions: INT8, sessions_abandoned: INT8,
        sessions_fatal: INT8, sessions_killed: INT8, parallel_workers_to_launch: INT8,
        parallel_workers_launched: INT8, stats_reset: TIMESTAMPTZ,
    }
    12266 pg_stat_replication_slots {
        slot_name: TEXT, spill_txns: INT8, spill_count: INT8, spill_bytes: INT8, stream_txns: INT8,
        stream_count: INT8, stream_bytes: INT8, total_txns: INT8, total_bytes: INT8,
        stats_reset: TIMESTAMPTZ,
    }
    12248 pg_stat_subscription {
        subid: OID, subname: NAME, worker_type: TEXT, pid: INT4, leader_pid: INT4, relid: OID,
        received_lsn: PG_LSN, last_msg_send_time: TIMESTAMPTZ, last_msg_receipt_time: TIMESTAMPTZ,
        latest_end_lsn: PG_LSN, latest_end_time: TIMESTAMPTZ,
    }
    12347 pg_stat_subscription_stats {
        subid: OID, subname: NAME, apply_error_count: INT8, sync_error_count: INT8,
        confl_insert_exists: INT8, confl_update_origin_differs: INT8, confl_update_exists: INT8,
        confl_update_missing: INT8, confl_delete_origin_differs: INT8, confl_delete_missing: INT8,
        confl_multiple_unique_conflicts: INT8, stats_reset: TIMESTAMPTZ,
    }
    12279 pg_stat_user_functions {
        funcid: OID, schemaname: NAME, funcname: NAME, calls: INT8, total_time: FLOAT8,
        self_time: FLOAT8,
    }
    12196 pg_stat_user_indexes in activity {
        relid: OID, indexrelid: OID, schemaname: NAME, relname: NAME, indexrelname: NAME,
        idx_scan: INT8, last_idx_scan: TIMESTAMPTZ, idx_tup_read: INT8, idx_tup_fetch: INT8,
    }
    12165 pg_stat_user_tables in activity {
        relid: OID, schemaname: NAME, relname: NAME, seq_scan: INT8, last_seq_scan: TIMESTAMPTZ,
        seq_tup_read: INT8, idx_scan: INT8, last_idx_scan: TIMESTAMPTZ, idx_tup_fetch: INT8,
        n_tup_ins: INT8, n_tup_upd: INT8, n_tup_del: INT8, n_tup_hot_upd: INT8,
        n_tup_newpage_upd: INT8, n_live_tup: INT8, n_dead_tup: INT8, n_mod_since_analyze: INT8,
        n_ins_since_vacuum: INT8, last_vacuum: TIMESTAMPTZ, last_autovacuum: TIMESTAMPTZ,
        last_analyze: TIMESTAMPTZ, last_autoanalyze: TIMESTAMPTZ, vacuum_count: INT8,
        autovacuum_count: INT8, analyze_count: INT8, autoanalyze_count: INT8,
        total_vacuum_time: FLOAT8, total_autovacuum_time: FLOAT8, total_analyze_time: FLOAT8,
        total_autoanalyze_time: FLOAT8,
    }
    12240 pg_stat_wal_receiver {
        pid: INT4, status: TEXT, receive_start_lsn: PG_LSN, receive_start_tli: INT4,
        written_lsn: PG_LSN, flushed_lsn: PG_LSN, received_tli: INT4,
        last_msg_send_time: TIMESTAMPTZ, last_msg_receipt_time: TIMESTAMPTZ, latest_end_lsn: PG_LSN,
        latest_end_time: TIMESTAMPTZ, slot_name: TEXT, sender_host: TEXT, sender_port: INT4,
        conninfo: TEXT,
    }
    12053 pg_stats in statistic {
        schemaname: NAME, tablename: NAME, attname: NAME, inherited: BOOL, null_frac: FLOAT4,
        avg_width: INT4, n_distinct: FLOAT4, most_common_vals: ANYARRAY,
        most_common_freqs: FLOAT4_ARRAY, histogram_bounds: ANYARRAY, correlation: FLOAT4,
        most_common_elems: ANYARRAY, most_common_elem_freqs: FLOAT4_ARRAY,
        elem_count_histogram: FLOAT4_ARRAY, range_length_histogram: ANYARRAY,
        range_empty_frac: FLOAT4, range_bounds_histogram: ANYARRAY,
    }
    12058 pg_stats_ext {
        schemaname: NAME, tablename: NAME, statistics_schemaname: NAME, statistics_name: NAME,
        statistics_owner: NAME, attnames: NAME_ARRAY, exprs: TEXT_ARRAY, kinds: CHAR_ARRAY,
        inherited: BOOL, n_distinct: BYTEA, dependencies: BYTEA, most_common_vals: TEXT_ARRAY,
        most_common_val_nulls: BOOL_ARRAY, most_common_freqs: FLOAT8_ARRAY,
        most_common_base_freqs: FLOAT8_ARRAY,
    }
    12063 pg_stats_ext_exprs {
        schemaname: NAME, tablename: NAME, statistics_schemaname: NAME, statistics_name: NAME,
        statistics_owner: NAME, expr: TEXT, inherited: BOOL, null_frac: FLOAT4, avg_width: INT4,
        n_distinct: FLOAT4, most_common_vals: ANYARRAY, most_common_freqs: FLOAT4_ARRAY,
        histogram_bounds: ANYARRAY, correlation: FLOAT4, most_common_elems: ANYARRAY,
        most_common_elem_freqs: FLOAT4_ARRAY, elem_count_histogram: FLOAT4_ARRAY,
    }
    12033 pg_tables in view {
        schemaname: NAME, tablename: NAME, tableowner: NAME, tablespace: NAME, hasindexes: BOOL,
        hasrules: BOOL, hastriggers: BOOL, rowsecurity: BOOL,
    }
    12138 pg_shmem_allocations_numa { name: TEXT, numa_node: INT4, size: INT8 }
    12122 pg_timezone_abbrevs in zone { abbrev: TEXT, utc_offset: INTERVAL, is_dst: BOOL }
    12126 pg_timezone_names in zone { name: TEXT, abbrev: TEXT, utc_offset: INTERVAL, is_dst: BOOL }
    12014 pg_user in role {
        usename: NAME, usesysid: OID, usecreatedb: BOOL, usesuper: BOOL, userepl: BOOL,
        usebypassrls: BOOL, passwd: TEXT, valuntil: TIMESTAMPTZ, useconfig: TEXT_ARRAY,
    }
    12338 pg_user_mappings {
        umid: OID, srvid: OID, srvname: NAME, umuser: OID, usename: NAME, umoptions: TEXT_ARRAY,
    }
    12028 pg_views in view { schemaname: NAME, viewname: NAME, viewowner: NAME, definition: TEXT }
}
