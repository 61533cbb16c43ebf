//! Quality of a call: the E-model of ITU-T G.107, reduced to delay and loss.
//!
//! The rating is `R = 93.2 - Idd - Ie,eff`, where 93.2 is the value of a connection without impairments and
//! with default parameters. `Idd` is G.107's impairment of the absolute delay with perfect echo cancellation.
//! It is zero up to 100 ms mouth to ear, and then `25 ((1 + x^6)^(1/6) - 3 (1 + (x/3)^6)^(1/6) + 2)`, where
//! `x` is the binary logarithm of the delay over 100 ms. The impairment of codec and loss is
//! `Ie + (95 - Ie) Ppl / (Ppl + Bpl)` for `Ppl` percent of packets lost independently (G.107 with a burst
//! ratio of 1). The mean opinion score follows from annex B of G.107.

use lasthop_proto::udp::Voice;
use lasthop_proto::units::Span;
use serde::{Deserialize, Serialize};

/// Quality of the calls of a table.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Score {
    /// The rating R, from 0 to 100: below 50 is not recommended, from 80 on users are satisfied.
    pub r: f64,
    /// Mean opinion score, from 1 to 4.5.
    pub mos: f64,
    /// Mouth-to-ear delay, seconds: packetization, shortest network delay, and playout buffer.
    pub delay_s: f64,
    /// Share of packets that were lost or too late for playout.
    pub missing: f64,
}

/// The rating of a call with a mouth-to-ear delay of `delay_s` seconds and a share `missing` of lost packets.
pub fn rating(voice: Voice, delay_s: f64, missing: f64) -> f64 {
    let (d, percent) = (delay_s * 1000.0, missing * 100.0);
    let [codec, robustness] = voice.codec.impairment();
    let loss = codec + (95.0 - codec) * percent / (percent + robustness);
    93.2 - impairment(d) - loss
}

/// G.107's `Idd` for a delay of `ms` milliseconds.
fn impairment(ms: f64) -> f64 {
    if ms <= 100.0 {
        return 0.0;
    }
    let x = libm::log2(ms / 100.0);
    let root = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

/// The mean opinion score of a rating (G.107 annex B).
pub fn mos(r: f64) -> f64 {
    match r {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        r => 1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6,
    }
}

/// The score of calls with these delays of arrived packets and `lost` lost ones.
pub(super) fn score(voice: Voice, delays: &[Span], lost: u64) -> Score {
    let Some(least) = delays.iter().min() else {
        return Score { mos: 1.0, missing: 1.0, ..Score::default() };
    };
    // The fastest packet sets the playout clock of the listener.
    let played = *least + voice.buffer;
    let late = delays.iter().filter(|delay| **delay > played).count() as u64;
    let missing = (late + lost) as f64 / (delays.len() as u64 + lost) as f64;
    let delay_s = (voice.codec.interval() + played).as_secs_f64();
    let r = rating(voice, delay_s, missing).clamp(0.0, 100.0);
    Score { r, mos: mos(r), delay_s, missing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_proto::udp::Codec;

    /// Computed independently.
    const R_BY_DELAY: [(f64, f64); 5] =
        [(0.1, 93.2), (0.15, 93.036), (0.2, 90.156), (0.4, 69.130), (0.48, 63.698)];

    const CALL: Voice = Voice { codec: Codec::G711, buffer: Span::millis(60) };

    #[test]
    fn ratings_and_scores_are_those_of_the_recommendation() {
        // G.107 table B.1: the lower bounds of R and MOS of the classes of user satisfaction.
        for (r, score) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            assert!((mos(r) - score).abs() < 0.01, "{r}: {}", mos(r));
        }
        assert_eq!((mos(-3.0), mos(100.0)), (1.0, 4.5));
        // Without impairments, and with the delays of G.107's curve for talkers without echo.
        assert!((rating(CALL, 0.0, 0.0) - 93.2).abs() < 1e-9);
        for (delay_s, r) in R_BY_DELAY {
            assert!((rating(CALL, delay_s, 0.0) - r).abs() < 0.005, "{delay_s}");
        }
        // Loss equal to the robustness: half of the remaining 95.
        assert!((rating(CALL, 0.0, 0.251) - (93.2 - 47.5)).abs() < 1e-9);
        let g729 = Voice { codec: Codec::G729, ..CALL };
        assert!((rating(g729, 0.0, 0.19) - (93.2 - 11.0 - 42.0)).abs() < 1e-9);
    }

    #[test]
    fn packets_later_than_the_buffer_count_as_missing() {
        let delays = [20, 25, 80, 81].map(Span::millis);
        let score = score(CALL, &delays, 1);
        assert!(
            (score.missing - 0.4).abs() < 1e-9 && (score.delay_s - 0.1).abs() < 1e-9,
            "{score:?}"
        );
        assert_eq!(super::score(CALL, &[], 7).mos, 1.0);
    }
}
