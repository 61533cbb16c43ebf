//! Transfers with a restarted agent, with handoffs with and without agent state, and with a mobile host that is
//! temporarily unreachable. `make figures` regenerates the tables of the manual from here.

use std::fmt::Write as _;

use lasthop_observe::Sink as _;
use lasthop_observe::conservation::Conservation;
use lasthop_path::{HostKind, Outside, Path, Stage};
use lasthop_proto::agent::{Agent, BaseStation as _, Handover};
use lasthop_proto::event::{Event, EventKind, Interest, TcpKind};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::tcp::Connection;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, FlowKey, Packet};
use lasthop_scenario::{Scenario, StageKind};
use lasthop_sim::layout;

use crate::manual_table::check;
use crate::parsed::scenario_with;

/// Two megabytes over a radio that loses one packet in eighty. After five seconds it has an outage of 200 ms.
const HAND_OFF: &str = r#"
transfer = { from = "fixed", to = "mobile", bytes = "2MB" }
horizon = "600s"
[host.fixed]
preset = "rfc"
tcp = "newreno"
[host.mobile]
preset = "rfc"
tcp = "newreno"
[[path]]
name = "wire"
link = { rate = "10mbit", delay = "20ms", queue = "100p" }
[[path]]
name = "base"
agent = "none"
[[path]]
name = "air"
radio = { rate = "2mbit", delay = "2ms", queue = "50p", duplex = "full" }
errors = { model = "two-state", good = "5s", bad = "200ms", deterministic = true, reciprocal = true, ber-good = 1e-6, ber-bad = "50%" }
"#;

/// The path, left to right: host, wire, base station, air, host.
const BASE: usize = 2;

/// Observations from outside.
struct World {
    books: Conservation,
    flow: FlowKey,
    corrupted: bool,
    /// Times of deliveries to the receiver.
    delivered: Vec<Time>,
    /// Changes of the sender's window; its timeouts.
    windows: Vec<(Time, u32)>,
    timeouts: Vec<Time>,
}

impl Outside for World {
    fn event(&mut self, event: &Event) {
        self.books.event(event);
        if let EventKind::Tcp(tcp) | EventKind::Split(tcp) = &event.kind {
            self.corrupted |= tcp.kind == TcpKind::Corrupted;
        }
        let EventKind::Tcp(tcp) = &event.kind else { return };
        match tcp.kind {
            TcpKind::Delivered { .. } if tcp.flow == self.flow.reversed() => {
                self.delivered.push(event.at);
            }
            kind if tcp.flow == self.flow => {
                self.windows.push((event.at, tcp.tcb.cwnd));
                if kind == TcpKind::Timeout {
                    self.timeouts.push(event.at);
                }
            }
            _ => {}
        }
    }

    fn leave(&mut self, _: Time, stage: StageId, _: Side, packet: Packet) {
        panic!("{packet:?} left at {stage:?}");
    }
}

impl World {
    /// The longest time without a delivery that overlaps `from..to`.
    fn pause(&self, from: Time, to: Time) -> Span {
        let pairs = self.delivered.windows(2).filter(|pair| pair[0] < to && pair[1] > from);
        pairs.map(|pair| pair[1].since(pair[0])).max().unwrap_or(Span::ZERO)
    }

    /// The minimum of the sender's window in `from..to`.
    fn least_window(&self, from: Time, to: Time) -> u32 {
        let within = self.windows.iter().filter(|(at, _)| (from..to).contains(at));
        within.map(|(_, cwnd)| *cwnd).min().unwrap_or(0)
    }

    /// The sender's window at `at`.
    fn window(&self, at: Time) -> u32 {
        self.windows.iter().take_while(|(then, _)| *then <= at).last().map_or(0, |(_, cwnd)| *cwnd)
    }
}

/// The fate of the agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Stays,
    /// It restarts without state.
    Dies,
    /// The mobile host moves to another agent 100 ms later, which receives the state.
    Moves,
    /// The same, and the state is lost.
    Lost,
}

/// The end of a run.
struct RunOutcome {
    world: World,
    scenario: Scenario,
    end: Time,
    complete: bool,
    delivered: u64,
    /// Bytes of the transferred state.
    state: u64,
}

fn agent(stage: &mut Stage) -> &mut Agent {
    stage.agent_mut().expect("an agent")
}

