//! The fate of each packet at a router, by its place among those that arrive.

use serde::Serialize;

use crate::units::Span;
use crate::wire::{Body, Flags, Packet, Segment, Seq};

/// What happens to one packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fate {
    /// Nothing happens to it.
    Delivered,
    /// It does not arrive.
    Dropped,
    /// A copy follows at once.
    Duplicated,
    /// Delayed by [`Fates::late`]; packets behind it overtake it.
    Late,
    /// Delayed by [`Fates::very_late`].
    VeryLate,
    /// Its transport checksum is wrong.
    Damaged,
    /// A forged segment of its connection follows.
    Followed(Forgery),
    /// From this packet on a host is silent: packets are lost.
    Silent(Silence),
}

/// Silence of a host beyond a router, from a packet on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Silence {
    /// All packets of both directions are lost, for ever.
    Forever,
    /// The same for 1 s.
    Second,
    /// The same for 30 s.
    HalfMinute,
    /// The same for 10 minutes.
    TenMinutes,
    /// All packets of this packet's direction are lost, for ever.
    OneWay,
    /// All segments of this packet's direction advertise a closed window, for ever.
    Closed,
    /// All packets of more than [`Silence::NARROW`] bytes are lost, for ever, without a message.
    Narrow,
}

impl Silence {
    /// MTU of a path that has shrunk, bytes.
    pub const NARROW: u32 = 600;

    /// How long packets of both directions are lost; `None` unless all of them are.
    pub fn span(self) -> Option<Span> {
        match self {
            Silence::Forever => Some(Span(u64::MAX)),
            Silence::Second => Some(Span::secs(1)),
            Silence::HalfMinute => Some(Span::secs(30)),
            Silence::TenMinutes => Some(Span::secs(600)),
            Silence::OneWay | Silence::Closed | Silence::Narrow => None,
        }
    }

    /// Whether it never ends.
    pub fn lasts(self) -> bool {
        self.span().is_none_or(|span| span == Span(u64::MAX))
    }
}

/// Segments that a third party forges. Their sequence numbers are 2^30 from the real ones, except where noted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forgery {
    /// A SYN; not while a handshake lasts, when it is a simultaneous open (RFC 9293, 3.5).
    Syn,
    /// A RST.
    Rst,
    /// A RST inside the window, 100 bytes behind the number that ends a connection (RFC 5961, 3.2).
    RstInside,
    /// An ACK for data that was never sent.
    AckAhead,
    /// An old ACK (RFC 5961, 5.2).
    AckBehind,
    /// 100 bytes of data.
    Data,
    /// 100 bytes of data in sequence with an old timestamp; only with timestamps (RFC 7323, 5).
    OldTimestamp,
}

impl Forgery {
    /// The segment, made of what follows it; `None` where it would be another attack, or is none.
    pub(crate) fn segment_after(self, real: &Packet) -> Option<Packet> {
        const FAR: u32 = 1 << 30;
        let of = real.segment()?;
        let next = of.seq + of.seq_len(real.body.len());
        let (seq, ack, flags, data) = match self {
            Forgery::Syn if of.flags.has(Flags::SYN) => return None,
            Forgery::Syn => (next + FAR, Seq(0), Flags::SYN, 0),
            Forgery::Rst => (next + FAR, of.ack, Flags::RST, 0),
            Forgery::RstInside => (next + 100, of.ack, Flags::RST, 0),
            Forgery::AckAhead => (next + FAR, of.ack + FAR, Flags::ACK, 0),
            Forgery::AckBehind => (next + FAR, of.ack + FAR.wrapping_neg(), Flags::ACK, 0),
            Forgery::Data => (next + FAR, of.ack, Flags::ACK, 100),
            Forgery::OldTimestamp => (next, of.ack, Flags::ACK, 100),
        };
        let mut segment = Segment::new(of.src_port, of.dst_port, seq, ack, flags);
        segment.window = of.window;
        segment.timestamps = of.timestamps;
        if self == Forgery::OldTimestamp {
            let times = segment.timestamps.as_mut().filter(|_| !of.flags.has(Flags::SYN))?;
            times.value = times.value.wrapping_sub(FAR);
        }
        Some(Packet::tcp(real.src, real.dst, segment, Body::copy_of(&[b'x'; 100][..data])))
    }
}

