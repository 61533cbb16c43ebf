//! Common parts of the tables and pages of studies.

use lasthop_observe::stats::Summary;
use lasthop_report::html;
use lasthop_report::model::{Again, Column, Page, Section, Table};
use lasthop_report::number::{plural, summary};
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries, Plot};
use lasthop_scenario::LeftOut;

use crate::ranking::{Judgement, Ratio, Standing};
use crate::{Document, Ranked};

/// The terms of a study in its tables.
pub(crate) struct Words {
    /// An alternative, such as `scheme`.
    pub noun: &'static str,
    /// The heading of the column of descriptions.
    pub description: &'static str,
    /// The unit of values.
    pub unit: &'static str,
    /// That unit, in the unit of the measured figures.
    pub size: f64,
    /// The noun of the judgement.
    pub judgement: &'static str,
    /// Decimals of ratios.
    pub digits: usize,
}

impl Words {
    /// A row for each alternative, the best first; `more` are additional columns, and `cells` returns their content.
    pub fn ranking<M>(
        &self,
        rows: &[Ranked<M>],
        more: Vec<Column>,
        cells: impl Fn(&Ranked<M>) -> Vec<String>,
    ) -> Table {
        let mut columns = vec![
            Column::number("rank"),
            Column::text(self.noun),
            Column::number(self.unit),
            Column::number("times"),
            Column::text(self.judgement),
        ];
        columns.extend(more);
        let tied = |row: &Ranked<M>| {
            let same = rows.iter().filter(|r| r.standing.rank == row.standing.rank);
            if same.count() > 1 { "=" } else { "" }
        };
        let rows = rows.iter().map(|row| {
            let Standing { rank, value, .. } = &row.standing;
            let mut all = vec![
                format!("{rank}{}", tied(row)),
                row.name().to_owned(),
                summary(&value.in_units_of(self.size)),
                times(row, row.standing.ratio.as_ref(), self.digits),
                judged(&row.standing).to_owned(),
            ];
            all.extend(cells(row));
            all
        });
        Table::new(columns, rows)
    }

    /// Description and settings of each alternative.
    pub fn sets<M>(&self, rows: &[Ranked<M>]) -> Table {
        let rows = rows.iter().map(|row| {
            let a = &row.alternative;
            vec![a.name.clone(), a.what.clone(), a.sets.join(" ")]
        });
        Table::new([self.noun, self.description, "what it sets"].map(Column::text), rows)
    }

    /// One bar for each of `rows`; `series` is the name of the bars.
    pub fn bars<'a, M: 'a>(
        &self,
        title: String,
        y_label: &str,
        series: String,
        rows: impl Iterator<Item = &'a Ranked<M>>,
    ) -> Plot {
        let group = |row: &Ranked<M>| BarGroup {
            label: row.name().to_owned(),
            bars: vec![Some(bar(&row.standing.value.in_units_of(self.size)))],
        };
        BarChart {
            title,
            y_label: y_label.to_owned(),
            series: vec![BarSeries { name: series, published: false }],
            groups: rows.map(group).collect(),
        }
        .plot()
    }
}

/// A mean with its interval.
pub(crate) fn bar(value: &Summary) -> Bar {
    Bar { value: value.mean, ci: value.ci95 }
}

/// The ratio of `row` to the baseline, with its interval.
pub fn times<M>(row: &Ranked<M>, ratio: Option<&Ratio>, digits: usize) -> String {
    match ratio {
        _ if row.standing.judgement == Judgement::Baseline => "1".to_owned(),
        None => "–".to_owned(),
        Some(r) if r.low == r.high => format!("{:.digits$}", r.mean),
        // A few runs that differ do not determine the upper limit.
        Some(r) if r.high > 1000.0 => {
            format!("{:.digits$} ({:.digits$} to over 1000)", r.mean, r.low)
        }
        Some(r) => format!("{:.digits$} ({:.digits$} to {:.digits$})", r.mean, r.low, r.high),
    }
}

/// The judgement as text.
fn judged(standing: &Standing) -> &'static str {
    match standing.judgement {
        Judgement::Baseline => "the baseline",
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::Tie if standing.difference.sd == 0.0 && standing.difference.mean == 0.0 => {
            "the same"
        }
        Judgement::Tie => "no difference",
        Judgement::Unknown => "not known",
    }
}

/// Path and transfers, as facts of a page.
pub(crate) fn facts(path: &str, transfers: &[String]) -> Vec<(String, String)> {
    let mut facts = vec![("Path".to_owned(), path.to_owned())];
    facts.extend(transfers.iter().map(|line| ("Transfer".to_owned(), line.clone())));
    facts
}

/// The page of a document; `noun` is the term for an alternative.
pub(crate) fn page<S>(
    document: &Document<S>,
    title: &str,
    noun: &str,
    mut sections: Vec<Section>,
) -> String {
    sections.extend(left_out(noun, &document.left_out));
    let mut facts = facts(&document.path, &document.transfers);
    facts.extend(document.baseline.iter().map(|name| ("Baseline".to_owned(), name.clone())));
    html::render(&Page {
        title: format!("{}: {title}", document.name),
        subtitle: format!(
            "{}, simulated, all with the same channels",
            runs(document.seeds.len() as u64, document.fewer, noun)
        ),
        facts,
        sections,
        assumptions: Vec::new(),
        again: Again {
            commands: vec![document.command.clone()],
            seeds: seeds(document.seeds.iter().copied()),
            version: lasthop_sim::version::LINE.to_owned(),
        },
    })
}

/// The number of runs of each `noun`.
pub fn runs(many: u64, fewer: Option<u32>, noun: &str) -> String {
    match fewer {
        None => format!("{} of each {noun}", plural(many, "run")),
        Some(few) => {
            format!("{} of each {noun}, and {many} of each near the top", plural(few.into(), "run"))
        }
    }
}

/// A section with omitted alternatives and reasons, if any; `heading` is the heading of the names.
fn left_out(heading: &str, all: &[LeftOut]) -> Option<Section> {
    let rows = all.iter().map(|l| vec![l.name.clone(), l.reason.clone()]);
    let table = Table::new([heading, "why"].map(Column::text), rows);
    (!all.is_empty()).then(|| Section {
        title: "Left out".to_owned(),
        tables: vec![table],
        ..Section::default()
    })
}

/// A range of consecutive seeds.
pub(crate) fn seeds(seeds: impl Iterator<Item = u64> + Clone) -> String {
    match (seeds.clone().min(), seeds.max()) {
        (Some(first), Some(last)) if first < last => format!("{first}..{last}"),
        (Some(only), _) => only.to_string(),
        _ => String::new(),
    }
}
