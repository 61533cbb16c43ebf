//! One connection: two directions, and the information that they give about each other.

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Flags, FlowKey, Segment, Seq};

use crate::acks;
use crate::config::Config;
use crate::copies::{Copies, Doubling, Feedback, Print, fingerprint, flow_print};
use crate::diagnose::{Known, Open, Path, Step, Watch};
use crate::direction::{Acked, Data, Tracker};
use crate::handshake::{Handshake, Unreachable};
use crate::multipath::Multipath;
use crate::reading::{Closing, Connection, Endpoint, Opening, Signature};
use crate::translated::{FirstBytes, Numbers};

/// A packet of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) at: Time,
    pub(crate) flow: FlowKey,
    pub(crate) segment: &'a Segment,
    /// Whether the capture lacks some of its options: each of them may be present or absent.
    pub(crate) cut: bool,
    /// Bytes of payload.
    pub(crate) len: u32,
    /// IPv4 identification.
    pub(crate) ip_id: Option<u16>,
    /// Hops left.
    pub(crate) ttl: u8,
    /// Traffic class.
    pub(crate) tos: u8,
    /// Number of the link on which it was captured.
    pub(crate) link: u32,
    /// Whether its frame repeats one of 802.11.
    pub(crate) retry: bool,
}

/// The state of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Conn {
    pub(crate) number: u32,
    /// The flow from side 0, the sender of the first packet.
    flow: FlowKey,
    began: Time,
    pub(crate) ended: Time,
    /// IPv4 identification and hops left of the first packet.
    identified: (Option<u16>, u8),
    packets: u64,
    /// Whether the first packet was a SYN or SYN-ACK.
    from_syn: bool,
    handshake: Handshake,
    /// The smallest round trip of earlier handshakes between the same hosts.
    elsewhere: Option<Span>,
    /// The sequence number of each side's SYN, or that before its first packet.
    base: [Option<Seq>; 2],
    fins: [bool; 2],
    reset: bool,
    /// Whether each side's SYN was captured, and the scale that it announced.
    scales: [Option<Option<u8>>; 2],
    acks: [acks::Side; 2],
    doubling: [Doubling; 2],
    /// Hash of addresses and ports of each side, the common part of all fingerprints.
    prints: [u64; 2],
    /// The replaced connection between the same ports that was still open, and whether it continues: a PEP splits one.
    pub(crate) half: Option<u32>,
    split: bool,
    /// First bytes of each side's data.
    first_bytes: [Option<FirstBytes>; 2],
    pub(crate) multipath: Multipath,
    /// Repeated SYNs that were counted as copies at first.
    repeated_syns: u64,
    /// Fingerprint of the latest packet that was no copy.
    latest: Option<u64>,
    sides: [Tracker; 2],
    watch: Watch,
}

impl Conn {
    pub(crate) fn new(number: u32, flow: FlowKey, elsewhere: Option<Span>) -> Conn {
        Conn {
            number,
            flow,
            began: Time::ZERO,
            ended: Time::ZERO,
            identified: (None, 0),
            packets: 0,
            from_syn: false,
            handshake: Handshake::default(),
            elsewhere,
            base: [None; 2],
            fins: [false; 2],
            reset: false,
            scales: [None; 2],
            acks: Default::default(),
            doubling: Default::default(),
            prints: [0; 2],
            half: None,
            split: false,
            first_bytes: [None; 2],
            multipath: Multipath::default(),
            repeated_syns: 0,
            latest: None,
            sides: [Tracker::default(), Tracker::default()],
            watch: Watch::default(),
        }
    }

    fn side(&self, flow: FlowKey) -> usize {
        usize::from(flow != self.flow)
    }

    /// Whether a packet of `flow` may be of this connection.
    pub(crate) fn has_ends(&self, flow: FlowKey) -> bool {
        self.flow == flow || self.flow == flow.reversed()
    }

