//! Opens a connection with a role at a discard receiver.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;

use lasthop_proto::units::Span;
use nix::poll::{PollFd, PollFlags};

use super::role::{Answer, REQUEST, Request, Token};
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
    let mut stream = socket::connected(options, session, |_| {})?;
    // An empty send buffer has room for the message.
    stream.write_all(&request.encode())?;
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
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                return Err(EndpointError::NoRoles(to));
            }
            Err(error) => return Err(error.into()),
        }
    }
    match Answer::parse(&answer) {
        Some(Answer::Granted { duration, bytes, token }) => {
            Ok(Opened { stream, duration, bytes, token })
        }
        Some(Answer::Refused(refusal)) => Err(EndpointError::Role { to, refusal }),
        None => Err(EndpointError::NoRoles(to)),
    }
}
