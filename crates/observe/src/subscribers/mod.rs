//! A view of each subscriber of a station, from the TCP segments that pass: goodput, losses, retransmissions, round
//! trips on both sides, and a grade.
//!
//! ```text
//! server --- left end | station | right end --- radio --- subscriber
//! ```
//!
//! A subscriber is an address on the right, or a prefix. Nothing is sent for the measurement, so each figure has a
//! definition that passing segments can answer:
//!
//! - **Goodput**: payload that its receiver acknowledges for the first time.
//! - **Round trip on the radio side**: from data that leaves at the right to the ACK that covers it. One segment of a
//!   connection is timed at once, and none that a retransmission delays (Karn's algorithm). A delayed ACK adds its delay.
//! - **Round trip on the server side**: from data of the subscriber to the server's ACK, and from a timestamp of an ACK
//!   to the data that echoes it (RFC 7323), while the server has more data in flight.
//! - **Loss towards the subscriber**: bytes that leave at the right once more, as a share of all that leave. Losses that
//!   the radio's link layer repairs are not visible, nor is the last loss before a connection ends. A needless
//!   retransmission counts as a loss.
//! - **Loss from the subscriber**, and **before the station**: bytes that arrive after later ones, as a share of new ones.
//!   Reordering counts as a loss.
//! - **Grade**: [`Grade`] of the median round trip on the radio side less the least one.
//!
//! Only segments that the hosts would accept count ([`Guard`]). State is created by segments from the right, so that
//! strangers on the left cannot fill the tables. Both tables have a fixed limit and evict the least recently seen.

mod account;
mod crossed;
mod flow;
mod report;
#[cfg(test)]
mod tests;
mod timer;
mod trips;

use lasthop_proto::agent::flows::Flows;
use lasthop_proto::agent::guard::{Guard, Standing};
use lasthop_proto::machine::Side;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Damage, Flags, FlowKey, Packet, PacketId, Segment};

use crate::Passage;
use crate::grade::Grade;
use account::Account;
use crossed::Room;
use flow::{Crossing, Flow};

pub use account::{Transfers, Upload};
pub use report::{Order, Overview, Prefix, Subscriber, retain_first};
pub use trips::RecentTrips;

/// Gaps in the data of all connections; a gap takes at most 32 bytes.
const GAPS: u32 = 1 << 18;

/// The order of use of subscribers is accurate to this time.
const TOUCH: Span = Span::secs(1);

/// Limits, and the meaning of a subscriber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Leading bits of an IPv4 address that identify a subscriber.
    pub prefix4: u8,
    /// Leading bits of an IPv6 address that identify a subscriber.
    pub prefix6: u8,
    /// Limit of subscribers.
    pub most: usize,
    /// Limit of connections.
    pub flows: usize,
}

/// A connection with the account of its subscriber.
#[derive(Clone, Debug, Default)]
struct Tracked {
    flow: Flow,
    slot: usize,
    /// [`Account::number`] of the account in that slot.
    number: u64,
}

/// The accounts of all subscribers.
#[derive(Clone, Debug)]
pub struct Subscribers {
    config: Config,
    guard: Guard,
    /// By flow from left to right.
    flows: Flows<Tracked>,
    /// By prefix, see [`Subscribers::key`].
    accounts: Flows<Account>,
    room: Room,
    /// Number of accounts so far.
    opened: u64,
    flows_evicted: u64,
    /// Segments that the hosts would not accept.
    refused: u64,
    /// The latest of them, which must not count when it leaves.
    latest_refused: Option<PacketId>,
}

impl Subscribers {
    /// An empty view.
    pub fn new(config: Config) -> Subscribers {
        Subscribers {
            config,
            guard: Guard::new(config.flows),
            flows: Flows::new(config.flows),
            accounts: Flows::new(config.most),
            room: Room::new(GAPS),
            opened: 0,
            flows_evicted: 0,
            refused: 0,
            latest_refused: None,
        }
    }

    /// A packet towards `side` enters or leaves the station. `local` is whether the station itself has made it.
    pub fn passage(
        &mut self,
        now: Time,
        side: Side,
        packet: &Packet,
        passage: Passage,
        local: bool,
    ) {
        let (Some(segment), Some(flow)) = (packet.segment(), packet.flow()) else { return };
        if packet.damage != Damage::None {
            return;
        }
        let key = if side == Side::Right { flow } else { flow.reversed() };
        let old = match passage {
            Passage::Out if self.latest_refused == Some(packet.id) => return,
            Passage::Out => false,
            Passage::In | Passage::Copied => {
                let Some(old) = self.accepts(now, side, packet, segment, key) else { return };
                old
            }
        };
        let complete = passage != Passage::Copied;
        let crossing = Crossing { now, packet, segment, old, complete };
        let (enters, leaves) = (passage != Passage::Out, passage != Passage::In);
        let creates = side == Side::Left && enters;
        let Some(i) = self.connection(now, key, creates) else { return };
        let Subscribers { flows, accounts, room, .. } = self;
        let Tracked { flow, slot, .. } = &mut flows[i];
        let account = &mut accounts[*slot];
        account.seen = now;
        account.roll(now);
        match side {
            Side::Right => {
                if enters {
                    flow.enters_left(crossing, account, room);
                }
                if leaves {
                    flow.leaves_right(crossing, local, account, room);
                }
            }
            Side::Left => {
                if enters {
                    flow.enters_right(crossing, account, room);
                }
                if leaves {
                    flow.leaves_left(crossing);
                }
            }
        }
    }

