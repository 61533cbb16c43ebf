use super::*;
use crate::tcp::sender::congestion_control::rate::RateSample;

const MS: u64 = 1_000_000;
/// 10 Mb/s and 40 ms: 50 segments of 1000 bytes.
const RATE: u64 = 10_000_000;

struct Path {
    bbr: Bbr,
    w: Window,
    now: u64,
    total: u64,
    flight: u64,
}

impl Path {
    fn new() -> Path {
        let config = TcpConfig { mss: 1000, initial_window: 10, ..TcpConfig::rfc() };
        let mut w = Window::new(&config);
        w.largest = u32::MAX;
        Path { bbr: Bbr::new(&config), w, now: 0, total: 0, flight: 10_000 }
    }

    /// Ends a round trip of `rtt` ms by one ACK for all data that the path has carried. Then sends as much data
    /// as window and pacing rate allow.
    fn round(&mut self, rtt: u64, lost: u32, repair: Repair) {
        let prior = self.total;
        let before = self.flight;
        let delivered = before.min(RATE / 8 * rtt / 1000);
        self.flight -= delivered;
        (self.now, self.total) = (self.now + rtt, self.total + delivered);
        let sample = Sample {
            now: Time(self.now * MS),
            delivered: delivered as u32,
            lost,
            ce_bytes: 0,
            pipe: (before, self.flight),
            rtt: Some(Span::millis(rtt)),
            rate: Some(RateSample {
                delivered,
                interval: Span::millis(rtt),
                prior,
                app_limited: false,
                in_flight: before,
                lost: 0,
            }),
            total: self.total,
            repair,
            repaired: false,
        };
        self.bbr.on_sample(&mut self.w, &sample);
        let pace = self.bbr.pacing().map_or(u64::MAX, |rate| rate.bps() / 8 * rtt / 1000);
        self.flight += u64::from(self.w.cwnd).saturating_sub(self.flight).min(pace);
    }

    fn settled() -> Path {
        let mut path = Path::new();
        while path.bbr.mode != Mode::ProbeBw {
            path.round(40, 0, Repair::None);
            assert!(path.now < 2000, "{:?}", path.bbr);
        }
        path
    }
}

#[test]
fn startup_ends_after_three_flat_rounds_then_drains() {
    let mut path = Path::new();
    let mut modes = vec![path.bbr.mode];
    while path.bbr.mode != Mode::ProbeBw && path.now < 2000 {
        path.round(40, 0, Repair::None);
        modes.push(path.bbr.mode);
    }
    assert_eq!(path.bbr.rate.get(), RATE);
    assert_eq!(modes.last(), Some(&Mode::ProbeBw));
    // 10 segments double to 50 within three rounds, three more without growth; then the queue goes.
    let drain = modes.iter().position(|mode| *mode == Mode::Drain);
    assert!(drain.is_some_and(|at| (6..=8).contains(&at)), "{modes:?}");
}

#[test]
fn a_cycle_has_one_phase_above_the_rate_and_one_below() {
    let mut path = Path::settled();
    let mut phases = Vec::new();
    for _ in 0..40 {
        path.round(41, 0, Repair::None);
        let percent = path.bbr.pacing().unwrap().bps() * 100 / (RATE * 99 / 100);
        phases.push(match percent {
            120..=130 => "up",
            70..=80 => "down",
            95..=105 => "cruise",
            _ => "?",
        });
    }
    assert!(phases.iter().filter(|p| **p == "cruise").count() > 20, "{phases:?}");
    phases.dedup();
    assert!(phases.len() > 7, "{phases:?}");
    let order = ["up", "down", "cruise", "up"];
    let in_order = |pair: &[&str]| order.windows(2).any(|two| two == pair);
    assert!(phases.windows(2).all(in_order), "{phases:?}");
}

#[test]
fn recovery_conserves_packets_and_then_restores_the_window() {
    let mut path = Path::settled();
    for _ in 0..8 {
        path.round(40, 0, Repair::None);
    }
    let before = path.w.cwnd;
    path.bbr.ssthresh_after_loss(Time(path.now * MS), &path.w, Loss::Detected);
    // An ACK within the round trip: nothing but conservation.
    let sample = Sample {
        now: Time(path.now * MS + MS),
        delivered: 1000,
        lost: 3000,
        ce_bytes: 0,
        pipe: (50_000, 46_000),
        rtt: None,
        rate: None,
        total: path.total + 1000,
        repair: Repair::Recovery,
        repaired: false,
    };
    path.bbr.on_sample(&mut path.w, &sample);
    assert_eq!(path.w.cwnd, 47_000);
    path.bbr.on_sample(
        &mut path.w,
        &Sample { lost: 0, repair: Repair::None, pipe: (46_000, 45_000), ..sample },
    );
    assert!(path.w.cwnd >= before.min(100_000), "{} {before}", path.w.cwnd);
    assert_eq!(path.bbr.ssthresh_after_loss(Time(0), &path.w, Loss::Detected), path.w.ssthresh);
}

