//! The state of an agent moves to the next base station when a mobile host does.
//!
//! I-TCP moves the sockets of a split connection: buffers, sequence numbers, what both halves have agreed on (A. Bakre
//! and B. R. Badrinath, "Handoff and System Support for Indirect TCP/IP", USENIX Mobile and Location-Independent
//! Computing 1995; west97 2.5: a hand-off needs a good deal of information exchange between base stations). For snoop
//! the cache and the round-trip times may move (H. Balakrishnan, S. Seshan and R. Katz, ACM Wireless Networks 1(4),
//! 1995).
//!
//! [`BaseStation::give_away`](super::BaseStation::give_away) takes what an agent knows of a mobile host out of it, and
//! [`BaseStation::take_over`](super::BaseStation::take_over) puts it into another one of the same kind, which goes on.
//! Between them it is a [`Handover`], in memory or as bytes. What moves:
//!
//! - split connections: both TCPs of each, with state, numbers, windows, round trips, what the handshakes agreed on,
//!   bytes behind a hole, and all bytes that were taken in and not acknowledged by the other end;
//! - snoop and its relatives: the cached packets with their history, the last ACK, the account of duplicate ACKs, round
//!   trips; of snoop for both directions also the holes of data from the mobile host;
//! - seq-cache: which bytes have passed, what is known to be lost, round trips.
//!
//! What does not: timers start anew, since clocks of base stations differ; no packet is being timed; a loss recovery of
//! a split connection's own TCP begins anew, and what it had in flight counts as sent at the moment of the take-over.
//! Of what the new base station has seen by itself before the state came, snoop's cache keeps the packets.
//!
//! The other agents keep nothing about connections, or nothing that is worth a packet.

use super::seq_cache::Flow as Seen;
use super::snoop::flow::Flow as Snooped;
use super::snoop_nack::Flow as Asked;
use super::split::Moved;
use crate::describe::{Kind, System};
use crate::travel::{Reader, Travels, Writer};
use crate::wire::{Addr, FlowKey};

/// What it is, for lists.
pub const HANDOFF: System = System::new(
    Kind::Agent,
    "i-tcp-handoff",
    "handoff: state = \"move\"; the agents split, split-sack, m-tcp, snoop, snoop+ackp, snoop-smart, snoop-nack, seq-cache",
    "moves the state of an agent to the next base station at a hand-off",
    "west97 2.5; Bakre and Badrinath 1995",
)
.tier(2)
.runs(crate::describe::SIM);

/// What the bytes begin with, and which form they have.
const FORM: u32 = 0x6c68_6f01;

/// Bytes of payload and of headers of the packets in which state travels: TCP over IPv4 with timestamps on Ethernet's
/// 1500 bytes.
const PAYLOAD: u64 = 1448;
const HEADERS: u64 = 52;

/// Flows of a kind, the least recently used first.
type Of<F> = Vec<(FlowKey, F)>;

/// The state, by the kind of agent.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Of snoop and its relatives.
    Snoop(Of<Snooped>),
    /// Of snoop for both directions.
    SnoopNack(Of<Snooped>, Of<Asked>),
    /// Of the cache of sequence numbers.
    SeqCache(Of<Seen>),
    /// Of split connections.
    Split(Of<Box<Moved>>),
}

/// What an agent knows of the connections of a mobile host, on its way to another base station.
#[derive(Clone, Debug)]
pub struct Handover {
    host: Addr,
    pub(super) state: State,
}

/// Why bytes are no [`Handover`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// They begin otherwise, or are of another version.
    #[error("not the state of an agent, or of another version")]
    Form,
    /// They end too early, go on too long, or hold what is never written.
    #[error("not whole")]
    Content,
    /// What is written there contradicts itself.
    #[error("contradicts itself")]
    Sense,
}

impl Handover {
    pub(super) fn new(host: Addr, state: State) -> Option<Handover> {
        let it = Handover { host, state };
        (it.flows() > 0).then_some(it)
    }

