//! Section 5.1.1: why the timers of a Web server expire, counted over short transfers through the router of Figure 10.

use lasthop_observe::metrics::{RunMetrics, ShortTransfers};
use lasthop_observe::timeouts::TimeoutCauses;

use super::web::TESTBED;
use crate::bench::Runs;
use crate::finding::Bound;
use crate::table::{row, table};
use crate::{Bench, Estimate, Finding, Interrupted};

/// Users with separate connections.
const USERS: u32 = 40;
/// Further numbers of users: how much the load decides.
const OTHERS: [u32; 4] = [10, 20, 80, 160];

const RENO: &str = "host.s.tcp=reno";

/// `users`, half of them at each host, and what their server is.
fn changes(users: u32, tcp: &[&str]) -> Vec<String> {
    let sessions = users / 2;
    let web = |to: &str| {
        format!(
            "{{ from = 's', to = '{to}', web = {{ sessions = {sessions}, think = '1s', \
             size = {{ mean = '10kB', max = '1MB', shape = 1.2 }} }} }}"
        )
    };
    let transfers = format!("transfer=[{}, {}]", web("r1"), web("r2"));
    let tcp = tcp.iter().map(|change| (*change).to_owned());
    ["horizon=60s".to_owned(), transfers].into_iter().chain(tcp).collect()
}

/// Sums over all runs of a case.
#[derive(Clone, Copy, Default)]
struct Counts {
    causes: TimeoutCauses,
    retransmissions: u64,
    fast: u64,
    delivered: u64,
}

impl Counts {
    fn of(runs: &Runs) -> Counts {
        let each = runs.all().iter().map(|run| Counts::of_one(&run.metrics));
        each.fold(Counts::default(), |all, one| Counts {
            causes: all.causes.plus(one.causes),
            retransmissions: all.retransmissions + one.retransmissions,
            fast: all.fast + one.fast,
            delivered: all.delivered + one.delivered,
        })
    }

    fn of_one(m: &RunMetrics) -> Counts {
        let sum = |of: fn(&ShortTransfers) -> u64| m.short.iter().map(of).sum();
        Counts {
            causes: m.timeout_causes.unwrap_or_default(),
            retransmissions: sum(|short| short.retransmissions),
            fast: sum(|short| short.fast_retransmits),
            delivered: sum(|short| short.delivered),
        }
    }

    /// `part` of all timeouts in percent.
    fn share(&self, part: u64) -> f64 {
        percent(part, self.causes.total())
    }

    /// Timeouts for want of duplicate ACKs: those of a segment that a timeout had repeated are among them, since nothing
    /// came in between.
    fn insufficient(&self) -> u64 {
        self.silent() + self.causes.few_duplicate_acks
    }

    /// Timeouts without any duplicate ACK.
    fn silent(&self) -> u64 {
        self.causes.no_duplicate_acks + self.causes.repeated
    }

    /// Retransmissions that a timeout began, and all: in Reno all but the fast one of each recovery.
    fn after_timeouts(&self) -> (u64, u64) {
        (self.retransmissions.saturating_sub(self.fast), self.retransmissions)
    }

    /// Timeouts for each MB that arrived.
    fn per_mb(&self) -> f64 {
        self.causes.total() as f64 * 1e6 / self.delivered as f64
    }
}

fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all as f64
}

/// A share in percent, with the interval from the counts of each run.
fn share(each: &[Counts], of: impl Fn(&Counts) -> (u64, u64)) -> Estimate {
    let (parts, wholes): (Vec<f64>, Vec<f64>) =
        each.iter().map(of).map(|(part, whole)| (part as f64, whole as f64)).unzip();
    Estimate::of(&[&parts, &wholes], |m| 100.0 * m[0] / m[1])
}

