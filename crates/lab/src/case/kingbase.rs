//! `kingbase`: TPC-C with 200 terminals, and how a snapshot learns which transactions run.

use std::time::Duration;

use super::served::{self, Form, Inside, ServedBench, Start};
use super::{About, Bench, Case, Effect, Metric, Pace, Role, Setup, Variant};
use crate::Result;
use crate::load::dialect::Dialect;
use crate::load::workload::tpcc::Tpcc;

pub struct Kingbase;

/// Loaded in seconds; with 200 terminals each has 100 where the specification gives it 10.
const WAREHOUSES: i64 = 2;

const FORMS: &[Form] = &[
    Form {
        name: "walk",
        role: Role::Was,
        about: "a snapshot walks over all sessions under a shared latch",
        settings: &[("lab_snapshot", "walk")],
    },
    Form {
        name: "bitmap",
        role: Role::Became,
        about: "a snapshot copies a bitmap of running transactions",
        settings: &[("lab_snapshot", "bitmap")],
    },
    Form {
        name: "csn",
        role: Role::Further,
        about: "a snapshot is one number read once: the default",
        settings: &[("lab_snapshot", "csn")],
    },
];

impl Case for Kingbase {
    fn name(&self) -> &'static str {
        "kingbase"
    }

    fn about(&self) -> About {
        About {
            title: "TPC-C with 200 terminals, and how a snapshot learns which transactions run",
            text: "TPC-C without think times, with snapshots by a walk over all sessions, by a bitmap of running transactions \
                   and by one commit sequence number. In KingbaseES with 200 terminals snapshots fell from over 6 % of \
                   the time to under 0.2 % with the bitmap, and tpmC rose by about 20 % on Intel, 5 to 6 % on Kunpeng 920.",
            source: "KingbaseES, TPC-C with 200 terminals, Intel and Kunpeng 920",
            operations: "transactions",
            inside: "the time in which sessions ran, in snapshots",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        served::variants(FORMS)
    }

    fn default_clients(&self, _cores: usize) -> Vec<usize> {
        vec![20, 200]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![
            Effect {
                was: "walk",
                became: "bitmap",
                metric: Metric::Inside,
                published: Some(30.0),
                figure: "from over 6 % of the time to under 0.2 % with 200 terminals",
            },
            Effect {
                was: "walk",
                became: "bitmap",
                metric: Metric::Throughput,
                published: Some(1.2),
                figure: "about 20 % more tpmC on Intel",
            },
            Effect {
                was: "walk",
                became: "csn",
                metric: Metric::Inside,
                published: None,
                figure: "no figure: this goes beyond what was published",
            },
        ]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["txn::snapshot", "txn::clock"]
    }

    fn pace(&self) -> Pace {
        Pace {
            rounds: 3,
            budget: Duration::from_secs(54),
            shortest: Duration::from_millis(500),
            longest: Duration::from_secs(3),
        }
    }

    fn prepare(&self, variant: &Variant, setup: &Setup<'_>) -> Result<Box<dyn Bench>> {
        let start = Start {
            name: variant.name,
            memory: "512MB",
            settings: served::settings(FORMS, variant)?,
            clients: setup.most_clients,
        };
        let workload = Box::new(Tpcc::new(WAREHOUSES, false, Dialect::Postgres));
        let bench = ServedBench::prepare(setup, &start, workload, Inside::Running(&["snapshot"]))?;
        Ok(Box::new(bench))
    }
}
