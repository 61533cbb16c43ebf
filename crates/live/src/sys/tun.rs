//! `ioctl(TUNSETIFF)`: a network interface whose packets a program carries (Documentation/networking/tuntap).
#![expect(unsafe_code, reason = "no safe interface has this ioctl")]

use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd as _;

/// Makes the open file of `/dev/net/tun` an interface `name` for plain IP packets without any header. The
/// interface is removed when the file is closed. `%d` in the name becomes a number. Returns the final name.
///
/// # Errors
/// Without CAP_NET_ADMIN, or if an interface has this name already.
pub fn attach(file: &File, name: &str) -> io::Result<String> {
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no name of an interface"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request reads and writes the live ifreq only, and the file stays open for the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let name = request.ifr_name.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    String::from_utf8(name).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
