//! CPU time of real TCP stacks: the cases of a measurement, what each repetition took, and medians with intervals.
//!
//! What is measured here is time of processors, so it differs from machine to machine and from minute to minute. The
//! cases take turns, so that what disturbs one disturbs all, and a case is compared with its base within each round.

use serde::{Deserialize, Serialize};

use crate::stats::Middle;

/// Repetitions that an interval of 95 % needs ([`Middle::interval`]).
pub const ENOUGH: u32 = 6;

/// What the cable between the two hosts does for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// Nothing: each segment is one packet with a checksum of its own from end to end. What comes in is taken in by a
    /// thread of the receiving host.
    Plain,
    /// The sender makes segments as late as it can (GSO), the receiver joins them as early as it can (GRO), checksums
    /// are left to the hardware. What comes in is taken in by a thread of the receiving host.
    Offloads,
    /// As [`Wire::Plain`], but what comes in is taken in by the thread that sent it, as the kernel does it by itself
    /// between interfaces of one machine: only the sum of both ends is known.
    PlainTogether,
    /// Packets of up to 64 KiB cross whole (TSO), as between interfaces of one machine: only the sum is known.
    Whole,
}

impl Wire {
    /// All of them.
    pub const ALL: [Wire; 4] = [Wire::Plain, Wire::Offloads, Wire::PlainTogether, Wire::Whole];

    /// Whether the CPU time of the two ends is known apart.
    pub fn apart(self) -> bool {
        matches!(self, Wire::Plain | Wire::Offloads)
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Wire::Plain => "offloads off",
            Wire::Offloads => "offloads on",
            Wire::PlainTogether => "offloads off, not separated",
            Wire::Whole => "TSO, not separated",
        }
    }
}

/// How a case differs from the kernel's defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Not at all: timestamps, SACK and window scaling on, delayed ACKs.
    Base,
    /// Not at all; once more, to see how large a difference chance makes.
    Again,
    /// Timestamps off.
    NoTimestamps,
    /// SACK off.
    NoSack,
    /// Window scaling off: at most 64 KiB are on their way.
    NoScaling,
    /// Every segment is acknowledged at once.
    QuickAcks,
}

impl Change {
    /// All of them.
    pub const ALL: [Change; 6] = [
        Change::Base,
        Change::Again,
        Change::NoTimestamps,
        Change::NoSack,
        Change::NoScaling,
        Change::QuickAcks,
    ];

    /// In words.
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

/// A case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Case {
    /// Maximum segment size in bytes, of which timestamps take 12.
    pub mss: u16,
    /// The cable.
    pub wire: Wire,
    /// The options.
    pub change: Change,
}

/// What is measured for these segment sizes: each option switched alone with and without offloads, and the defaults on
/// the cables that do not separate the ends.
pub fn cases(sizes: &[u16]) -> Vec<Case> {
    let of = |mss: u16| {
        Wire::ALL.into_iter().flat_map(move |wire| {
            let changes = if wire.apart() { &Change::ALL[..] } else { &Change::ALL[..1] };
            changes.iter().map(move |change| Case { mss, wire, change: *change })
        })
    };
    sizes.iter().copied().flat_map(of).collect()
}

/// CPU time of one end in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Of the thread that writes or reads, its system calls included.
    pub caller_ns: u64,
    /// Of the kernel's thread that takes in what arrives; zero where there is none.
    pub kernel_ns: u64,
}

impl Spent {
    /// Both together.
    pub fn total_ns(self) -> u64 {
        self.caller_ns + self.kernel_ns
    }
}

/// Which CPU time is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ends {
    /// Of the sender.
    Sender,
    /// Of the receiver.
    Receiver,
    /// Of both together.
    Both,
}

impl Ends {
    /// All of them.
    pub const ALL: [Ends; 3] = [Ends::Sender, Ends::Receiver, Ends::Both];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Ends::Sender => "sender",
            Ends::Receiver => "receiver",
            Ends::Both => "both",
        }
    }
}

