//! What is said about energy, as text.

use lasthop_lab::ranking::{Judgement, Ratio};
use lasthop_report::model::{Column, Table};
use lasthop_report::number;
use lasthop_report::table::render;
use lasthop_trace::stats::Summary;

use super::{AS_IS, Document, HostEnergy, Row};
use crate::compare::show::judged;
use crate::style;

/// How the table of changes is to be read.
pub const NOTE: &str = "\
Means over runs ± 95 % confidence interval, kB = 1000 bytes of payload that the other end's application got. `times`: how often
the bytes for a joule without the change, by runs of the same seed, with the 95 % interval. Changes of one rank are not
told apart from its first. better, worse: with confidence, all comparisons together (Holm, 5 %).";

/// Runs shorter than this, in seconds, say much about how a transfer begins.
const SHORT: f64 = 300.0;

/// Characters of the longest bar.
const BAR: f64 = 40.0;

/// Everything, for a terminal.
pub fn text(document: &Document) -> String {
    let runs = document.seeds.len();
    let mut text = format!(
        "{}: {} of each change, simulated\n",
        style::heading(&document.name),
        if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
    );
    text += &format!("{}\n", render(&hosts(&document.hosts), style::look()));
    for host in document.hosts.iter().filter(|host| host.assumed) {
        text += &format!(
            "{} the file does not say what `{}` is made of; `--hardware` or `battery` does\n",
            style::bad("assumed:"),
            host.host
        );
    }
    for host in &document.hosts {
        text += &format!(
            "\n{}\n{}\n",
            style::heading(&format!("where the joules of {} go", host.host)),
            render(&parts(host), style::look())
        );
    }
    if !document.changes.is_empty() {
        let heading =
            format!("what would save most, by the bytes for a joule of {}", document.ranked_by);
        text += &format!(
            "\n{}\n{}\n",
            style::heading(&heading),
            render(&changes(document), style::look())
        );
        text += &format!("\n{}\n{}\n", style::dim(NOTE), verdict(document));
    }
    text + &remarks(document)
}

/// What is missing, and why.
fn remarks(document: &Document) -> String {
    let mut text = String::new();
    if document.seeds.len() < 2 {
        text += &format!(
            "{} one run tells nothing about chance; `--seeds 10` does\n",
            style::bad("note:")
        );
    }
    let lasts = document.hosts.iter().map(|host| host.lifetime_s.mean).fold(0.0, f64::max);
    if document.endless && document.horizon_s < SHORT && document.horizon_s < lasts {
        text += &format!(
            "{} runs of {} s stand for whole batteries, and how a transfer begins weighs more in them than in those \
             (ACKs by time begin slowly); `--set horizon=600s` is nearer\n",
            style::bad("note:"),
            number::short(document.horizon_s)
        );
    }
    if !document.unfinished.is_empty() {
        text += &format!("not finished: {}\n", document.unfinished.join(", "));
    }
    for (i, left) in document.left_out.iter().enumerate() {
        text += if i == 0 { "left out:\n" } else { "" };
        text += &format!("  {}: {}\n", left.name, left.reason);
    }
    text
}

/// The answer in a line.
pub fn verdict(document: &Document) -> String {
    match document.changes.iter().find(|row| row.standing.judgement == Judgement::Better) {
        Some(best) => format!(
            "`{}` saves most: {} times the bytes for a joule ({})",
            best.change.name,
            times(best, best.standing.ratio.as_ref()),
            best.change.what
        ),
        None => {
            "nothing would help: no change moves more bytes for a joule, with confidence".to_owned()
        }
    }
}

/// A time as people say it: minutes up to some hours, then hours, then days.
fn lasting(s: &Summary) -> String {
    let scaled = |by: f64, unit: &str| {
        let scaled = Summary { mean: s.mean / by, sd: s.sd / by, ci95: s.ci95 / by, ..*s };
        format!("{} {unit}", number::summary(&scaled))
    };
    match s.mean {
        mean if mean < 6.0 * 3600.0 => scaled(60.0, "min"),
        mean if mean < 72.0 * 3600.0 => scaled(3600.0, "h"),
        _ => scaled(86_400.0, "days"),
    }
}

