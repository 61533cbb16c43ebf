//! A host that is not ours, seen from outside.
//!
//! It stands where in the simulator the host stands, passes packets on untouched, and tells from them what the
//! host does: which bytes are sent for the first time, which again, what arrives in order, when a transfer is
//! complete. So the trace has the same events whoever's TCP is at the end.
//!
//! What cannot be seen from outside stays unknown: of the control block only the positions and the peer's window
//! are filled in, the rest is zero. Why bytes are sent again is inferred: after three duplicate ACKs, or after
//! fewer where SACK blocks told of the loss, it is a fast retransmit; after a silence of [`SILENCE`] it is a
//! time-out; what follows belongs to the same episode until everything sent before it is acknowledged.

use lasthop_proto::agent::flows::Flows;
use lasthop_proto::event::{Cause, Op, Tcb, TcpEvent, TcpKind, What};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Ackp, Addr, Damage, Flags, FlowKey, Packet, Segment, Seq};
use lasthop_trace::ranges::Ranges;

/// A retransmission after so long without a transmission or an ACK for new data was caused by a timer: no TCP has a
/// shorter one by default.
pub const SILENCE: Span = Span::millis(150);

/// Connections that are followed at once; the least recently used is forgotten first.
const CONNECTIONS: usize = 4096;

/// Holes in what arrived that are remembered of one connection.
const HOLES: usize = 256;

/// A host that is not ours.
#[derive(Debug)]
pub struct Witness {
    /// Its addresses; none stands for every address that no other host has.
    addrs: Vec<Addr>,
    /// Which way the path lies.
    side: Side,
    /// Whether somebody else tells what its TCP does as a sender.
    told: bool,
    /// By flow from this host to its peer.
    flows: Flows<Talk>,
}

/// Why a host sends bytes again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Episode {
    Fast,
    Timeout,
}

/// One connection of the host.
#[derive(Clone, Debug, Default)]
struct Talk {
    /// Position 0 of what the host sends and of what it hears.
    sent: Option<Seq>,
    heard: Option<Seq>,
    /// Highest position sent plus one, and oldest unacknowledged one.
    max: u64,
    una: u64,
    /// The peer's window as it stands in the header, and its scale.
    window: u16,
    peer_scale: u8,
    dupacks: u32,
    told_by_sack: bool,
    /// What made the host send bytes again, until everything below the position is acknowledged.
    episode: Option<(Episode, u64)>,
    last_sent: Time,
    /// When an ACK last moved the left edge: the timer began anew then.
    last_acked: Time,
    /// Whether the host offered to understand partial acknowledgements.
    knows_partial: bool,
    established: bool,
    /// Position of the host's FIN.
    fin: Option<u64>,
    complete: bool,
    over: bool,
    /// Position of the peer's FIN.
    heard_fin: Option<u64>,
    /// Next position expected from the peer, and what arrived beyond it.
    nxt: u64,
    beyond: Ranges,
}

impl Witness {
    /// The witness of the host at `addrs`; the path lies to its `side`. When somebody else tells what its TCP does
    /// as a sender, only what it sends and what arrives is reported here.
    pub fn of_host(addrs: Vec<Addr>, side: Side, told: bool) -> Witness {
        Witness { addrs, side, told, flows: Flows::new(CONNECTIONS) }
    }

    /// The witness of everything that lies beyond this end of the path.
    pub fn of_all(side: Side) -> Witness {
        Witness::of_all_within(side, CONNECTIONS)
    }

    /// The same with room for this many connections at once.
    pub fn of_all_within(side: Side, connections: usize) -> Witness {
        Witness { addrs: Vec::new(), side, told: false, flows: Flows::new(connections) }
    }

    /// Whether packets for `addr` leave here.
    pub fn stands_for(&self, addr: Addr) -> bool {
        self.addrs.is_empty() || self.addrs.contains(&addr)
    }

    /// Connections that are followed now.
    pub fn connections(&self) -> usize {
        self.flows.len()
    }

    /// The most holes that any of them has in what arrived.
    pub fn holes(&self) -> usize {
        (0..self.flows.slots()).map(|i| self.flows[i].beyond.count()).max().unwrap_or(0)
    }

    /// The connection with this key, opened when it is new.
    fn talk(&mut self, key: FlowKey) -> &mut Talk {
        let i = match self.flows.find(key) {
            Some(i) => i,
            None => {
                if self.flows.is_full()
                    && let Some(oldest) = self.flows.oldest()
                {
                    self.flows.remove(oldest);
                }
                let i = self.flows.insert(key);
                self.flows[i] = Talk::default();
                i
            }
        };
        &mut self.flows[i]
    }

    /// The host sent `packet`.
    fn sends(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let (Some(segment), Some(key)) = (packet.segment(), packet.flow()) else { return };
        let side = self.side;
        let mut notes = Notes { told: self.told, ..Notes::default() };
        let talk = self.talk(key);
        let cause = talk.sends(now, segment, packet.body.len(), &mut notes);
        notes.report(key, talk, out);
        out.packet_event(Op::Originated(cause), side, packet);
    }

