//! Sockets with options that are set before the handshake.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use lasthop_proto::units::Span;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::sockopt::{
    Ipv6V6Only, Linger, ReuseAddr, SndBuf, TcpCongestion, TcpMaxSeg, TcpNoDelay,
};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, connect, getsockopt,
    listen as start_listening, setsockopt, socket,
};
use nix::sys::time::TimeSpec;

use super::{EndpointError, SendOptions, Session};

/// Default port of [`crate::endpoint::discard()`]. The discard service has port 9 (RFC 863), which needs
/// privileges.
pub const DEFAULT_PORT: u16 = 9009;

/// Limit of connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Interval at which a flag is checked.
pub(crate) const LOOK: Span = Span::millis(50);

/// Congestion controls that the kernel has loaded, in its order; empty if unknown.
pub fn available_congestion() -> Vec<String> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    names.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// The wildcard address of the family of `address`, with its port.
pub(super) fn any_at(address: SocketAddr) -> SocketAddr {
    let any = match address {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(any, address.port())
}

fn new(address: SocketAddr) -> nix::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket(family, SockType::Stream, flags, None)
}

fn bound(socket: &OwnedFd, address: SocketAddr) -> Result<(), EndpointError> {
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address)).map_err(|error| match error {
        Errno::EADDRINUSE => EndpointError::InUse(address),
        Errno::EACCES | Errno::EPERM => EndpointError::Forbidden(address),
        other => EndpointError::Address { address, error: other.into() },
    })
}

/// Listens on one address; `[::]` includes IPv4. The listener is non-blocking.
///
/// # Errors
///
/// [`EndpointError`] with the problem of the address and its remedy.
pub fn listen(address: SocketAddr) -> Result<TcpListener, EndpointError> {
    let socket = new(address).map_err(|error| match error {
        Errno::EAFNOSUPPORT => EndpointError::Address { address, error: error.into() },
        other => EndpointError::Socket(other.into()),
    })?;
    // Connections of an earlier receiver may still be in TIME-WAIT.
    setsockopt(&socket, ReuseAddr, &true).map_err(io::Error::from)?;
    if address.is_ipv6() {
        setsockopt(&socket, Ipv6V6Only, &!address.ip().is_unspecified())
            .map_err(io::Error::from)?;
    }
    bound(&socket, address)?;
    let backlog = Backlog::new(BACKLOG).map_err(io::Error::from)?;
    start_listening(&socket, backlog).map_err(|error| match error {
        Errno::EADDRINUSE => EndpointError::InUse(address),
        other => EndpointError::Socket(other.into()),
    })?;
    Ok(TcpListener::from(socket))
}

/// Listens on all addresses: IPv6 and IPv4, or IPv4 alone if the kernel has no IPv6.
///
/// # Errors
///
/// As for [`listen`].
pub fn listen_everywhere(port: u16) -> Result<TcpListener, EndpointError> {
    match listen(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)) {
        Err(EndpointError::Address { .. }) => {
            listen(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))
        }
        other => other,
    }
}

/// Starts a connection. Options are set before the SYN, since they affect the handshake.
pub(super) fn connecting(options: &SendOptions) -> Result<TcpStream, EndpointError> {
    let to = options.to;
    let unreachable = |error: Errno| EndpointError::Unreachable { to, error: error.into() };
    let socket = new(to).map_err(|error| match error {
        Errno::EAFNOSUPPORT => unreachable(error),
        other => EndpointError::Socket(other.into()),
    })?;
    if let Some(name) = &options.congestion {
        setsockopt(&socket, TcpCongestion, &OsString::from(name)).map_err(|error| {
            EndpointError::Congestion {
                name: name.clone(),
                available: available_congestion(),
                error: error.into(),
            }
        })?;
    }
    if let Some(mss) = options.mss {
        setsockopt(&socket, TcpMaxSeg, &mss.into()).map_err(|_| EndpointError::Mss(mss))?;
    }
    if let Some(bytes) = options.send_buffer {
        let bytes = usize::try_from(bytes.0).unwrap_or(usize::MAX).min(i32::MAX as usize);
        setsockopt(&socket, SndBuf, &bytes).map_err(io::Error::from)?;
    }
    setsockopt(&socket, TcpNoDelay, &options.no_delay).map_err(io::Error::from)?;
    if let Some(from) = options.from {
        setsockopt(&socket, ReuseAddr, &true).map_err(io::Error::from)?;
        bound(&socket, from)?;
    }
    let result = connect(socket.as_raw_fd(), &SockaddrStorage::from(to));
    match result {
        Ok(()) | Err(Errno::EINPROGRESS | Errno::EINTR) => Ok(TcpStream::from(socket)),
        Err(error) => Err(refused(to, error)),
    }
}

/// Establishes a connection. Calls `opened` after the SYN was sent.
pub(super) fn connected(
    options: &SendOptions,
    session: &Session<'_>,
    mut opened: impl FnMut(&TcpStream),
) -> Result<TcpStream, EndpointError> {
    let to = options.to;
    let stream = connecting(options)?;
    opened(&stream);
    let give_up = session.clock.now() + options.connect_timeout;
    loop {
        // A handshake that completes before the stop counts as a connection.
        let stopped = session.stopped();
        let left = give_up.since(session.clock.now());
        let mut watched = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
        wait(&mut watched, if stopped { Span::ZERO } else { left.min(LOOK) })?;
        if watched[0].any().unwrap_or(false) {
            return match stream.take_error()? {
                None => Ok(stream),
                Some(error) => Err(refused(to, Errno::from_raw(error.raw_os_error().unwrap_or(0)))),
            };
        }
        if stopped {
            return Err(EndpointError::Stopped(to));
        }
        if left == Span::ZERO {
            return Err(EndpointError::TimedOut { to, after: options.connect_timeout });
        }
    }
}

fn refused(to: SocketAddr, error: Errno) -> EndpointError {
    match error {
        Errno::ECONNREFUSED => EndpointError::Refused(to),
        other => EndpointError::Unreachable { to, error: other.into() },
    }
}

/// The congestion control of a connection.
pub(super) fn congestion(stream: &TcpStream) -> Option<String> {
    let name = getsockopt(stream, TcpCongestion).ok()?;
    Some(name.to_string_lossy().trim_end_matches('\0').to_owned())
}

/// Closes a connection with RST, so that the peer sees an incomplete transfer.
pub(super) fn abort(stream: TcpStream) {
    let now = libc::linger { l_onoff: 1, l_linger: 0 };
    // If this fails, the peer sees an early FIN, which it must handle anyway.
    let _ = setsockopt(&stream, Linger, &now);
}

/// Waits until one of `watched` is ready, or for `span`. Signals end the wait early.
pub(crate) fn wait(watched: &mut [PollFd<'_>], span: Span) -> io::Result<()> {
    let seconds = i64::try_from(span.0 / 1_000_000_000).unwrap_or(i64::MAX);
    let time = TimeSpec::new(seconds, (span.0 % 1_000_000_000) as i64);
    match ppoll(watched, Some(time), None) {
        Ok(_) => Ok(()),
        Err(Errno::EINTR) => {
            // The kernel did not report readiness, so clear it.
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
