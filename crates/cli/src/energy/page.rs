//! What is said about energy, as one page.

use lasthop_report::html;
use lasthop_report::model::{Again, Column, Figure, Page, Section, Table};
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries, Plot};

use super::{Document, show};
use crate::pages;

/// The page.
pub fn page(document: &Document) -> String {
    let mut sections = vec![Section {
        title: "Where the joules go".to_owned(),
        text: vec![
            "Base is what the host draws whatever happens; the radio draws what its state draws; processing is the work of \
             the stack, by its instructions. A run that ends before its battery is extrapolated at its mean power."
                .to_owned(),
        ],
        tables: vec![show::hosts(&document.hosts), parts(document)],
        figures: vec![Figure {
            svg: where_to(document).inline(),
            title: "mean power".to_owned(),
            caption: "Means over runs; whiskers are 95 % confidence intervals.".to_owned(),
        }],
        ..Section::default()
    }];
    if !document.changes.is_empty() {
        sections.push(Section {
            title: "What would save most".to_owned(),
            text: vec![show::verdict(document) + ".", show::NOTE.replace('\n', " ")],
            tables: vec![show::changes(document), show::sets(document)],
            figures: vec![Figure {
                svg: ranking(document).inline(),
                title: "bytes for a joule".to_owned(),
                caption: "The best first; whiskers are 95 % confidence intervals of each mean alone. Runs of the same seed \
                          are compared in pairs, so that the table tells apart what overlaps here."
                    .to_owned(),
            }],
            ..Section::default()
        });
    }
    sections.extend(pages::left_out("change", &document.left_out));
    let mut facts = vec![("Path".to_owned(), document.path.clone())];
    facts.extend(document.transfers.iter().map(|line| ("Transfer".to_owned(), line.clone())));
    html::render(&Page {
        title: format!("{}: energy", document.name),
        subtitle: format!(
            "{} runs of each change, simulated, all with the same channels",
            document.seeds.len()
        ),
        facts,
        sections,
        assumptions: Vec::new(),
        again: Again {
            commands: vec![document.command.clone()],
            seeds: pages::seeds(&document.seeds),
            version: document.lasthop.clone(),
        },
    })
}

/// The plots as files of their own: name and text.
pub fn pictures(document: &Document) -> Vec<(String, String)> {
    let mut all = vec![("where.svg".to_owned(), where_to(document).svg())];
    if !document.changes.is_empty() {
        all.push(("changes.svg".to_owned(), ranking(document).svg()));
    }
    all
}

/// What draws how much, all hosts in one table.
fn parts(document: &Document) -> Table {
    let mut columns = vec![Column::text("drawn by")];
    for host in &document.hosts {
        columns.push(Column::number(format!("{} (W)", host.host)));
        columns.push(Column::number("%"));
    }
    let count = document.hosts.first().map_or(0, |host| host.parts.len());
    let row = |i: usize| {
        let mut cells = vec![document.hosts[0].parts[i].name.to_owned()];
        for host in &document.hosts {
            let part = &host.parts[i];
            cells.push(lasthop_report::number::summary(&part.power_w));
            cells.push(format!("{:.1}", part.share * 100.0));
        }
        cells
    };
    Table { title: String::new(), columns, rows: (0..count).map(row).collect() }
}

/// Bars of what draws how much, a group for each part that draws anything.
fn where_to(document: &Document) -> Plot {
    let series = |name: &String| BarSeries { name: name.clone(), published: false };
    let count = document.hosts.first().map_or(0, |host| host.parts.len());
    let draws = |i: &usize| document.hosts.iter().any(|host| host.parts[*i].power_w.mean > 0.0);
    let group = |i: usize| BarGroup {
        label: document.hosts[0].parts[i].name.to_owned(),
        bars: document
            .hosts
            .iter()
            .map(|host| &host.parts[i].power_w)
            .map(|power| Some(Bar { value: power.mean, ci: power.ci95 }))
            .collect(),
    };
    BarChart {
        title: format!("{}: where the joules go", document.name),
        y_label: "mean power (W)".to_owned(),
        series: document.hosts.iter().map(|host| series(&host.host)).collect(),
        groups: (0..count).filter(draws).map(group).collect(),
    }
    .plot()
}

/// Bars of the bytes for a joule of each change, the best first.
fn ranking(document: &Document) -> Plot {
    let groups = document.changes.iter().map(|row| {
        let value = &row.standing.value;
        BarGroup {
            label: row.change.name.clone(),
            bars: vec![Some(Bar { value: value.mean / 1e3, ci: value.ci95 / 1e3 })],
        }
    });
    BarChart {
        title: format!("{}: payload for a joule", document.name),
        y_label: "payload for a joule (kB/J)".to_owned(),
        series: vec![BarSeries { name: document.ranked_by.clone(), published: false }],
        groups: groups.collect(),
    }
    .plot()
}
