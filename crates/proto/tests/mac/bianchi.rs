//! Saturation throughput compared with the fixed point of G. Bianchi, "Performance Analysis of the IEEE
//! 802.11 Distributed Coordination Function", IEEE JSAC 18 (3), 2000. Neither the test nor the protocol is
//! tuned to it.

use std::fmt::Write;

use lasthop_proto::air::{AirEvent, FrameFate, FrameKind, Station};
use lasthop_proto::link::fec::Coding;
use lasthop_proto::link::frame::{Frame, Header, Load};
use lasthop_proto::mac::{Access, Air, Dcf, DcfConfig, Mac, Outcome, Phy};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Rate, Span, Time};

/// 8184 bits (Table II).
const PAYLOAD: u32 = 1023;
const STATIONS: [u8; 6] = [1, 2, 5, 10, 15, 20];
const TIME: Span = Span::secs(100);

/// Bianchi's model: window `w`, doubled at most `m` times, no retry limit, no EIFS, and the timeouts of Table
/// II.
fn model(w: u32, m: u32, rts: bool) -> DcfConfig {
    DcfConfig {
        cw_min: w - 1,
        cw_max: (w << m) - 1,
        rts_threshold: if rts { 0 } else { 10_000 },
        short_retries: None,
        long_retries: None,
        eifs: false,
        timeout: Some(Span::micros(300)),
        control_rate: None,
        nav_reset: false,
        power_save: None,
        ..DcfConfig::default()
    }
}

/// Probability that a station sends in a slot (equations 7 and 9), by bisection.
fn tau(n: u8, w: f64, m: f64) -> f64 {
    let of_p = |p: f64| {
        2.0 * (1.0 - 2.0 * p)
            / ((1.0 - 2.0 * p) * (w + 1.0) + p * w * (1.0 - libm::pow(2.0 * p, m)))
    };
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..200 {
        let tau = (low + high) / 2.0;
        let p = 1.0 - libm::pow(1.0 - tau, f64::from(n) - 1.0);
        // of_p decreases as tau increases, so the difference changes its sign once.
        if of_p(p + 1e-12) > tau {
            low = tau;
        } else {
            high = tau;
        }
    }
    (low + high) / 2.0
}

/// Saturation throughput as a share of the channel (equations 13, 14 and 17), times in microseconds.
fn theory(n: u8, w: u32, m: u32, rts: bool) -> f64 {
    let tau = tau(n, f64::from(w), f64::from(m));
    let n = f64::from(n);
    let some = 1.0 - libm::pow(1.0 - tau, n);
    let success = n * tau * libm::pow(1.0 - tau, n - 1.0) / some;
    let (payload, header, ack, delta) = (8184.0, 272.0 + 128.0, 112.0 + 128.0, 1.0);
    let (sifs, difs, slot) = (28.0, 128.0, 50.0);
    let data = header + payload + sifs + delta + ack + difs + delta;
    let (good, bad) = if rts {
        let (rts, cts) = (160.0 + 128.0, 112.0 + 128.0);
        (rts + sifs + delta + cts + sifs + delta + data, rts + difs + delta)
    } else {
        (data, header + payload + difs + delta)
    };
    some * success * payload
        / ((1.0 - some) * slot + some * success * good + some * (1.0 - success) * bad)
}

/// Counts arrivals.
#[derive(Default)]
struct Counter {
    delivered: u64,
    finished: Vec<Station>,
    collided: u64,
    sent: u64,
}

impl Air for Counter {
    fn damages(&mut self, _: Station, _: Station, _: FrameKind, _: u32, _: Time, _: Span) -> bool {
        false
    }

    fn report(&mut self, event: AirEvent) {
        self.sent += 1;
        self.collided += u64::from(event.fate == FrameFate::Collided);
    }

    fn outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Arrived { .. } => self.delivered += 1,
            Outcome::Done { station, .. } => self.finished.push(station),
            _ => {}
        }
    }
}

