//! Vegas (Brakmo and Peterson, *TCP Vegas: End to End Congestion Avoidance on a Global Internet*, IEEE JSAC 13(8),
//! 1995): round trips give an estimate of the data in queues, and losses are detected by time.
//!
//! - Once a round trip the backlog is estimated, the part of the flight that waits in queues:
//!   `flight * (RTT - BaseRTT) / RTT`, which is the paper's (Expected - Actual) * BaseRTT. With a backlog below alpha
//!   segments the window grows by one, above beta it shrinks by one.
//! - In slow start the window doubles in every other round trip and is constant in between. Slow start ends when the
//!   backlog exceeds gamma.
//! - The time of each segment is stored. If the left edge has waited longer than a fine-grained timeout, the first or
//!   second duplicate ACK causes its retransmission. So does one of the first two ACKs after a repair.
//! - A loss reduces the window only if the segment was sent after the last reduction.
//!
//! Choices that the paper does not specify: the window halves, as in Reno, and the fine timeout is `srtt + 4 rttvar`.
//! The window does not grow if the application or the peer's window is the limit.

use crate::tcp::config::{Congestion, TcpConfig, Variant, VegasRule};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::{Span, Time};

use crate::tcp::sender::congestion_control::{Acked, CongestionControl, Loss};
use crate::tcp::sender::recovery::flight::Flight;
use crate::tcp::sender::{Chunk, Window};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "vegas",
    apply: |c| {
        c.variant = Variant::Reno;
        c.congestion = Congestion::Vegas;
    },
    summary: "congestion avoidance by round-trip times, losses detected by time, as SCPS-TP uses it",
    source: "west97 2.7; Brakmo and Peterson 1995, section 3",
    tier: 1,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Research,
    linux: Some(Linux::control("vegas")),
};

/// Congestion avoidance by round trips.
#[derive(Clone, Debug)]
pub struct Vegas {
    rule: VegasRule,
    /// Separate records: those of a recovery are cleared at other times.
    flight: Flight,
    /// The shortest round trip of the connection.
    base: Option<Span>,
    srtt: Option<Span>,
    rttvar: Span,
    /// The left edge at this position ends the round trip.
    round_until: u64,
    /// Whether the window doubles in this round trip of slow start.
    doubling: bool,
    /// Time of the last reduction by a loss.
    shrunk: Option<Time>,
    /// Number of ACKs after a repair that are still checked for another loss.
    suspicious: u32,
}

impl Vegas {
    /// A Vegas without samples.
    pub fn new(config: &TcpConfig) -> Vegas {
        Vegas {
            rule: config.vegas,
            flight: Flight::default(),
            base: None,
            srtt: None,
            rttvar: Span::ZERO,
            round_until: 0,
            doubling: true,
            shrunk: None,
            suspicious: 0,
        }
    }

    /// Adds an exact round-trip sample, with the gains of RFC 6298.
    fn sample(&mut self, rtt: Span) {
        self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
        match &mut self.srtt {
            None => (self.srtt, self.rttvar) = (Some(rtt), rtt / 2),
            Some(srtt) => {
                self.rttvar = Span((3 * self.rttvar.0 + srtt.0.abs_diff(rtt.0)) / 4);
                *srtt = Span((7 * srtt.0 + rtt.0) / 8);
            }
        }
    }

    /// When the unacknowledged segment at `position` was sent.
    fn sent_at(&self, position: u64) -> Option<Time> {
        self.flight.find(position).map(|sent| sent.at)
    }

    fn waits_too_long(&self, now: Time, w: &Window) -> bool {
        let (Some(sent), Some(srtt)) = (self.sent_at(w.una), self.srtt) else { return false };
        now.since(sent) > srtt + self.rttvar * 4
    }

    /// Adapts the window at the end of a round trip of `rtt` with `flight` bytes in flight.
    fn round(&mut self, w: &mut Window, flight: u64, rtt: Span) {
        let waited = rtt.0 - self.base.map_or(rtt.0, |base| base.0.min(rtt.0));
        let backlog = u128::from(flight) * u128::from(waited) / u128::from(rtt.0.max(1));
        let segments = |count: u32| u128::from(count) * u128::from(w.mss);
        let in_use = flight + 2 * u64::from(w.mss) > u64::from(w.cwnd);
        if w.cwnd < w.ssthresh {
            if backlog > segments(self.rule.gamma) {
                w.ssthresh = w.cwnd.max(2 * w.mss);
            }
            self.doubling = !self.doubling && in_use;
        } else if backlog < segments(self.rule.alpha) && in_use {
            w.open(w.mss);
        } else if backlog > segments(self.rule.beta) {
            w.cwnd = w.cwnd.saturating_sub(w.mss).max(2 * w.mss);
            w.ssthresh = w.ssthresh.min(w.cwnd);
        }
    }
}

