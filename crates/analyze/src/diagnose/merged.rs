//! Merged packets that never arrive: a host that forwards packets merges them (GRO, LRO), and something behind it drops
//! packets larger than the MTU.

use crate::finding::{Confidence, Diagnosis, Finding};

/// Minimum number of merged packets, and of single ones that arrived.
const FEWEST: u64 = 3;

const REMEDY: &str = "turn off merging at the host that forwards them (Linux: `ethtool -K IF gro off lro off`), or let the interface behind it \
    segment packets (`ethtool -K IF tso on gso on`)";

/// Packets of several segments of one side, and their fate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Merged {
    /// The latest one without an ACK.
    pending: Option<(i64, i64)>,
    failed: u64,
    arrived: u64,
    /// Single segments of full size that arrived.
    single: Option<i64>,
    singles: u64,
}

impl Merged {
    /// Bytes `start..end` are sent; `full` is the largest payload of a packet on the wire.
    pub(super) fn sent(&mut self, start: i64, end: i64, full: u32) {
        if end - start > i64::from(full) {
            self.pending = Some((start, end));
        } else {
            self.failed += u64::from(
                self.pending.take_if(|(from, to)| *from <= start && start < *to).is_some(),
            );
            self.single = (end - start == i64::from(full)).then_some(end);
        }
    }

    /// The peer has received all bytes before `ack`.
    pub(super) fn acked(&mut self, ack: i64) {
        self.arrived += u64::from(self.pending.take_if(|(from, _)| ack > *from).is_some());
        self.singles += u64::from(self.single.take_if(|end| ack >= *end).is_some());
    }

    pub(super) fn diagnose(&self) -> Option<Diagnosis> {
        let Merged { failed, arrived, singles, .. } = *self;
        if failed < FEWEST || arrived > 0 || singles < FEWEST {
            return None;
        }
        let evidence = format!(
            "merged packets are dropped behind the point of capture: none of {failed} packets of several segments arrived, and {singles} \
             single segments did"
        );
        let finding = Finding::MergedDropped { merged: failed, singles };
        Some(Diagnosis::new(finding, Confidence::Likely, evidence, REMEDY))
    }
}
