//! `power8`: updates by primary key, all in memory, as clients grow; how a page's latch is entered.
//!
//! The published run only read; a read enters no latch here, in no form, so the clients update.

use std::time::Duration;

use super::served::{self, Form, Inside, ServedBench, Start};
use super::{About, Bench, Case, Effect, Metric, Pace, Role, Setup, Variant};
use crate::Result;
use crate::load::workload::update::Update;

pub struct Power8;

/// Of pgbench's tables: half a million rows.
const SCALE: i64 = 5;

const FORMS: &[Form] = &[
    Form {
        name: "spin",
        role: Role::Was,
        about: "latches under spinlocks, as before PostgreSQL 9.5",
        settings: &[("lab_latch", "spin")],
    },
    Form {
        name: "cas",
        role: Role::Became,
        about: "latches by loops of compare-and-swap: the default",
        settings: &[("lab_latch", "cas")],
    },
    Form {
        name: "add",
        role: Role::Other,
        about: "latches by adding first and undoing what was not allowed",
        settings: &[("lab_latch", "add")],
    },
];

impl Case for Power8 {
    fn name(&self) -> &'static str {
        "power8"
    }

    fn about(&self) -> About {
        About {
            title: "updates by key as clients grow: how a page's latch is entered",
            text: "Updates by key by more and more clients, with the page's latch under a spinlock, by a loop of \
                   compare-and-swap, and by an optimistic add. On a Power8 with up \
                   to 512 hardware threads PostgreSQL's throughput fell beyond 32 clients under spinlocks; atomic pins \
                   doubled its linear region to over 800,000 TPS.",
            source: "PostgreSQL 9.4 to 9.6 on IBM E880 (Power8), pgbench SELECT by primary key, all in memory",
            operations: "transactions",
            inside: "the time in which sessions ran, in latches",
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
        ]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["sync::latch", "sync::spin"]
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
        let workload = Box::new(Update::new(SCALE));
        let bench = ServedBench::prepare(setup, &start, workload, Inside::Running("latch"))?;
        Ok(Box::new(bench))
    }
}
