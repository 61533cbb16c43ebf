//! Sockets with their options set before the handshake, and waiting for them.

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

/// Where [`crate::endpoint::discard()`] listens unless told otherwise: the discard service has port 9 (RFC 863),
/// which takes privileges.
pub const DEFAULT_PORT: u16 = 9009;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// How often a flag is looked at.
pub(crate) const LOOK: Span = Span::millis(50);

/// Congestion controls that the kernel has loaded, in its order; empty if they cannot be read.
pub fn available_congestion() -> Vec<String> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    names.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Every address of the kind of `address`, at its port.
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

/// Listens on one address; `[::]` takes IPv4 too. The listener does not block.
///
/// # Errors
///
/// [`EndpointError`] says what is wrong with the address and what to do.
pub fn listen(address: SocketAddr) -> Result<TcpListener, EndpointError> {
    let socket = new(address).map_err(|error| match error {
        Errno::EAFNOSUPPORT => EndpointError::Address { address, error: error.into() },
        other => EndpointError::Socket(other.into()),
    })?;
    // Connections of a receiver that ended a moment ago must not keep the port.
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

/// Listens on all addresses: IPv6 and IPv4, or IPv4 alone where there is no IPv6.
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

/// A connection whose handshake has begun, with the options set before the SYN, so that they hold for the handshake too.
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

/// A connection; `opened` is called once its handshake has begun.
pub(crate) fn connected(
    options: &SendOptions,
    session: &Session<'_>,
    mut opened: impl FnMut(&TcpStream),
) -> Result<TcpStream, EndpointError> {
    let to = options.to;
    let stream = connecting(options)?;
    opened(&stream);
    let give_up = session.clock.now() + options.connect_timeout;
    loop {
        // Who has answered before the end was asked for has a connection, and is told as one.
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

/// Which congestion control a connection has.
pub(super) fn congestion(stream: &TcpStream) -> Option<String> {
    let name = getsockopt(stream, TcpCongestion).ok()?;
    Some(name.to_string_lossy().trim_end_matches('\0').to_owned())
}

/// Ends a connection so that the peer sees it as broken, not as complete: by RST.
pub(super) fn abort(stream: TcpStream) {
    let now = libc::linger { l_onoff: 1, l_linger: 0 };
    // Where this fails the peer sees an early end, which it must expect anyway.
    let _ = setsockopt(&stream, Linger, &now);
}

/// Waits until one of `watched` is ready, or for `span`. Signals end the wait early.
pub(crate) fn wait(watched: &mut [PollFd<'_>], span: Span) -> io::Result<()> {
    let seconds = i64::try_from(span.0 / 1_000_000_000).unwrap_or(i64::MAX);
    let time = TimeSpec::new(seconds, (span.0 % 1_000_000_000) as i64);
    match ppoll(watched, Some(time), None) {
        Ok(_) => Ok(()),
        Err(Errno::EINTR) => {
            // What was ready is not told; nothing is, then.
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
