//! Segments that a connection sends: data, ACKs and SYNs; and the negotiation of options.

use crate::event::{Cause, Interest, TcpKind};
use crate::machine::Out;
use crate::tcp::config::{AckpReaction, ElnMode, ElnReaction, GrowthRule, Variant};
use crate::tcp::sender::Chunk;
use crate::tcp::state::{Input, State};
use crate::tcp::work;
use crate::units::{Due, Span, Time};
use crate::wire::{
    Acc, Ackp, Body, Eln, Flags, Nack, Packet, Parts, SackBlocks, Scps, Segment, Seq, Smart, Stamp,
    Timestamps, options,
};

use crate::wire::segment::SNACK_LEN;

use super::{Connection, payload_mss, scale_for};

/// Maximum payload of a super-packet, which must fit an IP packet with the headers of IP and TCP and all TCP options.
const BULK: u32 = 65_535 - 40 - 60;

/// Bytes of a SACK option without blocks, with two bytes of padding.
const SACK_BASE: u32 = 4;

/// Minimum time between answers to unacceptable segments without data: Linux's `tcp_invalid_ratelimit`.
const CHALLENGE_EVERY: Span = Span::millis(500);

impl Connection {
    /// Sends the data that the windows allow, and then a pure ACK if an ACK is still due.
    pub(super) fn flush(&mut self, now: Time, out: &mut Out) {
        if self.held || self.corked && self.rx.has_no_gap() {
            return;
        }
        let w = &mut self.tx.core.window;
        if w.nxt >= w.end {
            w.close_written();
        }
        while self.tx.has_work() && self.state.is_synchronised() && !self.frozen {
            if self.opening.is_some() {
                self.send_first(now, out);
            }
            self.send_data(now, out);
            if !self.tx.core.window.close_written() {
                break;
            }
        }
        self.send_ack(now, out);
    }

    /// The next segment to send. `allowance` is the number of bytes that this call may still send: more would be an
    /// endless loop.
    fn next_chunk(&mut self, now: Time, allowance: &mut u64, out: &mut Out) -> Option<Chunk> {
        let chunk = self.tx.poll(now)?;
        match allowance.checked_sub(u64::from(chunk.len).max(1)) {
            Some(rest) => *allowance = rest,
            None => {
                out.fault("a sender exceeds its windows");
                return None;
            }
        }
        Some(chunk)
    }

    /// Sequence position of a pure ACK. In Linux that of new data does not fall with a timeout, and lies in the peer's
    /// window (`tcp_acceptable_seq`).
    fn ack_position(&self) -> u64 {
        let w = &self.tx.core.window;
        let slack = (1u64 << self.agreed.send_scale) - 1;
        match self.config.growth == GrowthRule::Linux {
            true if w.max <= w.una + u64::from(w.peer) + slack => w.max,
            true => w.una + u64::from(w.peer),
            false => w.nxt,
        }
    }

    /// Reserves room for SACK blocks in the next data segment. In Linux data segments carry them as well
    /// (`tcp_established_options`, `tcp_current_mss`).
    pub(super) fn reserve_reports(&mut self) {
        let linux = self.config.growth == GrowthRule::Linux;
        let blocks = if linux { self.sack_blocks().as_slice().len() as u32 } else { 0 };
        self.tx.core.window.reports = if blocks > 0 { SACK_BASE + 8 * blocks } else { 0 };
    }

    /// Sends an ACK if the receiver requires one.
    pub(super) fn send_ack(&mut self, now: Time, out: &mut Out) {
        if self.rx.ack_due() && self.state != State::Closed && !self.owes_syn() {
            if self.acks_end_to_end() && !self.permits_ack() {
                self.rx.acked();
                return;
            }
            let mut ack = self.segment(now, self.ack_position(), Flags::ACK);
            self.add_sack(&mut ack);
            self.add_cause(&mut ack);
            self.add_mark(&mut ack);
            self.add_snack(&mut ack);
            self.add_counts(&mut ack);
            self.originate(ack, Body::EMPTY, Cause::Ack, out);
            self.rx.acked();
        }
    }

