//! The test sender of testbeds (west97 4.5): a bulk transfer over one connection.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd as _;

use lasthop_proto::event::{Event, TcpKind};
use lasthop_proto::side::StageId;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::FlowKey;
use nix::poll::{PollFd, PollFlags};
use sha2::{Digest as _, Sha256};

use super::socket::{self, LOOK};
use super::{CHUNK, End, EndpointError, Sampler, Session, Source, TcpInfo, hex};
use crate::sys::outq::unacknowledged;

/// Options of a transfer.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Destination.
    pub to: SocketAddr,
    /// Source address; port 0 means any port.
    pub from: Option<SocketAddr>,
    /// Whether small segments are sent at once (TCP_NODELAY).
    pub no_delay: bool,
    /// Time limit of the handshake.
    pub connect_timeout: Span,
    /// Interval of the control block's samples for the trace; `None` makes no trace.
    pub sample: Option<Span>,
    /// The stage in events of the trace.
    pub stage: StageId,
}

impl SendOptions {
    /// A transfer to `to` with the system's defaults, no trace, and 10 s for the handshake.
    pub fn new(to: SocketAddr) -> SendOptions {
        SendOptions {
            to,
            from: None,
            no_delay: false,
            connect_timeout: Span::secs(10),
            sample: None,
            stage: StageId(0),
        }
    }
}

/// Result of a transfer. Times are relative to the moment before the SYN.
#[derive(Clone, PartialEq, Debug)]
pub struct SendReport {
    /// Address of this end.
    pub local: SocketAddr,
    /// How it ended; only after `Closed` all data is delivered.
    pub end: End,
    /// Bytes that the kernel accepted.
    pub bytes: u64,
    /// Bytes that the peer acknowledged.
    pub acked: u64,
    /// SHA-256 of the accepted bytes in hexadecimal.
    pub sha256: String,
    /// Time until the kernel accepted the first byte.
    pub first_byte: Option<Span>,
    /// Time until all bytes were acknowledged; accurate to two milliseconds.
    pub all_acked: Option<Span>,
    /// Time until the end; for a complete transfer, until the peer closed.
    pub ended: Span,
    /// The control block at the end, if available.
    pub tcp: Option<TcpInfo>,
}

/// Opens a connection, sends, closes its direction, and waits until the peer has closed.
///
/// Failures after the handshake appear in the report. An incomplete transfer ends with RST, so that the peer
/// detects it. `trace` receives the events of [`SendOptions::sample`].
///
/// # Errors
///
/// [`EndpointError`] if the connection cannot be established.
pub fn send(
    options: &SendOptions,
    source: Source,
    session: &Session<'_>,
    trace: &mut dyn FnMut(Event),
) -> Result<SendReport, EndpointError> {
    let began = session.clock.now();
    let mut sampler = None;
    let stream = socket::connected(options, session, |stream| {
        let (Some(every), Ok(local)) = (options.sample, stream.local_addr()) else { return };
        let new = Sampler::new(flow(local, options.to), options.stage, every);
        if let Ok(info) = TcpInfo::of(stream) {
            new.opening(session.clock.now(), &info, &mut *trace);
        }
        sampler = Some(new);
    })?;
    let local = stream.local_addr()?;
    let mut transfer = Transfer {
        session,
        trace,
        source,
        stream: &stream,
        sampler,
        chunk: Vec::with_capacity(CHUNK),
        taken: 0,
        exhausted: false,
        peer_closed: false,
        written: 0,
        acked: 0,
        sha: Sha256::new(),
        first_byte: None,
        all_acked: None,
    };
    let end = match transfer.run() {
        Ok(end) => end,
        Err(error) => End::Failed { why: error.to_string() },
    };
    let ended = session.clock.now();
    transfer.look(ended, true);
    transfer.emit(match end {
        End::Closed => TcpKind::Closed,
        _ => TcpKind::Aborted,
    });
    let after = |at: Time| at.since(began);
    let report = SendReport {
        local,
        bytes: transfer.written,
        acked: transfer.acked,
        first_byte: transfer.first_byte.map(after),
        all_acked: transfer.all_acked.map(after),
        ended: after(ended),
        sha256: hex(transfer.sha),
        tcp: TcpInfo::of(&stream).ok(),
        end,
    };
    if report.end != End::Closed {
        socket::abort(stream);
    }
    Ok(report)
}

/// The flow from `from` to `to`.
pub(crate) fn flow(from: SocketAddr, to: SocketAddr) -> FlowKey {
    FlowKey {
        src: from.ip().into(),
        dst: to.ip().into(),
        src_port: from.port(),
        dst_port: to.port(),
    }
}

