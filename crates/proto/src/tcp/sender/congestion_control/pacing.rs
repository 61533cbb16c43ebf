//! Pacing: segments are sent at a rate instead of in bursts when the windows open.
//!
//! The rate is that of the congestion control, or the window spread over a round trip. Modern senders are faster, as
//! Linux is: in slow start each ACK permits two segments, and one window per round trip would not send them.
//! [`TcpConfig::burst`] is the number of segments that may be sent back to back.

use crate::describe::{Kind, SIM, System};
use crate::tcp::config::{GrowthRule, TcpConfig, Variant};
use crate::units::{Due, Rate, Span, Time};

/// Description of the system, for lists.
pub const ADAPTATION: System = System::new(
    Kind::Sender,
    "sender-adaptation",
    "host: sender-adaptation = true",
    "the window grows by bytes acknowledged and bursts are paced, for paths where ACKs are rare",
    "balakrishnan97 4.1, 4.3",
)
.runs(SIM);

/// Minimum rate in bits per second: an empty window must not stop a sender.
const LEAST: u64 = 1000;

/// Rate in percent of a window per round trip: below half of the threshold, and above it (`tcp_pacing_ss_ratio`,
/// `tcp_pacing_ca_ratio`).
const LINUX: [u64; 2] = [200, 120];

/// Spaces segments out. The virtual scheduling form of the generic cell rate algorithm (ITU-T I.371).
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Segments that may be sent back to back.
    burst: u32,
    /// Exact smoothed round trip; that of the timers is coarser.
    srtt: Option<Span>,
    /// Rate in percent of a window per round trip, below half of the threshold and above it.
    percent: [u64; 2],
    /// When the next segment would be due without bursts.
    due: Time,
    /// How much earlier it may be sent.
    slack: Span,
    /// When the next segment may be sent, if one waits.
    pub(in crate::tcp::sender) waits: Due,
    /// Unsent segments of the current burst, and how much later than permitted it began.
    left: u32,
    late: Span,
    /// Upper bound of the rate, and segments that are sent before it applies.
    most: Option<Rate>,
    free: u32,
}

/// Number of segments that Linux sends before pacing begins (`tcp_update_skb_after_send`).
const FREE: u32 = 10;

impl Pacer {
    /// The pacer of `config`, if it has one.
    pub fn new(config: &TcpConfig) -> Option<Pacer> {
        config.pacing.then(|| Pacer {
            burst: config.burst.max(1),
            percent: if config.variant == Variant::Rack { LINUX } else { [100; 2] },
            srtt: None,
            due: Time(0),
            waits: Due::NEVER,
            slack: Span::ZERO,
            left: 0,
            late: Span::ZERO,
            most: None,
            // A pacer without Linux's rules waits for the first round trip.
            free: if config.growth == GrowthRule::Linux { FREE } else { 0 },
        })
    }

    /// A pacer of Linux with the upper bound `most`, after `sent` segments (`SO_MAX_PACING_RATE`).
    pub(in crate::tcp::sender) fn limited(
        config: &TcpConfig,
        most: Rate,
        sent: u64,
    ) -> Option<Pacer> {
        let free = u64::from(FREE).saturating_sub(sent) as u32;
        let config = TcpConfig { pacing: true, burst: 2, ..config.clone() };
        Pacer::new(&config).map(|pacer| Pacer { most: Some(most), free, ..pacer })
    }

    /// Sets the upper bound of the rate.
    pub(in crate::tcp::sender) fn limit(&mut self, most: Rate) {
        self.most = Some(most);
    }

    /// Adds a round-trip sample.
    pub fn sample(&mut self, rtt: Span) {
        self.srtt = Some(match self.srtt {
            None => rtt,
            Some(srtt) => Span((7 * srtt.0 + rtt.0) / 8),
        });
    }

    /// When the next segment may be sent, if not at `now`.
    pub fn blocked(&self, now: Time) -> Option<Time> {
        let at = Time(self.due.0.saturating_sub(self.slack.0));
        (at > now).then_some(at)
    }

    /// Whether no segment may be sent at `now`. If so, sets the time of the next one.
    pub fn holds_back(&mut self, now: Time) -> bool {
        self.waits = self.blocked(now).filter(|_| self.left == 0).into();
        self.waits.is_set()
    }

    /// Starts a burst of `segments` at `now`, if there is none. They are sent together. Later segments wait for the
    /// transmission time of the burst at the pacing rate, less its delay up to a half (`tcp_update_skb_after_send`).
    pub(in crate::tcp::sender) fn begin_burst(&mut self, now: Time, segments: u32) {
        if self.left == 0 {
            (self.left, self.late) = (segments, now.since(self.due));
            self.free = self.free.saturating_sub(segments);
        }
    }

    /// Extends the current burst by a segment.
    pub(in crate::tcp::sender) fn extend_burst(&mut self) {
        self.left = self.left.max(1);
    }

    /// Ends the current burst, since no more can be sent.
    pub(in crate::tcp::sender) fn end_burst(&mut self) {
        self.left = 0;
    }

