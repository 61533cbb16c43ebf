//! Slow start below the threshold and congestion avoidance above it: the congestion control of Tahoe, Reno and their
//! successors. Growth is per ACK, or per acknowledged byte for paths with few ACKs (RFC 3465).

use crate::tcp::config::{GrowthRule, SlowStart, TcpConfig};

use super::{Acked, CongestionControl};
use crate::tcp::sender::Window;

/// Growth of the window per ACK; a loss halves the window.
//= rfc5681#section-3.1: SMSS per ACK in slow start; SMSS * SMSS / cwnd per ACK above
#[derive(Clone, Copy, Debug)]
pub struct SlowStartAvoidance {
    rule: GrowthRule,
    start: SlowStart,
    /// Maximum number of segments that count for an ACK; 0 counts ACKs.
    limit: u32,
    /// Bytes acknowledged above the threshold since the last growth.
    counted: u32,
}

impl SlowStartAvoidance {
    /// The growth of `config`.
    pub fn new(config: &TcpConfig) -> SlowStartAvoidance {
        let TcpConfig { growth: rule, slow_start: start, byte_counting: limit, .. } = *config;
        SlowStartAvoidance { rule, start, limit, counted: 0 }
    }

    fn starts(&self, w: &Window) -> bool {
        w.cwnd < w.ssthresh || self.start == SlowStart::Up && w.cwnd == w.ssthresh
    }

    /// Grows the window by the `bytes` that an ACK acknowledges.
    //= rfc3465#section-2.2: slow start opens by the bytes acknowledged, of at most L segments
    //= rfc3465#section-2.1: avoidance opens by a segment for each window of bytes acknowledged
    fn count_bytes(&mut self, w: &mut Window, bytes: u32) {
        let mut left = bytes.min(w.mss.saturating_mul(self.limit));
        if self.starts(w) {
            // An ACK that crosses the threshold counts in part for slow start and in part for congestion avoidance.
            let slow = left.min((w.ssthresh - w.cwnd).saturating_add(1));
            w.open(slow);
            left -= slow;
        }
        self.counted = self.counted.saturating_add(left);
        while self.counted >= w.cwnd.max(1) {
            self.counted -= w.cwnd.max(1);
            w.open(w.mss);
        }
    }
}

impl CongestionControl for SlowStartAvoidance {
    fn on_ack(&mut self, w: &mut Window, ack: &Acked) {
        if self.limit > 0 {
            return self.count_bytes(w, ack.bytes);
        }
        if self.starts(w) {
            w.open(w.mss);
            return;
        }
        let linear = u64::from(w.mss) * u64::from(w.mss) / u64::from(w.cwnd);
        let extra = match self.rule {
            GrowthRule::Rfc5681 | GrowthRule::Linux => 0,
            GrowthRule::Bsd => w.mss / 8,
        };
        w.open((linear as u32 + extra).max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ACK that crosses the threshold counts in both phases: 501 bytes open the window to one byte above
    /// the threshold, and the other bytes count for congestion avoidance.
    #[test]
    fn an_ack_that_crosses_the_threshold_counts_on_both_sides_of_it() {
        let config = TcpConfig { mss: 1000, byte_counting: 2, ..TcpConfig::rfc() };
        let mut w = Window::new(&config);
        (w.cwnd, w.ssthresh, w.largest) = (9_500, 10_000, u32::MAX);
        let mut growth = SlowStartAvoidance::new(&config);
        growth.count_bytes(&mut w, 5_000);
        assert_eq!((w.cwnd, growth.counted), (10_001, 1_499), "two segments of an ACK count");
        for counted in [3_499, 5_499, 7_499, 9_499] {
            growth.count_bytes(&mut w, 2_000);
            assert_eq!((w.cwnd, growth.counted), (10_001, counted));
        }
        growth.count_bytes(&mut w, 502);
        assert_eq!((w.cwnd, growth.counted), (11_001, 0), "a window has arrived");
    }
}
