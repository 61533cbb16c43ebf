//! The round trip without queues: the minimum of ten seconds, and ProbeRTT, which drains the path every five seconds to
//! measure it.

use crate::tcp::sender::Window;
use crate::tcp::sender::congestion_control::Sample;
use crate::tcp::sender::congestion_control::rate::RateSample;
use crate::tcp::sender::systems::bbr::path::UNIT;
use crate::units::{Span, Time};

use super::bounds::Short;
use super::cycle::Acks;
use super::{Bbr3, State};

/// Lifetime of a round trip in the model.
const MEMORY: Span = Span::secs(10);
/// Time without a shorter round trip after which the path is drained.
const INTERVAL: Span = Span::secs(5);
/// Minimum time for which the path is drained, in addition to a round.
const DURATION: Span = Span::millis(200);

/// Minimum round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    /// The minimum of the model, and the time of its sample.
    pub(super) min: Option<Span>,
    at: Time,
    /// The minimum of the last interval, and the time of its sample.
    recent: Option<Span>,
    recent_at: Time,
    /// Earliest end of ProbeRTT, once the flight is small enough, and whether a round has passed since.
    until: Option<Time>,
    round: bool,
    /// Number of delivered bytes. Samples of segments sent before it are ignored, since the path was being drained.
    emptied_until: u64,
}

impl Bbr3 {
    /// Whether a sample may be below the rate of the path.
    pub(super) fn is_app_limited(&self, rate: &RateSample) -> bool {
        rate.app_limited || rate.prior < self.rtt.emptied_until
    }

    /// The window of ProbeRTT: half of the product.
    pub(super) fn probe_rtt_window(&self, w: &Window) -> u64 {
        self.product(w, self.rate(), UNIT / 2).max(Self::least(w))
    }

    //= draft-ietf-ccwg-bbr-06#section-5.3.4.3: UpdateMinRTT, CheckProbeRTT
    pub(super) fn update_min_rtt(&mut self, w: &mut Window, sample: &Sample) {
        let now = sample.now;
        let r = &mut self.rtt;
        let expired = r.recent.is_some() && now.since(r.recent_at) > INTERVAL;
        if let Some(rtt) = sample.rtt
            && (expired || r.recent.is_none_or(|recent| rtt < recent))
        {
            (r.recent, r.recent_at) = (Some(rtt), now);
        }
        let old = now.since(r.at) > MEMORY;
        if old || r.min.is_none_or(|min| r.recent.is_some_and(|recent| recent <= min)) {
            (r.min, r.at) = (r.recent, r.recent_at);
        }
        if self.state != State::ProbeRtt && expired && !self.idle_restart {
            self.save_window(w);
            self.state = State::ProbeRtt;
            self.rtt.until = None;
            self.probe.acks = Acks::Stopping;
            self.rounds.restart(sample.total);
        }
        if self.state == State::ProbeRtt {
            self.probe_rtt(w, sample);
        }
        self.idle_restart &= sample.delivered == 0;
    }

