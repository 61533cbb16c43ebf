//! The result of an experiment: figures, and the conditions of the claim.

use core::fmt::{self, Display};

use lasthop_report::model::{Figure, MeasuredFigure, Table, Verdict};
use lasthop_trace::stats::Summary;

/// The bound of a measured value. NaN is within no bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// Between the two, both included.
    Within(f64, f64),
    Below(f64),
    Above(f64),
    AtMost(f64),
    AtLeast(f64),
    /// Nothing is measured: the condition holds (1) or not (0).
    True,
}

impl Bound {
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

/// A condition of a claim: a measured value and its bound. A claim holds if all of its conditions hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// The measured quantity.
    pub what: String,
    pub value: f64,
    pub bound: Bound,
    /// The condition as a sentence.
    pub text: String,
}

impl Condition {
    pub fn holds(&self) -> bool {
        self.bound.holds(self.value)
    }
}

/// The result of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    pub measured: Vec<MeasuredFigure>,
    /// Runs of each mean.
    pub runs: u32,
    /// All of them must hold.
    pub conditions: Vec<Condition>,
    /// Further remarks: why a condition fails, or the answer to an open question.
    pub notes: Vec<String>,
    pub tables: Vec<Table>,
    pub figures: Vec<Figure>,
}

impl Finding {
    pub fn new(runs: u32) -> Finding {
        Finding { runs, ..Finding::default() }
    }

    /// Requires `holds`, a condition without a single number. [`Finding::judge`] is for numbers.
    pub fn require(&mut self, holds: bool, what: impl Into<String>) {
        let text = what.into();
        self.judge(text.clone(), f64::from(u8::from(holds)), Bound::True, text);
    }

    /// Requires `value` to be within `bound`; `text` describes the condition.
    pub fn judge(&mut self, what: impl Display, value: f64, bound: Bound, text: impl Into<String>) {
        let (what, text) = (what.to_string(), text.into());
        self.conditions.push(Condition { what, value, bound, text });
    }

    /// The same with the default text.
    fn wanted(&mut self, what: impl Display, value: f64, bound: Bound) {
        let text = format!("{what} is {}, wanted {bound}", short(value));
        self.judge(what, value, bound, text);
    }

    /// Requires `value` between `low` and `high`, both included.
    pub fn within(&mut self, what: impl Display, value: f64, low: f64, high: f64) {
        self.wanted(what, value, Bound::Within(low, high));
    }

    /// Requires `value` within the relative tolerance `share` of the published value.
    pub fn near(&mut self, what: impl Display, value: f64, published: f64, share: f64) {
        self.within(what, value, (1.0 - share) * published, (1.0 + share) * published);
    }

    /// Requires `value` below `high`.
    pub fn below(&mut self, what: impl Display, value: f64, high: f64) {
        self.wanted(what, value, Bound::Below(high));
    }

    /// Requires `value` above `low`.
    pub fn above(&mut self, what: impl Display, value: f64, low: f64) {
        self.wanted(what, value, Bound::Above(low));
    }

    /// Adds a measured figure.
    pub fn measure(&mut self, label: impl Into<String>, value: impl Value, unit: &str) {
        self.compare(label, value, unit, None::<f64>);
    }

    /// Adds a measured figure with the published one, if there is one.
    pub fn compare(
        &mut self,
        label: impl Into<String>,
        value: impl Value,
        unit: &str,
        published: impl Into<Option<f64>>,
    ) {
        let (mean, ci) = value.mean_and_ci();
        let (label, unit, published) = (label.into(), unit.to_owned(), published.into());
        self.measured.push(MeasuredFigure { label, mean, ci, unit, published });
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The conjunction of all conditions; without conditions the claim was not tested.
    pub fn verdict(&self) -> Verdict {
        match self.conditions.iter().all(Condition::holds) {
            _ if self.conditions.is_empty() => Verdict::NotRun,
            true => Verdict::Holds,
            false => Verdict::Fails,
        }
    }

    /// The decisive conditions, then the notes.
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

/// A number for a sentence, with a suitable number of digits.
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
