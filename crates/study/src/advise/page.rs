//! Advice as one page that its reader can forward.

use lasthop_report::html;
use lasthop_report::model::{Again, Column, Page, Section, Table};
use lasthop_report::number::in_mbit;

use super::parts::{self, Part};
use super::{Advice, Basis, Fact, Fault, Flip, Remedy, helping};
use crate::compare::{self, PointRanking, Row};
use crate::tables;

/// The best change of one party alone.
#[derive(Clone, Copy, Debug)]
pub struct SingleChange<'a> {
    pub party: &'a str,
    /// The best scheme.
    pub best: &'a Row,
    /// The best one that can be deployed, if it is another one.
    pub deployable: Option<&'a Row>,
}

impl SingleChange<'_> {
    /// The change in words.
    pub fn text(&self) -> String {
        let named = |row: &Row| {
            let times = row.standing.ratio.map_or(1.0, |ratio| ratio.mean);
            format!("{} ({times:.2} times)", row.name())
        };
        let Self { party, best, deployable } = self;
        match (best.alternative.run.is_some(), deployable) {
            (true, _) => format!("{party}: {}", named(best)),
            (false, Some(other)) => {
                format!(
                    "{party}: {}, or {}, which lasthop only simulates",
                    named(other),
                    named(best)
                )
            }
            (false, None) => format!("{party}: {}, which lasthop only simulates", named(best)),
        }
    }
}

/// The best change of each party alone, among the schemes that help; none if only one party has one.
pub fn single_changes<'a>(all: &[&'a Row]) -> Vec<SingleChange<'a>> {
    let mut changes: Vec<SingleChange<'a>> = Vec::new();
    for row in all.iter().copied() {
        let Some([party]) = row.alternative.change.as_deref() else { continue };
        match changes.iter_mut().find(|change| change.party == party) {
            None => changes.push(SingleChange { party, best: row, deployable: None }),
            Some(change)
                if change.best.alternative.run.is_none() && row.alternative.run.is_some() =>
            {
                change.deployable = change.deployable.or(Some(row));
            }
            Some(_) => {}
        }
    }
    if changes.len() < 2 { Vec::new() } else { changes }
}

/// The page: the faults of the capture, the advice, its assumptions, the deployment, and the ranking of all schemes.
pub fn page(advice: &Advice, faults: &[Fault], remedies: &[Remedy]) -> String {
    let comparison = advice.beside.as_ref().map(parts::model);
    let before = parts::repairs(faults).into_iter().chain(comparison);
    let mut sections: Vec<Section> = before.map(section).collect();
    if let Some(place) = advice.comparison.results.points.first() {
        sections.push(answer(advice, place, !faults.is_empty()));
    }
    sections.extend(deployment(remedies));
    sections.push(link(advice));
    sections
        .extend(advice.waiting.as_ref().map(|it| section(parts::waiting(it, advice.threshold))));
    sections.extend(sensitivity(advice));
    sections.extend(flips(advice));
    sections.extend(compare::sections(&advice.comparison));
    tables::page(&advice.comparison, "what would help on this link", "scheme", sections)
}

/// The page if a fault determines the rate of the transfer.
pub fn page_of_faults(faults: &[Fault], notes: &[String], command: &str) -> String {
    let mut sections: Vec<Section> = parts::repairs(faults).map(section).into_iter().collect();
    let rest = [notes, &[parts::NOT_SIMULATED.to_owned()]].concat();
    sections.push(Section { title: "The link".to_owned(), text: rest, ..Section::default() });
    html::render(&Page {
        title: "advise: what would help on this link".to_owned(),
        sections,
        again: Again {
            commands: vec![command.to_owned()],
            version: lasthop_sim::version::LINE.to_owned(),
            ..Again::default()
        },
        ..Page::default()
    })
}

fn section(Part { title, lines }: Part) -> Section {
    Section { title, text: lines, ..Section::default() }
}

