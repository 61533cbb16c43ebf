use super::*;
use crate::tcp::sender::congestion_control::rate::RateSample;
use crate::units::Span;

const MS: u64 = 1_000_000;
/// 10 Mb/s and 40 ms: 50 segments of 1000 bytes.
const RATE: u64 = 10_000_000;
const PRODUCT: u64 = 50_000;

pub(super) struct Path {
    pub(super) bbr: Bbr3,
    pub(super) w: Window,
    now: u64,
    total: u64,
    flight: u64,
}

impl Path {
    pub(super) fn new() -> Path {
        let config = TcpConfig { mss: 1000, initial_window: 10, ..TcpConfig::rfc() };
        let mut w = Window::new(&config);
        w.largest = u32::MAX;
        Path { bbr: Bbr3::new(&config), w, now: 0, total: 0, flight: 10_000 }
    }

    /// The sample of an ACK that ends a round trip of 40 ms with `lost` lost bytes.
    pub(super) fn sample(&mut self, lost: u64, repair: Repair) -> Sample {
        let (before, prior) = (self.flight, self.total);
        let delivered = (before - lost).min(RATE / 8 * 40 / 1000);
        self.flight -= delivered + lost;
        (self.now, self.total) = (self.now + 40, self.total + delivered);
        Sample {
            now: Time(self.now * MS),
            delivered: delivered as u32,
            lost: lost as u32,
            ce_bytes: 0,
            pipe: (before, self.flight),
            rtt: Some(Span::millis(40)),
            rate: Some(RateSample {
                delivered,
                interval: Span::millis(40),
                prior,
                app_limited: false,
                in_flight: before,
                lost,
            }),
            total: self.total,
            repair,
            repaired: false,
        }
    }

    /// A round trip that loses `lost` segments of the present flight. Then sends as much data as window and pacing rate
    /// allow.
    fn round(&mut self, lost: u64, repair: Repair) {
        let before = self.flight;
        let sample = self.sample(1000 * lost, repair);
        for i in 1..=lost {
            let loss = Lost {
                now: sample.now,
                from: 2000 * i,
                bytes: 1000,
                in_flight: before,
                lost: 1000 * i,
                app_limited: false,
                total: sample.total,
            };
            self.bbr.on_lost(&self.w, &loss);
        }
        self.bbr.on_sample(&mut self.w, &sample);
        let pace = self.bbr.pacing().map_or(u64::MAX, |rate| rate.bps() / 8 * 40 / 1000);
        self.flight += u64::from(self.w.cwnd).saturating_sub(self.flight).min(pace);
    }

    fn until(&mut self, state: State) -> Vec<State> {
        let (mut seen, end) = (vec![self.bbr.state], self.now + 12_000);
        while self.bbr.state != state {
            self.round(0, Repair::None);
            seen.push(self.bbr.state);
            assert!(self.now < end, "{state:?}: {:?}", self.bbr);
        }
        seen.dedup();
        seen
    }

    fn cruising() -> Path {
        let mut path = Path::new();
        path.until(State::Cruise);
        path
    }
}

#[test]
fn startup_ends_after_three_flat_rounds_then_drains() {
    let mut path = Path::new();
    path.until(State::Drain);
    // 10 segments double to 50 within three rounds, three more without growth.
    assert!((6..=8).contains(&(path.now / 40)), "{}", path.now);
    assert_eq!((path.bbr.max_rate(), path.bbr.long), (RATE, NONE));
    let seen = path.until(State::Cruise);
    // With one ACK for each round trip, the states Drain and Down end at the same time.
    assert_eq!(seen, [State::Drain, State::Cruise]);
}

/// The draft's example: three rounds with any flight.
#[test]
fn drain_lasts_three_rounds_at_most() {
    let mut path = Path::new();
    path.until(State::Drain);
    let begin = path.now;
    while path.bbr.state == State::Drain {
        path.flight = 3 * PRODUCT;
        path.round(0, Repair::None);
    }
    assert_eq!((path.now - begin) / 40, DRAIN_ROUNDS + 1);
}

