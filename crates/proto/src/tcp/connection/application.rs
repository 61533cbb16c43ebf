//! The application's interface of a connection: write, take delivered data, and close.
//!
//! A connection without an application sends a given number of bytes of a pattern and discards received data. With an
//! application it sends only written data, and delivered data waits for the application:
//!
//! - [`Connection::write`] appends to a bounded queue; [`Connection::room`] is its free space.
//! - [`Connection::take_delivered`] returns delivered data. The receive window opens only by [`Connection::read`], with
//!   which the application reports free space.
//! - [`Connection::close`] closes the direction of this end only. The other stays open until the peer closes it, as
//!   [`Connection::peer_has_closed`] reports.
//!
//! By default no data waits for further writes (no Nagle algorithm): small writes cause small segments.

use crate::machine::Out;
use crate::tcp::rope::Rope;
use crate::tcp::sender::buffers::Appended;
use crate::tcp::state::{Input, State};
use crate::units::{Due, Time};
use crate::wire::{Body, Flags, Seq};

use super::{Connection, Outbox};

impl Connection {
    /// Attaches an application with at most `limit` unacknowledged bytes. Called before the connection opens.
    pub fn attach(&mut self, limit: u32) {
        self.outbox = Some(Box::new(Outbox::new(Rope::default(), limit)));
        self.rx.reading = false;
        self.rx.inbox = Some(Box::default());
    }

    /// Selects the pattern that this end sends without an application. Called before the connection opens.
    pub(in crate::tcp) fn set_stream(&mut self, stream: u32) {
        self.stream = stream;
    }

    /// Sets the receive buffer to `bytes`, which bounds the window. An already advertised window does not shrink.
    pub fn set_inbox(&mut self, bytes: u32) {
        self.rx.set_buffer(bytes);
    }

    /// Raises the limit of unacknowledged bytes to `bytes`.
    pub fn grow_outbox(&mut self, bytes: u32) {
        if let Some(outbox) = &mut self.outbox {
            outbox.limit = outbox.limit.max(bytes);
        }
    }

    /// The largest window that this end can advertise, in bytes.
    pub fn largest_window(&self) -> u32 {
        0xffff << self.agreed.recv_scale
    }

    /// Stores data delivered from now on for [`Connection::take_delivered`]. The receive window opens as if the data
    /// were read at once, so that an observer sees the bytes without an effect on the transfer.
    pub fn store_delivered(&mut self) {
        self.rx.inbox.get_or_insert_default();
    }

    /// Opens actively at `at`, to send the application's data.
    pub fn connect(&mut self, at: Time) {
        self.open_at = Due::at(at);
        self.active = true;
    }

    /// Delays the answer to the peer's SYN or SYN-ACK until [`Connection::accept`].
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Whether the answer to a SYN or SYN-ACK waits for [`Connection::accept`], now or when it arrives.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Permits the answer to a SYN or SYN-ACK: sends it now, or when the peer's segment arrives. `iss` replaces the
    /// initial sequence number.
    pub fn accept(&mut self, now: Time, iss: Option<Seq>, out: &mut Out) {
        if !self.held {
            return;
        }
        self.held = false;
        self.iss = iss.unwrap_or(self.iss);
        if self.state == State::SynReceived {
            self.send_syn(now, false, out);
        } else if self.state.is_synchronised() {
            self.send_ack_now(now, out);
        }
    }

    /// One past the peer's urgent data, as a position of its stream; its SYN is position 0.
    pub fn peer_urgent(&self) -> u64 {
        self.urgent()[1]
    }

    /// Number of bytes that were delivered in order.
    pub(in crate::tcp) fn rx_delivered(&self) -> u64 {
        self.rx.delivered()
    }

    /// Marks all written data as urgent (`tcp_mark_urg`).
    pub(in crate::tcp) fn mark_urgent(&mut self) {
        self.set_urgent(self.tx.core.window.end);
    }

