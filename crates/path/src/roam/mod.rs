//! Cells behind the wired part of a path, and hosts that move between them.
//!
//! ```text
//! left hosts | wired part | router | ... | base station | agent | radio |  cell 0
//!                                  | ... | base station | radio |          cell 1, and so on
//! ```
//!
//! The router sends packets for a mobile host to the cell known to the wired side. Base stations decide about packets
//! for absent hosts. Both are stages with an index, counts and events; their logic needs the state of all hosts and is
//! in this module. A packet costs one host lookup, for any number of hosts and cells.

mod buffers;
mod tour;
mod way;

use core::ops::Range;
use std::collections::VecDeque;

use lasthop_proto::agent::Handover;
use lasthop_proto::event::{Cause, EventKind, Op};
use lasthop_proto::flows::AddrMap;
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wake::WakeTree;
use lasthop_proto::wire::{Addr, Damage, Packet};
use lasthop_scenario::model::Stage;
use lasthop_scenario::roaming::{Handoff, Policy, Roaming, StateMoves};
use lasthop_scenario::{Scenario, StageKind};

use buffers::{Copies, HostBuffers};
pub(crate) use tour::Move;
use tour::Walk;
pub(crate) use way::Way;

/// No cell.
const NONE: u16 = u16::MAX;

/// A cell on the path.
#[derive(Clone, Debug)]
struct CellStages {
    /// Its stages, the base station included.
    stages: Range<usize>,
    base: usize,
    /// Propagation time of its last link.
    reach: Span,
    /// Packets that its base station buffers.
    held: usize,
    agent: Option<usize>,
    /// Its agent, if connections end at this agent and their state moves.
    split: Option<usize>,
}

/// Agent state of a host, in transit to another base station.
#[derive(Clone, Debug)]
pub(crate) struct Transit {
    /// Time of arrival.
    pub at: Time,
    pub host: usize,
    /// The agent that waits for it.
    pub agent: usize,
    pub state: Handover,
}

/// A host that moves.
#[derive(Clone, Debug)]
struct Mobile {
    addr: Addr,
    stage: usize,
    /// Boxed: packets need only the other fields.
    walk: Box<Walk>,
    /// The cells whose signal it receives, the newest first.
    audible: [u16; 2],
    /// The cell that it left last, with the time.
    left: (u16, Time),
    /// The cell where the host is or will soon be, as far as the network has been notified.
    heading: u16,
    /// Whether it has not arrived there yet.
    expected: bool,
    /// The cell to which the wired side sends, and the neighbouring cells.
    route: u16,
    neighbours: [u16; 2],
    /// Whether it was reachable at least once.
    reached: bool,
    buffers: HostBuffers,
    copies: Copies,
}

impl Mobile {
    fn is_in(&self, cell: u16) -> bool {
        self.audible.contains(&cell)
    }

    /// Data sent in `cell` with this propagation time can no longer arrive.
    fn is_out_of(&self, cell: u16, now: Time, reach: Span) -> bool {
        let (left, at) = self.left;
        !self.is_in(cell) && (left != cell || now > at + reach)
    }
}

/// Cells, and the hosts that move between them.
#[derive(Clone, Debug)]
pub struct Roam {
    /// The stage at the end of the wired part.
    pub(crate) router: usize,
    /// The cell of each stage.
    cell_of: Vec<u16>,
    cells: Vec<CellStages>,
    handoff: Handoff,
    /// The first of the right hosts.
    hosts: usize,
    mobiles: Vec<Mobile>,
    by_addr: AddrMap<u16>,
    /// Cached host lookup.
    found: (Addr, Option<usize>),
    wakes: WakeTree,
    /// Agent state in transit.
    pub(crate) transit: Vec<Transit>,
    /// The destination cells of packets in the router, oldest first.
    aims: VecDeque<u16>,
    /// The cell of the packet that passes the router now.
    straight: Option<u16>,
}

