//! `placement`: threads where the kernel puts them, threads bound to cores, and structures split
//! per memory node.
//!
//! Each thread takes new pages from the pool into a file of its own and reads others it took
//! before, so that free frames and the pages' memory are what all share. With one memory node two
//! are made up, which splits the free frames and leaves the memory where it is.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use throng_buffer::{Pool, PoolConfig, retry_blocking};
use throng_disk::{CheckedDisk, Disk, RealDisk, RelFiles};
use throng_sync::Nodes;
use throng_sync::topology::{Topology, allowed_cores, pin_current_thread};
use throng_types::{BlockNo, FileId, PageId};
use throng_wal::{Wal, WalConfig};

use super::{About, Bench, Case, Effect, Metric, Number, Pace, Role, Sample, Setup, Turn, Variant};
use crate::{Error, Result, crew};

pub struct Placement;

const POOL: usize = 64 << 20;
/// New pages taken together.
const PAGES: u32 = 8;
/// Pages read for each taken.
const READS: u32 = 8;
/// A file is cut when it has so many pages: all of them fit into the pool for a few threads.
const LONGEST: BlockNo = 512;

impl Case for Placement {
    fn name(&self) -> &'static str {
        "placement"
    }

    fn about(&self) -> About {
        About {
            title: "threads free or bound to cores, free frames and memory shared or split per node",
            text: "Threads take new pages from one pool and read pages they took before: wandering between cores, bound to one each, \
                   and bound with free frames and the pages' memory split per memory node (two made up where there is one). \
                   KingbaseES bound its processes evenly to cores and split hot structures per NUMA node because remote memory is 1.3 \
                   to 5 times slower; with the snapshot's bitmap that came to about 20 % tpmC on Intel and 5 to 6 % on Kunpeng 920.",
            source: "KingbaseES under TPC-C, 200 terminals",
            operations: "turns of 8 new pages and 64 reads",
            inside: "the threads' time in the pool",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |name, role, about| Variant { name, role, about };
        vec![
            variant("free", Role::Was, "threads wander, one stock of frames"),
            variant(
                "bound",
                Role::Became,
                "threads bound to cores, one stock of frames",
            ),
            variant(
                "split",
                Role::Further,
                "threads bound to cores, frames and their memory per node (default)",
            ),
        ]
    }

    fn default_clients(&self, cores: usize) -> Vec<usize> {
        super::doubling(cores.max(2) * 2)
    }

    fn effects(&self) -> Vec<Effect> {
        let effect = |was, became, figure| Effect {
            was,
            became,
            metric: Metric::Throughput,
            published: None,
            figure,
        };
        vec![
            effect(
                "free",
                "bound",
                "a gain; no figure is given for this step alone",
            ),
            effect(
                "bound",
                "split",
                "remote memory 1.3 to 5 times slower; no figure is given for this step alone",
            ),
        ]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["throng_buffer::frames::free_list"]
    }

    fn pace(&self) -> Pace {
        Pace {
            budget: Duration::from_secs(30),
            ..Pace::default()
        }
    }

    fn prepare(&self, variant: &Variant, setup: &Setup) -> Result<Box<dyn Bench>> {
        let cores = allowed_cores()?;
        let topology = Topology::detect()?;
        let (binds, nodes) = match variant.name {
            "free" => (false, Nodes::one()),
            "bound" => (true, Nodes::one()),
            "split" if topology.nodes().len() > 1 => (true, Nodes::of(&topology)),
            "split" => (true, Nodes::of(&Topology::fake(&cores, 2))),
            other => return Err(Error::usage(format!("placement has no variant {other}"))),
        };
        let path = setup.scratch.join(variant.name);
        let bench = Threads::open(&path, setup.most_clients, nodes)?;
        Ok(Box::new(Threads {
            cores: if binds { cores } else { Vec::new() },
            ..bench
        }))
    }
}

struct Threads {
    pool: Arc<Pool>,
    nodes: usize,
    /// Threads are bound to these in turn; to none where there are none.
    cores: Vec<usize>,
}

impl Threads {
    fn open(path: &Path, files: usize, nodes: Nodes) -> Result<Threads> {
        let disk: Arc<dyn Disk> = Arc::new(CheckedDisk::new(RealDisk::new(path)?));
        let relfiles = Arc::new(RelFiles::new(disk.clone())?);
        for file in 0..files {
            relfiles.create(file_of(file))?;
        }
        let wal = Wal::open(disk, WalConfig::default(), Wal::FIRST)?;
        let count = nodes.count();
        let config = PoolConfig {
            nodes,
            ..PoolConfig::new(POOL)
        };
        Ok(Threads {
            pool: Pool::open(config, relfiles, wal)?,
            nodes: count,
            cores: Vec::new(),
        })
    }

    /// Takes new pages and reads some of those that came before them.
    fn turn(&self, file: FileId) -> throng_types::Result<u64> {
        let blocks = self.pool.blocks(file)?;
        if blocks >= LONGEST {
            self.pool.truncate(file, 0)?;
        }
        let new = retry_blocking(|| self.pool.extend(file, PAGES))?;
        let mut sum = 0;
        for read in 0..PAGES * READS {
            // A step that has no factor in common with the file's length goes through all of it.
            let block = read.wrapping_mul(37) % new.end;
            let page = PageId::new(file, block);
            sum += retry_blocking(|| self.pool.read(page, |page| page.u64(64)))?;
        }
        Ok(sum)
    }
}

fn file_of(thread: usize) -> FileId {
    FileId(100 + thread as u32)
}

impl Bench for Threads {
    fn run(&mut self, turn: &Turn) -> Result<Sample> {
        let this = &*self;
        let mut sample = crew::run(turn, |worker| {
            if !this.cores.is_empty() {
                let core = this.cores[worker.index % this.cores.len()];
                // A thread that may not be bound wanders: the variant then shows no difference.
                let _ = pin_current_thread(core);
            }
            let file = file_of(worker.index);
            while worker.goes_on() {
                if worker.step(|| this.turn(file)).is_err() {
                    return;
                }
            }
        })?;
        sample.numbers = vec![Number {
            name: "nodes",
            unit: "",
            value: self.nodes as f64,
        }];
        Ok(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::testing::run_variants;

    #[test]
    fn every_variant_runs_on_as_many_nodes_as_it_says() {
        let scratch = tempfile::tempdir().expect("a directory");
        let one_core = allowed_cores().expect("a mask").len() == 1;
        let turn = Duration::from_millis(30);
        run_variants(&Placement, scratch.path(), &[3], turn, |variant, sample| {
            let nodes = sample.numbers[0].value;
            assert_eq!(nodes > 1.0, variant.name == "split" && !one_core);
        });
    }
}
