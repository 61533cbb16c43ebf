//! CPU cost of the options in the TCP of this machine's kernel (section 5 as a whole).
//!
//! The thesis measured batteries, dominated by radio and display. This experiment measures CPU time per byte, of sender
//! and receiver.

use lasthop_observe::cpu_time::{Case, Change, Ends, Measurement, Wire};
use lasthop_observe::stats::{Middle, Summary};
use lasthop_report::cpu_tables as report;
use lasthop_report::model::Table;

use super::setup::CLAIM;
use crate::live::{NoMeasurement, SIZES};
use crate::table::{row, table};
use crate::{Bench, Claim, Finding, Interrupted, short};

/// Bytes of each transfer.
const BYTES: u64 = 8_000_000;

/// Repetitions: the fewest whose interval by ranks excludes the highest and the lowest ratio.
const ROUNDS: u32 = 9;

pub(super) const LIVE: Claim = Claim {
    id: "A-LIVE",
    place: "5 as a whole, on a current kernel",
    setup: "CPU cycles (or CPU time) per byte of the real Linux sender and receiver for the same options \
            and MSS values",
    published: "-",
    cost: 111,
    of_this_machine: true,
    run: Some(live),
    ..CLAIM
};

fn live(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let measured = match bench.live {
        Some(live) => live.cpu(&SIZES, BYTES, ROUNDS),
        None => Err(NoMeasurement::Impossible("this program has no testbed".to_owned())),
    };
    match measured {
        Ok(measured) => judge(&measured, finding),
        Err(NoMeasurement::Interrupted) => return Err(Interrupted),
        Err(NoMeasurement::Impossible(why)) => {
            finding.runs = 0;
            finding.note(format!("not measured here: {why}"));
        }
    }
    Ok(())
}

/// Results of the thesis, and the change that each is compared with.
const FOUND: [(&str, Change, &str); 4] = [
    (
        "timestamps off",
        Change::NoTimestamps,
        "5.4: \"quite significant\": 115 instead of 111 min, and more bytes",
    ),
    ("SACK off", Change::NoSack, "5.2: more bytes at an MSS of 2296 only, fewer below"),
    ("window scaling off", Change::NoScaling, "5.3: no saving"),
    (
        "an ACK for each segment",
        Change::QuickAcks,
        "5.6: fewer ACKs, one in 500 ms instead of one for two segments, carry more bytes in the same 106 min",
    ),
];

fn judge(measured: &Measurement, finding: &mut Finding) {
    finding.runs = measured.rounds();
    let count = |holds: fn(&Middle) -> bool| {
        let of = |case: &&Case| {
            let seconds = measured.seconds_per_gb(**case, Ends::Both).is_some_and(|m| holds(&m));
            let ratio = measured.ratio_to_base(**case, Ends::Both).is_some_and(|m| holds(&m));
            seconds && ratio
        };
        measured.cases.iter().filter(of).count()
    };
    let expected = lasthop_observe::cpu_time::cases(&SIZES);
    let (all, wanted) = (count(|m| m.interval.is_some()), expected.len());
    finding.require(
        all == wanted && measured.cases == expected,
        format!("{all} of {wanted} cases have a median with its 95 % interval"),
    );
    for wire in [Wire::Plain, Wire::Offloads] {
        for mss in SIZES {
            for ends in [Ends::Sender, Ends::Receiver] {
                let case = Case { mss, wire, change: Change::Base };
                let label = format!("{}, MSS {mss}, {}", ends.name(), wire.name());
                if let Some(middle) = measured.seconds_per_gb(case, ends) {
                    // The interval by ranks is asymmetric around the median; this is half of its width.
                    let (mean, ci95) = (middle.median, middle.half());
                    finding.measure(
                        label,
                        Summary { mean, ci95, ..Summary::default() },
                        "CPU s/GB",
                    );
                }
            }
        }
    }
    finding.tables.push(comparison_table(measured));
    finding.tables.extend(report::tables(measured));
    finding.figures.extend(report::figures(measured));
    changed(measured, finding);
    notes(measured, finding);
}

fn percent(middle: Option<Middle>) -> String {
    let as_change = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0)).replace('-', "\u{2212}");
    match middle {
        None => "–".to_owned(),
        Some(Middle { median, interval: None, .. }) => format!("{} %", as_change(median)),
        Some(Middle { median, interval: Some((low, high)), .. }) => {
            format!("{} % ({} to {})", as_change(median), as_change(low), as_change(high))
        }
    }
}