    /// Whether the hosts accept a segment that enters, and whether its receiver has all its data already. `None` if
    /// it is not measured.
    fn accepts(
        &mut self,
        now: Time,
        side: Side,
        packet: &Packet,
        segment: &Segment,
        key: FlowKey,
    ) -> Option<bool> {
        let known = self.flows.find(key);
        let resets = segment.flags.has(Flags::RST);
        if known.is_none() && (side == Side::Right || resets) {
            return None;
        }
        let standing = self.guard.judge(now, side.other(), packet);
        match standing {
            Standing::Good if resets => self.remove(known),
            Standing::Good => return Some(false),
            Standing::Old => return Some(true),
            Standing::Reopened(_) => {
                if let Some(i) = known {
                    self.flows[i].flow.clear(&mut self.room);
                    self.flows[i].flow = Flow::default();
                }
                return Some(false);
            }
            Standing::Doubtful | Standing::Lost => {
                self.refused += 1;
                self.latest_refused = Some(packet.id);
                if standing == Standing::Lost {
                    self.remove(known);
                }
            }
        }
        None
    }

    /// Removes the connection in a slot.
    fn remove(&mut self, slot: Option<usize>) {
        if let Some(i) = slot {
            self.flows[i].flow.clear(&mut self.room);
            self.flows.remove(i);
        }
    }

    /// The slot of a connection, with an account; both are created if `creates`.
    fn connection(&mut self, now: Time, key: FlowKey, creates: bool) -> Option<usize> {
        let i = match self.flows.find(key) {
            Some(i) => i,
            None if !creates => return None,
            None => {
                if self.flows.is_full() {
                    self.remove(self.flows.oldest());
                    self.flows_evicted += 1;
                }
                let i = self.flows.insert(key);
                self.flows[i] = Tracked::default();
                i
            }
        };
        let Tracked { slot, number, .. } = self.flows[i];
        // Numbers begin at 1, so a new connection has none.
        let has_account = number > 0 && self.accounts[slot].number == number;
        if !has_account || now.since(self.accounts[slot].touched) >= TOUCH {
            let slot = self.account(now, key.dst);
            let account = &mut self.accounts[slot];
            account.touched = now;
            let number = account.number;
            let tracked = &mut self.flows[i];
            (tracked.slot, tracked.number) = (slot, number);
        }
        Some(i)
    }

    /// The account of the subscriber with this address, which becomes the most recently used.
    fn account(&mut self, now: Time, addr: Addr) -> usize {
        let key = self.key(addr);
        if let Some(slot) = self.accounts.find(key) {
            return slot;
        }
        if self.accounts.is_full()
            && let Some(oldest) = self.accounts.oldest()
        {
            self.accounts.remove(oldest);
        }
        let slot = self.accounts.insert(key);
        self.opened += 1;
        self.accounts[slot] = Account::new(now, self.opened);
        slot
    }

    /// The key of a subscriber's account: its prefix as an address, without ports.
    fn key(&self, addr: Addr) -> FlowKey {
        let prefix = Prefix::of(addr, self.config.prefix4, self.config.prefix6);
        FlowKey { src: prefix.addr(), dst: prefix.addr(), src_port: 0, dst_port: 0 }
    }

    /// Number of slots of accounts. Each is in use.
    pub fn slots(&self) -> usize {
        self.accounts.slots()
    }

    /// The subscriber in a slot.
    pub fn subscriber(&self, now: Time, slot: usize) -> Option<Subscriber> {
        if slot >= self.accounts.slots() {
            return None;
        }
        let Config { prefix4, prefix6, .. } = self.config;
        let prefix = Prefix::of(self.accounts.key(slot).dst, prefix4, prefix6);
        let mut account = self.accounts[slot].clone();
        account.roll(now);
        Some(Subscriber::of(now, prefix, &account))
    }

    /// The state of the tables, without the grades of [`Overview::add`].
    pub fn overview(&self) -> Overview {
        let followed = self.accounts.len() as u64;
        Overview {
            followed,
            most: self.config.most as u64,
            evicted: self.opened - followed,
            flows: self.flows.len() as u64,
            flows_evicted: self.flows_evicted,
            refused: self.refused,
            grades: Grade::ALL.map(|grade| (grade.name().to_owned(), 0)).into(),
            ungraded: 0,
        }
    }
}
