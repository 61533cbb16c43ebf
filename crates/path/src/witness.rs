//! A host outside of lasthop, observed from its packets.
//!
//! A witness has the position of the host in the simulator and passes packets unchanged. From the packets it infers
//! the host's events: first transmissions, retransmissions, in-order delivery, completion. So a trace has the same
//! events for every TCP.
//!
//! Of the control block, only the positions and the peer's window are set; all other fields are zero. The cause of a
//! retransmission is inferred. It is a fast retransmit after three duplicate ACKs, or after fewer with SACK blocks
//! that show a loss. After a silence of [`SILENCE`] it is a timeout. Later retransmissions belong to the same
//! episode, until all data sent before the episode is acknowledged.
//!
//! The TCP of a current host sends a tail loss probe before a timeout, if both ends permit SACK (RFC 8985 7). The
//! witness of a host counts the first retransmission of the last segment as such a probe, if no episode and no
//! report of a loss precedes it.

use lasthop_observe::ranges::Ranges;
use lasthop_proto::agent::flows::Flows;
use lasthop_proto::event::{Cause, EventKind, Op, Tcb, TcpEvent, TcpKind};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Ackp, Addr, Damage, Flags, FlowKey, Packet, Segment, Seq};

/// A retransmission after this time without a transmission or an ACK for new data counts as a timeout: no TCP has a
/// shorter minimum by default.
pub const SILENCE: Span = Span::millis(150);

/// Maximum number of tracked connections; the least recently used is forgotten first.
const CONNECTIONS: usize = 4096;

/// Maximum number of gaps remembered in the received data of a connection.
const HOLES: usize = 256;

#[derive(Clone, Debug)]
pub struct Witness {
    /// Its addresses; empty for every address without another host.
    addrs: Vec<Addr>,
    /// The direction of the path.
    side: Side,
    /// Whether another source reports the events of its TCP as a sender.
    reported: bool,
    /// Whether it may send tail loss probes.
    probes: bool,
    /// By flow from this host to its peer.
    flows: Flows<TrackedConnection>,
}

/// The cause of retransmissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Episode {
    Fast,
    Timeout,
}

/// One connection of the host.
#[derive(Clone, Debug, Default)]
struct TrackedConnection {
    /// First sequence numbers sent and received by the host.
    sent: Option<Seq>,
    received: Option<Seq>,
    /// Highest position sent plus one, and oldest unacknowledged one.
    max: u64,
    una: u64,
    /// The peer's window as in the header, and its scale.
    window: u16,
    peer_scale: u8,
    dupacks: u32,
    sack_shows_loss: bool,
    /// Whether the SYN of the host, and of its peer, permit SACK.
    permits_sack: [bool; 2],
    /// One past the highest position when the last tail loss probe was sent.
    probed: u64,
    /// The cause of retransmissions until everything below the position is acknowledged.
    episode: Option<(Episode, u64)>,
    last_sent: Time,
    /// Time when an ACK last advanced the left edge, which restarts the timer.
    last_acked: Time,
    /// Whether the host announced support of partial acknowledgements.
    knows_partial: bool,
    established: bool,
    /// Position of the host's FIN.
    fin: Option<u64>,
    complete: bool,
    over: bool,
    /// Position of the peer's FIN.
    received_fin: Option<u64>,
    /// Next position expected from the peer, and data beyond it.
    nxt: u64,
    beyond: Ranges,
}

impl Witness {
    /// The witness of the host at `addrs`, with the path to its `side`. With `reported` it reports only transmissions and
    /// deliveries, because another source reports the sender's events.
    pub fn of_host(addrs: Vec<Addr>, side: Side, reported: bool) -> Witness {
        Witness { addrs, side, reported, probes: true, flows: Flows::new(CONNECTIONS) }
    }

    /// The witness of everything beyond this end of the path.
    pub fn of_all(side: Side) -> Witness {
        Witness::of_all_within(side, CONNECTIONS)
    }

    /// The same with a limit of tracked connections.
    pub fn of_all_within(side: Side, connections: usize) -> Witness {
        let flows = Flows::new(connections);
        Witness { addrs: Vec::new(), side, reported: false, probes: false, flows }
    }

    /// Whether packets for `addr` leave the path here.
    pub fn serves(&self, addr: Addr) -> bool {
        self.addrs.is_empty() || self.addrs.contains(&addr)
    }

    /// Number of tracked connections.
    pub fn connections(&self) -> usize {
        self.flows.len()
    }

    /// The largest number of gaps in the received data of a connection.
    pub fn holes(&self) -> usize {
        (0..self.flows.slots()).map(|i| self.flows[i].beyond.count()).max().unwrap_or(0)
    }

    /// The connection with this key, created if new.
    fn connection(&mut self, key: FlowKey) -> &mut TrackedConnection {
        let i = match self.flows.find(key) {
            Some(i) => i,
            None => {
                if self.flows.is_full()
                    && let Some(oldest) = self.flows.oldest()
                {
                    self.flows.remove(oldest);
                }
                let i = self.flows.insert(key);
                self.flows[i] = TrackedConnection::default();
                i
            }
        };
        &mut self.flows[i]
    }

    fn notes(&self) -> Notes {
        Notes { reported: self.reported, probes: self.probes, ..Notes::default() }
    }

    /// Processes a `packet` from the host.
    fn sends(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let (Some(segment), Some(key)) = (packet.segment(), packet.flow()) else { return };
        let (side, mut notes) = (self.side, self.notes());
        let connection = self.connection(key);
        let cause = connection.sends(now, segment, packet.body.len(), &mut notes);
        notes.report(key, connection, out);
        out.packet_event(Op::Originated(cause), side, packet);
    }

