//! A parser of `tc qdisc ... netem` lines with iproute2's rules.
//!
//! Not modelled, and rejected with an alternative: `seed`, a rate in percent of an interface's speed, and
//! tables of `distribution` beyond those of iproute2.

use serde::Serialize;

use crate::channel::GilbertElliott;
use crate::describe::{Form, Keys, Need, Value};
use crate::units::{Probability, Rate, Span};

use super::unknown::no_option;
use super::words::{LineError, Words, count, percent, signed, size, time, wrong};
use crate::link::varied::{Distribution, Impairments, Loss};

/// Default `limit` of netem, packets.
pub const DEFAULT_LIMIT: u32 = 1000;

/// A parsed netem line.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Netem {
    /// One-way delay.
    pub delay: Span,
    /// Rate; `None` for 0.
    pub rate: Option<Rate>,
    /// Limit of held packets, including those under way; [`DEFAULT_LIMIT`] if `None`.
    pub limit: Option<u32>,
    /// Jitter, loss, duplication, corruption, reordering.
    pub impairments: Impairments,
    /// Options without keys of a link.
    pub extras: Extras,
}

/// Options of netem without keys of a link.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Extras {
    /// Bytes that the rate adds to each packet's length; may be negative.
    pub overhead: i32,
    /// Cells into which the rate divides packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cells: Option<Cells>,
    /// Times at which packets may leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<Slot>,
    /// Losses by a chain of four states, which override any other losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<FourStates>,
    /// Whether ECN-capable packets are marked instead of lost.
    pub ecn: bool,
}

/// Cells of a fixed size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Cells {
    /// Bytes of a packet per cell.
    pub size: u32,
    /// Additional bytes per cell.
    pub overhead: i32,
}

/// Packets leave in slots.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Slot {
    /// Time from one slot to the next.
    pub gap: SlotGap,
    /// Limit of packets per slot.
    pub packets: u32,
    /// Limit of bytes per slot.
    pub bytes: u32,
}

/// Time from one slot to the next.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotGap {
    /// Uniform between these.
    Between(Span, Span),
    /// A delay and a jitter by a distribution.
    By(Distribution, Span, Span),
}

/// The chain of `loss state`: states 1 and 2 pass packets, outside and inside a burst of losses; 3 and 4 lose
/// them.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[expect(missing_docs, reason = "each is the probability of the step that its name says")]
pub struct FourStates {
    pub p13: Probability,
    pub p31: Probability,
    pub p32: Probability,
    pub p23: Probability,
    pub p14: Probability,
}

impl FourStates {
    /// The long-term share of lost packets.
    pub fn share(&self) -> f64 {
        let [p13, p31, p32, p23, p14] =
            [self.p13, self.p31, self.p32, self.p23, self.p14].map(Probability::get);
        // In units of the time in state 3: states 2 and 3 alternate, and so do 1 and 4.
        let passed = if p32 == 0.0 { 0.0 } else { p32 / p23 };
        if p13 == 0.0 {
            return p14 / (1.0 + p14);
        }
        let calm = p31 / p13;
        let all = calm * (1.0 + p14) + 1.0 + passed;
        if all.is_finite() { (calm * p14 + 1.0) / all } else { 0.0 }
    }
}

/// In the order of `tc`'s search for abbreviated options.
const OPTIONS: [&str; 14] = [
    "limit",
    "latency",
    "delay",
    "loss",
    "drop",
    "seed",
    "ecn",
    "reorder",
    "corrupt",
    "gap",
    "duplicate",
    "distribution",
    "rate",
    "slot",
];

fn example(option: &str) -> &'static str {
    match option {
        "limit" => "limit 1000",
        "loss" | "drop" => "loss 1%` or `loss gemodel 1% 10%` or `loss state 1% 30%",
        "reorder" => "delay 10ms reorder 25% 50%",
        "corrupt" => "corrupt 0.1%",
        "gap" => "delay 10ms reorder 25% gap 5",
        "duplicate" => "duplicate 1%",
        "distribution" => "delay 20ms 5ms distribution normal",
        "rate" => "rate 10mbit",
        "slot" => "slot 10ms 20ms packets 5",
        _ => "delay 20ms 5ms 25%",
    }
}

