//! Proportional rate reduction (RFC 6937). In recovery the data in flight decreases to the threshold in
//! proportion to the data that arrives. If it is below the threshold, it grows at most as fast as in slow start.

/// Counters of a recovery that determine how much may be sent.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    /// Units delivered since the start of recovery.
    delivered: u64,
    /// Units sent since the start of recovery.
    out: u64,
    /// Units outstanding at the start of recovery.
    flight: u64,
    /// Bytes of a unit: one byte, or a segment.
    unit: u64,
}

/// Input from an ACK in recovery.
#[derive(Clone, Copy, Debug)]
pub struct PrrInput {
    /// Newly acknowledged bytes, cumulatively or selectively.
    pub delivered: u64,
    /// Estimated bytes in the network.
    pub pipe: u64,
    /// The slow-start threshold.
    pub ssthresh: u64,
    /// Segment size.
    pub mss: u64,
    /// Whether one segment more than the delivered ones may be sent while the pipe is below the threshold.
    pub safe: bool,
}

impl Prr {
    /// Starts a recovery with `flight` bytes outstanding. `unit` is the size of a unit in bytes. Linux counts
    /// segments, so the arrival of a partial segment permits a full one.
    pub fn new(flight: u64, unit: u64) -> Prr {
        let unit = unit.max(1);
        Prr { delivered: 0, out: 0, flight: flight.div_ceil(unit).max(1), unit }
    }

    /// Records that `bytes` were sent.
    pub fn sent(&mut self, bytes: u64) {
        self.out += bytes.div_ceil(self.unit);
    }

    /// The congestion window after an ACK.
    //= rfc6937#section-3: in proportion while the pipe is above ssthresh, then slow start up to it (PRR-SSRB)
    pub fn window(&mut self, input: &PrrInput) -> u64 {
        let count = |bytes: u64| bytes.div_ceil(self.unit);
        let (delivered, pipe) = (count(input.delivered), count(input.pipe));
        let (ssthresh, mss) = (count(input.ssthresh), count(input.mss));
        self.delivered += delivered;
        let allowed = if pipe > ssthresh {
            (self.delivered * ssthresh).div_ceil(self.flight).saturating_sub(self.out)
        } else {
            let more = if input.safe { mss } else { 0 };
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + more;
            limit.min(ssthresh - pipe)
        };
        // The first retransmission is sent independent of the pipe.
        let allowed = if self.out == 0 { allowed.max(mss) } else { allowed };
        input.pipe + allowed * self.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in the first example of RFC 6937 section 3.1: 20 segments in flight, one lost, ssthresh 10. One for two
    /// until the pipe is down at the threshold, then one for one.
    #[test]
    fn a_single_loss_sends_on_every_second_ack() {
        let mut prr = Prr::new(20, 1);
        let mut pipe = 19; // one is lost
        let mut sent = Vec::new();
        for _ in 0..19 {
            pipe -= 1;
            let input = PrrInput { delivered: 1, pipe, ssthresh: 10, mss: 1, safe: true };
            let n = prr.window(&input) - pipe;
            prr.sent(n);
            pipe += n;
            sent.push(n);
        }
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
        assert_eq!(pipe, 10);
    }

    /// The second one: 15 of 20 are lost. The pipe is below ssthresh from the start, and slow start is the bound.
    #[test]
    fn after_many_losses_no_burst_follows() {
        let mut prr = Prr::new(20, 1);
        let mut pipe = 4;
        let mut sent = Vec::new();
        for _ in 0..4 {
            pipe -= 1;
            let n = prr.window(&PrrInput { delivered: 1, pipe, ssthresh: 10, mss: 1, safe: true })
                - pipe;
            prr.sent(n);
            pipe += n;
            sent.push(n);
        }
        assert_eq!(sent, [2, 2, 2, 2]);
    }
}
