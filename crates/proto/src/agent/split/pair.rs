//! The two halves of one split connection, and the transfer between them.

mod claim;
pub(in crate::agent) mod travel;
mod watch;

use std::sync::Arc;

use crate::agent::{MtcpConfig, StoredSegment};
use crate::machine::{Out, Side};
use crate::tcp::connection::Connection;
use crate::tcp::{Connection as Half, Settings};
use crate::units::{Span, Time};
use crate::wire::{Body, Flags, FlowKey, Packet, Segment, Seq, TooBig, Transport};
pub(super) use claim::Claim;
use claim::Doubt;
use watch::Absence;

/// Time limit of a handshake, as in 4.4BSD.
pub(super) const HANDSHAKE: Span = Span::secs(75);

/// Assumed round trip of an unmeasured end.
const UNKNOWN: Span = Span::millis(100);

/// Minimum MSS of an end, bytes: that of Linux (`tcp_min_snd_mss`). An end could otherwise request each byte
/// in its own packet, and occupy the base station.
const LEAST_MSS: u16 = 48;

/// Raises the MSS that a SYN offers to the minimum.
fn raise_mss(syn: &mut Segment) {
    if syn.options().mss.is_some_and(|mss| mss < LEAST_MSS) {
        syn.options_mut().mss = Some(LEAST_MSS);
    }
}

/// State of a pair after a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It continues.
    Alive,
    /// It has finished.
    Over,
}

/// Shared settings of all pairs of a base station, indexed by the side of the peer.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// The TCP towards each side, with the buffer as its windows.
    pub(super) tcp: [Arc<Settings>; 2],
    /// Initial buffer size for each direction, bytes.
    pub(super) buffer: u32,
    /// Whether the buffer grows with the path.
    pub(super) grows: bool,
    /// Configuration of M-TCP; `None` for ordinary split connections.
    pub(super) mtcp: Option<MtcpConfig>,
    /// Whether losses of full segments may mean that they are too large for the path.
    pub(super) suspects_size: bool,
}

/// Memory for the buffers of all pairs, bytes.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub(super) all: u64,
    /// Sum of the limits of all buffers.
    pub(super) promised: u64,
    /// Part of `promised` by which buffers have grown.
    pub(super) grown: u64,
}

impl Memory {
    /// Grants growth of a buffer by `bytes` bytes, if possible. Half of the memory is reserved for new
    /// connections.
    fn grant(&mut self, bytes: u32) -> bool {
        let granted = self.grown + u64::from(bytes) <= self.all / 2
            && self.promised + u64::from(bytes) <= self.all;
        if granted {
            self.grown += u64::from(bytes);
            self.promised += u64::from(bytes);
        }
        granted
    }

    /// Releases the buffers of `pair`, which began with `buffer` bytes each.
    pub(super) fn take_back(&mut self, pair: &Pair, buffer: u32) {
        let limits: u64 = pair.rooms.iter().map(|room| u64::from(room.limit)).sum();
        self.promised -= limits;
        self.grown -= limits - 2 * u64::from(buffer);
    }
}

/// Shared state that a pair uses during a call.
pub(super) struct Shared<'a> {
    /// Data on its way from one half to the other.
    pub(super) scratch: &'a mut Vec<Body>,
    /// Memory for growing buffers, if they grow.
    pub(super) memory: Option<&'a mut Memory>,
}

/// The buffer of one direction.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Size of the buffer, bytes.
    limit: u32,
    /// Number of received bytes whose space was freed.
    freed: u64,
    /// Time and value of the last measurement of `freed`.
    since: (Time, u64),
}

impl Room {
    /// Measures the freed space once per round trip of the source (`rtt`), and returns the target size of the
    /// buffer. `cwnd` is the congestion window of the sink.
    ///
    /// The source needs a window of the data that it sends in a round trip, and the sink its flight. Both are
    /// doubled, so that both can double in slow start (Linux: `tcp_rcv_space_adjust`, `tcp_sndbuf_expand`).
    fn target_size(&mut self, now: Time, rtt: Span, cwnd: u32) -> Option<u32> {
        let (since, before) = self.since;
        if now.since(since) < rtt {
            return None;
        }
        self.since = (now, self.freed);
        let target = 2 * (self.freed - before + u64::from(cwnd));
        Some(target.min(u32::MAX.into()) as u32)
    }

