//! What an interface does to frames before anybody sees them (ethtool's flags); only read, never set.
#![expect(unsafe_code, reason = "SIOCETHTOOL passes a structure by pointer within an ifreq")]

use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;

/// Read the flags.
const ETHTOOL_GFLAGS: u32 = 0x25;
/// Large receive offload.
const FLAG_LRO: u32 = 1 << 15;

#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Whether the interface merges packets that it receives beyond recognition (LRO); `None` if it does not say.
pub fn large_receive_offload(interface: &str) -> Option<bool> {
    let socket = UnixDatagram::unbound().ok()?;
    let mut value = Value { command: ETHTOOL_GFLAGS, data: 0 };
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = interface.as_bytes();
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request names an interface and points to a live value of the size that this command writes.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    (result == 0).then_some(value.data & FLAG_LRO != 0)
}
