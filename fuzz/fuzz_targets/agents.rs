//! Any agent of a base station, whatever segments it sees and whenever: it hands on the bytes that belong at their
//! sequence numbers, accounts for every packet, comes to rest, and its state can move to another station.
#![no_main]

mod shared;

use std::sync::LazyLock;

use lasthop_proto::agent::{self, Agent, AgentConfig, BaseStation as _};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Machine as _, Out, Side, Signal};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{FlowKey, Seq};
use lasthop_scenario::{StageKind, parse};
use libfuzzer_sys::fuzz_target;
use shared::{FIXED, Feed, Ids, MOBILE, is_true, segment, wake_until};

/// Every agent that there is, as a file has it that says no more.
static CONFIGS: LazyLock<Vec<AgentConfig>> = LazyLock::new(|| {
    let config = |word: &str| {
        let text = format!(
            "transfer = {{ from = \"fixed\", to = \"mobile\", bytes = \"1MB\" }}\n[host.fixed]\n[host.mobile]\n\
             [[path]]\nlink = {{ rate = \"1mbit\" }}\n[[path]]\nagent = \"{word}\"\n\
             [[path]]\nradio = {{ rate = \"1mbit\" }}\nlink-layer = \"local-recovery\"\n"
        );
        let (plan, _) = parse(&text, "fuzz", &[]).unwrap_or_else(|error| panic!("{word}: {error}"));
        let stages = plan.cells.into_iter().flat_map(|cell| cell.scenario.path);
        let mut agents = stages.filter_map(|stage| match stage.kind {
            StageKind::Agent(config) => Some(config),
            _ => None,
        });
        agents.next().expect("it has one")
    };
    agent::words().map(|word| config(word.word)).collect()
});

struct Station {
    agent: Agent,
    out: Out,
    /// Packets that came, less those that left or ended.
    inside: i64,
}

impl Station {
    fn take_answer(&mut self) {
        let tally = self.out.take_tally();
        self.inside += tally.originated as i64 - tally.discarded as i64;
        self.inside -= self.out.sends.len() as i64;
        for (_, packet) in self.out.sends.drain(..) {
            assert!(is_true(&packet), "other bytes than those that were sent: {packet:?}");
        }
        self.out.signals.clear();
        self.out.events.clear();
    }

    fn do_one(&mut self, feed: &mut Feed<'_>, ids: &mut Ids, now: &mut Time) {
        let what = feed.byte();
        match what % 8 {
            0 => {
                let then = *now + feed.span();
                wake_until(then, self.agent.next_wake(), |at| {
                    self.agent.on_wake(at, &mut self.out);
                    self.take_answer();
                    self.agent.next_wake()
                });
                *now = then;
            }
            1 => {
                let flow = FlowKey {
                    src: FIXED,
                    dst: MOBILE,
                    src_port: 40_000 + u16::from(what >> 3 & 3),
                    dst_port: 9,
                };
                let seq = Seq(u32::from(feed.number()) * 500 + 1_000);
                let tries = u32::from(feed.byte());
                let signal = match what >> 5 {
                    0 | 1 => Signal::ChannelGood(what & 128 == 0),
                    2 => Signal::Departing { flow, end: seq },
                    n => Signal::AttemptFailed {
                        flow,
                        seq,
                        len: 1_500,
                        tries,
                        discarded: n & 1 == 0,
                    },
                };
                self.agent.on_signal(*now, Side::Right, signal, &mut self.out);
                self.take_answer();
            }
            2 if what > 200 => {
                self.agent.reset_endings(*now, &mut self.out);
                self.take_answer();
            }
            2 if what > 100 => {
                let Some(state) = self.agent.give_away(*now, MOBILE, &mut self.out) else { return };
                self.take_answer();
                assert!(self.agent.take_over(*now, state, &mut self.out).is_ok(), "its own state");
                self.take_answer();
            }
            _ => {
                let (side, mut packet) = segment(feed);
                packet.id = ids.next();
                self.inside += 1;
                self.agent.on_packet(*now, side, packet, &mut self.out);
                self.take_answer();
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut feed = Feed(bytes);
    let config = &CONFIGS[usize::from(feed.byte()) % CONFIGS.len()];
    let mut out = Out::new(Interest::METRICS);
    let mut now = Time::ZERO + Span::secs(1);
    out.begin(lasthop_proto::machine::StageId(1), now);
    let mut station = Station { agent: Agent::new(config), out, inside: 0 };
    let mut ids = Ids::default();
    while !feed.is_over() {
        station.do_one(&mut feed, &mut ids, &mut now);
        let held = station.agent.holds() as i64;
        assert_eq!(station.inside, held, "packets inside, and packets in the agent's state");
    }
});
