//! Snoop with selective acknowledgements: LL-STCP-AWARE of balakrishnan97 3.1.1, called LL-SMART-TCP-AWARE in
//! the paper's summary.
//!
//! The duplicate ACKs of the mobile host report the packets that it has behind a hole. The wireless link
//! preserves the order, so an unreported packet that was sent before an arrived one is lost. Every hole is
//! filled at once, and the loss of a local retransmission shows as soon as a later packet arrives.
//! Suppression of ACKs and timers are those of [`super::snoop`]. With a mobile host without reports it equals
//! snoop.

use super::snoop::cache::Entry;
use super::snoop::config::{SnoopAgent, SnoopConfig};
use super::{AgentConfig, Ends, Idle, Read};
use crate::describe::{Descriptor, Kind, Needs, System};
use crate::travel::travels;

pub(super) const WORD: Descriptor<Read> = Descriptor {
    word: "snoop-smart",
    system: System::new(
        Kind::Agent,
        "snoop-smart",
        "path: agent = \"snoop-smart\"; host: sack = true, at both ends",
        "snoop that also detects delivered packets by selective acknowledgements",
        "balakrishnan97 3.1.1",
    )
    .needs(Needs::Duplicates),
    read: |k| {
        let snoop = SnoopConfig::keys(k, SnoopConfig::linux()).selective();
        AgentConfig::Snoop(SnoopAgent { snoop, ackp: None })
    },
};

/// It needs SACK blocks.
pub(super) fn idle(ends: &Ends<'_>) -> Option<Idle> {
    let ((from, sender), (to, receiver)) = (ends.from, ends.to);
    (ends.rightwards && !(sender.sack && receiver.sack)).then(|| Idle {
        message: format!("`snoop-smart` gains nothing from `{to}`, which sends no SACK blocks"),
        label: "the same as `snoop` for this host",
        help: format!(
            "write `sack = true` in `[host.{from}]` and `[host.{to}]`; the sender may ignore the blocks"
        ),
    })
}

/// State of the wireless link from the reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reports {
    /// The latest of the flow's transmissions that is known to have arrived.
    arrived: u64,
}

travels!(Reports { arrived });

impl Reports {
    /// Records the receiver's report of the bytes from `start` to `end`.
    pub(super) fn learn<'e>(
        &mut self,
        entries: impl Iterator<Item = &'e mut Entry>,
        start: u64,
        end: u64,
    ) {
        for entry in entries.filter(|e| !e.reported && start <= e.start && e.end <= end) {
            entry.reported = true;
            // For a retransmitted packet it is unknown which transmission arrived.
            if entry.attempts == 0 && !entry.by_sender {
                self.arrived = self.arrived.max(entry.sent_as);
            }
        }
    }

    /// Whether the last transmission of `entry` is lost: a later one has arrived.
    pub(super) fn is_lost(&self, entry: &Entry) -> bool {
        !entry.reported && entry.sent_as < self.arrived
    }
}
