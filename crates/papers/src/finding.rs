//! The result of an experiment: figures, and the conditions of the claim.

use core::fmt::{self, Display};

use lasthop_report::model::{ConditionFigure, Figure, MeasuredFigure, Table, Verdict};
use lasthop_report::number::short;

use crate::{Bench, Estimate, Experiment, Interrupted};

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

    /// Its ends.
    fn edges(self) -> [f64; 2] {
        match self {
            Bound::Within(low, high) => [low, high],
            Bound::Below(high) | Bound::AtMost(high) => [f64::NEG_INFINITY, high],
            Bound::Above(low) | Bound::AtLeast(low) => [low, f64::INFINITY],
            Bound::True => [1.0, 1.0],
        }
    }
}

impl Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Within(low, high) if low == high => f.write_str(&short(*low)),
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
    /// Without an interval where chance has no part in it.
    pub measured: Estimate,
    pub bound: Bound,
    /// The condition as a sentence.
    pub text: String,
}

impl Condition {
    /// Whether the value is within the bound, whatever its interval.
    pub fn holds(&self) -> bool {
        self.bound.holds(self.measured.value)
    }

    /// Holds if the whole interval is within the bound, fails if none of it is; otherwise other seeds could decide
    /// otherwise.
    pub fn verdict(&self) -> Verdict {
        let (bound, measured) = (self.bound, self.measured);
        let [low, high] = bound.edges();
        let outside = measured.high() < low || measured.low() > high;
        match (bound.holds(measured.low()), bound.holds(measured.high())) {
            (true, true) => Verdict::Holds,
            _ if measured.half() == 0.0 || outside || measured.value.is_nan() => Verdict::Fails,
            _ => Verdict::Undecided,
        }
    }

    /// The number of seeds whose interval would be narrow enough, estimated from `seeds`: intervals shrink with the
    /// square root of their number. `None` if the value is on the edge.
    pub fn decided_by(&self, seeds: u32) -> Option<u64> {
        let Estimate { value, ci } = self.measured;
        let ci = ci?;
        let crossed = self.bound.edges().into_iter().filter(|edge| edge.is_finite());
        let distance = crossed.map(|edge| (value - edge).abs()).fold(f64::INFINITY, f64::min);
        let needed = f64::from(seeds) * (ci / distance) * (ci / distance);
        // Two digits, rounded up.
        let unit = libm::pow(10.0, (libm::log10(needed).floor() - 1.0).max(0.0));
        (needed < 1e7).then(|| ((needed / unit).ceil() * unit) as u64)
    }

    /// The sentence, and the number of seeds that would decide.
    fn undecided(&self, seeds: u32) -> String {
        match self.decided_by(seeds) {
            Some(needed) => format!("{} (about {needed} seeds would decide)", self.text),
            None => format!("{} (no number of seeds would decide)", self.text),
        }
    }

    /// For a report.
    fn figure(&self) -> ConditionFigure {
        ConditionFigure {
            what: self.what.trim_end_matches(',').to_owned(),
            measured: self.measured,
            wanted: self.bound.to_string(),
            verdict: self.verdict(),
        }
    }
}

/// The result of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    pub measured: Vec<MeasuredFigure>,
    /// Runs of each mean.
    pub runs: u32,
    /// Seeds per case that were requested. Some cases have a multiple of them.
    pub seeds: u32,
    /// All of them must hold.
    pub conditions: Vec<Condition>,
    /// Further remarks: why a condition fails, or the answer to an open question.
    pub notes: Vec<String>,
    pub tables: Vec<Table>,
    pub figures: Vec<Figure>,
}

impl Finding {
    pub fn new(runs: u32) -> Finding {
        Finding { runs, seeds: runs, ..Finding::default() }
    }

    /// The finding of an experiment.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] when the bench's observer requested a stop.
    pub(crate) fn of(bench: &mut Bench<'_>, run: Experiment) -> Result<Finding, Interrupted> {
        let mut finding = Finding::new(bench.seeds);
        run(bench, &mut finding)?;
        Ok(finding)
    }

    /// Requires `holds`, a condition without a single number. [`Finding::judge`] is for numbers.
    pub fn require(&mut self, holds: bool, message: impl Into<String>) {
        let text = message.into();
        self.judge(text.clone(), f64::from(u8::from(holds)), Bound::True, text);
    }

    /// Requires `value` to be within `bound`; `text` describes the condition.
    pub fn judge(
        &mut self,
        quantity: impl Display,
        value: impl Into<Estimate>,
        bound: Bound,
        text: impl Into<String>,
    ) {
        let (what, measured, text) = (quantity.to_string(), value.into(), text.into());
        self.conditions.push(Condition { what, measured, bound, text });
    }

    /// The same with the default text.
    pub fn require_bound(
        &mut self,
        quantity: impl Display,
        value: impl Into<Estimate>,
        bound: Bound,
    ) {
        let measured = value.into();
        let text = format!("{quantity} is {measured}, wanted {bound}");
        self.judge(quantity, measured, bound, text);
    }

    /// Requires `value` between `low` and `high`, both included.
    pub fn within(
        &mut self,
        quantity: impl Display,
        value: impl Into<Estimate>,
        low: f64,
        high: f64,
    ) {
        self.require_bound(quantity, value, Bound::Within(low, high));
    }

    /// Requires `value` within the relative tolerance `share` of the published value.
    pub fn near(
        &mut self,
        quantity: impl Display,
        value: impl Into<Estimate>,
        published: f64,
        share: f64,
    ) {
        self.within(quantity, value, (1.0 - share) * published, (1.0 + share) * published);
    }