    /// Marks data as urgent up to this position of our stream. Segments before it carry the urgent pointer.
    //= rfc9293#section-3.8.5: the pointer announces urgent data ahead of the data itself
    pub fn set_urgent(&mut self, position: u64) {
        let written = &mut self.rare().urgent[0];
        *written = (*written).max(position);
    }

    /// Delays data until [`Connection::uncork`], to send it together. ACKs wait as well, except behind a hole.
    pub fn cork(&mut self) {
        self.corked = true;
    }

    /// Sends the delayed segments.
    pub fn uncork(&mut self, now: Time, out: &mut Out) {
        if core::mem::take(&mut self.corked) {
            self.flush(now, out);
        }
    }

    /// Marks this as a base station's end of a split connection, for events and causes.
    pub fn set_relay(&mut self) {
        self.relay = true;
        self.rx.forwards = true;
    }

    /// The peer's initial sequence number; valid once its SYN has arrived.
    pub fn peer_iss(&self) -> Seq {
        self.irs
    }

    /// How many bytes [`Connection::write`] accepts now.
    pub fn room(&self) -> u32 {
        let Some(outbox) = self.outbox.as_ref().filter(|_| self.may_write()) else { return 0 };
        u64::from(outbox.limit).saturating_sub(outbox.rope.len()) as u32
    }

    pub(super) fn may_write(&self) -> bool {
        !self.tx.core.window.fin && !self.aborted
    }

    /// Appends as much of `body` as there is room for, and returns the number of accepted bytes. Data written before
    /// the connection is established waits for that.
    pub fn write(&mut self, now: Time, body: Body, out: &mut Out) -> u32 {
        self.write_part(now, body, false, out)
    }

    /// Like [`Connection::write`]; `more` is whether the application announces more data (`MSG_MORE`).
    pub(in crate::tcp) fn write_part(
        &mut self,
        now: Time,
        body: Body,
        more: bool,
        out: &mut Out,
    ) -> u32 {
        let taken = self.room().min(body.len());
        if taken == 0 {
            return 0;
        }
        self.append(now, body.slice(0, taken), more, out);
        self.flush(now, out);
        taken
    }

    /// Appends the data of one write. In Linux full buffers of it are sent before the rest is written
    /// (`tcp_sendmsg_locked`): all data if the buffer has PSH, otherwise one packet if nothing waits before it.
    fn append(&mut self, now: Time, body: Body, more: bool, out: &mut Out) {
        let mut done = 0;
        self.reserve_reports();
        while done < body.len() {
            let (len, pushes, head) = self.append_buffer(&body, done, more);
            done += len;
            if done == body.len() || !pushes && !head {
                continue;
            }
            let corked = core::mem::take(&mut self.corked);
            let packet = self.tx.quota() * u64::from(self.tx.core.window.mss);
            let w = &mut self.tx.core.window;
            let end = w.end;
            if !pushes {
                w.end = end.min(w.max.max(1) + packet);
            }
            self.flush(now, out);
            self.tx.core.window.end = end;
            self.corked = corked;
        }
    }

    /// Appends the part of a write from `done` on that fits the last buffer. Returns its length, whether the buffer has
    /// PSH, and whether no other data waits before it.
    pub(super) fn append_buffer(
        &mut self,
        body: &Body,
        done: u32,
        more: bool,
    ) -> (u32, bool, bool) {
        let Some(outbox) = &mut self.outbox else { return (body.len(), false, false) };
        let rest = body.len() - done;
        let part = self.tx.core.append(rest.into(), (done == 0, more));
        let whole = Appended { len: rest.into(), pushes: false, first: false };
        let Appended { len, pushes, first } = part.unwrap_or(whole);
        outbox.rope.push(body.slice(done, len as u32));
        let end = 1 + outbox.rope.end();
        match done {
            0 => self.tx.supply(end),
            _ => self.tx.core.window.end = end,
        }
        (len as u32, pushes, first)
    }

