//! The sequence number space of a direction: where it begins, and when another one replaces it.
//!
//! A host that restarts, or a station that takes the place of another, continues between the same ports with a new
//! initial sequence number (RFC 9293, 3.5.1). Offsets continue behind those of the space before.

use lasthop_proto::wire::Seq;

use super::Tracker;

/// Maximum distance of a packet from the present numbers: the largest window of RFC 7323. Packets beyond belong to
/// another space.
const FAR: i64 = 1 << 30;

/// Maximum amount of data, in bytes, that may precede its SYN in the file: more than an initial window.
const SYN_LATE: i64 = 128 << 10;

/// Sequence numbers as offsets that do not wrap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The number whose offset would be zero.
    zero: Seq,
    /// The SYN of these numbers; `None` if it was not captured.
    syn: Option<Seq>,
}

/// Numbers of a possible new space; the next packet decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    seq: Seq,
    len: u32,
    syn: bool,
}

impl Candidate {
    /// The number that follows.
    fn next(self) -> Seq {
        self.seq + self.len + u32::from(self.syn)
    }
}

impl Tracker {
    /// One past the highest offset that was sent or acknowledged.
    pub(super) fn edge(&self) -> i64 {
        self.next.max(self.una)
    }

    pub(super) fn offset(&self, seq: Seq) -> Option<i64> {
        let near = self.edge();
        self.origin.map(|origin| near.saturating_add(i64::from(seq - (origin.zero + near as u32))))
    }

    /// Whether the peer has acknowledged all bytes before `seq`.
    pub(crate) fn is_acked(&self, seq: Seq) -> bool {
        self.offset(seq).is_some_and(|end| end <= self.una)
    }

    /// Whether the capture has the SYN of the present numbers: no data is below it.
    pub(super) fn has_syn(&self) -> bool {
        self.origin.is_some_and(|origin| origin.syn.is_some())
    }

    /// Records a packet of this side with the number `seq`, with or without a SYN. Returns whether new sequence
    /// numbers start.
    pub(crate) fn begins(&mut self, seq: Seq, syn: bool, len: u32) -> bool {
        let (Some(origin), Some(offset)) = (self.origin, self.offset(seq)) else {
            self.open(seq, syn, 0);
            return false;
        };
        if syn {
            if origin.syn == Some(seq) {
                return false;
            }
            if origin.syn.is_none() && (1..=SYN_LATE).contains(&(self.lowest - offset)) {
                if !self.carried {
                    self.open(seq, syn, 0);
                    return false;
                }
                self.origin = Some(Origin { syn: Some(seq), ..origin });
                if let Some(first) = self.first_packet {
                    self.add_below(offset + 1, first);
                }
                self.lowest = offset + 1;
                return false;
            }
            // An old duplicate looks the same (RFC 9293, 3.5); the following packets decide.
            if self.carried {
                self.candidate = Some(Candidate { seq, len, syn });
                return false;
            }
            self.restart(Candidate { seq, len: 0, syn });
            return true;
        }
        // The numbers are only those that the peer has acknowledged, maybe of another connection.
        if self.reading.packets == 0 && !self.is_near(offset) {
            self.open(seq, syn, 0);
            return true;
        }
        if let Some(candidate) = self.candidate {
            let from = |other: Seq| (seq - other).unsigned_abs();
            let present = origin.zero + self.edge() as u32;
            if from(candidate.next()) < from(present) {
                self.restart(candidate);
                return true;
            }
            self.candidate = None;
        }
        if len == 0 {
            return false;
        }
        // Data below its SYN: either the SYN was an old duplicate, or this data is. A byte at the position of the SYN
        // is a keep-alive.
        let before = origin.syn.is_some() && offset + i64::from(len) < self.lowest;
        if before && !self.carried {
            self.restart(Candidate { seq, len: 0, syn });
            return true;
        }
        if before || (offset - self.edge()).abs() > FAR {
            self.candidate = Some(Candidate { seq, len, syn });
        }
        false
    }

    /// Whether the packet last given to [`Tracker::begins`] has numbers of a possible new space.
    pub(super) fn is_stray(&self, seq: Seq) -> bool {
        self.candidate.is_some_and(|candidate| candidate.seq + u32::from(candidate.syn) == seq)
    }

    /// The peer acknowledges `ack`: the SYN that it answers begins new numbers.
    pub(super) fn confirms(&mut self, ack: Seq) {
        if let Some(candidate) = self.candidate.filter(|candidate| candidate.next() == ack) {
            self.restart(candidate);
        }
    }

    /// The SYN-ACK of the peer acknowledges `ack`: it may have declined the data of the SYN (RFC 7413, 4.2.2).
    pub(crate) fn declines(&mut self, ack: Seq) {
        let only_syn = self.reading.packets == self.reading.data_packets;
        let declines = |ack: i64| ack == self.lowest && ack < self.next;
        if only_syn && self.offset(ack).is_some_and(declines) {
            self.declined = Some(self.next);
        }
    }

    /// Number of bytes that the peer acknowledged and that the capture lacks, between the captured ones or behind them.
    pub(super) fn missed_bytes(&self) -> u64 {
        let Some(first) = self.first_offset else { return 0 };
        // If the capture begins in an open connection, bytes before the first packet do not count.
        let first = if self.has_syn() { self.lowest.min(first) } else { first };
        // A FIN or a window probe has one number.
        let beyond = (self.una - self.next - 1).max(0) as u64;
        self.gaps.acked(first, self.una) + beyond
    }

    /// Whether `ack` can refer to the present numbers: no sender is more than a window ahead.
    pub(super) fn is_plausible(&self, ack: i64) -> bool {
        self.reading.packets == 0 || ack <= self.edge().saturating_add(self.room())
    }

    fn room(&self) -> i64 {
        i64::try_from(self.room).unwrap_or(FAR).clamp(1 << 16, FAR)
    }

    fn is_near(&self, offset: i64) -> bool {
        (offset - self.edge()).abs() <= self.room()
    }

    /// Sets the numbers so that the first byte has the offset behind `at`.
    fn open(&mut self, seq: Seq, syn: bool, at: i64) {
        let first = at + 1;
        let at = if syn { at } else { first };
        self.origin =
            Some(Origin { zero: Seq(seq.0.wrapping_sub(at as u32)), syn: syn.then_some(seq) });
        (self.next, self.lowest) = (first, first);
        (self.una, self.sacked) = (at, at);
    }

    fn restart(&mut self, candidate: Candidate) {
        self.reading.restarts += u32::from(self.reading.packets > 0);
        let pending = core::mem::take(&mut self.repairs);
        pending.into_iter().for_each(|repair| self.settle(repair));
        self.outstanding.clear();
        self.gaps.clear();
        self.lost_segments.clear();
        self.arrived.clear();
        self.samples.clear();
        self.settled.clear();
        (self.candidate, self.declined) = (None, None);
        (self.episode, self.stamped) = (None, None);
        (self.first_packet, self.first_offset) = (None, None);
        // The bytes before keep their offsets.
        let at = if self.reading.unique_bytes == 0 { 0 } else { self.next };
        self.carried = false;
        self.open(candidate.seq, candidate.syn, at);
        if candidate.len > 0 {
            self.carried = true;
            self.reading.unique_bytes += u64::from(candidate.len);
            self.next += i64::from(candidate.len);
        }
    }
}
