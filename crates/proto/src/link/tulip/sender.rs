//! The sender of one destination (parsa98 3.2, Figure 2): window, transmission buffer, retransmission list.
//!
//! Internal sequence numbers do not wrap; on the air they are modulo 2W. Each transmission has a number, too.
//! An acknowledgement contains the last transmission heard: unacknowledged packets sent before it are lost,
//! since the link preserves the order. If the ends take turns this gives the paper's list, all packets
//! missing in the bit vector. On a long channel it excludes packets still under way.

use std::collections::{BTreeSet, VecDeque};

use crate::air::Station;
use crate::event::{Cause, LinkNote};
use crate::link::end::Above;
use crate::link::frame::{LinkAck, Load};
use crate::units::{Span, Time};

use super::Pacing;
use super::service::{Rule, Service};

/// Whether transmission `a` was after `b`; numbers wrap.
pub(super) fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// A packet in the window.
#[derive(Clone, Debug)]
struct Slot {
    /// The packet; empty after its acknowledgement.
    load: Load,
    /// Number of its first transmission.
    first: u32,
    /// Number of its last transmission.
    last: u32,
    acked: bool,
}

/// Result of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckResult {
    /// It acknowledges packets that were never sent.
    Bad,
    /// A newer one has overtaken it.
    Old,
    /// It was accepted; `last` if it includes this sender's last transmission.
    Taken { last: bool },
}

/// A packet to send.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// Sequence number (modulo 2W) and number of the transmission, if it is reliable.
    pub seq: Option<(u32, u32)>,
    pub load: Load,
}

/// The sender of one destination.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    window: u64,
    pacing: Pacing,
    /// Sequence number of the oldest unacknowledged packet.
    base: u64,
    slots: VecDeque<Slot>,
    /// The retransmission list.
    lost: BTreeSet<u64>,
    /// Repairs that are sent twice, since the loss of one would stall the window.
    twice: BTreeSet<u64>,
    /// Transmissions without a report, in order.
    order: VecDeque<(u32, u64)>,
    /// Number of the last transmission.
    transmissions: u32,
    /// The last transmission that the receiver has reported.
    last_received: u32,
    /// The next packet with its service.
    next: Option<(Load, Service)>,
    /// Time of the oldest packet's retransmission, if no acknowledgement arrives.
    pub alarm: Option<Time>,
    /// Whether the alarm has expired without a later acknowledgement.
    pub expired: bool,
    /// Time limit of the answer to the last transmission.
    pub patience: Span,
    /// Successive alarms.
    pub silent: u32,
    /// Whether the window was full at the last choice.
    full: bool,
}

impl Sender {
    /// Asserts the invariants of the window.
    pub fn check(&self) {
        let end = self.base + self.slots.len() as u64;
        debug_assert!(self.slots.len() as u64 <= self.window, "limit of the window");
        debug_assert!(
            self.slots.front().is_none_or(|slot| !slot.acked),
            "the window begins with an unacknowledged packet"
        );
        let within = |seq: &u64| (self.base..end).contains(seq);
        debug_assert!(self.lost.iter().all(within), "lost packets are in the window");
        debug_assert!(self.twice.iter().all(within), "repeated packets are in the window");
        debug_assert!(
            !after(self.last_received, self.transmissions),
            "the peer has received a transmission that was never sent"
        );
        debug_assert!(
            self.order.len() as u64 <= 4 * self.window,
            "transmissions: {} in a window of {}",
            self.order.len(),
            self.window
        );
        debug_assert!(
            self.slots.iter().take(8).all(|slot| !after(slot.first, slot.last)),
            "the last transmission of a packet is not before its first"
        );
    }

    /// Reports unacknowledged packets, and whether they are sent more than once.
    pub fn stored_loads(&self, each: &mut dyn FnMut(&Load, bool)) {
        for (seq, slot) in (self.base..).zip(&self.slots).filter(|(_, slot)| !slot.acked) {
            each(&slot.load, slot.last != slot.first || self.lost.contains(&seq));
        }
    }

    pub fn new(window: u16, pacing: Pacing) -> Sender {
        Sender {
            window: u64::from(window),
            pacing,
            base: 0,
            slots: VecDeque::new(),
            lost: BTreeSet::new(),
            twice: BTreeSet::new(),
            order: VecDeque::new(),
            transmissions: 0,
            last_received: 0,
            next: None,
            alarm: None,
            expired: false,
            patience: Span::ZERO,
            silent: 0,
            full: false,
        }
    }

