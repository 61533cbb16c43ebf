//! The state of an agent from another base station: refused, or written again as it was; an agent goes on with it.
#![no_main]

use lasthop_proto::agent::{Agent, AgentConfig, Handover, SnoopConfig};
use lasthop_proto::agent::{NackAgent, SeqCacheAgent, SnoopAgent, SplitConfig};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Machine as _, Out};
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::units::Time;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(state) = Handover::decode(bytes) else { return };
    let _ = Handover::decode(&state.encode()).expect("a written value can be read");
    let mut out = Out::new(Interest::METRICS);
    let snoop = SnoopConfig::west97();
    for config in [
        AgentConfig::Snoop(SnoopAgent { snoop: snoop.clone(), ackp: None }),
        AgentConfig::SnoopNack(NackAgent { snoop }),
        AgentConfig::SeqCache(SeqCacheAgent { flows: 10 }),
        AgentConfig::Split(SplitConfig::new(TcpConfig::linux())),
    ] {
        let mut agent = Agent::new(&config);
        if agent.take_over(Time(1), state.clone(), &mut out).is_err() {
            continue;
        }
        for _ in 0..100 {
            let Some(at) = agent.next_wake() else { break };
            agent.on_wake(at, &mut out);
            out.sends.clear();
            out.events.clear();
        }
        let _ = agent.give_away(Time(u64::MAX / 2), state.host(), &mut out);
    }
});
