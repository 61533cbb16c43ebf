//! Packets counted by cause.

use core::fmt;

use lasthop_proto::event::Cause;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const CAUSES: usize = Cause::ALL.len();

/// A number of packets for each cause. Written as a map of the causes that occurred.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CauseCounts([u64; CAUSES]);

impl Default for CauseCounts {
    fn default() -> CauseCounts {
        CauseCounts([0; CAUSES])
    }
}

impl CauseCounts {
    /// What `count` says of each cause.
    pub fn from_fn(count: impl Fn(Cause) -> u64) -> CauseCounts {
        CauseCounts(Cause::ALL.map(count))
    }

    /// One more packet for `cause`.
    pub fn add(&mut self, cause: Cause) {
        self.0[cause as usize] += 1;
    }

    /// Packets for `cause`.
    pub fn get(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// Packets for all causes together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Packets for the causes that `which` names.
    pub fn total_of(&self, which: impl Fn(Cause) -> bool) -> u64 {
        self.iter().filter(|(cause, _)| which(*cause)).map(|(_, n)| n).sum()
    }

    /// The causes that occurred, in the order of [`Cause::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        Cause::ALL.into_iter().zip(self.0).filter(|(_, n)| *n > 0)
    }
}

impl fmt::Debug for CauseCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(cause, n)| (cause.name(), n))).finish()
    }
}

impl Serialize for CauseCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (cause, n) in self.iter() {
            map.serialize_entry(cause.name(), &n)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for CauseCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CauseCounts, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = CauseCounts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from cause to number of packets")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CauseCounts, A::Error> {
                let mut counts = CauseCounts::default();
                while let Some((name, n)) = map.next_entry::<String, u64>()? {
                    let cause = Cause::ALL
                        .into_iter()
                        .find(|cause| cause.name() == name)
                        .ok_or_else(|| serde::de::Error::unknown_variant(&name, &["a cause"]))?;
                    counts.0[cause as usize] = n;
                }
                Ok(counts)
            }
        }
        deserializer.deserialize_map(Names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_index_their_own_slot() {
        for (i, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, i, "{}", cause.name());
        }
    }

    #[test]
    fn counts_survive_json() {
        let mut counts = CauseCounts::default();
        counts.add(Cause::PartialAck);
        counts.add(Cause::QueueFull);
        counts.add(Cause::QueueFull);
        let json = serde_json::to_string(&counts).unwrap();
        assert_eq!(json, r#"{"partial-ack":1,"queue-full":2}"#);
        assert_eq!(serde_json::from_str::<CauseCounts>(&json).unwrap(), counts);
        assert!(serde_json::from_str::<CauseCounts>(r#"{"moths":1}"#).is_err());
    }
}
