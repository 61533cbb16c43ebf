//! Offloads of an interface, by the ioctl that the program `ethtool` uses.
#![expect(unsafe_code, reason = "no safe interface has SIOCETHTOOL")]

use std::io;
use std::os::fd::AsRawFd as _;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Offload features that defer or batch work on packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offload {
    /// Reception without verification of checksums that the sender guarantees.
    RxChecksum,
    /// Transmission with incomplete TCP and UDP checksums.
    TxChecksum,
    /// Transmission of TCP segments larger than the MTU.
    Tso,
    /// Segmentation as late as possible.
    Gso,
    /// Merging of received segments.
    Gro,
}

impl Offload {
    /// In an order in which they can be enabled: TSO needs checksums. They can be disabled in any order.
    pub const ALL: [Offload; 5] =
        [Offload::RxChecksum, Offload::TxChecksum, Offload::Gso, Offload::Tso, Offload::Gro];

    /// The commands to get and set it, from linux/ethtool.h.
    fn commands(self) -> (u32, u32) {
        match self {
            Offload::RxChecksum => (0x14, 0x15),
            Offload::TxChecksum => (0x16, 0x17),
            Offload::Tso => (0x1e, 0x1f),
            Offload::Gso => (0x23, 0x24),
            Offload::Gro => (0x2b, 0x2c),
        }
    }
}

/// Sets all offloads of an interface, in the calling thread's namespace.
///
/// # Errors
///
/// If the interface does not exist, lacks an offload, or the process lacks the right.
pub fn set_offloads(interface: &str, on: bool) -> io::Result<()> {
    Offload::ALL.into_iter().try_for_each(|offload| set_offload(interface, offload, on))
}

/// Sets one offload of an interface, in the calling thread's namespace.
///
/// # Errors
///
/// As [`set_offloads`].
pub fn set_offload(interface: &str, offload: Offload, on: bool) -> io::Result<()> {
    call(interface, offload.commands().1, u32::from(on)).map(drop)
}

/// Whether an offload of an interface is on.
///
/// # Errors
///
/// If the interface does not exist or does not report it.
pub fn offload(interface: &str, offload: Offload) -> io::Result<bool> {
    call(interface, offload.commands().0, 0).map(|value| value != 0)
}

/// Whether the interface merges received packets irreversibly (LRO); `None` if it does not report it.
pub fn large_receive_offload(interface: &str) -> Option<bool> {
    // ETHTOOL_GFLAGS and ETH_FLAG_LRO
    call(interface, 0x25, 0).ok().map(|flags| flags & 1 << 15 != 0)
}

/// Whether both ends of an interface's cable are up.
///
/// Newer kernels also finish pending link work at once, so packets are carried afterwards.
///
/// # Errors
///
/// If the interface does not exist or does not report it.
pub fn link_is_up(interface: &str) -> io::Result<bool> {
    // ETHTOOL_GLINK
    call(interface, 0x0a, 0).map(|value| value != 0)
}

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

fn call(interface: &str, command: u32, data: u32) -> io::Result<u32> {
    // The field has room for the longest name and its final zero.
    if interface.is_empty() || interface.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut value = Value { command, data };
    // SAFETY: zeroes are a valid `ifreq`: it is a plain structure of numbers and a pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the kernel reads the name, which ends in a zero, and reads and writes a `struct ethtool_value`
    // behind the pointer, which lives until the call has returned. These commands touch no more than that.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value.data) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from linux/ethtool.h.
    #[test]
    fn each_offload_has_its_commands() {
        let numbers = Offload::ALL.map(Offload::commands);
        let expected = [(0x14, 0x15), (0x16, 0x17), (0x23, 0x24), (0x1e, 0x1f), (0x2b, 0x2c)];
        assert_eq!(numbers, expected);
    }

    /// netdevice(7): a name has 15 bytes at most, and a final zero.
    #[test]
    fn a_name_that_no_interface_has_is_no_device() {
        for name in ["", "abcdefghijklmno", "abcdefghijklmnop", "abcdefghijklmnopqrst"] {
            let no = |error: io::Error| error.raw_os_error() == Some(libc::ENODEV);
            assert!(offload(name, Offload::Gro).is_err_and(no), "{name}");
            assert!(link_is_up(name).is_err_and(no), "{name}");
            assert_eq!(large_receive_offload(name), None, "{name}");
        }
        // The loopback device reports its state; nothing is changed.
        assert!(link_is_up("lo").is_ok());
    }
}
