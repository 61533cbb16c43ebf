//! One connection: its states and timers, and the joining of its two halves.

mod acceptable;
mod application;
mod bypassed;
mod congestion;
mod deputy;
mod early;
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
mod pushing;
mod socket;

use std::sync::Arc;

use crate::event::{Cause, Tcb, TcpEvent, TcpKind, Wants, What};
use crate::machine::{Out, Side};
use crate::units::{Bytes, Due, Span, Time};
use crate::wire::{Body, Flags, FlowKey, Segment, Seq};

use super::Settings;
use super::accurate::Marks;
use super::config::{Clock, GivingUp, TcpConfig};
use super::exchange::Talk;
use super::integrated::Integrated;
use super::opening::Opening;
use super::receiver::Receiver;
use super::rope::Rope;
use super::sender::Sender;
use super::sender::limits::LimitTimes;
use super::state::{Input, State};
use super::work::Steps;

pub use super::settings::Beats;
pub use bypassed::Evidence;
pub use moving::Snapshot;

/// A TCP connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// From this end to the peer.
    pub flow: FlowKey,
    /// Which way the peer lies.
    side: Side,
    config: Arc<Settings>,
    state: State,
    iss: Seq,
    irs: Seq,
    tx: Sender,
    rx: Receiver,
    /// What the handshake agreed on.
    agreed: Agreed,
    ts_recent: u32,
    /// The timestamp of our first SYN.
    first_stamp: u32,
    /// Marks of congestion.
    marks: Marks,
    /// ACKs of the peer that came marked.
    marked_acks: u8,
    last_ack_sent: u64,
    /// One past the last byte that went out with PSH.
    pushed: u64,
    /// Identity of the bytes this end sends.
    stream: u32,
    /// Whether this end opened actively.
    active: bool,
    open_at: Due,
    time_wait_until: Due,
    /// When segments without data that cannot be taken in are answered again.
    challenge_from: Time,
    complete: bool,
    aborted: bool,
    /// What an application has written that the peer has not acknowledged; without it this end sends bytes of
    /// `stream` and discards what it receives.
    outbox: Option<Box<Outbox>>,
    /// Requests and responses, if those are what it carries.
    exchange: Option<Box<Talk>>,
    /// How it opens, if not by the handshake alone.
    opening: Option<Box<Opening>>,
    /// A SYN is not answered before [`Connection::accept`].
    held: bool,
    /// Whether this is a base station's end of a split connection.
    relay: bool,
    /// What it acknowledges, if it does so for another end.
    deputy: Option<Box<deputy::Deputy>>,
    /// Whether another base station had it before.
    resumed: bool,
    /// Whether the peer is gone for a while, and nothing is sent.
    frozen: bool,
    /// Whether what is due waits for [`Connection::uncork`].
    corked: bool,
    /// Whether a segment may take the way of header prediction although nothing is predicted.
    shortens: bool,
    /// Whether full segments that are lost may be too large for the path.
    suspicious: bool,
    /// What the path allows, if that is less than the peer.
    path: Option<Box<path_mtu::PathMtu>>,
    /// What few connections need.
    rare: Option<Box<Rare>>,
    /// What was done with the segment that came last.
    steps: Steps,
}

/// What few connections need.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// Segments that came damaged and have not come again, as ranges: ACKs that ask for them are marked.
    damaged: Vec<(u64, u64)>,
    /// The sequence number of the segment that the next ACK answers, if ACKs name it.
    caused: Option<Seq>,
    /// When the peer sent the data that came last, if it says so beside the header.
    stamped: Option<Time>,
    /// One past the urgent data that an application has written, and that the peer has: positions.
    urgent: [u64; 2],
}

/// What an application has written.
#[derive(Clone, Debug)]
struct Outbox {
    rope: Rope,
    /// Where writes end.
    pushes: pushing::Pushes,
    /// Bytes that may wait for their acknowledgement.
    limit: u32,
}

impl Outbox {
    fn new(rope: Rope, limit: u32) -> Outbox {
        Outbox { rope, pushes: pushing::Pushes::default(), limit }
    }

    /// Appends what an application writes at once.
    fn write(&mut self, body: Body) {
        self.rope.push(body);
        self.pushes.mark(1 + self.rope.end());
    }

