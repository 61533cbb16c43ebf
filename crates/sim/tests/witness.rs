//! A witness compared with the host's own events.

use std::collections::BTreeMap;

use lasthop_observe::Sink;
use lasthop_path::Witness;
use lasthop_proto::agent::{AckpMode, AgentConfig, SnoopAgent};
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op, TcpKind};
use lasthop_proto::machine::{Machine, Out, Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Addr, Body, Flags, FlowKey, Packet, Segment, Seq};
use lasthop_scenario::{HostSide, Scenario, Stage, StageKind};
use lasthop_sim::run;

use crate::common::Dice;
use crate::parsed;

/// The account of one connection of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Account {
    delivered: u64,
    complete: Option<Time>,
    established: Option<Time>,
    first: u64,
    again: u64,
    fast: u64,
    timeouts: u64,
    /// For each retransmission: it was caused by a timer.
    by_timer: Vec<bool>,
}

type Accounts = BTreeMap<(StageId, FlowKey), Account>;

fn note(accounts: &mut Accounts, event: &Event) {
    match &event.kind {
        EventKind::Packet { op: Op::Originated(cause), packet, .. } => {
            let Some(flow) = packet.flow() else { return };
            let account = accounts.entry((event.stage, flow)).or_default();
            account.first += u64::from(*cause == Cause::Data);
            if cause.is_host_retransmission() {
                account.again += 1;
                account.by_timer.push(*cause == Cause::TimeoutRetransmit);
            }
        }
        EventKind::Tcp(tcp) => {
            let account = accounts.entry((event.stage, tcp.flow)).or_default();
            match tcp.kind {
                TcpKind::Delivered { bytes } => account.delivered += u64::from(bytes),
                TcpKind::Complete => account.complete = Some(event.at),
                TcpKind::Established => account.established = Some(event.at),
                TcpKind::FastRetransmit => account.fast += 1,
                TcpKind::Timeout => account.timeouts += 1,
                _ => {}
            }
        }
        _ => {}
    }
}

/// Passes to a witness for each host the packets that the host sends and receives.
struct Shadow {
    witnesses: BTreeMap<StageId, (Side, Witness)>,
    out: Out,
    hosts: Accounts,
    seen: Accounts,
}

impl Shadow {
    fn new(scenario: &Scenario) -> Shadow {
        let count = |side| scenario.hosts.iter().filter(|h| h.side == side).count();
        let left = count(HostSide::Left);
        let right = left + scenario.path.len();
        let all = (0..left).map(|i| (i, Side::Right));
        let all = all.chain((right..right + count(HostSide::Right)).map(|i| (i, Side::Left)));
        let witnesses =
            all.map(|(i, side)| (StageId(i as u16), (side, Witness::of_all(side)))).collect();
        let out = Out::new(Interest::EVERYTHING);
        Shadow { witnesses, out, hosts: Accounts::new(), seen: Accounts::new() }
    }
}

impl Sink for Shadow {
    fn event(&mut self, event: &Event) {
        let Some((inward, witness)) = self.witnesses.get_mut(&event.stage) else { return };
        note(&mut self.hosts, event);
        let from = match &event.kind {
            EventKind::Packet { op: Op::Originated(_), .. } => inward.other(),
            EventKind::Packet { op: Op::Received, .. } => *inward,
            _ => return,
        };
        let EventKind::Packet { packet, .. } = &event.kind else { return };
        self.out.begin(event.stage, event.at);
        witness.on_packet(event.at, from, packet.clone(), &mut self.out);
        assert_eq!(self.out.sends.len(), 1, "a witness passes everything on");
        self.out.sends.clear();
        for event in self.out.events.drain(..) {
            note(&mut self.seen, &event);
        }
    }
}

/// Runs, compares deliveries, which must be equal, and returns both accounts of each connection.
fn accounts(scenario: &Scenario, seed: u64) -> Vec<(FlowKey, Account, Account)> {
    let mut shadow = Shadow::new(scenario);
    run(scenario, seed, &mut shadow);
    let Shadow { hosts, mut seen, .. } = shadow;
    let both = hosts.into_iter().map(|((stage, flow), host)| {
        let seen = seen.remove(&(stage, flow)).unwrap_or_default();
        assert_eq!(seen.delivered, host.delivered, "{flow:?} seed {seed}");
        assert_eq!(seen.first + seen.again, host.first + host.again, "{flow:?} seed {seed}");
        (flow, host, seen)
    });
    both.collect()
}

/// Without window validation: a window that stops growing within a segment lets retransmissions reach into new data,
/// which the host counts as new and a witness as retransmitted.
fn scenario(tcp: &str, agent: &str, errors: &str) -> Scenario {
    let text = format!(
        r#"
        name = "witness"
        transfer = {{ from = "fixed", to = "mobile", bytes = "400kB" }}
        [host.fixed]
        preset = "rfc"
        tcp = "{tcp}"
        window-validation = false
        [host.mobile]
        preset = "rfc"
        tcp = "{tcp}"
        window-validation = false
        [[path]]
        link = {{ rate = "10mbit", delay = "20ms" }}
        [[path]]
        agent = "{agent}"
        [[path]]
        radio = {{ rate = "2mbit", delay = "1ms" }}
        errors = {errors}
        "#
    );
    parsed::scenario(&text)
}

