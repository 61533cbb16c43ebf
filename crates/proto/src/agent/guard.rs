//! Tests whether an agent may rely on a segment: only if the hosts would accept it.
//!
//! An agent sees every packet with the right addresses and ports, including forged ones. A host accepts a
//! segment if it begins in the receive window and acknowledges data in flight. Both bounds are known on the
//! path: each end announces them to the other (G. van Rooij, "Real Stateful TCP Packet Filtering in IP
//! Filter", 2000). A segment outside of them passes unchanged, and does not change the agent's state:
//!
//! - data or an ACK whose sequence number is outside the window of its receiver, or whose acknowledgement is
//!   outside `SND.UNA - MAX.SND.WND .. SND.NXT` of its receiver (RFC 5961 section 5.2);
//! - an RST, unless its number is exactly the expected one (RFC 5961 section 3.2);
//! - a SYN for a known connection: only a SYN-ACK in response shows that it was accepted (section 4.2);
//! - a segment with a signature (RFC 2385, RFC 5925), which must pass unchanged with any numbers.
//!
//! A connection is learned from its SYNs, or from the first segment that the agent receives. Without SYNs
//! the shift of the windows is unknown, and the bound is `UNSCALED`. If no acceptable segment arrives for
//! `SILENT`, the learned numbers are wrong or packets have bypassed the agent. Then it removes the
//! connection and learns it again.

use super::flows::Flows;
use crate::machine::Side;
use crate::units::{Span, Time};
use crate::wire::{Addr, Flags, FlowKey, Packet, Segment, Seq};

/// Assumed window of an end whose SYN did not pass, bytes: the largest send buffer that Linux gives a
/// socket by default.
const UNSCALED: u32 = 4 << 20;

/// The largest shift of a window.
//= rfc7323#section-2.3: a shift above 14 counts as 14
const SHIFT_MAX: u8 = 14;

/// Time without an acceptable segment, while others arrive, after which a connection is learned again.
const SILENT: Span = Span::secs(3);

/// Relation of a segment to its connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// A host accepts it.
    Good,
    /// Its receiver has all its data already: a retransmission, whose acknowledgement is ignored. A SYN counts as data.
    Old,
    /// It passes unchanged, and the agent ignores it.
    Doubtful,
    /// As `Doubtful`, and the agent removes the connection.
    Lost,
    /// It accepts this SYN of the other side, which replaces the known connection.
    Reopened(Packet),
}

/// State of one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct End {
    /// The sequence number of its SYN, if seen.
    pub iss: Option<Seq>,
    /// One past its highest sent sequence number.
    pub next: Option<Seq>,
    /// Acknowledgement by its peer: `SND.UNA`, and at least `RCV.NXT` of the peer.
    pub acked: Option<Seq>,
    /// Right edge of the windows that its peer has advertised.
    pub edge: Seq,
    /// Largest window that its peer has advertised, bytes.
    pub widest: u32,
    /// Shift of its own window field; `None` without a seen SYN.
    pub shift: Option<u8>,
}

impl End {
    /// Records that its peer acknowledges `ack` with a window of `window` bytes.
    fn record_ack(&mut self, ack: Seq, window: u32) {
        let edge = ack + window;
        if self.acked.is_none_or(|acked| acked.lt(ack)) {
            self.edge = if self.acked.is_some() && edge.lt(self.edge) { self.edge } else { edge };
            self.acked = Some(ack);
        } else if self.edge.lt(edge) {
            self.edge = edge;
        }
        self.widest = self.widest.max(window);
    }
}

/// A SYN without an answer.
#[derive(Clone, Debug)]
struct Opening {
    from: Side,
    packet: Packet,
}

/// State of a connection.
#[derive(Clone, Debug, Default)]
struct Track {
    /// Indexed by side.
    ends: [End; 2],
    opening: Option<Box<Opening>>,
    /// Time of the last acceptable segment.
    good: Time,
}

fn shift_of(segment: &Segment) -> Option<u8> {
    segment.options().window_scale.map(|shift| shift.min(SHIFT_MAX))
}

