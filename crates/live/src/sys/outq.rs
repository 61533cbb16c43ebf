//! `ioctl(SIOCOUTQ)`: unacknowledged bytes of a TCP socket.
#![expect(unsafe_code, reason = "no safe interface has this ioctl")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Unacknowledged bytes in the send queue of a TCP socket, sent or unsent; a FIN counts as one.
///
/// # Errors
///
/// Errors of the system, for example `EINVAL` for a listening socket.
pub fn unacknowledged(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes one `int` to the pointer, which is valid for the call, and the descriptor is
    // open as long as it is borrowed. SIOCOUTQ has the number of TIOCOUTQ.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::try_from(bytes).unwrap_or(0))
}
