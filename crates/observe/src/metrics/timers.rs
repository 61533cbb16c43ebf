//! Timeouts of a sender by cause, from its events.

use lasthop_proto::event::{Tcb, TcpKind};

use crate::timeouts::{Expiry, TimeoutCauses};

/// State of a sender for the causes of its timeouts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    /// Oldest unacknowledged position and number of duplicate ACKs for it.
    dupacks: (u64, u32),
    /// Highest position sent at the start of a fast recovery.
    recovery: Option<u64>,
    /// Position that the latest timeout retransmitted.
    repeated: Option<u64>,
    /// Number of timeouts after one or two duplicate ACKs that are undecided, with the highest position sent
    /// then. Later data shows whether there was more to send.
    undecided: (u64, u64),
    causes: TimeoutCauses,
}

/// Properties of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// Whether both ends agreed on SACK.
    pub(super) sack: bool,
    /// Payload of a full segment, bytes.
    pub(super) full: u32,
    /// Last position of the transfer, if the layout names it.
    pub(super) end: Option<u64>,
}

impl Timers {
    pub(super) fn duplicate_ack(&mut self, tcb: &Tcb) {
        self.dupacks = (tcb.snd_una, tcb.dupacks);
    }

    /// Handles the start or end of a recovery.
    pub(super) fn recovery(&mut self, kind: TcpKind, tcb: &Tcb) {
        self.recovery = (kind == TcpKind::FastRetransmit).then_some(tcb.snd_max);
    }

    /// Whether a fast recovery is in progress.
    pub(super) fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    /// The causes; `offered` is one past the last position that was ever sent.
    pub(super) fn causes(&self, offered: u64) -> TimeoutCauses {
        let (count, sent) = self.undecided;
        let mut causes = self.causes;
        causes.avoided_by_limited_transmit += if offered > sent { count } else { 0 };
        causes
    }

    /// Handles a timeout of an established connection; `tcb` is the control block right after it.
    pub(super) fn expired(&mut self, tcb: &Tcb, allowed: Allowed) {
        let Tcb { snd_una, snd_max, snd_wnd, srtt, rttvar, rto, backoff, .. } = *tcb;
        let (at, dupacks) = self.dupacks;
        let outstanding = snd_max.saturating_sub(snd_una);
        let full = u64::from(allowed.full);
        let in_recovery = self.recovery.take().is_some_and(|max| snd_una < max);
        let (mean, variation) = (srtt.as_secs_f64(), rttvar.as_secs_f64());
        // The RTO is doubled already.
        let wait = rto.as_secs_f64() / if backoff > 0 { 2.0 } else { 1.0 };
        let room = outstanding + full <= u64::from(snd_wnd);
        let few = self.causes.few_duplicate_acks;
        self.causes.add(&Expiry {
            repeated: self.repeated == Some(snd_una),
            in_recovery,
            dupacks: if at == snd_una { dupacks } else { 0 },
            sack: allowed.sack,
            more: room && allowed.end.is_some_and(|end| snd_max < end),
            last: outstanding <= full,
            // Runs do not track probes: these counts are upper bounds.
            probed: false,
            lone: false,
            wait,
            rtt: (mean > 0.0).then_some((mean, mean + 4.0 * variation)),
        });
        self.repeated = Some(snd_una);
        if room && allowed.end.is_none() && self.causes.few_duplicate_acks > few {
            let (count, sent) = self.undecided;
            if snd_max > sent {
                self.causes.avoided_by_limited_transmit += count;
                self.undecided = (1, snd_max);
            } else {
                self.undecided.0 += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two timeouts after one duplicate ACK each, with 3000 bytes outstanding; the layout does not name the
    /// end.
    #[test]
    fn later_data_reveals_an_avoidable_timeout() {
        let mut timers = Timers::default();
        for snd_una in [1000, 9000] {
            let tcb = Tcb {
                snd_una,
                snd_max: snd_una + 3000,
                snd_wnd: 8000,
                dupacks: 1,
                ..Tcb::default()
            };
            timers.duplicate_ack(&tcb);
            timers.expired(&tcb, Allowed { sack: false, full: 1000, end: None });
        }
        let avoided = |offered| timers.causes(offered).avoided_by_limited_transmit;
        assert_eq!((avoided(12_000), avoided(12_001)), (1, 2));
        assert_eq!(timers.causes(0).few_duplicate_acks, 2);
    }
}
