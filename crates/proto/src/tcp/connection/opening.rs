//! Opening of a connection with data: T/TCP and TCP Fast Open.
//!
//! A server may accept the data of a SYN before its own SYN is acknowledged. It then has the state as after the
//! handshake, and [`Half`] records the missing part. Its SYN is sent with its first byte, or without data.

use crate::event::Cause;
use crate::machine::Out;
use crate::tcp::config::GrowthRule;
use crate::tcp::opening::{DEFAULT_MSS, Half, Memory, Opening, Succession};
use crate::tcp::sender::Chunk;
use crate::tcp::state::{Input, State};
use crate::tcp::t_tcp::TIME_WAIT_RTOS;
use crate::units::{Due, Span, Time};
use crate::wire::opening::{COUNT_LEN, Cookie, Count};
use crate::wire::{Body, Flags, Segment, Seq, opening, options};

use super::Connection;

impl Connection {
    /// Lends the host's memory of peers for the next call. Returns the previous one, or `memory` itself if this
    /// connection needs none.
    pub fn lend_memory(&mut self, memory: Box<Memory>) -> Option<Box<Memory>> {
        match &mut self.opening {
            Some(opening) => opening.memory.replace(memory),
            None => Some(memory),
        }
    }

    /// Returns the memory to the host.
    pub fn take_memory(&mut self) -> Option<Box<Memory>> {
        let over = self.state == State::Closed;
        let opening = self.opening.as_deref_mut()?;
        let mut memory = opening.memory.take()?;
        if opening.pending && (opening.half == Half::No || over) {
            opening.pending = false;
            memory.cookies.count_pending(false);
        }
        Some(memory)
    }

