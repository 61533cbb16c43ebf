//! Named faults of a path or an end, each with its evidence and its remedy.
//!
//! A diagnosis requires evidence in the capture. So a capture without a diagnosis may still have a fault.

mod black_hole;
mod bufferbloat;
mod closed_window;
mod ecn;
mod held_back;
mod limits;
mod middlebox;
mod numbers;
mod one_way;
mod opening;
mod options;
mod policer;
mod sack_window;
mod segment_size;
mod timeouts;
mod turns;
mod unanswered;

use lasthop_proto::units::Span;
use lasthop_proto::wire::Flags;

use crate::connection::Packet;
use crate::finding::{Diagnosis, EcnState, Finding};
use crate::reading::{Direction, Opening};
use black_hole::BlackHole;
use ecn::{Ecn, Position};
use limits::Flight;
use middlebox::Answers;
use numbers::Numbers;
use one_way::{Acks, Stamps};
use options::Opened;
use sack_window::Blocks;
use segment_size::SegmentSize;
use timeouts::{Allowed, Timeouts};
use turns::Turns;
use unanswered::Unanswered;

pub(crate) use opening::Open;
pub(crate) use timeouts::Known;

/// Assumed segment size of an end that announces none: that of Ethernet.
const USUAL_MSS: u32 = 1460;

/// Bytes of the timestamps option, padded.
const TIMESTAMPS_LEN: u32 = 12;

/// A packet of a connection with its context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    pub(crate) packet: &'a Packet<'a>,
    /// Bytes of payload; zero for window probes and keep-alives.
    pub(crate) len: u32,
    /// The announced window in bytes, if its scale is known.
    pub(crate) window: Option<u64>,
    /// Upper bound of the announced window in bytes, also for an unknown scale.
    pub(crate) room: u64,
    /// A duplicate ACK.
    pub(crate) duplicate: bool,
    /// A keep-alive, or a probe of a closed window.
    pub(crate) probe: bool,
}

/// State of the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// The round trip of the whole path.
    pub(crate) rtt: Option<Span>,
    /// Round trip between the point of capture and the peer of each side.
    pub(crate) feedback: [Option<Span>; 2],
    /// The side that sent the SYN.
    pub(crate) opener: Option<usize>,
}

impl Path {
    /// The point of capture relative to `side`.
    fn position(&self, side: usize) -> Position {
        match (self.behind(side), self.rtt) {
            (Some(behind), Some(rtt)) if behind.0 < rtt.0 / 10 => Position::Sender,
            (Some(_), Some(_)) => Position::Behind,
            _ => Position::Unknown,
        }
    }

    /// Round trip between the point of capture and `side`.
    fn behind(&self, side: usize) -> Option<Span> {
        Some(self.rtt?.saturating_sub(self.feedback[side]?))
    }
}

/// Observations of one side.
#[derive(Clone, Debug, Default)]
struct Side {
    opened: Opened,
    numbers: Numbers,
    hole: BlackHole,
    size: SegmentSize,
    flight: Flight,
    /// Its ACKs, while no packet of its peer was captured.
    acks: Option<Box<Acks>>,
    stamps: Stamps,
    /// SACK blocks of the peer for its data.
    blocks: Blocks,
    ecn: Option<Box<Ecn>>,
    answers: Answers,
    timeouts: Timeouts,
    unanswered: Unanswered,
}

/// Collects the evidence for diagnoses from both sides of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    sides: [Side; 2],
    turns: Turns,
    /// [`Watch::full`] of both sides once a SYN was captured.
    full: Option<[u32; 2]>,
}

impl Watch {
    /// Handles new sequence numbers of `side`.
    pub(crate) fn restart(&mut self, side: usize) {
        let Side { opened, ecn, mut acks, stamps, .. } = core::mem::take(&mut self.sides[side]);
        acks.iter_mut().for_each(|acks| acks.restart());
        self.sides[side] = Side { opened, ecn, acks, stamps, ..Side::default() };
        self.full = Some([0, 1].map(|side| self.negotiated(side)));
    }

    /// Entries of the state that later packets need.
    pub(crate) fn pending(&self) -> usize {
        self.sides.iter().map(|side| side.hole.pending() + side.flight.pending()).sum()
    }

    /// Frees that state.
    pub(crate) fn release(&mut self) {
        for side in &mut self.sides {
            side.hole.release();
            side.flight.release();
        }
    }