/// Retransmissions, those with the right cause, and episodes by both accounts.
#[derive(Default, Debug)]
struct Share {
    all: u64,
    right: u64,
    fast: [u64; 2],
    timeouts: [u64; 2],
}

impl Share {
    fn add(&mut self, host: &Account, seen: &Account) {
        self.all += host.again;
        let same = host.by_timer.iter().zip(&seen.by_timer).filter(|(a, b)| a == b);
        self.right += same.count() as u64;
        self.fast = [self.fast[0] + host.fast, self.fast[1] + seen.fast];
        self.timeouts = [self.timeouts[0] + host.timeouts, self.timeouts[1] + seen.timeouts];
    }
}

#[test]
fn a_witness_matches_the_events_of_the_host() {
    for tcp in ["tahoe", "reno", "newreno", "sack"] {
        for agent in ["none", "snoop"] {
            for (kind, errors) in [
                ("single losses", r#"{ model = "exponential", mean = "32KiB" }"#),
                ("bursts", r#"{ model = "packet-bursts", packets = 5, mean = "64KiB" }"#),
            ] {
                let scenario = scenario(tcp, agent, errors);
                let mut share = Share::default();
                for seed in 1..=20 {
                    for (_, host, seen) in accounts(&scenario, seed) {
                        assert_eq!(seen.established, host.established);
                        assert_eq!(seen.complete, host.complete);
                        assert_eq!((seen.first, seen.again), (host.first, host.again));
                        share.add(&host, &seen);
                    }
                }
                println!("{tcp} {agent} {kind}: {share:?}");
                // By silence and duplicate ACKs: at most two of a hundred retransmissions are misjudged (one of a few),
                // and one in twenty timeouts.
                assert!(share.right + share.all / 50 + 1 >= share.all, "{share:?}");
                let [theirs, ours] = share.timeouts;
                assert!(theirs.abs_diff(ours) <= theirs / 20 + 1, "{share:?}");
            }
        }
    }
}

#[test]
fn random_paths_give_equal_accounts() {
    let (mut all, mut alike, mut share) = (0u64, 0u64, Share::default());
    for case in 0..300 {
        let scenario = Dice::new(case).scenario();
        // Our TCP accepts a partial ACK without having offered it; a witness treats it as any other TCP would.
        let foreign = |stage: &Stage| {
            let every = Some(AckpMode::EveryPacket);
            matches!(&stage.kind, StageKind::Agent(AgentConfig::Snoop(SnoopAgent { ackp, .. })) if *ackp == every)
        };
        if scenario.path.iter().any(foreign) {
            continue;
        }
        for (flow, host, seen) in accounts(&scenario, case) {
            all += 1;
            let same = (seen.established, seen.complete, seen.first)
                == (host.established, host.complete, host.first);
            if !same {
                println!("case {case} {flow:?}:\n  {host:?}\n  {seen:?}");
            }
            alike += u64::from(same);
            share.add(&host, &seen);
        }
    }
    println!("{alike} of {all} connections; {share:?}");
    // A retransmission that crosses its ACK, and a close without data, are ambiguous.
    assert!(all > 500 && alike * 100 >= all * 98, "{alike} of {all}");
}

#[test]
fn any_number_of_connections_takes_bounded_room() {
    let mut witness = Witness::of_all(Side::Right);
    let mut out = Out::new(Interest::NOTHING);
    let server = Addr::v4(10, 0, 0, 1);
    for i in 0..200_000u32 {
        let [a, b, c, d] = i.wrapping_mul(0x9e37_79b9).to_be_bytes();
        let segment = Segment::new(a.into(), b.into(), Seq(i), Seq(1), Flags::ACK);
        // Data with gaps, from all hosts.
        let packet = Packet::tcp(Addr::v4(11, b, c, d), server, segment, Body::copy_of(&[1]));
        out.begin(StageId(0), Time(u64::from(i)));
        witness.on_packet(Time(u64::from(i)), Side::Right, packet, &mut out);
        out.sends.clear();
    }
    assert!(witness.connections() <= 4096, "{}", witness.connections());
}

#[test]
fn holes_take_bounded_room() {
    let mut witness = Witness::of_all(Side::Right);
    let mut out = Out::new(Interest::NOTHING);
    for i in 0..100_000u32 {
        let segment = Segment::new(1, 2, Seq(2 * i), Seq(1), Flags::ACK);
        let packet =
            Packet::tcp(Addr::v4(11, 0, 0, 1), Addr::v4(10, 0, 0, 1), segment, Body::copy_of(&[1]));
        out.begin(StageId(0), Time(u64::from(i)));
        witness.on_packet(Time(u64::from(i)), Side::Right, packet, &mut out);
        out.sends.clear();
    }
    assert!(witness.holes() <= 256, "{}", witness.holes());
}
