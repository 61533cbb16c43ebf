//! Retransmission timeouts by the sender's state, and by the mechanism that would have avoided them
//! (balakrishnan97 5.1.1).

use serde::{Deserialize, Serialize};

/// Duplicate ACKs that start a fast retransmission (RFC 5681, 3.2).
const THRESHOLD: u32 = 3;
/// Longest wait that counts as RFC 6298's minimum RTO (2.4), seconds, with tolerance for the clock of a
/// capture.
const LONGEST_MINIMUM: f64 = 1.2;

/// Longest delay of an ACK that a probe of a single segment allows for (RFC 8985, 7.2: WCDelAckT), in seconds, with
/// tolerance for the clock of a capture.
const DELAYED_ACK: f64 = 0.22;

/// The state of a sender whose retransmission timer expired.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Expiry {
    /// Whether the timer had retransmitted the same segment before.
    pub repeated: bool,
    /// Whether a fast recovery was in progress.
    pub in_recovery: bool,
    /// Successive duplicate ACKs.
    pub dupacks: u32,
    /// Whether both ends agreed on SACK.
    pub sack: bool,
    /// Whether there was more data, and space for it in the receiver's window.
    pub more: bool,
    /// Whether the retransmitted segment was the last outstanding one.
    pub last: bool,
    /// Whether the sender had sent a probe of the tail since the latest ACK of new data.
    pub probed: bool,
    /// Whether no other segment was outstanding.
    pub lone: bool,
    /// Seconds since the latest packet or ACK of new data.
    pub wait: f64,
    /// Mean round-trip time in seconds, and the RTO of RFC 6298 without its minimum.
    pub rtt: Option<(f64, f64)>,
}

/// Timeouts of established connections. The first five groups are disjoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TimeoutCauses {
    /// Without duplicate ACKs.
    pub no_duplicate_acks: u64,
    /// After one or two duplicate ACKs.
    pub few_duplicate_acks: u64,
    /// During a fast recovery.
    pub in_recovery: u64,
    /// Of a segment that a timeout had retransmitted already.
    pub repeated: u64,
    /// All others.
    pub otherwise: u64,
    /// With SACK, the recovery would have continued.
    pub avoided_by_sack: u64,
    /// Further segments would have caused the missing duplicate ACKs (RFC 3042); an upper bound.
    pub avoided_by_limited_transmit: u64,
    /// A probe would have caused an earlier ACK (RFC 8985); an upper bound.
    pub avoided_by_tail_loss_probe: u64,
    /// The wait was more than twice the computed RTO, so a lower minimum would shorten it.
    pub at_minimum: u64,
}

impl TimeoutCauses {
    /// Counts a timeout.
    pub fn add(&mut self, expiry: &Expiry) {
        let Expiry { repeated, in_recovery, dupacks, sack, more, last, probed, lone, wait, rtt } =
            *expiry;
        if repeated {
            self.repeated += 1;
            return;
        }
        match dupacks {
            _ if in_recovery => {
                self.in_recovery += 1;
                //= rfc6675#section-5: SACK shows each hole, so one recovery repairs all of them
                self.avoided_by_sack += u64::from(!sack);
            }
            0 => {
                self.no_duplicate_acks += 1;
                //= rfc8985#section-7.2: the probe of a single segment waits for a delayed ACK, too
                let delayed = if lone { DELAYED_ACK } else { 0.0 };
                let sooner = !probed && rtt.is_some_and(|(mean, _)| wait > 2.0 * mean + delayed);
                self.avoided_by_tail_loss_probe += u64::from(sooner && (sack || last));
            }
            1..THRESHOLD => {
                self.few_duplicate_acks += 1;
                //= rfc3042#section-2: each of the first two duplicate ACKs lets a new segment out
                self.avoided_by_limited_transmit += u64::from(more);
            }
            _ => self.otherwise += 1,
        }
        //= rfc6298#section-2: the timer is the mean and four times the variation, but not less than a minimum
        let shortened = |(_, timer): (f64, f64)| wait > 2.0 * timer && wait < LONGEST_MINIMUM;
        self.at_minimum += u64::from(rtt.is_some_and(shortened));
    }