    /// Sends the data that the windows allow; with segmentation offload new data in super-packets.
    fn send_data(&mut self, now: Time, out: &mut Out) {
        self.reserve_reports();
        let mut allowance = self.tx.core.window.allowance();
        // Segmentation offload would treat the counter of accurate ECN as flags.
        let bulk = out.is_bulk() && !self.marks.is_accurate() && self.tx.core.window.reports == 0;
        // Without buffers of Linux no segment waits for the next one. A loop of its own costs fewer instructions.
        if !bulk && self.tx.core.buffers().is_none() {
            while let Some(chunk) = self.next_chunk(now, &mut allowance, out) {
                let push = self.tx.core.pushes();
                self.send_chunk(now, chunk, push, out);
                self.reserve_reports();
            }
            return;
        }
        let mut waiting: Option<(Chunk, Option<bool>)> = None;
        while let Some(next) = self.next_chunk(now, &mut allowance, out) {
            let core = &self.tx.core;
            if bulk
                && let Some((chunk, push)) = &mut waiting
                && self.fits(chunk, &next)
            {
                (chunk.len, chunk.fin) = (chunk.len + next.len, next.fin);
                *push = core.buffers().map(|_| true);
                continue;
            }
            let (joined, push) = (core.joins(), core.pushes());
            if let Some((chunk, push)) = waiting.replace((next, push)) {
                // A card copies PSH only to the last segment of a packet.
                self.send_chunk(now, chunk, if joined { Some(false) } else { push }, out);
                self.reserve_reports();
            }
        }
        if let Some((chunk, push)) = waiting {
            self.send_chunk(now, chunk, push, out);
        }
    }

    /// Whether `next` may leave in one super-packet with `chunk`.
    fn fits(&self, chunk: &Chunk, next: &Chunk) -> bool {
        let mss = self.tx.core.window.mss;
        let follows = next.from == chunk.end() && next.len > 0;
        // Segmentation offload cannot split a segment with an urgent pointer.
        let plain = chunk.cause == Cause::Data
            && next.cause == Cause::Data
            && !chunk.fin
            && self.urgent()[0] <= chunk.from;
        follows
            && plain
            && chunk.len.is_multiple_of(mss)
            && chunk.len + next.len <= BULK / mss * mss
    }

    /// Sends `chunk`; `push` is whether with PSH, if that does not follow from the writes.
    pub(super) fn send_chunk(
        &mut self,
        now: Time,
        chunk: Chunk,
        push: Option<bool>,
        out: &mut Out,
    ) {
        let mut flags = Flags::ACK;
        let to = chunk.from + u64::from(chunk.len);
        // Otherwise on the segment with the last written byte.
        let written = || match self.tx.core.buffers() {
            Some(buffers) => buffers.push_within(chunk.from, to),
            None => to == self.tx.core.window.end,
        };
        if push.unwrap_or_else(|| chunk.len > 0 && written()) {
            flags = flags | Flags::PSH;
        }
        if chunk.fin {
            flags = flags | Flags::FIN;
            self.transition(Input::FinSent);
        }
        if self.agreed.ecn && chunk.cause == Cause::Data && self.tx.take_reduced() {
            //= rfc3168#section-6.1.2: CWR on the first new data segment after a reduction
            flags = flags | Flags::CWR;
        }
        let mut segment = match self.carries_syn(&chunk) {
            true => self.syn_with(now, flags),
            false => self.segment(now, chunk.from, flags),
        };
        let w = &self.tx.core.window;
        if w.reports > 0 && chunk.len <= w.payload() && !segment.flags.has(Flags::SYN) {
            self.add_sack(&mut segment);
        }
        if chunk.len > 0 {
            self.add_ack_report(&mut segment);
            if let Some(quick) = self.rx.timed() {
                quick.data_sent(now);
            }
        }
        let urgent = self.urgent()[0];
        if urgent > chunk.from && chunk.len > 0 {
            let ahead = (urgent - chunk.from).min(u16::MAX.into());
            segment.flags = segment.flags | Flags::URG;
            segment.options_mut().urgent = ahead as u16;
        }
        let offset = chunk.from.saturating_sub(1);
        let body = self.body(offset, chunk.len);
        let control = chunk.len == 0 && chunk.cause == Cause::Data;
        let cause = if control { Cause::Control } else { chunk.cause };
        self.originate(segment, body, cause, out);
        self.rx.acked();
        if let Some(rare) = &mut self.rare {
            rare.caused = None;
        }
    }

