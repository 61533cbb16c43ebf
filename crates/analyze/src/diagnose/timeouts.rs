//! Timeouts by cause, as section 5.1.1 of balakrishnan97 counts them, and losses at the tail of a flight.

use lasthop_observe::timeouts::{Expiry, TimeoutCauses};
use lasthop_proto::units::{Span, Time};

use crate::finding::{Confidence, Diagnosis, Finding};
use crate::reading::Retransmissions;
use crate::stats::Spread;

/// Number of segments behind a loss that cause a fast retransmit (RFC 5681, 3.2).
const THRESHOLD: i64 = 3;

const LOWER_MINIMUM: &str = "nothing is outstanding behind a single segment, so only the timer repairs it: lower its minimum (Linux: `ip route \
    change ... rto_min 50ms`), or send more than one segment at once";

/// Information of the sender at a retransmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Duplicate ACKs in a row.
    pub(crate) dupacks: u32,
    pub(crate) rtt: Option<Spread>,
    pub(crate) before: Retransmissions,
    pub(crate) after: Retransmissions,
}

/// Features of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// Both ends agreed on SACK.
    pub(super) sack: bool,
    /// There was more to send, and the receiver's window had room.
    pub(super) more: bool,
    /// The largest payload of a packet.
    pub(super) full: u32,
}

/// A timeout whose retransmission is unacknowledged.
#[derive(Clone, Copy, Debug)]
struct Pending {
    start: i64,
    end: i64,
    tail: bool,
    wait: f64,
}

/// The timeouts of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeouts {
    next: i64,
    una: i64,
    /// The latest packet with data, or ACK of new data.
    active: Option<Time>,
    /// Time from that event to the latest packet with data; the bytes of this packet.
    wait: Span,
    latest: (i64, i64),
    /// Whether they were sent before; otherwise their first transmission was not captured.
    again: bool,
    /// End position of the outstanding data at the start of a fast retransmission.
    recovery: Option<i64>,
    /// The sender has probed the tail since the latest ACK of new data.
    probed: bool,
    expired: Option<Box<Expired>>,
}

/// The timeouts so far.
#[derive(Clone, Copy, Debug, Default)]
struct Expired {
    pending: Option<Pending>,
    /// The latest one whose retransmission was acknowledged.
    repaired: Option<Pending>,
    causes: TimeoutCauses,
    /// Those whose data had arrived, by a DSACK block.
    needless: u64,
    tails: u64,
    tail_wait: f64,
}

impl Timeouts {
    /// Bytes `start..end` are sent.
    pub(super) fn sent(&mut self, at: Time, start: i64, end: i64) {
        self.wait = self.active.map_or(Span::ZERO, |active| at.since(active));
        self.active = Some(at);
        (self.latest, self.again) = ((start, end), start < self.next);
        self.next = self.next.max(end);
    }

    /// The peer acknowledges all bytes before `ack`.
    pub(super) fn acked(&mut self, at: Time, ack: i64) {
        if ack <= self.una {
            return;
        }
        (self.una, self.active, self.probed) = (ack, Some(at), false);
        self.recovery = self.recovery.filter(|end| ack < *end);
        let Some(expired) = &mut self.expired else { return };
        if let Some(pending) = expired.pending.take_if(|pending| ack >= pending.end) {
            expired.repaired = Some(pending);
            if pending.tail {
                expired.tails += 1;
                expired.tail_wait += pending.wait;
            }
        }
    }

    /// The peer reports that bytes `left..right` arrived twice: their timeout repaired no loss.
    pub(super) fn received_twice(&mut self, left: i64, right: i64) {
        let Some(expired) = &mut self.expired else { return };
        let covers = |pending: &Pending| pending.start < right && left < pending.end;
        if let Some(pending) = expired.pending.as_mut().filter(|pending| covers(pending)) {
            pending.tail = false;
        } else if let Some(repaired) = expired.repaired.take_if(|repaired| covers(repaired)) {
            if repaired.tail {
                expired.tails -= 1;
                expired.tail_wait -= repaired.wait;
            }
        } else {
            return;
        }
        expired.needless = (expired.needless + 1).min(expired.causes.total());
    }