    /// Whether this end exchanges data while its SYN is unacknowledged.
    #[inline]
    pub(super) fn is_half(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.half != Half::No)
    }

    fn memory(&mut self) -> Option<(&mut Opening, Box<Memory>)> {
        let opening = self.opening.as_deref_mut()?;
        let memory = opening.memory.take()?;
        Some((opening, memory))
    }

    // ---- options of SYNs

    /// Adds the options of this end's SYN or SYN-ACK, if there is room.
    pub(super) fn offer_opening(&mut self, segment: &mut Segment, answering: bool, again: bool) {
        let (peer, t_tcp) = (self.flow.dst, self.config.t_tcp);
        let len = segment.header_len() - 20;
        let Some((opening, mut memory)) = self.memory() else { return };
        let mut option = opening::Opening::NONE;
        if t_tcp && (!answering || opening.peer_count.is_some()) {
            let count = match opening.count {
                Some(count) => count,
                None if answering => Count::Cc(memory.counts.next()),
                None => memory.counts.open(peer),
            };
            // The answer has two counts, and must have room for both.
            if len + 2 * COUNT_LEN <= options::MAX_LEN as u32 {
                option.count = Some(if answering { Count::Cc(count.number()) } else { count });
                option.echo = opening.peer_count.filter(|_| answering);
                opening.count = Some(count);
            }
        } else if !t_tcp && answering {
            option.cookie = opening.grant;
            option.experiment = opening.grant.is_some() && opening.experiment;
        } else if !t_tcp && !again {
            //= rfc7413#section-4.2.2: a retransmitted SYN has neither the option nor data
            if !memory.cookies.client_without {
                let known = memory.cookies.known(peer).map(|(cookie, _)| cookie);
                option.cookie = known.or(Some(Cookie::REQUEST));
                option.experiment = memory.cookies.experiments_with(peer);
                (opening.offered, opening.experiment) = (true, option.experiment);
            }
        } else if !t_tcp {
            opening.repeated = true;
        }
        let fits = (len + option.wire_len()).next_multiple_of(4) <= options::MAX_LEN as u32;
        if fits && option != opening::Opening::NONE {
            segment.options_mut().opening = option;
        }
        opening.memory = Some(memory);
    }

    /// Processes the options of the peer's SYN or SYN-ACK. Called before the segment size is computed, since connection
    /// counts reduce it.
    pub(super) fn take_opening(&mut self, segment: &Segment) {
        let (peer, config, active) = (self.flow.dst, self.config.clone(), self.active);
        let option = segment.options().opening;
        let mss = segment.options().mss.unwrap_or(DEFAULT_MSS);
        let answer = segment.flags.has(Flags::ACK);
        let refused = self.acks_syn(segment) == Some(1);
        let Some((opening, mut memory)) = self.memory() else { return };
        if config.t_tcp {
            let room = segment.header_len() - 20 + COUNT_LEN <= options::MAX_LEN as u32;
            let counts = option.count.filter(|_| if answer { option.echo.is_some() } else { room });
            opening.peer_count = counts.map(Count::number);
            if answer {
                memory.counts.echoed(peer, option.echo);
                memory.counts.learn_mss(peer, mss);
            }
        } else if answer {
            let cookies = &mut memory.cookies;
            if opening.offered || opening.carried > 1 {
                cookies.learn_mss(peer, mss);
            }
            // Linux ignores a cookie that it has not requested, and does not forget one whose data was not
            // acknowledged.
            let linux = config.growth == GrowthRule::Linux;
            match option.cookie.filter(|cookie| !cookie.is_request()) {
                Some(cookie) if opening.offered => {
                    cookies.learn(peer, cookie, mss, option.experiment);
                }
                Some(_) => {}
                // A server that supports only one form of the option does not answer the other.
                None if opening.offered && opening.carried == 1 && !opening.repeated => {
                    cookies.unanswered(peer, opening.experiment);
                }
                None if refused && opening.carries > 1 && !linux => cookies.forget(peer),
                None => {}
            }
        } else if let Some(cookie) = option.cookie {
            //= rfc7413#section-4.1.2: a new cookie for a client that requests one, or has a wrong one
            let good = memory.cookies.made_for(peer);
            // In a simultaneous open there is no server.
            let needed = !active && !memory.cookies.server_without && cookie != good;
            opening.grant = needed.then_some(good);
            opening.experiment = option.experiment;
        }
        opening.memory = Some(memory);
        let counted = opening.peer_count.is_some() && (!answer || opening.count.is_some());
        self.agreed.counts = counted;
    }

    // ---- a client

    /// The data of this end's SYN, and the cause of sending it. Adds PSH and FIN to the SYN as the data requires; Linux
    /// sends no SYN with PSH.
    pub(super) fn early_data(&mut self, segment: &mut Segment, again: bool) -> (Body, Cause) {
        let none = (Body::EMPTY, Cause::Control);
        let (peer, t_tcp, own) = (self.flow.dst, self.config.t_tcp, self.config.mss);
        let answering = segment.flags.has(Flags::ACK);
        let option = segment.options().opening;
        let Some((opening, mut memory)) = self.memory() else { return none };
        opening.carries = 1;
        let mss = match t_tcp {
            true => memory.counts.mss(peer),
            false => memory.cookies.known_mss(peer),
        };
        let without = !t_tcp && !again && memory.cookies.client_without;
        opening.memory = Some(memory);
        let cookie = option.cookie.is_some_and(|c| !c.is_request());
        if answering || !(option.count.is_some() || cookie || without) {
            return none;
        }
        let unknown = match self.config.growth {
            GrowthRule::Linux if !t_tcp => own,
            _ => DEFAULT_MSS.into(),
        };
        let room = mss.map_or(unknown, u32::from).min(own);
        // Linux reserves the maximum length of options.
        let options = match self.config.growth {
            GrowthRule::Linux if !t_tcp => options::MAX_LEN as u32,
            _ => segment.header_len() - 20,
        };
        let room = room.saturating_sub(options);
        let w = &self.tx.core.window;
        let len = (w.end - 1).min(room.into()) as u32;
        if len == 0 {
            return none;
        }
        let whole = u64::from(len) + 1 == w.end;
        //= rfc1644#section-2.2: one segment opens, carries the request, and closes
        let fin = t_tcp && whole && w.fin;
        let pushes = whole && (t_tcp || self.config.growth != GrowthRule::Linux);
        let more = [(pushes, Flags::PSH), (fin, Flags::FIN)];
        for (_, flag) in more.into_iter().filter(|(set, _)| *set) {
            segment.flags = segment.flags | flag;
        }
        let opening = self.opening.as_deref_mut();
        opening.into_iter().for_each(|opening| {
            opening.carries = 1 + u64::from(len) + u64::from(fin);
            opening.carried = opening.carried.max(opening.carries);
        });
        let cause = if again { Cause::TimeoutRetransmit } else { Cause::Data };
        (self.body(0, len), cause)
    }

    /// Records that a SYN was sent, and that its data is in flight.
    pub(super) fn syn_carried(&mut self) {
        if let Some(opening) = &self.opening {
            let w = &mut self.tx.core.window;
            (w.nxt, w.max) = (opening.carries, opening.carries);
        }
    }

    /// The position that a segment acknowledges in SYN-SENT, if it acknowledges this end's SYN and at most the data
    /// sent with it.
    pub(super) fn acks_syn(&self, segment: &Segment) -> Option<u64> {
        let carried = self.opening.as_ref().map_or(1, |opening| opening.carried);
        let acked = segment.ack.unwrap_near(self.iss, 0)?;
        (1..=carried).contains(&acked).then_some(acked)
    }

    /// Whether a SYN-ACK answers the SYN of another connection.
    //= rfc1644#section-3.4: a CC.ECHO different from the sent count belongs to an old duplicate
    pub(super) fn echoes_another(&self, segment: &Segment) -> bool {
        let Some(opening) = &self.opening else { return false };
        let echo = segment.options().opening.echo;
        self.config.t_tcp && echo.is_some() && echo != opening.count.map(Count::number)
    }

    /// Records the acknowledgement `acked` of this end's SYN and its data, before the connection is established.
    pub(super) fn syn_acked_to(&mut self, acked: u64) {
        let Some(opening) = &mut self.opening else { return };
        //= rfc1644#section-2.3: a T/TCP server queues the data until the handshake validates the SYN
        opening.queued_by_peer = self.agreed.counts && acked == 1 && opening.carries > 1;
        opening.data_acked = !self.agreed.counts && opening.carried > 1 && acked >= opening.carried;
        let w = &mut self.tx.core.window;
        (w.una, w.nxt, w.max) = (acked, acked, acked);
    }

    /// Processes the other parts of a SYN-ACK after establishment: the acknowledged data of this end's SYN, and the
    /// SYN-ACK's own data.
    pub(super) fn take_syn_ack(&mut self, now: Time, segment: &Segment, body: Body, out: &mut Out) {
        if self.opening.is_none() {
            return;
        }
        if let Some(outbox) = &mut self.outbox {
            outbox.release(self.tx.core.window.una);
        }
        self.lose_early_data(now);
        self.check_complete(out);
        if self.tx.core.window.fin && self.tx.is_done() {
            self.transition(Input::FinSent);
            self.fin_acked(now, out);
        }
        self.take_data(now, 1, segment, body, out);
    }

    // ---- a server

    /// Opens the connection at a SYN that needs no handshake. Otherwise returns false, and T/TCP queues the SYN's data.
    pub(super) fn open_early(
        &mut self,
        now: Time,
        segment: &Segment,
        body: Body,
        out: &mut Out,
    ) -> bool {
        let (peer, t_tcp) = (self.flow.dst, self.config.t_tcp);
        let option = segment.options().opening;
        let Some((opening, mut memory)) = self.memory() else { return false };
        opening.began = now;
        let accepted = if t_tcp {
            let count = option.count.filter(|_| opening.peer_count.is_some());
            memory.counts.accepts(peer, count)
        } else {
            // A SYN without data is accepted too: the server may send before the end of the handshake.
            let has_option = option.cookie.is_some();
            let free = memory.cookies.server_without && (has_option || !body.is_empty());
            free && memory.cookies.has_room()
                || option.cookie.is_some_and(|cookie| memory.cookies.accepts(peer, &cookie))
        };
        opening.data_acked = accepted && !t_tcp && !body.is_empty();
        if accepted && !t_tcp {
            memory.cookies.count_pending(true);
            opening.pending = true;
        }
        opening.half = if accepted { Half::Due } else { Half::No };
        let carries = !body.is_empty() || segment.flags.has(Flags::FIN);
        if !accepted && opening.peer_count.is_some() && carries {
            opening.queued = Some(Box::new((segment.clone(), body.clone())));
        }
        opening.memory = Some(memory);
        if !accepted {
            return false;
        }
        // The state is that after the handshake: for the windows, the due SYN counts as sent.
        self.tx.syn_sent(now, true);
        self.transition(Input::SynAcked);
        self.establish(now, segment, out);
        let paused = self.rx.pause_quick_acks(!t_tcp);
        self.take_data(now, 1, segment, body, out);
        self.rx.resume_quick_acks(paused);
        if !t_tcp {
            // The SYN-ACK does not wait for data of the application.
            self.answer_syn(now, out);
        }
        self.flush(now, out);
        if self.owes_syn() {
            self.answer_syn(now, out);
        }
        true
    }

    /// Sends this end's SYN without data. It acknowledges the received data.
    fn answer_syn(&mut self, now: Time, out: &mut Out) {
        let segment = self.syn(now, true);
        self.originate(segment, Body::EMPTY, Cause::Control, out);
        self.rx.acked();
        self.note_syn_sent();
        if !self.tx.core.timers.runs() {
            self.tx.core.timers.rearm(now);
        }
    }

    fn note_syn_sent(&mut self) {
        if let Some(opening) = &mut self.opening {
            opening.half = Half::Sent;
        }
    }

    /// Retransmits this end's SYN, with the first data if there is any: the peer has repeated its SYN, or not answered.
    pub(super) fn answer_again(&mut self, now: Time, out: &mut Out) {
        if self.tx.core.window.max == 1 {
            return self.answer_syn(now, out);
        }
        self.tx.core.window.repair = Some((1, Cause::TimeoutRetransmit));
        self.tx.core.timers.rearm(now);
        let room = self.room_with_syn(now);
        if let Some(chunk) = self.poll_within(now, room) {
            self.send_chunk(now, chunk, None, out);
        }
        self.flush(now, out);
    }

    /// Maximum payload of a segment that begins with this end's SYN.
    //= rfc9293#section-3.7.1: options reduce the room for data
    fn room_with_syn(&mut self, now: Time) -> u32 {
        let options = |segment: Segment| segment.header_len() - 20;
        let (syn, usual) =
            (options(self.syn(now, true)), options(self.segment(now, 1, Flags::ACK)));
        (self.tx.core.window.mss + usual).saturating_sub(syn).max(1)
    }

    /// The next chunk to send, of at most `room` bytes.
    fn poll_within(&mut self, now: Time, room: u32) -> Option<Chunk> {
        let mss = self.tx.core.window.mss;
        self.tx.core.window.mss = room.clamp(1, mss);
        let chunk = self.tx.poll(now);
        self.tx.core.window.mss = mss;
        chunk
    }

    /// Whether this end's SYN must be sent before any other segment.
    pub(super) fn owes_syn(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.half == Half::Due)
    }

    /// Whether `chunk` is sent with this end's SYN: the first data the first time, and its retransmissions.
    pub(super) fn carries_syn(&self, chunk: &Chunk) -> bool {
        let Some(opening) = &self.opening else { return false };
        chunk.from == 1
            && match opening.half {
                Half::No => false,
                Half::Due => true,
                Half::Sent => chunk.cause != Cause::Data,
            }
    }

    /// The header of a segment with this end's SYN and data.
    pub(super) fn syn_with(&mut self, now: Time, flags: Flags) -> Segment {
        let mut segment = self.syn(now, true);
        segment.flags = segment.flags | flags;
        self.note_syn_sent();
        segment
    }

    /// Records that the peer has this end's SYN.
    pub(super) fn end_half(&mut self) {
        if let Some(opening) = self.opening.as_mut().filter(|opening| opening.half != Half::No) {
            opening.half = Half::No;
            let (w, timers) = (&self.tx.core.window, &mut self.tx.core.timers);
            if w.max == 1 {
                timers.clear();
            }
        }
    }

    /// Processes the queued data of a SYN after the end of its handshake.
    pub(super) fn take_queued(&mut self, now: Time, out: &mut Out) {
        let peer = self.flow.dst;
        let Some(opening) = &mut self.opening else { return };
        if let (Some(memory), Some(count), true) =
            (&mut opening.memory, opening.peer_count, self.config.t_tcp)
        {
            //= rfc1644#section-3.4: a handshake makes a cached count defined
            memory.counts.validate(peer, count);
        }
        if let Some(queued) = opening.queued.take() {
            let (segment, body) = *queued;
            self.take_data(now, 1, &segment, body, out);
        }
    }

    // ---- both

    /// Sends the first data if its size depends on a SYN, or if the peer has queued it. No other data is in flight.
    pub(super) fn send_first(&mut self, now: Time, out: &mut Out) {
        let w = &self.tx.core.window;
        let (first, fresh) = (w.nxt == 1 && w.una == 1, w.max == 1);
        let Some(opening) = self.opening.as_mut().filter(|_| first) else { return };
        let (queued, half) = (core::mem::take(&mut opening.queued_by_peer), opening.half);
        let carries = opening.carries;
        let room = match half {
            _ if queued => (carries - 1) as u32,
            Half::No => return,
            Half::Sent if fresh => return,
            Half::Due | Half::Sent => self.room_with_syn(now),
        };
        match self.poll_within(now, room) {
            Some(chunk) if queued && chunk.end() <= carries => {
                // The peer has queued this data, and acknowledges it after the handshake. It is not retransmitted.
                if chunk.fin {
                    self.transition(Input::FinSent);
                }
                self.rx.demand_ack();
            }
            Some(chunk) => self.send_chunk(now, chunk, None, out),
            None => {}
        }
    }

    /// Adds this end's connection count to a segment.
    pub(super) fn add_count(&self, segment: &mut Segment) {
        let count = self.opening.as_ref().and_then(|opening| opening.count);
        segment.options_mut().opening.count = count.map(|count| Count::Cc(count.number()));
    }

    /// Whether the count of a segment shows that it belongs to another connection between these ports.
    pub(super) fn is_foreign(&self, segment: &Segment, body: &Body) -> bool {
        let opening = self.opening.as_ref();
        !segment.flags.has(Flags::RST)
            && opening.is_some_and(|opening| opening.is_of_another(segment, body.len()))
    }

    /// Duration of a TIME-WAIT that begins now.
    //= rfc1644#section-2.4: it is cut short if the connection lasted less than the MSL
    pub(super) fn time_wait(&self, now: Time) -> Span {
        let full = self.config.time_wait;
        match &self.opening {
            Some(opening) if self.agreed.counts && now.since(opening.began).0 < full.0 / 2 => {
                full.min(self.tx.core.timers.rtt.rto() * TIME_WAIT_RTOS)
            }
            _ => full,
        }
    }

    /// The effect on this connection of a SYN for the same ports.
    //= rfc1644#section-3.4: LAST-ACK, CLOSING, TIME-WAIT: a greater CC acknowledges the FIN and opens a new connection
    pub(in crate::tcp) fn succession(&self, now: Time, syn: &Segment) -> Succession {
        use State::{Closing, LastAck, TimeWait};
        let (Some(opening), true) = (&self.opening, self.agreed.counts) else {
            return Succession::None;
        };
        let Some(Count::Cc(count)) = syn.options().opening.count else { return Succession::None };
        if !matches!(self.state, Closing | LastAck | TimeWait) {
            return Succession::None;
        }
        let long = now.since(opening.began).0 >= self.config.time_wait.0 / 2;
        let greater = opening.peer_count.is_some_and(|last| Seq(last).lt(Seq(count)));
        match self.state {
            TimeWait if long => Succession::Refused,
            _ if greater => Succession::Succeeded,
            _ => Succession::Refused,
        }
    }

    /// Whether a SYN for the same ports may open a new connection during TIME-WAIT. Linux answers an old duplicate,
    /// as its sequence number or timestamp shows, with an ACK (`tcp_timewait_state_process`).
    pub(in crate::tcp) fn yields_to(&self, syn: &Segment) -> bool {
        if self.config.growth != GrowthRule::Linux {
            return true;
        }
        let nxt = self.rx.nxt;
        let beyond = syn.seq.unwrap_near(self.irs, nxt).is_some_and(|at| at > nxt);
        let stamp = syn.timestamps.filter(|_| self.agreed.timestamps);
        let age = stamp.map_or(0, |ts| self.ts_recent.wrapping_sub(ts.value) as i32);
        age < 0 || age == 0 && beyond
    }

    /// In Linux, the initial sequence number of a connection that ends the TIME-WAIT of this one: beyond the space of its
    /// windows (`tcp_timewait_state_process`).
    pub(in crate::tcp) fn successor(&self) -> Option<Seq> {
        let linux = self.config.growth == GrowthRule::Linux && self.state == State::TimeWait;
        let next = self.iss.0.wrapping_add(self.tx.core.window.max as u32).wrapping_add(0xffff + 2);
        linux.then_some(Seq(next.max(1)))
    }

    /// Closes this connection at the peer's next SYN, which acknowledges all data of this end.
    pub(in crate::tcp) fn succeed(&mut self, now: Time, out: &mut Out) {
        let w = &mut self.tx.core.window;
        (w.una, w.nxt, w.max) = (w.last(), w.last(), w.last());
        self.check_complete(out);
        self.fin_acked(now, out);
        if self.transition(Input::Expired) {
            self.finish(out);
        }
        self.time_wait_until = Due::NEVER;
    }
}
