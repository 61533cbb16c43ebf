//! The Gilbert-Elliott model of packet losses, with the parameters of netem's `gemodel`.
//!
//! A chain of two states makes a step at each packet: from good to bad with probability `p`, back with `r`. A
//! packet passes with probability `k` in the good state and `h` in the bad one; tc writes `1-k` and `1-h`. As
//! in netem (`loss_gilb_ell`), the state before the step determines whether the packet passes.
//!
//! The defaults are those of netem: `r` is `1 - p`, `h` is 0 and `k` is 1; with `p` alone losses are
//! independent. The long-term loss share is `(p (1 - h) + r (1 - k)) / (p + r)`.

use serde::Serialize;

use super::{Descriptor, ErrorModel, ErrorSpec, Errors, Model, Read};
use crate::describe::{Form, Keys, Kind, Need, System, Value};
use crate::rng::Stream;
use crate::units::{Probability, Rate, Span, Time};

/// Packet losses by a chain of two states that makes a step at each packet.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GilbertElliott {
    /// Probability of the step from good to bad.
    pub p: Probability,
    /// Probability of the step from bad to good; `None` means 1 - p.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r: Option<Probability>,
    /// Probability that a packet passes in the bad state.
    pub h: Probability,
    /// Probability that a packet passes in the good state.
    pub k: Probability,
}

impl Model for GilbertElliott {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "gemodel",
        system: System::new(
            Kind::Channel,
            "gilbert-elliott",
            "path: errors = { model = \"gemodel\", p = \"1%\", r = \"10%\" }",
            "packets are lost by a chain of two states that steps with each of them, as netem's gemodel",
            "Gilbert 1960, Elliott 1963; tc-netem(8)",
        )
        .tier(0),
        read,
    }];

    fn loses_whole_packets(&self) -> bool {
        true
    }

    type Errors = Chain;

    fn errors(&self, stream: Stream, _: Option<Stream>) -> Chain {
        Chain { config: self.clone(), stream, good: true }
    }
}

fn read(k: &mut Keys<'_>, _: Rate) -> ErrorSpec {
    ErrorModel::GilbertElliott(GilbertElliott::keys(k)).into()
}

impl GilbertElliott {
    /// A chain with these steps that loses no packet in the good state and all in the bad one.
    pub fn of(p: Probability, r: Option<Probability>) -> GilbertElliott {
        GilbertElliott { p, r, h: Probability::ZERO, k: Probability::ONE }
    }

    /// Long-term share of lost packets.
    pub fn share(&self) -> f64 {
        let p = self.p.get();
        let r = self.r.map_or(1.0 - p, Probability::get);
        let bad = if p > 0.0 { p / (p + r) } else { 0.0 };
        bad * (1.0 - self.h.get()) + (1.0 - bad) * (1.0 - self.k.get())
    }

    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> GilbertElliott {
        let doc = "the probability of a step from the good to the bad state";
        let p = k.needed_probability("p", "0.01", doc);
        let (need, doc) = (Need::Else("1 - p"), "the probability of the step back");
        let r = match k.value("r", Form::Probability, need, Value::Absent, doc) {
            Value::Probability(r) => Some(r),
            _ => None,
        };
        let mut model = GilbertElliott::of(p, r);
        k.probability("h", &mut model.h, "the probability that a packet passes in the bad state");
        k.probability("k", &mut model.k, "the probability that a packet passes in the good state");
        model
    }
}

/// The chain of one direction.
#[derive(Clone, Debug)]
pub struct Chain {
    config: GilbertElliott,
    stream: Stream,
    good: bool,
}

impl Errors for Chain {
    /// A lost packet counts as damaged from its first byte on.
    fn pass(&mut self, _: Time, _: Span, bytes: u32) -> Option<u32> {
        let GilbertElliott { p, r, h, k } = &self.config;
        let back = || r.map_or(1.0 - p.get(), Probability::get);
        let (step, passes) = if self.good { (p.get(), k) } else { (back(), h) };
        let turns = self.stream.chance(step);
        let lost = !self.stream.chance(passes.get());
        self.good ^= turns;
        (lost && bytes > 0).then_some(0)
    }

    fn is_good(&self) -> bool {
        self.good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(p: f64, r: f64, h: f64, k: f64, packets: usize) -> Vec<bool> {
        let [p, r, h, k] = [p, r, h, k].map(|x| Probability::new(x).unwrap());
        let mut errors =
            GilbertElliott { p, r: Some(r), h, k }.errors(Stream::new(5, "radio"), None);
        (0..packets).map(|_| errors.pass(Time::ZERO, Span::ZERO, 1500).is_some()).collect()
    }

    #[test]
    fn the_share_of_losses_is_that_of_the_formula() {
        for (p, r, h, k) in [(0.01, 0.1, 0.0, 1.0), (0.05, 0.25, 0.4, 0.99), (0.2, 0.8, 0.0, 1.0)] {
            let n = 400_000;
            let lost = losses(p, r, h, k, n).into_iter().filter(|lost| *lost).count();
            let want = (p * (1.0 - h) + r * (1.0 - k)) / (p + r);
            let share = lost as f64 / n as f64;
            // Losses in a burst are correlated, so the deviation is a few times that of independent losses.
            assert!((share / want - 1.0).abs() < 0.04, "{share} instead of {want}");
        }
    }

    #[test]
    fn bursts_are_as_long_as_the_bad_state_lasts() {
        let lost = losses(0.01, 0.1, 0.0, 1.0, 400_000);
        let bursts: Vec<usize> =
            lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect();
        let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
        assert!((mean - 10.0).abs() < 0.6, "{mean}");
    }

    #[test]
    fn the_first_packet_meets_the_good_state() {
        // The state before the step counts: the packet that changes the state passes.
        let lost = losses(1.0, 1.0, 0.0, 1.0, 6);
        assert_eq!(lost, [false, true, false, true, false, true]);
    }
}
