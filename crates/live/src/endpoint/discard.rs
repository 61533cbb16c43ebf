//! The discard receiver (RFC 863): takes connections, reads, counts, and throws away.

use std::io::{self, ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use lasthop_proto::units::{Span, Time};
use nix::poll::{PollFd, PollFlags};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::part::Part;
use super::socket::{self, LOOK};
use super::{CHUNK, End, Pattern, Session, hex};

/// Pieces that are read from one connection before the next has its turn.
const TURN: usize = 16;

/// How the receiver works.
#[derive(Clone, Debug)]
pub struct DiscardOptions {
    /// Connections at a time; further ones wait to be accepted.
    pub at_once: usize,
    /// Ends after so many transfers.
    pub count: Option<u64>,
    /// Compares what comes with this pattern.
    pub verify: Option<Pattern>,
    /// Keeps each complete transfer as a file in this directory.
    pub directory: Option<PathBuf>,
    /// Gives a connection up on which nothing came for so long.
    pub idle: Option<Span>,
}

impl Default for DiscardOptions {
    /// Up to 64 connections at a time for ever, five minutes of patience with each, nothing compared or kept.
    fn default() -> DiscardOptions {
        DiscardOptions {
            at_once: 64,
            count: None,
            verify: None,
            directory: None,
            idle: Some(Span::secs(300)),
        }
    }
}

/// The first byte that is not the pattern's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Wrong {
    /// Bytes before it.
    pub position: u64,
    /// The byte that came.
    pub got: u8,
    /// The byte of the pattern.
    pub expected: u8,
}

/// A transfer that ended.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Received {
    /// Which one, counted from 1 as they were accepted.
    pub number: u64,
    /// Where from.
    pub peer: SocketAddr,
    /// Where to.
    pub local: SocketAddr,
    /// How it ended; `Closed` if the peer said that this is all.
    pub end: End,
    /// Bytes that came.
    pub bytes: u64,
    /// SHA-256 of them in hexadecimal.
    pub sha256: String,
    /// When the connection was accepted, on the session's clock.
    pub accepted: Time,
    /// From then to the first byte.
    pub first_byte: Option<Span>,
    /// From then to the end.
    pub seconds: Span,
    /// The first byte that is not the pattern's; `None` if all are, or if nothing is compared.
    pub wrong: Option<Wrong>,
    /// The file that holds the bytes.
    pub file: Option<PathBuf>,
}

impl Received {
    /// Whether it is complete and, if it was compared, as it should be.
    pub fn is_good(&self) -> bool {
        self.end == End::Closed && self.wrong.is_none()
    }

    /// Bytes per second from the acceptance to the end; `None` if that took no time.
    pub fn throughput(&self) -> Option<f64> {
        (self.seconds != Span::ZERO).then(|| self.bytes as f64 / self.seconds.as_secs_f64())
    }
}

/// Is told what the receiver does.
pub trait DiscardObserver {
    /// A connection was accepted.
    fn accepted(&mut self, number: u64, peer: SocketAddr) {
        let _ = (number, peer);
    }
    /// A transfer ended.
    fn received(&mut self, transfer: &Received);
}

impl DiscardObserver for Vec<Received> {
    fn received(&mut self, transfer: &Received) {
        self.push(transfer.clone());
    }
}

/// All transfers together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Totals {
    /// Transfers that ended, in whatever way.
    pub transfers: u64,
    /// Transfers of them that are not complete or not as they should be.
    pub bad: u64,
    /// Bytes that came.
    pub bytes: u64,
}

/// Takes connections until it has had as many as it should or is stopped. `listener` must not block, as those
/// of [`super::listen`] do not.
///
/// # Errors
///
/// What the system says about the listener; what is wrong with a connection stands in its report.
pub fn discard(
    listener: &TcpListener,
    options: &DiscardOptions,
    session: &Session<'_>,
    observer: &mut dyn DiscardObserver,
) -> io::Result<Totals> {
    let mut receiver = Receiver {
        options,
        session,
        observer,
        open: Vec::new(),
        accepted: 0,
        totals: Totals::default(),
        paused: Time::ZERO,
        piece: vec![0; CHUNK],
        expected: Vec::new(),
    };
    while !session.stopped() && options.count.is_none_or(|count| receiver.totals.transfers < count)
    {
        receiver.turn(listener)?;
    }
    for connection in std::mem::take(&mut receiver.open) {
        receiver.report(connection, End::Stopped);
    }
    Ok(receiver.totals)
}

struct Receiver<'a> {
    options: &'a DiscardOptions,
    session: &'a Session<'a>,
    observer: &'a mut dyn DiscardObserver,
    open: Vec<Connection>,
    accepted: u64,
    totals: Totals,
    /// No connection is accepted before this time.
    paused: Time,
    piece: Vec<u8>,
    expected: Vec<u8>,
}

struct Connection {
    number: u64,
    stream: TcpStream,
    peer: SocketAddr,
    local: SocketAddr,
    accepted: Time,
    first: Option<Time>,
    last: Time,
    bytes: u64,
    sha: Sha256,
    wrong: Option<Wrong>,
    part: Option<Part>,
}

