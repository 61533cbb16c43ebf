//! A recording of every event in memory.

use lasthop_observe::Sink;
use lasthop_proto::event::Event;

#[derive(Clone, Default)]
pub struct Record(Vec<Event>);

impl Record {
    /// The events in order.
    #[allow(dead_code, reason = "not every test that includes this file reads them")]
    pub fn events(&self) -> impl ExactSizeIterator<Item = Event> {
        self.0.iter().cloned()
    }
}

impl Sink for Record {
    fn event(&mut self, event: &Event) {
        self.0.push(event.clone());
    }
}