impl Netem {
    /// Parses the words after `netem`, or a whole command line with it.
    ///
    /// # Errors
    /// The first word that `tc` would reject or that is not modelled, with an alternative.
    pub fn parse(text: &str) -> Result<Netem, LineError> {
        let mut words = Words::behind(text, "netem", example);
        let mut netem = Netem::default();
        let mut has_distribution = false;
        while let Some(word) = words.next() {
            let Some(option) = OPTIONS.into_iter().find(|option| option.starts_with(word)) else {
                return Err(no_option(word, &OPTIONS));
            };
            words.option = option;
            has_distribution |= option == "distribution";
            netem.option(&mut words)?;
        }
        netem.check(has_distribution)
    }

    /// Reads the key with a netem line, which other keys override.
    pub fn key(k: &mut Keys<'_>) -> Netem {
        let doc = "the options of `tc qdisc ... netem`, in its syntax; keys of the same meaning override them";
        let form = Form::Text("\"delay 20ms 5ms 25% loss 1%\"");
        let Value::Text(text) = k.value("netem", form, Need::Else(""), Value::Absent, doc) else {
            return Netem::default();
        };
        Netem::parse(&text).unwrap_or_else(|error| {
            let message = format!("`{}`: {}", k.path("netem"), error.message);
            k.refuse("netem", message, "not the syntax of `tc`", error.help);
            Netem::default()
        })
    }

    fn option(&mut self, words: &mut Words<'_>) -> Result<(), LineError> {
        let i = &mut self.impairments;
        match words.option {
            "limit" => self.limit = Some(words.value(size)?),
            "latency" | "delay" => {
                self.delay = words.value(time)?;
                if let Some(word) = words.number() {
                    i.jitter = words.read(word, time)?;
                    i.jitter_correlation = words.correlation()?;
                }
            }
            "loss" | "drop" => self.loss(words)?,
            "reorder" => {
                i.reorder = words.value(percent)?;
                i.reorder_correlation = words.correlation()?;
            }
            "corrupt" => {
                i.corrupt = words.value(percent)?;
                i.corrupt_correlation = words.correlation()?;
            }
            "duplicate" => {
                i.duplicate = words.value(percent)?;
                i.duplicate_correlation = words.correlation()?;
            }
            "gap" => i.reorder_gap = words.value(count)?,
            "distribution" => i.jitter_distribution = distribution(words)?,
            "rate" => self.rate(words)?,
            "slot" => self.extras.slot = slot(words)?,
            "ecn" => self.extras.ecn = true,
            other => {
                let help = "leave it out: the `seed` of the scenario determines all draws";
                return Err(wrong(format!("`{other}` is not modelled"), help));
            }
        }
        Ok(())
    }

    fn rate(&mut self, words: &mut Words<'_>) -> Result<(), LineError> {
        let bytes = |word: &str| i32::try_from(signed(word)?).ok();
        self.rate = words.rate()?;
        self.extras.overhead = 0;
        self.extras.cells = None;
        let Some(word) = words.signed() else { return Ok(()) };
        self.extras.overhead = words.read(word, bytes)?;
        let Some(word) = words.number() else { return Ok(()) };
        let size = words.read(word, count)?;
        let mut overhead = 0;
        if let Some(word) = words.signed() {
            overhead = words.read(word, bytes)?;
        }
        self.extras.cells = (size > 0).then_some(Cells { size, overhead });
        Ok(())
    }

