//! One TCP connection: its state, its timers, and the combination of its sender and its receiver.

mod acceptable;
mod application;
mod bypassed;
mod early;
mod ecn;
mod end_to_end_acks;
mod exchange;
mod frozen;
mod giving_up;
mod incoming;
mod moving;
mod notices;
mod opening;
mod outgoing;
mod path_mtu;
mod prediction;
mod socket;

use std::sync::Arc;

use crate::event::{Cause, EventKind, Interest, Tcb, TcpEvent, TcpKind};
use crate::machine::{Out, Side};
use crate::units::{Bytes, Due, Span, Time};
use crate::wire::{FlowKey, Segment, Seq};

use super::Settings;
use super::accurate::Marks;
use super::config::{Clock, TcpConfig};
use super::exchange::ExchangeState;
use super::opening::Opening;
use super::receiver::Receiver;
use super::rope::Rope;
use super::sender::Sender;
use super::sender::limits::LimitTimes;
use super::shared_window::Integrated;
use super::state::{Input, State};
use super::work::Steps;

pub use super::settings::Beats;
pub use bypassed::Evidence;
pub use moving::Snapshot;

/// Limit of timers that one call handles. There are fewer; more calls without time passing are a fault.
const TIMERS: u32 = 8;

/// A TCP connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// From this end to the peer.
    pub flow: FlowKey,
    /// Side of this machine on which the peer is.
    side: Side,
    config: Arc<Settings>,
    state: State,
    iss: Seq,
    irs: Seq,
    tx: Sender,
    rx: Receiver,
    agreed: Agreed,
    ts_recent: u32,
    /// When `ts_recent` was stored.
    ts_recent_at: Time,
    /// The timestamp of our first SYN.
    first_stamp: u32,
    /// ECN marks of received packets.
    marks: Marks,
    /// Count of the peer's ACKs that arrived with a mark, modulo 256.
    marked_acks: u8,
    last_ack_sent: u64,
    /// Sequence number of the segment with the last update of the peer's window (SND.WL1).
    window_from: Seq,
    /// Identity of the bytes this end sends.
    stream: u32,
    /// Whether this end opened actively.
    active: bool,
    open_at: Due,
    /// When the connection is dropped if it is not established.
    opening_until: Due,
    time_wait_until: Due,
    /// Time from which an unacceptable segment without data is answered again.
    challenge_from: Time,
    complete: bool,
    aborted: bool,
    /// Unacknowledged data of an application. Without it this end sends bytes of `stream` and discards received data.
    outbox: Option<Box<Outbox>>,
    /// Requests and responses, if an application exchanges them.
    exchange: Option<Box<ExchangeState>>,
    /// State of T/TCP or TCP Fast Open; `None` opens by a plain handshake.
    opening: Option<Box<Opening>>,
    /// Whether the next segment of the handshake waits for [`Connection::accept`].
    held: bool,
    /// Whether this is a base station's end of a split connection.
    relay: bool,
    /// Class of sent packets: DSCP, and IPv6 flow label. Hosts use zero.
    class: (u8, u32),
    /// Whether ECN is offered and accepted although it is not configured.
    ecn: bool,
    /// State of acknowledgements that wait for the far end (M-TCP).
    end_to_end: Option<Box<end_to_end_acks::EndToEndAcks>>,
    /// Whether another base station had this connection before.
    resumed: bool,
    /// Whether this end pauses, since the peer is temporarily unreachable.
    frozen: bool,
    /// Whether due segments wait for [`Connection::uncork`].
    corked: bool,
    /// Whether segments take the fast path of header prediction even where prediction is off.
    shortens: bool,
    /// Whether lost full segments may be too large for the path.
    suspicious: bool,
    /// State of path MTU discovery, while segments are smaller than agreed with the peer.
    path: Option<Box<path_mtu::PathMtu>>,
    rare: Option<Box<Rare>>,
    /// Processing steps of the last segment.
    steps: Steps,
}

/// State that few connections need.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// Ranges of damaged segments that were not received intact since. ACKs that request them are marked (ELN).
    damaged: Vec<(u64, u64)>,
    /// Sequence number of the segment that the next ACK answers, if ACKs name it (SMART).
    caused: Option<Seq>,
    /// When the peer sent the last received data, from an out-of-band timestamp.
    stamped: Option<Time>,
    /// One past the urgent data of this end, and of the peer, as positions.
    urgent: [u64; 2],
}

/// Data that an application has written and that the peer has not acknowledged.
#[derive(Clone, Debug)]
struct Outbox {
    rope: Rope,
    /// Maximum number of unacknowledged bytes.
    limit: u32,
}

