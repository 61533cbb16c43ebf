//! CPU time of real TCP stacks: the cases of a measurement, its samples, and medians with intervals.
//!
//! CPU time differs between machines and over time. The cases are interleaved, so that a disturbance affects
//! all, and each case is compared with its base within the same round.

use serde::{Deserialize, Serialize};

use crate::stats::Middle;

/// Minimum number of repetitions for a 95 % interval ([`Middle::interval`]).
pub const ENOUGH: u32 = 6;

/// Offloads of the cable between the two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// No offloads: each segment is one packet with an end-to-end checksum. A thread of the receiving host
    /// processes arrivals.
    Plain,
    /// The sender segments as late as possible (GSO), the receiver merges as early as possible (GRO), and
    /// checksums are left to the hardware. A thread of the receiving host processes arrivals.
    Offloads,
    /// As [`Wire::Plain`], but the sending thread processes arrivals, which is the kernel's default between
    /// interfaces of one machine. Only the sum of both ends is known.
    PlainTogether,
    /// Packets of up to 64 KiB cross unsegmented (TSO), as between interfaces of one machine. Only the sum is
    /// known.
    Whole,
}

impl Wire {
    /// All wires.
    pub const ALL: [Wire; 4] = [Wire::Plain, Wire::Offloads, Wire::PlainTogether, Wire::Whole];

    /// Whether the CPU time of each end is known separately.
    pub fn apart(self) -> bool {
        matches!(self, Wire::Plain | Wire::Offloads)
    }

    /// A description in words.
    pub fn name(self) -> &'static str {
        match self {
            Wire::Plain => "offloads off",
            Wire::Offloads => "offloads on",
            Wire::PlainTogether => "offloads off, not separated",
            Wire::Whole => "TSO, not separated",
        }
    }
}

/// Difference of a case to the kernel's defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The defaults: timestamps, SACK and window scaling on, delayed ACKs.
    Base,
    /// The defaults once more, to show random differences.
    Again,
    /// Timestamps off.
    NoTimestamps,
    /// SACK off.
    NoSack,
    /// Window scaling off: a flight of at most 64 KiB.
    NoScaling,
    /// Every segment is acknowledged immediately.
    QuickAcks,
}

impl Change {
    /// All changes.
    pub const ALL: [Change; 6] = [
        Change::Base,
        Change::Again,
        Change::NoTimestamps,
        Change::NoSack,
        Change::NoScaling,
        Change::QuickAcks,
    ];

    /// A description in words.
    pub fn name(self) -> &'static str {
        match self {
            Change::Base => "the kernel's defaults",
            Change::Again => "the same again",
            Change::NoTimestamps => "timestamps off",
            Change::NoSack => "SACK off",
            Change::NoScaling => "window scaling off",
            Change::QuickAcks => "quick ACKs",
        }
    }
}

/// A case of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Case {
    /// Maximum segment size in bytes; timestamps use 12 of them.
    pub mss: u16,
    /// The cable.
    pub wire: Wire,
    /// The options.
    pub change: Change,
}

/// The cases for these segment sizes: each option changed alone with and without offloads, and the defaults
/// on the cables that do not separate the ends.
pub fn cases(sizes: &[u16]) -> Vec<Case> {
    let of = |mss: u16| {
        Wire::ALL.into_iter().flat_map(move |wire| {
            let changes = if wire.apart() { &Change::ALL[..] } else { &Change::ALL[..1] };
            changes.iter().map(move |change| Case { mss, wire, change: *change })
        })
    };
    sizes.iter().copied().flat_map(of).collect()
}

/// CPU time of one end, nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Thread that writes or reads, system calls included.
    pub caller_ns: u64,
    /// Kernel thread that processes arrivals; zero without one.
    pub kernel_ns: u64,
}

impl Spent {
    /// Sum of both.
    pub fn total_ns(self) -> u64 {
        self.caller_ns + self.kernel_ns
    }
}

/// Selects the CPU time of one end or of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ends {
    /// The sender's.
    Sender,
    /// The receiver's.
    Receiver,
    /// The sum.
    Both,
}

impl Ends {
    /// All selections.
    pub const ALL: [Ends; 3] = [Ends::Sender, Ends::Receiver, Ends::Both];

    /// A description in words.
    pub fn name(self) -> &'static str {
        match self {
            Ends::Sender => "sender",
            Ends::Receiver => "receiver",
            Ends::Both => "both",
        }
    }
}

