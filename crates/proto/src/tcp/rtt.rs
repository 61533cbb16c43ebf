//! Round-trip estimation and the retransmission timeout, by BSD ticks or by RFC 6298.

mod linux;

use std::sync::Arc;

use crate::units::{Span, Time};

use super::Settings;
use super::config::{Arithmetic, Clock, Rounding, RtoRule, StaleRtt, TcpConfig};
use linux::Deviation;
pub(in crate::tcp) use linux::TICK;

/// A clock with a period and a phase: BSD's slow and fast timeouts are host-wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    period: Span,
    phase: Span,
}

impl Beat {
    /// Beats at `phase`, `phase + period`, ... A period of zero becomes one nanosecond.
    pub fn new(period: Span, phase: Span) -> Beat {
        let period = Span(period.0.max(1));
        Beat { period, phase: Span(phase.0 % period.0) }
    }

    /// Number of beats by `now`.
    fn count(self, now: Time) -> u64 {
        (now.0 + self.period.0 - self.phase.0) / self.period.0
    }

    /// Number of beats after time zero, up to `now`.
    pub(super) fn elapsed(self, now: Time) -> u64 {
        self.count(now) - self.count(Time(0))
    }

    /// Time of the `n`th beat after `now`.
    pub fn nth_after(self, now: Time, n: u64) -> Time {
        let last = self.count(now).saturating_add(n.max(1));
        Time(last.saturating_mul(self.period.0).saturating_add(self.phase.0) - self.period.0)
    }
}

/// Measurement of round trips for a host, and the limits of its timeouts.
#[derive(Clone, Debug)]
pub struct Timing {
    kind: Kind,
    min: Span,
    max: Span,
    initial: Span,
    /// Maximum factor of the backoff; 0 if only `max` bounds it.
    backoff_max: u32,
    stale: StaleRtt,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// 4.4BSD: `srtt` in eighths of a tick, `rttvar` in quarters, integer arithmetic throughout. By truncation
    /// the timeout on a LAN remains three ticks, which influenced the results of the papers.
    Ticks { beat: Beat },
    /// The simulators of LBNL: the same arithmetic in units of the granularity, with independent timers.
    Integer { beat: Beat, rounding: Rounding },
    /// RFC 6298, in nanoseconds.
    Fine {
        granularity: Span,
        /// Minimum addition to `srtt`: the granularity by RFC 6298, zero by Jacobson.
        margin: Span,
        rounding: Rounding,
    },
    /// Linux, in nanoseconds. It measures round trips in microseconds.
    Linux,
}

impl Kind {
    /// Whether the averages are in nanoseconds.
    fn is_exact(&self) -> bool {
        matches!(self, Kind::Fine { .. } | Kind::Linux)
    }
}

impl Timing {
    /// The measurement that `config` defines. `slow` is the host's slow beat, used with [`Clock::Ticks`].
    pub fn new(config: &TcpConfig, slow: Beat) -> Timing {
        let kind = match config.clock {
            Clock::Ticks { .. } => Kind::Ticks { beat: slow },
            Clock::Fine { granularity } if config.rtt_arithmetic == Arithmetic::Integer => {
                let beat = Beat { period: Span(granularity.0.max(1)), ..slow };
                Kind::Integer { beat, rounding: config.rtt_rounding }
            }
            Clock::Fine { granularity } => {
                let rounding = config.rtt_rounding;
                match config.rto_rule {
                    RtoRule::Rfc6298 => Kind::Fine { granularity, margin: granularity, rounding },
                    RtoRule::Jacobson => Kind::Fine { granularity, margin: Span::ZERO, rounding },
                    RtoRule::Linux => Kind::Linux,
                }
            }
        };
        let TcpConfig { rto_min: min, rto_max: max, rto_initial: initial, backoff_max, .. } =
            *config;
        Timing { kind, min, max, initial, backoff_max, stale: config.stale_rtt }
    }

