//! State of a station: its frames, its contention window, its phase.

use std::collections::VecDeque;

use crate::air::{FrameKind, Station};
use crate::link::frame::Frame;
use crate::units::{Span, Time};

/// A station.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub phase: Phase,
    pub job: Option<Job>,
    /// Frames to send before the link layer is polled for more.
    pub next: VecDeque<Job>,
    /// Attempts before a frame is handed back, if less than the retry limit.
    pub patience: Option<u32>,
    /// Contention window.
    pub cw: u32,
    /// Remaining backoff slots; `None` if a frame may be sent as soon as the channel has been idle for long
    /// enough.
    pub slots: Option<u32>,
    /// No slot is counted before this time.
    pub drawn: Time,
    /// Until when other stations have claimed the channel.
    pub nav: Time,
    /// The NAV before an RTS, and the time at which it is restored unless a frame is heard.
    pub reset: Option<(Time, Time)>,
    /// Whether the last frame heard was unreadable.
    pub unreadable: bool,
    /// Whether its answer acknowledges several frames.
    pub answers_block: bool,
    /// Whether the link layer was polled since its last aggregate.
    pub polled: bool,
}

/// A frame that a station sends.
#[derive(Clone, Debug)]
pub(super) enum Sending {
    /// A frame of the link layer.
    Frame(Frame),
    /// Frames for this station together.
    Aggregate(Station),
    /// A beacon of the access point.
    Beacon,
    /// Request for a frame that the access point buffers for the station.
    PsPoll,
    /// A frame without data that announces whether the station will sleep.
    Null { sleeps: bool },
}

/// A frame to be sent.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub content: Sending,
    /// Whether the access point buffers more frames for the receiver, as the frame states (More Data).
    pub more: bool,
    /// Whether it has been delivered to its receiver; a further copy is a duplicate.
    pub delivered: bool,
    pub short_tries: u32,
    pub long_tries: u32,
}

/// Phase of a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// It listens, and contends if it has a frame.
    Contend,
    /// It has sent an RTS and waits for the CTS.
    AwaitCts,
    /// It has sent a data frame and waits for the ACK.
    AwaitAck,
    /// It will send a CTS or an ACK after a SIFS: the receiver, and the time for which the frame claims the
    /// channel.
    Answer(FrameKind, Station, Span),
    /// It sends a CTS or an ACK.
    Answering,
    /// It sends a frame without acknowledgement.
    Broadcasting,
    /// It has received its CTS and will send its data frame after a SIFS.
    Cleared,
}

impl Phase {
    /// Whether the station's frame is in transmission.
    pub fn is_sent(self) -> bool {
        use Phase::*;
        matches!(self, AwaitCts | AwaitAck | Broadcasting | Cleared)
    }
}

impl Job {
    pub fn new(content: Sending) -> Job {
        Job { content, more: false, delivered: false, short_tries: 0, long_tries: 0 }
    }

    pub fn frame(&self) -> Option<&Frame> {
        if let Sending::Frame(frame) = &self.content { Some(frame) } else { None }
    }
}
