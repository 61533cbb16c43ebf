//! What is sent again: why, whether it was lost, and whether the repair was needed.

use lasthop_proto::units::{Span, Time};

use super::{Data, Episode, OUTSTANDING, Repair, Tracker};
use crate::config::Config;
use crate::reading::{Loss, Retransmission, Seen};
use crate::verdict::Label;

/// No common retransmission timer is shorter (Linux: 200 ms), less some slack for the clock of the capture.
const SHORTEST_TIMEOUT: Span = Span::millis(180);

/// Repairs that are remembered after their ACK, for a DSACK that comes a round trip later.
const SETTLED: usize = 1024;

/// An ACK sooner than this share of the smallest round-trip time, that of the handshake included, does not answer a
/// retransmission.
const TOO_SOON: f64 = 0.9;

impl Repair {
    /// One that was needless, of bytes acknowledged before.
    fn needless(start: i64, end: i64, at: Time) -> Repair {
        Repair {
            start,
            end,
            at,
            sent: None,
            timestamp: None,
            soon: Span::ZERO,
            after_timeout: false,
            loss: None,
            trial: None,
            repeatedly: false,
            unseen: false,
            needless: true,
        }
    }
}

impl Tracker {
    pub(super) fn retransmission(
        &mut self,
        config: &Config,
        data: Data,
        start: i64,
        end: i64,
        unseen: bool,
    ) -> Retransmission {
        let (original, label, repeatedly) = self.mark_again(start, end);
        // The segment just before the lost one met the same queue; what was lost again met the present one.
        let before = self.samples.range(..=start).next_back().map(|(_, rtt)| *rtt);
        let rtt_before = before.filter(|_| !repeatedly).or(self.last_rtt);
        let repair = self.classify(data, start, end <= self.una && !unseen);
        let counts = &mut self.reading.retransmissions;
        *match repair {
            Retransmission::Fast => &mut counts.fast,
            Retransmission::Recovery => &mut counts.recovery,
            Retransmission::Timeout => &mut counts.timeout,
            Retransmission::AfterTimeout => &mut counts.after_timeout,
            Retransmission::Spurious => &mut counts.spurious,
            Retransmission::Other => &mut counts.other,
        } += 1;
        if repair == Retransmission::Spurious {
            self.remember(Repair::needless(start, end, data.at));
            return repair;
        }
        if matches!(repair, Retransmission::Fast | Retransmission::Timeout) {
            self.episodes += 1;
            let after_timeout = repair == Retransmission::Timeout;
            let recover = self.next.max(end);
            self.episode = Some(Episode { after_timeout, recover, number: self.episodes });
            self.stamped = data.timestamp.map(|stamp| (end, stamp));
        }
        let first = original.is_some_and(|sent| self.trials.repaired(sent, data.at));
        // Data may always have met a queue, above all that of a sender limited by its window; the handshake did not.
        let handshake = data.first_rtt.map_or(0.0, Span::as_secs_f64);
        let shortest = self.rtt.spread().map_or(0.0, |rtt| rtt.min.min(handshake));
        let kept = self.reading.losses.len() < config.losses;
        if self.repairs.len() >= OUTSTANDING
            && let Some(oldest) = self.repairs.pop_front()
        {
            self.settle(oldest);
        }
        self.repairs.push_back(Repair {
            start,
            end,
            at: data.at,
            sent: original,
            timestamp: data.timestamp,
            soon: Span::from_secs_f64(shortest * TOO_SOON),
            after_timeout: repair == Retransmission::AfterTimeout,
            loss: kept.then_some(self.reading.losses.len()),
            trial: (first && !repeatedly && !unseen).then_some(label),
            repeatedly,
            unseen,
            needless: false,
        });
        if !kept {
            self.reading.losses_omitted += 1;
            return repair;
        }
        self.disproved.push(false);
        self.episode_of.push(self.episode.map_or(0, |episode| episode.number));
        self.reading.losses.push(Loss {
            at: data.at,
            sent: original,
            offset: start,
            len: data.len,
            seen: if unseen { Seen::Never } else { Seen::Before },
            repair,
            rtt_before,
            burst: 1,
        });
        repair
    }

    /// Marks what is outstanding of `start..end` as sent again; when the first of it was sent and with which label,
    /// and whether it had been sent again before.
    fn mark_again(&mut self, start: i64, end: i64) -> (Option<Time>, Label, bool) {
        let from = self.outstanding.partition_point(|sent| sent.end <= start);
        let (mut original, mut label, mut repeatedly) = (None, None, false);
        for sent in self.outstanding.iter_mut().skip(from) {
            if original.is_none() {
                (original, label) = (Some(sent.at), sent.label);
            }
            sent.spent = true;
            repeatedly |= core::mem::replace(&mut sent.again, true);
            if sent.end >= end {
                break;
            }
        }
        (original, label, repeatedly)
    }

