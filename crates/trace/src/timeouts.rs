//! Retransmission timeouts by what the sender knew, and by what would have avoided them (balakrishnan97 5.1.1).

use serde::{Deserialize, Serialize};

/// Duplicate ACKs that start a fast retransmission (RFC 5681, 3.2).
const THRESHOLD: u32 = 3;
/// The smallest wait of a sender by RFC 6298 (2.4) with some slack for the clock of a capture, in seconds.
const LONGEST_MINIMUM: f64 = 1.2;

/// The state of a sender whose retransmission timer expired.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Expiry {
    /// The timer had repeated the same segment before.
    pub repeated: bool,
    /// A fast recovery had begun and was not complete.
    pub in_recovery: bool,
    /// Duplicate ACKs in a row.
    pub dupacks: u32,
    /// Both ends agreed on SACK.
    pub sack: bool,
    /// There was more to send, and the receiver's window had room for it.
    pub more: bool,
    /// No byte behind the repeated segment was outstanding.
    pub last: bool,
    /// Seconds since the latest packet or ACK of new data.
    pub wait: f64,
    /// The mean round trip in seconds, and the timer by RFC 6298 without its minimum.
    pub rtt: Option<(f64, f64)>,
}

/// Timeouts of established connections. The first five groups do not overlap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TimeoutCauses {
    /// No duplicate ACK had come.
    pub no_duplicate_acks: u64,
    /// One or two had come.
    pub few_duplicate_acks: u64,
    /// During a fast recovery.
    pub in_recovery: u64,
    /// Of a segment that a timeout had repeated already.
    pub repeated: u64,
    /// None of these.
    pub otherwise: u64,
    /// With SACK, the recovery would have continued.
    pub avoided_by_sack: u64,
    /// Further segments would have caused the missing duplicate ACKs (RFC 3042); an upper bound.
    pub avoided_by_limited_transmit: u64,
    /// A probe would have caused an ACK sooner (RFC 8985); an upper bound.
    pub avoided_by_tail_loss_probe: u64,
    /// The wait was more than twice the computed timer: a lower minimum shortens it.
    pub at_minimum: u64,
}

impl TimeoutCauses {
    /// Counts a timeout.
    pub fn add(&mut self, expiry: &Expiry) {
        let Expiry { repeated, in_recovery, dupacks, sack, more, last, wait, rtt } = *expiry;
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
                //= rfc8985#section-7.2: the probe is sent after two round trips
                let sooner = rtt.is_some_and(|(mean, _)| wait > 2.0 * mean);
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

    /// All timeouts.
    pub fn total(&self) -> u64 {
        self.no_duplicate_acks
            + self.few_duplicate_acks
            + self.in_recovery
            + self.repeated
            + self.otherwise
    }

    /// The sum of both.
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
             fast recovery, {repeated} of a segment again, {otherwise} otherwise. SACK would have avoided {avoided_by_sack}, \
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
        // Without SACK a probe of the last segment says nothing of those before it.
        assert_eq!(counted(silent).avoided_by_tail_loss_probe, 0);
        assert_eq!(counted(Expiry { last: true, ..silent }).avoided_by_tail_loss_probe, 1);
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
