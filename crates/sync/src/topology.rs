//! Which cores there are, on which memory nodes, and which of them this process may use.
//!
//! Cores are named by the kernel's numbers. Nodes come from `/sys/devices/system/node`; where that
//! is missing (containers, other architectures) all cores are on node 0.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::cell::Cell;
use std::{fs, io, path::Path};

/// A core that this process may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core {
    /// The kernel's number.
    pub id: usize,
    /// The memory node it belongs to.
    pub node: usize,
}

/// The cores this process may use, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    cores: Vec<Core>,
    /// The nodes are made up: the kernel knows nothing of them.
    fake: bool,
}

impl Topology {
    /// Looks at the machine. Never empty: a process runs somewhere.
    pub fn detect() -> io::Result<Topology> {
        let allowed = allowed_cores()?;
        Ok(Topology::from_parts(
            &allowed,
            &read_nodes(Path::new("/sys/devices/system/node")),
        ))
    }

    /// A made-up machine of `nodes` equal nodes over `cores`, at most one a core: for tests of
    /// node-aware code, and for trying it where the machine has one node.
    pub fn fake(cores: &[usize], nodes: usize) -> Topology {
        let share = cores.len().div_ceil(nodes.max(1)).max(1);
        let cores = cores
            .iter()
            .enumerate()
            .map(|(i, &id)| Core {
                id,
                node: i / share,
            })
            .collect();
        Topology { cores, fake: true }
    }

    fn from_parts(allowed: &[usize], nodes: &[(usize, Vec<usize>)]) -> Topology {
        let node_of = |id| {
            nodes
                .iter()
                .find(|(_, cores)| cores.contains(&id))
                .map_or(0, |(n, _)| *n)
        };
        Topology {
            cores: allowed
                .iter()
                .map(|&id| Core {
                    id,
                    node: node_of(id),
                })
                .collect(),
            fake: false,
        }
    }

    /// Whether the nodes are made up.
    pub fn is_fake(&self) -> bool {
        self.fake
    }

    /// The same machine with no cores but these.
    pub fn only(mut self, cores: &[usize]) -> Topology {
        self.cores.retain(|core| cores.contains(&core.id));
        self
    }

    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// The nodes' numbers, ascending, each once.
    pub fn nodes(&self) -> Vec<usize> {
        let mut nodes: Vec<usize> = self.cores.iter().map(|core| core.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

/// The cores the calling thread may run on, ascending.
pub fn allowed_cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect())
}

const UNBOUND: usize = usize::MAX;

thread_local! {
    /// The one core this thread is bound to.
    static BOUND: Cell<usize> = const { Cell::new(UNBOUND) };
}

/// The one core that the calling thread has been bound to.
#[inline]
pub(crate) fn bound_core() -> Option<usize> {
    Some(BOUND.get()).filter(|&core| core != UNBOUND)
}

/// Binds the calling thread to one core.
pub fn pin_current_thread(core: usize) -> io::Result<()> {
    confine_current_thread(&[core])
}

/// Keeps the calling thread, and those that it starts from now on, on some cores.
pub fn confine_current_thread(cores: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &core in cores {
        if core >= CpuSet::MAX_CPU {
            let message = format!(
                "core {core} is beyond the {} that can be named",
                CpuSet::MAX_CPU
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        set.set(core);
    }
    sched_setaffinity(None, &set)?;
    BOUND.set(match cores {
        [core] => *core,
        _ => UNBOUND,
    });
    Ok(())
}

/// Reads a list as the kernel and `taskset` write it: `0-3,8`. Ascending, each once.
///
/// The error says what is wrong with the list, to be shown to whoever wrote it.
pub fn parse_core_list(list: &str) -> Result<Vec<usize>, String> {
    let number = |text: &str| match text.trim().parse::<usize>() {
        Ok(core) if core < CpuSet::MAX_CPU => Ok(core),
        Ok(core) => Err(format!(
            "core {core} is beyond the {} that can be named",
            CpuSet::MAX_CPU
        )),
        Err(_) => Err(format!(
            "\"{}\" in core list \"{list}\" is not a core number",
            text.trim()
        )),
    };
    let mut cores = Vec::new();
    for part in list.trim().split(',') {
        match part.split_once('-') {
            None => cores.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return Err(format!("core range \"{}\" runs backwards", part.trim()));
                }
                cores.extend(first..=last);
            }
        }
    }
    cores.sort_unstable();
    cores.dedup();
    Ok(cores)
}

/// `nodeN/cpulist` of each node below `dir`; what cannot be read is not there.
fn read_nodes(dir: &Path) -> Vec<(usize, Vec<usize>)> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let node = entry
                .file_name()
                .to_str()?
                .strip_prefix("node")?
                .parse()
                .ok()?;
            let list = fs::read_to_string(entry.path().join("cpulist")).ok()?;
            Some((node, parse_core_list(&list).ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_lists() {
        assert_eq!(parse_core_list("0-3,8\n"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_core_list("5, 1-2 ,2"), Ok(vec![1, 2, 5]));
        assert_eq!(parse_core_list("7"), Ok(vec![7]));
        for wrong in ["", "a", "3-1", "1,,2", "-1", "1-", "99999", "0-99999999999"] {
            assert!(parse_core_list(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn nodes_of_cores() {
        let nodes = [(0, vec![0, 1]), (2, vec![2, 3])];
        let topology = Topology::from_parts(&[1, 2, 3, 9], &nodes);
        let placed: Vec<_> = topology.cores().iter().map(|c| (c.id, c.node)).collect();
        assert_eq!(placed, [(1, 0), (2, 2), (3, 2), (9, 0)]);
        assert_eq!(topology.nodes(), [0, 2]);
        assert_eq!(Topology::fake(&[0, 1, 2, 3], 2).nodes(), [0, 1]);
        assert_eq!(Topology::fake(&[0, 1, 2], 2).cores()[2].node, 1);
    }

    #[cfg(not(loom))]
    #[test]
    fn a_thread_can_be_pinned_to_any_allowed_core() {
        let topology = Topology::detect().unwrap();
        assert!(!topology.cores().is_empty());
        for core in topology.cores().to_vec() {
            std::thread::spawn(move || {
                pin_current_thread(core.id).unwrap();
                assert_eq!(allowed_cores().unwrap(), [core.id]);
            })
            .join()
            .unwrap();
        }
        assert!(pin_current_thread(usize::MAX).is_err());
    }
}