    /// Grows the buffer to the target size, if there is memory.
    fn grow(&mut self, now: Time, source: &mut Half, sink: &mut Half, memory: &mut Memory) {
        let rtt = match source.control_block().srtt {
            Span::ZERO => UNKNOWN,
            srtt => srtt,
        };
        let Some(target) = self.target_size(now, rtt, sink.control_block().cwnd) else { return };
        let more = target.min(source.largest_window()).saturating_sub(self.limit);
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
    /// Indexed by the side of the peer.
    halves: [Half; 2],
    /// The side whose host opened the connection.
    opener: Side,
    /// Deadline of the handshakes, until both are complete.
    open_until: Option<Time>,
    /// Buffers, indexed by the source's side.
    rooms: [Room; 2],
    /// Time of the last packet.
    last_packet: Time,
    /// Buffered bytes of both directions after the last call.
    held: u64,
    /// Time at which the segments due after a batch of packets are sent.
    uncork: Option<Time>,
    /// With M-TCP: least interval of probes to a lost mobile host.
    knocks: Option<Span>,
    /// While the mobile host is lost.
    gone: Option<Absence>,
    /// Start of the last segment behind a hole.
    behind: Option<Seq>,
    /// Indexed by the side of the peer: whether it may have continued without the base station.
    doubts: [Doubt; 2],
    /// Indexed by the side of the peer: whether it probes the other end and waits for its answer.
    probing: [bool; 2],
    /// Indexed by the side of the peer: the last probe that was passed to it.
    probed: [Doubt; 2],
    /// Until the far end has answered: the opener's SYN, and an earlier one with another number.
    first: Option<Box<Waiting>>,
    rival: Option<Box<Packet>>,
}

/// The opener's SYN while the far end has not answered.
#[derive(Clone, Debug)]
struct Waiting {
    syn: Packet,
    /// Number of a SYN of the far end, and the time of its first copy.
    crossed: Option<(Seq, Time)>,
}

impl Pair {
    /// Asserts the invariants of both halves.
    pub(super) fn check(&self) {
        for room in &self.rooms {
            debug_assert!(room.limit > 0, "a buffer without space");
            debug_assert!(room.since.1 <= room.freed, "freed bytes only grow");
        }
        debug_assert!(
            self.gone.is_none() || self.knocks.is_some(),
            "only M-TCP loses its mobile host"
        );
        debug_assert!(
            self.rival.is_none() || self.first.is_some(),
            "a second SYN waits behind the first"
        );
    }

    /// Handles a SYN for `flow` from `opener`: opens a connection to the far end with the opener's initial
    /// sequence number. The SYN waits for the result.
    pub(super) fn open(
        now: Time,
        opener: Side,
        flow: FlowKey,
        syn: &Packet,
        ends: &Ends,
        out: &mut Out,
    ) -> Pair {
        let first = Some(Box::new(Waiting { syn: syn.clone(), crossed: None }));
        let class = (syn.tos, syn.label);
        let no_segment = Segment::new(flow.src_port, flow.dst_port, Seq(0), Seq(0), Flags::SYN);
        let mut syn = syn.segment().unwrap_or(&no_segment).clone();
        raise_mss(&mut syn);
        let half = |side: Side, flow: FlowKey, iss: Seq| {
            let i = side.index();
            let mut half = Connection::new(ends.tcp[i].clone(), flow, side, iss, 0);
            half.set_relay();
            half.set_suspicious(ends.suspects_size);
            if ends.mtcp.is_some() {
                half.enable_end_to_end_acks();
            }
            half.attach(ends.buffer);
            half.set_inbox(ends.buffer);
            half
        };
        let target = opener.other();
        let mut onward = half(target, flow, syn.seq);
        // Its initial number is unknown until the far end answers.
        let mut near = half(opener, flow.reversed(), Seq(0));
        near.hold();
        onward.hold();
        onward.set_class(class.0, class.1);
        // Each half offers what its host offers to the other one.
        let offers_ecn = syn.flags.has(Flags::ECE | Flags::CWR);
        [&mut near, &mut onward].into_iter().for_each(|half| half.set_ecn(offers_ecn));
        near.on_segment(now, &syn, Body::EMPTY, out);
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
            last_packet: now,
            held: 0,
            uncork: None,
            knocks: ends.mtcp.map(|mtcp| mtcp.knock),
            gone: None,
            behind: None,
            doubts: [Doubt::default(); 2],
            probing: [false; 2],
            probed: [Doubt::default(); 2],
            first,
            rival: None,
        }
    }

