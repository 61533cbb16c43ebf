//! What a sender does with the state that it shares with the other connections to its peer (TCP-INT, balakrishnan97
//! 5.2). Where none is lent it is Reno.

use crate::event::{Cause, TcpKind};
use crate::tcp::config::TcpConfig;
use crate::tcp::integrated::Integrated;
use crate::units::Time;

use super::growth::{Acked, Growth};
use super::{Chunk, Sender, Verdict, Window};

/// A sender's part in an integrated congestion control.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// What this connection is called there.
    id: u32,
    /// The shared state, while this connection is called.
    lent: Option<Box<Integrated>>,
    /// Whether the shared window is this connection's.
    joined: bool,
    /// Time-outs of the shared state that this connection knows of.
    timeouts: u64,
    /// Below this, an ACK for new data shows the next loss.
    recover: u64,
    /// Below this, duplicate ACKs may come from what was sent twice.
    went_back: u64,
    /// The call is for a timer, or because of its turn: whatever may be sent is sent in it.
    woken: bool,
    /// A loss was found that begins a recovery and has not been told of.
    found: bool,
    /// The window after silence, in segments.
    initial: u32,
}

impl Part {
    pub(super) fn new(config: &TcpConfig) -> Option<Box<Part>> {
        config.integrated.then(|| {
            Box::new(Part {
                id: 0,
                lent: None,
                joined: false,
                timeouts: 0,
                recover: 0,
                went_back: 0,
                woken: false,
                found: false,
                initial: config.initial_window,
            })
        })
    }
}

impl Sender {
    /// Lends the shared state for the next call; this connection is `id` there.
    pub fn lend(&mut self, id: u32, mut shared: Box<Integrated>) {
        let Some(part) = &mut self.integrated else { return };
        part.id = id;
        part.woken = false;
        if part.joined {
            shared.begin(id);
            self.window.cwnd = shared.cwnd;
            self.window.ssthresh = shared.ssthresh;
            if part.timeouts < shared.timeouts() {
                part.timeouts = shared.timeouts();
                part.went_back = self.window.max;
                part.recover = 0;
                self.window.nxt = self.window.una;
                self.window.repair = None;
                self.window.again = Cause::TimeoutRetransmit;
                self.timed = None;
                self.dupacks = 0;
            }
        }
        part.lent = Some(shared);
        if part.joined {
            self.take_loss();
        }
    }

    /// Gives the shared state back.
    pub fn give_back(&mut self) -> Option<Box<Integrated>> {
        // Not every call sends: a damaged ACK, a partial one, or an application that has stopped.
        let at_rest = self.integrated.as_ref()?.woken || !self.has_work();
        let part = self.integrated.as_mut()?;
        let mut shared = part.lent.take()?;
        if part.joined {
            shared.end(part.id, at_rest);
            shared.cwnd = self.window.cwnd;
            shared.ssthresh = self.window.ssthresh;
        }
        Some(shared)
    }

    /// The connection has ended.
    pub fn leave(&mut self, shared: &mut Integrated) {
        if let Some(part) = self.integrated.as_mut().filter(|part| part.joined) {
            shared.leave(part.id);
            part.joined = false;
        }
    }

    /// A timer may have expired, or it is this connection's turn; the caller sends afterwards.
    #[inline]
    pub(super) fn note_wake(&mut self) {
        if let Some(part) = &mut self.integrated {
            part.woken = true;
        }
    }

    /// Whether a shared state is there to be used.
    #[inline]
    pub(super) fn is_integrated(&self) -> bool {
        self.integrated.as_ref().is_some_and(|part| part.joined && part.lent.is_some())
    }

    /// The handshake is complete: the window that the other connections have reached is this one's too.
    //= balakrishnan97#5.2.2: later connections build on the window size attained by earlier ones
    pub(super) fn join(&mut self) {
        let Some(part) = self.integrated.as_mut().filter(|part| !part.joined) else { return };
        let Some(shared) = &mut part.lent else { return };
        shared.join();
        part.joined = true;
        part.timeouts = shared.timeouts();
        let w = &mut self.window;
        // Each peer's window bounds its own connection; the combined one opens only while it is used up.
        w.largest = u32::MAX / 2;
        if shared.cwnd > 0 {
            w.cwnd = shared.cwnd;
            w.ssthresh = shared.ssthresh;
        }
    }

    /// The left edge has moved.
    pub(super) fn on_integrated_ack(&mut self, ack: &Acked) -> TcpKind {
        let w = &mut self.window;
        let mut verdict = TcpKind::Acked;
        if let Some(part) = &mut self.integrated
            && let Part { lent: Some(shared), id, recover, .. } = &mut **part
        {
            let mut told = shared.acked(ack.now, *id, w.una, w.mss);
            if w.una < *recover {
                told.halve |= shared.missing(*id, w.una);
            } else {
                if *recover > 0 {
                    *recover = 0;
                    verdict = TcpKind::RecoveryEnded;
                }
                if told.full && !told.suspicious {
                    self.growth.on_ack(w, ack);
                }
            }
            if told.halve {
                halve(w);
            }
        }
        self.take_loss();
        if self.tell_loss(ack.now) { TcpKind::FastRetransmit } else { verdict }
    }

