//! Sockets with options that are set before the handshake.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use lasthop_proto::units::Span;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::sockopt::{Linger, ReuseAddr, TcpNoDelay};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket,
};
use nix::sys::time::TimeSpec;

use super::{EndpointError, SendOptions, Session};

/// Interval at which a flag is checked.
pub(crate) const LOOK: Span = Span::millis(50);

fn new(address: SocketAddr) -> nix::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket(family, SockType::Stream, flags, None)
}

fn bound(socket: &OwnedFd, address: SocketAddr) -> Result<(), EndpointError> {
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))
        .map_err(|error| EndpointError::Address { address, error: error.into() })
}

/// Listens on one address. The listener is non-blocking.
///
/// # Errors
///
/// Errors of the system, such as an address of another machine.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Starts a connection. Options are set before the SYN, since they affect the handshake.
pub(super) fn connecting(options: &SendOptions) -> Result<TcpStream, EndpointError> {
    let to = options.to;
    let unreachable = |error: Errno| EndpointError::Unreachable { to, error: error.into() };
    let socket = new(to).map_err(|error| match error {
        Errno::EAFNOSUPPORT => unreachable(error),
        other => EndpointError::Socket(other.into()),
    })?;
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