    /// Processes the classification of the latest packet; `known` has the counts of retransmissions before and after
    /// it.
    pub(super) fn judged(&mut self, known: &Known, allowed: &Allowed) {
        if known.after.fast > known.before.fast {
            self.recovery = Some(self.next);
        }
        let (start, end) = self.latest;
        if known.after.timeout == known.before.timeout {
            self.probed |= known.after.other > known.before.other && end == self.next;
            return;
        }
        let expired = self.expired.get_or_insert_default();
        let repeated = expired.pending.is_some_and(|pending| pending.start == start);
        let (wait, behind) = (self.wait.as_secs_f64(), self.next - end);
        let lone = self.again && behind == 0 && start <= self.una;
        let in_recovery = !repeated && self.recovery.take().is_some();
        expired.causes.add(&Expiry {
            repeated,
            in_recovery,
            dupacks: known.dupacks,
            sack: allowed.sack,
            more: allowed.more,
            last: behind == 0,
            probed: self.probed || !self.again,
            lone,
            wait,
            rtt: known.rtt.map(|rtt| (rtt.mean, rtt.mean + 4.0 * rtt.sd)),
        });
        if repeated {
            // The timeout repeats: the path was interrupted, and not only the tail was lost.
            expired.pending = expired.pending.map(|pending| Pending { tail: false, ..pending });
            return;
        }
        let few_behind = self.again && behind < THRESHOLD * i64::from(allowed.full);
        let tail = known.dupacks == 0 && !in_recovery && few_behind && !self.probed;
        expired.pending = Some(Pending { start, end, tail, wait });
    }

    pub(super) fn diagnose(&self) -> Vec<Diagnosis> {
        self.expired.as_ref().map_or(Vec::new(), |expired| expired.diagnose())
    }
}

impl Expired {
    fn diagnose(&self) -> Vec<Diagnosis> {
        let total = self.causes.total();
        let mut found = vec![self.causes(total)];
        if self.tails > 0 {
            let (losses, waited) = (self.tails, self.tail_wait);
            let evidence = format!(
                "tail loss: {losses} of {total} timeouts repaired the last segments of a flight, behind which nothing could \
                 cause duplicate ACKs; {waited:.2} s of waiting"
            );
            let finding = Finding::TailLoss { losses, timeouts: total, waited };
            let remedy = if self.causes.avoided_by_tail_loss_probe == 0 {
                LOWER_MINIMUM
            } else {
                "turn on tail loss probes and RACK (Linux: `net.ipv4.tcp_early_retrans=3`), with SACK at both ends"
            };
            found.push(Diagnosis::new(finding, Confidence::Likely, evidence, remedy));
        }
        found
    }

    fn causes(&self, total: u64) -> Diagnosis {
        let TimeoutCauses {
            avoided_by_sack: sack,
            avoided_by_limited_transmit: limited_transmit,
            avoided_by_tail_loss_probe: probe,
            in_recovery,
            repeated,
            at_minimum,
            ..
        } = self.causes;
        let best = sack.max(limited_transmit).max(probe);
        let remedy = if 2 * self.needless >= total {
            "the data had arrived, and its ACK was lost or came later than the timer: look for delay spikes and for losses of ACKs; let the sender \
             revert such timeouts (Linux: `net.ipv4.tcp_frto=2`, `net.ipv4.tcp_timestamps=1`)"
        } else if best == 0 && in_recovery > repeated {
            "most of them repair retransmissions that were lost as well: use a sender with RACK, which detects such losses \
             (Linux: `net.ipv4.tcp_recovery=1`)"
        } else if best == 0 && 2 * at_minimum > total {
            LOWER_MINIMUM
        } else if best == 0 {
            "none of these avoids them: look at interruptions of the path"
        } else if repeated > best {
            "most of them repeat a segment that an earlier timeout had repeated, and none of these avoids that: look at \
             interruptions of the path"
        } else if best == probe {
            "turn on tail loss probes (Linux: `net.ipv4.tcp_early_retrans=3`)"
        } else if best == sack {
            "turn on SACK at both ends"
        } else {
            "use a sender with limited transmit (RFC 3042)"
        };
        let needless = self.needless;
        let mut evidence = self.causes.to_string();
        if needless > 0 {
            evidence += &format!(". Data that had arrived was repeated by {needless}");
        }
        let finding = Finding::Timeouts { total, needless, causes: self.causes };
        Diagnosis::new(finding, Confidence::Likely, evidence, remedy)
    }
}
