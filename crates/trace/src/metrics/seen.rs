//! What flows are told.

use lasthop_proto::event::Cause;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Flags, PacketId, Segment, Seq};

use super::Marks;

/// What a flow with this number has to count, in three words. Of its packets `first` names the first byte.
#[derive(Clone, Copy, Debug)]
pub(super) enum Seen {
    /// A packet was put into the path for this reason, with so many bytes of data, or none.
    Originated { cause: Cause, flow: u32, first: Seq, len: u32, at: Time },
    /// A packet with data was carried by a link with these marks.
    Carried { marks: Marks, flow: u32, first: Seq, len: u32, at: Time },
    /// A packet with data crossed the last link unharmed.
    Crossed { flow: u32, first: Seq, len: u32, id: PacketId },
    /// Data was delivered to the application at the other end.
    Delivered { flow: u32, bytes: u32, at: Time },
    /// A packet was dropped for this reason.
    Dropped { cause: Cause, flow: u32 },
    /// A duplicate ACK came to its sender, where these were in force.
    DupAck { flow: u32, srtt: Span, rto: Span },
}

const _: () = assert!(size_of::<Seen>() == 24);

impl Seen {
    /// The number of the flow.
    #[inline]
    pub(super) fn flow(&self) -> usize {
        let (Seen::Originated { flow, .. }
        | Seen::Carried { flow, .. }
        | Seen::Crossed { flow, .. }
        | Seen::Delivered { flow, .. }
        | Seen::Dropped { flow, .. }
        | Seen::DupAck { flow, .. }) = self;
        *flow as usize
    }
}

/// The sequence number of the first byte of data that a segment holds.
#[inline]
pub(super) fn first_byte(segment: &Segment) -> Seq {
    segment.seq + u32::from(segment.flags.has(Flags::SYN))
}