#[test]
fn six_loss_ranges_in_a_recovery_round_end_startup() {
    // The round that counts begins with the first loss, which is one ACK later here.
    let of = |lost: u64, repair: Repair| {
        let mut path = Path::new();
        (0..3).for_each(|_| path.round(0, Repair::None));
        path.round(3, repair);
        path.round(lost - 3, repair);
        (path.bbr.state != State::Startup, path.bbr.long)
    };
    assert_eq!(of(5, Repair::Recovery), (false, NONE));
    assert_eq!(of(6, Repair::None), (false, NONE));
    let (over, long) = of(6, Repair::Recovery);
    assert!(over && (PRODUCT..2 * PRODUCT).contains(&long), "{long}");
}

#[test]
fn a_probe_cycle_has_refill_up_down_and_cruise() {
    let mut path = Path::cruising();
    path.until(State::Refill);
    let begin = path.now;
    let mut paces = Vec::new();
    let mut seen = vec![State::Refill];
    while seen.len() < 10 && path.now < begin + 12_000 {
        let percent = path.bbr.pacing().unwrap().bps() * 100 / (RATE * 99 / 100);
        let expected = match path.bbr.state {
            State::Refill | State::Cruise | State::ProbeRtt => 99..=101,
            State::Up => 124..=126,
            _ => 89..=91,
        };
        assert!(expected.contains(&percent), "{:?} {percent}", path.bbr.state);
        paces.push(percent);
        path.round(0, Repair::None);
        if seen.last() != Some(&path.bbr.state) {
            seen.push(path.bbr.state);
        }
    }
    let cycle = [State::Refill, State::Up, State::Down, State::Cruise];
    assert_eq!(seen[..4], cycle, "{seen:?}");
    let steady = paces.iter().filter(|percent| (99..=101).contains(*percent)).count();
    assert!(2 * steady > paces.len(), "{paces:?}");
}

/// Between probes the model equals the delivered amount, but at least seven tenths of its previous value.
#[test]
fn losses_between_probes_lower_the_model_until_probing() {
    let mut path = Path::cruising();
    path.flight = PRODUCT;
    (0..6).for_each(|_| path.round(1, Repair::Recovery));
    let Short { rate, flight } = path.bbr.short;
    assert!((RATE * 7 / 10..RATE).contains(&rate), "{rate}");
    assert!((PRODUCT * 7 / 10..3 * PRODUCT).contains(&flight), "{flight}");
    assert_eq!(path.bbr.long, NONE, "no probe");
    path.until(State::Refill);
    assert_eq!((path.bbr.short.rate, path.bbr.short.flight), (NONE, NONE));
    assert_eq!(path.bbr.max_rate(), RATE);
}

/// Losses of up to two percent of the data in flight are tolerated.
#[test]
fn a_lossy_probe_bounds_the_next_cautious_probe() {
    let of = |lost: u64| {
        let mut path = Path::cruising();
        path.until(State::Up);
        path.round(0, Repair::None);
        path.flight = 60_000;
        path.round(lost, Repair::Recovery);
        path
    };
    let borne = of(1);
    assert_eq!((borne.bbr.state, borne.bbr.long), (State::Up, NONE));
    let mut path = of(2);
    assert!(matches!(path.bbr.state, State::Down | State::Cruise));
    // 2 % of the 59 segments before it are lost within the second one: 59,000 + (1180 - 1000) / 0.98.
    assert_eq!(path.bbr.long, 59_183);
    assert!(path.bbr.probe.too_high);
    path.until(State::Cruise);
    // 15 % are left to others.
    assert!(path.flight <= 59_183 * 85 / 100 + 1, "{}", path.flight);
    assert_eq!(u64::from(path.w.cwnd), 59_183 - 59_183 * 15 / 100);
    // The next probe ends at the flight of this loss, and another probe follows at once.
    path.until(State::Up);
    let seen = path.until(State::Refill);
    assert_eq!(seen, [State::Up, State::Down, State::Refill]);
}

#[test]
fn a_spurious_recovery_restores_probing_and_the_bound() {
    let mut path = Path::cruising();
    path.until(State::Up);
    path.round(0, Repair::None);
    path.flight = 60_000;
    path.bbr.ssthresh_after_loss(Time(path.now * MS), &path.w, Loss::Detected);
    path.round(3, Repair::Recovery);
    assert_ne!(path.bbr.state, State::Up);
    assert_ne!(path.bbr.long, NONE);
    path.bbr.undone(&mut path.w, 0);
    assert_eq!((path.bbr.state, path.bbr.long), (State::Refill, NONE));
}