/// Result of one transfer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Index of its case in the list.
    pub case: usize,
    /// Repetition, from zero.
    pub round: u32,
    /// Transferred bytes.
    pub bytes: u64,
    /// The sender's CPU time; if the ends are not separate, that of the writing thread.
    pub sender: Spent,
    /// The receiver's CPU time.
    pub receiver: Spent,
    /// Elapsed time, nanoseconds.
    pub wall_ns: u64,
    /// Busy time of all processors meanwhile, for all processes, nanoseconds; the kernel counts it in ticks.
    pub busy_ns: u64,
    /// Softirqs for received packets meanwhile, for all networks; almost none if a thread receives.
    pub softirqs: u64,
    /// Largest payload of a segment, bytes, after options.
    pub payload: u32,
    /// Segments that the sender sent.
    pub segments: u64,
    /// ACKs that the receiver sent.
    pub acks: u64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// The receiver's window at the end, bytes.
    pub window: u32,
}

impl Sample {
    /// CPU seconds per gigabyte (10^9 bytes).
    pub fn seconds_per_gb(&self, ends: Ends) -> f64 {
        let ns = match ends {
            Ends::Sender => self.sender.total_ns(),
            Ends::Receiver => self.receiver.total_ns(),
            Ends::Both => self.sender.total_ns() + self.receiver.total_ns(),
        };
        ns as f64 / self.bytes as f64
    }
}

/// The relevant properties of the machine.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct About {
    /// Release of the kernel.
    pub kernel: String,
    /// Number of available processors.
    pub processors: usize,
    /// Processors of the sender's threads and of the receiver's.
    pub pinned: (usize, usize),
    /// Whether the kernel's threads are pinned too, which needs root; otherwise the kernel places them.
    pub kernel_threads_pinned: bool,
}

/// Result of a measurement.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measurement {
    /// The machine.
    pub about: About,
    /// Bytes per transfer.
    pub bytes: u64,
    /// The cases.
    pub cases: Vec<Case>,
    /// The samples in order of time.
    pub samples: Vec<Sample>,
}

impl Measurement {
    /// Segment sizes, in the order of the cases.
    pub fn sizes(&self) -> Vec<u16> {
        let mut sizes: Vec<u16> = self.cases.iter().map(|case| case.mss).collect();
        sizes.dedup();
        sizes
    }

    /// Rounds with a sample of every case.
    pub fn rounds(&self) -> u32 {
        let of = |i| self.samples.iter().filter(|s| s.case == i).count() as u32;
        (0..self.cases.len()).map(of).min().unwrap_or(0)
    }

    /// The samples of a case, by round.
    pub fn samples_of(&self, case: Case) -> impl Iterator<Item = &Sample> {
        let place = self.cases.iter().position(|known| *known == case);
        self.samples.iter().filter(move |sample| Some(sample.case) == place)
    }

    /// Median of a number over the samples of a case.
    pub fn middle(&self, case: Case, of: impl Fn(&Sample) -> f64) -> Option<Middle> {
        Middle::of(&self.samples_of(case).map(of).collect::<Vec<_>>())
    }

    /// CPU seconds per gigabyte.
    pub fn seconds_per_gb(&self, case: Case, ends: Ends) -> Option<Middle> {
        self.middle(case, |sample| sample.seconds_per_gb(ends))
    }

    /// Ratio of the CPU times of two cases, per round.
    pub fn ratio(&self, case: Case, base: Case, ends: Ends) -> Option<Middle> {
        let ratios: Vec<f64> = self
            .samples_of(case)
            .filter_map(|sample| {
                let other = self.samples_of(base).find(|other| other.round == sample.round)?;
                Some(sample.seconds_per_gb(ends) / other.seconds_per_gb(ends))
            })
            .collect();
        Middle::of(&ratios)
    }

    /// Ratio of a case's CPU time to that of the defaults with the same cable and segment size.
    pub fn ratio_to_base(&self, case: Case, ends: Ends) -> Option<Middle> {
        self.ratio(case, Case { change: Change::Base, ..case }, ends)
    }

    /// Share of the busy time that was attributed to one of the ends. Near 1 on an otherwise idle machine,
    /// where the measurement is complete. `None` before the first sample.
    pub fn share_of_busy(&self) -> Option<f64> {
        let sum = |of: fn(&Sample) -> u64| self.samples.iter().map(of).sum::<u64>() as f64;
        let busy = sum(|s| s.busy_ns);
        let counted = sum(|s| s.sender.total_ns() + s.receiver.total_ns());
        (busy > 0.0).then(|| counted / busy)
    }

