//! The sending end.

use crate::wire::emit::emit_prefix;
use crate::wire::options::{self, MAX_LEN};
use crate::wire::{Addr, Damage, Flags, FlowKey, Options, Packet, PacketId, Segment};

use super::{
    A, C, Compressed, CompressionConfig, Context, ECHOED, HeaderBytes, I, Kind, ONE_WAY, P,
    REQUEST_TCP, S, U, W, tcp_checksum,
};

/// State of a connection in a compressor.
#[derive(Clone, Debug)]
struct Slot {
    flow: FlowKey,
    context: Context,
    /// Whether the other end requested a whole header.
    refresh: bool,
}

/// The sending end of a link with compressed headers.
#[derive(Clone, Debug)]
pub struct Compressor {
    config: CompressionConfig,
    /// Indexed by connection number; grows up to the limit.
    slots: Vec<Slot>,
    /// Connection numbers, the most recently used first.
    recent: Vec<u8>,
    /// Connection of the last frame with one.
    last: Option<u8>,
}

impl Compressor {
    /// Asserts that connection numbers are consistent.
    pub fn check(&self) {
        debug_assert!(self.slots.len() <= 256, "connection numbers have eight bits");
        debug_assert_eq!(self.recent.len(), self.slots.len(), "each connection was used once");
        debug_assert!(
            self.recent.iter().all(|number| usize::from(*number) < self.slots.len()),
            "a connection number without a connection"
        );
        debug_assert!(
            self.last.is_none_or(|last| usize::from(last) < self.slots.len()),
            "the last frame has an unknown connection"
        );
    }

    /// A compressor without connections.
    pub fn new(config: CompressionConfig) -> Compressor {
        Compressor { config, slots: Vec::new(), recent: Vec::new(), last: None }
    }

    /// The form of `packet` on the link. The packet must be the next frame.
    //= rfc1144#section-3.2.3
    pub fn compress(&mut self, packet: &Packet) -> Compressed {
        self.compress_as(packet, None)
    }

    /// Like [`Compressor::compress`], for a packet whose IPv4 identification is known.
    pub fn compress_numbered(&mut self, packet: &Packet, ip_id: u16) -> Compressed {
        self.compress_as(packet, Some(ip_id))
    }

    /// Handles the other end's request for whole headers, the bytes of a CONTEXT_STATE message. Ignores other
    /// bytes.
    pub fn on_request(&mut self, bytes: &[u8]) {
        let Some((&[REQUEST_TCP, count], connections)) = bytes.split_first_chunk() else { return };
        for &connection in connections.iter().take(count.into()) {
            if let Some(slot) = self.slots.get_mut(usize::from(connection)) {
                slot.refresh = true;
            }
        }
    }

    fn compress_as(&mut self, packet: &Packet, ip_id: Option<u16>) -> Compressed {
        let (Some(segment), Some(flow)) = (compressible(packet), packet.flow()) else {
            return Compressed::IP;
        };
        let (number, known) = self.slot(flow);
        let before = known.then(|| self.slots.get(usize::from(number))).flatten();
        let ip_id = ip_id.unwrap_or_else(|| before.map_or(0, |s| s.context.ip_id.wrapping_add(1)));
        let name = (!self.config.recovery.omits_connection() || self.last != Some(number))
            .then_some(number);
        let compressed = before
            .filter(|slot| !slot.refresh)
            .and_then(|slot| difference(&slot.context, packet, segment, ip_id, name))
            .and_then(|difference| difference.header(packet, segment, &self.config));
        if let Some(header) = compressed
            && let Some(slot) = self.slots.get_mut(usize::from(number))
        {
            slot.context.follow(packet, segment, ip_id);
            self.last = Some(number);
            return Compressed { kind: Kind::CompressedTcp, header };
        }
        match self.whole(number, packet, segment, ip_id) {
            Some(header) => {
                let slot =
                    Slot { flow, context: Context::of(packet, segment, ip_id), refresh: false };
                match self.slots.get_mut(usize::from(number)) {
                    Some(place) => *place = slot,
                    None => self.slots.push(slot),
                }
                if !known {
                    self.recent.retain(|&other| other != number);
                    self.recent.insert(0, number);
                }
                self.last = Some(number);
                Compressed { kind: Kind::UncompressedTcp, header }
            }
            None => Compressed::IP,
        }
    }

    /// The connection number of `flow`, and whether it is known already. Otherwise the least recently used
    /// number.
    fn slot(&mut self, flow: FlowKey) -> (u8, bool) {
        // Nearly always the first or second: the RFC also uses a linear search.
        let same =
            |&number: &u8| self.slots.get(usize::from(number)).is_some_and(|s| s.flow == flow);
        if let Some(place) = self.recent.iter().position(same) {
            self.recent[..=place].rotate_right(1);
            return (self.recent[0], true);
        }
        if self.slots.len() < self.config.slots() {
            return (self.slots.len() as u8, false);
        }
        (self.recent.last().copied().unwrap_or(0), false)
    }

    /// A whole header with the connection number in its protocol field.
    fn whole(
        &self,
        number: u8,
        packet: &Packet,
        segment: &Segment,
        ip_id: u16,
    ) -> Option<HeaderBytes> {
        let checksum =
            tcp_checksum(packet.src, packet.dst, segment, &packet.body, self.config.coverage)?;
        let mut named = packet.clone();
        // The identification is taken from the packet's identity.
        named.id = PacketId(ip_id.into());
        let mut bytes = Vec::with_capacity(super::MAX_HEADER);
        emit_prefix(&named, 0, &mut bytes).ok()?;
        //= rfc1144#section-3.2.3: the IP checksum stays that of the original header
        *bytes.get_mut(9)? = number;
        bytes.get_mut(36..38)?.copy_from_slice(&checksum.to_be_bytes());
        let mut header = HeaderBytes::EMPTY;
        header.push(&bytes);
        (header.len() == bytes.len()).then_some(header)
    }
}

