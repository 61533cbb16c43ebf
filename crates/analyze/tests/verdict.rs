//! The verdict against the truth of simulated captures.

use std::io;

use lasthop_analyze::{Cause, Config, Direction, analyze_capture};
use lasthop_observe::Sink;
use lasthop_observe::pcapng::{CapturePoint, CaptureSink};
use lasthop_proto::event::{self, Event, EventKind, Interest, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::wire::Transport;
use lasthop_scenario::{Argument, parse};

/// What became of data on its way to the right: lost in queues and on the radio.
#[derive(Default)]
struct Truth {
    queue: u64,
    radio: u64,
}

impl Sink for Truth {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }

    fn event(&mut self, event: &Event) {
        let EventKind::Packet { op: Op::Dropped(cause), side: Side::Right, packet } = &event.kind
        else {
            return;
        };
        let data = matches!(packet.transport, Transport::Tcp(_)) && !packet.body.is_empty();
        self.queue += u64::from(data && *cause == event::Cause::QueueFull);
        self.radio += u64::from(
            data && matches!(cause, event::Cause::IpChecksum | event::Cause::TcpChecksum),
        );
    }
}

/// Runs `text`, captures at the first link, and analyses what the fixed host sent first.
fn run(text: &str, set: &[&str], seed: u64) -> (Truth, Direction) {
    let set: Vec<Argument> = set.iter().map(|s| Argument::Set((*s).to_owned())).collect();
    let (plan, _) = parse(text, "test", &set).unwrap();
    let scenario = &plan.cells[0].scenario;
    let place = CapturePoint { stage: StageId(1), name: "sender".to_owned(), is_link: true };
    let captures = CaptureSink::new(&[place], 0, |_| io::Result::Ok(Vec::new())).unwrap();
    let mut sinks = (Truth::default(), captures);
    lasthop_sim::run(scenario, seed, &mut sinks);
    let (truth, captures) = sinks;
    let file = captures.finish().unwrap().links.remove(0).1;
    let mut analysis = analyze_capture(&file, Config::default()).unwrap();
    let connection = analysis.connections.remove(0);
    let sent = if connection.to_server.bytes > connection.to_client.bytes {
        connection.to_server
    } else {
        connection.to_client
    };
    (truth, sent)
}

const LAN: &str = include_str!("../../../scenarios/west97-lan.toml");

const PATH: &str = r#"
transfer = { from = "fixed", to = "mobile", bytes = "12MB" }
[host.fixed]
preset = "rfc"
[host.mobile]
preset = "rfc"
[[path]]
link = { rate = "100mbit", delay = "10ms" }
[[path]]
agent = "none"
[[path]]
radio = { rate = "4mbit", delay = "5ms", queue = "20p", duplex = "full" }
errors = "none"
"#;

const LARGE: &str = "radio.queue=\"500p\"";
const WINDOW: &str = "host.*.recv-buffer=\"48KiB\"";
const WIDE: [&str; 3] =
    ["host.*.recv-buffer=\"256KiB\"", "host.*.send-buffer=\"256KiB\"", "host.*.window-scale=true"];
const RANDOM: &str = "errors={ model = \"packet-loss\", p = \"0.6%\" }";
const RARE: &str = "errors={ model = \"packet-loss\", p = \"0.3%\" }";
const RARER: &str = "errors={ model = \"packet-loss\", p = \"0.1%\" }";
const BURSTS: &str = "errors={ model = \"packet-bursts\", packets = 3, mean = \"300KiB\" }";
const SACK: &str = "tcp=sack";
const NEWRENO: &str = "tcp=newreno";

