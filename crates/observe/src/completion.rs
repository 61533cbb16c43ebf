//! Completion time of a flow: its data is acknowledged to the sender, and to every base station on the path
//! that forwards it over a split connection.

use lasthop_proto::event::TcpKind;
use lasthop_proto::units::{Due, Time};

/// Observes the sender of a flow, and the base stations that split its connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Completion {
    /// Time when all of the sender's data was acknowledged.
    sender: Due,
    /// Number of base stations that forward the flow, number of those that are fully acknowledged, and the
    /// time of the last.
    relays: u32,
    relayed: u32,
    last: Due,
    /// Time when the receiver had all data.
    received: Due,
}

impl Completion {
    /// Records that all of the sender's data was acknowledged.
    pub(crate) fn sender_complete(&mut self, at: Time) {
        if !self.sender.is_set() {
            self.sender = Due::at(at);
        }
    }

    /// Records an event of a base station's connection that forwards the flow.
    pub(crate) fn relay_event(&mut self, at: Time, kind: TcpKind) {
        match kind {
            TcpKind::Established => self.relays += 1,
            TcpKind::Complete => {
                self.relayed += 1;
                self.last = Due::at(at);
            }
            _ => {}
        }
    }

    /// Whether a base station forwards the flow over a split connection.
    pub(crate) fn is_relayed(&self) -> bool {
        self.relays > 0
    }

    /// Records that the receiver has all data.
    pub(crate) fn received(&mut self, at: Time) {
        if !self.received.is_set() {
            self.received = Due::at(at);
        }
    }

    /// Completion time at the end of the run. A base station that the mobile host has left waits for an ACK
    /// forever. Then the flow is complete when the receiver has all data and the sender has the last ACK.
    pub(crate) fn at_last(&self) -> Option<Time> {
        self.at().or_else(|| Some(self.sender.get()?.max(self.received.get()?)))
    }

    /// Completion time of the flow, if it is complete.
    pub(crate) fn at(&self) -> Option<Time> {
        let sender = self.sender.get()?;
        (self.relayed >= self.relays)
            .then(|| self.last.get().map_or(sender, |last| last.max(sender)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_sender_and_base_stations_decides() {
        let mut plain = Completion::default();
        assert_eq!(plain.at(), None);
        plain.sender_complete(Time(5));
        assert_eq!(plain.at(), Some(Time(5)));

        let mut split = Completion::default();
        split.relay_event(Time(1), TcpKind::Established);
        split.sender_complete(Time(5));
        assert_eq!(split.at(), None, "the base station has it, the receiver has not");
        assert_eq!(split.at_last(), None);
        let mut left_behind = split;
        left_behind.received(Time(8));
        assert_eq!((left_behind.at(), left_behind.at_last()), (None, Some(Time(8))));
        split.relay_event(Time(9), TcpKind::Complete);
        assert_eq!((split.at(), split.at_last()), (Some(Time(9)), Some(Time(9))));
    }
}
