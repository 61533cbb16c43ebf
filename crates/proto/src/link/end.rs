//! The contract of a link layer's end: one at each station of a radio hop, or at each end of a tunnel.
//!
//! An end stands between the network layer above it and medium access below. Above, packets wait in a queue until
//! the end takes them. Below, at most one frame is with medium access at a time; when that is free, the end is asked
//! for the next frame, and may have none to give, because it has nothing to send or wants to wait.

use super::frame::{Frame, Load};
use crate::air::Station;
use crate::event::{Cause, LinkNote};
use crate::units::{Span, Time};

/// What stands above a link's end: the network layer with its queue of packets.
pub trait Above {
    /// Whether something waits for `to`.
    fn waits(&self, to: Station) -> bool;

    /// Whom the load that has waited longest is for.
    fn next_destination(&self) -> Option<Station>;

    /// Whether anything may be sent to `to` now, a repetition included: a base station may wait for a better channel.
    fn is_open(&self, to: Station) -> bool {
        let _ = to;
        true
    }

    /// Takes what has waited longest for `to`.
    fn take(&mut self, to: Station) -> Option<Load>;

    /// Hands up what came from `from`. No load may be handed up twice.
    fn release(&mut self, from: Station, load: Load);

    /// Gives a load up after it may have been sent; whether it arrived is not known here.
    fn give_up(&mut self, to: Station, load: Load, cause: Cause);

    /// The load is about to be sent once more.
    fn repeat(&mut self, to: Station, load: &Load, cause: Cause);

    /// An attempt to get the load across has failed, the `tries`-th; `discarded` says that it was the last one.
    fn attempt_failed(&mut self, load: &Load, tries: u32, discarded: bool);

    /// Something to be noted about the link to `peer`.
    fn note(&mut self, peer: Station, note: LinkNote);
}

/// What medium access tells a link's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MacSignal {
    /// TRANS (parsa98 3.2): the end's frame is about to be transmitted, and will be on the air for so long.
    Trans {
        /// Whom it is for.
        to: Station,
        /// Its time on the air.
        airtime: Span,
    },
    /// WAIT (parsa98 3.2): `from` will occupy the channel for so long beyond the time that a short answer takes.
    Wait {
        /// Who has the channel.
        from: Station,
        /// For how long.
        hold: Span,
    },
    /// The frame has left the transmitter; `acked` says what medium access knows about its arrival, if anything.
    Done {
        /// Whom it was for.
        to: Station,
        /// Whether medium access itself was told that it arrived.
        acked: Option<bool>,
    },
}

/// One end of a link layer.
pub trait LinkEnd {
    /// A frame for this station has arrived intact.
    fn on_frame(&mut self, now: Time, frame: Frame, above: &mut dyn Above);

    /// Medium access says something.
    fn on_mac(&mut self, now: Time, signal: MacSignal, above: &mut dyn Above);

    /// The time that [`LinkEnd::next_wake`] named has come. A call with nothing due must do nothing.
    fn on_wake(&mut self, now: Time, above: &mut dyn Above);

    /// When this end wants to be called next.
    fn next_wake(&self) -> Option<Time>;

    /// Medium access is free: the frame to be sent now, if any.
    fn next_frame(&mut self, now: Time, above: &mut dyn Above) -> Option<Frame>;

    /// The frame that answers the one just taken in, for a medium access that lets an answer go at once
    /// (MAC acceleration, parsa98 3.3). By default there is none, and answers wait for [`LinkEnd::next_frame`].
    fn reply(&mut self, now: Time, to: Station, above: &mut dyn Above) -> Option<Frame> {
        let _ = (now, to, above);
        None
    }

    /// The same where medium access holds a frame of this end that it has not begun to send: `frame` may go as the
    /// answer, with what has to be said to its receiver. Whether it shall.
    fn amend(&mut self, now: Time, frame: &mut Frame) -> bool {
        let _ = (now, frame);
        false
    }

    /// Hands each load that is kept until the other end has it to `tell`, in the order of sending, and whether it was or will be
    /// sent more than once. By default nothing is kept.
    fn kept(&self, tell: &mut dyn FnMut(&Load, bool)) {
        let _ = tell;
    }
}
