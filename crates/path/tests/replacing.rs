//! Stages replaced while packets travel: packets in a link still arrive, those in an agent count as lost, and none is
//! missing or counted twice.

use lasthop_path::{HostKind, Outside, Path, Stage, StageCount, Witness};
use lasthop_proto::agent::BaseStation as _;
use lasthop_proto::event::{Event, Interest};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq};
use lasthop_scenario::{parse, parse_station};

const FIXED: Addr = Addr::v4(10, 0, 0, 1);
const MOBILE: Addr = Addr::v4(10, 0, 1, 1);

/// Packets that left the path, with their times in microseconds.
#[derive(Default)]
struct Beyond(Vec<(u64, PacketId)>);

impl Outside for Beyond {
    fn event(&mut self, _: &Event) {}
    fn leave(&mut self, now: Time, _: StageId, _: Side, packet: Packet) {
        self.0.push((now.0 / 1000, packet.id));
    }
}

/// The stages of a station's file.
fn stages(path: &str) -> Vec<Stage> {
    let text = format!("left = \"eth0\"\nright = \"wlan0\"\n{path}");
    let (file, _) = parse_station(&text).unwrap_or_else(|e| panic!("{e}: {}\n{text}", e.help));
    file.path.stages().iter().map(|stage| Stage::of_path(stage, 1)).collect()
}

fn stage(path: &str) -> Stage {
    stages(path).remove(0)
}

/// A path of these stages between external hosts.
struct World {
    path: Path,
    beyond: Beyond,
    now: Time,
    ids: u64,
}

impl World {
    fn new(text: &str) -> World {
        let mut row = vec![Stage::Witness(Box::new(Witness::of_all(Side::Right)))];
        row.extend(stages(text));
        row.push(Stage::Witness(Box::new(Witness::of_all(Side::Left))));
        let (inner, last) = (1..row.len() - 1, row.len() - 1);
        let path = Path::new(row, inner, vec![0, last], Interest::METRICS);
        World { path, beyond: Beyond::default(), now: Time::ZERO, ids: 0 }
    }

    /// Handles all deadlines until `at`.
    fn until(&mut self, at: Time) {
        while let Some(wake) = self.path.next_wake().filter(|wake| *wake <= at) {
            self.now = wake;
            self.path.wake(wake, &mut self.beyond);
        }
        self.now = at;
    }

    /// A packet enters at an end.
    fn enter(&mut self, from: Side, mut packet: Packet) -> PacketId {
        self.ids += 1;
        packet.id = PacketId(self.ids);
        let id = packet.id;
        let ends = [0, self.path.stages().len() - 1];
        let stage = ends[usize::from(from == Side::Right)];
        self.path.enter(self.now, StageId(stage as u16), packet, &mut self.beyond);
        id
    }

    fn data(&mut self) -> PacketId {
        let first = 1 + 1000 * self.ids as u32;
        self.enter(Side::Left, data(first))
    }

    fn count(&self, i: usize) -> StageCount {
        self.path.counts()[i].1
    }

    fn assert_conserved(&self) {
        for (stage, count) in self.path.counts() {
            assert!(count.is_conserved(), "stage {}: {count:?}", stage.0);
        }
    }
}

/// A thousand bytes from the fixed host.
fn data(first: u32) -> Packet {
    let segment = Segment::new(5001, 9, Seq(first), Seq(700), Flags::ACK);
    Packet::tcp(FIXED, MOBILE, segment, Body::Pattern { stream: 1, len: 1000, offset: 0 })
}

/// The mobile host's answer.
fn ack(n: u32) -> Packet {
    let mut segment = Segment::new(9, 5001, Seq(700), Seq(n), Flags::ACK);
    segment.window = 30_000;
    Packet::tcp(MOBILE, FIXED, segment, Body::EMPTY)
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::millis(ms)
}

const SLOW: &str = "[[path]]\nlink = { rate = \"1mbit\", delay = \"10ms\" }\n";
const FAST: &str = "[[path]]\nlink = { rate = \"100mbit\", delay = \"1ms\" }\n";

