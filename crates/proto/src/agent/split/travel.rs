//! Hand-off of split connections between base stations.

use super::half_open::LASTING;
use super::{Fate, Pair, Split};
use crate::agent::Handover;
use crate::agent::i_tcp_handoff::State;
use crate::event::AgentNote;
use crate::machine::Out;
use crate::units::{Span, Time};
use crate::wire::Addr;

impl Split {
    /// Removes the connections of `host` and returns them.
    pub(super) fn release(&mut self, now: Time, host: Addr, out: &mut Out) -> Option<Handover> {
        let mut pairs = Vec::new();
        for i in self.pairs.of_host(host) {
            let key = self.pairs.key(i);
            if let Some(pair) = self.pairs[i].as_deref_mut() {
                pairs.push((key, Box::new(pair.moved(now, out))));
            }
            self.forget(i, out);
        }
        Handover::new(host, State::Split(pairs))
    }

    /// Imports connections of another base station. Those without room are reset, since no other agent could
    /// deliver their buffered data.
    pub(super) fn adopt(
        &mut self,
        now: Time,
        mut state: Handover,
        out: &mut Out,
    ) -> Result<(), Handover> {
        let mtcp = self.ends.mtcp.is_some();
        let State::Split(pairs) = &mut state.state else { return Err(state) };
        // The ends rely on other guarantees.
        if pairs.iter().any(|(_, moved)| moved.acks_end_to_end() != mtcp) {
            return Err(state);
        }
        for (key, moved) in core::mem::take(pairs) {
            if self.pairs.find(key).is_some() {
                // Its SYN passed here: a later connection with the same ports.
                continue;
            }
            let limits = moved.limits(self.ends.buffer).map(u64::from);
            let bytes = limits[0] + limits[1];
            let age = if moved.is_half_open() { LASTING } else { Span::ZERO };
            let fits = self.has_room(now, bytes, age, out);
            let mut pair = Box::new(Pair::resume(now, key, *moved, &self.ends));
            if !fits {
                self.note(key, AgentNote::NoRoom, out);
                pair.reset(now, out);
                continue;
            }
            let i = self.pairs.insert(key);
            self.log(key, false);
            self.wakes.grow(self.pairs.slots());
            self.note(key, AgentNote::FlowSeen, out);
            self.memory.promised += bytes;
            self.memory.grown += bytes - self.initial_bytes();
            self.held += pair.held();
            self.half_open.update(i, None, pair.half_open_until());
            self.pairs[i] = Some(pair);
            self.act(i, out, |pair, shared, out| -> Fate { pair.proceed(now, shared, out) });
        }
        Ok(())
    }
}
