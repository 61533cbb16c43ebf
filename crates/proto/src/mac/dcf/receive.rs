//! Receiving: each station processes the end of each transmission.

use super::super::ether::{Flight, Reception};
use super::super::{Air, Outcome};
use super::Dcf;
use super::station::{Phase, Sending};
use crate::air::{FrameKind, Station};
use crate::units::{Span, Time};

impl Dcf {
    /// A transmission is over: each station processes it.
    pub(super) fn take_in(&mut self, now: Time, reception: &Reception, air: &mut dyn Air) {
        let from = reception.flight.from;
        for s in (0..self.stations.len()).filter(|s| *s != from.index()) {
            let mine = s == reception.flight.to.index();
            let readable =
                self.ether.is_clear(reception, Station(s as u8)) && (reception.spared || !mine);
            // A station that is sending hears nothing that could be unreadable.
            if !self.ether.is_deaf(reception, Station(s as u8)) {
                self.stations[s].unreadable = !readable;
            }
            if readable && reception.flight.to == Station::ALL {
                self.beacon_read(now, s, reception, air);
            } else if readable && mine {
                self.mine(now, s, reception, air);
            } else if readable {
                let until = now + reception.flight.claim;
                let before = self.stations[s].nav;
                self.stations[s].nav = until.max(before);
                if self.config.nav_reset && reception.flight.kind == FrameKind::Rts {
                    let round = (self.phy.sifs + self.phy.slot + self.phy.propagation) * 2;
                    let silence = round + self.cts_time;
                    self.stations[s].reset = Some((before, now + silence));
                }
            }
            if self.ether.carriers(s) == 0 {
                self.contend(now, s);
            }
        }
    }

    /// Station `s` has read a frame for itself.
    fn mine(&mut self, now: Time, s: usize, reception: &Reception, air: &mut dyn Air) {
        let Flight { from, kind, claim, .. } = reception.flight;
        let sifs = self.phy.sifs;
        match (kind, self.stations[s].phase) {
            (FrameKind::Rts, Phase::Contend) if self.stations[s].nav <= now => {
                let rest = claim.saturating_sub(sifs + self.cts_time + self.phy.propagation);
                self.stations[s].phase = Phase::Answer(FrameKind::Cts, from, rest);
                self.timers[s] = now + sifs;
            }
            (FrameKind::Cts, Phase::AwaitCts) => {
                self.stations[s].phase = Phase::Cleared;
                self.timers[s] = now + sifs;
            }
            (FrameKind::MacAck, Phase::AwaitAck) => {
                self.stations[s].phase = Phase::Contend;
                match self.stations[s].job.as_ref().map(|job| &job.content) {
                    Some(Sending::Aggregate(to)) => {
                        let to = *to;
                        self.aggregate_acked(now, s, to, air);
                    }
                    _ => self.end(now, s, true, air),
                }
                self.choose(s);
            }
            (FrameKind::PsPoll | FrameKind::Null, Phase::Contend) => {
                self.stations[s].phase = Phase::Answer(FrameKind::MacAck, from, Span::ZERO);
                self.timers[s] = now + sifs;
                self.management_read(now, from);
            }
            (FrameKind::Data | FrameKind::Ack | FrameKind::LinkAck, Phase::Contend)
                if reception.flight.aggregate =>
            {
                self.aggregate_read(now, s, reception, air);
            }
            (FrameKind::Data | FrameKind::Ack | FrameKind::LinkAck, Phase::Contend) => {
                self.stations[s].answers_block = false;
                self.stations[s].phase = Phase::Answer(FrameKind::MacAck, from, Span::ZERO);
                self.timers[s] = now + sifs;
                self.frame_read(now, s, from);
                // The receiver has the sender's last sequence number: a duplicate is acknowledged and
                // dropped.
                if let Some(job) = &mut self.stations[from.index()].job
                    && !core::mem::replace(&mut job.delivered, true)
                    && let Some(frame) = job.frame().cloned()
                {
                    air.outcome(Outcome::Arrived { frame, intact: true, may_reply: false });
                }
            }
            _ => {}
        }
    }
}
