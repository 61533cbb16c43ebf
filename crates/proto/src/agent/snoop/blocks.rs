//! Removal of SACK blocks for data behind a hole that is repaired locally.

use super::{DupAcks, Snoop, note};
use crate::event::AgentNote;
use crate::machine::Out;
use crate::wire::{Flags, FlowKey, Packet, SackBlocks, Transport};

impl Snoop {
    /// The ACK of flow `key` for the sender, without SACK blocks for data behind a hole that is repaired
    /// locally. DSACK blocks remain.
    pub(super) fn without_blocks(
        &mut self,
        key: FlowKey,
        mut packet: Packet,
        out: &mut Out,
    ) -> Packet {
        let hides = self.config.hide_blocks && self.config.dup_acks == DupAcks::Suppress;
        if let Transport::Tcp(segment) = &mut packet.transport
            && segment.flags.has(Flags::ACK)
            && !segment.options().sack.is_empty()
            && hides
            && self.flows.find(key).is_some_and(|i| self.flows[i].repairs(&self.config))
        {
            let mut stay = SackBlocks::default();
            for (left, right) in segment.options().sack.as_slice() {
                //= rfc2883#section-4: a first block at or below the acknowledgement number reports a duplicate
                if right.le(segment.ack) {
                    stay.push(*left, *right);
                }
            }
            if stay != segment.options().sack {
                segment.options_mut().sack = stay;
                note(out, key, AgentNote::BlocksHidden);
            }
        }
        packet
    }
}