    /// Whether `repair` was of a loss is known now, as well as it ever will be.
    pub(super) fn settle(&mut self, repair: Repair) {
        if let Some(label) = repair.trial {
            self.trials.count(label, u64::from(!repair.needless));
        }
        if repair.needless {
            self.reading.retransmissions.needless += 1;
            self.disprove(repair.loss);
        } else {
            self.lost += 1;
            if let Some(sent) = repair.sent.filter(|_| !repair.repeatedly) {
                self.trials.lost(sent);
            }
            self.unseen += u64::from(repair.unseen);
        }
        self.remember(repair);
    }

    fn remember(&mut self, repair: Repair) {
        if self.settled.len() >= SETTLED {
            self.settled.pop_front();
        }
        self.settled.push_back(repair);
    }

    /// The receiver reports that `left..right` came twice: of what was sent again there, the latest was needless.
    //= rfc3708#section-3: a DSACK block shows which retransmission was unnecessary
    pub(super) fn received_twice(&mut self, left: i64, right: i64) {
        let covers = |repair: &Repair| repair.start < right && left < repair.end;
        let pending = self.repairs.iter_mut().rev().find(|r| covers(r) && !r.needless);
        if let Some(repair) = pending {
            repair.needless = true;
            return;
        }
        let Some(repair) =
            self.settled.iter().rposition(covers).and_then(|at| self.settled.remove(at))
        else {
            return;
        };
        if repair.needless {
            return;
        }
        self.reading.retransmissions.needless += 1;
        self.disprove(repair.loss);
        if let Some(label) = repair.trial {
            self.trials.withdraw(label);
        }
        self.lost = self.lost.saturating_sub(1);
        self.unseen = self.unseen.saturating_sub(u64::from(repair.unseen));
    }

    /// The loss with this index was none; one that was omitted has no index.
    fn disprove(&mut self, loss: Option<usize>) {
        if let Some(disproved) = loss.and_then(|i| self.disproved.get_mut(i)) {
            *disproved = true;
        } else {
            self.reading.losses_omitted = self.reading.losses_omitted.saturating_sub(1);
        }
    }

    /// Settles the repairs up to `ack`, which came at `at` and echoed `echo`.
    pub(super) fn settle_up_to(&mut self, at: Time, ack: i64, echo: Option<u32>) {
        if self.repairs.is_empty() {
            return;
        }
        let una = self.repairs.iter().map(|repair| repair.start).min().unwrap_or(ack);
        for mut repair in core::mem::take(&mut self.repairs) {
            if repair.end > ack {
                self.repairs.push_back(repair);
                continue;
            }
            //= rfc3522#section-3.2: an echo older than the retransmission shows that the original arrived
            let older = |stamp: u32| echo.is_some_and(|e| (e.wrapping_sub(stamp) as i32) < 0);
            let early = at.since(repair.at) < repair.soon || repair.timestamp.is_some_and(older);
            // Without SACK a sender goes back to the first loss. An ACK that then jumps answers the first one or two
            // segments; the others it covers had been waiting at the receiver.
            let len = repair.end - repair.start;
            let jumped = !self.any_sack && repair.after_timeout && repair.start >= una + 2 * len;
            repair.needless |= (early || jumped) && !repair.repeatedly && !repair.unseen;
            self.settle(repair);
        }
    }

    fn classify(&self, data: Data, start: i64, acked: bool) -> Retransmission {
        if acked {
            return Retransmission::Spurious;
        }
        // A timer is restarted by every new ACK and every transmission.
        //= rfc6298#section-5: (5.1) when data is sent, (5.3) when an ACK acknowledges new data
        let active = self.last_data.max(self.acked_at);
        let wait = active.map_or(Span::ZERO, |active| data.at.since(active));
        let round = self.last_rtt.map_or(Span::ZERO, Span::from_secs_f64);
        let told = data.dupacks >= 2 && start >= self.una || self.sacked > start;
        let answers = wait < SHORTEST_TIMEOUT.max(round);
        match self.episode {
            _ if !answers && (start == self.una || !told) => Retransmission::Timeout,
            Some(Episode { after_timeout: true, .. }) => Retransmission::AfterTimeout,
            Some(_) => Retransmission::Recovery,
            None if told => Retransmission::Fast,
            None => Retransmission::Other,
        }
    }
}
