//! Each packet is lost or not, whatever its length.

use crate::rng::Stream;
use crate::units::Probability;

/// Independent packet losses.
#[derive(Clone, Debug)]
pub struct PacketLoss {
    stream: Stream,
    p: f64,
}

impl PacketLoss {
    /// Losses with probability `p`.
    pub fn new(p: Probability, stream: Stream) -> PacketLoss {
        PacketLoss { stream, p: p.get() }
    }

    /// Where the next packet is damaged, if it is: from its first byte on, since it is lost as a whole and
    /// nobody can read even its addresses.
    pub fn pass(&mut self, bytes: u32) -> Option<u32> {
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
        let mut loss = PacketLoss::new(p, Stream::new(3, "radio"));
        let lost = (0..200_000).filter(|_| loss.pass(40).is_some()).count() as f64;
        // 4,000 with deviation 63; tolerance four deviations.
        assert!((lost - 4_000.0).abs() < 250.0, "{lost}");
    }
}