    /// The largest payload of a packet of `side` on the wire.
    pub(crate) fn full(&self, side: usize) -> u32 {
        self.full.map_or(USUAL_MSS, |full| full[side])
    }

    fn negotiated(&self, side: usize) -> u32 {
        let stamps = self.sides.iter().all(|side| side.opened.timestamps());
        let announced = self.sides[1 - side].opened.mss().unwrap_or(USUAL_MSS);
        let own = self.sides[side].opened.mss().unwrap_or(announced);
        let options = if stamps { TIMESTAMPS_LEN } else { 0 };
        announced.min(own).saturating_sub(options).max(1)
    }

    /// Processes the next packet, sent by `side`. The caller omits copies. Returns whether packets of this side before it
    /// were lost before the point of capture, by their IP identifications.
    pub(crate) fn packet(
        &mut self,
        side: usize,
        step: Step<'_>,
        path: impl FnOnce() -> Path,
    ) -> bool {
        let &Packet { at, segment, cut, ip_id, ttl, tos, .. } = step.packet;
        self.sides[side].opened.packet(segment, cut);
        if segment.flags.has(Flags::SYN) {
            self.full = Some([0, 1].map(|side| self.negotiated(side)));
        }
        let (full, opened) = (self.full(side), self.full.is_some());
        let [a, b] = &mut self.sides;
        let (own, peer) = if side == 0 { (a, b) } else { (b, a) };
        let next = own.answers.is_next(ip_id);
        let skips = self.turns.continues(side) && own.answers.skips(ip_id);
        let mut missed = false;
        own.answers.packet(segment, step.len, full, ttl, ip_id);
        self.turns.answered(side);
        peer.unanswered.answered(at);
        if segment.flags.has(Flags::RST) {
            own.unanswered.reset(at);
            return missed;
        }
        let needs_answer = step.len > 0 || step.probe || segment.flags.has(Flags::FIN);
        own.unanswered.sent(at, needs_answer);
        if own.stamps.packet(&peer.stamps, segment) {
            own.unanswered.answered(at);
        }
        let syn = segment.flags.has(Flags::SYN);
        if syn {
            self.turns.opens();
        }
        let (edge, idle) = (own.numbers.next(), own.numbers.is_acked());
        let start = own.numbers.sent(segment.seq + u32::from(syn), step.len);
        if syn {
            own.ecn = Ecn::opened(own.ecn.take(), segment.flags);
        } else if let Some(ecn) = &mut own.ecn {
            ecn.packet(segment, tos, step.len > 0 && start >= edge);
        }
        if step.len > 0 {
            let end = start + i64::from(step.len);
            own.timeouts.sent(at, start, end);
            own.hole.sent(start, end, full, opened);
            let path = path();
            // Next to the sender all its packets pass.
            missed = skips && path.position(side) == Position::Behind;
            if start >= edge {
                self.turns.sent(at, side, idle && start == edge, next, &path);
            } else {
                self.turns.repeated(at, side);
            }
            if start >= edge {
                let round_trip = path.rtt.unwrap_or(Span::ZERO);
                own.size.sent(at, step.len, full, round_trip);
            }
            if let Some(behind) = path.behind(side) {
                own.flight.sent(at, behind, end, step.len, own.size.full(full), missed);
            }
        } else if self.turns.is_empty() && !syn {
            let path = path();
            if path.opener == Some(side) && path.rtt.is_some() {
                self.turns.opened(at, side);
            }
        }
        //= rfc9293#section-3.1: the acknowledgment number means nothing unless ACK is set
        if !segment.flags.has(Flags::ACK) {
            return missed;
        }
        if peer.answers.is_empty() {
            let acks = own.acks.get_or_insert_default();
            acks.packet(at, segment, step.duplicate);
        }
        peer.numbers.offered(step.room);
        let options = segment.options();
        let Some(ack) = peer.numbers.acked(segment.ack) else { return missed };
        peer.hole.acked(ack, step.duplicate);
        peer.timeouts.acked(at, ack);
        peer.flight.acked(at, ack, step.window, syn, step.len == 0);
        for (n, &(left, right)) in options.sack.as_slice().iter().enumerate() {
            let inside = peer.numbers.block(left, right);
            peer.blocks.seen(n == 0, inside.is_some());
            //= rfc2883#section-4: a first block below the ACK is a DSACK
            if n == 0
                && let Some((left, right)) = inside.filter(|(_, right)| *right <= ack)
            {
                peer.timeouts.received_twice(left, right);
            }
            if let Some((left, right)) = inside.filter(|(_, right)| *right > ack) {
                peer.hole.sacked(left, right);
            }
        }
        missed
    }

