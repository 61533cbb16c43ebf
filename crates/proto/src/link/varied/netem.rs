//! What stands behind `netem` on a command line of `tc`, read as iproute2 reads it.
//!
//! Words may be shortened, a bare time is in microseconds, a bare rate in bits per second, a bare probability in
//! percent, and `bps` are bytes per second. With `rate` the order is kept; what the kernel does then otherwise is in
//! effect what a line does that has a rate and a delay.

use crate::channel::GilbertElliott;
use crate::units::{Probability, Rate, Span};

use super::distribution::Distribution;
use super::impair::{Impairments, Loss, Order};

/// A line in the words of netem.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Netem {
    /// The delay in one direction.
    pub delay: Span,
    /// The rate.
    pub rate: Option<Rate>,
    /// Bytes that are added to each packet.
    pub framing: u32,
    /// How many packets there is room for.
    pub limit: Option<u32>,
    /// What else happens to packets.
    pub impairments: Impairments,
}

/// What is wrong with the words, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct NetemError {
    /// What is wrong.
    pub message: String,
    /// What is right.
    pub help: String,
}

fn wrong(message: impl Into<String>, help: impl Into<String>) -> NetemError {
    NetemError { message: message.into(), help: help.into() }
}

/// In the order in which `tc` looks for one that begins like a word.
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

/// The words that are left.
struct Words<'t> {
    rest: core::iter::Peekable<core::str::SplitWhitespace<'t>>,
    /// The option that is being read.
    option: &'static str,
}

impl<'t> Words<'t> {
    /// The next word, which must be there.
    fn word(&mut self) -> Result<&'t str, NetemError> {
        let option = self.option;
        self.rest.next().ok_or_else(|| {
            wrong(
                format!("nothing stands behind `{option}`"),
                format!("for example `{}`", example(option)),
            )
        })
    }

    /// The next word, if it begins with a digit.
    fn number(&mut self) -> Option<&'t str> {
        self.rest.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    }

    fn read<T>(&self, word: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, NetemError> {
        read(word).ok_or_else(|| {
            let message = format!("`{word}` cannot stand behind `{}`", self.option);
            wrong(message, format!("for example `{}`", example(self.option)))
        })
    }

    fn percent(&mut self) -> Result<Probability, NetemError> {
        let word = self.word()?;
        self.read(word, percent)
    }

    fn maybe_percent(&mut self) -> Result<Option<Probability>, NetemError> {
        self.number().map(|word| self.read(word, percent)).transpose()
    }
}

fn example(option: &str) -> &'static str {
    match option {
        "limit" => "limit 1000",
        "loss" => "loss 1%` or `loss gemodel 1% 10%",
        "reorder" => "delay 10ms reorder 25% 50%",
        "corrupt" => "corrupt 0.1%",
        "gap" => "delay 10ms reorder 25% gap 5",
        "duplicate" => "duplicate 1%",
        "distribution" => "delay 20ms 5ms distribution normal",
        "rate" => "rate 10mbit",
        _ => "delay 20ms 5ms 25%",
    }
}

/// A number and what stands behind it.
fn cut(word: &str) -> Option<(f64, String)> {
    let end = word.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(word.len());
    let (digits, unit) = word.split_at(end);
    Some((digits.parse().ok()?, unit.to_ascii_lowercase()))
}

fn percent(word: &str) -> Option<Probability> {
    let (number, unit) = cut(word)?;
    Probability::new(number / 100.0).filter(|_| unit.is_empty() || unit == "%")
}

fn time(word: &str) -> Option<Span> {
    let (number, unit) = cut(word)?;
    let nanos = match unit.as_str() {
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "" | "us" | "usec" | "usecs" => 1e3,
        "ns" | "nsec" | "nsecs" => 1.0,
        _ => return None,
    };
    let span = Span(libm::round(number * nanos) as u64);
    (span <= Span::secs(1000)).then_some(span)
}

fn rate(word: &str) -> Option<Rate> {
    let (number, unit) = cut(word)?;
    let (prefix, bits) = match unit.strip_suffix("bps") {
        Some(prefix) => (prefix, 8.0),
        None => (unit.strip_suffix("bit").or(unit.is_empty().then_some(""))?, 1.0),
    };
    let scale = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Rate::from_bps((number * bits * scale) as u64)
}

