//! Channel-state-dependent packet scheduling (CSDP): a queue for each host, served in turn, without those whose
//! channel is bad (Bhagwat, Bhattacharya, Krishna and Tripathi 1996).
//!
//! A base station with one queue for all its mobile hosts is held up by the first packet for a host that hears
//! nothing: medium access tries it again and again while packets for others wait behind it. Here each host has a
//! queue of its own in a buffer that all share. A *policy* says whose turn it is. In a radio hop with stations
//! (`hop/waiting.rs`) the base station also knows something of the channel to each of them, and passes over those
//! whose channel is bad.
//!
//! **How it knows.** By failures: medium access hands a frame back after so many attempts; the packet goes back to the
//! head of its queue, and nothing is sent to that host for a back-off time, unless something is heard from it before.
//! Or by an oracle, the channel's state itself, which no real station has: the bound of what an estimate can gain.
//!
//! **What is after the paper, and what is not.** Its abstract was read, not its text. From it are the queues, the
//! choice by the channel's state, and its place above medium access. The names of the policies are those by which
//! later work speaks of it. The back-off, the attempts and what becomes of a packet that comes back are our choices.
//!
//! Turns go by packets, not by bytes. On a line or a plain radio there is one channel for all, and nothing to know of
//! it: there only the policy is left.

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

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// One packet of each host after the other.
    RoundRobin,
    /// The host for which most packets wait; of equals the one served longest ago.
    LongestQueueFirst,
    /// The packet that came first: the earliest time stamp.
    Fifo,
}

/// How the base station knows of a bad channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// It does not, and serves all.
    None,
    /// By attempts that failed.
    Failures,
    /// The channel itself tells.
    Oracle,
}

/// How hosts are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CsdpConfig {
    /// Whose turn it is.
    pub policy: Policy,
    /// How the base station knows of a bad channel.
    pub channel: Knowledge,
    /// How long a host is passed over after a failure.
    pub backoff: Span,
    /// Attempts of medium access in a row after which it hands a frame back.
    pub attempts: u32,
    /// How often a packet is handed to medium access before it is dropped.
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
    /// Goes over the keys.
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
            let what = "how the base station knows that the channel to a host is bad";
            k.word("channel", &mut c.channel, &ways, what);
            let what = "how long a host is passed over after a failure";
            k.within("backoff", &mut c.backoff, Span::micros(1)..=Span::secs(60), what);
            let what = "attempts of medium access after which it hands a frame back";
            k.count("attempts", &mut c.attempts, 1..=255, what);
            let what = "how often a packet is handed to medium access before it is dropped";
            k.count("tries", &mut c.tries, 1..=1_000_000, what);
        });
        c
    }
}

/// What waits for one host.
#[derive(Clone, Debug)]
struct Backlog<H> {
    host: H,
    /// Each with its place in the order of arrival.
    packets: VecDeque<(u64, Waiting)>,
}

/// The queues of all hosts `H`.
#[derive(Clone, Debug)]
pub struct Csdp<H> {
    policy: Policy,
    /// Hosts for which something waits, the one served longest ago first.
    backlogs: VecDeque<Backlog<H>>,
    arrivals: u64,
}

impl<H: Copy + PartialEq> Csdp<H> {
    /// Empty queues.
    pub fn new(config: &CsdpConfig) -> Csdp<H> {
        Csdp { policy: config.policy, backlogs: VecDeque::new(), arrivals: 0 }
    }

    /// Whether something waits for `host`.
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

    /// A packet for `host` arrives. What a base station wants to go first stands before what is not urgent.
    pub fn put(&mut self, host: H, waiting: Waiting) {
        self.arrivals += 1;
        let stamp = self.arrivals;
        let packets = self.backlog(host);
        let urgent = waiting.packet.urgent;
        let before = packets.iter().position(|(_, other)| urgent && !other.packet.urgent);
        packets.insert(before.unwrap_or(packets.len()), (stamp, waiting));
    }

    /// A packet that was taken comes back, to the head of its queue.
    pub fn put_back(&mut self, host: H, stamp: u64, waiting: Waiting) {
        self.backlog(host).push_front((stamp, waiting));
    }

    /// Whom the policy serves next, of those that are `open`.
    //= bhagwat96: dispatching takes the state of the channels into account; FIFO lets one bad channel block all
    pub fn next(&self, open: impl Fn(H) -> bool) -> Option<H> {
        let mut open = self.backlogs.iter().filter(|backlog| open(backlog.host));
        let chosen = match self.policy {
            Policy::RoundRobin => open.next(),
            // Of equals the first, which `max_by_key` would not give.
            Policy::LongestQueueFirst => {
                open.reduce(|best, b| if b.packets.len() > best.packets.len() { b } else { best })
            }
            Policy::Fifo => open.min_by_key(|backlog| backlog.packets.front().map(|(at, _)| *at)),
        };
        chosen.map(|backlog| backlog.host)
    }

    /// The next packet for `host`, with its place in the order of arrival. The host goes to the end of the turns.
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
    fn enter(&mut self, _: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        if !room.admits(waiting.bytes) {
            return waiting.overflow(side, out);
        }
        room.add(waiting.bytes);
        self.put(waiting.packet.dst, waiting);
    }

    fn leave(&mut self, _: Time, _: Side, room: &mut Room, _: &mut Out) -> Option<Waiting> {
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
    fn who_is_closed_is_passed_over_and_keeps_its_packets() {
        for policy in [Policy::RoundRobin, Policy::LongestQueueFirst, Policy::Fifo] {
            let mut queue = filled(policy);
            let others = served(&mut queue, |host| host != 1);
            assert!(others.iter().all(|id| *id > 2) && others.len() == 3, "{policy:?}");
            assert_eq!(served(&mut queue, |_| true), [0, 1, 2], "{policy:?}");
        }
    }

    #[test]
    fn what_comes_back_is_the_first_of_its_host_again() {
        let mut queue = filled(Policy::Fifo);
        let (stamp, first) = queue.take(1).unwrap();
        queue.put_back(1, stamp, first);
        assert_eq!(served(&mut queue, |_| true), [0, 1, 2, 3, 4, 5]);
        let (stamp, only) = { filled(Policy::Fifo).take(3).unwrap() };
        queue.put_back(3, stamp, only);
        assert!(queue.waits(3) && !queue.waits(1));
    }

    #[test]
    fn what_is_urgent_goes_first_for_its_host() {
        let mut queue = filled(Policy::RoundRobin);
        let mut hurry = waiting(2, 9);
        hurry.packet.urgent = true;
        queue.put(2, hurry);
        assert_eq!(served(&mut queue, |_| true), [0, 9, 5, 1, 3, 2, 4]);
    }
}
