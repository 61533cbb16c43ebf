//! Socket calls with arbitrary arguments of a script; safe wrappers would reject values that a test gets
//! wrong on purpose.
#![expect(unsafe_code, reason = "no safe interface takes any level, name and flags")]

use std::io;
use std::mem::size_of;
use std::net::SocketAddrV4;

/// The result of a call: its value, or the error.
pub type Result = io::Result<i64>;

fn answer(value: i64) -> Result {
    if value < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

fn address(to: SocketAddrV4) -> libc::sockaddr_in {
    // SAFETY: all zeros is a valid sockaddr_in.
    let mut raw: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    raw.sin_family = libc::AF_INET as libc::sa_family_t;
    raw.sin_port = to.port().to_be();
    raw.sin_addr.s_addr = u32::from(*to.ip()).to_be();
    raw
}

const ADDRESS: libc::socklen_t = size_of::<libc::sockaddr_in>() as libc::socklen_t;

/// `socket`.
///
/// # Errors
/// As for all calls here: errors of the system.
pub fn socket(domain: i32, kind: i32, protocol: i32) -> Result {
    // SAFETY: no pointers.
    answer(unsafe { libc::socket(domain, kind, protocol) }.into())
}

/// `bind` to an IPv4 address.
///
/// # Errors
/// The error of the system call.
pub fn bind(fd: i32, to: SocketAddrV4) -> Result {
    let raw = address(to);
    // SAFETY: the address lives during the call and has this length.
    answer(unsafe { libc::bind(fd, (&raw const raw).cast(), ADDRESS) }.into())
}

/// `connect` to an IPv4 address.
///
/// # Errors
/// The error of the system call.
pub fn connect(fd: i32, to: SocketAddrV4) -> Result {
    let raw = address(to);
    // SAFETY: the address lives during the call and has this length.
    answer(unsafe { libc::connect(fd, (&raw const raw).cast(), ADDRESS) }.into())
}

/// `listen`.
///
/// # Errors
/// The error of the system call.
pub fn listen(fd: i32, backlog: i32) -> Result {
    // SAFETY: no pointers.
    answer(unsafe { libc::listen(fd, backlog) }.into())
}

/// `accept4`.
///
/// # Errors
/// The error of the system call.
pub fn accept(fd: i32, flags: i32) -> Result {
    // SAFETY: null pointers mean that no address is returned.
    let fd = unsafe { libc::accept4(fd, std::ptr::null_mut(), std::ptr::null_mut(), flags) };
    answer(fd.into())
}

/// `sendto` of `bytes`, to an address if one is given, with whether its family is IPv4; otherwise the family is unspecified.
///
/// # Errors
/// The error of the system call.
pub fn send(fd: i32, bytes: &[u8], flags: i32, to: Option<(SocketAddrV4, bool)>) -> Result {
    let raw = to.map(|(to, has_family)| {
        let raw = address(to);
        libc::sockaddr_in { sin_family: if has_family { raw.sin_family } else { 0 }, ..raw }
    });
    let (pointer, len) = match &raw {
        Some(raw) => ((&raw const *raw).cast(), ADDRESS),
        None => (std::ptr::null(), 0),
    };
    // SAFETY: buffer and address live during the call and have these lengths.
    let sent = unsafe { libc::sendto(fd, bytes.as_ptr().cast(), bytes.len(), flags, pointer, len) };
    answer(sent as i64)
}

/// `recv` into `room`.
///
/// # Errors
/// The error of the system call.
pub fn recv(fd: i32, room: &mut [u8], flags: i32) -> Result {
    // SAFETY: the buffer is writable and has this length.
    answer(unsafe { libc::recv(fd, room.as_mut_ptr().cast(), room.len(), flags) } as i64)
}

/// `shutdown`.
///
/// # Errors
/// The error of the system call.
pub fn shutdown(fd: i32, how: i32) -> Result {
    // SAFETY: no pointers.
    answer(unsafe { libc::shutdown(fd, how) }.into())
}

/// `close`.
///
/// # Errors
/// The error of the system call.
pub fn close(fd: i32) -> Result {
    // SAFETY: callers own the descriptors of their script, and use none after this.
    answer(unsafe { libc::close(fd) }.into())
}

/// `setsockopt` with any bytes.
///
/// # Errors
/// The error of the system call.
pub fn setsockopt(fd: i32, level: i32, name: i32, value: &[u8]) -> Result {
    let len = value.len() as libc::socklen_t;
    // SAFETY: the value is readable for this length.
    answer(unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast(), len) }.into())
}

