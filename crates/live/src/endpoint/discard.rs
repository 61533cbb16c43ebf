//! The discard receiver (RFC 863): accepts connections, reads, counts and discards.

use std::io::{self, ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;

use lasthop_proto::units::{Span, Time};
use nix::poll::{PollFd, PollFlags};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::socket::{self, LOOK};
use super::{CHUNK, End, Pattern, Session, hex};

/// Reads per connection before the next one has its turn.
const TURN: usize = 16;

/// Limits and options of the receiver.
#[derive(Clone, Debug)]
pub struct DiscardOptions {
    /// Limit of simultaneous connections; further ones wait to be accepted.
    pub at_once: usize,
    /// Number of transfers after which the receiver ends; `None` for no limit.
    pub count: Option<u64>,
    /// Pattern to which received bytes are compared.
    pub verify: Option<Pattern>,
    /// Time without data after which a connection is dropped.
    pub idle: Option<Span>,
}

impl Default for DiscardOptions {
    /// At most 64 connections at a time, no limit of transfers, five minutes without data, no comparison.
    fn default() -> DiscardOptions {
        DiscardOptions { at_once: 64, count: None, verify: None, idle: Some(Span::secs(300)) }
    }
}

/// The first byte that differs from the pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Wrong {
    /// Number of bytes before it.
    pub position: u64,
    /// The received byte.
    pub got: u8,
    /// The byte of the pattern.
    pub expected: u8,
}

/// A finished transfer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Received {
    /// Number of the connection in order of acceptance, from 1.
    pub number: u64,
    /// Address of the sender.
    pub peer: SocketAddr,
    /// Address of this end.
    pub local: SocketAddr,
    /// How it ended; `Closed` if the peer closed its direction.
    pub end: End,
    /// Number of received bytes.
    pub bytes: u64,
    /// SHA-256 of the received bytes in hexadecimal.
    pub sha256: String,
    /// Time of acceptance, on the session's clock.
    pub accepted: Time,
    /// Time from acceptance to the first byte.
    pub first_byte: Option<Span>,
    /// Time from acceptance to the end.
    pub seconds: Span,
    /// The first byte that differs from the pattern; `None` if there is none or no comparison.
    pub wrong: Option<Wrong>,
}

impl Received {
    /// Whether the transfer is complete and equals the pattern, if there is one.
    pub fn is_good(&self) -> bool {
        self.end == End::Closed && self.wrong.is_none()
    }

    /// Bytes per second from acceptance to the end; `None` for zero time.
    pub fn throughput(&self) -> Option<f64> {
        (self.seconds != Span::ZERO).then(|| self.bytes as f64 / self.seconds.as_secs_f64())
    }
}

/// Observes a receiver.
pub trait DiscardObserver {
    /// Called after a connection was accepted.
    fn accepted(&mut self, number: u64, peer: SocketAddr) {
        let _ = (number, peer);
    }
    /// Called at the end of a transfer.
    fn received(&mut self, transfer: &Received);
}

impl DiscardObserver for Vec<Received> {
    fn received(&mut self, transfer: &Received) {
        self.push(transfer.clone());
    }
}

/// Sums over all transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Totals {
    /// Transfers that ended, for any reason.
    pub transfers: u64,
    /// Incomplete or wrong transfers.
    pub bad: u64,
    /// Received bytes.
    pub bytes: u64,
}

/// Accepts connections until `options.count` is reached or the session is stopped. `listener` must be
/// non-blocking, like those of [`super::listen`].
///
/// # Errors
///
/// Errors of the listener. Errors of a connection appear in its report.
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
}

impl Receiver<'_> {
    /// Waits for input and reads it.
    fn turn(&mut self, listener: &TcpListener) -> io::Result<()> {
        let now = self.session.clock.now();
        let transfers = self.totals.transfers + self.open.len() as u64;
        let room = self.open.len() < self.options.at_once.max(1)
            && self.options.count.is_none_or(|count| transfers < count)
            && now >= self.paused;
        let connections = self.open.iter().map(|connection| connection.stream.as_fd());
        let mut watched: Vec<_> =
            connections.map(|stream| PollFd::new(stream, PollFlags::POLLIN)).collect();
        if room {
            watched.push(PollFd::new(listener.as_fd(), PollFlags::POLLIN));
        }
        socket::wait(&mut watched, LOOK)?;
        let events = |one: &PollFd<'_>| one.revents().unwrap_or(PollFlags::empty());
        let mut ready: Vec<PollFlags> = watched.iter().map(events).collect();
        drop(watched);
        let is_ready = |events: Option<PollFlags>| events.is_some_and(|events| !events.is_empty());
        let accepts = room && is_ready(ready.pop());
        let now = self.session.clock.now();
        // In descending order, so that a removal does not change the indices to come.
        for (index, ready) in ready.into_iter().enumerate().rev() {
            let end = if ready.is_empty() { None } else { self.read(index) };
            let idle = now.since(self.open[index].last);
            let end =
                end.or(self.options.idle.is_some_and(|most| idle >= most).then_some(End::Idle));
            if let Some(end) = end {
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
        // Converts the mapped address of an IPv4 peer at a dual-stack listener.
        let plain =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        let peer = plain(peer);
        self.accepted += 1;
        let number = self.accepted;
        self.observer.accepted(number, peer);
        let connection = Connection {
            number,
            peer,
            local: plain(stream.local_addr().or_else(|_| listener.local_addr())?),
            accepted: now,
            first: None,
            last: now,
            bytes: 0,
            sha: Sha256::new(),
            wrong: None,
            stream,
        };
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
        }
        None
    }

    fn report(&mut self, connection: Connection, end: End) {
        let now = self.session.clock.now();
        let Connection { number, stream, peer, local, accepted, bytes, .. } = connection;
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
            end,
        };
        self.totals.transfers += 1;
        self.totals.bytes += bytes;
        self.totals.bad += u64::from(!received.is_good());
        self.observer.received(&received);
    }
}

/// The first difference between `got`, which begins at `position`, and `expected`.
fn difference(position: u64, got: &[u8], expected: &[u8]) -> Option<Wrong> {
    if got == expected {
        return None;
    }
    let mut pairs = got.iter().zip(expected).enumerate();
    let (index, (got, expected)) = pairs.find(|(_, (got, expected))| got != expected)?;
    Some(Wrong { position: position + index as u64, got: *got, expected: *expected })
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
