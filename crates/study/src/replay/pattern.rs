//! Which packets are lost.

use std::collections::BTreeSet;

use lasthop_proto::rng::Stream;
use serde::{Deserialize, Serialize};

use super::order::runs;

/// Losses lie among so many packets with data.
const FIRST: u64 = 150;
/// ACKs that are lost lie among so many.
const FIRST_ACKS: u64 = 60;

/// Packets that are lost, by their places among those that come to the router from one side; the first one is 1.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Pattern {
    /// Packets with data: `3, 8-10`.
    pub drop_data: String,
    /// ACKs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub drop_acks: String,
}

impl Pattern {
    /// `count` patterns by `seed`: one to six losses among the first 150 packets with data, each alone or in a row. In
    /// a third of them the losses go on about a window later, where what is sent again passes; in a fifth some ACKs are
    /// lost as well. More of them do not change those that come first.
    pub fn drawn(seed: u64, count: usize) -> Vec<Pattern> {
        let mut chance = Stream::new(seed, "replay");
        (0..count).map(|_| Pattern::draw(&mut chance)).collect()
    }

    fn draw(chance: &mut Stream) -> Pattern {
        let losses = 1 + chance.below(6) as usize;
        let mut places = BTreeSet::new();
        if chance.chance(1.0 / 3.0) {
            // In slow start a segment goes out again after as many as went before it, and a few more.
            let first = 2 + chance.below(66);
            let again = 2 * first + 5 + chance.below(3);
            places.insert(first);
            places.extend((again..FIRST).take(losses.max(2) - 1));
        }
        while places.len() < losses {
            let (from, row) = (1 + chance.below(FIRST), 1 + chance.below(3));
            let room = losses - places.len();
            places.extend((from..=FIRST).take((row as usize).min(room)));
        }
        let mut acks = BTreeSet::new();
        if chance.chance(0.2) {
            let (from, row) = (2 + chance.below(FIRST_ACKS), 1 + chance.below(4));
            acks.extend(from..from + row);
        }
        Pattern { drop_data: list(&places), drop_acks: list(&acks) }
    }

    /// What is to be set in a scenario.
    pub(super) fn arguments(&self) -> impl Iterator<Item = String> {
        [("drop-data", &self.drop_data), ("drop-acks", &self.drop_acks)]
            .into_iter()
            .filter(|(_, places)| !places.trim().is_empty())
            .map(|(key, places)| format!("path.loss.cross.{key}=\"{places}\""))
    }
}

/// As a scenario has it: `3, 8-10`.
fn list(places: &BTreeSet<u64>) -> String {
    runs(places.iter().map(|place| *place as u32)).replace(' ', ", ")
}

impl core::fmt::Display for Pattern {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.drop_data)?;
        if self.drop_acks.is_empty() { Ok(()) } else { write!(f, "; ACKs {}", self.drop_acks) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_proto::link::Ordinals;

    #[test]
    fn patterns_are_what_a_scenario_can_read() {
        let drawn = Pattern::drawn(1, 200);
        assert_eq!(Pattern::drawn(1, 20), drawn[..20]);
        for pattern in &drawn {
            let data = Ordinals::parse(&pattern.drop_data).unwrap();
            let count = (0..1000).filter(|place| data.has(*place)).count();
            assert!((1..=6).contains(&count), "{pattern}");
            assert!(Ordinals::parse(&pattern.drop_acks).is_some(), "{pattern}");
        }
        assert!((20..60).contains(&drawn.iter().filter(|p| !p.drop_acks.is_empty()).count()));
    }
}
