//! Nichols and Jacobson 2013: utilization with a queue for each flow under CoDel, next to CoDel alone.

use super::{quarter, utilization};
use crate::figure::{WHISKERS, bar, bars};
use crate::table::{row, table};
use crate::{Bench, Bound, Finding, Interrupted};

const LINK: &str = include_str!("fq_codel.toml");

/// Rate of the line in Mb/s.
const RATE: f64 = 10.0;

const DOWN: &str = "{ from = 'server', to = 'home', bytes = 'unlimited', count = 2 }";
const UP: &str = "{ from = 'home', to = 'server', bytes = 'unlimited', count = 2 }";
const CALLS: &str = "{ from = 'server', to = 'home', udp = { voice = 'g711' } }";
const WEB: &str = "{ from = 'server', to = 'home', web = { sessions = 10 } }";

/// Traffic of the draft, by name.
const MIXES: [(&str, &[&str]); 4] = [
    ("downloads", &[DOWN]),
    ("downloads and uploads", &[DOWN, UP]),
    ("downloads and a call", &[DOWN, CALLS]),
    ("downloads and web users", &[DOWN, WEB]),
];

pub(super) fn fq_codel(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let seeds = quarter(bench);
    finding.runs = seeds;
    let mut rows = table("Utilization in % towards the home", "<traffic | CoDel | FQ-CoDel");
    let mut groups = Vec::new();
    let used = utilization("line", RATE);
    for (name, transfers) in MIXES {
        let transfers = format!("transfer=[{}]", transfers.join(", "));
        let sets = ["line.link.discipline=codel", "line.link.discipline=fq-codel"]
            .map(|discipline| [transfers.as_str(), discipline]);
        let both = bench.each(LINK, &sets, seeds)?;
        let [one, each] = [both[0].summary(&used), both[1].summary(&used)];
        finding.measure(format!("{name}: CoDel"), one, "%");
        finding.compare(format!("{name}: FQ-CoDel"), each, "%", 100.0);
        let more = both[1].difference(&both[0], &used);
        finding.above(format!("{name}: utilization of FQ-CoDel above CoDel, points,"), more, 0.0);
        finding.require_bound(format!("{name}: FQ-CoDel, %,"), each, Bound::AtLeast(95.0));
        rows.rows.push(row(&[&name, &one, &each]));
        groups.push((name, vec![bar(one), bar(each)]));
    }
    finding.tables.push(rows);
    let series = [("CoDel", false), ("FQ-CoDel", false)];
    let title = "CoDel 2013, 3.7: one queue, and one for each flow";
    finding.figures.push(bars(title, "utilization (%)", series, groups, WHISKERS));
    Ok(())
}