/// One transfer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Which case, by its place in the list.
    pub case: usize,
    /// Which repetition, from zero.
    pub round: u32,
    /// Bytes that were written, and read at the other end.
    pub bytes: u64,
    /// The sender's CPU time; where the ends are not apart, that of the thread that writes.
    pub sender: Spent,
    /// The receiver's.
    pub receiver: Spent,
    /// Time that passed.
    pub wall_ns: u64,
    /// CPU time of all processors that was not idle meanwhile, by everybody; the kernel counts it in ticks.
    pub busy_ns: u64,
    /// Times that packets were taken in by a softirq meanwhile, whosever they were: hardly ever where a thread does it.
    pub softirqs: u64,
    /// Largest payload of a segment in bytes, after options.
    pub payload: u32,
    /// Segments that the sender sent.
    pub segments: u64,
    /// Segments that the receiver sent: ACKs.
    pub acks: u64,
    /// Segments that were sent again.
    pub retransmitted: u64,
    /// The window that the receiver offered at the end, in bytes.
    pub window: u32,
}

impl Sample {
    /// CPU seconds for a gigabyte (10^9 bytes).
    pub fn seconds_per_gb(&self, ends: Ends) -> f64 {
        let ns = match ends {
            Ends::Sender => self.sender.total_ns(),
            Ends::Receiver => self.receiver.total_ns(),
            Ends::Both => self.sender.total_ns() + self.receiver.total_ns(),
        };
        ns as f64 / self.bytes as f64
    }
}

/// The machine, as far as it bears on the figures.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct About {
    /// Release of the kernel.
    pub kernel: String,
    /// Processors that may be used.
    pub processors: usize,
    /// Processor of the sender's threads and that of the receiver's.
    pub pinned: (usize, usize),
    /// Whether the kernel's threads are pinned as well, which takes root; else the kernel places them.
    pub kernel_threads_pinned: bool,
}

/// A measurement.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measurement {
    /// The machine.
    pub about: About,
    /// Bytes of each transfer.
    pub bytes: u64,
    /// The cases.
    pub cases: Vec<Case>,
    /// What was measured, in order of time.
    pub samples: Vec<Sample>,
}

impl Measurement {
    /// Segment sizes, in the order of the cases.
    pub fn sizes(&self) -> Vec<u16> {
        let mut sizes: Vec<u16> = self.cases.iter().map(|case| case.mss).collect();
        sizes.dedup();
        sizes
    }

    /// Rounds in which every case was measured.
    pub fn rounds(&self) -> u32 {
        let of = |i| self.samples.iter().filter(|s| s.case == i).count() as u32;
        (0..self.cases.len()).map(of).min().unwrap_or(0)
    }

    /// The samples of a case, by round.
    pub fn samples_of(&self, case: Case) -> impl Iterator<Item = &Sample> {
        let place = self.cases.iter().position(|known| *known == case);
        self.samples.iter().filter(move |sample| Some(sample.case) == place)
    }

    /// A number of each sample of a case.
    pub fn middle(&self, case: Case, of: impl Fn(&Sample) -> f64) -> Option<Middle> {
        Middle::of(&self.samples_of(case).map(of).collect::<Vec<_>>())
    }

    /// CPU seconds for a gigabyte.
    pub fn seconds_per_gb(&self, case: Case, ends: Ends) -> Option<Middle> {
        self.middle(case, |sample| sample.seconds_per_gb(ends))
    }

    /// CPU time of a case over that of another one, round by round.
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

    /// CPU time of a case over that of the defaults on the same cable with the same segment size.
    pub fn ratio_to_base(&self, case: Case, ends: Ends) -> Option<Middle> {
        self.ratio(case, Case { change: Change::Base, ..case }, ends)
    }

    /// Share of the time in which processors were not idle that was counted for one of the ends. Near 1 on a machine
    /// that does nothing else: then nothing that the transfers cost was missed. `None` before anything was measured.
    pub fn share_of_busy(&self) -> Option<f64> {
        let sum = |of: fn(&Sample) -> u64| self.samples.iter().map(of).sum::<u64>() as f64;
        let busy = sum(|s| s.busy_ns);
        let counted = sum(|s| s.sender.total_ns() + s.receiver.total_ns());
        (busy > 0.0).then(|| counted / busy)
    }

    /// Softirqs for each segment and ACK, on the cables that tell the ends apart or on the others. Near 0 on the
    /// former: there all of the work was done by threads that are counted. `None` before anything was measured.
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
                // Every round is slower than the last, and timestamps cost the sender a tenth.
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