    /// Number of all timeouts.
    pub fn total(&self) -> u64 {
        self.no_duplicate_acks
            + self.few_duplicate_acks
            + self.in_recovery
            + self.repeated
            + self.otherwise
    }

    /// Sum of both.
    #[must_use]
    pub fn plus(self, other: TimeoutCauses) -> TimeoutCauses {
        TimeoutCauses {
            no_duplicate_acks: self.no_duplicate_acks + other.no_duplicate_acks,
            few_duplicate_acks: self.few_duplicate_acks + other.few_duplicate_acks,
            in_recovery: self.in_recovery + other.in_recovery,
            repeated: self.repeated + other.repeated,
            otherwise: self.otherwise + other.otherwise,
            avoided_by_sack: self.avoided_by_sack + other.avoided_by_sack,
            avoided_by_limited_transmit: self.avoided_by_limited_transmit
                + other.avoided_by_limited_transmit,
            avoided_by_tail_loss_probe: self.avoided_by_tail_loss_probe
                + other.avoided_by_tail_loss_probe,
            at_minimum: self.at_minimum + other.at_minimum,
        }
    }
}

impl core::fmt::Display for TimeoutCauses {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let TimeoutCauses {
            no_duplicate_acks,
            few_duplicate_acks,
            in_recovery,
            repeated,
            otherwise,
            avoided_by_sack,
            avoided_by_limited_transmit,
            avoided_by_tail_loss_probe,
            at_minimum,
        } = self;
        write!(
            f,
            "timeouts: {}; {no_duplicate_acks} without a duplicate ACK, {few_duplicate_acks} with too few, {in_recovery} in \
             fast recovery, {repeated} of a repeated segment, {otherwise} others. SACK would have avoided {avoided_by_sack}, \
             limited transmit up to {avoided_by_limited_transmit}, a tail loss probe up to {avoided_by_tail_loss_probe}; \
             {at_minimum} waited for the minimum of the timer",
            self.total()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(expiry: Expiry) -> TimeoutCauses {
        let mut causes = TimeoutCauses::default();
        causes.add(&expiry);
        assert_eq!(causes.total(), 1);
        causes
    }

    #[test]
    fn each_timeout_has_one_cause_and_its_remedies() {
        let silent = Expiry { wait: 1.0, rtt: Some((0.05, 0.1)), ..Expiry::default() };
        let causes = counted(Expiry { sack: true, ..silent });
        assert_eq!(
            (causes.no_duplicate_acks, causes.avoided_by_tail_loss_probe, causes.at_minimum),
            (1, 1, 1)
        );
        // Without SACK a probe of the last segment does not reveal losses before it.
        assert_eq!(counted(silent).avoided_by_tail_loss_probe, 0);
        assert_eq!(counted(Expiry { last: true, ..silent }).avoided_by_tail_loss_probe, 1);
        let probed = Expiry { last: true, probed: true, ..silent };
        assert_eq!(counted(probed).avoided_by_tail_loss_probe, 0);
        let few = counted(Expiry { dupacks: 2, more: true, ..silent });
        assert_eq!((few.few_duplicate_acks, few.avoided_by_limited_transmit), (1, 1));
        assert_eq!(counted(Expiry { dupacks: 2, ..silent }).avoided_by_limited_transmit, 0);
        let recovery = Expiry { dupacks: 5, in_recovery: true, ..silent };
        assert_eq!(counted(recovery).avoided_by_sack, 1);
        assert_eq!(counted(Expiry { sack: true, ..recovery }).avoided_by_sack, 0);
        let again = counted(Expiry { repeated: true, ..recovery });
        assert_eq!((again.repeated, again.in_recovery, again.at_minimum), (1, 0, 0));
        assert_eq!(counted(Expiry { wait: 3.0, ..silent }).at_minimum, 0);
    }
}
