//! Packets that never arrive because of their size. MTU black hole: no full-size segment arrives, however often it is sent;
//! smaller ones do. Merged packets: a host that forwards packets merges them (GRO, LRO), and something behind it drops
//! packets larger than the MTU.

use std::collections::VecDeque;

use crate::finding::{Confidence, Diagnosis, Finding};

/// Maximum number of tracked segments; later ones give no evidence.
const FOLLOWED: usize = 1024;
/// Every path passes payloads of this size.
const SMALL: u32 = 256;
/// Minimum number of failed transmissions of one segment: two may be chance.
const REPEATED: u32 = 3;
/// Minimum number of failed transmissions of all segments.
const FEWEST: u64 = 4;

/// Minimum number of merged packets that do not arrive, and of single ones that do.
const MERGED: u64 = 3;

const UNMERGE: &str = "turn off merging at the host that forwards them (Linux: `ethtool -K IF gro off lro off`), or let the interface behind it \
    segment packets (`ethtool -K IF tso on gso on`)";

const REMEDY: &str = "let ICMP \"fragmentation needed\" (IPv6: \"packet too big\") through, or clamp the MSS on the \
    router to what passes (nft: `tcp option maxseg size set rt mtu`; iptables: `--clamp-mss-to-pmtu`); on a sender: \
    `net.ipv4.tcp_mtu_probing=1`";

#[derive(Clone, Copy, Debug)]
struct SentSegment {
    start: i64,
    end: i64,
    /// Payload in bytes of one packet on the wire.
    size: u32,
    /// Packets on the wire: more than one of a super-segment.
    packets: u32,
    sends: u32,
    /// Payload of the largest packet that retransmitted a part of it, if smaller than `size`.
    cut: Option<u32>,
    /// Retransmitted as a part of a larger packet.
    merged: bool,
}

impl SentSegment {
    /// Whether this super-segment was not sent again.
    fn is_merged_once(&self) -> bool {
        self.packets > 1 && self.sends == 1 && self.cut.is_none()
    }
}

/// Segments that did not arrive in their size.
#[derive(Clone, Copy, Debug, Default)]
struct Failed {
    least: Option<u32>,
    segments: u64,
    sends: u64,
    most: u32,
}

impl Failed {
    fn add(&mut self, sent: &SentSegment) {
        self.least = Some(self.least.map_or(sent.size, |least| least.min(sent.size)));
        self.segments += u64::from(sent.packets);
        // A retransmission repeats one packet of a super-segment.
        self.sends += u64::from(sent.packets - 1) + u64::from(sent.sends);
        self.most = self.most.max(sent.sends);
    }
}

/// Arrived and missing segments by their size.
#[derive(Clone, Debug, Default)]
pub(super) struct BlackHole {
    /// Unacknowledged segments in the order of their bytes.
    sent: VecDeque<SentSegment>,
    next: i64,
    /// The largest payload of a packet that arrived.
    passed: Option<u32>,
    failed: Failed,
    /// Segments that were sent once in their size, and then in smaller ones.
    once: Failed,
    /// Number of arrivals behind the oldest missing segment.
    smaller: u64,
    /// Super-segments that were sent again, whether a part of another one arrived, and single full-size segments that
    /// arrived.
    merged: u64,
    merged_arrived: bool,
    singles: u64,
    full: u32,
}

impl BlackHole {
    /// Records the transmission of bytes `start..end` in packets of at most `full` bytes. `opened` is whether the handshake shows this
    /// size; otherwise packets of a super-segment have an unknown one.
    pub(super) fn sent(&mut self, start: i64, end: i64, full: u32, opened: bool) {
        self.full = full;
        let unknown = !opened && end - start > i64::from(full);
        let size = (end - start).min(i64::from(full)) as u32;
        let mut again = false;
        // New data lies behind all segments.
        let known = if start < self.next { self.from(start)..self.sent.len() } else { 0..0 };
        for sent in self.sent.range_mut(known).take_while(|sent| sent.start < end) {
            again = true;
            if size < sent.size && !unknown {
                sent.cut = sent.cut.max(Some(size));
            } else {
                sent.merged |= unknown || size > sent.size;
                sent.sends = sent.sends.saturating_add(1);
            }
        }
        if !again && !unknown && start >= self.next && self.sent.len() < FOLLOWED {
            let packets = ((end - start) as u32).div_ceil(size.max(1)).max(1);
            self.sent.push_back(SentSegment {
                start,
                end,
                size,
                packets,
                sends: 1,
                cut: None,
                merged: false,
            });
        }
        self.next = self.next.max(end);
    }

