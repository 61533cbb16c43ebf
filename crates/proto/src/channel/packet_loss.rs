//! Independent packet losses, whatever the packet's length.

use serde::Serialize;

use super::{Descriptor, ErrorModel, Errors, Model, Read};
use crate::describe::{Kind, System};
use crate::rng::Stream;
use crate::units::{Probability, Span, Time};

/// Each packet is lost with this probability, independent of its length.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PacketLoss {
    /// Probability of loss.
    pub p: Probability,
}

impl Model for PacketLoss {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "packet-loss",
        system: System::new(
            Kind::Channel,
            "packet-loss",
            "path: errors = { model = \"packet-loss\", p = \"2%\" }",
            "each packet is lost with the same probability, independent of its length",
            "tc-netem(8), loss random",
        )
        .tier(0),
        read: |k, _| {
            let p = k.needed_probability("p", "0.02", "the probability that a packet is lost");
            ErrorModel::PacketLoss(PacketLoss { p }).into()
        },
    }];

    fn loses_whole_packets(&self) -> bool {
        true
    }

    type Errors = PacketLosses;

    fn errors(&self, stream: Stream, _: Option<Stream>) -> PacketLosses {
        PacketLosses::new(self.p, stream)
    }
}

/// Independent packet losses.
#[derive(Clone, Debug)]
pub struct PacketLosses {
    stream: Stream,
    p: f64,
}

impl PacketLosses {
    /// Losses with probability `p`.
    pub fn new(p: Probability, stream: Stream) -> PacketLosses {
        PacketLosses { stream, p: p.get() }
    }
}

impl Errors for PacketLosses {
    /// A lost packet is damaged from its first byte on, so that even its addresses are unreadable.
    fn pass(&mut self, _: Time, _: Span, bytes: u32) -> Option<u32> {
        let lost = self.stream.chance(self.p) && bytes > 0;
        lost.then_some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_losses_is_p() {
        let p = Probability::new(0.02).unwrap();
        let mut loss = PacketLosses::new(p, Stream::new(3, "radio"));
        let lost =
            (0..200_000).filter(|_| loss.pass(Time::ZERO, Span::ZERO, 40).is_some()).count() as f64;
        // 4,000 with standard deviation 63; tolerance four deviations.
        assert!((lost - 4_000.0).abs() < 250.0, "{lost}");
    }
}
