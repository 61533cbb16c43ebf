//! Random scenarios in which the mobile hosts move all the time, and agent state moves with them. Whatever is lost at
//! any time, delivered data equals sent data.

use lasthop_path::{HostKind, Outside, Path, Stage};
use lasthop_proto::event::{Event, EventKind, Interest, TcpKind};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::tcp::Host;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Packet};
use lasthop_scenario::{HostSide, Scenario};

use crate::common::Dice;

/// Detects corrupted bytes.
#[derive(Default)]
struct Watch {
    corrupted: bool,
}

impl Outside for Watch {
    fn event(&mut self, event: &Event) {
        if let EventKind::Tcp(tcp) | EventKind::Split(tcp) = &event.kind {
            self.corrupted |= tcp.kind == TcpKind::Corrupted;
        }
    }
    fn leave(&mut self, _: Time, _: StageId, _: Side, _: Packet) {}
}

/// The mobile hosts move to other base stations: the state of the agent at stage `i` goes to a new one.
fn move_agent(
    path: &mut Path,
    now: Time,
    (i, fresh): (usize, Stage),
    mobiles: &[Addr],
    watch: &mut Watch,
) {
    let mut states = Vec::new();
    for mobile in mobiles {
        path.call(now, i, watch, |stage, out| {
            states.extend(stage.agent_mut().and_then(|agent| agent.give_away(now, *mobile, out)));
        });
    }
    path.replace_stage(i, fresh);
    for state in states {
        path.call(now, i, watch, |stage, out| {
            let agent = stage.agent_mut().expect("an agent");
            agent.take_over(now, state, out).expect("an agent of its kind");
        });
    }
}

/// Runs `scenario` with agents that move every `every`; returns the number of complete connections.
fn run(scenario: &Scenario, case: u64, every: Span) -> usize {
    let mut path = Path::of_scenario(scenario, case, Interest::METRICS, |_| HostKind::Ours);
    let mut watch = Watch::default();
    let right = scenario.hosts.iter().filter(|host| host.side == HostSide::Right);
    let mobiles: Vec<Addr> = right.map(|host| host.addr).collect();
    let first = path.inner().start;
    let (mut now, mut next) = (Time::ZERO, Time::ZERO + every);
    let mut moves = 0;
    // Endless transfers are cut off.
    let horizon = Time::ZERO + scenario.horizon.min(Span::secs(20_000));
    while path.unfinished() > 0 {
        let Some(wake) = path.next_wake().filter(|wake| *wake <= horizon) else { break };
        if next > wake || moves == 200 {
            now = wake.max(now);
            path.wake(now, &mut watch);
            continue;
        }
        (now, next, moves) = (next, next + every, moves + 1);
        for i in path.inner() {
            if path.stages()[i].agent().is_some() {
                let fresh = Stage::of_path(&scenario.path[i - first], case);
                move_agent(&mut path, now, (i, fresh), &mobiles, &mut watch);
            }
        }
    }
    assert!(!watch.corrupted, "case {case}: a wrong byte");
    for (stage, count) in path.counts() {
        assert!(count.is_conserved(), "case {case}, stage {}: {count:?}", stage.0);
    }
    let hosts: Vec<&Host> = path.stages().iter().filter_map(Stage::host).collect();
    let all = hosts.iter().flat_map(|host| host.opened());
    let complete = all.filter(|sender| sender.is_complete() && !sender.is_aborted());
    let delivered = complete.filter(|sender| {
        let peer = hosts.iter().find(|host| host.addr() == sender.flow.dst);
        let peer = peer.and_then(|host| host.connection(sender.flow.reversed()));
        let size = sender.flow_size().map_or(0, |bytes| bytes.0);
        // A base station that splits connections may have the rest in transit.
        peer.is_none_or(|peer| peer.delivered() == size)
    });
    delivered.count()
}

fn many(scenario: fn(u64) -> Scenario) {
    let cases = std::env::var("LASTHOP_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let (mut moved, mut stayed) = (0, 0);
    for case in 0..cases {
        let scenario = scenario(case);
        let every = Span::millis([37, 410, 2_900][case as usize % 3]);
        moved += run(&scenario, case, every);
        stayed += run(&scenario, case, Span::secs(1_000_000));
    }
    println!("{moved} transfers complete with agents that move, {stayed} with agents that stay");
    // Hard scenarios end differently with restarted timers, but not many.
    assert!(moved * 20 > stayed * 19, "{moved} of {stayed}");
}

#[test]
fn data_is_intact_when_agent_state_moves() {
    many(|case| Dice::new(case).scenario());
}

#[test]
fn constantly_moving_split_connections_deliver_sent_data() {
    many(|case| Dice::new(case).split_scenario());
}
