//! Patterns of lost packets.

use std::collections::BTreeSet;

use lasthop_proto::rng::Stream;
use serde::{Deserialize, Serialize};

use super::order::runs;

/// Losses are among this many first data packets.
const FIRST: u64 = 150;
/// Lost ACKs are among this many first ACKs.
const FIRST_ACKS: u64 = 60;

/// Lost packets, by their index among the arrivals at the router from one side, from 1.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Pattern {
    /// Data packets: `3, 8-10`.
    pub drop_data: String,
    /// ACKs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub drop_acks: String,
}

impl Pattern {
    /// `count` random patterns by `seed`: one to six losses among the first 150 data packets, single or consecutive. In
    /// a third of them losses continue about a window later, where retransmissions pass; in a fifth some ACKs are lost
    /// as well. A larger `count` only appends patterns.
    pub fn drawn(seed: u64, count: usize) -> Vec<Pattern> {
        let mut chance = Stream::new(seed, "replay");
        (0..count).map(|_| Pattern::draw(&mut chance)).collect()
    }

    /// Every pattern of one to `losses` losses among the first `among` data packets and the first `among` ACKs. Patterns with
    /// fewer losses come first.
    pub fn every(losses: u32, among: u64) -> Vec<Pattern> {
        let mut all = Vec::new();
        // Places from 1 to `among` are those of data, the others those of ACKs.
        let mut level = vec![Vec::new()];
        for _ in 0..losses {
            let next = level.iter().flat_map(|places: &Vec<u64>| {
                let behind = places.last().map_or(1, |last| last + 1);
                (behind..=2 * among).map(|place| [&places[..], &[place]].concat())
            });
            level = next.collect();
            all.extend(level.iter().map(|places| {
                let of = |acks: bool| places.iter().filter(move |place| acks == (**place > among));
                let (data, acks) = (of(false).copied(), of(true).map(|place| place - among));
                Pattern { drop_data: list(&data.collect()), drop_acks: list(&acks.collect()) }
            }));
        }
        all
    }

    fn draw(chance: &mut Stream) -> Pattern {
        let losses = 1 + chance.below(6) as usize;
        let mut places = BTreeSet::new();
        if chance.chance(1.0 / 3.0) {
            // In slow start, the retransmission of data packet n is about packet 2 n + 5 at the router.
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

    /// The settings of a scenario.
    pub(super) fn arguments(&self) -> impl Iterator<Item = String> {
        [("drop-data", &self.drop_data), ("drop-acks", &self.drop_acks)]
            .into_iter()
            .filter(|(_, places)| !places.trim().is_empty())
            .map(|(key, places)| format!("path.loss.cross.{key}=\"{places}\""))
    }
}

/// In the format of a scenario: `3, 8-10`.
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
    fn patterns_are_listed_once_with_small_ones_first() {
        let every = Pattern::every(2, 3);
        let shown: Vec<String> = every.iter().map(ToString::to_string).collect();
        assert_eq!(shown[..8], ["1", "2", "3", "; ACKs 1", "; ACKs 2", "; ACKs 3", "1-2", "1, 3"]);
        assert_eq!(every.len(), 6 + 15);
        let distinct: BTreeSet<&String> = shown.iter().collect();
        assert_eq!(distinct.len(), every.len());
        assert!(every.iter().all(|p| Ordinals::parse(&p.drop_acks).is_some()));
    }

    #[test]
    fn drawn_patterns_are_valid_scenario_values() {
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