impl Track {
    /// Updates the state from an acceptable segment of one end.
    fn learn(&mut self, from: Side, segment: &Segment, len: u32) {
        let next = segment.seq + segment.seq_len(len);
        let own = &mut self.ends[from.index()];
        if own.next.is_none_or(|known| known.lt(next)) {
            own.next = Some(next);
        }
        let shift = own.shift;
        if segment.flags.has(Flags::ACK) {
            let window = u32::from(segment.window);
            let window = match shift {
                // The window of a SYN is never scaled.
                _ if segment.flags.has(Flags::SYN) => window,
                Some(shift) => window << shift,
                None => (window << SHIFT_MAX).min(UNSCALED).max(window),
            };
            self.ends[from.other().index()].record_ack(segment.ack, window);
        }
    }

    /// Whether the acknowledgement of a segment from one end is in the acceptable range.
    fn acknowledges(&self, from: Side, segment: &Segment) -> bool {
        let peer = &self.ends[from.other().index()];
        if !segment.flags.has(Flags::ACK) {
            return true;
        }
        // Data in the window may have been missed by an agent that joined late, or that does not see every
        // packet of the left end.
        let misses = peer.iss.is_none() || from == Side::Left;
        let edge = peer.acked.filter(|_| misses).map(|_| peer.edge);
        let near = peer.acked.is_none() && misses;
        let sent = peer.next.is_none_or(|next| {
            let ahead = segment.ack - next;
            ahead <= 0
                || edge.is_some_and(|edge| segment.ack.le(edge))
                || near && ahead <= UNSCALED as i32
        });
        //= rfc5961#section-5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT
        let oldest = peer.acked.map(|acked| Seq(acked.0.wrapping_sub(peer.widest)));
        sent && oldest.is_none_or(|oldest| oldest.le(segment.ack))
    }

    /// Whether the receiver of a segment from one end accepts it, or at least answers it because it has all
    /// its data.
    fn places(&self, from: Side, segment: &Segment, len: u32) -> bool {
        let own = &self.ends[from.index()];
        let len = segment.seq_len(len);
        let Some(acked) = own.acked else {
            let near = |next: Seq| (segment.seq - next).unsigned_abs() <= UNSCALED;
            return own.next.is_none_or(near);
        };
        // Zero-length segments and window probes may be at the edge.
        let before_edge = segment.seq.le(own.edge);
        let end = segment.seq + len;
        //= rfc9293#section-3.4: which segments are acceptable
        if len == 0 {
            before_edge && acked.le(segment.seq)
        } else {
            // Data that the receiver already has may still be a retransmission for the agent.
            let oldest = Seq(acked.0.wrapping_sub(own.widest));
            before_edge && oldest.le(end)
        }
    }

    /// Whether everything in a segment from one end was acknowledged before, so that its receiver ignores its
    /// acknowledgement.
    fn is_old(&self, from: Side, segment: &Segment, len: u32) -> bool {
        let len = segment.seq_len(len);
        let end = segment.seq + len;
        self.ends[from.index()].acked.is_some_and(|acked| end.le(acked)) && len > 0
    }

    /// Whether a SYN-ACK or a reset from one end acknowledges the unanswered SYN.
    fn answers_opening(&self, from: Side, segment: &Segment) -> bool {
        let Some(opening) = self.opening.as_ref().filter(|opening| opening.from != from) else {
            return false;
        };
        opening.packet.segment().is_some_and(|syn| {
            let sent = syn.seq + syn.seq_len(opening.packet.body.len());
            (syn.seq + 1).le(segment.ack) && segment.ack.le(sent)
        })
    }

    /// Accepts a SYN of one end: learns its numbers and its shift.
    fn begin(&mut self, from: Side, syn: &Segment, len: u32) {
        let end = &mut self.ends[from.index()];
        if end.iss.is_some_and(|iss| iss != syn.seq) {
            *end = End::default();
        }
        end.iss = Some(syn.seq);
        end.next = Some(syn.seq + syn.seq_len(len));
        end.shift = Some(shift_of(syn).unwrap_or(0));
    }