    /// The peer has everything below the position `una`.
    fn release(&mut self, una: u64) {
        self.rope.release(una.saturating_sub(1));
        self.pushes.release(una);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    send_scale: u8,
    recv_scale: u8,
    /// Whether windows are scaled.
    scaled: bool,
    timestamps: bool,
    sack: bool,
    eln: bool,
    /// Whether the peer wants ACKs marked rather than losses named.
    marks: bool,
    smart: bool,
    snack: bool,
    ecn: bool,
    acc: bool,
    /// Each segment has the count of its end (T/TCP).
    counts: bool,
}

impl Connection {
    /// A connection that is not open yet.
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
            first_stamp: 0,
            marks: Marks::default(),
            marked_acks: 0,
            last_ack_sent: 0,
            pushed: 0,
            stream,
            active: false,
            open_at: Due::NEVER,
            time_wait_until: Due::NEVER,
            challenge_from: Time(0),
            complete: false,
            aborted: false,
            outbox: None,
            exchange: None,
            opening: Opening::new(&config),
            held: false,
            relay: false,
            deputy: None,
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

    /// Lends what connections to this peer share, for the next call; this one is `id` there.
    pub(super) fn lend(&mut self, id: u32, shared: Box<Integrated>) {
        self.tx.lend(id, shared);
    }

    /// Takes it back; a connection that is over takes what it had in flight out of it.
    pub(super) fn give_back(&mut self) -> Option<Box<Integrated>> {
        let mut shared = self.tx.give_back()?;
        if self.is_over() {
            self.tx.leave(&mut shared);
        }
        Some(shared)
    }

    /// Opens actively at `at`, sends `bytes` and closes; without a number it sends for ever.
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

    /// Without header prediction, the segment that is expected next still takes its way, which comes to the same and is
    /// shorter. What is told of the work of the stack ([`Connection::steps`]) is that of the whole procedure.
    pub fn shorten(&mut self) {
        self.shortens = true;
    }

    /// State in the sense of RFC 9293.
    pub fn state(&self) -> State {
        self.state
    }

    /// All data was sent and acknowledged.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// It was given up or reset.
    pub fn is_aborted(&self) -> bool {
        self.aborted
    }

