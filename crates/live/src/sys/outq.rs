//! `ioctl(SIOCOUTQ)`: what a TCP socket has taken and its peer has not acknowledged.
#![expect(unsafe_code, reason = "no safe interface has this ioctl")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Bytes in the send queue of a TCP socket, sent or not, that are not acknowledged; a FIN counts as one.
///
/// # Errors
///
/// What the system says, for example `EINVAL` for a socket that listens.
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
