//! Directions of two captures with other addresses or ports, by their sequence numbers.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_proto::wire::FlowKey;

use super::{Flow, Flows};

/// Maximum number of sequence numbers of a direction that are compared.
const COMPARED: usize = 4096;

/// Minimum number of equal ones, and minimum share of the smaller number of them.
const FEWEST: usize = 3;
const SHARE: usize = 4;

/// First sequence numbers of the packets that have some of their own.
fn numbers(flow: &Flow) -> BTreeSet<u32> {
    let packets = flow.packets.iter().filter(|(known, _)| known.len > 0 || known.flags != 0);
    packets.map(|(known, _)| known.seq).take(COMPARED).collect()
}

/// The name in `first` of each direction of `second` that `first` has with other ends only.
pub(super) fn names(first: &Flows, second: &Flows) -> BTreeMap<FlowKey, FlowKey> {
    let is_in = |flows: &Flows, key: &FlowKey| {
        flows.contains_key(key) || flows.contains_key(&key.reversed())
    };
    let mut of: BTreeMap<u32, FlowKey> = BTreeMap::new();
    let mut sizes: BTreeMap<FlowKey, usize> = BTreeMap::new();
    for (key, flow) in first.iter().filter(|(key, _)| !is_in(second, key)) {
        let numbers = numbers(flow);
        sizes.insert(*key, numbers.len());
        of.extend(numbers.into_iter().map(|seq| (seq, *key)));
    }
    let mut names = BTreeMap::new();
    let mut taken = BTreeSet::new();
    let initial = |flows: &Flows, key: &FlowKey| {
        Some((flows.get(key)?.isn?, flows.get(&key.reversed())?.isn?))
    };
    let mut opened: BTreeMap<(u32, u32), Vec<FlowKey>> = BTreeMap::new();
    for key in sizes.keys() {
        if let Some(numbers) = initial(first, key) {
            opened.entry(numbers).or_default().push(*key);
        }
    }
    for key in second.keys().filter(|key| !is_in(first, key)) {
        let all = initial(second, key).and_then(|numbers| opened.get(&numbers));
        // Scripts that write captures use the same numbers for all connections.
        if let Some([name]) = all.map(Vec::as_slice)
            && taken.insert(*name)
        {
            names.insert(*key, *name);
        }
    }
    for (key, flow) in second.iter().filter(|(key, _)| !is_in(first, key)) {
        if names.contains_key(key) {
            continue;
        }
        let numbers = numbers(flow);
        let mut votes: BTreeMap<FlowKey, usize> = BTreeMap::new();
        numbers
            .iter()
            .filter_map(|seq| of.get(seq))
            .for_each(|key| *votes.entry(*key).or_default() += 1);
        let Some((name, equal)) = votes.into_iter().max_by_key(|(_, equal)| *equal) else {
            continue;
        };
        let all = numbers.len().min(sizes[&name]);
        if equal >= FEWEST && equal * SHARE >= all && taken.insert(name) {
            names.insert(*key, name);
        }
    }
    // The other direction may have ACKs only.
    for (key, name) in names.clone() {
        names.entry(key.reversed()).or_insert(name.reversed());
    }
    names
}