/// Runs a scenario; the agent meets its fate at `at`.
fn run(scenario: Scenario, fate: Fate, at: Time) -> RunOutcome {
    let layout = layout(&scenario);
    let mut path = Path::of_scenario(&scenario, 1, Interest::EVERYTHING, |_| HostKind::Ours);
    let mut world = World {
        books: Conservation::default(),
        flow: layout.flows[0].key,
        corrupted: false,
        delivered: Vec::new(),
        windows: Vec::new(),
        timeouts: Vec::new(),
    };
    let mobile: Addr = scenario.hosts[1].addr;
    let fresh = || Stage::of_path(&scenario.path[BASE - 1], 1);
    let mut steps = match fate {
        Fate::Stays => vec![],
        Fate::Dies => vec![at],
        Fate::Moves | Fate::Lost => vec![at, at + Span::millis(100)],
    };
    let mut carried: Option<Handover> = None;
    let (mut now, mut state) = (Time::ZERO, 0);
    let horizon = Time::ZERO + scenario.horizon;
    while path.unfinished() > 0 {
        let Some(wake) = path.next_wake().filter(|wake| *wake <= horizon) else { break };
        let Some(step) = steps.first().copied().filter(|step| *step <= wake) else {
            now = wake.max(now);
            path.wake(now, &mut world);
            continue;
        };
        now = step;
        steps.remove(0);
        if step == at {
            path.call(now, BASE, &mut world, |stage, out| {
                carried = agent(stage).give_away(now, mobile, out);
            });
            path.replace_stage(BASE, fresh());
            carried = carried.filter(|_| fate == Fate::Moves);
            state = carried.as_ref().map_or(0, Handover::bytes);
            path.call(now, BASE, &mut world, |stage, _| {
                agent(stage).await_state(mobile, fate == Fate::Moves);
            });
        } else if let Some(state) = carried.take() {
            path.call(now, BASE, &mut world, |stage, out| {
                agent(stage).take_over(now, state, out).expect("an agent of its kind");
            });
        }
    }
    let held: u64 = path.counts().iter().map(|(_, count)| count.held).sum();
    assert!(path.counts().iter().all(|(_, count)| count.is_conserved()));
    // A packet dropped by a link layer may have been delivered.
    let StageKind::Radio(radio) = &scenario.path[BASE].kind else { panic!("a radio") };
    if radio.hop.is_none() {
        world.books.check(held).expect("the books balance");
    }
    let sender = path.host_stages()[scenario.transfers[0].from];
    let host = path.stages()[sender].host().expect("a host");
    let receiver = path.stages()[path.host_stages()[scenario.transfers[0].to]].host();
    let theirs = receiver.and_then(|host| host.connection(world.flow.reversed()));
    let delivered = theirs.map_or(0, Connection::delivered);
    let complete = host.opened().all(Connection::is_complete) && path.unfinished() == 0;
    RunOutcome { world, end: now, complete, delivered, state, scenario }
}

/// Agents with further settings, and whether the data comes from the mobile host.
const AGENTS: &[(&str, &[&str], bool)] = &[
    ("none", &[], false),
    ("snoop", &["agent=snoop"], false),
    ("snoop+ackp", &["agent=snoop+ackp", "host.fixed.ackp=rearm"], false),
    ("snoop-smart", &["agent=snoop-smart", "host.fixed.sack=true", "host.mobile.sack=true"], false),
    ("snoop-nack", &["agent=snoop-nack", "host.mobile.nack=true"], true),
    (
        "seq-cache",
        &["agent=seq-cache", "host.fixed.eln=checksum", "host.mobile.eln=checksum"],
        false,
    ),
    ("ebsn", &["agent=ebsn", "host.fixed.ebsn=true", "air.link-layer=local-recovery"], false),
    (
        "source-quench",
        &["agent=source-quench", "host.fixed.quench=true", "air.link-layer=local-recovery"],
        false,
    ),
    ("good-packet-size", &["agent=good-packet-size"], false),
    ("ack-reconstruction", &["agent=ack-reconstruction"], false),
    ("split", &["agent=split"], false),
    ("split, from the air", &["agent=split"], true),
    ("split-sack", &["agent=split-sack", "host.mobile.sack=true"], false),
    ("m-tcp", &["agent=m-tcp"], false),
    ("m-tcp, from the air", &["agent=m-tcp"], true),
];

/// The time of the agent's restart or the handoff: in the middle of the transfer, at the start of the outage.
const LEAVES: Time = Time(5_000_000_000);

fn hand_off(sets: &[&str], back: bool, fate: Fate) -> RunOutcome {
    let mut sets = sets.to_vec();
    if back {
        sets.extend(["transfer.from=mobile", "transfer.to=fixed"]);
    }
    if fate == Fate::Dies {
        // No handoff: the radio stays as it is.
        sets.push("errors.good=1000s");
    }
    run(scenario_with(HAND_OFF, &sets), fate, LEAVES)
}