impl Netem {
    /// Reads the words behind `netem`, or a whole command line with it.
    ///
    /// # Errors
    /// The first word that cannot be meant, and what can.
    pub fn parse(text: &str) -> Result<Netem, NetemError> {
        let mut words = Words { rest: text.split_whitespace().peekable(), option: "netem" };
        if text.split_whitespace().any(|word| word == "netem") {
            words.rest.by_ref().find(|word| *word == "netem");
        }
        let mut netem = Netem::default();
        let mut has_distribution = false;
        while let Some(word) = words.rest.next() {
            let Some(option) = OPTIONS.into_iter().find(|option| option.starts_with(word)) else {
                let help = "netem has limit, delay, loss, corrupt, duplicate, reorder, gap, distribution and rate";
                return Err(wrong(format!("netem has no `{word}`"), help));
            };
            words.option = option;
            has_distribution |= option == "distribution";
            netem.option(&mut words)?;
        }
        netem.check(has_distribution)
    }

    fn option(&mut self, words: &mut Words<'_>) -> Result<(), NetemError> {
        let i = &mut self.impairments;
        match words.option {
            "limit" => {
                let word = words.word()?;
                self.limit = Some(words.read(word, |word| word.parse().ok().filter(|n| *n > 0))?);
            }
            "latency" | "delay" => {
                let word = words.word()?;
                self.delay = words.read(word, time)?;
                if let Some(word) = words.number() {
                    i.jitter = words.read(word, time)?;
                    i.jitter_correlation = words.maybe_percent()?.unwrap_or_default();
                }
            }
            "loss" | "drop" => self.loss(words)?,
            "reorder" => {
                i.reorder = words.percent()?;
                i.reorder_correlation = words.maybe_percent()?.unwrap_or_default();
            }
            "corrupt" => {
                i.corrupt = words.percent()?;
                i.corrupt_correlation = words.maybe_percent()?.unwrap_or_default();
            }
            "duplicate" => {
                i.duplicate = words.percent()?;
                i.duplicate_correlation = words.maybe_percent()?.unwrap_or_default();
            }
            "gap" => {
                let word = words.word()?;
                i.reorder_gap = words.read(word, |word| word.parse().ok())?;
            }
            "distribution" => {
                let word = words.word()?;
                let known =
                    |word: &str| Distribution::WORDS.into_iter().find(|(name, _)| *name == word);
                i.jitter_distribution = words.read(word, known)?.1;
            }
            "rate" => {
                let word = words.word()?;
                self.rate = Some(words.read(word, rate)?);
                if let Some(word) = words.number() {
                    self.framing =
                        words.read(word, |word| word.parse().ok().filter(|n| *n <= 10_000))?;
                }
                if let Some(word) = words.number() {
                    let message = format!("cells of {word} bytes are not modelled");
                    return Err(wrong(
                        message,
                        "write the rate, and bytes that are added to each packet",
                    ));
                }
            }
            other => {
                let help = match other {
                    "seed" => "the `seed` of the scenario decides about all draws; leave it out",
                    "ecn" => "queues mark packets, by `ecn` of their discipline; leave it out",
                    _ => "give the times at which the link sends in a `trace`, and leave it out",
                };
                return Err(wrong(format!("`{other}` is not modelled"), help));
            }
        }
        Ok(())
    }

    fn loss(&mut self, words: &mut Words<'_>) -> Result<(), NetemError> {
        let i = &mut self.impairments;
        let word = words.word()?;
        let loss = match word {
            "gemodel" => {
                let p = words.percent()?;
                let mut chain = GilbertElliott::of(p, words.maybe_percent()?);
                let other = |p: Probability| Probability::new(1.0 - p.get()).unwrap_or_default();
                if let Some(lost) = words.maybe_percent()? {
                    chain.h = other(lost);
                }
                if let Some(lost) = words.maybe_percent()? {
                    chain.k = other(lost);
                }
                Loss::Chain(chain)
            }
            "state" => {
                let help = "write `loss gemodel` with p, r, 1-h and 1-k instead";
                return Err(wrong("the model `state` of four states is not modelled", help));
            }
            word => {
                let word = if word == "random" { words.word()? } else { word };
                let p = words.read(word, percent)?;
                i.loss_correlation = words.maybe_percent()?.unwrap_or_default();
                Loss::Random(p)
            }
        };
        if i.loss.replace(loss).is_some() {
            return Err(wrong("`loss` stands there twice", "a line has one model of losses"));
        }
        Ok(())
    }

