//! A long load's or unload's share of its core.

use std::time::{Duration, Instant};

use throng_txn::CancelFlag;
use throng_types::Result;

/// Work between two looks at the clock: rows, or kilobytes of them. Some tens of microseconds pass
/// in all.
const TICKS: usize = 64;
/// How long the core is held before others get their turn.
const SLICE: Duration = Duration::from_millis(1);

/// Counts work and gives the core back when the slice is over.
pub struct Turn {
    ticks: usize,
    until: Instant,
}

impl Turn {
    pub fn new() -> Turn {
        Turn {
            ticks: 0,
            until: Instant::now() + SLICE,
        }
    }

    /// To be called for every row or index entry, with its bytes.
    ///
    /// # Errors
    /// 57014 and what else a cancel stands for.
    #[inline]
    pub async fn worked(&mut self, bytes: usize, cancel: &CancelFlag) -> Result<()> {
        self.ticks += 1 + bytes / 1024;
        if self.ticks < TICKS {
            Ok(())
        } else {
            self.look(cancel).await
        }
    }

    #[cold]
    async fn look(&mut self, cancel: &CancelFlag) -> Result<()> {
        self.ticks = 0;
        cancel.check()?;
        if Instant::now() >= self.until {
            crate::turns::next_turn().await;
            self.until = Instant::now() + SLICE;
        }
        Ok(())
    }
}