/// `getsockopt` of a number.
///
/// # Errors
/// The error of the system call.
pub fn getsockopt(fd: i32, level: i32, name: i32) -> Result {
    let mut value = 0i32;
    let mut len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value is writable for this length, and the kernel writes no more.
    let result =
        unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut len) };
    answer(result.into()).map(|_| value.into())
}

/// `fcntl(F_GETFL)`, or `F_SETFL` with flags.
///
/// # Errors
/// The error of the system call.
pub fn flags(fd: i32, set: Option<i32>) -> Result {
    // SAFETY: no pointers.
    let result = unsafe {
        match set {
            Some(flags) => libc::fcntl(fd, libc::F_SETFL, flags),
            None => libc::fcntl(fd, libc::F_GETFL),
        }
    };
    answer(result.into())
}

/// An `ioctl` that writes a number.
///
/// # Errors
/// Errors of the system; `InvalidInput` for requests that do not write a number.
pub fn ioctl(fd: i32, request: u64) -> Result {
    const NUMBERS: [u64; 3] = [0x541b, 0x5411, 0x894b];
    if !NUMBERS.contains(&request) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut value = 0i32;
    // SAFETY: these requests (SIOCINQ, SIOCOUTQ, SIOCOUTQNSD) write one int.
    let result = unsafe { libc::ioctl(fd, request as _, &raw mut value) };
    answer(result.into()).map(|_| value.into())
}

/// `poll` of descriptors with events. Returns the ready events of each.
///
/// # Errors
/// Errors of the system.
pub fn poll(fds: &[(i32, i16)], timeout: i32) -> io::Result<(i64, Vec<i16>)> {
    let mut raw: Vec<libc::pollfd> = fds
        .iter()
        .map(|(fd, events)| libc::pollfd { fd: *fd, events: *events, revents: 0 })
        .collect();
    // SAFETY: the array has this length and lives during the call.
    let count = unsafe { libc::poll(raw.as_mut_ptr(), raw.len() as libc::nfds_t, timeout) };
    answer(count.into()).map(|count| (count, raw.iter().map(|fd| fd.revents).collect()))
}

/// `tcp_info` of a descriptor, as raw bytes.
///
/// # Errors
/// Errors of the system.
pub fn tcp_info(fd: i32) -> io::Result<Vec<u8>> {
    let mut room = [0u8; super::tcp_info::ROOM];
    let mut len = room.len() as libc::socklen_t;
    // SAFETY: the room is writable for this length, and the kernel writes no more.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            room.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    answer(result.into())?;
    Ok(room[..(len as usize).min(room.len())].to_vec())
}

/// The C name of an error that sockets return.
pub fn errno_name(error: &io::Error) -> String {
    const NAMES: &[(i32, &str)] = &[
        (libc::EAGAIN, "EAGAIN"),
        (libc::EALREADY, "EALREADY"),
        (libc::EBADF, "EBADF"),
        (libc::ECONNABORTED, "ECONNABORTED"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ECONNRESET, "ECONNRESET"),
        (libc::EFAULT, "EFAULT"),
        (libc::EHOSTUNREACH, "EHOSTUNREACH"),
        (libc::EINPROGRESS, "EINPROGRESS"),
        (libc::EINVAL, "EINVAL"),
        (libc::EISCONN, "EISCONN"),
        (libc::EMSGSIZE, "EMSGSIZE"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::ENOENT, "ENOENT"),
        (libc::ENOPROTOOPT, "ENOPROTOOPT"),
        (libc::ENOTCONN, "ENOTCONN"),
        (libc::ENOTSUP, "EOPNOTSUPP"),
        (libc::EPERM, "EPERM"),
        (libc::EPIPE, "EPIPE"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
    ];
    let code = error.raw_os_error().unwrap_or(0);
    let name = NAMES.iter().find(|(number, _)| *number == code);
    name.map_or_else(|| format!("error {code}"), |(_, name)| (*name).to_owned())
}
