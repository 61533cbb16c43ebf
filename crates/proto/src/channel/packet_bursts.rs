//! Errors that each destroy several successive packets.

use serde::Serialize;

use super::exponential_errors::{DISTANCES, Gaps};
use super::{Descriptor, ErrorModel, Errors, Model, Read};
use crate::describe::{Form, Kind, Need, System, Value};
use crate::rng::Stream;
use crate::units::{Bytes, Span, Time};

/// Each error destroys `packets` successive packets; distances are from onset to onset (west97 5.2.2).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PacketBursts {
    /// Packets destroyed by one error.
    pub packets: u32,
    /// Mean distance between the onsets of two errors.
    pub mean: Bytes,
    /// Whether the distances are constant instead of exponential.
    pub uniform: bool,
    /// Effect of an onset within a burst.
    #[serde(skip_serializing_if = "Overlap::is_restart")]
    pub overlap: Overlap,
}

/// Effect of an onset within a burst. west97 does not state it: 5.2.2 has the mean distance between two onsets, and
/// bursts of exactly six packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overlap {
    /// The burst begins again, so that onsets have the mean distance, and overlapping bursts are one longer burst.
    Restart,
    /// None, so that each burst destroys the same number of packets.
    Ignore,
}

impl Overlap {
    fn is_restart(&self) -> bool {
        *self == Overlap::Restart
    }
}

impl Model for PacketBursts {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "packet-bursts",
        system: System::new(
            Kind::Channel,
            "packet-bursts",
            "path: errors = { model = \"packet-bursts\", packets = 6, mean = \"64KiB\" }",
            "each error destroys several packets in a row",
            "west97 5.2.2, parsa98 5.3.1",
        ),
        read: |k, _| {
            let packets = k.value(
                "packets",
                Form::within(1..=1_000_000_u64),
                Need::Required("6"),
                Value::Count(1),
                "how many packets an error destroys",
            );
            let doc = "the mean distance from the onset of an error to that of the next";
            let mut bursts = PacketBursts {
                packets: if let Value::Count(packets) = packets { packets as u32 } else { 1 },
                mean: k.needed("mean", (Bytes(65_536), "\"64KiB\""), DISTANCES, doc),
                uniform: false,
                overlap: Overlap::Restart,
            };
            let spacing = [("exponential", false), ("uniform", true)];
            k.word("spacing", &mut bursts.uniform, &spacing, "how these distances are distributed");
            let overlaps = [("restart", Overlap::Restart), ("ignore", Overlap::Ignore)];
            let doc = "the effect of an onset within a burst: the burst begins again, or none";
            k.word("overlap", &mut bursts.overlap, &overlaps, doc);
            ErrorModel::PacketBursts(bursts).into()
        },
    }];

    fn loses_whole_packets(&self) -> bool {
        true
    }

    type Errors = BurstErrors;

    fn errors(&self, stream: Stream, _: Option<Stream>) -> BurstErrors {
        BurstErrors {
            overlap: self.overlap,
            ..BurstErrors::new(self.packets, self.mean, self.uniform, stream)
        }
    }
}

/// Bursts of successive destroyed packets (west97 5.2.2, parsa98 5.3.1).
///
/// Distances are in bytes from onset to onset, over all packets including destroyed ones. The packet with the
/// onset is the burst's first. By default an onset during a burst restarts its count: two overlapping bursts end
/// when the later one ends.
#[derive(Clone, Debug)]
pub struct BurstErrors {
    onsets: Gaps,
    packets: u32,
    left: u32,
    overlap: Overlap,
}

impl BurstErrors {
    /// Bursts of `packets` packets at a mean distance of `mean` bytes: exponential, or constant if `uniform`.
    pub fn new(packets: u32, mean: Bytes, uniform: bool, stream: Stream) -> BurstErrors {
        let (onsets, overlap) = (Gaps::new(mean, uniform, stream), Overlap::Restart);
        BurstErrors { onsets, packets, left: 0, overlap }
    }
}

impl Errors for BurstErrors {
    /// A packet is damaged at the onset, or anywhere in later packets of a burst.
    fn pass(&mut self, _: Time, _: Span, bytes: u32) -> Option<u32> {
        match self.onsets.pass(bytes) {
            Some(onset) if self.packets > 0 && (self.left == 0 || self.overlap.is_restart()) => {
                self.left = self.packets - 1;
                Some(onset)
            }
            _ if self.left > 0 => {
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
    fn a_burst_destroys_the_configured_number_of_packets() {
        let mut bursts = BurstErrors::new(3, Bytes(15_000), true, Stream::new(1, "radio"));
        let hit: Vec<bool> =
            (0..30).map(|_| bursts.pass(Time::ZERO, Span::ZERO, 1500).is_some()).collect();
        // An onset at byte 15,000 is the first byte of the eleventh packet.
        let want: Vec<bool> = (0..30).map(|i| i >= 10 && i % 10 < 3).collect();
        assert_eq!(hit, want);
    }

    #[test]
    fn an_onset_inside_a_burst_restarts_the_burst() {
        let mut bursts = BurstErrors::new(6, Bytes(4_500), true, Stream::new(1, "radio"));
        let hit: Vec<bool> =
            (0..30).map(|_| bursts.pass(Time::ZERO, Span::ZERO, 1500).is_some()).collect();
        assert!(hit[..3].iter().all(|h| !h) && hit[3..].iter().all(|h| *h), "{hit:?}");
    }

    #[test]
    fn an_ignored_onset_does_not_lengthen_the_burst() {
        let bursts = PacketBursts {
            packets: 6,
            mean: Bytes(7_500),
            uniform: true,
            overlap: Overlap::Ignore,
        };
        let mut bursts = bursts.errors(Stream::new(1, "radio"), None);
        let hit: Vec<bool> =
            (0..45).map(|_| bursts.pass(Time::ZERO, Span::ZERO, 1500).is_some()).collect();
        // Onsets are in packets 5, 10, 15 and so on; each second one is within a burst.
        let want: Vec<bool> = (0..45).map(|i| i >= 5 && (i - 5) % 10 < 6).collect();
        assert_eq!(hit, want);
    }

    #[test]
    fn exponential_onsets_have_their_mean() {
        let mut bursts = BurstErrors::new(1, Bytes(65_536), false, Stream::new(2, "radio"));
        let hits = (0..400_000)
            .filter(|_| bursts.pass(Time::ZERO, Span::ZERO, 1500).is_some())
            .count() as f64;
        // As for single errors: 9,052 with deviation 94; tolerance four deviations.
        assert!((hits - 9_052.0).abs() < 380.0, "{hits}");
    }

    #[test]
    fn a_burst_of_no_packets_harms_none() {
        let mut bursts = BurstErrors::new(0, Bytes(0), false, Stream::new(1, "radio"));
        assert!((0..100).all(|_| bursts.pass(Time::ZERO, Span::ZERO, 1500).is_none()));
    }
}
