//! The report of all stored claims.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lasthop_papers::{APART, Claim, PAPERS, Paper, all_claims, works};
use lasthop_report::html;
use lasthop_report::model::{Again, Page, Section};

use super::store::{Origin, Store, StoredClaim};
use crate::failure::Failure;
use crate::output;

/// Writes the page and `claims.json`, and returns the path of the page. `now` is the last run.
pub fn write(store: &Store, now: &Origin) -> Result<PathBuf, Failure> {
    let all = store.all();
    let answers: Vec<_> = all.iter().map(|stored| stored.answer(now)).collect();
    output::write(&store.dir.join("claims.json"), output::json(&answers)?.as_bytes())?;
    let file = store.dir.join("report.html");
    output::write(&file, html::render(&page(all, now)).as_bytes())?;
    Ok(file)
}

/// World of the claims' measurements.
fn world(chosen: &[&Claim]) -> String {
    let timed: Vec<&str> =
        chosen.iter().filter(|claim| claim.of_this_machine).map(|claim| claim.id).collect();
    let simulated = "sim: deterministic simulator";
    match timed.len() {
        0 => simulated.to_owned(),
        n if n == chosen.len() => "this machine".to_owned(),
        _ => format!("{simulated}; this machine for {}", timed.join(", ")),
    }
}

/// Arguments that select these claims, with whole papers if possible.
fn words(ids: &BTreeSet<&str>) -> String {
    let is_whole = |paper: &Paper| paper.claims.iter().all(|claim| ids.contains(claim.id));
    let mut words = String::new();
    for paper in works() {
        if is_whole(paper) {
            words += &format!(" {}", paper.key);
            continue;
        }
        let some = paper.claims.iter().filter(|claim| ids.contains(claim.id));
        some.for_each(|claim| words += &format!(" {}", claim.id));
    }
    let all_of_papers = PAPERS.iter().all(is_whole);
    let apart = |(_, work): &(&str, &Paper)| work.claims.iter().any(|c| ids.contains(c.id));
    if all_of_papers && !APART.iter().any(apart) { String::new() } else { words }
}

fn page(all: Vec<StoredClaim>, now: &Origin) -> Page {
    let ids: BTreeSet<&str> = all.iter().map(|stored| stored.result.id.as_str()).collect();
    let chosen: Vec<&Claim> = all_claims().filter(|claim| ids.contains(claim.id)).collect();
    let papers: Vec<_> = works().filter(|p| chosen.iter().any(|c| c.paper == p.key)).collect();
    let title = match papers.as_slice() {
        [one] => format!("{}: published and measured", one.key),
        _ => "Published and measured".to_owned(),
    };
    let seeds: BTreeSet<u32> = all.iter().map(|stored| stored.origin.seeds).collect();
    let seeds: Vec<String> = seeds.iter().map(u32::to_string).collect();
    let block = |stored: &StoredClaim| (stored.origin.first_seed, stored.origin.seeds);
    let blocks: BTreeSet<(u64, u32)> = all.iter().map(block).collect();
    let command = |(first, seeds): (u64, u32)| {
        let those = all.iter().filter(|stored| block(stored) == (first, seeds));
        let ids = those.map(|stored| stored.result.id.as_str()).collect();
        let from = if first == 1 { String::new() } else { format!(" --seed {first}") };
        format!("lasthop reproduce{} --seeds {seeds}{from}", words(&ids))
    };
    let range = |(first, seeds): &(u64, u32)| format!("{first}..{}", first + u64::from(*seeds) - 1);
    Page {
        title,
        subtitle: papers.iter().map(|p| p.title).collect::<Vec<_>>().join("; "),
        facts: vec![
            ("runs per case".to_owned(), seeds.join(", ")),
            ("world".to_owned(), world(&chosen)),
        ],
        assumptions: papers.iter().flat_map(|p| p.assumed()).cloned().collect(),
        again: Again {
            commands: blocks.iter().map(|block| command(*block)).collect(),
            seeds: blocks.iter().map(range).collect::<Vec<_>>().join(", "),
            version: now.lasthop.clone(),
        },
        sections: sections(all, now),
    }
}

/// A section per claim; those of other works come last, under headings.
fn sections(all: Vec<StoredClaim>, now: &Origin) -> Vec<Section> {
    let first = |key: &str| all.iter().position(|stored| stored.result.paper == key);
    let places = APART.map(|(name, work)| (name, work, first(work.key)));
    let section = |stored: StoredClaim| Section {
        text: vec![stored.origin.words(now)],
        claim: Some(stored.result),
        tables: stored.tables,
        figures: stored.figures,
        ..Section::default()
    };
    let mut sections: Vec<Section> = all.into_iter().map(section).collect();
    // From the end, so that no place moves before it is used.
    for (name, work, at) in places.into_iter().rev() {
        let Some(at) = at else { continue };
        let text = vec![format!("{}.", work.title)];
        let mut title = name.to_owned();
        title[..1].make_ascii_uppercase();
        sections.insert(at, Section { title, text, ..Section::default() });
    }
    sections
}
