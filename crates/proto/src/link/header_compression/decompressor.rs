//! The receiving end.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::wire::parse::{Mode, parse, view};
use crate::wire::protocol::PROTOCOL_TCP;
use crate::wire::{Body, Damage, Flags, Packet, Transport};

use super::{
    A, C, CompressionConfig, Context, ECHOED, I, Kind, Lost, MAX_HEADER, ONE_WAY, P, REQUEST_TCP,
    Recovery, S, U, W,
};

/// State of a connection in a decompressor.
#[derive(Clone, Debug, Default)]
struct Slot {
    context: Option<Context>,
    /// Frames dropped while a whole header is requested.
    waiting: u32,
}

/// The receiving end of a link with compressed headers. It stores at most one header per connection number.
#[derive(Clone, Debug)]
pub struct Decompressor {
    config: CompressionConfig,
    /// Indexed by connection number; grows up to the limit.
    slots: Vec<Slot>,
    /// Connection of the last frame with a number.
    last: Option<u8>,
    /// Set after a lost frame: frames without a connection number are dropped.
    toss: bool,
    /// Connections that need a request for a whole header.
    requests: VecDeque<u8>,
}

impl Decompressor {
    /// Asserts that connection numbers are consistent.
    pub fn check(&self) {
        debug_assert!(self.slots.len() <= 256, "connection numbers have eight bits");
        debug_assert!(
            self.requests.len() <= self.slots.len().max(256),
            "more requests than connections"
        );
        debug_assert!(
            self.last.is_none_or(|last| usize::from(last) < self.slots.len()),
            "the last frame has an unknown connection"
        );
    }

    /// A decompressor without connections.
    pub fn new(config: CompressionConfig) -> Decompressor {
        Decompressor {
            config,
            slots: Vec::new(),
            last: None,
            toss: false,
            requests: VecDeque::new(),
        }
    }

    /// Restores the packet of a frame: `header` is the part before the payload, `body` the payload. For
    /// [`Kind::Ip`] `header` is the whole packet.
    ///
    /// The packet has no identity. If the checksum does not match header and payload, the ends are
    /// desynchronised or the payload was damaged. Under [`Recovery::Retransmission`] such a packet is
    /// forwarded with [`Damage::Tcp`], which its receiver detects.
    ///
    /// # Errors
    /// See [`Lost`]. No input causes a panic, or storage of more than one header per connection.
    //= rfc1144#section-3.2.4
    pub fn decompress(&mut self, kind: Kind, header: &[u8], body: Body) -> Result<Packet, Lost> {
        let result = match kind {
            Kind::Ip => parse(&Arc::from(header), 0, true).map_err(|_| Lost::Malformed),
            Kind::UncompressedTcp => self.whole(header, body),
            Kind::CompressedTcp => self.compressed(header, body),
        };
        if result == Err(Lost::Malformed) && kind != Kind::Ip {
            self.lost();
        }
        result
    }

    /// Records a detected loss of a frame on the link.
    //= rfc1144#section-4.1: the framer notifies the decompressor of a frame with an error
    pub fn lost(&mut self) {
        self.toss = true;
    }

    /// A request to the compressor, if a whole header is needed: RFC 2507's CONTEXT_STATE. Requests may be
    /// lost too: without a header, the 2nd, 4th, 8th ... dropped frame repeats the request.
    pub fn request(&mut self) -> Option<[u8; super::REQUEST_LEN as usize]> {
        self.requests.pop_front().map(|connection| [REQUEST_TCP, 1, connection])
    }

    /// The IPv4 identification of the last restored packet, which a [`Packet`] does not store.
    pub fn ip_id(&self) -> Option<u16> {
        let slot = self.slots.get(usize::from(self.last?))?;
        slot.context.as_ref().map(|context| context.ip_id)
    }

