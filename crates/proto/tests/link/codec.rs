//! Frames in bytes: every header survives the conversion, and arbitrary bytes do no harm.

use lasthop_proto::link::frame::{ArqHeader, BitVector, LinkAck};
use lasthop_proto::link::tulip::codec::{CodecError, emit, header_len, parse};
use proptest::prelude::*;

fn vector() -> impl Strategy<Value = BitVector> {
    prop::collection::vec(any::<bool>(), 0..=4096).prop_map(|bits| {
        let mut vector = BitVector::zeros(bits.len() as u16);
        bits.iter().enumerate().filter(|(_, bit)| **bit).for_each(|(i, _)| vector.set(i as u16));
        vector
    })
}

fn header() -> impl Strategy<Value = ArqHeader> {
    let ack = (0u32..8192, vector(), any::<u32>()).prop_map(|(cumulative, vector, last)| LinkAck {
        cumulative,
        vector,
        last_received: last,
    });
    let seq = prop::option::of((0u32..8192, any::<u32>()));
    (seq, prop::option::of(ack)).prop_map(|(seq, ack)| ArqHeader {
        seq: seq.map(|(seq, _)| seq),
        transmission: seq.map_or(0, |(_, number)| number),
        ack,
    })
}

fn bytes(header: &ArqHeader, load: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    emit(header, load, &mut out);
    out
}

proptest! {
    #[test]
    fn every_frame_survives_encoding_and_parsing(header in header(), load in prop::collection::vec(any::<u8>(), 1..200)) {
        let frame = bytes(&header, &load);
        prop_assert_eq!(frame.len(), header_len(&header) as usize + load.len());
        prop_assert_eq!(parse(&frame), Ok((header, &load[..])));
    }

    #[test]
    fn bytes_from_outside_are_read_or_refused(frame in prop::collection::vec(any::<u8>(), 0..700)) {
        if let Ok((header, load)) = parse(&frame) {
            // The encoding of a frame is unique.
            prop_assert_eq!(bytes(&header, load), frame);
        }
    }

    #[test]
    fn a_damaged_frame_is_read_or_refused(
        header in header(),
        at in any::<prop::sample::Index>(),
        flip in 1u8..=255,
        cut in any::<prop::sample::Index>(),
    ) {
        let mut frame = bytes(&header, &[0x45; 40]);
        let at = at.index(frame.len());
        frame[at] ^= flip;
        frame.truncate(cut.index(frame.len()) + 1);
        if let Ok((header, load)) = parse(&frame) {
            prop_assert_eq!(bytes(&header, load), frame);
        }
    }
}

#[test]
fn the_bytes_are_as_documented() {
    let mut vector = BitVector::zeros(9);
    vector.set(1);
    vector.set(8);
    let ack = Some(LinkAck { cumulative: 15, vector, last_received: 0x0102_0304 });
    let rlp = ArqHeader { seq: Some(3), transmission: 7, ack: ack.clone() };
    let want = [0x19, 0, 3, 0, 0, 0, 7, 0, 15, 1, 2, 3, 4, 0, 9, 2, 1, 0x45];
    assert_eq!(bytes(&rlp, &[0x45]), want);
    let lack = ArqHeader { ack, ..ArqHeader::default() };
    assert_eq!(bytes(&lack, &[]), [0x1a, 0, 15, 1, 2, 3, 4, 0, 9, 2, 1]);
    assert_eq!(bytes(&ArqHeader::default(), &[0x60]), [0x10, 0x60]);
}

#[test]
fn malformed_frames_are_refused_with_a_specific_error() {
    let refused = |bytes: &[u8]| parse(bytes).unwrap_err();
    assert_eq!(refused(&[]), CodecError::Truncated);
    assert_eq!(refused(&[0x20, 1]), CodecError::Version(2));
    assert_eq!(refused(&[0x12]), CodecError::Kind(0x12), "a LACK must acknowledge");
    assert_eq!(refused(&[0x13, 1]), CodecError::Kind(0x13));
    assert_eq!(refused(&[0x10]), CodecError::Load(0));
    assert_eq!(refused(&[0x11, 0x20, 0, 0, 0, 0, 1, 1]), CodecError::Number(0x2000));
    let ack = [0x1a, 0, 1, 0, 0, 0, 1];
    assert_eq!(refused(&[&ack[..], &[0x10, 1]].concat()), CodecError::Vector(4097));
    assert_eq!(refused(&[&ack[..], &[0, 9, 0, 2]].concat()), CodecError::Vector(9));
    assert_eq!(refused(&[&ack[..], &[0, 8]].concat()), CodecError::Truncated);
    assert_eq!(refused(&[&ack[..], &[0, 8, 0, 9]].concat()), CodecError::Load(1));
}
