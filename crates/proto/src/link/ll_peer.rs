//! State of a peer in an end of `ll` or `ll-sack`: unacknowledged packets to it, and packets received from
//! it.

use std::collections::VecDeque;

use super::frame::{BitVector, LinkAck, Load};
use crate::event::{Cause, LinkNote};
use crate::units::{Span, Time};

/// A sent packet without an acknowledgement.
#[derive(Clone, Debug)]
pub(super) struct PendingPacket {
    pub load: Load,
    /// Number of its last transmission.
    pub transmission: u32,
    /// Deadline of its timer; `None` while it waits for a retransmission, or is at medium access.
    pub deadline: Option<Time>,
    /// Time at which it left the transmitter, if it did so only once.
    pub left: Option<Time>,
    pub tries: u32,
    pub acked: bool,
    /// Cause of its pending retransmission.
    pub again: Option<Cause>,
}

/// State of a peer.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    // Sender.
    /// Sequence number of the first of `sent`.
    pub una: u32,
    pub sent: VecDeque<PendingPacket>,
    pub transmission: u32,
    srtt: Option<(Span, Span)>,
    // Receiver.
    /// Sequence number of the last packet received in order.
    cumulative: u32,
    /// Whether each of the packets behind it was received.
    beyond: VecDeque<bool>,
    last_received: u32,
    pub owes_ack: bool,
}

impl Peer {
    pub fn new() -> Peer {
        Peer {
            una: 0,
            sent: VecDeque::new(),
            transmission: 0,
            srtt: None,
            cumulative: u32::MAX,
            beyond: VecDeque::new(),
            last_received: 0,
            owes_ack: false,
        }
    }

    /// The timeout: `initial` before the first measurement, and at least `least`.
    pub fn timeout(&self, initial: Span, least: Span) -> Span {
        match self.srtt {
            None => initial,
            Some((srtt, var)) => (srtt + var * 4).max(least),
        }
    }

    /// Adds a round-trip sample with the estimators of RFC 6298 section 2.
    fn measured(&mut self, rtt: Span) {
        self.srtt = Some(match self.srtt {
            None => (rtt, rtt / 2),
            Some((srtt, var)) => {
                let error = Span(srtt.0.abs_diff(rtt.0));
                ((srtt * 7 + rtt) / 8, (var * 3 + error) / 4)
            }
        });
    }

    /// Handles an acknowledgement up to `cumulative`. Returns false if it is impossible.
    pub fn acknowledge(&mut self, now: Time, cumulative: u32) -> bool {
        let count = cumulative.wrapping_add(1).wrapping_sub(self.una);
        if count == 0 || count > u32::from(u16::MAX) {
            // An old acknowledgement.
            return self.una.wrapping_sub(cumulative) <= 1 << 16;
        }
        if count as usize > self.sent.len() {
            return false;
        }
        let mut sample = None;
        for sent in self.sent.drain(..count as usize) {
            if !sent.acked {
                sample = sent.left;
            }
        }
        self.una = self.una.wrapping_add(count);
        if let Some(left) = sample {
            self.measured(now.since(left));
        }
        true
    }

    /// The pending acknowledgement.
    pub fn ack(&mut self, selective: bool) -> LinkAck {
        self.owes_ack = false;
        let mut vector = BitVector::zeros(if selective { self.beyond.len() as u16 } else { 0 });
        for (i, came) in self.beyond.iter().enumerate() {
            if *came {
                vector.set(i as u16);
            }
        }
        LinkAck { cumulative: self.cumulative, vector, last_received: self.last_received }
    }

    /// Handles a packet with number `seq`. Fails if it is not new.
    pub fn receive(&mut self, seq: u32, transmission: u32, window: u16) -> Result<(), LinkNote> {
        self.owes_ack = true;
        let ahead = seq.wrapping_sub(self.cumulative).wrapping_sub(1);
        if ahead >= u32::from(window) {
            let behind = self.cumulative.wrapping_sub(seq) < u32::from(window);
            if behind {
                self.record_transmission(transmission);
            }
            return Err(if behind { LinkNote::Duplicate } else { LinkNote::OutOfWindow });
        }
        self.record_transmission(transmission);
        let i = ahead as usize;
        if self.beyond.len() <= i {
            self.beyond.resize(i + 1, false);
        }
        if core::mem::replace(&mut self.beyond[i], true) {
            return Err(LinkNote::Duplicate);
        }
        while self.beyond.front() == Some(&true) {
            self.beyond.pop_front();
            self.cumulative = self.cumulative.wrapping_add(1);
        }
        Ok(())
    }

    fn record_transmission(&mut self, transmission: u32) {
        if (transmission.wrapping_sub(self.last_received) as i32) > 0 {
            self.last_received = transmission;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6298 section 2: a quarter of each error is added to the variation, an eighth of each sample to the
    /// average.
    #[test]
    fn the_timeout_follows_rfc_6298() {
        let mut peer = Peer::new();
        let (initial, least) = (Span::millis(500), Span::millis(20));
        assert_eq!(peer.timeout(initial, least), initial, "nothing is known yet");
        // Averages and variations: 80 and 40, 90 and 50, 80 and 57.5, in ms.
        for (rtt, micros) in [(80, 240_000), (160, 290_000), (10, 310_000)] {
            peer.measured(Span::millis(rtt));
            assert_eq!(peer.timeout(initial, least), Span::micros(micros), "after {rtt} ms");
        }
        assert_eq!(peer.timeout(initial, Span::secs(1)), Span::secs(1));
    }
}
