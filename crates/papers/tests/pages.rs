//! The pages of the papers are those of the last reproduction (`make papers`), and the reproduction is of these claims.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use lasthop_papers::{Bench, Claim, PAPERS, Paper, evaluate, record};
use lasthop_report::model::{ClaimResult, ConditionFigure, MeasuredFigure, Verdict};
use lasthop_report::number::short;
use serde::Deserialize;
use serde_json::Value;

/// Set by `make papers` to answers of `lasthop reproduce --json`, separated by colons. Claims of later ones replace those of
/// the first, with their seeds.
const ANSWER: &str = "LASTHOP_PAPERS";
/// Writes the pages anew instead of comparing them.
const WRITE: &str = "LASTHOP_WRITE_MANUAL";

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn docs(name: &str) -> PathBuf {
    here("../../docs").join(name)
}

/// Numbers with six digits: enough for every page.
fn rounded(value: Value) -> Value {
    match value {
        Value::Number(n) if n.is_f64() => {
            let text = format!("{:.5e}", n.as_f64().unwrap_or(f64::NAN));
            text.parse::<f64>().map_or(Value::Null, Value::from)
        }
        Value::Array(all) => all.into_iter().map(rounded).collect(),
        Value::Object(all) => all.into_iter().map(|(key, value)| (key, rounded(value))).collect(),
        other => other,
    }
}

/// The claims of an answer of `lasthop reproduce --json`.
fn answered(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("readable");
    let mut answer: Value = serde_json::from_str(&text).expect("JSON");
    serde_json::from_value(answer["claims"].take()).expect("claims")
}

/// Makes the record from answers: a line for each claim, and the verdicts for the program.
fn record_answers(files: &str) {
    let mut answers = files.split(':').map(answered);
    let usual = answers.next().expect("an answer");
    let own: Vec<Value> = answers.flatten().collect();
    let (mut lines, mut verdicts) = (Vec::new(), String::new());
    for claim in &usual {
        let own = own.iter().find(|own| own["id"] == claim["id"]);
        let claim = own.unwrap_or(claim);
        let result: ClaimResult = serde_json::from_value(claim.clone()).expect("a claim");
        let (first, seeds) = (&claim["first_seed"], &claim["seeds"]);
        if verdicts.is_empty() {
            let version = claim["lasthop"].as_str().unwrap_or_default();
            let version = version.split_whitespace().next().unwrap_or_default();
            let (first, seeds) = (&usual[0]["first_seed"], &usual[0]["seeds"]);
            let _ = writeln!(
                verdicts,
                "lasthop = \"{version}\"\nseeds = {{ first = {first}, count = {seeds} }}\n\n[claims]"
            );
        }
        let count = |v| result.conditions.iter().filter(|c| c.verdict == v).count();
        let counts = [Verdict::Holds, Verdict::Fails, Verdict::Undecided].map(count);
        let [holds, fails, undecided] = counts;
        let (id, verdict) = (&result.id, result.verdict.word());
        let own_seeds = format!(", seeds = {{ first = {first}, count = {seeds} }}");
        let own_seeds = own.map_or("", |_| own_seeds.as_str());
        let _ = writeln!(
            verdicts,
            "\"{id}\" = {{ verdict = \"{verdict}\", conditions = [{holds}, {fails}, {undecided}]{own_seeds} }}"
        );
        lines.push(rounded(serde_json::to_value(&result).expect("JSON")).to_string());
    }
    fs::write(here("tests/record.json"), format!("[\n{}\n]\n", lines.join(",\n")))
        .expect("written");
    fs::write(here("src/record.toml"), verdicts).expect("written");
}

fn results() -> Vec<ClaimResult> {
    let text = fs::read_to_string(here("tests/record.json")).expect("make papers");
    serde_json::from_str(&text).expect("a record")
}

/// The section that a place begins with, for the order of the paper.
fn section(place: &str) -> Vec<u32> {
    let number = place.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    number.split('.').filter_map(|part| part.parse().ok()).filter(|part| *part > 0).collect()
}

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

/// The number of conditions that hold.
fn holding(result: &ClaimResult) -> usize {
    result.conditions.iter().filter(|c| c.verdict == Verdict::Holds).count()
}

/// A table with a heading, unless it has no rows.
fn section_of(heading: &str, columns: &str, rows: String) -> String {
    let rule = "---|".repeat(columns.matches('|').count() - 1);
    match rows.is_empty() {
        true => String::new(),
        false => format!("## {heading}\n\n{columns}\n|{rule}\n{rows}\n"),
    }
}

/// The published result of a claim; if it has 12 values or more, their number only.
fn published_briefly(claim: &Claim, result: &ClaimResult) -> String {
    let given = result.measured.iter().filter(|m| m.published.is_some()).count();
    if given < 12 {
        cell(&claim.text().published)
    } else {
        format!("{given} values, listed under Figures")
    }
}