    fn judge_syn(&mut self, from: Side, packet: &Packet, segment: &Segment) -> Standing {
        let len = packet.body.len();
        let (own, peer) = (self.ends[from.index()], self.ends[from.other().index()]);
        let again = own.iss == Some(segment.seq) && self.acknowledges(from, segment);
        // An earlier SYN, if there was one, has no answer.
        let is_fresh = own.acked.is_none_or(|acked| {
            own.next.is_none() && [segment.seq, segment.seq + 1].contains(&acked)
        });
        if again && is_fresh {
            // Possibly with less data than the first time.
            return Standing::Good;
        }
        if again && segment.flags.has(Flags::ACK) {
            return if self.is_old(from, segment, len) { Standing::Old } else { Standing::Good };
        }
        if !segment.flags.has(Flags::ACK) {
            if is_fresh {
                self.begin(from, segment, len);
                return Standing::Good;
            }
            let packet = packet.clone();
            self.opening = Some(Box::new(Opening { from, packet }));
            // A repeated SYN with this number may begin another connection: a SYN-ACK with another number
            // would show it.
            return if again { Standing::Old } else { Standing::Doubtful };
        }
        let answers = peer.iss.is_none_or(|iss| (iss + 1).le(segment.ack));
        if is_fresh && answers && self.acknowledges(from, segment) {
            self.agree(from, segment, len);
            return Standing::Good;
        }
        if !self.answers_opening(from, segment) {
            return Standing::Doubtful;
        }
        let Some(opening) = self.opening.take() else { return Standing::Doubtful };
        let syn = opening.packet;
        *self = Track::default();
        if let Some(first) = syn.segment() {
            self.begin(from.other(), first, syn.body.len());
        }
        self.agree(from, segment, len);
        Standing::Reopened(syn)
    }

    /// Accepts a SYN-ACK from one end: both ends scale their windows, or none does.
    //= rfc7323#section-2.2: the option must be in both SYNs
    fn agree(&mut self, from: Side, syn_ack: &Segment, len: u32) {
        self.begin(from, syn_ack, len);
        if self.ends[from.other().index()].next.is_none() {
            // The agent has not received this SYN, so the acknowledgement may belong to another one.
            return;
        }
        if shift_of(syn_ack).is_none() {
            self.ends[from.other().index()].shift = Some(0);
        }
        self.learn(from, syn_ack, len);
    }
}

/// The check shared by all agents: one record per connection, by the flow from left to right.
#[derive(Clone, Debug)]
pub struct Guard {
    tracks: Flows<Track>,
}

impl Guard {
    /// Asserts the invariants of the tracked windows.
    pub fn check(&self) {
        self.tracks.check();
        let Some(newest) = self.tracks.newest() else { return };
        for end in &self.tracks[newest].ends {
            debug_assert!(
                end.shift.is_none_or(|shift| shift <= SHIFT_MAX),
                "shift of a window: {:?}",
                end.shift
            );
            debug_assert!(
                end.acked.is_none_or(|acked| acked.le(end.edge)),
                "the window ends before its acknowledgement"
            );
            debug_assert!(
                u64::from(end.widest) <= u64::from(u16::MAX) << SHIFT_MAX,
                "a window of {} bytes",
                end.widest
            );
        }
    }

    /// A guard for at most `flows` connections; the least recently used is evicted.
    pub fn new(flows: usize) -> Guard {
        Guard { tracks: Flows::new(flows) }
    }

    /// Both ends of a connection, given by the flow from left to right; the left end first.
    pub fn ends(&mut self, flow: FlowKey) -> Option<[End; 2]> {
        self.tracks.find(flow).map(|i| self.tracks[i].ends)
    }

    /// Removes the connections of `host`, which moves elsewhere. They are learned again after its return.
    pub(super) fn leave(&mut self, host: Addr) {
        for i in self.tracks.of_host(host) {
            self.tracks.remove(i);
        }
    }

    fn track(&mut self, now: Time, key: FlowKey) -> usize {
        if let Some(i) = self.tracks.find(key) {
            return i;
        }
        if let Some(oldest) = self.tracks.evictee() {
            self.tracks.remove(oldest);
        }
        let i = self.tracks.insert(key);
        self.tracks[i] = Track { good: now, ..Track::default() };
        i
    }

