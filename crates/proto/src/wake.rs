//! Who wants to be woken first: a tournament over a fixed set of sleepers.

use crate::units::Time;

/// A winner tree: the earliest wake time of each of `n` sleepers, and the earliest of all at its root.
/// Changing one entry costs log2(n) comparisons; nothing is allocated after growth. Equal times go to the
/// lower index, so that the order of events is the same everywhere. A handful of sleepers is cheaper to look
/// through than to keep in order, so their inner nodes are not used.
#[derive(Clone, Debug)]
pub struct WakeTree {
    /// Leaves stand at `leaves..2 * leaves`; node `i` holds the winner of `2i` and `2i + 1`.
    nodes: Vec<(Time, u32)>,
    leaves: usize,
}

/// So many sleepers are looked through one by one.
const FEW: usize = 8;

impl WakeTree {
    /// A tree for `n` sleepers, none of which wants to be woken.
    pub fn new(n: usize) -> WakeTree {
        let leaves = n.max(1).next_power_of_two();
        let mut tree = WakeTree { nodes: vec![(Time::NEVER, 0); 2 * leaves], leaves };
        for i in 0..leaves {
            tree.nodes[leaves + i].1 = i as u32;
        }
        for i in (1..leaves).rev() {
            tree.nodes[i] = tree.nodes[2 * i];
        }
        tree
    }

    /// Makes room for at least `n` sleepers.
    pub fn grow(&mut self, n: usize) {
        if n <= self.leaves {
            return;
        }
        let mut bigger = WakeTree::new(n.max(2 * self.leaves));
        for i in 0..self.leaves {
            bigger.set(i, Some(self.nodes[self.leaves + i].0));
        }
        *self = bigger;
    }

    /// Sleeper `i` wants to be woken at `at`, or not at all.
    #[inline]
    pub fn set(&mut self, i: usize, at: Option<Time>) {
        let at = at.unwrap_or(Time::NEVER);
        if self.leaves <= FEW {
            self.nodes[self.leaves + i].0 = at;
        } else {
            self.replay(i, at);
        }
    }

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

    /// The earliest sleeper and its time.
    #[inline]
    pub fn first(&self) -> Option<(Time, usize)> {
        let (at, i) = if self.leaves <= FEW {
            let leaves = &self.nodes[self.leaves..];
            let mut best = leaves[0];
            for &leaf in &leaves[1..] {
                if leaf.0 < best.0 {
                    best = leaf;
                }
            }
            best
        } else {
            self.nodes[1]
        };
        at.or_none().map(|at| (at, i as usize))
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
            tree.grow(13);
            let mut plain = [None; 13];
            for (i, at) in sets {
                tree.set(i, at.map(Time));
                plain[i] = at.map(Time);
                let want = plain.iter().enumerate().filter_map(|(i, t)| t.map(|t| (t, i))).min();
                prop_assert_eq!(tree.first(), want);
            }
        }
    }
}
