//! Applications with a limited activity: transfers that stop at a time, on-off sources, and sessions of short
//! transfers as of Web browsers.
//!
//! Each has a separate random stream, and the number of its draws does not depend on the network. The n-th
//! pause and the n-th size of a session are therefore the same for every TCP.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::rng::Stream;
use crate::udp::Source;
use crate::units::{Bytes, Span, Time};
use crate::wake::WakeTree;
use crate::wire::Addr;

use super::exchange::Client;
pub use super::exchange::{Answers, Exchange};
use super::fetch;
pub use super::periods::Periods;

/// A source that sends as fast as TCP permits while it is on, and no data while it is off. Its connection
/// stays open.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct OnOff {
    /// On periods.
    pub on: Periods,
    /// Off periods.
    pub off: Periods,
}

/// Sizes of short transfers: a truncated Pareto distribution with the requested mean.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sizes {
    least: f64,
    most: f64,
    shape: f64,
}

impl Sizes {
    /// Sizes with this `mean`, at most `most`. A smaller `shape`, which must exceed 1, makes the tail
    /// heavier. `None` if there is no such distribution.
    pub fn new(mean: Bytes, most: Bytes, shape: f64) -> Option<Sizes> {
        let (mean, most) = (mean.0 as f64, most.0 as f64);
        if !(shape > 1.0 && shape <= 100.0 && (1.0..most).contains(&mean)) {
            return None;
        }
        // The mean grows with the minimum size: search from below 1.
        let (mut low, mut high) = (f64::MIN_POSITIVE, mean);
        for _ in 0..200 {
            let least = (low + high) / 2.0;
            if (Sizes { least, most, shape }).mean() < mean { low = least } else { high = least }
        }
        Some(Sizes { least: high, most, shape })
    }

    /// The mean in bytes.
    pub fn mean(&self) -> f64 {
        let Sizes { least, most, shape } = *self;
        let cut = 1.0 - libm::pow(least / most, shape);
        let body = libm::pow(least, shape) / cut * shape / (shape - 1.0);
        body * (libm::pow(least, 1.0 - shape) - libm::pow(most, 1.0 - shape))
    }

    /// Draws a size.
    pub fn draw(&self, rng: &mut Stream) -> Bytes {
        let cut = 1.0 - libm::pow(self.least / self.most, self.shape);
        let size = self.least / libm::pow(1.0 - rng.unit() * cut, 1.0 / self.shape);
        Bytes((size.min(self.most) as u64).max(1))
    }
}

/// Users that fetch a file, read it, and fetch again, each time on a new connection.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Web {
    /// Number of users.
    pub sessions: u32,
    /// Mean of the exponential time from the end of a transfer to the beginning of the next.
    pub think: Span,
    /// Size of a transfer.
    pub size: Sizes,
}

/// An application.
#[derive(Clone, Debug)]
pub(super) enum App {
    /// Ends the transfer on a connection.
    Stop { connection: usize },
    /// Switches a connection on and off.
    OnOff { connection: usize, periods: OnOff, rng: Box<Stream>, on: bool },
    /// One user.
    Session(Box<Session>),
    /// One client of a server.
    Client(Box<Client>),
    /// One client of pages or of a video, until it is done.
    Fetching(Option<fetch::Client>),
    /// A source of datagrams.
    Datagrams(Box<Source>),
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) to: Addr,
    pub(super) port: u16,
    pub(super) web: Web,
    pub(super) rng: Stream,
    /// No transfer begins from this time on.
    pub(super) stop: Option<Time>,
    /// Whether a transfer is in progress.
    pub(super) fetching: bool,
}

impl Session {
    /// Draws the next think time.
    pub(super) fn think(&mut self) -> Span {
        Periods { mean: self.web.think, shape: None }.draw(&mut self.rng)
    }
}

/// The applications of a host.
#[derive(Clone, Debug)]
pub(super) struct Apps {
    pub(super) all: Vec<App>,
    pub(super) wakes: WakeTree,
    /// Sessions by the connection of their transfer, and waiting clients by that of their response.
    pub(super) fetched_by: BTreeMap<usize, usize>,
    /// Number of sources of datagrams.
    pub(super) sources: usize,
}

impl Default for Apps {
    fn default() -> Apps {
        Apps { all: Vec::new(), wakes: WakeTree::new(1), fetched_by: BTreeMap::new(), sources: 0 }
    }
}

impl Apps {
    /// Asserts the invariants of the applications.
    pub(super) fn check(&self) {
        debug_assert!(self.sources <= self.all.len(), "sources of datagrams");
        debug_assert!(
            self.fetched_by.values().take(8).all(|app| *app < self.all.len()),
            "a connection of an unknown application"
        );
        for app in self.all.iter().take(8) {
            match app {
                App::Datagrams(source) => source.check(),
                App::Fetching(Some(client)) => client.check(),
                _ => {}
            }
        }
    }

    pub(super) fn add(&mut self, app: App, at: Time) {
        let index = self.all.len();
        self.sources += usize::from(matches!(app, App::Datagrams(_)));
        self.all.push(app);
        self.wakes.grow(index + 1);
        self.wakes.set(index, Some(at));
    }

    /// When the next of them acts.
    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        // Most hosts have none.
        if self.all.is_empty() {
            return None;
        }
        self.wakes.first().map(|(at, _)| at)
    }

    /// Handles a connection that has ended, has sent everything, or has received a response.
    pub(super) fn ended(&mut self, connection: usize) {
        if let Some(app) = self.fetched_by.remove(&connection) {
            // It continues at the next call of the host, which is immediate.
            self.wakes.set(app, Some(Time::ZERO));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(n: u32, mut draw: impl FnMut() -> f64) -> f64 {
        (0..n).map(|_| draw()).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn periods_have_their_mean() {
        let mut rng = Stream::new(1, "periods");
        for shape in [None, Some(3.0)] {
            let periods = Periods { mean: Span::millis(500), shape };
            let mean = mean(200_000, || periods.draw(&mut rng).as_secs_f64());
            assert!((mean / 0.5 - 1.0).abs() < 0.02, "{shape:?}: {mean}");
        }
    }

    #[test]
    fn sizes_have_their_mean_their_bounds_and_their_tail() {
        let sizes = Sizes::new(Bytes(10_000), Bytes(1_000_000), 1.2).unwrap();
        assert!((sizes.mean() / 10_000.0 - 1.0).abs() < 1e-9);
        let mut rng = Stream::new(1, "sizes");
        let draws: Vec<u64> = (0..400_000).map(|_| sizes.draw(&mut rng).0).collect();
        let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.03, "{mean}");
        assert!(draws.iter().all(|d| (1..=1_000_000).contains(d)));
        // The share above x decreases with x to the power of the shape.
        let above = |x: u64| draws.iter().filter(|d| **d > x).count() as f64;
        let ratio = above(10_000) / above(20_000);
        assert!((ratio / libm::pow(2.0, 1.2) - 1.0).abs() < 0.05, "{ratio}");
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert_eq!(Sizes::new(Bytes(10_000), Bytes(10_000), 1.2), None);
        assert_eq!(Sizes::new(Bytes(10_000), Bytes(100_000), 1.0), None);
        assert_eq!(Sizes::new(Bytes(0), Bytes(100_000), 1.2), None);
        assert_eq!(Sizes::new(Bytes(10), Bytes(100), f64::NAN), None);
    }
}
