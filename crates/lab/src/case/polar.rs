//! `polar`: 64 concurrent COPYs into one table with a primary key, and what is done under the
//! extension lock.

use std::time::Duration;

use super::served::{self, Form, Inside, ServedBench, Start};
use super::{About, Bench, Case, Effect, Metric, Pace, Role, Setup, Variant};
use crate::Result;
use crate::load::workload::copy::Copy;

pub struct Polar;

/// Of one COPY.
const ROWS: i64 = 1000;

const FORMS: &[Form] = &[
    Form {
        name: "wide",
        role: Role::Was,
        about: "finding, writing and clearing 4 MB of pages under the lock, one map of free space for all",
        settings: &[
            ("lab_extend_lock", "wide"),
            ("lab_extend_bulk", "4MB"),
            ("lab_free_space", "shared"),
        ],
    },
    Form {
        name: "narrow",
        role: Role::Became,
        about: "only size, mapping and marking under the lock, all else as before",
        settings: &[
            ("lab_extend_lock", "narrow"),
            ("lab_extend_bulk", "4MB"),
            ("lab_free_space", "shared"),
        ],
    },
    Form {
        name: "default",
        role: Role::Further,
        about: "the narrow lock, extension by 512 kB, free space by core: the default",
        settings: &[],
    },
];

impl Case for Polar {
    fn name(&self) -> &'static str {
        "polar"
    }

    fn about(&self) -> About {
        About {
            title: "64 concurrent COPYs into one table, and what is done under its extension lock",
            text: "Each client loads 1000 rows of about 100 bytes a COPY; a relation grows either wholly under its extension lock \
                   or with only size, mapping and marking under it. In PolarDB the lock was 98.70 % of the time off the CPU \
                   and 7.86 % after, and throughput rose from 35.73 to 41.40 TPS.",
            source: "PolarDB for PostgreSQL, 64 concurrent COPY, extension by 4 MB",
            operations: "COPYs",
            inside: "all waiting of sessions, for the extension lock",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        served::variants(FORMS)
    }

    fn default_clients(&self, _cores: usize) -> Vec<usize> {
        vec![64]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![
            Effect {
                was: "wide",
                became: "narrow",
                metric: Metric::Inside,
                published: Some(98.70 / 7.86),
                figure: "from 98.70 % to 7.86 % of the time off the CPU",
            },
            Effect {
                was: "wide",
                became: "narrow",
                metric: Metric::Throughput,
                published: Some(41.40 / 35.73),
                figure: "35.73 to 41.40 TPS",
            },
            Effect {
                was: "wide",
                became: "default",
                metric: Metric::Inside,
                published: None,
                figure: "no figure: this goes beyond what was published",
            },
        ]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["buffer::extend"]
    }

    fn pace(&self) -> Pace {
        Pace {
            rounds: 5,
            budget: Duration::from_secs(40),
            shortest: Duration::from_millis(500),
            longest: Duration::from_secs(3),
        }
    }

    fn prepare(&self, variant: &Variant, setup: &Setup<'_>) -> Result<Box<dyn Bench>> {
        let start = Start {
            name: variant.name,
            memory: "64MB",
            settings: served::settings(FORMS, variant)?,
            clients: setup.most_clients,
        };
        let workload = Box::new(Copy::new(ROWS));
        let mut bench = ServedBench::prepare(setup, &start, workload, Inside::Waiting("extend"))?;
        // A table that grew in all turns would fill the disk, and be another one in each.
        bench.afresh = true;
        Ok(Box::new(bench))
    }
}