    /// Whether this end opened actively.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Nothing more will happen that matters to either application.
    #[inline]
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::TimeWait) && !self.open_at.is_set()
    }

    /// Bytes of the peer that were delivered in order so far.
    pub fn delivered(&self) -> u64 {
        self.rx.delivered()
    }

    /// Bytes to be sent in all, if this end is about to close.
    pub fn wanted(&self) -> Option<Bytes> {
        let w = &self.tx.core.window;
        w.fin.then(|| Bytes(w.end.saturating_sub(1)))
    }

    /// Bytes of ours that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.tx.core.window.una.min(self.tx.core.window.end).saturating_sub(1)
    }

    /// How long each limit has held back this end's data until `now`; zero for one that has sent none.
    pub fn limits(&self, now: Time) -> LimitTimes {
        self.tx.limits(now)
    }

    /// What was done with the segment that came last.
    pub fn steps(&self) -> Steps {
        self.steps
    }

    /// A snapshot of the control block.
    pub fn control_block(&self) -> Tcb {
        self.tx.tcb(self.rx.nxt)
    }

    /// Whether the application reads what is delivered at once (the default) or only by [`Connection::read`].
    pub fn set_reading(&mut self, reading: bool) {
        self.rx.reading = reading;
    }

    /// A proxy has handed on `bytes` that were delivered.
    pub fn relayed(&mut self, now: Time, bytes: u64, out: &mut Out) {
        self.rx.relayed(bytes);
        self.flush(now, out);
    }

    /// The application reads `bytes` that were delivered.
    pub fn read(&mut self, now: Time, bytes: u64, out: &mut Out) {
        self.rx.read(bytes);
        self.flush(now, out);
    }

    /// When a timer expires next.
    #[inline]
    pub fn next_wake(&self) -> Option<Time> {
        let or_never = |at: Option<Time>| at.unwrap_or(Time::NEVER);
        let timers = or_never(self.tx.next_wake()).min(or_never(self.rx.next_wake()));
        let ends = self.open_at.or_never().min(self.time_wait_until.or_never());
        timers.min(ends).or_none()
    }

    /// A timer may have expired.
    pub fn on_wake(&mut self, now: Time, out: &mut Out) {
        if self.open_at.is_past(now) {
            self.open_at = Due::NEVER;
            if !self.config.handshake {
                self.report(TcpKind::Opening, out);
                self.begin(now, [Input::Open, Input::SynAck], out);
                self.flush(now, out);
                return;
            }
            self.go(Input::Open);
            self.opening.iter_mut().for_each(|opening| opening.began = now);
            self.send_syn(now, false, out);
            self.report(TcpKind::Opening, out);
            return;
        }
        if self.time_wait_until.is_past(now) {
            self.time_wait_until = Due::NEVER;
            self.go(Input::Expired);
            // The pacer's turn and a delayed ACK may come later still: nobody would be there to take them.
            self.finish(out);
        }
        if self.state == State::Closed {
            return;
        }
        self.rx.on_wake(now);
        if let Some(kind) = self.tx.on_wake(now) {
            self.report(kind, out);
            if self.gives_up(now, kind) {
                // A peer that never answered our SYN knows of no connection to reset.
                if self.state != State::SynSent && self.config.giving_up == GivingUp::Count {
                    self.send_control(now, Flags::RST | Flags::ACK, out);
                }
                self.abort(out);
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

    /// What few connections need, made when it is first needed.
    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// One past the urgent data that an application has written, and that the peer has.
    #[inline]
    fn urgent(&self) -> [u64; 2] {
        self.rare.as_ref().map_or([0; 2], |rare| rare.urgent)
    }

    fn go(&mut self, input: Input) -> bool {
        match self.state.after(input) {
            Some(state) => {
                self.state = state;
                true
            }
            None => false,
        }
    }

    /// A valid RST.
    fn take_reset(&mut self, out: &mut Out) {
        if matches!(self.state, State::Closing | State::LastAck | State::TimeWait) {
            //= rfc9293#section-3.10.7.4: both sides have closed; the application need not hear of it
            self.go(Input::Abort);
            self.time_wait_until = Due::NEVER;
            self.finish(out);
        } else {
            self.abort(out);
        }
    }

    fn abort(&mut self, out: &mut Out) {
        self.go(Input::Abort);
        self.aborted = true;
        self.tx.stop();
        self.rx.stop();
        self.time_wait_until = Due::NEVER;
        if let Some(outbox) = &mut self.outbox {
            outbox.rope = Rope::default();
        }
        self.report(TcpKind::Aborted, out);
    }

    /// Why this end sends something, as users see it.
    #[inline]
    fn cause(&self, cause: Cause) -> Cause {
        if self.relay { cause.at_base_station() } else { cause }
    }

    #[inline]
    fn report(&self, kind: TcpKind, out: &mut Out) {
        if out.wants(kind.level()) {
            self.tell(kind, out);
        }
    }

    fn tell(&self, kind: TcpKind, out: &mut Out) {
        // What is delivered changes nothing of it, and happens most often.
        let delivers = matches!(kind, TcpKind::Delivered { .. });
        let tcb = match delivers && !out.wants(Wants::DETAIL) {
            true => Tcb::default(),
            false => self.control_block(),
        };
        let event = TcpEvent { flow: self.flow, kind, tcb };
        out.event(if self.relay { What::Split(event) } else { What::Tcp(event) });
    }

    fn timestamp_unit(&self) -> Span {
        match self.config.clock {
            Clock::Ticks { slow, .. } => slow,
            Clock::Fine { granularity } => Span(granularity.0.max(Span::millis(1).0)),
        }
    }

    /// The timestamp clock, offset by the initial sequence number as RFC 7323 section 5.4 advises.
    fn timestamp(&self, now: Time) -> u32 {
        ((now.0 / self.timestamp_unit().0.max(1)) as u32).wrapping_add(self.iss.0)
    }

    /// When the segment was sent whose timestamp this one echoes. Tick-driven stacks time one segment at a
    /// time instead, as theirs did.
    fn echoed(&self, now: Time, segment: &Segment) -> Option<Time> {
        if self.config.stamps {
            return segment.options().stamp?.echo;
        }
        let Clock::Fine { .. } = self.config.clock else { return None };
        let ts = segment.timestamps.filter(|_| self.agreed.timestamps)?;
        let age = self.timestamp(now).wrapping_sub(ts.echo);
        let span = self.timestamp_unit() * u64::from(age);
        // An echo from the future, or from before the connection, is not ours.
        (age < 1 << 31 && span.0 <= now.0).then(|| Time(now.0 - span.0))
    }
}

/// The smallest shift with which a window of `buffer` bytes fits 16 bits.
fn scale_for(buffer: u32) -> u8 {
    (0..14).find(|shift| buffer >> shift <= 0xffff).unwrap_or(14)
}

/// What a full segment carries: the peer's MSS bounds it, and timestamps and counts take their room from the payload.
fn payload_mss(mss: u32, timestamps: bool, counts: bool) -> u32 {
    let options = if timestamps { 12 } else { 0 } + if counts { 8 } else { 0 };
    mss.saturating_sub(options).max(1)
}

/// What a full segment carries between two ends that are configured so.
pub fn agreed_mss(a: &TcpConfig, b: &TcpConfig) -> u32 {
    payload_mss(a.mss.min(b.mss), a.timestamps && b.timestamps, a.t_tcp && b.t_tcp)
}
