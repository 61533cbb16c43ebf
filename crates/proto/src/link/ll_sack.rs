//! LL-SACK: [`super::ll`] with selective acknowledgements (balakrishnan97 3.1.1).
//!
//! The receiver also reports the received packets behind the first gap. The sender retransmits the missing
//! ones immediately, and does not retransmit the others. The order is not preserved either.

use super::frame::LinkAck;
use super::ll::LlConfig;
use super::ll_peer::Peer;
use super::{LinkLayerConfig, Read};
use crate::describe::{Descriptor, Kind, System};
use crate::event::Cause;

pub(super) const WORD: Descriptor<Read> = Descriptor {
    word: "ll-sack",
    system: System::new(
        Kind::Link,
        "ll-sack",
        "path: link-layer = \"ll-sack\"",
        "link-layer retransmission with selective ACKs",
        "balakrishnan97 3.1.1",
    ),
    read: |k, _| LinkLayerConfig::Ll(LlConfig { selective: true, ..LlConfig::keys(k) }),
};

/// Bytes that selective acknowledgements add to a header.
pub(super) fn vector_bytes(ack: &LinkAck) -> u32 {
    u32::from(ack.vector.len().div_ceil(8))
}

/// Handles the selective part of an acknowledgement. Returns false if it is impossible.
pub(super) fn acknowledge(peer: &mut Peer, ack: &LinkAck) -> bool {
    // An overtaken acknowledgement has no new information.
    if ack.cumulative.wrapping_add(1) != peer.una {
        return true;
    }
    if usize::from(ack.vector.len()) > peer.sent.len() {
        return false;
    }
    for (i, sent) in peer.sent.iter_mut().enumerate() {
        if i < usize::from(ack.vector.len()) && ack.vector.get(i as u16) {
            sent.acked = true;
            (sent.deadline, sent.again) = (None, None);
        } else if !sent.acked
            && sent.deadline.is_some()
            && (ack.last_received.wrapping_sub(sent.transmission) as i32) > 0
        {
            // A later transmission was received. The link preserves the order, so this one is lost.
            sent.deadline = None;
            sent.again = Some(Cause::LinkNack);
        }
    }
    true
}