    /// Processes the classification of the latest packet of `side`.
    pub(crate) fn judged(&mut self, side: usize, known: &Known) {
        let sack = self.sides.iter().all(|side| side.opened.sack());
        let full = self.full(side);
        let own = &mut self.sides[side];
        let allowed = Allowed { sack, more: own.flight.has_more(), full };
        own.timeouts.judged(known, &allowed);
    }

    /// Adds the diagnoses to the two directions.
    pub(crate) fn finish(mut self, path: &Path, open: &Open, sent: [&mut Direction; 2]) {
        let [first, second] = sent;
        for (side, sent) in self.sides.iter_mut().zip([&*first, &*second]) {
            side.flight.end(open.ended, sent.window_probes > 0);
        }
        let opened = open.diagnose();
        let larger = usize::from(second.unique_bytes > first.unique_bytes);
        let full = [self.full(0), self.full(1)];
        let shares = [0, 1].map(|side| self.sides[side].flight.shares());
        let thinks = [0, 1].map(|side| self.turns.diagnose(side, path, open.began));
        let trips = [0, 1].map(|side| self.turns.round_trips(side, path, open.began));
        // A sender without a request, or without the answer before it, has nothing to send.
        let by_turns = thinks.iter().chain(&trips).flatten().any(Diagnosis::is_cause);
        let found = [0, 1].map(|side| {
            let peer = &self.sides[1 - side];
            let own = &self.sides[side];
            let (data, back) = if side == 0 { (&*first, &*second) } else { (&*second, &*first) };
            let mut found = Vec::new();
            let opening = opened.as_ref().filter(|(of, _)| *of == side);
            found.extend(opening.map(|(_, diagnosis)| diagnosis.clone()));
            found.extend(thinks[side].clone());
            found.extend(trips[side].clone());
            let is_open = matches!(open.opening, Opening::Handshake | Opening::MidConnection);
            if is_open {
                found.extend(one_way::diagnose(data, back, &own.stamps, peer.acks.as_deref()));
            }
            let hole = own.hole.diagnose(full[side], path.behind(side).is_some());
            if hole.is_none() {
                found.extend(own.timeouts.diagnose());
            }
            let dropped = own.hole.diagnose_merged().or(hole);
            if is_open && dropped.is_none() {
                let all = open.ended.since(open.began).as_secs_f64();
                found.extend(own.unanswered.diagnose(
                    open.ended,
                    all,
                    data.retransmissions.total(),
                ));
            }
            found.extend(dropped);
            found.extend(closed_window::diagnose(data, open.ended));
            found.extend(own.flight.held());
            if let (Some(ecn), Some(peer)) = (&own.ecn, &peer.ecn) {
                found.extend(ecn.diagnose(peer, path.position(side)));
            }
            found.extend(own.answers.diagnose());
            found.extend(policer::diagnose(data, full[side]));
            found.extend(bufferbloat::diagnose(data));
            if side == larger && data.unique_bytes > 0 {
                let openings = [&self.sides[0].opened, &self.sides[1].opened];
                let limit = shares[side].map(|shares| options::Limit {
                    share: shares.receive_window,
                    window: back.window_max,
                    queued: limits::mostly_queued(data),
                });
                found.extend(options::diagnose(openings, path.opener, limit));
                found.extend(options::stripped(openings, data, back));
            }
            found.extend(own.blocks.diagnose());
            let near = path.position(side) == Position::Sender;
            // Behind a link that stalls, the times of transmission are unknown.
            let held_back = held_back::diagnose(data);
            if held_back.is_none() {
                let shares = shares[side].filter(|shares| !(by_turns && shares.is_idle()));
                let is_mark = |d: &Diagnosis| {
                    matches!(d.finding, Finding::Ecn { state: EcnState::Marked, .. })
                };
                let marked = found.iter().any(is_mark);
                found.extend(shares.and_then(|shares| shares.diagnose(data, back, near, marked)));
            }
            found.extend(held_back);
            found
        });
        let [of_first, of_second] = found;
        first.diagnoses = of_first;
        second.diagnoses = of_second;
    }
}
