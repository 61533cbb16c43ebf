//! A transfer from the receiver to the client: the reverse of [`super::send()`].

use std::io::Read as _;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd as _;

use lasthop_proto::units::{Span, Time};
use nix::poll::{PollFd, PollFlags};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::discard::difference;
use super::open::open;
use super::role::{REPORT, Report, Request, Role};
use super::send::is_later;
use super::socket::{self, LOOK};
use super::{
    CHUNK, End, EndpointError, Pattern, Progress, SendObserver, SendOptions, Session, Wrong, hex,
};

/// Result of a reverse transfer. Times are relative to the moment before the SYN.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ReverseReport {
    /// Address of this end.
    pub local: SocketAddr,
    /// Address of the peer, which sent.
    pub peer: SocketAddr,
    /// How it ended; only after `Closed` all bytes have arrived.
    pub end: End,
    /// Received bytes.
    pub bytes: u64,
    /// SHA-256 of the received bytes in hexadecimal.
    pub sha256: String,
    /// The first byte that differs from the pattern.
    pub wrong: Option<Wrong>,
    /// Start of the transfer, on the session's clock.
    pub began: Time,
    /// Time until the receiver had accepted the request.
    pub connected: Span,
    /// Time until the first byte arrived.
    pub first_byte: Option<Span>,
    /// Time until the end; for a complete transfer, until the last byte arrived.
    pub ended: Span,
    /// Counters of the sending end; `None` for an incomplete transfer.
    pub sender: Option<Report>,
}

impl ReverseReport {
    /// Bytes per second from the SYN until the last byte; `None` for an incomplete transfer.
    pub fn throughput(&self) -> Option<f64> {
        (self.end == End::Closed && self.ended != Span::ZERO)
            .then(|| self.bytes as f64 / self.ended.as_secs_f64())
    }
}

/// Receives `bytes` of the pattern from the discard receiver at `options.to`. `congestion` of the options
/// applies to the sending end. `duration` limits the transfer.
///
/// # Errors
///
/// [`EndpointError`] if the connection cannot be established or the role is refused.
pub fn receive(
    options: &SendOptions,
    bytes: u64,
    duration: Span,
    session: &Session<'_>,
    observer: &mut dyn SendObserver,
) -> Result<ReverseReport, EndpointError> {
    let began = session.clock.now();
    let congestion = options.congestion.clone();
    let request =
        Request { bytes: Some(bytes), duration, congestion, ..Request::new(Role::Download) };
    let here = SendOptions { congestion: None, ..options.clone() };
    let opened = open(&here, &request, session)?;
    let connected = session.clock.now();
    let local = opened.stream.local_addr()?;
    let of = bytes.min(opened.bytes);
    let mut transfer = Transfer {
        of,
        requested: bytes,
        duration: opened.duration,
        received: 0,
        sha: Sha256::new(),
        wrong: None,
        expected: Vec::new(),
        first_byte: None,
        last_byte: connected,
        moved: connected,
        tail: Vec::with_capacity(REPORT),
    };
    let mut shown = connected;
    let mut piece = vec![0; CHUNK];
    let end = loop {
        let now = session.clock.now();
        if now.since(shown) >= LOOK {
            shown = now;
            observer.progress(transfer.progress());
        }
        if session.stopped() {
            break End::Stopped;
        }
        if options.idle.is_some_and(|idle| now.since(transfer.moved) >= idle) {
            break End::Idle;
        }
        let mut watched = [PollFd::new(opened.stream.as_fd(), PollFlags::POLLIN)];
        socket::wait(&mut watched, LOOK)?;
        match (&opened.stream).read(&mut piece) {
            Ok(0) => break transfer.end(),
            Ok(count) => transfer.take(&piece[..count], session.clock.now()),
            Err(error) if is_later(&error) => {}
            Err(error) => break End::Failed { why: error.to_string() },
        }
    };
    observer.progress(transfer.progress());
    observer.closing();
    let ended = if end == End::Closed { transfer.last_byte } else { session.clock.now() };
    let sender = Report::parse(&transfer.tail).filter(|_| end == End::Closed);
    if end == End::Closed {
        let _ = opened.stream.shutdown(Shutdown::Write);
    } else {
        socket::abort(opened.stream);
    }
    let after = |at: Time| at.since(began);
    Ok(ReverseReport {
        local,
        peer: options.to,
        end,
        bytes: transfer.received,
        sha256: hex(transfer.sha),
        wrong: transfer.wrong,
        began,
        connected: after(connected),
        first_byte: transfer.first_byte.map(after),
        ended: after(ended),
        sender,
    })
}

/// Received part of a reverse transfer.
struct Transfer {
    /// Number of expected bytes: the requested ones, or fewer by the limit of the receiver.
    of: u64,
    requested: u64,
    /// Granted duration.
    duration: Span,
    received: u64,
    sha: Sha256,
    wrong: Option<Wrong>,
    expected: Vec<u8>,
    first_byte: Option<Time>,
    last_byte: Time,
    moved: Time,
    /// Bytes after the expected ones, at most the length of a report.
    tail: Vec<u8>,
}

impl Transfer {
    fn progress(&self) -> Progress {
        let done = self.received;
        Progress { written: done, acked: done, of: Some(self.of), retransmissions: None }
    }

    fn take(&mut self, piece: &[u8], now: Time) {
        self.moved = now;
        let left = usize::try_from(self.of - self.received).unwrap_or(usize::MAX);
        let (data, rest) = piece.split_at(piece.len().min(left));
        if !data.is_empty() {
            self.first_byte.get_or_insert(now);
            self.last_byte = now;
            self.sha.update(data);
            if self.wrong.is_none() {
                Pattern { stream: 0 }.fill(self.received, data.len(), &mut self.expected);
                self.wrong = difference(self.received, data, &self.expected);
            }
            self.received += data.len() as u64;
        }
        let room = REPORT - self.tail.len();
        self.tail.extend_from_slice(&rest[..rest.len().min(room)]);
    }

    /// The end of a transfer whose peer has closed.
    fn end(&self) -> End {
        let complete = self.received == self.of && Report::parse(&self.tail).is_some();
        let why = match complete {
            true if self.of == self.requested => return End::Closed,
            true => format!("the other end sends at most {} bytes", self.of),
            false => format!("the other end closed early; it sends for at most {}", self.duration),
        };
        End::Failed { why }
    }
}