    /// Whether there are unacknowledged packets.
    pub fn is_waiting(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Number of packets in the window.
    pub fn outstanding(&self) -> usize {
        self.slots.len()
    }

    /// The retransmission list as sequence numbers modulo 2W.
    pub fn retransmission_list(&self) -> Vec<u32> {
        self.lost.iter().map(|seq| self.wire(*seq)).collect()
    }

    fn wire(&self, seq: u64) -> u32 {
        (seq % (2 * self.window)) as u32
    }

    fn slot(&mut self, seq: u64) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(seq.checked_sub(self.base)?).ok()?)
    }

    /// Chooses the next packet to send, if there is one.
    pub fn choose(&mut self, to: Station, rule: &Rule, above: &mut dyn Above) -> Option<Chosen> {
        //= parsa98#3.2: the retransmission list first, then a new packet if the window has room, else the oldest
        if let Some(seq) = self.lost.pop_first() {
            if self.would_stall(seq) {
                self.twice.insert(seq);
            }
            return self.repeat(seq, to, Cause::LinkNack, above);
        }
        if let Some(seq) = self.twice.pop_first() {
            return self.repeat(seq, to, Cause::LinkNack, above);
        }
        if self.next.is_none() {
            self.next = above.take(to).map(|load| {
                let service = load.packet().map_or(Service::Unreliable, |p| rule.service(p));
                (load, service)
            });
        }
        let room = (self.slots.len() as u64) < self.window;
        match self.next.take() {
            Some((load, Service::Unreliable)) => Some(Chosen { seq: None, load }),
            Some((load, Service::Reliable)) if room => Some(self.send(load)),
            Some(blocked) => {
                self.next = Some(blocked);
                if !core::mem::replace(&mut self.full, true) {
                    above.note(to, LinkNote::WindowFull);
                }
                if self.pacing == Pacing::FullDuplex && !self.expired {
                    return None;
                }
                self.repeat(self.base, to, Cause::LinkWindowFull, above)
            }
            // The paper's sender always has something to send; the last packets must arrive as well.
            None if self.expired => self.repeat(self.base, to, Cause::LinkTimeout, above),
            None => None,
        }
    }

    /// Whether the window would be used up before a loss of this repair could be repaired, in full duplex:
    /// the detection takes a round trip, and the repair another one.
    fn would_stall(&self, seq: u64) -> bool {
        let flight = u64::from(self.transmissions.wrapping_sub(self.last_received));
        let left = seq + self.window - (self.base + self.slots.len() as u64);
        self.pacing == Pacing::FullDuplex && left < 2 * flight
    }

    fn count(&mut self, seq: u64) -> u32 {
        self.transmissions = self.transmissions.wrapping_add(1);
        self.expired = false;
        self.order.push_back((self.transmissions, seq));
        // Without acknowledgements the oldest packet is sent repeatedly; its old entries here are obsolete.
        if self.order.len() as u64 > 4 * self.window {
            let (base, slots) = (self.base, &self.slots);
            self.order.retain(|(number, seq)| {
                let slot = seq.checked_sub(base).and_then(|i| slots.get(i as usize));
                slot.is_none_or(|slot| slot.last == *number)
            });
        }
        self.transmissions
    }

    /// Sends a new packet.
    fn send(&mut self, load: Load) -> Chosen {
        let seq = self.base + self.slots.len() as u64;
        let number = self.count(seq);
        let slot = Slot { load: load.clone(), first: number, last: number, acked: false };
        self.slots.push_back(slot);
        self.full = false;
        Chosen { seq: Some((self.wire(seq), number)), load }
    }

    /// Retransmits a packet of the window.
    fn repeat(
        &mut self,
        seq: u64,
        to: Station,
        cause: Cause,
        above: &mut dyn Above,
    ) -> Option<Chosen> {
        self.slot(seq)?;
        let number = self.count(seq);
        self.lost.remove(&seq);
        let wire = self.wire(seq);
        let slot = self.slot(seq)?;
        slot.last = number;
        above.repeat(to, &slot.load, cause);
        Some(Chosen { seq: Some((wire, number)), load: slot.load.clone() })
    }

    /// Handles an acknowledgement.
    pub fn acknowledge(&mut self, ack: &LinkAck) -> AckResult {
        let modulus = 2 * self.window;
        let cumulative = u64::from(ack.cumulative);
        let bits = u64::from(ack.vector.len());
        if cumulative >= modulus
            || bits > self.window
            || after(ack.last_received, self.transmissions)
        {
            return AckResult::Bad;
        }
        // Number of covered packets from the oldest on.
        let covered = (cumulative + 1 + modulus - self.base % modulus) % modulus;
        let len = self.slots.len() as u64;
        if covered > len {
            return if covered > self.window { AckResult::Old } else { AckResult::Bad };
        }
        let set = |i: &u64| ack.vector.get(*i as u16);
        let highest = (0..bits).rev().find(set).map_or(covered, |i| covered + i + 1);
        if highest > len {
            return AckResult::Bad;
        }
        // Packets first sent after the last transmission heard cannot be acknowledged. Then the numbers have
        // wrapped since, and the acknowledgement is a late one.
        if highest > 0
            && let Some(slot) = self.slots.get(highest as usize - 1)
            && after(slot.first, ack.last_received)
        {
            return AckResult::Old;
        }
        self.take_in(ack, covered, highest);
        AckResult::Taken { last: ack.last_received == self.transmissions }
    }

    fn take_in(&mut self, ack: &LinkAck, covered: u64, highest: u64) {
        for _ in 0..covered {
            self.slots.pop_front();
            self.forget(self.base);
            self.base += 1;
        }
        for i in (0..highest - covered).filter(|i| ack.vector.get(*i as u16)) {
            let slot = &mut self.slots[i as usize];
            if !slot.acked {
                slot.acked = true;
                slot.load = Load::None;
                self.forget(self.base + i);
            }
        }
        if after(ack.last_received, self.last_received) {
            self.last_received = ack.last_received;
        }
        while let Some((number, seq)) = self.order.front().copied()
            && after(ack.last_received, number)
        {
            self.order.pop_front();
            if let Some(slot) = self.slot(seq)
                && !slot.acked
                && slot.last == number
            {
                self.lost.insert(seq);
            }
        }
        self.silent = 0;
    }

    /// Removes `seq` from the lists of pending repairs.
    fn forget(&mut self, seq: u64) {
        self.lost.remove(&seq);
        self.twice.remove(&seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::frame::BitVector;

    const PEER: Station = Station(1);
    const WINDOW: u16 = 8;

    /// No waiting packets; retransmissions are counted.
    #[derive(Clone, Default)]
    struct Quiet(u32);

    impl Above for Quiet {
        fn waits(&self, _: Station) -> bool {
            false
        }
        fn next_destination(&self) -> Option<Station> {
            None
        }
        fn take(&mut self, _: Station) -> Option<Load> {
            None
        }
        fn release(&mut self, _: Station, _: Load) {}
        fn give_up(&mut self, _: Station, _: Load, _: Cause) {}
        fn repeat(&mut self, _: Station, _: &Load, _: Cause) {
            self.0 += 1;
        }
        fn attempt_failed(&mut self, _: &Load, _: u32, _: bool) {}
        fn note(&mut self, _: Station, _: LinkNote) {}
    }

    /// An acknowledgement without packets in order, with the packets of `got` behind.
    fn ack(got: &[u16], last_received: u32) -> LinkAck {
        let mut vector = BitVector::zeros(WINDOW);
        got.iter().for_each(|i| vector.set(*i));
        LinkAck { cumulative: u32::from(2 * WINDOW) - 1, vector, last_received }
    }

    #[test]
    fn a_packet_is_not_lost_while_its_repetition_is_on_its_way() {
        let mut sender = Sender::new(WINDOW, Pacing::FullDuplex);
        let mut above = Quiet::default();
        sender.send(Load::None);
        sender.send(Load::None);
        sender.expired = true;
        let again = sender.choose(PEER, &Rule::default(), &mut above).expect("the oldest");
        assert_eq!((again.seq, above.0), (Some((0, 3)), 1));
        // The second packet was heard before the retransmission could be.
        assert_eq!(sender.acknowledge(&ack(&[1], 2)), AckResult::Taken { last: false });
        assert_eq!(sender.retransmission_list(), [], "its third transmission may arrive yet");
        // Now the retransmission is obsolete as well.
        sender.send(Load::None);
        assert_eq!(sender.acknowledge(&ack(&[1, 2], 4)), AckResult::Taken { last: true });
        assert_eq!(sender.retransmission_list(), [0]);
    }

    #[test]
    fn unanswered_retransmissions_use_bounded_memory() {
        let mut sender = Sender::new(WINDOW, Pacing::HalfDuplex);
        let mut above = Quiet::default();
        (0..3).for_each(|_| drop(sender.send(Load::None)));
        for n in 0..1000 {
            sender.expired = true;
            sender.choose(PEER, &Rule::default(), &mut above).expect("the oldest");
            let stored = sender.order.len();
            assert!(
                stored <= 4 * usize::from(WINDOW),
                "{stored} transmissions after {n} repetitions"
            );
        }
        // The last transmission of each packet is still known, so an answer finds the lost ones.
        assert_eq!(sender.acknowledge(&ack(&[], 1003)), AckResult::Taken { last: true });
        assert_eq!(sender.retransmission_list(), [1, 2]);
    }
}
