//! Channel-state-dependent packet scheduling (CSDP): a queue per host, served in turn, except for hosts with
//! a bad channel (Bhagwat, Bhattacharya, Krishna and Tripathi 1996).
//!
//! In a base station with one queue for all mobile hosts, a packet for an unreachable host blocks all others:
//! medium access retries it while packets for other hosts wait. Here each host has a separate queue in a
//! shared buffer, and a *policy* selects the next one. In a radio hop with stations (`hop/waiting.rs`) the
//! base station also knows the state of each channel, and skips hosts with a bad one.
//!
//! **Knowledge of the channel.** By failures: medium access returns a frame after a number of attempts. The
//! packet returns to the head of its queue, and the host is skipped for a backoff time, unless a frame
//! arrives from it earlier. Or by an oracle, the true state of the channel, which no real station has: an
//! upper bound of the gain by an estimate.
//!
//! **Relation to the paper.** Its abstract was available, not its text. The queues, the choice by the
//! channel's state, and the layer above medium access are from the abstract. The names of the policies are
//! those of later work. The backoff, the attempts and the handling of returned packets are choices of this
//! model.
//!
//! Turns count packets, not bytes. On a line or a plain radio all hosts share one channel, so only the policy
//! has an effect.

use std::collections::VecDeque;

use serde::Serialize;

use super::{Discipline, Order, Read, Room, Waiting};
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::machine::{Out, Side};
use crate::units::{Span, Time};
use crate::wire::Addr;

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "csdp",
    system: System::new(
        Kind::Queue,
        "csdp",
        "path: discipline = \"csdp\"",
        "serves the mobile hosts in turn, skipping those whose channel is bad",
        "bakshi96 2, bhagwat96",
    )
    .tier(2),
    read: |k, _| Discipline::Csdp(CsdpConfig::keys(k)),
}];

/// Selection of the next host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// One packet of each host in turn.
    RoundRobin,
    /// The host with the most waiting packets; among equals the one served longest ago.
    LongestQueueFirst,
    /// The host of the oldest packet.
    Fifo,
}

/// Knowledge of a bad channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// None: all hosts are served.
    None,
    /// From failed attempts.
    Failures,
    /// The true state of the channel.
    Oracle,
}

/// Configuration of the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CsdpConfig {
    /// Selection of the next host.
    pub policy: Policy,
    /// Knowledge of a bad channel.
    pub channel: Knowledge,
    /// Time for which a host is skipped after a failure.
    pub backoff: Span,
    /// Successive attempts of medium access before it returns a frame.
    pub attempts: u32,
    /// Number of times a packet is passed to medium access before it is dropped.
    pub tries: u32,
}

impl Default for CsdpConfig {
    fn default() -> CsdpConfig {
        CsdpConfig {
            policy: Policy::RoundRobin,
            channel: Knowledge::Failures,
            backoff: Span::millis(50),
            attempts: 2,
            tries: 100,
        }
    }
}

impl CsdpConfig {
    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> CsdpConfig {
        let mut c = CsdpConfig::default();
        k.table("csdp", "options of channel-state-dependent scheduling", |k| {
            let policies = [
                ("round-robin", Policy::RoundRobin),
                ("longest-queue-first", Policy::LongestQueueFirst),
                ("fifo", Policy::Fifo),
            ];
            k.word("policy", &mut c.policy, &policies, "which host is served next");
            let ways = [
                ("failures", Knowledge::Failures),
                ("oracle", Knowledge::Oracle),
                ("none", Knowledge::None),
            ];
            let doc = "how the base station detects that the channel to a host is bad";
            k.word("channel", &mut c.channel, &ways, doc);
            let doc = "how long a host is skipped after a failure";
            k.within("backoff", &mut c.backoff, Span::micros(1)..=Span::secs(60), doc);
            let doc = "attempts after which medium access returns a frame to the queue";
            k.count("attempts", &mut c.attempts, 1..=255, doc);
            let doc = "how often a packet is passed to medium access before it is dropped";
            k.count("tries", &mut c.tries, 1..=1_000_000, doc);
        });
        c
    }
}

/// Waiting packets of one host.
#[derive(Clone, Debug)]
struct Backlog<H> {
    host: H,
    /// Packets with their arrival numbers.
    packets: VecDeque<(u64, Waiting)>,
}

/// The queues of all hosts `H`.
#[derive(Clone, Debug)]
pub struct Csdp<H> {
    policy: Policy,
    /// Hosts with waiting packets, the one served longest ago first.
    backlogs: VecDeque<Backlog<H>>,
    arrivals: u64,
}

impl<H: Copy + PartialEq> Csdp<H> {
    /// Number of waiting packets.
    pub(crate) fn len(&self) -> usize {
        self.backlogs.iter().map(|backlog| backlog.packets.len()).sum()
    }

    /// Asserts the invariants of the queues of hosts.
    pub fn check_backlogs(&self) {
        for (i, backlog) in self.backlogs.iter().enumerate() {
            debug_assert!(!backlog.packets.is_empty(), "a host without packets has no turn");
            debug_assert!(
                self.backlogs.iter().take(i).all(|other| other.host != backlog.host),
                "a host has one turn"
            );
            debug_assert!(
                backlog.packets.iter().take(2).all(|(stamp, _)| *stamp <= self.arrivals),
                "numbers of arrivals"
            );
        }
    }

    /// Empty queues.
    pub fn new(config: &CsdpConfig) -> Csdp<H> {
        Csdp { policy: config.policy, backlogs: VecDeque::new(), arrivals: 0 }
    }

    /// Whether packets for `host` wait.
    pub fn waits(&self, host: H) -> bool {
        self.backlogs.iter().any(|backlog| backlog.host == host)
    }

