//! The view of subscribers of a running station: the loop feeds it, and other threads read it.

use std::sync::{Arc, Mutex};

use lasthop_observe::subscribers::{
    Config, Order, Overview, Prefix, Subscriber, Subscribers, retain_first,
};
use lasthop_observe::{Passage, Sink};
use lasthop_proto::event::{Event, Interest, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{FlowKey, Packet};
use lasthop_scenario::SubscriberConfig;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::lock;

/// Number of subscribers that are read in one piece. The loop waits for a piece at most: about 0.1 ms.
const PIECE: usize = 128;

/// Subscribers at one time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SubscriberList {
    /// The state of the tables.
    #[serde(flatten)]
    pub overview: Overview,
    /// The requested subscribers, sorted.
    pub subscribers: Vec<Subscriber>,
}

/// A view of subscribers, shared by the loop of a station and its readers.
#[derive(Clone)]
pub struct SubscriberView {
    shared: Arc<Mutex<Subscribers>>,
    clock: Clock,
}

impl SubscriberView {
    /// An empty view with times of `clock`, that of the station.
    pub fn of(config: SubscriberConfig, clock: Clock) -> SubscriberView {
        let SubscriberConfig { prefix4, prefix6, most, flows, metrics: _ } = config;
        let subscribers = Subscribers::new(Config { prefix4, prefix6, most, flows });
        SubscriberView { shared: Arc::new(Mutex::new(subscribers)), clock }
    }

    /// The sink that feeds it. `ports` are the stages of the interfaces.
    pub fn tap(&self, ports: [StageId; 2]) -> SubscriberTap {
        SubscriberTap { shared: self.shared.clone(), ports }
    }

    /// The first `most` subscribers of an order, of all or of those in `within`.
    pub fn list(&self, order: Order, most: usize, within: Option<Prefix>) -> SubscriberList {
        let now = self.clock.now();
        let mut overview = lock(&self.shared).overview();
        let mut subscribers: Vec<Subscriber> = Vec::new();
        for first in (0..).step_by(PIECE) {
            let piece: Vec<Subscriber> = {
                let shared = lock(&self.shared);
                let slots = first..shared.slots().min(first + PIECE);
                slots.filter_map(|slot| shared.subscriber(now, slot)).collect()
            };
            if piece.is_empty() {
                break;
            }
            piece.iter().for_each(|subscriber| overview.add(subscriber));
            let is_selected =
                |s: &Subscriber| within.is_none_or(|within| within.contains(s.subscriber));
            subscribers.extend(piece.into_iter().filter(is_selected));
            if subscribers.len() > most + PIECE {
                retain_first(&mut subscribers, order, most);
            }
        }
        retain_first(&mut subscribers, order, most);
        SubscriberList { overview, subscribers }
    }
}

/// Feeds a view with the packets that enter and leave a station.
pub struct SubscriberTap {
    shared: Arc<Mutex<Subscribers>>,
    ports: [StageId; 2],
}

impl Sink for SubscriberTap {
    fn interest(&self) -> Interest {
        Interest::PASSAGES
    }

    fn event(&mut self, _: &Event) {}

    fn packet(&mut self, _: Time, _: StageId, _: Op, _: Side, _: &Packet) {}

    fn delivered(&mut self, _: Time, _: StageId, _: FlowKey, _: u32) {}

    fn passage(&mut self, at: Time, side: Side, packet: &Packet, passage: Passage) {
        // The high bits identify the stage that created the packet.
        let stage = StageId((packet.id.0 >> 48) as u16);
        let local = !self.ports.contains(&stage);
        lock(&self.shared).passage(at, side, packet, passage, local);
    }
}

#[cfg(test)]
mod tests {
    use lasthop_proto::units::Span;
    use lasthop_proto::wire::{Addr, Body, Flags, PacketId, Segment, Seq};

    use super::*;

    const SERVER: Addr = Addr::v4(192, 0, 2, 1);

    fn packet(stage: u64, right: bool, n: u32, flags: Flags, seq: u32, ack: u32) -> Packet {
        let [_, _, c, d] = n.to_be_bytes();
        let subscriber = Addr::v4(10, 0, c, d);
        let (src, dst) = if right { (subscriber, SERVER) } else { (SERVER, subscriber) };
        let mut segment = Segment::new(9, 9, Seq(seq), Seq(ack), flags);
        segment.window = 50_000;
        let len = if flags.has(Flags::PSH) { 1000 } else { 0 };
        Packet::tcp(src, dst, segment, Body::Pattern { stream: 1, len, offset: 0 })
            .with(|parts| parts.id = PacketId(stage << 48))
    }

    /// More subscribers than one piece has, each with one segment more than the one before.
    #[test]
    fn sorting_covers_subscribers_of_all_pieces() {
        let view = SubscriberView::of(SubscriberConfig::default(), Clock::start());
        let mut tap = view.tap([StageId(0), StageId(2)]);
        let now = Time::ZERO;
        let count = 3 * PIECE as u32 + 7;
        for n in 0..count {
            let mut pass = |side, packet: &Packet| {
                tap.passage(now, side, packet, Passage::In);
                tap.passage(now, side, packet, Passage::Out);
            };
            let (data, ack) = (Flags::ACK | Flags::PSH, Flags::ACK);
            pass(Side::Left, &packet(2, true, n, Flags::SYN, 0, 0));
            pass(Side::Right, &packet(0, false, n, Flags::SYN | Flags::ACK, 0, 1));
            // The order of addresses is not that of figures.
            let segments = (n * 7) % 40;
            for i in 0..segments {
                pass(Side::Right, &packet(0, false, n, data, 1 + i * 1000, 1));
            }
            pass(Side::Left, &packet(2, true, n, ack, 1, 1 + segments * 1000));
            if n == 5 {
                let again = packet(1, false, n, data, 1, 1);
                tap.passage(now + Span::millis(9), Side::Right, &again, Passage::Out);
            }
        }
        let list = view.list(Order::Goodput, 12, None);
        assert_eq!((list.overview.followed, list.overview.ungraded), (count.into(), count.into()));
        assert_eq!(list.subscribers.len(), 12);
        let delivered = list.subscribers.iter().map(|row| row.total.delivered_down);
        let best = (0..count).map(|n| u64::from((n * 7) % 40 * 1000));
        let mut best: Vec<u64> = best.collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(delivered.collect::<Vec<_>>(), best[..12]);
        let one = view.list(Order::Grade, 9, Some("10.0.0.5".parse().unwrap()));
        assert_eq!(one.subscribers.len(), 1);
        let total = one.subscribers[0].total;
        assert_eq!((total.local_packets, total.local_bytes, total.server_packets), (1, 1000, 0));
        assert_eq!(view.list(Order::Loss, 0, None).subscribers, []);
    }
}