impl Outbox {
    fn new(rope: Rope, limit: u32) -> Outbox {
        Outbox { rope, limit }
    }

    /// Discards acknowledged data: all below the position `una`.
    fn release(&mut self, una: u64) {
        self.rope.release(una.saturating_sub(1));
    }
}

/// Features that the handshake agreed on.
#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    send_scale: u8,
    recv_scale: u8,
    /// Whether windows are scaled.
    scaled: bool,
    timestamps: bool,
    sack: bool,
    eln: bool,
    /// Whether ELN marks ACKs instead of naming the lost segments.
    marks: bool,
    smart: bool,
    snack: bool,
    ecn: bool,
    acc: bool,
    /// Whether each segment has the connection count of its end (T/TCP).
    counts: bool,
}

impl Connection {
    /// Asserts the invariants of both directions.
    pub fn check(&self) {
        self.tx.check();
        self.rx.check();
        debug_assert!(
            self.last_ack_sent <= self.rx.nxt,
            "acknowledged {} of {} bytes",
            self.last_ack_sent,
            self.rx.nxt
        );
        debug_assert!(
            self.agreed.send_scale <= 14,
            "shift of the peer: {}",
            self.agreed.send_scale
        );
        debug_assert!(self.agreed.recv_scale <= 14, "own shift: {}", self.agreed.recv_scale);
        debug_assert!(
            !self.complete || self.tx.core.window.una >= self.tx.core.window.end,
            "a complete transfer has unacknowledged data"
        );
        if let Some(outbox) = &self.outbox {
            outbox.rope.check();
        }
        if let Some(inbox) = &self.rx.inbox {
            inbox.check();
        }
    }

    /// A connection before its opening.
    pub fn new(
        config: Arc<Settings>,
        flow: FlowKey,
        side: Side,
        iss: Seq,
        stream: u32,
    ) -> Connection {
        Connection {
            flow,
            side,
            state: State::Closed,
            iss,
            irs: Seq(0),
            tx: Sender::new(&config),
            rx: Receiver::new(&config),
            agreed: Agreed::default(),
            ts_recent: 0,
            ts_recent_at: Time::ZERO,
            first_stamp: 0,
            marks: Marks::default(),
            marked_acks: 0,
            last_ack_sent: 0,
            window_from: Seq(0),
            stream,
            active: false,
            open_at: Due::NEVER,
            opening_until: Due::NEVER,
            time_wait_until: Due::NEVER,
            challenge_from: Time(0),
            complete: false,
            aborted: false,
            outbox: None,
            exchange: None,
            opening: Opening::new(&config),
            held: false,
            relay: false,
            class: (0, 0),
            ecn: false,
            end_to_end: None,
            resumed: false,
            frozen: false,
            corked: false,
            shortens: false,
            suspicious: false,
            path: None,
            rare: None,
            steps: Steps::default(),
            config,
        }
    }

    /// Lends the shared state of all connections to this peer for the next call; `id` identifies this connection in it.
    pub(super) fn lend(&mut self, id: u32, shared: Box<Integrated>) {
        self.tx.lend(id, shared);
    }

    /// Returns the shared state. A connection that is over removes its data in flight from it.
    pub(super) fn give_back(&mut self) -> Option<Box<Integrated>> {
        let mut shared = self.tx.give_back()?;
        if self.is_over() {
            self.tx.leave(&mut shared);
        }
        Some(shared)
    }

    /// Opens actively at `at`, sends `bytes` and closes. `None` sends without end.
    pub fn open(&mut self, at: Time, bytes: Option<Bytes>) {
        self.open_at = Due::at(at);
        self.active = true;
        match bytes {
            Some(bytes) => {
                self.tx.core.window.end = 1 + bytes.0;
                self.tx.core.window.fin = true;
            }
            None => self.tx.core.window.end = u64::MAX / 2,
        }
    }

    /// Lets the next expected segment take the fast path although header prediction is off. The result is the same, in
    /// less time. [`Connection::steps`] still reports the work of the full procedure.
    pub fn shorten(&mut self) {
        self.shortens = true;
    }

    /// State in the sense of RFC 9293.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether all data was sent and acknowledged.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether this end gave up, or either end sent a reset.
    pub fn is_aborted(&self) -> bool {
        self.aborted
    }

