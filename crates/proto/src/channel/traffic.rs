//! Kinds of frames on a radio, for channels that apply to some only.

use serde::{Serialize, Serializer};

use crate::names::named;
use crate::wire::Packet;

/// Content of a frame on a radio.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// A packet with data of a transfer ([`Packet::bears_data`]), with or without further content.
    Data,
    /// A packet without data: acknowledgements of the transport, SYN, FIN, RST; with or without a piggybacked
    /// link acknowledgement.
    Ack,
    /// A pure acknowledgement of the link layer.
    LinkAck,
    /// A frame of medium access: RTS, CTS, probes.
    Control,
}

impl Traffic {
    /// Every kind, in a fixed order.
    pub const ALL: [Traffic; 4] = [Traffic::Data, Traffic::Ack, Traffic::LinkAck, Traffic::Control];

    /// The kind of a frame that carries `packet`.
    #[inline]
    pub fn of(packet: &Packet) -> Traffic {
        if packet.bears_data() { Traffic::Data } else { Traffic::Ack }
    }
}

named!(Traffic: Data Ack LinkAck Control);

/// A set of kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kinds(u8);

impl Kinds {
    /// All frames of the direction.
    pub const ALL: Kinds = Kinds(0b1111);
    /// No frames.
    pub const NONE: Kinds = Kinds(0);

    /// This set and `kind`.
    #[must_use]
    pub fn with(self, kind: Traffic) -> Kinds {
        Kinds(self.0 | 1 << kind as u8)
    }

    /// Whether `kind` is in it.
    #[inline]
    pub fn has(self, kind: Traffic) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// Whether it has every kind.
    pub fn is_all(&self) -> bool {
        *self == Kinds::ALL
    }
}

impl Default for Kinds {
    fn default() -> Kinds {
        Kinds::ALL
    }
}

impl FromIterator<Traffic> for Kinds {
    fn from_iter<I: IntoIterator<Item = Traffic>>(kinds: I) -> Kinds {
        kinds.into_iter().fold(Kinds::NONE, Kinds::with)
    }
}

impl Serialize for Kinds {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(Traffic::ALL.into_iter().filter(|kind| self.has(*kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_traffic_kinds_has_exactly_its_members() {
        assert_eq!(Kinds::from_iter(Traffic::ALL), Kinds::ALL);
        let some = Kinds::from_iter([Traffic::Data, Traffic::Control]);
        assert!(some.has(Traffic::Data) && !some.has(Traffic::Ack) && !some.is_all());
        assert!(!some.has(Traffic::LinkAck) && some.has(Traffic::Control));
        assert!(Traffic::ALL.into_iter().all(|kind| !Kinds::NONE.has(kind)));
    }
}