pub(super) fn causes(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let runs = bench.runs(TESTBED, &changes(USERS, &[RENO]))?;
    let counts = Counts::of(&runs);
    let each: Vec<Counts> = runs.all().iter().map(|run| Counts::of_one(&run.metrics)).collect();
    let of = |of: fn(&Counts) -> (u64, u64)| share(&each, of);
    let after = of(Counts::after_timeouts);
    let sack = of(|c| (c.causes.avoided_by_sack, c.causes.total()));
    let insufficient = of(|c| (c.insufficient(), c.causes.total()));
    let silent = of(|c| (c.silent(), c.insufficient()));
    let few = of(|c| (c.causes.few_duplicate_acks, c.causes.total()));
    let edge = of(|c| (c.causes.avoided_by_limited_transmit, c.causes.total()));
    finding.measure("coarse timeouts of all runs", counts.causes.total() as f64, "");
    finding.measure("retransmissions after timeouts", after, "% of all");
    finding.compare("timeouts that SACK could have avoided", sack, "% of all", 4.43);
    finding.compare("timeouts with too few duplicate ACKs", insufficient, "% of all", 95.6);
    finding.compare("of these, without any", silent, "%", 70.0);
    finding.compare("timeouts with one or two duplicate ACKs", few, "% of all", 25.0);
    finding.compare("timeouts that new data could have avoided", edge, "% of all", 25.0);
    finding.above("the share of retransmissions after timeouts in %", after, 50.0);
    finding.require_bound("timeouts that SACK could have avoided, in %", sack, Bound::AtMost(4.43));
    finding.near("timeouts with too few duplicate ACKs in %", insufficient, 95.6, 0.05);
    finding.near("of these, those without any in %", silent, 70.0, 0.15);
    finding.near("timeouts with one or two duplicate ACKs in %", few, 25.0, 0.15);
    finding.near("timeouts that new data could have avoided in %", edge, 25.0, 0.15);
    if bench.is_shown() {
        others(bench, finding, &counts)?;
    }
    Ok(())
}

/// Other loads, and senders that behave as the paper assumes.
fn others(bench: &mut Bench<'_>, finding: &mut Finding, usual: &Counts) -> Result<(), Interrupted> {
    let mut rows = table(
        "Timeouts by the number of users, % of all",
        "users | timeouts per MB | avoided by SACK | no duplicate ACK | one or two | avoided by new data",
    );
    let mut add = |users: u32, counts: &Counts| {
        let causes = &counts.causes;
        rows.rows.push(row(&[
            &users,
            &counts.per_mb(),
            &counts.share(causes.avoided_by_sack),
            &counts.share(counts.silent()),
            &counts.share(causes.few_duplicate_acks),
            &counts.share(causes.avoided_by_limited_transmit),
        ]));
    };
    add(USERS, usual);
    for users in OTHERS {
        add(users, &Counts::of(&bench.runs(TESTBED, &changes(users, &[RENO]))?));
    }
    rows.rows.sort_by_key(|row| row[0].parse::<u32>().ok());
    finding.tables.push(rows);
    let cases = [&["host.s.tcp=sack"][..], &[RENO, "host.s.limited-transmit=true"]];
    let mut less = Vec::new();
    for tcp in cases {
        let counts = Counts::of(&bench.runs(TESTBED, &changes(USERS, tcp))?);
        less.push(100.0 * (1.0 - counts.per_mb() / usual.per_mb()));
    }
    finding.note(format!(
        "run with such senders, {USERS} users have {:.1} % fewer timeouts for each MB with SACK, and {:.1} % fewer \
         with new data upon duplicate ACKs",
        less[0], less[1]
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    #[test]
    fn each_number_of_users_is_a_scenario() {
        for users in OTHERS.into_iter().chain([USERS]) {
            let scenario = scenario(TESTBED, &changes(users, &[RENO]));
            assert_eq!(scenario.transfers.len(), 2);
        }
    }

    #[test]
    fn shares_are_those_of_the_paper_for_its_counts() {
        let causes = TimeoutCauses {
            no_duplicate_acks: 282_000,
            few_duplicate_acks: 121_000,
            in_recovery: 18_700,
            repeated: 300,
            avoided_by_sack: 18_700,
            ..TimeoutCauses::default()
        };
        let counts = Counts { causes, retransmissions: 857, fast: 375, ..Counts::default() };
        assert!((counts.share(counts.insufficient()) - 95.6).abs() < 0.1);
        assert!((percent(counts.silent(), counts.insufficient()) - 70.0).abs() < 0.1);
        let (after, all) = counts.after_timeouts();
        assert!((percent(after, all) - 56.2).abs() < 0.1);
    }
}