/// Name, scenario, and cause of the losses.
type Case = (&'static str, &'static str, Vec<&'static str>, Cause);

fn cases() -> Vec<Case> {
    let wide = |more: &[&'static str]| [&WIDE[..], more].concat();
    vec![
        ("LAN of west97", LAN, vec!["agent=none"], Cause::Radio),
        (
            "LAN of west97, bursts",
            LAN,
            vec![
                "agent=none",
                "errors={ model = \"packet-bursts\", packets = 4, mean = \"128KiB\" }",
            ],
            Cause::Radio,
        ),
        ("radio, small window", PATH, vec![LARGE, WINDOW, RANDOM], Cause::Radio),
        ("radio, large window", PATH, wide(&[LARGE, RANDOM, SACK]), Cause::Radio),
        ("radio, Reno", PATH, wide(&[LARGE, RANDOM]), Cause::Radio),
        ("radio, bursts", PATH, wide(&[LARGE, BURSTS, NEWRENO]), Cause::Radio),
        ("queue, Reno", PATH, wide(&[]), Cause::Queue),
        ("queue, NewReno", PATH, wide(&[NEWRENO]), Cause::Queue),
        ("queue, SACK", PATH, wide(&[SACK]), Cause::Queue),
        ("queue, short", PATH, wide(&[SACK, "radio.queue=8p"]), Cause::Queue),
        (
            "queue, four flows",
            PATH,
            wide(&[SACK, "transfer.count=4", "radio.queue=40p"]),
            Cause::Queue,
        ),
        (
            "both, short queue",
            PATH,
            wide(&[RARER, SACK, "radio.queue=8p", "transfer.bytes=20MB"]),
            Cause::Both,
        ),
        ("both, Reno", PATH, wide(&[RARE, "transfer.bytes=20MB"]), Cause::Both),
        ("both, SACK", PATH, wide(&[RARE, SACK, "transfer.bytes=20MB"]), Cause::Both),
    ]
}

/// Right, unclear and wrong verdicts on `seeds`. With both kinds of losses, a verdict for the one that caused
/// two thirds or more of them is right too.
fn rates(case: &Case, seeds: std::ops::RangeInclusive<u64>) -> [usize; 3] {
    let (name, text, set, expected) = case;
    let mut rates = [0; 3];
    for seed in seeds {
        // Without errors only the times vary from seed to seed.
        let delay = format!("link.delay={}us", 10_000 + seed * 617);
        let mut set = set.clone();
        if *text == PATH {
            set.push(&delay);
        }
        let (truth, sent) = run(text, &set, seed);
        let verdict = &sent.verdict;
        let right = verdict.cause == *expected
            || *expected == Cause::Both
                && (verdict.cause == Cause::Radio && truth.radio >= 2 * truth.queue
                    || verdict.cause == Cause::Queue && truth.queue >= 2 * truth.radio);
        let rate = match verdict.cause {
            _ if right => 0,
            Cause::Unclear => 1,
            _ => 2,
        };
        rates[rate] += 1;
        println!(
            "{name} {seed}: {} queue, {} radio, {} found; {:?} {}, chance {:?}, {} short, {} needless",
            truth.queue,
            truth.radio,
            sent.losses.len(),
            verdict.cause,
            verdict.evidence,
            verdict.chance,
            verdict.short_losses,
            sent.retransmissions.needless
        );
    }
    println!("== {name}: {rates:?} right, unclear, wrong");
    rates
}

#[test]
fn losses_are_counted_about_as_they_were() {
    for seed in 1..=10 {
        let (truth, sent) = run(LAN, &["agent=none"], seed);
        let (lost, found) = (truth.radio + truth.queue, sent.losses.len() as u64);
        println!("{seed}: {lost} lost, {found} found, {} needless", sent.retransmissions.needless);
        assert!(lost.abs_diff(found) <= 3, "seed {seed}: {lost} lost, {found} found");
    }
}

#[test]
fn verdicts_hold_on_other_seeds() {
    let all: Vec<_> = cases().iter().map(|case| (case.0, rates(case, 11..=20))).collect();
    for (name, [right, unclear, wrong]) in &all {
        assert!(right + unclear >= 8 && *wrong <= 1, "{name}: {right} {unclear} {wrong}");
    }
    let right: usize = all.iter().map(|(_, rates)| rates[0]).sum();
    assert!(right * 2 > 10 * all.len(), "most verdicts are decided: {all:?}");
}
