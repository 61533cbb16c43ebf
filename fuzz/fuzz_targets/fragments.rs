//! Fragments in any order, with gaps, overlaps and copies: every one is accounted for once, and a packet that is
//! reassembled has the length of its fragments.
//!
//! Four bytes describe a fragment: which packet, offset, length and flags, time since the one before.
#![no_main]

use lasthop_observe::capture::{Content, Decoder, Frame, LinkType};
use lasthop_proto::units::Time;
use libfuzzer_sys::fuzz_target;

fn fragment(v6: bool, protocol: u8, id: u8, at: u16, more: bool, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if v6 {
        bytes.extend([0x60, 0, 0, 0]);
        bytes.extend((8 + payload.len() as u16).to_be_bytes());
        bytes.extend([44, 64]);
        bytes.extend([0xfd; 32]);
        bytes.extend([protocol, 0]);
        bytes.extend(((at * 8) | u16::from(more)).to_be_bytes());
        bytes.extend([0, 0, 0, id]);
    } else {
        bytes.extend([0x45, 0]);
        bytes.extend((20 + payload.len() as u16).to_be_bytes());
        bytes.extend([0, id]);
        bytes.extend((at | u16::from(more) << 13).to_be_bytes());
        bytes.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    }
    bytes.extend(payload);
    bytes
}

fuzz_target!(|input: &[u8]| {
    let mut decoder = Decoder::new(false);
    let (mut fed, mut out, mut now) = (0_u64, 0_u64, 0_u64);
    for step in input.chunks_exact(4) {
        let &[which, at, shape, wait] = step else { continue };
        now += u64::from(wait) * 100_000_000;
        let len = if shape & 0x40 == 0 { 8 * u16::from(shape & 0x0f) } else { u16::from(shape) };
        let protocol = [6, 17, 47, 4][usize::from(which >> 1 & 3)];
        // A TCP header of 20 bytes, should the packet begin here.
        let mut payload = vec![which; usize::from(len)];
        if let Some(offset) = payload.get_mut(12) {
            *offset = 0x50;
        }
        let more = shape & 0x80 != 0;
        let bytes = fragment(which & 1 == 1, protocol, which >> 4, u16::from(at), more, &payload);
        let snap = if shape & 0x20 == 0 { bytes.len() } else { bytes.len().min(64) };
        let frame = Frame {
            at: Time(now),
            link: LinkType::RAW,
            wire_len: bytes.len() as u32,
            bytes: &bytes[..snap],
            ..Frame::default()
        };
        fed += 1;
        decoder.frame(&frame, |content| {
            out += 1;
            if let Content::Packet(view) = content {
                assert!(view.captured <= view.body_len, "{view:?}");
            }
        });
    }
    decoder.finish(|_| out += 1);
    assert_eq!(fed, out, "a fragment has no outcome, or two");
});
