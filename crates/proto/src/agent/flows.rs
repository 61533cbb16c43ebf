//! The flows of an agent: a bounded table that evicts the least recently used.

use crate::describe::Keys;
use crate::units::Bytes;
use core::ops::{Index, IndexMut};

/// Whether `host` is an end of the flow.
pub(super) fn is_of(host: Addr, key: FlowKey) -> bool {
    key.src == host || key.dst == host
}

/// Default limit of tracked flows.
pub(super) const WATCHED: usize = 1024;

/// Reads the key of the limit of tracked flows.
pub(super) fn watched(k: &mut Keys<'_>, slot: &mut usize) {
    let doc = "the maximum number of flows; the least recently used is removed first";
    k.count("flows", slot, 1..=1_000_000, doc);
}

/// Reads the key of the cache size.
pub(super) fn cached(k: &mut Keys<'_>, slot: &mut Bytes) {
    let doc = "bytes cached over all flows";
    k.within("cache", slot, Bytes(1500)..=Bytes(1 << 40), doc);
}

use crate::flows::FlowMap;
use crate::wire::{Addr, FlowKey};

/// No slot.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Slot<F> {
    key: FlowKey,
    flow: F,
    /// The next more recently used slot.
    newer: u32,
    /// The next less recently used slot.
    older: u32,
}

/// At most `limit` flows with constant-time look-up by key. A flow's slot has a constant number while the
/// flow is tracked. The slot's memory is reused for later flows.
#[derive(Clone, Debug)]
pub struct Flows<F> {
    slots: Vec<Slot<F>>,
    places: FlowMap<u32>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    limit: usize,
    /// The last result: packets come in trains, so it is probably the next one.
    last: Option<(FlowKey, u32)>,
}

impl<F: Default> Flows<F> {
    /// The most recently used flow, if there is one.
    pub fn newest(&self) -> Option<usize> {
        (self.newest != NONE).then_some(self.newest as usize)
    }

    /// Asserts that slots, places and the order of use agree.
    pub fn check(&self) {
        debug_assert!(self.places.len() <= self.limit, "limit of flows");
        debug_assert_eq!(
            self.places.len() + self.free.len(),
            self.slots.len(),
            "a slot is either used or free"
        );
        debug_assert_eq!(self.newest == NONE, self.places.is_empty(), "the newest flow");
        debug_assert_eq!(self.oldest == NONE, self.places.is_empty(), "the oldest flow");
        let slot = |i: u32| self.slots.get(i as usize);
        debug_assert!(slot(self.newest).is_none_or(|slot| slot.newer == NONE), "none is newer");
        debug_assert!(slot(self.oldest).is_none_or(|slot| slot.older == NONE), "none is older");
        debug_assert!(
            self.last.is_none_or(|(key, i)| self.places.get(&key) == Some(&i)),
            "the cached place"
        );
        debug_assert!(
            self.places.len() > 8
                || self.places.iter().all(|(key, i)| self.slots[*i as usize].key == *key),
            "the key of a place"
        );
    }

