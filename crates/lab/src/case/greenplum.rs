//! `greenplum`: `pgbench -S` with 100 clients, and the spinlocks that every row read takes.
//!
//! Greenplum 6 is PostgreSQL 9.4: pinning a page, unpinning it and entering its latch each take a
//! spinlock. The variants are a server in which that is so, with the spinlock in three forms, and
//! the server as it is, which takes none on this way.

use std::time::Duration;

use super::served::{self, Form, Inside, ServedBench, Start};
use super::{About, Bench, Case, Effect, Metric, Pace, Role, Setup, Variant};
use crate::Result;
use crate::load::dialect::Dialect;
use crate::load::sql::Mode;
use crate::load::workload::select::Select;

pub struct Greenplum;

/// Of pgbench's tables; the published run's was 1000, which would take a minute to load.
const SCALE: i64 = 5;

const FORMS: &[Form] = &[
    Form {
        name: "tas",
        role: Role::Was,
        about: "spinlocks by unconditional test-and-set, around pins and latches",
        settings: &[
            ("lab_spinlock", "tas"),
            ("lab_pin", "spin"),
            ("lab_latch", "spin"),
        ],
    },
    Form {
        name: "ttas",
        role: Role::Other,
        about: "spinlocks that look before they test and set",
        settings: &[
            ("lab_spinlock", "ttas"),
            ("lab_pin", "spin"),
            ("lab_latch", "spin"),
        ],
    },
    Form {
        name: "cas",
        role: Role::Became,
        about: "spinlocks that compare, then swap",
        settings: &[
            ("lab_spinlock", "cas"),
            ("lab_pin", "spin"),
            ("lab_latch", "spin"),
        ],
    },
    Form {
        name: "none",
        role: Role::Further,
        about: "no spinlock on the way: the default",
        settings: &[],
    },
];

impl Case for Greenplum {
    fn name(&self) -> &'static str {
        "greenplum"
    }

    fn about(&self) -> About {
        About {
            title: "100 clients that read by key, and the spinlock's test-and-set",
            text: "Point reads by 100 clients on a server whose pins and latches are under spinlocks, with each form of the \
                   spinlock, and on one that takes none. On 64-core Kunpeng machines Greenplum 6.9.1 reached 805 TPS \
                   with 82 % of its CPU in s_lock's unconditional test-and-set, and 3,800 once it compared first.",
            source: "Greenplum 6.9.1 on Kunpeng (aarch64), 4 segments, pgbench -S -c 100 -j 100, scale 1000",
            operations: "transactions",
            inside: "the time in which sessions ran, in pins and latches",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        served::variants(FORMS)
    }

    fn default_clients(&self, _cores: usize) -> Vec<usize> {
        vec![100]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![
            Effect {
                was: "tas",
                became: "cas",
                metric: Metric::Throughput,
                published: Some(3800.0 / 805.0),
                figure: "805 to about 3,800 TPS with 100 clients",
            },
            Effect {
                was: "tas",
                became: "none",
                metric: Metric::Throughput,
                published: None,
                figure: "no figure: this goes beyond what was published",
            },
        ]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["sync::bit", "sync::latch", "sync::pin", "sync::spin"]
    }

    fn pace(&self) -> Pace {
        Pace {
            rounds: 4,
            budget: Duration::from_secs(48),
            shortest: Duration::from_millis(500),
            longest: Duration::from_secs(3),
        }
    }

    fn prepare(&self, variant: &Variant, setup: &Setup<'_>) -> Result<Box<dyn Bench>> {
        let start = Start {
            name: variant.name,
            memory: "256MB",
            settings: served::settings(FORMS, variant)?,
            clients: setup.most_clients,
        };
        let workload = Box::new(Select::new(SCALE, Dialect::Postgres));
        let mut bench =
            ServedBench::prepare(setup, &start, workload, Inside::Running(&["pin", "latch"]))?;
        // pgbench's default, as in the published run.
        bench.mode = Mode::Simple;
        Ok(Box::new(bench))
    }
}