    /// The factor of the timeout after `backoff` consecutive timeouts.
    pub(super) fn backoff_factor(&self, backoff: u32) -> u64 {
        let factor = 1 << backoff.min(MOST_DOUBLINGS);
        if self.backoff_max == 0 { factor } else { factor.min(self.backoff_max.into()) }
    }
}

/// Estimates the round-trip time and derives the timeout from it.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    settings: Arc<Settings>,
    /// Zero before the first measurement; the units are those of [`Timing`].
    srtt: u64,
    /// Variation; with [`Kind::Linux`] the addition to `srtt`.
    rttvar: u64,
    deviation: Deviation,
    /// Current timeout, cached because every ACK restarts the timer with it.
    rto: Span,
    backoff: u32,
    sampled: bool,
}

impl Rounding {
    /// A round-trip time in units of the granularity, at least one.
    fn count(self, beat: Beat, sent: Time, now: Time) -> u64 {
        let (g, measured) = (beat.period.0, now.since(sent).0);
        let count = match self {
            Rounding::Up => measured.div_ceil(g),
            //= bakshi96#3.3: round-trip times are measured to the nearest 100 msec
            Rounding::Nearest => measured.saturating_add(g / 2) / g,
            Rounding::Beats => beat.count(now) - beat.count(sent),
        };
        count.max(1)
    }
}

/// Adds a round-trip time of `rtt` units to the integer estimate; `later` replaces it after the first
/// measurement.
fn average(srtt: &mut u64, rttvar: &mut u64, rtt: u64, later: u64) {
    if *srtt == 0 {
        *srtt = rtt << 3;
        *rttvar = rtt << 1;
    } else {
        let old = *srtt >> 3;
        *srtt = (*srtt + later).saturating_sub(old).max(1);
        *rttvar = (*rttvar + later.abs_diff(old) - (*rttvar >> 2)).max(1);
    }
}

/// Number of doublings after which a timeout of a nanosecond exceeds a day.
const MOST_DOUBLINGS: u32 = 47;
/// The timeout after a handshake in which the timer expired, where the first timeout is shorter.
//= rfc6298#section-5.7
const AFTER_LOST_SYN: Span = Span::secs(3);

/// Maximum round-trip time in ticks: eight times this value fits an estimate.
const MOST_TICKS: u64 = 1 << 26;

impl RttEstimator {
    /// Asserts that the timeout is within its bounds.
    pub fn check(&self) {
        let Timing { min, max, initial, .. } = *self.timing();
        debug_assert!(min <= max, "bounds of the timeout");
        debug_assert!(self.rto > Span::ZERO, "a timeout expires at once");
        // Clocks with ticks round up.
        debug_assert!(
            self.rto <= max.max(initial) + Span::secs(1),
            "timeout {} above its bound {max}",
            self.rto
        );
        debug_assert!(self.sampled || self.srtt == 0, "a round trip without a measurement");
    }

    /// An estimator without measurements.
    pub fn new(settings: &Arc<Settings>) -> RttEstimator {
        let rttvar = match &settings.timing.kind {
            // 4.4BSD starts with no estimate and a variation of three seconds.
            Kind::Ticks { beat } => (Span::secs(3).0 / beat.period.0).min(MOST_TICKS) << 2,
            Kind::Integer { .. } | Kind::Fine { .. } | Kind::Linux => 0,
        };
        let mut estimator = RttEstimator {
            settings: settings.clone(),
            srtt: 0,
            rttvar,
            deviation: Deviation::default(),
            rto: Span::ZERO,
            backoff: 0,
            sampled: false,
        };
        estimator.set_rto(true);
        estimator
    }

    #[inline]
    fn timing(&self) -> &Timing {
        &self.settings.timing
    }

    /// Records that a segment sent once, at `sent`, was acknowledged at `now`. Ends any backoff. `edges` are the left
    /// edge after this ACK and the next position to send.
    pub fn sample(&mut self, sent: Time, now: Time, edges: (u64, u64)) {
        self.backoff = 0;
        self.estimate(sent, now, edges);
    }