    /// `len` bytes of this end's stream, from `offset` on.
    pub(super) fn body(&self, offset: u64, len: u32) -> Body {
        match &self.outbox {
            None => Body::Pattern { stream: self.stream, len, offset },
            Some(outbox) => outbox.rope.slice(offset, len),
        }
    }

    #[inline(always)]
    pub(super) fn segment(&mut self, now: Time, position: u64, flags: Flags) -> Segment {
        let flow = self.flow;
        let acknowledged = self.take_ack_position();
        let mut segment = Segment::new(
            flow.src_port,
            flow.dst_port,
            self.iss + position as u32,
            self.irs + acknowledged as u32,
            flags | self.congestion_flags(),
        );
        let window = self.advertised_window(acknowledged) >> self.agreed.recv_scale;
        segment.window = window.min(0xffff) as u16;
        if self.agreed.timestamps {
            segment.timestamps =
                Some(Timestamps { value: self.timestamp(now), echo: self.ts_recent });
        }
        if self.agreed.counts {
            self.add_count(&mut segment);
        }
        if self.config.stamps {
            segment.options_mut().stamp = Some(Stamp { sent: now, echo: self.rare().stamped });
        }
        segment
    }

    /// The SACK blocks of the next segment.
    fn sack_blocks(&self) -> SackBlocks {
        if !self.agreed.sack {
            return SackBlocks::default();
        }
        // Timestamps leave room for three blocks (RFC 2018 section 3).
        let most = if self.agreed.timestamps { 3 } else { 4 };
        // A SNACK option needs the room of one block, and so does a connection count.
        let taken = usize::from(self.agreed.snack) + usize::from(self.agreed.counts);
        self.rx.sack(self.irs, most - taken)
    }

    pub(super) fn add_sack(&self, segment: &mut Segment) {
        let blocks = self.sack_blocks();
        if !blocks.is_empty() {
            segment.options_mut().sack = blocks;
        }
    }

    /// Records that the next ACK answers `segment` (SMART).
    #[inline]
    pub(super) fn note_cause(&mut self, segment: &Segment) {
        if self.agreed.smart {
            self.rare().caused = Some(segment.seq);
        }
    }

    /// Adds the number of the segment that caused the ACK. An ACK without such a cause, for example a window update,
    /// has none.
    //= balakrishnan97#3.1.2: a simple SACK scheme based on a subset of SMART
    pub(super) fn add_cause(&mut self, ack: &mut Segment) {
        if let (true, Some(seq)) =
            (self.agreed.smart, self.rare.as_mut().and_then(|rare| rare.caused.take()))
        {
            ack.options_mut().smart = Some(Smart::Caused(seq));
        }
    }

    /// Adds a list of the missing segments, as far as the header has room, if data arrived out of order.
    //= ccsds714: the SNACK option names the first hole, and by a bit vector those behind it
    pub(super) fn add_snack(&self, ack: &mut Segment) {
        if !self.agreed.snack {
            return;
        }
        let header = ack.timestamps.map_or(0, |_| 12) + ack.options().wire_len() + SNACK_LEN;
        let room = options::MAX_LEN.checked_sub(header as usize);
        if let Some(snack) = room.and_then(|room| self.rx.snack(room)) {
            ack.options_mut().snack = Some(snack);
        }
    }

