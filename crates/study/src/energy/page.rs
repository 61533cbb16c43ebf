//! The page of an energy study.

use lasthop_report::model::{Column, Figure, Section, Table};
use lasthop_report::plot::{BarChart, BarGroup, BarSeries, Plot};

use super::Energy;
use super::tables::{self, WORDS};
use crate::Document;
use crate::tables::{bar, page as rendered};

pub fn page(document: &Document<Energy>) -> String {
    let energy = &document.results;
    let mut sections = vec![Section {
        title: "Where the joules go".to_owned(),
        text: vec![
            "Base is the constant power of the host, radio that of the radio's states, and processing the \
             work of the stack, by its instructions. \
             A run that ends before its battery is extrapolated at its mean power."
                .to_owned(),
        ],
        tables: vec![tables::hosts(&energy.hosts), parts(energy)],
        figures: vec![Figure::new(
            &where_to(document),
            "mean power",
            "Means over runs; whiskers are 95 % confidence intervals.",
        )],
        ..Section::default()
    }];
    if !energy.changes.is_empty() {
        sections.push(Section {
            title: "What would save most".to_owned(),
            text: vec![tables::verdict(energy) + ".", tables::NOTE.replace('\n', " ")],
            tables: vec![tables::ranking(energy), WORDS.sets(&energy.changes)],
            figures: vec![Figure::new(
                &ranking(document),
                "bytes for a joule",
                "The best first; whiskers are 95 % confidence intervals of each mean alone. Runs of the same seed \
                 are compared in pairs, so the table distinguishes changes that overlap here.",
            )],
            ..Section::default()
        });
    }
    rendered(document, "energy", "change", sections)
}

/// The plots as separate files: name and text.
pub fn pictures(document: &Document<Energy>) -> Vec<(String, String)> {
    let mut all = vec![("where.svg".to_owned(), where_to(document).svg())];
    if !document.results.changes.is_empty() {
        all.push(("changes.svg".to_owned(), ranking(document).svg()));
    }
    all
}

/// Power by part, all hosts in one table.
fn parts(energy: &Energy) -> Table {
    let mut columns = vec![Column::text("drawn by")];
    for host in &energy.hosts {
        columns.push(Column::number(format!("{} (W)", host.host)));
        columns.push(Column::number("%"));
    }
    let rows = of_parts(energy).map(|(i, name)| {
        let mut cells = vec![name.to_owned()];
        for part in energy.hosts.iter().map(|host| &host.parts[i]) {
            cells.push(lasthop_report::number::summary(&part.power_w));
            cells.push(format!("{:.1}", part.share * 100.0));
        }
        cells
    });
    Table::new(columns, rows)
}

/// Index and name of each part.
fn of_parts(energy: &Energy) -> impl Iterator<Item = (usize, &'static str)> {
    energy.hosts.iter().take(1).flat_map(|host| &host.parts).map(|part| part.name).enumerate()
}

/// Bars of power by part, a group for each part in use.
fn where_to(document: &Document<Energy>) -> Plot {
    let energy = &document.results;
    let powers = |i: usize| energy.hosts.iter().map(move |host| &host.parts[i].power_w);
    let groups = of_parts(energy).filter(|(i, _)| powers(*i).any(|power| power.mean > 0.0)).map(
        |(i, name)| BarGroup {
            label: name.to_owned(),
            bars: powers(i).map(|power| Some(bar(power))).collect(),
        },
    );
    let series = |host: &str| BarSeries { name: host.to_owned(), published: false };
    BarChart {
        title: format!("{}: where the joules go", document.name),
        y_label: "mean power (W)".to_owned(),
        series: energy.hosts.iter().map(|host| series(&host.host)).collect(),
        groups: groups.collect(),
    }
    .plot()
}

/// Bars of the bytes per joule of each change, the best first.
fn ranking(document: &Document<Energy>) -> Plot {
    let energy = &document.results;
    WORDS.bars(
        format!("{}: payload for a joule", document.name),
        "payload for a joule (kB/J)",
        energy.ranked_by.clone(),
        energy.changes.iter(),
    )
}