/// The thesis compared with this machine.
fn comparison_table(measured: &Measurement) -> Table {
    let cells = |change, mss| {
        let of = |wire| percent(measured.ratio_to_base(Case { mss, wire, change }, Ends::Both));
        [of(Wire::Plain), of(Wire::Offloads)]
    };
    let larger = |wire| {
        let of = |mss| Case { mss, wire, change: Change::Base };
        percent(measured.ratio(of(2296), of(500), Ends::Both))
    };
    let mut rows = table(
        "What the thesis found of batteries, and CPU time for a byte of both ends on this kernel, MSS 2296",
        "<changed | <2000 | CPU time, offloads off | CPU time, offloads on",
    );
    let mut add = |changed: &str, found: &str, [plain, offloads]: [String; 2]| {
        rows.rows.push(row(&[&changed, &found, &plain, &offloads]));
    };
    add(
        "MSS 2296 instead of 500",
        "5.1: more bytes, \"maximum power saving\"",
        [Wire::Plain, Wire::Offloads].map(larger),
    );
    for (name, change, published) in FOUND {
        add(name, published, cells(change, 2296));
    }
    let never = ["cannot be switched in Linux"; 2].map(str::to_owned);
    add("header prediction before PAWS", "5.5: 114 instead of 111 min", never);
    add("nothing (the same again)", "–", cells(Change::Again, 2296));
    rows
}

/// Costs of segment sizes, ACKs and windows on this machine, as text.
fn changed(measured: &Measurement, finding: &mut Finding) {
    let both = |mss, wire| {
        let case = Case { mss, wire, change: Change::Base };
        measured.seconds_per_gb(case, Ends::Both).map_or(f64::NAN, |m| m.median)
    };
    let per_ack = |wire| {
        let case = Case { mss: 1460, wire, change: Change::Base };
        measured
            .middle(case, |s| s.segments as f64 / s.acks.max(1) as f64)
            .map_or(f64::NAN, |m| m.median)
    };
    let window = |change| {
        let case = Case { mss: 1460, wire: Wire::Plain, change };
        measured.middle(case, |s| f64::from(s.window)).map_or(f64::NAN, |m| m.median)
    };
    let option = |mss, change| {
        let case = Case { mss, wire: Wire::Plain, change };
        measured.ratio_to_base(case, Ends::Both).map_or(f64::NAN, |m| m.median)
    };
    finding.note(format!(
        "On Linux {} a byte in segments of 500 costs {} times as much CPU time as in segments of 8960 without \
         offloads, {} times with them and {} times with TSO: what the thesis saved by larger segments is saved today \
         by handling many segments at once",
        measured.about.kernel,
        short(both(500, Wire::Plain) / both(8960, Wire::Plain)),
        short(both(500, Wire::Offloads) / both(8960, Wire::Offloads)),
        short(both(500, Wire::Whole) / both(8960, Wire::Whole)),
    ));
    finding.note(format!(
        "Changes since the thesis: the kernel segments late and coalesces early (GSO, GRO), so one pass of its stack \
         handles many segments. ACKs have become rare by themselves: one for {} segments with offloads and for {} \
         without, since a receiver delays them until its reader has made room, and processes the data that arrives \
         meanwhile together; the thesis wanted one every 500 ms, which Linux cannot be set to (it waits 200 ms at \
         most). With offloads the hardware computes checksums, and a veth needs none. The window grows by itself, here \
         to {} bytes at an MSS of 1460; without scaling it ends at {}, and more wakeups for less data cost {} times \
         as much there. At an MSS of 500 the bound of 200 segments holds both to about the same \
         window, and the factor is {}: the option itself, as in the thesis, costs little. Header prediction cannot \
         be switched in Linux",
        short(per_ack(Wire::Offloads)),
        short(per_ack(Wire::Plain)),
        short(window(Change::Base)),
        short(window(Change::NoScaling)),
        short(option(8960, Change::NoScaling)),
        short(option(500, Change::NoScaling)),
    ));
}

