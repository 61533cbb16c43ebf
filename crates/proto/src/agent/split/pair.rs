//! The two halves of one split connection, and what passes between them.

mod claim;
mod travel;
mod watch;

use std::sync::Arc;

use crate::agent::{Kept, MtcpConfig};
use crate::machine::{Out, Side};
use crate::tcp::connection::Connection;
use crate::tcp::{Connection as Half, Settings};
use crate::units::{Span, Time};
use crate::wire::{Body, Flags, FlowKey, Packet, Segment, Seq, TooBig};
pub(super) use claim::Claim;
use claim::Doubt;
pub(in crate::agent) use travel::Moved;

/// How long a handshake may take: as in 4.4BSD.
const HANDSHAKE: Span = Span::secs(75);

/// The round trip of an end that was never measured.
const UNKNOWN: Span = Span::millis(100);

/// What has become of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It goes on.
    Alive,
    /// Nothing is left to do.
    Over,
}

/// What all pairs of a base station have in common: one of each by the side of the peer.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// The TCP towards each side, with the buffer as its windows.
    pub(super) tcp: [Arc<Settings>; 2],
    /// Bytes held for each direction at first.
    pub(super) buffer: u32,
    /// Whether that grows with the path.
    pub(super) grows: bool,
    /// What makes it M-TCP, if it is that.
    pub(super) mtcp: Option<MtcpConfig>,
    /// Whether full segments that are lost may be too large for the path.
    pub(super) suspects_size: bool,
}

/// The memory for the buffers of all pairs, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub(super) all: u64,
    /// What the buffers of the pairs there are may come to.
    pub(super) promised: u64,
    /// Of that, what they have grown by.
    pub(super) grown: u64,
}

impl Memory {
    /// Lets a buffer grow by `bytes`, or says no. Half of the memory stays for new connections.
    fn grant(&mut self, bytes: u32) -> bool {
        let granted = self.grown + u64::from(bytes) <= self.all / 2
            && self.promised + u64::from(bytes) <= self.all;
        if granted {
            self.grown += u64::from(bytes);
            self.promised += u64::from(bytes);
        }
        granted
    }

    /// The buffers of `pair`, which began with `buffer` bytes each, are free again.
    pub(super) fn take_back(&mut self, pair: &Pair, buffer: u32) {
        let limits: u64 = pair.rooms.iter().map(|room| u64::from(room.limit)).sum();
        self.promised -= limits;
        self.grown -= limits - 2 * u64::from(buffer);
    }
}

/// What a pair uses for the length of a call.
pub(super) struct Shared<'a> {
    /// Pieces on their way from one half to the other.
    pub(super) scratch: &'a mut Vec<Body>,
    /// What buffers grow from, if they do.
    pub(super) memory: Option<&'a mut Memory>,
}

/// The buffer of one direction.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Bytes that it holds.
    limit: u32,
    /// Of the bytes taken in, those whose room was given back.
    freed: u64,
    /// When the last measure of `freed` was taken, and what it was.
    since: (Time, u64),
}

impl Room {
    /// Room for `bytes` was given back for the first time since `since`; a round trip of the source takes `rtt`, and
    /// `cwnd` is the congestion window of the sink. How large the buffer should be, once in a round trip.
    ///
    /// The source needs a window of what it sends in a round trip, and the sink what it has in flight; twice of both,
    /// so that both can double in slow start (Linux: `tcp_rcv_space_adjust`, `tcp_sndbuf_expand`).
    fn wanted(&mut self, now: Time, rtt: Span, cwnd: u32) -> Option<u32> {
        let (since, before) = self.since;
        if now.since(since) < rtt {
            return None;
        }
        self.since = (now, self.freed);
        let wanted = 2 * (self.freed - before + u64::from(cwnd));
        Some(wanted.min(u32::MAX.into()) as u32)
    }

    /// Makes the buffer as large as the path wants it, if there is memory.
    fn grow(&mut self, now: Time, source: &mut Half, sink: &mut Half, memory: &mut Memory) {
        let rtt = match source.control_block().srtt {
            Span::ZERO => UNKNOWN,
            srtt => srtt,
        };
        let Some(wanted) = self.wanted(now, rtt, sink.control_block().cwnd) else { return };
        let more = wanted.min(source.largest_window()).saturating_sub(self.limit);
        if more > 0 && memory.grant(more) {
            self.limit += more;
            source.set_inbox(self.limit);
            sink.grow_outbox(self.limit);
        }
    }
}

