//! What an acknowledgement says.

use crate::units::Time;
use crate::wire::Snack;

/// What a sender is told by an incoming segment.
#[derive(Clone, Debug)]
pub struct AckInfo<'a> {
    /// Acknowledged position.
    pub ack: u64,
    /// The peer's window in bytes.
    pub window: u32,
    /// Whether the segment carried data, SYN or FIN: then it is no duplicate ACK.
    pub carries: bool,
    /// SACK blocks as positions.
    pub sacked: &'a [(u64, u64)],
    /// When the segment that this one echoes was sent, if timestamps tell.
    pub echoed: Option<Time>,
    /// The position that was lost on the wireless link, if the segment tells.
    pub lost: Option<u64>,
    /// Whether it says that what it asks for was lost on the wireless link.
    pub marked: bool,
    /// Where the segment began that caused it, if it tells.
    pub caused: Option<u64>,
    /// What it says is missing.
    pub snack: Option<&'a Snack>,
    /// Bytes of ours that arrived with a mark of congestion (CE) and that no ACK has told of before; zero unless the
    /// peer counts marks (AccECN).
    pub ce_bytes: u32,
}

impl AckInfo<'_> {
    /// One that says nothing but what it acknowledges.
    pub fn plain(ack: u64, window: u32, carries: bool) -> AckInfo<'static> {
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