fn answer(advice: &Advice, place: &PointRanking, faulty: bool) -> Section {
    let own = parts::present(advice, place).map(|own| own + ".");
    let mut text: Vec<String> = own.into_iter().collect();
    let all: Vec<&Row> = helping(place, advice.threshold, advice.there).collect();
    let title = if all.is_empty() {
        let (why, rest) = parts::nothing(advice, place, faulty);
        text.extend(rest);
        why.trim_end_matches('.')
    } else {
        "What would help, the best first"
    };
    let single: Vec<String> = single_changes(&all).iter().map(SingleChange::text).collect();
    if !single.is_empty() {
        text.push(format!("If only one thing can be changed: {}.", single.join("; ")));
    }
    let rows = all.iter().map(|row| {
        let deployment = row.alternative.run.as_deref().unwrap_or("only simulated");
        vec![
            row.name().to_owned(),
            tables::times(*row, row.standing.ratio.as_ref(), 2),
            in_mbit(row.standing.value.mean),
            row.alternative.deployed(),
            deployment.to_owned(),
            row.alternative.what.to_owned(),
        ]
    });
    let columns = Column::list(
        "<scheme | times the throughput | throughput | <to be changed | <deployed by | <what it does",
    );
    let tables = if all.is_empty() { Vec::new() } else { vec![Table::new(columns, rows)] };
    Section { title: title.to_owned(), text, tables, ..Section::default() }
}

fn deployment(remedies: &[Remedy]) -> Option<Section> {
    let text = remedies.iter().map(|remedy| format!("{}: {}", remedy.scheme, remedy.how)).collect();
    let section = Section { title: "How to deploy it".to_owned(), text, ..Section::default() };
    (!remedies.is_empty()).then_some(section)
}

fn link(advice: &Advice) -> Section {
    let source = |fact: &Fact| match (fact.from, fact.how.as_str()) {
        (Basis::Given, _) => "given".to_owned(),
        (Basis::Assumed, "") => "assumed".to_owned(),
        (Basis::Assumed, how) => format!("assumed: {how}"),
        (Basis::Estimated, how) => format!("estimated: {how}"),
    };
    let rows = advice.facts.iter().map(|f| vec![f.what.to_owned(), f.value.clone(), source(f)]);
    let columns = ["option", "value", "source"].map(Column::text);
    Section {
        title: "The link, and what is assumed".to_owned(),
        text: advice.notes.clone(),
        tables: vec![Table::new(columns.to_vec(), rows)],
        ..Section::default()
    }
}

fn sensitivity(advice: &Advice) -> Option<Section> {
    let rows = advice.sensitivity.iter().map(|variation| {
        let best = variation.best.clone().unwrap_or_else(|| "nothing helps".to_owned());
        let times = variation.times.map_or("–".to_owned(), |times| format!("{times:.2}"));
        let stays = if variation.stays { "stays" } else { "changes" };
        vec![variation.what.clone(), best, times, stays.to_owned()]
    });
    let columns =
        ["with", "the best", "times the throughput", "the advice"].map(Column::text).to_vec();
    let section = Section {
        title: "With other losses, delays and transfers".to_owned(),
        tables: vec![Table::new(columns, rows)],
        ..Section::default()
    };
    (!advice.sensitivity.is_empty()).then_some(section)
}

fn flips(advice: &Advice) -> Option<Section> {
    let rows = advice.flips.found.iter().map(|flip| {
        let Flip { what, assumed, at, best } = flip;
        let best = best.clone().unwrap_or_else(|| "nothing would help".to_owned());
        vec![(*what).to_owned(), assumed.clone(), at.clone(), best]
    });
    let columns =
        ["assumption", "assumed", "changes at", "the best there"].map(Column::text).to_vec();
    let firm = advice.flips.firm.join(", ");
    let text = match firm.as_str() {
        "" => Vec::new(),
        firm => vec![format!("The first place does not depend on: {firm}.")],
    };
    let tables = match advice.flips.found.is_empty() {
        true => Vec::new(),
        false => vec![Table::new(columns, rows)],
    };
    let title = "Assumptions that would change the first place".to_owned();
    let section = Section { title, text, tables, ..Section::default() };
    (advice.flips.runs > 0).then_some(section)
}