/// A connection from the base station to each of the two ends.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    /// By the side of the peer.
    halves: [Half; 2],
    /// The side whose host opened the connection.
    opener: Side,
    /// Until when both ends must have shaken hands, as long as they have not.
    open_until: Option<Time>,
    /// The buffer of what comes from each side.
    rooms: [Room; 2],
    /// When a packet came last.
    heard: Time,
    /// Bytes that both directions held after the last call.
    held: u64,
    /// When what the packets of a batch have made due is sent.
    uncork: Option<Time>,
    /// With M-TCP: how often a mobile host that is gone is looked for.
    knocks: Option<Span>,
    /// The mobile host is gone: when it is looked for next.
    gone: Option<Time>,
    /// Where the last segment that came behind a hole began.
    behind: Option<Seq>,
    /// By the side of the peer: whether it may have gone on without the base station.
    doubts: [Doubt; 2],
    /// Until the far end has answered: the SYN of the opener, and the first one, which had another number.
    first: Option<Box<Packet>>,
    rival: Option<Box<Packet>>,
}

impl Pair {
    /// A SYN for `flow` came from `opener`: opens onward under the opener's own initial sequence number, and
    /// lets the SYN wait for what becomes of that.
    pub(super) fn open(
        now: Time,
        opener: Side,
        flow: FlowKey,
        syn: &Packet,
        ends: &Ends,
        out: &mut Out,
    ) -> Pair {
        let first = Some(Box::new(syn.clone()));
        let no_segment = Segment::new(flow.src_port, flow.dst_port, Seq(0), Seq(0), Flags::SYN);
        let syn = syn.segment().unwrap_or(&no_segment);
        let half = |side: Side, flow: FlowKey, iss: Seq| {
            let i = side.index();
            let mut half = Connection::new(ends.tcp[i].clone(), flow, side, iss, 0);
            half.set_relay();
            half.set_suspicious(ends.suspects_size);
            if ends.mtcp.is_some() {
                half.acknowledge_for_another();
            }
            half.attach(ends.buffer);
            half.set_inbox(ends.buffer);
            half
        };
        let target = opener.other();
        let mut onward = half(target, flow, syn.seq);
        // Its own initial number is not known before the far end has told it.
        let mut near = half(opener, flow.reversed(), Seq(0));
        near.hold();
        near.on_segment(now, syn, Body::EMPTY, out);
        onward.connect(now);
        onward.on_wake(now, out);
        Pair {
            halves: match opener {
                Side::Left => [near, onward],
                Side::Right => [onward, near],
            },
            opener,
            open_until: Some(now + HANDSHAKE),
            rooms: [Room { limit: ends.buffer, freed: 0, since: (now, 0) }; 2],
            heard: now,
            held: 0,
            uncork: None,
            knocks: ends.mtcp.map(|mtcp| mtcp.knock),
            gone: None,
            behind: None,
            doubts: [Doubt::default(); 2],
            first,
            rival: None,
        }
    }

    /// A packet that came from `from` is taken in.
    pub(super) fn take(
        &mut self,
        now: Time,
        from: Side,
        mut packet: Packet,
        shared: &mut Shared<'_>,
        out: &mut Out,
    ) -> Fate {
        self.heard = now;
        if out.is_bulk() && self.open_until.is_none() {
            // The rest of the batch comes first.
            self.halves.iter_mut().for_each(Half::cork);
            self.uncork = Some(now);
        }
        let ecn = packet.ecn();
        let body = core::mem::replace(&mut packet.body, Body::EMPTY);
        if let Some(segment) = packet.segment() {
            if self.halves[from.index()].leaves_hole(segment, body.len())
                && self.behind.replace(segment.seq) == Some(segment.seq)
            {
                // What is missing may be known to be there: then it never comes, and the other end knows.
                self.halves[from.other().index()].ask_back(now, out);
            }
            self.halves[from.index()].on_arrival(now, segment, body, ecn, out);
            if from == Side::Right {
                self.find(now, out);
            }
        }
        self.settle(now, shared, out)
    }

    /// A router reports that a packet of the half towards `side` was too large. Whether that is believed.
    pub(super) fn shrink(&mut self, now: Time, side: Side, report: &TooBig, out: &mut Out) -> bool {
        let quote = report.quote;
        self.halves[side.index()].on_too_big(now, (quote.seq, quote.len), report.mtu, out)
    }

    /// A timer may have expired.
    pub(super) fn on_wake(&mut self, now: Time, shared: &mut Shared<'_>, out: &mut Out) -> Fate {
        self.look(now, out);
        for half in &mut self.halves {
            if half.next_wake().is_some_and(|at| at <= now) {
                half.on_wake(now, out);
            }
        }
        if self.uncork.take_if(|at| *at <= now).is_some() {
            self.halves.iter_mut().for_each(|half| half.uncork(now, out));
        }
        self.settle(now, shared, out)
    }

    /// When a timer expires next.
    pub(super) fn next_wake(&self) -> Option<Time> {
        let [left, right] = &self.halves;
        [left.next_wake(), right.next_wake(), self.open_until, self.uncork, self.gone]
            .into_iter()
            .flatten()
            .min()
    }