impl Roam {
    /// The cells of `roaming` behind the stages before `router`; `host_stages` has the stage of each host.
    pub(crate) fn new(
        scenario: &Scenario,
        roaming: &Roaming,
        seed: u64,
        router: usize,
        host_stages: &[usize],
    ) -> Roam {
        let mut cell_of = vec![NONE; router + 1];
        let mut cells = Vec::new();
        for (i, cell) in roaming.cells.iter().enumerate() {
            let start = cell_of.len();
            cell_of.resize(start + cell.path.len() + 1, i as u16);
            let reach = match cell.path.last().map(|stage| &stage.kind) {
                Some(StageKind::Link(line)) => line.delay,
                Some(StageKind::Radio(radio)) => radio.radio.delay,
                _ => Span::ZERO,
            };
            let stages = start..cell_of.len();
            let is_agent = |stage: &Stage| matches!(stage.kind, StageKind::Agent(_));
            // The base station is in front of it.
            let at = cell.path.iter().position(is_agent);
            let agent = at.map(|at| start + at + 1);
            let splits = at.is_some_and(|at| {
                matches!(&cell.path[at].kind, StageKind::Agent(agent) if agent.splits_connections())
            });
            let split = agent.filter(|_| splits && roaming.handoff.state.is_some());
            cells.push(CellStages {
                stages,
                base: start + cell.base,
                reach,
                held: 0,
                agent,
                split,
            });
        }
        let hosts = cell_of.len();
        let mobiles: Vec<Mobile> = roaming
            .tours
            .iter()
            .map(|tour| {
                let host = &scenario.hosts[tour.host];
                let rng = Stream::new(seed, &format!("visits.{}", host.name));
                Mobile {
                    addr: host.addr,
                    stage: host_stages[tour.host],
                    walk: Box::new(Walk::new(tour.clone(), roaming.handoff.clone(), rng)),
                    audible: [NONE; 2],
                    left: (NONE, Time::ZERO),
                    heading: NONE,
                    expected: false,
                    route: NONE,
                    neighbours: [NONE; 2],
                    reached: false,
                    buffers: HostBuffers::default(),
                    copies: Copies::default(),
                }
            })
            .collect();
        let mut wakes = WakeTree::new(mobiles.len());
        let mut by_addr = AddrMap::default();
        for (i, mobile) in mobiles.iter().enumerate() {
            wakes.set(i, mobile.walk.next());
            by_addr.insert(mobile.addr, i as u16);
        }
        let handoff = roaming.handoff.clone();
        let (found, aims) = ((Addr::v4(0, 0, 0, 0), None), VecDeque::new());
        Roam {
            router,
            cell_of,
            cells,
            handoff,
            hosts,
            mobiles,
            by_addr,
            found,
            wakes,
            transit: Vec::new(),
            aims,
            straight: None,
        }
    }

