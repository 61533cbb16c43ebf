//! What an application does with a connection: it writes, takes what was delivered, and closes.
//!
//! A connection to which no application was attached sends a given number of bytes of a pattern and discards
//! what it receives. With one, nothing is sent that was not written, and what was delivered waits to be taken:
//!
//! - [`Connection::write`] appends to a bounded queue; [`Connection::room`] says how much fits.
//! - [`Connection::take_delivered`] hands over what has come. The receive window opens again when the
//!   application says by [`Connection::read`] that it has room for as many bytes more.
//! - [`Connection::close`] ends its own direction only; the other one stays open until the peer closes, which
//!   [`Connection::peer_has_closed`] tells.
//!
//! Nothing waits for more to be written (no Nagle): who writes small pieces sends small segments.

use crate::event::Cause;
use crate::machine::Out;
use crate::tcp::rope::Rope;
use crate::tcp::state::{Input, State};
use crate::units::{Due, Time};
use crate::wire::{Body, Flags, Packet, Segment, Seq};

use super::{Connection, Outbox};

impl Connection {
    /// Attaches an application whose unacknowledged bytes are bounded by `limit`. Before the connection opens.
    pub fn attach(&mut self, limit: u32) {
        self.outbox = Some(Box::new(Outbox::new(Rope::default(), limit)));
        self.rx.reading = false;
        self.rx.inbox = Some(Box::default());
    }

    /// What it sends is bytes of `stream`, if no application writes. Before the connection opens.
    pub(in crate::tcp) fn set_stream(&mut self, stream: u32) {
        self.stream = stream;
    }

    /// What was delivered and not read may be `bytes` from now on, and the window with it. What was advertised before
    /// is not taken back.
    pub fn set_inbox(&mut self, bytes: u32) {
        self.rx.buffer = bytes;
    }

    /// What was written and not acknowledged may be `bytes` from now on.
    pub fn grow_outbox(&mut self, bytes: u32) {
        if let Some(outbox) = &mut self.outbox {
            outbox.limit = outbox.limit.max(bytes);
        }
    }

    /// The largest window that the peer can be told of.
    pub fn largest_window(&self) -> u32 {
        0xffff << self.agreed.recv_scale
    }

    /// What is delivered from now on waits to be taken by [`Connection::take_delivered`]; the receive window opens
    /// as if it were read at once. For an observer who wants to see the bytes and change nothing.
    pub fn keep_delivered(&mut self) {
        self.rx.inbox.get_or_insert_default();
    }

    /// Whether an application is attached.
    pub fn is_attached(&self) -> bool {
        self.outbox.is_some()
    }

    /// Opens actively at `at`. What is sent then is what the application writes.
    pub fn connect(&mut self, at: Time) {
        self.open_at = Due::at(at);
        self.active = true;
    }

    /// A SYN of the peer will not be answered before [`Connection::accept`].
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Whether a SYN waits, or would wait, for [`Connection::accept`].
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Answers a SYN that was held back, now or when it comes; with the initial sequence number `iss`, if one
    /// is given.
    pub fn accept(&mut self, now: Time, iss: Option<Seq>, out: &mut Out) {
        if !self.held {
            return;
        }
        self.held = false;
        self.iss = iss.unwrap_or(self.iss);
        if self.state == State::SynReceived {
            self.send_syn(now, false, out);
        }
    }

    /// One past the urgent data that the peer has told of; as a position of its stream, 0 being its SYN.
    pub fn heard_urgent(&self) -> u64 {
        self.urgent()[1]
    }

    /// What is written is urgent up to this position of our stream: segments before it say so.
    //= rfc9293#section-3.8.5: urgent data, which the pointer tells of ahead of itself
    pub fn set_urgent(&mut self, position: u64) {
        let written = &mut self.rare().urgent[0];
        *written = (*written).max(position);
    }

    /// What is due from now on waits until [`Connection::uncork`], so that it goes together: data, and ACKs where
    /// nothing is missing.
    pub fn cork(&mut self) {
        self.corked = true;
    }

    /// Sends what has waited.
    pub fn uncork(&mut self, now: Time, out: &mut Out) {
        if core::mem::take(&mut self.corked) {
            self.flush(now, out);
        }
    }

    /// This is a base station's end of a split connection: events and causes say so.
    pub fn set_relay(&mut self) {
        self.relay = true;
    }

    /// The peer's initial sequence number; meaningful once its SYN has come.
    pub fn peer_iss(&self) -> Seq {
        self.irs
    }

    /// How many bytes [`Connection::write`] would take now.
    pub fn room(&self) -> u32 {
        let Some(outbox) = self.outbox.as_ref().filter(|_| self.may_write()) else { return 0 };
        u64::from(outbox.limit).saturating_sub(outbox.rope.len()) as u32
    }