impl CongestionControl for Vegas {
    fn check(&self, window: &Window) {
        self.flight.check();
        debug_assert!(self.round_until <= window.max, "a round ends beyond the sent data");
    }

    fn on_ack(&mut self, w: &mut Window, ack: &Acked) {
        let flight = u64::from(w.flight()) + u64::from(ack.bytes);
        // The round trip of the last completely acknowledged segment, if it was sent once.
        let mut rtt = None;
        self.flight.acknowledge(w.una, |sent, _, _| {
            if sent.to() <= w.una {
                rtt = (!sent.again).then(|| ack.now.since(sent.at));
            }
        });
        if let Some(rtt) = rtt {
            self.sample(rtt);
        }
        if w.cwnd < w.ssthresh && self.doubling {
            w.open(ack.bytes.min(w.mss));
        }
        if w.una > self.round_until {
            if let Some(rtt) = rtt {
                self.round(w, flight, rtt);
            }
            self.round_until = w.max;
        }
    }

    //= brakmo95: the window shrinks only for losses of what was sent after it last shrank
    fn ssthresh_after_loss(&mut self, now: Time, w: &Window, loss: Loss) -> u32 {
        self.suspicious = 2;
        if loss == Loss::Timeout {
            self.flight.clear();
            self.doubling = true;
            self.round_until = w.una;
        } else if self.sent_at(w.una).is_some_and(|sent| self.shrunk.is_some_and(|at| sent < at)) {
            return w.cwnd.max(2 * w.mss);
        }
        self.shrunk = Some(now);
        w.half(loss)
    }

    fn on_sent(&mut self, now: Time, w: &Window, chunk: &Chunk) {
        self.flight.put(now, w, chunk, chunk.from < w.max);
    }

    //= brakmo95: a duplicate ACK: has the relevant segment been waiting for longer than the timeout?
    fn overdue(&self, now: Time, w: &Window) -> bool {
        self.waits_too_long(now, w)
    }

    //= brakmo95: the first or second ACK after a retransmission: the same question
    fn after_repair(&mut self, now: Time, w: &Window) -> bool {
        if self.suspicious == 0 {
            return false;
        }
        self.suspicious -= 1;
        let overdue = self.waits_too_long(now, w);
        if overdue {
            self.suspicious = 2;
        }
        overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    /// Window and threshold after a round trip with `backlog` bytes in queues and 10,000 bytes in flight; `alpha` is 1,
    /// `beta` 3 and `gamma` 2 segments of 1000 bytes.
    fn after(backlog: u64, cwnd: u32, ssthresh: u32) -> (u32, u32) {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.ssthresh, w.largest) = (cwnd, ssthresh, u32::MAX);
        let mut vegas = Vegas::new(&TcpConfig {
            vegas: VegasRule { alpha: 1, beta: 3, gamma: 2 },
            ..TcpConfig::rfc()
        });
        vegas.base = Some(Span(10_000 - backlog));
        vegas.round(&mut w, 10_000, Span(10_000));
        (w.cwnd, w.ssthresh)
    }

    /// brakmo95: below alpha the window grows, above beta it shrinks, between them it is constant.
    #[test]
    fn the_window_steers_the_backlog_between_alpha_and_beta() {
        for (backlog, cwnd, becomes) in [
            (999, 10_000, 11_000),
            (1000, 10_000, 10_000),
            (3000, 10_000, 10_000),
            (3001, 10_000, 9_000),
            (3001, 2_500, 2_000),
            // It grows only if it was used up to two segments.
            (0, 11_999, 12_999),
            (0, 12_000, 12_000),
        ] {
            assert_eq!(after(backlog, cwnd, 2_000).0, becomes, "{backlog} of {cwnd}");
        }
    }

    /// A backlog above gamma ends slow start without a change of the window.
    #[test]
    fn a_backlog_above_gamma_ends_slow_start() {
        assert_eq!(after(2000, 10_000, 64_000), (10_000, 64_000));
        assert_eq!(after(2001, 10_000, 64_000), (10_000, 10_000));
        assert_eq!(after(2001, 1_000, 64_000), (1_000, 2_000));
    }
}