/// A transfer with its connection.
struct Transfer<'a> {
    session: &'a Session<'a>,
    trace: &'a mut dyn FnMut(Event),
    source: Source,
    stream: &'a TcpStream,
    sampler: Option<Sampler>,
    /// Bytes of the source. The kernel has accepted the first `taken`.
    chunk: Vec<u8>,
    taken: usize,
    /// The source is at its end, and this end has closed its direction.
    exhausted: bool,
    /// The peer has closed its direction.
    peer_closed: bool,
    written: u64,
    acked: u64,
    sha: Sha256,
    first_byte: Option<Time>,
    all_acked: Option<Time>,
}

impl Transfer<'_> {
    fn run(&mut self) -> io::Result<End> {
        loop {
            let now = self.session.clock.now();
            self.look(now, false);
            if self.session.stopped() {
                return Ok(End::Stopped);
            }
            if self.exhausted && self.peer_closed && self.all_acked.is_some() {
                return Ok(End::Closed);
            }
            self.turn(now)?;
        }
    }

    /// Waits for readiness, then reads, writes and samples.
    fn turn(&mut self, now: Time) -> io::Result<()> {
        let mut interest = PollFlags::empty();
        if !self.peer_closed {
            interest |= PollFlags::POLLIN;
        }
        let reading = !self.exhausted && self.taken == self.chunk.len();
        if !self.exhausted && !reading {
            interest |= PollFlags::POLLOUT;
        }
        let mut watched = Vec::with_capacity(1);
        // With both directions closed, `poll` would return at once.
        if !interest.is_empty() {
            watched.push(PollFd::new(self.stream.as_fd(), interest));
        }
        if !reading {
            socket::wait(&mut watched, self.patience(now))?;
        }
        let ready = watched.first().and_then(PollFd::any) == Some(true);
        drop(watched);
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        if ready && !self.peer_closed {
            self.read()?;
        }
        if reading {
            self.refill()?;
        }
        self.write()?;
        self.count_acked()
    }

    /// Time limit of the next wait: 1 ms while the time of the last ACK is to be measured.
    fn patience(&self, now: Time) -> Span {
        let look = if self.exhausted && self.all_acked.is_none() { Span::millis(1) } else { LOOK };
        match &self.sampler {
            Some(sampler) => look.min(sampler.next().since(now)),
            None => look,
        }
    }

    /// Reads the next bytes of the source. At its end closes this end's direction.
    fn refill(&mut self) -> io::Result<()> {
        self.taken = 0;
        self.source.next(self.written, &mut self.chunk);
        if self.chunk.is_empty() {
            self.exhausted = true;
            self.stream.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let mut stream = self.stream;
        while self.taken < self.chunk.len() {
            let rest = &self.chunk[self.taken..];
            match stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.sha.update(&rest[..count]);
                    self.taken += count;
                    self.written += count as u64;
                    self.first_byte.get_or_insert_with(|| self.session.clock.now());
                }
                Err(error) if is_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads and ignores data of the peer until it closes. One read per turn, so that a peer without end does
    /// not block the loop.
    fn read(&mut self) -> io::Result<()> {
        let mut piece = [0; 4096];
        let mut stream = self.stream;
        match stream.read(&mut piece) {
            Ok(0) => self.peer_closed = true,
            Ok(_) => {}
            Err(error) if is_later(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn count_acked(&mut self) -> io::Result<()> {
        let now = self.session.clock.now();
        let waiting = unacknowledged(self.stream.as_fd())?;
        // The FIN counts as one unacknowledged byte.
        let sent = self.written + u64::from(self.exhausted);
        self.acked = self.acked.max(sent.saturating_sub(waiting).min(self.written));
        if self.exhausted && waiting == 0 && self.all_acked.is_none() {
            self.all_acked = Some(now);
            self.look(now, true);
            self.emit(TcpKind::Complete);
        }
        Ok(())
    }

    /// Samples the control block, if a sample is due or `must` is set.
    fn look(&mut self, now: Time, must: bool) {
        let Some(sampler) = &mut self.sampler else { return };
        if must || now >= sampler.next() {
            if let Ok(info) = TcpInfo::of(self.stream) {
                sampler.look(now, &info, &mut *self.trace);
            }
        }
    }

    fn emit(&mut self, kind: TcpKind) {
        if let Some(sampler) = &self.sampler {
            sampler.emit(self.session.clock.now(), kind, &mut *self.trace);
        }
    }
}

/// Whether the call may succeed later.
pub(super) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transient_errors_are_retried() {
        for kind in [ErrorKind::WouldBlock, ErrorKind::Interrupted] {
            assert!(is_later(&kind.into()), "{kind}");
        }
        for kind in [
            ErrorKind::ConnectionReset,
            ErrorKind::ConnectionAborted,
            ErrorKind::BrokenPipe,
            ErrorKind::TimedOut,
            ErrorKind::NotConnected,
            ErrorKind::InvalidInput,
            ErrorKind::UnexpectedEof,
        ] {
            assert!(!is_later(&kind.into()), "{kind}");
        }
    }
}