    /// A duplicate ACK has come.
    pub(super) fn on_integrated_dup_ack(&mut self, now: Time) -> Verdict {
        let w = &mut self.window;
        if let Some(part) = &mut self.integrated
            && let Part { lent: Some(shared), id, went_back, .. } = &mut **part
            && shared.duplicate(*id, w.una, w.una >= *went_back)
        {
            halve(w);
        }
        self.take_loss();
        Some(if self.tell_loss(now) { TcpKind::FastRetransmit } else { TcpKind::DupAck })
    }

    /// Takes in what was found to be lost.
    fn take_loss(&mut self) {
        let w = &mut self.window;
        if let Some(part) = &mut self.integrated
            && let Part { lent: Some(shared), id, recover, found, .. } = &mut **part
            && let Some(from) = shared.take_lost(*id)
        {
            w.repair = Some((from, Cause::FastRetransmit));
            *found |= w.una >= *recover;
            *recover = (*recover).max(w.max);
            self.timed = None;
        }
    }

    /// Whether a loss was found that begins a recovery and has not been told of yet. It is sent again at once.
    pub(super) fn tell_loss(&mut self, now: Time) -> bool {
        let found = self.integrated.as_mut().is_some_and(|part| core::mem::take(&mut part.found));
        if found {
            self.rexmt_at = Some(self.rtt.deadline(now, 1));
        }
        found
    }

    /// The timer is that of all connections: when it expires, if that is not now.
    pub(super) fn postponed(&self, now: Time) -> Option<Time> {
        let part = self.integrated.as_ref().filter(|part| part.joined)?;
        let (since, backoff) = part.lent.as_ref()?.timer();
        let more = backoff.saturating_sub(self.rtt.backoff()).min(6);
        let at = self.rtt.deadline(since, 1 << more);
        (at > now).then_some(at)
    }

    /// The timer has expired, for all connections; `cwnd` is the combined window before.
    pub(super) fn on_integrated_timeout(&mut self, now: Time, cwnd: u32) {
        let w = &mut self.window;
        let Some(part) = &mut self.integrated else { return };
        let Part { lent: Some(shared), joined: true, id, .. } = &mut **part else { return };
        let before = shared.ssthresh;
        w.ssthresh = if shared.timer().1 == 0 { half(cwnd, w.mss) } else { before };
        shared.time_out(now, *id);
        // A peer that is gone is given up after as many time-outs as if it had one connection.
        self.retries = self.retries.max(shared.timer().1);
        part.timeouts = shared.timeouts();
        part.went_back = w.max;
        part.recover = 0;
    }

    /// The next piece of the stream, if there is one, and whether it may be sent now.
    pub(super) fn integrated_chunk(&mut self, now: Time) -> (Option<Chunk>, bool) {
        let w = &mut self.window;
        let Some(part) = &mut self.integrated else { return (None, false) };
        let Part { lent: Some(shared), id, initial, .. } = &mut **part else {
            return (None, false);
        };
        //= rfc5681#section-4.1: after a time-out's worth of silence, the restart window
        if shared.idle_since().is_some_and(|busy| now.since(busy) >= self.rtt.rto()) {
            w.cwnd = w.cwnd.min(w.mss.saturating_mul(*initial));
        }
        // What may be in flight of this connection alone.
        shared.cwnd = core::mem::replace(&mut w.cwnd, u32::MAX);
        let chunk = w.next_chunk();
        w.cwnd = shared.cwnd;
        match chunk {
            Some(chunk) => (Some(chunk), shared.may_send(*id, chunk.len + u32::from(chunk.fin))),
            None => {
                shared.pass(*id);
                (None, true)
            }
        }
    }

    /// Positions `from` to `end` leave, for the first time or again.
    pub(super) fn integrated_sent(&mut self, now: Time, from: u64, end: u64, again: bool) {
        if let Some(part) = &mut self.integrated
            && let Part { lent: Some(shared), joined: true, id, .. } = &mut **part
        {
            shared.sent(now, *id, from, end, again);
        }
    }
}

//= rfc5681#section-3.1: at least two segments
fn half(cwnd: u32, mss: u32) -> u32 {
    (cwnd / 2 / mss * mss).max(2 * mss)
}

/// A loss on any connection halves the window of all.
fn halve(w: &mut Window) {
    w.ssthresh = half(w.cwnd, w.mss);
    w.cwnd = w.cwnd.min(w.ssthresh);
}