    /// Records that a segment sent at `sent` was acknowledged at `now`; it may be a retransmission. A backoff
    /// continues. The `edges` are those of [`RttEstimator::sample`].
    pub fn estimate(&mut self, sent: Time, now: Time, edges: (u64, u64)) {
        let (srtt, rttvar) = (&mut self.srtt, &mut self.rttvar);
        let Timing { kind, min, .. } = &self.settings.timing;
        match kind {
            Kind::Ticks { beat } => {
                // t_rtt counts from one.
                let rtt = (beat.count(now) - beat.count(sent)).min(MOST_TICKS);
                average(srtt, rttvar, rtt + 1, rtt);
            }
            Kind::Integer { beat, rounding } => {
                let rtt = rounding.count(*beat, sent, now).min(1 << 20);
                average(srtt, rttvar, rtt, rtt);
            }
            Kind::Fine { granularity, rounding, .. } => {
                let beat = Beat::new(*granularity, Span::ZERO);
                let rtt = (beat.period * rounding.count(beat, sent, now)).0;
                if *srtt == 0 {
                    //= rfc6298#section-2.2: the first measurement sets both
                    (*srtt, *rttvar) = (rtt, rtt / 2);
                } else {
                    //= rfc6298#section-2.3: RTTVAR before SRTT, gains 1/4 and 1/8
                    *rttvar = (3 * *rttvar + srtt.abs_diff(rtt)) / 4;
                    *srtt = (7 * *srtt + rtt) / 8;
                }
            }
            Kind::Linux => {
                let rtt = now.since(sent).0.max(1000);
                if *srtt == 0 {
                    self.deviation = Deviation::first(rtt, *min, edges.1);
                    (*srtt, *rttvar) = (rtt, self.deviation.most);
                } else {
                    self.deviation.add(*srtt, rtt);
                    self.deviation.adapt(rttvar, *min, edges);
                    *srtt = (7 * *srtt + rtt) / 8;
                }
            }
        }
        self.sampled = true;
        self.set_rto(false);
    }

