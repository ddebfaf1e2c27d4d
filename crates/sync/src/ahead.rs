//! Asking for memory before it is read.

/// Has the cache line in which `value` begins brought in while the caller goes on: one that comes from main memory takes as long as
/// three hundred instructions, and the next one that is waited for comes at the same time.
#[inline(always)]
pub fn fetch_ahead<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads and writes nothing; the address is a reference's.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) std::ptr::from_ref(value),
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = value;
}
