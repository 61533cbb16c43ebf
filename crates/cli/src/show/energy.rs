//! The answer about energy as text.

use lasthop_report::number::{plural, short};
use lasthop_study::Document;
use lasthop_study::energy::{Energy, NOTE, hosts, parts, ranking, verdict};

use super::notes::{missing, note, table, too_few};
use crate::style;

/// Below this run time, seconds, the start of a transfer dominates the result.
const SHORT: f64 = 300.0;

/// The whole answer for a terminal; empty if the unchanged scenario was not run.
pub fn text(document: &Document<Energy>) -> String {
    let energy = &document.results;
    if energy.hosts.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "{}: {} of each change, simulated\n{}\n",
        style::heading(&document.name),
        plural(document.seeds.len() as u64, "run"),
        table(&hosts(&energy.hosts))
    );
    for host in energy.hosts.iter().filter(|host| host.assumed) {
        text += &format!(
            "{} the file has no hardware of `{}`; give it with `--hardware` or `battery`\n",
            style::bad("assumed:"),
            host.host
        );
    }
    for host in &energy.hosts {
        let heading = format!("where the joules of {} go", host.host);
        text += &format!("\n{}\n{}\n", style::heading(&heading), table(&parts(host)));
    }
    if !energy.changes.is_empty() {
        let heading =
            format!("what would save most, by the bytes for a joule of {}", energy.ranked_by);
        text += &format!("\n{}\n{}\n", style::heading(&heading), table(&ranking(energy)));
        text += &format!("\n{}\n{}\n", style::dim(&style::paragraph(NOTE)), verdict(energy));
    }
    text += &too_few(document, 10);
    let lasts = energy.hosts.iter().map(|host| host.lifetime_s.mean).fold(0.0, f64::max);
    if energy.endless && energy.horizon_s < SHORT && energy.horizon_s < lasts {
        text += &note(&format!(
            "runs of {} s represent whole batteries, so the start of a transfer has too much weight \
             (ACKs by time begin slowly); `--set horizon=600s` is more accurate",
            short(energy.horizon_s)
        ));
    }
    text + &missing(document)
}
