//! `power8`: reads by primary key, all in memory, as clients grow; how a page is pinned and its
//! latch entered.

use std::time::Duration;

use super::served::{self, Form, Inside, ServedBench, Start};
use super::{About, Bench, Case, Effect, Metric, Pace, Role, Setup, Variant};
use crate::Result;
use crate::load::dialect::Dialect;
use crate::load::workload::select::Select;

pub struct Power8;

/// Of pgbench's tables: half a million rows.
const SCALE: i64 = 5;

const FORMS: &[Form] = &[
    Form {
        name: "spin",
        role: Role::Was,
        about: "pins and latches under spinlocks, as before PostgreSQL 9.5",
        settings: &[("lab_pin", "spin"), ("lab_latch", "spin")],
    },
    Form {
        name: "cas",
        role: Role::Became,
        about: "pins and latches by loops of compare-and-swap",
        settings: &[("lab_pin", "cas"), ("lab_latch", "cas")],
    },
    Form {
        name: "add",
        role: Role::Other,
        about: "pins and latches by adding first and undoing what was not allowed",
        settings: &[("lab_pin", "add"), ("lab_latch", "add")],
    },
    Form {
        name: "none",
        role: Role::Further,
        about: "reads that pin nothing and check a version: the default",
        settings: &[],
    },
];

impl Case for Power8 {
    fn name(&self) -> &'static str {
        "power8"
    }

    fn about(&self) -> About {
        About {
            title: "reads by key as clients grow: how a page is pinned and its latch entered",
            text: "Point reads by more and more clients, with the page's pin count and latch under a spinlock, by \
                   compare-and-swap loops, by optimistic adds, and with reads that write nothing. On a Power8 with up \
                   to 512 hardware threads PostgreSQL's throughput fell beyond 32 clients under spinlocks; atomic pins \
                   doubled its linear region to over 800,000 TPS.",
            source: "PostgreSQL 9.4 to 9.6 on IBM E880 (Power8), pgbench SELECT by primary key, all in memory",
            operations: "transactions",
            inside: "the time in which sessions ran, in pins and latches",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        served::variants(FORMS)
    }

    fn default_clients(&self, _cores: usize) -> Vec<usize> {
        vec![1, 4, 16, 64, 128]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![
            Effect {
                was: "spin",
                became: "cas",
                metric: Metric::Throughput,
                published: Some(2.0),
                figure: "the linear region doubled, to over 800,000 TPS",
            },
            Effect {
                was: "cas",
                became: "add",
                metric: Metric::Throughput,
                published: None,
                figure: "no gain in the pin, a very large one in the lightweight lock",
            },
            Effect {
                was: "spin",
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
            rounds: 3,
            budget: Duration::from_secs(60),
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
        let bench =
            ServedBench::prepare(setup, &start, workload, Inside::Running(&["pin", "latch"]))?;
        Ok(Box::new(bench))
    }
}
