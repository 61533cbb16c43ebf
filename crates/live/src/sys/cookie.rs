//! `getsockopt(SO_COOKIE)`: the unique and constant number of a socket.
#![expect(unsafe_code, reason = "no safe interface has this option")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// The cookie of a socket, which tracepoints also show.
///
/// # Errors
///
/// Errors of the system; `ENOPROTOOPT` before Linux 4.12.
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

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_socket_cookie_is_constant_and_unique() {
        let one = UdpSocket::bind("127.0.0.1:0").unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let first = cookie(one.as_fd()).unwrap();
        assert_ne!(first, 0);
        assert_eq!(
            cookie(one.try_clone().unwrap().as_fd()).unwrap(),
            first,
            "of another descriptor"
        );
        assert_ne!(cookie(other.as_fd()).unwrap(), first);
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(cookie(file.as_fd()).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
    }
}
