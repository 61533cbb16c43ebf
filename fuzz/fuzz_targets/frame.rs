//! Any frame, super-packets with any virtio header among them, goes through a base station without harm. What is
//! not changed leaves as it came.
#![no_main]

use lasthop_live::frame::{self, Incoming};
use lasthop_live::offload;
use lasthop_path::{Outside, Path, Stage, Witness};
use lasthop_proto::agent::{AckpMode, Agent, AgentConfig, SnoopAgent, SnoopConfig};
use lasthop_proto::event::{Event, Interest};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Damage, Packet};
use libfuzzer_sys::fuzz_target;

struct Exit;

impl Outside for Exit {
    fn event(&mut self, _: &Event) {}

    fn leave(&mut self, _: Time, _: StageId, _: Side, mut packet: Packet) {
        let link = frame::own_link_header(&packet).map(<[u8]>::to_vec);
        let _ = frame::write(&packet, link.as_deref().unwrap_or(&[0; 14]));
        for damage in [Damage::Ip, Damage::Tcp] {
            packet.damage = damage;
            let _ = frame::untouched(&packet);
        }
    }
}

fn same(packet: &Packet, bytes: &[u8]) {
    let out = frame::untouched(packet).expect("the packet is untouched");
    assert_eq!(out.bytes(), bytes);
}

fuzz_target!(|bytes: &[u8]| {
    let stages = vec![
        Stage::Witness(Box::new(Witness::of_all(Side::Right))),
        Stage::Agent(Box::new(Agent::new(&AgentConfig::Snoop(SnoopAgent {
            snoop: SnoopConfig::west97(),
            ackp: Some(AckpMode::Full),
        })))),
        Stage::Witness(Box::new(Witness::of_all(Side::Left))),
    ];
    let mut path = Path::new(stages, 1..2, vec![0, 2], Interest::EVERYTHING);
    let mut now = Time::ZERO;
    // Frames one behind the other: two bytes of length, whose high bit is the side.
    let mut rest = bytes;
    while let Some((head, tail)) = rest.split_first_chunk::<2>() {
        let head = u16::from_be_bytes(*head);
        let stage = StageId(if head & 0x8000 == 0 { 0 } else { 2 });
        let (frame, tail) = tail.split_at(usize::from(head & 0x7fff).min(tail.len()));
        rest = tail;
        now += Span::millis(7);
        while path.next_wake().is_some_and(|at| at <= now) {
            path.wake(now, &mut Exit);
        }
        let _ = offload::refit(frame, 576);
        match frame::read(frame) {
            Incoming::Pass | Incoming::Malformed => {}
            Incoming::Packet(packet) => {
                same(&packet, frame);
                path.enter(now, stage, packet, &mut Exit);
            }
            Incoming::Packets(packets) => {
                for packet in packets {
                    path.enter(now, stage, packet, &mut Exit);
                }
            }
        }
    }
});
