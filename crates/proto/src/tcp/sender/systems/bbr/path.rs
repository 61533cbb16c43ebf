//! The common path model of both versions of BBR: packet-timed round trips, the product of rate and round trip, and the
//! pacing rate.

use crate::units::{Rate, Span, Time};

use super::{Sample, Window};

/// Unit of gains: 1/256.
pub(in super::super) const UNIT: u64 = 256;

/// Packet-timed round trips: one ends with the ACK of a segment that was sent after its start.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Rounds {
    pub(in super::super) count: u64,
    /// Whether the last ACK has started a round trip.
    pub(in super::super) starts: bool,
    /// Delivered bytes at the start. A segment sent after this delivery ends the round trip.
    end: u64,
}

impl Rounds {
    /// Processes an ACK. Returns whether it starts a round trip.
    pub(in super::super) fn update(&mut self, sample: &Sample) -> bool {
        self.starts = sample.rate.is_some_and(|rate| rate.prior >= self.end);
        if self.starts {
            self.count += 1;
            self.end = sample.total;
        }
        self.starts
    }

    /// Starts a round trip at `total` delivered bytes.
    pub(in super::super) fn restart(&mut self, total: u64) {
        self.end = total;
    }
}

/// Bytes in a path of this round trip at the rate `bps`, times `gain`.
pub(in super::super) fn product(bps: u64, rtt: Span, gain: u64) -> u64 {
    let bits = u128::from(bps) * u128::from(rtt.0) / 1_000_000_000;
    (bits * u128::from(gain) / u128::from(UNIT) / 8).min(1 << 40) as u64
}

/// 32 bits in place of random ones, so that flows do not all probe at the same time. They depend on the time, which
/// differs between flows and between seeds.
pub(in super::super) fn scattered(now: Time) -> u64 {
    (now.0 / 1000).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// The pacing rate in bits per second; `None` before the first round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Pace(pub(in super::super) Option<u64>);

impl Pace {
    /// Sets the pacing rate for a path with the rate `bps`, times `gain`. It decreases only if the path is `filled`. The
    /// initial one is that of the initial window, times `first`.
    pub(in super::super) fn update(
        &mut self,
        w: &Window,
        sample: &Sample,
        bps: u64,
        [gain, first]: [u64; 2],
        filled: bool,
    ) {
        if self.0.is_none() {
            let Some(rtt) = sample.rtt else { return };
            self.begin(w, rtt, first);
        }
        let pace = paced(bps, gain);
        if filled || self.0.is_none_or(|now| pace > now) {
            self.0 = Some(pace);
        }
    }

    /// Sets the pacing rate to the window per round trip, times `first` (`bbr_init_pacing_rate_from_rtt`).
    pub(in super::super) fn begin(&mut self, w: &Window, rtt: Span, first: u64) {
        let bits = u128::from(w.cwnd) * 8 * 1_000_000_000 / u128::from(rtt.0.max(1));
        self.0 = Some((bits * u128::from(first) / u128::from(UNIT)) as u64);
    }

    /// Sets the pacing rate to that of the path, `bps`.
    pub(in super::super) fn cruise(&mut self, bps: u64) {
        self.0 = Some(paced(bps, UNIT));
    }

    /// As a rate.
    pub(in super::super) fn rate(self) -> Option<Rate> {
        self.0.and_then(|bps| Rate::from_bps(bps.max(1)))
    }
}

/// One percent below the rate, to avoid a standing queue.
fn paced(bps: u64, gain: u64) -> u64 {
    let pace = u128::from(bps) * u128::from(gain) * 99 / (100 * u128::from(UNIT));
    pace.min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;
    use crate::tcp::sender::congestion_control::Repair;
    use crate::tcp::sender::congestion_control::rate::RateSample;

    fn sample(prior: Option<u64>, total: u64, rtt: Option<Span>) -> Sample {
        let rate = prior.map(|prior| RateSample {
            delivered: 1000,
            interval: Span::millis(40),
            prior,
            app_limited: false,
            in_flight: 1000,
            lost: 0,
        });
        Sample {
            now: Time(0),
            delivered: 1000,
            lost: 0,
            ce_bytes: 0,
            pipe: (0, 0),
            rtt,
            rate,
            total,
            repair: Repair::None,
            repaired: false,
        }
    }

    #[test]
    fn rounds_end_with_delivery_of_data_sent_since_start() {
        let mut rounds = Rounds::default();
        for (prior, total, count) in [
            (None, 500, 0),
            (Some(0), 1000, 1),
            (Some(999), 1500, 1),
            (Some(1000), 2000, 2),
            (Some(1999), 2500, 2),
            (Some(2000), 3000, 3),
        ] {
            let before = rounds.count;
            assert_eq!(rounds.update(&sample(prior, total, None)), count > before, "{prior:?}");
            assert_eq!((rounds.count, rounds.starts), (count, count > before));
        }
        rounds.restart(3500);
        assert!(!rounds.update(&sample(Some(3499), 4000, None)));
        assert!(rounds.update(&sample(Some(3500), 4000, None)));
    }

    #[test]
    fn the_bandwidth_delay_product_is_rate_times_round_trip() {
        let rtt = Span::millis(40);
        for (bps, gain, bytes) in [
            (10_000_000, UNIT, 50_000),
            (10_000_000, UNIT / 2, 25_000),
            (0, UNIT, 0),
            (u64::MAX, UNIT, 1 << 40),
        ] {
            assert_eq!(product(bps, rtt, gain), bytes, "{bps}");
        }
    }

    /// One percent less than the rate; the first pace is that of the first window.
    #[test]
    fn pacing_slows_only_once_the_path_is_full() {
        let w = Window::new(&TcpConfig { mss: 1000, initial_window: 10, ..TcpConfig::rfc() });
        assert_eq!(w.cwnd, 10_000);
        let rtt = Some(Span::millis(40));
        let mut pace = Pace::default();
        pace.update(&w, &sample(None, 0, None), 10_000_000, [UNIT, 2 * UNIT], true);
        assert_eq!((pace.0, pace.rate()), (None, None), "no round trip is known");
        for (bps, gain, filled, paced) in [
            (1_000_000, UNIT, false, 4_000_000),
            (4_000_000, UNIT, false, 4_000_000),
            (5_000_000, UNIT, false, 4_950_000),
            (4_000_000, 5 * UNIT / 4, false, 4_950_000),
            (4_000_000, UNIT, true, 3_960_000),
            (4_000_000, 5 * UNIT / 4, true, 4_950_000),
        ] {
            pace.update(&w, &sample(None, 0, rtt), bps, [gain, 2 * UNIT], filled);
            assert_eq!(pace.0, Some(paced), "{bps} {gain} {filled}");
        }
        pace.cruise(1_000_000);
        assert_eq!(pace.rate(), Rate::from_bps(990_000));
        pace.cruise(0);
        assert_eq!(pace.rate(), Rate::from_bps(1), "never nothing");
    }
}
