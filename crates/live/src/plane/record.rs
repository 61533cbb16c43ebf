//! Records of the ring as packets, and cached packets as frames.

use lasthop_proto::machine::Side;
use lasthop_proto::wire::checksum::{Sum, checksum};
use lasthop_proto::wire::parse::{Mode, View, view};
use lasthop_proto::wire::protocol::PROTOCOL_TCP;
use lasthop_proto::wire::{Body, Damage, Flags, Packet, PacketId, Parts, Transport};

use super::order::Order;
use super::shared::{DIVERTED, PASSED, RECORD, Record};
use super::{LATE, MARK, Plane, RESENT, RETAINED, STALE, STEP};
use crate::frame::{self, Outgoing};
use crate::header::{VNET, VnetHeader, network_at};
use crate::offload::ip_header_len;
use crate::sys::bpf::HEADER;

/// Offset of the checksum in a TCP header.
const CHECKSUM: usize = 16;

/// A packet from the ring.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Time of arrival in nanoseconds of the system's monotonic clock.
    pub at: u64,
    /// Side at which it arrived.
    pub side: Side,
    /// Position of its record in the ring.
    pub place: u64,
    /// Whether it must not be forwarded: the kernel has already forwarded it, or it is too old.
    pub forwarded: bool,
    /// Whether the program waits until it is handled.
    pub diverted: bool,
    /// Whether the agent processes it after all packets that the kernel has forwarded before.
    pub last: bool,
    /// The packet; `None` if it is invalid.
    pub packet: Option<Packet>,
}

impl Plane {
    /// The next packet in the ring; `now` is the system's monotonic time.
    pub(crate) fn take(&mut self, now: u64) -> Option<Taken> {
        loop {
            let place = self.ring.advance()?;
            self.active = true;
            if self.marks.back().is_none_or(|last| place - last >= MARK) {
                self.marks.push_back(place);
                let read = self.ring.position();
                self.control.read.store(read, std::sync::atomic::Ordering::Release);
                // Report progress before the next diverted packet as well.
                self.beat();
            }
            let Some(bytes) = self.ring.record(place) else { continue };
            let Some(record) = Record::read(bytes) else { continue };
            let age = now.saturating_sub(record.at);
            let diverted = record.act == DIVERTED;
            let late = diverted && age > LATE.0;
            self.own.late += u64::from(late);
            if age > STALE.0 {
                // The station was stopped, or had no processor for this time.
                if diverted {
                    self.handled();
                } else {
                    self.own.stale += 1;
                    self.outdated = true;
                }
                continue;
            }
            let frame = frame_of(bytes, record);
            let packet = frame.and_then(|frame| packet(frame, record, place, &mut self.order));
            let side = if record.side == 0 { Side::Left } else { Side::Right };
            let (forwarded, last) = (!diverted || late, diverted || record.act == PASSED);
            return Some(Taken { at: record.at, side, place, forwarded, diverted, last, packet });
        }
    }

    /// Records that a diverted packet was handled.
    pub(crate) fn handled(&mut self) {
        self.done += 1;
        self.control.done.store(self.done, std::sync::atomic::Ordering::SeqCst);
        self.beat();
    }

    /// Position in the ring up to which cached packets are outdated, since the station has missed records. Returned
    /// once.
    pub(crate) fn outdated(&mut self) -> Option<u64> {
        core::mem::take(&mut self.outdated).then(|| self.ring.position())
    }

    /// Position up to which the ring must be released now, if any. The caller removes cached packets before it, and
    /// then calls [`Plane::expire`].
    pub(crate) fn expires(&self) -> Option<u64> {
        let keep = self.ring.position().saturating_sub(RETAINED);
        if keep < self.ring.released() + STEP {
            return None;
        }
        let after = self.marks.partition_point(|mark| *mark <= keep);
        after.checked_sub(1).and_then(|i| self.marks.get(i).copied())
    }

    /// Releases the ring before the mark `before`.
    pub(crate) fn expire(&mut self, before: u64, forgotten: u64) {
        self.own.expired_bytes += forgotten;
        self.ring.release(before);
        let gone = self.marks.partition_point(|mark| *mark < before);
        self.marks.drain(..gone);
    }

