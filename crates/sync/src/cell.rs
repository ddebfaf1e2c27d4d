//! `UnsafeCell` with loom's shape: under loom every access is checked for races, elsewhere it is a
//! pointer.

#[cfg(loom)]
pub use loom::cell::{MutPtr, UnsafeCell};

#[cfg(not(loom))]
pub use plain::{MutPtr, UnsafeCell};

#[cfg(not(loom))]
mod plain {
    /// A cell whose content is reached by pointer only.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

    /// An exclusive pointer to a cell's content.
    #[derive(Debug)]
    pub struct MutPtr<T: ?Sized>(*mut T);

    impl<T> UnsafeCell<T> {
        pub const fn new(value: T) -> UnsafeCell<T> {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        #[inline]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }
        #[inline]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
        #[inline]
        pub fn get_mut(&self) -> MutPtr<T> {
            MutPtr(self.0.get())
        }
    }

    impl<T: ?Sized> MutPtr<T> {
        /// # Safety
        ///
        /// The cell is alive, and while the result is used nothing else reads or writes its
        /// content.
        #[inline]
        #[expect(
            clippy::mut_from_ref,
            reason = "loom's signature; the caller promises exclusivity"
        )]
        pub unsafe fn deref(&self) -> &mut T {
            // SAFETY: the pointer came from a cell, so it is aligned and not null; that the cell is
            // alive and unshared for the result's lifetime is this function's own condition.
            unsafe { &mut *self.0 }
        }
    }
}
