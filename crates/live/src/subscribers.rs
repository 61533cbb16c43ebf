//! The view of subscribers of a running station: the loop feeds it, and other threads read it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lasthop_proto::event::{Event, Op, Wants};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{FlowKey, Packet};
use lasthop_scenario::SubscriberConfig;
use lasthop_trace::subscribers::{
    Config, Order, Overview, Prefix, Subscriber, Subscribers, retain_first,
};
use lasthop_trace::{Passage, Sink};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;

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

    fn lock(shared: &Mutex<Subscribers>) -> MutexGuard<'_, Subscribers> {
        // Counters remain usable after a panic of another thread.
        shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first `most` subscribers of an order, of all or of those in `within`.
    pub fn list(&self, order: Order, most: usize, within: Option<Prefix>) -> SubscriberList {
        let now = self.clock.now();
        let mut overview = SubscriberView::lock(&self.shared).overview();
        let mut subscribers: Vec<Subscriber> = Vec::new();
        for first in (0..).step_by(PIECE) {
            let piece: Vec<Subscriber> = {
                let shared = SubscriberView::lock(&self.shared);
                let slots = first..shared.slots().min(first + PIECE);
                slots.filter_map(|slot| shared.subscriber(now, slot)).collect()
            };
            if piece.is_empty() {
                break;
            }
            piece.iter().for_each(|subscriber| overview.add(subscriber));
            let wanted = |s: &Subscriber| within.is_none_or(|within| within.contains(s.subscriber));
            subscribers.extend(piece.into_iter().filter(wanted));
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
    fn wants(&self) -> Wants {
        Wants::PASSAGES
    }

    fn event(&mut self, _: &Event) {}

    fn packet(&mut self, _: Time, _: StageId, _: Op, _: Side, _: &Packet) {}

    fn delivered(&mut self, _: Time, _: StageId, _: FlowKey, _: u32) {}

    fn passage(&mut self, at: Time, side: Side, packet: &Packet, passage: Passage) {
        // The high bits identify the stage that created the packet.
        let stage = StageId((packet.id.0 >> 48) as u16);
        let local = !self.ports.contains(&stage);
        SubscriberView::lock(&self.shared).passage(at, side, packet, passage, local);
    }
}