impl Receiver<'_> {
    /// Waits for something to come, and takes it in.
    fn turn(&mut self, listener: &TcpListener) -> io::Result<()> {
        let now = self.session.clock.now();
        let room = self.open.len() < self.options.at_once.max(1)
            && self.options.count.is_none_or(|count| self.accepted < count)
            && now >= self.paused;
        let connections = self.open.iter().map(|connection| connection.stream.as_fd());
        let mut watched: Vec<_> =
            connections.map(|stream| PollFd::new(stream, PollFlags::POLLIN)).collect();
        if room {
            watched.push(PollFd::new(listener.as_fd(), PollFlags::POLLIN));
        }
        socket::wait(&mut watched, LOOK)?;
        let ready: Vec<bool> = watched.iter().map(|one| one.any().unwrap_or(false)).collect();
        drop(watched);
        let now = self.session.clock.now();
        // From the last, so that removing one moves none that is still to be looked at.
        for index in (0..self.open.len()).rev() {
            let end = if ready.get(index) == Some(&true) { self.read(index) } else { None };
            let idle = now.since(self.open[index].last);
            let end =
                end.or(self.options.idle.is_some_and(|most| idle >= most).then_some(End::Idle));
            if let Some(end) = end {
                let connection = self.open.swap_remove(index);
                self.report(connection, end);
            }
        }
        if room && ready.last() == Some(&true) {
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
        // An IPv4 peer of a listener for both.
        let plain =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        let peer = plain(peer);
        self.accepted += 1;
        let number = self.accepted;
        self.observer.accepted(number, peer);
        let mut connection = Connection {
            number,
            peer,
            local: plain(stream.local_addr().or_else(|_| listener.local_addr())?),
            accepted: now,
            first: None,
            last: now,
            bytes: 0,
            sha: Sha256::new(),
            wrong: None,
            part: None,
            stream,
        };
        let file = self.options.directory.as_deref();
        let part = file.map(|directory| Part::create(directory, peer, number)).transpose();
        match part.and_then(|part| connection.stream.set_nonblocking(true).map(|()| part)) {
            Ok(part) => {
                connection.part = part;
                self.open.push(connection);
            }
            Err(error) => self.report(connection, End::Failed { why: error.to_string() }),
        }
        Ok(())
    }

    /// Reads what there is; the end, if it has come.
    fn read(&mut self, index: usize) -> Option<End> {
        let failed = |what: &str, error: io::Error| End::Failed { why: format!("{what}{error}") };
        for _ in 0..TURN {
            let connection = &mut self.open[index];
            let count = match connection.stream.read(&mut self.piece) {
                Ok(0) => return Some(End::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Some(failed("", error)),
            };
            let now = self.session.clock.now();
            connection.first.get_or_insert(now);
            connection.last = now;
            let piece = &self.piece[..count];
            connection.sha.update(piece);
            if let (Some(pattern), None) = (self.options.verify, connection.wrong) {
                pattern.fill(connection.bytes, count, &mut self.expected);
                connection.wrong = difference(connection.bytes, piece, &self.expected);
            }
            connection.bytes += count as u64;
            if let Some(part) = &mut connection.part {
                if let Err(error) = part.write(piece) {
                    return Some(failed("cannot write the file: ", error));
                }
            }
        }
        None
    }

    fn report(&mut self, connection: Connection, mut end: End) {
        let now = self.session.clock.now();
        let Connection { number, stream, peer, local, accepted, bytes, .. } = connection;
        let mut file = None;
        if end == End::Closed {
            match connection.part.map(Part::keep).transpose() {
                Ok(kept) => file = kept,
                Err(error) => end = End::Failed { why: format!("cannot keep the file: {error}") },
            }
        }
        if end != End::Closed {
            socket::abort(stream);
        }
        let received = Received {
            number,
            peer,
            local,
            bytes,
            accepted,
            sha256: hex(connection.sha),
            first_byte: connection.first.map(|first| first.since(accepted)),
            seconds: now.since(accepted),
            wrong: connection.wrong,
            file,
            end,
        };
        self.totals.transfers += 1;
        self.totals.bytes += bytes;
        self.totals.bad += u64::from(!received.is_good());
        self.observer.received(&received);
    }
}

/// The first difference between `got`, which begins at `position`, and what was expected.
fn difference(position: u64, got: &[u8], expected: &[u8]) -> Option<Wrong> {
    if got == expected {
        return None;
    }
    let mut pairs = got.iter().zip(expected).enumerate();
    let (index, (got, expected)) = pairs.find(|(_, (got, expected))| got != expected)?;
    Some(Wrong { position: position + index as u64, got: *got, expected: *expected })
}

/// Whether such an error of `accept` will come again for ever. The others are network errors of a connection that is not ours
/// yet, or too many open files: later.
fn is_of_the_listener(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidInput | ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    /// By the numbers that accept(2) names.
    #[test]
    fn a_receiver_goes_on_unless_it_is_the_listener_that_is_at_fault() {
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