    /// When a packet came last.
    pub(super) fn heard(&self) -> Time {
        self.heard
    }

    /// Bytes that both directions held after the last call.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// What was taken in from one end and is not acknowledged by the other, in pieces of a segment.
    pub(super) fn kept(&self, each: &mut dyn FnMut(Kept)) {
        for half in &self.halves {
            let (mut seq, mut left, most) = half.unacknowledged();
            while left > 0 {
                let len = left.min(u64::from(most)) as u32;
                // What TCP sends again is told by its own events.
                each(Kept { flow: half.flow, seq, len, attempts: 0 });
                seq = seq + len;
                left -= u64::from(len);
            }
        }
    }

    /// Gives both connections up and tells both ends.
    pub(super) fn reset(&mut self, now: Time, out: &mut Out) {
        for half in &mut self.halves {
            half.reset(now, out);
        }
    }

    /// Gives both connections up after packets may have passed the base station by. An end that has gone on with the other
    /// takes no reset from here, as RFC 5961 section 3.2 has it. So each is asked where it is: its answer goes to the other
    /// end, which is closed and answers with a reset that has the right number.
    pub(super) fn give_up(&mut self, now: Time, out: &mut Out) {
        let probes = self.halves.each_mut().map(|half| half.probe(now));
        self.reset(now, out);
        for (half, probe) in self.halves.iter_mut().zip(probes) {
            if let Some(probe) = probe {
                half.send_probe(probe, out);
            }
        }
    }

    /// One half has changed: passes on to the other what that means for it.
    pub(super) fn settle(&mut self, now: Time, shared: &mut Shared<'_>, out: &mut Out) -> Fate {
        if self.open_until.is_some() {
            self.shake_hands(now, out);
        }
        self.carry(now, Side::Left, shared, out);
        self.carry(now, Side::Right, shared, out);
        self.halves.iter_mut().for_each(|half| half.probe_path(now, out));
        self.held = self.halves.iter().map(Half::held_bytes).sum();
        if self.halves.iter().any(Half::is_aborted) {
            // A reset travels on; so does a refusal, and so does silence that lasted too long.
            self.reset(now, out);
            return Fate::Over;
        }
        if self.open_until.is_some_and(|until| until <= now) {
            // An opener that was never answered is not answered now; its own timer decides.
            if !self.halves[self.opener.index()].is_held() {
                self.reset(now, out);
            }
            return Fate::Over;
        }
        // Whichever end closed first is in TIME-WAIT itself, under the same numbers: what comes late is
        // answered there.
        if !self.halves.iter().all(Half::is_over) {
            return Fate::Alive;
        }
        self.halves.iter_mut().for_each(|half| half.uncork(now, out));
        Fate::Over
    }

    /// The opener is answered when the far end has answered, and under the far end's own number.
    fn shake_hands(&mut self, now: Time, out: &mut Out) {
        let [left, right] = &mut self.halves;
        let (near, onward) = match self.opener {
            Side::Left => (left, right),
            Side::Right => (right, left),
        };
        if near.is_held() && onward.state().is_synchronised() {
            near.accept(now, Some(onward.peer_iss()), out);
            (self.first, self.rival) = (None, None);
        }
        if near.state().is_synchronised() {
            self.open_until = None;
        }
    }

    /// What came in from `from` is written to the other side; what was acknowledged there makes room here.
    fn carry(&mut self, now: Time, from: Side, shared: &mut Shared<'_>, out: &mut Out) {
        let [left, right] = &mut self.halves;
        let (source, sink) = match from {
            Side::Left => (left, right),
            Side::Right => (right, left),
        };
        // Positions agree on both sides.
        sink.set_urgent(source.heard_urgent());
        source.take_delivered(shared.scratch);
        for body in shared.scratch.drain(..) {
            // It fits: the window on this side is what the queue on the other side has room for.
            let len = body.len();
            let taken = sink.write(now, body, out);
            debug_assert!(taken == len || sink.is_aborted());
        }
        let acked = sink.acknowledged();
        let room = &mut self.rooms[from.index()];
        if acked > room.freed {
            let news = acked - room.freed;
            room.freed = acked;
            if !source.peer_has_closed() {
                if let Some(memory) = shared.memory.as_deref_mut() {
                    room.grow(now, source, sink, memory);
                }
                source.relayed(now, news, out);
            }
        }
        if source.peer_has_closed() {
            if source.has_ended() {
                // Its FIN acknowledges the peer's. Whoever has got that FIN believes no later copy of it, and once it is
                // acknowledged nobody stays to say again what the peer has not heard.
                sink.hear_of_far(source.acknowledged(), true);
            }
            sink.close(now, out);
        }
        source.far_has(now, acked, sink.has_ended(), out);
    }
}
