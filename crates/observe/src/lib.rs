//! Sinks for the events of a run: metrics, traces and captures.
//!
//! Metrics are a pure function of the events, so they do not depend on the world that produced the events.

pub mod capture;
mod completion;
pub mod conservation;
pub mod counts;
pub mod csv;
mod gaps;
pub mod grade;
mod histogram;
pub mod layout;
pub mod metrics;
pub mod pcapng;
pub mod ranges;
pub mod sequence;
pub mod stalls;
pub mod stats;
pub mod subscribers;
#[cfg(test)]
#[path = "../tests/support/testing.rs"]
mod testing;
pub mod timeouts;
pub mod tools;

use lasthop_proto::event::{Event, EventKind, Interest, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{FlowKey, Packet};

/// A consumer of the events of a run, in order.
pub trait Sink {
    /// The needed events, by default all. The driver collects the union over all sinks.
    fn interest(&self) -> Interest {
        Interest::EVERYTHING
    }

    /// Handles the next event. A sink implements this or [`Sink::packet`], since each calls the other by default.
    fn event(&mut self, event: &Event) {
        if let EventKind::Packet { op, side, packet } = &event.kind {
            self.packet(event.at, event.stage, *op, *side, packet);
        }
    }

    /// Handles an event of a packet at `stage` towards `side`. Override it to avoid cloning the packet.
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        let kind = EventKind::Packet { op, side, packet: packet.clone() };
        self.event(&Event { at, stage, kind });
    }

    /// Handles a delivery of data to the end of a connection at `stage`; `flow` is as seen from there. Called
    /// when no sink needs [`Interest::DETAIL`], the level of its control block. Override it to avoid building an
    /// event.
    fn delivered(&mut self, at: Time, stage: StageId, flow: FlowKey, bytes: u32) {
        self.event(&Event { at, stage, kind: EventKind::delivered(flow, bytes) });
    }

    /// Handles a packet of any protocol that enters the path at one end, or leaves it at the other, towards
    /// `side`. Only stations call this; TCP's view of the packet is a separate event.
    fn passage(&mut self, _at: Time, _side: Side, _packet: &Packet, _passage: Passage) {}
}

/// Direction in which a packet crosses the boundary of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// Enters the path.
    In,
    /// Leaves the path.
    Out,
    /// Both at once: the kernel forwards it, and the path receives a copy. Not every packet of a flow is copied.
    Copied,
}

/// A sink that ignores all events.
#[derive(Debug, Default, Clone, Copy)]
pub struct Nothing;

impl Sink for Nothing {
    fn interest(&self) -> Interest {
        Interest::NOTHING
    }
    fn event(&mut self, _: &Event) {}
}

/// Both sinks receive the same events.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn interest(&self) -> Interest {
        self.0.interest().union(self.1.interest())
    }
    fn event(&mut self, event: &Event) {
        self.0.event(event);
        self.1.event(event);
    }
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        self.0.packet(at, stage, op, side, packet);
        self.1.packet(at, stage, op, side, packet);
    }
    fn delivered(&mut self, at: Time, stage: StageId, flow: FlowKey, bytes: u32) {
        self.0.delivered(at, stage, flow, bytes);
        self.1.delivered(at, stage, flow, bytes);
    }
    fn passage(&mut self, at: Time, side: Side, packet: &Packet, passage: Passage) {
        self.0.passage(at, side, packet, passage);
        self.1.passage(at, side, packet, passage);
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn interest(&self) -> Interest {
        (**self).interest()
    }
    fn event(&mut self, event: &Event) {
        (**self).event(event);
    }
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        (**self).packet(at, stage, op, side, packet);
    }
    fn delivered(&mut self, at: Time, stage: StageId, flow: FlowKey, bytes: u32) {
        (**self).delivered(at, stage, flow, bytes);
    }
    fn passage(&mut self, at: Time, side: Side, packet: &Packet, passage: Passage) {
        (**self).passage(at, side, packet, passage);
    }
}

