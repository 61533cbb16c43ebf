//! Timeouts by cause, as section 5.1.1 of balakrishnan97 counts them, and losses at the tail of a flight.

use lasthop_proto::units::{Span, Time};

use super::{Confidence, Diagnosis, Finding};
use crate::reading::Retransmissions;
use crate::stats::Spread;

/// Duplicate ACKs that start a fast retransmission (RFC 5681, 3.2).
const THRESHOLD: u32 = 3;
/// The smallest wait of a sender by RFC 6298 (2.4), with some slack for the clock of the capture.
const LONGEST_MINIMUM: f64 = 1.2;

/// What the sender knew when it sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Duplicate ACKs in a row.
    pub(crate) dupacks: u32,
    pub(crate) rtt: Option<Spread>,
    pub(crate) before: Retransmissions,
    pub(crate) after: Retransmissions,
}

/// What the connection allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// Both ends agreed on SACK.
    pub(super) sack: bool,
    /// There was more to send, and the receiver's window had room.
    pub(super) more: bool,
    /// The largest payload of a packet.
    pub(super) full: u32,
}

/// Causes and remedies of timeouts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counts {
    none: u64,
    few: u64,
    recovery: u64,
    repeated: u64,
    other: u64,
    sack: u64,
    limited_transmit: u64,
    probe: u64,
    minimum: u64,
}

/// A timeout whose retransmission was not acknowledged yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    start: i64,
    end: i64,
    tail: bool,
    wait: f64,
}

/// The timeouts of one side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timeouts {
    next: i64,
    una: i64,
    /// The latest packet with data, or ACK of new data.
    active: Option<Time>,
    /// How long that had been before the latest packet with data; and that packet.
    wait: Span,
    latest: (i64, i64),
    /// The end of what was outstanding when a fast retransmission began.
    recovery: Option<i64>,
    pending: Option<Pending>,
    counts: Counts,
    tails: u64,
    tail_wait: f64,
}

impl Timeouts {
    /// Bytes `start..end` are sent.
    pub(super) fn sent(&mut self, at: Time, start: i64, end: i64) {
        self.wait = self.active.map_or(Span::ZERO, |active| at.since(active));
        self.active = Some(at);
        self.latest = (start, end);
        self.next = self.next.max(end);
    }

    /// The peer acknowledges all bytes before `ack`.
    pub(super) fn acked(&mut self, at: Time, ack: i64) {
        if ack <= self.una {
            return;
        }
        (self.una, self.active) = (ack, Some(at));
        self.recovery = self.recovery.filter(|end| ack < *end);
        if let Some(pending) = self.pending.filter(|pending| ack >= pending.end) {
            self.pending = None;
            if pending.tail {
                self.tails += 1;
                self.tail_wait += pending.wait;
            }
        }
    }

    /// The latest packet was sent again, or not; `known` has the counts before and after it.
    pub(super) fn judged(&mut self, known: &Known, allowed: &Allowed) {
        if known.after.fast > known.before.fast {
            self.recovery = Some(self.next);
        }
        if known.after.timeout == known.before.timeout {
            return;
        }
        let (start, end) = self.latest;
        let again = self.pending.is_some_and(|pending| pending.start == start);
        if again {
            self.counts.repeated += 1;
            // The path was interrupted: that was more than its tail.
            self.pending = self.pending.map(|pending| Pending { tail: false, ..pending });
            return;
        }
        let wait = self.wait.as_secs_f64();
        let behind = self.next - end;
        let few_behind = behind < i64::from(THRESHOLD) * i64::from(allowed.full);
        let in_recovery = self.recovery.take().is_some();
        let counts = &mut self.counts;
        match known.dupacks {
            _ if in_recovery => {
                counts.recovery += 1;
                //= rfc6675#section-5: SACK shows each hole, so one recovery repairs all of them
                counts.sack += u64::from(!allowed.sack);
            }
            0 => {
                counts.none += 1;
                //= rfc8985#section-7.2: the probe is sent after two round trips
                let sooner = known.rtt.is_some_and(|rtt| wait > 2.0 * rtt.mean);
                counts.probe += u64::from(sooner && (allowed.sack || behind == 0));
            }
            1..THRESHOLD => {
                counts.few += 1;
                //= rfc3042#section-2: each of the first two duplicate ACKs lets a new segment out
                counts.limited_transmit += u64::from(allowed.more);
            }
            _ => counts.other += 1,
        }
        //= rfc6298#section-2: the timer is the mean and four times the variation, but not less than a minimum
        let timer = known.rtt.map(|rtt| rtt.mean + 4.0 * rtt.sd);
        let shortened = timer.is_some_and(|timer| wait > 2.0 * timer && wait < LONGEST_MINIMUM);
        counts.minimum += u64::from(shortened);
        let tail = known.dupacks == 0 && !in_recovery && few_behind;
        self.pending = Some(Pending { start, end, tail, wait });
    }

    fn total(&self) -> u64 {
        let Counts { none, few, recovery, repeated, other, .. } = self.counts;
        none + few + recovery + repeated + other
    }

    pub(super) fn diagnose(&self) -> Vec<Diagnosis> {
        let total = self.total();
        if total == 0 {
            return Vec::new();
        }
        let mut found = vec![self.causes(total)];
        if self.tails > 0 {
            let (losses, waited) = (self.tails, self.tail_wait);
            let evidence = format!(
                "tail loss: {losses} of {total} timeouts repaired the last segments of a flight, behind which nothing could \
                 cause duplicate ACKs; {waited:.2} s of waiting"
            );
            let finding = Finding::TailLoss { losses, timeouts: total, waited };
            let remedy = "turn on tail loss probes and RACK (Linux: `net.ipv4.tcp_early_retrans=3`), with SACK at both ends";
            found.push(Diagnosis::new(finding, Confidence::Likely, evidence, remedy));
        }
        found
    }

    fn causes(&self, total: u64) -> Diagnosis {
        let Counts { none, few, recovery, repeated, other, sack, limited_transmit, probe, minimum } =
            self.counts;
        let evidence = format!(
            "timeouts: {total}; {none} without a duplicate ACK, {few} with too few, {recovery} in fast recovery, {repeated} \
             of a segment again, {other} otherwise. SACK would have avoided {sack}, limited transmit up to \
             {limited_transmit}, a tail loss probe up to {probe}; {minimum} waited for the minimum of the timer"
        );
        let best = sack.max(limited_transmit).max(probe);
        let remedy = if best == 0 {
            "none of these avoids them: look at interruptions of the path"
        } else if best == probe {
            "turn on tail loss probes (Linux: `net.ipv4.tcp_early_retrans=3`)"
        } else if best == sack {
            "turn on SACK at both ends"
        } else {
            "use a sender with limited transmit (RFC 3042)"
        };
        let finding = Finding::Timeouts {
            total,
            no_duplicate_acks: none,
            few_duplicate_acks: few,
            in_recovery: recovery,
            repeated,
            otherwise: other,
            avoided_by_sack: sack,
            avoided_by_limited_transmit: limited_transmit,
            avoided_by_tail_loss_probe: probe,
            at_minimum: minimum,
        };
        Diagnosis::new(finding, Confidence::Likely, evidence, remedy)
    }
}
