//! The fate of each packet at a router, by its place among those that arrive.

use serde::Serialize;

use crate::units::Span;

/// What happens to one packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
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
}

impl Fate {
    /// Every fate but [`Fate::Delivered`], with its word.
    pub const FAULTS: [(&'static str, Fate); 5] = [
        ("drop", Fate::Dropped),
        ("duplicate", Fate::Duplicated),
        ("late", Fate::Late),
        ("very-late", Fate::VeryLate),
        ("damage", Fate::Damaged),
    ];

    /// The fault of this word.
    pub fn parse(word: &str) -> Option<Fate> {
        Fate::FAULTS.iter().find(|(name, _)| *name == word).map(|(_, fate)| *fate)
    }

    /// `deliver` for [`Fate::Delivered`].
    pub fn word(self) -> &'static str {
        Fate::FAULTS.iter().find(|(_, fate)| *fate == self).map_or("deliver", |(word, _)| word)
    }
}

/// The packets that are not just delivered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fates {
    /// Places, ascending from 1 over both directions in the order of arrival, and fates.
    named: Vec<(u64, Fate)>,
    /// How long late packets are held; by default 60 ms, more than a round trip of most last hops.
    pub late: Span,
    /// The same for very late ones; by default 3 s, more than a retransmission time-out.
    pub very_late: Span,
}

impl Default for Fates {
    fn default() -> Fates {
        Fates { named: Vec::new(), late: Span::millis(60), very_late: Span::secs(3) }
    }
}

/// Limit for scripts from outside.
const NAMED_MAX: usize = 1 << 16;

impl Fates {
    /// Reads pairs of place and fate: `5 drop, 7 late`. `None` if `text` has another form, or places do not ascend.
    pub fn parse_named(&mut self, text: &str) -> Option<()> {
        let mut named: Vec<(u64, Fate)> = Vec::new();
        for part in text.split(',').filter(|_| !text.trim().is_empty()) {
            let (place, word) = part.trim().split_once(char::is_whitespace)?;
            let (place, fate) = (place.parse().ok()?, Fate::parse(word.trim())?);
            if place <= named.last().map_or(0, |last| last.0) || named.len() >= NAMED_MAX {
                return None;
            }
            named.push((place, fate));
        }
        self.named = named;
        Some(())
    }

    /// The fate of the packet at `place`.
    pub fn at(&self, place: u64) -> Fate {
        let found = self.named.binary_search_by_key(&place, |(at, _)| *at);
        found.ok().and_then(|i| self.named.get(i)).map_or(Fate::Delivered, |(_, fate)| *fate)
    }

    /// Decides about the packet at `place`.
    pub fn set(&mut self, place: u64, fate: Fate) {
        match self.named.binary_search_by_key(&place, |(at, _)| *at) {
            Ok(i) => self.named[i].1 = fate,
            Err(i) => self.named.insert(i, (place, fate)),
        }
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