/// The claim in the first column, in the first of its rows only.
fn first_only(row: usize, id: &str) -> &str {
    if row == 0 { id } else { "" }
}

/// Figures with a published value.
fn published(result: &ClaimResult) -> String {
    let given = result.measured.iter().filter_map(|m| Some((m, m.published?)));
    let row = |(row, (m, given)): (usize, (&MeasuredFigure, f64))| {
        let measured = m.mean.to_string();
        let (label, unit) = (cell(&m.label), cell(&m.unit));
        let id = first_only(row, &result.id);
        let row = format!("| {id} | {label} | {} | {measured} {unit}", short(given));
        format!("{} |\n", row.trim_end())
    };
    given.enumerate().map(row).collect()
}

/// Conditions that do not hold.
fn broken(result: &ClaimResult) -> String {
    let broken = result.conditions.iter().filter(|c| c.verdict != Verdict::Holds);
    let row = |(row, c): (usize, &ConditionFigure)| {
        let (measured, wanted) = match c.wanted.as_str() {
            "true" => (String::new(), String::new()),
            wanted => (c.measured.to_string(), wanted.to_owned()),
        };
        let (what, verdict) = (cell(&c.what), c.verdict.word());
        format!(
            "| {} | {what} | {wanted} | {measured} | {verdict} |\n",
            first_only(row, &result.id)
        )
    };
    broken.enumerate().map(row).collect()
}

/// Why a claim fails, in `failures.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    kind: String,
    text: String,
}

const KINDS: [&str; 3] = ["the paper contradicts itself", "unknown set-up", "our model"];

/// Reasons by claim.
fn failures() -> BTreeMap<String, Failure> {
    let text = fs::read_to_string(here("tests/failures.toml")).expect("readable");
    toml::from_str(&text).unwrap_or_else(|error| panic!("tests/failures.toml: {error}"))
}

/// Explanation of a verdict that is not `holds`: of a failing claim whether it is about the paper, the set-up or our model,
/// of an undecided one the notes of its experiment.
fn explained(result: &ClaimResult) -> String {
    let text = match result.verdict {
        Verdict::Holds => return String::new(),
        Verdict::Fails => {
            let failures = failures();
            let Some(why) = failures.get(&result.id) else { return String::new() };
            format!("{}: {}", why.kind, why.text)
        }
        Verdict::Undecided | Verdict::NotRun => {
            let notes = result.notes.iter().map(|note| note.trim_end_matches('.'));
            notes.collect::<Vec<_>>().join(". ")
        }
    };
    match text.trim_end_matches('.') {
        "" => String::new(),
        text => format!("- **{}**: {}.\n", result.id, cell(text)),
    }
}

/// The results of a paper's claims, in the order of the paper.
fn of_paper<'a>(
    paper: &Paper,
    results: &'a [ClaimResult],
) -> Vec<(&'static Claim, &'a ClaimResult)> {
    let find = |claim: &'static Claim| Some((claim, results.iter().find(|r| r.id == claim.id)?));
    let mut all: Vec<_> = paper.claims.iter().filter_map(find).collect();
    all.sort_by_key(|(claim, _)| section(&claim.text().place));
    all
}

fn page(paper: &Paper, results: &[ClaimResult]) -> String {
    let all = of_paper(paper, results);
    let (record, key) = (record(), paper.key);
    let mut text = format!(
        "# {key}, figure by figure\n\nFor researchers: what {key} publishes, in its order, and what lasthop measures \
         next to it.\n\n<!-- generated: make papers -->\n\n{}.\n\n",
        paper.title
    );
    let _ = writeln!(
        text,
        "Figures are of version {} with {}{}. `lasthop reproduce CLAIM --verbose` prints setup, conditions and \
         notes.\n[What was reproduced](../../explanation/reproduction.md) explains verdicts.\n",
        record.lasthop,
        record.seeds,
        with_own_seeds(&all.iter().map(|(claim, _)| claim.id).collect::<Vec<_>>())
    );
    text += "| claim | place | published | verdict |\n|---|---|---|---|\n";
    for (claim, result) in &all {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} ({} of {}) |",
            claim.id,
            cell(&claim.text().place),
            published_briefly(claim, result),
            result.verdict.word(),
            holding(result),
            result.conditions.len()
        );
    }
    text.push('\n');
    let each =
        |rows: fn(&ClaimResult) -> String| all.iter().map(|(_, result)| rows(result)).collect();
    text += &section_of("Figures", "| claim | figure | published | measured |", each(published));
    text += &section_of(
        "Conditions that do not hold",
        "| claim | condition | wanted | measured | verdict |",
        each(broken),
    );
    let notes: String = each(explained);
    if !notes.is_empty() {
        text += &format!("{notes}\n");
    }
    text + END
}

/// The rest of a page is written by hand.
const END: &str = "<!-- end -->\n";

