//! Socket options of path MTU discovery (ip(7), ipv6(7)), and the MTU of an interface (netdevice(7)).
#![expect(unsafe_code, reason = "no safe interface has these options and SIOCGIFMTU")]

use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

use nix::ifaddrs::getifaddrs;

fn set(socket: &UdpSocket, level: i32, name: i32, value: libc::c_int) -> io::Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value is a live int and its size is given.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), len)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets whether the kernel may fragment datagrams that exceed the path MTU. Otherwise it sends them whole and
/// ignores reports by ICMP. It refuses datagrams beyond the interface's MTU with `EMSGSIZE`.
///
/// # Errors
/// Errors of the system.
pub fn may_fragment(socket: &UdpSocket, may: bool) -> io::Result<()> {
    let v4 = if may { libc::IP_PMTUDISC_DONT } else { libc::IP_PMTUDISC_PROBE };
    if socket.local_addr()?.is_ipv6() {
        let v6 = if may { libc::IPV6_PMTUDISC_DONT } else { libc::IPV6_PMTUDISC_PROBE };
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, v6)?;
        // For IPv4 peers on an IPv6 socket; a socket for IPv6 alone lacks this option.
        let _ = set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, v4);
        return Ok(());
    }
    set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, v4)
}

/// Enlarges the buffers as far as allowed.
pub fn enlarge_buffers(socket: &UdpSocket) {
    for (force, plain) in
        [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
        let size = 8 << 20;
        if set(socket, libc::SOL_SOCKET, force, size).is_err() {
            let _ = set(socket, libc::SOL_SOCKET, plain, size);
        }
    }
}

/// A socket with the source address that the kernel selects for `peer`. Nothing is sent.
fn towards(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    Ok(socket)
}

/// MTU of the interface towards `peer`, bytes, which remote hosts cannot influence.
pub fn below(peer: SocketAddr) -> Option<u32> {
    let own = towards(peer).and_then(|socket| socket.local_addr()).ok()?.ip();
    let interface = getifaddrs().ok()?.find(|interface| {
        let address = interface.address.as_ref();
        address.is_some_and(|address| match own {
            IpAddr::V4(own) => address.as_sockaddr_in().is_some_and(|v4| v4.ip() == own),
            IpAddr::V6(own) => address.as_sockaddr_in6().is_some_and(|v6| v6.ip() == own),
        })
    })?;
    mtu(&interface.interface_name).ok()
}

/// MTU of an interface of the calling thread's namespace, bytes.
///
/// # Errors
/// If the interface does not exist.
pub fn mtu(interface: &str) -> io::Result<u32> {
    if interface.is_empty() || interface.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: zeroes are a valid `ifreq`: it is a plain structure of numbers and a pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the kernel reads the name, which ends in a zero, and writes a number into the live structure.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: SIOCGIFMTU has written this field.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    // The longest IP packet; the loopback device reports one byte more.
    Ok(u32::try_from(mtu).unwrap_or(0).min(65_535))
}

/// The kernel's path MTU to `peer` from routes and ICMP, bytes.
///
/// # Errors
/// If there is no route to it.
pub fn path_mtu(peer: SocketAddr) -> io::Result<u32> {
    let socket = towards(peer)?;
    let (level, name) = match peer {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let mut mtu: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into a live int.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut mtu).cast(), &raw mut len)
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::try_from(mtu).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path to the machine itself has the MTU of the loopback device.
    #[test]
    fn the_kernel_reports_the_path_mtu() {
        let oneself = SocketAddr::from(([127, 0, 0, 1], 9));
        let path = path_mtu(oneself).expect("a way");
        assert!((1280..=65_536).contains(&path), "{path}");
    }

    #[test]
    fn only_an_unknown_socket_option_is_an_error() {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a socket");
        for may in [false, true] {
            may_fragment(&socket, may).expect("the option is there");
        }
        let error = set(&socket, libc::SOL_SOCKET, 9999, 1).expect_err("no such option");
        assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT));
    }
}
