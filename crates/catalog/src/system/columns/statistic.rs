//! Columns of the views of PostgreSQL 18 that tell how relations are used and what long commands
//! have done.
//!
//! The system's own relations are computed: they have no pages and nothing of theirs is counted, so
//! the views of them alone are empty. So are those of replication and of what is not reported here.

use crate::system::relations;

relations! {
    PG_CATALOG;
    12174 pg_statio_all_tables in io_statistic {
        relid: OID, schemaname: NAME, relname: NAME, heap_blks_read: INT8, heap_blks_hit: INT8,
        idx_blks_read: INT8, idx_blks_hit: INT8, toast_blks_read: INT8, toast_blks_hit: INT8,
        tidx_blks_read: INT8, tidx_blks_hit: INT8,
    }
    12183 pg_statio_user_tables in io_statistic {
        relid: OID, schemaname: NAME, relname: NAME, heap_blks_read: INT8, heap_blks_hit: INT8,
        idx_blks_read: INT8, idx_blks_hit: INT8, toast_blks_read: INT8, toast_blks_hit: INT8,
        tidx_blks_read: INT8, tidx_blks_hit: INT8,
    }
    12179 pg_statio_sys_tables {
        relid: OID, schemaname: NAME, relname: NAME, heap_blks_read: INT8, heap_blks_hit: INT8,
        idx_blks_read: INT8, idx_blks_hit: INT8, toast_blks_read: INT8, toast_blks_hit: INT8,
        tidx_blks_read: INT8, tidx_blks_hit: INT8,
    }
    12200 pg_statio_all_indexes in io_statistic {
        relid: OID, indexrelid: OID, schemaname: NAME, relname: NAME, indexrelname: NAME,
        idx_blks_read: INT8, idx_blks_hit: INT8,
    }
    12209 pg_statio_user_indexes in io_statistic {
        relid: OID, indexrelid: OID, schemaname: NAME, relname: NAME, indexrelname: NAME,
        idx_blks_read: INT8, idx_blks_hit: INT8,
    }
    12205 pg_statio_sys_indexes {
        relid: OID, indexrelid: OID, schemaname: NAME, relname: NAME, indexrelname: NAME,
        idx_blks_read: INT8, idx_blks_hit: INT8,
    }
    12213 pg_statio_all_sequences in io_statistic {
        relid: OID, schemaname: NAME, relname: NAME, blks_read: INT8, blks_hit: INT8,
    }
    12222 pg_statio_user_sequences in io_statistic {
        relid: OID, schemaname: NAME, relname: NAME, blks_read: INT8, blks_hit: INT8,
    }
    12218 pg_statio_sys_sequences {
        relid: OID, schemaname: NAME, relname: NAME, blks_read: INT8, blks_hit: INT8,
    }
    12156 pg_stat_sys_tables {
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
    12192 pg_stat_sys_indexes {
        relid: OID, indexrelid: OID, schemaname: NAME, relname: NAME, indexrelname: NAME,
        idx_scan: INT8, last_idx_scan: TIMESTAMPTZ, idx_tup_read: INT8, idx_tup_fetch: INT8,
    }
    12151 pg_stat_xact_all_tables in io_statistic {
        relid: OID, schemaname: NAME, relname: NAME, seq_scan: INT8, seq_tup_read: INT8,
        idx_scan: INT8, idx_tup_fetch: INT8, n_tup_ins: INT8, n_tup_upd: INT8, n_tup_del: INT8,
        n_tup_hot_upd: INT8, n_tup_newpage_upd: INT8,
    }
    12170 pg_stat_xact_user_tables in io_statistic {
        relid: OID, schemaname: NAME, relname: NAME, seq_scan: INT8, seq_tup_read: INT8,
        idx_scan: INT8, idx_tup_fetch: INT8, n_tup_ins: INT8, n_tup_upd: INT8, n_tup_del: INT8,
        n_tup_hot_upd: INT8, n_tup_newpage_upd: INT8,
    }
    12161 pg_stat_xact_sys_tables {
        relid: OID, schemaname: NAME, relname: NAME, seq_scan: INT8, seq_tup_read: INT8,
        idx_scan: INT8, idx_tup_fetch: INT8, n_tup_ins: INT8, n_tup_upd: INT8, n_tup_del: INT8,
        n_tup_hot_upd: INT8, n_tup_newpage_upd: INT8,
    }
    12284 pg_stat_xact_user_functions {
        funcid: OID, schemaname: NAME, funcname: NAME, calls: INT8, total_time: FLOAT8,
        self_time: FLOAT8,
    }
    12275 pg_stat_database_conflicts in io_statistic {
        datid: OID, datname: NAME, confl_tablespace: INT8, confl_lock: INT8, confl_snapshot: INT8,
        confl_bufferpin: INT8, confl_deadlock: INT8, confl_active_logicalslot: INT8,
    }
    12301 pg_stat_io {
        backend_type: TEXT, object: TEXT, context: TEXT, reads: INT8, read_bytes: NUMERIC,
        read_time: FLOAT8, writes: INT8, write_bytes: NUMERIC, write_time: FLOAT8, writebacks: INT8,
        writeback_time: FLOAT8, extends: INT8, extend_bytes: NUMERIC, extend_time: FLOAT8,
        hits: INT8, evictions: INT8, reuses: INT8, fsyncs: INT8, fsync_time: FLOAT8,
        stats_reset: TIMESTAMPTZ,
    }
    12236 pg_stat_slru {
        name: TEXT, blks_zeroed: INT8, blks_hit: INT8, blks_read: INT8, blks_written: INT8,
        blks_exists: INT8, flushes: INT8, truncates: INT8, stats_reset: TIMESTAMPTZ,
    }
    12231 pg_stat_replication in replication {
        pid: INT4, usesysid: OID, usename: NAME, application_name: TEXT, client_addr: INET,
        client_hostname: TEXT, client_port: INT4, backend_start: TIMESTAMPTZ, backend_xmin: XID,
        state: TEXT, sent_lsn: PG_LSN, write_lsn: PG_LSN, flush_lsn: PG_LSN, replay_lsn: PG_LSN,
        write_lag: INTERVAL, flush_lag: INTERVAL, replay_lag: INTERVAL, sync_priority: INT4,
        sync_state: TEXT, reply_time: TIMESTAMPTZ,
    }
    12244 pg_stat_recovery_prefetch in io_statistic {
        stats_reset: TIMESTAMPTZ, prefetch: INT8, hit: INT8, skip_init: INT8, skip_new: INT8,
        skip_fpw: INT8, skip_rep: INT8, wal_distance: INT4, block_distance: INT4, io_depth: INT4,
    }
    12309 pg_stat_progress_analyze {
        pid: INT4, datid: OID, datname: NAME, relid: OID, phase: TEXT, sample_blks_total: INT8,
        sample_blks_scanned: INT8, ext_stats_total: INT8, ext_stats_computed: INT8,
        child_tables_total: INT8, child_tables_done: INT8, current_child_table_relid: OID,
        delay_time: FLOAT8,
    }
    12329 pg_stat_progress_basebackup {
        pid: INT4, phase: TEXT, backup_total: INT8, backup_streamed: INT8, tablespaces_total: INT8,
        tablespaces_streamed: INT8,
    }
    12319 pg_stat_progress_cluster {
        pid: INT4, datid: OID, datname: NAME, relid: OID, command: TEXT, phase: TEXT,
        cluster_index_relid: OID, heap_tuples_scanned: INT8, heap_tuples_written: INT8,
        heap_blks_total: INT8, heap_blks_scanned: INT8, index_rebuild_count: INT8,
    }
    12333 pg_stat_progress_copy {
        pid: INT4, datid: OID, datname: NAME, relid: OID, command: TEXT, type: TEXT,
        bytes_processed: INT8, bytes_total: INT8, tuples_processed: INT8, tuples_excluded: INT8,
        tuples_skipped: INT8,
    }
    12324 pg_stat_progress_create_index {
        pid: INT4, datid: OID, datname: NAME, relid: OID, index_relid: OID, command: TEXT,
        phase: TEXT, lockers_total: INT8, lockers_done: INT8, current_locker_pid: INT8,
        blocks_total: INT8, blocks_done: INT8, tuples_total: INT8, tuples_done: INT8,
        partitions_total: INT8, partitions_done: INT8,
    }
    12314 pg_stat_progress_vacuum {
        pid: INT4, datid: OID, datname: NAME, relid: OID, phase: TEXT, heap_blks_total: INT8,
        heap_blks_scanned: INT8, heap_blks_vacuumed: INT8, index_vacuum_count: INT8,
        max_dead_tuple_bytes: INT8, dead_tuple_bytes: INT8, num_dead_item_ids: INT8,
        indexes_total: INT8, indexes_processed: INT8, delay_time: FLOAT8,
    }
    12355 pg_aios {
        pid: INT4, io_id: INT4, io_generation: INT8, state: TEXT, operation: TEXT, off: INT8,
        length: INT8, target: TEXT, handle_data_len: INT2, raw_result: INT4, result: TEXT,
        target_desc: TEXT, f_sync: BOOL, f_localmem: BOOL, f_buffered: BOOL,
    }
}