    /// `packet` reaches the host intact.
    fn hears(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let (Some(segment), Some(key)) = (packet.segment(), packet.flow()) else { return };
        let mut notes = Notes { told: self.told, ..Notes::default() };
        let talk = self.talk(key.reversed());
        talk.hears(now, segment, packet.body.len(), &mut notes);
        notes.report(key.reversed(), talk, out);
    }
}

/// What one segment told.
#[derive(Default)]
struct Notes {
    /// Whether only deliveries are to be reported.
    told: bool,
    kinds: [Option<TcpKind>; 4],
}

impl Notes {
    fn add(&mut self, kind: TcpKind) {
        if self.told && !matches!(kind, TcpKind::Delivered { .. }) {
            return;
        }
        if let Some(free) = self.kinds.iter_mut().find(|kind| kind.is_none()) {
            *free = Some(kind);
        }
    }

    fn report(&self, flow: FlowKey, talk: &Talk, out: &mut Out) {
        for kind in self.kinds.into_iter().flatten() {
            if out.wants(kind.level()) {
                out.event(What::Tcp(TcpEvent { flow, kind, tcb: talk.tcb() }));
            }
        }
    }
}

impl Talk {
    fn sends(&mut self, now: Time, segment: &Segment, len: u32, notes: &mut Notes) -> Cause {
        let flags = segment.flags;
        let silent = now.since(self.last_sent.max(self.last_acked)) >= SILENCE;
        if flags.has(Flags::RST) {
            self.end(TcpKind::Aborted, notes);
            return Cause::Control;
        }
        if flags.has(Flags::SYN) {
            if self.sent != Some(segment.seq) {
                // A new connection on these ports.
                let heard = if flags.has(Flags::ACK) { self.heard } else { None };
                let knows_partial = segment.options().ackp == Some(Ackp::Permitted);
                let peer_scale = if heard.is_some() { self.peer_scale } else { 0 };
                *self = Talk {
                    sent: Some(segment.seq),
                    heard,
                    peer_scale,
                    knows_partial,
                    max: 1,
                    nxt: 1,
                    ..Talk::default()
                };
                notes.add(TcpKind::Opening);
            } else if silent {
                notes.add(TcpKind::Timeout);
            }
            self.last_sent = now;
            return Cause::Control;
        }
        if flags.has(Flags::ACK)
            && let Some(heard) = self.heard
            && let Some(acked) = segment.ack.unwrap_near(heard, self.nxt)
            && acked > self.nxt
        {
            // It arrived although we did not see it: the host knows better.
            self.deliver(acked, notes);
        }
        let fin = flags.has(Flags::FIN);
        if len == 0 && !fin {
            return Cause::Ack;
        }
        let origin = *self.sent.get_or_insert(Seq(segment.seq.0.wrapping_sub(1)));
        self.max = self.max.max(1);
        let Some(start) = segment.seq.unwrap_near(origin, self.max) else { return Cause::Data };
        let end = start + u64::from(len) + u64::from(fin);
        if fin {
            self.fin = Some(end - 1);
        }
        let probe = self.window == 0 && self.established && len == 1;
        let cause = if start >= self.max {
            if len == 0 { Cause::Control } else { Cause::Data }
        } else if end <= self.una {
            // A keep-alive, or an answer to something old.
            Cause::WindowProbe
        } else {
            self.again(silent, notes)
        };
        self.max = self.max.max(end);
        self.last_sent = now;
        self.check_complete(notes);
        if probe { Cause::WindowProbe } else { cause }
    }

    /// Bytes are sent again: why?
    fn again(&mut self, silent: bool, notes: &mut Notes) -> Cause {
        let told = self.dupacks >= 3 || self.told_by_sack;
        let episode = match self.episode {
            Some((episode, until)) if self.una < until && !silent => (episode, until),
            _ if silent || !told => {
                notes.add(TcpKind::Timeout);
                (Episode::Timeout, self.max)
            }
            _ => {
                notes.add(TcpKind::FastRetransmit);
                (Episode::Fast, self.max)
            }
        };
        self.episode = Some(episode);
        match episode.0 {
            Episode::Fast => Cause::FastRetransmit,
            Episode::Timeout => Cause::TimeoutRetransmit,
        }
    }