    /// Whether this end opened actively.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Whether the connection is closed for both applications: CLOSED or TIME-WAIT, with no pending open.
    #[inline]
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::TimeWait) && !self.open_at.is_set()
    }

    /// Bytes of the peer that were delivered in order.
    pub fn delivered(&self) -> u64 {
        self.rx.delivered()
    }

    /// Total number of bytes to send, if this end closes after them.
    pub fn flow_size(&self) -> Option<Bytes> {
        let w = &self.tx.core.window;
        w.fin.then(|| Bytes(w.end.saturating_sub(1)))
    }

    /// Bytes of this end that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.tx.core.window.una.min(self.tx.core.window.end).saturating_sub(1)
    }

    /// How long each limit has delayed this end's data until `now`; zero if it has sent none.
    pub fn limits(&self, now: Time) -> LimitTimes {
        self.tx.limits(now)
    }

    /// The processing steps of the last segment.
    pub fn steps(&self) -> Steps {
        self.steps
    }

    /// A snapshot of the control block.
    pub fn control_block(&self) -> Tcb {
        self.tx.tcb(self.rx.nxt)
    }

    /// Sets whether the application reads delivered data at once (the default), or only by [`Connection::read`].
    pub fn set_reading(&mut self, reading: bool) {
        self.rx.reading = reading;
    }

    /// Frees the space of `bytes` of delivered data that a proxy has forwarded.
    pub fn relayed(&mut self, now: Time, bytes: u64, out: &mut Out) {
        self.rx.relayed(bytes);
        self.flush(now, out);
    }

    /// Reads `bytes` of delivered data for the application.
    pub fn read(&mut self, now: Time, bytes: u64, out: &mut Out) {
        self.rx.read(now, bytes);
        self.flush(now, out);
    }

    /// Time of the next timer.
    #[inline]
    pub fn next_wake(&self) -> Option<Time> {
        let or_never = |at: Option<Time>| at.unwrap_or(Time::NEVER);
        let timers = or_never(self.tx.next_wake()).min(or_never(self.rx.next_wake()));
        let ends = self.open_at.or_never().min(self.time_wait_until.or_never());
        timers.min(ends).min(self.opening_until.or_never()).or_none()
    }

    /// Reads words of the cache lines that a segment needs, with data or without, as a prefetch. The result has
    /// no meaning.
    #[inline]
    pub fn touch(&self, data: bool) -> u64 {
        let own = u64::from(self.flow.src_port) ^ self.last_ack_sent ^ self.state as u64;
        own ^ if data { self.rx.touch() } else { self.tx.touch() }
    }

    /// Handles the timers that have expired at `now`. Several may expire at the same time.
    pub fn on_wake(&mut self, now: Time, out: &mut Out) {
        for _ in 0..TIMERS {
            self.expire(now, out);
            if self.next_wake().is_none_or(|at| at > now) {
                return;
            }
        }
    }

    /// Handles one timer that has expired at `now`, or those of the handshake and the receiver.
    fn expire(&mut self, now: Time, out: &mut Out) {
        if self.open_at.is_past(now) {
            self.open_at = Due::NEVER;
            if !self.config.handshake {
                self.report(TcpKind::Opening, out);
                self.begin(now, [Input::Open, Input::SynAck], out);
                self.flush(now, out);
                return;
            }
            self.transition(Input::Open);
            self.opening.iter_mut().for_each(|opening| opening.began = now);
            self.send_syn(now, false, out);
            self.report(TcpKind::Opening, out);
            return;
        }
        if self.time_wait_until.is_past(now) {
            self.time_wait_until = Due::NEVER;
            self.transition(Input::Expired);
            // Stop the pacer and the delayed ACK, which could expire after TIME-WAIT.
            self.finish(out);
        }
        if self.state == State::Closed {
            return;
        }
        if self.opening_until.is_past(now) {
            self.time_out(now, out);
            return;
        }
        let due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        let only_acks = due(self.rx.next_wake()) && !due(self.tx.next_wake());
        self.rx.on_wake(now);
        if only_acks {
            return self.send_ack(now, out);
        }
        if let Some(kind) = self.tx.on_wake(now) {
            self.report(kind, out);
            if self.gives_up(now, kind) {
                self.time_out(now, out);
                return;
            }
            if kind == TcpKind::Timeout && self.is_half() {
                self.answer_again(now, out);
                return;
            }
            if kind == TcpKind::Timeout && !self.state.is_synchronised() {
                self.send_syn(now, true, out);
                return;
            }
            self.suspect_size(now, kind, out);
        }
        self.flush(now, out);
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// One past the urgent data of this end, and of the peer, as positions.
    #[inline]
    fn urgent(&self) -> [u64; 2] {
        self.rare.as_ref().map_or([0; 2], |rare| rare.urgent)
    }

    /// Changes the state as `input` requires. False if the state has no such transition.
    fn transition(&mut self, input: Input) -> bool {
        match self.state.after(input) {
            Some(state) => {
                self.state = state;
                true
            }
            None => false,
        }
    }

    /// Handles a valid RST.
    fn take_reset(&mut self, out: &mut Out) {
        if matches!(self.state, State::Closing | State::LastAck | State::TimeWait) {
            //= rfc9293#section-3.10.7.4: both sides have closed, so the application gets no error
            self.transition(Input::Abort);
            self.time_wait_until = Due::NEVER;
            self.finish(out);
        } else {
            self.abort(out);
        }
    }

    fn abort(&mut self, out: &mut Out) {
        self.transition(Input::Abort);
        self.aborted = true;
        self.tx.stop();
        self.rx.stop();
        (self.opening_until, self.time_wait_until) = (Due::NEVER, Due::NEVER);
        if let Some(outbox) = &mut self.outbox {
            outbox.rope = Rope::default();
        }
        self.report(TcpKind::Aborted, out);
    }

    /// `cause` as events report it: for a base station's end, the corresponding cause of a base station.
    #[inline]
    fn cause(&self, cause: Cause) -> Cause {
        if self.relay { cause.at_base_station() } else { cause }
    }

    #[inline]
    fn report(&self, kind: TcpKind, out: &mut Out) {
        if out.accepts(kind.level()) {
            self.emit(kind, out);
        }
    }

    fn emit(&self, kind: TcpKind, out: &mut Out) {
        // Delivery is the most frequent event and does not change the control block, so the snapshot is skipped.
        let delivers = matches!(kind, TcpKind::Delivered { .. });
        let tcb = match delivers && !out.accepts(Interest::DETAIL) {
            true => Tcb::default(),
            false => self.control_block(),
        };
        let event = TcpEvent { flow: self.flow, kind, tcb };
        out.event(if self.relay { EventKind::Split(event) } else { EventKind::Tcp(event) });
    }

    fn timestamp_unit(&self) -> Span {
        match self.config.clock {
            Clock::Ticks { slow, .. } => slow,
            Clock::Fine { granularity } => Span(granularity.0.max(Span::millis(1).0)),
        }
    }

    /// The timestamp clock since time zero: BSD's slow tick, or the units of a fine clock.
    fn timestamp_clock(&self, now: Time) -> u64 {
        match self.config.clock {
            Clock::Ticks { .. } => self.config.slow.elapsed(now),
            Clock::Fine { .. } => now.0 / self.timestamp_unit().0.max(1),
        }
    }

    /// The timestamp clock, offset by the initial sequence number as RFC 7323 section 5.4 advises.
    fn timestamp(&self, now: Time) -> u32 {
        (self.timestamp_clock(now) as u32).wrapping_add(self.iss.0)
    }

    /// When this end sent the segment whose timestamp `segment` echoes, to a unit of the timestamp clock.
    fn echoed(&self, now: Time, segment: &Segment) -> Option<Time> {
        if self.config.stamps {
            return segment.options().stamp?.echo;
        }
        let ts = segment.timestamps.filter(|_| self.agreed.timestamps)?;
        let age = self.timestamp(now).wrapping_sub(ts.echo);
        // An echo from the future, or from before time zero, is not of this connection.
        let known = age < 1 << 31 && u64::from(age) <= self.timestamp_clock(now);
        // Between time zero and the first tick the subtraction saturates within one tick.
        known.then(|| Time(now.0.saturating_sub((self.timestamp_unit() * u64::from(age)).0)))
    }
}

/// The smallest shift with which a window of `buffer` bytes fits 16 bits.
fn scale_for(buffer: u32) -> u8 {
    (0..14).find(|shift| buffer >> shift <= 0xffff).unwrap_or(14)
}

/// Payload of a full segment: the MSS less the space of timestamps and connection counts.
fn payload_mss(mss: u32, timestamps: bool, counts: bool) -> u32 {
    let options = if timestamps { 12 } else { 0 } + if counts { 8 } else { 0 };
    mss.saturating_sub(options).max(1)
}

/// Payload of a full segment between ends with these configurations.
pub fn agreed_mss(a: &TcpConfig, b: &TcpConfig) -> u32 {
    payload_mss(a.mss.min(b.mss), a.timestamps && b.timestamps, a.t_tcp && b.t_tcp)
}
