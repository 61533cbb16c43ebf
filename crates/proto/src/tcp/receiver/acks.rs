//! When a receiver acknowledges: at once, after some segments, or by the timer.

use crate::tcp::config::{Clock, DelayedAck};
use crate::tcp::quick::QuickAcks;
use crate::units::{Due, Span, Time};

use super::Receiver;

impl Receiver {
    /// Counts in-order data, and requires an ACK after a number of segments or starts the timer.
    //= rfc5681#section-4.2: at least every second full-sized segment, within 500 ms
    pub(super) fn count_in_order(&mut self, now: Time, len: u32) {
        // A super-packet counts as several segments.
        self.unacked += if len <= self.mss { 1 } else { len.div_ceil(self.mss) };
        let every = self
            .control
            .as_ref()
            .map_or(self.settings.delayed_ack.every.max(1), |control| control.every());
        let enough = if self.maxseg > 0 && every != DelayedAck::BY_TIME {
            self.opens_by(u64::from(every) * u64::from(self.maxseg))
        } else {
            // In Linux a program that reads at once also causes the ACK of partial segments; see `read`.
            let read = self.reading || self.forwards || every == 1;
            let full = read || self.quick.as_mut().is_none_or(|quick| quick.owes_ack(self.nxt));
            self.unacked >= every && full
        };
        let quick = self.quick.as_ref().is_some_and(|quick| quick.at_once());
        let opens = || match &self.quick {
            Some(_) => self.reading && self.doubles(),
            None => every == DelayedAck::BY_TIME && self.opens_twofold(),
        };
        if quick || enough || opens() {
            self.ack_now = true;
        } else if let (None, Some(quick)) = (&self.control, &self.quick) {
            let delay = quick.delay(self.settings.delayed_ack.timeout);
            self.ack_now |= self.delay_ack(now, delay);
        } else if !self.ack_at.is_set() {
            let timeout = match &self.control {
                Some(control) => control.timeout(),
                None => self.settings.delayed_ack.timeout,
            };
            self.ack_at = Due::at(match self.settings.clock {
                Clock::Ticks { .. } => self.settings.fast.nth_after(now, 1),
                Clock::Fine { .. } => now + timeout,
            });
        }
    }

    /// Delays the next ACK by at most `delay`. Returns true if the timer is about to expire: then the ACK is sent now
    /// (`tcp_send_delayed_ack`).
    pub(super) fn delay_ack(&mut self, now: Time, delay: Span) -> bool {
        let expires = self.ack_at.get().is_some_and(|at| at <= now + delay / 4);
        self.ack_at = Due::at(self.ack_at.or_never().min(now + delay));
        expires
    }

    /// Whether an ACK could move the edge of the window by `bytes`, or by half of the buffer: the rule of 4.4BSD for
    /// sending an ACK. If segments are smaller than its segment size, it needs more of them.
    fn opens_by(&self, bytes: u64) -> bool {
        let moved = self.opens();
        moved >= bytes || 2 * moved >= u64::from(self.buffer)
    }

    /// Whether an ACK could offer twice the window that the peer still has, so that the peer does not exhaust it.
    //= agarwal00#4.5: an ACK every 500 ms; the Linux 2.2 that it changes also sends one when it can raise the window so
    fn opens_twofold(&self) -> bool {
        let free = u64::from(self.buffer).saturating_sub(self.unread);
        free > 0 && free >= 2 * self.edge.saturating_sub(self.nxt)
    }

    /// Whether the window has become twice as large. In Linux the program's read then sends an ACK
    /// (`__tcp_cleanup_rbuf`).
    fn doubles(&self) -> bool {
        let moved = self.opens();
        moved > 0 && moved >= self.edge.saturating_sub(self.nxt)
    }

    /// Requires an ACK for a segment without news. Linux schedules it like that of new data (`tcp_data_queue`).
    pub fn repeat_ack(&mut self, now: Time) {
        let quick = self.quick.as_mut().filter(|_| self.out_of_order.is_none());
        let waits = quick.and_then(|quick| (!quick.acks_now(self.nxt)).then_some(quick));
        match waits.map(|quick| quick.delay(self.settings.delayed_ack.timeout)) {
            Some(delay) => self.ack_now |= self.delay_ack(now, delay),
            None => self.acknowledge_hole(now),
        }
    }

