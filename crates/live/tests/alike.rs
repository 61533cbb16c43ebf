//! The same packets repair the same losses in virtual time and on both data planes.

use std::collections::VecDeque;

use crate::common::ends::{Hosts, Read};
use crate::common::losses::losses;
use crate::common::*;
use lasthop_live::sys::packet_socket::Inbox;
use lasthop_observe::Nothing;
use lasthop_path::Stage;
use lasthop_proto::agent::{Agent, AgentConfig, SnoopAgent, SnoopConfig};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Machine as _, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::Flags;

const LEN: u32 = 100;
/// Segments of the transfer.
const SEGMENTS: u32 = 800;
/// Segments in flight before the first ACK is read.
const WINDOW: u32 = 8;

/// Timers are set too long to repair anything: steps on a busy machine have no fixed duration.
fn config() -> AgentConfig {
    let slow = Span::secs(600);
    let snoop = SnoopConfig {
        flow_packets: 4096,
        initial_timeout: slow,
        min_timeout: slow,
        persist: slow,
        ..SnoopConfig::west97()
    };
    AgentConfig::Snoop(SnoopAgent { snoop, ackp: None })
}

fn stage() -> Stage {
    Stage::Agent(Box::new(Agent::new(&config())))
}

/// A base station with a test host on each side.
trait World {
    /// Sends a segment from the host on side `from` to the base station.
    fn put(&mut self, from: usize, flags: Flags, at: u32, acks: u32, len: u32);

    /// Segments that have arrived at `side` since the last call. Waits briefly for the first; with `must`,
    /// waits until there is one.
    fn came(&mut self, side: usize, must: bool) -> Vec<Read>;
}

/// Virtual time as in the simulator: each step takes a millisecond.
struct Virtual {
    hosts: Hosts,
    agent: Agent,
    out: Out,
    now: Time,
    came: [Vec<Read>; 2],
}

impl World for Virtual {
    fn put(&mut self, from: usize, flags: Flags, at: u32, acks: u32, len: u32) {
        self.now += Span::millis(1);
        let packet = self.hosts.packet(from, flags, at, acks, len);
        let side = if from == 0 { Side::Left } else { Side::Right };
        self.out.begin(Default::default(), self.now);
        self.agent.on_packet(self.now, side, packet, &mut self.out);
        for (to, packet) in self.out.sends.drain(..) {
            let side = usize::from(to == Side::Right);
            let segment = packet.segment().unwrap();
            self.came[side].push(self.hosts.read(side, segment, packet.body.len()));
        }
    }

    fn came(&mut self, side: usize, _: bool) -> Vec<Read> {
        core::mem::take(&mut self.came[side])
    }
}

/// A data plane between packet sockets.
struct Live {
    hosts: Hosts,
    inbox: Inbox,
}

impl World for Live {
    fn put(&mut self, from: usize, flags: Flags, at: u32, acks: u32, len: u32) {
        self.hosts.send(from, flags, at, acks, len);
    }

    fn came(&mut self, side: usize, must: bool) -> Vec<Read> {
        for turn in 0..if must { 20_000 } else { 102 } {
            self.inbox.receive(&self.hosts.sockets[side]).unwrap();
            let frames: Vec<&[u8]> = self.inbox.frames().collect();
            let came = self.hosts.read_all(side, &frames);
            if !came.is_empty() {
                return came;
            }
            if turn < 100 {
                std::thread::yield_now();
            } else {
                pause(1);
            }
        }
        assert!(!must, "nothing came to side {side}");
        Vec::new()
    }
}

/// Result of a transfer.
#[derive(Default, Debug, PartialEq, Eq)]
struct Outcome {
    /// Number of transmissions of each segment over the wireless hop, lost ones included.
    sent: Vec<u32>,
    /// Duplicate ACKs that the fixed host received.
    leaked: u64,
}

/// Number of losses of a segment: one of 32 is lost once or twice. The last segments are not lost, so that
/// data follows each loss.
fn lost(number: u32) -> u32 {
    let drawn = (4 * number..4 * number + 4).map(losses).max();
    drawn.filter(|_| number + 50 < SEGMENTS).unwrap_or(0)
}

/// Sends data from the fixed to the mobile host, which acknowledges each segment. The fixed host retransmits
/// nothing. It has [`WINDOW`] segments in flight; while one is missing it continues to send, as duplicate
/// ACKs would permit.
fn transfer(world: &mut impl World) -> Outcome {
    let ack = Flags::ACK;
    for (from, flags, at, acks) in
        [(1, Flags::SYN, 0, 0), (0, Flags::SYN | ack, 0, 1), (1, ack, 1, 1)]
    {
        world.put(from, flags, at, acks, 0);
        assert_eq!(world.came(1 - from, true).len(), 1);
    }
    let mut outcome = Outcome { sent: vec![0; SEGMENTS as usize], ..Outcome::default() };
    let mut has = vec![false; SEGMENTS as usize];
    let (mut sent, mut next) = (0, 0);
    while next < SEGMENTS {
        let mut came = VecDeque::new();
        while sent < SEGMENTS && (came.is_empty() || sent < next + WINDOW) {
            world.put(0, ack, 1 + sent * LEN, 1, LEN);
            came.extend(world.came(1, true));
            sent += 1;
        }
        while let Some((_, at, _, len)) = came.pop_front() {
            assert_eq!((len, (at - 1) % LEN), (LEN, 0));
            let number = (at - 1) / LEN;
            let count = &mut outcome.sent[number as usize];
            *count += 1;
            if *count <= lost(number) {
                continue;
            }
            let before = next;
            has[number as usize] = true;
            while has.get(next as usize) == Some(&true) {
                next += 1;
            }
            world.put(1, ack, 1, 1 + next * LEN, 0);
            if next > before {
                let new = (ack, 1, 1 + next * LEN, 0);
                let mut arrived = false;
                while !arrived {
                    let acks = world.came(0, true);
                    arrived = acks.contains(&new);
                    outcome.leaked += acks.iter().filter(|came| **came != new).count() as u64;
                }
            } else {
                came.extend(world.came(1, false));
            }
        }
    }
    outcome
}

#[test]
fn the_same_losses_are_repaired_in_virtual_time_and_on_both_planes() {
    alone_as_root("the_same_losses_are_repaired_in_virtual_time_and_on_both_planes", || {
        wire(Wires::default());
        let mut world = Virtual {
            hosts: Hosts::new(),
            agent: Agent::new(&config()),
            out: Out::new(Interest::NOTHING),
            now: Time::ZERO,
            came: Default::default(),
        };
        let reference = transfer(&mut world);
        let each: Vec<u32> = (0..SEGMENTS).map(|number| 1 + lost(number)).collect();
        assert!(each.iter().sum::<u32>() > SEGMENTS + 15, "losses are too few");
        assert_eq!(reference, Outcome { sent: each, leaked: 0 }, "in virtual time");
        for by in [By::Sockets, By::Kernel] {
            let station = station_by(by, Nothing, || vec![stage()]);
            let mut world = Live { hosts: Hosts::new(), inbox: Inbox::new() };
            let outcome = transfer(&mut world);
            let counts = station.stop().1.plane.unwrap_or_default();
            assert_eq!(outcome.sent, reference.sent, "{by:?}: {counts:?}");
            // Duplicate ACKs that a descheduled station did not divert in time.
            assert!(outcome.leaked <= counts.by_itself, "{by:?}: {} {counts:?}", outcome.leaked);
        }
    });
}
