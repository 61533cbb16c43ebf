//! Any bytes are a packet or an error; a packet's bytes are the packet again.
#![no_main]

use lasthop_proto::wire::Quote;
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::parse::{Mode, parse, view};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = view(bytes, Mode { verify: true, wire_len: Some(1500) });
    let _ = Quote::read(bytes).map(|quote| quote.body());
    let Ok(packet) = parse(&bytes.into(), 0, true) else { return };
    let mut again = Vec::new();
    if emit(&packet, &mut again).is_ok() {
        let reparsed = parse(&again.into(), 0, true).expect("what is emitted can be parsed");
        assert_eq!(reparsed.segment(), packet.segment());
        // What a base station says to a source, too: the quote is read from outside.
        assert_eq!(reparsed.quote(), packet.quote());
    }
});
