//! netem's impairments of a line: jitter, reordering, loss, duplicates, corruption.
//!
//! The rules are those of tc-netem(8) and of the kernel's queueing discipline, for a packet whose last bit
//! has been sent:
//!
//! - It is duplicated, lost, and corrupted, each with a probability. If it is both duplicated and lost, one
//!   of the two remains. A duplicate has separate draws, but is not duplicated again.
//! - A corrupted packet has one wrong bit anywhere; a receiver that verifies the affected checksum drops it.
//! - It takes the delay and a deviation from it, in total at least zero. With [`Order::Free`] it overtakes
//!   packets with longer delays, with [`Order::Kept`] it waits for them, like netem with a `rate`.
//! - A reordered packet takes no delay at all. With a gap of n at least n - 1 packets are between two of
//!   them.
//! - Correlated numbers are `(1 - c)` of a new one and `c` of the last one. That is no correlation in the
//!   strict sense, and such numbers are no longer uniform: a loss of 1% with a correlation of 25% is less
//!   than 1%, like in netem.
//!
//! One thing differs: the kernel uses the remainder of a number modulo twice the jitter, or modulo the size
//! of the table, which removes the correlation. Here a number selects the quantile, like in the manual.

use serde::Serialize;

use crate::channel::{Channel, ErrorModel, GilbertElliott};
use crate::machine::Side;
use crate::rng::Stream;
use crate::units::{Probability, Span, Time};
use crate::wire::{Packet, PacketId};

use super::distribution::Distribution;

/// Impairments of packets.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Impairments {
    /// Deviation of the delay; the distribution defines its meaning.
    pub jitter: Span,
    /// Correlation of successive deviations.
    pub jitter_correlation: Probability,
    /// Distribution of deviations.
    pub jitter_distribution: Distribution,
    /// Whether packets overtake others with longer delays.
    pub jitter_order: Order,
    /// Loss model.
    pub loss: Option<Loss>,
    /// Correlation of successive loss draws.
    pub loss_correlation: Probability,
    /// Probability of a duplicate.
    pub duplicate: Probability,
    /// Correlation of its successive draws.
    pub duplicate_correlation: Probability,
    /// Probability of a wrong bit in a packet.
    pub corrupt: Probability,
    /// Correlation of its successive draws.
    pub corrupt_correlation: Probability,
    /// Probability that a packet takes no delay.
    pub reorder: Probability,
    /// Correlation of its successive draws.
    pub reorder_correlation: Probability,
    /// At most one of this many successive packets is reordered; any of them with 0 or 1.
    pub reorder_gap: u32,
    /// The only impaired direction; `None` for both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impaired: Option<Side>,
}

impl Impairments {
    /// The long-term share of lost packets towards `side`.
    pub fn share_lost(&self, side: Side) -> f64 {
        match &self.loss {
            _ if self.impaired.is_some_and(|impaired| impaired != side) => 0.0,
            None => 0.0,
            Some(Loss::Random(p)) => p.get(),
            Some(Loss::Chain(chain)) => chain.share(),
        }
    }
}

/// Whether packets overtake others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Overtaking is possible.
    #[default]
    Free,
    /// Packets wait for those before them.
    Kept,
}

/// Loss model.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Independent losses with this probability.
    Random(Probability),
    /// Losses by a chain of two states.
    Chain(GilbertElliott),
}

/// Numbers within [0, 1), each correlated with its predecessor.
#[derive(Clone, Debug)]
struct Correlated {
    correlation: f64,
    last: f64,
    rng: Stream,
}

impl Correlated {
    fn new(correlation: Probability, mut rng: Stream) -> Correlated {
        Correlated { correlation: correlation.get(), last: rng.unit(), rng }
    }

    fn next(&mut self) -> f64 {
        let new = self.rng.unit();
        if self.correlation == 0.0 {
            return new;
        }
        self.last = (1.0 - self.correlation) * new + self.correlation * self.last;
        self.last
    }

    fn happens(&mut self, p: Probability) -> bool {
        p.get() > 0.0 && self.next() < p.get()
    }
}

