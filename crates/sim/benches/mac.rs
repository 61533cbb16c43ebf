//! Wall-clock time of medium access per data frame of saturated stations.
//!
//! `cargo bench -p lasthop-sim --bench mac` prints one line per case.

#![expect(
    clippy::disallowed_methods,
    reason = "speed is measured by the wall clock, which no run sees"
)]

use std::time::Instant;

use lasthop_proto::air::{AirEvent, FrameKind, Station};
use lasthop_proto::link::RadioConfig;
use lasthop_proto::link::fec::Coding;
use lasthop_proto::link::frame::{Frame, Header, Load};
use lasthop_proto::mac::{Access, Air, DcfConfig, FamaConfig, Mac, MacConfig, Medium, Outcome};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Rate, Span, Time};

const FRAMES: u32 = 200_000;

/// A channel without errors.
#[derive(Default)]
struct Quiet {
    finished: Vec<Station>,
}

impl Air for Quiet {
    fn damages(&mut self, _: Station, _: Station, _: FrameKind, _: u32, _: Time, _: Span) -> bool {
        false
    }

    fn report(&mut self, _: AirEvent) {}

    fn outcome(&mut self, outcome: Outcome) {
        if let Outcome::Done { station, .. } = outcome {
            self.finished.push(station);
        }
    }
}

fn main() {
    let dcf = |rts_threshold| MacConfig::Dcf(DcfConfig { rts_threshold, ..DcfConfig::default() });
    let cases = [
        ("ideal", MacConfig::Ideal),
        ("fama-ncs", MacConfig::FamaNcs(FamaConfig::default())),
        ("dcf", dcf(2347)),
        ("dcf, RTS", dcf(0)),
    ];
    for (name, config) in cases {
        for stations in [2, 20] {
            println!(
                "{name:10} {stations:2} stations  {:6.0} ns per frame",
                cost(&config, stations)
            );
        }
    }
}

fn cost(config: &MacConfig, stations: u8) -> f64 {
    let radio = RadioConfig {
        rate: Rate::from_bps(2_000_000).expect("a rate"),
        delay: Span::micros(1),
        overhead: Span::ZERO,
        half_duplex: true,
        queue: Limit::Packets(1),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    };
    let mut mac = Medium::new(config, &radio, stations, Coding::NONE, Stream::new(1, "mac"));
    let mut air = Quiet::default();
    let frame = |from: Station| Frame {
        from,
        to: if from == Station::BASE { Station(1) } else { Station::BASE },
        header: Header::Plain,
        load: Load::None,
        bytes: 1000,
        stored: false,
    };
    for station in 0..stations {
        mac.request(Time::ZERO, frame(Station(station)), Access::Contend, &mut air);
    }
    let (begun, mut done) = (Instant::now(), 0);
    while done < FRAMES {
        let Some(at) = mac.next_wake() else { break };
        mac.on_wake(at, &mut air);
        for station in core::mem::take(&mut air.finished) {
            done += 1;
            mac.request(at, frame(station), Access::Contend, &mut air);
        }
    }
    begun.elapsed().as_nanos() as f64 / f64::from(done)
}