    /// The mobile host.
    pub fn host(&self) -> Addr {
        self.host
    }

    /// How many flows it tells of.
    pub fn flows(&self) -> usize {
        match &self.state {
            State::Snoop(flows) => flows.len(),
            State::SnoopNack(flows, asked) => flows.len().max(asked.len()),
            State::SeqCache(flows) => flows.len(),
            State::Split(pairs) => pairs.len(),
        }
    }

    /// Bytes on the wired network between the base stations: [`Handover::encode`] in TCP segments of 1448 bytes with
    /// 52 bytes of headers each. Payload counts in full, also where the simulation has no bytes for it.
    pub fn bytes(&self) -> u64 {
        let written = self.written();
        let content = written.bytes.len() as u64 + written.patterns;
        content + content.div_ceil(PAYLOAD) * HEADERS
    }

    /// The bytes that travel.
    pub fn encode(&self) -> Vec<u8> {
        self.written().bytes
    }

    fn written(&self) -> Writer {
        fn put<F: Travels>(kind: u8, flows: &Of<F>, to: &mut Writer) {
            kind.write(to);
            flows.write(to);
        }
        let mut to = Writer::default();
        (FORM, self.host).write(&mut to);
        match &self.state {
            State::Snoop(flows) => put(1, flows, &mut to),
            State::SnoopNack(flows, asked) => {
                put(2, flows, &mut to);
                asked.write(&mut to);
            }
            State::SeqCache(flows) => put(3, flows, &mut to),
            State::Split(pairs) => put(4, pairs, &mut to),
        }
        to
    }

    /// Reads what [`Handover::encode`] wrote. The bytes may come from anybody: what is read takes no more memory than a
    /// small multiple of them, and makes sense for the agent that takes it over.
    ///
    /// # Errors
    /// See [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Handover, Malformed> {
        let mut from = Reader(bytes);
        if u32::read(&mut from) != Some(FORM) {
            return Err(Malformed::Form);
        }
        let it = Handover::read(&mut from).ok_or(Malformed::Content)?;
        if !from.0.is_empty() {
            return Err(Malformed::Content);
        }
        if it.makes_sense() { Ok(it) } else { Err(Malformed::Sense) }
    }

    fn read(from: &mut Reader<'_>) -> Option<Handover> {
        let host = Addr::read(from)?;
        let state = match u8::read(from)? {
            1 => State::Snoop(Travels::read(from)?),
            2 => State::SnoopNack(Travels::read(from)?, Travels::read(from)?),
            3 => State::SeqCache(Travels::read(from)?),
            4 => State::Split(Travels::read(from)?),
            _ => return None,
        };
        Some(Handover { host, state })
    }

    /// Whether all flows are of this host, each is there once, and none contradicts itself.
    fn makes_sense(&self) -> bool {
        fn all<F>(host: Addr, flows: &Of<F>, sound: impl Fn(FlowKey, &F) -> bool) -> bool {
            let mut keys: Vec<FlowKey> = flows.iter().map(|(key, _)| *key).collect();
            keys.sort_unstable();
            keys.windows(2).all(|pair| pair[0] != pair[1])
                && keys.iter().all(|key| is_of(host, *key))
                && flows.iter().all(|(key, flow)| sound(*key, flow))
        }
        match &self.state {
            State::Snoop(flows) => all(self.host, flows, |key, flow| flow.is_sound(key)),
            State::SnoopNack(flows, asked) => {
                all(self.host, flows, |key, flow| flow.is_sound(key))
                    && all(self.host, asked, |_, flow| flow.is_sound())
            }
            State::SeqCache(flows) => all(self.host, flows, |_, flow| flow.is_sound()),
            State::Split(pairs) => all(self.host, pairs, |_, pair| pair.is_sound()),
        }
    }
}

/// Whether a flow is one of `host`.
pub(super) fn is_of(host: Addr, key: FlowKey) -> bool {
    key.src == host || key.dst == host
}
