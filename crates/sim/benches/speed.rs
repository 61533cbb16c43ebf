//! Wall-clock speed of the simulator. Rates are per packet-hop: a packet carried by one link.
//!
//! `cargo bench -p lasthop-sim` prints one line per case; docs/explanation/performance.md explains the figures.
//! Arguments after `--` choose cases: `one [metrics|kept]`, `many 1000 [bare]`, `cells`, `senders`, `channels`.

#![expect(
    clippy::disallowed_methods,
    reason = "speed is measured by the wall clock, which no run sees"
)]

use std::io::sink;
use std::time::Instant;

use lasthop_observe::csv::{EventCsv, TcbCsv};
use lasthop_observe::metrics::Metrics;
use lasthop_observe::{Nothing, Sink};
use lasthop_proto::agent::{AgentConfig, Router};
use lasthop_proto::channel::{
    BitErrors, Channel, ErrorModel, Exponential, Modulation, Overlap, PacketBursts, Rayleigh,
    TwoState, TwoStateBits,
};
use lasthop_proto::event::{Event, EventKind, TcpKind};
use lasthop_proto::link::{CrossTraffic, LineConfig, RadioConfig};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::units::{Bytes, Probability, Rate, Span, Time};
use lasthop_proto::wire::Addr;
use lasthop_scenario::roaming::{Handoff, Policy, RadioCell, Roaming, Stays, Tour};
use lasthop_scenario::{
    ErrorSpec, Host, HostSide, RadioStage, Scenario, Stack, Stage, StageKind, Traffic, Transfer,
    World,
};
use lasthop_sim::{RunEnd, no_ends, run_compiled};
use record::Record;

#[path = "../../checks/shared/record.rs"]
mod record;

fn run<S: Sink>(scenario: &Scenario, seed: u64, sink: &mut S) -> RunEnd {
    run_compiled(scenario, seed, &no_ends, sink)
}

fn rate(word: &str) -> Option<Rate> {
    word.parse().ok()
}

fn line(name: &str, speed: &str, delay: Span, queue: u32) -> Stage {
    let config = LineConfig {
        rate_right: rate(speed),
        rate_left: rate(speed),
        delay,
        framing: 0,
        queue: Limit::Packets(queue),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    };
    Stage { name: name.into(), kind: StageKind::Link(config) }
}

fn scenario(tcp: TcpConfig, path: Vec<Stage>, bytes: Option<u64>, count: u32) -> Scenario {
    let host = |name: &str, side, addr| Host {
        name: name.into(),
        side,
        addr,
        tcp: tcp.clone(),
        access: None,
        battery: None,
        stack: Stack::Lasthop,
    };
    Scenario {
        name: "bench".into(),
        world: World::Sim,
        runs: 1,
        first_seed: 1,
        horizon: Span::secs(60),
        hosts: vec![
            host("fixed", HostSide::Left, Addr::v4(10, 0, 1, 1)),
            host("mobile", HostSide::Right, Addr::v4(10, 0, 2, 1)),
        ],
        transfers: vec![Transfer {
            from: 0,
            to: 1,
            bytes: bytes.map(Bytes),
            start: Span::ZERO,
            count,
            stop: None,
            traffic: Traffic::Bulk,
            cross: false,
            quic: None,
        }],
        path,
        roaming: None,
    }
}

fn west97() -> Scenario {
    let radio = RadioConfig {
        rate: rate("2mbit").unwrap_or_else(|| unreachable!()),
        delay: Span::millis(1),
        overhead: Span::micros(700),
        half_duplex: true,
        queue: Limit::Packets(50),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    };
    let model = ErrorModel::Exponential(Exponential { mean: Bytes(65_536) });
    let errors = Some(ErrorSpec::from(model));
    let radio = RadioStage {
        radio,
        errors_right: errors.clone(),
        errors_left: errors,
        varying: None,
        hop: None,
        hops: None,
    };
    let path = vec![
        line("ethernet", "10mbit", Span::micros(200), 50),
        Stage { name: "base".into(), kind: StageKind::Agent(AgentConfig::None(Router)) },
        Stage { name: "wavelan".into(), kind: StageKind::Radio(radio) },
    ];
    let mut scenario = scenario(TcpConfig::freebsd_2_1(), path, Some(2_000_000), 1);
    scenario.horizon = Span::secs(10_000);
    scenario
}