    /// The unchanged frame of the record at `place`.
    pub(crate) fn frame(&self, place: u64) -> Option<Outgoing> {
        let (frame, record) = self.whole_frame(place)?;
        Some(Outgoing::New(whole(frame, record)))
    }

    /// The frame of the record at `place` after an agent's changes of its `packet`.
    pub(crate) fn judged(&self, place: u64, packet: &Packet) -> Option<Outgoing> {
        let (frame, record) = self.whole_frame(place)?;
        let at = network_at(frame)?;
        let came = look(frame, at, record, false)?;
        if came.transport == packet.transport || !packet.body.is_empty() {
            return Some(Outgoing::New(whole(frame, record)));
        }
        frame::write(packet, &tagged(frame.get(VNET..at)?, record))
    }

    fn whole_frame(&self, place: u64) -> Option<(&[u8], Record)> {
        let bytes = self.ring.record(place)?;
        let record = Record::read(bytes)?;
        let frame = frame_of(bytes, record).filter(|_| record.captured == record.len)?;
        Some((frame, record))
    }

    /// The link-layer header of the record at `place`.
    pub(crate) fn link_header(&self, place: u64) -> Option<Vec<u8>> {
        let bytes = self.ring.record(place)?;
        let record = Record::read(bytes)?;
        let frame = frame_of(bytes, record)?;
        let at = network_at(frame)?;
        Some(tagged(frame.get(VNET..at)?, record))
    }

    /// The frame of a packet with its bytes in the ring: the original frame, or a part of it if the packet is a part.
    /// `None` if the position was released.
    pub(crate) fn cached(&self, packet: &Packet) -> Option<Outgoing> {
        let body = packet.body.held_at()?;
        let before = self.marks.partition_point(|mark| *mark <= body);
        let mut place = *self.marks.get(before.checked_sub(1)?)?;
        // Records are contiguous; there are a few dozen between two marks.
        let mut next = self.ring.after(place)?;
        while next <= body {
            place = next;
            next = self.ring.after(place)?;
        }
        let (frame, record) = self.whole_frame(place)?;
        let at = network_at(frame)?;
        let seen = sound(frame, at, record)?;
        let from = body.checked_sub(place + HEADER + (RECORD - VNET) as u64)? as usize;
        let mut resent = self.resent.borrow_mut();
        if let Some(flow) = packet.flow()
            && resent.len() < RESENT
            && !resent.contains(&flow)
        {
            resent.push(flow);
        }
        let same = seen.transport == packet.transport || packet.pieces() > 1;
        if at + seen.body_at == from && seen.body_len == packet.body.len() && same {
            return Some(Outgoing::New(whole(frame, record)));
        }
        let piece = frame.get(from..from + packet.body.len() as usize)?;
        let packet = packet.clone().with(|packet| packet.body = Body::copy_of(piece));
        frame::write(&packet, &tagged(frame.get(VNET..at)?, record))
    }
}

/// The frame of a record, after the space of a virtio header.
fn frame_of(bytes: &[u8], record: Record) -> Option<&[u8]> {
    bytes.get(RECORD - VNET..RECORD + record.captured as usize)
}

fn look(frame: &[u8], at: usize, record: Record, verify: bool) -> Option<View> {
    let whole = record.captured == record.len;
    let wire_len = (!whole).then(|| (VNET + record.len as usize).saturating_sub(at));
    let seen = view(frame.get(at..)?, Mode { verify, wire_len }).ok()?;
    (seen.bad_option.is_none() && matches!(seen.transport, Transport::Tcp(_))).then_some(seen)
}

/// Whether the checksum of a TCP packet covers only the pseudo-header, so that a network card must complete it.
fn is_partial(frame: &[u8], at: usize, seen: &View) -> Option<bool> {
    let start = at + ip_header_len(frame, at)?;
    let field = frame.get(start + CHECKSUM..start + CHECKSUM + 2)?;
    let mut sum = Sum::default();
    let len = (at + seen.body_at - start) as u32 + seen.body_len;
    sum.pseudo_header(seen.src, seen.dst, PROTOCOL_TCP, len);
    Some(field == sum.fold().to_be_bytes())
}