    /// Marks the ACK if the segment that it requests arrived damaged (ELN).
    //= balakrishnan97#3.1.2: ACKs with the ELN bit set, for packets lost on the wireless hop
    pub(super) fn add_mark(&mut self, ack: &mut Segment) {
        let expected = self.rx.nxt;
        let Some(rare) = self.rare.as_mut().filter(|rare| !rare.damaged.is_empty()) else { return };
        rare.damaged.retain(|(_, to)| *to > expected);
        if rare.damaged.iter().any(|(from, _)| *from <= expected) {
            ack.options_mut().eln = Some(Eln::Marked);
        }
    }

    pub(super) fn originate(&mut self, segment: Segment, body: Body, cause: Cause, out: &mut Out) {
        self.last_ack_sent = self.acked_to_peer();
        let mss = self.tx.core.window.mss;
        let piece = if body.len() > mss { mss.min(u16::MAX.into()) as u16 } else { 0 };
        let (dscp, label) = self.class;
        let tos = dscp | self.ecn_bits(&segment, &body, cause);
        let parts = Parts::tcp(self.flow.src, self.flow.dst, segment, body);
        let fragmentable = self.permits_fragments();
        let packet = out.packet(Parts { tos, label, piece, fragmentable, ..parts });
        self.launch(packet, cause, out);
    }

    /// Passes a packet of this connection to the network.
    #[inline(always)]
    pub(super) fn launch(&self, packet: Packet, cause: Cause, out: &mut Out) {
        // The work of a base station's stack is not counted.
        if out.accepts(Interest::WORK) && !self.relay {
            work::report_sent(&packet, cause, self.agreed.scaled, out);
        }
        out.originate(self.side, packet, self.cause(cause));
    }

    /// Answers the unacceptable `segment` with `len` bytes by an ACK with the expected numbers.
    ///
    /// Segments without sequence space are answered at most twice a second. Otherwise two ends that disagree on the
    /// sequence numbers would answer each other's ACKs without end. In Linux the limit includes SYNs
    /// (`tcp_oow_rate_limited`), and the answer carries no data (`tcp_send_challenge_ack`).
    //= rfc5961#section-7
    pub(super) fn challenge(&mut self, now: Time, segment: &Segment, len: u32, out: &mut Out) {
        let linux = self.config.growth == GrowthRule::Linux;
        let syn = segment.flags.has(Flags::SYN) && linux;
        if syn || segment.seq_len(len) == 0 {
            if now < self.challenge_from {
                return;
            }
            self.challenge_from = now + CHALLENGE_EVERY;
        }
        if linux && !self.held {
            self.demand_ack();
            return self.send_ack(now, out);
        }
        self.send_ack_now(now, out);
    }

