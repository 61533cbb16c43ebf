//! State of one flow in WTCP.

use std::collections::VecDeque;

use super::WtcpAgent;
use crate::agent::receiver::Receiver;
use crate::agent::snoop::rtt::Rtt;
use crate::units::{Span, Time};
use crate::wire::{Packet, Segment, Seq, Timestamps, Transport};

/// Position of the first sequence number at this agent, with room below for retransmissions.
pub(super) const FIRST: u64 = 1 << 32;

/// A buffered packet. Positions are 64-bit stream offsets.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) start: u64,
    /// Position past its last byte; a FIN counts one.
    pub(super) end: u64,
    pub(super) packet: Packet,
    /// Time of its arrival from the sender.
    pub(super) arrived: Time,
    /// Whether it was sent; otherwise it waits.
    pub(super) sent: bool,
    pub(super) attempts: u32,
    /// Whether the sender has retransmitted it, so that it expects duplicate ACKs.
    pub(super) by_sender: bool,
}

impl Entry {
    /// A packet with data at the positions of `span`, which arrives and is sent at `now`.
    pub(super) fn new([start, end]: [u64; 2], packet: &Packet, now: Time) -> Entry {
        let packet = packet.clone();
        Entry { start, end, packet, arrived: now, sent: true, attempts: 0, by_sender: false }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    pub(super) origin: Seq,
    /// Position past the highest byte that has passed.
    pub(super) top: u64,
    pub(super) acked: Option<u64>,
    pub(super) fin: Option<u64>,
    pub(super) receiver: Receiver,
    pub(super) buffer: VecDeque<Entry>,
    pub(super) bytes: usize,
    pub(super) rtt: Rtt,
    pub(super) timer: Option<Time>,
    /// Whether packets wait: the local timer has expired, and no ACK has arrived since.
    pub(super) restricted: bool,
    /// Position past the data sent before the last local retransmission: unacknowledged data below it is lost when that
    /// one is acknowledged.
    pub(super) recover: u64,
    /// Time of the last local retransmission.
    pub(super) repeated: Time,
    /// Duplicate ACKs caused by retransmissions of acknowledged bytes.
    pub(super) answers: u32,
    /// Latest TSval sent to the mobile host.
    pub(super) stamp: Option<u32>,
    /// Latest TSval of the sender.
    pub(super) clock: Option<u32>,
}

impl Flow {
    pub(super) fn position(&self, seq: Seq) -> Option<u64> {
        seq.unwrap_near(self.origin, self.top)
    }

    /// Whether the receiver's window is closed.
    pub(super) fn is_shut(&self) -> bool {
        self.receiver.window() == Some(0)
    }

    /// The oldest packet, if the receiver waits for it and its loss is repaired here.
    pub(super) fn own(&self, config: &WtcpAgent) -> Option<&Entry> {
        let first = self.buffer.front()?;
        let requested = self.acked.is_none_or(|acked| first.start <= acked);
        let own = first.sent && !first.by_sender && first.attempts < config.max_retransmits;
        Some(first).filter(|_| requested && own)
    }

    /// Removes the buffered packets with data below `ack`. Returns their bytes.
    pub(super) fn free(&mut self, ack: u64) -> usize {
        let before = self.bytes;
        while let Some(entry) = self.buffer.front().filter(|entry| entry.end <= ack) {
            self.bytes -= entry.packet.wire_len() as usize;
            self.buffer.pop_front();
        }
        before - self.bytes
    }

    /// Whether the timestamp of `segment` is older than the sender's latest one. The mobile host may reject such a segment.
    /// With a new timestamp it would accept it, even from an attacker, so the segment must pass unchanged. Segments
    /// whose data the mobile host has (`old`) do not set the clock.
    pub(super) fn predates(&mut self, segment: &Segment, old: bool) -> bool {
        let Some(stamps) = segment.timestamps else { return false };
        if self.clock.is_some_and(|clock| Timestamps::is_older(stamps.value, clock)) {
            return true;
        }
        if !old {
            self.clock = Some(stamps.value);
        }
        false
    }

    /// The packet with `waited` added to its timestamp.
    //= rfc7323#section-5.3: a segment whose timestamp is older than TS.Recent is not acceptable (PAWS)
    pub(super) fn stamped(&mut self, packet: Packet, waited: Span, config: &WtcpAgent) -> Packet {
        let Some(own) = packet.segment().and_then(|segment| segment.timestamps) else {
            return packet;
        };
        if !config.hide_delay {
            return packet;
        }
        let units = waited.0 / config.timestamp_unit.0.max(1);
        let value = own.value.wrapping_add(units as u32);
        let value = self.stamp.filter(|stamp| Timestamps::is_older(value, *stamp)).unwrap_or(value);
        self.stamp = Some(value);
        if value == own.value {
            return packet;
        }
        packet.with(|parts| {
            if let Transport::Tcp(segment) = &mut parts.transport
                && let Some(stamps) = &mut segment.timestamps
            {
                stamps.value = value;
            }
        })
    }
}
