//! What an experiment found: figures, and the conditions under which the claim holds.

use core::fmt::{self, Display};

use lasthop_report::model::{Figure, Measured, Table, Verdict};
use lasthop_trace::stats::Summary;

/// What a measured value must be for a condition to hold. What is not a number keeps within no bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// Between the two, both included.
    Within(f64, f64),
    /// Less.
    Below(f64),
    /// More.
    Above(f64),
    /// No more.
    AtMost(f64),
    /// No less.
    AtLeast(f64),
    /// Nothing is measured: the condition holds (1) or not (0).
    True,
}

impl Bound {
    /// Whether `value` keeps within it.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Bound::Within(low, high) => (low..=high).contains(&value),
            Bound::Below(high) => value < high,
            Bound::Above(low) => value > low,
            Bound::AtMost(high) => value <= high,
            Bound::AtLeast(low) => value >= low,
            Bound::True => value == 1.0,
        }
    }
}

impl Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Within(low, high) => write!(f, "{} to {}", short(*low), short(*high)),
            Bound::Below(high) => write!(f, "below {}", short(*high)),
            Bound::Above(low) => write!(f, "above {}", short(*low)),
            Bound::AtMost(high) => write!(f, "at most {}", short(*high)),
            Bound::AtLeast(low) => write!(f, "at least {}", short(*low)),
            Bound::True => f.write_str("true"),
        }
    }
}

/// A condition of a claim: what was measured, and what it must be. A claim holds when all of its conditions hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// What was measured.
    pub what: String,
    /// The measured value.
    pub value: f64,
    /// What it must be.
    pub bound: Bound,
    /// The two in a sentence.
    pub text: String,
}

impl Condition {
    /// Whether it holds.
    pub fn holds(&self) -> bool {
        self.bound.holds(self.value)
    }
}

/// What an experiment found.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Measured figures.
    pub measured: Vec<Measured>,
    /// Runs behind each mean.
    pub runs: u32,
    /// All of them must hold.
    pub conditions: Vec<Condition>,
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

    /// The claim holds only if `holds`, which no single number tells. A number is judged by [`Finding::judge`].
    pub fn require(&mut self, holds: bool, what: impl Into<String>) {
        let text = what.into();
        self.judge(text.clone(), f64::from(u8::from(holds)), Bound::True, text);
    }

    /// The claim holds only if `value` keeps within `bound`; `text` says so.
    pub fn judge(&mut self, what: impl Display, value: f64, bound: Bound, text: impl Into<String>) {
        let (what, text) = (what.to_string(), text.into());
        self.conditions.push(Condition { what, value, bound, text });
    }

    /// The same, in the usual sentence.
    fn wanted(&mut self, what: impl Display, value: f64, bound: Bound) {
        let text = format!("{what} is {}, wanted {bound}", short(value));
        self.judge(what, value, bound, text);
    }

    /// The claim holds only if `value` lies between `low` and `high`, both included.
    pub fn within(&mut self, what: impl Display, value: f64, low: f64, high: f64) {
        self.wanted(what, value, Bound::Within(low, high));
    }

    /// The claim holds only if `value` lies within `share` of what was published, up or down.
    pub fn near(&mut self, what: impl Display, value: f64, published: f64, share: f64) {
        self.within(what, value, (1.0 - share) * published, (1.0 + share) * published);
    }

    /// The claim holds only if `value` is below `high`.
    pub fn below(&mut self, what: impl Display, value: f64, high: f64) {
        self.wanted(what, value, Bound::Below(high));
    }

    /// The claim holds only if `value` is above `low`.
    pub fn above(&mut self, what: impl Display, value: f64, low: f64) {
        self.wanted(what, value, Bound::Above(low));
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
        match self.conditions.iter().all(Condition::holds) {
            _ if self.conditions.is_empty() => Verdict::NotRun,
            true => Verdict::Holds,
            false => Verdict::Fails,
        }
    }

    /// What decided the verdict, then the notes.
    pub fn reason(&self) -> String {
        let failed = self.conditions.iter().filter(|c| !c.holds());
        let failed: Vec<&str> = failed.map(|c| c.text.as_str()).collect();
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
