//! `getsockopt(TCP_INFO)`, as the bytes that the kernel gives.
#![expect(unsafe_code, reason = "no safe interface gives the length that the kernel wrote")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Room for what the longest structure in use needs, and as much again.
pub const ROOM: usize = 512;

/// Reads `struct tcp_info` of a TCP socket into `into` and says how many bytes of it the kernel filled: an
/// older kernel knows fewer fields, a newer one is cut to the room.
///
/// # Errors
///
/// What the system says; `ENOPROTOOPT` or `EOPNOTSUPP` if the socket is not TCP.
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
