//! Release in order: items that overtook earlier ones wait for them.
//!
//! Items have consecutive numbers. One that is missing holds back those after it, until it arrives, or until a
//! timer gives it up: the timer of 3GPP TS 38.323 (t-Reordering), which runs for the items that are missing
//! when it starts. With [`Order::Free`] each item is released at once, and the numbers only identify
//! duplicates.

use std::collections::VecDeque;

use serde::Serialize;

use crate::describe::Keys;
use crate::units::{Span, Time};

/// Whether items wait for those before them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// They wait.
    #[default]
    Kept,
    /// They are released at once.
    Free,
}

impl Order {
    /// Reads the key `order`.
    pub fn key(&mut self, k: &mut Keys<'_>) {
        let words = [("kept", Order::Kept), ("free", Order::Free)];
        let doc = "whether packets wait for missing ones before them, or are released at once";
        k.word("order", self, &words, doc);
    }

    /// Whether items wait.
    pub fn is_in_order(&self) -> bool {
        *self == Order::Kept
    }
}

/// What the buffer does with an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accepted {
    /// It can be taken now.
    Ready,
    /// It waits for a missing one.
    Waits,
    /// An item with this number was accepted, or given up, before.
    Old,
    /// Its number is beyond the window.
    OutOfWindow,
}

#[derive(Clone, Debug)]
enum Slot<T> {
    Missing,
    Held(T),
    Released,
}

/// The buffer of a receiver.
#[derive(Clone, Debug)]
pub struct InOrder<T> {
    order: Order,
    window: u64,
    /// Number of the next item in order.
    expected: u64,
    /// Items from there on. The first is missing, or can be taken.
    slots: VecDeque<Slot<T>>,
    /// With [`Order::Free`], the item to be taken.
    ready: Option<T>,
    /// Deadline of the missing items before a number.
    timer: Option<(Time, u64)>,
}

impl<T> InOrder<T> {
    /// An empty buffer for numbers from 0 on, at most `window` from the first missing one.
    pub fn new(order: Order, window: u64) -> InOrder<T> {
        let (slots, ready, timer) = (VecDeque::new(), None, None);
        InOrder { order, window, expected: 0, slots, ready, timer }
    }

    /// Number of the next item in order.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// Whether each number from the expected one to the highest received one has been received.
    pub fn received(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        self.slots.iter().map(|slot| !matches!(slot, Slot::Missing))
    }

    /// Number of items that wait.
    pub fn buffered(&self) -> usize {
        self.slots.iter().filter(|slot| matches!(slot, Slot::Held(_))).count()
    }

    /// Accepts the item with this number. Then [`InOrder::take_next`] must be called until it returns none.
    pub fn accept(&mut self, number: u64, item: T) -> Accepted {
        let Some(ahead) = number.checked_sub(self.expected) else { return Accepted::Old };
        if ahead >= self.window {
            return Accepted::OutOfWindow;
        }
        let ahead = ahead as usize;
        if ahead >= self.slots.len() {
            self.slots.resize_with(ahead + 1, || Slot::Missing);
        }
        if !matches!(self.slots[ahead], Slot::Missing) {
            return Accepted::Old;
        }
        if self.order == Order::Free {
            self.slots[ahead] = Slot::Released;
            self.ready = Some(item);
            return Accepted::Ready;
        }
        self.slots[ahead] = Slot::Held(item);
        if ahead == 0 { Accepted::Ready } else { Accepted::Waits }
    }

    /// Takes the next item that need not wait.
    pub fn take_next(&mut self) -> Option<T> {
        loop {
            if !matches!(self.slots.front(), Some(Slot::Held(_) | Slot::Released)) {
                return self.ready.take();
            }
            self.expected += 1;
            if let Some(Slot::Held(item)) = self.slots.pop_front() {
                return Some(item);
            }
        }
    }

    /// Starts, continues or stops the timer after items were accepted and taken.
    pub fn watch(&mut self, now: Time, patience: Span) {
        if self.timer.is_some_and(|(_, before)| before <= self.expected) {
            self.timer = None;
        }
        if self.timer.is_none() && !self.slots.is_empty() {
            self.timer = Some((now + patience, self.expected + self.slots.len() as u64));
        }
    }

