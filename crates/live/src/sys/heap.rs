//! How the allocator treats memory that is free.
#![cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "mallopt has no safe interface"))]

/// Freed memory at the end of the heap up to so many bytes stays with the process. By default glibc gives back what
/// exceeds 128 KiB, so that a station that frees super-packets faults the same pages in again for each.
#[cfg(target_env = "gnu")]
const KEPT: libc::c_int = 16 << 20;

/// Has the allocator keep what packets need again at once.
pub fn keep() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets two numbers of the allocator; it may be called at any time.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT);
    }
}