    /// Records that `bytes` are sent at `now` with the congestion window `cwnd` and this threshold; `rate` is the pacing
    /// rate of the congestion control, if it has one.
    pub fn sent(&mut self, now: Time, bytes: u32, [cwnd, ssthresh]: [u32; 2], rate: Option<Rate>) {
        if self.free > 0 {
            match self.left {
                0 => self.free -= 1,
                _ => self.left -= 1,
            }
            self.due = self.due.max(now);
            return;
        }
        let most = self.most.map_or(u64::MAX, Rate::bps);
        let bps = match (rate, self.srtt) {
            (Some(rate), _) => rate.bps(),
            (None, Some(srtt)) => {
                let percent = self.percent[usize::from(cwnd >= ssthresh / 2)];
                (u128::from(cwnd) * 80_000_000 * u128::from(percent) / u128::from(srtt.0.max(1)))
                    .min(u128::from(u64::MAX)) as u64
            }
            (None, None) if self.most.is_some() => most,
            // Before the first sample there is no round trip over which to spread the window.
            (None, None) => return,
        };
        let Some(rate) = Rate::from_bps(bps.min(most).max(LEAST)) else { return };
        self.due = self.due.max(now) + rate.transmit(bytes.into());
        if self.left > 0 {
            let early = Span(rate.transmit(bytes.into()).0 / 2).min(self.late);
            (self.left, self.late, self.slack) =
                (self.left - 1, Span(self.late.0 - early.0), Span::ZERO);
            self.due = Time(self.due.0 - early.0);
        } else {
            self.slack = rate.transmit(u64::from(bytes) * u64::from(self.burst - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(burst: u32) -> Pacer {
        Pacer::new(&TcpConfig { pacing: true, burst, ..TcpConfig::rfc() }).unwrap()
    }

    /// How many of `n` segments leave at each moment, when all of them wait.
    fn departures(mut pacer: Pacer, n: u32) -> Vec<(u64, u32)> {
        pacer.sample(Span::millis(100));
        let mut now = Time(0);
        let mut left: Vec<(u64, u32)> = Vec::new();
        for _ in 0..n {
            if let Some(at) = pacer.blocked(now) {
                now = at;
            }
            pacer.sent(now, 1000, [10_000; 2], None);
            match left.last_mut() {
                Some((at, count)) if *at == now.0 => *count += 1,
                _ => left.push((now.0, 1)),
            }
        }
        left
    }

    /// Linux sends twice as fast below half of the threshold and a fifth faster from there on, so that the window may
    /// grow.
    #[test]
    fn far_below_the_threshold_a_window_leaves_in_half_a_round_trip() {
        for (variant, cwnd, ms) in [
            (Variant::Rack, 9_999, 50_005_000),
            (Variant::Rack, 10_000, 83_333_333),
            (Variant::Rack, 20_000, 41_666_666),
            (Variant::Reno, 9_999, 100_010_001),
            (Variant::Reno, 10_000, 100_000_000),
        ] {
            let config = TcpConfig { pacing: true, burst: 1, variant, ..TcpConfig::rfc() };
            let mut pacer = Pacer::new(&config).unwrap();
            pacer.sample(Span::millis(100));
            pacer.sent(Time(0), 10_000, [cwnd, 20_000], None);
            let at = pacer.blocked(Time(0)).expect("the next one waits").0;
            assert!(at.abs_diff(ms) < 1_000, "{variant:?} with {cwnd}: {at} ns for 10,000 bytes");
        }
    }

    #[test]
    fn a_window_is_spread_over_a_round_trip() {
        let left = departures(pacer(1), 10);
        let expected: Vec<(u64, u32)> = (0..10).map(|i| (i * 10_000_000, 1)).collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_burst_is_bounded_and_does_not_raise_the_rate() {
        let left = departures(pacer(4), 20);
        assert_eq!(left[0], (0, 4));
        assert!(left[1..].iter().all(|(_, count)| *count <= 4));
        // The last segment has its time after 19 intervals, and may leave three intervals earlier.
        assert_eq!(left.last().unwrap().0, 160_000_000);
    }

    /// Four segments leave together and use four intervals; segments after an interrupted burst wait.
    #[test]
    fn a_burst_leaves_together_and_the_next_one_waits_for_its_time() {
        let mut pacer = pacer(2);
        pacer.sample(Span::millis(100));
        pacer.begin_burst(Time(0), 4);
        for _ in 0..4 {
            assert!(!pacer.holds_back(Time(0)));
            pacer.begin_burst(Time(0), 9);
            pacer.sent(Time(0), 1000, [10_000; 2], None);
        }
        assert_eq!(pacer.blocked(Time(0)), Some(Time(40_000_000)));
        pacer.begin_burst(Time(40_000_000), 4);
        pacer.sent(Time(40_000_000), 1000, [10_000; 2], None);
        assert!(!pacer.holds_back(Time(40_000_000)));
        pacer.end_burst();
        assert!(pacer.holds_back(Time(40_000_000)));
    }

    /// A pair that leaves 5 ms late shortens its 20 ms by 5, and one that leaves a second late by half.
    #[test]
    fn a_late_burst_is_followed_earlier() {
        let mut pacer = pacer(2);
        pacer.sample(Span::millis(100));
        for (now, next) in [(0, 20), (25, 40), (1000, 1010)] {
            pacer.begin_burst(Time(now * 1_000_000), 2);
            (0..2).for_each(|_| pacer.sent(Time(now * 1_000_000), 1000, [10_000; 2], None));
            assert_eq!(
                pacer.blocked(Time(now * 1_000_000)),
                Some(Time(next * 1_000_000)),
                "{now} ms"
            );
        }
    }

    #[test]
    fn without_a_round_trip_nothing_waits() {
        let mut pacer = pacer(1);
        pacer.sent(Time(5), 1000, [10_000; 2], None);
        assert_eq!(pacer.blocked(Time(5)), None);
    }
}
