//! Hand-off of split connections between base stations.

use super::half_open::LASTING;
use super::pair::travel::Moved;
use super::{Fate, Pair, Split, note};
use crate::agent::Agent;
use crate::event::AgentNote;
use crate::machine::Out;
use crate::units::{Span, Time};
use crate::wire::{Addr, FlowKey};

/// Connections on their way to another base station.
type Pairs = Vec<(FlowKey, Box<Moved>)>;

impl Split {
    /// The agent of packets that belong to no connection here, if it is not this one.
    pub(in crate::agent) fn successor_mut(&mut self) -> Option<&mut Agent> {
        self.successor.as_deref_mut()
    }

    /// Removes the connections of `host` and returns them.
    pub(in crate::agent) fn release(&mut self, now: Time, host: Addr, out: &mut Out) -> Pairs {
        let mut pairs = Vec::new();
        for i in self.pairs.of_host(host) {
            let key = self.pairs.key(i);
            if let Some(pair) = self.pairs[i].as_deref_mut() {
                pairs.push((key, Box::new(pair.moved(now, out))));
            }
            self.forget(i, out);
        }
        pairs
    }

    /// Imports connections of another base station. Those without room are reset, since no other agent could
    /// deliver their buffered data.
    ///
    /// # Errors
    /// Returns the connections if their ends rely on guarantees that this agent does not give.
    pub(in crate::agent) fn adopt(
        &mut self,
        now: Time,
        pairs: Pairs,
        out: &mut Out,
    ) -> Result<(), Pairs> {
        let mtcp = self.ends.mtcp.is_some();
        if pairs.iter().any(|(_, moved)| moved.acks_end_to_end() != mtcp) {
            return Err(pairs);
        }
        for (key, moved) in pairs {
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
                note(out, key, AgentNote::NoRoom);
                pair.reset(now, out);
                continue;
            }
            let i = self.pairs.insert(key);
            self.log(key, false);
            self.wakes.grow(self.pairs.slots());
            note(out, key, AgentNote::FlowSeen);
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
