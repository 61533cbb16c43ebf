//! Parity packets after a window: content, sufficiency, and their optimal number.
//!
//! As elsewhere in this model (see [`crate::link::fec`]), an end uses the numbers of the code and not its
//! bytes. The tests contain the code and verify the rule [`suffices`] with it.

use std::collections::VecDeque;

use crate::link::load::Load;
use crate::units::Span;

/// Limit of parity packets after a window.
pub const MOST: u8 = 16;
/// Number of stored windows.
const REMEMBERED: usize = 16;

/// A parity packet of a window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parity {
    /// Number of the first covered packet.
    pub first: u32,
    /// The covered packets, which share their bytes with the sent ones. They represent the computed parity.
    pub packets: Vec<Load>,
    /// Index among the window's parity packets.
    pub index: u8,
}

impl Parity {
    /// Its length in bytes: that of the longest packet, and the lengths of all.
    pub fn bytes(&self) -> u32 {
        2 + self.packets.iter().map(Load::bytes).max().unwrap_or(0)
    }
}

/// Whether `parity` received parity packets restore `missing` packets.
pub fn suffices(missing: usize, parity: usize) -> bool {
    missing <= parity
}

/// Chooses the number of parity packets after a long window.
#[derive(Clone, Debug)]
pub struct Amount {
    fixed: Option<u8>,
    /// Lost frames in the first round of recent long windows.
    lost: VecDeque<u32>,
}

impl Amount {
    /// Adaptive, unless it is `fixed`.
    pub fn new(fixed: Option<u8>) -> Amount {
        Amount { fixed, lost: VecDeque::new() }
    }

    /// Records the number of lost frames, including parity packets, in the first round of a long window.
    pub fn learn(&mut self, lost: u32) {
        if self.lost.len() == REMEMBERED {
            self.lost.pop_front();
        }
        self.lost.push_back(lost);
    }

    /// The number of parity packets with the least total time. Each parity packet takes `airtime`. Another
    /// round of the window takes `round` in addition to its packets, and is as frequent as the recent windows
    /// would have needed it.
    pub fn choose(&self, airtime: Span, round: Span) -> u8 {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        if self.lost.len() < REMEMBERED {
            return 0;
        }
        let cost = |parity: &u8| {
            let short = self.lost.iter().filter(|lost| **lost > u32::from(*parity)).count() as u64;
            // A lost packet that parity cannot restore is retransmitted anyway.
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
        // One packet of each window is lost: parity costs no more than the retransmission, and saves the
        // round.
        assert_eq!(chosen(&[1], packet, Span::millis(5)), 1);
        assert_eq!(chosen(&[0, 0, 0, 2], packet, Span::millis(5)), 0);
        assert_eq!(chosen(&[0, 0, 0, 2], packet, Span::millis(500)), 2);
        // Whole windows are lost, or none: parity does not help.
        assert_eq!(chosen(&[0, 32], packet, Span::millis(500)), 0);
    }
}
