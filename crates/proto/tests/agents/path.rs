//! Two real hosts with a base station between them, in virtual time. Wires have a rate and a delay, and lose
//! and damage packets.

use std::collections::BTreeMap;
use std::sync::Arc;

use lasthop_proto::agent::{Agent, AgentConfig, BaseStation as _};
use lasthop_proto::event::{EventKind, Interest, TcpKind};
use lasthop_proto::machine::{Machine, Out, Side, StageId};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::{Host, HostConfig, TcpConfig};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::checksum::checksum;
use lasthop_proto::wire::protocol::PROTOCOL_ICMP;
use lasthop_proto::wire::{Addr, Body, Damage, Flags, Packet, Quote, Transport};

pub const FIXED: Addr = Addr::v4(10, 0, 0, 1);
pub const MOBILE: Addr = Addr::v4(10, 1, 0, 1);

/// A wire: the time of a byte, the delay, and the number of lost or damaged packets of 1000.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    pub byte: Span,
    pub delay: Span,
    pub losses: u64,
}

/// A link with an MTU of `mtu` bytes, on wire number `wire`.
#[derive(Clone, Copy, Debug)]
pub struct Narrow {
    pub wire: usize,
    pub mtu: u32,
    /// Its router's report of larger packets: the MTU, no useful value (an old router), or no message at all.
    pub reports: Option<u16>,
}

