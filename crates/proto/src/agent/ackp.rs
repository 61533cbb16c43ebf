//! Partial acknowledgements (west97 3): the times at which the base station forges one, and its form.
//!
//! A partial ACK notifies the sender that its data has reached the base station, and that the wireless link
//! delays it. So the sender does not time out. It works on top of the cache of [`super::snoop`].

use serde::Serialize;

use super::snoop::{SnoopAgent, SnoopConfig};
use super::{AgentConfig, Ends, Idle, Read};
use crate::describe::{Descriptor, Kind, Needs, System};
use crate::tcp::config::AckpReaction;
use crate::travel::FAR;
use crate::travel::travels;
use crate::wire::{
    Ackp, Body, Eln, Flags, FlowKey, Nack, Options, Packet, SackBlocks, Segment, Seq, Timestamps,
};

/// Rule for the times at which a base station forges partial acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckpMode {
    /// The algorithm of west97 3.3: delayed-ACK timer, `lastackp`, only to senders that offered the option.
    Full,
    /// The first implementation, west97 4.2: one for every data packet.
    EveryPacket,
}

pub(super) const WORD: Descriptor<Read> = Descriptor {
    word: "snoop+ackp",
    system: System::new(
        Kind::Agent,
        "ackp",
        "path: agent = \"snoop+ackp\"; host: ackp = \"rearm\"",
        "reports to the sender which data reached the base station, so that its timer waits for the local repair",
        "west97 3",
    )
    .needs(Needs::Duplicates),
    read: |k| {
        let snoop = SnoopConfig::keys(k, SnoopConfig::west97());
        let mut mode = AckpMode::Full;
        let modes = [("full", AckpMode::Full), ("every-packet", AckpMode::EveryPacket)];
        k.word(
            "ackp-mode",
            &mut mode,
            &modes,
            "when partial acknowledgements are sent: by the rules, or for each packet",
        );
        AgentConfig::Snoop(SnoopAgent { snoop, ackp: Some(mode) })
    },
};

/// Partial acknowledgements are sent only to senders that offered the option.
pub(super) fn idle(ends: &Ends<'_>) -> Option<Idle> {
    let (name, sender) = ends.from;
    (ends.rightwards && sender.ackp == AckpReaction::Off).then(|| Idle {
        message: format!(
            "`snoop+ackp` sends no partial acknowledgements to `{name}`, which does not offer them"
        ),
        label: "the same as `snoop` for this sender",
        help: format!("write `ackp = \"rearm\"` in `[host.{name}]`"),
    })
}

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

travels!(Receiver { seq, window, timestamps, .. });

/// State of partial acknowledgement of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Partial {
    /// Whether the sender's SYN carried the option.
    //= west97#3.2: without the option on the SYN the base station sends no partial ACK
    pub(super) permitted: bool,
    /// `lastackp`: position past the last byte partially acknowledged.
    last: u64,
}

travels!(Partial { permitted, last });

impl Partial {
    /// Asserts that only data up to `top` was acknowledged.
    pub(super) fn check(&self, top: u64) {
        debug_assert!(self.last <= top, "a partial acknowledgement of unknown data");
    }

    /// Whether its position is plausible.
    pub(super) fn is_sound(&self) -> bool {
        self.last < FAR
    }

    /// Handles an expiration of the local retransmission timer, which is also the delayed-ACK timer, without
    /// an ACK of the receiver. The bytes from `acked` to `contiguous` are cached without a hole. Returns the
    /// position of a due partial ACK.
    //= west97#3.3: one is due only if the highest contiguous packet lies above lastackp, so that it is news
    pub(super) fn due(&mut self, acked: u64, contiguous: u64) -> Option<u64> {
        if !self.permitted || contiguous <= acked.max(self.last) {
            return None;
        }
        self.last = contiguous;
        Some(contiguous)
    }
}

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
    fn partial_acks_are_due_if_new_and_permitted() {
        let mut partial = Partial::default();
        assert_eq!(partial.due(10, 40), None);
        partial.permitted = true;
        assert_eq!(partial.due(10, 10), None);
        assert_eq!(partial.due(10, 40), Some(40));
        assert_eq!(partial.due(10, 40), None);
        assert_eq!(partial.due(20, 50), Some(50));
        assert_eq!(partial.due(50, 50), None);
    }

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
