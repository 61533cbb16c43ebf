//! `getsockopt(TCP_INFO)`, as raw bytes of the kernel.
#![expect(unsafe_code, reason = "no safe interface gives the length that the kernel wrote")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Buffer size, bytes: twice the longest known structure.
pub const ROOM: usize = 512;

/// Reads `struct tcp_info` of a TCP socket into `into`, and returns the number of bytes written. An older
/// kernel writes fewer fields; the structure of a newer one is truncated.
///
/// # Errors
///
/// Errors of the system; `ENOPROTOOPT` or `EOPNOTSUPP` for a socket other than TCP.
pub fn tcp_info(socket: BorrowedFd<'_>, into: &mut [u8; ROOM]) -> io::Result<usize> {
    let mut length = ROOM as libc::socklen_t;
    // SAFETY: `into` is writable for `length` bytes during the call, the kernel writes no more than that and
    // puts the number written into `length`, and the descriptor is open as long as it is borrowed.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            into.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((length as usize).min(ROOM))
}
