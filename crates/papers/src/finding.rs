//! What an experiment found: figures, and the conditions under which the claim holds.

use core::fmt::Display;

use lasthop_report::model::{Figure, Measured, Table, Verdict};
use lasthop_trace::stats::Summary;

/// What an experiment found.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Measured figures.
    pub measured: Vec<Measured>,
    /// Runs behind each mean.
    pub runs: u32,
    /// Conditions, each with whether it holds.
    pub conditions: Vec<(bool, String)>,
    /// What else a reader should know: why a condition fails, or the answer to an open question.
    pub notes: Vec<String>,
    /// For the report.
    pub tables: Vec<Table>,
    /// For the report.
    pub figures: Vec<Figure>,
}

impl Finding {
    /// A finding over `runs` runs.
    pub fn new(runs: u32) -> Finding {
        Finding { runs, ..Finding::default() }
    }

    /// The claim holds only if `holds`.
    pub fn require(&mut self, holds: bool, what: impl Into<String>) {
        self.conditions.push((holds, what.into()));
    }

    /// The claim holds only if `value` lies between `low` and `high`, both included.
    pub fn within(&mut self, what: impl Display, value: f64, low: f64, high: f64) {
        let holds = (low..=high).contains(&value);
        let (low, high) = (short(low), short(high));
        self.require(holds, format!("{what} is {}, wanted {low} to {high}", short(value)));
    }

    /// The claim holds only if `value` lies within `share` of what was published, up or down.
    pub fn near(&mut self, what: impl Display, value: f64, published: f64, share: f64) {
        self.within(what, value, (1.0 - share) * published, (1.0 + share) * published);
    }

    /// The claim holds only if `value` is below `high`.
    pub fn below(&mut self, what: impl Display, value: f64, high: f64) {
        let text = format!("{what} is {}, wanted below {}", short(value), short(high));
        self.require(value < high, text);
    }

    /// The claim holds only if `value` is above `low`.
    pub fn above(&mut self, what: impl Display, value: f64, low: f64) {
        let text = format!("{what} is {}, wanted above {}", short(value), short(low));
        self.require(value > low, text);
    }

    /// A figure that was measured.
    pub fn measure(&mut self, label: impl Into<String>, value: impl Value, unit: &str) {
        self.compare(label, value, unit, None::<f64>);
    }

    /// A figure that was measured, beside the published one, if there is one.
    pub fn compare(
        &mut self,
        label: impl Into<String>,
        value: impl Value,
        unit: &str,
        published: impl Into<Option<f64>>,
    ) {
        let (mean, ci) = value.mean_and_ci();
        let (label, unit, published) = (label.into(), unit.to_owned(), published.into());
        self.measured.push(Measured { label, mean, ci, unit, published });
    }

    /// Something else to be known.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// All conditions together; without any the claim was not put to the test.
    pub fn verdict(&self) -> Verdict {
        match self.conditions.iter().all(|(holds, _)| *holds) {
            _ if self.conditions.is_empty() => Verdict::NotRun,
            true => Verdict::Holds,
            false => Verdict::Fails,
        }
    }

    /// What decided the verdict, then the notes.
    pub fn reason(&self) -> String {
        let failed: Vec<&str> =
            self.conditions.iter().filter(|(holds, _)| !holds).map(|(_, t)| t.as_str()).collect();
        let head = match (failed.len(), self.conditions.len()) {
            (0, 0) => return self.notes.join(". "),
            (0, 1) => "the condition holds".to_owned(),
            (0, n) => format!("all {n} conditions hold"),
            (_, n) => format!("{} of {n} conditions fail: {}", failed.len(), failed.join("; ")),
        };
        let parts: Vec<&str> =
            core::iter::once(head.as_str()).chain(self.notes.iter().map(String::as_str)).collect();
        parts.join(". ")
    }
}

/// A measured figure: a mean with half of its 95 % interval, or one value without an interval.
pub trait Value {
    /// The two.
    fn mean_and_ci(&self) -> (f64, f64);
}

impl Value for f64 {
    fn mean_and_ci(&self) -> (f64, f64) {
        (*self, 0.0)
    }
}

impl Value for Summary {
    fn mean_and_ci(&self) -> (f64, f64) {
        (self.mean, self.ci95)
    }
}

impl Value for &Summary {
    fn mean_and_ci(&self) -> (f64, f64) {
        (self.mean, self.ci95)
    }
}

/// A number for a sentence: no more digits than it deserves.
pub fn short(value: f64) -> String {
    lasthop_report::number::short(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failing_condition_decides() {
        let mut finding = Finding::new(20);
        assert_eq!(finding.verdict(), Verdict::NotRun);
        finding.note("not measured here");
        assert_eq!(finding.reason(), "not measured here");
        finding.within("ideal", 200.0, 190.0, 210.0);
        assert_eq!(finding.verdict(), Verdict::Holds);
        finding.below("time-outs", 3.0, 2.0);
        assert_eq!(finding.verdict(), Verdict::Fails);
        assert!(finding.reason().contains("time-outs is 3"), "{}", finding.reason());
    }

    #[test]
    fn what_is_not_a_number_does_not_hold() {
        let mut finding = Finding::new(1);
        finding.within("share", f64::NAN, 0.0, 1.0);
        assert_eq!(finding.verdict(), Verdict::Fails);
    }
}
