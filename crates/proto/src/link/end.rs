//! The interface of a link layer's end: one at each station of a radio hop, or at each end of a tunnel.
//!
//! An end is located between the network layer above it and medium access below. Packets wait in a queue
//! above until the end takes them. At most one frame is at medium access at a time. When medium access is
//! idle, it polls the end for the next frame. The end may return none, if it has nothing to send or must
//! wait.

use super::frame::{Frame, Load};
use crate::air::Station;
use crate::event::{Cause, LinkNote};
use crate::units::{Span, Time};
use crate::wire::Packet;

/// The layer above a link's end: the network layer with its queue of packets.
pub trait Above {
    /// Whether a load waits for `to`.
    fn waits(&self, to: Station) -> bool;

    /// Receiver of the oldest waiting load.
    fn next_destination(&self) -> Option<Station>;

    /// Whether `to` may be served now, including retransmissions: a base station may wait for a better
    /// channel.
    fn is_open(&self, to: Station) -> bool {
        let _ = to;
        true
    }

    /// Takes the oldest load for `to`.
    fn take(&mut self, to: Station) -> Option<Load>;

    /// Delivers a load from `from`. No load may be delivered twice.
    fn release(&mut self, from: Station, load: Load);

    /// Drops a received load from `from`: it came too late. A layer without counts of packets ignores it.
    fn discard(&mut self, from: Station, load: Load, cause: Cause) {
        let _ = (from, load, cause);
    }

    /// Reports that a received packet waits for an earlier one.
    fn waits_for_order(&mut self, packet: &Packet) {
        let _ = packet;
    }

    /// Gives up a load that may have been sent; its arrival is unknown here.
    fn give_up(&mut self, to: Station, load: Load, cause: Cause);

    /// Reports an imminent retransmission of the load.
    fn repeat(&mut self, to: Station, load: &Load, cause: Cause);

    /// Reports that attempt number `tries` for the load has failed; `discarded` for the last one.
    fn attempt_failed(&mut self, load: &Load, tries: u32, discarded: bool);

    /// Reports an event of the link to `peer`.
    fn note(&mut self, peer: Station, note: LinkNote);
}

/// A signal of medium access to a link's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MacSignal {
    /// TRANS (parsa98 3.2): the end's frame is about to be sent, with this airtime.
    Trans {
        /// Receiver of the frame.
        to: Station,
        /// Airtime of the frame.
        airtime: Span,
    },
    /// WAIT (parsa98 3.2): `from` will occupy the channel for longer than a short answer.
    Wait {
        /// The station that occupies the channel.
        from: Station,
        /// Additional time.
        hold: Span,
    },
    /// The transmission of the frame has ended.
    Done {
        /// Receiver of the frame.
        to: Station,
        /// Whether medium access received an acknowledgement; `None` if it uses none.
        acked: Option<bool>,
    },
}

/// One end of a link layer.
pub trait LinkEnd {
    /// Asserts the invariants of this end.
    fn check(&self) {}

    /// Handles an intact frame for this station.
    fn on_frame(&mut self, now: Time, frame: Frame, above: &mut dyn Above);

    /// Handles a signal of medium access.
    fn on_mac(&mut self, now: Time, signal: MacSignal, above: &mut dyn Above);

    /// Handles the deadline of [`LinkEnd::next_wake`]. A call without a due deadline must have no effect.
    fn on_wake(&mut self, now: Time, above: &mut dyn Above);

    /// The next deadline of this end.
    fn next_wake(&self) -> Option<Time>;

    /// Medium access is idle: the frame to send now, if there is one.
    fn next_frame(&mut self, now: Time, above: &mut dyn Above) -> Option<Frame>;

    /// Like [`LinkEnd::next_frame`], for the station that medium access is about to serve, which may take
    /// several frames together. The default is none.
    fn next_frame_to(&mut self, now: Time, to: Station, above: &mut dyn Above) -> Option<Frame> {
        let _ = (now, to, above);
        None
    }

    /// A frame in answer to the one just received, for a medium access that permits immediate answers (MAC
    /// acceleration, parsa98 3.3). The default is none, and answers wait for [`LinkEnd::next_frame`].
    fn reply(&mut self, now: Time, to: Station, above: &mut dyn Above) -> Option<Frame> {
        let _ = (now, to, above);
        None
    }

    /// Like [`LinkEnd::reply`] if medium access already holds a frame of this end that has not started. Adds
    /// the acknowledgement to `frame`. Returns whether it may be sent as the answer.
    fn amend(&mut self, now: Time, frame: &mut Frame) -> bool {
        let _ = (now, frame);
        false
    }

    /// Calls `each` with each load stored until the other end has it, in sending order, and whether it is
    /// sent more than once. The default has no stored loads.
    fn stored_loads(&self, each: &mut dyn FnMut(&Load, bool)) {
        let _ = each;
    }
}