    /// What `tc` demands of them together.
    fn check(mut self, has_distribution: bool) -> Result<Netem, NetemError> {
        let i = &mut self.impairments;
        let reorders = i.reorder != Probability::ZERO;
        if reorders && self.delay == Span::ZERO {
            let help =
                "a reordered packet leaves the delay out: write one, `delay 10ms reorder 25%`";
            return Err(wrong("`reorder` without a delay", help));
        }
        if !reorders && i.reorder_gap > 0 {
            return Err(wrong("`gap` without `reorder`", "write `delay 10ms reorder 100% gap 5`"));
        }
        if has_distribution && (self.delay == Span::ZERO || i.jitter == Span::ZERO) {
            let help = "write a delay and a jitter, `delay 20ms 5ms distribution normal`";
            return Err(wrong("`distribution` without a jitter", help));
        }
        if self.rate.is_some() && *i != Impairments::default() {
            i.jitter_order = Order::Kept;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(p: f64) -> Probability {
        Probability::new(p).unwrap()
    }

    /// Whoever leaves out what stands behind a word is shown an example that can be read.
    #[test]
    fn each_example_is_one_that_can_be_read() {
        for option in [
            "limit",
            "loss",
            "reorder",
            "corrupt",
            "gap",
            "duplicate",
            "distribution",
            "rate",
            "delay",
            "slot",
        ] {
            for text in example(option).split("` or `") {
                Netem::parse(text).unwrap_or_else(|error| panic!("{option}: {text}: {error:?}"));
                assert!(text.contains(option) || option == "slot", "{option}: {text}");
            }
        }
    }

    #[test]
    fn it_reads_what_tc_reads() {
        let read = |text| Netem::parse(text).unwrap();
        let netem = read("delay 20ms 5ms 25% loss 1% distribution normal");
        assert_eq!(netem.delay, Span::millis(20));
        let i = &netem.impairments;
        assert_eq!((i.jitter, i.jitter_correlation), (Span::millis(5), p(0.25)));
        assert_eq!((i.jitter_distribution, i.jitter_order), (Distribution::Normal, Order::Free));
        assert_eq!(i.loss, Some(Loss::Random(p(0.01))));
        // A whole command, shortened words, bare numbers.
        let netem = read(
            "tc qdisc add dev eth0 root netem lat 1500 reord 25 50 gap 5 dup 0.5 cor 0.1% 30% lim 77",
        );
        assert_eq!((netem.delay, netem.limit), (Span::micros(1500), Some(77)));
        let i = &netem.impairments;
        assert_eq!((i.reorder, i.reorder_correlation, i.reorder_gap), (p(0.25), p(0.5), 5));
        assert_eq!((i.duplicate, i.corrupt, i.corrupt_correlation), (p(0.005), p(0.001), p(0.3)));
        let netem = read("rate 1mbps 14 delay 100us loss gemodel 1% 10% 70% 0.1%");
        assert_eq!((netem.rate, netem.framing), (Rate::from_bps(8_000_000), 14));
        assert_eq!(netem.impairments.jitter_order, Order::Kept);
        let Some(Loss::Chain(chain)) = netem.impairments.loss else { panic!() };
        assert_eq!((chain.p, chain.r), (p(0.01), Some(p(0.1))));
        assert!((chain.h.get() - 0.3).abs() < 1e-12 && (chain.k.get() - 0.999).abs() < 1e-12);
        assert_eq!(read("rate 1mbit").impairments, Impairments::default());
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let told = |text| Netem::parse(text).unwrap_err().message;
        assert_eq!(told("delay 20ms jitter 5ms"), "netem has no `jitter`");
        assert_eq!(told("delay"), "nothing stands behind `delay`");
        assert_eq!(told("delay 20m"), "`20m` cannot stand behind `delay`");
        assert_eq!(told("loss 120%"), "`120%` cannot stand behind `loss`");
        assert_eq!(told("loss 1% loss 2%"), "`loss` stands there twice");
        assert_eq!(told("loss state 1%"), "the model `state` of four states is not modelled");
        assert_eq!(
            told("delay 1ms distribution cauchy"),
            "`cauchy` cannot stand behind `distribution`"
        );
        assert_eq!(told("delay 1ms distribution normal"), "`distribution` without a jitter");
        assert_eq!(told("reorder 25%"), "`reorder` without a delay");
        assert_eq!(told("delay 1ms gap 5"), "`gap` without `reorder`");
        assert_eq!(told("rate 10mbit ecn"), "`ecn` is not modelled");
        assert_eq!(told("rate 10parsec"), "`10parsec` cannot stand behind `rate`");
        assert_eq!(told("rate 1mbit 0 48 5"), "cells of 48 bytes are not modelled");
    }
}