    /// Deadline of the timer.
    pub fn deadline(&self) -> Option<Time> {
        self.timer.map(|(at, _)| at)
    }

    /// If the timer has expired: stops it, and returns the number before which items are missing for too long.
    pub fn expired(&mut self, now: Time) -> Option<u64> {
        let (_, before) = self.timer.take_if(|(at, _)| *at <= now)?;
        Some(before)
    }

    /// Gives up the missing items before `number`. Then [`InOrder::take_next`] must be called.
    pub fn give_up_before(&mut self, number: u64) {
        let count = number.saturating_sub(self.expected).min(self.slots.len() as u64) as usize;
        for slot in self.slots.iter_mut().take(count) {
            if matches!(slot, Slot::Missing) {
                *slot = Slot::Released;
            }
        }
        if number > self.expected + self.slots.len() as u64 {
            self.slots.resize_with((number - self.expected) as usize, || Slot::Released);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Items arrive in any order, repeatedly or never. Each is taken at most once, and in order unless the order
        /// is free.
        #[test]
        fn items_are_taken_once_and_in_order(
            numbers in prop::collection::vec(0_u64..40, 0..120),
            given_up in prop::collection::vec(any::<bool>(), 120),
            free in any::<bool>(),
            window in 1_u64..50,
        ) {
            let order = if free { Order::Free } else { Order::Kept };
            let mut buffer = InOrder::new(order, window);
            let (mut taken, mut accepted) = (Vec::new(), Vec::new());
            for (number, give_up) in numbers.into_iter().zip(given_up) {
                match buffer.accept(number, number) {
                    Accepted::Ready | Accepted::Waits => {
                        prop_assert!(!accepted.contains(&number));
                        accepted.push(number);
                    }
                    Accepted::Old => prop_assert!(
                        accepted.contains(&number) || number < buffer.expected()
                    ),
                    Accepted::OutOfWindow => prop_assert!(number >= buffer.expected() + window),
                }
                if give_up && number % 7 == 0 {
                    buffer.give_up_before(number);
                }
                while let Some(item) = buffer.take_next() {
                    prop_assert!(order == Order::Free || item < buffer.expected());
                    taken.push(item);
                }
                prop_assert!(buffer.received().len() as u64 <= window.max(40));
                prop_assert_ne!(buffer.received().next(), Some(true));
            }
            let mut sorted = taken.clone();
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert_eq!(sorted.len(), taken.len(), "each at most once");
            if order == Order::Kept {
                prop_assert_eq!(&sorted, &taken);
            }
            prop_assert_eq!(accepted.len(), taken.len() + buffer.buffered());
        }
    }

    #[test]
    fn the_timer_runs_for_the_items_missing_when_it_starts() {
        let (ms, wait) = (|ms| Time::ZERO + Span::millis(ms), Span::millis(40));
        let mut buffer = InOrder::new(Order::Kept, 100);
        let put = |buffer: &mut InOrder<u64>, now, number| {
            buffer.accept(number, number);
            let taken: Vec<u64> = core::iter::from_fn(|| buffer.take_next()).collect();
            buffer.watch(now, wait);
            taken
        };
        assert_eq!(put(&mut buffer, ms(0), 0), [0]);
        assert_eq!(buffer.deadline(), None);
        assert!(put(&mut buffer, ms(1), 2).is_empty());
        assert!(put(&mut buffer, ms(5), 4).is_empty());
        assert_eq!((buffer.deadline(), buffer.expired(ms(40))), (Some(ms(41)), None));
        assert_eq!(buffer.expired(ms(41)), Some(3));
        buffer.give_up_before(3);
        assert_eq!(buffer.take_next(), Some(2));
        assert_eq!(buffer.take_next(), None);
        buffer.watch(ms(41), wait);
        assert_eq!(buffer.deadline(), Some(ms(81)), "number 3 is missing since later");
        assert_eq!(put(&mut buffer, ms(50), 3), [3, 4]);
        assert_eq!(buffer.deadline(), None);
    }
}