impl Fate {
    /// Faults of networks, each with its word.
    pub const FAULTS: [(&'static str, Fate); 5] = [
        ("drop", Fate::Dropped),
        ("duplicate", Fate::Duplicated),
        ("late", Fate::Late),
        ("very-late", Fate::VeryLate),
        ("damage", Fate::Damaged),
    ];

    /// Attacks of third parties, each with its word.
    pub const FORGERIES: [(&'static str, Fate); 7] = [
        ("forged-syn", Fate::Followed(Forgery::Syn)),
        ("forged-rst", Fate::Followed(Forgery::Rst)),
        ("forged-rst-inside", Fate::Followed(Forgery::RstInside)),
        ("forged-ack-ahead", Fate::Followed(Forgery::AckAhead)),
        ("forged-ack-behind", Fate::Followed(Forgery::AckBehind)),
        ("forged-data", Fate::Followed(Forgery::Data)),
        ("forged-old-timestamp", Fate::Followed(Forgery::OldTimestamp)),
    ];

    /// Silences of a host, each with its word.
    pub const SILENCES: [(&'static str, Fate); 7] = [
        ("silence", Fate::Silent(Silence::Forever)),
        ("silence-1s", Fate::Silent(Silence::Second)),
        ("silence-30s", Fate::Silent(Silence::HalfMinute)),
        ("silence-10min", Fate::Silent(Silence::TenMinutes)),
        ("silence-one-way", Fate::Silent(Silence::OneWay)),
        ("closed-window", Fate::Silent(Silence::Closed)),
        ("narrow", Fate::Silent(Silence::Narrow)),
    ];

    /// All fates with a word.
    pub fn named() -> impl Iterator<Item = (&'static str, Fate)> {
        Fate::FAULTS.into_iter().chain(Fate::FORGERIES).chain(Fate::SILENCES)
    }

    /// The fault or attack of this word.
    pub fn parse(word: &str) -> Option<Fate> {
        Fate::named().find(|(name, _)| *name == word).map(|(_, fate)| fate)
    }

    /// `deliver` for [`Fate::Delivered`].
    pub fn word(self) -> &'static str {
        Fate::named().find(|(_, fate)| *fate == self).map_or("deliver", |(word, _)| word)
    }
}

/// Fates of packets by their places, which ascend from 1. Other packets are delivered.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Script(Vec<(u64, Fate)>);

/// The packets that are not just delivered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fates {
    /// Places count over both directions in the order of arrival.
    named: Script,
    /// How long late packets are held; by default 60 ms, more than a round trip of most last hops.
    pub late: Span,
    /// The same for very late ones; by default 3 s, more than a retransmission timeout.
    pub very_late: Span,
}

impl Default for Fates {
    fn default() -> Fates {
        Fates { named: Script::default(), late: Span::millis(60), very_late: Span::secs(3) }
    }
}

/// Limit for scripts from outside.
const NAMED_MAX: usize = 1 << 16;

impl Script {
    /// Reads pairs of place and fate: `5 drop, 7 late`. `None` if `text` has another form, or places do not ascend.
    pub fn parse(text: &str) -> Option<Script> {
        let mut named: Vec<(u64, Fate)> = Vec::new();
        for part in text.split(',').filter(|_| !text.trim().is_empty()) {
            let (place, word) = part.trim().split_once(char::is_whitespace)?;
            let (place, fate) = (place.parse().ok()?, Fate::parse(word.trim())?);
            if place <= named.last().map_or(0, |last| last.0) || named.len() >= NAMED_MAX {
                return None;
            }
            named.push((place, fate));
        }
        Some(Script(named))
    }

    /// The fates that it names.
    pub fn fates(&self) -> impl Iterator<Item = Fate> {
        self.0.iter().map(|(_, fate)| *fate)
    }

    /// The fate of the packet at `place`.
    pub fn at(&self, place: u64) -> Fate {
        let found = self.0.binary_search_by_key(&place, |(at, _)| *at);
        found.ok().and_then(|i| self.0.get(i)).map_or(Fate::Delivered, |(_, fate)| *fate)
    }

    /// Decides about the packet at `place`.
    pub fn set(&mut self, place: u64, fate: Fate) {
        match self.0.binary_search_by_key(&place, |(at, _)| *at) {
            Ok(i) => self.0[i].1 = fate,
            Err(i) => self.0.insert(i, (place, fate)),
        }
    }
}

impl Fates {
    /// Takes the fates of a [`Script::parse`].
    pub fn parse_named(&mut self, text: &str) -> Option<()> {
        self.named = Script::parse(text)?;
        Some(())
    }

    /// The fates that its script names.
    pub fn named(&self) -> impl Iterator<Item = Fate> {
        self.named.fates()
    }

    /// The fate of the packet at `place`.
    pub fn at(&self, place: u64) -> Fate {
        self.named.at(place)
    }

    /// Decides about the packet at `place`.
    pub fn set(&mut self, place: u64, fate: Fate) {
        self.named.set(place, fate);
    }
}

impl Serialize for Fate {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_places_in_ascending_order() {
        let mut fates = Fates::default();
        fates.parse_named("3 drop,  5 very-late").unwrap();
        let found: Vec<Fate> = (2..=5).map(|place| fates.at(place)).collect();
        assert_eq!(found, [Fate::Delivered, Fate::Dropped, Fate::Delivered, Fate::VeryLate]);
        fates.set(4, Fate::Damaged);
        assert_eq!(fates.at(4), Fate::Damaged);
        assert_eq!(Fates::default().parse_named(" "), Some(()));
        for wrong in
            ["0 drop", "3", "3 drop, 3 drop", "4 drop, 2 late", "5 lost", "x drop", "1 drop,"]
        {
            assert_eq!(Fates::default().parse_named(wrong), None, "{wrong}");
        }
    }
}
