//! Renewal of the keys of a session, by time and by count, while it continues.

use super::handshake::confirm_by;
use super::{CONFIRMS, RENEWAL_HELLOS, SLOWEST, Session};
use crate::tunnel::seal::Seal;
use crate::units::Time;

impl<S: Seal> Session<S> {
    /// Takes the next step of a renewal that is due.
    pub(super) fn renew(&mut self, now: Time) {
        if self.previous.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.previous = None;
        }
        if let Some(next) = self.next.as_mut().filter(|next| next.retry <= now) {
            if next.tries < CONFIRMS {
                let confirm = confirm_by(next, now);
                self.outbox.push(confirm);
            } else {
                self.next = None;
                self.postpone(now);
            }
        } else if let Some(calling) = self.calling.as_ref().filter(|calling| calling.at <= now) {
            if calling.tries < RENEWAL_HELLOS {
                self.call(now);
            } else {
                self.calling = None;
                self.postpone(now);
            }
        } else if self.renews_at().is_some_and(|at| at <= now) {
            match self.new_call(now) {
                Some(calling) => {
                    self.calling = Some(calling);
                    self.call(now);
                }
                None => self.postpone(now),
            }
        }
    }

    /// Postpones a renewal; the session continues with its keys.
    fn postpone(&mut self, now: Time) {
        self.counts.unconfirmed += 1;
        if let Some(live) = &mut self.live {
            live.renew = now + SLOWEST;
            live.renew_count = live.counter.saturating_add(self.config.renew_count);
        }
    }

    /// When new keys are due; `None` during a renewal, or if the peer is the caller.
    pub(super) fn renews_at(&self) -> Option<Time> {
        let live = self.live.as_ref().filter(|live| live.agreed.caller)?;
        let busy = self.calling.is_some() || self.next.is_some() || self.config.peer.is_none();
        let is_worn = live.counter >= live.renew_count;
        (!busy).then_some(if is_worn { live.sent.min(live.renew) } else { live.renew })
    }
}
