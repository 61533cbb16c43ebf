//! One connection: handshake, options, and the joining of its two halves.

use std::sync::Arc;

use crate::event::{Cause, Tcb, TcpEvent, TcpKind, What};
use crate::machine::{Out, Side};
use crate::units::{Bytes, Span, Time};
use crate::wire::{Ackp, Body, Eln, Flags, FlowKey, Packet, Segment, Seq, Timestamps};

use super::config::{AckpReaction, Clock, ElnMode, TcpConfig};
use super::receiver::Receiver;
use super::rtt::Beat;
use super::sender::{AckInfo, Chunk, Sender};
use super::state::{Input, State};

/// The host-wide clocks that BSD timers beat to.
#[derive(Clone, Copy, Debug)]
pub struct Beats {
    /// Retransmission clock.
    pub slow: Beat,
    /// Delayed-ACK clock.
    pub fast: Beat,
}

/// A TCP connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// From this end to the peer.
    pub flow: FlowKey,
    /// Which way the peer lies.
    side: Side,
    config: Arc<TcpConfig>,
    state: State,
    iss: Seq,
    irs: Seq,
    tx: Sender,
    rx: Receiver,
    /// What the handshake agreed on.
    agreed: Agreed,
    ts_recent: u32,
    last_ack_sent: u64,
    /// Identity of the bytes this end sends.
    stream: u32,
    /// Whether this end opened actively.
    active: bool,
    open_at: Option<Time>,
    time_wait_until: Option<Time>,
    complete: bool,
    aborted: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    send_scale: u8,
    recv_scale: u8,
    timestamps: bool,
    sack: bool,
    eln: bool,
}

impl Connection {
    /// A connection that is not open yet.
    pub fn new(
        config: Arc<TcpConfig>,
        flow: FlowKey,
        side: Side,
        iss: Seq,
        beats: Beats,
        stream: u32,
    ) -> Connection {
        Connection {
            flow,
            side,
            state: State::Closed,
            iss,
            irs: Seq(0),
            tx: Sender::new(&config, beats.slow),
            rx: Receiver::new(&config, beats.fast),
            agreed: Agreed::default(),
            ts_recent: 0,
            last_ack_sent: 0,
            stream,
            active: false,
            open_at: None,
            time_wait_until: None,
            complete: false,
            aborted: false,
            config,
        }
    }

    /// Opens actively at `at`, sends `bytes` and closes; without a number it sends for ever.
    pub fn open(&mut self, at: Time, bytes: Option<Bytes>) {
        self.open_at = Some(at);
        self.active = true;
        match bytes {
            Some(bytes) => {
                self.tx.window.end = 1 + bytes.0;
                self.tx.window.fin = true;
            }
            None => self.tx.window.end = u64::MAX / 2,
        }
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
    pub fn is_over(&self) -> bool {
        self.open_at.is_none() && matches!(self.state, State::Closed | State::TimeWait)
    }

    /// Bytes of the peer that were delivered in order so far.
    pub fn delivered(&self) -> u64 {
        self.rx.delivered()
    }

    /// Bytes of ours that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.tx.window.una.min(self.tx.window.end).saturating_sub(1)
    }

    /// A snapshot of the control block.
    pub fn control_block(&self) -> Tcb {
        self.tx.tcb(self.rx.nxt)
    }

    /// Whether the application reads what is delivered at once (the default) or only by [`Connection::read`].
    pub fn set_reading(&mut self, reading: bool) {
        self.rx.reading = reading;
    }

    /// The application reads `bytes` that were delivered.
    pub fn read(&mut self, now: Time, bytes: u64, out: &mut Out) {
        self.rx.read(bytes);
        self.flush(now, out);
    }

    /// When a timer expires next.
    pub fn next_wake(&self) -> Option<Time> {
        let or_never = |at: Option<Time>| at.unwrap_or(Time::NEVER);
        let timers = or_never(self.tx.next_wake()).min(or_never(self.rx.next_wake()));
        let ends = or_never(self.open_at).min(or_never(self.time_wait_until));
        let at = timers.min(ends);
        (at != Time::NEVER).then_some(at)
    }

