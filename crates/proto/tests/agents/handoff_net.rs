//! Hand-offs in the middle of transfers: an agent exports its state, and the next agent continues with it.
//! `tests/net/handed-over.txt` has the figures; `make figures` regenerates them.

#[path = "../../../checks/shared/golden.rs"]
mod golden;

use std::fmt::Write as _;

use golden::{Block, Digest, check};
use lasthop_proto::agent::Agent;
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Machine as _, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Body, Eln, Flags, Nack, Packet, Segment, Seq};

use crate::handoff::agents;
use crate::path::{FIXED, MOBILE};

/// A segment from `side`: position, length, acknowledgement.
fn segment(side: Side, flags: Flags, seq: u32, len: u32, ack: u32) -> (Side, Packet) {
    let [src, dst] = if side == Side::Left { [FIXED, MOBILE] } else { [MOBILE, FIXED] };
    let [from, to] = if side == Side::Left { [5001, 9] } else { [9, 5001] };
    let mut segment = Segment::new(from, to, Seq(seq), Seq(ack), flags);
    segment.window = 20_000;
    if flags.has(Flags::SYN) {
        let options = segment.options_mut();
        options.mss = Some(1460);
        options.eln = Some(Eln::Permitted);
        options.nack = Some(Nack::Permitted);
        options.sack_permitted = true;
    }
    let body = Body::Pattern { stream: 1, len, offset: u64::from(seq.wrapping_sub(1)) };
    (side, Packet::tcp(src, dst, segment, body))
}

/// A transfer with holes, duplicates and data both ways.
fn transfer() -> Vec<(Side, Packet)> {
    let (fixed, mobile) = (Side::Left, Side::Right);
    let mut all = vec![
        segment(fixed, Flags::SYN, 0, 0, 0),
        segment(mobile, Flags::SYN | Flags::ACK, 0, 0, 1),
        segment(fixed, Flags::ACK, 1, 0, 1),
    ];
    for i in 0..8 {
        all.push(segment(fixed, Flags::ACK, 1 + 1000 * i, 1000, 1));
    }
    all.push(segment(mobile, Flags::ACK, 1, 0, 2001));
    all.push(segment(fixed, Flags::ACK, 10_001, 1000, 1));
    for _ in 0..4 {
        all.push(segment(mobile, Flags::ACK, 1, 0, 2001));
    }
    all.push(segment(mobile, Flags::ACK, 1, 500, 2001));
    all.push(segment(mobile, Flags::ACK, 1001, 500, 3001));
    all
}

fn pass(agent: &mut Agent, packets: &[(Side, Packet)], now: &mut Time, digest: &mut Digest) {
    let mut out = Out::new(Interest::EVERYTHING);
    for (side, packet) in packets {
        let at = *now + Span::millis(40);
        while let Some(wake) = agent.next_wake().filter(|wake| *wake <= at) {
            *now = wake.max(*now);
            agent.on_wake(*now, &mut out);
        }
        *now = at;
        agent.on_packet(at, *side, packet.clone(), &mut out);
        let _ = write!(digest, "{at:?} {:?} {:?}", out.sends, out.events);
        out.sends.clear();
        out.events.clear();
    }
}

#[test]
fn transferred_state_gives_the_recorded_results() {
    let mut blocks = Vec::new();
    for config in agents() {
        for packets in [4, 11, transfer().len()] {
            let mut agent = Agent::new(&config);
            let mut now = Time::ZERO;
            pass(&mut agent, &transfer()[..packets], &mut now, &mut Digest::default());
            let state = agent.give_away(now, MOBILE, &mut Out::new(Interest::NOTHING));
            let state = state.expect("it has state of the host");
            let bytes = state.bytes();
            let mut digest = Digest::default();
            let mut agent = Agent::new(&config);
            let mut out = Out::new(Interest::EVERYTHING);
            let mut now = Time::ZERO + Span::secs(1);
            agent.take_over(now, state, &mut out).expect("an agent of its kind");
            let _ = write!(digest, "{:?} {:?}", out.sends, out.events);
            pass(&mut agent, &transfer()[packets.min(11)..], &mut now, &mut digest);
            let again = agent.give_away(now, MOBILE, &mut out).map(|state| state.bytes());
            let _ = write!(digest, "{again:?}");
            let mut block = Block::new(&format!("{} after {packets} packets", config.word()));
            block.put("bytes", bytes);
            block.put("digest", digest.text());
            blocks.push(block);
        }
    }
    check("handed-over.txt", &blocks);
}
