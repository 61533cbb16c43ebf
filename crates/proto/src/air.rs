//! The air of a radio hop: its stations, the kinds of frames, and each transmission as reported.

use serde::Serialize;

use crate::channel::Traffic;
use crate::names::named;
use crate::units::Span;

/// A station of a radio hop. 0 is the base station, on the left; the others are mobile hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Station(pub u8);

impl Station {
    /// The base station.
    pub const BASE: Station = Station(0);
    /// Receiver of a broadcast: all stations.
    pub const ALL: Station = Station(u8::MAX);

    /// The station as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The kinds of frames on the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameKind {
    /// A packet with data of a transfer, or a fragment of one, possibly with a link ACK.
    Data,
    /// A packet without data: an ACK of the transport, SYN, FIN, RST; possibly with a link ACK.
    Ack,
    /// Only an acknowledgement of the link layer.
    LinkAck,
    /// Request to send, of medium access.
    Rts,
    /// Clear to send, of medium access.
    Cts,
    /// Acknowledgement of medium access.
    MacAck,
    /// An access point's periodic broadcast.
    Beacon,
    /// Request of a power-saving station for a buffered frame.
    PsPoll,
    /// No data: a station announces whether it will sleep.
    Null,
}

named!(FrameKind: Data Ack LinkAck Rts Cts MacAck Beacon PsPoll Null);

impl FrameKind {
    /// Traffic class of the frame for a channel.
    pub fn traffic(self) -> Traffic {
        match self {
            FrameKind::Data => Traffic::Data,
            FrameKind::Ack => Traffic::Ack,
            FrameKind::LinkAck => Traffic::LinkAck,
            FrameKind::Rts | FrameKind::Cts | FrameKind::MacAck => Traffic::Control,
            FrameKind::Beacon | FrameKind::PsPoll | FrameKind::Null => Traffic::Control,
        }
    }
}

/// A transmission in a radio hop, reported when its end has been heard everywhere. It may be a frame of any
/// kind, including those of medium access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AirEvent {
    /// The sender.
    pub station: Station,
    /// The receiver.
    pub to: Station,
    /// Kind of frame.
    pub kind: FrameKind,
    /// Length in bytes, without coding.
    pub bytes: u32,
    /// Time on the air.
    pub airtime: Span,
    /// Fate of the transmission.
    pub fate: FrameFate,
}

/// Fate of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameFate {
    /// Its receiver could read it.
    Received,
    /// The channel damaged it.
    Damaged,
    /// Another transmission was on the air at its receiver.
    Collided,
    /// Its receiver's radio slept.
    Missed,
}

named!(FrameFate: Received Damaged Collided Missed);

impl FrameFate {
    /// The fate of a frame that cannot collide.
    pub fn of(damaged: bool) -> FrameFate {
        if damaged { FrameFate::Damaged } else { FrameFate::Received }
    }
}