    fn whole(&mut self, header: &[u8], body: Body) -> Result<Packet, Lost> {
        let mut bytes = [0; MAX_HEADER];
        let bytes = bytes.get_mut(..header.len()).ok_or(Lost::Malformed)?;
        bytes.copy_from_slice(header);
        let protocol = bytes.get_mut(9).ok_or(Lost::Malformed)?;
        let number = core::mem::replace(protocol, PROTOCOL_TCP);
        if usize::from(number) >= self.config.slots() {
            return Err(Lost::Malformed);
        }
        let mode = Mode { verify: true, wire_len: Some(bytes.len() + body.len() as usize) };
        let seen = view(bytes, mode).map_err(|_| Lost::Malformed)?;
        let fits = seen.body_at == bytes.len()
            && seen.body_len == body.len()
            && seen.src.is_v4()
            && seen.damage != Damage::Ip
            && seen.bad_option.is_none()
            // IP options are not stored.
            && bytes.first() == Some(&0x45);
        let (true, Transport::Tcp(segment)) = (fits, seen.transport) else {
            return Err(Lost::Malformed);
        };
        let checksum = u16::from_be_bytes([bytes[36], bytes[37]]);
        let context = Context {
            src: seen.src,
            dst: seen.dst,
            tos: seen.tos,
            ttl: seen.ttl,
            ip_id: seen.ip_id,
            segment,
            payload: body.len(),
        };
        let right = context.checksum(&body, self.config.coverage) == Some(checksum);
        let packet = context.packet(body, if right { Damage::None } else { Damage::Tcp });
        *self.slot(number) = Slot { context: Some(context), waiting: 0 };
        self.last = Some(number);
        self.toss = false;
        Ok(packet)
    }

    fn slot(&mut self, number: u8) -> &mut Slot {
        let number = usize::from(number);
        if self.slots.len() <= number {
            self.slots.resize_with(number + 1, Slot::default);
        }
        &mut self.slots[number]
    }

    fn compressed(&mut self, header: &[u8], body: Body) -> Result<Packet, Lost> {
        let mut reader = Reader(header);
        let mask = reader.byte()?;
        let number = if mask & C != 0 {
            let number = reader.byte()?;
            if usize::from(number) >= self.config.slots() {
                return Err(Lost::Malformed);
            }
            self.toss = false;
            self.last = Some(number);
            number
        } else if self.toss {
            return Err(Lost::Tossed);
        } else {
            self.last.ok_or(Lost::Tossed)?
        };
        let Config { recovery, coverage, .. } = self.config;
        let slot = self.slot(number);
        let Some(old) = slot.context.as_ref().filter(|_| slot.waiting == 0) else {
            let lost = match slot.context {
                Some(_) => Lost::OutOfStep(number),
                None => Lost::NoContext(number),
            };
            self.ask(number);
            return Err(lost);
        };
        let checksum = reader.word()?;
        let delta = Delta::read(mask, old.payload, &mut reader)?;
        let mut next = old.clone();
        delta.apply(&mut next, body.len());
        if u64::from(next.segment.header_len()) + u64::from(body.len()) + 20 > 0xffff {
            return Err(Lost::Malformed);
        }
        if next.checksum(&body, coverage) == Some(checksum) {
            let packet = next.packet(body, Damage::None);
            slot.context = Some(next);
            return Ok(packet);
        }
        match recovery {
            Recovery::Retransmission => {
                let packet = next.packet(body, Damage::Tcp);
                slot.context = Some(next);
                Ok(packet)
            }
            Recovery::Twice => {
                let mut twice = next.clone();
                delta.apply(&mut twice, body.len());
                let right = twice.checksum(&body, coverage) == Some(checksum);
                let packet = right.then(|| twice.packet(body, Damage::None));
                // If the packet cannot be restored, the context advances nevertheless. It remains behind by
                // the lost difference, and an equal later difference repairs it.
                slot.context = Some(if right { twice } else { next });
                packet.ok_or(Lost::OutOfStep(number))
            }
            Recovery::Feedback => {
                self.ask(number);
                Err(Lost::OutOfStep(number))
            }
        }
    }

    /// Handles a dropped frame of this connection: requests a whole header, if the recovery does that.
    fn ask(&mut self, number: u8) {
        if !self.config.recovery.requests_headers() {
            return;
        }
        let slot = self.slot(number);
        slot.waiting = slot.waiting.saturating_add(1);
        if slot.waiting.is_power_of_two() && !self.requests.contains(&number) {
            self.requests.push_back(number);
        }
    }
}

use CompressionConfig as Config;

/// Differences in a compressed header.
struct Delta {
    seq: u16,
    ack: u16,
    window: u16,
    ip_id: u16,
    urgent: Option<u16>,
    push: bool,
}

impl Delta {
    fn read(mask: u8, payload: u32, reader: &mut Reader<'_>) -> Result<Delta, Lost> {
        let mut delta =
            Delta { seq: 0, ack: 0, window: 0, ip_id: 1, urgent: None, push: mask & P != 0 };
        // A packet has less than 64 KiB.
        let payload = payload as u16;
        match mask & (S | A | W | U) {
            ECHOED => (delta.seq, delta.ack) = (payload, payload),
            ONE_WAY => delta.seq = payload,
            changes => {
                let mut read = |bit: u8| match changes & bit {
                    0 => Ok(None),
                    _ => reader.delta().map(Some),
                };
                delta.urgent = read(U)?;
                delta.window = read(W)?.unwrap_or(0);
                delta.ack = read(A)?.unwrap_or(0);
                delta.seq = read(S)?.unwrap_or(0);
            }
        }
        if mask & I != 0 {
            delta.ip_id = reader.delta()?;
        }
        if reader.0.is_empty() { Ok(delta) } else { Err(Lost::Malformed) }
    }

