//! SACK blocks outside the sender's window: a firewall translates sequence numbers, but not those in options.

use crate::finding::{Confidence, Diagnosis, Finding};

/// Minimum number of ACKs with a block outside the window.
const FEWEST: u64 = 3;

const REMEDY: &str = "turn off the randomisation of initial sequence numbers in the firewall, or update it so that it \
    translates SACK blocks too; until then senders ignore SACK, or reset the connection";

/// SACK blocks of the peer of one side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Blocks {
    acks: u64,
    outside: u64,
}

impl Blocks {
    /// Counts a block; `first` is whether it is the first one of its ACK, `inside` whether it is inside the window.
    pub(super) fn seen(&mut self, first: bool, inside: bool) {
        if first {
            self.acks += 1;
            self.outside += u64::from(!inside);
        }
    }

    pub(super) fn diagnose(&self) -> Option<Diagnosis> {
        let Blocks { acks, outside } = *self;
        if outside < FEWEST || outside * 2 < acks {
            return None;
        }
        let evidence = format!(
            "SACK blocks are outside the window: {outside} of {acks} ACKs report bytes that were not outstanding, so \
             something on the path rewrites sequence numbers without those in SACK blocks"
        );
        let finding = Finding::SackOutsideWindow { outside, blocks: acks };
        Some(Diagnosis::new(finding, Confidence::Likely, evidence, REMEDY))
    }
}
