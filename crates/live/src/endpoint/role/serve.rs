//! The receiver's end of a connection with a role.
//!
//! Every client may be hostile. A connection has one buffer of little more than [`CHUNK`] bytes and a deadline. The
//! receiver sends data only over TCP, whose handshake has confirmed the client's address. It sends datagrams only to an
//! address and port that send its token. It sends no more bytes than the limits allow. In the echo role it sends no
//! more than it has received, apart from answer and report.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::LazyLock;

use lasthop_proto::units::{Rate, Span, Time};
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{TcpCongestion, TcpNoDelay};
use serde::Serialize;

use super::limits::{RoleLimits, client};
use super::marks::{BLOCK, MarkReader, stamp};
use super::{Refusal, Reply, Report, Request, Role, Token};
use crate::endpoint::send::is_later;
use crate::endpoint::udp::source::DatagramSource;
use crate::endpoint::udp::{Header, Tally};
use crate::endpoint::unsent::UnsentLimit;
use crate::endpoint::{CHUNK, End, Pattern, TcpInfo, available_congestion, socket};

/// Reads or writes of a connection before the next one has its turn.
const TURN: usize = 4;

/// Most bytes that the echo role reads at a time. Probes are smaller.
const ECHO: usize = 4096;

/// Time without progress after which a connection with a role is dropped.
const SILENCE: Span = Span::secs(30);

/// Time for data and report to arrive, and for the client to close. Long queues hold data for seconds.
const CLOSING: Span = Span::secs(10);

/// A finished connection with a role.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Served {
    /// Number of the connection in order of acceptance, from 1.
    pub number: u64,
    /// Address of the client.
    pub peer: SocketAddr,
    /// Use of the connection; `None` if it was refused.
    pub role: Option<Role>,
    /// Reason of a refusal.
    pub refused: Option<Refusal>,
    /// How it ended. `Closed` if the client ended it, also by RST.
    pub end: End,
    /// Bytes received, or sent to the client.
    pub bytes: u64,
    /// Time from the request to the end.
    pub seconds: Span,
}

/// Time for a refused client to close. It holds the place of another connection.
const REFUSED: Span = Span::secs(2);

/// Data of downloads with marks.
static BULK: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut data = Vec::new();
    Pattern { stream: 0 }.fill(0, CHUNK, &mut data);
    data
});

/// Progress of a connection with a role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Active,
    /// The report, or a refusal, is in the buffer.
    Reporting,
    /// Everything is sent; waits for the client to close until the deadline.
    Closing(Time),
}

/// A connection with a role.
#[derive(Debug)]
pub(in crate::endpoint) struct Serving {
    number: u64,
    stream: TcpStream,
    peer: SocketAddr,
    role: Option<Role>,
    refused: Option<Refusal>,
    phase: Phase,
    began: Time,
    /// Time of the latest progress.
    moved: Time,
    /// End of the granted duration.
    until: Time,
    /// Limit of the bytes of a download.
    limit: u64,
    /// Bytes received, or accepted by the kernel in a download.
    bytes: u64,
    /// Bytes to send.
    out: Vec<u8>,
    /// Number of bytes of `out` that the kernel has accepted.
    taken: usize,
    /// Token and counters of received datagrams.
    udp: Option<(Token, Tally)>,
    /// Datagrams to the client.
    source: Option<DatagramSource>,
    unsent: UnsentLimit,
    /// Number of pieces of a download that are sent before the next wait.
    writes: usize,
    marks: Option<Marks>,
}

/// Marks of the data of a connection.
#[derive(Clone, Copy, Debug)]
struct Marks {
    /// Marks that have arrived: bytes of the client in a download, the latest counter in an upload.
    arrived: u64,
    /// The latest returned counter of an upload.
    returned: u64,
    reader: MarkReader,
}

impl Marks {
    /// Marks of a connection whose request came with `rest`.
    fn new(role: Role, rest: &[u8]) -> Marks {
        let mut reader = MarkReader::new(BLOCK);
        let arrived = match role {
            Role::Upload => reader.read(rest).unwrap_or(0),
            _ => rest.len() as u64,
        };
        Marks { arrived, returned: 0, reader }
    }
}