#[test]
fn after_ten_seconds_without_a_shorter_round_trip_the_path_is_drained() {
    let mut path = Path::settled();
    let mut least = u32::MAX;
    let begin = path.now;
    while path.now < begin + 12_000 {
        path.round(if path.now < begin + 1000 { 40 } else { 45 }, 0, Repair::None);
        least = least.min(path.w.cwnd);
    }
    assert_eq!((least, path.bbr.min_rtt), (4000, Some(Span::millis(45))));
    assert_ne!(path.bbr.mode, Mode::ProbeRtt);
}

/// A phase lasts longer than the shortest round trip. The draining phase also ends when the flight is at most the
/// product, the probing phase only when the flight exceeds it; the cruising phases do neither.
#[test]
fn each_phase_ends_by_its_duration_flight_or_losses() {
    let settled = Path::settled();
    let (up, down, between) = (0, 1, 2);
    assert_eq!([up, down, between].map(|phase| CYCLE[phase].cmp(&UNIT) as i8), [1, -1, 0]);
    for (phase, ms, pipe, lost, over) in [
        (between, 40, 0, 0, false),
        (between, 41, 0, 0, true),
        (between, 90, 1 << 20, 0, true),
        (down, 1, 10_000, 0, true),
        (down, 40, 1 << 20, 0, false),
        (down, 41, 1 << 20, 0, true),
        (up, 41, 10_000, 0, false),
        (up, 40, 1 << 20, 0, false),
        (up, 41, 1 << 20, 0, true),
        (up, 41, 10_000, 1, true),
    ] {
        let (mut bbr, w) = (settled.bbr.clone(), &settled.w);
        (bbr.phase, bbr.phase_at, bbr.min_rtt) = (phase, Time(0), Some(Span::millis(40)));
        let sample = Sample {
            now: Time(ms * MS),
            delivered: 1000,
            lost,
            ce_bytes: 0,
            pipe: (pipe, pipe),
            rtt: None,
            rate: None,
            total: 1 << 20,
            repair: Repair::None,
            repaired: false,
        };
        bbr.update_phase(w, &sample);
        let is = if over { phase + 1 } else { phase };
        assert_eq!(bbr.phase, is, "phase {phase}, {ms} ms, {pipe} in flight, {lost} lost");
    }
}

/// The window opens by the arriving bytes, up to its target. Before the path is full, the first window may exceed the
/// target.
#[test]
fn the_window_grows_with_deliveries_up_to_its_target() {
    let settled = Path::settled();
    let target = settled.bbr.target(
        &settled.w,
        settled.bbr.rate.get(),
        2 * UNIT,
        settled.bbr.lumps.extra(settled.bbr.rate.get()),
    );
    let target = target as u32;
    assert!(target > 60_000, "{target}");
    for (filled, total, cwnd, becomes) in [
        (true, 1 << 20, 10_000, 13_000),
        (true, 1 << 20, target - 1_000, target),
        (true, 1 << 20, target + 5_000, target),
        (false, 1 << 20, 10_000, 13_000),
        (false, 9_999, 900_000, 903_000),
        (false, 10_000, 900_000, 900_000),
    ] {
        let (mut bbr, mut w) = (settled.bbr.clone(), settled.w.clone());
        (bbr.filled, w.cwnd) = (filled, cwnd);
        let sample = Sample {
            now: Time(settled.now * MS),
            delivered: 3_000,
            lost: 0,
            ce_bytes: 0,
            pipe: (cwnd.into(), cwnd.into()),
            rtt: None,
            rate: None,
            total,
            repair: Repair::None,
            repaired: false,
        };
        bbr.update_window(&mut w, &sample, 2 * UNIT);
        assert_eq!(w.cwnd, becomes, "filled {filled}, {total} delivered, a window of {cwnd}");
    }
}

#[test]
fn each_mode_has_its_gains() {
    let mut bbr = Path::new().bbr;
    for (mode, phase, gains) in [
        (Mode::Startup, 0, (739, 739)),
        (Mode::Drain, 0, (88, 739)),
        (Mode::ProbeBw, 0, (320, 512)),
        (Mode::ProbeBw, 1, (192, 512)),
        (Mode::ProbeBw, 2, (256, 512)),
        (Mode::ProbeBw, 7, (256, 512)),
        (Mode::ProbeRtt, 0, (256, 256)),
    ] {
        (bbr.mode, bbr.phase) = (mode, phase);
        assert_eq!(bbr.gains(), gains, "{mode:?} {phase}");
    }
}

