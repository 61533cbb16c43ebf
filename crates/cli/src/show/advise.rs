//! Advice in words.

use lasthop_analyze::Diagnosis;
use lasthop_report::number::{KIB, Units, plural, plural_of, short};
use lasthop_scenario::{AS_IS, LeftOut};
use lasthop_study::advise::{
    Advice, Basis, Direction, Elsewhere, Fault, Flip, Flips, Link, MAX_LISTED, ModelComparison,
    Remedy, Shorter, Waiting, helping, single_changes,
};
use lasthop_study::capture::congestion::Recognition;
use lasthop_study::compare::{PointRanking, Row, theory};
use lasthop_study::ranking::Judgement;
use lasthop_study::tables;

use super::notes::note;
use crate::style;

/// Minimum share of the link's capacity that needs no remedy.
const COPES: f64 = 0.8;

/// The whole answer for a terminal.
pub fn text(
    advice: &Advice,
    link: &Link,
    faults: &[Fault],
    remedies: &[Remedy],
    saved: Option<&str>,
    units: Units,
) -> String {
    let Some(place) = advice.comparison.results.points.first() else { return String::new() };
    let mut text = repairs(faults);
    text += &advice.beside.as_ref().map_or(String::new(), |all| model_comparison(all, units));
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
    text += &present(advice, place, units);
    text += &answer(advice, place, !faults.is_empty(), units);
    text += &format!("({}, simulated)\n", runs(advice));
    text += &advice.waiting.as_ref().map_or(String::new(), |all| waiting(all, advice.threshold));
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

/// Faults in the capture with their remedies.
fn repairs(faults: &[Fault]) -> String {
    if faults.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", style::heading("What the capture shows, to be repaired first"));
    for Fault { transfer, diagnosis, .. } in faults {
        let of = transfer.as_ref().map_or(String::new(), |title| format!("{title}: "));
        let Diagnosis { confidence, evidence, remedy, .. } = diagnosis;
        text += &format!("  {of}{evidence} ({confidence})\n      remedy: {remedy}\n");
    }
    text + "\n"
}

/// The whole answer if a fault determines the rate of the transfer.
pub fn repair_first(all: &[Fault], notes: &[String]) -> String {
    let notes: String = notes.iter().map(|line| note(line)).collect();
    let end = "No scheme is simulated: the rate of this transfer is the fault's, not the link's. Capture again after the \
        repair, or state the link, `--rate 20mbit`.\n";
    style::wrapped(&format!("{}{notes}{end}", repairs(all)))
}

/// The model compared with the capture, with reasons for differences.
fn model_comparison(comparison: &ModelComparison, units: Units) -> String {
    let mut text = String::new();
    if !comparison.agrees {
        let percent = (comparison.ratio - 1.0).abs() * 100.0;
        let more = if comparison.ratio > 1.0 { "more" } else { "less" };
        text += &note(&format!(
            "the model has {percent:.0} % {more} throughput than the capture: the results below are the model's"
        ));
        text.extend(comparison.why.iter().map(|why| format!("  {why}\n")));
        if comparison.why.is_empty() {
            text += "  no tested change of the model explains the difference\n";
        }
        text += "\n";
    }
    text += &format!("{}\n", style::heading("The capture and the model"));
    let Recognition { control, confidence, evidence, .. } = &comparison.likeness;
    text += &match control {
        Some(control) => {
            let sure = (confidence * 100.0).min(99.0);
            format!("  the sender looks like {}, {sure:.0} % sure: {evidence}\n", control.name())
        }
        None => {
            format!(
                "  the capture does not show the congestion control of the sender: {evidence}\n"
            )
        }
    };
    for (source, figures) in
        [("captured", &comparison.captured), ("modelled", &comparison.modelled)]
    {
        text += &format!(
            "  {source}  {}, {:.2} % lost, round trip {:.0} ms, {:.0} KiB in flight\n",
            units.rate(figures.throughput),
            figures.loss * 100.0,
            figures.rtt * 1e3,
            figures.window / KIB
        );
    }
    text + "\n"
}

/// The basis of the ranking.
fn runs(advice: &Advice) -> String {
    let document = &advice.comparison;
    tables::runs(document.seeds.len() as u64, document.fewer, "scheme")
}

/// The present rate of the sender.
fn present(advice: &Advice, place: &PointRanking, units: Units) -> String {
    let Some(row) = place.scheme(AS_IS) else { return String::new() };
    let rate = units.rate(row.standing.value.mean);
    let share = advice.share_of_capacity.map_or(String::new(), |share| {
        format!(", {:.0} % of the link's capacity with these losses", 100.0 * share)
    });
    format!(
        "The sender as it is gets {rate}{share}; {} a run. ({})\n",
        plural_of((row.measured.timeouts.mean * 10.0).round() / 10.0, "timeout"),
        theory(place, units)
    )
}

fn answer(advice: &Advice, place: &PointRanking, faulty: bool, units: Units) -> String {
    let percent = short(advice.threshold * 100.0);
    if !advice.anything_helps {
        return nothing(advice, place, faulty, &percent);
    }
    let mut text = format!("\n{}\n", style::heading("What would help, the best first"));
    let all: Vec<&Row> = helping(place, advice.threshold, advice.there).collect();
    for (i, row) in all.iter().take(MAX_LISTED).enumerate() {
        text += &remedy_text(i, row, &all, units);
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

/// Queueing delay and its remedies.
fn waiting(all: &Waiting, threshold: f64) -> String {
    let &Waiting { delay, empty, ref shorter, ref elsewhere } = all;
    let mut text = format!(
        "\n{}\n  data takes {} ms from end to end at the median, {} ms of it in queues; other traffic in these \
         queues waits as long\n",
        style::heading("The queue"),
        short((delay * 1e3).round()),
        short(((delay - empty) * 1e3).round()),
    );
    if shorter.is_empty() {
        text += "  no tested scheme halves this delay without a loss of throughput\n";
    }
    for Shorter { name, delay, times } in shorter {
        text += &format!(
            "  {name:<22} {} ms, {times:.2} times the throughput\n",
            short((delay * 1e3).round())
        );
    }
    for Elsewhere { name, link, requests, times } in elsewhere {
        let requests = requests.as_ref().map_or(String::new(), |period| {
            format!(", where a device may request a grant every {period}")
        });
        text += &format!(
            "  {name:<22} not here: {times:.2} times the throughput on the same link as `--link {link}`{requests}\n"
        );
    }
    if !shorter.is_empty() {
        let percent = short(threshold * 100.0);
        text += &format!(
            "  (schemes that at least halve the waiting time, and cost at most {percent} % of the throughput)\n"
        );
    }
    text
}

/// Reason for no advice: the sender is fast enough, the runs are too few, or no scheme fits.
fn nothing(advice: &Advice, place: &PointRanking, faulty: bool, percent: &str) -> String {
    let mut others = place.schemes.iter().filter(|row| row.name() != AS_IS);
    let best = others.find(|row| row.standing.ratio.is_some());
    let may_help = best
        .and_then(|row| row.standing.ratio)
        .is_some_and(|ratio| ratio.mean > 1.0 + advice.threshold);
    let heading = match advice.share_of_capacity {
        _ if faulty => "Nothing beyond the repair above.",
        _ if may_help => "Nothing for certain.",
        _ if advice.beside.as_ref().is_some_and(|it| !it.agrees) => {
            "Nothing in the model, which differs from the capture: see its explanations above."
        }
        Some(share) if share < COPES => "Nothing: no scheme addresses the limit of this sender.",
        _ => "Nothing: your sender already copes.",
    };
    let mut text = format!(
        "\n{} No scheme gains more than {percent} % with confidence.\n",
        style::heading(heading)
    );
    if let Some(best) = best {
        let more = if may_help { " More runs may decide: `--seeds 100`." } else { "" };
        text += &format!(
            "The best of the others, {}, would have {} times the throughput.{more}\n",
            best.name(),
            times(best)
        );
    }
    text
}

/// The ratio with its interval.
fn times(row: &Row) -> String {
    tables::times(row, row.standing.ratio.as_ref(), 2)
}

fn remedy_text(i: usize, row: &Row, all: &[&Row], units: Units) -> String {
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
        units.rate(row.standing.value.mean),
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