    /// Whether `segment` opens a new connection between the same ports: a SYN with another sequence number, as in
    /// Wireshark.
    pub(crate) fn is_replaced_by(&self, flow: FlowKey, segment: &Segment) -> bool {
        let only_syn = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        only_syn && self.base[self.side(flow)].is_some_and(|base| base != segment.seq)
    }

    /// The window that side `side` announces with `segment`, in bytes; `None` while its scale is not known.
    //= rfc7323#section-2.3: the window of a SYN is not scaled, all others are if both SYNs had the option
    fn window(&self, side: usize, segment: &Segment) -> Option<u64> {
        let window = u64::from(segment.window);
        if segment.flags.has(Flags::SYN) {
            return Some(window);
        }
        match (self.scales[side], self.scales[1 - side]) {
            (Some(None), _) | (_, Some(None)) => Some(window),
            (Some(Some(shift)), Some(Some(_))) => Some(window << shift.min(14)),
            _ => None,
        }
    }

    /// The round trip of the whole path: of the handshake, else the sum of both sides' minima, else of other
    /// connections of the hosts.
    fn round_trip(&self) -> Option<Span> {
        let both = || {
            let [Some(there), Some(back)] = [0, 1].map(|side| self.sides[side].rtt.min()) else {
                return None;
            };
            Some(Span::from_secs_f64(there + back))
        };
        self.handshake.rtt().or_else(both).or(self.elsewhere)
    }

    /// The round trip of the handshake.
    pub(crate) fn handshake_rtt(&self) -> Option<Span> {
        self.handshake.rtt()
    }

    /// Round trips and opener of the handshake, for diagnoses.
    fn path(handshake: &Handshake) -> Path {
        Path {
            rtt: handshake.rtt(),
            feedback: [0, 1].map(|side| handshake.feedback(side)),
            opener: handshake.opener(),
        }
    }

    /// Whether this packet is a copy of one that was captured before.
    fn is_copy(&mut self, copies: &mut Copies, packet: &Packet<'_>) -> bool {
        let &Packet { at, flow, segment, len, ip_id, ttl, link, retry, .. } = packet;
        let side = self.side(flow);
        let own = &self.sides[side];
        let print = Print {
            value: fingerprint(self.prints[side], segment, len, ip_id),
            at,
            link,
            ttl,
            identified: ip_id.is_some_and(|id| id != 0) && own.ids.vary(),
            opens: segment.flags.has(Flags::SYN),
            counts: len > 0 || segment.flags.has(Flags::FIN),
            retry,
        };
        let (handshake, sides) = (&self.handshake, &self.sides);
        let end = segment.seq + len + u32::from(segment.flags.has(Flags::FIN));
        let feedback = || {
            let shortest = [0, 1].map(|side| sides[side].rtt.min().map(Span::from_secs_f64));
            let both = shortest[0].zip(shortest[1]).map(|(there, back)| there + back);
            Feedback {
                least: handshake.feedback(side).into_iter().chain(shortest[side]).min(),
                round_trip: handshake.rtt().into_iter().chain(both).min(),
                acked: own.is_acked(end),
            }
        };
        let [a, b] = &mut self.doubling;
        let (doubling, back) = if side == 0 { (a, &*b) } else { (b, &*a) };
        let copy = copies.is_copy(doubling, back, &print, self.latest, feedback);
        if !copy {
            self.latest = Some(print.value);
        }
        copy
    }

    /// Processes the next packet of this connection. Returns false if it is a copy that the capture made.
    pub(crate) fn packet(
        &mut self,
        config: &Config,
        copies: &mut Copies,
        packet: &Packet<'_>,
    ) -> bool {
        let &Packet { at, flow, segment, .. } = packet;
        if self.packets == 0 {
            self.flow = flow;
            self.prints = [flow_print(&flow), flow_print(&flow.reversed())];
            (self.began, self.ended) = (at, at);
            self.identified = (packet.ip_id, packet.ttl);
            self.from_syn = segment.flags.has(Flags::SYN);
        }
        self.packets += 1;
        let side = self.side(flow);
        if self.is_copy(copies, packet) {
            self.sides[side].reading.copies += 1;
            if segment.flags.has(Flags::SYN) {
                self.ended = self.ended.max(at);
            }
            return false;
        }
        self.analyze(config, packet);
        true
    }

