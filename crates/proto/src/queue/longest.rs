//! Finds the longest of many queues with a tournament tree over their bytes.

/// The bytes of each queue at the leaves, and the maximum of its children at each inner node. An update takes
/// log2(n) comparisons, and so does a query. The tree is empty until the first query, so queues that never
/// overflow have no cost.
#[derive(Clone, Debug, Default)]
pub(super) struct Longest {
    nodes: Vec<u64>,
}

impl Longest {
    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Sets the bytes of queue `i`.
    #[inline]
    pub(super) fn set(&mut self, i: usize, bytes: u64) {
        if i < self.leaves() {
            self.replay(i, bytes);
        }
    }

    fn replay(&mut self, i: usize, bytes: u64) {
        let mut node = self.leaves() + i;
        self.nodes[node] = bytes;
        while node > 1 {
            node /= 2;
            let most = self.nodes[2 * node].max(self.nodes[2 * node + 1]);
            if self.nodes[node] == most {
                return;
            }
            self.nodes[node] = most;
        }
    }

    /// Index of the longest of `n` queues with `bytes` bytes each; the last one among equals.
    pub(super) fn of(&mut self, n: usize, bytes: impl Fn(usize) -> u64) -> Option<usize> {
        if n > self.leaves() {
            let leaves = n.next_power_of_two().max(2);
            self.nodes = vec![0; 2 * leaves];
            (0..n).for_each(|i| self.nodes[leaves + i] = bytes(i));
            for node in (1..leaves).rev() {
                self.nodes[node] = self.nodes[2 * node].max(self.nodes[2 * node + 1]);
            }
        }
        let mut node = 1;
        while node < self.leaves() {
            node = 2 * node + usize::from(self.nodes[2 * node + 1] >= self.nodes[2 * node]);
        }
        // If all are empty the last leaf wins, which may be unused.
        (n > 0).then(|| (node - self.leaves()).min(n - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn the_tournament_matches_a_full_scan() {
        let mut rng = Stream::new(1, "longest");
        for n in [1, 2, 3, 7, 64, 100] {
            let (mut bytes, mut longest) = (vec![0; n], Longest::default());
            for _ in 0..400 {
                let i = (rng.next_u64() % n as u64) as usize;
                bytes[i] = rng.next_u64() % 5;
                longest.set(i, bytes[i]);
                let looked = (0..n).max_by_key(|i| bytes[*i]);
                assert_eq!(longest.of(n, |i| bytes[i]), looked, "{bytes:?}");
            }
        }
    }
}
