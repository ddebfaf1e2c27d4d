//! Columns of the relations in `throng`, which PostgreSQL has not.

use crate::system::relations;

relations! {
    THRONG;
    15901 waits in waiting {
        wait_event_type: TEXT, wait_event: TEXT, object: TEXT, waiter: TEXT, count: INT8,
        total_ms: FLOAT8, avg_us: FLOAT8, p50_us: FLOAT8, p99_us: FLOAT8, max_ms: FLOAT8,
        holder: INT4, holder_runs: TEXT, remedy: TEXT,
    }
    15902 waiting_now in waiting {
        pid: INT4, who: TEXT, wait_event_type: TEXT, wait_event: TEXT, object: TEXT,
        waited_ms: FLOAT8, holders: INT4_ARRAY, root_blocker: INT4, blocker_state: TEXT,
        blocker_runs: TEXT, remedy: TEXT,
    }
    15903 structures in waiting {
        structure: TEXT, calls: INT8, samples: INT8, total_ms: FLOAT8, avg_us: FLOAT8,
        percent_of_running: FLOAT8,
    }
    15904 counters in waiting {
        counter: TEXT, count: INT8, meaning: TEXT,
    }
    15905 stalls in waiting {
        pid: INT4, core: INT4, began: TIMESTAMPTZ, held_ms: FLOAT8, cpu_ms: FLOAT8, running: BOOL,
        statement: TEXT,
    }
}