#[test]
fn a_timeout_resets_full_pipe_and_the_window_recovers() {
    let mut path = Path::cruising();
    let before = path.w.cwnd;
    assert_eq!(path.bbr.ssthresh_after_loss(Time(0), &path.w, Loss::Timeout), path.w.ssthresh);
    assert_eq!((path.bbr.full.rate, path.bbr.short.flight), (0, before.into()));
    path.w.cwnd = 1000;
    path.flight = 1000;
    path.round(0, Repair::Timeout);
    assert!(path.w.cwnd < before, "{}", path.w.cwnd);
    path.round(0, Repair::None);
    assert!(path.w.cwnd > 9 * before / 10, "{}", path.w.cwnd);
}

impl Path {
    /// A round trip in which `percent` percent of the bytes arrive marked.
    fn marked(&mut self, percent: u32) {
        let mut sample = self.sample(0, Repair::None);
        sample.ce_bytes = sample.delivered * percent / 100;
        self.bbr.on_sample(&mut self.w, &sample);
        let pace = self.bbr.pacing().map_or(u64::MAX, |rate| rate.bps() / 8 * 40 / 1000);
        self.flight += u64::from(self.w.cwnd).saturating_sub(self.flight).min(pace);
    }
}

/// DCTCP's estimate: a sixteenth of each round's share.
#[test]
fn the_flight_falls_by_a_third_of_smoothed_marks() {
    let mut path = Path::cruising();
    path.bbr.marks.alpha = UNIT;
    (0..100).for_each(|_| path.marked(25));
    assert!((60..=64).contains(&path.bbr.marks.alpha), "{}", path.bbr.marks.alpha);
    let mut path = Path::cruising();
    path.bbr.marks.alpha = UNIT / 2;
    let before = u64::from(path.w.cwnd);
    path.marked(50);
    let Short { rate, flight } = path.bbr.short;
    assert_eq!(rate, NONE, "marks bound the data in flight");
    let cut = before * (256 - 128 / 3) / 256;
    assert!(flight.abs_diff(cut) <= before / 100, "{flight} {cut}");
}

#[test]
fn two_rounds_with_more_than_half_marked_end_startup() {
    let mut path = Path::new();
    path.marked(60);
    path.marked(40);
    path.marked(60);
    assert_eq!((path.bbr.state, path.bbr.long), (State::Startup, NONE));
    path.marked(60);
    assert_ne!(path.bbr.state, State::Startup);
    assert_ne!(path.bbr.long, NONE);
}

#[test]
fn heavy_marks_end_probes_and_ceased_marks_start_one() {
    let mut path = Path::cruising();
    path.until(State::Up);
    path.marked(60);
    assert_ne!(path.bbr.state, State::Up);
    assert_ne!(path.bbr.long, NONE);
    let mut path = Path::cruising();
    path.marked(10);
    assert_eq!(path.bbr.state, State::Cruise);
    (0..3).for_each(|_| path.round(0, Repair::None));
    assert!(matches!(path.bbr.state, State::Refill | State::Up), "{:?}", path.bbr.state);
}

/// Such an echo has no number of marked bytes.
#[test]
fn an_echo_of_a_mark_without_a_count_is_a_loss() {
    let mut path = Path::cruising();
    path.flight = PRODUCT;
    assert_eq!(path.bbr.ssthresh_after_mark(Time(0), &path.w), None);
    path.round(0, Repair::None);
    path.round(0, Repair::None);
    assert_ne!(path.bbr.short.rate, NONE);
}

/// The window to come back to is the last one; during a repair and while the round trip is probed the largest.
#[test]
fn saved_windows_are_maxima_in_recovery_and_probe_rtt() {
    for (repair, state, expected) in [
        (Repair::None, State::Up, 9_000),
        (Repair::None, State::Startup, 9_000),
        (Repair::Recovery, State::Up, 20_000),
        (Repair::None, State::ProbeRtt, 20_000),
    ] {
        let mut path = Path::new();
        (path.bbr.repair, path.bbr.state, path.bbr.prior_cwnd) = (repair, state, 20_000);
        path.w.cwnd = 9_000;
        path.bbr.save_window(&path.w);
        assert_eq!(path.bbr.prior_cwnd, expected, "{repair:?} {state:?}");
        path.bbr.restore_window(&mut path.w);
        assert_eq!(path.w.cwnd, expected);
    }
}