    /// Handles a packet from `from`.
    pub(super) fn take(
        &mut self,
        now: Time,
        from: Side,
        mut packet: Packet,
        shared: &mut Shared<'_>,
        out: &mut Out,
    ) -> Fate {
        self.last_packet = now;
        if out.is_bulk() && self.open_until.is_none() {
            // The remaining packets of the batch are processed first.
            self.halves.iter_mut().for_each(Half::cork);
            self.uncork = Some(now);
        }
        let ecn = packet.ecn();
        self.halves[from.other().index()].set_class(packet.tos, packet.label);
        if let Transport::Tcp(segment) = &mut packet.transport
            && segment.flags.has(Flags::SYN)
        {
            raise_mss(segment);
        }
        let body = core::mem::replace(&mut packet.body, Body::EMPTY);
        if let Some(segment) = packet.segment() {
            if self.halves[from.index()].leaves_hole(segment, body.len())
                && self.behind.replace(segment.seq) == Some(segment.seq)
            {
                // The missing data may have reached the other end directly. Then it never arrives here, so
                // the other end is probed for a confirmation.
                self.halves[from.other().index()].elicit_answer(now, out);
            }
            if self.passes_probe(now, from, segment, &body, out) {
                return self.settle(now, shared, out);
            }
            self.halves[from.index()].on_arrival(now, segment, body, ecn, out);
            if core::mem::take(&mut self.probing[from.other().index()]) {
                self.halves[from.other().index()].confirm(now, out);
            }
            if from == Side::Right {
                self.find(now, out);
            }
        }
        self.settle(now, shared, out)
    }

    /// Passes a keep-alive, or a probe of a closed window, to the other end, whose answer this half then confirms.
    /// Otherwise an end would never find that the other one has vanished. Returns false if this half answers itself.
    fn passes_probe(
        &mut self,
        now: Time,
        from: Side,
        segment: &Segment,
        body: &Body,
        out: &mut Out,
    ) -> bool {
        let (i, other) = (from.index(), from.other().index());
        // M-TCP answers while the mobile host is lost, so that the other end waits for its return.
        let passes = self.gone.is_none()
            && self.halves[i].is_probed_by(segment, body.len())
            && self.halves[other].is_open();
        if passes {
            self.probing[i] = true;
            if self.probed[other].may_probe(now)
                && let Some(probe) = self.halves[other].probe(now)
            {
                self.halves[other].send_probe(probe, body.len(), out);
            }
        }
        passes
    }

    /// Handles a router's report that a packet of the half towards `side` was too large. Returns whether the
    /// report is accepted.
    pub(super) fn shrink(&mut self, now: Time, side: Side, report: &TooBig, out: &mut Out) -> bool {
        let quote = report.quote;
        self.halves[side.index()].on_too_big(now, (quote.seq, quote.len), report.mtu, out)
    }

    /// Handles timers.
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

    /// Deadline of the next timer.
    pub(super) fn next_wake(&self) -> Option<Time> {
        let [left, right] = &self.halves;
        let probe = self.gone.as_ref().map(Absence::next_probe);
        [left.next_wake(), right.next_wake(), self.open_until, self.uncork, probe]
            .into_iter()
            .flatten()
            .min()
    }

    /// Deadline of the handshakes while the pair is half-open: the opener has not acknowledged its SYN-ACK.
    pub(super) fn half_open_until(&self) -> Option<Time> {
        self.open_until
    }

    /// Ends a half-open pair, to make room for another one. An opener without an answer gets none, and repeats its SYN
    /// if it is genuine. The far end may have answered, with options for the SYN of this pair, so it is reset.
    pub(super) fn abandon(&mut self, now: Time, out: &mut Out) {
        let [left, right] = &mut self.halves;
        let (near, onward) = match self.opener {
            Side::Left => (left, right),
            Side::Right => (right, left),
        };
        match near.is_held() {
            true => onward.withdraw_syn(out),
            false => self.reset(now, out),
        }
    }

    /// Time of the last packet.
    pub(super) fn last_packet(&self) -> Time {
        self.last_packet
    }

    /// Buffered bytes of both directions after the last call.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Data received from one end and unacknowledged by the other, in pieces of a segment.
    pub(super) fn stored_segments(&self, each: &mut dyn FnMut(StoredSegment)) {
        for half in &self.halves {
            let (mut seq, mut left, most) = half.unacknowledged();
            while left > 0 {
                let len = left.min(u64::from(most)) as u32;
                // Retransmissions of TCP have their own events.
                each(StoredSegment { flow: half.flow, seq, len, attempts: 0 });
                seq = seq + len;
                left -= u64::from(len);
            }
        }
    }