    /// Answers an unacceptable ACK during the handshake with a reset.
    pub(super) fn refuse_ack(&mut self, segment: &Segment, out: &mut Out) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        self.send_bare_reset(segment.ack, None, out);
    }

    /// Sends a reset without options or window. `ack` is its acknowledgement number, if it has one.
    //= rfc9293#section-3.10.7.1
    pub(super) fn send_bare_reset(&self, seq: Seq, ack: Option<Seq>, out: &mut Out) {
        let flow = self.flow;
        let flags = if ack.is_some() { Flags::RST | Flags::ACK } else { Flags::RST };
        let ack = ack.unwrap_or(Seq(0));
        let reset = Segment::new(flow.src_port, flow.dst_port, seq, ack, flags);
        let (tos, label) = self.class;
        let parts = Parts::tcp(flow.src, flow.dst, reset, Body::EMPTY);
        self.launch(Packet::new(Parts { tos, label, ..parts }), Cause::Control, out);
    }

    pub(super) fn send_control(&mut self, now: Time, flags: Flags, out: &mut Out) {
        // The number is above all sent data: the peer accepts an RST only with the number that it expects.
        let segment = self.segment(now, self.tx.core.window.max, flags);
        self.originate(segment, Body::EMPTY, Cause::Control, out);
    }

    /// Sends this end's SYN, or its SYN-ACK if the peer's SYN has arrived. `again` is whether it may be a
    /// retransmission.
    pub(super) fn send_syn(&mut self, now: Time, again: bool, out: &mut Out) {
        let mut segment = self.syn(now, again);
        if let (Some(ts), false) = (segment.timestamps, again) {
            self.first_stamp = ts.value;
        }
        if !again {
            self.opening_until = self.config.opening_deadline(now);
        }
        let (body, cause) = self.early_data(&mut segment, again);
        self.originate(segment, body, cause, out);
        self.tx.syn_sent(now, again);
        self.syn_carried();
    }

    /// Opens without a handshake: this end assumes that its peer has the same options. Both start with sequence
    /// number 0, since sequence numbers are not exchanged.
    pub(super) fn begin(&mut self, now: Time, through: [Input; 2], out: &mut Out) {
        self.iss = Seq(0);
        let syn = self.syn(now, false);
        self.take_syn(&syn);
        self.tx.syn_sent(now, true);
        through.into_iter().for_each(|input| {
            self.transition(input);
        });
        self.establish(now, &syn, out);
    }

    pub(super) fn syn(&mut self, now: Time, again: bool) -> Segment {
        let config = self.config.clone();
        let answering = self.state == State::SynReceived || self.is_half();
        let flags = if answering { Flags::SYN | Flags::ACK } else { Flags::SYN };
        let flags = flags | self.ecn_setup(answering, again);
        let mut segment =
            Segment::new(self.flow.src_port, self.flow.dst_port, self.iss, Seq(0), flags);
        if answering {
            segment.ack = self.irs + self.rx.nxt as u32;
        }
        // A base station's buffer may still be smaller than its maximum, and the peer relies on the advertised window.
        let offers = |ours: bool, agreed: bool| if answering { agreed } else { ours };
        if offers(config.timestamps, self.agreed.timestamps) {
            segment.timestamps =
                Some(Timestamps { value: self.timestamp(now), echo: self.ts_recent });
        }
        let stamped = answering && segment.timestamps.is_some();
        let first = self.rx.first_window(payload_mss(config.mss, stamped, false));
        let window = match first.filter(|_| !self.relay) {
            Some(first) => first,
            None if self.relay => self.rx.buffer.into(),
            None => config.recv_buffer.into(),
        };
        segment.window = window.min(0xffff) as u16;
        let options = segment.options_mut();
        options.mss = Some(config.mss.min(0xffff) as u16);
        if offers(config.window_scale, self.agreed.scaled) {
            options.window_scale = Some(scale_for(config.recv_buffer));
        }
        options.sack_permitted = offers(config.sack, self.agreed.sack);
        //= west97#3.2: an option of the sender's SYN permits partial acknowledgements
        if config.ackp != AckpReaction::Off && !answering {
            options.ackp = Some(Ackp::Permitted);
        }
        if self.offers_nacks() {
            options.nack = Some(Nack::Permitted);
        }
        if offers(config.eln != ElnMode::Off, self.agreed.eln) {
            options.eln = Some(match config.eln_reaction {
                ElnReaction::Named => Eln::Permitted,
                ElnReaction::ThirdDuplicate | ElnReaction::FirstAck => Eln::MarksPermitted,
            });
        }
        if offers(config.smart, self.agreed.smart) {
            options.smart = Some(Smart::Permitted);
        }
        if offers(config.snack, self.agreed.snack) {
            options.scps = Some(Scps::SNACK);
        }
        if offers(config.acc.is_some(), self.agreed.acc) {
            options.acc = Some(Acc::Permitted);
        }
        if self.opening.is_some() {
            self.offer_opening(&mut segment, answering, again);
        }
        if answering {
            self.add_first_counts(&mut segment);
        }
        if config.growth == GrowthRule::Linux && options::fits_packed(segment.options()) {
            segment.options_mut().packed = true;
        }
        segment
    }

    /// Processes the peer's SYN and negotiates the options.
    pub(super) fn take_syn(&mut self, segment: &Segment) {
        self.irs = segment.seq;
        let options = segment.options();
        let config = &self.config;
        let peer_mss = options.mss.map_or(536, u32::from);
        let agreed = &mut self.agreed;
        agreed.timestamps = config.timestamps && segment.timestamps.is_some();
        agreed.sack = config.sack && options.sack_permitted;
        let eln_is = |form| config.eln != ElnMode::Off && options.eln == Some(form);
        agreed.marks = eln_is(Eln::MarksPermitted);
        agreed.eln = agreed.marks || eln_is(Eln::Permitted);
        agreed.smart = config.smart && options.smart == Some(Smart::Permitted);
        agreed.snack = config.snack && options.scps.is_some_and(Scps::has_snack);
        if let (true, Some(shift)) = (config.window_scale, options.window_scale) {
            agreed.send_scale = shift.min(14);
            agreed.recv_scale = scale_for(config.recv_buffer);
            // If neither end needs scaling, the SYN-ACK does not offer it.
            agreed.scaled = agreed.recv_scale > 0 || agreed.send_scale > 0;
        }
        if let Some(ts) = segment.timestamps {
            self.ts_recent = ts.value;
        }
        let whole = config.mss.min(peer_mss);
        let timestamps = agreed.timestamps;
        if self.opening.is_some() {
            self.take_opening(segment);
        }
        let config = &self.config;
        let mss = payload_mss(whole, timestamps, self.agreed.counts);
        self.tx.core.window.mss = mss;
        // The peer has answered, so timeouts double from now on.
        self.tx.core.syn_linear = 0;
        let unit = if self.agreed.scaled { 1 << self.agreed.recv_scale } else { 1 };
        let advertised = payload_mss(config.mss, timestamps, false);
        self.rx.open_window(advertised, unit, self.agreed.sack);
        self.rx.synchronise(config, mss, whole);
        self.agree_ecn(segment);
    }

    /// The best variant that the negotiated options permit. Without reports about single segments it is NewReno (RFC
    /// 6582 section 1), which Linux has within the machine of RACK.
    pub(super) fn agreed_variant(&self) -> Variant {
        let linux = self.config.growth == GrowthRule::Linux;
        let newreno = if linux { Variant::Rack } else { Variant::NewReno };
        match self.config.variant {
            Variant::Smart if self.agreed.smart => Variant::Smart,
            Variant::Snack if self.agreed.snack => Variant::Snack,
            Variant::Smart | Variant::Snack | Variant::Sack if self.agreed.sack => Variant::Sack,
            Variant::Rack if self.agreed.sack => Variant::Rack,
            Variant::Smart | Variant::Snack | Variant::Sack => newreno,
            Variant::Rack | Variant::NewReno => newreno,
            other => other,
        }
    }

    pub(super) fn establish(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        self.opening_until = Due::NEVER;
        // The stored timestamp is that of a SYN.
        self.ts_recent_at = now;
        let echoed = if self.config.stamps { None } else { self.echoed(now, segment) };
        self.tx.syn_acked(now, echoed);
        // The window of a SYN is never scaled.
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.agreed.send_scale };
        let mss = self.tx.core.window.mss;
        let peer = u32::from(segment.window) << scale;
        self.window_from = segment.seq;
        let config = self.config.clone();
        self.tx.core.window.largest = 0xffff << self.agreed.send_scale;
        self.tx.established(&config, mss, peer, self.agreed_variant(), self.agreed.sack);
        if !self.marks.is_accurate() {
            self.tx.without_counts(&config);
        }
        self.rx.established(now);
        self.report(TcpKind::Established, out);
    }
}
