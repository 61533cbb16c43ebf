//! Opens a connection with a role at a discard receiver.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;

use lasthop_proto::units::Span;
use nix::poll::{PollFd, PollFlags};

use super::role::{REPORT, REQUEST, Reply, Report, Request, Token};
use super::send::is_later;
use super::socket::{self, LOOK};
use super::{EndpointError, SendOptions, Session};

/// A connection with a role. The socket is non-blocking.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) stream: TcpStream,
    /// Time after which the receiver ends the connection.
    pub(super) duration: Span,
    /// Limit of the bytes of a download.
    pub(super) bytes: u64,
    /// Token of UDP datagrams.
    pub(super) token: Token,
    /// Time from the SYN to the end of the handshake.
    pub(super) handshake: Span,
    /// Time from the request to its answer.
    pub(super) answer: Span,
}

/// Connects, sends `request` and waits for the answer, at most the connection's timeout for each.
///
/// # Errors
///
/// [`EndpointError`]; the receiver refuses the role, or has no roles.
pub(super) fn open(
    options: &SendOptions,
    request: &Request,
    session: &Session<'_>,
) -> Result<Opened, EndpointError> {
    let to = options.to;
    let began = session.clock.now();
    let mut stream = socket::connected(options, session, |_| {})?;
    let connected = session.clock.now();
    let broken = |error: io::Error| match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => EndpointError::NoRoles(to),
        _ => EndpointError::Broken { to, error },
    };
    // An empty send buffer has room for the message.
    stream.write_all(&request.encode()).map_err(broken)?;
    let give_up = session.clock.now() + options.connect_timeout;
    let mut answer = Vec::with_capacity(REQUEST);
    while answer.len() < REQUEST {
        let left = give_up.since(session.clock.now());
        if session.stopped() {
            return Err(EndpointError::Stopped(to));
        }
        if left == Span::ZERO {
            return Err(EndpointError::NoRoles(to));
        }
        let mut watched = [PollFd::new(stream.as_fd(), PollFlags::POLLIN)];
        socket::wait(&mut watched, left.min(LOOK))?;
        let mut piece = [0; REQUEST];
        match stream.read(&mut piece[answer.len()..]) {
            Ok(0) => return Err(EndpointError::NoRoles(to)),
            Ok(count) => {
                let from = answer.len();
                answer.extend_from_slice(&piece[from..from + count]);
            }
            Err(error) if is_later(&error) => {}
            Err(error) => return Err(broken(error)),
        }
    }
    let answered = session.clock.now();
    match Reply::parse(&answer) {
        Some(Reply::Granted { duration, bytes, token }) => {
            let handshake = connected.since(began);
            let answer = answered.since(connected);
            Ok(Opened { stream, duration, bytes, token, handshake, answer })
        }
        Some(Reply::Refused(refusal)) => Err(EndpointError::Role { to, refusal }),
        None => Err(EndpointError::NoRoles(to)),
    }
}

/// Closes this end's direction and waits for the report, at most for `patience`. `None` if it does not arrive, or
/// other data precedes it.
///
/// # Errors
///
/// Errors of the system. Errors of the connection yield `None`.
pub(super) fn final_report(
    stream: &mut TcpStream,
    patience: Span,
    session: &Session<'_>,
) -> io::Result<Option<Report>> {
    if stream.shutdown(Shutdown::Write).is_err() {
        return Ok(None);
    }
    let give_up = session.clock.now() + patience;
    let mut message = Vec::with_capacity(REPORT);
    let mut piece = [0; REPORT];
    while message.len() < REPORT && session.clock.now() < give_up && !session.stopped() {
        let mut watched = [PollFd::new(stream.as_fd(), PollFlags::POLLIN)];
        socket::wait(&mut watched, LOOK)?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => message.extend_from_slice(&piece[..count]),
            Err(error) if is_later(&error) => {}
            Err(_) => break,
        }
    }
    Ok(Report::parse(&message))
}
