//! When a flow was complete: its data acknowledged to the sender, and to every base station on the way that
//! sends it on over a connection of its own.

use lasthop_proto::event::TcpKind;
use lasthop_proto::units::{Due, Time};

/// Watches the sender of a flow, and the base stations that split its connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Completion {
    /// When the sender had all its data acknowledged.
    sender: Due,
    /// Base stations that send the flow on, and how many of them had all of it acknowledged, last when.
    relays: u32,
    relayed: u32,
    last: Due,
    /// When the receiver had all that was to be sent.
    received: Due,
}

impl Completion {
    /// The sender's data was all acknowledged.
    pub(crate) fn sender_complete(&mut self, at: Time) {
        if !self.sender.is_set() {
            self.sender = Due::at(at);
        }
    }

    /// Something happened to the end from which a base station sends the flow on.
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

    /// Whether a base station sends the flow on over a connection of its own.
    pub(crate) fn is_relayed(&self) -> bool {
        self.relays > 0
    }

    /// The receiver has all that was to be sent.
    pub(crate) fn received(&mut self, at: Time) {
        if !self.received.is_set() {
            self.received = Due::at(at);
        }
    }

    /// When the flow was complete, now that nothing more happens. A base station that the mobile host has left waits for
    /// ever for an acknowledgement: what counts then is that the receiver has all, and that the sender knows.
    pub(crate) fn at_last(&self) -> Option<Time> {
        self.at().or_else(|| Some(self.sender.get()?.max(self.received.get()?)))
    }

    /// When the flow was complete, if it was.
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
