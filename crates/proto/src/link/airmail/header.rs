//! AIRMAIL's header of a frame.

use super::levels::Strength;
use super::parity::Parity;
use crate::link::load::{LinkAck, Load};

/// AIRMAIL's header of a frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AirmailHeader {
    /// Number of the carried packet.
    pub seq: Option<u32>,
    /// Number of this transmission to its receiver; a retransmission has a new number.
    pub transmission: u32,
    /// Whether the mobile host must send its status.
    pub poll: bool,
    /// Received data of the other direction.
    pub status: Option<Status>,
    /// Set for parity of a window.
    pub parity: Option<Box<Parity>>,
    /// Strength of the frame's code.
    pub strength: Strength,
}

/// Received data, and the strength for the other end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Received packets.
    pub ack: LinkAck,
    /// Received frames of all kinds, modulo 256: the transmission numbers then give the number of lost ones.
    pub came: u8,
    /// Requested strength for the upward direction, from the base station.
    pub strength: Strength,
}

impl AirmailHeader {
    /// Length of the frame in bytes before coding; see the table of [`super`].
    pub(super) fn plain_bytes(&self, load: &Load) -> u32 {
        let status =
            self.status.as_ref().map_or(0, |s| 7 + u32::from(s.ack.vector.len()).div_ceil(8));
        let parity = self.parity.as_ref().map_or(0, |parity| 2 + parity.bytes());
        7 + status + parity + load.bytes()
    }
}
