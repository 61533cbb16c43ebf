//! Packets of a tunnel: conversion between IP packets in bytes and packets of the link layer.

use std::sync::Arc;

use crate::air::Station;
use crate::link::frame::{Frame, Header, Load};
use crate::link::tulip::codec;
use crate::wire::parse::{Mode, view};
use crate::wire::protocol::PROTOCOL_TCP;
use crate::wire::{Addr, Body, Damage, Packet, PacketId, Parts, Transport};

/// First byte of a frame without a link layer; those of TULIP begin with its version.
const PLAIN: u8 = 0;

/// Whether these bytes are exactly one IP packet.
pub fn is_ip(bytes: &[u8]) -> bool {
    view(bytes, Mode { verify: false, wire_len: None })
        .is_ok_and(|seen| seen.body_at + seen.body_len as usize == bytes.len())
}

/// The packet of these bytes. An unreadable packet is carried as well, so that the link layer's numbers have
/// no holes; the receiving end checks [`is_ip`].
pub fn packet(bytes: Arc<[u8]>, id: u64) -> Packet {
    let len = bytes.len();
    let whole = |from: usize| Body::Bytes {
        frame: bytes.clone(),
        from: from as u32,
        len: (len - from) as u32,
    };
    let seen = view(&bytes, Mode { verify: false, wire_len: None });
    let none = Addr::v4(0, 0, 0, 0);
    let opaque = |src, dst, transport, from| {
        Packet::new(Parts {
            id: PacketId(id),
            src,
            dst,
            transport,
            body: whole(from),
            tos: 0,
            label: 0,
            ttl: 0,
            damage: Damage::None,
            urgent: false,
            piece: 0,
            fragmentable: false,
        })
    };
    match seen {
        Ok(seen) if seen.body_at + seen.body_len as usize == len => match seen.transport {
            // A segment with an unreadable option is still TCP.
            Transport::Tcp(_) if seen.bad_option.is_some() => {
                let other = Transport::Other(PROTOCOL_TCP);
                opaque(seen.src, seen.dst, other, seen.body_at)
            }
            transport => opaque(seen.src, seen.dst, transport, seen.body_at),
        },
        _ => opaque(none, none, Transport::Other(u8::MAX), 0),
    }
}

/// The bytes from which [`packet`] made it.
pub fn bytes(packet: &Packet) -> Option<&Arc<[u8]>> {
    match &packet.body {
        Body::Bytes { frame, .. } => Some(frame),
        _ => None,
    }
}

/// Appends a frame of the link layer.
pub fn write(frame: &Frame, out: &mut Vec<u8>) {
    let load = frame.load.packet().and_then(bytes).map_or(&[][..], |bytes| bytes);
    match &frame.header {
        Header::Plain => {
            out.push(PLAIN);
            out.extend_from_slice(load);
        }
        Header::Arq(header) => codec::emit(header, load, out),
        // A tunnel's link layer is TULIP.
        Header::Airmail(_) => {}
    }
}

/// Parses a frame of the link layer from `from`.
pub fn read(bytes: &[u8], from: Station, to: Station, id: u64) -> Option<Frame> {
    let (header, load) = match bytes.split_first()? {
        (&PLAIN, load) => (Header::Plain, load),
        _ => codec::parse(bytes).ok().map(|(header, load)| (Header::Arq(header), load))?,
    };
    let stored = matches!(&header, Header::Arq(header) if header.seq.is_some());
    let load = match load {
        [] => Load::None,
        load => Load::Packet(packet(load.into(), id)),
    };
    Some(Frame { from, to, header, load, bytes: bytes.len() as u32, stored })
}
