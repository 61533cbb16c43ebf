//! Times of OFDM frames of IEEE 802.11n, ac and ax at 5 GHz, and the lengths of aggregates.
//!
//! Durations follow IEEE 802.11-2020 (clauses 17, 19, 21) and 802.11ax-2021 (clause 27), with a guard interval
//! of 0.8 us. The preamble of `ax` has a 2x training field with 1.6 us. Control frames are sent at 24 Mb/s in
//! the format of 802.11a.

use serde::Serialize;

use crate::units::Span;

/// Standard of the frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standard {
    /// 802.11n, Wi-Fi 4: HT, up to 40 MHz, MCS 0 to 7.
    N,
    /// 802.11ac, Wi-Fi 5: VHT, up to 160 MHz, MCS 0 to 9.
    Ac,
    /// 802.11ax, Wi-Fi 6: HE, up to 160 MHz, MCS 0 to 11.
    Ax,
}

impl Standard {
    /// Keywords.
    pub const WORDS: [(&'static str, Standard); 3] =
        [("n", Standard::N), ("ac", Standard::Ac), ("ax", Standard::Ax)];

    /// The highest modulation and coding scheme.
    pub fn highest_mcs(self) -> u8 {
        match self {
            Standard::N => 7,
            Standard::Ac => 9,
            Standard::Ax => 11,
        }
    }

    /// The default limit of frames between the first unacknowledged and the last one.
    pub fn window(self) -> u16 {
        if self == Standard::Ax { 256 } else { 64 }
    }

    /// The default limit of an aggregate, bytes.
    pub fn aggregate(self) -> u32 {
        match self {
            Standard::N => 65_535,
            Standard::Ac => 1_048_575,
            Standard::Ax => 4_194_304,
        }
    }

    fn tones(self, width: u16) -> Option<u32> {
        Some(match (self, width) {
            (Standard::N | Standard::Ac, 20) => 52,
            (Standard::N | Standard::Ac, 40) => 108,
            (Standard::Ac, 80) => 234,
            (Standard::Ac, 160) => 468,
            (Standard::Ax, 20) => 234,
            (Standard::Ax, 40) => 468,
            (Standard::Ax, 80) => 980,
            (Standard::Ax, 160) => 1960,
            _ => return None,
        })
    }
}

/// Bits per tone, and the share of them that is data, in sixtieths; by modulation and coding scheme.
const MCS: [(u32, u32); 12] = [
    (1, 30),
    (2, 30),
    (2, 45),
    (4, 30),
    (4, 45),
    (6, 40),
    (6, 45),
    (6, 50),
    (8, 45),
    (8, 50),
    (10, 45),
    (10, 50),
];

/// Longest frame on the air: the limit of the legacy length field.
pub const LONGEST: Span = Span::micros(5484);
/// Bytes of a delimiter in front of each part of an aggregate.
const DELIMITER: u32 = 4;

/// Settings of OFDM frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Ofdm {
    /// Standard of the frames.
    pub standard: Standard,
    /// Width of the channel, MHz.
    pub width: u16,
    /// Spatial streams.
    pub streams: u8,
    /// Modulation and coding scheme.
    pub mcs: u8,
}

impl Ofdm {
    /// Whether the standard has such frames.
    pub fn is_valid(&self) -> bool {
        self.standard.tones(self.width).is_some() && self.mcs <= self.standard.highest_mcs()
    }

    /// Data bits per symbol at `mcs`, times sixty.
    fn bits(&self, mcs: u8) -> u64 {
        let (bits, share) = MCS[usize::from(mcs).min(MCS.len() - 1)];
        // The keys refuse a width that the standard lacks, after its times have been computed.
        let tones = self.standard.tones(self.width).unwrap_or(52);
        u64::from(tones * bits * share) * u64::from(self.streams)
    }

    /// Time on the air of `octets` at `mcs`.
    pub fn frame(&self, mcs: u8, octets: u32) -> Span {
        let streams = u64::from(self.streams);
        let (preamble_us, symbol_ns, tail) = match self.standard {
            Standard::N => (32 + 4 * streams, 4000, 6),
            Standard::Ac => (36 + 4 * streams, 4000, 6),
            Standard::Ax => (36 + 8 * streams, 13_600, 0),
        };
        let bits = 16 + 8 * u64::from(octets) + tail;
        let symbols = (bits * 60).div_ceil(self.bits(mcs));
        Span::micros(preamble_us) + Span(symbols * symbol_ns)
    }

    /// Data rate at `mcs`, bits per second.
    pub fn rate(&self, mcs: u8) -> u64 {
        let symbol_ns = if self.standard == Standard::Ax { 13_600 } else { 4000 };
        self.bits(mcs) * 1_000_000_000 / 60 / symbol_ns
    }

    /// Time on the air of a control frame at 24 Mb/s.
    pub fn control(octets: u32) -> Span {
        let bits = 16 + 8 * u64::from(octets) + 6;
        Span::micros(20 + 4 * bits.div_ceil(96))
    }

    /// Octets of a single frame. Those of `ac` and `ax` have a delimiter as well.
    pub fn single(&self, octets: u32) -> u32 {
        octets + if self.standard == Standard::N { 0 } else { DELIMITER }
    }

    /// Octets of an aggregate of `before` octets and one more frame. All frames but the last are padded to a
    /// multiple of four.
    pub fn joined(before: u32, octets: u32) -> u32 {
        before.next_multiple_of(4) + DELIMITER + octets
    }

    /// Length of a block acknowledgement for a window of frames.
    pub fn block_ack(window: u16) -> u32 {
        if window <= 64 { 32 } else { 56 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ofdm(standard: Standard, width: u16) -> Ofdm {
        Ofdm { standard, width, streams: 1, mcs: 0 }
    }

    /// Times of single frames of 1538 octets and of aggregates, computed with the formulas of the standard.
    #[test]
    fn frames_take_the_times_of_the_standard() {
        let tenths = |span: Span| span.0 / 100;
        let (ax, ac) = (ofdm(Standard::Ax, 20), ofdm(Standard::Ac, 80));
        let single = |ofdm: Ofdm, mcs| tenths(ofdm.frame(mcs, ofdm.single(1538)));
        assert_eq!([0, 5, 11].map(|mcs| single(ax, mcs)), [14_856, 2344, 1392]);
        assert_eq!([0, 9].map(|mcs| single(ac, mcs)), [4640, 720]);
        let aggregate =
            |n| (1..n).fold(Ofdm::joined(0, 1538), |octets, _| Ofdm::joined(octets, 1538));
        assert_eq!(tenths(ax.frame(0, aggregate(3))), 43_552);
        assert_eq!(tenths(ax.frame(11, aggregate(62))), 53_888);
        assert_eq!(tenths(ac.frame(9, aggregate(64))), 20_680);
        let control = [14, 20, 32, 56].map(Ofdm::control);
        assert_eq!(control, [28, 28, 32, 40].map(Span::micros));
        assert_eq!(ax.rate(11), 143_382_352);
        assert_eq!(ofdm(Standard::N, 20).rate(7), 65_000_000);
    }
}
