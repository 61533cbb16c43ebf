//! Advice in words.

use lasthop_report::number::{in_mbit, plural, plural_of, short};
use lasthop_scenario::{AS_IS, LeftOut};
use lasthop_study::advise::parts::{self, Part};
use lasthop_study::advise::{
    Advice, Basis, Direction, Fault, Flip, Flips, Link, MAX_LISTED, Remedy, helping, single_changes,
};
use lasthop_study::compare::{PointRanking, Row, theory};
use lasthop_study::ranking::Judgement;
use lasthop_study::tables;

use super::notes::note;
use crate::style;

/// The whole answer for a terminal.
pub fn text(
    advice: &Advice,
    link: &Link,
    faults: &[Fault],
    remedies: &[Remedy],
    saved: Option<&str>,
) -> String {
    let Some(place) = advice.comparison.results.points.first() else { return String::new() };
    let comparison = advice.beside.as_ref().map(parts::model);
    let before = parts::repairs(faults).into_iter().chain(comparison);
    let mut text: String = before.map(|part| shown(&part) + "\n").collect();
    text += &format!("{}\n", style::heading("The link"));
    let mut sources: Vec<&str> = vec![""];
    for fact in &advice.facts {
        let from = match fact.from {
            Basis::Given => String::new(),
            Basis::Estimated => format!("  estimated: {}", fact.how),
            // A source of several values is named once.
            Basis::Assumed if sources.contains(&fact.how.as_str()) => "  assumed".to_owned(),
            Basis::Assumed => format!("  assumed: {}", fact.how),
        };
        sources.push(&fact.how);
        let line = format!("  {:<13} {:<10}{}", fact.what, fact.value, style::dim(&from));
        text += &format!("{}\n", line.trim_end());
    }
    for line in &advice.notes {
        text += &format!("  {}", note(line));
    }
    text += "\n";
    text += &present(advice, place);
    text += &answer(advice, place, !faults.is_empty());
    text += &format!("({}, simulated)\n", runs(advice));
    let waiting = advice.waiting.as_ref().map(|all| parts::waiting(all, advice.threshold));
    text += &waiting.map_or(String::new(), |part| format!("\n{}", shown(&part)));
    text += &sensitivity(advice);
    text += &flips(&advice.flips);
    // Contents of files are not wrapped, so that they can be copied.
    text = style::wrapped(&text);
    if !remedies.is_empty() {
        text += &format!("\n{}\n", style::heading("How to deploy it"));
        for remedy in remedies {
            text += &style::wrapped(&format!("  {}: {}\n", remedy.scheme, remedy.how));
            if let (Some((_, body)), None) = (&remedy.file, saved) {
                text += &body.lines().map(|line| format!("      {line}\n")).collect::<String>();
            }
        }
    }
    let mut end = match saved {
        Some(dir) => format!("\nthe files, the scenario and every number are in {dir}\n"),
        None => "\n-o DIR writes a page to forward, the files and the scenario\n".to_owned(),
    };
    if link.direction == Direction::Upload {
        end += "(the data comes from the lossy side, where no base station is before the losses)\n";
    }
    text + &style::wrapped(&end)
}

/// A part with its heading.
fn shown(part: &Part) -> String {
    let lines: String = part.lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("{}\n{lines}", style::heading(&part.title))
}

/// The whole answer if a fault determines the rate of the transfer.
pub fn repair_first(all: &[Fault], notes: &[String]) -> String {
    let notes: String = notes.iter().map(|line| note(line)).collect();
    let faults = parts::repairs(all).map_or(String::new(), |part| shown(&part));
    style::wrapped(&format!("{faults}\n{notes}{}\n", parts::NOT_SIMULATED))
}

/// The basis of the ranking.
fn runs(advice: &Advice) -> String {
    let document = &advice.comparison;
    tables::runs(document.seeds.len() as u64, document.fewer, "scheme")
}

/// The present rate of the sender.
fn present(advice: &Advice, place: &PointRanking) -> String {
    let Some(row) = place.scheme(AS_IS) else { return String::new() };
    let own = parts::present(advice, place).unwrap_or_default();
    let timeouts = plural_of((row.measured.timeouts.mean * 10.0).round() / 10.0, "timeout");
    format!("{own}; {timeouts} a run. ({})\n", theory(place))
}