fn kilobytes(s: &Summary) -> Summary {
    Summary { mean: s.mean / 1e3, sd: s.sd / 1e3, ci95: s.ci95 / 1e3, ..*s }
}

/// A ratio with its interval. The differences of options are small, so it has a digit more than other tables.
fn times(row: &Row, ratio: Option<&Ratio>) -> String {
    match ratio {
        _ if row.change.name == AS_IS => "1".to_owned(),
        None => "–".to_owned(),
        Some(r) if r.low == r.high => format!("{:.3}", r.mean),
        Some(r) => format!("{:.3} ({:.3} to {:.3})", r.mean, r.low, r.high),
    }
}

/// The hosts, as the scenario is.
pub fn hosts(hosts: &[HostEnergy]) -> Table {
    let columns = vec![
        Column::text("host"),
        Column::text("hardware"),
        Column::number("W"),
        Column::number("battery lasts"),
        Column::number("GB a battery"),
        Column::number("kB a joule"),
    ];
    let rows = hosts.iter().map(|host| {
        let bytes = &host.bytes_per_battery;
        let gigabytes = Summary {
            mean: bytes.mean / 1e9,
            sd: bytes.sd / 1e9,
            ci95: bytes.ci95 / 1e9,
            ..*bytes
        };
        vec![
            host.host.clone(),
            format!("{}{}", host.hardware, if host.assumed { " (assumed)" } else { "" }),
            number::summary(&host.power_w),
            lasting(&host.lifetime_s),
            number::summary(&gigabytes),
            number::summary(&kilobytes(&host.bytes_per_joule)),
        ]
    });
    Table { title: String::new(), columns, rows: rows.collect() }
}

/// What draws from the battery of a host.
pub fn parts(host: &HostEnergy) -> Table {
    let columns =
        vec![Column::text("drawn by"), Column::number("W"), Column::number("%"), Column::text("")];
    let longest = host.parts.iter().map(|part| part.share).fold(0.0, f64::max);
    let rows = host.parts.iter().map(|part| {
        let length = if longest > 0.0 { (part.share / longest * BAR).round() as usize } else { 0 };
        vec![
            part.name.to_owned(),
            number::summary(&part.power_w),
            format!("{:.1}", part.share * 100.0),
            "█".repeat(length),
        ]
    });
    Table { title: String::new(), columns, rows: rows.collect() }
}

/// The changes, the best first.
pub fn changes(document: &Document) -> Table {
    let mut columns = vec![
        Column::number("rank"),
        Column::text("change"),
        Column::number("kB a joule"),
        Column::number("times"),
        Column::text("beside as it is"),
        Column::number("battery lasts"),
    ];
    let others: Vec<&String> = document
        .changes
        .first()
        .map_or(Vec::new(), |row| row.others.iter().map(|o| &o.0).collect());
    columns.extend(others.iter().map(|name| Column::number(format!("times at {name}"))));
    let tied = |row: &Row| {
        let same = document.changes.iter().filter(|r| r.standing.rank == row.standing.rank);
        if same.count() > 1 { "=" } else { "" }
    };
    let rows = document.changes.iter().map(|row| {
        let mut cells = vec![
            format!("{}{}", row.standing.rank, tied(row)),
            row.change.name.clone(),
            number::summary(&kilobytes(&row.standing.value)),
            times(row, row.standing.ratio.as_ref()),
            judged(&row.standing).to_owned(),
            lasting(&row.lifetime_s),
        ];
        cells.extend(row.others.iter().map(|(_, ratio)| times(row, ratio.as_ref())));
        cells
    });
    Table { title: String::new(), columns, rows: rows.collect() }
}

/// What each change is.
pub fn sets(document: &Document) -> Table {
    let columns = ["change", "what it is", "what it sets"].map(Column::text).into();
    let rows = document.changes.iter().map(|row| {
        vec![row.change.name.clone(), row.change.what.clone(), row.change.sets.join(" ")]
    });
    Table { title: String::new(), columns, rows: rows.collect() }
}
