//! What Ctrl-C and SIGTERM leave behind: nothing.
//!
//! A run may have a server with its data in a temporary directory. Destructors do not run when a
//! signal ends the process, so the signals are taken by a thread that ends the children, removes
//! the directory and then ends the process as the signal would have.

use std::path::PathBuf;
use std::time::Duration;

use crate::{Error, Result};

/// As a shell reports a process that this signal ended.
const SIGNALLED: i32 = 128;
/// A server that was killed may be gone a moment later than it was told.
const TRIES: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(20);

/// From here on SIGINT and SIGTERM remove `directory` before they end the process. To be called
/// before other threads are started, which inherit what this one blocks; started processes do not.
pub fn clears(directory: PathBuf) -> Result<()> {
    let signals = [libc::SIGINT, libc::SIGTERM];
    // SAFETY: the set is made by sigemptyset before anything reads it, and the calls write to it
    // alone.
    let set = unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    };
    // SAFETY: the set is valid, and no old one is asked for.
    let refused = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
    if refused != 0 {
        return Err(std::io::Error::from_raw_os_error(refused).into());
    }
    let thread = std::thread::Builder::new().name("interrupt".into());
    thread
        .spawn(move || {
            let mut signal = 0;
            // SAFETY: the set is valid and blocked in every thread, and the number is ours to write
            // to.
            if unsafe { libc::sigwait(&set, &mut signal) } == 0 {
                end_children();
                let mut left = TRIES;
                while left > 0 && directory.exists() && std::fs::remove_dir_all(&directory).is_err()
                {
                    std::thread::sleep(BETWEEN);
                    left -= 1;
                }
                std::process::exit(SIGNALLED + signal);
            }
        })
        .map_err(|e| Error::from(e).during("the thread that waits for signals"))?;
    Ok(())
}

fn end_children() {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return;
    };
    for task in tasks.flatten() {
        let children = std::fs::read_to_string(task.path().join("children"));
        for child in children.unwrap_or_default().split_ascii_whitespace() {
            let pid = child.parse().ok().and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = pid {
                // One that has ended already needs no signal.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}