/// A connection whose first bytes were a request.
pub(in crate::endpoint) struct Candidate {
    pub(in crate::endpoint) number: u64,
    pub(in crate::endpoint) stream: TcpStream,
    pub(in crate::endpoint) peer: SocketAddr,
    /// Bytes after the request.
    pub(in crate::endpoint) rest: Vec<u8>,
}

impl Serving {
    /// Begins a role. `token` is that of UDP datagrams.
    pub(in crate::endpoint) fn grant(
        candidate: Candidate,
        request: &Request,
        limits: &RoleLimits,
        token: Option<Token>,
        now: Time,
    ) -> Serving {
        if let Some(name) = &request.congestion {
            // The kernel would load a module for an unknown name if the receiver runs as root.
            let known = available_congestion().contains(name);
            let name = std::ffi::OsString::from(name);
            if !known || setsockopt(&candidate.stream, TcpCongestion, &name).is_err() {
                return Serving::refuse(candidate, Refusal::Congestion, now);
            }
        }
        // If this fails, probes measure Nagle's algorithm too.
        let _ = setsockopt(&candidate.stream, TcpNoDelay, &true);
        let duration = request.duration.min(limits.duration);
        let most = if request.role == Role::UdpDown { limits.udp_rate } else { limits.bytes };
        let limit = request.bytes.unwrap_or(u64::MAX).min(most);
        let answer = Reply::Granted { duration, bytes: limit, token: token.unwrap_or_default() };
        let marks = request.marks.then(|| Marks::new(request.role, &candidate.rest));
        let mut serving = Serving::new(candidate, answer, Some(request.role), now);
        (serving.until, serving.limit, serving.marks) = (now + duration, limit, marks);
        match token {
            Some(token) if request.role == Role::UdpDown => {
                let rate = Rate::from_bps(limit.saturating_mul(8));
                let source = |rate| DatagramSource::new(token, rate, request.length, now);
                serving.source = rate.map(source);
            }
            token => serving.udp = token.map(|token| (token, Tally::default())),
        }
        // An error appears again in the connection's own turn.
        let _ = serving.write(now);
        serving
    }

    /// Refuses a role.
    pub(in crate::endpoint) fn refuse(
        candidate: Candidate,
        refusal: Refusal,
        now: Time,
    ) -> Serving {
        let mut serving = Serving::new(candidate, Reply::Refused(refusal), None, now);
        (serving.phase, serving.refused) = (Phase::Reporting, Some(refusal));
        serving
    }

    fn new(candidate: Candidate, answer: Reply, role: Option<Role>, now: Time) -> Serving {
        let Candidate { number, stream, peer, rest } = candidate;
        let mut out = answer.encode().to_vec();
        if role == Some(Role::Echo) {
            out.extend_from_slice(&rest);
        }
        let counted = matches!(role, Some(Role::Upload | Role::Echo));
        let bytes = if counted { rest.len() as u64 } else { 0 };
        Serving {
            unsent: UnsentLimit::new(&stream, now),
            number,
            stream,
            peer,
            role,
            refused: None,
            phase: Phase::Active,
            began: now,
            moved: now,
            until: now,
            limit: 0,
            bytes,
            out,
            taken: 0,
            udp: None,
            source: None,
            writes: 0,
            marks: None,
        }
    }

    /// Whether the connection belongs to a client, as [`client`] returns it.
    pub(in crate::endpoint) fn is_of(&self, other: IpAddr) -> bool {
        client(self.peer.ip()) == other
    }

    /// Whether datagrams are sent to the client.
    pub(in crate::endpoint) fn has_source(&self) -> bool {
        self.source.is_some()
    }

    /// Whether probes wait for this connection.
    pub(in crate::endpoint) fn is_echo(&self) -> bool {
        self.role == Some(Role::Echo)
    }

    /// Whether data of the client is read now.
    fn is_reading(&self) -> bool {
        match self.phase {
            Phase::Active => !self.is_echo() || self.out.is_empty(),
            Phase::Reporting => false,
            Phase::Closing(_) => true,
        }
    }

