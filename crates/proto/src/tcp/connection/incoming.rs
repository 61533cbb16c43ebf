//! Processing of an arriving segment.

use crate::event::{Cause, TcpKind};
use crate::machine::Out;
use crate::tcp::config::{ElnReaction, GrowthRule, Prediction};
use crate::tcp::sender::{AckInfo, Purpose};
use crate::tcp::state::{Input, State};
use crate::tcp::work::Steps;
use crate::units::{Due, Span, Time};
use crate::wire::{Ackp, Body, Eln, Flags, Nack, Segment, Seq, Smart};

use super::Connection;

/// Maximum number of stored ranges of damaged segments.
const DAMAGED_MAX: usize = 64;

/// The shortest timeout of Linux: two ticks of 4 ms (`TCP_TIMEOUT_MIN`).
const TIMEOUT_MIN: Span = Span::millis(8);

impl Connection {
    /// Processes an undamaged segment without ECN bits.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, body: Body, out: &mut Out) {
        self.on_arrival(now, segment, body, 0, out);
    }

    /// Processes an undamaged segment with these ECN bits in its IP header.
    pub fn on_arrival(&mut self, now: Time, segment: &Segment, body: Body, ecn: u8, out: &mut Out) {
        self.steps = Steps::default();
        self.marks.arrived = ecn;
        if self.awaits_data() && !body.is_empty() {
            self.begin(now, [Input::Syn, Input::SynAcked], out);
        }
        match self.state {
            State::Closed => self.on_segment_closed(now, segment, body, out),
            State::SynSent => self.on_segment_syn_sent(now, segment, body, out),
            _ => self.on_segment_open(now, segment, body, out),
        }
    }

    /// Whether the first data opens this connection, which has no handshake.
    fn awaits_data(&self) -> bool {
        let fresh = !self.open_at.is_set() && !self.aborted && !self.complete;
        self.state == State::Closed && !self.config.handshake && fresh
    }

    /// Passive open: a SYN without a connection.
    pub(super) fn on_segment_closed(
        &mut self,
        now: Time,
        segment: &Segment,
        body: Body,
        out: &mut Out,
    ) {
        if self.open_at.is_set() || self.aborted || self.complete {
            return;
        }
        if segment.flags.has(Flags::SYN) && !segment.flags.any(Flags::ACK | Flags::RST) {
            self.transition(Input::Syn);
            self.take_syn(segment);
            if self.opening.is_some() && self.open_early(now, segment, body, out) {
                return;
            }
            if !self.held {
                self.send_syn(now, false, out);
            }
        }
    }

    pub(super) fn on_segment_syn_sent(
        &mut self,
        now: Time,
        segment: &Segment,
        body: Body,
        out: &mut Out,
    ) {
        let acked = self.acks_syn(segment).filter(|_| segment.flags.has(Flags::ACK));
        let acks_ours = acked.is_some();
        if segment.flags.has(Flags::ACK) && !acks_ours {
            //= rfc9293#section-3.10.7.3: an unacceptable ACK belongs to an earlier connection, and is answered with a reset
            self.refuse_ack(segment, out);
            self.retry_syn_soon(now);
            return;
        }
        if self.echoes_other_time(now, segment) {
            return self.refuse_ack(segment, out);
        }
        if segment.flags.has(Flags::RST) {
            if acks_ours {
                self.abort(out);
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) || self.echoes_another(segment) {
            return;
        }
        self.take_syn(segment);
        if let Some(acked) = acked {
            self.transition(Input::SynAck);
            self.syn_acked_to(acked);
            self.establish(now, segment, out);
            self.take_syn_ack(now, segment, body, out);
            self.expect_write(now);
            if !self.held {
                self.reflect(now, out);
                self.send_ack_now(now, out);
            }
        } else {
            // Simultaneous open.
            self.transition(Input::Syn);
            self.send_syn(now, true, out);
        }
    }

    /// A segment of an old connection answered our SYN. Its reset ends that connection, so that the SYN may succeed:
    /// Linux retransmits the SYN at once if it was sent once (`tcp_rcv_synsent_state_process`).
    fn retry_syn_soon(&mut self, now: Time) {
        if self.config.growth == GrowthRule::Linux && self.tx.core.tally.retries == 0 {
            self.tx.core.timers.set(Purpose::Timeout, now + TIMEOUT_MIN);
        }
    }

    /// Whether a SYN-ACK echoes a timestamp outside the time since our first SYN (Linux).
    fn echoes_other_time(&self, now: Time, segment: &Segment) -> bool {
        let echo = segment.timestamps.map(|ts| ts.echo).filter(|echo| *echo != 0);
        let (Some(echo), true) = (echo, self.config.growth == GrowthRule::Linux) else {
            return false;
        };
        let answers = segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::RST);
        let span = self.timestamp(now).wrapping_sub(self.first_stamp);
        answers && self.config.timestamps && echo.wrapping_sub(self.first_stamp) > span
    }

    /// Handles a SYN-ACK in SYN-RECEIVED: after a simultaneous open, it acknowledges our SYN. Returns false for other
    /// segments.
    //= rfc9293#section-3.5: figure 7: simultaneous connection synchronization
    fn take_crossed(&mut self, now: Time, segment: &Segment, out: &mut Out) -> bool {
        // Other stacks challenge this segment (RFC 5961, section 4.2), and the answer opens the connection.
        let opens = self.active && self.config.growth == GrowthRule::Linux;
        let crossed = opens && segment.seq == self.irs && segment.flags.has(Flags::ACK);
        let Some(acked) = self.acks_syn(segment).filter(|_| crossed) else { return false };
        self.transition(Input::SynAcked);
        self.syn_acked_to(acked);
        self.establish(now, segment, out);
        self.take_syn_ack(now, segment, Body::EMPTY, out);
        self.rx.report_syn_again();
        self.send_ack_now(now, out);
        true
    }

    pub(super) fn on_segment_open(
        &mut self,
        now: Time,
        segment: &Segment,
        body: Body,
        out: &mut Out,
    ) {
        if self.held && !segment.flags.has(Flags::RST) {
            // The peer retransmits its SYN or SYN-ACK. [`Connection::accept`] answers it later.
            return;
        }
        //= agarwal00#4.4: steps H1 and H2 in either order
        let first = self.predicts(Prediction::BeforePaws);
        if !first && self.is_old_duplicate(now, segment, &body) {
            return self.challenge(now, segment, body.len(), out);
        }
        if (self.shortens || !self.predicts(Prediction::Off))
            && let Some(acked) = self.predicted(segment, &body)
        {
            return self.take_predicted(now, segment, acked, body, out);
        }
        if first && self.is_old_duplicate(now, segment, &body) {
            return self.challenge(now, segment, body.len(), out);
        }
        // A sequence number below the peer's initial one has no position. It is unacceptable, like an old one.
        let position = segment.seq.unwrap_near(self.irs, self.rx.nxt);
        let from = position.unwrap_or(0);
        let len = u64::from(segment.seq_len(body.len()));
        let acceptable = position.is_some()
            && if len == 0 {
                from >= self.acked_to_peer() && from <= self.rx.edge()
            } else {
                from + len >= self.least_end() && from < self.rx.edge()
            };
        if !acceptable || segment.flags.any(Flags::RST | Flags::SYN) {
            if len > 0 && from < self.rx.nxt {
                // A duplicate: the ACK of the earlier copy may be lost, so the answer is the same.
                self.note_arrival(segment);
            }
            let again = (self.acked_to_peer()..self.rx.nxt).contains(&from);
            if again && segment.flags.without(Flags::PSH | Flags::FIN | Flags::URG) == Flags::ACK {
                // M-TCP received this data and has not acknowledged it. The retransmission is legitimate, so its ACK
                // counts, and may permit more data.
                let Some(ack) = self.acceptable_ack(now, segment, body.len(), out) else { return };
                self.take_ack(now, segment, ack, body.len(), out);
                self.flush(now, out);
            }
            self.reject(now, segment, from, body.len(), acceptable, out);
            return;
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        //= rfc9293#section-3.10.7.4: the sequence number, then the ACK; nothing is stored before both are acceptable
        let Some(ack) = self.acceptable_ack(now, segment, body.len(), out) else { return };
        if let Some(ts) = segment.timestamps.filter(|_| self.agreed.timestamps) {
            self.steps.stamped = true;
            if from <= self.last_ack_sent {
                self.note_timestamp(now, ts.value);
            }
        }
        if len > 0 {
            self.note_arrival(segment);
        }
        if !self.take_ack(now, segment, ack, body.len(), out) {
            return;
        }
        if segment.flags.has(Flags::URG) {
            let urgent_end = &mut self.rare().urgent[1];
            *urgent_end = (*urgent_end).max(from + u64::from(segment.options().urgent));
        }
        self.take_marks(now, segment, body.len(), out);
        self.take_data(now, from, segment, body, out);
        self.flush(now, out);
    }

    /// The least acceptable end of a segment. In Linux it is the position of the last ACK (`tcp_sequence`).
    fn least_end(&self) -> u64 {
        let linux = self.rx.acknowledged().filter(|_| self.receives() && self.end_to_end.is_none());
        linux.unwrap_or(self.rx.nxt + 1)
    }

    /// Whether the peer may still send data.
    fn receives(&self) -> bool {
        matches!(self.state, State::Established | State::FinWait1 | State::FinWait2)
    }

    /// Answers a segment with RST or SYN, or outside the window. `from` is its position, `len` its payload in bytes.
    fn reject(
        &mut self,
        now: Time,
        segment: &Segment,
        from: u64,
        len: u32,
        acceptable: bool,
        out: &mut Out,
    ) {
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            //= rfc5961#section-3.2: only an exact RST resets; another one in the window is challenged
            // A closed peer resets with the last number that was acknowledged to it. M-TCP acknowledges less than it
            // has received.
            let exact = acceptable && (from == self.rx.nxt || from == self.acked_to_peer());
            if exact || self.resets_in_linux(from) {
                self.take_reset(out);
            } else if acceptable {
                self.challenge(now, segment, len, out);
            }
        } else if flags.has(Flags::SYN) {
            let same = segment.seq == self.irs && !flags.has(Flags::ACK);
            if self.state == State::SynReceived && self.take_crossed(now, segment, out) {
                return;
            }
            if same && self.state == State::SynReceived {
                self.send_syn(now, true, out);
            } else if same && self.is_half() {
                self.answer_again(now, out);
            } else {
                self.marks.accurate.iter_mut().for_each(|accurate| accurate.reflect_again());
                //= rfc5961#section-4.2: a SYN is challenged, whatever its sequence number
                self.challenge(now, segment, len, out);
            }
        } else {
            //= rfc9293#section-3.10.7.4: an unacceptable segment is answered with an ACK
            if self.state == State::TimeWait && flags.has(Flags::FIN) {
                //= rfc9293#section-3.10.7.4: a retransmitted FIN restarts TIME-WAIT
                self.time_wait_until = Due::at(now + self.time_wait(now));
            }
            let room = u64::from(segment.seq_len(len));
            if self.state != State::TimeWait {
                // In TIME-WAIT the remaining state has no SACK information.
                self.rx.note_duplicate(from, (from + room).min(self.rx.nxt));
            }
            if room == 0 || self.answers_repeated(now, segment, (from, from + room)) {
                self.challenge(now, segment, len, out);
            }
        }
    }

    /// Processes the acceptable acknowledgement `ack` of a segment with `len` bytes. Returns false if the segment
    /// needs no further processing.
    fn take_ack(
        &mut self,
        now: Time,
        segment: &Segment,
        ack: u64,
        len: u32,
        out: &mut Out,
    ) -> bool {
        let carries = segment.seq_len(len) > 0;
        if segment.options().ackp == Some(Ackp::Partial) {
            //= west97#3.4: no part of normal ACK processing is done for a partial acknowledgement
            if let Some(kind) = self.tx.on_partial_ack(now, ack) {
                self.report(kind, out);
            }
            return false;
        }
        if let Some(Nack::Missing(blocks)) = segment.options().nack {
            self.take_nack(now, blocks.as_slice(), out);
            return false;
        }
        if self.state == State::SynReceived {
            self.transition(Input::SynAcked);
            self.establish(now, segment, out);
            if self.opening.is_some() {
                self.take_queued(now, out);
            }
        } else if ack > 0 && self.is_half() {
            self.end_half();
        }
        let mut sacked = [(0, 0); 4];
        let echoed = self.echoed(now, segment);
        let window = self.window_update(segment, ack);
        let mut info = AckInfo { echoed, ..AckInfo::plain(ack, window, carries) };
        if segment.has_options() {
            self.read_options(segment, &mut info, &mut sacked);
        }
        if self.marks.is_accurate() {
            info.ce_bytes = self.take_counts(segment, ack, carries);
        }
        let ce_bytes = info.ce_bytes;
        self.steps.scaled = self.agreed.scaled;
        let first = self.tx.takes_echo_first();
        if first {
            self.take_echo(now, segment, (ack, ce_bytes), out);
        }
        self.apply_ack(now, &info, out);
        if !first {
            self.take_echo(now, segment, (ack, ce_bytes), out);
        }
        if self.tx.core.window.fin && self.tx.is_done() {
            self.fin_acked(now, out);
        }
        true
    }

    /// Stores the options of an ACK in `info`, with the SACK blocks as positions in `sacked`.
    fn read_options<'a>(
        &mut self,
        segment: &'a Segment,
        info: &mut AckInfo<'a>,
        sacked: &'a mut [(u64, u64); 4],
    ) {
        let options = segment.options();
        let near = self.tx.core.window.una;
        let position = |seq: Seq| seq.unwrap_near(self.iss, near);
        let mut count = 0;
        for &(left, right) in options.sack.as_slice() {
            if let (Some(left), Some(right)) = (position(left), position(right)) {
                sacked[count] = (left, right);
                count += 1;
            }
        }
        info.sacked = &sacked[..count];
        match (self.config.eln_reaction, options.eln) {
            _ if !self.agreed.eln => {}
            (ElnReaction::Named, Some(Eln::Lost(seq))) => info.lost = position(seq),
            (ElnReaction::Named, _) => {}
            (_, eln) => info.marked = eln == Some(Eln::Marked),
        }
        if let (true, Some(Smart::Caused(seq))) = (self.agreed.smart, options.smart) {
            info.caused = position(seq);
        }
        info.snack = options.snack.as_ref().filter(|_| self.agreed.snack);
        self.steps.blocks = count as u8;
    }

    /// Applies an acknowledgement to the sender and to the written data.
    pub(super) fn apply_ack(&mut self, now: Time, info: &AckInfo<'_>, out: &mut Out) {
        if let Some(kind) = self.tx.on_ack(now, info) {
            self.report(kind, out);
        }
        if let Some(outbox) = &mut self.outbox {
            outbox.release(self.tx.core.window.una);
        }
        self.check_complete(out);
    }

    #[inline]
    pub(super) fn check_complete(&mut self, out: &mut Out) {
        if !self.complete
            && self.tx.core.window.fin
            && self.tx.core.window.una >= self.tx.core.window.end
        {
            self.complete = true;
            self.report(TcpKind::Complete, out);
        }
    }

    pub(super) fn fin_acked(&mut self, now: Time, out: &mut Out) {
        if self.transition(Input::FinAcked) {
            match self.state {
                State::TimeWait => self.time_wait_until = Due::at(now + self.time_wait(now)),
                State::Closed => self.finish(out),
                _ => {}
            }
        }
    }

    pub(super) fn finish(&mut self, out: &mut Out) {
        self.tx.stop();
        self.rx.stop();
        self.report(TcpKind::Closed, out);
    }

    pub(super) fn take_data(
        &mut self,
        now: Time,
        from: u64,
        segment: &Segment,
        body: Body,
        out: &mut Out,
    ) {
        let fin = segment.flags.has(Flags::FIN);
        if body.is_empty() && !fin {
            return;
        }
        if !self.receives() {
            // The peer has closed, so this data was received before.
            self.rx.demand_ack();
            return;
        }
        let end = from + u64::from(segment.seq_len(body.len()));
        if end <= self.rx.nxt {
            self.rx.note_duplicate(from, end);
            return self.rx.repeat_ack(now);
        }
        self.rx.renew_duplicate(from);
        let skip = self.rx.nxt.saturating_sub(from).min(body.len().into());
        if skip > 0 {
            self.rx.note_overlap(from, from + skip);
        }
        let from = from + skip;
        let room = self.rx.edge().saturating_sub(from);
        let body_len = u64::from(body.len()) - skip;
        let keep = body_len.min(room);
        let fin = fin && keep == body_len;
        if keep < body_len {
            self.rx.demand_ack();
        }
        let body = match skip == 0 && keep == body_len {
            true => body,
            false => body.slice(skip as u32, keep as u32),
        };
        if body.is_empty() && !fin {
            return;
        }
        self.time_receiver(now, segment);
        let expected = skip == 0 && from == self.rx.nxt && !segment.has_options();
        let expected = expected && segment.flags.without(Flags::PSH) == Flags::ACK;
        let sending = expected.then(|| self.sending());
        if !self.rx.admits(from, body.len(), sending) {
            return;
        }
        let crowds = self.rx.crowds(from, from + u64::from(body.len()));
        if crowds {
            self.rx.demand_ack();
            self.send_ack(now, out);
        }
        self.absorb(now, from, body, fin, out);
        if crowds {
            self.rx.withdraw_ack();
        }
    }

    /// Memory of the data to send in Linux.
    pub(super) fn sending(&self) -> u64 {
        self.tx.core.buffers().map_or(0, |buffers| buffers.memory(self.tx.core.window.una))
    }

    /// Gives the receiver a round-trip sample from a data segment, if it needs them.
    #[inline]
    pub(super) fn time_receiver(&mut self, now: Time, segment: &Segment) {
        let Some(timed) = self.rx.timed() else { return };
        timed.pushed(segment.flags.any(Flags::PSH | Flags::FIN | Flags::URG));
        let read = self.rx.has_read();
        if let (Some(sent), Some(ts)) = (self.echoed(now, segment), segment.timestamps)
            && let Some(timed) = self.rx.timed()
        {
            timed.sample(ts.echo, now.since(sent), read);
        }
    }

    /// Stores data that is acceptable and cut to the window.
    pub(super) fn absorb(&mut self, now: Time, from: u64, body: Body, fin: bool, out: &mut Out) {
        self.steps.stored = !body.is_empty();
        if !body.is_empty()
            && let Some(quick) = self.rx.timed()
        {
            let rtt = &self.tx.core.timers.rtt;
            quick.measured(rtt.srtt(), rtt.rto());
        }
        let taken = self.rx.take(now, from, body, fin);
        if taken.corrupted {
            self.report(TcpKind::Corrupted, out);
        }
        if taken.delivered > 0 {
            if self.relay || !out.delivered(self.flow, taken.delivered) {
                self.report(TcpKind::Delivered { bytes: taken.delivered }, out);
            }
            self.exchange_delivered(out);
        }
        if taken.fin && self.transition(Input::Fin) {
            match self.state {
                State::TimeWait => self.time_wait_until = Due::at(now + self.time_wait(now)),
                // Without an application, this end has no more data and closes too.
                State::CloseWait if self.outbox.is_none() || self.exchange.is_some() => {
                    self.tx.core.window.close();
                }
                State::CloseWait if !self.relay && !taken.filled => {
                    self.rx.await_close(now);
                }
                _ => {}
            }
        }
    }

    /// Reports a segment to its sender that failed the TCP checksum although its IP header is intact, or that an oracle
    /// reported as damaged. Addresses and ports are valid; the sequence number must be plausible. Returns whether the
    /// segment was reported.
    //= west97#2.3.3: the receiver answers with a duplicate ACK that carries the loss notification
    pub fn on_damaged(&mut self, now: Time, segment: &Segment, body: &Body, out: &mut Out) -> bool {
        if !self.agreed.eln || !self.state.is_synchronised() || body.is_empty() {
            return false;
        }
        let position = segment.seq.unwrap_near(self.irs, self.rx.nxt);
        let plausible = |from: &u64| *from >= self.rx.nxt && *from < self.rx.edge();
        let Some(from) = position.filter(plausible) else { return false };
        if self.agreed.marks {
            //= balakrishnan97#3.1.2: the ACKs that later segments cause notify the sender
            let damaged = &mut self.rare().damaged;
            if damaged.len() < DAMAGED_MAX && !damaged.iter().any(|range| range.0 == from) {
                damaged.push((from, from + u64::from(body.len())));
            }
            return true;
        }
        let mut ack = self.segment(now, self.tx.core.window.nxt, Flags::ACK);
        self.add_sack(&mut ack);
        ack.options_mut().eln = Some(Eln::Lost(segment.seq));
        self.originate(ack, Body::EMPTY, Cause::LossNotification, out);
        self.rx.acked();
        true
    }
}
