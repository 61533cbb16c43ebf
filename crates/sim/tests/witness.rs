//! What a witness makes of the packets of a host, beside what the host says of itself.

mod common;

use std::collections::BTreeMap;

use lasthop_path::Witness;
use lasthop_proto::event::{Cause, Event, Op, TcpKind, Wants, What};
use lasthop_proto::machine::{Machine, Out, Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::FlowKey;
use lasthop_scenario::{HostSide, Scenario, parse};
use lasthop_sim::run;
use lasthop_trace::Sink;

use common::Dice;

/// What somebody says of one connection of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Account {
    delivered: u64,
    complete: Option<Time>,
    established: Option<Time>,
    first: u64,
    again: u64,
    fast: u64,
    timeouts: u64,
    /// Of each retransmission: whether a timer caused it.
    by_timer: Vec<bool>,
}

type Accounts = BTreeMap<(StageId, FlowKey), Account>;

fn note(accounts: &mut Accounts, event: &Event) {
    match &event.what {
        What::Packet { op: Op::Originated(cause), packet, .. } => {
            let Some(flow) = packet.flow() else { return };
            let account = accounts.entry((event.stage, flow)).or_default();
            account.first += u64::from(*cause == Cause::Data);
            if cause.is_host_retransmission() {
                account.again += 1;
                account.by_timer.push(*cause == Cause::TimeoutRetransmit);
            }
        }
        What::Tcp(tcp) => {
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

/// Shows a witness for each host the packets that the host sends and receives.
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
        let out = Out::new(Wants::EVERYTHING);
        Shadow { witnesses, out, hosts: Accounts::new(), seen: Accounts::new() }
    }
}

impl Sink for Shadow {
    fn wants(&self) -> Wants {
        Wants::EVERYTHING
    }

    fn event(&mut self, event: &Event) {
        let Some((inward, witness)) = self.witnesses.get_mut(&event.stage) else { return };
        note(&mut self.hosts, event);
        let from = match &event.what {
            What::Packet { op: Op::Originated(_), .. } => inward.other(),
            What::Packet { op: Op::Received, .. } => *inward,
            _ => return,
        };
        let What::Packet { packet, .. } = &event.what else { return };
        self.out.begin(event.stage, event.at);
        witness.on_packet(event.at, from, packet.clone(), &mut self.out);
        assert_eq!(self.out.sends.len(), 1, "a witness passes everything on");
        self.out.sends.clear();
        for event in self.out.events.drain(..) {
            note(&mut self.seen, &event);
        }
    }
}

/// Runs and compares what cannot be mistaken; hands back both accounts.
fn compare(scenario: &Scenario, seed: u64) -> Vec<(Account, Account)> {
    let mut shadow = Shadow::new(scenario);
    run(scenario, seed, &mut shadow);
    let Shadow { hosts, mut seen, .. } = shadow;
    let both = hosts.into_iter().map(|(key, host)| {
        let seen = seen.remove(&key).unwrap_or_default();
        assert_eq!(seen.delivered, host.delivered, "{key:?} seed {seed}");
        if (seen.established, seen.complete) != (host.established, host.complete) {
            println!(
                "TIMES {seed} {key:?} {:?} {:?}",
                (host.established, host.complete),
                (seen.established, seen.complete)
            );
        }
        if (seen.first, seen.again) != (host.first, host.again) {
            println!(
                "MISMATCH {seed} {key:?} {:?} {:?}",
                (host.first, host.again),
                (seen.first, seen.again)
            );
        }
        (host, seen)
    });
    both.collect()
}

fn scenario(tcp: &str, agent: &str, errors: &str) -> Scenario {
    let text = format!(
        r#"
        name = "witness"
        transfer = {{ from = "fixed", to = "mobile", bytes = "400kB" }}
        [host.fixed]
        tcp = "{tcp}"
        [host.mobile]
        tcp = "{tcp}"
        [[path]]
        link = {{ rate = "10mbit", delay = "20ms" }}
        [[path]]
        agent = "{agent}"
        [[path]]
        radio = {{ rate = "2mbit", delay = "1ms" }}
        errors = {errors}
        "#
    );
    let (plan, _) = parse(&text, "witness", &[]).unwrap_or_else(|error| panic!("{error:?}"));
    plan.cells[0].scenario.clone()
}

/// Retransmissions, how many of them were told right, and episodes by both.
#[derive(Default, Debug)]
struct Share {
    all: u64,
    right: u64,
    fast: [u64; 2],
    timeouts: [u64; 2],
}

#[test]
fn a_witness_tells_what_a_host_does() {
    for tcp in ["tahoe", "reno", "newreno", "sack"] {
        for agent in ["none", "snoop"] {
            for (kind, errors) in [
                ("single losses", r#"{ model = "exponential", mean = "32KiB" }"#),
                ("bursts", r#"{ model = "packet-bursts", packets = 5, mean = "64KiB" }"#),
            ] {
                let scenario = scenario(tcp, agent, errors);
                let mut share = Share::default();
                for seed in 1..=20 {
                    for (host, seen) in compare(&scenario, seed) {
                        share.all += host.again;
                        let same = host.by_timer.iter().zip(&seen.by_timer).filter(|(a, b)| a == b);
                        share.right += same.count() as u64;
                        share.fast = [share.fast[0] + host.fast, share.fast[1] + seen.fast];
                        share.timeouts =
                            [share.timeouts[0] + host.timeouts, share.timeouts[1] + seen.timeouts];
                    }
                }
                println!("{tcp} {agent} {kind}: {share:?}");
            }
        }
    }
}

#[test]
fn random_paths_are_told_alike() {
    for case in 0..300 {
        let scenario = Dice::new(case).scenario();
        compare(&scenario, case);
    }
}
