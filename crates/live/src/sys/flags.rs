//! Flags of an interface, by ioctl (netdevice(7)).
#![expect(unsafe_code, reason = "no safe interface has SIOCSIFFLAGS")]

use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd as _;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Whether the interface `name` is promiscuous by its flag; `set` changes the flag. Returns the old state.
///
/// # Errors
/// If the interface does not exist; for a change without CAP_NET_ADMIN.
pub fn promiscuous(name: &str, set: Option<bool>) -> io::Result<bool> {
    let fd = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let call = |command: libc::c_ulong, request: &mut libc::ifreq| {
        // SAFETY: both commands read and write the live ifreq only.
        match unsafe { libc::ioctl(fd.as_raw_fd(), command as _, &raw mut *request) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    call(libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: the call has filled in the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    let flag = libc::IFF_PROMISC as libc::c_short;
    let was = flags & flag != 0;
    if let Some(on) = set.filter(|on| *on != was) {
        request.ifr_ifru.ifru_flags = if on { flags | flag } else { flags & !flag };
        call(libc::SIOCSIFFLAGS, &mut request)?;
    }
    Ok(was)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_does_not_listen_to_all_and_others_are_not_there() {
        assert!(!promiscuous("lo", None).unwrap());
        // An unchanged flag is not set again, which would need a privilege.
        assert!(!promiscuous("lo", Some(false)).unwrap());
        let kind = |name| promiscuous(name, None).unwrap_err();
        assert_eq!(kind("abcdefghijklmno").raw_os_error(), Some(libc::ENODEV));
        assert_eq!(kind("abcdefghijklmnop").kind(), io::ErrorKind::InvalidInput);
    }
}