    //= draft-ietf-ccwg-bbr-06#section-5.3.4.3: HandleProbeRTT, CheckProbeRTTDone
    fn probe_rtt(&mut self, w: &mut Window, sample: &Sample) {
        let now = sample.now;
        self.rtt.emptied_until = sample.total + sample.pipe.1.max(1);
        let Some(until) = self.rtt.until else {
            if sample.pipe.1 <= self.probe_rtt_window(w) {
                (self.rtt.until, self.rtt.round) = (Some(now + DURATION), false);
                self.rounds.restart(sample.total);
            }
            return;
        };
        self.rtt.round |= self.rounds.starts;
        if !self.rtt.round || now <= until {
            return;
        }
        self.rtt.recent_at = now;
        self.restore_window(w);
        self.short = Short::default();
        if self.full.reached {
            self.start_down(now, sample.total);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Path;
    use super::*;
    use crate::tcp::sender::congestion_control::Repair;

    /// The minimum of the last seconds is independent of the order of the samples.
    #[test]
    fn the_minimum_round_trip_is_independent_of_sample_order() {
        for rtts in [[40, 60, 50], [60, 40, 50], [60, 50, 40]] {
            let mut path = Path::new();
            for rtt in rtts {
                let sample =
                    Sample { rtt: Some(Span::millis(rtt)), ..path.sample(0, Repair::None) };
                path.bbr.update_min_rtt(&mut path.w, &sample);
            }
            let rtt = &path.bbr.rtt;
            assert_eq!(
                (rtt.min, rtt.recent),
                (Some(Span::millis(40)), Some(Span::millis(40))),
                "{rtts:?}"
            );
        }
    }

    /// Samples that the application limits, and those of a drained path, are below the rate of the path.
    #[test]
    fn samples_from_a_drained_path_count_as_app_limited() {
        let mut path = Path::new();
        path.bbr.rtt.emptied_until = 5_000;
        for (app_limited, prior, less) in
            [(false, 5_000, false), (false, 4_999, true), (true, 5_000, true), (true, 4_999, true)]
        {
            let rate =
                path.sample(0, Repair::None).rate.map(|r| RateSample { app_limited, prior, ..r });
            assert_eq!(path.bbr.is_app_limited(&rate.unwrap()), less, "{app_limited} {prior}");
        }
    }

    fn probing() -> Path {
        let mut path = Path::new();
        path.bbr.state = State::ProbeRtt;
        path
    }

    /// After five seconds without a shorter round trip the path is drained; after ten the minimum expires.
    #[test]
    fn an_unconfirmed_min_rtt_is_probed_and_then_expires() {
        let (old, new) = (Span::millis(40), Span::millis(50));
        let (five, ten) = (INTERVAL.0, MEMORY.0);
        for (at, idle, state, recent, min) in [
            (five, false, State::Startup, old, old),
            (five + 1, false, State::ProbeRtt, new, old),
            (five + 1, true, State::Startup, new, old),
            (ten, true, State::Startup, new, old),
            (ten + 1, true, State::Startup, new, new),
        ] {
            let mut path = Path::new();
            (path.bbr.rtt.min, path.bbr.rtt.recent) = (Some(old), Some(old));
            path.bbr.idle_restart = idle;
            let mut sample = path.sample(0, Repair::None);
            (sample.now, sample.rtt) = (Time(at), Some(new));
            path.bbr.update_min_rtt(&mut path.w, &sample);
            let rtt = &path.bbr.rtt;
            assert_eq!((rtt.recent, rtt.min), (Some(recent), Some(min)), "{at}");
            assert_eq!(path.bbr.state, state, "{at} {idle}");
            assert!(!path.bbr.idle_restart, "something was delivered");
        }
        let mut path = Path::new();
        path.bbr.idle_restart = true;
        let sample = Sample { delivered: 0, ..path.sample(0, Repair::None) };
        path.bbr.update_min_rtt(&mut path.w, &sample);
        assert!(path.bbr.idle_restart, "nothing was");
    }

    /// The window is half of the product, here of the initial window, and at least four segments.
    #[test]
    fn probe_rtt_lasts_200_ms_and_a_round_drained() {
        let begin = Time(1_000_000_000);
        let step = |path: &mut Path, now, left, starts| {
            let sample = Sample { now, pipe: (left, left), ..path.sample(0, Repair::None) };
            path.bbr.rounds.starts = starts;
            path.bbr.probe_rtt(&mut path.w, &sample);
            sample.total
        };
        for (left, emptied) in [(10_001, false), (10_000, true), (0, true)] {
            let mut path = probing();
            let total = step(&mut path, begin, left, true);
            assert_eq!(path.bbr.rtt.until, emptied.then_some(begin + DURATION), "{left}");
            assert_eq!(path.bbr.rtt.emptied_until, total + left.max(1));
        }
        for (reached, state) in [(false, State::Startup), (true, State::Cruise)] {
            let mut path = probing();
            (path.bbr.full.reached, path.bbr.prior_cwnd) = (reached, 90_000);
            path.bbr.short.flight = 5000;
            step(&mut path, begin, 0, true);
            let end = begin + DURATION;
            step(&mut path, end + Span(1), 0, false);
            assert_eq!(path.bbr.state, State::ProbeRtt, "no round has passed");
            step(&mut path, end, 0, true);
            assert_eq!(path.bbr.state, State::ProbeRtt, "nor the time");
            step(&mut path, end + Span(1), 0, false);
            assert_eq!((path.bbr.state, path.w.cwnd), (state, 90_000));
            assert_eq!(path.bbr.rtt.recent_at, end + Span(1));
            assert_eq!(path.bbr.short.flight, u64::MAX, "the bound from losses is reset");
        }
    }
}
