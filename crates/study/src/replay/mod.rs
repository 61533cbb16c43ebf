//! Replays: the kernel's TCP and ours lose the same packets, and the orders of their segments are compared.
//!
//! A pattern gives losses by the index of packets that arrive at a router. So both senders have the same losses until
//! their first difference, where the comparison stops. A kernel does not send the same order each time, because its
//! receiver delays ACKs by its own clock. So a pattern may have several orders; ours is compared with the order that it
//! follows longest.

mod order;
mod pattern;
mod recording;

pub use order::{Order, SentSegment, Watch, parse_runs, runs};
pub use pattern::Pattern;
pub use recording::{KernelOrders, Recording};

use lasthop_scenario::{Argument, Scenario};
use lasthop_sim::runs::layout;
use serde::Serialize;

use crate::{Error, Source};

/// The path between the two hosts.
pub const PATH: &str = include_str!("path.toml");
/// Its name in error messages.
pub const NAME: &str = "replay";
/// Segments of the transfer.
pub const SEGMENTS: u32 = 400;

/// A kernel's congestion control and our equivalent.
pub const SENDERS: [(&str, &str); 3] =
    [("linux-reno", "rack"), ("linux-cubic", "cubic"), ("linux-bbr", "bbr")];

/// Our sender that corresponds to `kernel`.
pub fn ours(kernel: &str) -> Option<&'static str> {
    SENDERS.iter().find(|(name, _)| *name == kernel).map(|(_, word)| *word)
}

/// The settings of [`PATH`] for a run of `kernel` on real packets.
pub fn kernel_arguments(kernel: &str, pattern: &Pattern) -> Vec<String> {
    let mut set = vec!["world=testbed".into(), "stack=kernel".into(), format!("kernel={kernel}")];
    set.extend(pattern.arguments());
    set
}

/// The scenario of a simulated run of our sender.
///
/// # Errors
///
/// `pattern` is no list of positions.
pub fn simulated(word: &str, pattern: &Pattern) -> Result<Scenario, Error> {
    let set = core::iter::once(format!("tcp={word}")).chain(pattern.arguments());
    let arguments: Vec<Argument> = set.map(Argument::Set).collect();
    let source = Source { origin: NAME, name: NAME, text: PATH };
    let (mut plan, _) = source.plan(&arguments)?;
    Ok(plan.cells.swap_remove(0).scenario)
}

/// The order in which our sender sends under `pattern`.
///
/// # Errors
///
/// `pattern` is no list of positions.
pub fn simulate(word: &str, pattern: &Pattern) -> Result<Order, Error> {
    let scenario = simulated(word, pattern)?;
    let mut watch = Watch::new(&layout(&scenario));
    lasthop_sim::runs::simulate(&scenario, 1, &mut watch);
    Ok(watch.finish())
}

/// Two senders compared under one pattern.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    pub pattern: Pattern,
    /// Segments that both sent in the same order.
    pub equal: usize,
    /// Segments that were compared.
    pub of: usize,
    /// The kernel's first different segment; `None` if it sent no more segments, or without a difference.
    pub kernel: Option<SentSegment>,
    /// Our first different segment.
    pub ours: Option<SentSegment>,
    /// Segments up to which the kernel's own runs agree.
    pub kernel_agrees: usize,
    /// Our time to deliver half of the transfer, divided by the kernel's median.
    pub time: Option<f64>,
    /// The criterion.
    pub by: Criterion,
}

/// The criterion of equality.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Criterion {
    /// The order of segments.
    Order,
    /// The rate of delivery, for a sender that paces by a measured rate: its order has little meaning.
    Rate,
}

impl Criterion {
    /// Maximum relative difference of equal rates.
    pub const TOLERANCE: f64 = 0.05;

    /// The criterion for `kernel`.
    pub fn of(kernel: &str) -> Criterion {
        if kernel == "linux-bbr" { Criterion::Rate } else { Criterion::Order }
    }
}

/// The median.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

impl Comparison {
    /// Compares ours with that order of the kernel that it follows longest, over the first `segments` segments.
    pub fn new(
        pattern: &Pattern,
        (by, kernel): (Criterion, &[Order]),
        ours: &Order,
        segments: usize,
    ) -> Comparison {
        let cut = |order: &Order| order.sent.len().min(segments);
        let best = kernel.iter().max_by_key(|order| {
            (order.same_as(ours).min(segments), core::cmp::Reverse(cut(order)))
        });
        let equal = best.map_or(0, |order| order.same_as(ours)).min(segments);
        let of = best.map_or(0, cut).max(cut(ours));
        let at = |order: &Order| order.sent.get(equal).filter(|_| equal < of).cloned();
        let agree = |a: &Order| kernel.iter().map(|b| a.same_as(b)).min();
        Comparison {
            pattern: pattern.clone(),
            equal,
            of,
            kernel: best.and_then(at),
            ours: at(ours),
            kernel_agrees: kernel.first().and_then(agree).unwrap_or(0).min(segments),
            time: median(kernel.iter().filter_map(|order| order.half_s).collect())
                .zip(ours.half_s)
                .map(|(kernel, ours)| ours / kernel),
            by,
        }
    }

    /// Equal by the criterion.
    pub fn is_equal(&self) -> bool {
        match self.by {
            Criterion::Order => self.of > 0 && self.equal == self.of,
            Criterion::Rate => {
                self.time.is_some_and(|time| (time - 1.0).abs() <= Criterion::TOLERANCE)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_compared_with_the_order_that_it_follows_longest() {
        let order = |text: &str| Order::of_segments(&parse_runs(text).unwrap());
        let kernel = [order("0-9 3 10-12"), order("0-11 3 12")];
        let pattern = Pattern { drop_data: "4".to_owned(), drop_acks: String::new() };
        let compared =
            Comparison::new(&pattern, (Criterion::Order, &kernel), &order("0-11 4 12"), 200);
        assert_eq!((compared.equal, compared.of, compared.kernel_agrees), (12, 14, 10));
        let segment = |sent: Option<SentSegment>| sent.map(|s| s.segment);
        assert_eq!((segment(compared.kernel), segment(compared.ours)), (Some(3), Some(4)));
        assert!(
            Comparison::new(&pattern, (Criterion::Order, &kernel), &order("0-11 4 12"), 12)
                .is_equal()
        );
        assert!(
            !Comparison::new(&pattern, (Criterion::Order, &kernel), &order("0-11"), 200).is_equal()
        );
    }

    #[test]
    fn a_dropped_segment_is_retransmitted_once() {
        let pattern = Pattern { drop_data: "31".to_owned(), drop_acks: String::new() };
        let order = simulate("rack", &pattern).unwrap();
        let segments: Vec<u32> = order.sent.iter().map(|sent| sent.segment).collect();
        assert_eq!(segments.len() as u32, SEGMENTS + 1);
        assert_eq!(segments.iter().filter(|segment| **segment == 30).count(), 2);
        // 200 segments of 1514 bytes over 20 Mb/s, with a loss in the second round trip.
        assert!((0.2..0.45).contains(&order.half_s.unwrap()), "{:?}", order.half_s);
    }
}
