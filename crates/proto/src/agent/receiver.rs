//! The receiver of a flow, as far as a base station sends ACKs in its name.

use crate::travel::travels;
use crate::wire::{
    Ackp, Body, Eln, Flags, FlowKey, Nack, Options, Packet, SackBlocks, Segment, Seq, Timestamps,
};

/// Relation of an ACK's window to those of other ACKs with the same number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WindowNews {
    /// Equal: the ACK is a duplicate.
    Same,
    /// A later ACK with a larger window has overtaken this one. Linux counts it as a duplicate, but it shows
    /// no loss.
    Overtaken,
    /// The window opens or closes.
    Changed,
}

/// State of a receiver, for ACKs in its name.
//= west97#4.2: the base station is no part of the connection, its packet must look like the receiver's
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receiver {
    /// Its next sequence number.
    seq: Option<Seq>,
    /// Its last window field.
    window: Option<u16>,
    /// Its last timestamps.
    timestamps: Option<Timestamps>,
    /// Its last acknowledgement, and the largest window field with that number.
    widest: Option<(Seq, u16)>,
}

impl Receiver {
    /// Records that the receiver sent `segment` with `body` bytes of payload.
    #[inline]
    pub(super) fn sent(&mut self, segment: &Segment, body: u32) {
        let next = segment.seq + segment.seq_len(body);
        // A retransmission of the receiver's data must not decrease its sequence number.
        if self.seq.is_none_or(|seq| seq.lt(next)) {
            self.seq = Some(next);
        }
        self.window = Some(segment.window);
        self.timestamps = segment.timestamps;
        let same = |(ack, _): &(Seq, u16)| *ack == segment.ack && segment.window > 0;
        let before = self.widest.filter(same).map_or(0, |(_, most)| most);
        self.widest = Some((segment.ack, segment.window.max(before)));
    }

    /// Compares the window of `segment`, which repeats the last acknowledgement.
    //= rfc9293#section-3.8.6: a receiver should not shrink its window, so the right edge does not move back
    #[inline]
    pub(super) fn compare_window(&self, segment: &Segment) -> WindowNews {
        let widest = self.widest.filter(|(ack, _)| *ack == segment.ack).map(|(_, most)| most);
        match widest.or(self.window) {
            Some(most) if most == segment.window => WindowNews::Same,
            Some(most) if widest.is_some() && (1..most).contains(&segment.window) => {
                WindowNews::Overtaken
            }
            _ => WindowNews::Changed,
        }
    }

    /// Learns the receiver's next sequence number from the sender's acknowledgement.
    #[inline]
    pub(super) fn expected(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::ACK) {
            self.seq.get_or_insert(segment.ack);
        }
    }

    /// The sender's timestamp that it echoed last.
    pub(super) fn echo(&self) -> Option<u32> {
        self.timestamps.map(|timestamps| timestamps.echo)
    }

    /// Its own last timestamp.
    pub(super) fn stamp(&self) -> Option<u32> {
        self.timestamps.map(|timestamps| timestamps.value)
    }

    /// Its last window field.
    #[inline]
    pub(super) fn window(&self) -> Option<u16> {
        self.window
    }

    /// An ACK for the data of `flow`, in the name of its receiver.
    fn ack(&self, flow: FlowKey, ack: Seq, mark: impl FnOnce(&mut Options)) -> Packet {
        let from = flow.reversed();
        let seq = self.seq.unwrap_or_default();
        let mut segment = Segment::new(from.src_port, from.dst_port, seq, ack, Flags::ACK);
        segment.window = self.window.unwrap_or_default();
        segment.timestamps = self.timestamps;
        mark(segment.options_mut());
        Packet::tcp(from.src, from.dst, segment, Body::EMPTY)
    }

    /// A partial ACK: everything below `ack` has reached the base station.
    pub(super) fn partial_ack(&self, flow: FlowKey, ack: Seq) -> Packet {
        self.ack(flow, ack, |options| options.ackp = Some(Ackp::Partial))
    }

    /// A negative ACK: the ranges of `missing` were lost on their way to the base station.
    pub(super) fn negative_ack(&self, flow: FlowKey, ack: Seq, missing: SackBlocks) -> Packet {
        self.ack(flow, ack, |options| options.nack = Some(Nack::Missing(missing)))
    }

    /// A loss notification: the segment at `lost`, the next to be acknowledged, was lost on the wireless
    /// link.
    pub(super) fn loss_notification(&self, flow: FlowKey, lost: Seq) -> Packet {
        self.ack(flow, lost, |options| options.eln = Some(Eln::Lost(lost)))
    }
}

travels!(Receiver { seq, window, timestamps });

/// Whether `packet` is a partial acknowledgement of a base station further on. It is not from the receiver,
/// so other agents ignore it.
pub(super) fn is_partial(packet: &Packet) -> bool {
    packet.segment().is_some_and(|segment| segment.options().ackp == Some(Ackp::Partial))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Addr;

    #[test]
    fn a_partial_ack_copies_the_receivers_last_header() {
        let (fixed, mobile) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1));
        let flow = FlowKey { src: fixed, dst: mobile, src_port: 5001, dst_port: 9 };
        let mut receiver = Receiver::default();
        let mut last = Segment::new(9, 5001, Seq(700), Seq(1), Flags::ACK);
        last.window = 17_520;
        last.timestamps = Some(Timestamps { value: 3, echo: 4 });
        receiver.sent(&last, 20);
        let packet = receiver.partial_ack(flow, Seq(2921));
        let segment = packet.segment().unwrap();
        assert_eq!(packet.flow(), Some(flow.reversed()));
        assert_eq!((segment.seq, segment.ack, segment.window), (Seq(720), Seq(2921), 17_520));
        assert_eq!((segment.flags, segment.timestamps), (Flags::ACK, last.timestamps));
        assert_eq!(segment.options().ackp, Some(Ackp::Partial));
        assert!(packet.body.is_empty());
    }
}