/// Whether the packet is complete, with a checksum that was not verified.
fn is_unverified(frame: &[u8], at: usize, record: Record, seen: &View) -> Option<bool> {
    let is_candidate = record.captured == record.len && record.gso_size == 0 && !record.verified;
    Some(is_candidate && !is_partial(frame, at, seen)?)
}

/// The headers of a packet with a correct checksum.
fn sound(frame: &[u8], at: usize, record: Record) -> Option<View> {
    let seen = look(frame, at, record, false)?;
    if is_unverified(frame, at, record, &seen)? {
        return look(frame, at, record, true).filter(|seen| seen.damage == Damage::None);
    }
    Some(seen)
}

fn packet(frame: &[u8], record: Record, place: u64, order: &mut Order) -> Option<Packet> {
    let at = network_at(frame)?;
    let mut seen = look(frame, at, record, false)?;
    let ip = frame.get(at..at + ip_header_len(frame, at)?)?;
    if seen.src.is_v4() && checksum(ip) != 0 {
        return None;
    }
    if is_unverified(frame, at, record, &seen)? {
        let verified = || look(frame, at, record, true);
        match &seen.transport {
            Transport::Tcp(segment) if record.side == 0 && record.act != DIVERTED => {
                let ends = [seen.src, seen.dst];
                let intact = || verified().is_some_and(|seen| seen.damage == Damage::None);
                if !order.trusts(ends, segment, seen.body_len, intact) {
                    seen = verified()?;
                }
            }
            _ => seen = verified()?,
        }
    }
    let body_at = place + HEADER + (RECORD - VNET + at + seen.body_at) as u64;
    let body = if seen.body_len == 0 { Body::EMPTY } else { Body::held(body_at, seen.body_len) };
    Some(Packet::new(Parts {
        id: PacketId(0),
        src: seen.src,
        dst: seen.dst,
        transport: seen.transport,
        body,
        tos: seen.tos,
        label: seen.label,
        ttl: seen.ttl,
        damage: if record.gso_size == 0 { seen.damage } else { Damage::None },
        urgent: false,
        piece: record.gso_size,
        fragmentable: false,
    }))
}

/// The frame with the VLAN tag from its record.
fn tagged(head: &[u8], record: Record) -> Vec<u8> {
    let mut bytes = head.to_vec();
    if let Some(tag) = record.vlan.filter(|_| head.len() >= 12) {
        bytes.splice(12..12, tag);
    }
    bytes
}

/// The complete frame, with the offload information for the network card.
fn whole(frame: &[u8], record: Record) -> Vec<u8> {
    let mut bytes = vec![0; VNET];
    bytes.extend_from_slice(&tagged(&frame[VNET..], record));
    if let Some(vnet) = vnet(frame, record) {
        vnet.shifted(if record.vlan.is_some() { 4 } else { 0 }).write(&mut bytes);
    }
    bytes
}

fn vnet(frame: &[u8], record: Record) -> Option<VnetHeader> {
    let at = network_at(frame)?;
    let seen = look(frame, at, record, false)?;
    if record.gso_size == 0 && !is_partial(frame, at, &seen)? {
        return None;
    }
    let start = at - VNET + ip_header_len(frame, at)?;
    let mut vnet = VnetHeader {
        flags: VnetHeader::NEEDS_CHECKSUM,
        checksum_start: start as u16,
        checksum_offset: CHECKSUM as u16,
        ..VnetHeader::default()
    };
    if record.gso_size != 0 {
        vnet.gso_type = if seen.src.is_v4() { VnetHeader::TCPV4 } else { VnetHeader::TCPV6 };
        let Transport::Tcp(segment) = &seen.transport else { return None };
        if segment.flags.has(Flags::CWR) {
            vnet.gso_type |= VnetHeader::ECN;
        }
        vnet.header_len = (at - VNET + seen.body_at) as u16;
        vnet.gso_size = record.gso_size;
    }
    Some(vnet)
}

#[cfg(test)]
mod tests;