    /// Doubles the timeout because the timer expired.
    //= rfc6298#section-5.5: the timeout is doubled, bounded above
    pub fn back_off(&mut self) {
        self.backoff += 1;
        // After the fourth consecutive timeout the estimate is considered stale, so that the next measurement acts
        // as the first. BSD sets the timer before, ns of 1996 after.
        let stale = self.backoff > 3 && !self.timing().kind.is_exact();
        if stale && self.timing().stale == StaleRtt::Dropped {
            self.srtt = 0;
        }
        self.set_rto(false);
        if stale {
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
    }

    /// `initial`: without measurements and timeouts so far. (BSD's second SYN follows after 6 s, the third 24
    /// s later, since then the default variation counts.)
    fn set_rto(&mut self, initial: bool) {
        let factor = self.timing().backoff_factor(self.backoff);
        let Timing { kind, min, max, initial: first, .. } = self.timing();
        self.rto = match kind {
            Kind::Ticks { beat } => {
                let ticks = |span: &Span| span.0.div_ceil(beat.period.0);
                let base = if initial { ticks(first) } else { (self.srtt >> 3) + self.rttvar };
                beat.period * base.saturating_mul(factor).clamp(ticks(min), ticks(max))
            }
            Kind::Integer { beat, .. } => {
                let ticks = (self.srtt >> 3) + self.rttvar;
                let base = if self.sampled { beat.period * ticks } else { *first };
                (base * factor).max(*min).min(*max)
            }
            Kind::Fine { margin, .. } => {
                let base = match self.srtt {
                    // Before the first measurement a variation means that a handshake timed out.
                    0 => Span(self.rttvar).max(*first),
                    //= rfc6298#section-2.3: RTO = SRTT + max(G, 4 RTTVAR)
                    srtt => Span(srtt + margin.0.max(4 * self.rttvar)).max(*min),
                };
                (base * factor).min(*max)
            }
            Kind::Linux => {
                // Before the first measurement a variation means that a handshake timed out.
                let least = if self.srtt == 0 { *first } else { Span::ZERO };
                let exact = Span(self.srtt + self.rttvar).max(least);
                // In whole ticks (`__tcp_set_rto`).
                (Span(exact.0.next_multiple_of(TICK.0)) * factor).min(*max)
            }
        };
    }

    /// Records a handshake whose timer expired, so that it gives no measurement. The backoff ends, and the
    /// timeout is at least three seconds until the first measurement.
    //= rfc6298#section-5.7
    pub fn handshake_timed_out(&mut self) {
        let short = self.timing().initial < AFTER_LOST_SYN;
        if self.sampled || !short || !self.timing().kind.is_exact() {
            return;
        }
        self.backoff = 0;
        self.rttvar = AFTER_LOST_SYN.0;
        self.set_rto(false);
    }

    /// Adopts the result of another estimator of the same path, unless that has no measurement.
    pub fn adopt(&mut self, smoothed: Span, variation: Span) {
        if smoothed == Span::ZERO {
            return;
        }
        // Rounded to the nearest unit, which is the original value.
        let units = |span: Span, beat: &Beat, parts: u64| {
            let scaled = u128::from(span.0) * u128::from(parts) + u128::from(beat.period.0) / 2;
            (scaled / u128::from(beat.period.0)).clamp(1, 1 << 24) as u64
        };
        let Timing { kind, min, .. } = &self.settings.timing;
        (self.srtt, self.rttvar) = match kind {
            Kind::Ticks { beat } | Kind::Integer { beat, .. } => {
                (units(smoothed, beat, 8), units(variation, beat, 4))
            }
            Kind::Fine { .. } => (smoothed.0, variation.0),
            Kind::Linux => {
                let current = variation.0.saturating_mul(4);
                self.deviation = Deviation { current, most: current.max(min.0), round: 0 };
                (smoothed.0, self.deviation.most)
            }
        };
        self.sampled = true;
        self.set_rto(false);
    }

    /// Expiry of a timer that is started at `now` with `factor` times the current timeout; at most the
    /// maximum timeout.
    pub fn deadline(&self, now: Time, factor: u64) -> Time {
        let Timing { kind, max, .. } = self.timing();
        match kind {
            Kind::Ticks { beat } => {
                let (ticks, most) = (self.rto.0 / beat.period.0, max.0.div_ceil(beat.period.0));
                beat.nth_after(now, ticks.saturating_mul(factor).min(most))
            }
            Kind::Integer { .. } | Kind::Fine { .. } | Kind::Linux => {
                now + (self.rto * factor).min(*max)
            }
        }
    }

    /// Like [`RttEstimator::deadline`] with twice the timeout before any backoff.
    //= west97#4.2: a constant of about twice the initial value
    pub fn constant_deadline(&self, now: Time) -> Time {
        let mut fresh = self.clone();
        fresh.backoff = 0;
        fresh.set_rto(!self.sampled);
        fresh.deadline(now, 2)
    }

    /// Number of consecutive timeouts.
    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Current timeout, backoff included.
    pub fn rto(&self) -> Span {
        self.rto
    }

    /// The factor of the timeout after `backoff` consecutive timeouts.
    pub(super) fn backoff_factor(&self, backoff: u32) -> u64 {
        self.timing().backoff_factor(backoff)
    }

    /// Maximum timeout.
    pub fn max(&self) -> Span {
        self.timing().max
    }

    /// Smoothed round-trip time; zero before the first measurement.
    pub fn srtt(&self) -> Span {
        match &self.timing().kind {
            Kind::Ticks { beat } | Kind::Integer { beat, .. } => beat.period * self.srtt / 8,
            Kind::Fine { .. } | Kind::Linux => Span(self.srtt),
        }
    }

    /// Round-trip time variation: the smoothed mean deviation.
    pub fn rttvar(&self) -> Span {
        match &self.timing().kind {
            Kind::Ticks { beat } | Kind::Integer { beat, .. } => beat.period * self.rttvar / 4,
            Kind::Fine { .. } => Span(self.rttvar),
            Kind::Linux => Span(self.deviation.current / 4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::settings::Beats;

    const MS: u64 = 1_000_000;

    fn estimator(config: TcpConfig, slow: Beat) -> RttEstimator {
        RttEstimator::new(&Settings::new(config, Beats { slow, fast: slow }))
    }

    fn sample(rtt: &mut RttEstimator, sent: Time, now: Time) {
        rtt.sample(sent, now, (0, 0));
    }

    fn bsd(phase: Span) -> RttEstimator {
        estimator(TcpConfig::freebsd_2_1(), Beat::new(Span::millis(500), phase))
    }

    #[test]
    fn beats_come_at_their_phase() {
        let beat = Beat::new(Span::millis(500), Span::millis(130));
        assert_eq!(beat.nth_after(Time(0), 1), Time(130 * MS));
        assert_eq!(beat.nth_after(Time(129 * MS), 2), Time(630 * MS));
        assert_eq!(beat.nth_after(Time(130 * MS), 1), Time(630 * MS));
        assert_eq!(beat.nth_after(Time(0), u64::MAX), Time(u64::MAX - beat.period.0));
    }

    #[test]
    fn bsd_starts_at_six_seconds() {
        assert_eq!(bsd(Span::ZERO).rto(), Span::secs(6));
    }

    /// The figures are computed by hand from the integer arithmetic of 4.4BSD.
    #[test]
    fn bsd_on_a_lan_settles_at_three_ticks() {
        let mut rtt = bsd(Span::ZERO);
        sample(&mut rtt, Time(10 * MS), Time(20 * MS));
        assert_eq!(rtt.rto(), Span::millis(1500)); // srtt 8/8, rttvar 2/4: 1 + 2 ticks
        for _ in 0..50 {
            sample(&mut rtt, Time(10 * MS), Time(20 * MS));
        }
        assert_eq!(rtt.rto(), Span::millis(1500)); // truncation keeps rttvar at 3
    }

    #[test]
    fn bsd_time_outs_double_and_stop_at_64_seconds() {
        let mut rtt = bsd(Span::ZERO);
        sample(&mut rtt, Time(10 * MS), Time(20 * MS));
        let mut seen = vec![];
        for _ in 0..8 {
            rtt.back_off();
            seen.push(rtt.rto().0 / (500 * MS));
        }
        assert_eq!(seen, [6, 12, 24, 48, 96, 128, 128, 128]);
        sample(&mut rtt, Time(0), Time(MS));
        assert_eq!(rtt.backoff(), 0);
    }

    /// The old estimate remains for three consecutive timeouts; after the fourth the next measurement acts as
    /// the first.
    #[test]
    fn bsd_thinks_its_estimate_stale_after_four_time_outs() {
        let after = |measured: bool, time_outs: u32| {
            let mut rtt = bsd(Span::ZERO);
            if measured {
                sample(&mut rtt, Time(10 * MS), Time(20 * MS));
            }
            (0..time_outs).for_each(|_| rtt.back_off());
            sample(&mut rtt, Time(0), Time(5000 * MS));
            rtt.rto()
        };
        assert_ne!(after(true, 0), after(false, 0));
        assert_eq!([1, 2, 3].map(|n| after(true, n)), [after(true, 0); 3]);
        assert_eq!([4, 5].map(|n| after(true, n)), [after(false, 0); 2]);
    }

    /// ns of 1996 has no limit but the factor of 64, and drops the smoothed round trip where BSD adds it to the
    /// variation.
    #[test]
    fn a_stale_estimate_is_dropped_in_ns_of_1996() {
        let beat = Beat::new(Span::millis(100), Span::ZERO);
        let mut rtt = estimator(TcpConfig::ns_1996(), beat);
        sample(&mut rtt, Time(0), Time(2000 * MS)); // 20 ticks: srtt 160/8, rttvar 40/4
        let mut next = || {
            rtt.back_off();
            rtt.rto()
        };
        let rtos: Vec<Span> = (0..8).map(|_| next()).collect();
        let s = Span::secs;
        assert_eq!(rtos, [s(12), s(24), s(48), s(64), s(128), s(256), s(256), s(256)]);
    }

    /// Limits of the timeout that are not whole numbers of ticks are rounded up.
    #[test]
    fn limits_of_the_time_out_hold_with_ticks() {
        let (rto_min, rto_max) = (Span::millis(2_200), Span::millis(5_200));
        let config = TcpConfig { rto_min, rto_max, ..TcpConfig::freebsd_2_1() };
        let mut rtt = estimator(config, Beat::new(Span::millis(500), Span::ZERO));
        sample(&mut rtt, Time(10 * MS), Time(20 * MS));
        assert_eq!(rtt.rto(), Span::millis(2_500), "three ticks are less than the least timeout");
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::secs(3), "twice the three ticks, not twice the limit");
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::millis(5_500), "twelve ticks are more than the largest");
        assert_eq!(rtt.deadline(Time(0), 1), Time(5_500 * MS));
    }

    #[test]
    fn a_tick_that_falls_into_a_round_trip_counts() {
        let mut rtt = bsd(Span::ZERO);
        sample(&mut rtt, Time(499 * MS), Time(501 * MS));
        assert_eq!(rtt.rto(), Span::secs(3)); // rtt 2: srtt 16/8, rttvar 4/4
    }

    #[test]
    fn real_starts_at_three_units_and_comes_down_to_one() {
        let beat = Beat::new(Span::millis(1), Span::ZERO);
        let mut rtt = estimator(TcpConfig::real(), beat);
        sample(&mut rtt, Time(0), Time(30 * MS));
        assert_eq!(rtt.rto(), Span::millis(1500));
        for _ in 0..100 {
            sample(&mut rtt, Time(0), Time(30 * MS));
        }
        assert_eq!(rtt.rto(), Span::millis(500));
        sample(&mut rtt, Time(0), Time(501 * MS)); // two units: rttvar 125 ms, srtt 562.5 ms
        assert_eq!(rtt.rto(), Span::micros(1_062_500));
    }

    #[test]
    fn round_trips_to_the_nearest_beat() {
        let config = TcpConfig::bakshi96();
        let beat = Beat::new(Span::millis(100), Span::ZERO);
        for (measured, counted) in [(1, 100), (149, 100), (150, 200), (2_449, 2_400)] {
            let mut rtt = estimator(config.clone(), beat);
            sample(&mut rtt, Time(0), Time(measured * MS));
            assert_eq!(rtt.srtt(), Span::millis(counted), "{measured} ms");
        }
        let mut rtt = estimator(config.clone(), beat);
        assert_eq!(rtt.rto(), Span::secs(6));
        for _ in 0..60 {
            sample(&mut rtt, Time(0), Time(MS));
        }
        assert_eq!(rtt.rto(), Span::millis(200)); // two beats at least
    }

    #[test]
    fn rfc6298_by_hand() {
        let mut rtt = estimator(TcpConfig::rfc(), Beat::new(Span::millis(1), Span::ZERO));
        assert_eq!(rtt.rto(), Span::secs(1));
        sample(&mut rtt, Time(0), Time(800 * MS));
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Span::millis(800), Span::millis(400)));
        assert_eq!(rtt.rto(), Span::millis(2400));
        sample(&mut rtt, Time(0), Time(400 * MS));
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Span::millis(750), Span::millis(400)));
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::millis(2 * 2350));
    }
}
