//! Probes: small messages that the receiver returns.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_proto::units::{Span, Time};
use nix::poll::{PollFd, PollFlags};
use serde::Serialize;

use crate::endpoint::open::final_report;
use crate::endpoint::send::is_later;
use crate::endpoint::socket::{self, LOOK};
use crate::endpoint::{Session, TcpInfo};

/// Length of a probe, bytes. One segment has room for it and for a few delayed ones.
const PROBE: usize = 64;

/// Maximum number of probes without an answer; further ones are skipped.
const OUTSTANDING: usize = 512;

/// Time limit of the receiver's report.
const PATIENCE: Span = Span::secs(2);

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
    /// Segments with probes that this end's kernel retransmitted.
    pub retransmissions: Option<u64>,
    /// Segments with answers that the receiver's kernel retransmitted.
    pub answer_retransmissions: Option<u64>,
}

impl Probes {
    /// Number of probes without an answer.
    pub fn unanswered(&self) -> u64 {
        self.samples.iter().filter(|sample| sample.rtt.is_none()).count() as u64
    }
}

/// The connection of the probes of a phase.
#[derive(Debug)]
pub(super) struct Prober {
    stream: TcpStream,
    interval: Span,
    /// Start of the phase.
    began: Time,
    probes: Probes,
    /// Departures of probes without an answer.
    outstanding: VecDeque<Time>,
    /// Number of answers, which is the index of the next answered probe.
    answered: usize,
    /// Received bytes of the next answer.
    partial: usize,
    /// Unsent bytes of the last probe.
    unsent: usize,
}

impl Prober {
    pub(super) fn new(stream: TcpStream, interval: Span, began: Time) -> Prober {
        Prober {
            stream,
            interval,
            began,
            probes: Probes::default(),
            outstanding: VecDeque::new(),
            answered: 0,
            partial: 0,
            unsent: 0,
        }
    }

    /// Sends probes until `until`, and receives answers until `settling` after `unloaded` was raised: queues drain
    /// in this time. Ends early if the session is stopped.
    ///
    /// # Errors
    ///
    /// The connection failed.
    pub(super) fn run(
        mut self,
        until: Time,
        unloaded: &AtomicBool,
        settling: Span,
        session: &Session<'_>,
    ) -> io::Result<Probes> {
        let mut due = self.began;
        let mut end = None;
        while !session.stopped() {
            let now = session.clock.now();
            if end.is_none() && now >= until && unloaded.load(Ordering::Relaxed) {
                end = Some(now + settling);
            }
            if end.is_some_and(|end| now >= end) {
                break;
            }
            let mut patience = LOOK;
            if now < until {
                if now >= due {
                    self.send(now)?;
                    // No burst after a late timer.
                    due = (due + self.interval).max(now);
                }
                patience = patience.min(due.since(now));
            }
            self.wait(patience)?;
            self.receive(session)?;
        }
        self.finish(session)
    }

    /// Reads the report of the receiver, and counts retransmissions.
    fn finish(mut self, session: &Session<'_>) -> io::Result<Probes> {
        let info = TcpInfo::of(&self.stream).ok();
        self.probes.retransmissions = info.map(|info| info.total_retrans.into());
        // Answers that are still on the way would precede the report.
        if self.outstanding.is_empty() && !session.stopped() {
            let report = final_report(&mut self.stream, PATIENCE, session)?;
            self.probes.answer_retransmissions = report.and_then(|report| report.retransmissions);
        } else {
            socket::abort(self.stream);
        }
        Ok(self.probes)
    }

    fn wait(&self, span: Span) -> io::Result<()> {
        let mut interest = PollFlags::POLLIN;
        if self.unsent > 0 {
            interest |= PollFlags::POLLOUT;
        }
        socket::wait(&mut [PollFd::new(self.stream.as_fd(), interest)], span)
    }

    fn send(&mut self, now: Time) -> io::Result<()> {
        self.flush()?;
        if self.unsent > 0 || self.outstanding.len() >= OUTSTANDING {
            self.probes.skipped += 1;
            return Ok(());
        }
        self.unsent = PROBE;
        self.outstanding.push_back(now);
        self.probes.samples.push(ProbeSample { at: now.since(self.began), rtt: None });
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
    fn receive(&mut self, session: &Session<'_>) -> io::Result<()> {
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
                let Some(sent) = self.outstanding.pop_front() else { continue };
                let rtt = now.since(sent);
                self.probes.late += u64::from(rtt > LATE);
                if let Some(sample) = self.probes.samples.get_mut(self.answered) {
                    sample.rtt = Some(rtt);
                }
                self.answered += 1;
            }
        }
    }
}