/// 1040 bytes take 8.32 ms at 1 Mbit/s and 83 us at 100 Mbit/s.
#[test]
fn a_replaced_link_delivers_its_packets_on_schedule() {
    let mut world = World::new(SLOW);
    let first = world.data();
    world.until(ms(5));
    assert_eq!(world.path.replace_stage(1, stage(FAST)), 0, "a link loses nothing");
    assert_eq!(world.count(1).held, 1, "the packet is inside the old link");
    assert_eq!(world.path.next_wake(), Some(Time(18_320_000)));
    let second = world.data();
    assert_eq!(world.count(1).held, 2, "one in each of the two links");
    world.assert_conserved();
    world.until(ms(100));
    assert_eq!(world.beyond.0, [(6_083, second), (18_320, first)]);
    assert_eq!(world.count(1), StageCount { arrived: 2, departed: 2, ..StageCount::default() });
    assert_eq!(world.path.next_wake(), None, "the old link is gone");
}

/// The second link is replaced as well, while both old ones hold packets: each forwards at its own position.
#[test]
fn links_at_several_positions_and_twice_at_one_are_distinguished() {
    let mut world = World::new(&[SLOW, SLOW].concat());
    let first = world.data();
    world.until(ms(20));
    let second = world.data();
    assert_eq!((world.count(1).held, world.count(2).held), (1, 1));
    world.path.replace_stage(2, stage(FAST));
    world.path.replace_stage(1, stage(FAST));
    world.until(ms(21));
    let third = world.data();
    world.path.replace_stage(1, stage(SLOW));
    assert_eq!((world.count(1).held, world.count(2).held), (2, 1));
    world.assert_conserved();
    world.until(ms(200));
    // 18.32 ms over an old link, 1.083 ms over a fast one.
    assert_eq!(world.beyond.0, [(23_166, third), (36_640, first), (39_403, second)]);
    assert_eq!((world.count(1).held, world.count(2).held), (0, 0));
    assert_eq!((world.count(1).departed, world.count(2).departed), (3, 3));
    assert_eq!(world.path.next_wake(), None);
    world.assert_conserved();
}

/// Packets of an old link at the second position do not pass that position again.
#[test]
fn old_links_due_together_deliver_at_their_own_position() {
    let mut world = World::new(&[SLOW, SLOW].concat());
    let first = world.data();
    world.until(Time(18_320_000));
    let second = world.data();
    world.path.replace_stage(1, stage(FAST));
    world.path.replace_stage(2, stage(FAST));
    world.until(ms(200));
    // Both are due at 36.64 ms; the second packet has a fast link before it.
    assert_eq!(world.beyond.0, [(36_640, first), (37_723, second)]);
    assert_eq!((world.count(1).departed, world.count(2).departed), (2, 2));
    assert_eq!((world.count(1).arrived, world.count(2).arrived), (2, 2), "each once");
}

/// A station under load wakes late: then the last packet of the old link and the first of the new one are due together.
#[test]
fn old_and_new_link_due_together_both_deliver() {
    let mut world = World::new(SLOW);
    let first = world.data();
    world.until(ms(5));
    world.path.replace_stage(1, stage(FAST));
    let second = world.data();
    world.path.wake(ms(30), &mut world.beyond);
    assert_eq!(world.beyond.0, [(30_000, first), (30_000, second)]);
    assert_eq!(world.count(1), StageCount { arrived: 2, departed: 2, ..StageCount::default() });
    assert_eq!(world.count(2).arrived, 2, "both arrive at the next stage");
    world.assert_conserved();
}

/// A station may run for months with its path changed each minute.
#[test]
fn empty_replaced_links_are_removed() {
    let mut world = World::new(SLOW);
    for minute in 1..=100 {
        world.data();
        world.path.replace_stage(1, stage(SLOW));
        world.until(ms(60_000 * minute));
    }
    assert_eq!(world.beyond.0.len(), 100);
    let inside = format!("{:?}", world.path);
    assert!(inside.contains("retired: []"), "old links are kept: {} bytes", inside.len());
}

#[test]
fn packets_of_a_replaced_agent_are_counted_as_lost() {
    let text = "[[path]]\nagent = \"ack-reconstruction\"\nack-interval = \"10ms\"\n";
    let mut world = World::new(text);
    world.data();
    world.until(ms(1));
    world.enter(Side::Right, ack(1));
    world.until(ms(11));
    world.enter(Side::Right, ack(20_001));
    assert_eq!(world.count(1).held, 1, "the last ACK waits for those before it");
    world.assert_conserved();
    let before = world.count(1);
    let lost = world.path.replace_stage(1, stage("[[path]]\nagent = \"none\"\n"));
    assert_eq!(lost, 1, "whoever replaces an agent is told how many packets that cost");
    let after = world.count(1);
    assert_eq!((after.held, after.ended), (0, before.ended + 1));
    world.assert_conserved();
    assert_eq!(world.path.next_wake(), None, "nobody waits to send it any more");
    let last = world.enter(Side::Right, ack(21_001));
    assert_eq!(world.beyond.0.last().map(|(_, id)| *id), Some(last), "the new agent passes on");
}

