//! Wireshark's sequence analysis, by its definitions.
//!
//! The rules, their order and their constants are those of Wireshark 4.0 with its default preferences, as its
//! user's guide (section 7.5, "TCP Analysis") and its dissector state them. They are separate from our own
//! analysis, so that a user who compares the two tools finds the same numbers.

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Flags, Segment, Seq};

use crate::reading::WiresharkCounts;

/// A retransmission later than this after the last duplicate ACK is not a fast one.
const FAST_WITHIN: Span = Span::millis(20);

/// Maximum age of reordering without a round-trip time of the handshake.
const REORDER_WITHOUT_RTT: Span = Span::millis(3);

/// Wireshark's findings about one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) retransmission: bool,
    pub(crate) fast: bool,
    pub(crate) spurious: bool,
    pub(crate) out_of_order: bool,
    pub(crate) lost_segment: bool,
    pub(crate) ack_lost: bool,
    pub(crate) duplicate_ack: bool,
    pub(crate) zero_window: bool,
    pub(crate) probe: bool,
    pub(crate) probe_ack: bool,
    pub(crate) keep_alive: bool,
    pub(crate) keep_alive_ack: bool,
    pub(crate) window_update: bool,
}

impl WiresharkCounts {
    pub(crate) fn add(&mut self, marks: Marks) {
        if marks == Marks::default() {
            return;
        }
        let any = marks.retransmission || marks.fast || marks.spurious;
        for (count, mark) in [
            (&mut self.retransmission, any),
            (&mut self.fast_retransmission, marks.fast),
            (&mut self.spurious_retransmission, marks.spurious),
            (&mut self.out_of_order, marks.out_of_order),
            (&mut self.lost_segment, marks.lost_segment),
            (&mut self.ack_lost_segment, marks.ack_lost),
            (&mut self.duplicate_ack, marks.duplicate_ack),
            (&mut self.zero_window, marks.zero_window),
            (&mut self.zero_window_probe, marks.probe),
            (&mut self.zero_window_probe_ack, marks.probe_ack),
            (&mut self.keep_alive, marks.keep_alive),
            (&mut self.keep_alive_ack, marks.keep_alive_ack),
            (&mut self.window_update, marks.window_update),
        ] {
            *count += u64::from(mark);
        }
    }
}

/// State of one side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    /// One past the highest sequence number.
    next: Option<(Seq, Time)>,
    /// The last ACK this side sent.
    last_ack: Option<(Seq, Time)>,
    /// The window field of its last packet. Scales do not count: that of a SYN-ACK is compared with that of the next
    /// ACK.
    window: u16,
    /// Duplicate ACKs in a row; -1 after an ACK of bytes that were not captured.
    dupacks: i64,
    /// The highest number that may be acknowledged without a gap in the capture.
    contiguous: Option<Seq>,
    last: Marks,
}

/// The analysis of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wireshark {
    flows: [Flow; 2],
    syn: Option<Time>,
    first_rtt: Option<Span>,
}

