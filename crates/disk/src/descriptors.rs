//! File descriptors: how many a process may have, and whose they are.
//!
//! ```text
//!   limit = reserve (log, control file, event loops, big queries' files) + temporary files + relation files + sockets
//! ```
//! Each has its own share, so that a crowd of sockets cannot keep the log from its next segment,
//! nor many tables keep clients out.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For what is neither a relation file nor a client: standard streams, listeners, the log's
/// segments, the control file, threads' own, files that big queries spill to.
const RESERVE: usize = 48;
/// Each core's event loop: its reactor, its waker, its ring.
const RESERVE_PER_CORE: usize = 5;
/// More open relation files than this are of no use.
const MOST_FILES: usize = 4096;
/// A server gets so many of each however low the limit is: it may run short then, but it starts.
const LEAST: usize = 16;
/// What an unlimited process counts as.
const UNLIMITED: u64 = 1 << 20;

/// How many descriptors each may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Open handles of relation files.
    pub files: usize,
    /// Clients' sockets.
    pub sockets: usize,
    /// Files for rows that do not fit in memory.
    pub temporary: usize,
}

impl Shares {
    fn of(limit: u64, cores: usize) -> Shares {
        let limit = usize::try_from(limit.min(UNLIMITED)).unwrap_or(LEAST);
        let rest = limit.saturating_sub(RESERVE + RESERVE_PER_CORE * cores);
        let temporary = (rest / 16).max(LEAST);
        let rest = rest.saturating_sub(temporary);
        let files = (rest / 2).clamp(LEAST, MOST_FILES);
        Shares {
            files,
            sockets: rest.saturating_sub(files).max(LEAST),
            temporary,
        }
    }
}

/// The shares of this process's limit as it is.
pub fn shares() -> Shares {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Where there are no limits to be asked for there is no kernel either.
    let limit = match cfg!(miri) {
        true => None,
        false => getrlimit(Resource::Nofile).current,
    };
    Shares::of(limit.unwrap_or(UNLIMITED), cores)
}

/// Raises this process's limit to the most that it may have.
///
/// # Errors
/// When the system refuses; the limit is then what it was.
pub fn raise() -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return Ok(());
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}

/// Whether an error says that the process, or the system, has no descriptor left.
pub fn is_exhausted(error: &io::Error) -> bool {
    let source = error.get_ref().and_then(|e| e.source());
    let cause = source.and_then(|e| e.downcast_ref::<io::Error>());
    let errno = cause.unwrap_or(error).raw_os_error();
    [Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|e| errno == Some(e.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Action, file_error};

    #[test]
    fn everybody_has_a_share_and_the_reserve_is_nobodys() {
        for (limit, cores) in [(256, 2), (1024, 4), (4096, 64), (1 << 20, 128)] {
            let Shares {
                files,
                sockets,
                temporary,
            } = Shares::of(limit, cores);
            assert!(files.min(sockets).min(temporary) >= LEAST, "{limit}");
            let kept = limit as usize - files - sockets - temporary;
            assert_eq!(kept, RESERVE + RESERVE_PER_CORE * cores, "{limit}");
        }
        let least = Shares {
            files: LEAST,
            sockets: LEAST,
            temporary: LEAST,
        };
        assert_eq!(Shares::of(20, 64), least);
        let unlimited = Shares::of(u64::MAX, 1);
        assert_eq!(unlimited, Shares::of(UNLIMITED, 1));
    }

    #[test]
    fn exhaustion_is_known_inside_an_error_that_names_the_file() {
        let of = |errno: Errno| file_error(Action::Open, "base/1", errno.into());
        assert!(is_exhausted(&of(Errno::MFILE)) && is_exhausted(&Errno::NFILE.into()));
        assert!(!is_exhausted(&of(Errno::NOENT)));
    }
}
