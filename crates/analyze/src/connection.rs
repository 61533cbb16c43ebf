//! One connection: two directions and what they tell about each other.

use lasthop_proto::units::Time;
use lasthop_proto::wire::{Addr, Flags, FlowKey, Segment, Seq};

use crate::config::Config;
use crate::direction::{Acked, Data, Tracker};
use crate::reading::{Closing, Connection, Endpoint, Opening};
use crate::wireshark::Wireshark;

/// The state of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Conn {
    number: u32,
    /// The flow from side 0, the sender of the first packet.
    flow: FlowKey,
    began: Time,
    ended: Time,
    opening: Opening,
    /// Whether side 1 opened it: the first packet was a SYN-ACK.
    swapped: bool,
    /// The sequence number of each side's SYN, or that before its first packet.
    base: [Option<Seq>; 2],
    fins: [bool; 2],
    reset: bool,
    /// Whether each side's SYN was captured, and the scale that it announced.
    scales: [Option<Option<u8>>; 2],
    wireshark: Wireshark,
    sides: [Tracker; 2],
}

impl Conn {
    pub(crate) fn new(number: u32, flow: FlowKey, at: Time, segment: &Segment) -> Conn {
        let syn = segment.flags.has(Flags::SYN);
        Conn {
            number,
            flow,
            began: at,
            ended: at,
            opening: if syn { Opening::Handshake } else { Opening::MidConnection },
            swapped: syn && segment.flags.has(Flags::ACK),
            base: [None; 2],
            fins: [false; 2],
            reset: false,
            scales: [None; 2],
            wireshark: Wireshark::default(),
            sides: [Tracker::default(), Tracker::default()],
        }
    }

    fn side(&self, flow: FlowKey) -> usize {
        usize::from(flow != self.flow)
    }

    /// Whether `segment` opens a new connection between the same ports, as Wireshark decides it.
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

    pub(crate) fn packet(
        &mut self,
        config: &Config,
        at: Time,
        flow: FlowKey,
        segment: &Segment,
        len: u32,
    ) {
        let side = self.side(flow);
        self.ended = self.ended.max(at);
        let syn = segment.flags.has(Flags::SYN);
        let first = if syn { segment.seq } else { Seq(segment.seq.0.wrapping_sub(1)) };
        self.base[side].get_or_insert(first);
        let marks = self.wireshark.packet(side, at, segment, len);
        let peer_dupacks = self.wireshark.dupacks(1 - side);
        let first_rtt = self.wireshark.first_rtt();
        if syn {
            self.scales[side] = Some(segment.options().window_scale);
        }
        let window = self.window(side, segment);
        let [a, b] = &mut self.sides;
        let (own, peer) = if side == 0 { (a, b) } else { (b, a) };
        own.begins(segment.seq, syn);
        let reading = &mut own.reading;
        reading.packets += 1;
        reading.wireshark.add(marks);
        reading.duplicate_acks += u64::from(marks.duplicate_ack);
        reading.zero_windows += u64::from(marks.zero_window);
        reading.window_probes += u64::from(marks.probe);
        reading.keep_alives += u64::from(marks.keep_alive);
        reading.window_max = reading.window_max.max(window);
        reading.timestamps |= segment.timestamps.is_some();
        if syn {
            let options = segment.options();
            reading.mss = options.mss.or(reading.mss);
            reading.window_scale = options.window_scale.or(reading.window_scale);
            reading.sack_permitted |= options.sack_permitted;
        }
        if segment.flags.has(Flags::ACK) {
            let sack = segment.options().sack;
            if !sack.is_empty() {
                reading.sack_acks += 1;
                reading.dsacks += u64::from(peer.sacked(config, at, segment.ack, sack.as_slice()));
            }
            let echo = segment.timestamps.map(|timestamps| timestamps.echo);
            let (ack, duplicate, answer) = (segment.ack, marks.duplicate_ack, len > 0);
            peer.acked(config, Acked { at, ack, echo, duplicate, answer, window });
            if segment.window == 0 && !segment.flags.any(Flags::SYN | Flags::RST) {
                peer.window_closed();
            }
        }
        if len > 0 && !marks.probe && !marks.keep_alive {
            own.data(
                config,
                Data {
                    at,
                    seq: segment.seq + u32::from(syn),
                    len,
                    timestamp: segment.timestamps.map(|timestamps| timestamps.value),
                    acked: marks.spurious,
                    dupacks: peer_dupacks,
                    first_rtt,
                    since: at.since(self.began),
                },
            );
        }
        self.fins[side] |= segment.flags.has(Flags::FIN);
        self.reset |= segment.flags.has(Flags::RST);
    }

    pub(crate) fn finish(self) -> Connection {
        let end = |addr: Addr, port| Endpoint { addr: addr.ip(), port };
        let first = end(self.flow.src, self.flow.src_port);
        let second = end(self.flow.dst, self.flow.dst_port);
        let handshake_rtt = self.wireshark.first_rtt();
        let syn_ack = self.wireshark.syn_ack();
        let [a, b] = self.sides.map(Tracker::finish);
        let (client, server, to_server, to_client) =
            if self.swapped { (second, first, b, a) } else { (first, second, a, b) };
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
            opening: self.opening,
            closing,
            handshake_rtt,
            syn_ack,
            to_server,
            to_client,
        }
    }
}
