//! Equal scenarios and seeds give equal events: twice, in two threads, in debug and release builds and in WebAssembly.

use std::fmt::Write;

use lasthop_observe::Sink;
use lasthop_observe::metrics::{FlowMetrics, Metrics};
use lasthop_proto::event::{Event, EventKind, Interest};
use lasthop_proto::link::LineConfig;
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::units::{Bytes, Rate, Span};
use lasthop_proto::wire::Addr;
use lasthop_scenario::{
    Host, HostSide, Scenario, Stack, Stage, StageKind, Traffic, Transfer, World,
};
use lasthop_sim::{RunEnd, run};

use crate::common::asking::asking;
use crate::common::cells::roaming;
use crate::common::hops::{hopping, scheduled};
use crate::common::impaired::impaired;
use crate::common::{Dice, coming_and_going, delay_held, disciplined, modern, worded};
use crate::record::Record;

/// FNV-1a over the text of every event: portable, and independent of memory layout.
struct Digest(u64);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        Ok(())
    }
}

impl Sink for Digest {
    fn event(&mut self, event: &Event) {
        writeln!(self, "{event:?}").unwrap();
    }
}

/// The same over the events of metrics, in short form.
struct Brief(Digest);

impl Sink for Brief {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        let Event { at, stage, kind } = event;
        let result = match kind {
            EventKind::Packet { op, side, packet } => {
                let (id, len) = (packet.id.0, packet.body.len());
                writeln!(self.0, "{at:?} {stage:?} {op:?} {side:?} {id} {len}")
            }
            other => writeln!(self.0, "{at:?} {stage:?} {other:?}"),
        };
        result.unwrap();
    }
}

fn digest(scenario: &Scenario, seed: u64) -> (u64, RunEnd) {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    let end = run(scenario, seed, &mut digest);
    (digest.0, end)
}

/// A random short scenario.
fn short(case: u64) -> Scenario {
    shortened(Dice::new(case).scenario())
}

/// The same with ACK queue disciplines.
fn queued(case: u64) -> Scenario {
    shortened(disciplined(case))
}

/// The same with delay-based queue disciplines.
fn short_queues(case: u64) -> Scenario {
    shortened(delay_held(case))
}

/// The same with split connections.
fn short_split(case: u64) -> Scenario {
    shortened(Dice::new(case).split_scenario())
}

/// The same with radio hops that have medium access.
fn short_hops(case: u64) -> Scenario {
    shortened(hopping(case))
}

/// The same with channel-state-dependent base stations.
fn short_scheduled(case: u64) -> Scenario {
    shortened(scheduled(case))
}

/// The same with intermittent traffic.
fn short_lived(case: u64) -> Scenario {
    let mut scenario = coming_and_going(case);
    scenario.horizon = Span::secs(60);
    scenario
}

/// The same with netem's impairments on lines, and access links of hosts.
fn short_impaired(case: u64) -> Scenario {
    shortened(impaired(case))
}

/// The same with modern senders.
fn short_modern(case: u64) -> Scenario {
    shortened(modern(case))
}

/// The same with every named TCP.
fn short_worded(case: u64) -> Scenario {
    shortened(worded(case))
}

/// The same with hosts that move between cells.
fn short_roaming(case: u64) -> Scenario {
    shortened(roaming(case))
}

/// Requests and responses.
fn exchanges(case: u64) -> Scenario {
    let mut scenario = asking(case);
    scenario.horizon = Span::secs(60);
    scenario
}

fn shortened(mut scenario: Scenario) -> Scenario {
    scenario.horizon = Span::secs(60);
    for transfer in &mut scenario.transfers {
        transfer.bytes = Some(Bytes(20_000));
    }
    scenario
}

#[test]
fn the_same_run_twice_gives_the_same_events() {
    let kinds: [fn(u64) -> Scenario; 7] =
        [short, queued, short_split, short_hops, short_scheduled, short_roaming, exchanges];
    let others = [short_lived, short_modern, short_worded, short_queues, short_impaired];
    let kinds = kinds.into_iter().chain(others);
    let scenarios = (0..10).flat_map(|case| kinds.clone().map(move |kind| (case, kind(case))));
    for (case, scenario) in scenarios {
        let (mut first, mut second) = (Record::default(), Record::default());
        let ends = (run(&scenario, case, &mut first), run(&scenario, case, &mut second));
        assert_eq!(ends.0, ends.1, "case {case}");
        let differ = first.events().zip(second.events()).find(|(a, b)| a != b);
        assert!(differ.is_none(), "case {case}: {differ:?}");
        assert_eq!(first.events().len(), second.events().len(), "case {case}");
        assert!(first.events().len() > 0);
    }
}

#[test]
fn two_threads_at_once_do_not_disturb_each_other() {
    let all = || (20..40).map(|case| digest(&queued(case), case)).collect::<Vec<_>>();
    let (a, b) = std::thread::scope(|scope| {
        let (a, b) = (scope.spawn(all), scope.spawn(all));
        (a.join().unwrap(), b.join().unwrap())
    });
    assert!(a == b);
}