/// Whether all bytes arrived, and the longest pause.
fn cell(seen: &RunOutcome) -> String {
    assert!(!seen.world.corrupted, "a wrong byte");
    let pause = seen.world.pause(LEAVES, LEAVES + Span::secs(1));
    match seen.complete && seen.delivered == 2_000_000 {
        true => format!("yes, {} ms", pause.0 / 1_000_000),
        false => format!("**no**, {} KB missing", (2_000_000 - seen.delivered) / 1000),
    }
}

#[test]
fn agents_survive_restarts_and_hand_offs_as_documented() {
    let mut table = "| agent | stays, no hand-off | dies, begins afresh | hand-off, state moves | bytes that move \
                     | hand-off, state lost |\n|---|---|---|---|---|---|\n"
        .to_owned();
    let mut broken = Vec::new();
    for (name, sets, back) in AGENTS {
        let still: Vec<&str> = sets.iter().copied().chain(["errors.good=1000s"]).collect();
        let stays = hand_off(&still, *back, Fate::Stays);
        let [dies, moves, lost] =
            [Fate::Dies, Fate::Moves, Fate::Lost].map(|fate| hand_off(sets, *back, fate));
        assert!(stays.complete && moves.complete, "{name}");
        // Soft state is rebuilt; data of a split connection for the mobile host exists nowhere else.
        let breaks = matches!(*name, "split" | "split-sack");
        broken.extend((dies.complete == breaks || lost.complete == breaks).then_some(*name));
        // The page lists agents with state, compared with none.
        if moves.state == 0 && *name != "none" {
            continue;
        }
        let bytes = if moves.state == 0 { "none".to_owned() } else { moves.state.to_string() };
        let cells = [cell(&stays), cell(&dies), cell(&moves), bytes, cell(&lost)];
        let _ = writeln!(table, "| {name} | {} |", cells.join(" | "));
    }
    check("reference/systems/i-tcp-handoff.md", "survives", &table);
    assert!(broken.is_empty(), "{broken:?} behave differently\n{table}");
}

/// A mobile host that is unreachable for a time every ten seconds.
const OUTAGES: &str = include_str!("../../../scenarios/disconnections.toml");

#[test]
fn m_tcp_preserves_the_window_through_a_disconnection() {
    let mut table = "| out of reach for | agent | pause beyond that | sender's window before, in segments \
                     | the least up to 1 s after | timeouts of the sender | transfer |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut wrong = Vec::new();
    for bad in ["500ms", "1s", "2s", "5s"] {
        for agent in ["none", "snoop", "split", "m-tcp"] {
            let outage = bad.parse::<Span>().unwrap();
            let sets = [format!("errors.bad={bad}"), format!("agent={agent}")];
            let sets = sets.each_ref().map(String::as_str);
            let seen = run(scenario_with(OUTAGES, &sets), Fate::Stays, Time::NEVER);
            assert!(seen.complete && !seen.world.corrupted, "{bad} {agent}");
            // The first outage: after ten seconds.
            let leaves = Time::ZERO + Span::secs(10);
            let returns = leaves + outage;
            let pause = seen.world.pause(leaves, returns);
            let beyond = Span(pause.0.saturating_sub(outage.0));
            let mss = seen.scenario.hosts[0].tcp.mss;
            let resumes = leaves + outage + beyond;
            let before = seen.world.window(leaves) / mss;
            let least = seen.world.least_window(leaves, resumes + Span::secs(1)) / mss;
            let timeouts =
                seen.world.timeouts.iter().filter(|at| (leaves..resumes).contains(at)).count();
            let is_undisturbed = timeouts == 0 && least >= before;
            // If no timer is as short as the pause, no sender reduces its window.
            wrong.extend((agent == "m-tcp" && !is_undisturbed).then(|| format!("{bad} {agent}")));
            wrong.extend(
                (agent == "none" && outage >= Span::secs(2) && least > 1)
                    .then(|| format!("{bad} {agent}")),
            );
            if !["1s", "5s"].contains(&bad) {
                continue;
            }
            let _ = writeln!(
                table,
                "| {bad} | {agent} | {} ms | {before} | {least} | {timeouts} | {:.1} s |",
                beyond.0 / 1_000_000,
                seen.end.as_secs_f64(),
            );
        }
    }
    check("reference/systems/m-tcp.md", "disconnections", &table);
    assert!(wrong.is_empty(), "{wrong:?}\n{table}");
}