    /// Ends this direction: a FIN follows the last written byte. Data of the peer is still received.
    pub fn close(&mut self, now: Time, out: &mut Out) {
        if !self.may_write() {
            return;
        }
        self.tx.core.window.close();
        if self.state.is_synchronised() {
            self.check_complete(out);
        }
        self.flush(now, out);
    }

    /// Ends a transfer without an application: no new data is sent, and a FIN follows the data sent so far.
    pub fn end_here(&mut self, now: Time, out: &mut Out) {
        if self.outbox.is_some() || self.aborted {
            return;
        }
        let w = &self.tx.core.window;
        self.tx.supply(w.end.min(w.max.max(1)));
        self.tx.core.window.close();
        if self.state.is_synchronised() {
            self.check_complete(out);
        }
        self.flush(now, out);
    }

    /// Resumes (`on`) or pauses an endless transfer without an application. A pause ends with the data sent so far.
    pub fn switch(&mut self, now: Time, on: bool, out: &mut Out) {
        if self.outbox.is_some() || !self.may_write() {
            return;
        }
        let w = &self.tx.core.window;
        let end = if on { u64::MAX / 2 } else { w.end.min(w.max.max(1)) };
        self.tx.supply(end);
        self.flush(now, out);
    }

    /// Whether all data of the peer and its FIN were received in order.
    pub fn peer_has_closed(&self) -> bool {
        self.rx.is_finished()
    }

    /// Appends the delivered data to `into`, and returns its number of bytes. The receive window does not open before
    /// [`Connection::read`].
    pub fn take_delivered(&mut self, into: &mut Vec<Body>) -> u64 {
        let Some(inbox) = self.rx.inbox.as_mut().filter(|inbox| !inbox.is_empty()) else {
            return 0;
        };
        let bytes = inbox.len();
        inbox.drain(into);
        bytes
    }

    /// Whether a FIN follows the written data.
    pub fn is_closing(&self) -> bool {
        self.tx.core.window.fin
    }

    /// Whether the peer has acknowledged all data and the FIN.
    pub fn has_ended(&self) -> bool {
        self.is_closing() && self.tx.is_done()
    }

    /// Buffered bytes: written and not acknowledged, or received and not taken.
    pub fn held_bytes(&self) -> u64 {
        self.outbox.as_ref().map_or(0, |outbox| outbox.rope.len()) + self.rx.held()
    }

    /// The sequence number of the first unacknowledged byte, the number of unacknowledged bytes, and the MSS.
    pub fn unacknowledged(&self) -> (Seq, u64, u32) {
        let (window, outbox) = (&self.tx.core.window, self.outbox.as_ref());
        let written = outbox.map_or(0, |outbox| outbox.rope.len());
        (self.iss + window.una as u32, written, window.mss.max(1))
    }

    /// Aborts the connection at once and sends a reset to the peer.
    //= rfc9293#section-3.10.5
    pub fn reset(&mut self, now: Time, out: &mut Out) {
        match self.state {
            State::Closed => {
                self.open_at = Due::NEVER;
                return;
            }
            // There is no peer to reset: it never answered, or has closed.
            State::SynSent | State::TimeWait => {}
            State::SynReceived if self.held => {
                //= rfc9293#section-3.10.7.1: a SYN is refused with a reset that acknowledges it
                self.send_bare_reset(Seq(0), Some(self.irs + 1), out);
            }
            _ => self.send_control(now, Flags::RST | Flags::ACK, out),
        }
        if self.state == State::TimeWait {
            self.transition(Input::Abort);
            self.time_wait_until = Due::NEVER;
            self.finish(out);
        } else {
            self.abort(out);
        }
    }

    /// Withdraws an unanswered SYN: the reset ends the connection that the peer may have begun.
    //= rfc9293#section-3.10.7.4: SYN-RECEIVED: a reset with the expected number returns the peer to LISTEN
    pub fn withdraw_syn(&mut self, out: &mut Out) {
        if self.state == State::SynSent {
            self.send_bare_reset(self.iss + 1, None, out);
            self.abort(out);
        }
    }
}
