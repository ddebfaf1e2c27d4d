//! Structures split over memory nodes: how many parts there are, and whose is whose.
//!
//! A structure that is written by every core is kept once for each memory node, and a thread uses
//! its own node's part: remote memory is 1.3 to 5 times slower (KingbaseES's measurement, see
//! `docs/design/extension.md`). On a machine of one node there is one part and nothing is asked.
//!
//! ```text
//!  thread ──core──► part_of_core[core] ──► part 0 … n-1 ──node_of_part──► the kernel's node (none when made up)
//! ```

use std::io;
use std::sync::Arc;

use crate::topology::{Topology, bound_core};

/// The parts of whatever is split. Cheap to clone: there is one table for all.
#[derive(Clone, Debug)]
pub struct Nodes(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    /// By the kernel's core number; cores beyond its end are part 0's.
    of_core: Box<[u16]>,
    /// The kernel's node of each part; empty when the nodes are made up.
    kernel: Box<[usize]>,
    count: usize,
}

impl Nodes {
    /// Nothing is split.
    pub fn one() -> Nodes {
        Nodes(Arc::new(Parts {
            of_core: Box::default(),
            kernel: Box::default(),
            count: 1,
        }))
    }

    /// A part for each of the topology's nodes, in the order of their numbers.
    pub fn of(topology: &Topology) -> Nodes {
        let nodes = topology.nodes();
        let cores = topology.cores().iter().map(|core| core.id + 1).max();
        let mut of_core = vec![0; cores.unwrap_or(0)];
        for core in topology.cores() {
            let part = nodes.binary_search(&core.node).expect("a core's node");
            of_core[core.id] = part as u16;
        }
        Nodes(Arc::new(Parts {
            of_core: of_core.into(),
            count: nodes.len().max(1),
            kernel: if topology.is_fake() {
                Box::default()
            } else {
                nodes.into()
            },
        }))
    }

    /// How many parts; at least one.
    #[inline]
    pub fn count(&self) -> usize {
        self.0.count
    }

    /// The calling thread's part: its core's. One that is bound to no core asks the kernel where it
    /// runs just now.
    #[inline]
    pub fn here(&self) -> usize {
        if self.0.count == 1 {
            0
        } else {
            self.of_core(bound_core().unwrap_or_else(current_core))
        }
    }

    /// The part of whatever runs on `core`.
    pub fn of_core(&self, core: usize) -> usize {
        self.0.of_core.get(core).copied().unwrap_or(0).into()
    }

    /// Asks for the whole pages within `len` bytes at `start` to be kept in a part's node, those
    /// that have a place already included. Does nothing when there is one part, or the nodes are
    /// made up.
    ///
    /// # Errors
    /// The kernel's: without NUMA support ENOSYS, in some containers EPERM. The memory is as good,
    /// if farther away.
    pub fn keep_in(&self, part: usize, start: *const u8, len: usize) -> io::Result<()> {
        match self.0.kernel.get(part) {
            Some(&node) if self.0.count > 1 => prefer_node(node, start, len),
            _ => Ok(()),
        }
    }
}

#[cfg(not(miri))]
fn current_core() -> usize {
    rustix::thread::sched_getcpu()
}

/// Miri does not know which core it is on.
#[cfg(miri)]
fn current_core() -> usize {
    0
}

/// `mbind` with MPOL_PREFERRED and MPOL_MF_MOVE (mbind(2)).
fn prefer_node(node: usize, start: *const u8, len: usize) -> io::Result<()> {
    const WORD: usize = libc::c_ulong::BITS as usize;
    /// As many nodes as Linux can be built for.
    const MOST_NODES: usize = 1024;
    /// From linux/mempolicy.h: pages that have a place already are moved.
    const MPOL_MF_MOVE: libc::c_int = 1 << 1;
    let page = rustix::param::page_size();
    let first = (start as usize).next_multiple_of(page);
    let end = (start as usize).saturating_add(len) / page * page;
    if first >= end {
        return Ok(());
    }
    if node >= MOST_NODES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut mask = [0 as libc::c_ulong; MOST_NODES / WORD];
    mask[node / WORD] = 1 << (node % WORD);
    // SAFETY: the mask is `MOST_NODES` bits long and lives until the call returns; the kernel reads
    // one bit less than it is told, hence the one more. The call changes where the range's pages
    // are kept, never what they hold or whether they are there, so it is sound for any range; one
    // that is not mapped is refused with EFAULT.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            first,
            end - first,
            libc::MPOL_PREFERRED,
            mask.as_ptr(),
            MOST_NODES + 1,
            MPOL_MF_MOVE,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::topology::{allowed_cores, pin_current_thread};

    #[test]
    fn a_bound_thread_has_its_cores_part_and_others_have_one() {
        let cores = allowed_cores().unwrap();
        let parts = cores.len().min(2);
        let nodes = Nodes::of(&Topology::fake(&cores, parts));
        assert_eq!(nodes.count(), parts);
        assert!(nodes.here() < parts);
        for &core in &cores {
            let nodes = nodes.clone();
            std::thread::spawn(move || {
                pin_current_thread(core).unwrap();
                assert_eq!(nodes.here(), nodes.of_core(core));
            })
            .join()
            .unwrap();
        }
        assert_eq!(nodes.of_core(cores[0]), 0);
        assert_eq!(nodes.of_core(*cores.last().unwrap()), parts - 1);
        assert_eq!(nodes.of_core(usize::MAX), 0);
        assert_eq!(Nodes::one().here(), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no memory nodes")]
    fn memory_can_be_kept_in_the_machines_own_nodes() {
        let nodes = Topology::detect().unwrap().nodes();
        let memory = vec![1u8; 1 << 20];
        match prefer_node(nodes[0], memory.as_ptr(), memory.len()) {
            Ok(()) => {}
            // A kernel without NUMA, or a container that may not.
            Err(e) => assert!(
                matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)),
                "{e}"
            ),
        }
        assert!(memory.iter().all(|&byte| byte == 1));
        // Less than a page: nothing to place.
        prefer_node(nodes[0], memory.as_ptr(), 100).unwrap();
        assert!(prefer_node(usize::MAX, memory.as_ptr(), memory.len()).is_err());
    }

    #[test]
    fn made_up_nodes_are_no_memorys_place() {
        let nodes = Nodes::of(&Topology::fake(&[0, 1], 2));
        let memory = vec![0u8; 1 << 16];
        nodes.keep_in(1, memory.as_ptr(), memory.len()).unwrap();
    }
}
