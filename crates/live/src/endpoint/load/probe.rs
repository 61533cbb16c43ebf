//! Probes: small messages that the receiver returns.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;

use lasthop_proto::units::{Span, Time};
use nix::poll::{PollFd, PollFlags};
use serde::Serialize;

use crate::endpoint::send::is_later;
use crate::endpoint::socket::{self, LOOK};
use crate::endpoint::{EndpointError, Session};

/// Length of a probe, bytes. One segment holds it and a few delayed ones.
const PROBE: usize = 64;

/// Most probes without an answer; further ones are skipped.
const OUTSTANDING: usize = 512;

/// A round trip above this counts as late.
const LATE: Span = Span::secs(1);

/// A probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ProbeSample {
    /// Departure since the start of the phase.
    pub at: Span,
    /// Time until the answer; `None` if there was none before the end of the phase and the time after it.
    pub rtt: Option<Span>,
}

/// Probes of a phase. Over TCP a lost probe is retransmitted: it has a long round trip, and so have the probes
/// behind it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Probes {
    /// Probes in the order of departure.
    pub samples: Vec<ProbeSample>,
    /// Round trips above one second.
    pub late: u64,
    /// Probes that were due but not sent, because too many had no answer.
    pub skipped: u64,
}

impl Probes {
    /// Number of probes without an answer.
    pub fn unanswered(&self) -> u64 {
        self.samples.iter().filter(|sample| sample.rtt.is_none()).count() as u64
    }
}

/// The connection of the probes.
#[derive(Debug)]
pub(super) struct Prober {
    stream: TcpStream,
    interval: Span,
    /// Departures of probes without an answer, and their indices in the present phase. `None` for probes of an
    /// earlier phase.
    outstanding: VecDeque<(Time, Option<usize>)>,
    /// Received bytes of the next answer.
    partial: usize,
    /// Unsent bytes of the last probe.
    unsent: usize,
}

impl Prober {
    pub(super) fn new(stream: TcpStream, interval: Span) -> Prober {
        Prober { stream, interval, outstanding: VecDeque::new(), partial: 0, unsent: 0 }
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends probes from `began` until `until`, or until the session is stopped.
    ///
    /// # Errors
    ///
    /// The connection failed.
    pub(super) fn run(
        &mut self,
        began: Time,
        until: Time,
        session: &Session<'_>,
    ) -> Result<Probes, EndpointError> {
        let mut probes = Probes::default();
        self.outstanding.iter_mut().for_each(|(_, index)| *index = None);
        let mut due = began;
        loop {
            let now = session.clock.now();
            if now >= until || session.stopped() {
                return Ok(probes);
            }
            if now >= due {
                self.send(now, began, &mut probes)?;
                // No burst after a late timer.
                due = (due + self.interval).max(now);
            }
            self.wait(due.since(now).min(until.since(now)))?;
            self.receive(&mut probes, session)?;
        }
    }

    /// Receives answers for at least `span`, so that queues drain.
    ///
    /// # Errors
    ///
    /// The connection failed.
    pub(super) fn drain(
        &mut self,
        mut probes: Probes,
        span: Span,
        session: &Session<'_>,
    ) -> Result<Probes, EndpointError> {
        let until = session.clock.now() + span;
        while !session.stopped() {
            let left = until.since(session.clock.now());
            if left == Span::ZERO {
                break;
            }
            self.wait(left.min(LOOK))?;
            self.receive(&mut probes, session)?;
        }
        Ok(probes)
    }

    fn wait(&self, span: Span) -> io::Result<()> {
        let mut wanted = PollFlags::POLLIN;
        if self.unsent > 0 {
            wanted |= PollFlags::POLLOUT;
        }
        socket::wait(&mut [PollFd::new(self.stream.as_fd(), wanted)], span)
    }

    fn send(&mut self, now: Time, began: Time, probes: &mut Probes) -> io::Result<()> {
        self.flush()?;
        if self.unsent > 0 || self.outstanding.len() >= OUTSTANDING {
            probes.skipped += 1;
            return Ok(());
        }
        self.unsent = PROBE;
        self.outstanding.push_back((now, Some(probes.samples.len())));
        probes.samples.push(ProbeSample { at: now.since(began), rtt: None });
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.unsent > 0 {
            match self.stream.write(&[0; PROBE][..self.unsent]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.unsent -= count,
                Err(error) if is_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads answers, which arrive in the order of the probes.
    fn receive(&mut self, probes: &mut Probes, session: &Session<'_>) -> io::Result<()> {
        self.flush()?;
        let mut piece = [0; 4096];
        loop {
            let count = match self.stream.read(&mut piece) {
                Ok(0) => {
                    let why = "the receiver closed the connection of the probes";
                    return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
                }
                Ok(count) => count,
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            };
            let now = session.clock.now();
            self.partial += count;
            while self.partial >= PROBE {
                self.partial -= PROBE;
                // More answers than probes come from a faulty peer.
                let Some((sent, index)) = self.outstanding.pop_front() else { continue };
                let rtt = now.since(sent);
                probes.late += u64::from(rtt > LATE && index.is_some());
                if let Some(sample) = index.and_then(|index| probes.samples.get_mut(index)) {
                    sample.rtt = Some(rtt);
                }
            }
        }
    }
}
