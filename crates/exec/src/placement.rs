//! Which cores the server's threads run on, and which memory nodes its structures are split over.
//!
//! | threads | `lab_pin_threads = on` | `off` |
//! |---|---|---|
//! | event loops, analytics workers | each bound to a core of its own, in turn | where the kernel puts them |
//! | log, checkpoint, pages, cleaner, blocking calls | anywhere on the server's cores | where the kernel puts them |
//!
//! Threads that wait most of the time are bound to no single core: the flusher would wait for the
//! loop that computes there while another core is idle. A thread starts with the cores of the one
//! that starts it, so it is enough to confine the first.
//!
//! With `lab_numa = split` the nodes are those of the server's cores (`/sys/devices/system/node`),
//! or made up by `lab_fake_nodes`; with `shared`, or on a machine of one node, there is one.

use throng_sync::Nodes;
use throng_sync::topology::{Topology, confine_current_thread, pin_current_thread};
use throng_types::Result;
use throng_values::settings::{Id, ServerSettings};

/// Where the threads of one server run.
#[derive(Clone)]
pub struct Placement {
    cores: Vec<usize>,
    pinned: bool,
    nodes: Nodes,
}

impl Placement {
    /// As a server of these settings places its threads on `cores`.
    ///
    /// # Errors
    /// A machine whose memory nodes cannot be told.
    pub fn new(settings: &ServerSettings, cores: &[usize]) -> Result<Placement> {
        let nodes = match (settings.text(Id::LabNuma), settings.int(Id::LabFakeNodes)) {
            ("split", 0) => Nodes::of(&Topology::detect()?.only(cores)),
            ("split", made_up) => Nodes::of(&Topology::fake(cores, made_up as usize)),
            _ => Nodes::one(),
        };
        Ok(Placement {
            cores: cores.to_vec(),
            pinned: settings.bool(Id::LabPinThreads),
            nodes,
        })
    }

    /// The server's cores; an event loop for each.
    pub fn cores(&self) -> &[usize] {
        &self.cores
    }

    /// The cores that computing threads are bound to in turn; none where they are not.
    pub fn bound_cores(&self) -> &[usize] {
        if self.pinned { &self.cores } else { &[] }
    }

    /// What is split over memory nodes is split over these.
    pub fn nodes(&self) -> Nodes {
        self.nodes.clone()
    }

    /// Binds the calling thread to one of the cores, if threads are bound here. Best effort: a
    /// thread that is not bound wanders, which costs nothing but time.
    pub fn bind(&self, core: usize) {
        if self.pinned
            && let Err(e) = pin_current_thread(core)
        {
            tracing::warn!(core, error = %e, "thread not bound to its core");
        }
    }

    /// Keeps the calling thread, and those that it starts, on the server's cores, if threads are
    /// bound here. Best effort.
    pub fn confine(&self) {
        if self.pinned
            && let Err(e) = confine_current_thread(&self.cores)
        {
            tracing::warn!(error = %e, "thread not kept on the server's cores");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_sync::topology::allowed_cores;
    use throng_types::error::state;
    use throng_values::settings::Source;

    fn placement(settings: &[(&str, &str)], cores: &[usize]) -> Result<Placement> {
        let mut server = ServerSettings::default();
        for (name, value) in settings {
            server.set(name, value, Source::CommandLine)?;
        }
        Placement::new(&server, cores)
    }

    #[test]
    fn nodes_are_split_as_told() -> Result<()> {
        let count = |settings: &[_]| placement(settings, &[0, 1]).map(|p| p.nodes().count());
        assert_eq!(count(&[("lab_fake_nodes", "2")])?, 2);
        assert_eq!(count(&[("lab_fake_nodes", "9")])?, 2, "one a core");
        let shared = [("lab_fake_nodes", "2"), ("lab_numa", "shared")];
        assert_eq!(count(&shared)?, 1);
        let refused = count(&[("lab_numa", "none")]).unwrap_err();
        assert_eq!(refused.code(), state::INVALID_PARAMETER_VALUE);
        assert_eq!(
            refused.message(),
            "invalid value for parameter \"lab_numa\": \"none\""
        );
        Ok(())
    }

    #[test]
    fn threads_are_bound_only_where_that_is_asked_for() -> Result<()> {
        let cores = allowed_cores()?;
        for (value, bound) in [("on", true), ("off", false)] {
            let placement = placement(&[("lab_pin_threads", value)], &cores[..1])?;
            let (confined, pinned) = std::thread::spawn(move || {
                placement.confine();
                let inherited = std::thread::spawn(allowed_cores).join().expect("no panic");
                placement.bind(placement.cores()[0]);
                (inherited.expect("a mask"), allowed_cores().expect("a mask"))
            })
            .join()
            .expect("no panic");
            let expected = if bound { &cores[..1] } else { &cores[..] };
            assert_eq!(confined, expected, "{value}");
            assert_eq!(pinned, expected, "{value}");
        }
        Ok(())
    }
}