    /// Time of the next move.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        let moves = self.wakes.first().map(|(at, _)| at);
        moves.into_iter().chain(self.transit.iter().map(|transit| transit.at)).min()
    }

    /// `stage` is the router or a base station.
    #[inline]
    pub(crate) fn is_at(&self, stage: usize) -> bool {
        match self.cell_of.get(stage) {
            Some(&NONE) => stage == self.router,
            Some(&cell) => self.cells[usize::from(cell)].base == stage,
            None => false,
        }
    }

    /// Packets buffered at `stage`.
    pub(crate) fn held(&self, stage: usize) -> usize {
        match self.cell_of.get(stage) {
            Some(&cell) if cell != NONE && self.is_at(stage) => self.cells[usize::from(cell)].held,
            _ => 0,
        }
    }

    /// The stage of the base station of a cell.
    pub(crate) fn base(&self, cell: u16) -> usize {
        self.cells[usize::from(cell)].base
    }

    /// The stage of `host` if its handoff is over: it is in a cell, and the wired side sends there.
    pub(crate) fn over(&mut self, host: usize) -> Option<usize> {
        let mobile = &mut self.mobiles[host];
        let over = mobile.audible[0] != NONE && mobile.audible[0] == mobile.route;
        // The first arrival is no handoff.
        (over && core::mem::replace(&mut mobile.reached, true)).then_some(mobile.stage)
    }

    /// The mobile host with this address. A packet is looked up at several stages in succession.
    #[inline]
    fn find(&mut self, addr: Addr) -> Option<usize> {
        if self.found.0 != addr {
            self.found = (addr, self.by_addr.get(&addr).map(|i| usize::from(*i)));
        }
        self.found.1
    }

    /// Whether `packet`, at `stage` on its way to `side`, passes without any action, which is the usual case.
    #[inline]
    pub(crate) fn passes(&mut self, stage: usize, side: Side, packet: &Packet) -> bool {
        if !self.is_at(stage) {
            return false;
        }
        match (side, stage == self.router) {
            // To the left hosts. Packets redirected to a mobile host take this direction as well.
            (Side::Left, true) => {
                self.handoff.packets != Policy::Forward || self.find(packet.dst).is_none()
            }
            (Side::Left, false) => true,
            (Side::Right, true) => {
                let Some(host) = self.find(packet.dst) else { return false };
                let route = self.mobiles[host].route;
                let passes = route != NONE && self.handoff.packets != Policy::Multicast;
                self.straight = passes.then_some(route);
                passes
            }
            (Side::Right, false) => {
                let cell = self.cell_of[stage];
                self.find(packet.dst).is_some_and(|host| self.mobiles[host].is_in(cell))
            }
        }
    }

    /// `packet` arrives at `stage`, which is the router or a base station.
    pub(crate) fn on_packet(&mut self, stage: usize, from: Side, packet: Packet, out: &mut Out) {
        if stage == self.router {
            self.at_router(from, packet, out);
        } else {
            self.at_base(self.cell_of[stage], from, packet, out);
        }
    }

    fn at_router(&mut self, from: Side, packet: Packet, out: &mut Out) {
        let Some(host) = self.find(packet.dst) else {
            match from {
                Side::Left => out.discard(Side::Right, packet, Cause::NoSuchConnection),
                Side::Right => out.send(Side::Left, packet),
            }
            return;
        };
        let mobile = &mut self.mobiles[host];
        // Packets returned by a base station follow the host, also before the wired side is notified.
        let aim = if from == Side::Right { mobile.heading } else { mobile.route };
        if aim == NONE {
            out.discard(Side::Right, packet, Cause::NoCell);
            return;
        }
        self.aims.push_back(aim);
        if self.handoff.packets != Policy::Multicast {
            out.send(Side::Right, packet);
            return;
        }
        let (neighbours, original) = (mobile.neighbours, packet.clone());
        out.send(Side::Right, packet);
        for cell in neighbours.into_iter().filter(|cell| *cell != NONE) {
            self.aims.push_back(cell);
            out.originate(Side::Right, original.clone(), Cause::HandoffCopy);
            if let Some((_, copy)) = out.sends.last() {
                mobile.copies.made(original.id, copy.id, self.handoff.buffer);
            }
        }
    }

    fn at_base(&mut self, cell: u16, from: Side, mut packet: Packet, out: &mut Out) {
        let Some(host) = self.find(packet.dst) else {
            out.send(from.other(), packet);
            return;
        };
        let mobile = &mut self.mobiles[host];
        if mobile.is_in(cell) {
            out.send(Side::Right, packet);
            return;
        }
        if from == Side::Right {
            // The packet was transmitted to an absent host. The copy of the base station is undamaged.
            packet.damage = Damage::None;
        }
        let knows = mobile.heading != cell || mobile.expected;
        let copied = is_copy(self.router, &packet);
        let in_state = self.cells[usize::from(cell)].has_in_state(&packet);
        match (self.handoff.packets, knows) {
            (_, false) if from == Side::Left => out.send(Side::Right, packet),
            (_, false) | (Policy::Drop, _) => out.discard(Side::Right, packet, Cause::LeftCell),
            (Policy::Forward, true) if in_state && !mobile.expected_or_gone(cell) => {
                out.discard(Side::Right, packet, Cause::HandoffStale);
            }
            (Policy::Forward, true) if !mobile.expected_or_gone(cell) => {
                out.packet_event(Op::Redirected(Cause::HandoffForwarded), Side::Left, &packet);
                out.send(Side::Left, packet);
            }
            (Policy::Multicast, true) if mobile.heading != cell && !copied => {
                out.discard(Side::Right, packet, Cause::LeftCell);
            }
            _ => {
                out.packet_event(Op::Redirected(Cause::HandoffKept), Side::Right, &packet);
                let held = &mut self.cells[usize::from(cell)].held;
                *held += 1;
                if let Some(oldest) = mobile.buffers.put(cell, packet, self.handoff.buffer) {
                    *held -= 1;
                    let stale = is_copy(self.router, &oldest);
                    let cause = if stale { Cause::HandoffStale } else { Cause::HandoffFull };
                    out.discard(Side::Right, oldest, cause);
                }
            }
        }
    }

    /// Removes and returns the earliest move, with its host.
    pub(crate) fn next_move(&mut self) -> Option<(usize, Move)> {
        let (_, host) = self.wakes.first()?;
        let step = self.mobiles[host].walk.step();
        self.wakes.set(host, self.mobiles[host].walk.next());
        Some((host, step?))
    }

    /// `host` has left `cell` towards `next`.
    pub(crate) fn leave(&mut self, host: usize, cell: u16, next: Option<u16>, out: &mut Out) {
        let mobile = &mut self.mobiles[host];
        mobile.audible = match mobile.audible {
            [first, second] if first == cell => [second, NONE],
            [first, _] => [first, NONE],
        };
        mobile.left = (cell, out.now());
        // If the host receives the next cell already, the network has been notified.
        if self.handoff.announced && mobile.audible[0] == NONE {
            mobile.heading = next.unwrap_or(NONE);
            mobile.expected = next.is_some();
        }
        out.event(EventKind::Handoff { host: mobile.addr, arrived: false });
    }

    /// `host` has arrived in `cell`, whose base station sends its buffered packets.
    pub(crate) fn arrive(&mut self, host: usize, cell: u16, out: &mut Out) {
        let mobile = &mut self.mobiles[host];
        mobile.audible = [cell, mobile.audible[0]];
        (mobile.heading, mobile.expected) = (cell, false);
        out.event(EventKind::Handoff { host: mobile.addr, arrived: true });
        for packet in mobile.buffers.take(cell) {
            self.cells[usize::from(cell)].held -= 1;
            // The host reports to its new base station which packets it has.
            if mobile.copies.is_delivered(packet.id) {
                out.discard(Side::Right, packet, Cause::HandoffStale);
            } else {
                out.send(Side::Right, packet);
            }
        }
    }

    /// Parameters of the transfer of agent state; `None` if state is lost.
    pub(crate) fn state_moves(&self) -> Option<StateMoves> {
        self.handoff.state
    }

    /// The agents of the last cell of `host` and of `cell`, if any, and its address.
    pub(crate) fn agents(&self, host: usize, cell: u16) -> (Option<usize>, Option<usize>, Addr) {
        let mobile = &self.mobiles[host];
        let agent = |cell: u16| self.cells.get(usize::from(cell)).and_then(|place| place.agent);
        // With an overlap it still receives the old cell.
        let old = if mobile.audible[0] == NONE { mobile.left.0 } else { mobile.audible[0] };
        (agent(old).filter(|_| old != cell), agent(cell), mobile.addr)
    }

    /// A cell other than the known cell of `host`, whose base station buffers packets of `host`.
    pub(crate) fn to_let_go(&self, host: usize) -> Option<u16> {
        let mobile = &self.mobiles[host];
        match self.handoff.packets {
            Policy::Drop | Policy::Keep => None,
            Policy::Forward | Policy::Multicast => mobile.buffers.other_than(mobile.heading),
        }
    }

    /// The base station of `cell` forwards its buffered packets of `host`.
    pub(crate) fn let_go(&mut self, host: usize, cell: u16, out: &mut Out) {
        let mobile = &mut self.mobiles[host];
        for packet in mobile.buffers.take(cell) {
            self.cells[usize::from(cell)].held -= 1;
            let place = &self.cells[usize::from(cell)];
            if self.handoff.packets == Policy::Forward && !place.has_in_state(&packet) {
                out.packet_event(Op::Redirected(Cause::HandoffForwarded), Side::Left, &packet);
                out.send(Side::Left, packet);
            } else {
                let stale = place.has_in_state(&packet) || is_copy(self.router, &packet);
                let cause = if stale { Cause::HandoffStale } else { Cause::LeftCell };
                out.discard(Side::Right, packet, cause);
            }
        }
    }

    /// The wired side sends to `cell` from now on.
    pub(crate) fn reroute(&mut self, host: usize, cell: u16) {
        let mobile = &mut self.mobiles[host];
        (mobile.route, mobile.neighbours) = (cell, mobile.walk.neighbours(cell));
    }
}

/// The stage that made this packet.
fn maker(packet: &Packet) -> usize {
    (packet.id.0 >> 48) as usize
}

/// The router made this packet: it makes only copies.
fn is_copy(router: usize, packet: &Packet) -> bool {
    maker(packet) == router
}

impl CellStages {
    /// Whether `packet` is a segment of an agent that ends connections, or a copy of one, and its state moves. The next
    /// agent sends this data itself, and would mistake the acknowledgement in the packet for one of the far end.
    fn has_in_state(&self, packet: &Packet) -> bool {
        self.split.is_some_and(|agent| (agent..self.stages.end).contains(&maker(packet)))
    }
}

impl Mobile {
    /// Whether packets at the base station of `cell` have no other destination: the host will arrive there, or its
    /// next cell is unknown.
    fn expected_or_gone(&self, cell: u16) -> bool {
        self.heading == cell || self.heading == NONE
    }
}