    pub(super) fn may_write(&self) -> bool {
        !self.tx.core.window.fin && !self.aborted
    }

    /// Appends `body` to what is sent, cut to the room that there is; returns how many bytes were taken. What is
    /// written before the connection is established goes out then.
    pub fn write(&mut self, now: Time, body: Body, out: &mut Out) -> u32 {
        let taken = self.room().min(body.len());
        let Some(outbox) = self.outbox.as_mut().filter(|_| taken > 0) else { return 0 };
        outbox.write(if taken == body.len() { body } else { body.slice(0, taken) });
        self.tx.core.window.end = 1 + outbox.rope.end();
        self.flush(now, out);
        taken
    }

    /// Nothing more will be written: a FIN follows the last byte. What the peer sends still arrives.
    pub fn close(&mut self, now: Time, out: &mut Out) {
        if !self.may_write() {
            return;
        }
        self.tx.core.window.fin = true;
        if self.state.is_synchronised() {
            self.check_complete(out);
        }
        self.flush(now, out);
    }

    /// A transfer of its own ends: what has been sent so far is sent again as often as it takes, nothing more is
    /// sent, and a FIN follows.
    pub fn end_here(&mut self, now: Time, out: &mut Out) {
        if self.outbox.is_some() || self.aborted {
            return;
        }
        let w = &mut self.tx.core.window;
        w.end = w.end.min(w.max.max(1));
        w.fin = true;
        if self.state.is_synchronised() {
            self.check_complete(out);
        }
        self.flush(now, out);
    }

    /// A transfer of its own without end goes on, or pauses with what has been sent so far.
    pub fn switch(&mut self, now: Time, on: bool, out: &mut Out) {
        if self.outbox.is_some() || !self.may_write() {
            return;
        }
        let w = &mut self.tx.core.window;
        w.end = if on { u64::MAX / 2 } else { w.end.min(w.max.max(1)) };
        self.flush(now, out);
    }

    /// Whether everything that the peer ever sends has been delivered.
    pub fn peer_has_closed(&self) -> bool {
        self.rx.is_finished()
    }

    /// Moves what was delivered in order and not yet taken to the end of `into`; how many bytes that is. The
    /// receive window stays as far closed as it is until [`Connection::read`].
    pub fn take_delivered(&mut self, into: &mut Vec<Body>) -> u64 {
        let Some(inbox) = self.rx.inbox.as_mut().filter(|inbox| !inbox.is_empty()) else {
            return 0;
        };
        let bytes = inbox.len();
        inbox.drain(into);
        bytes
    }

    /// Whether a FIN follows what was written.
    pub fn is_closing(&self) -> bool {
        self.tx.core.window.fin
    }

    /// Whether the peer has acknowledged the FIN behind all that was written.
    pub fn has_ended(&self) -> bool {
        self.is_closing() && self.tx.is_done()
    }

    /// Bytes inside: written and not acknowledged, received and not taken.
    pub fn held_bytes(&self) -> u64 {
        self.outbox.as_ref().map_or(0, |outbox| outbox.rope.len()) + self.rx.held()
    }

    /// The number of the first byte that the peer has not acknowledged, how many bytes were written from there on, and how many
    /// a segment has at most.
    pub fn unacknowledged(&self) -> (Seq, u64, u32) {
        let (window, outbox) = (&self.tx.core.window, self.outbox.as_ref());
        let written = outbox.map_or(0, |outbox| outbox.rope.len());
        (self.iss + window.una as u32, written, window.mss.max(1))
    }

    /// Gives the connection up at once and tells the peer by a reset.
    //= rfc9293#section-3.10.5
    pub fn reset(&mut self, now: Time, out: &mut Out) {
        match self.state {
            State::Closed => {
                self.open_at = Due::NEVER;
                return;
            }
            // Nobody to tell: the peer never answered, or is done.
            State::SynSent | State::TimeWait => {}
            State::SynReceived if self.held => {
                //= rfc9293#section-3.10.7.1: a SYN is refused with a reset that acknowledges it
                let (flow, flags) = (self.flow, Flags::RST | Flags::ACK);
                let ack = self.irs + 1;
                let reset = Segment::new(flow.src_port, flow.dst_port, Seq(0), ack, flags);
                let reset = Packet::tcp(flow.src, flow.dst, reset, Body::EMPTY);
                self.launch(reset, Cause::Control, out);
            }
            _ => self.send_control(now, Flags::RST | Flags::ACK, out),
        }
        if self.state == State::TimeWait {
            self.go(Input::Abort);
            self.time_wait_until = Due::NEVER;
            self.finish(out);
        } else {
            self.abort(out);
        }
    }
}
