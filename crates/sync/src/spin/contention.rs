//! Telling somebody about waits for spinlocks, without knowing whom.

use std::sync::OnceLock;

struct Hook {
    begin: fn() -> u64,
    end: fn(&'static str, u64),
}

static HOOK: OnceLock<Hook> = OnceLock::new();

/// From now on every wait for a spinlock calls `begin`, and when it has the lock `end` with the
/// lock's name and what `begin` returned. A lock that is free when it is wanted calls neither. The
/// first caller's hook stays; says whether this was the first.
///
/// The hook runs between two tries of a thread that is about to hold a spinlock: it must be short
/// and must not wait.
pub fn set_contention_hook(begin: fn() -> u64, end: fn(&'static str, u64)) -> bool {
    HOOK.set(Hook { begin, end }).is_ok()
}

#[inline]
pub(crate) fn seen(name: &'static str, wait: impl FnOnce()) {
    match HOOK.get() {
        None => wait(),
        Some(hook) => {
            let since = (hook.begin)();
            wait();
            (hook.end)(name, since);
        }
    }
}
