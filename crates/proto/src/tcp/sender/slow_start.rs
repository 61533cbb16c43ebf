//! Slow start below the threshold, congestion avoidance above it, both counted per ACK: the congestion control of
//! Tahoe, Reno and their descendants.

use crate::tcp::config::GrowthRule;

use super::Window;
use super::growth::{Acked, Growth};

/// Opens the window per ACK; a loss halves it.
//= rfc5681#section-3.1: SMSS per ACK in slow start; SMSS * SMSS / cwnd per ACK above
#[derive(Clone, Copy, Debug)]
pub struct SlowStartAvoidance {
    rule: GrowthRule,
}

impl SlowStartAvoidance {
    /// Opens the window by `rule`.
    pub fn new(rule: GrowthRule) -> SlowStartAvoidance {
        SlowStartAvoidance { rule }
    }
}

impl Growth for SlowStartAvoidance {
    fn on_ack(&mut self, w: &mut Window, _: &Acked) {
        if w.cwnd <= w.ssthresh {
            w.open(w.mss);
            return;
        }
        let linear = u64::from(w.mss) * u64::from(w.mss) / u64::from(w.cwnd);
        let extra = match self.rule {
            GrowthRule::Rfc5681 => 0,
            GrowthRule::Bsd => w.mss / 8,
        };
        w.open((linear as u32 + extra).max(1));
    }
}