impl Wireshark {
    /// Side `side` sent `segment` with `len` bytes of payload.
    pub(crate) fn packet(&mut self, side: usize, at: Time, segment: &Segment, len: u32) -> Marks {
        let [a, b] = &mut self.flows;
        let (fwd, rev) = if side == 0 { (a, b) } else { (b, a) };
        // A retransmitted SYN resets it to the position without a gap.
        if segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) {
            fwd.next = fwd.next.map(|(next, at)| (fwd.contiguous.unwrap_or(next), at));
        }
        let control = Flags::SYN | Flags::FIN | Flags::RST;
        let plain = !segment.flags.any(control);
        let mut marks = Marks::default();
        forward(&mut marks, fwd, rev, segment, len, plain);
        let ack = segment.ack;
        if fwd.last_ack.is_none_or(|(last, _)| last != ack) {
            fwd.dupacks = 0;
        }
        if segment.flags.has(Flags::ACK) {
            acked_unseen(&mut marks, rev, ack);
        }
        let counts = segment.flags.any(Flags::SYN | Flags::FIN);
        if (len > 0 || counts) && !marks.keep_alive {
            self.resent(side, &mut marks, at, segment, len);
        }
        self.remember(side, marks, at, segment, len);
        // The ACK that ends the handshake is itself judged without its round trip.
        self.handshake(at, segment);
        marks
    }

    fn handshake(&mut self, at: Time, segment: &Segment) {
        match (segment.flags.has(Flags::SYN), segment.flags.has(Flags::ACK)) {
            (true, false) => self.syn = Some(at),
            (false, true) if self.first_rtt.is_none() => {
                self.first_rtt = self.syn.map(|syn| at.since(syn)).filter(|rtt| *rtt > Span::ZERO);
            }
            _ => {}
        }
    }

    /// Out of order, or a retransmission of some kind?
    fn resent(&self, side: usize, marks: &mut Marks, at: Time, segment: &Segment, len: u32) {
        let (fwd, rev) = (&self.flows[side], &self.flows[1 - side]);
        let end = segment.seq + len;
        let counted = end + u32::from(segment.flags.any(Flags::SYN | Flags::FIN));
        // An ACK number of zero, as in a reset without ACK, is none to it.
        if len > 0 && rev.last_ack.is_some_and(|(ack, _)| ack != Seq(0) && end.le(ack)) {
            marks.spurious = true;
            return;
        }
        let Some((next, next_at)) = fwd.next else { return };
        let behind = segment.seq.lt(next);
        // One byte of overlap with new data behind it: the byte was a window probe.
        if !behind || len > 1 && next + u32::MAX == segment.seq {
            return;
        }
        let recently_acked = rev
            .last_ack
            .is_some_and(|(ack, acked)| ack == segment.seq && passed(acked, at) < FAST_WITHIN);
        let reorder = self.first_rtt.unwrap_or(REORDER_WITHOUT_RTT);
        // Its count is unsigned: -1 is many.
        if !(0..2).contains(&rev.dupacks) && recently_acked {
            marks.fast = true;
        } else if passed(next_at, at) < reorder && next != counted {
            marks.out_of_order = true;
        } else {
            marks.retransmission = true;
        }
    }

    fn remember(&mut self, side: usize, marks: Marks, at: Time, segment: &Segment, len: u32) {
        let fwd = &mut self.flows[side];
        let counted = u32::from(segment.flags.any(Flags::SYN | Flags::FIN));
        let end = segment.seq + len + counted;
        if !marks.probe {
            if fwd.next.is_none_or(|(next, _)| next.lt(end)) {
                // Zero is no number to it.
                fwd.next = (end != Seq(0)).then_some((end, at));
            }
            if fwd.contiguous.is_none_or(|contiguous| contiguous == segment.seq) {
                fwd.contiguous = fwd.next.map(|(next, _)| next);
            }
        }
        fwd.window = segment.window;
        fwd.last_ack = Some((segment.ack, at));
        fwd.last = marks;
    }
}

/// Time as its unsigned difference counts it: backwards is long.
fn passed(from: Time, at: Time) -> Span {
    if at < from { Span(u64::MAX) } else { at.since(from) }
}

/// The marks that depend on windows, ACKs and the next sequence number.
fn forward(
    marks: &mut Marks,
    fwd: &mut Flow,
    rev: &Flow,
    segment: &Segment,
    len: u32,
    plain: bool,
) {
    let window = segment.window;
    let next = fwd.next.map(|(next, _)| next);
    let expected = next == Some(segment.seq);
    if len == 1 && expected && rev.window == 0 && rev.last_ack.is_some() {
        marks.probe = true;
        return;
    }
    marks.zero_window = window == 0 && plain;
    marks.lost_segment =
        next.is_some_and(|next| next.lt(segment.seq)) && !segment.flags.has(Flags::RST);
    marks.keep_alive = len <= 1 && plain && next == Some(segment.seq + 1);
    let same_ack = fwd.last_ack.is_some_and(|(ack, _)| ack == segment.ack);
    if len > 0 || !plain || !expected || !same_ack {
        return;
    }
    marks.window_update = window != 0 && window != fwd.window;
    if window != fwd.window {
        return;
    }
    if window == 0 {
        marks.probe_ack = rev.last.probe;
    } else if rev.last.keep_alive {
        marks.keep_alive_ack = true;
    } else {
        fwd.dupacks = if fwd.dupacks < 0 { 1 } else { fwd.dupacks + 1 };
        marks.duplicate_ack = true;
    }
}

/// Marks an ACK of bytes that are not in the capture: one ACK for each gap. Of the ACKs beyond the captured data, only
/// the first one is marked, until this side acknowledges new data.
fn acked_unseen(marks: &mut Marks, rev: &mut Flow, ack: Seq) {
    let Some((contiguous, (next, _))) = rev.contiguous.zip(rev.next) else { return };
    if !contiguous.lt(ack) {
        return;
    }
    if contiguous.lt(next) {
        rev.contiguous = Some(next);
        marks.ack_lost = true;
    } else {
        marks.ack_lost = rev.dupacks == 0;
        rev.dupacks = -1;
    }
}
