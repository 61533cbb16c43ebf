//! Next deadline of a set of sleepers, by a tournament tree.

use crate::units::{Span, Time};

/// A winner tree: the deadlines of `n` sleepers, with the earliest one at its root. Changing one entry costs
/// log2(n) comparisons, and only growth allocates. Equal times are resolved in favour of the lower index, so
/// that the order of events is the same everywhere. Up to 8 sleepers are searched linearly, without a
/// tree.
#[derive(Clone, Debug)]
pub struct WakeTree {
    /// Deadlines of up to [`FEW`] sleepers, and their number.
    few: [Time; FEW],
    count: usize,
    /// The tree for more. Leaves are at `leaves..2 * leaves`; node `i` holds the winner of `2i` and `2i + 1`.
    nodes: Vec<(Time, u32)>,
    /// Current deadline of each sleeper: a postponed one is later than its leaf.
    due: Vec<Time>,
    /// Capacity of the tree; zero without a tree.
    leaves: usize,
}

/// Time until a sleeper is called again that was due without time passing.
const PAUSE: Span = Span::millis(1);

/// Maximum number of sleepers for a linear search.
const FEW: usize = 8;

impl WakeTree {
    /// Creates a tree for `n` sleepers without deadlines.
    pub fn new(n: usize) -> WakeTree {
        let (few, count) = ([Time::NEVER; FEW], n.min(FEW));
        let mut tree = WakeTree { few, count, nodes: Vec::new(), due: Vec::new(), leaves: 0 };
        if n > FEW {
            tree.leaves = n.next_power_of_two();
            tree.nodes = vec![(Time::NEVER, 0); 2 * tree.leaves];
            tree.due = vec![Time::NEVER; tree.leaves];
            for i in 0..tree.leaves {
                tree.nodes[tree.leaves + i].1 = i as u32;
            }
            for i in (1..tree.leaves).rev() {
                tree.nodes[i] = tree.nodes[2 * i];
            }
        }
        tree
    }

    /// Makes room for at least `n` sleepers.
    pub fn grow(&mut self, n: usize) {
        self.count = self.count.max(n.min(FEW));
        if n <= self.leaves.max(FEW) {
            return;
        }
        let mut bigger = WakeTree::new(n.max(2 * self.leaves));
        let all: &[Time] = if self.leaves == 0 { &self.few } else { &self.due };
        for (i, at) in all.iter().enumerate() {
            bigger.set(i, at.or_none());
        }
        *self = bigger;
    }

    /// Sets the deadline of sleeper `i`, which must be within the capacity; `None` clears it.
    #[inline]
    pub fn set(&mut self, i: usize, at: Option<Time>) {
        let at = at.unwrap_or(Time::NEVER);
        if self.leaves == 0 {
            debug_assert!(i < self.count, "no room for sleeper {i}");
            self.few[i] = at;
        } else {
            debug_assert!(i < self.leaves, "no room for sleeper {i}");
            self.due[i] = at;
            self.replay(i, at);
        }
    }

    /// Current deadline of sleeper `i`.
    #[inline]
    pub fn get(&self, i: usize) -> Time {
        if self.leaves == 0 { self.few[i] } else { self.due[i] }
    }

    /// Reads the words that a change of sleeper `i` reads, as a prefetch. The result has no meaning.
    #[inline]
    pub fn touch(&self, i: usize) -> u64 {
        let leaf = self.nodes.get(self.leaves + i).map_or(Time::NEVER, |(at, _)| *at);
        leaf.0 ^ self.due.get(i).map_or(0, |at| at.0)
    }

    /// Postpones a deadline of sleeper `i` that is not later than `now`. Returns whether it was one.
    #[inline]
    pub fn defer(&mut self, i: usize, now: Time) -> bool {
        let late = self.get(i) <= now;
        if late {
            self.set(i, Some(now + PAUSE));
        }
        debug_assert!(self.get(i) > now, "sleeper {i} has a deadline in the past");
        late
    }