/// Result of the impairments for a packet or its duplicate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Passage {
    /// Arrival time, if it need not wait for others.
    pub at: Time,
    pub lost: bool,
    /// Position of its damage.
    pub damaged_at: Option<u32>,
    /// Whether it overtakes packets under way.
    pub free: bool,
}

/// Impairments of one direction.
#[derive(Clone, Debug)]
pub(super) struct Impaired {
    config: Impairments,
    loss: Correlated,
    chain: Option<Channel>,
    duplicate: Correlated,
    corrupt: Correlated,
    spot: Stream,
    reorder: Correlated,
    jitter: Correlated,
    /// Packets since the last reordered one.
    since: u32,
    /// The packet sent last.
    pub last: PacketId,
}

impl Impaired {
    /// Impairments of the direction towards `side`, if it has any.
    pub fn new(
        config: &Impairments,
        side: Side,
        stream: &impl Fn(&str) -> Stream,
    ) -> Option<Impaired> {
        if config.impaired.is_some_and(|impaired| impaired != side) {
            return None;
        }
        let stream = |part: &str| stream(&format!("{part}.{}", side.word()));
        let correlated = |correlation, part| Correlated::new(correlation, stream(part));
        let chain = match &config.loss {
            Some(Loss::Chain(chain)) => Some(ErrorModel::GilbertElliott(chain.clone())),
            _ => None,
        };
        Some(Impaired {
            loss: correlated(config.loss_correlation, "loss"),
            chain: chain.map(|model| Channel::new(&model, stream("loss.chain"))),
            duplicate: correlated(config.duplicate_correlation, "duplicate"),
            corrupt: correlated(config.corrupt_correlation, "corrupt"),
            spot: stream("corrupt.spot"),
            reorder: correlated(config.reorder_correlation, "reorder"),
            jitter: correlated(config.jitter_correlation, "jitter"),
            since: 0,
            last: PacketId(u64::MAX),
            config: config.clone(),
        })
    }

    /// Impairs `packet`, which was sent by `sent` and takes `delay`. Returns the results for it and for its
    /// duplicate, if there is one.
    pub fn pass(&mut self, sent: Time, delay: Span, packet: &Packet) -> (Passage, Option<Passage>) {
        self.last = packet.id;
        let duplicated = self.duplicate.happens(self.config.duplicate);
        if self.loses() {
            let lost = Passage { at: sent + delay, lost: true, damaged_at: None, free: false };
            return match duplicated {
                false => (lost, None),
                true => (self.passage(sent, delay, packet), Some(lost)),
            };
        }
        let first = self.passage(sent, delay, packet);
        let second = duplicated.then(|| {
            let lost = self.loses();
            Passage { lost, ..self.passage(sent, delay, packet) }
        });
        (first, second)
    }

    fn loses(&mut self) -> bool {
        match (&mut self.chain, &self.config.loss) {
            (Some(chain), _) => chain.pass(Time::ZERO, Span::ZERO, 1).damaged_at.is_some(),
            (None, Some(Loss::Random(p))) => self.loss.happens(*p),
            (None, _) => false,
        }
    }

    /// The result for one packet.
    fn passage(&mut self, sent: Time, delay: Span, packet: &Packet) -> Passage {
        let corrupted = self.corrupt.happens(self.config.corrupt);
        let damaged_at = corrupted.then(|| self.spot.below(packet.wire_len().into()) as u32);
        let p = self.config.reorder.get();
        self.since = self.since.saturating_add(1);
        // The draw is made only for packets that may be reordered.
        if p > 0.0 && self.since >= self.config.reorder_gap && self.reorder.next() < p {
            self.since = 0;
            return Passage { at: sent, lost: false, damaged_at, free: true };
        }
        let deviation = match self.config.jitter {
            Span::ZERO => 0.0,
            jitter => self.config.jitter_distribution.at(self.jitter.next()) * jitter.0 as f64,
        };
        let delay = libm::round(delay.0 as f64 + deviation).max(0.0) as u64;
        let free = self.config.jitter_order == Order::Free;
        Passage { at: sent + Span(delay), lost: false, damaged_at, free }
    }
}