    /// Relation of an undamaged TCP packet from `from` to its connection.
    pub fn judge(&mut self, now: Time, from: Side, packet: &Packet) -> Standing {
        let (Some(segment), Some(flow)) = (packet.segment(), packet.flow()) else {
            return Standing::Doubtful;
        };
        if segment.is_signed() {
            return Standing::Doubtful;
        }
        let key = flow.rightward(from);
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            return self.judge_reset(key, from, segment);
        }
        let i = self.track(now, key);
        let track = &mut self.tracks[i];
        let len = packet.body.len();
        if flags.has(Flags::SYN) {
            let standing = track.judge_syn(from, packet, segment);
            if standing != Standing::Doubtful {
                track.good = now;
            }
            return standing;
        }
        if track.places(from, segment, len) && track.acknowledges(from, segment) {
            track.good = now;
            if track.is_old(from, segment, len) {
                return Standing::Old;
            }
            track.learn(from, segment, len);
            return Standing::Good;
        }
        if now.since(track.good) < SILENT {
            return Standing::Doubtful;
        }
        self.tracks.remove(i);
        Standing::Lost
    }

    //= rfc5961#section-3.2: only an RST with the expected number resets
    fn judge_reset(&mut self, key: FlowKey, from: Side, segment: &Segment) -> Standing {
        let Some(i) = self.tracks.find(key) else { return Standing::Good };
        let track = &self.tracks[i];
        let own = &track.ends[from.index()];
        let exact = [own.next, own.acked].contains(&Some(segment.seq));
        let acks = segment.flags.has(Flags::ACK).then_some(segment.ack);
        let refuses = own.next.is_none() && acks == track.ends[from.other().index()].next;
        let near = |next: Seq| (segment.seq - next).unsigned_abs() <= UNSCALED;
        // Without an acknowledgement, or without the first numbers, the end is not certain.
        let unsure = own.acked.is_none() || own.iss.is_none();
        let early = unsure && own.next.is_some_and(near);
        if exact || early || refuses && acks.is_some() {
            self.tracks.remove(i);
            return Standing::Good;
        }
        Standing::Doubtful
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Body;

    const FIRST: [Seq; 2] = [Seq(u32::MAX - 2000), Seq(7_000)];

    fn packet(from: Side, flags: Flags, (seq, len): (i64, u32), ack: i64) -> Packet {
        let [own, peer] = [FIRST[from.index()], FIRST[from.other().index()]];
        let at = |first: Seq, n: i64| first + n as u32;
        let mut ends = [(Addr::v4(10, 0, 0, 1), 5001), (Addr::v4(10, 1, 0, 1), 9)];
        if from == Side::Right {
            ends.reverse();
        }
        let [src, dst] = ends;
        let mut segment = Segment::new(src.1, dst.1, at(own, seq), at(peer, ack), flags);
        segment.window = 10_000;
        if flags.has(Flags::SYN) {
            segment.options_mut().window_scale = Some(2);
        }
        Packet::tcp(src.0, dst.0, segment, Body::Pattern { stream: 1, len, offset: 0 })
    }

    /// A connection after the handshake, with data from the left of which half is acknowledged.
    fn opened() -> Guard {
        let mut guard = Guard::new(4);
        for (from, flags, span, ack) in [
            (Side::Left, Flags::SYN, (0, 0), 0),
            (Side::Right, Flags::SYN | Flags::ACK, (0, 0), 1),
            (Side::Left, Flags::ACK, (1, 0), 1),
            (Side::Left, Flags::ACK, (1, 2000), 1),
            (Side::Left, Flags::ACK, (2001, 2000), 1),
            (Side::Right, Flags::ACK, (1, 0), 2001),
        ] {
            let packet = packet(from, flags, span, ack);
            assert_eq!(guard.judge(Time(1), from, &packet), Standing::Good, "{packet:?}");
        }
        guard
    }

    //= rfc5961#section-5.2: the bounds of sequence number and acknowledgement
    #[test]
    fn segments_are_judged_by_the_rfc_5961_bounds() {
        let (left, right) = (Side::Left, Side::Right);
        for (from, span, ack, standing) in [
            (right, (1, 0), 2001, Standing::Good),
            (right, (1, 0), 4001, Standing::Good),
            (right, (1, 0), 4002, Standing::Doubtful), // never sent
            (right, (1, 0), 1, Standing::Good),        // late
            (right, (1, 0), 2001 - 40_001, Standing::Doubtful),
            (right, (0, 0), 2001, Standing::Doubtful), // before the window
            (right, (40_001, 0), 2001, Standing::Good),
            (right, (40_002, 0), 2001, Standing::Doubtful),
            (right, (1 << 20, 0), 2001, Standing::Doubtful),
            (right, (1, 500), 2001, Standing::Good),
            (left, (1, 2000), 1, Standing::Old),
            (left, (1001, 2000), 1, Standing::Good), // half of it is news
            (left, (4001, 1000), 1, Standing::Good),
            (left, (42_001, 1000), 1, Standing::Good),
            (left, (42_002, 1000), 1, Standing::Doubtful),
            (left, (4001, 1000), 2_000_000, Standing::Doubtful),
            (left, (-40_000, 1000), 1, Standing::Doubtful),
        ] {
            let mut guard = opened();
            let packet = packet(from, Flags::ACK, span, ack);
            assert_eq!(guard.judge(Time(2), from, &packet), standing, "{from:?} {span:?} {ack}");
            // The rejected segments have not changed the state.
            let next = packet_next();
            assert_eq!(guard.judge(Time(3), right, &next), Standing::Good);
        }
    }

    fn packet_next() -> Packet {
        packet(Side::Right, Flags::ACK, (1, 0), 4001)
    }

    #[test]
    fn resets_need_exact_numbers_and_syns_an_answer() {
        let (left, right) = (Side::Left, Side::Right);
        for (seq, standing) in
            [(1, Standing::Good), (2, Standing::Doubtful), (9000, Standing::Doubtful)]
        {
            let reset = packet(right, Flags::RST, (seq, 0), 0);
            assert_eq!(opened().judge(Time(2), right, &reset), standing, "{seq}");
        }
        for (from, flags, ack) in [(left, Flags::SYN, 0), (right, Flags::SYN | Flags::ACK, 1)] {
            let copy = packet(from, flags, (0, 0), ack);
            assert_eq!(opened().judge(Time(2), from, &copy), Standing::Old, "{flags:?}");
        }
        let mut guard = opened();
        let syn = packet(left, Flags::SYN, (900_000, 0), 0);
        assert_eq!(guard.judge(Time(2), left, &syn), Standing::Doubtful);
        assert_eq!(guard.judge(Time(3), right, &packet_next()), Standing::Good, "as before");
        let wrong = packet(right, Flags::SYN | Flags::ACK, (5_000_000, 0), 900_002);
        assert_eq!(guard.judge(Time(4), right, &wrong), Standing::Doubtful);
        let answer = packet(right, Flags::SYN | Flags::ACK, (5_000_000, 0), 900_001);
        assert_eq!(guard.judge(Time(5), right, &answer), Standing::Reopened(syn));
        assert_eq!(guard.judge(Time(6), right, &packet_next()), Standing::Doubtful);
        let data = packet(left, Flags::ACK, (900_001, 1000), 5_000_001);
        assert_eq!(guard.judge(Time(7), left, &data), Standing::Good);
    }

    /// The agent was bypassed, or has learned forged numbers.
    #[test]
    fn tracked_numbers_expire_without_valid_segments() {
        let mut guard = opened();
        let far = |n: i64| packet(Side::Right, Flags::ACK, (1, 0), 50_000_000 + n);
        let at = |millis| Time(1) + Span::millis(millis);
        assert_eq!(guard.judge(at(100), Side::Right, &far(0)), Standing::Doubtful);
        assert_eq!(guard.judge(at(2900), Side::Right, &packet_next()), Standing::Good);
        assert_eq!(guard.judge(at(5800), Side::Right, &far(1)), Standing::Doubtful);
        assert_eq!(guard.judge(at(5900), Side::Right, &far(2)), Standing::Lost);
        assert_eq!(guard.judge(at(5901), Side::Right, &far(3)), Standing::Good);
    }

    #[test]
    fn signed_segments_are_doubtful_and_the_table_is_bounded() {
        let mut guard = opened();
        let signed = packet_next().with(|parts| {
            if let crate::wire::Transport::Tcp(segment) = &mut parts.transport {
                segment.options_mut().unknown = [&[19u8, 18][..], &[0; 16]].concat();
            }
        });
        assert_eq!(guard.judge(Time(2), Side::Right, &signed), Standing::Doubtful);
        for port in 0..100 {
            let other = packet_next().with(|parts| {
                if let crate::wire::Transport::Tcp(segment) = &mut parts.transport {
                    segment.dst_port = port;
                }
            });
            assert_eq!(guard.judge(Time(3), Side::Right, &other), Standing::Good);
            assert!(guard.tracks.len() <= 4);
        }
    }
}
