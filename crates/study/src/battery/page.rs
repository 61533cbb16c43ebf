//! The plot of a battery study.

use lasthop_report::number::{plural, plural_of};
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries};

use super::Lifetimes;

/// Shares of the energy, a group of bars for each radio.
pub fn picture(answer: &Lifetimes) -> String {
    let names = answer.radios.first().into_iter().flat_map(|life| &life.parts);
    let series = names.map(|s| BarSeries { name: s.part.to_owned(), published: false });
    let group = |life: &super::Lifetime| BarGroup {
        label: life.radio.to_owned(),
        bars: life
            .parts
            .iter()
            .map(|share| share.joules.in_units_of(life.joules.mean / 100.0))
            .map(|share| (share.mean > 0.0).then_some(Bar { value: share.mean, ci: share.ci95 }))
            .collect(),
    };
    BarChart {
        title: format!(
            "{} of {} a day",
            plural_of(answer.reports_a_day, "report"),
            plural(answer.bytes, "byte")
        ),
        y_label: "share of the joules (%)".to_owned(),
        series: series.collect(),
        groups: answer.radios.iter().map(group).collect(),
    }
    .plot()
    .svg()
}