    /// A timer may have expired.
    pub fn on_wake(&mut self, now: Time, out: &mut Out) {
        if self.open_at.is_some_and(|at| at <= now) {
            self.open_at = None;
            self.go(Input::Open);
            self.send_syn(now, false, out);
            self.report(TcpKind::Opening, out);
            return;
        }
        if self.time_wait_until.is_some_and(|until| until <= now) {
            self.time_wait_until = None;
            self.go(Input::Expired);
            self.report(TcpKind::Closed, out);
        }
        if self.state == State::Closed {
            return;
        }
        self.rx.on_wake(now);
        if let Some(kind) = self.tx.on_wake(now) {
            self.report(kind, out);
            if kind == TcpKind::Timeout && self.tx.retries() > self.config.max_retries {
                // A peer that never answered our SYN knows of no connection to reset.
                if self.state != State::SynSent {
                    self.send_control(now, Flags::RST | Flags::ACK, out);
                }
                self.abort(out);
                return;
            }
            if kind == TcpKind::Timeout && !self.state.is_synchronised() {
                self.send_syn(now, true, out);
                return;
            }
        }
        self.flush(now, out);
    }

    /// A segment for this connection arrived undamaged.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, body: Body, out: &mut Out) {
        match self.state {
            State::Closed => self.on_segment_closed(now, segment, out),
            State::SynSent => self.on_segment_syn_sent(now, segment, out),
            _ => self.on_segment_open(now, segment, body, out),
        }
    }

    /// Passive open: a SYN to a connection that does not exist yet.
    fn on_segment_closed(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        if self.open_at.is_some() || self.aborted || self.complete {
            return;
        }
        if segment.flags.has(Flags::SYN) && !segment.flags.any(Flags::ACK | Flags::RST) {
            self.go(Input::Syn);
            self.take_syn(segment);
            self.send_syn(now, false, out);
        }
    }

    fn on_segment_syn_sent(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        let acks_ours = segment.flags.has(Flags::ACK) && segment.ack == self.iss + 1;
        if segment.flags.has(Flags::ACK) && !acks_ours {
            //= rfc9293#section-3.10.7.3: an ACK of something else belongs to a connection that is no more
            self.refuse_ack(segment, out);
            return;
        }
        if segment.flags.has(Flags::RST) {
            if acks_ours {
                self.abort(out);
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.take_syn(segment);
        if acks_ours {
            self.go(Input::SynAck);
            self.establish(now, segment, out);
            self.rx.demand_ack();
            self.flush(now, out);
        } else {
            // Simultaneous open.
            self.go(Input::Syn);
            self.send_syn(now, true, out);
        }
    }

    fn on_segment_open(&mut self, now: Time, segment: &Segment, body: Body, out: &mut Out) {
        if self.fails_paws(segment) {
            self.challenge(now, out);
            return;
        }
        // A number below the peer's initial one has no position and is as unacceptable as an old one.
        let position = segment.seq.unwrap_near(self.irs, self.rx.nxt);
        let from = position.unwrap_or(0);
        let len = u64::from(segment.seq_len(body.len()));
        let acceptable = position.is_some()
            && if len == 0 {
                from >= self.rx.nxt && from <= self.rx.edge()
            } else {
                from + len > self.rx.nxt && from < self.rx.edge()
            };
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            //= rfc5961#section-3.2: only an exact RST resets; another one in the window is challenged
            if acceptable && from == self.rx.nxt {
                self.take_reset(out);
            } else if acceptable {
                self.challenge(now, out);
            }
            return;
        }
        if flags.has(Flags::SYN) {
            let same = segment.seq == self.irs && !flags.has(Flags::ACK);
            if same && self.state == State::SynReceived {
                self.send_syn(now, true, out);
            } else {
                //= rfc5961#section-4.2: a SYN is challenged, whatever its sequence number
                self.challenge(now, out);
            }
            return;
        }
        if !acceptable {
            //= rfc9293#section-3.10.7.4: an unacceptable segment is answered with an ACK
            if self.state == State::TimeWait && flags.has(Flags::FIN) {
                //= rfc9293#section-3.10.7.4: the peer's FIN again: TIME-WAIT starts anew
                self.time_wait_until = Some(now + self.config.time_wait);
            }
            self.challenge(now, out);
            return;
        }
        if let Some(ts) = segment.timestamps {
            if self.agreed.timestamps && from <= self.last_ack_sent {
                self.ts_recent = ts.value;
            }
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        if !self.take_ack(now, segment, len > 0, out) {
            return;
        }
        self.take_data(now, from, segment, body, out);
        self.flush(now, out);
    }

    /// PAWS: a segment whose timestamp is older than the last one is a ghost of another window.
    //= rfc7323#section-5.2
    fn fails_paws(&self, segment: &Segment) -> bool {
        match segment.timestamps {
            Some(ts) if self.agreed.timestamps && !segment.flags.has(Flags::RST) => {
                (ts.value.wrapping_sub(self.ts_recent) as i32) < 0
            }
            _ => false,
        }
    }

    /// Acknowledgement processing. False when the segment must not be looked at further.
    fn take_ack(&mut self, now: Time, segment: &Segment, carries: bool, out: &mut Out) -> bool {
        let una = self.tx.window.una;
        let known = segment.ack.unwrap_near(self.iss, una);
        //= rfc5961#section-5.2: an ACK from further back than the largest window is challenged
        let Some(ack) = known.filter(|ack| ack + u64::from(self.tx.window.peer_max) >= una) else {
            self.challenge(now, out);
            return false;
        };
        if segment.options().ackp == Some(Ackp::Partial) {
            //= west97#3.4: no part of normal ACK processing is done for a partial acknowledgement
            if ack <= self.tx.window.max {
                if let Some(kind) = self.tx.on_partial_ack(now, ack) {
                    self.report(kind, out);
                }
            }
            return false;
        }
        if self.state == State::SynReceived {
            if ack != 1 {
                //= rfc9293#section-3.10.7.4: SYN-RECEIVED: an ACK of something else is answered with a reset
                self.refuse_ack(segment, out);
                return false;
            }
            self.go(Input::SynAcked);
            self.establish(now, segment, out);
        }
        if ack > self.tx.window.max {
            //= rfc9293#section-3.10.7.4: an ACK of what was never sent is answered with an ACK
            self.challenge(now, out);
            return false;
        }
        let mut sacked = [(0u64, 0u64); 4];
        let mut count = 0;
        let mut lost = None;
        if segment.has_options() {
            for &(left, right) in segment.options().sack.as_slice() {
                let near = self.tx.window.una;
                if let (Some(l), Some(r)) =
                    (left.unwrap_near(self.iss, near), right.unwrap_near(self.iss, near))
                {
                    sacked[count] = (l, r);
                    count += 1;
                }
            }
            if let (true, Some(Eln::Lost(seq))) = (self.agreed.eln, segment.options().eln) {
                lost = seq.unwrap_near(self.iss, self.tx.window.una);
            }
        }
        let info = AckInfo {
            ack,
            window: u32::from(segment.window) << self.agreed.send_scale,
            carries,
            sacked: &sacked[..count],
            echoed: self.echoed(now, segment),
            lost,
        };
        if let Some(kind) = self.tx.on_ack(now, &info) {
            self.report(kind, out);
        }
        if !self.complete && self.tx.window.fin && self.tx.window.una >= self.tx.window.end {
            self.complete = true;
            self.report(TcpKind::Complete, out);
        }
        if self.tx.window.fin && self.tx.is_done() {
            self.fin_acked(now, out);
        }
        true
    }

    fn fin_acked(&mut self, now: Time, out: &mut Out) {
        if self.go(Input::FinAcked) {
            match self.state {
                State::TimeWait => self.time_wait_until = Some(now + self.config.time_wait),
                State::Closed => self.finish(out),
                _ => {}
            }
        }
    }

    fn finish(&mut self, out: &mut Out) {
        self.tx.stop();
        self.rx.stop();
        self.report(TcpKind::Closed, out);
    }

    fn take_data(&mut self, now: Time, from: u64, segment: &Segment, body: Body, out: &mut Out) {
        let fin = segment.flags.has(Flags::FIN);
        if body.is_empty() && !fin {
            return;
        }
        if !matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            // The peer has closed; what comes now was received before.
            self.rx.demand_ack();
            return;
        }
        let skip = self.rx.nxt.saturating_sub(from).min(body.len().into());
        let from = from + skip;
        let room = self.rx.edge().saturating_sub(from);
        let body_len = u64::from(body.len()) - skip;
        let keep = body_len.min(room);
        let fin = fin && keep == body_len;
        let body = if skip == 0 && keep == body_len {
            body
        } else {
            self.rx.demand_ack();
            body.slice(skip as u32, keep as u32)
        };
        if body.is_empty() && !fin {
            return;
        }
        let taken = self.rx.take(now, from, body, fin);
        if taken.corrupted {
            self.report(TcpKind::Corrupted, out);
        }
        if taken.delivered > 0 {
            self.report(TcpKind::Delivered { bytes: taken.delivered }, out);
        }
        if taken.fin && self.go(Input::Fin) {
            match self.state {
                State::TimeWait => self.time_wait_until = Some(now + self.config.time_wait),
                // The application has read everything and closes as well.
                State::CloseWait => self.tx.window.fin = true,
                _ => {}
            }
        }
    }

    /// A segment failed the TCP checksum although its IP header is intact (or an oracle told of it). Addresses
    /// and ports can be trusted; when the sequence number is plausible, the sender is told. Returns whether it
    /// was.
    //= west97#2.3.3: the receiver answers with a duplicate ACK that carries the loss notification
    pub fn on_damaged(&mut self, now: Time, segment: &Segment, body: &Body, out: &mut Out) -> bool {
        if !self.agreed.eln || !self.state.is_synchronised() || body.is_empty() {
            return false;
        }
        let plausible = segment
            .seq
            .unwrap_near(self.irs, self.rx.nxt)
            .is_some_and(|from| from >= self.rx.nxt && from < self.rx.edge());
        if !plausible {
            return false;
        }
        let mut ack = self.segment(now, self.tx.window.nxt, Flags::ACK);
        self.add_sack(&mut ack);
        ack.options_mut().eln = Some(Eln::Lost(segment.seq));
        self.originate(ack, Body::EMPTY, Cause::LossNotification, out);
        self.rx.acked();
        true
    }

    // ---- what goes out

    /// Sends what the windows allow, and an ACK if one is due and no data carried it.
    fn flush(&mut self, now: Time, out: &mut Out) {
        if self.tx.has_work() && self.state.is_synchronised() {
            while let Some(chunk) = self.tx.poll(now) {
                self.send_chunk(now, chunk, out);
            }
        }
        if self.rx.ack_due() && self.state != State::Closed {
            let mut ack = self.segment(now, self.tx.window.nxt, Flags::ACK);
            self.add_sack(&mut ack);
            self.originate(ack, Body::EMPTY, Cause::Ack, out);
            self.rx.acked();
        }
    }

    fn send_chunk(&mut self, now: Time, chunk: Chunk, out: &mut Out) {
        let last = chunk.from + u64::from(chunk.len) == self.tx.window.end;
        let mut flags = Flags::ACK;
        if last && chunk.len > 0 {
            flags = flags | Flags::PSH;
        }
        if chunk.fin {
            flags = flags | Flags::FIN;
            self.go(Input::FinSent);
        }
        let segment = self.segment(now, chunk.from, flags);
        let offset = chunk.from.saturating_sub(1);
        let body = Body::Pattern { stream: self.stream, len: chunk.len, offset };
        let control = chunk.len == 0 && chunk.cause == Cause::Data;
        let cause = if control { Cause::Control } else { chunk.cause };
        self.originate(segment, body, cause, out);
        self.rx.acked();
    }

    fn segment(&mut self, now: Time, position: u64, flags: Flags) -> Segment {
        let flow = self.flow;
        let mut segment = Segment::new(
            flow.src_port,
            flow.dst_port,
            self.iss + position as u32,
            self.irs + self.rx.nxt as u32,
            flags,
        );
        let window = self.rx.window() >> self.agreed.recv_scale;
        segment.window = window.min(0xffff) as u16;
        if self.agreed.timestamps {
            segment.timestamps =
                Some(Timestamps { value: self.timestamp(now), echo: self.ts_recent });
        }
        segment
    }

    fn add_sack(&self, segment: &mut Segment) {
        if !self.agreed.sack {
            return;
        }
        // Timestamps leave room for three blocks (RFC 2018 section 3).
        let blocks = self.rx.sack(self.irs, if self.agreed.timestamps { 3 } else { 4 });
        if !blocks.is_empty() {
            segment.options_mut().sack = blocks;
        }
    }

    fn originate(&mut self, segment: Segment, body: Body, cause: Cause, out: &mut Out) {
        self.last_ack_sent = self.rx.nxt;
        let packet = Packet::tcp(self.flow.src, self.flow.dst, segment, body);
        out.originate(self.side, packet, cause);
    }

    /// Tells the peer what is expected, in answer to a segment that cannot be taken in.
    fn challenge(&mut self, now: Time, out: &mut Out) {
        self.rx.demand_ack();
        self.flush(now, out);
    }

    /// Answers an ACK of something that this connection never sent while it is being set up.
    fn refuse_ack(&mut self, segment: &Segment, out: &mut Out) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        let flow = self.flow;
        let reset = Segment::new(flow.src_port, flow.dst_port, segment.ack, Seq(0), Flags::RST);
        let reset = Packet::tcp(flow.src, flow.dst, reset, Body::EMPTY);
        out.originate(self.side, reset, Cause::Control);
    }

    fn send_control(&mut self, now: Time, flags: Flags, out: &mut Out) {
        // Above everything that was sent: the peer believes an RST only at the number that it expects.
        let segment = self.segment(now, self.tx.window.max, flags);
        self.originate(segment, Body::EMPTY, Cause::Control, out);
    }

    /// Our SYN, or SYN-ACK when the peer's has come.
    fn send_syn(&mut self, now: Time, again: bool, out: &mut Out) {
        let config = self.config.clone();
        let answering = self.state == State::SynReceived;
        let flags = if answering { Flags::SYN | Flags::ACK } else { Flags::SYN };
        let mut segment =
            Segment::new(self.flow.src_port, self.flow.dst_port, self.iss, Seq(0), flags);
        if answering {
            segment.ack = self.irs + 1;
        }
        segment.window = config.recv_buffer.min(0xffff) as u16;
        let offers = |ours: bool, agreed: bool| if answering { agreed } else { ours };
        if offers(config.timestamps, self.agreed.timestamps) {
            segment.timestamps =
                Some(Timestamps { value: self.timestamp(now), echo: self.ts_recent });
        }
        let scaled = self.agreed.recv_scale > 0 || self.agreed.send_scale > 0;
        let options = segment.options_mut();
        options.mss = Some(config.mss.min(0xffff) as u16);
        if offers(config.window_scale, scaled) {
            options.window_scale = Some(scale_for(config.recv_buffer));
        }
        options.sack_permitted = offers(config.sack, self.agreed.sack);
        //= west97#3.2: the sender's SYN says that it understands partial acknowledgements
        if config.ackp != AckpReaction::Off && !answering {
            options.ackp = Some(Ackp::Permitted);
        }
        if offers(config.eln != ElnMode::Off, self.agreed.eln) {
            options.eln = Some(Eln::Permitted);
        }
        self.originate(segment, Body::EMPTY, Cause::Control, out);
        self.tx.syn_sent(now, again);
    }

    /// Takes in the peer's SYN and what it offers.
    fn take_syn(&mut self, segment: &Segment) {
        self.irs = segment.seq;
        let options = segment.options();
        let config = &self.config;
        let peer_mss = options.mss.map_or(536, u32::from);
        let agreed = &mut self.agreed;
        agreed.timestamps = config.timestamps && segment.timestamps.is_some();
        agreed.sack = config.sack && options.sack_permitted;
        agreed.eln = config.eln != ElnMode::Off && options.eln == Some(Eln::Permitted);
        if let (true, Some(shift)) = (config.window_scale, options.window_scale) {
            agreed.send_scale = shift.min(14);
            agreed.recv_scale = scale_for(config.recv_buffer);
        }
        if let Some(ts) = segment.timestamps {
            self.ts_recent = ts.value;
        }
        let mss = payload_mss(config.mss.min(peer_mss), agreed.timestamps);
        self.tx.window.mss = mss;
        self.rx.synchronise(mss);
    }

    fn establish(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        self.tx.syn_acked(now);
        // The window of a SYN is never scaled.
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.agreed.send_scale };
        let mss = self.tx.window.mss;
        let peer = u32::from(segment.window) << scale;
        let config = self.config.clone();
        self.tx.window.largest = 0xffff << self.agreed.send_scale;
        self.tx.established(&config, mss, peer, self.agreed.sack);
        self.report(TcpKind::Established, out);
    }

    // ---- small change

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
            self.time_wait_until = None;
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
        self.time_wait_until = None;
        self.report(TcpKind::Aborted, out);
    }

    fn report(&self, kind: TcpKind, out: &mut Out) {
        if out.wants(kind.level()) {
            let tcb = self.control_block();
            out.event(What::Tcp(TcpEvent { flow: self.flow, kind, tcb }));
        }
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

/// What a full segment carries: the peer's MSS bounds it, and timestamps take their room from the payload.
fn payload_mss(mss: u32, timestamps: bool) -> u32 {
    mss.saturating_sub(if timestamps { 12 } else { 0 }).max(1)
}

/// What a full segment carries between two ends that are configured so.
pub fn agreed_mss(a: &TcpConfig, b: &TcpConfig) -> u32 {
    payload_mss(a.mss.min(b.mss), a.timestamps && b.timestamps)
}
