//! Locks that sleep, for cold paths: parking_lot's or, under `--cfg shuttle`, shuttle's in the same
//! shape.

#[cfg(shuttle)]
pub use model::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult,
};
#[cfg(not(shuttle))]
pub use parking_lot::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult,
};

#[cfg(shuttle)]
mod model {
    use shuttle::sync;
    use std::ops::{Deref, DerefMut};
    use std::sync::TryLockError;
    use std::time::Duration;

    pub use sync::{RwLockReadGuard, RwLockWriteGuard};

    /// What a panicking holder has left is as good as what any other leaves: parking_lot knows no
    /// poison.
    fn whole<G>(locked: sync::LockResult<G>) -> G {
        locked.unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    #[derive(Debug, Default)]
    pub struct Mutex<T>(sync::Mutex<T>);

    #[derive(Debug)]
    pub struct MutexGuard<'a, T> {
        mutex: &'a Mutex<T>,
        /// `None` only while a wait has let go of the lock.
        held: Option<sync::MutexGuard<'a, T>>,
    }

    impl<T> Mutex<T> {
        pub const fn new(value: T) -> Mutex<T> {
            Mutex(sync::Mutex::new(value))
        }
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.guard(whole(self.0.lock()))
        }
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(held) => Some(self.guard(held)),
                Err(TryLockError::Poisoned(poisoned)) => Some(self.guard(poisoned.into_inner())),
                Err(TryLockError::WouldBlock) => None,
            }
        }
        pub fn get_mut(&mut self) -> &mut T {
            whole(self.0.get_mut())
        }
        fn guard<'a>(&'a self, held: sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            MutexGuard {
                mutex: self,
                held: Some(held),
            }
        }
    }

    const HELD: &str = "a guard in use holds its lock";

    impl<T> MutexGuard<'_, T> {
        /// Lets go of the lock while `f` runs.
        pub fn unlocked<R>(guard: &mut Self, f: impl FnOnce() -> R) -> R {
            guard.held = None;
            let result = f();
            guard.held = Some(whole(guard.mutex.0.lock()));
            result
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;
        fn deref(&self) -> &T {
            self.held.as_ref().expect(HELD)
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.held.as_mut().expect(HELD)
        }
    }

    #[derive(Debug, Default)]
    pub struct RwLock<T>(sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub const fn new(value: T) -> RwLock<T> {
            RwLock(sync::RwLock::new(value))
        }
        pub fn read(&self) -> RwLockReadGuard<'_, T> {
            whole(self.0.read())
        }
        pub fn write(&self) -> RwLockWriteGuard<'_, T> {
            whole(self.0.write())
        }
    }

    #[derive(Debug, Default)]
    pub struct Condvar(sync::Condvar);

    /// How a wait of limited time ended.
    #[derive(Debug)]
    pub struct WaitTimeoutResult(());

    impl WaitTimeoutResult {
        pub fn timed_out(&self) -> bool {
            true
        }
    }

    impl Condvar {
        pub const fn new() -> Condvar {
            Condvar(sync::Condvar::new())
        }
        pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.held.take().expect(HELD);
            guard.held = Some(whole(self.0.wait(held)));
        }
        /// Time does not pass in a model: the wait is over when others have had a turn.
        pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) -> WaitTimeoutResult {
            MutexGuard::unlocked(guard, crate::thread::yield_now);
            WaitTimeoutResult(())
        }
        pub fn notify_one(&self) {
            self.0.notify_one();
        }
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}
