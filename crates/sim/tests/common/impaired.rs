//! Scenarios with netem's impairments on lines, and hosts with access links.

use lasthop_proto::channel::GilbertElliott;
use lasthop_proto::link::varied::{Distribution, Impairments, Loss, Order, OutagePackets};
use lasthop_proto::link::{LineConfig, VariedConfig};
use lasthop_proto::machine::Side;
use lasthop_proto::queue::Discipline;
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Probability, Span};
use lasthop_scenario::{Scenario, StageKind};

use super::Dice;

/// The scenario of `case` with impaired lines, and access links at some of its hosts.
pub fn impaired(case: u64) -> Scenario {
    let mut scenario = Dice::new(case).scenario();
    let mut dice = Dice(Stream::new(case, "impaired"));
    for stage in &mut scenario.path {
        let StageKind::Link(line) = &stage.kind else { continue };
        let varied = VariedConfig {
            line: line.clone(),
            right: None,
            left: None,
            delays: None,
            losses: None,
            outages: None,
            outage_packets: OutagePackets::Keep,
            impairments: Some(dice.impairments()),
        };
        stage.kind = StageKind::Varied(Box::new(varied));
    }
    for host in &mut scenario.hosts {
        if dice.one_in(2) {
            let rate = Some(dice.rate()).filter(|_| dice.one_in(2));
            host.access = Some(LineConfig {
                rate_right: rate,
                rate_left: rate,
                delay: dice.delay(),
                framing: 0,
                queue: dice.limit(),
                discipline_right: Discipline::Fifo,
                discipline_left: Discipline::Fifo,
            });
        }
    }
    scenario
}

impl Dice {
    /// Each impairment on some lines, so rare that transfers complete.
    fn impairments(&mut self) -> Impairments {
        let mut rare = |most: f64| match self.one_in(2) {
            true => self.probability(1e-4, most),
            false => Probability::ZERO,
        };
        let (lost, duplicate, corrupt, reorder) = (rare(0.03), rare(0.2), rare(0.02), rare(0.2));
        let some = Probability::new(0.3).unwrap();
        Impairments {
            jitter: Span::micros(self.pick(&[0, 0, 100, 5_000, 40_000])),
            jitter_correlation: self.pick(&[Probability::ZERO, some]),
            jitter_distribution: self.pick(&Distribution::WORDS).1,
            jitter_order: self.pick(&[Order::Free, Order::Kept]),
            loss: Some(match self.one_in(2) {
                true => Loss::Random(lost),
                false => Loss::Chain(GilbertElliott::of(lost, Some(some))),
            }),
            loss_correlation: Probability::ZERO,
            duplicate,
            duplicate_correlation: self.pick(&[Probability::ZERO, some]),
            corrupt,
            corrupt_correlation: Probability::ZERO,
            reorder,
            reorder_correlation: Probability::ZERO,
            reorder_gap: self.below(6) as u32,
            impaired: self.pick(&[None, Some(Side::Left), Some(Side::Right)]),
        }
    }
}
