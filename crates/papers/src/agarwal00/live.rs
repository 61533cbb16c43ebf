//! CPU cost of the options in a current Linux kernel (section 5 as a whole).
//!
//! The thesis measured batteries, dominated by radio and display. The record is of CPU time per byte, of both ends together:
//! `kernel_cpu.py` next to this file measures it with iperf3 and perf.

use lasthop_observe::stats::{Middle, Summary};
use lasthop_report::model::Table;
use serde::Deserialize;

use crate::table::{row, table};
use crate::{Bench, Finding, Interrupted, short};

const RECORD: &str = include_str!("kernel_cpu.json");

/// Segment size of the thesis's best case, at which options are changed.
const CHANGED: u16 = 2296;

#[derive(Deserialize)]
struct Record {
    kernel: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    mss: u16,
    offloads: bool,
    /// The changed option; empty for the kernel's defaults.
    change: String,
    /// One number for each round.
    seconds_per_gb: Vec<f64>,
}

impl Record {
    fn case(&self, mss: u16, offloads: bool, change: &str) -> &[f64] {
        let is_it =
            |case: &&Case| case.mss == mss && case.offloads == offloads && case.change == change;
        self.cases.iter().find(is_it).map_or(&[], |case| &case.seconds_per_gb)
    }

    /// Ratio of two cases within each round, as a change.
    fn change(&self, offloads: bool, (mss, change): (u16, &str), base: u16) -> String {
        let pairs = self.case(mss, offloads, change).iter().zip(self.case(base, offloads, ""));
        let ratios: Vec<f64> = pairs.map(|(case, base)| case / base).collect();
        let percent =
            |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0)).replace('-', "\u{2212}");
        match Middle::of(&ratios) {
            Some(Middle { median, interval: Some((low, high)), .. }) => {
                format!("{} % ({} to {})", percent(median), percent(low), percent(high))
            }
            _ => "–".to_owned(),
        }
    }
}

/// Results of the thesis, by changed option.
const FOUND: [(&str, &str); 5] = [
    ("timestamps off", "5.4: \"quite significant\": 115 instead of 111 min, and more bytes"),
    ("SACK off", "5.2: more bytes at an MSS of 2296 only, fewer below"),
    ("window scaling off", "5.3: no saving"),
    (
        "an ACK for each segment",
        "5.6: fewer ACKs, one in 500 ms instead of one for two segments, carry more bytes in the same 106 min",
    ),
    ("nothing (the same again)", "–"),
];

pub(super) fn live(_: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    match serde_json::from_str(RECORD) {
        Ok(record) => judge(&record, finding),
        Err(error) => finding.require(false, format!("the record is damaged: {error}")),
    }
    Ok(())
}

fn judge(record: &Record, finding: &mut Finding) {
    finding.runs =
        record.cases.iter().map(|case| case.seconds_per_gb.len()).min().unwrap_or(0) as u32;
    let middles = record.cases.iter().map(|case| (case, Middle::of(&case.seconds_per_gb)));
    let (mut with_interval, mut median) = (0, Vec::new());
    for (case, middle) in middles {
        let Some(middle) = middle else { continue };
        with_interval += usize::from(middle.interval.is_some());
        if case.change.is_empty() {
            let wire = if case.offloads { "offloads on" } else { "offloads off" };
            let summary =
                Summary { mean: middle.median, ci95: middle.half(), ..Summary::default() };
            finding.measure(format!("both ends, MSS {}, {wire}", case.mss), summary, "CPU s/GB");
            median.push(((case.mss, case.offloads), middle.median));
        }
    }
    let all = record.cases.len();
    finding.require(
        all > 0 && with_interval == all,
        format!("{with_interval} of {all} cases have a median with its 95 % interval"),
    );
    finding.tables.push(comparison(record));
    let of = |mss, offloads| {
        median
            .iter()
            .find(|(case, _)| *case == (mss, offloads))
            .map_or(f64::NAN, |(_, median)| *median)
    };
    finding.note(format!(
        "On Linux {} a byte in segments of 500 costs {} times as much CPU time as in segments of 8960 without offloads, and \
         {} times with them: what the thesis saved by larger segments is saved today by handling many segments at once \
         (GSO, GRO). Header prediction cannot be switched in Linux",
        record.kernel,
        short(of(500, false) / of(8960, false)),
        short(of(500, true) / of(8960, true)),
    ));
}

/// The thesis compared with the record.
fn comparison(record: &Record) -> Table {
    let mut rows = table(
        "What the thesis found of batteries, and CPU time for a byte of both ends, MSS 2296",
        "<changed | <2000 | CPU time, offloads off | CPU time, offloads on",
    );
    let mut add = |changed: &str, found: &str, case, base| {
        let [plain, offloads] = [false, true].map(|on| record.change(on, case, base));
        rows.rows.push(row(&[&changed, &found, &plain, &offloads]));
    };
    add("MSS 2296 instead of 500", "5.1: more bytes, \"maximum power saving\"", (CHANGED, ""), 500);
    for (name, published) in FOUND {
        add(name, published, (CHANGED, name), CHANGED);
    }
    rows
}

#[cfg(test)]
mod tests {
    use lasthop_report::model::Verdict;

    use super::*;

    fn record(rounds: usize, slow: &str) -> Record {
        let case = |mss, offloads, change: &str| Case {
            mss,
            offloads,
            change: change.to_owned(),
            seconds_per_gb: vec![if change == slow { 4.0 } else { 2.0 }; rounds],
        };
        let mut cases: Vec<Case> = [500, CHANGED, 8960].map(|mss| case(mss, false, "")).into();
        cases.extend(FOUND.map(|(change, _)| case(CHANGED, false, change)));
        Record { kernel: "6.0".to_owned(), cases }
    }

    fn find(record: &Record) -> Finding {
        let mut finding = Finding::new(1);
        judge(record, &mut finding);
        finding
    }

    #[test]
    fn the_claim_holds_if_all_cases_have_an_interval() {
        assert_eq!(find(&record(9, "-")).verdict(), Verdict::Holds);
        let few = find(&record(5, "-"));
        assert_eq!(few.verdict(), Verdict::Fails);
        assert!(few.reason().contains("0 of 8 cases"), "{}", few.reason());
        assert_eq!(find(&record(0, "-")).verdict(), Verdict::Fails);
    }

    #[test]
    fn the_table_has_the_cost_of_each_option() {
        let finding = find(&record(9, "an ACK for each segment"));
        let cell = |name: &str| {
            finding.tables[0].rows.iter().find(|row| row[0] == name).unwrap()[2].clone()
        };
        assert_eq!(cell("an ACK for each segment"), "+100.0 % (+100.0 to +100.0)");
        assert_eq!(cell("timestamps off"), "+0.0 % (+0.0 to +0.0)");
    }

    #[test]
    fn the_record_can_be_read() {
        let record: Record = serde_json::from_str(RECORD).unwrap();
        assert_eq!(record.cases.len(), 20);
        assert!(FOUND.iter().all(|(change, _)| record.case(CHANGED, true, change).len() >= 6));
    }
}
