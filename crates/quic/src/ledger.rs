//! What a sender has sent and what of it is acknowledged, by the frames that pass.
//!
//! The stack knows all this and does not tell it. The ledger reads along, so that events can say which bytes a packet
//! holds, whether they go out for the first time, and up to where everything has arrived.

use std::collections::VecDeque;

use lasthop_trace::ranges::Ranges;

use crate::frames::{Frames, widen};

/// Bytes of a stream in a packet.
#[derive(Clone, Copy, Debug)]
struct Piece {
    packet: u64,
    stream: usize,
    start: u64,
    end: u64,
}

/// One stream.
#[derive(Default, Debug)]
struct Account {
    /// One past the highest byte sent.
    high: u64,
    acked: Ranges,
}

impl Account {
    /// Everything below has arrived.
    fn una(&self) -> u64 {
        self.acked.first().filter(|(start, _)| *start == 0).map_or(0, |(_, end)| end)
    }
}

/// What one packet held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Held {
    /// Bytes that were never sent before.
    New,
    /// Only bytes that were sent before.
    Again,
    /// No bytes of streams.
    Nothing,
}

/// The ledger of a connection that sends.
#[derive(Default, Debug)]
pub(crate) struct Ledger {
    streams: Vec<Account>,
    /// Pieces under way, by packet number.
    flight: VecDeque<Piece>,
    /// The next packet number.
    next: u64,
    sent: u64,
    acked: u64,
}

/// Streams of a client that carry data one way are numbered 2, 6, 10 and so on.
//= rfc9000#section-2.1: the two lowest bits say who opened it and which ways it goes
fn index(stream: u64) -> usize {
    (stream / 4) as usize
}

impl Ledger {
    /// Bytes sent at least once, over all streams.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes that are acknowledged with everything before them, over all streams.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    fn account(&mut self, stream: usize) -> &mut Account {
        if self.streams.len() <= stream {
            self.streams.resize_with(stream + 1, Account::default);
        }
        &mut self.streams[stream]
    }

    /// A packet with `frames` goes out.
    pub(crate) fn sends(&mut self, frames: &Frames) -> Held {
        let Some((low, bits)) = frames.number else { return Held::Nothing };
        let packet = widen(low, bits, self.next);
        self.next = packet + 1;
        let mut held = Held::Nothing;
        for (stream, start, end) in frames.stream.iter().copied().filter(|(_, a, b)| a < b) {
            let stream = index(stream);
            let account = self.account(stream);
            let more = end.saturating_sub(account.high);
            account.high += more;
            self.sent += more;
            held = if more > 0 || held == Held::New { Held::New } else { Held::Again };
            self.flight.push_back(Piece { packet, stream, start, end });
        }
        held
    }

    /// A packet with `frames` has come.
    pub(crate) fn hears(&mut self, frames: &Frames) {
        for (low, high) in &frames.acks {
            let first = self.flight.partition_point(|piece| piece.packet < *low);
            for i in first..self.flight.len() {
                let Piece { packet, stream, start, end } = self.flight[i];
                if packet > *high {
                    break;
                }
                let account = self.account(stream);
                let una = account.una();
                account.acked.insert(start, end);
                let more = account.una() - una;
                self.acked += more;
            }
        }
        // What was lost is never acknowledged under its own number, but its bytes are under a later one.
        while let Some(piece) = self.flight.front()
            && piece.end <= self.streams[piece.stream].una()
        {
            self.flight.pop_front();
        }
    }

    /// Pieces that are remembered.
    #[cfg(test)]
    fn remembered(&self) -> usize {
        self.flight.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(packet: u64, start: u64, end: u64) -> Frames {
        Frames { number: Some((packet, 16)), stream: vec![(2, start, end)], ..Frames::default() }
    }

    fn ack(low: u64, high: u64) -> Frames {
        Frames { acks: vec![(low, high)], ..Frames::default() }
    }

    #[test]
    fn bytes_sent_again_are_told_and_forgotten_when_they_arrive() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.sends(&data(0, 0, 100)), Held::New);
        assert_eq!(ledger.sends(&data(1, 100, 200)), Held::New);
        assert_eq!(ledger.sends(&data(2, 200, 300)), Held::New);
        ledger.hears(&ack(1, 2));
        assert_eq!((ledger.sent(), ledger.acked()), (300, 0));
        assert_eq!(ledger.sends(&data(3, 0, 100)), Held::Again);
        assert_eq!(ledger.sends(&data(4, 250, 310)), Held::New);
        ledger.hears(&ack(3, 3));
        assert_eq!((ledger.sent(), ledger.acked()), (310, 300));
        assert_eq!(ledger.remembered(), 1);
        assert_eq!(ledger.sends(&ack(9, 9)), Held::Nothing);
    }
}