/// The report of a router that `packet` is too large, to its source.
pub fn too_big(packet: &Packet, mtu: u16) -> Packet {
    let mut bytes = vec![3, 4, 0, 0, 0, 0];
    bytes.extend(mtu.to_be_bytes());
    Quote::of(packet).expect("TCP").body().copy_into(u32::MAX, &mut bytes);
    let sum = checksum(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    let router = Addr::v4(10, 9, 9, 9);
    let to = packet.src;
    Packet::opaque(router, to, Transport::Other(PROTOCOL_ICMP), Body::copy_of(&bytes))
}

/// Fixed host, base station, mobile host, with a wire between neighbours.
pub struct Path {
    pub hosts: [Host; 2],
    pub agent: Agent,
    wires: [Wire; 2],
    /// By wire and direction: the time at which it is free.
    free: [[Time; 2]; 2],
    /// Packets in flight: arrival time, departure order, stage, side.
    moving: BTreeMap<(Time, u64), (usize, Side, Packet)>,
    sent: u64,
    rng: Stream,
    out: Out,
    pub now: Time,
    pub corrupted: bool,
    /// Packets that were lost or damaged.
    pub lost: u64,
    /// Number of calls of a machine.
    calls: u64,
    /// Whether the base station is in bulk mode: its super-packets are split on output.
    bulk: bool,
    /// Number of super-packets.
    pub supers: usize,
    pub narrow: Option<Narrow>,
    /// The last TCP packet that arrived at the base station from each side.
    pub last: [Option<Packet>; 2],
    /// Resets that left each stage.
    pub resets: [u64; 3],
    /// By wire and direction: whether all packets are lost.
    pub cut: [[bool; 2]; 2],
    /// By wire and direction: number of packets so far, lost ones included.
    pub carried: [[u64; 2]; 2],
    /// Direction, traffic class and flow label of the base station's packets.
    pub sent_by_agent: Vec<(Side, u8, u32)>,
}

impl Path {
    pub fn new(tcp: [&TcpConfig; 2], agent: &AgentConfig, wires: [Wire; 2], seed: u64) -> Path {
        let host = |name: &str, addr, side, tcp: &TcpConfig| {
            let tcp = Arc::new(tcp.clone());
            Host::new(HostConfig { name: name.into(), addr, side, tcp }, seed)
        };
        Path {
            hosts: [
                host("fixed", FIXED, Side::Right, tcp[0]),
                host("mobile", MOBILE, Side::Left, tcp[1]),
            ],
            agent: Agent::new(agent),
            wires,
            free: [[Time::ZERO; 2]; 2],
            moving: BTreeMap::new(),
            sent: 0,
            rng: Stream::new(seed, "wires"),
            out: Out::new(Interest::METRICS),
            now: Time::ZERO,
            corrupted: false,
            lost: 0,
            calls: 0,
            bulk: false,
            supers: 0,
            narrow: None,
            last: [None, None],
            resets: [0; 3],
            cut: [[false; 2]; 2],
            carried: [[0; 2]; 2],
            sent_by_agent: Vec::new(),
        }
    }

    /// Cuts both directions of a wire, or repairs them.
    pub fn silence(&mut self, wire: usize, cut: bool) {
        self.cut[wire] = [cut; 2];
    }

    /// The base station may send super-packets, and collect its output until a batch is over.
    pub fn in_bulk(&mut self) {
        self.bulk = true;
    }

    /// Runs until `until`.
    pub fn run_until(&mut self, until: Time) {
        loop {
            let arrival = self.moving.first_key_value().map(|((at, _), _)| *at);
            let [fixed, mobile] = &self.hosts;
            let wakes = [fixed.next_wake(), self.agent.next_wake(), mobile.next_wake(), arrival];
            let first = (0..4).filter_map(|i| wakes[i].map(|at| (at, i))).min();
            let Some((at, i)) = first.filter(|(at, _)| *at <= until) else { break };
            self.now = self.now.max(at);
            self.calls += 1;
            assert!(self.calls < 10_000_000, "no end at {:?}, {i}: {:#?}", self.now, self.agent);
            self.out.begin(StageId(i.min(2) as u16), self.now);
            let stage = match i {
                0 => self.call(0, |machine, now, out| machine.on_wake(now, out)),
                1 => {
                    self.call(1, |machine, now, out| machine.on_wake(now, out));
                    let next = self.agent.next_wake();
                    assert!(next.is_none_or(|at| at > self.now), "due again at {:?}", self.now);
                    1
                }
                2 => self.call(2, |machine, now, out| machine.on_wake(now, out)),
                _ => {
                    let (_, (stage, from, packet)) = self.moving.pop_first().unwrap();
                    if stage == 1 && packet.segment().is_some() {
                        self.last[from.index()] = Some(packet.clone());
                    }
                    self.out.begin(StageId(stage as u16), self.now);
                    self.call(stage, |machine, now, out| machine.on_packet(now, from, packet, out))
                }
            };
            self.carry(stage);
        }
        self.now = until;
    }

    fn call(&mut self, i: usize, f: impl FnOnce(&mut dyn Machine, Time, &mut Out)) -> usize {
        self.out.set_bulk(self.bulk && i == 1);
        let machine: &mut dyn Machine = match i {
            0 => &mut self.hosts[0],
            1 => &mut self.agent,
            _ => &mut self.hosts[1],
        };
        f(machine, self.now, &mut self.out);
        i
    }

    /// Lets the application of host `i` act on its connection number `index`.
    pub fn act<T>(
        &mut self,
        i: usize,
        index: usize,
        f: impl FnOnce(&mut lasthop_proto::tcp::Connection, Time, &mut Out) -> T,
    ) -> T {
        self.out.begin(StageId(2 * i as u16), self.now);
        let mut answer = None;
        let (now, out) = (self.now, &mut self.out);
        self.hosts[i].act(index, |connection| answer = Some(f(connection, now, out)));
        self.carry(2 * i);
        answer.unwrap()
    }

    /// Inserts a third party's packet in front of the base station.
    pub fn inject(&mut self, from: Side, packet: Packet) {
        self.out.begin(StageId(1), self.now);
        self.call(1, |machine, now, out| machine.on_packet(now, from, packet, out));
        self.carry(1);
    }

    /// Makes the base station abort the connections that end at it.
    pub fn reset_endings(&mut self) {
        self.out.begin(StageId(1), self.now);
        self.agent.reset_endings(self.now, &mut self.out);
        self.carry(1);
    }

    /// Moves the mobile host to another base station, which receives the state of the old one.
    pub fn hand_over(&mut self, config: &AgentConfig) {
        self.out.begin(StageId(1), self.now);
        let state = self.agent.give_away(self.now, MOBILE, &mut self.out);
        self.carry(1);
        self.agent = Agent::new(config);
        if let Some(state) = state {
            self.out.begin(StageId(1), self.now);
            self.agent.take_over(self.now, state, &mut self.out).expect("an agent of its kind");
            self.carry(1);
        }
    }

    /// Puts the output of stage `i` on the wires.
    fn carry(&mut self, i: usize) {
        for event in self.out.events.drain(..) {
            if let EventKind::Tcp(tcp) | EventKind::Split(tcp) = event.kind {
                self.corrupted |= tcp.kind == TcpKind::Corrupted;
            }
        }
        let sends = core::mem::take(&mut self.out.sends);
        self.supers += sends.iter().filter(|(_, packet)| packet.pieces() > 1).count();
        let cut = |(side, packet): (Side, Packet)| {
            packet.cut().map(move |piece| (side, piece)).collect::<Vec<_>>()
        };
        for (side, mut packet) in sends.into_iter().flat_map(cut) {
            let (to, wire) = match side {
                Side::Right => (i + 1, i),
                Side::Left => (i - 1, i - 1),
            };
            if packet.segment().is_some_and(|segment| segment.flags.has(Flags::RST)) {
                self.resets[i] += 1;
            }
            self.carried[wire][side.index()] += 1;
            if i == 1 {
                self.sent_by_agent.push((side, packet.tos, packet.label));
            }
            if self.cut[wire][side.index()] {
                continue;
            }
            if let Some(narrow) = self.narrow.filter(|narrow| narrow.wire == wire)
                && packet.wire_len() > narrow.mtu
                // Its router fragments such packets, and the receiver reassembles them.
                && !packet.fragmentable
            {
                if let Some(mtu) = narrow.reports {
                    let report = too_big(&packet, mtu);
                    self.moving.insert((self.now + Span::millis(1), self.sent), (i, side, report));
                    self.sent += 1;
                }
                continue;
            }
            let Wire { byte, delay, losses } = self.wires[wire];
            let free = &mut self.free[wire][side.index()];
            *free = self.now.max(*free) + byte * u64::from(packet.wire_len());
            let fate = self.rng.below(1000);
            self.lost += u64::from(fate < losses);
            if fate < losses / 2 {
                continue;
            }
            if fate < losses {
                packet.damage = if fate.is_multiple_of(2) { Damage::Ip } else { Damage::Tcp };
            }
            self.moving.insert((*free + delay, self.sent), (to, side.other(), packet));
            self.sent += 1;
        }
    }
}
