//! A middlebox that answers in place of an end: its packets have another hop limit than those of the end.

use lasthop_proto::wire::{Flags, Segment};

use super::{Confidence, Diagnosis, Finding};

/// Minimum number of packets of a kind; fewer may be a single error.
const FEWEST: u64 = 3;

const REMEDY: &str = "a PEP, proxy or firewall ends the connection: capture on both sides of it, and take round trips and \
    windows on each side for those of that side";

/// Hops left in packets of one kind, if they are the same in all.
#[derive(Clone, Copy, Debug, Default)]
struct Hops {
    packets: u64,
    ttl: Option<u8>,
    vary: bool,
}

impl Hops {
    fn add(&mut self, ttl: u8) {
        self.packets += 1;
        self.vary |= self.ttl.is_some_and(|known| known != ttl);
        self.ttl = Some(ttl);
    }

    fn steady(&self) -> Option<u8> {
        self.ttl.filter(|_| !self.vary && self.packets >= FEWEST)
    }
}

/// Hop limits in the packets of one side, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    data: Hops,
    acks: Hops,
    resets: Hops,
}

impl Answers {
    pub(super) fn packet(&mut self, segment: &Segment, len: u32, ttl: u8) {
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            self.resets.add(ttl);
        } else if len > 0 {
            self.data.add(ttl);
        } else if !flags.any(Flags::SYN | Flags::FIN) {
            self.acks.add(ttl);
        }
    }

    /// Another host sends the ACKs, or the reset, if their hop limit is constant and differs from that of the data.
    pub(super) fn diagnose(&self) -> Option<Diagnosis> {
        let data = self.data.steady()?;
        if let Some(acks) = self.acks.steady().filter(|acks| *acks != data) {
            return Some(found(data, acks, self.acks.packets, "acknowledges"));
        }
        let reset = self.resets.ttl.filter(|reset| !self.resets.vary && *reset != data)?;
        // A host may send resets and data with different initial hop limits (64, 128 or 255).
        let initial = |ttl: u8| [64, 128, 255].into_iter().find(|initial| ttl <= *initial);
        (initial(reset)? == initial(data)? && self.acks.steady() == Some(data))
            .then(|| found(data, reset, self.resets.packets, "resets the connection"))
    }
}

fn found(data: u8, answers: u8, packets: u64, does: &str) -> Diagnosis {
    let evidence = format!(
        "a middlebox {does} in the place of an end: {packets} such packets have {answers} hops left, all packets with data of \
         that end {data}"
    );
    let finding = Finding::Middlebox { data_hops: data, answer_hops: answers, answers: packets };
    Diagnosis::new(finding, Confidence::Likely, evidence, REMEDY)
}
