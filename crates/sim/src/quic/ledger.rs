//! Sent and acknowledged data of a sender, from its frames.
//!
//! The stack does not export this state. The ledger reads its frames, so that events have the bytes of a packet, first
//! transmissions, and the acknowledged position.

use std::collections::VecDeque;

use lasthop_observe::ranges::Ranges;

use crate::quic::frames::{Frames, widen};

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

/// The stream data of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StreamData {
    /// New bytes.
    New,
    /// Retransmitted bytes only.
    Again,
    /// No stream data.
    Nothing,
}

/// The ledger of a connection that sends.
#[derive(Default, Debug)]
pub(crate) struct Ledger {
    streams: Vec<Account>,
    /// Unacknowledged pieces by packet number.
    flight: VecDeque<Piece>,
    /// The next packet number.
    next: u64,
    sent: u64,
    acked: u64,
}

/// Index of a unidirectional client stream, whose numbers are 2, 6, 10 and so on.
//= rfc9000#section-2.1: the two lowest bits say who opened it and which ways it goes
fn index(stream: u64) -> usize {
    (stream / 4) as usize
}

impl Ledger {
    /// Bytes sent at least once, over all streams.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes acknowledged in order, over all streams.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    fn account(&mut self, stream: usize) -> &mut Account {
        if self.streams.len() <= stream {
            self.streams.resize_with(stream + 1, Account::default);
        }
        &mut self.streams[stream]
    }

    /// Records a sent packet.
    pub(crate) fn sends(&mut self, frames: &Frames) -> StreamData {
        let Some((low, bits)) = frames.number else { return StreamData::Nothing };
        let packet = widen(low, bits, self.next);
        self.next = packet + 1;
        let mut held = StreamData::Nothing;
        for (stream, start, end) in frames.stream.iter().copied().filter(|(_, a, b)| a < b) {
            let stream = index(stream);
            let account = self.account(stream);
            let more = end.saturating_sub(account.high);
            account.high += more;
            self.sent += more;
            held = if more > 0 || held == StreamData::New {
                StreamData::New
            } else {
                StreamData::Again
            };
            self.flight.push_back(Piece { packet, stream, start, end });
        }
        held
    }

    /// Records a received packet.
    pub(crate) fn receives(&mut self, frames: &Frames) {
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
        // A lost packet number is never acknowledged, but its bytes are under a later number.
        while let Some(piece) = self.flight.front()
            && piece.end <= self.streams[piece.stream].una()
        {
            self.flight.pop_front();
        }
    }

    /// Number of stored pieces.
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
    fn retransmitted_bytes_are_recorded_until_they_arrive() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.sends(&data(0, 0, 100)), StreamData::New);
        assert_eq!(ledger.sends(&data(1, 100, 200)), StreamData::New);
        assert_eq!(ledger.sends(&data(2, 200, 300)), StreamData::New);
        ledger.receives(&ack(1, 2));
        assert_eq!((ledger.sent(), ledger.acked()), (300, 0));
        assert_eq!(ledger.sends(&data(3, 0, 100)), StreamData::Again);
        assert_eq!(ledger.sends(&data(4, 250, 310)), StreamData::New);
        ledger.receives(&ack(3, 3));
        assert_eq!((ledger.sent(), ledger.acked()), (310, 300));
        assert_eq!(ledger.remembered(), 1);
        assert_eq!(ledger.sends(&ack(9, 9)), StreamData::Nothing);
    }
}