#[test]
fn observation_does_not_change_the_run() {
    for case in 40..50 {
        let scenario = short(case);
        assert_eq!(run(&scenario, case, &mut lasthop_observe::Nothing), digest(&scenario, case).1);
    }
}

#[test]
fn another_seed_is_another_run() {
    let scenario = short(3);
    assert_ne!(digest(&scenario, 1).0, digest(&scenario, 2).0);
}

/// Every build must give these events. A change of behaviour changes the digests, and possibly every published figure:
/// change them only on purpose.
#[test]
fn the_events_of_some_runs_are_pinned() {
    let digests: Vec<u64> = (0..6).map(|case| digest(&short(case), 7).0).collect();
    assert_eq!(digests, PINNED);
    // Cases in which a queue removes or reorders something.
    let digests = [2, 4, 5, 10].map(|case| digest(&queued(case), 7).0);
    assert_eq!(digests, PINNED_QUEUED);
    assert!([2, 4, 5, 10].iter().all(|&case| digest(&short(case), 7) != digest(&queued(case), 7)));
}

#[test]
fn the_events_of_some_split_connections_are_pinned() {
    let digests: Vec<u64> = (0..3).map(|case| digest(&short_split(case), 7).0).collect();
    assert_eq!(digests, PINNED_SPLIT);
}

#[test]
fn the_events_of_some_modern_senders_are_pinned() {
    let digests: Vec<u64> = (0..4).map(|case| digest(&short_modern(case), 7).0).collect();
    assert_eq!(digests, PINNED_MODERN);
}

/// Ten thousand simultaneous short transfers, through a queue that drops many of their packets: more connections than
/// fit into a host's near caches.
fn crowded() -> Scenario {
    let side = |name: &str, side, addr| Host {
        name: name.into(),
        side,
        addr,
        tcp: TcpConfig::rfc(),
        access: None,
        battery: None,
        stack: Stack::Lasthop,
    };
    let line = |name: &str, rate: u64, delay, queue| Stage {
        name: name.into(),
        kind: StageKind::Link(LineConfig {
            rate_right: Rate::from_bps(rate),
            rate_left: Rate::from_bps(rate),
            delay,
            framing: 0,
            queue: Limit::Packets(queue),
            discipline_right: Discipline::Fifo,
            discipline_left: Discipline::Fifo,
        }),
    };
    Scenario {
        name: "crowded".into(),
        world: World::Sim,
        runs: 1,
        first_seed: 1,
        horizon: Span::secs(4),
        hosts: vec![
            side("fixed", HostSide::Left, Addr::v4(10, 0, 1, 1)),
            side("mobile", HostSide::Right, Addr::v4(10, 0, 2, 1)),
        ],
        transfers: vec![Transfer {
            from: 0,
            to: 1,
            bytes: Some(Bytes(4_000)),
            start: Span::ZERO,
            count: 10_000,
            stop: None,
            traffic: Traffic::Bulk,
            cross: false,
            quic: None,
        }],
        path: vec![
            line("access", 1_000_000_000, Span::millis(5), 10_000),
            line("bottleneck", 100_000_000, Span::millis(1), 4_000),
        ],
        roaming: None,
    }
}

#[test]
fn a_crowded_host_is_pinned() {
    let scenario = crowded();
    let mut sinks =
        (Brief(Digest(0xcbf2_9ce4_8422_2325)), Metrics::new(lasthop_sim::layout(&scenario)));
    let end = run(&scenario, 1, &mut sinks);
    let metrics = sinks.1.finish(end.at);
    let sum = |count: fn(&FlowMetrics) -> u64| metrics.flows.iter().map(count).sum::<u64>();
    let (complete, lost) = (sum(|f| u64::from(f.complete)), sum(|f| f.dropped.total()));
    assert!(complete > 5_000 && lost > 5_000, "{complete} complete, {lost} packets lost");
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    writeln!(digest, "{metrics:?} {end:?}").unwrap();
    assert_eq!([sinks.0.0.0, digest.0], PINNED_CROWDED);
}

const PINNED_CROWDED: [u64; 2] = [6_842_289_440_995_457_920, 2_306_084_087_622_412_398];
const PINNED_MODERN: [u64; 4] = [
    6_662_821_291_939_968_626,
    10_009_707_482_724_071_505,
    12_807_319_334_057_941_578,
    4_479_433_434_739_756_145,
];
const PINNED_SPLIT: [u64; 3] =
    [7_997_296_669_521_232_231, 15_182_405_618_077_402_442, 14_533_882_705_205_145_912];
const PINNED: [u64; 6] = [
    12_447_374_187_334_291_344,
    17_964_565_462_033_015_818,
    57_535_814_577_491_379,
    17_281_750_274_338_251_678,
    18_029_561_469_902_307_664,
    10_102_101_814_696_953_645,
];
const PINNED_QUEUED: [u64; 4] = [
    1_877_361_355_473_518_484,
    16_931_637_020_841_283_381,
    6_641_499_790_524_301_135,
    13_041_539_654_099_517_224,
];
