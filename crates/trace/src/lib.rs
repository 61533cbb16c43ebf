//! What happened: sinks for the events of a run.
//!
//! Metrics are a pure function of the events. They cannot tell one world from another.

pub mod capture;
mod completion;
pub mod conservation;
pub mod counts;
pub mod cpu_time;
pub mod csv;
mod histogram;
pub mod layout;
pub mod metrics;
pub mod pcapng;
pub mod ranges;
pub mod sequence;
pub mod stalls;
pub mod stats;
#[cfg(test)]
mod testing;
pub mod tools;

use lasthop_proto::event::{Event, Wants};

/// Something that takes in the events of a run in order.
pub trait Sink {
    /// Which events it needs; the driver collects the union over all sinks.
    fn wants(&self) -> Wants;

    /// The next event.
    fn event(&mut self, event: &Event);
}

/// A sink for nobody.
#[derive(Debug, Default, Clone, Copy)]
pub struct Nothing;

impl Sink for Nothing {
    fn wants(&self) -> Wants {
        Wants::NOTHING
    }
    fn event(&mut self, _: &Event) {}
}

/// Every event, kept in memory.
#[derive(Debug, Default, Clone)]
pub struct Record {
    /// The events in order.
    pub events: Vec<Event>,
}

impl Sink for Record {
    fn wants(&self) -> Wants {
        Wants::EVERYTHING
    }
    fn event(&mut self, event: &Event) {
        self.events.push(event.clone());
    }
}

/// Two sinks fed alike.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn wants(&self) -> Wants {
        self.0.wants().union(self.1.wants())
    }
    fn event(&mut self, event: &Event) {
        self.0.event(event);
        self.1.event(event);
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn wants(&self) -> Wants {
        (**self).wants()
    }
    fn event(&mut self, event: &Event) {
        (**self).event(event);
    }
}

/// Any number of sinks fed alike.
impl<S: Sink> Sink for Vec<S> {
    fn wants(&self) -> Wants {
        self.iter().fold(Wants::NOTHING, |wants, sink| wants.union(sink.wants()))
    }
    fn event(&mut self, event: &Event) {
        for sink in self {
            sink.event(event);
        }
    }
}

impl<S: Sink> Sink for Option<S> {
    fn wants(&self) -> Wants {
        self.as_ref().map_or(Wants::NOTHING, Sink::wants)
    }
    fn event(&mut self, event: &Event) {
        if let Some(sink) = self {
            sink.event(event);
        }
    }
}