/// The page with the hand-written rest of the present one.
fn with_rest(generated: &str, present: &str) -> String {
    let rest = present.split_once(END).map_or("", |(_, rest)| rest);
    format!("{generated}{rest}")
}

/// Those of `claims` that were evaluated with seeds of their own.
fn with_own_seeds(claims: &[&str]) -> String {
    let record = record();
    let own: Vec<&str> =
        claims.iter().filter(|id| record.own_seeds(&[**id]).is_some()).copied().collect();
    match record.own_seeds(claims) {
        Some(seeds) => format!(", those of {} with {seeds}", own.join(", ")),
        None => String::new(),
    }
}

/// Verdicts by paper.
fn verdicts(results: &[ClaimResult]) -> String {
    let mut text = "| paper | claims | hold | undecided | fail | conditions that hold |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for paper in &PAPERS {
        let all = of_paper(paper, results);
        let ids = |verdict| {
            let of = all.iter().filter(|(_, r)| r.verdict == verdict).map(|(c, _)| c.id);
            let ids: Vec<&str> = of.collect();
            if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
        };
        let holds = all.iter().filter(|(_, r)| r.verdict == Verdict::Holds).count();
        let conditions: usize = all.iter().map(|(_, r)| r.conditions.len()).sum();
        let held: usize = all.iter().map(|(_, r)| holding(r)).sum();
        let (key, n) = (paper.key, all.len());
        let (undecided, fails) = (ids(Verdict::Undecided), ids(Verdict::Fails));
        let _ = writeln!(
            text,
            "| [{key}](../reference/papers/{key}.md) | {n} | {holds} | {undecided} | {fails} | {held} of {conditions} |"
        );
    }
    text
}

/// `text` with the content of the record between its marks.
fn filled(text: &str, results: &[ClaimResult]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!-- papers: ") {
        let (words, body) = after.split_once(" -->\n").expect("a whole mark");
        let (_, after) = body.split_once("<!-- end -->").expect("a mark ends");
        let record = record();
        let table = match words {
            "verdicts" => verdicts(results),
            "version" => {
                format!("Figures are of version {} with {}.\n", record.lasthop, record.seeds)
            }
            other => panic!("`{other}` is no part of the record"),
        };
        let _ = write!(out, "{before}<!-- papers: {words} -->\n{table}<!-- end -->");
        rest = after;
    }
    out + rest
}

#[test]
fn the_pages_of_the_papers_are_current() {
    if let Ok(answer) = env::var(ANSWER) {
        record_answers(&answer);
        // The record is part of the program: the next run of this test writes the pages.
        return;
    }
    let results = results();
    let of_paper = |paper: &Paper| {
        let file = docs(&format!("reference/papers/{}.md", paper.key));
        let present = fs::read_to_string(&file).expect("the page is there");
        (file, with_rest(&page(paper, &results), &present))
    };
    let mut files: Vec<(PathBuf, String)> = PAPERS.iter().map(of_paper).collect();
    let file = docs("explanation/reproduction.md");
    let text = fs::read_to_string(&file).expect("the page is there");
    files.push((file, filled(&text, &results)));
    for (file, text) in files {
        if env::var_os(WRITE).is_some() {
            fs::write(&file, text).expect("written");
        } else {
            let found = fs::read_to_string(&file).unwrap_or_default();
            assert!(found == text, "{} is stale: make papers", file.display());
        }
    }
}

/// Each failing claim has a reason.
#[test]
fn failing_claims_are_explained() {
    let failures = failures();
    for result in results().iter().filter(|result| result.verdict == Verdict::Fails) {
        let id = &result.id;
        let failure = failures.get(id).unwrap_or_else(|| panic!("failures.toml has no {id}"));
        assert!(KINDS.contains(&failure.kind.as_str()), "failures.toml, {id}: `{}`", failure.kind);
    }
}

/// Fast deterministic claims reproduce the record.
#[test]
fn the_record_is_of_these_experiments() {
    if env::var_os(ANSWER).is_some() {
        return;
    }
    let results = results();
    let mut bench = Bench::new(20, &());
    for id in ["W-F9", "W-WINDOWS", "W-ACKP-SCENARIOS", "T-F6", "B-F3"] {
        let claim = lasthop_papers::claims().find(|claim| claim.id == id).expect("a claim");
        let now = evaluate(claim, &mut bench).expect("not stopped").result;
        let recorded = results.iter().find(|r| r.id == id).expect("recorded");
        assert_eq!(now.conditions.len(), recorded.conditions.len(), "{id}: make papers");
        for (now, recorded) in now.conditions.iter().zip(&recorded.conditions) {
            assert_eq!(now.what, recorded.what, "{id}: make papers");
            let [value, recorded] = [now, recorded].map(|condition| condition.measured.value);
            let far = (value - recorded).abs() > 1e-5 * recorded.abs().max(1e-9);
            assert!(!far, "{id}, {}: {value} is not {recorded}", now.what);
        }
    }
}