    /// Softirqs per segment and ACK, on the cables that separate the ends or on the others. Near 0 on the
    /// former, where counted threads do all work. `None` before the first sample.
    pub fn softirqs_per_packet(&self, apart: bool) -> Option<f64> {
        let of =
            |sample: &&Sample| self.cases.get(sample.case).map(|c| c.wire.apart()) == Some(apart);
        let sum = |of_sample: fn(&Sample) -> u64| {
            self.samples.iter().filter(of).map(of_sample).sum::<u64>() as f64
        };
        let packets = sum(|s| s.segments + s.acks);
        (packets > 0.0).then(|| sum(|s| s.softirqs) / packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement() -> Measurement {
        let cases = cases(&[500, 1460]);
        let mut samples = Vec::new();
        for round in 0..ENOUGH {
            for (i, case) in cases.iter().enumerate() {
                // Every round is slower than the previous one, and timestamps cost the sender a tenth.
                let slow = 100 * u64::from(round + 1);
                let ns = if case.change == Change::NoTimestamps { 9 * slow / 10 } else { slow };
                let sender = Spent { caller_ns: ns / 2, kernel_ns: ns / 2 };
                let receiver = Spent { caller_ns: slow, kernel_ns: 0 };
                samples.push(Sample {
                    case: i,
                    round,
                    bytes: 1000,
                    sender,
                    receiver,
                    wall_ns: ns,
                    busy_ns: 4 * slow,
                    softirqs: if case.wire.apart() { 0 } else { 2 },
                    payload: 488,
                    segments: 3,
                    acks: 2,
                    retransmitted: 0,
                    window: 65_535,
                });
            }
        }
        Measurement { about: About::default(), bytes: 1000, cases, samples }
    }

    #[test]
    fn every_option_is_a_case_on_both_cables() {
        let cases = cases(&[500, 1000, 1460, 2296, 8960]);
        assert_eq!(cases.len(), 5 * (6 + 6 + 1 + 1));
        for (i, case) in cases.iter().enumerate() {
            assert!(!cases[..i].contains(case), "{case:?}");
            assert!(case.wire.apart() || case.change == Change::Base);
        }
    }

    #[test]
    fn a_case_is_compared_within_its_round() {
        let measured = measurement();
        assert_eq!((measured.rounds(), measured.sizes()), (ENOUGH, vec![500, 1460]));
        let case = Case { mss: 500, wire: Wire::Plain, change: Change::NoTimestamps };
        let base = Case { change: Change::Base, ..case };
        // The rounds differ by a factor of six, the ratios not at all.
        let seconds = measured.seconds_per_gb(base, Ends::Sender).unwrap();
        assert_eq!((seconds.median, seconds.interval), (0.35, Some((0.1, 0.6))));
        let ratio = measured.ratio_to_base(case, Ends::Sender).unwrap();
        assert!((ratio.median - 0.9).abs() < 0.001 && ratio.half() < 0.001, "{ratio:?}");
        assert_eq!(measured.ratio_to_base(case, Ends::Receiver).unwrap().median, 1.0);
        let both = measured.ratio_to_base(case, Ends::Both).unwrap();
        assert!((both.median - 0.95).abs() < 0.001, "{both:?}");
        assert_eq!(measured.ratio_to_base(Case { mss: 7, ..case }, Ends::Both), None);
        let share = measured.share_of_busy().unwrap();
        assert!((0.49..0.5).contains(&share), "{share}");
        assert_eq!(measured.softirqs_per_packet(true), Some(0.0));
        assert_eq!(measured.softirqs_per_packet(false), Some(0.4));
    }

    #[test]
    fn a_case_without_a_sample_makes_the_round_incomplete() {
        let mut measured = measurement();
        measured.samples.pop();
        assert_eq!(measured.rounds(), ENOUGH - 1);
        measured.samples.clear();
        assert_eq!((measured.rounds(), measured.share_of_busy()), (0, None));
        assert_eq!(measured.softirqs_per_packet(true), None, "nothing was measured");
    }

    #[test]
    fn each_change_has_its_words() {
        let words = Change::ALL.map(Change::name);
        assert_eq!(words[0], "the kernel's defaults");
        assert_eq!(words[1], "the same again");
        assert_eq!(words[2..5], ["timestamps off", "SACK off", "window scaling off"]);
        assert_eq!(words[5], "quick ACKs");
    }
}