fn flows(count: u32) -> Scenario {
    let path = vec![
        line("access", "1gbit", Span::millis(1), 10_000),
        line("bottleneck", "100mbit", Span::millis(10), 500),
    ];
    scenario(TcpConfig::rfc(), path, None, count)
}

/// `count` transfers for 20 s through 10 Gb/s and 1 Gb/s, each behind a queue of 20,000 packets.
fn many(count: u32) -> Scenario {
    let path = vec![
        line("access", "10gbit", Span::millis(5), 20_000),
        line("bottleneck", "1gbit", Span::millis(1), 20_000),
    ];
    let mut scenario = scenario(TcpConfig::rfc(), path, None, count);
    scenario.horizon = Span::secs(20);
    scenario
}

/// Runs [`many`] once, with metrics unless `bare`, and prints its time and peak memory.
fn run_many(count: u32, bare: bool) {
    let scenario = many(count);
    let start = Instant::now();
    let end = match bare {
        true => run(&scenario, 1, &mut Nothing),
        false => {
            let mut metrics = Metrics::new(lasthop_sim::layout(&scenario));
            let end = run(&scenario, 1, &mut metrics);
            metrics.finish(end.at);
            end
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let (rate, status) =
        (end.hops as f64 / seconds / 1e6, std::fs::read_to_string("/proc/self/status"));
    let peak = status.ok().and_then(|status| {
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    let peak = peak.map_or_else(String::new, |kib| format!("  {:.1} MB", kib as f64 / 1024.0));
    println!("{count:>6} flows {:>9} hops {seconds:>6.2} s {rate:>6.2} M hops/s{peak}", end.hops);
}

/// `count` mobile hosts, each with one transfer, which move randomly between cells behind the same access line. The
/// cells share the rate of the bottleneck.
fn roaming(count: u16, cells: u16) -> Scenario {
    let mut scenario = flows(0);
    let Some(wired) = scenario.path.first().cloned() else { return scenario };
    let (fixed, mobile) = (scenario.hosts[0].clone(), scenario.hosts[1].clone());
    let mobiles = (0..count).map(|n| {
        let [high, low] = n.to_be_bytes();
        let addr = Addr::v4(10, 1, high, low);
        Host { name: format!("mobile{n}"), addr, ..mobile.clone() }
    });
    scenario.hosts = core::iter::once(fixed).chain(mobiles).collect();
    let transfer = scenario.transfers[0].clone();
    let transfers =
        (1..=usize::from(count)).map(|to| Transfer { to, count: 1, ..transfer.clone() });
    scenario.transfers = transfers.collect();
    scenario.path = vec![wired];
    let cell = |n: u16| RadioCell {
        name: format!("cell{n}"),
        path: vec![line(&format!("air{n}"), "5mbit", Span::millis(10), 500)],
        base: 0,
    };
    let all: Vec<usize> = (0..usize::from(cells)).collect();
    let tour = |host| Tour { host, cells: all.clone(), stays: Stays::Dwell(Span::secs(10)) };
    let roaming = Roaming {
        cells: (0..cells).map(cell).collect(),
        tours: (1..=usize::from(count)).map(tour).collect(),
        handoff: Handoff { gap: Span::millis(50), packets: Policy::Forward, ..Handoff::default() },
    };
    scenario.roaming = Some(Box::new(roaming));
    scenario
}

/// The best of five repetitions, as the machine may be shared; seconds per hop.
fn time<S: Sink>(name: &str, scenario: &Scenario, seeds: u64, sink: impl Fn() -> S) -> f64 {
    let mut best = f64::INFINITY;
    let mut last: Option<RunEnd> = None;
    let mut hops = 0;
    for _ in 0..5 {
        hops = 0;
        let start = Instant::now();
        for seed in 0..seeds {
            let end = run(scenario, seed, &mut sink());
            hops += end.hops;
            last = Some(end);
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    let reason = last.map(|end| format!("{:?}", end.reason)).unwrap_or_default();
    println!(
        "{name:<52} {:>8.1} ms {:>9} hops {:>6.2} M hops/s  ({reason})",
        best * 1e3,
        hops,
        hops as f64 / best / 1e6
    );
    best / hops as f64
}

/// Time of a channel for each packet of 1500 bytes at 1 Mb/s.
fn channels() {
    let (good, bad) = (Span::millis(284), Span::millis(30));
    let [Some(ber_good), Some(ber_bad)] = [1e-6, 0.5].map(Probability::new) else { return };
    let (Ok(speed), Ok(carrier), Ok(snr)) = ("2km/h".parse(), "2.4GHz".parse(), "20dB".parse())
    else {
        return;
    };
    let models = [
        ("exponential", ErrorModel::Exponential(Exponential { mean: Bytes(65_536) })),
        ("bit-errors", ErrorModel::BitErrors(BitErrors { ber: ber_good })),
        (
            "packet-bursts",
            ErrorModel::PacketBursts(PacketBursts {
                packets: 4,
                mean: Bytes(65_536),
                uniform: true,
                overlap: Overlap::Restart,
            }),
        ),
        (
            "two-state",
            ErrorModel::TwoState(TwoState { good, bad, ber_good, ber_bad, deterministic: false }),
        ),
        (
            "two-state by bits",
            ErrorModel::TwoStateBits(TwoStateBits {
                good_bits: 284_000,
                bad_bits: 30_000,
                ber_good,
                ber_bad,
            }),
        ),
        (
            "rayleigh",
            ErrorModel::Rayleigh(Rayleigh { speed, carrier, snr, modulation: Modulation::Dbpsk }),
        ),
    ];
    let packets = 200_000_u64;
    for (name, model) in models {
        let mut channel = Channel::new(&model, Stream::new(1, "radio"));
        let start = Instant::now();
        let harmed = (0..packets)
            .filter(|i| {
                let fate = channel.pass(Time(i * 12_000_000), Span::millis(12), 1500);
                fate.damaged_at.is_some()
            })
            .count();
        let nanos = start.elapsed().as_secs_f64() * 1e9 / packets as f64;
        println!("channel {name:<44} {nanos:>8.1} ns a packet  ({harmed} of {packets} harmed)");
    }
}

/// Counts the ACKs that a sender receives.
#[derive(Default)]
struct Acks(u64);

impl Sink for Acks {
    fn event(&mut self, event: &Event) {
        if let EventKind::Tcp(tcp) = &event.kind {
            self.0 += u64::from(matches!(tcp.kind, TcpKind::Acked | TcpKind::DupAck));
        }
    }
}

/// Time of a run per received ACK, everything included, for all senders: with a window of 150 segments, without loss
/// and with 1 % loss.
fn senders() {
    for loss in [0.0, 0.01] {
        let mut reno = f64::NAN;
        for word in TCPS.iter().filter(|w| !matches!(w.key, "tahoe" | "newreno")) {
            let mut tcp = TcpConfig::linux();
            (word.apply)(&mut tcp);
            let Some(loss) = Probability::new(loss) else { return };
            let cross = CrossTraffic { loss, ..CrossTraffic::default() };
            let path = vec![
                line("first", "1gbit", Span::millis(1), 1000),
                Stage { name: "loss".into(), kind: StageKind::Cross(cross) },
                line("second", "100mbit", Span::millis(5), 50),
            ];
            let mut scenario = scenario(tcp, path, Some(20_000_000), 1);
            scenario.horizon = Span::secs(10_000);
            let mut acks = Acks::default();
            run(&scenario, 1, &mut acks);
            let mut best = f64::INFINITY;
            for _ in 0..7 {
                let start = Instant::now();
                run(&scenario, 1, &mut Nothing);
                best = best.min(start.elapsed().as_secs_f64());
            }
            let nanos = best * 1e9 / acks.0 as f64;
            if word.key == "reno" {
                reno = nanos;
            }
            println!(
                "sender {:<8} loss {:>2.0} %  {nanos:>6.0} ns an ACK  {:>5.2} of Reno's  ({} ACKs)",
                word.key,
                loss.get() * 100.0,
                nanos / reno,
                acks.0
            );
        }
    }
}

/// Time of a hop with moving hosts, compared with static ones.
fn cells(standing: f64) {
    let cells =
        time("1000 hosts over 20 cells, 100 Mb/s, 60 s, no trace", &roaming(1000, 20), 1, || {
            Nothing
        });
    println!("rate per hop over 20 cells / with 1000 flows: {:.2}", standing / cells);
}

fn main() {
    // `speed cells`: moving hosts, compared with static ones.
    if std::env::args().any(|a| a == "cells") {
        let standing = time("1000 flows, 100 Mb/s, 60 s, no trace", &flows(1000), 1, || Nothing);
        return cells(standing);
    }
    // `speed many 1000`: simultaneous transfers; `speed many 1000 bare`: without metrics.
    let mut words = std::env::args().skip_while(|a| a != "many").skip(1);
    if let Some(count) = words.next().and_then(|count| count.parse().ok()) {
        return run_many(count, words.any(|a| a == "bare"));
    }
    // `speed senders`: time per ACK, by sender.
    if std::env::args().any(|a| a == "senders") {
        return senders();
    }
    // `speed channels`: the channels alone.
    if std::env::args().any(|a| a == "channels") {
        return channels();
    }
    // `speed one [metrics|kept]`: a single transfer, for profilers that count instructions.
    let one = std::env::args().any(|a| a == "one");
    let two_links = |bytes| {
        let path = vec![
            line("first", "100mbit", Span::millis(1), 1000),
            line("second", "100mbit", Span::millis(5), 1000),
        ];
        let mut scenario = scenario(TcpConfig::rfc(), path, Some(bytes), 1);
        scenario.horizon = Span::secs(1000);
        scenario
    };
    if one {
        let scenario = two_links(10_000_000);
        let is_chosen = |word| std::env::args().any(|a| a == word);
        let end = if is_chosen("metrics") {
            run(&scenario, 1, &mut Metrics::new(lasthop_sim::layout(&scenario)))
        } else if is_chosen("kept") {
            run(&scenario, 1, &mut Record::default())
        } else {
            run(&scenario, 1, &mut Nothing)
        };
        println!("{} hops", end.hops);
        return;
    }
    let nothing = || Nothing;
    time("100 MB over two links, no trace", &two_links(100_000_000), 1, nothing);
    let long = two_links(10_000_000);
    let layout = lasthop_sim::layout(&long);
    time("10 MB over two links, metrics", &long, 1, || Metrics::new(layout.clone()));
    time("10 MB over two links, every event kept", &long, 1, Record::default);
    time("10 MB over two links, every event as CSV", &long, 1, || EventCsv::new(&layout, sink()));
    time("10 MB over two links, events and TCB as CSV", &long, 1, || {
        (EventCsv::new(&layout, sink()), TcbCsv::new(sink()))
    });
    time("2 MB as in west97, 1000 seeds, no trace", &west97(), 1000, nothing);
    let ten = time("10 flows, 100 Mb/s, 60 s, no trace", &flows(10), 1, nothing);
    let thousand = time("1000 flows, 100 Mb/s, 60 s, no trace", &flows(1000), 1, nothing);
    println!("cost of a hop with 1000 flows / with 10: {:.2}", thousand / ten);
    cells(thousand);
    channels();
    senders();
}
