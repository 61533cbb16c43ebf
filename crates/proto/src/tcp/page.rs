//! Clients that load pages: a first object, then the others, over several connections at once as by HTTP/1.1, or over one
//! on which all are asked for together as by HTTP/2.
//!
//! Connections stay open from page to page. An object is asked for on one that waits for nothing, else on a new one, else
//! it waits. On one connection for all, answers come one behind the other: how streams share it is not modelled. Neither
//! are the server's time, that of reading what is there, names and TLS.
//!
//! Sizes and pauses have a stream of their own, and their number does not depend on the network: the n-th page of a client
//! is the same whatever carries it.

use std::collections::VecDeque;

use serde::Serialize;

use crate::rng::Stream;
use crate::units::{Bytes, Span, Time};
use crate::wire::FlowKey;

use super::traffic::Periods;

/// Pages that a client loads.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Page {
    /// What is on them.
    pub content: Content,
    /// The size of a request.
    pub request: Bytes,
    /// How many connections a client has at most.
    pub connections: u32,
    /// All objects behind the first are asked for at once, on one connection.
    pub multiplexed: bool,
    /// The mean of the exponential time from a page to the next.
    pub think: Span,
    /// How many pages a client loads; without it, until it is stopped.
    pub pages: Option<u32>,
}

/// What is on a page.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Always the same.
    Same {
        /// The size of the first object.
        first: Bytes,
        /// How many others there are.
        objects: u32,
        /// The size of each of them.
        size: Bytes,
    },
    /// Drawn by the model of NGMN's Radio Access Performance Evaluation Methodology (2008), which is that of 3GPP2 C.R1002
    /// and of the evaluation methodology of IEEE 802.16m: sizes of the first object and of the others are log-normal and
    /// bounded, the number of others is a Pareto distribution that is cut off (mean 5.64). Parameters and bounds are the
    /// document's; its means, 10,710 and 7,758 bytes, are not quite those that follow, 11,050 and 8,200.
    Ngmn,
}

/// The logarithm of a size is normal; a size out of bounds is drawn again.
struct LogNormal {
    mu: f64,
    sigma: f64,
    bounds: [f64; 2],
}

const FIRST: LogNormal = LogNormal { mu: 8.37, sigma: 1.37, bounds: [100.0, 2e6] };
const OTHER: LogNormal = LogNormal { mu: 6.17, sigma: 2.36, bounds: [50.0, 2e6] };

impl LogNormal {
    fn draw(&self, chance: &mut Stream) -> Bytes {
        loop {
            // By Box and Muller; 1 - unit() lies in (0, 1].
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - chance.unit()));
            let normal = radius * libm::cos(2.0 * core::f64::consts::PI * chance.unit());
            let size = libm::exp(self.mu + self.sigma * normal);
            if (self.bounds[0]..=self.bounds[1]).contains(&size) {
                return Bytes(libm::round(size) as u64);
            }
        }
    }
}

/// How many objects there are behind the first: a Pareto distribution from 2, cut off at 55, less 2.
fn number(chance: &mut Stream) -> u32 {
    const SHAPE: f64 = 1.1;
    let drawn = 2.0 / libm::pow(1.0 - chance.unit(), 1.0 / SHAPE);
    libm::round(drawn.min(55.0) - 2.0) as u32
}

impl Content {
    /// The sizes of the objects of a page, the first one first.
    pub fn draw(&self, chance: &mut Stream) -> VecDeque<Bytes> {
        match *self {
            Content::Same { first, objects, size } => {
                core::iter::once(first).chain((0..objects).map(|_| size)).collect()
            }
            Content::Ngmn => {
                let others = number(chance);
                let first = FIRST.draw(chance);
                core::iter::once(first).chain((0..others).map(|_| OTHER.draw(chance))).collect()
            }
        }
    }
}

/// One client.
#[derive(Clone, Debug)]
pub(super) struct Browser {
    /// It and its server, as events name them.
    pub(super) client: FlowKey,
    pub(super) page: Page,
    pub(super) chance: Stream,
    /// No page begins from then on.
    pub(super) stop: Option<Time>,
    /// Pages that were begun.
    pub(super) begun: u32,
    /// Its connections: which, and how many answers are still to come and have come on each.
    pub(super) lanes: Vec<Lane>,
    /// Objects that were not asked for yet.
    pub(super) left: VecDeque<Bytes>,
    /// A page is being loaded.
    pub(super) loading: bool,
    /// Its first byte, and its first object are there.
    pub(super) begins: bool,
    pub(super) first: bool,
}

/// A connection of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) connection: usize,
    pub(super) waits: u64,
    pub(super) done: u64,
}

impl Browser {
    pub(super) fn new(client: FlowKey, page: Page, stop: Option<Time>, chance: Stream) -> Browser {
        Browser {
            client,
            page,
            chance,
            stop,
            begun: 0,
            lanes: Vec::new(),
            left: VecDeque::new(),
            loading: false,
            begins: false,
            first: false,
        }
    }

    /// Whether it may load one more page at `at`.
    pub(super) fn may(&self, at: Time) -> bool {
        self.page.pages.is_none_or(|most| self.begun < most) && self.stop.is_none_or(|s| at < s)
    }

    /// Begins a page.
    pub(super) fn begin(&mut self) {
        self.begun += 1;
        self.left = self.page.content.draw(&mut self.chance);
        (self.loading, self.begins, self.first) = (true, false, false);
    }

    /// How long its user reads.
    pub(super) fn think(&mut self) -> Span {
        match self.page.think {
            Span::ZERO => Span::ZERO,
            mean => Periods { mean, shape: None }.draw(&mut self.chance),
        }
    }

    /// Answers are still to come.
    pub(super) fn waits(&self) -> bool {
        self.lanes.iter().any(|lane| lane.waits > 0)
    }

    /// What is asked for next, and on which of its connections; one behind the last is a new one.
    pub(super) fn next(&self) -> Option<(usize, Bytes)> {
        let size = *self.left.front()?;
        if !self.first {
            return (!self.waits()).then_some((0, size));
        }
        if self.page.multiplexed {
            return Some((0, size));
        }
        let idle = self.lanes.iter().position(|lane| lane.waits == 0);
        let new = (self.lanes.len() < self.page.connections as usize).then_some(self.lanes.len());
        Some((idle.or(new)?, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(mut draw: impl FnMut() -> f64) -> f64 {
        const N: u32 = 400_000;
        (0..N).map(|_| draw()).sum::<f64>() / f64::from(N)
    }

    #[test]
    fn drawn_pages_are_those_of_the_model() {
        let mut chance = Stream::new(1, "page");
        let first = mean(|| FIRST.draw(&mut chance).0 as f64);
        // exp(mu + sigma^2 / 2) times what of the first moment lies within the bounds, over what of the sizes does.
        assert!((first / 11_053.0 - 1.0).abs() < 0.01, "{first}");
        // Half of the sizes lie below the median, which bounds move a little: exp(6.17) without them.
        let below = mean(|| f64::from(u8::from(OTHER.draw(&mut chance).0 < 478)));
        // (0.5 - 0.1692) / (1 - 0.1692 - 0.0002): what lies between the bounds and below it.
        assert!((below - 0.398).abs() < 0.005, "{below}");
        let others = mean(|| f64::from(number(&mut chance)));
        assert!((others / 5.64 - 1.0).abs() < 0.02, "{others}");
    }
}
