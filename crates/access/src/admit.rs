//! What a change asks before it latches anything.

use throng_buffer::{Interrupt, PoolCore, Try, Wait};
use throng_observe::{Object, WaitEvent};

/// Whether the log can take a change now: a wait while its buffer is full.
///
/// # Errors
/// 53100 while the disk has no room for more log: what is under way may end, new changes are
/// refused.
#[inline]
pub fn admit_write(pool: &PoolCore) -> Try<()> {
    let wal = pool.wal();
    wal.check_space()?;
    if wal.has_room() {
        Ok(())
    } else {
        Err(log_is_full(pool))
    }
}

#[cold]
fn log_is_full(pool: &PoolCore) -> Interrupt {
    let wal = pool.wal();
    Interrupt::Wait(Wait::for_recorded(
        WaitEvent::WalInsert,
        Object::lsn(wal.inserted().0),
        wal.room_wait(),
    ))
}