    fn apply(&self, context: &mut Context, payload: u32) {
        context.ip_id = context.ip_id.wrapping_add(self.ip_id);
        context.payload = payload;
        let segment = &mut context.segment;
        segment.seq = segment.seq + u32::from(self.seq);
        segment.ack = segment.ack + u32::from(self.ack);
        segment.window = segment.window.wrapping_add(self.window);
        let mut set = |flag: Flags, on: bool| {
            segment.flags.0 = segment.flags.0 & !flag.0 | if on { flag.0 } else { 0 };
        };
        set(Flags::PSH, self.push);
        set(Flags::URG, self.urgent.is_some());
        if let Some(urgent) = self.urgent.filter(|urgent| *urgent != segment.options().urgent) {
            segment.options_mut().urgent = urgent;
        }
    }
}

/// Reads bytes from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, Lost> {
        let (&first, rest) = self.0.split_first().ok_or(Lost::Malformed)?;
        self.0 = rest;
        Ok(first)
    }

    fn word(&mut self) -> Result<u16, Lost> {
        Ok(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    fn delta(&mut self) -> Result<u16, Lost> {
        match self.byte()? {
            0 => self.word(),
            small => Ok(small.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Compressor, Coverage};
    use super::*;
    use crate::wire::emit::emit;
    use crate::wire::{Addr, Flags, Segment, Seq, Timestamps};

    const STAMPS: Timestamps = Timestamps { value: 7, echo: 9 };

    fn packet(seq: u32, len: u32, window: u16, timestamps: Option<Timestamps>) -> Packet {
        let mut segment = Segment::new(1, 23, Seq(seq), Seq(1), Flags::ACK);
        (segment.window, segment.timestamps) = (window, timestamps);
        let body = Body::Pattern { stream: 1, offset: seq.into(), len };
        Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, body)
    }

    /// Both ends after `first`, and the header of `next`.
    fn header_after(config: Config, first: &Packet, next: &Packet) -> (Decompressor, Vec<u8>) {
        let (mut compressor, mut decompressor) =
            (Compressor::new(config), Decompressor::new(config));
        let sent = compressor.compress(first);
        decompressor.decompress(sent.kind, &sent.header, first.body.clone()).unwrap();
        let sent = compressor.compress(next);
        assert_eq!(sent.kind, Kind::CompressedTcp);
        (decompressor, sent.header.to_vec())
    }

    /// A real peer computes TCP's own checksum: over the pseudo header, the header with its options, and the
    /// payload.
    //= rfc1144#section-3.2.2: the TCP checksum is sent as it is
    #[test]
    fn the_compressed_header_carries_the_tcp_checksum() {
        for recovery in [Recovery::Retransmission, Recovery::Twice, Recovery::Feedback] {
            for len in [0, 1, 2, 99, 255, 256, 1000, 40_000] {
                for timestamps in [None, Some(STAMPS)] {
                    let config = Config { recovery, ..Config::default() };
                    let next = packet(1 + len, len, 8193, timestamps);
                    let (_, header) =
                        header_after(config, &packet(1, len, 8192, timestamps), &next);
                    let at = if header[0] & C != 0 { 2 } else { 1 };
                    let mut whole = Vec::new();
                    emit(&next, &mut whole).unwrap();
                    assert_eq!(header[at..at + 2], whole[36..38], "{len} {timestamps:?}");
                }
            }
        }
    }

    /// IP's total length has 16 bits: headers of 40 bytes, or 52 with timestamps, and 65,535 bytes in total.
    #[test]
    fn a_payload_beyond_the_ip_length_limit_is_refused() {
        let config = Config { coverage: Coverage::Headers, ..Config::default() };
        for (timestamps, longest) in [(None, 65_495), (Some(STAMPS), 65_483)] {
            for (len, fits) in [(longest - 1, true), (longest, true), (longest + 1, false)] {
                let [first, next] = [1, 101].map(|seq| packet(seq, 100, 8192, timestamps));
                let (mut decompressor, header) = header_after(config, &first, &next);
                let body = Body::Pattern { stream: 1, offset: 101, len };
                let got = decompressor.decompress(Kind::CompressedTcp, &header, body);
                assert_eq!(got.err(), (!fits).then_some(Lost::Malformed), "{len} {timestamps:?}");
            }
        }
    }
}
