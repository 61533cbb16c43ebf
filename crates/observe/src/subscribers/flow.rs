//! State of one connection.

use lasthop_proto::units::Time;
use lasthop_proto::wire::{Flags, Packet, Segment, Seq};

use super::account::Account;
use super::crossed::{Acked, Crossed, Room};
use super::timer::{AckTimer, EchoTimer};

/// A segment that crosses one end of the station.
#[derive(Clone, Copy)]
pub(super) struct Crossing<'a> {
    pub now: Time,
    pub packet: &'a Packet,
    pub segment: &'a Segment,
    /// Whether its receiver has all its data, and ignores its acknowledgement.
    pub old: bool,
    /// Whether the station sees each packet of this direction.
    pub complete: bool,
}

impl Crossing<'_> {
    fn len(&self) -> u32 {
        self.packet.body.len()
    }

    fn ack(&self) -> Option<Seq> {
        //= rfc9293#section-3.1: the acknowledgment number means nothing unless ACK is set
        (self.segment.flags.has(Flags::ACK) && !self.old).then_some(self.segment.ack)
    }
}

/// A connection between a server on the left and a subscriber on the right.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// Data of the server at the left end of the station, and at its right end.
    arrived: Crossed,
    sent: Crossed,
    /// Data of the subscriber at the right end.
    uploaded: Crossed,
    down: Acked,
    up: Acked,
    /// At the right end: from data of the server to the subscriber's ACK.
    radio: AckTimer,
    /// At the left end: from data of the subscriber to the server's ACK, and from a timestamp to its echo.
    server: AckTimer,
    echo: EchoTimer,
}

impl Flow {
    /// Returns the memory of its gaps.
    pub(super) fn clear(&mut self, room: &mut Room) {
        [&mut self.arrived, &mut self.sent, &mut self.uploaded]
            .into_iter()
            .for_each(|crossed| crossed.clear(room));
    }

    /// A segment of the server enters at the left.
    pub(super) fn enters_left(
        &mut self,
        crossing: Crossing<'_>,
        account: &mut Account,
        room: &mut Room,
    ) {
        let Crossing { now, packet, segment, .. } = crossing;
        let len = crossing.len();
        begin(&mut self.arrived, &mut self.down, segment, len);
        if len > 0 {
            let split = self.arrived.add(first(segment), len, room);
            let packets = u64::from(packet.pieces());
            account.count(|counts| {
                counts.transfers.arrived += u64::from(len);
                counts.transfers.missing_before += u64::from(split.missing);
                counts.transfers.server_bytes += u64::from(split.again);
                counts.transfers.server_packets += if split.again > 0 { packets } else { 0 };
            });
        }
        let acked = crossing.ack();
        if let Some(ack) = acked {
            let bytes = u64::from(self.up.advance(ack));
            self.uploaded.release(ack, room);
            account.count(|counts| counts.transfers.delivered_up += bytes);
        }
        let trip = acked.and_then(|ack| self.server.acked(now, ack));
        let echoed = segment.timestamps.filter(|_| acked.is_some() && len > 0);
        let echoed = echoed.and_then(|stamps| self.echo.echoed(now, stamps));
        trip.into_iter().chain(echoed).for_each(|trip| account.server.add(trip));
    }

    /// A segment leaves at the right. `local` is whether the station itself has made it.
    pub(super) fn leaves_right(
        &mut self,
        crossing: Crossing<'_>,
        local: bool,
        account: &mut Account,
        room: &mut Room,
    ) {
        let Crossing { now, packet, segment, .. } = crossing;
        let len = crossing.len();
        let end = first(segment) + len;
        // Only numbers that the server has used: others were not accepted at the left.
        if !self.arrived.next().is_some_and(|next| end.le(next)) {
            return;
        }
        self.radio.sent(now, segment.seq, segment.seq_len(len));
        if len > 0 {
            let split = self.sent.add(first(segment), len, room);
            let (bytes, again) = (u64::from(len), u64::from(split.again));
            let packets = if again > 0 && local { u64::from(packet.pieces()) } else { 0 };
            account.count(|counts| {
                counts.transfers.sent += bytes;
                counts.transfers.sent_again += again;
                counts.transfers.local_bytes += if local { again } else { 0 };
                counts.transfers.local_packets += packets;
            });
        }
    }

    /// A segment of the subscriber enters at the right.
    pub(super) fn enters_right(
        &mut self,
        crossing: Crossing<'_>,
        account: &mut Account,
        room: &mut Room,
    ) {
        let Crossing { now, packet, segment, .. } = crossing;
        let len = crossing.len();
        begin(&mut self.uploaded, &mut self.up, segment, len);
        if len > 0 && crossing.complete {
            let split = self.uploaded.add(first(segment), len, room);
            let packets = u64::from(packet.pieces());
            account.count(|counts| {
                counts.upload.arrived += u64::from(split.new + split.missing);
                counts.upload.missing += u64::from(split.missing);
                counts.upload.client_bytes += u64::from(split.again);
                counts.upload.client_packets += if split.again > 0 { packets } else { 0 };
            });
        }
        let Some(ack) = crossing.ack() else { return };
        let bytes = u64::from(self.down.advance(ack));
        self.arrived.release(ack, room);
        self.sent.release(ack, room);
        account.count(|counts| counts.transfers.delivered_down += bytes);
        self.radio.acked(now, ack).into_iter().for_each(|trip| account.radio.add(trip));
    }

    /// A segment leaves at the left.
    pub(super) fn leaves_left(&mut self, crossing: Crossing<'_>) {
        let Crossing { now, segment, .. } = crossing;
        let len = crossing.len();
        // Where not each packet is seen, a retransmission may pass unseen. A SYN is seen always.
        if crossing.complete || segment.flags.has(Flags::SYN) {
            self.server.sent(now, segment.seq, segment.seq_len(len));
        }
        if let (Some(stamps), Some(ack)) = (segment.timestamps, crossing.ack()) {
            // With data in flight the server answers an ACK at once by more data. Without, it may have none.
            let in_flight = self.arrived.next().is_some_and(|next| ack.lt(next));
            self.echo.sent(now, stamps, in_flight && len == 0);
        }
    }
}

/// First number of the payload.
fn first(segment: &Segment) -> Seq {
    segment.seq + u32::from(segment.flags.has(Flags::SYN))
}

/// Notes the first and the last number of a sender.
fn begin(crossed: &mut Crossed, acked: &mut Acked, segment: &Segment, len: u32) {
    if segment.flags.has(Flags::SYN) && acked.acked().is_none() {
        crossed.begin(segment.seq + 1);
        acked.begin(segment.seq + 1);
    }
    if segment.flags.has(Flags::FIN) {
        acked.end(first(segment) + len);
    }
}
