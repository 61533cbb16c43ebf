//! Hand-off: the state of an agent moves to the next base station with the mobile host.
//!
//! I-TCP moves the sockets of a split connection: buffers, sequence numbers, and negotiated options of both
//! halves (A. Bakre and B. R. Badrinath, "Handoff and System Support for Indirect TCP/IP", USENIX Mobile and
//! Location-Independent Computing 1995; west97 2.5: a hand-off needs a good deal of information exchange
//! between base stations). For snoop the cache and the round-trip times may move (H. Balakrishnan, S. Seshan
//! and R. Katz, ACM Wireless Networks 1(4), 1995).
//!
//! [`Agent::give_away`] exports an agent's state of a mobile host, and
//! [`Agent::take_over`] imports it into another agent of the same kind.
//! In between it is a [`Handover`]. It contains:
//!
//! - split connections: both TCPs of each, with state, numbers, windows, round trips, negotiated options
//!   and bytes behind a hole; and all bytes received from one end that the other end has not
//!   acknowledged;
//! - snoop and its variants: the cached packets with their history, the last ACK, the counts of duplicate
//!   ACKs, and round trips. For snoop in both directions also the holes of data from the mobile host;
//! - seq-cache: the passed bytes, known losses, round trips.
//!
//! It does not contain timers, since clocks of base stations differ, and no measurement in progress. A loss
//! recovery of a split connection restarts, and its data in flight counts as sent at the time of the import.
//! Packets in the cache of the new base station's snoop remain.
//!
//! The state of other agents does not move: they have none per connection, or it costs more than it saves.

use super::seq_cache::Flow as CacheFlow;
use super::snoop::flow::Flow as SnoopFlow;
use super::snoop_nack::Flow as NackFlow;
use super::split::pair::travel::Moved;
use super::{Agent, BaseStation as _};
use crate::describe::{Kind, System};
use crate::machine::Out;
use crate::travel::Travels;
use crate::units::Time;
use crate::wire::{Addr, FlowKey};

/// Descriptor for lists.
pub const HANDOFF: System = System::new(
    Kind::Agent,
    "i-tcp-handoff",
    "handoff: state = \"move\"; the agents split, split-sack, m-tcp, snoop, snoop+ackp, snoop-smart, snoop-nack, seq-cache",
    "moves the state of an agent to the next base station at a hand-off",
    "west97 2.5; Bakre and Badrinath 1995",
)
.tier(2)
.runs(crate::describe::SIM);

/// Bytes of payload and of headers of the packets that carry state: TCP over IPv4 with timestamps on Ethernet
/// with an MTU of 1500 bytes.
const PAYLOAD: u64 = 1448;
const HEADERS: u64 = 52;

/// Flows with their states, the least recently used first.
type Of<F> = Vec<(FlowKey, F)>;

/// The state, by the kind of agent.
#[derive(Clone, Debug)]
enum State {
    /// State of snoop and its variants.
    Snoop(Of<SnoopFlow>),
    /// State of snoop for both directions.
    SnoopNack(Of<SnoopFlow>, Of<NackFlow>),
    /// State of the cache of sequence numbers.
    SeqCache(Of<CacheFlow>),
    /// State of split connections.
    Split(Of<Box<Moved>>),
}

/// An agent's state of a mobile host's connections, on its way to another base station.
#[derive(Clone, Debug)]
pub struct Handover {
    host: Addr,
    state: State,
}

impl Agent {
    /// Exports the state of the connections of the mobile host `host`, and removes it here. `None` if there
    /// is no state to move.
    pub fn give_away(&mut self, now: Time, host: Addr, out: &mut Out) -> Option<Handover> {
        let state = match self {
            Agent::Snoop(agent) => State::Snoop(agent.release(host, out)),
            Agent::SnoopNack(agent) => {
                let cached = agent.snoop.release(host, out);
                State::SnoopNack(cached, agent.release(host, out))
            }
            Agent::SeqCache(agent) => State::SeqCache(agent.release(host, out)),
            Agent::Split(agent) => match agent.release(now, host, out) {
                pairs if pairs.is_empty() => {
                    return agent.successor_mut()?.give_away(now, host, out);
                }
                pairs => State::Split(pairs),
            },
            _ => return None,
        };
        let it = Handover { host, state };
        (it.flows() > 0).then_some(it)
    }

    /// Imports the state that another agent has exported.
    ///
    /// # Errors
    /// Returns the state if it belongs to another kind of agent. Then this one begins without state.
    pub fn take_over(&mut self, now: Time, it: Handover, out: &mut Out) -> Result<(), Handover> {
        let Handover { host, state } = it;
        match (self, state) {
            (Agent::Snoop(agent), State::Snoop(flows)) => agent.adopt(now, flows, out),
            (Agent::SnoopNack(agent), State::SnoopNack(cached, flows)) => {
                agent.snoop.adopt(now, cached, out);
                agent.adopt(now, flows, out);
            }
            (Agent::SeqCache(agent), State::SeqCache(flows)) => agent.adopt(now, flows, out),
            (Agent::Split(agent), state) => {
                agent.await_state(host, false);
                if let Some(next) = agent.successor_mut() {
                    return next.take_over(now, Handover { host, state }, out);
                }
                let State::Split(pairs) = state else { return Err(Handover { host, state }) };
                let adopted = agent.adopt(now, pairs, out);
                return adopted.map_err(|pairs| Handover { host, state: State::Split(pairs) });
            }
            (_, state) => return Err(Handover { host, state }),
        }
        Ok(())
    }
}

impl Handover {
    /// The mobile host.
    pub fn host(&self) -> Addr {
        self.host
    }

    /// Number of flows.
    pub fn flows(&self) -> usize {
        match &self.state {
            State::Snoop(flows) => flows.len(),
            State::SnoopNack(flows, nacks) => flows.len().max(nacks.len()),
            State::SeqCache(flows) => flows.len(),
            State::Split(pairs) => pairs.len(),
        }
    }

    /// Bytes on the wired network between the base stations: number of the format, address of the host, kind of the
    /// agent and its flows in TCP segments of 1448 bytes with 52 bytes of headers each. Payload counts in full, even if
    /// the simulation does not store it.
    pub fn bytes(&self) -> u64 {
        let flows = match &self.state {
            State::Snoop(flows) => flows.size(),
            State::SnoopNack(flows, nacks) => flows.size() + nacks.size(),
            State::SeqCache(flows) => flows.size(),
            State::Split(pairs) => pairs.size(),
        };
        let content = 4 + self.host.size() + 1 + flows;
        content + content.div_ceil(PAYLOAD) * HEADERS
    }
}
