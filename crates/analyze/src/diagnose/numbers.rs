//! Sequence numbers of one side as offsets that do not wrap.

use lasthop_proto::wire::Seq;

/// The largest window of RFC 7323.
const FAR: u64 = 1 << 30;

/// Offsets count from the first captured number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    zero: Option<Seq>,
    /// One past the highest offset that was sent.
    next: i64,
    /// The highest ACK of the peer.
    una: i64,
    /// The largest window that the peer may have announced, in bytes.
    room: u64,
}

impl Numbers {
    fn offset(&self, seq: Seq) -> Option<i64> {
        let near = self.next.max(self.una);
        self.zero.map(|zero| near.saturating_add(i64::from(seq - (zero + near as u32))))
    }

    /// One past the highest offset that was sent.
    pub(super) fn next(&self) -> i64 {
        self.next
    }

    /// Whether the peer has acknowledged all.
    pub(super) fn is_acked(&self) -> bool {
        self.una >= self.next
    }

    /// Records `len` bytes of this side at `seq`, and returns the offset of the first one.
    pub(super) fn sent(&mut self, seq: Seq, len: u32) -> i64 {
        self.zero.get_or_insert(seq);
        let start = self.offset(seq).expect("the origin is known");
        self.next = self.next.max(start.saturating_add(i64::from(len)));
        start
    }

    /// The peer may have announced a window of `room` bytes.
    pub(super) fn offered(&mut self, room: u64) {
        self.room = self.room.max(room);
    }

    fn room(&self) -> i64 {
        self.room.clamp(1 << 16, FAR) as i64
    }

    /// The offset of an ACK; `None` without data, or if the ACK is beyond all data that may be outstanding.
    pub(super) fn acked(&mut self, ack: Seq) -> Option<i64> {
        let ack = self.offset(ack)?;
        // A FIN has one number too.
        if ack > self.next.max(self.una).saturating_add(self.room()) {
            return None;
        }
        self.una = self.una.max(ack);
        Some(ack)
    }

    /// The offsets of a SACK block; `None` if it covers bytes that the sender cannot have outstanding, by a window and
    /// more.
    pub(super) fn block(&self, left: Seq, right: Seq) -> Option<(i64, i64)> {
        let (left, right) = (self.offset(left)?, self.offset(right)?);
        let window = self.room();
        let edge = self.next.max(self.una);
        // A DSACK block may be old, by a window.
        let inside = left < right
            && left >= self.una.saturating_sub(2 * window)
            && right <= edge.saturating_add(window);
        inside.then_some((left, right))
    }
}