    /// Like [`WakeTree::set`], for deadlines that are mostly postponed, as a retransmission timer is by each
    /// ACK. A later deadline moves its sleeper in the tree only in [`WakeTree::catch_up`].
    #[inline]
    pub fn put_off(&mut self, i: usize, at: Option<Time>) {
        let late = at.unwrap_or(Time::NEVER);
        if self.leaves == 0 || late < self.nodes[self.leaves + i].0 {
            return self.set(i, at);
        }
        self.due[i] = late;
    }

    /// Whether the first sleeper's deadline was postponed.
    #[inline]
    fn is_stale(&self) -> bool {
        let (early, first) = self.nodes.get(1).copied().unwrap_or((Time::NEVER, 0));
        self.due.get(first as usize).is_some_and(|late| *late != early)
    }

    /// Moves postponed sleepers until the first one has its current deadline, or one after `now`.
    pub fn catch_up(&mut self, now: Time) {
        while self.is_stale() && self.nodes[1].0 <= now {
            let first = self.nodes[1].1 as usize;
            self.replay(first, self.due[first]);
        }
    }

    /// The earliest deadline.
    pub fn earliest(&self) -> Option<Time> {
        match self.is_stale() {
            true => self.due.iter().min().and_then(|at| at.or_none()),
            false => self.first().map(|(at, _)| at),
        }
    }

    #[inline(never)]
    fn replay(&mut self, i: usize, at: Time) {
        let mut node = self.leaves + i;
        if self.nodes[node].0 == at {
            return;
        }
        self.nodes[node].0 = at;
        while node > 1 {
            node /= 2;
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            let winner = if right.0 < left.0 { right } else { left };
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
    }

    /// The earliest deadline and its sleeper, or the earlier time before it was [put off](WakeTree::put_off).
    #[inline]
    pub fn first(&self) -> Option<(Time, usize)> {
        let (at, i) = if self.leaves == 0 {
            let mut best = (Time::NEVER, 0);
            for (i, at) in self.few[..FEW / 2].iter().enumerate() {
                if *at < best.0 {
                    best = (*at, i);
                }
            }
            // Most sets have no more sleepers.
            if self.count > FEW / 2 {
                for (i, at) in self.few.iter().enumerate().skip(FEW / 2) {
                    if *at < best.0 {
                        best = (*at, i);
                    }
                }
            }
            best
        } else {
            (self.nodes[1].0, self.nodes[1].1 as usize)
        };
        at.or_none().map(|at| (at, i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_root_is_the_minimum(sets in prop::collection::vec((0usize..13, prop::option::of(0u64..50)), 1..200)) {
            let mut tree = WakeTree::new(2);
            let mut plain = [None; 13];
            for (i, at) in sets {
                tree.grow(i + 1);
                tree.set(i, at.map(Time));
                plain[i] = at.map(Time);
                let want = plain.iter().enumerate().filter_map(|(i, t)| t.map(|t| (t, i))).min();
                prop_assert_eq!(tree.first(), want);
            }
        }

        #[test]
        fn who_is_put_off_comes_first_when_it_is_due(
            sets in prop::collection::vec((0usize..13, prop::option::of(0u64..50)), 1..200)
        ) {
            let mut tree = WakeTree::new(13);
            let mut plain = [None; 13];
            for (i, at) in sets {
                plain[i] = at.map(Time);
                tree.put_off(i, plain[i]);
                let want = plain.iter().enumerate().filter_map(|(i, t)| t.map(|t| (t, i))).min();
                prop_assert_eq!(tree.earliest(), want.map(|(at, _)| at));
                if let Some((at, _)) = want {
                    prop_assert!(tree.first().is_some_and(|(bound, _)| bound <= at));
                    let mut caught_up = tree.clone();
                    caught_up.catch_up(at);
                    prop_assert_eq!(caught_up.first(), want);
                }
            }
        }
    }
}
