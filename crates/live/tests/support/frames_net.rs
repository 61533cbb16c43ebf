//! Regression net over the processing of frames: each kind, whole, truncated, and with each of its bytes
//! changed in turn. `tests/net/frames.txt` has the expected figures; `make figures` regenerates them.

#[path = "../../../checks/shared/golden.rs"]
mod golden;

use std::fmt::Write as _;

use golden::{Block, Digest, check};
use lasthop_live::frame::{self, Incoming, Outgoing};
use lasthop_live::header::VnetHeader;
use lasthop_live::offload;
use lasthop_proto::wire::{Damage, Packet};

#[derive(Default)]
struct Totals {
    passes: u64,
    malformed: u64,
    packets: u64,
    digest: Digest,
}

impl Totals {
    fn outgoing(&mut self, outgoing: Option<Outgoing>) {
        match outgoing {
            Some(Outgoing::Same(_)) => self.digest.bytes(b"same"),
            Some(Outgoing::New(bytes)) => self.digest.bytes(&bytes),
            None => self.digest.bytes(b"none"),
        }
    }

    fn packet(&mut self, packet: &Packet, link: &[u8]) {
        self.packets += 1;
        let (src, dst, transport) = (packet.src, packet.dst, &packet.transport);
        let _ = write!(
            self.digest,
            "{src:?} {dst:?} {transport:?} {} {} {:?} {} {}",
            packet.tos,
            packet.ttl,
            packet.damage,
            packet.piece,
            packet.wire_len()
        );
        self.outgoing(frame::untouched(packet));
        for damage in [Damage::None, Damage::Ip, Damage::Tcp] {
            for tos in [packet.tos, packet.tos ^ 3] {
                let mut other = packet.clone();
                other.damage = damage;
                other.tos = tos;
                self.outgoing(frame::untouched(&other));
            }
        }
        let mut other = packet.clone();
        other.ttl = other.ttl.wrapping_sub(1);
        self.outgoing(frame::untouched(&other));
        self.outgoing(frame::write(&other, link));
        (other.src, other.dst) = (packet.dst, packet.src);
        let _ = write!(self.digest, "{:?}", frame::own_link_header(packet));
        let _ = write!(self.digest, "{:?}", frame::own_link_header(&other));
        self.outgoing(frame::untouched(&other));
        let _ = write!(self.digest, "{:?}", offload::describe(packet, link.len(), 40));
    }

    fn frame(&mut self, bytes: &[u8]) {
        let link = frame::link_header(bytes);
        let _ = write!(self.digest, "{link:?}");
        let link = link.unwrap_or_default();
        for incoming in [frame::read(bytes), frame::read_whole(bytes)] {
            match incoming {
                Incoming::Pass => self.passes += 1,
                Incoming::Malformed => self.malformed += 1,
                Incoming::Packet(packet) => self.packet(&packet, link),
                Incoming::Packets(packets) => {
                    packets.iter().for_each(|packet| self.packet(packet, link));
                }
            }
        }
        for pieces in
            [offload::segments(bytes), offload::refit(bytes, 100), offload::refit(bytes, 40)]
        {
            for piece in pieces.iter().flatten() {
                self.digest.bytes(piece);
            }
            let _ = write!(self.digest, "{:?}", pieces.map(|pieces| pieces.len()));
        }
        if let Some(vnet) = VnetHeader::read(bytes) {
            let mut completed = bytes.to_vec();
            offload::complete(&mut completed, vnet);
            vnet.shifted(4).write(&mut completed);
            self.digest.bytes(&completed);
        }
    }
}

/// Compares the figures of `frames` with the expected ones.
pub fn net(frames: &[(String, Vec<u8>)]) {
    let mut blocks = Vec::new();
    for (name, bytes) in frames {
        let mut totals = Totals::default();
        totals.frame(bytes);
        for at in (0..bytes.len().min(110)).chain([bytes.len() - 1]) {
            for change in [0x01, 0x80, 0x14] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                totals.frame(&bytes);
            }
            totals.frame(&bytes[..at]);
        }
        let mut block = Block::new(name);
        block.put("passes by", totals.passes);
        block.put("malformed", totals.malformed);
        block.put("packets", totals.packets);
        block.put("digest", totals.digest.text());
        blocks.push(block);
    }
    check("frames.txt", &blocks);
}