    /// An empty table for at most `limit` flows, at least one.
    pub fn new(limit: usize) -> Flows<F> {
        Flows {
            slots: Vec::new(),
            places: FlowMap::default(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            limit: limit.clamp(1, NONE as usize),
            last: None,
        }
    }

    /// Number of tracked flows.
    #[expect(clippy::len_without_is_empty, reason = "no caller needs it")]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Number of slots ever used.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Whether another flow would need an eviction.
    pub fn is_full(&self) -> bool {
        self.len() == self.limit
    }

    /// The flow that another one would replace.
    pub fn evictee(&self) -> Option<usize> {
        self.oldest().filter(|_| self.is_full())
    }

    /// The least recently used flow.
    pub fn oldest(&self) -> Option<usize> {
        (self.oldest != NONE).then_some(self.oldest as usize)
    }

    /// The slots of the flows from or to `host`, the least recently used first.
    pub(super) fn of_host(&self, host: Addr) -> Vec<usize> {
        let next = |i: u32| Some(self.slots.get(i as usize)?.newer);
        let all = core::iter::successors(Some(self.oldest), |i| next(*i));
        all.map(|i| i as usize)
            .take_while(|i| *i < self.slots.len())
            .filter(|i| is_of(host, self.slots[*i].key))
            .collect()
    }

    /// Takes the flows from or to `host` out of their slots, which the caller must remove: slot, key and
    /// flow.
    pub(super) fn take_of(&mut self, host: Addr) -> Vec<(usize, FlowKey, F)> {
        let slots = self.of_host(host).into_iter();
        slots.map(|i| (i, self.slots[i].key, core::mem::take(&mut self.slots[i].flow))).collect()
    }

    /// The slots of all tracked flows, in the order of their numbers.
    pub(super) fn watched(&self) -> Vec<usize> {
        let next = |i: &u32| Some(self.slots.get(*i as usize)?.newer);
        let all = core::iter::successors(Some(self.oldest), next).map(|i| i as usize);
        let mut all: Vec<usize> = all.take_while(|i| *i < self.slots.len()).collect();
        all.sort_unstable();
        all
    }

    /// The key of the flow in slot `i`.
    pub fn key(&self, i: usize) -> FlowKey {
        self.slots[i].key
    }

    /// The slot of `key`, which becomes the most recently used.
    #[inline]
    pub fn find(&mut self, key: FlowKey) -> Option<usize> {
        let i = match self.last {
            Some((last, i)) if last == key => i,
            _ => *self.places.get(&key)?,
        };
        self.last = Some((key, i));
        if self.newest != i {
            self.unlink(i);
            self.link(i);
        }
        Some(i as usize)
    }

    /// Assigns a slot to `key`, which must not be tracked; the caller must have made room. The slot contains
    /// an old flow, so that its buffers can be reused.
    pub fn insert(&mut self, key: FlowKey) -> usize {
        debug_assert!(!self.is_full() && !self.places.contains_key(&key));
        let i = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { key, flow: F::default(), newer: NONE, older: NONE });
            (self.slots.len() - 1) as u32
        });
        self.slots[i as usize].key = key;
        self.places.insert(key, i);
        self.link(i);
        self.last = Some((key, i));
        i as usize
    }

    /// Removes the flow in slot `i`.
    pub fn remove(&mut self, i: usize) {
        self.last = None;
        self.places.remove(&self.slots[i].key);
        self.unlink(i as u32);
        self.free.push(i as u32);
    }

    fn link(&mut self, i: u32) {
        let older = self.newest;
        let slot = &mut self.slots[i as usize];
        (slot.older, slot.newer) = (older, NONE);
        match older {
            NONE => self.oldest = i,
            older => self.slots[older as usize].newer = i,
        }
        self.newest = i;
    }

    fn unlink(&mut self, i: u32) {
        let Slot { older, newer, .. } = self.slots[i as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
    }
}

impl<F> Index<usize> for Flows<F> {
    type Output = F;
    fn index(&self, i: usize) -> &F {
        &self.slots[i].flow
    }
}

impl<F> IndexMut<usize> for Flows<F> {
    fn index_mut(&mut self, i: usize) -> &mut F {
        &mut self.slots[i].flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Addr;
    use proptest::prelude::*;

    fn key(n: u16) -> FlowKey {
        let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1));
        FlowKey { src, dst, src_port: n, dst_port: 9 }
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_list_in_order_of_use(
            steps in prop::collection::vec((0u8..3, 0u16..12), 1..300),
        ) {
            let mut flows = Flows::<()>::new(8);
            // Oldest first.
            let mut plain: Vec<u16> = Vec::new();
            for (step, n) in steps {
                let known = plain.iter().position(|m| *m == n);
                let slot = flows.find(key(n));
                prop_assert_eq!(slot.is_some(), known.is_some());
                if let Some(at) = known {
                    plain.remove(at);
                    plain.push(n);
                }
                match (step, slot) {
                    (0, Some(i)) => {
                        flows.remove(i);
                        plain.pop();
                    }
                    (1, None) => {
                        if flows.is_full() {
                            let oldest = flows.oldest().unwrap();
                            prop_assert_eq!(flows.key(oldest), key(plain[0]));
                            flows.remove(oldest);
                            plain.remove(0);
                        }
                        flows.insert(key(n));
                        plain.push(n);
                    }
                    _ => {}
                }
                prop_assert_eq!(flows.len(), plain.len());
                prop_assert_eq!(flows.oldest().map(|i| flows.key(i)), plain.first().map(|n| key(*n)));
                prop_assert!(flows.slots() <= 8);
                let mut watched: Vec<u16> =
                    flows.watched().iter().map(|i| flows.key(*i).src_port).collect();
                watched.sort_unstable();
                let mut all = plain.clone();
                all.sort_unstable();
                prop_assert_eq!(watched, all);
                prop_assert!(flows.watched().is_sorted());
            }
        }
    }
}
