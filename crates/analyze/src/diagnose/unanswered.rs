//! A peer that stops to answer: after a long silence, or in the middle of a transfer.

use lasthop_proto::units::{Span, Time};

use crate::finding::{Confidence, Diagnosis, Finding};

/// Minimum silence of both sides after which a middlebox may have forgotten the connection. The shortest timeouts of mobile
/// networks are half a minute (RFC 5382 requires two hours).
const IDLE: Span = Span::secs(30);

/// Minimum number of transmissions, and minimum time, without any packet of the peer.
const FEWEST: u64 = 4;
const WAITED: Span = Span::secs(2);

const FORGOTTEN: &str = "a NAT or firewall has forgotten the idle connection, or the peer is gone: send keep-alives more often than its \
    timeout (Linux: SO_KEEPALIVE with TCP_KEEPIDLE), or raise that timeout; a capture at the peer shows which";
const VANISHED: &str = "the path broke, or the peer is gone: capture at the peer too, and look at the links, routes and firewalls in between";

/// Packets of one side since the latest packet of its peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unanswered {
    /// The latest packet of either side.
    latest: Option<Time>,
    /// Whether the peer has sent anything.
    answered: bool,
    /// When the first unanswered packet was sent, after a silence of this time.
    since: Option<(Time, Span)>,
    transmissions: u64,
    /// When this side reset the connection.
    reset: Option<Time>,
}

impl Unanswered {
    /// This side sends data, a FIN or a probe.
    pub(super) fn sent(&mut self, at: Time, needs_answer: bool) {
        if needs_answer {
            let idle = self.latest.map_or(Span::ZERO, |latest| at.since(latest));
            self.since.get_or_insert((at, idle));
            self.transmissions += 1;
        }
        self.latest = Some(at);
    }

    /// This side resets the connection: it waits for no answer any more.
    pub(super) fn reset(&mut self, at: Time) {
        self.reset.get_or_insert(at);
    }

    /// The peer sends a packet.
    pub(super) fn answered(&mut self, at: Time) {
        if self.reset.is_some() {
            return;
        }
        *self = Unanswered { latest: Some(at), answered: true, ..Unanswered::default() };
    }

    /// `all` is the time of the connection until `ended` in seconds, and `again` the number of repeated packets.
    pub(super) fn diagnose(&self, ended: Time, all: f64, again: u64) -> Option<Diagnosis> {
        let (since, idle) = self.since?;
        let (times, waited) = (self.transmissions, self.reset.unwrap_or(ended).since(since));
        // Without any packet of the peer, the capture may have one direction only; then there is new data.
        if !self.answered && again + 1 < times {
            return None;
        }
        if times < FEWEST || waited < WAITED {
            return None;
        }
        let (idle, seconds) = (if idle >= IDLE { idle } else { Span::ZERO }, waited.as_secs_f64());
        let (evidence, remedy) = if idle > Span::ZERO {
            let text = format!(
                "no answer after a silence of {:.0} s: {times} transmissions in {seconds:.1} s, up to the end of the capture, and no packet of \
                 the peer",
                idle.as_secs_f64()
            );
            (text, FORGOTTEN)
        } else {
            let text = format!(
                "the peer stopped to answer: {times} transmissions in the last {seconds:.1} s of the capture, and no packet of the peer"
            );
            (text, VANISHED)
        };
        let finding = Finding::Unanswered {
            idle: idle.as_secs_f64(),
            transmissions: times,
            waited: seconds,
            share: (seconds / all.max(1e-9)).min(1.0),
        };
        Some(Diagnosis::new(finding, Confidence::Likely, evidence, remedy))
    }
}