    /// Processes a `packet` that reaches the host intact.
    fn receives(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let (Some(segment), Some(key)) = (packet.segment(), packet.flow()) else { return };
        let mut notes = self.notes();
        let connection = self.connection(key.reversed());
        connection.receives(now, segment, packet.body.len(), &mut notes);
        notes.report(key.reversed(), connection, out);
    }
}

/// The events of one segment.
#[derive(Clone, Default)]
struct Notes {
    /// Only deliveries are reported.
    reported: bool,
    /// Tail loss probes are possible.
    probes: bool,
    kinds: [Option<TcpKind>; 4],
}

impl Notes {
    fn add(&mut self, kind: TcpKind) {
        if self.reported && !matches!(kind, TcpKind::Delivered { .. }) {
            return;
        }
        if let Some(free) = self.kinds.iter_mut().find(|kind| kind.is_none()) {
            *free = Some(kind);
        }
    }

    fn report(&self, flow: FlowKey, connection: &TrackedConnection, out: &mut Out) {
        for kind in self.kinds.into_iter().flatten() {
            if out.accepts(kind.level()) {
                out.event(EventKind::Tcp(TcpEvent { flow, kind, tcb: connection.tcb() }));
            }
        }
    }
}

impl TrackedConnection {
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
                let received = if flags.has(Flags::ACK) { self.received } else { None };
                let knows_partial = segment.options().ackp == Some(Ackp::Permitted);
                let peer_scale = if received.is_some() { self.peer_scale } else { 0 };
                let peer_permits = received.is_some() && self.permits_sack[1];
                *self = TrackedConnection {
                    sent: Some(segment.seq),
                    received,
                    peer_scale,
                    knows_partial,
                    permits_sack: [segment.options().sack_permitted, peer_permits],
                    max: 1,
                    nxt: 1,
                    ..TrackedConnection::default()
                };
                notes.add(TcpKind::Opening);
            } else if silent {
                notes.add(TcpKind::Timeout);
            }
            self.last_sent = now;
            return Cause::Control;
        }
        if flags.has(Flags::ACK)
            && let Some(received) = self.received
            && let Some(acked) = segment.ack.unwrap_near(received, self.nxt)
            && acked > self.nxt
        {
            // The witness missed this data, but the host acknowledges it.
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
            // A keep-alive, or an answer to an old segment.
            Cause::WindowProbe
        } else {
            self.again(silent, end, notes)
        };
        self.max = self.max.max(end);
        self.last_sent = now;
        self.check_complete(notes);
        if probe { Cause::WindowProbe } else { cause }
    }

    /// The cause of a retransmission that ends at `end`.
    fn again(&mut self, silent: bool, end: u64, notes: &mut Notes) -> Cause {
        let detected = self.dupacks >= 3 || self.sack_shows_loss;
        let tail = end == self.max && self.una >= self.probed;
        let probes = notes.probes && self.permits_sack == [true; 2];
        if probes && tail && self.episode.is_none() && !detected {
            self.probed = self.max;
            notes.add(TcpKind::TailLossProbe);
            return Cause::TailLossProbe;
        }
        let episode = match self.episode {
            Some((episode, until)) if self.una < until && !silent => (episode, until),
            _ if silent || !detected => {
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

    fn receives(&mut self, now: Time, segment: &Segment, len: u32, notes: &mut Notes) {
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            self.end(TcpKind::Aborted, notes);
            return;
        }
        if flags.has(Flags::SYN) {
            self.received = Some(segment.seq);
            self.nxt = self.nxt.max(1);
            self.peer_scale = segment.options().window_scale.unwrap_or(0).min(14);
            self.permits_sack[1] = segment.options().sack_permitted;
        }
        if flags.has(Flags::ACK) {
            self.receives_ack(now, segment, len, notes);
        }
        let fin = flags.has(Flags::FIN);
        if len > 0 || fin {
            self.receives_data(segment, len, fin, notes);
        }
    }

    fn receives_ack(&mut self, now: Time, segment: &Segment, len: u32, notes: &mut Notes) {
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
            // A report of a duplicate lies below the left edge. Hosts without RACK need more than one report.
            let reports = |block: &(Seq, Seq)| {
                block.0.unwrap_near(origin, ack).is_some_and(|from| from > ack)
            };
            self.sack_shows_loss =
                notes.probes && segment.options().sack.as_slice().iter().any(reports);
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
            self.sack_shows_loss |= !segment.options().sack.is_empty();
            if same_window || self.sack_shows_loss {
                self.dupacks += 1;
                notes.add(TcpKind::DupAck);
            }
        }
    }

    /// The FIN marks the end of the data. It may follow after all data was acknowledged; without data it is the only
    /// item to acknowledge.
    fn check_complete(&mut self, notes: &mut Notes) {
        let all = self.fin.is_some_and(|fin| self.una >= fin.max(2));
        if !self.complete && self.established && all {
            self.complete = true;
            notes.add(TcpKind::Complete);
        }
    }

    fn receives_data(&mut self, segment: &Segment, len: u32, fin: bool, notes: &mut Notes) {
        let first = segment.seq + u32::from(segment.flags.has(Flags::SYN));
        let origin = *self.received.get_or_insert(Seq(first.0.wrapping_sub(1)));
        self.nxt = self.nxt.max(1);
        let Some(start) = first.unwrap_near(origin, self.nxt) else { return };
        let end = start + u64::from(len) + u64::from(fin);
        if fin {
            self.received_fin = Some(end - 1);
        }
        if start > self.nxt {
            // A hostile sender may leave any number of gaps.
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
        let fin = self.received_fin.is_some_and(|fin| (self.nxt..to).contains(&fin));
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
                    self.receives(now, &packet, out);
                }
                // The packet is forwarded, and the host drops it because of the wrong checksum.
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
}

#[cfg(test)]
mod tests;
