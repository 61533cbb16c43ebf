//! Buffered events of flows.

use lasthop_proto::event::Cause;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Flags, PacketId, Segment, Seq};

use super::Marks;

/// An event of the flow with this number, in three words. `first` is the sequence number of its first byte.
#[derive(Clone, Copy, Debug)]
pub(super) enum FlowEvent {
    /// A packet with `len` bytes of data was originated for this cause.
    Originated { cause: Cause, flow: u32, first: Seq, len: u32, at: Time },
    /// A link with these marks carried a packet with data.
    Carried { marks: Marks, flow: u32, first: Seq, len: u32, at: Time },
    /// A packet with data crossed the last link undamaged.
    Crossed { flow: u32, first: Seq, len: u32, id: PacketId },
    /// Data was delivered to the application at the other end.
    Delivered { flow: u32, bytes: u32, at: Time },
    /// A packet was dropped for this cause.
    Dropped { cause: Cause, flow: u32 },
    /// A duplicate ACK reached its sender, with these values in the control block.
    DupAck { flow: u32, srtt: Span, rto: Span },
}

const _: () = assert!(size_of::<FlowEvent>() == 24);

impl FlowEvent {
    /// The number of the flow.
    #[inline]
    pub(super) fn flow(&self) -> usize {
        let (FlowEvent::Originated { flow, .. }
        | FlowEvent::Carried { flow, .. }
        | FlowEvent::Crossed { flow, .. }
        | FlowEvent::Delivered { flow, .. }
        | FlowEvent::Dropped { flow, .. }
        | FlowEvent::DupAck { flow, .. }) = self;
        *flow as usize
    }
}

/// Sequence number of the first data byte of a segment.
#[inline]
pub(super) fn first_byte(segment: &Segment) -> Seq {
    segment.seq + u32::from(segment.flags.has(Flags::SYN))
}
