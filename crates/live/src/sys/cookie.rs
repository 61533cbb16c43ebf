//! `getsockopt(SO_COOKIE)`: the number that a socket keeps for life and shares with no other.
#![expect(unsafe_code, reason = "no safe interface has this option")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// The cookie of a socket, the same that the kernel's tracepoints show.
///
/// # Errors
///
/// What the system says; `ENOPROTOOPT` before Linux 4.12.
pub fn cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: `cookie` is writable for `length` bytes during the call, the kernel writes no more than that, and
    // the descriptor is open as long as it is borrowed.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(cookie)
}
