//! Packet counters by cause.

use core::fmt;

use lasthop_proto::event::Cause;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of packets for each cause. Serialized as a map of the causes that occurred.
///
/// A flow has few of the many causes, so only those use memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CauseCounts {
    /// In the order of [`Cause::ALL`]; no count is zero.
    counted: Vec<(Cause, u64)>,
}

impl CauseCounts {
    /// Collects `count` of each cause.
    pub fn from_fn(count: impl Fn(Cause) -> u64) -> CauseCounts {
        let all = Cause::ALL.into_iter().map(|cause| (cause, count(cause)));
        CauseCounts { counted: all.filter(|(_, n)| *n > 0).collect() }
    }

    /// Counts one packet.
    #[inline]
    pub fn add(&mut self, cause: Cause) {
        match self.counted.iter_mut().find(|(of, _)| *of == cause) {
            Some((_, n)) => *n += 1,
            None => self.set(cause, 1),
        }
    }

    /// Sets the count of `cause` to `n`.
    #[cold]
    fn set(&mut self, cause: Cause, n: u64) {
        self.counted.retain(|(of, _)| *of != cause);
        if n > 0 {
            let at = self.counted.partition_point(|(of, _)| *of < cause);
            self.counted.reserve_exact(1);
            self.counted.insert(at, (cause, n));
        }
    }

    /// Count of `cause`.
    pub fn get(&self, cause: Cause) -> u64 {
        self.iter().find(|(of, _)| *of == cause).map_or(0, |(_, n)| n)
    }

    /// Sum over all causes.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, n)| n).sum()
    }

    /// Whether all counts are zero.
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// Sum over the causes for which `which` is true.
    pub fn total_of(&self, which: impl Fn(Cause) -> bool) -> u64 {
        self.iter().filter(|(cause, _)| which(*cause)).map(|(_, n)| n).sum()
    }

    /// The causes that occurred, in the order of [`Cause::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        self.counted.iter().copied()
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
                    counts.set(cause, n);
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
    fn causes_are_iterated_in_their_order() {
        assert!(Cause::ALL.is_sorted());
        let mut counts = CauseCounts::default();
        Cause::ALL.into_iter().rev().for_each(|cause| counts.add(cause));
        counts.add(Cause::Ack);
        assert!(counts.iter().map(|(cause, _)| cause).eq(Cause::ALL));
        assert_eq!((counts.get(Cause::Ack), counts.get(Cause::Data)), (2, 1));
        assert_eq!(counts, CauseCounts::from_fn(|cause| 1 + u64::from(cause == Cause::Ack)));
    }

    #[test]
    fn totals_are_of_all_causes_or_of_those_that_are_named() {
        let mut counts = CauseCounts::default();
        assert!(counts.is_empty());
        assert_eq!((counts.total(), counts.total_of(|_| true)), (0, 0));
        (0..3).for_each(|_| counts.add(Cause::QueueFull));
        (0..4).for_each(|_| counts.add(Cause::Data));
        assert!(!counts.is_empty());
        assert_eq!((counts.total(), counts.total_of(|cause| cause != Cause::Data)), (7, 3));
        assert_eq!(format!("{counts:?}"), r#"{"data": 4, "queue-full": 3}"#);
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

    #[test]
    fn only_counted_causes_are_listed() {
        let mut counts = CauseCounts::default();
        assert!(counts.is_empty() && counts.total() == 0);
        counts.add(Cause::QueueFull);
        counts.add(Cause::Data);
        counts.add(Cause::QueueFull);
        assert!(!counts.is_empty());
        assert_eq!(
            (counts.total(), counts.get(Cause::QueueFull), counts.get(Cause::Ack)),
            (3, 2, 0)
        );
        assert_eq!(counts.total_of(|cause| cause == Cause::Data), 1);
        let all: Vec<(Cause, u64)> = counts.iter().collect();
        assert_eq!(all, [(Cause::Data, 1), (Cause::QueueFull, 2)]);
    }
}
