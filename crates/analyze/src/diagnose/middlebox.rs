//! A middlebox that answers in place of an end: its packets have another hop limit than those of the end.

use lasthop_proto::wire::{Flags, Segment};

use crate::finding::{Confidence, Diagnosis, Finding};

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
    /// The lowest and the highest hop limit of all packets but resets.
    range: Option<[u8; 2]>,
    /// The next IP identification if the end counts segments, the number of packets with it or a little behind it, and those
    /// with it and with others.
    expected: Option<u16>,
    counted: u64,
    regular: [u64; 2],
    /// Resets whose hop limit no other packet has, or whose identification is far from those that the end counts.
    foreign: u64,
    foreign_hops: u8,
    /// Packets of this side after such a reset.
    after: u64,
}

/// Maximum step of a counted IP identification from packet to packet.
const STEP: u16 = 256;

/// Minimum ratio of the packets with the expected identification to the others.
const MOSTLY: u64 = 2;

impl Answers {
    /// Whether this side has sent nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.range.is_none() && self.resets.packets == 0
    }

    /// Whether the identification follows that of the latest packet.
    pub(super) fn is_next(&self, ip_id: Option<u16>) -> bool {
        ip_id.is_some() && ip_id == self.expected
    }

    /// Whether identifications before this one are not in the capture, while this side counts its segments by one.
    pub(super) fn skips(&self, ip_id: Option<u16>) -> bool {
        let step = ip_id.zip(self.expected).map(|(id, next)| id.wrapping_sub(next));
        let [regular, other] = self.regular;
        let counts = regular >= FEWEST && regular >= MOSTLY * other;
        counts && step.is_some_and(|step| (1..=STEP).contains(&step))
    }

    pub(super) fn packet(
        &mut self,
        segment: &Segment,
        len: u32,
        full: u32,
        ttl: u8,
        ip_id: Option<u16>,
    ) {
        let flags = segment.flags;
        // Many hosts send resets without an identification.
        let id = ip_id.filter(|id| *id != 0);
        let step = id.zip(self.expected).map(|(id, next)| id.wrapping_sub(next));
        if flags.has(Flags::RST) {
            let other = self.range.is_some_and(|[low, high]| ttl < low || ttl > high);
            let apart = |step: u16| step.wrapping_add(1) > STEP;
            let far = self.counted >= FEWEST && step.is_some_and(apart);
            if other || far {
                (self.foreign, self.foreign_hops) = (self.foreign + 1, ttl);
            }
            self.resets.add(ttl);
            return;
        }
        self.after += u64::from(self.foreign > 0);
        self.counted += u64::from(step.is_some_and(|step| step < STEP));
        step.iter().for_each(|step| self.regular[usize::from(*step != 0)] += 1);
        if let Some(id) = id {
            // A host may repeat a packet with its identification.
            let next = id.wrapping_add(len.div_ceil(full).max(1) as u16);
            let later = |known: &u16| (next.wrapping_sub(*known) as i16) <= 0;
            self.expected = self.expected.filter(later).or(Some(next));
        }
        let [low, high] = self.range.unwrap_or([ttl; 2]);
        self.range = Some([low.min(ttl), high.max(ttl)]);
        if len > 0 {
            self.data.add(ttl);
        } else if !flags.any(Flags::SYN | Flags::FIN) {
            self.acks.add(ttl);
        }
    }

    /// Another host sends the ACKs, or the reset, if their hop limit is constant and differs from that of the data.
    pub(super) fn diagnose(&self) -> Option<Diagnosis> {
        if let Some(injected) = self.injected() {
            return Some(injected);
        }
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

impl Answers {
    /// A reset that another host injects: the end sends further packets, which no host does after its own reset.
    //= rfc9293#section-3.10.7.1: a reset leaves no state from which a host could send
    fn injected(&self) -> Option<Diagnosis> {
        let Answers { foreign: resets, foreign_hops, after, range: Some([low, high]), .. } = *self
        else {
            return None;
        };
        if resets == 0 || after == 0 {
            return None;
        }
        let hops = if low == high { low.to_string() } else { format!("{low} to {high}") };
        let evidence = format!(
            "a reset was injected: {resets} in the name of this end, with {foreign_hops} hops left; its other packets have {hops}, and {after} \
             of them came after the reset"
        );
        let finding =
            Finding::InjectedReset { resets, reset_hops: foreign_hops, hops: [low, high], after };
        let remedy = "a firewall, proxy or censor ends the connection: find it by captures along the path (the hop limit of the reset shows its \
            distance)";
        Some(Diagnosis::new(finding, Confidence::Likely, evidence, remedy))
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