    /// The peer acknowledges all bytes before `ack`.
    pub(super) fn acked(&mut self, ack: i64, duplicate: bool) {
        if duplicate && self.sent.front().is_some_and(|sent| sent.sends > 0) {
            self.smaller += 1;
        }
        while let Some(&sent) = self.sent.front() {
            if sent.end > ack {
                // A part of a merged packet has arrived.
                if ack - sent.start >= i64::from(sent.size) && sent.cut.is_none() {
                    self.passed = self.passed.max(Some(sent.size));
                }
                self.merged_arrived |= ack > sent.start && sent.is_merged_once();
                break;
            }
            self.sent.pop_front();
            self.arrived(&sent);
        }
    }

    /// The peer has received bytes `left..right` behind a gap.
    pub(super) fn sacked(&mut self, left: i64, right: i64) {
        let mut reached = self.sent.range(self.from(left)..).take_while(|sent| sent.start < right);
        self.merged_arrived |= reached.any(SentSegment::is_merged_once);
        let first = self.sent.partition_point(|sent| sent.start < left);
        while let Some(sent) = self.sent.get(first).copied().filter(|sent| sent.end <= right) {
            self.sent.remove(first);
            self.arrived(&sent);
            self.smaller += 1;
        }
    }

    /// Number of tracked segments without an acknowledgement.
    pub(super) fn pending(&self) -> usize {
        self.sent.len()
    }

    /// Forgets these segments, as if they had arrived.
    pub(super) fn release(&mut self) {
        self.sent = VecDeque::new();
    }

    /// The index of the first segment with bytes behind `start`.
    fn from(&self, start: i64) -> usize {
        self.sent.partition_point(|sent| sent.end <= start)
    }

    fn arrived(&mut self, sent: &SentSegment) {
        let again = sent.packets > 1 && !sent.is_merged_once();
        self.merged_arrived |= sent.is_merged_once();
        self.merged += u64::from(again);
        self.singles += match sent.cut {
            _ if again => u64::from(sent.sends - 1),
            None => u64::from(sent.packets == 1 && sent.size == self.full),
            Some(_) => 0,
        };
        match sent.cut {
            Some(cut) => {
                self.passed = self.passed.max(Some(cut));
                // Path MTU discovery divides a segment after its first transmission, when an ICMP error arrives.
                let once = sent.sends == 1;
                (if once { &mut self.once } else { &mut self.failed }).add(sent);
                self.smaller += u64::from(!once);
            }
            None if !sent.merged => self.passed = self.passed.max(Some(sent.size)),
            None => {}
        }
    }

    /// Diagnoses merged packets that never arrive.
    pub(super) fn diagnose_merged(&self) -> Option<Diagnosis> {
        let again = |sent: &&SentSegment| sent.packets > 1 && !sent.is_merged_once();
        let merged = self.merged + self.sent.iter().filter(again).count() as u64;
        let singles = self.singles;
        if merged < MERGED || self.merged_arrived || singles < MERGED {
            return None;
        }
        let evidence = format!(
            "merged packets are dropped behind the point of capture: none of {merged} packets of several segments arrived, and {singles} \
             single segments did"
        );
        let finding = Finding::MergedDropped { merged, singles };
        Some(Diagnosis::new(finding, Confidence::Likely, evidence, UNMERGE))
    }

    /// Diagnoses an MTU black hole. `full` is the largest payload of a packet, and `opened` whether the capture has the
    /// handshake, whose packets are small.
    pub(super) fn diagnose(&self, full: u32, opened: bool) -> Option<Diagnosis> {
        let mut failed = self.failed;
        let missing = || self.sent.iter().filter(|sent| !sent.merged);
        missing().filter(|sent| sent.sends > 1).for_each(|sent| failed.add(sent));
        let from = failed.least.filter(|from| *from > SMALL)?;
        let passed = self.passed.unwrap_or(0);
        if self.once.least >= Some(from) {
            failed.segments += self.once.segments;
            failed.sends += self.once.sends;
        }
        // Segments that were sent once count too: the whole flight is missing.
        missing()
            .filter(|sent| sent.sends == 1 && sent.size >= from)
            .for_each(|sent| failed.add(sent));
        if passed >= from || failed.sends < FEWEST {
            return None;
        }
        let alive = self.smaller > 0;
        // If no packet arrives any more, the path may have broken, unless several full-size segments of a flight are
        // missing.
        let all_full = failed.most >= REPEATED && failed.segments > 1 && from + 1 >= full;
        if !(alive || all_full && (opened || self.passed.is_some())) {
            return None;
        }
        let confidence = if alive { Confidence::Likely } else { Confidence::Possible };
        let finding = Finding::MtuBlackHole {
            from,
            passed: self.passed,
            segments: failed.segments,
            transmissions: failed.sends,
            smaller_arrived: self.smaller,
        };
        let smaller = match self.passed {
            Some(passed) => format!("segments of up to {passed} B did"),
            None => "only packets without data did".to_owned(),
        };
        let evidence = format!(
            "MTU black hole from segments of {from} B on: {} of them, sent {} times in all, never arrived; {smaller}",
            failed.segments, failed.sends
        );
        Some(Diagnosis::new(finding, confidence, evidence, REMEDY))
    }
}
