//! Clients that load Web pages: a first object, then the others. HTTP/1.1 uses several connections at once;
//! HTTP/2 requests all objects together on one connection.
//!
//! Connections stay open from page to page. A request uses an idle connection, otherwise a new one, otherwise
//! it waits. On a single connection, responses are sequential: multiplexing of streams is not modelled.
//! Server processing, parsing, name resolution and TLS are not modelled either.
//!
//! Sizes and pauses have a separate random stream, and the number of draws does not depend on the network.
//! The n-th page of a client is therefore the same on every network.

use std::collections::VecDeque;

use serde::Serialize;

use crate::rng::Stream;
use crate::units::{Bytes, Span, Time};
use crate::wire::FlowKey;

use super::periods::Periods;

/// Pages that a client loads.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Page {
    /// Contents of the pages.
    pub content: Content,
    /// Size of a request.
    pub request: Bytes,
    /// Maximum number of connections of a client.
    pub connections: u32,
    /// Whether all objects after the first are requested at once, on one connection.
    pub multiplexed: bool,
    /// Mean of the exponential time from a page to the next.
    pub think: Span,
    /// Number of pages of a client; `None` continues until the client is stopped.
    pub pages: Option<u32>,
}

/// Contents of a page.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Always the same.
    Same {
        /// Size of the first object.
        first: Bytes,
        /// Number of further objects.
        objects: u32,
        /// Size of each further object.
        size: Bytes,
    },
    /// Drawn by the model of NGMN's Radio Access Performance Evaluation Methodology (2008). 3GPP2 C.R1002
    /// and the evaluation methodology of IEEE 802.16m have the same model. Sizes of the first object and of
    /// the others are log-normal and bounded; the number of others has a truncated Pareto distribution (mean
    /// 5.64). Parameters and bounds are the document's; its means, 10,710 and 7,758 bytes, differ slightly
    /// from the resulting ones, 11,050 and 8,200.
    Ngmn,
}

/// A log-normal size; a size out of bounds is drawn again.
struct LogNormal {
    mu: f64,
    sigma: f64,
    bounds: [f64; 2],
}

const FIRST: LogNormal = LogNormal { mu: 8.37, sigma: 1.37, bounds: [100.0, 2e6] };
const OTHER: LogNormal = LogNormal { mu: 6.17, sigma: 2.36, bounds: [50.0, 2e6] };

impl LogNormal {
    fn draw(&self, rng: &mut Stream) -> Bytes {
        loop {
            // By Box and Muller; 1 - unit() lies in (0, 1].
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.unit()));
            let normal = radius * libm::cos(2.0 * core::f64::consts::PI * rng.unit());
            let size = libm::exp(self.mu + self.sigma * normal);
            if (self.bounds[0]..=self.bounds[1]).contains(&size) {
                return Bytes(libm::round(size) as u64);
            }
        }
    }
}

/// Number of objects after the first: a Pareto distribution from 2, truncated at 55, less 2.
fn number(rng: &mut Stream) -> u32 {
    const SHAPE: f64 = 1.1;
    let drawn = 2.0 / libm::pow(1.0 - rng.unit(), 1.0 / SHAPE);
    libm::round(drawn.min(55.0) - 2.0) as u32
}

impl Content {
    /// The sizes of the objects of a page, the first one first.
    pub fn draw(&self, rng: &mut Stream) -> VecDeque<Bytes> {
        match *self {
            Content::Same { first, objects, size } => {
                core::iter::once(first).chain((0..objects).map(|_| size)).collect()
            }
            Content::Ngmn => {
                let others = number(rng);
                let first = FIRST.draw(rng);
                core::iter::once(first).chain((0..others).map(|_| OTHER.draw(rng))).collect()
            }
        }
    }
}

/// One client.
#[derive(Clone, Debug)]
pub(super) struct Browser {
    /// Client and server, as events name them.
    pub(super) client: FlowKey,
    pub(super) page: Page,
    pub(super) rng: Stream,
    /// No page begins from this time on.
    pub(super) stop: Option<Time>,
    /// Number of pages begun.
    pub(super) begun: u32,
    /// Its connections, each with its pending and received responses.
    pub(super) lanes: Vec<Lane>,
    /// Objects without a request so far.
    pub(super) left: VecDeque<Bytes>,
    /// Whether a page is being loaded.
    pub(super) loading: bool,
    /// Whether its first byte, and its first object, have arrived.
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
    /// Asserts the invariants of a page that loads.
    pub(super) fn check(&self) {
        debug_assert!(
            self.lanes.len() <= self.page.connections.max(1) as usize,
            "connections: {} of {}",
            self.lanes.len(),
            self.page.connections
        );
        debug_assert!(
            self.page.pages.is_none_or(|pages| self.begun <= pages),
            "pages: {} of {:?}",
            self.begun,
            self.page.pages
        );
        debug_assert!(self.loading || self.left.is_empty(), "objects remain of a loaded page");
    }

    pub(super) fn new(client: FlowKey, page: Page, stop: Option<Time>, rng: Stream) -> Browser {
        Browser {
            client,
            page,
            rng,
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
        self.left = self.page.content.draw(&mut self.rng);
        (self.loading, self.begins, self.first) = (true, false, false);
    }

    /// Think time of its user.
    pub(super) fn think(&mut self) -> Span {
        match self.page.think {
            Span::ZERO => Span::ZERO,
            mean => Periods { mean, shape: None }.draw(&mut self.rng),
        }
    }

    /// Whether responses are pending.
    pub(super) fn waits(&self) -> bool {
        self.lanes.iter().any(|lane| lane.waits > 0)
    }

    /// The next request and the index of its connection; one past the last is a new one.
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
        let mut rng = Stream::new(1, "page");
        let first = mean(|| FIRST.draw(&mut rng).0 as f64);
        // exp(mu + sigma^2 / 2) times the share of the first moment within the bounds, divided by the share
        // of the sizes within them.
        assert!((first / 11_053.0 - 1.0).abs() < 0.01, "{first}");
        // Half of the sizes are below the median, which the bounds move a little: exp(6.17) without them.
        let below = mean(|| f64::from(u8::from(OTHER.draw(&mut rng).0 < 478)));
        // (0.5 - 0.1692) / (1 - 0.1692 - 0.0002): the share between the lower bound and the median.
        assert!((below - 0.398).abs() < 0.005, "{below}");
        let others = mean(|| f64::from(number(&mut rng)));
        assert!((others / 5.64 - 1.0).abs() < 0.02, "{others}");
    }
}
