//! Agent state follows its host between base stations (i-tcp-handoff).

use lasthop_proto::agent::{Agent, BaseStation as _};
use lasthop_proto::event::{EventKind, Interest};
use lasthop_proto::machine::Out;
use lasthop_proto::units::{Span, Time};

use super::{Outside, Path};
use crate::roam::Transit;

impl Path {
    /// `host` arrived in `cell`: sends the agent state of its last cell to the agent there. State still in transit is
    /// sent after the host.
    pub(super) fn move_state<O: Outside>(
        &mut self,
        now: Time,
        host: usize,
        cell: u16,
        outside: &mut O,
    ) {
        let Some(roam) = &mut self.roam else { return };
        let Some(moves) = roam.state_moves() else { return };
        let (old, new, addr) = roam.agents(host, cell);
        let under_way = roam.transit.iter().position(|transit| transit.host == host);
        let (state, from) = match under_way.map(|i| roam.transit.remove(i)) {
            Some(late) => {
                self.with_agent(now, late.agent, outside, |agent, _| {
                    agent.await_state(addr, false)
                });
                (Some(late.state), late.at)
            }
            None => {
                let mut state = None;
                if let (Some(old), Some(_)) = (old, new) {
                    self.with_agent(now, old, outside, |agent, out| {
                        state = agent.give_away(now, addr, out);
                    });
                }
                (state, now)
            }
        };
        let (Some(state), Some(agent)) = (state, new) else { return };
        let bytes = state.bytes();
        self.with_agent(now, agent, outside, |agent, out| {
            agent.await_state(addr, true);
            emit_handoff_state(out, addr, bytes, false);
        });
        let follows = moves.rate.map_or(Span::ZERO, |rate| rate.transmit(bytes));
        let at = from.max(now) + moves.delay + follows;
        if let Some(roam) = &mut self.roam {
            roam.transit.push(Transit { at, host, agent, state });
        }
    }

    /// Delivers agent state that has arrived. Returns false if there is none.
    pub(super) fn state_arrives<O: Outside>(&mut self, now: Time, outside: &mut O) -> bool {
        let Some(roam) = &mut self.roam else { return false };
        let Some(i) = roam.transit.iter().position(|transit| transit.at <= now) else {
            return false;
        };
        let Transit { agent, state, .. } = roam.transit.remove(i);
        self.with_agent(now, agent, outside, |agent, out| {
            let (host, bytes) = (state.host(), state.bytes());
            match agent.take_over(now, state, out) {
                Ok(()) => emit_handoff_state(out, host, bytes, true),
                // Another kind of agent starts without state.
                Err(_) => agent.await_state(host, false),
            }
        });
        true
    }

    fn with_agent<O: Outside>(
        &mut self,
        now: Time,
        stage: usize,
        outside: &mut O,
        call: impl FnOnce(&mut Agent, &mut Out),
    ) {
        self.call(now, stage, outside, |stage, out| {
            if let Some(agent) = stage.agent_mut() {
                call(agent, out);
            }
        });
    }
}

fn emit_handoff_state(out: &mut Out, host: lasthop_proto::wire::Addr, bytes: u64, arrived: bool) {
    if out.accepts(Interest::RESULTS) {
        out.event(EventKind::State { host, bytes, arrived });
    }
}
