//! Any frames, real ones among them, lost, repeated and changed, go into a decompressor without harm; so do requests
//! into a compressor. A header that is sent whole is always understood.
#![no_main]

use lasthop_proto::link::header_compression::{
    CompressionConfig, Compressor, Coverage, Decompressor, Kind, Recovery,
};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[setup, slots], mut rest)) = bytes.split_first_chunk() else { return };
    let recovery = match setup % 3 {
        0 => Recovery::Retransmission,
        1 => Recovery::Twice,
        _ => Recovery::Feedback,
    };
    let coverage = if setup & 128 == 0 { Coverage::Headers } else { Coverage::Whole };
    let config = CompressionConfig { slots: u16::from(slots) + 1, recovery, coverage };
    let mut compressor = Compressor::new(config);
    let mut decompressor = Decompressor::new(config);
    while let Some((&[what, a, b, len], tail)) = rest.split_first_chunk() {
        let (own, tail) = tail.split_at(usize::from(len).min(tail.len()));
        rest = tail;
        let body = Body::copy_of(own);
        match what % 8 {
            0 => _ = decompressor.decompress(Kind::Ip, own, body),
            1 => _ = decompressor.decompress(Kind::UncompressedTcp, own, body),
            2 => _ = decompressor.decompress(Kind::CompressedTcp, own, body),
            3 => compressor.on_request(own),
            4 => decompressor.lost(),
            _ => {
                // A segment of one of eight connections, which arrives, is lost, or is changed on the way.
                let (seq, ack) = (Seq(u32::from(a) << (b % 20)), Seq(u32::from(b) * 200));
                let segment = Segment::new(u16::from(what >> 5), 23, seq, ack, Flags::ACK);
                let packet = Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body);
                let sent = compressor.compress(&packet);
                let mut header = sent.header.to_vec();
                if what & 16 != 0
                    && let Some(byte) = header.get_mut(usize::from(a) % 4)
                {
                    *byte ^= b;
                }
                let got = decompressor.decompress(sent.kind, &header, packet.body.clone());
                if sent.kind == Kind::UncompressedTcp && header[..] == sent.header[..] {
                    let got = got.expect("a whole header is always understood");
                    assert_eq!(got.transport, packet.transport);
                }
            }
        }
        if let Some(request) = decompressor.request() {
            compressor.on_request(&request);
        }
    }
});