    fn analyze(&mut self, config: &Config, packet: &Packet<'_>) {
        let &Packet { at, flow, segment, cut, len, ip_id, .. } = packet;
        let side = self.side(flow);
        self.ended = self.ended.max(at);
        let syn = segment.flags.has(Flags::SYN);
        let first = if syn { segment.seq } else { Seq(segment.seq.0.wrapping_sub(1)) };
        self.base[side].get_or_insert(first);
        self.handshake.packet(side, at, segment, len);
        let mut signature = None;
        if segment.has_options() {
            self.multipath.packet(side, segment);
            signature = Signature::of(segment);
        }
        if syn {
            let scale = segment.options().window_scale;
            self.scales[side] = (scale.is_some() || !cut).then_some(scale);
            // A connection that was refused or reset begins again.
            if core::mem::take(&mut self.reset) {
                self.fins = [false; 2];
            }
        }
        let window = self.window(side, segment);
        let room = window.unwrap_or(u64::from(segment.window) << 14);
        let since = at.since(self.began);
        let peer_dupacks = self.acks[1 - side].dupacks();
        // A reset without an ACK has the number that its receiver expects, so it starts no new numbers.
        if !segment.flags.has(Flags::RST) && self.sides[side].begins(segment.seq, syn, len) {
            self.acks[side].restart();
            self.watch.restart(side);
        }
        let [a, b] = &mut self.acks;
        let (own, peer) = if side == 0 { (a, &*b) } else { (b, &*a) };
        let signs = own.packet(peer, segment, len, window);
        let scaled = window;
        // Zero is zero with any scale.
        let window = window.or((segment.window == 0).then_some(0));
        let payload = if signs.probe || signs.keep_alive { 0 } else { len };
        let duplicate = signs.duplicate;
        let probe = signs.probe || signs.keep_alive;
        let step = Step { packet, len: payload, window, room, duplicate, probe };
        let handshake = &self.handshake;
        let missed = self.watch.packet(side, step, || Conn::path(handshake));
        let again = len > 0 && self.sides[side].is_behind(segment.seq);
        let plain = len == 0 && !segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST);
        let path = if again || !plain { self.round_trip() } else { None };
        let round_trip = path.filter(|_| again);
        let first_rtt = if len > 0 { self.handshake.rtt() } else { None };
        let full = self.watch.full(side);
        let [a, b] = &mut self.sides;
        let (own, peer) = if side == 0 { (a, b) } else { (b, a) };
        if let Some(id) = ip_id {
            own.ids.add(id);
        }
        let reading = &mut own.reading;
        reading.packets += 1;
        reading.options_cut += u64::from(cut);
        if let Some(signature) = signature {
            (reading.signed, reading.signature) = (reading.signed + 1, Some(signature));
        }
        reading.duplicate_acks += u64::from(signs.duplicate);
        reading.zero_windows += u64::from(signs.zero_window);
        reading.window_probes += u64::from(signs.probe);
        reading.keep_alives += u64::from(signs.keep_alive);
        if !segment.flags.has(Flags::RST) {
            // After a SYN without an answer, or with cut-off options, the scale of windows is unknown.
            reading.window_max = scaled.and(reading.window_max.max(scaled));
        }
        reading.timestamps |= segment.timestamps.is_some();
        if syn {
            let options = segment.options();
            reading.mss = options.mss.or(reading.mss);
            reading.window_scale = options.window_scale.or(reading.window_scale);
            reading.sack_permitted |= options.sack_permitted;
        }
        if segment.flags.has(Flags::ACK) {
            if !segment.flags.has(Flags::RST) {
                peer.room = peer.room.max(room);
            }
            let sack = segment.options().sack;
            if !sack.is_empty() {
                reading.sack_acks += 1;
                reading.dsacks += u64::from(peer.sacked(config, at, segment.ack, sack.as_slice()));
            }
            let echo = segment.timestamps.map(|timestamps| timestamps.echo);
            let (ack, duplicate, answer) = (segment.ack, signs.duplicate, len > 0);
            peer.acked(config, Acked { at, ack, echo, duplicate, answer, plain, path, window });
            if syn {
                peer.declines(ack);
            }
            if segment.window == 0 && !segment.flags.any(Flags::SYN | Flags::RST) {
                peer.closed = true;
            }
        }
        if len > 0 && !signs.probe && !signs.keep_alive && !segment.flags.has(Flags::RST) {
            let before = own.reading.retransmissions;
            own.data(
                config,
                Data {
                    at,
                    seq: segment.seq + u32::from(syn),
                    len,
                    timestamp: segment.timestamps.map(|timestamps| timestamps.value),
                    ip_id,
                    dupacks: peer_dupacks,
                    first_rtt,
                    round_trip,
                    since,
                    full,
                    missed,
                },
            );
            let after = own.reading.retransmissions;
            if after != before {
                // A retransmission gives no round trip, so all samples are from before this packet.
                let rtt = own.rtt.spread();
                self.watch.judged(side, &Known { dupacks: peer_dupacks, rtt, before, after });
            }
        }
        self.fins[side] |= segment.flags.has(Flags::FIN);
        self.reset |= segment.flags.has(Flags::RST);
    }

    /// Entries of the lists in its result.
    pub(crate) fn listed(&self) -> usize {
        self.sides.iter().map(Tracker::listed).sum()
    }

    /// Shortens each of those lists to `most` entries.
    pub(crate) fn shorten(&mut self, most: usize) {
        self.sides.iter_mut().for_each(|side| side.shorten(most));
    }

    /// Entries of the state that later packets need.
    pub(crate) fn pending(&self) -> usize {
        self.watch.pending() + self.sides.iter().map(Tracker::pending).sum::<usize>()
    }

    /// Frees that state.
    pub(crate) fn release(&mut self) {
        self.watch.release();
        self.sides.iter_mut().for_each(Tracker::release);
    }

    /// Whether the capture has packets of it, and not only quotes in ICMP errors.
    pub(crate) fn is_seen(&self) -> bool {
        self.packets > 0
    }

    /// Another connection between the same ports replaces it.
    pub(crate) fn replaced(&mut self) {
        self.handshake.replaced();
    }

    /// Whether both sides or a reset closed it.
    pub(crate) fn is_closed(&self) -> bool {
        self.reset || self.fins == [true; 2]
    }

    /// Distance of a packet's numbers from the next ones of this connection; `None` if neither is known.
    fn distance(&self, flow: FlowKey, segment: &Segment) -> Option<u32> {
        let side = self.side(flow);
        let from = |next: Option<Seq>, number: Seq| Some((number - next?).unsigned_abs());
        let acked = self.acks[1 - side].end().filter(|_| segment.flags.has(Flags::ACK));
        let seq = segment.seq + u32::from(segment.flags.has(Flags::SYN));
        from(self.acks[side].end(), seq).max(from(acked, segment.ack))
    }

    /// Whether a packet belongs to `half`, the connection that this one has replaced. No host has two connections between the
    /// same ports, so there is a PEP between the two: its first sign is the SYN-ACK of `half`, or its next data.
    pub(crate) fn is_of_half(
        &mut self,
        half: &Conn,
        flow: FlowKey,
        segment: &Segment,
        len: u32,
    ) -> bool {
        let (own, of_half) = (self.distance(flow, segment), half.distance(flow, segment));
        let answers = segment.flags.has(Flags::SYN) || len > 0;
        self.split |= answers && of_half == Some(0) && own != Some(0);
        self.split && of_half < own.or(Some(u32::MAX)) && of_half.is_some()
    }

    /// An ICMP error quotes a packet of the connection.
    pub(crate) fn unreachable(&mut self, error: Unreachable) {
        self.handshake.unreachable(error);
    }

    /// Whether a packet has the first bytes of its side's data, and their hash is not known.
    pub(crate) fn lacks_first_bytes(&self, packet: &Packet<'_>) -> bool {
        let side = self.side(packet.flow);
        let first = || self.base[side].is_some_and(|base| base + 1 == packet.segment.seq);
        packet.len > 0 && self.first_bytes[side].is_none() && first()
    }

    pub(crate) fn set_first_bytes(&mut self, flow: FlowKey, bytes: FirstBytes) {
        self.first_bytes[self.side(flow)] = Some(bytes);
    }

    /// Ends and sequence numbers.
    pub(crate) fn numbers(&self) -> Numbers {
        let FlowKey { src, dst, src_port, dst_port } = self.flow;
        let initial = [0, 1].map(|side| self.base[side].filter(|_| self.scales[side].is_some()));
        Numbers {
            ends: [(src, src_port), (dst, dst_port)],
            initial,
            first: self.base,
            first_bytes: self.first_bytes,
            identified: self.identified,
            began: self.began,
            ended: self.ended,
        }
    }

    /// Counts SYNs that are no copies after all as packets, as `copies` shows at the end of the capture. Returns their
    /// number.
    pub(crate) fn count_repeated_syns(&mut self, copies: &Copies) -> u64 {
        let mut all = 0;
        for (side, doubling) in self.sides.iter_mut().zip(&self.doubling) {
            let repeated = doubling.repeated_syns(copies);
            side.reading.copies -= repeated;
            side.reading.packets += repeated;
            all += repeated;
        }
        self.repeated_syns = all;
        all
    }

    /// The result, for a capture that ends at `until`.
    pub(crate) fn finish(self, config: &Config, until: Time) -> Connection {
        let end = |addr: Addr, port| Endpoint { addr: addr.ip(), port };
        let first = end(self.flow.src, self.flow.src_port);
        let second = end(self.flow.dst, self.flow.dst_port);
        let handshake_rtt = self.handshake.rtt();
        let syn_ack = self.handshake.syn_ack_after();
        // If a side does not use the numbers of its unanswered SYN, this was an old duplicate in an open connection.
        let restarted = self.sides.iter().any(|side| side.reading.restarts > 0);
        let opening = match self.handshake.opening() {
            Opening::Unanswered if restarted => Opening::MidConnection,
            opening if self.from_syn => opening,
            _ => Opening::MidConnection,
        };
        let swapped = self.handshake.opener() == Some(1);
        let path = Conn::path(&self.handshake);
        let attempts = self.handshake.attempts(self.repeated_syns, self.ended);
        let [mut a, mut b] = self.sides.map(|side| side.finish(config, self.ended));
        let open = Open { opening, attempts, began: self.began, ended: self.ended, until };
        self.watch.finish(&path, &open, [&mut a, &mut b]);
        let (client, server, to_server, to_client) =
            if swapped { (second, first, b, a) } else { (first, second, a, b) };
        let closing = match (self.reset, self.fins) {
            (true, _) => Closing::Reset,
            (false, [true, true]) => Closing::Fin,
            (false, [false, false]) => Closing::Open,
            _ => Closing::HalfClosed,
        };
        Connection {
            number: self.number,
            client,
            server,
            began: self.began,
            ended: self.ended,
            opening,
            closing,
            handshake_rtt,
            syn_ack,
            syns: attempts.syns,
            syn_acks: attempts.syn_acks,
            translated: None,
            half: self.half.filter(|_| self.split && opening == Opening::Handshake),
            multipath: None,
            to_server,
            to_client,
        }
    }
}