/// Limits of the accuracy.
fn notes(measured: &Measurement, finding: &mut Finding) {
    let chance: Vec<bool> = measured
        .cases
        .iter()
        .filter(|case| case.change == Change::Again)
        .filter_map(|case| Some(measured.ratio_to_base(*case, Ends::Both)?.holds(1.0)))
        .collect();
    finding.note(format!(
        "A case compared with itself: {} of {} intervals contain 1 (by chance, one of 25 does not)",
        chance.iter().filter(|holds| **holds).count(),
        chance.len()
    ));
    let rate = |apart| measured.softirqs_per_packet(apart).map_or("–".to_owned(), short);
    finding.note(format!(
        "Softirqs that received packets: {} for each packet on cables that separate the ends, where threads with \
         counted time did all of the work, and {} on the others",
        rate(true),
        rate(false)
    ));
    if let Some(share) = measured.share_of_busy() {
        finding.note(format!(
            "{} % of the busy time of all processors is counted here; other programs used the rest",
            short((1000.0 * share).round() / 10.0)
        ));
    }
}

#[cfg(test)]
mod tests {
    use lasthop_observe::cpu_time::{ENOUGH, Sample, Spent, cases};
    use lasthop_report::model::Verdict;

    use super::*;
    use crate::live::Live;

    /// A machine on which everything costs the same except the named changes.
    struct Machine {
        dear: Option<Change>,
        rounds: Option<u32>,
        forbidden: Option<NoMeasurement>,
    }

    impl Live for Machine {
        fn cpu(
            &self,
            sizes: &[u16],
            bytes: u64,
            rounds: u32,
        ) -> Result<Measurement, NoMeasurement> {
            if let Some(why) = &self.forbidden {
                return Err(why.clone());
            }
            let cases = cases(sizes);
            let mut samples = Vec::new();
            for round in 0..self.rounds.unwrap_or(rounds) {
                for (i, case) in cases.iter().enumerate() {
                    let ns = if self.dear == Some(case.change) { 2 * bytes } else { bytes };
                    let spent = Spent { caller_ns: ns, kernel_ns: 0 };
                    samples.push(Sample {
                        case: i,
                        round,
                        bytes,
                        sender: spent,
                        receiver: spent,
                        wall_ns: ns,
                        busy_ns: 2 * ns,
                        softirqs: 0,
                        payload: 488,
                        segments: 20,
                        acks: 10,
                        retransmitted: 0,
                        window: 65_535,
                    });
                }
            }
            Ok(Measurement { bytes, cases, samples, ..Measurement::default() })
        }
    }

    const PLAIN: Machine = Machine { dear: None, rounds: None, forbidden: None };

    fn find(machine: &Machine) -> Result<Finding, Interrupted> {
        let mut bench = Bench::new(1, &());
        bench.live = Some(machine);
        let mut finding = Finding::new(bench.seeds);
        live(&mut bench, &mut finding).map(|()| finding)
    }

    #[test]
    fn the_claim_holds_if_all_cases_have_an_interval() {
        let finding = find(&PLAIN).unwrap();
        assert_eq!((finding.verdict(), finding.runs), (Verdict::Holds, ROUNDS));
        assert_eq!((finding.measured.len(), finding.figures.len()), (20, 3));
        assert!(finding.reason().contains("10 of 10 intervals contain 1"), "{}", finding.reason());
        let few = find(&Machine { rounds: Some(ENOUGH - 1), ..PLAIN }).unwrap();
        assert_eq!(few.verdict(), Verdict::Fails);
        assert!(few.reason().contains("0 of 70 cases have a median"), "{}", few.reason());
    }

    #[test]
    fn the_comparison_table_has_the_cost_of_each_option() {
        let quick = find(&Machine { dear: Some(Change::QuickAcks), ..PLAIN }).unwrap();
        let row =
            |name: &str| quick.tables[0].rows.iter().find(|row| row[0] == name).unwrap()[2].clone();
        assert_eq!(row("an ACK for each segment"), "+100.0 % (+100.0 to +100.0)");
        assert_eq!(row("timestamps off"), "+0.0 % (+0.0 to +0.0)");
    }

    #[test]
    fn without_a_testbed_nothing_is_claimed() {
        let why = NoMeasurement::Impossible("sysctl user.max_user_namespaces is 0".to_owned());
        let finding = find(&Machine { forbidden: Some(why), ..PLAIN }).unwrap();
        assert_eq!(finding.verdict(), Verdict::NotRun);
        assert_eq!(finding.reason(), "not measured here: sysctl user.max_user_namespaces is 0");
        let stopped = find(&Machine { forbidden: Some(NoMeasurement::Interrupted), ..PLAIN });
        assert_eq!(stopped.unwrap_err(), Interrupted);
        let mut bare = Finding::new(1);
        live(&mut Bench::new(1, &()), &mut bare).unwrap();
        assert_eq!((bare.verdict(), bare.runs), (Verdict::NotRun, 0));
    }
}
