//! Frames of any link type: each is accounted for, whatever is cut off of it.
//!
//! The first bytes choose the link type and the length on the wire; the rest is one frame.
#![no_main]

use lasthop_observe::capture::{Content, Decoder, Frame, LinkType};
use lasthop_proto::units::Time;
use libfuzzer_sys::fuzz_target;

/// Link types that have a reader, and one that has none.
const LINKS: [u16; 38] = [
    0, 1, 6, 9, 10, 12, 14, 50, 51, 100, 101, 104, 105, 107, 108, 109, 113, 117, 119, 122, 123,
    127, 138, 163, 166, 192, 204, 205, 206, 228, 229, 239, 240, 241, 242, 258, 274, 276,
];

fuzz_target!(|input: &[u8]| {
    let [choice, cut, bytes @ ..] = input else { return };
    let link = LinkType(LINKS.get(usize::from(*choice)).copied().unwrap_or(147));
    let wire_len = (bytes.len() + usize::from(*cut)) as u32;
    let frame = Frame { at: Time(1), link, bytes, wire_len, ..Frame::default() };
    let mut decoder = Decoder::new(true);
    let (mut contents, mut fragments) = (0, 0);
    let mut count = |content: Content| match content {
        Content::Packet(view) => {
            contents += 1;
            assert!(u64::from(view.captured) <= bytes.len() as u64);
        }
        Content::Fragment => fragments += 1,
        Content::Other(_) | Content::Unread(_) => contents += 1,
    };
    decoder.frame(&frame, &mut count);
    decoder.finish(&mut count);
    // One frame, or several that it aggregates, none of which is a copy of itself.
    assert!(contents + fragments >= 1, "the frame disappeared");
});