    fn loss(&mut self, words: &mut Words<'_>) -> Result<(), LineError> {
        let there = match &self.impairments.loss {
            Some(Loss::Random(p)) => *p != Probability::ZERO,
            Some(Loss::Chain(_)) => true,
            None => self.extras.states.is_some(),
        };
        if there {
            return Err(wrong("`loss` is given twice", "a line has one model of losses"));
        }
        let word = words.word()?;
        let loss = match word {
            "gemodel" => {
                let p = words.value(percent)?;
                let mut chain = GilbertElliott::of(p, words.maybe_percent()?);
                if let Some(lost) = words.maybe_percent()? {
                    chain.h = lost.opposite();
                }
                if let Some(lost) = words.maybe_percent()? {
                    chain.k = lost.opposite();
                }
                Loss::Chain(chain)
            }
            "state" => {
                let one = Probability::ONE;
                let p13 = words.value(percent)?;
                let (zero, p31) = (Probability::ZERO, p13.opposite());
                let mut states = FourStates { p13, p31, p32: zero, p23: one, p14: zero };
                let slots = [&mut states.p31, &mut states.p32, &mut states.p23, &mut states.p14];
                for slot in slots {
                    let Some(p) = words.maybe_percent()? else { break };
                    *slot = p;
                }
                self.extras.states = Some(states);
                return Ok(());
            }
            word => {
                let word = if word == "random" { words.word()? } else { word };
                let p = words.read(word, percent)?;
                self.impairments.loss_correlation = words.correlation()?;
                Loss::Random(p)
            }
        };
        self.impairments.loss = Some(loss);
        Ok(())
    }

    /// Checks the combination of options like `tc`.
    fn check(self, has_distribution: bool) -> Result<Netem, LineError> {
        let i = &self.impairments;
        let reorders = i.reorder != Probability::ZERO;
        if reorders && self.delay == Span::ZERO {
            let help = "a reordered packet skips the delay: write one, `delay 10ms reorder 25%`";
            return Err(wrong("`reorder` without a delay", help));
        }
        if !reorders && i.reorder_gap > 0 {
            return Err(wrong("`gap` without `reorder`", "write `delay 10ms reorder 100% gap 5`"));
        }
        if has_distribution && (self.delay == Span::ZERO || i.jitter == Span::ZERO) {
            let help = "write a delay and a jitter, `delay 20ms 5ms distribution normal`";
            return Err(wrong("`distribution` without a jitter", help));
        }
        let loses = match &i.loss {
            Some(Loss::Random(p)) => *p != Probability::ZERO,
            Some(Loss::Chain(_)) => true,
            None => self.extras.states.is_some(),
        };
        if self.extras.ecn && !loses {
            return Err(wrong("`ecn` without a loss", "write `loss 1% ecn`: marks replace losses"));
        }
        Ok(self)
    }
}

fn distribution(words: &mut Words<'_>) -> Result<Distribution, LineError> {
    let word = words.word()?;
    let known = Distribution::WORDS.into_iter().find(|(name, _)| *name == word);
    known.map(|(_, distribution)| distribution).ok_or_else(|| {
        let message = format!("the table `{word}` of `distribution` is not modelled");
        wrong(message, "write normal, pareto, paretonormal, experimental or uniform, for example `delay 20ms 5ms distribution normal`")
    })
}