/// The product of rate and round trip, three bursts of a millisecond, and an even number of segments.
#[test]
fn the_target_leaves_room_for_bursts() {
    for (mode, phase, pace, gain, extra, segments) in [
        (Mode::Startup, 0, None, UNIT, 0, 54),
        (Mode::Startup, 0, Some(1_199_999), UNIT, 0, 54),
        (Mode::Startup, 0, Some(1_200_000), UNIT, 0, 56),
        (Mode::Startup, 0, Some(40_000_000), UNIT, 0, 62),
        (Mode::Startup, 0, Some(1 << 50), UNIT, 0, 50 + 3 * 127 + 1),
        (Mode::Startup, 0, None, UNIT / 2, 0, 28),
        (Mode::Startup, 0, None, UNIT, 1000, 54),
        (Mode::Startup, 0, None, UNIT, 1001, 56),
        (Mode::ProbeBw, 0, None, UNIT, 0, 56),
        (Mode::ProbeBw, 1, None, UNIT, 0, 54),
    ] {
        let Path { mut bbr, w, .. } = Path::new();
        assert_eq!(
            bbr.target(&w, bbr.rate.get(), gain, extra),
            10_000,
            "nothing is known: the first window"
        );
        bbr.rate.add(0, RATE);
        (bbr.min_rtt, bbr.mode, bbr.phase) = (Some(Span::millis(40)), mode, phase);
        bbr.pace.0 = pace;
        assert_eq!(
            bbr.target(&w, bbr.rate.get(), gain, extra),
            segments * 1000,
            "{mode:?} {pace:?} {extra}"
        );
    }
}

fn sample(delivered: u32, lost: u32, left: u64, repair: Repair) -> Sample {
    Sample {
        now: Time(0),
        delivered,
        lost,
        ce_bytes: 0,
        pipe: (left, left),
        rtt: None,
        rate: None,
        total: 0,
        repair,
        repaired: false,
    }
}

//= draft-cardwell-iccrg-bbr-congestion-control-00#section-4.2.3.4
#[test]
fn recovery_starts_with_the_flight_and_restores_the_window() {
    use Repair::{None, Recovery, Timeout};
    for (before, repair, delivered, lost, cwnd, conserves) in [
        (None, None, 1000, 0, 10_000, false),
        (None, None, 0, 3000, 7000, false),
        (None, None, 0, 10_000, 1000, false),
        (None, Recovery, 2000, 1000, 8000, true),
        (None, Recovery, 500, 1000, 7000, true),
        (Timeout, Recovery, 2000, 0, 8000, true),
        (Recovery, Recovery, 2000, 9000, 8000, true),
        (Recovery, Recovery, 2000, 1000, 9000, true),
        (Recovery, None, 1000, 0, 20_000, false),
        (Timeout, None, 1000, 0, 20_000, false),
        (Timeout, Timeout, 1000, 0, 10_000, false),
    ] {
        let Path { mut bbr, mut w, .. } = Path::new();
        (bbr.repair, bbr.prior_cwnd, w.cwnd) = (before, 20_000, 10_000);
        bbr.conserves = before == Recovery;
        assert_eq!(bbr.conserve(&mut w, &sample(delivered, lost, 6000, repair)), conserves);
        assert_eq!((w.cwnd, bbr.repair), (cwnd, repair), "{before:?} {repair:?} {lost}");
    }
}

/// A timer that finds losses gives a sample without anything delivered.
#[test]
fn timer_losses_defer_recovery_to_the_next_ack() {
    let Path { mut bbr, mut w, .. } = Path::new();
    (bbr.prior_cwnd, w.cwnd) = (20_000, 10_000);
    bbr.update_window(&mut w, &sample(0, 3000, 7000, Repair::Recovery), UNIT);
    assert_eq!((w.cwnd, bbr.repair, bbr.conserves), (10_000, Repair::None, false));
    bbr.update_window(&mut w, &sample(1000, 0, 6000, Repair::Recovery), UNIT);
    assert_eq!((w.cwnd, bbr.repair, bbr.conserves), (7000, Repair::Recovery, true));
}

#[test]
fn losses_save_the_window_and_timeouts_reset_full_pipe() {
    for (loss, repair, full) in
        [(Loss::Detected, Repair::None, (5, 2)), (Loss::Timeout, Repair::Timeout, (0, 0))]
    {
        let Path { mut bbr, mut w, .. } = Path::new();
        (bbr.full, bbr.prior_cwnd, w.cwnd) = ((5, 2), 20_000, 10_000);
        assert_eq!(bbr.ssthresh_after_loss(Time(0), &w, loss), w.ssthresh);
        assert_eq!((bbr.prior_cwnd, bbr.repair, bbr.full), (10_000, repair, full));
    }
    // During a repair, or while the round trip is measured, the saved window is the largest one.
    for (repair, mode) in [(Repair::Recovery, Mode::Startup), (Repair::None, Mode::ProbeRtt)] {
        let Path { mut bbr, mut w, .. } = Path::new();
        (bbr.repair, bbr.mode, bbr.prior_cwnd, w.cwnd) = (repair, mode, 20_000, 10_000);
        bbr.save_window(&w);
        assert_eq!(bbr.prior_cwnd, 20_000);
    }
}
