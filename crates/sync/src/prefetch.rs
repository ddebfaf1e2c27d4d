//! Asking for memory before it is read.

/// A cache line of every machine we know, or half of one.
const LINE: usize = 64;

/// Has the cache line in which `value` begins brought in while the caller goes on: one that comes
/// from main memory takes as long as three hundred instructions, and the next one that is waited
/// for comes at the same time.
#[inline(always)]
pub fn fetch_ahead<T>(value: &T) {
    ask_for(std::ptr::from_ref(value).cast());
}

/// [`fetch_ahead`] for the first `bytes` of a value, or all of it.
#[inline(always)]
pub fn fetch_span_ahead<T>(value: &T, bytes: usize) {
    let start: *const u8 = std::ptr::from_ref(value).cast();
    for at in (0..bytes.min(size_of::<T>())).step_by(LINE) {
        ask_for(start.wrapping_add(at));
    }
}

/// A hint, which reads and writes nothing, wherever the address leads.
#[inline(always)]
fn ask_for(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction asks nothing of the address and faults at none.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}
