//! Replays: the same packets are lost for the kernel's TCP and for ours, and the order is compared in which the two
//! send their segments.
//!
//! Losses are named by the places of packets among those that come to a router, so that a pattern means the same as
//! long as both senders do the same. Behind the first difference it does not, and nothing is said about what comes
//! there. A kernel does not send the same each time: its receiver delays ACKs by its own clock. So one pattern may
//! have several orders, and ours is compared with that which it follows longest.

mod order;
mod pattern;
mod recording;

pub use order::{Order, Sent, Watch, parse_runs, runs};
pub use pattern::Pattern;
pub use recording::{Recorded, Recording};

use lasthop_lab::layout;
use lasthop_scenario::{Argument, Scenario};
use serde::Serialize;

use crate::{Error, Source};

/// The path between the two hosts.
pub const PATH: &str = include_str!("path.toml");
/// What messages call it.
pub const NAME: &str = "replay";
/// Segments that are sent once.
pub const SEGMENTS: u32 = 400;

/// A kernel's congestion control and the word for ours that is to do the same.
pub const SENDERS: [(&str, &str); 3] =
    [("linux-reno", "rack"), ("linux-cubic", "cubic"), ("linux-bbr", "bbr")];

/// The word for our sender that is to do as `kernel` does.
pub fn ours(kernel: &str) -> Option<&'static str> {
    SENDERS.iter().find(|(name, _)| *name == kernel).map(|(_, word)| *word)
}

/// What is to be set in [`PATH`] for a run of `kernel` on real packets.
pub fn kernel_arguments(kernel: &str, pattern: &Pattern) -> Vec<String> {
    let mut set = vec!["world=testbed".into(), "stack=kernel".into(), format!("kernel={kernel}")];
    set.extend(pattern.arguments());
    set
}

/// The scenario of a simulated run of our sender.
///
/// # Errors
/// If `pattern` names no places.
pub fn simulated(word: &str, pattern: &Pattern) -> Result<Scenario, Error> {
    let set = core::iter::once(format!("tcp={word}")).chain(pattern.arguments());
    let arguments: Vec<Argument> = set.map(Argument::Set).collect();
    let source = Source { origin: NAME, name: NAME, text: PATH };
    let (mut plan, _) = source.plan(&arguments)?;
    Ok(plan.cells.swap_remove(0).scenario)
}

/// What our sender sends under `pattern`.
///
/// # Errors
/// If `pattern` names no places.
pub fn simulate(word: &str, pattern: &Pattern) -> Result<Order, Error> {
    let scenario = simulated(word, pattern)?;
    let mut watch = Watch::new(&layout(&scenario));
    lasthop_lab::simulate(&scenario, 1, &mut watch);
    Ok(watch.finish())
}

/// What two senders did under one pattern.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Compared {
    /// What was lost.
    pub pattern: Pattern,
    /// Segments that both sent in the same order.
    pub equal: usize,
    /// Segments that were compared.
    pub of: usize,
    /// What the kernel sent then; `None` where it sent nothing, or nothing differs.
    pub kernel: Option<Sent>,
    /// What ours sent then.
    pub ours: Option<Sent>,
    /// Segments up to which the kernel's own runs agree with each other.
    pub kernel_agrees: usize,
    /// Ours' time to deliver half of the transfer over the kernel's, the middle one of its runs.
    pub time: Option<f64>,
    /// What is to be equal.
    pub by: By,
}

/// What is to be equal in two runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The order of segments.
    Order,
    /// The rate at which they are delivered: that of a sender which paces by a rate that it has measured, so that its
    /// order says little.
    Rate,
}

impl By {
    /// Rates that differ by no more than this part are equal.
    pub const TOLERANCE: f64 = 0.05;

    /// How `kernel` is compared.
    pub fn of(kernel: &str) -> By {
        if kernel == "linux-bbr" { By::Rate } else { By::Order }
    }
}

/// The middle one of `values`.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

impl Compared {
    /// Compares ours with that of the kernel's orders that it follows longest, over the first `segments` that were sent.
    pub fn new(
        pattern: &Pattern,
        (by, kernel): (By, &[Order]),
        ours: &Order,
        segments: usize,
    ) -> Compared {
        let cut = |order: &Order| order.sent.len().min(segments);
        let best = kernel.iter().max_by_key(|order| {
            (order.same_as(ours).min(segments), core::cmp::Reverse(cut(order)))
        });
        let equal = best.map_or(0, |order| order.same_as(ours)).min(segments);
        let of = best.map_or(0, cut).max(cut(ours));
        let at = |order: &Order| order.sent.get(equal).filter(|_| equal < of).cloned();
        let agree = |a: &Order| kernel.iter().map(|b| a.same_as(b)).min();
        Compared {
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

    /// Whether the two do the same.
    pub fn is_equal(&self) -> bool {
        match self.by {
            By::Order => self.of > 0 && self.equal == self.of,
            By::Rate => self.time.is_some_and(|time| (time - 1.0).abs() <= By::TOLERANCE),
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
        let compared = Compared::new(&pattern, (By::Order, &kernel), &order("0-11 4 12"), 200);
        assert_eq!((compared.equal, compared.of, compared.kernel_agrees), (12, 14, 10));
        let segment = |sent: Option<Sent>| sent.map(|s| s.segment);
        assert_eq!((segment(compared.kernel), segment(compared.ours)), (Some(3), Some(4)));
        assert!(Compared::new(&pattern, (By::Order, &kernel), &order("0-11 4 12"), 12).is_equal());
        assert!(!Compared::new(&pattern, (By::Order, &kernel), &order("0-11"), 200).is_equal());
    }

    #[test]
    fn what_is_lost_is_sent_again() {
        let pattern = Pattern { drop_data: "31".to_owned(), drop_acks: String::new() };
        let order = simulate("rack", &pattern).unwrap();
        let segments: Vec<u32> = order.sent.iter().map(|sent| sent.segment).collect();
        assert_eq!(segments.len() as u32, SEGMENTS + 1);
        assert_eq!(segments.iter().filter(|segment| **segment == 30).count(), 2);
        // 200 segments of 1514 bytes over 20 Mb/s, with a loss in the second round trip.
        assert!((0.2..0.45).contains(&order.half_s.unwrap()), "{:?}", order.half_s);
    }
}
