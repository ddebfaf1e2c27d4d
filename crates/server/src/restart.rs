//! Coming back after storage has failed.
//!
//! After a failed write or sync nothing in memory can be trusted to reach the disk
//! ([`throng_disk::CheckedDisk`]); what was acknowledged is in the log. So the server ends its
//! sessions and becomes a new process image of itself, with the same arguments: nothing of the old
//! memory is left, and recovery starts from the disk alone.
//!
//! ```text
//!   serve ──write failed──► sessions end (57P02) ──pause──► exec ──► recovery ──► serve
//!                                                  │ too often in a row: exit
//! ```

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use throng_disk::Tell;
use throng_types::error::state;
use throng_types::{Error, Result};

/// How many times in a row it was done, handed on from image to image.
const VARIABLE: &str = "THRONG_STORAGE_RESTARTS";
/// More in a row than this are of no use.
const MOST: u32 = 5;
/// A server that has run so long was well again.
const WELL_AFTER: Duration = Duration::from_secs(60);
/// The pause before the first one; each further one waits twice as long.
const PAUSE: Duration = Duration::from_millis(100);

/// The news that storage has failed, and how often the server has come back already.
pub struct Restart {
    failed: Arc<Notify>,
    began: Instant,
    before: u32,
}

impl Restart {
    pub fn of_this_process() -> Restart {
        let before = std::env::var(VARIABLE).ok().and_then(|n| n.parse().ok());
        Restart {
            failed: Arc::default(),
            began: Instant::now(),
            before: before.unwrap_or(0),
        }
    }

    /// For the disk, to be called when it fails.
    pub fn tell(&self) -> Tell {
        let failed = self.failed.clone();
        Box::new(move |cause| {
            tracing::error!(cause, "storage has failed");
            failed.notify_one();
        })
    }

    /// Waits for storage to fail.
    pub async fn due(&self) {
        self.failed.notified().await;
    }

    /// Whether this image came of a failure of storage, and recovery has met another.
    pub fn is_due_after(&self, error: &Error) -> bool {
        self.before > 0 && error.code() == state::IO_ERROR
    }

    /// How often it was done in a row.
    fn in_a_row(&self) -> u32 {
        match self.began.elapsed() > WELL_AFTER {
            true => 0,
            false => self.before,
        }
    }

    /// How long to wait before it is done again.
    pub fn pause(&self) -> Duration {
        PAUSE * 2u32.pow(self.in_a_row().min(MOST))
    }

    /// Starts anew in this process. Returns only where that cannot be, or was done too often.
    ///
    /// # Errors
    /// 58030.
    pub fn start_anew(&self) -> Result<()> {
        let before = self.in_a_row();
        if before >= MOST {
            let message = format!("storage has failed {} times in a row", before + 1);
            return Err(Error::new(state::IO_ERROR, message)
                .hint("Look after the device; what was acknowledged is in the log."));
        }
        tracing::warn!("starting anew, to recover from the log");
        let mut arguments = std::env::args_os();
        let mut command = Command::new("/proc/self/exe");
        if let Some(name) = arguments.next() {
            command.arg0(name);
        }
        // Every file is closed by it, and with the lock's the data directory is free.
        Err(command
            .args(arguments)
            .env(VARIABLE, (before + 1).to_string())
            .exec()
            .into())
    }
}