fn answer(advice: &Advice, place: &PointRanking, faulty: bool) -> String {
    let percent = short(advice.threshold * 100.0);
    if !advice.anything_helps {
        let (why, rest) = parts::nothing(advice, place, faulty);
        return format!("\n{} {}\n", style::heading(why), rest.join("\n"));
    }
    let mut text = format!("\n{}\n", style::heading("What would help, the best first"));
    let all: Vec<&Row> = helping(place, advice.threshold, advice.there).collect();
    for (i, row) in all.iter().take(MAX_LISTED).enumerate() {
        text += &remedy_text(i, row, &all);
    }
    if all.len() > MAX_LISTED {
        let rest: Vec<&str> = all[MAX_LISTED..].iter().map(|row| row.name()).collect();
        text += &format!("  less, but more than {percent} %: {}\n", rest.join(", "));
    }
    text += &cheapest(&all);
    let is_listed = |row: &Row| all.iter().any(|other| other.name() == row.name());
    let harms = |row: &Row| {
        row.standing.judgement == Judgement::Worse
            && row.standing.ratio.is_none_or(|ratio| ratio.high < 1.0 - advice.threshold)
    };
    let is_as_is = |row: &Row| row.standing.judgement == Judgement::Baseline;
    let (harm, little): (Vec<&Row>, Vec<&Row>) = place
        .schemes
        .iter()
        .filter(|row| !is_listed(row) && !is_as_is(row))
        .partition(|row| harms(row));
    for (heading, rows) in [
        (format!("Less than {percent} % either way, or not with confidence"), little),
        (format!("Would cost more than {percent} %"), harm),
    ] {
        let names: Vec<&str> = rows.iter().map(|row| row.name()).collect();
        if !names.is_empty() {
            text += &format!("{heading}: {}\n", names.join(", "));
        }
    }
    let blind = |left: &&LeftOut| left.reason.contains("--losses damage");
    let blind: Vec<&str> =
        advice.comparison.left_out.iter().filter(blind).map(|left| left.name.as_str()).collect();
    if !blind.is_empty() {
        text += &format!(
            "Not judged, since lost packets vanish here (`--losses damage`): {}\n",
            blind.join(", ")
        );
    }
    text
}

/// The ratio with its interval.
fn times(row: &Row) -> String {
    tables::times(row, row.standing.ratio.as_ref(), 2)
}

fn remedy_text(i: usize, row: &Row, all: &[&Row]) -> String {
    let tied = all.iter().filter(|other| other.standing.rank == row.standing.rank).count() > 1;
    let simulated = match row.alternative.run {
        Some(_) => "",
        None => " (lasthop only simulates it)",
    };
    format!(
        "  {}{} {:<22} {} times, {}. To be changed: {}.\n{:27} {}.{simulated}\n",
        all[..=i]
            .iter()
            .position(|other| other.standing.rank == row.standing.rank)
            .map_or(i, |at| at)
            + 1,
        if tied { "=" } else { " " },
        row.name(),
        times(row),
        in_mbit(row.standing.value.mean),
        row.alternative.deployed(),
        "",
        row.alternative.what,
    )
}

/// The best schemes that need a change by a single party.
fn cheapest(all: &[&Row]) -> String {
    let changes: Vec<String> = single_changes(all).iter().map(|change| change.text()).collect();
    match changes.is_empty() {
        true => String::new(),
        false => format!("If only one thing can be changed: {}\n", changes.join("; ")),
    }
}

/// Assumptions that would reverse the advice.
fn flips(flips: &Flips) -> String {
    if flips.runs == 0 {
        return String::new();
    }
    let mut text =
        format!("\n{}\n", style::heading("Assumptions that would change the first place"));
    for Flip { what, assumed, at, best } in &flips.found {
        let best = match best {
            Some(best) => format!("{best} would be the best"),
            None => "nothing would help".to_owned(),
        };
        let flip = format!("{what} {at}");
        text += &format!("  {flip:<20} {best} (assumed: {assumed})\n");
    }
    if !flips.firm.is_empty() {
        text += &format!("  the first place does not depend on: {}\n", flips.firm.join(", "));
    }
    text + &format!("  from {}\n", plural(flips.runs, "more run"))
}

fn sensitivity(advice: &Advice) -> String {
    if advice.sensitivity.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", style::heading("With other losses, delays and transfers"));
    for variation in &advice.sensitivity {
        let best = match (&variation.best, variation.times) {
            (Some(best), Some(times)) => format!("{best} is the best, {times:.2} times"),
            _ => "nothing helps".to_owned(),
        };
        let stays = match (variation.stays, advice.helps.first(), &variation.best) {
            (true, Some(first), Some(best)) if first != best => {
                format!("; {first} does not differ with confidence")
            }
            (true, ..) => String::new(),
            (false, ..) => "; the advice would change".to_owned(),
        };
        text += &format!("  {:<16} {best}{stays}\n", variation.what);
    }
    text
}
