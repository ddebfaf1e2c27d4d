//! What `pg_settings_get_flags` tells of settings.

/// A flag, and the settings that have it, by name.
type Flagged = (&'static str, &'static [&'static str]);

/// In the order in which PostgreSQL lists them.
const FLAGS: &[Flagged] = &[
    (
        "EXPLAIN",
        &[
            "constraint_exclusion",
            "cpu_index_tuple_cost",
            "cpu_operator_cost",
            "cpu_tuple_cost",
            "cursor_tuple_fraction",
            "debug_parallel_query",
            "effective_cache_size",
            "effective_io_concurrency",
            "enable_async_append",
            "enable_bitmapscan",
            "enable_distinct_reordering",
            "enable_gathermerge",
            "enable_group_by_reordering",
            "enable_hashagg",
            "enable_hashjoin",
            "enable_incremental_sort",
            "enable_indexonlyscan",
            "enable_indexscan",
            "enable_material",
            "enable_memoize",
            "enable_mergejoin",
            "enable_nestloop",
            "enable_parallel_append",
            "enable_parallel_hash",
            "enable_partition_pruning",
            "enable_partitionwise_aggregate",
            "enable_partitionwise_join",
            "enable_presorted_aggregate",
            "enable_self_join_elimination",
            "enable_seqscan",
            "enable_sort",
            "enable_tidscan",
            "from_collapse_limit",
            "geqo",
            "geqo_effort",
            "geqo_generations",
            "geqo_pool_size",
            "geqo_seed",
            "geqo_selection_bias",
            "geqo_threshold",
            "hash_mem_multiplier",
            "jit",
            "jit_above_cost",
            "jit_inline_above_cost",
            "jit_optimize_above_cost",
            "join_collapse_limit",
            "maintenance_io_concurrency",
            "max_parallel_workers",
            "max_parallel_workers_per_gather",
            "min_parallel_index_scan_size",
            "min_parallel_table_scan_size",
            "parallel_leader_participation",
            "parallel_setup_cost",
            "parallel_tuple_cost",
            "plan_cache_mode",
            "random_page_cost",
            "recursive_worktable_factor",
            "search_path",
            "seq_page_cost",
            "temp_buffers",
            "work_mem",
        ],
    ),
    (
        "NO_RESET",
        &[
            "transaction_deferrable",
            "transaction_isolation",
            "transaction_read_only",
        ],
    ),
    (
        "NO_RESET_ALL",
        &[
            "transaction_deferrable",
            "transaction_isolation",
            "transaction_read_only",
        ],
    ),
    (
        "NOT_IN_SAMPLE",
        &[
            "allow_in_place_tablespaces",
            "allow_system_table_mods",
            "application_name",
            "backtrace_functions",
            "block_size",
            "data_checksums",
            "data_directory_mode",
            "debug_assertions",
            "debug_discard_caches",
            "debug_io_direct",
            "debug_logical_replication_streaming",
            "debug_parallel_query",
            "huge_pages_status",
            "ignore_checksum_failure",
            "ignore_invalid_pages",
            "ignore_system_indexes",
            "in_hot_standby",
            "integer_datetimes",
            "jit_debugging_support",
            "jit_dump_bitcode",
            "jit_expressions",
            "jit_profiling_support",
            "jit_tuple_deforming",
            "max_function_args",
            "max_identifier_length",
            "max_index_keys",
            "num_os_semaphores",
            "post_auth_delay",
            "pre_auth_delay",
            "remove_temp_files_after_crash",
            "segment_size",
            "send_abort_for_crash",
            "send_abort_for_kill",
            "server_encoding",
            "server_version",
            "server_version_num",
            "shared_memory_size",
            "shared_memory_size_in_huge_pages",
            "ssl_library",
            "trace_connection_negotiation",
            "trace_notify",
            "trace_sort",
            "transaction_deferrable",
            "transaction_isolation",
            "transaction_read_only",
            "wal_block_size",
            "wal_consistency_checking",
            "wal_segment_size",
            "zero_damaged_pages",
        ],
    ),
    (
        "RUNTIME_COMPUTED",
        &[
            "data_checksums",
            "data_directory_mode",
            "num_os_semaphores",
            "shared_memory_size",
            "shared_memory_size_in_huge_pages",
            "wal_segment_size",
        ],
    ),
];

/// The flags of a setting that there is.
pub fn flags(name: &str) -> Vec<&'static str> {
    let name = name.to_ascii_lowercase();
    let has = |(_, names): &&Flagged| names.binary_search(&name.as_str()).is_ok();
    FLAGS.iter().filter(has).map(|(flag, _)| *flag).collect()
}

#[cfg(test)]
mod tests {
    use super::super::inert::find_inert;
    use super::*;

    #[test]
    fn the_names_are_in_order_and_are_settings() {
        for (flag, names) in FLAGS {
            assert!(names.is_sorted(), "{flag}");
            for name in *names {
                let known = super::super::find(name).is_some() || find_inert(name).is_some();
                assert!(known, "{name}");
            }
        }
    }
}
