//! Kinds of packets apart from their payload: duplicate ACKs, closed windows, probes, keep-alives.

use lasthop_proto::wire::{Flags, Segment, Seq};

/// Sequence number, acknowledgement and window of the last packets of one side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Side {
    /// One past the highest number that it sent; SYN and FIN count.
    end: Option<Seq>,
    /// Whether it sent payload, a SYN or a FIN.
    sent: bool,
    ack: Option<Seq>,
    /// The window in its last packet with an ACK, in bytes where its scale is known.
    window: Option<u64>,
    raw: Option<u16>,
    dupacks: u32,
    probed: bool,
    kept_alive: bool,
}

/// The kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Signs {
    /// An ACK without payload and without news except in SACK blocks.
    pub(crate) duplicate: bool,
    pub(crate) zero_window: bool,
    pub(crate) probe: bool,
    pub(crate) keep_alive: bool,
}

impl Side {
    /// Duplicate ACKs in a row.
    pub(crate) fn dupacks(&self) -> u32 {
        self.dupacks
    }

    /// One past the highest number that this side sent.
    pub(crate) fn end(&self) -> Option<Seq> {
        self.end
    }

    /// Handles new sequence numbers of this side.
    pub(crate) fn restart(&mut self) {
        self.end = None;
    }

    /// This side sends `segment` with `len` bytes of payload; `window` is in bytes.
    pub(crate) fn packet(
        &mut self,
        peer: &Side,
        segment: &Segment,
        len: u32,
        window: Option<u64>,
    ) -> Signs {
        let flags = segment.flags;
        let plain = !flags.any(Flags::SYN | Flags::FIN | Flags::RST);
        // The first keep-alive of a capture does not show the byte that it repeats; the ACK of the peer does.
        if let (Some(end), Some(ack)) = (self.end, peer.ack)
            && ack == end + 1
            && !self.sent
        {
            self.end = Some(ack);
        }
        let expected = self.end == Some(segment.seq);
        // A keep-alive repeats an acknowledged byte. A byte that is still outstanding is retransmitted data.
        let acked = peer.ack.zip(self.end).is_none_or(|(ack, end)| end.le(ack));
        // Linux probes a closed window by the number before the next one, without a byte.
        let (before, closed) = (self.end == Some(segment.seq + 1), peer.raw == Some(0));
        let mut signs = Signs {
            zero_window: plain && segment.window == 0,
            probe: plain && closed && (len == 1 && expected || len == 0 && before),
            keep_alive: plain && before && (len == 0 && !closed || len == 1 && acked),
            ..Signs::default()
        };
        (self.probed, self.kept_alive) = (signs.probe, signs.keep_alive);
        self.sent |= !signs.keep_alive && (len > 0 || flags.any(Flags::SYN | Flags::FIN));
        if !signs.probe && !flags.has(Flags::RST) {
            let end = segment.seq + len + u32::from(flags.any(Flags::SYN | Flags::FIN));
            if self.end.is_none_or(|known| known.lt(end)) {
                self.end = Some(end);
            }
        }
        //= rfc9293#section-3.1: the acknowledgment number means nothing unless ACK is set
        if !flags.has(Flags::ACK) || flags.has(Flags::RST) {
            return signs;
        }
        let same_window = self.raw == Some(segment.window) && self.window == window;
        let same = self.ack == Some(segment.ack) && same_window;
        let answers = peer.probed || peer.kept_alive;
        signs.duplicate = plain && len == 0 && expected && same && segment.window > 0 && !answers;
        if self.ack != Some(segment.ack) {
            self.dupacks = 0;
        }
        self.dupacks = self.dupacks.saturating_add(u32::from(signs.duplicate));
        (self.ack, self.window, self.raw) = (Some(segment.ack), window, Some(segment.window));
        signs
    }
}