/// Parses slots; `None` if they would have no effect.
fn slot(words: &mut Words<'_>) -> Result<Option<Slot>, LineError> {
    let gap = match words.number() {
        Some(word) => {
            let least = words.read(word, time)?;
            let most = match words.number() {
                Some(word) => words.read(word, |word| time(word).filter(|most| *most >= least))?,
                None => least,
            };
            SlotGap::Between(least, most)
        }
        None => match words.word()? {
            "distribution" => {
                let distribution = distribution(words)?;
                let delay = words.value(time)?;
                let jitter =
                    words.value(|word| time(word).filter(|jitter| *jitter > Span::ZERO))?;
                SlotGap::By(distribution, delay, jitter)
            }
            word => return words.read(word, |_| None),
        },
    };
    // 0 means no limit, which is the largest number of the kernel.
    let bound = |n: u32| if n == 0 { i32::MAX as u32 } else { n };
    let (mut packets, mut bytes) = (0, 0);
    if words.begins("packets") {
        packets = words.value(|word| count(word).filter(|n| i32::try_from(*n).is_ok()))?;
    }
    if words.begins("bytes") {
        bytes = words.value(|word| size(word).filter(|n| i32::try_from(*n).is_ok()))?;
    }
    let keeps = gap != SlotGap::Between(Span::ZERO, Span::ZERO);
    Ok(keeps.then_some(Slot { gap, packets: bound(packets), bytes: bound(bytes) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(p: f64) -> Probability {
        Probability::new(p).unwrap()
    }

    #[test]
    fn each_example_can_be_read() {
        for option in OPTIONS
            .into_iter()
            .filter(|option| !["seed", "ecn", "drop", "latency"].contains(option))
        {
            for text in example(option).split("` or `") {
                Netem::parse(text).unwrap_or_else(|error| panic!("{option}: {text}: {error:?}"));
                assert!(text.contains(option), "{option}: {text}");
            }
        }
    }

    #[test]
    fn the_parser_accepts_the_tc_netem_syntax() {
        let read = |text| Netem::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let netem = read("delay 20ms 5ms 25% loss 1% distribution normal");
        assert_eq!((netem.delay, netem.limit), (Span::millis(20), None));
        let i = &netem.impairments;
        assert_eq!((i.jitter, i.jitter_correlation), (Span::millis(5), p(0.25)));
        assert_eq!(i.jitter_distribution, Distribution::Normal);
        assert_eq!(i.loss, Some(Loss::Random(p(0.01))));
        // A whole command, abbreviations, bare numbers.
        let netem = read(
            "tc qdisc add dev eth0 root netem lat 1500 reord 25 50 gap 5 dup 0.5 cor 0.1% 30% lim 77",
        );
        assert_eq!((netem.delay, netem.limit), (Span::micros(1500), Some(77)));
        let i = &netem.impairments;
        assert_eq!((i.reorder, i.reorder_correlation, i.reorder_gap), (p(0.25), p(0.5), 5));
        assert_eq!((i.duplicate, i.corrupt, i.corrupt_correlation), (p(0.005), p(0.001), p(0.3)));
        let netem = read("rate 1mbps 14 delay 100us loss gemodel 1% 10% 70% 0.1%");
        assert_eq!((netem.rate, netem.extras.overhead), (Rate::from_bps(8_000_000), 14));
        let Some(Loss::Chain(chain)) = netem.impairments.loss else { panic!() };
        assert_eq!((chain.p, chain.r), (p(0.01), Some(p(0.1))));
        assert!((chain.h.get() - 0.3).abs() < 1e-12 && (chain.k.get() - 0.999).abs() < 1e-12);
        assert_eq!(read("rate 1mbit").impairments, Impairments::default());
        // Limits are sizes, and numbers may have exponents.
        let limits =
            ["limit 1000mbit", "limit 100k", "limit 0", "limit 1e2"].map(|text| read(text).limit);
        assert_eq!(limits, [Some(131_072_000), Some(102_400), Some(0), Some(100)]);
        assert_eq!(read("delay 2e1ms").delay, Span::millis(20));
        assert_eq!(read("rate 0").rate, None);
        let netem = read("rate 1mbit -20 delay 1ms 1ms distribution experimental");
        assert_eq!((netem.extras.overhead, netem.extras.cells), (-20, None));
        assert_eq!(netem.impairments.jitter_distribution, Distribution::Experimental);
        let cells = |text| read(text).extras.cells.map(|cells| (cells.size, cells.overhead));
        assert_eq!(
            ["rate 1mbit 0 48 5", "rate 1mbit -4 0x30 -1 ", "rate 1mbit 0 0 5"].map(cells),
            [Some((48, 5)), Some((48, -1)), None]
        );
        // The last option of a kind counts, but only a loss of 0 may be followed by another loss.
        assert_eq!(read("rate 1mbit 9 rate 2mbit").extras.overhead, 0);
        assert_eq!(read("loss 0 loss 5%").impairments.loss, Some(Loss::Random(p(0.05))));
    }

    #[test]
    fn four_state_slot_and_ecn_options_are_parsed() {
        let read =
            |text| Netem::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).extras;
        let states = |text| {
            let s = read(text).states.unwrap();
            [s.p13, s.p31, s.p32, s.p23, s.p14].map(Probability::get)
        };
        assert_eq!(states("loss state 10%"), [0.1, 0.9, 0.0, 1.0, 0.0]);
        assert_eq!(states("loss state 1% 20% 30% 40% 5%"), [0.01, 0.2, 0.3, 0.4, 0.05]);
        let slot = |text| read(text).slot;
        let any = i32::MAX as u32;
        let between = |least, most, packets, bytes| {
            let gap = SlotGap::Between(Span::millis(least), Span::millis(most));
            Some(Slot { gap, packets, bytes })
        };
        assert_eq!(slot("slot 10ms"), between(10, 10, any, any));
        assert_eq!(slot("slot 10ms 20ms pack 5 bytes 2k"), between(10, 20, 5, 2048));
        assert_eq!(slot("slot 10ms bytes 1500 delay 1ms"), between(10, 10, any, 1500));
        assert_eq!(slot("slot 0"), None);
        let by = SlotGap::By(Distribution::Pareto, Span::millis(10), Span::millis(2));
        let by = Some(Slot { gap: by, packets: 3, bytes: any });
        assert_eq!(slot("slot distribution pareto 10ms 2ms packets 3"), by);
        assert!(read("loss 1% ecn").ecn && read("ecn loss state 1%").ecn);
    }

    #[test]
    fn the_four_state_loss_share_matches_its_markov_chain() {
        // Probabilities of the kernel's steps between states, from an even start.
        for [p13, p31, p32, p23, p14] in
            [[0.1, 0.9, 0.0, 1.0, 0.0], [0.01, 0.2, 0.3, 0.4, 0.05], [0.0, 0.5, 0.1, 0.5, 0.2]]
        {
            let mut at = [1.0, 0.0, 0.0, 0.0_f64];
            let mut lost = 0.0;
            for _ in 0..20_000 {
                let [s1, s2, s3, s4] = at;
                at = [
                    s1 * (1.0 - p13 - p14) + s3 * p31 + s4,
                    s2 * (1.0 - p23) + s3 * p32,
                    s1 * p13 + s2 * p23 + s3 * (1.0 - p31 - p32),
                    s1 * p14,
                ];
                lost = at[2] + at[3];
            }
            let states =
                FourStates { p13: p(p13), p31: p(p31), p32: p(p32), p23: p(p23), p14: p(p14) };
            assert!((states.share() - lost).abs() < 1e-9, "{states:?}: {} {lost}", states.share());
        }
    }

    #[test]
    fn invalid_and_unmodelled_options_are_refused() {
        let message = |text| Netem::parse(text).unwrap_err().message;
        assert_eq!(message("delay 20ms jitter 5ms"), "netem has no `jitter`");
        assert_eq!(message("tbf rate 1mbit"), "`tbf` is a separate stage");
        assert_eq!(message("delay"), "`delay` has no value");
        assert_eq!(message("delay 20m"), "`20m` is no value of `delay`");
        assert_eq!(message("loss 120%"), "`120%` is no value of `loss`");
        assert_eq!(message("loss 1% loss 2%"), "`loss` is given twice");
        assert_eq!(message("loss state 1% loss 1%"), "`loss` is given twice");
        assert_eq!(message("loss bernoulli 1%"), "`bernoulli` is no value of `loss`");
        assert_eq!(
            message("delay 1ms 1ms distribution cauchy"),
            "the table `cauchy` of `distribution` is not modelled"
        );
        assert_eq!(message("delay 1ms distribution normal"), "`distribution` without a jitter");
        assert_eq!(message("reorder 25%"), "`reorder` without a delay");
        assert_eq!(message("delay 1ms gap 5"), "`gap` without `reorder`");
        assert_eq!(message("rate 10mbit ecn"), "`ecn` without a loss");
        assert_eq!(message("rate 10mbit seed 5"), "`seed` is not modelled");
        assert_eq!(message("rate 10parsec"), "`10parsec` is no value of `rate`");
        assert_eq!(message("rate 50%"), "`50%`: a share of the interface's speed is not modelled");
        assert_eq!(message("rate 1mbit 0 48 x"), "netem has no `x`");
        assert_eq!(message("slot 20ms 10ms"), "`10ms` is no value of `slot`");
        assert_eq!(message("slot often"), "`often` is no value of `slot`");
        assert_eq!(message("limit -1"), "`-1` is no value of `limit`");
    }
}
