//! Queues in front of a link.

use std::collections::VecDeque;

use serde::Serialize;

use crate::units::{Bytes, Time};

/// How much a drop-tail queue holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// So many packets, the one in transmission not counted.
    Packets(u32),
    /// So many bytes, the packet in transmission not counted.
    Bytes(Bytes),
}

impl Limit {
    /// Whether a queue that holds `packets` of together `bytes` has room for one more of `more` bytes.
    pub fn admits(self, packets: usize, bytes: u64, more: u32) -> bool {
        match self {
            Limit::Packets(limit) => packets < limit as usize,
            Limit::Bytes(limit) => bytes + u64::from(more) <= limit.0,
        }
    }
}

/// A drop-tail queue before a transmitter whose schedule is known: it remembers when each waiting packet's
/// transmission starts, so that nothing has to happen at that moment.
#[derive(Clone, Debug)]
pub struct DropTail {
    limit: Limit,
    waiting: VecDeque<(Time, u32)>,
    bytes: u64,
}

impl DropTail {
    /// An empty queue.
    pub fn new(limit: Limit) -> DropTail {
        DropTail { limit, waiting: VecDeque::new(), bytes: 0 }
    }

    /// A packet of `bytes` arrives at `now` and could start at `start`; whether there is room for it.
    pub fn admit(&mut self, now: Time, start: Time, bytes: u32) -> bool {
        while self.waiting.front().is_some_and(|(start, _)| *start <= now) {
            if let Some((_, gone)) = self.waiting.pop_front() {
                self.bytes -= u64::from(gone);
            }
        }
        if !self.limit.admits(self.waiting.len(), self.bytes, bytes) {
            return false;
        }
        self.bytes += u64::from(bytes);
        self.waiting.push_back((start, bytes));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_when_a_transmission_starts() {
        let mut queue = DropTail::new(Limit::Packets(2));
        assert!(queue.admit(Time(0), Time(10), 100));
        assert!(queue.admit(Time(0), Time(20), 100));
        assert!(!queue.admit(Time(5), Time(30), 100));
        assert!(queue.admit(Time(10), Time(30), 100));
        assert!(!queue.admit(Time(10), Time(40), 100));
    }

    #[test]
    fn bytes_are_counted() {
        let mut queue = DropTail::new(Limit::Bytes(Bytes(1500)));
        assert!(queue.admit(Time(0), Time(10), 1000));
        assert!(!queue.admit(Time(0), Time(20), 501));
        assert!(queue.admit(Time(0), Time(20), 500));
    }
}
