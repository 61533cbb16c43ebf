//! What is on the air in a radio hop: its stations, the kinds of frames, and each transmission as it is reported.

use serde::Serialize;

use crate::channel::Traffic;
use crate::units::Span;

/// A station of a radio hop. 0 is the base station, on the left; the others are mobile hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Station(pub u8);

impl Station {
    /// The base station.
    pub const BASE: Station = Station(0);
    /// Whom a broadcast is for: no station, but all of them.
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
    /// It carries a packet with data of a transfer, or a piece of one, maybe with a link ACK.
    Data,
    /// It carries a packet without data: an ACK of the transport, SYN, FIN, RST; maybe with a link ACK.
    Ack,
    /// It only acknowledges, on behalf of the link layer.
    LinkAck,
    /// Request to send, of medium access.
    Rts,
    /// Clear to send, of medium access.
    Cts,
    /// Acknowledgement of medium access.
    MacAck,
    /// What an access point says to all, in regular intervals.
    Beacon,
    /// A station that sleeps mostly asks for a frame that is kept for it.
    PsPoll,
    /// No data: a station says whether it will sleep.
    Null,
}

impl FrameKind {
    /// What a channel takes it for.
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

/// A transmission in a radio hop, told when its end has been heard everywhere: a frame of any kind, those of
/// medium access among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AirEvent {
    /// Who sent.
    pub station: Station,
    /// Whom it was for.
    pub to: Station,
    /// What it was.
    pub kind: FrameKind,
    /// Length in bytes, without coding.
    pub bytes: u32,
    /// For how long it was on the air.
    pub airtime: Span,
    /// What became of it.
    pub fate: FrameFate,
}

/// What became of a transmission.
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

impl FrameFate {
    /// The fate of a frame that only the channel may have harmed.
    pub fn of(damaged: bool) -> FrameFate {
        if damaged { FrameFate::Damaged } else { FrameFate::Received }
    }
}
