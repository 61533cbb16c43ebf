//! The tables of an energy study.

use lasthop_observe::stats::Summary;
use lasthop_report::model::{Column, Table};
use lasthop_report::number::summary;

use super::{Energy, HostEnergy};
use crate::tables::{Words, times};

/// The explanation of the table of changes.
pub const NOTE: &str = "\
Means over runs ± 95 % confidence interval, kB = 1000 bytes of payload that the other end's application got. \
`times`: the bytes
for a joule, divided by those without the change, in runs of the same seed, with the 95 % interval. The runs do not
distinguish changes of one rank from its first. better, worse: with confidence, all comparisons together (Holm, 5 %).";

/// Characters of the longest bar.
const BAR: f64 = 40.0;

pub(super) const WORDS: Words = Words {
    noun: "change",
    description: "what it is",
    unit: "kB a joule",
    size: 1e3,
    judgement: "against baseline",
    // The differences of options are small, so the ratio has one more digit than elsewhere.
    digits: 3,
};

/// The result in one line.
pub fn verdict(energy: &Energy) -> String {
    match energy.changes.iter().find(|row| row.helps()) {
        Some(best) => format!(
            "`{}` saves most: {} times the bytes for a joule ({})",
            best.name(),
            times(best, best.standing.ratio.as_ref(), WORDS.digits),
            best.alternative.what
        ),
        None => {
            "nothing would help: no change moves more bytes for a joule, with confidence".to_owned()
        }
    }
}

/// A duration in a suitable unit: minutes, hours or days.
fn lasting(s: &Summary) -> String {
    let (seconds, unit) = match s.mean {
        mean if mean < 6.0 * 3600.0 => (60.0, "min"),
        mean if mean < 72.0 * 3600.0 => (3600.0, "h"),
        _ => (86_400.0, "days"),
    };
    format!("{} {unit}", summary(&s.in_units_of(seconds)))
}

/// The hosts of the unchanged scenario.
pub fn hosts(hosts: &[HostEnergy]) -> Table {
    let columns = Column::list("<host | <hardware | W | battery lasts | GB a battery | kB a joule");
    let rows = hosts.iter().map(|host| {
        vec![
            host.host.clone(),
            format!("{}{}", host.hardware, if host.assumed { " (assumed)" } else { "" }),
            summary(&host.power_w),
            lasting(&host.lifetime_s),
            summary(&host.bytes_per_battery.in_units_of(1e9)),
            summary(&host.bytes_per_joule.in_units_of(1e3)),
        ]
    });
    Table::new(columns, rows)
}

/// Consumers of a host's battery.
pub fn parts(host: &HostEnergy) -> Table {
    let columns = Column::list("<drawn by | W | % | <");
    let longest = host.parts.iter().map(|part| part.share).fold(0.0, f64::max);
    let rows = host.parts.iter().map(|part| {
        let length = if longest > 0.0 { (part.share / longest * BAR).round() as usize } else { 0 };
        vec![
            part.name.to_owned(),
            summary(&part.power_w),
            format!("{:.1}", part.share * 100.0),
            "█".repeat(length),
        ]
    });
    Table::new(columns, rows)
}

/// The changes, the best first.
pub fn ranking(energy: &Energy) -> Table {
    let mut columns = vec![Column::number("battery lasts")];
    let others = energy.changes.first().into_iter().flat_map(|row| &row.measured.others);
    columns.extend(others.map(|(name, _)| Column::number(format!("times at {name}"))));
    WORDS.ranking(&energy.changes, columns, |row| {
        let others = row.measured.others.iter();
        let mut cells = vec![lasting(&row.measured.lifetime_s)];
        cells.extend(others.map(|(_, ratio)| times(row, ratio.as_ref(), WORDS.digits)));
        cells
    })
}
