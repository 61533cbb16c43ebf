//! The output of `lasthop reproduce` on a terminal.

use std::path::Path;

use lasthop_papers::{APART, Claim, works};
use lasthop_report::model::{ClaimResult, Verdict};
use lasthop_report::table::{self, Look};
use lasthop_report::wrap::{self, wrap};

use super::store::StoredClaim;
use crate::failure::Failure;
use crate::{output, style};

/// The default number of columns.
const COLUMNS: usize = 80;

/// First sentence of the verdict's reason.
fn brief(result: &ClaimResult) -> &str {
    result.reason.split(". ").next().unwrap_or_default()
}

/// Prints one claim: a line with a name of `width` columns, or with `verbose` all text of the report.
pub fn claim(claim: &StoredClaim, width: usize, verbose: bool) -> Result<(), Failure> {
    let r = &claim.result;
    let word = format!("{:<9}", r.verdict.word());
    let verdict = match r.verdict {
        Verdict::Holds => style::good(&word),
        Verdict::Fails => style::bad(&word),
        Verdict::Undecided => style::bold(&word),
        Verdict::NotRun => style::dim(&word),
    };
    // Padded before colours are added, which have no width.
    let id = style::heading(&format!("{:<width$}", r.id));
    if verbose {
        return in_full(claim, &format!("{id}  {verdict}  ({})", r.place));
    }
    let columns = match style::look() {
        Look::Terminal(columns) => usize::from(columns),
        Look::Plain => COLUMNS,
    };
    let before = width + 2 + word.len() + 2;
    // If the name leaves little space, the reason is below it.
    let room = if before > columns / 2 { columns.saturating_sub(4) } else { columns - before };
    // "2 of 7: " saves space for the conditions.
    let reason = brief(r).replacen(" conditions fail", "", 1);
    let reason = reason.replacen(" conditions depend on the seeds", "", 1);
    output::print(&format!("{id}  {verdict}  {}\n", cut(&reason, room)))
}

/// The words of `text` that fit into `columns` columns.
fn cut(text: &str, columns: usize) -> String {
    if wrap::columns(text) <= columns {
        return text.to_owned();
    }
    let whole = wrap(text, columns.saturating_sub(2));
    format!("{} …", whole.lines().next().unwrap_or_default())
}

fn in_full(claim: &StoredClaim, heading: &str) -> Result<(), Failure> {
    let look = style::look();
    let mut text = format!("{heading}\n");
    let own = [table::claim_figures(&claim.result), table::claim_conditions(&claim.result)];
    for t in claim.tables.iter().chain(&own) {
        text.push_str(&table::render(t, look));
        text.push('\n');
    }
    text.push_str(&format!("{}\n\n", claim.result.reason));
    output::print(&text)
}

/// All verdicts in a table, with the first sentence of each reason.
pub fn verdicts(done: &[StoredClaim]) -> Result<(), Failure> {
    let results: Vec<ClaimResult> = done
        .iter()
        .map(|claim| ClaimResult {
            reason: brief(&claim.result).to_owned(),
            ..claim.result.clone()
        })
        .collect();
    output::print(&table::render(&table::verdicts(&results), style::look()))
}

/// The open questions of the papers.
pub fn assumptions(chosen: &[&Claim]) -> Result<(), Failure> {
    for paper in works().filter(|p| chosen.iter().any(|c| c.paper == p.key)) {
        let mut text = format!("\nWhat {} leaves open, and what is assumed:\n", paper.key);
        for assumption in paper.assumed() {
            text.push_str(&format!("- {}\n  {}\n", assumption.what, assumption.why));
        }
        output::print(&text)?;
    }
    Ok(())
}

/// Number of claims that hold, separately for the papers and for other works.
pub fn summary(done: &[StoredClaim]) -> Result<(), Failure> {
    let of = |key: &str| done.iter().filter(move |claim| claim.result.paper == key).collect();
    let is_apart =
        |claim: &&StoredClaim| APART.iter().any(|(_, work)| work.key == claim.result.paper);
    let own: Vec<&StoredClaim> = done.iter().filter(|claim| !is_apart(claim)).collect();
    let apart = APART.map(|(name, work)| (format!("claims of {name}"), of(work.key)));
    let mut text = "\n".to_owned();
    for (name, all) in [("claims".to_owned(), own)].into_iter().chain(apart) {
        if all.is_empty() {
            continue;
        }
        let count = |verdict| all.iter().filter(|claim| claim.result.verdict == verdict).count();
        let (holds, fails) = (count(Verdict::Holds), count(Verdict::Fails));
        text += &format!("{name}: {}, holds: {holds}, fails: {fails}", all.len());
        for (verdict, words) in [(Verdict::Undecided, "undecided"), (Verdict::NotRun, "not run")] {
            match count(verdict) {
                0 => {}
                some => text += &format!(", {words}: {some}"),
            }
        }
        text += "\n";
    }
    output::print(&text)
}

/// Prints the location of the report, and the number of claims from earlier runs (`stored`).
pub fn where_else(report: &Path, verbose: bool, stored: usize) -> Result<(), Failure> {
    let mut text = String::new();
    if stored > 0 {
        text += &format!("stored by an earlier run: {stored} (--fresh evaluates them again)\n");
    }
    if !verbose {
        text += "tables, figures and assumptions: in the report, or with --verbose\n";
    }
    output::print(&format!("{text}report: {}\n", report.display()))
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn long_text_is_cut_between_words() {
        assert_eq!(cut("all 6 conditions hold", 21), "all 6 conditions hold");
        assert_eq!(cut("all 6 conditions hold", 20), "all 6 conditions …");
        assert_eq!(cut("überall", 3), "überall …", "no word is cut");
    }
}