    fn hears(&mut self, now: Time, segment: &Segment, len: u32, notes: &mut Notes) {
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            self.end(TcpKind::Aborted, notes);
            return;
        }
        if flags.has(Flags::SYN) {
            self.heard = Some(segment.seq);
            self.nxt = self.nxt.max(1);
            self.peer_scale = segment.options().window_scale.unwrap_or(0).min(14);
        }
        if flags.has(Flags::ACK) {
            self.hears_ack(now, segment, len, notes);
        }
        let fin = flags.has(Flags::FIN);
        if len > 0 || fin {
            self.hears_data(segment, len, fin, notes);
        }
    }

    fn hears_ack(&mut self, now: Time, segment: &Segment, len: u32, notes: &mut Notes) {
        if self.knows_partial && segment.options().ackp == Some(Ackp::Partial) {
            //= west97#3.3: it says nothing about the receiver
            return;
        }
        let syn = segment.flags.has(Flags::SYN);
        let same_window = segment.window == self.window;
        self.window = segment.window;
        let Some(origin) = self.sent else { return };
        let Some(ack) = segment.ack.unwrap_near(origin, self.una).filter(|ack| *ack <= self.max)
        else {
            return;
        };
        if ack > self.una {
            self.una = ack;
            self.last_acked = now;
            self.dupacks = 0;
            self.told_by_sack = false;
            if let Some((episode, until)) = self.episode
                && ack >= until
            {
                self.episode = None;
                if episode == Episode::Fast {
                    notes.add(TcpKind::RecoveryEnded);
                }
            }
            if !self.established {
                self.established = true;
                notes.add(TcpKind::Established);
            } else {
                notes.add(TcpKind::Acked);
            }
            self.check_complete(notes);
        } else if ack == self.una && len == 0 && !syn && self.max > self.una {
            self.told_by_sack |= !segment.options().sack.is_empty();
            if same_window || self.told_by_sack {
                self.dupacks += 1;
                notes.add(TcpKind::DupAck);
            }
        }
    }

    /// The FIN says where the data ends. It may come after all data was acknowledged; without data it is itself all
    /// that can be.
    fn check_complete(&mut self, notes: &mut Notes) {
        let all = self.fin.is_some_and(|fin| self.una >= fin.max(2));
        if !self.complete && self.established && all {
            self.complete = true;
            notes.add(TcpKind::Complete);
        }
    }

    fn hears_data(&mut self, segment: &Segment, len: u32, fin: bool, notes: &mut Notes) {
        let first = segment.seq + u32::from(segment.flags.has(Flags::SYN));
        let origin = *self.heard.get_or_insert(Seq(first.0.wrapping_sub(1)));
        self.nxt = self.nxt.max(1);
        let Some(start) = first.unwrap_near(origin, self.nxt) else { return };
        let end = start + u64::from(len) + u64::from(fin);
        if fin {
            self.heard_fin = Some(end - 1);
        }
        if start > self.nxt {
            // A hostile sender may leave any number of holes.
            if self.beyond.count() < HOLES {
                self.beyond.insert(start, end);
            }
            return;
        }
        if end <= self.nxt {
            return;
        }
        let mut to = end;
        while let Some((from, until)) = self.beyond.first()
            && from <= to
        {
            to = to.max(until);
            self.beyond.remove(from, until);
        }
        self.deliver(to, notes);
    }

    /// Everything below `to` has arrived.
    fn deliver(&mut self, to: u64, notes: &mut Notes) {
        let fin = self.heard_fin.is_some_and(|fin| (self.nxt..to).contains(&fin));
        let bytes = (to - self.nxt) as u32 - u32::from(fin);
        self.nxt = to;
        if bytes > 0 {
            notes.add(TcpKind::Delivered { bytes });
        }
    }

    fn end(&mut self, kind: TcpKind, notes: &mut Notes) {
        if !self.over && self.sent.is_some() {
            self.over = true;
            notes.add(kind);
        }
    }

    fn tcb(&self) -> Tcb {
        Tcb {
            snd_una: self.una,
            snd_nxt: self.max,
            snd_max: self.max,
            rcv_nxt: self.nxt,
            cwnd: 0,
            ssthresh: 0,
            snd_wnd: u32::from(self.window) << self.peer_scale,
            dupacks: self.dupacks,
            srtt: Span::ZERO,
            rttvar: Span::ZERO,
            rto: Span::ZERO,
            backoff: 0,
            in_recovery: matches!(self.episode, Some((Episode::Fast, _))),
        }
    }
}

impl Machine for Witness {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        if from == self.side {
            match packet.damage {
                Damage::None => {
                    out.packet_event(Op::Received, from.other(), &packet);
                    self.hears(now, &packet, out);
                }
                // The host sees the wrong checksum and drops it; it is passed on all the same.
                Damage::Ip => {
                    out.packet_event(Op::Dropped(Cause::IpChecksum), from.other(), &packet);
                }
                Damage::Tcp => {
                    out.packet_event(Op::Dropped(Cause::TcpChecksum), from.other(), &packet);
                }
            }
        } else if packet.damage == Damage::None {
            self.sends(now, &packet, out);
        }
        out.send(from.other(), packet);
    }

    fn on_wake(&mut self, _: Time, _: &mut Out) {}

    fn next_wake(&self) -> Option<Time> {
        None
    }
}

#[cfg(test)]
mod tests;
