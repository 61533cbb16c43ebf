//! The discard receiver of testbeds (RFC 863): accepts connections, reads, hashes and discards.

use std::io::{self, ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;

use lasthop_proto::units::Time;
use nix::poll::{PollFd, PollFlags};
use sha2::{Digest as _, Sha256};

use super::socket::{self, LOOK};
use super::{CHUNK, End, Session, hex};

/// Reads per connection before the next one has its turn.
const TURN: usize = 16;

/// A finished transfer.
#[derive(Clone, PartialEq, Debug)]
pub struct Received {
    /// Address of the sender.
    pub peer: SocketAddr,
    /// How it ended; `Closed` if the peer closed its direction.
    pub end: End,
    /// Number of received bytes.
    pub bytes: u64,
    /// SHA-256 of the received bytes in hexadecimal.
    pub sha256: String,
}

/// Accepts `count` connections, and reports each at its end. Stops with the session. `listener` must be non-blocking,
/// like those of [`super::listen`].
///
/// # Errors
///
/// Errors of the listener. Errors of a connection appear in its report.
pub fn discard(
    listener: &TcpListener,
    count: usize,
    session: &Session<'_>,
    report: &mut dyn FnMut(Received),
) -> io::Result<()> {
    let piece = vec![0; CHUNK];
    let mut receiver =
        Receiver { session, report, open: Vec::new(), left: count, paused: Time::ZERO, piece };
    while !session.stopped() && receiver.left + receiver.open.len() > 0 {
        receiver.turn(listener)?;
    }
    for connection in std::mem::take(&mut receiver.open) {
        receiver.report(connection, End::Stopped);
    }
    Ok(())
}

struct Receiver<'a> {
    session: &'a Session<'a>,
    report: &'a mut dyn FnMut(Received),
    open: Vec<Connection>,
    /// Number of connections that are still to be accepted.
    left: usize,
    /// No connection is accepted before this time.
    paused: Time,
    piece: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    bytes: u64,
    sha: Sha256,
}

impl Receiver<'_> {
    /// Waits for input and reads it.
    fn turn(&mut self, listener: &TcpListener) -> io::Result<()> {
        let now = self.session.clock.now();
        let accepting = self.left > 0 && now >= self.paused;
        let connections = self.open.iter().map(|connection| connection.stream.as_fd());
        let mut watched: Vec<_> =
            connections.map(|stream| PollFd::new(stream, PollFlags::POLLIN)).collect();
        if accepting {
            watched.push(PollFd::new(listener.as_fd(), PollFlags::POLLIN));
        }
        socket::wait(&mut watched, LOOK)?;
        let mut ready: Vec<bool> = watched.iter().map(|one| one.any() == Some(true)).collect();
        drop(watched);
        let accepts = accepting && ready.pop() == Some(true);
        // In descending order, so that a removal does not change the indices to come.
        for (index, _) in ready.into_iter().enumerate().rev().filter(|(_, ready)| *ready) {
            if let Some(end) = self.read(index) {
                let connection = self.open.swap_remove(index);
                self.report(connection, end);
            }
        }
        if accepts {
            self.accept(listener, now)?;
        }
        Ok(())
    }

    fn accept(&mut self, listener: &TcpListener, now: Time) -> io::Result<()> {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                if is_of_the_listener(error.kind()) {
                    return Err(error);
                }
                self.paused = now + LOOK;
                return Ok(());
            }
        };
        self.left -= 1;
        let connection = Connection { stream, peer, bytes: 0, sha: Sha256::new() };
        match connection.stream.set_nonblocking(true) {
            Ok(()) => self.open.push(connection),
            Err(error) => self.report(connection, End::Failed { why: error.to_string() }),
        }
        Ok(())
    }

    /// Reads pending data. Returns the end of the connection, if reached.
    fn read(&mut self, index: usize) -> Option<End> {
        for _ in 0..TURN {
            let connection = &mut self.open[index];
            let count = match connection.stream.read(&mut self.piece) {
                Ok(0) => return Some(End::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Some(End::Failed { why: error.to_string() }),
            };
            connection.sha.update(&self.piece[..count]);
            connection.bytes += count as u64;
        }
        None
    }

    fn report(&mut self, connection: Connection, end: End) {
        let Connection { stream, peer, bytes, sha } = connection;
        if end != End::Closed {
            socket::abort(stream);
        }
        (self.report)(Received { peer, end, bytes, sha256: hex(sha) });
    }
}

/// Whether an error of `accept` is permanent. All others are transient: network errors of a connection in
/// progress, or too many open files.
fn is_of_the_listener(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidInput | ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    /// The error numbers are those of accept(2).
    #[test]
    fn only_listener_errors_stop_the_receiver() {
        let ends = |error: Errno| is_of_the_listener(io::Error::from(error).kind());
        for error in [Errno::EINVAL, Errno::EOPNOTSUPP] {
            assert!(ends(error), "{error}");
        }
        for error in [
            Errno::EAGAIN,
            Errno::EINTR,
            Errno::ECONNABORTED,
            Errno::EMFILE,
            Errno::ENFILE,
            Errno::ENOBUFS,
            Errno::ENETDOWN,
            Errno::EHOSTUNREACH,
            Errno::ETIMEDOUT,
        ] {
            assert!(!ends(error), "{error}");
        }
    }
}