    /// Requires `value` below `high`.
    pub fn below(&mut self, quantity: impl Display, value: impl Into<Estimate>, high: f64) {
        self.require_bound(quantity, value, Bound::Below(high));
    }

    /// Requires `value` above `low`.
    pub fn above(&mut self, quantity: impl Display, value: impl Into<Estimate>, low: f64) {
        self.require_bound(quantity, value, Bound::Above(low));
    }

    /// Requires a difference in percent to be none: an equivalence test, which holds if the whole interval is within
    /// `margin` of zero.
    pub fn equal(&mut self, quantity: impl Display, percent: impl Into<Estimate>, margin: f64) {
        let measured = percent.into();
        let text = format!("{quantity}: {measured} %, wanted equal within {} %", short(margin));
        let bound = Bound::Within(-margin, margin);
        self.judge(format!("{quantity}, %"), measured, bound, text);
    }

    /// Requires that none of `of` was counted in `runs` runs.
    pub fn none(&mut self, of: impl Display, count: f64, runs: usize) {
        let text = format!("{of}: {} in {runs} runs, wanted none", short(count));
        self.judge(of, count, Bound::AtMost(0.0), text);
    }

    /// Adds a measured figure.
    pub fn measure(&mut self, label: impl Into<String>, value: impl Into<Estimate>, unit: &str) {
        self.compare(label, value, unit, None::<f64>);
    }

    /// Adds a measured figure with the published one, if there is one.
    pub fn compare(
        &mut self,
        label: impl Into<String>,
        value: impl Into<Estimate>,
        unit: &str,
        published: impl Into<Option<f64>>,
    ) {
        let (label, mean, unit) = (label.into(), value.into(), unit.to_owned());
        self.measured.push(MeasuredFigure { label, mean, unit, published: published.into() });
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Fails if a condition fails; undecided if none does but other seeds could decide one otherwise. Without conditions
    /// the claim was not tested.
    pub fn verdict(&self) -> Verdict {
        let any = |verdict| self.conditions.iter().any(|c| c.verdict() == verdict);
        match () {
            () if self.conditions.is_empty() => Verdict::NotRun,
            () if any(Verdict::Fails) => Verdict::Fails,
            () if any(Verdict::Undecided) => Verdict::Undecided,
            () => Verdict::Holds,
        }
    }

    /// The decisive conditions, then the notes.
    pub fn reason(&self) -> String {
        let of = |verdict| self.conditions.iter().filter(move |c| c.verdict() == verdict);
        let failed: Vec<&str> = of(Verdict::Fails).map(|c| c.text.as_str()).collect();
        let chance: Vec<String> = of(Verdict::Undecided).map(|c| c.undecided(self.seeds)).collect();
        let mut parts = Vec::new();
        let n = self.conditions.len();
        match (failed.len(), chance.len(), n) {
            (0, 0, 0) => {}
            (0, 0, 1) => parts.push("the condition holds".to_owned()),
            (0, 0, n) => parts.push(format!("all {n} conditions hold")),
            (0, ..) => {}
            (f, ..) => parts.push(format!("{f} of {n} conditions fail: {}", failed.join("; "))),
        }
        if !chance.is_empty() {
            let (u, texts) = (chance.len(), chance.join("; "));
            parts.push(format!("{u} of {n} conditions depend on the seeds: {texts}"));
        }
        parts.extend(self.notes.iter().cloned());
        parts.join(". ")
    }

    /// The conditions for a report.
    pub fn judged(&self) -> Vec<ConditionFigure> {
        self.conditions.iter().map(Condition::figure).collect()
    }
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
        finding.below("timeouts", 3.0, 2.0);
        assert_eq!(finding.verdict(), Verdict::Fails);
        assert!(finding.reason().contains("timeouts is 3"), "{}", finding.reason());
    }

    #[test]
    fn an_undecided_interval_reports_the_needed_seeds() {
        let mut finding = Finding::new(20);
        finding.within("gain", Estimate::new(6.8, 0.1), 3.0, 7.0);
        assert_eq!(finding.verdict(), Verdict::Holds);
        finding.within("gain", Estimate::new(6.8, 0.4), 3.0, 7.0);
        assert_eq!(finding.verdict(), Verdict::Undecided);
        // Half of the interval must be 0.2 and not 0.4: four times as many runs.
        let reason = finding.reason();
        assert!(reason.contains("gain is 6.80 ± 0.40, wanted 3 to 7 (about 80 seeds"), "{reason}");
        finding.within("gain", Estimate::new(7.5, 0.4), 3.0, 7.0);
        assert_eq!(finding.verdict(), Verdict::Fails);
    }

    #[test]
    fn equality_is_an_equivalence_test() {
        let verdict = |value, ci| {
            let mut finding = Finding::new(20);
            finding.equal("the windows differ", Estimate::new(value, ci), 5.0);
            finding.verdict()
        };
        assert_eq!(verdict(1.0, 2.0), Verdict::Holds);
        assert_eq!(verdict(1.0, 20.0), Verdict::Undecided, "too few runs show nothing");
        assert_eq!(verdict(9.0, 2.0), Verdict::Fails);
    }

    #[test]
    fn a_condition_with_a_nan_value_fails() {
        let mut finding = Finding::new(1);
        finding.within("share", f64::NAN, 0.0, 1.0);
        assert_eq!(finding.verdict(), Verdict::Fails);
    }
}
