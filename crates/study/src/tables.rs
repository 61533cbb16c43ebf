//! What the tables and pages of studies have in common.

use lasthop_report::html;
use lasthop_report::model::{Again, Column, Figure, Page, Section, Table};
use lasthop_report::number::{plural, summary};
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries, Plot};
use lasthop_scenario::LeftOut;
use lasthop_trace::stats::Summary;

use crate::ranking::{Judgement, Ratio, Standing};
use crate::{Document, Ranked};

/// How alternatives and what they are ranked by are called in a table.
pub(crate) struct Words {
    /// An alternative: `scheme`.
    pub noun: &'static str,
    /// What it is: the heading of a column.
    pub what: &'static str,
    /// The unit that values are shown in.
    pub unit: &'static str,
    /// That unit, in the unit of what was measured.
    pub size: f64,
    /// What the judgement is about.
    pub beside: &'static str,
    /// Digits of ratios behind the point.
    pub digits: usize,
}

impl Words {
    /// A row for each alternative, the best first; `more` are columns behind those of every ranking, and `cells` what
    /// stands in them.
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
            Column::text(self.beside),
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

    /// What each alternative is and sets.
    pub fn sets<M>(&self, rows: &[Ranked<M>]) -> Table {
        let rows = rows.iter().map(|row| {
            let a = &row.alternative;
            vec![a.name.clone(), a.what.clone(), a.sets.join(" ")]
        });
        Table::new([self.noun, self.what, "what it sets"].map(Column::text), rows)
    }

    /// One bar for each of `rows`; `title` says of what, `series` what a bar stands for.
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

/// A ratio of `row` to the baseline, with its interval.
pub fn times<M>(row: &Ranked<M>, ratio: Option<&Ratio>, digits: usize) -> String {
    match ratio {
        _ if row.standing.judgement == Judgement::Baseline => "1".to_owned(),
        None => "–".to_owned(),
        Some(r) if r.low == r.high => format!("{:.digits$}", r.mean),
        Some(r) => format!("{:.digits$} ({:.digits$} to {:.digits$})", r.mean, r.low, r.high),
    }
}

/// The judgement in words.
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

/// A plot with what it shows and how to read it.
pub(crate) fn figure(plot: &Plot, title: impl Into<String>, caption: impl Into<String>) -> Figure {
    Figure::new(plot, title, caption)
}

/// Path and transfers, as facts of a page.
pub(crate) fn facts(path: &str, transfers: &[String]) -> Vec<(String, String)> {
    let mut facts = vec![("Path".to_owned(), path.to_owned())];
    facts.extend(transfers.iter().map(|line| ("Transfer".to_owned(), line.clone())));
    facts
}

/// The page about a document; `noun` is what an alternative is called.
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
            version: lasthop_version::LINE.to_owned(),
        },
    })
}

/// How many runs each `noun` has.
pub fn runs(many: u64, fewer: Option<u32>, noun: &str) -> String {
    match fewer {
        None => format!("{} of each {noun}", plural(many, "run")),
        Some(few) => {
            format!("{} of each {noun}, and {many} of each near the top", plural(few.into(), "run"))
        }
    }
}

/// What was left out and why, if anything was; `what` heads the names.
fn left_out(what: &str, all: &[LeftOut]) -> Option<Section> {
    let rows = all.iter().map(|l| vec![l.name.clone(), l.reason.clone()]);
    let table = Table::new([what, "why"].map(Column::text), rows);
    (!all.is_empty()).then(|| Section {
        title: "Left out".to_owned(),
        tables: vec![table],
        ..Section::default()
    })
}

/// The seeds of runs, which follow one another.
pub(crate) fn seeds(seeds: impl Iterator<Item = u64> + Clone) -> String {
    match (seeds.clone().min(), seeds.max()) {
        (Some(first), Some(last)) if first < last => format!("{first}..{last}"),
        (Some(only), _) => only.to_string(),
        _ => String::new(),
    }
}