    /// Aborts both connections with resets to both ends.
    pub(super) fn reset(&mut self, now: Time, out: &mut Out) {
        for half in &mut self.halves {
            half.reset(now, out);
        }
    }

    /// Aborts both connections after packets may have bypassed the base station. An end that has continued
    /// with the other ignores a reset from here (RFC 5961 section 3.2). So each end is probed: its answer
    /// reaches the other end, which is closed and answers with a reset of the right number.
    pub(super) fn give_up(&mut self, now: Time, out: &mut Out) {
        let probes = self.halves.each_mut().map(|half| half.probe(now));
        self.reset(now, out);
        for (half, probe) in self.halves.iter_mut().zip(probes) {
            if let Some(probe) = probe {
                half.send_probe(probe, 1, out);
            }
        }
    }

    /// Passes the effects of a change in one half to the other.
    pub(super) fn settle(&mut self, now: Time, shared: &mut Shared<'_>, out: &mut Out) -> Fate {
        if self.open_until.is_some() {
            self.shake_hands(now, out);
        }
        self.carry(now, Side::Left, shared, out);
        self.carry(now, Side::Right, shared, out);
        self.halves.iter_mut().for_each(|half| half.probe_path(now, out));
        self.held = self.halves.iter().map(Half::held_bytes).sum();
        // M-TCP: the other end waits for acknowledgements of an end that reset after both had closed.
        let is_reset = |half: &Half| {
            half.is_aborted() || half.acks_end_to_end() && half.is_over() && !half.has_ended()
        };
        if self.halves.iter().any(is_reset) {
            // A reset is forwarded; so is a refusal, and so is a timeout of the handshake. Segments of the same batch
            // precede it.
            self.halves.iter_mut().for_each(|half| half.uncork(now, out));
            self.reset(now, out);
            return Fate::Over;
        }
        if self.open_until.is_some_and(|until| until <= now) {
            // An opener without an answer so far gets none now; its own timer expires.
            if !self.halves[self.opener.index()].is_held() {
                self.reset(now, out);
            }
            return Fate::Over;
        }
        // The end that closed first is in TIME-WAIT itself, with the same numbers, and answers late segments.
        if !self.halves.iter().all(Half::is_over) {
            return Fate::Alive;
        }
        self.halves.iter_mut().for_each(|half| half.uncork(now, out));
        Fate::Over
    }

    /// Answers the opener after the far end has answered, with the far end's initial number. Acknowledges the far end's
    /// answer after the opener has acknowledged its own, as without a base station.
    fn shake_hands(&mut self, now: Time, out: &mut Out) {
        let [left, right] = &mut self.halves;
        let (near, onward) = match self.opener {
            Side::Left => (left, right),
            Side::Right => (right, left),
        };
        if near.is_held() && onward.state().is_synchronised() {
            near.limit_ecn(onward);
            near.accept(now, Some(onward.peer_iss()), out);
            (self.first, self.rival) = (None, None);
        }
        if near.state().is_synchronised() {
            // Without the opener's ACK the far end would accept a connection that no host has opened: the opener's
            // address may be forged.
            onward.accept(now, None, out);
            self.open_until = None;
        }
    }

    /// Writes data received from `from` to the other side; data acknowledged there makes room here.
    fn carry(&mut self, now: Time, from: Side, shared: &mut Shared<'_>, out: &mut Out) {
        let [left, right] = &mut self.halves;
        let (source, sink) = match from {
            Side::Left => (left, right),
            Side::Right => (right, left),
        };
        // Positions agree on both sides.
        sink.set_urgent(source.peer_urgent());
        source.take_delivered(shared.scratch);
        for body in shared.scratch.drain(..) {
            // It fits: the window on this side is the free space of the queue on the other side.
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
                // Its FIN acknowledges the peer's data. A peer that has received that FIN ignores later
                // copies, and after the FIN's ACK this half sends no further acknowledgements.
                sink.note_far_ack(source.acknowledged(), true);
            }
            // A FIN to an end for which this base station acknowledges is the last segment that does. It waits until the
            // other end has acknowledged everything.
            let owes = sink.acks_end_to_end() && source.is_closing() && !source.has_ended();
            if !owes {
                sink.close(now, out);
            }
        }
        source.on_far_ack(now, acked, sink.has_ended(), out);
    }
}
