//! Treatment of free memory by the allocator.
#![cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "mallopt has no safe interface"))]

/// Free memory at the end of the heap that the process retains, bytes. By default glibc returns all above 128
/// KiB, so a station that frees super-packets would fault the same pages in again for each.
#[cfg(target_env = "gnu")]
const RETAINED: libc::c_int = 16 << 20;

/// Makes the allocator retain memory that packets need again soon.
pub fn keep() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets two numbers of the allocator; it may be called at any time.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, RETAINED);
        libc::mallopt(libc::M_MMAP_THRESHOLD, RETAINED);
    }
}