/// The segment, if a compressor stores state for such packets.
//= rfc1144#section-3.2.3: SYN, FIN, RST, segments without ACK and all that is not TCP go as IP
fn compressible(packet: &Packet) -> Option<&Segment> {
    let segment = packet.segment()?;
    let fits = segment.header_len() <= 20 + MAX_LEN as u32 && packet.wire_len() <= 0xffff;
    let plain = segment.flags.has(Flags::ACK)
        && !segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST)
        && packet.damage == Damage::None;
    let v4 = |addr: Addr| addr.is_v4();
    (fits && plain && v4(packet.src) && v4(packet.dst) && writable(segment)).then_some(segment)
}

/// Whether the encoding of the options is exact.
fn writable(segment: &Segment) -> bool {
    !segment.has_options()
        || options::write(segment.timestamps, segment.options())
            .is_ok_and(|written| 20 + written.as_slice().len() as u32 == segment.header_len())
}

impl Context {
    fn of(packet: &Packet, segment: &Segment, ip_id: u16) -> Context {
        Context {
            src: packet.src,
            dst: packet.dst,
            tos: packet.tos,
            ttl: packet.ttl,
            ip_id,
            segment: segment.clone(),
            payload: packet.body.len(),
        }
    }

    /// Replaces the header by that of `packet`, which differs only in fields that a compressed header
    /// transmits.
    fn follow(&mut self, packet: &Packet, segment: &Segment, ip_id: u16) {
        self.ip_id = ip_id;
        self.payload = packet.body.len();
        let own = &mut self.segment;
        own.seq = segment.seq;
        own.ack = segment.ack;
        own.flags = segment.flags;
        own.window = segment.window;
        if own.options().urgent != segment.options().urgent {
            own.options_mut().urgent = segment.options().urgent;
        }
    }
}

/// Content of a compressed header, without the checksum.
struct Difference {
    mask: u8,
    name: Option<u8>,
    deltas: HeaderBytes,
}

impl Difference {
    fn header(
        self,
        packet: &Packet,
        segment: &Segment,
        config: &CompressionConfig,
    ) -> Option<HeaderBytes> {
        let checksum =
            tcp_checksum(packet.src, packet.dst, segment, &packet.body, config.coverage)?;
        let mut header = HeaderBytes::EMPTY;
        match self.name {
            Some(number) => header.push(&[self.mask | C, number]),
            None => header.push(&[self.mask]),
        }
        header.push(&checksum.to_be_bytes());
        header.push(&self.deltas);
        Some(header)
    }
}

/// Differences of `packet` to `old`; `None` if it needs a whole header.
fn difference(
    old: &Context,
    packet: &Packet,
    segment: &Segment,
    ip_id: u16,
    name: Option<u8>,
) -> Option<Difference> {
    let (was, payload) = (&old.segment, packet.body.len());
    let same = packet.tos == old.tos
        && packet.ttl == old.ttl
        && segment.flags.ace() == was.flags.ace()
        && same_options(segment, was);
    if !same {
        return None;
    }
    let mut mask = 0;
    let mut deltas = HeaderBytes::EMPTY;
    let urgent = segment.options().urgent;
    if segment.flags.has(Flags::URG) {
        mask |= U;
        deltas.push_delta(urgent);
    } else if urgent != was.options().urgent {
        return None;
    }
    let mut changed = |bit: u8, delta: u16| {
        if delta != 0 {
            mask |= bit;
            deltas.push_delta(delta);
        }
    };
    changed(W, segment.window.wrapping_sub(was.window));
    // A backward step is a large forward step.
    let ack = u16::try_from(segment.ack.0.wrapping_sub(was.ack.0)).ok()?;
    changed(A, ack);
    let seq = u16::try_from(segment.seq.0.wrapping_sub(was.seq.0)).ok()?;
    changed(S, seq);
    let follows = u32::from(seq) == old.payload;
    match mask {
        // Data right after an ACK without data. All other packets without a change are retransmissions of
        // data or of an ACK, or window probes: the other end may have missed the first one.
        //= rfc1144#section-3.2.3
        0 if payload > 0 && old.payload == 0 => {}
        0 | ECHOED | ONE_WAY => return None,
        mask_of if mask_of == S | A && follows && seq == ack => {
            (mask, deltas) = (ECHOED, HeaderBytes::EMPTY);
        }
        S if follows => (mask, deltas) = (ONE_WAY, HeaderBytes::EMPTY),
        _ => {}
    }
    let step = ip_id.wrapping_sub(old.ip_id);
    if step != 1 {
        mask |= I;
        deltas.push_delta(step);
    }
    if segment.flags.has(Flags::PSH) {
        mask |= P;
    }
    Some(Difference { mask, name, deltas })
}

/// Whether two headers have the same options, except for the urgent pointer, which is stored with them.
fn same_options(a: &Segment, b: &Segment) -> bool {
    if a.timestamps != b.timestamps {
        return false;
    }
    if !a.has_options() && !b.has_options() {
        return true;
    }
    let urgent = a.options().urgent;
    *a.options() == Options { urgent, ..b.options().clone() }
}