    fn backlog(&mut self, host: H) -> &mut VecDeque<(u64, Waiting)> {
        let known = self.backlogs.iter().position(|backlog| backlog.host == host);
        let i = known.unwrap_or_else(|| {
            self.backlogs.push_back(Backlog { host, packets: VecDeque::new() });
            self.backlogs.len() - 1
        });
        &mut self.backlogs[i].packets
    }

    /// Adds a packet for `host`. Urgent packets of a base station precede all others.
    pub fn put(&mut self, host: H, waiting: Waiting) {
        self.arrivals += 1;
        let stamp = self.arrivals;
        let packets = self.backlog(host);
        let urgent = waiting.packet.urgent;
        let before = packets.iter().position(|(_, other)| urgent && !other.packet.urgent);
        packets.insert(before.unwrap_or(packets.len()), (stamp, waiting));
    }

    /// Returns a packet to the head of its queue.
    pub fn put_back(&mut self, host: H, stamp: u64, waiting: Waiting) {
        self.backlog(host).push_front((stamp, waiting));
    }

    /// The host that the policy serves next, among those that are `open`.
    //= bhagwat96: dispatching takes the state of the channels into account; FIFO lets one bad channel block all
    pub fn next(&self, open: impl Fn(H) -> bool) -> Option<H> {
        let mut open = self.backlogs.iter().filter(|backlog| open(backlog.host));
        let chosen = match self.policy {
            Policy::RoundRobin => open.next(),
            // Among equals the first, which `max_by_key` would not return.
            Policy::LongestQueueFirst => {
                open.reduce(|best, b| if b.packets.len() > best.packets.len() { b } else { best })
            }
            Policy::Fifo => open.min_by_key(|backlog| backlog.packets.front().map(|(at, _)| *at)),
        };
        chosen.map(|backlog| backlog.host)
    }

    /// Removes the next packet for `host`, with its arrival number. The host moves to the end of the turns.
    pub fn take(&mut self, host: H) -> Option<(u64, Waiting)> {
        let i = self.backlogs.iter().position(|backlog| backlog.host == host)?;
        let mut backlog = self.backlogs.remove(i)?;
        let packet = backlog.packets.pop_front();
        if !backlog.packets.is_empty() {
            self.backlogs.push_back(backlog);
        }
        packet
    }
}

impl Order for Csdp<Addr> {
    fn check(&self, room: &Room) {
        debug_assert_eq!(self.len(), room.len(), "packets of all hosts");
        self.check_backlogs();
    }

    fn enqueue(&mut self, _: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        if !room.admits(waiting.bytes) {
            return waiting.overflow(side, out);
        }
        room.add(waiting.bytes);
        self.put(waiting.packet.dst, waiting);
    }

    fn dequeue(&mut self, _: Time, _: Side, room: &mut Room, _: &mut Out) -> Option<Waiting> {
        let host = self.next(|_| true)?;
        let (_, waiting) = self.take(host)?;
        room.remove(waiting.bytes);
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Body, Flags, Packet, PacketId, Segment, Seq};

    fn waiting(host: u8, id: u64) -> Waiting {
        let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
        let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 1, host));
        let packet = Packet::tcp(src, dst, segment, Body::EMPTY);
        Waiting { packet: packet.with(|packet| packet.id = PacketId(id)), bytes: 40 }
    }

    /// Three packets for host 1, two for host 2, one for host 3, in this order.
    fn filled(policy: Policy) -> Csdp<u8> {
        let mut queue = Csdp::new(&CsdpConfig { policy, ..CsdpConfig::default() });
        for (id, host) in [1, 1, 1, 2, 2, 3].into_iter().enumerate() {
            queue.put(host, waiting(host, id as u64));
        }
        queue
    }

    fn served(queue: &mut Csdp<u8>, open: impl Fn(u8) -> bool) -> Vec<u64> {
        let mut ids = Vec::new();
        while let Some(host) = queue.next(&open) {
            ids.push(queue.take(host).unwrap().1.packet.id.0);
        }
        ids
    }

    #[test]
    fn each_policy_has_its_order() {
        let order = |policy| served(&mut filled(policy), |_| true);
        assert_eq!(order(Policy::RoundRobin), [0, 3, 5, 1, 4, 2]);
        assert_eq!(order(Policy::LongestQueueFirst), [0, 3, 1, 5, 4, 2]);
        assert_eq!(order(Policy::Fifo), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_closed_host_is_skipped_and_retains_its_packets() {
        for policy in [Policy::RoundRobin, Policy::LongestQueueFirst, Policy::Fifo] {
            let mut queue = filled(policy);
            let others = served(&mut queue, |host| host != 1);
            assert!(others.iter().all(|id| *id > 2) && others.len() == 3, "{policy:?}");
            assert_eq!(served(&mut queue, |_| true), [0, 1, 2], "{policy:?}");
        }
    }

    #[test]
    fn a_returned_packet_is_first_for_its_host() {
        let mut queue = filled(Policy::Fifo);
        let (stamp, first) = queue.take(1).unwrap();
        queue.put_back(1, stamp, first);
        assert_eq!(served(&mut queue, |_| true), [0, 1, 2, 3, 4, 5]);
        let (stamp, only) = { filled(Policy::Fifo).take(3).unwrap() };
        queue.put_back(3, stamp, only);
        assert!(queue.waits(3) && !queue.waits(1));
    }

    #[test]
    fn an_urgent_packet_is_served_first_for_its_host() {
        let mut queue = filled(Policy::RoundRobin);
        let mut hurry = waiting(2, 9);
        hurry.packet.urgent = true;
        queue.put(2, hurry);
        assert_eq!(served(&mut queue, |_| true), [0, 9, 5, 1, 3, 2, 4]);
    }
}
