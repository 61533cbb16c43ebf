//! Partial acknowledgements (west97 3): the times at which the base station forges one.
//!
//! A partial ACK notifies the sender that its data has reached the base station, and that the wireless link
//! delays it. So the sender does not time out. It works on top of the cache of [`super::snoop`].

use super::snoop::config::{AckpMode, SnoopAgent, SnoopConfig};
use super::{AgentConfig, Ends, Idle, Read};
use crate::describe::{Descriptor, Kind, Needs, System};
use crate::tcp::config::AckpReaction;
use crate::travel::travels;

pub(super) const WORD: Descriptor<Read> = Descriptor {
    word: "snoop+ackp",
    system: System::new(
        Kind::Agent,
        "ackp",
        "path: agent = \"snoop+ackp\"; host: ackp = \"rearm\"",
        "reports to the sender which data reached the base station, so that its timer waits for the local repair",
        "west97 3",
    )
    .needs(Needs::Duplicates),
    read: |k| {
        let snoop = SnoopConfig::keys(k, SnoopConfig::west97());
        let mut mode = AckpMode::Full;
        let modes = [("full", AckpMode::Full), ("every-packet", AckpMode::EveryPacket)];
        k.word(
            "ackp-mode",
            &mut mode,
            &modes,
            "when partial acknowledgements are sent: by the rules, or for each packet",
        );
        AgentConfig::Snoop(SnoopAgent { snoop, ackp: Some(mode) })
    },
};

/// Partial acknowledgements are sent only to senders that offered the option.
pub(super) fn idle(ends: &Ends<'_>) -> Option<Idle> {
    let (name, sender) = ends.from;
    (ends.rightwards && sender.ackp == AckpReaction::Off).then(|| Idle {
        message: format!(
            "`snoop+ackp` sends no partial acknowledgements to `{name}`, which does not offer them"
        ),
        label: "the same as `snoop` for this sender",
        help: format!("write `ackp = \"rearm\"` in `[host.{name}]`"),
    })
}

/// State of partial acknowledgement of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Partial {
    /// Whether the sender's SYN carried the option.
    //= west97#3.2: without the option on the SYN the base station sends no partial ACK
    pub(super) permitted: bool,
    /// `lastackp`: position past the last byte partially acknowledged.
    last: u64,
}

travels!(Partial { permitted, last });

impl Partial {
    /// Asserts that only data up to `top` was acknowledged.
    pub(super) fn check(&self, top: u64) {
        debug_assert!(self.last <= top, "a partial acknowledgement of unknown data");
    }

    /// Handles an expiration of the local retransmission timer, which is also the delayed-ACK timer, without
    /// an ACK of the receiver. The bytes from `acked` to `contiguous` are cached without a hole. Returns the
    /// position of a due partial ACK.
    //= west97#3.3: one is due only if the highest contiguous packet lies above lastackp, so that it is news
    pub(super) fn due(&mut self, acked: u64, contiguous: u64) -> Option<u64> {
        if !self.permitted || contiguous <= acked.max(self.last) {
            return None;
        }
        self.last = contiguous;
        Some(contiguous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_acks_are_due_if_new_and_permitted() {
        let mut partial = Partial::default();
        assert_eq!(partial.due(10, 40), None);
        partial.permitted = true;
        assert_eq!(partial.due(10, 10), None);
        assert_eq!(partial.due(10, 40), Some(40));
        assert_eq!(partial.due(10, 40), None);
        assert_eq!(partial.due(20, 50), Some(50));
        assert_eq!(partial.due(50, 50), None);
    }
}
