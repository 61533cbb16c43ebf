//! A whole station but for its sockets: frames of both sides, time, and what the control socket sets. Frames that leave
//! are frames, every packet is accounted for, and the station comes to rest.
#![no_main]

mod shared;

use std::sync::LazyLock;

use lasthop_live::control::protocol::Request;
use lasthop_live::frame::{self, Incoming};
use lasthop_live::neighbours::Neighbours;
use lasthop_path::{Outside, Path, Stage, Witness};
use lasthop_proto::event::{Event, Interest};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Body, Packet, PacketId};
use lasthop_scenario::{LivePath, parse_station};
use libfuzzer_sys::fuzz_target;
use shared::{Feed, segment, wake_until};

static PATHS: LazyLock<Vec<LivePath>> = LazyLock::new(|| {
    let link = "[[path]]\nlink = { rate = \"10mbit\", delay = \"5ms\", queue = \"20p\" }\n";
    let radio = "[[path]]\nradio = { rate = \"2mbit\", queue = \"10p\" }\n\
         errors = { model = \"exponential\", mean = \"4KiB\" }\n";
    let agents = ["snoop", "split", "ebsn", "seq-cache", "ack-reconstruction", "snoop-nack"];
    let mut paths: Vec<String> =
        agents.iter().map(|agent| format!("[[path]]\nagent = \"{agent}\"\n")).collect();
    paths.push(format!("{link}{}{radio}", paths[0]));
    paths.push(format!("{link}{}{radio}", paths[1]));
    paths.push(format!("{link}{}{link}", paths[0]));
    paths.push(format!("{radio}{link}"));
    let read = |path: &String| {
        let text = format!("left = \"a\"\nright = \"b\"\n{path}");
        parse_station(&text).unwrap_or_else(|error| panic!("{text}: {error}")).0.path
    };
    paths.iter().map(read).collect()
});

/// Both interfaces: what leaves is written as frames.
#[derive(Default)]
struct Around {
    neighbours: Neighbours,
    left: u64,
}

impl Outside for Around {
    fn event(&mut self, _: &Event) {}

    fn leave(&mut self, _: Time, _: StageId, side: Side, packet: Packet) {
        self.left += 1;
        let own = frame::own_link_header(&packet).map(<[u8]>::to_vec);
        let link = own.or_else(|| self.neighbours.link_header(side, packet.src, packet.dst));
        let written = match frame::untouched(&packet) {
            Some(same) => Some(same),
            None => link.and_then(|link| frame::write(&packet, &link)),
        };
        let Some(written) = written else { return };
        // The next station reads it.
        let again = frame::read_whole(written.bytes());
        assert!(!matches!(again, Incoming::Malformed), "{packet:?} is written as {written:?}");
    }
}

/// A frame of Ethernet, with a virtio header of zeros, that holds `packet`.
fn framed(packet: &Packet) -> Option<Vec<u8>> {
    let link = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let mut payload = Vec::new();
    packet.body.copy_into(packet.body.len(), &mut payload);
    let packet = packet.clone().with(|packet| packet.body = Body::copy_of(&payload));
    frame::write(&packet, &link).map(|frame| frame.bytes().to_vec())
}

fuzz_target!(|bytes: &[u8]| {
    let mut feed = Feed(bytes);
    let setup = feed.byte();
    let mut live = PATHS[usize::from(setup >> 1) % PATHS.len()].clone();
    let models = live.stages();
    let mut stages = vec![Stage::Witness(Box::new(Witness::of_all_within(Side::Right, 64)))];
    stages.extend(models.iter().map(|stage| Stage::of_path(stage, 1)));
    let last = stages.len();
    stages.push(Stage::Witness(Box::new(Witness::of_all_within(Side::Left, 64))));
    let mut path = Path::new(stages, 1..last, vec![0, last], Interest::METRICS);
    path.set_bulk(setup & 1 != 0);
    let read = if path.is_bulk() { frame::read_whole } else { frame::read };
    let mut around = Around::default();
    let mut now = Time::ZERO;
    let mut id = 0;
    while !feed.is_over() {
        let what = feed.byte();
        let (side, bytes) = match what % 8 {
            0 => {
                let then = now + feed.span().min(Span::secs(100));
                wake_until(then, path.next_wake(), |at| {
                    path.wake(at, &mut around);
                    path.next_wake()
                });
                path.retire_agents();
                now = then;
                continue;
            }
            1 => {
                let len = usize::from(feed.byte());
                if let Ok(Request::Set { values, .. }) = Request::parse(feed.take(len))
                    && let Ok((next, ..)) = live.set(&values)
                {
                    let pairs = live.stages().iter().zip(next.stages()).enumerate();
                    for (i, (_, is)) in pairs.filter(|(_, (was, is))| was != is) {
                        path.replace_stage(i + 1, Stage::of_path(is, 1));
                    }
                    live = next;
                }
                continue;
            }
            2 => {
                let len = usize::from(feed.number() & 0x7ff);
                (if what & 8 == 0 { Side::Left } else { Side::Right }, feed.take(len).to_vec())
            }
            _ => {
                let (side, packet) = segment(&mut feed);
                let Some(mut bytes) = framed(&packet) else { continue };
                // Some bytes of it are others.
                if what & 128 != 0 {
                    let (at, to) = (usize::from(feed.byte()), feed.byte());
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= to;
                    }
                }
                (side, bytes)
            }
        };
        let stage = StageId(if side == Side::Left { 0 } else { last as u16 });
        let packets = match read(&bytes) {
            Incoming::Pass | Incoming::Malformed => continue,
            Incoming::Packet(packet) => vec![packet],
            Incoming::Packets(packets) => packets,
        };
        for mut packet in packets {
            id += 1;
            packet.id = PacketId(u64::from(stage.0) << 48 | id);
            if packet.segment().is_some()
                && let Some(link) = frame::link_header(&bytes)
            {
                around.neighbours.learn(side, packet.src, link);
                around.neighbours.learn_destination(side.other(), packet.src, packet.dst, link);
            }
            path.enter(now, stage, packet, &mut around);
        }
    }
    assert_eq!(path.stuck(), None);
    for (stage, count) in path.counts() {
        assert!(count.is_conserved(), "stage {}: {count:?}", stage.0);
    }
});
