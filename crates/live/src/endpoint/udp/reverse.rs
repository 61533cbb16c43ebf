//! Receives datagrams that a discard receiver sends at a constant rate.

use std::io::Read as _;
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;

use lasthop_proto::units::{Rate, Span, Time};
use nix::poll::{PollFd, PollFlags};

use super::{
    HEADER, Header, MARGIN, ON_THE_WAY, PATIENCE, Tally, UdpOptions, UdpReport, socket_of,
};
use crate::endpoint::open::{Opened, open};
use crate::endpoint::role::{REPORT, Report, Request, Role};
use crate::endpoint::send::is_later;
use crate::endpoint::socket::{self, LOOK};
use crate::endpoint::{CHUNK, End, EndpointError, Progress, SendObserver, Session};

/// Interval of this end's datagrams before the first one arrives, and after it.
const FIRST: Span = Span::millis(200);
const LATER: Span = Span::secs(1);

/// Time until the first datagram.
const BEGINNING: Span = Span::secs(5);

/// Datagrams before the connection has its turn.
const TURN: usize = 256;

/// Receives datagrams from the receiver at `options.send.to`, which must accept UDP.
///
/// # Errors
///
/// [`EndpointError`] if the connection cannot be established or the role is refused.
pub fn receive_udp(
    options: &UdpOptions,
    session: &Session<'_>,
    observer: &mut dyn SendObserver,
) -> Result<UdpReport, EndpointError> {
    let UdpOptions { send, duration, .. } = options;
    let length = options.length.max(HEADER);
    let request = Request {
        duration: BEGINNING + *duration + ON_THE_WAY + MARGIN,
        bytes: Some(options.rate.bps().div_ceil(8)),
        length: u16::try_from(length).unwrap_or(u16::MAX),
        ..Request::new(Role::UdpDown)
    };
    let opened = open(send, &request, session)?;
    let rate = Rate::from_bps(opened.bytes.saturating_mul(8)).unwrap_or(options.rate);
    let socket = socket_of(&opened.stream, send.to)?;
    let local = socket.local_addr()?;
    let began = session.clock.now();
    let mut incoming = Incoming {
        socket,
        opened,
        session,
        began,
        first: None,
        duration: *duration,
        hello: began,
        tally: Tally::default(),
        bytes: 0,
        message: Vec::new(),
        report: None,
        closed: None,
    };
    let end = incoming.run(observer)?;
    observer.closing();
    let counted = incoming.tally.report(Report::default());
    let sender = incoming.report.map(|(report, _)| report);
    let first = incoming.first.unwrap_or(began);
    let last = incoming.closed.unwrap_or_else(|| session.clock.now());
    if end != End::Closed {
        socket::abort(incoming.opened.stream);
    }
    Ok(UdpReport {
        reverse: true,
        local,
        peer: send.to,
        end,
        sent: sender.map_or(0, |sender| sender.datagrams),
        bytes: sender.map_or(0, |sender| sender.bytes),
        refused: 0,
        skipped: 0,
        limited: (rate < options.rate).then_some(rate),
        length,
        began: first,
        seconds: last.since(first),
        receiver: sender.map(|_| counted),
    })
}

/// Datagrams that arrive, and the connection that controls them.
struct Incoming<'a> {
    socket: UdpSocket,
    opened: Opened,
    session: &'a Session<'a>,
    /// Start of the waiting.
    began: Time,
    /// Arrival of the first datagram.
    first: Option<Time>,
    duration: Span,
    /// Time of this end's next datagram.
    hello: Time,
    tally: Tally,
    bytes: u64,
    /// Received part of the report.
    message: Vec<u8>,
    /// The report, and its arrival.
    report: Option<(Report, Time)>,
    /// Time at which this end has closed its direction.
    closed: Option<Time>,
}

impl Incoming<'_> {
    fn run(&mut self, observer: &mut dyn SendObserver) -> Result<End, EndpointError> {
        let mut piece = vec![0; CHUNK];
        let mut shown = self.began;
        loop {
            let now = self.session.clock.now();
            if now.since(shown) >= LOOK {
                shown = now;
                observer.progress(self.progress());
            }
            if self.session.stopped() {
                return Ok(End::Stopped);
            }
            if let Some(end) = self.deadline(now) {
                observer.progress(self.progress());
                return Ok(end);
            }
            if self.closed.is_none() && now >= self.hello {
                let header = Header { token: self.opened.token, number: 0, sent: now };
                // Errors such as ICMP messages concern single datagrams.
                let _ = self.socket.send(&header.encode());
                self.hello = now + if self.first.is_some() { LATER } else { FIRST };
            }
            let mut watched = [
                PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.opened.stream.as_fd(), PollFlags::POLLIN),
            ];
            // After the report the connection is at its end, which would end each wait.
            let count = if self.report.is_some() { 1 } else { 2 };
            socket::wait(&mut watched[..count], LOOK)?;
            self.count(&mut piece);
            if let Some(end) = self.read() {
                return Ok(end);
            }
        }
    }

    fn progress(&self) -> Progress {
        Progress { written: self.bytes, acked: self.bytes, of: None, retransmissions: None }
    }

    /// Closes this end's direction at the end of the duration. Returns the end, if it is reached.
    fn deadline(&mut self, now: Time) -> Option<End> {
        let failed = |why: &str| Some(End::Failed { why: why.to_owned() });
        match (self.first, self.closed, self.report) {
            (None, ..) if now.since(self.began) >= BEGINNING => {
                failed("no datagram arrived: does a firewall or NAT on the path drop UDP?")
            }
            (Some(first), None, _) if now.since(first) >= self.duration => {
                let _ = self.opened.stream.shutdown(Shutdown::Write);
                self.closed = Some(now);
                None
            }
            (_, _, Some((_, at))) if now.since(at) >= ON_THE_WAY => Some(End::Closed),
            (_, Some(closed), None) if now.since(closed) >= PATIENCE => {
                failed("the receiver sent no report")
            }
            _ => None,
        }
    }

    /// Counts pending datagrams.
    fn count(&mut self, piece: &mut [u8]) {
        for _ in 0..TURN {
            let Ok(length) = self.socket.recv(piece) else { return };
            let now = self.session.clock.now();
            let header = Header::parse(&piece[..length]);
            let Some(header) = header.filter(|header| header.token == self.opened.token) else {
                continue;
            };
            self.first.get_or_insert(now);
            self.tally.count(header.number, header.sent, now, length);
            self.bytes += length as u64;
        }
    }

    /// Reads the connection. Returns the end if the receiver closes early.
    fn read(&mut self) -> Option<End> {
        if self.report.is_some() {
            return None;
        }
        let mut piece = [0; REPORT];
        let mut stream: &TcpStream = &self.opened.stream;
        match stream.read(&mut piece) {
            Ok(0) => Some(End::Failed { why: "the receiver closed early".to_owned() }),
            Ok(count) => {
                self.message.extend_from_slice(&piece[..count.min(REPORT - self.message.len())]);
                if self.message.len() == REPORT {
                    let now = self.session.clock.now();
                    self.report = Report::parse(&self.message).map(|report| (report, now));
                    if self.report.is_none() {
                        return Some(End::Failed { why: "the receiver sent no report".to_owned() });
                    }
                }
                None
            }
            Err(error) if is_later(&error) => None,
            Err(error) => Some(End::Failed { why: error.to_string() }),
        }
    }
}