/// The FHSS of Table II.
fn fhss() -> Phy {
    let megabit = Rate::from_bps(1_000_000).unwrap();
    Phy {
        preamble: Span::micros(128),
        data_rate: megabit,
        control_rate: megabit,
        slot: Span::micros(50),
        sifs: Span::micros(28),
        difs: Span::micros(128),
        header: 34,
        rts: 20,
        cts: 14,
        ack: 14,
        propagation: Span::micros(1),
        coding: Coding::NONE,
        ofdm: None,
    }
}

/// Share of the channel that `n` stations with frames always waiting fill with payload; their receiver is
/// another station.
fn simulated(n: u8, config: DcfConfig) -> f64 {
    let mut mac = Dcf::new(config, fhss(), n + 1, Stream::new(u64::from(n), "mac"));
    let frame = |from| Frame {
        from,
        to: Station(n),
        header: Header::Plain,
        load: Load::None,
        bytes: PAYLOAD,
        stored: false,
    };
    let mut air = Counter::default();
    for station in 0..n {
        mac.request(Time::ZERO, frame(Station(station)), Access::Contend, &mut air);
    }
    let end = Time::ZERO + TIME;
    while let Some(at) = mac.next_wake().filter(|at| *at < end) {
        mac.on_wake(at, &mut air);
        for station in core::mem::take(&mut air.finished) {
            mac.request(at, frame(station), Access::Contend, &mut air);
        }
    }
    assert!(n == 1 || air.collided * 1000 > air.sent, "stations collide, or nothing is tested");
    air.delivered as f64 * 8184e-6 / TIME.as_secs_f64()
}

/// A row for each case, and the largest difference.
fn table() -> (String, f64) {
    let mut text = String::from(
        "| access | W, m | stations | theory | simulated | difference | with retry limits and EIFS |\n\
         |---|---|---:|---:|---:|---:|---:|\n",
    );
    let mut worst = 0.0_f64;
    for (name, rts) in [("basic", false), ("RTS/CTS", true)] {
        for (w, m) in [(32, 3), (32, 5), (128, 3)] {
            for n in STATIONS {
                let want = theory(n, w, m, rts);
                let got = simulated(n, model(w, m, rts));
                let standard = DcfConfig::default();
                let real = DcfConfig {
                    short_retries: standard.short_retries,
                    long_retries: standard.long_retries,
                    eifs: true,
                    timeout: None,
                    ..model(w, m, rts)
                };
                let real = simulated(n, real);
                let off = got / want - 1.0;
                worst = worst.max(off.abs());
                let _ = writeln!(
                    text,
                    "| {name} | {w}, {m} | {n} | {want:.4} | {got:.4} | {:+.1} % | {real:.4} |",
                    100.0 * off
                );
            }
        }
    }
    (text, worst)
}

#[test]
fn saturation_throughput_is_that_of_bianchis_model() {
    let (table, worst) = table();
    println!("{table}\nlargest difference {:.2} %", 100.0 * worst);
    assert!(worst < 0.05, "{:.2} %", 100.0 * worst);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mac/bianchi.txt");
    if std::env::var_os("LASTHOP_BLESS").is_some() {
        std::fs::write(path, table).expect("it can be written");
    } else {
        let recorded = std::fs::read_to_string(path).expect("the record is there");
        assert_eq!(recorded, table, "set LASTHOP_BLESS=1 to write tests/mac/bianchi.txt");
    }
}

/// A single station: no collisions, half a window of backoff before each frame. The value is computed by
/// hand.
#[test]
fn a_lone_station_loses_half_a_window() {
    // DIFS + 15.5 slots + frame + 1 us + SIFS + ACK + 1 us.
    let cycle = 128.0 + 15.5 * 50.0 + 8584.0 + 1.0 + 28.0 + 240.0 + 1.0;
    let got = simulated(1, model(32, 3, false));
    assert!((got * cycle / 8184.0 - 1.0).abs() < 0.005, "{got}");
}
