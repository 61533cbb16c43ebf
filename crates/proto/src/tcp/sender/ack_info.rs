//! Contents of an ACK.

use crate::units::Time;
use crate::wire::Snack;

/// The information in an incoming segment that a sender uses.
#[derive(Clone, Debug)]
pub struct AckInfo<'a> {
    /// Acknowledged position.
    pub ack: u64,
    /// The peer's window in bytes, if the segment updates it; such a segment is no duplicate ACK.
    pub window: Option<u32>,
    /// Whether the segment carried data, SYN or FIN; such a segment is no duplicate ACK.
    pub carries: bool,
    /// SACK blocks as positions.
    pub sacked: &'a [(u64, u64)],
    /// When the segment was sent whose timestamp this one echoes.
    pub echoed: Option<Time>,
    /// Position that was lost on the wireless link (ELN, or a base station's notification).
    pub lost: Option<u64>,
    /// Whether the requested data was lost on the wireless link (ELN mark).
    pub marked: bool,
    /// First position of the segment that caused this ACK (SMART).
    pub caused: Option<u64>,
    /// Missing segments (SCPS-TP).
    pub snack: Option<&'a Snack>,
    /// Newly reported bytes of this end that arrived with a congestion mark (CE); zero without accurate ECN.
    pub ce_bytes: u32,
}

impl AckInfo<'_> {
    /// An ACK without options.
    pub fn plain(ack: u64, window: Option<u32>, carries: bool) -> AckInfo<'static> {
        AckInfo {
            ack,
            window,
            carries,
            sacked: &[],
            echoed: None,
            lost: None,
            marked: false,
            caused: None,
            snack: None,
            ce_bytes: 0,
        }
    }
}
