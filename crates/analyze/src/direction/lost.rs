//! Losses among retransmissions of whole segments, of parts, or with other boundaries.
//!
//! Each byte belongs to the packet that carried it last. A retransmission shows the loss of that packet. If another
//! part of that packet was retransmitted before, its loss is already counted.

use std::collections::BTreeMap;

/// Maximum number of stored packets for each direction; the lowest is removed first.
const PACKETS: usize = 4096;

/// Packets that one retransmission may cover, at most.
const COVERED: i64 = 64;

/// The bytes of one packet that no later packet carried.
#[derive(Clone, Copy, Debug)]
struct Carried {
    end: i64,
    /// The packet was a retransmission.
    again: bool,
    /// Its loss is known.
    known: bool,
}

/// Packets with a retransmitted and unacknowledged part, by their first byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Lost(BTreeMap<i64, Carried>);

/// The loss that a retransmission reveals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RevealedLoss {
    /// First byte and end of the lost packet; `None` if its loss is known already.
    pub(super) loss: Option<(i64, i64)>,
    /// A retransmission was lost.
    pub(super) repeatedly: bool,
}

impl Lost {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The peer acknowledges all bytes before `ack`.
    pub(super) fn acked(&mut self, ack: i64) {
        while self.0.first_key_value().is_some_and(|(_, packet)| packet.end <= ack) {
            self.0.pop_first();
        }
    }

    /// Processes the retransmission of `start..end`, of the bytes `from..to` that were sent once in packets of `size`.
    pub(super) fn original(&mut self, (from, to): (i64, i64), size: u32, start: i64, end: i64) {
        let size = i64::from(size).max((end - start) / COVERED).max(1);
        let mut first = from + (start.max(from) - from) / size * size;
        while first < to.min(end) {
            // Earlier retransmissions end at the end of a packet.
            if let Some((_, packet)) = self.overlapping(first, first + 1) {
                first = packet.end;
                continue;
            }
            let behind = self.0.range(first..).next().map_or(to, |(next, _)| *next);
            let next = (first + size).min(to).min(behind);
            if next > start {
                self.insert(first, Carried { end: next, again: false, known: false });
            }
            first = next;
        }
    }

    /// Processes the retransmission of `start..end`.
    pub(super) fn sent_again(&mut self, start: i64, end: i64) -> RevealedLoss {
        let mut lost: Option<(i64, i64)> = None;
        let (mut known, mut repeatedly) = (false, false);
        while let Some((first, packet)) = self.overlapping(start, end) {
            self.0.remove(&first);
            known |= packet.known;
            repeatedly |= packet.again;
            if !packet.known {
                let (left, right) = lost.unwrap_or((first, packet.end));
                lost = Some((left.min(first), right.max(packet.end)));
            }
            let rest = Carried { known: true, ..packet };
            if first < start {
                self.0.insert(first, Carried { end: start, ..rest });
            }
            if packet.end > end {
                self.0.insert(end, rest);
            }
        }
        self.insert(start, Carried { end, again: true, known: false });
        RevealedLoss { loss: lost.or((!known).then_some((start, end))), repeatedly }
    }

    fn insert(&mut self, first: i64, packet: Carried) {
        if self.0.len() >= PACKETS {
            self.0.pop_first();
        }
        self.0.insert(first, packet);
    }

    /// A packet with bytes of `start..end`.
    fn overlapping(&self, start: i64, end: i64) -> Option<(i64, Carried)> {
        // Packets do not overlap each other: the last that begins before `end` reaches farthest.
        let (&first, &packet) = self.0.range(..end).next_back()?;
        (packet.end > start).then_some((first, packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(lost: &mut Lost, pieces: &[(i64, i64)]) -> Vec<bool> {
        pieces.iter().map(|&(start, end)| lost.sent_again(start, end).loss.is_some()).collect()
    }

    #[test]
    fn pieces_of_a_segment_are_one_loss_in_any_order() {
        for pieces in [[(0, 500), (500, 1000), (1000, 1448)], [(1000, 1448), (0, 500), (500, 1000)]]
        {
            let mut lost = Lost::default();
            for (start, end) in pieces {
                lost.original((0, 1448), 1448, start, end);
            }
            assert_eq!(losses(&mut lost, &pieces), [true, false, false]);
        }
    }

    #[test]
    fn other_boundaries_show_each_segment_once() {
        let mut lost = Lost::default();
        lost.original((0, 2896), 1448, 0, 1000);
        // Behind a gap that was filled in part, its rest begins within a packet.
        let mut filled = lost.clone();
        assert_eq!(losses(&mut filled, &[(0, 1000)]), [true]);
        filled.original((1000, 2896), 1448, 1000, 2000);
        assert_eq!(filled.sent_again(1000, 2000).loss, Some((1448, 2896)));
        lost.original((0, 2896), 1448, 0, 2896);
        assert_eq!(
            losses(&mut lost, &[(0, 1000), (1000, 2000), (2000, 2896)]),
            [true, true, false]
        );
        // Of these packets two are lost.
        let again = lost.sent_again(0, 1000);
        assert_eq!((again.loss, again.repeatedly), (Some((0, 1000)), true));
        assert_eq!(losses(&mut lost, &[(2000, 2400), (2400, 2896)]), [true, false]);
        lost.acked(2896);
        assert!(lost.0.is_empty());
    }
}
