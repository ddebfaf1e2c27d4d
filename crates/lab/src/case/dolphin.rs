//! `dolphin`: 1000 concurrent range scans of sensor readings that do not fit the pool, and how
//! files are read.

use std::time::Duration;

use super::served::{self, Form, Inside, ServedBench, Start};
use super::{About, Bench, Case, Effect, Metric, Pace, Role, Setup, Variant};
use crate::Result;
use crate::load::workload::scan::Scan;

pub struct Dolphin;

/// A million readings are about 60 MB of table and index, four times the pool.
const SENSORS: i64 = 200;
const READINGS: i64 = 5_000;
const RANGE: i64 = 200;

const FORMS: &[Form] = &[
    Form {
        name: "map_per_read",
        role: Role::Was,
        about: "each read maps the file and unmaps it",
        settings: &[("lab_read", "map_per_read")],
    },
    Form {
        name: "mmap",
        role: Role::Other,
        about: "reads copy out of one mapping of the file",
        settings: &[("lab_read", "mmap")],
    },
    Form {
        name: "pread",
        role: Role::Became,
        about: "reads are by offset, nothing is mapped: the default",
        settings: &[("lab_read", "pread")],
    },
];

impl Case for Dolphin {
    fn name(&self) -> &'static str {
        "dolphin"
    }

    fn about(&self) -> About {
        About {
            title: "1000 concurrent scans, and how pages come from files",
            text: "Range scans of sensor readings by 1000 clients, with a pool that holds a part of them, so that pages are read \
                   all the time: out of mappings made for each read, out of one mapping a file, and by offset into the pool. \
                   In DolphinDB all workers waited for the kernel's lock on the address space, which a library's \
                   mmap and munmap for each open file held; without them 20 queries at once ran 2.4 to 3.2 times faster.",
            source: "DolphinDB, three months of sensor data, about 1000 concurrent jobs, 100 workers a node",
            operations: "scans",
            inside: "all waiting of sessions, for pages from files",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        served::variants(FORMS)
    }

    fn default_clients(&self, _cores: usize) -> Vec<usize> {
        vec![1000]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect {
            was: "map_per_read",
            became: "pread",
            metric: Metric::Throughput,
            published: Some(2.4),
            figure: "20 queries at once 2.4 to 3.2 times faster",
        }]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["disk::real"]
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
            memory: "16MB",
            settings: served::settings(FORMS, variant)?,
            clients: setup.most_clients,
        };
        let workload = Box::new(Scan::new(SENSORS, READINGS, RANGE));
        let bench = ServedBench::prepare(setup, &start, workload, Inside::Waiting("DataFileRead"))?;
        Ok(Box::new(bench))
    }
}