/// All sinks receive the same events.
impl<S: Sink> Sink for Vec<S> {
    fn interest(&self) -> Interest {
        self.iter().fold(Interest::NOTHING, |all, sink| all.union(sink.interest()))
    }
    fn event(&mut self, event: &Event) {
        for sink in self {
            sink.event(event);
        }
    }
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        for sink in self {
            sink.packet(at, stage, op, side, packet);
        }
    }
    fn delivered(&mut self, at: Time, stage: StageId, flow: FlowKey, bytes: u32) {
        for sink in self {
            sink.delivered(at, stage, flow, bytes);
        }
    }
    fn passage(&mut self, at: Time, side: Side, packet: &Packet, passage: Passage) {
        for sink in self {
            sink.passage(at, side, packet, passage);
        }
    }
}

impl<S: Sink> Sink for Option<S> {
    fn interest(&self) -> Interest {
        self.as_ref().map_or(Interest::NOTHING, Sink::interest)
    }
    fn event(&mut self, event: &Event) {
        if let Some(sink) = self {
            sink.event(event);
        }
    }
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        if let Some(sink) = self {
            sink.packet(at, stage, op, side, packet);
        }
    }
    fn delivered(&mut self, at: Time, stage: StageId, flow: FlowKey, bytes: u32) {
        if let Some(sink) = self {
            sink.delivered(at, stage, flow, bytes);
        }
    }
    fn passage(&mut self, at: Time, side: Side, packet: &Packet, passage: Passage) {
        if let Some(sink) = self {
            sink.passage(at, side, packet, passage);
        }
    }
}

#[cfg(test)]
mod tests {
    use lasthop_proto::wire::{Addr, Body, Flags, Segment, Seq};

    use super::*;

    /// The calls of a sink, one word each.
    #[derive(Default)]
    struct CallLog(Vec<&'static str>);

    impl Sink for CallLog {
        fn interest(&self) -> Interest {
            Interest::METRICS
        }
        fn event(&mut self, _: &Event) {
            self.0.push("event");
        }
        fn packet(&mut self, _: Time, _: StageId, _: Op, _: Side, _: &Packet) {
            self.0.push("packet");
        }
        fn delivered(&mut self, _: Time, _: StageId, _: FlowKey, _: u32) {
            self.0.push("delivered");
        }
        fn passage(&mut self, _: Time, _: Side, _: &Packet, _: Passage) {
            self.0.push("passage");
        }
    }

    const ALL: [&str; 4] = ["event", "packet", "delivered", "passage"];

    fn call_all(sink: &mut dyn Sink) {
        let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
        let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
        let packet = Packet::tcp(src, dst, segment, Body::EMPTY);
        let flow = FlowKey { src, dst, src_port: 1, dst_port: 2 };
        let (at, stage, op, side) = (Time::ZERO, StageId(1), Op::Transmitted, Side::Left);
        sink.event(&Event {
            at,
            stage,
            kind: EventKind::Packet { op, side, packet: packet.clone() },
        });
        sink.packet(at, stage, op, side, &packet);
        sink.delivered(at, stage, flow, 1);
        sink.passage(at, side, &packet, Passage::In);
    }

    #[test]
    fn sink_wrappers_forward_calls_and_accepted_events() {
        let mut log = CallLog::default();
        {
            let mut behind = &mut log;
            assert_eq!(behind.interest(), Interest::METRICS, "a reference");
            call_all(&mut behind);
        }
        assert_eq!(log.0, ALL, "a reference");

        let mut some = Some(CallLog::default());
        assert_eq!(
            (some.interest(), None::<CallLog>.interest()),
            (Interest::METRICS, Interest::NOTHING)
        );
        call_all(&mut some);
        assert_eq!(some.unwrap().0, ALL, "one that is there");
        call_all(&mut None::<CallLog>);

        let mut pair = (CallLog::default(), CallLog::default());
        assert_eq!(pair.interest(), Interest::METRICS);
        assert_eq!(
            (Nothing, CallLog::default()).interest(),
            Interest::METRICS,
            "the union of two sinks"
        );
        assert_eq!(
            (CallLog::default(), Nothing).interest(),
            Interest::METRICS,
            "the union of two sinks"
        );
        call_all(&mut pair);
        assert_eq!((&pair.0.0[..], &pair.1.0[..]), (&ALL[..], &ALL[..]), "both of two");
    }
}
