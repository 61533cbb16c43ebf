use super::*;
use crate::tcp::rtt::Beat;
use crate::tcp::settings::Beats;
use crate::units::Span;
use crate::wire::Seq;
use proptest::prelude::*;

fn receiver() -> Receiver {
    let config = TcpConfig { recv_buffer: 65_535, ..TcpConfig::rfc() };
    let beat = Beat::new(Span::millis(200), Span::ZERO);
    let config = Settings::new(config, Beats { slow: beat, fast: beat });
    let mut r = Receiver::new(&config);
    r.synchronise(&config, 1000, 1000);
    r
}

fn body(from: u64, len: u32) -> Body {
    Body::Pattern { stream: 1, offset: from - 1, len }
}

#[test]
fn blocks_come_newest_first() {
    let mut r = receiver();
    for from in [2001, 4001, 6001] {
        r.take(Time(0), from, body(from, 1000), false);
    }
    let blocks = r.sack(Seq(0), 3);
    let starts: Vec<u32> = blocks.as_slice().iter().map(|b| b.0.0).collect();
    assert_eq!(starts, [6001, 4001, 2001]);
}

#[test]
fn a_wrong_byte_is_noticed() {
    let mut r = receiver();
    assert!(!r.take(Time(0), 1, body(1, 10), false).corrupted);
    assert!(r.take(Time(0), 11, body(12, 10), false).corrupted);
}

#[test]
fn a_stream_ends_where_its_first_fin_says() {
    let mut r = receiver();
    r.take(Time(0), 2001, body(2001, 1000), false);
    // Data came from behind this one.
    let taken = r.take(Time(0), 1, body(1, 500), true);
    assert!(!taken.fin && taken.delivered == 500);
    assert_eq!(r.take(Time(0), 501, body(501, 1500), false).delivered, 2500);
    // Behind a hole there is an end; what lies behind it is ignored, and so is another end.
    r.take(Time(0), 3501, body(3501, 500), true);
    r.take(Time(0), 3801, body(3801, 1000), true);
    r.take(Time(0), 5001, body(5001, 1000), false);
    assert!(r.inbound().is_sound(65_535), "{:?}", r.inbound());
    let taken = r.take(Time(0), 3001, body(3001, 500), false);
    assert!(taken.fin && taken.delivered == 1000);
    let taken = r.take(Time(0), 4002, body(4002, 100), true);
    assert!(!taken.fin && taken.delivered == 0);
    assert!(r.inbound().is_sound(65_535), "{:?}", r.inbound());
}

proptest! {
    #[test]
    fn every_byte_is_delivered_once_and_in_order(pieces in prop::collection::vec((0u64..300, 1u32..60), 1..80)) {
        let mut r = receiver();
        let mut have = [false; 400];
        let mut delivered = 0;
        for (at, len) in pieces {
            let from = 1 + at;
            have[at as usize..at as usize + len as usize].fill(true);
            // The connection cuts what was received before; do as it does.
            let cut = r.nxt.saturating_sub(from).min(len.into()) as u32;
            let part = body(from, len).slice(cut, u32::MAX);
            if part.is_empty() { continue; }
            let taken = r.take(Time(0), from + u64::from(cut), part, false);
            prop_assert!(!taken.corrupted);
            delivered += taken.delivered;
            let contiguous = have.iter().take_while(|h| **h).count();
            prop_assert_eq!(delivered as usize, contiguous);
        }
    }
}