    /// The socket with the events that allow progress.
    pub(in crate::endpoint) fn watched(&self) -> PollFd<'_> {
        let mut interest = if self.is_reading() { PollFlags::POLLIN } else { PollFlags::empty() };
        let endless = self.role == Some(Role::Download) && self.phase == Phase::Active;
        if endless || !self.out.is_empty() {
            interest |= PollFlags::POLLOUT;
        }
        PollFd::new(self.stream.as_fd(), interest)
    }

    /// Reads and writes without blocking after `events`. Returns the end of the connection, if reached.
    pub(in crate::endpoint) fn act(
        &mut self,
        now: Time,
        events: PollFlags,
        scratch: &mut [u8],
    ) -> Option<End> {
        self.writes = match self.marks {
            Some(_) if !events.contains(PollFlags::POLLOUT) => 0,
            Some(_) => self.unsent.writes(TURN),
            None => TURN,
        };
        match self.advance(now, scratch) {
            Ok(end) => end,
            // Clients end uploads by RST, so that no queue outlives the measurement.
            Err(error) if is_reset(&error) => Some(End::Closed),
            Err(error) => Some(End::Failed { why: error.to_string() }),
        }
    }

    /// Answers pending probes of the echo role.
    pub(in crate::endpoint) fn answer(&mut self, now: Time, scratch: &mut [u8]) {
        // An error or an end appears again in the connection's own turn.
        if self.phase == Phase::Active && self.write(now).is_ok() {
            if let Ok(Some(1..)) = self.read(now, scratch) {
                let _ = self.write(now);
            }
        }
    }

    /// Whether datagrams with `token` from `address` belong to this connection.
    pub(in crate::endpoint) fn accepts(&self, token: &Token, address: IpAddr) -> bool {
        let counted = self.udp.as_ref().map(|(token, _)| token);
        let sent = self.source.as_ref().map(|source| &source.token);
        let known = counted.or(sent) == Some(token);
        known && self.phase == Phase::Active && address.to_canonical() == self.peer.ip()
    }

    /// Counts a datagram, or sends others to its source.
    pub(in crate::endpoint) fn take(
        &mut self,
        header: &Header,
        from: SocketAddr,
        now: Time,
        length: usize,
    ) {
        if let Some(source) = &mut self.source {
            source.confirm(from, now);
        }
        if let Some((_, tally)) = &mut self.udp {
            tally.count(header.number, header.sent, now, length);
            self.bytes += length as u64;
        }
    }

    /// Time of the next datagram to the client.
    pub(in crate::endpoint) fn due(&self, now: Time) -> Option<Time> {
        self.source.filter(|_| self.is_sending(now)).and_then(|source| source.due(now))
    }

    fn is_sending(&self, now: Time) -> bool {
        self.phase == Phase::Active && now < self.until
    }

    /// Sends the datagrams that are due.
    pub(in crate::endpoint) fn send(&mut self, socket: &UdpSocket, now: Time, scratch: &mut [u8]) {
        if self.is_sending(now) {
            if let Some(source) = &mut self.source {
                self.bytes += source.send(socket, now, scratch);
            }
        }
    }

    /// The end by a deadline, if one has passed. Begins the report of a download at the end of its duration.
    pub(in crate::endpoint) fn expire(&mut self, now: Time) -> Option<End> {
        match self.phase {
            Phase::Closing(until) => (now >= until).then_some(End::Closed),
            Phase::Active if self.role == Some(Role::Download) && now >= self.until => {
                self.report(now);
                None
            }
            _ => {
                if self.role.is_some() && now >= self.until + CLOSING {
                    return Some(End::Failed { why: "the granted time is over".to_owned() });
                }
                // The connection of a UDP role is silent until its end.
                let udp = self.role.is_some_and(Role::is_udp);
                let silent = now.since(self.moved) >= SILENCE && !udp;
                silent.then_some(End::Idle)
            }
        }
    }

    fn advance(&mut self, now: Time, scratch: &mut [u8]) -> io::Result<Option<End>> {
        for _ in 0..TURN {
            let read = self.read(now, scratch)?;
            match (self.phase, read) {
                (Phase::Closing(_), Some(0)) => return Ok(Some(End::Closed)),
                (Phase::Active, Some(0)) => self.report(now),
                _ => {}
            }
            let wrote = self.write(now)?;
            if self.phase == Phase::Reporting && self.out.is_empty() {
                self.stream.shutdown(Shutdown::Write)?;
                let time = if self.refused.is_some() { REFUSED } else { CLOSING };
                self.phase = Phase::Closing(now + time);
            }
            if read.is_none() && !wrote {
                break;
            }
        }
        Ok(None)
    }

    /// Puts the report behind the bytes of `out` that are already announced.
    fn report(&mut self, now: Time) {
        let info = TcpInfo::of(&self.stream).ok();
        let time = now.since(self.began);
        let report = Report::of(self.bytes, time, info.as_ref());
        let report = self.udp.as_ref().map_or(report, |(_, tally)| tally.report(report));
        let datagrams = self.source.map_or(report.datagrams, |source| source.sent);
        let report = Report { datagrams, ..report };
        self.out.extend_from_slice(&report.encode());
        self.phase = Phase::Reporting;
    }

    /// Sends buffered bytes, and in a download the pattern. Returns whether the kernel accepted any.
    fn write(&mut self, now: Time) -> io::Result<bool> {
        let downloads = self.role == Some(Role::Download) && self.phase == Phase::Active;
        if self.out.is_empty() && downloads && self.writes > 0 {
            self.writes -= 1;
            let piece = self.unsent.bytes().min(CHUNK) as u64;
            let left = self.limit.saturating_sub(self.bytes).min(piece);
            match self.marks {
                // Marks change the data, and to generate the pattern takes longer than to send it.
                Some(_) => self.out.extend_from_slice(&BULK[..left as usize]),
                None => Pattern { stream: 0 }.fill(self.bytes, left as usize, &mut self.out),
            }
            self.bytes += left;
            if left == 0 {
                self.report(now);
            }
        }
        self.stamp();
        let mut any = false;
        while self.taken < self.out.len() {
            match self.stream.write(&self.out[self.taken..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.taken += count;
                    (self.moved, any) = (now, true);
                }
                Err(error) if is_later(&error) => return Ok(any),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.taken = 0;
        if any && downloads {
            self.unsent.update(&self.stream, now, self.bytes);
        }
        Ok(any)
    }

    /// Writes the present mark to the unsent data of a download.
    fn stamp(&mut self) {
        let Some(marks) = self.marks else { return };
        if self.role == Some(Role::Download) && self.phase == Phase::Active {
            let unsent = self.out.get_mut(self.taken..).unwrap_or_default();
            // The answer to the request precedes all data, so there is no position for it.
            if let Some(position) = self.bytes.checked_sub(unsent.len() as u64) {
                stamp(position, unsent, marks.arrived);
            }
        }
    }

    /// Counts marks in received bytes, and returns those of an upload.
    fn read_marks(&mut self, received: &[u8]) {
        let Some(marks) = &mut self.marks else { return };
        match self.role {
            Some(Role::Download) => marks.arrived += received.len() as u64,
            Some(Role::Upload) => {
                marks.arrived = marks.reader.read(received).unwrap_or(marks.arrived);
                // For a client that does not read, at most one counter is buffered.
                if marks.arrived != marks.returned && self.out.is_empty() {
                    marks.returned = marks.arrived;
                    self.out.extend_from_slice(&marks.arrived.to_be_bytes());
                }
            }
            _ => {}
        }
    }

    /// Reads once. Returns the number of bytes, zero at the client's end, and `None` if nothing was read.
    fn read(&mut self, now: Time, scratch: &mut [u8]) -> io::Result<Option<usize>> {
        let active = self.phase == Phase::Active;
        let echoes = self.is_echo() && active;
        if !self.is_reading() {
            return Ok(None);
        }
        let most = if echoes { ECHO.min(scratch.len()) } else { scratch.len() };
        match self.stream.read(&mut scratch[..most]) {
            Ok(count) => {
                if count > 0 && active {
                    self.moved = now;
                }
                if echoes {
                    self.out.extend_from_slice(&scratch[..count]);
                }
                if matches!(self.role, Some(Role::Upload | Role::Echo)) && active {
                    self.bytes += count as u64;
                }
                if active {
                    self.read_marks(&scratch[..count]);
                }
                Ok(Some(count))
            }
            Err(error) if is_later(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The report for the observer. Aborts an incomplete connection.
    pub(in crate::endpoint) fn finish(self, end: End, now: Time) -> Served {
        let Serving { number, peer, role, refused, began, bytes, stream, .. } = self;
        if end != End::Closed {
            socket::abort(stream);
        }
        Served { number, peer, role, refused, end, bytes, seconds: now.since(began) }
    }
}

/// Whether the peer has ended the connection.
fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