/// The channel damages everything. A link layer would retry forever; packet radio would deliver nothing.
#[test]
fn a_replaced_hop_on_a_dead_channel_releases_packets() {
    let dead = "errors = { model = \"packet-loss\", p = 1.0 }\n";
    for (hop, at, lost) in [
        ("link-layer = \"tulip\"\n", 50, 0),
        // One is on the air already, and damaged.
        ("mac = \"half-duplex-hops\"\n", 10, 1),
    ] {
        let text = format!("[[path]]\nradio = {{ rate = \"2mbit\", delay = \"1ms\" }}\n{hop}");
        let mut world = World::new(&format!("{text}{dead}"));
        let packets = [world.data(), world.data()];
        world.until(ms(at));
        assert_eq!((world.beyond.0.len(), world.count(1).held), (0, 2), "{hop}");
        world.path.replace_stage(1, stage(FAST));
        world.until(ms(60_000));
        let arrived: Vec<PacketId> = world.beyond.0.iter().map(|(_, id)| *id).collect();
        assert_eq!(arrived, packets[lost..], "{hop}: the old channel is dead no more");
        assert_eq!(world.count(1).held, 0, "{hop}");
        assert_eq!(world.path.next_wake(), None, "{hop}: nothing is left of the old hop");
        world.assert_conserved();
    }
}

/// Connections that end at an agent continue there; its successor waits for them.
#[test]
fn an_agent_stays_until_its_last_connection_ends() {
    let text = "transfer = { from = \"fixed\", to = \"mobile\", bytes = \"100kB\" }\n\
                [host.fixed]\npreset = \"rfc\"\n[host.mobile]\npreset = \"rfc\"\n\
                [[path]]\nlink = { rate = \"10mbit\", delay = \"5ms\" }\n\
                [[path]]\nagent = \"split\"\n\
                [[path]]\nradio = { rate = \"2mbit\", delay = \"1ms\" }\n";
    let (plan, _) = parse(text, "split", &[]).unwrap_or_else(|e| panic!("{e}: {}", e.help));
    let scenario = &plan.cells[0].scenario;
    let mut path = Path::of_scenario(scenario, 1, Interest::METRICS, |_| HostKind::Ours);
    let mut beyond = Beyond::default();
    let agent = |path: &Path| format!("{:?}", path.stages()[2]);
    let flows = |path: &Path| path.stages()[2].agent().map_or(0, |agent| agent.flows());
    while flows(&path) == 0 {
        let wake = path.next_wake().expect("the transfer goes on");
        path.wake(wake, &mut beyond);
    }
    assert_eq!(path.unfinished(), 1);
    assert!(agent(&path).starts_with("Agent(Split("), "{}", agent(&path));
    assert_eq!(path.replace_stage(2, stage("[[path]]\nagent = \"none\"\n")), 0);
    assert!(agent(&path).starts_with("Agent(Split("), "its connections go on");
    assert!(!path.retire_agents(), "they are not over");
    while let Some(wake) = path.next_wake() {
        path.wake(wake, &mut beyond);
    }
    assert!(path.is_finished(), "the transfer ended");
    assert!(path.retire_agents(), "the last connection is over");
    assert!(agent(&path).starts_with("Agent(None("), "{}", agent(&path));
    assert!(!path.retire_agents(), "once");
    for (stage, count) in path.counts() {
        assert!(count.is_conserved(), "stage {}: {count:?}", stage.0);
    }
}

/// Super-packets travel only where all inner stages support them.
#[test]
fn super_packets_need_support_of_all_stages() {
    let none = "[[path]]\nagent = \"none\"\n";
    for (text, takes) in [(none, true), (SLOW, false), (&[none, SLOW].concat(), false)] {
        let mut world = World::new(text);
        assert!(!world.path.is_bulk());
        world.path.set_bulk(true);
        assert_eq!(world.path.is_bulk(), takes, "{text}");
        world.path.set_bulk(false);
        assert!(!world.path.is_bulk());
    }
}
