//! Parity packets behind a window: what they carry, when they suffice, and how many are worth their time.
//!
//! As elsewhere in this model (see [`crate::link::fec`]), an end reckons with the numbers of the code and not with its
//! bytes: [`super::erasure`] is the code, and its test holds the rule [`suffices`] against it.

use std::collections::VecDeque;

use crate::link::frame::Load;
use crate::units::Span;

/// Most parity packets behind a window.
pub const MOST: u8 = 16;
/// Windows that are remembered.
const REMEMBERED: usize = 16;

/// A parity packet of a window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parity {
    /// Number of the first packet that it covers.
    pub first: u32,
    /// The packets that it covers, which share their bytes with those that were sent. They stand for what the code
    /// computes of them.
    pub packets: Vec<Load>,
    /// Which of the parity packets it is.
    pub index: u8,
}

impl Parity {
    /// Its length in bytes: that of the longest packet, behind the length of each.
    pub fn bytes(&self) -> u32 {
        2 + self.packets.iter().map(Load::bytes).max().unwrap_or(0)
    }
}

/// Whether `parity` parity packets that arrived make up for `missing` packets.
pub fn suffices(missing: usize, parity: usize) -> bool {
    missing <= parity
}

/// Chooses how many parity packets follow a long window.
#[derive(Clone, Debug)]
pub struct Amount {
    fixed: Option<u8>,
    /// Of the last long windows: how many frames of the first round were lost.
    lost: VecDeque<u32>,
}

impl Amount {
    /// As the losses demand, unless it is `fixed`.
    pub fn new(fixed: Option<u8>) -> Amount {
        Amount { fixed, lost: VecDeque::new() }
    }

    /// Of the first round of a long window so many frames were lost, parity packets among them.
    pub fn learn(&mut self, lost: u32) {
        if self.lost.len() == REMEMBERED {
            self.lost.pop_front();
        }
        self.lost.push_back(lost);
    }

    /// How many parity packets are worth their time, if each takes `airtime` and another round of the window takes
    /// `round` beside the packets themselves: the number with the least sum of both, as often as the last windows
    /// would have needed the round.
    pub fn choose(&self, airtime: Span, round: Span) -> u8 {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        if self.lost.len() < REMEMBERED {
            return 0;
        }
        let cost = |parity: &u8| {
            let short = self.lost.iter().filter(|lost| **lost > u32::from(*parity)).count() as u64;
            // A lost packet that parity does not make up for is sent again in any case; one that it does is not.
            let saved: u64 = self
                .lost
                .iter()
                .filter(|lost| **lost <= u32::from(*parity))
                .map(|lost| u64::from(*lost))
                .sum();
            let spent = airtime.0 * u64::from(*parity) * REMEMBERED as u64 + round.0 * short;
            spent as i128 - i128::from(airtime.0 * saved)
        };
        (0..=MOST).min_by_key(cost).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(lost: &[u32], airtime: Span, round: Span) -> u8 {
        let mut amount = Amount::new(None);
        (0..REMEMBERED).for_each(|i| amount.learn(lost[i % lost.len()]));
        amount.choose(airtime, round)
    }

    #[test]
    fn parity_is_sent_where_a_round_is_dear() {
        let packet = Span::millis(6);
        assert_eq!(chosen(&[0], packet, Span::millis(500)), 0);
        // One packet of each window is lost: parity costs no more than the packet sent again, and saves the round.
        assert_eq!(chosen(&[1], packet, Span::millis(5)), 1);
        assert_eq!(chosen(&[0, 0, 0, 2], packet, Span::millis(5)), 0);
        assert_eq!(chosen(&[0, 0, 0, 2], packet, Span::millis(500)), 2);
        // Whole windows are lost, or nothing: no parity makes up for that.
        assert_eq!(chosen(&[0, 32], packet, Span::millis(500)), 0);
    }
}