    /// Position of the last ACK, with the rules of Linux.
    pub fn acknowledged(&self) -> Option<u64> {
        self.quick.as_ref().map(|quick| quick.acknowledged())
    }

    /// Requires an ACK now, on a data segment or as a pure ACK.
    pub fn demand_ack(&mut self) {
        self.ack_now = true;
    }

    /// Whether the receiver must send an ACK.
    pub fn ack_due(&self) -> bool {
        self.ack_now
    }

    /// Records that an ACK was sent.
    pub fn acked(&mut self) {
        if let Some(quick) = &mut self.quick {
            quick.acked(self.nxt, self.ack_now || self.ack_at.is_set());
            self.starved = false;
        }
        self.ack_now = false;
        self.ack_at = Due::NEVER;
        self.unacked = 0;
        self.duplicate = None;
    }

    /// Withdraws the ACK of a segment that another ACK has just reported (`tcp_sack_compress_send_ack`).
    pub fn withdraw_ack(&mut self) {
        self.stop();
        self.duplicate = None;
        self.quick.iter_mut().for_each(|quick| quick.withdraw());
    }

    /// Time of the delayed ACK.
    pub fn next_wake(&self) -> Option<Time> {
        self.ack_at.get()
    }

    /// Handles the delayed-ACK timer, if it has expired.
    pub fn on_wake(&mut self, now: Time) {
        if self.ack_at.is_past(now) {
            if let Some(quick) = self.quick.as_mut().filter(|_| self.unacked > 0) {
                quick.missed();
            }
            self.ack_now = true;
            self.ack_at = Due::NEVER;
        }
    }

    /// Reads `bytes` for the application. The receiver must send an ACK if the ACK can open the window far enough
    /// beyond the advertised edge. Only a sent ACK moves that edge.
    pub fn read(&mut self, now: Time, bytes: u64) {
        if self.quick.is_none() || self.behind_hole() > 0 {
            return self.relayed(bytes);
        }
        self.free(bytes);
        let (next, held) = (self.nxt - self.unread.min(self.nxt), self.reach());
        if let Some(quick) = self.quick.as_mut().filter(|_| bytes > 0) {
            quick.read((now, next), held);
        }
        self.ack_now |= self.doubles();
        if let Some(quick) = &self.quick {
            let drained = bytes > 0 && self.unread == 0;
            self.ack_now |= quick.is_full(self.nxt) || drained && quick.acks_reading();
        }
    }

    /// Frees `bytes` that a proxy has forwarded. Unlike a host of some presets, a proxy announces every sufficient
    /// step of the window, so that its peer never pauses.
    pub fn relayed(&mut self, bytes: u64) {
        self.free(bytes);
        let moved = self.opens();
        let step = u64::from((2 * self.mss.max(self.maxseg)).min(self.buffer / 2));
        let closed = self.edge <= self.nxt && moved >= self.step();
        if moved >= step || closed {
            self.ack_now = true;
        }
    }

    /// Frees `bytes` of unread data.
    fn free(&mut self, bytes: u64) {
        self.quick.iter_mut().for_each(|quick| quick.buffer().read(bytes));
        self.unread = self.unread.saturating_sub(bytes);
    }

    /// Suspends the timing of ACKs of Linux during the data of a SYN: Linux neither acknowledges this data separately
    /// nor opens the window for it. Returns the state for [`Receiver::resume_quick_acks`], if `quick`.
    pub(in crate::tcp) fn pause_quick_acks(&mut self, quick: bool) -> Option<Box<QuickAcks>> {
        self.quick.take_if(|_| quick)
    }

    /// Restores the state after the data of a SYN.
    pub(in crate::tcp) fn resume_quick_acks(&mut self, paused: Option<Box<QuickAcks>>) {
        if paused.is_some() {
            self.quick = paused;
        }
    }

    /// Stops the delayed-ACK timer.
    pub fn stop(&mut self) {
        self.ack_at = Due::NEVER;
        self.ack_now = false;
    }
}
