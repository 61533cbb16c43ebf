//! Errors that each destroy several packets in a row.

use super::exponential_errors::Gaps;
use crate::rng::Stream;
use crate::units::Bytes;

/// Bursts of consecutive destroyed packets (west97 5.2.2, parsa98 5.3.1).
///
/// Distances count from onset to onset, in bytes, over all packets including the destroyed ones. The packet
/// with the onset is the burst's first. An onset inside a running burst starts its count anew: two bursts
/// that overlap end when the later one ends, they do not add up.
#[derive(Clone, Debug)]
pub struct PacketBursts {
    onsets: Gaps,
    packets: u32,
    left: u32,
}

impl PacketBursts {
    /// Bursts of `packets` packets, `mean` bytes apart: exponentially, or exactly when `uniform`.
    pub fn new(packets: u32, mean: Bytes, uniform: bool, stream: Stream) -> PacketBursts {
        PacketBursts { onsets: Gaps::new(mean, uniform, stream), packets, left: 0 }
    }

    /// Where the next packet of `bytes` bytes is damaged: at the onset, or anywhere in later packets of a burst.
    pub fn pass(&mut self, bytes: u32) -> Option<u32> {
        match self.onsets.pass(bytes) {
            Some(onset) if self.packets > 0 => {
                self.left = self.packets - 1;
                Some(onset)
            }
            None if self.left > 0 => {
                self.left -= 1;
                (bytes > 0).then(|| self.onsets.stream().below(bytes.into()) as u32)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_destroys_so_many_packets_in_a_row() {
        let mut bursts = PacketBursts::new(3, Bytes(15_000), true, Stream::new(1, "radio"));
        let hit: Vec<bool> = (0..30).map(|_| bursts.pass(1500).is_some()).collect();
        // An onset at byte 15,000 is the first byte of the eleventh packet.
        let want: Vec<bool> = (0..30).map(|i| i >= 10 && i % 10 < 3).collect();
        assert_eq!(hit, want);
    }

    #[test]
    fn an_onset_inside_a_burst_starts_it_anew() {
        let mut bursts = PacketBursts::new(6, Bytes(4_500), true, Stream::new(1, "radio"));
        let hit: Vec<bool> = (0..30).map(|_| bursts.pass(1500).is_some()).collect();
        assert!(hit[..3].iter().all(|h| !h) && hit[3..].iter().all(|h| *h), "{hit:?}");
    }

    #[test]
    fn exponential_onsets_have_their_mean() {
        let mut bursts = PacketBursts::new(1, Bytes(65_536), false, Stream::new(2, "radio"));
        let hits = (0..400_000).filter(|_| bursts.pass(1500).is_some()).count() as f64;
        // As for single errors: 9,052 with deviation 94; tolerance four deviations.
        assert!((hits - 9_052.0).abs() < 380.0, "{hits}");
    }

    #[test]
    fn a_burst_of_no_packets_harms_none() {
        let mut bursts = PacketBursts::new(0, Bytes(0), false, Stream::new(1, "radio"));
        assert!((0..100).all(|_| bursts.pass(1500).is_none()));
    }
}
