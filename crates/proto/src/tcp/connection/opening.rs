//! Opening with data: T/TCP and TCP Fast Open on a connection.
//!
//! A connection that has let its peer's data pass before the peer has its SYN is in the state that it would be in after
//! the handshake, and remembers the rest in [`Half`]. Its SYN goes with the first byte that it sends, or alone.

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
    /// Lends what the host remembers, for the next call.
    pub fn lend_memory(&mut self, memory: Box<Memory>) -> Option<Box<Memory>> {
        match &mut self.opening {
            Some(opening) => opening.memory.replace(memory),
            None => Some(memory),
        }
    }

    /// Takes it back.
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

    /// Whether the peer is not known to have our SYN, although data flows.
    #[inline]
    pub(super) fn is_half(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.half != Half::No)
    }

    fn memory(&mut self) -> Option<(&mut Opening, Box<Memory>)> {
        let opening = self.opening.as_deref_mut()?;
        let memory = opening.memory.take()?;
        Some((opening, memory))
    }

    // ---- what SYNs say

    /// Puts on a SYN what this end offers or answers, if there is room for it.
    pub(super) fn offer_opening(&mut self, segment: &mut Segment, answering: bool, again: bool) {
        let (peer, t_tcp) = (self.flow.dst, self.config.t_tcp);
        let len = segment.header_len() - 20;
        let Some((opening, mut memory)) = self.memory() else { return };
        let mut said = opening::Opening::NONE;
        if t_tcp && (!answering || opening.heard.is_some()) {
            let count = match opening.count {
                Some(count) => count,
                None if answering => Count::Cc(memory.counts.next()),
                None => memory.counts.open(peer),
            };
            // The answer has one more of them.
            if len + 2 * COUNT_LEN <= options::MAX_LEN as u32 {
                said.count = Some(if answering { Count::Cc(count.number()) } else { count });
                said.echo = opening.heard.filter(|_| answering);
                opening.count = Some(count);
            }
        } else if !t_tcp && answering {
            said.cookie = opening.grant;
            said.experiment = opening.grant.is_some() && opening.experiment;
        } else if !t_tcp && !again {
            //= rfc7413#section-4.2.2: a SYN that is sent again has neither the option nor data
            if !memory.cookies.client_without {
                let known = memory.cookies.known(peer).map(|(cookie, _)| cookie);
                said.cookie = known.or(Some(Cookie::REQUEST));
                said.experiment = memory.cookies.experiments_with(peer);
                (opening.offered, opening.experiment) = (true, said.experiment);
            }
        } else if !t_tcp {
            opening.repeated = true;
        }
        let fits = (len + said.wire_len()).next_multiple_of(4) <= options::MAX_LEN as u32;
        if fits && said != opening::Opening::NONE {
            segment.options_mut().opening = said;
        }
        opening.memory = Some(memory);
    }

    /// Takes in what the peer's SYN says, before the segment size is settled.
    pub(super) fn take_opening(&mut self, segment: &Segment) {
        let (peer, config, active) = (self.flow.dst, self.config.clone(), self.active);
        let said = segment.options().opening;
        let mss = segment.options().mss.unwrap_or(DEFAULT_MSS);
        let answer = segment.flags.has(Flags::ACK);
        let refused = self.acks_syn(segment) == Some(1);
        let Some((opening, mut memory)) = self.memory() else { return };
        if config.t_tcp {
            let room = segment.header_len() - 20 + COUNT_LEN <= options::MAX_LEN as u32;
            let counts = said.count.filter(|_| if answer { said.echo.is_some() } else { room });
            opening.heard = counts.map(Count::number);
            if answer {
                memory.counts.echoed(peer, said.echo);
                memory.counts.learn_mss(peer, mss);
            }
        } else if answer {
            let cookies = &mut memory.cookies;
            if opening.offered || opening.carried > 1 {
                cookies.learn_mss(peer, mss);
            }
            // Linux ignores a cookie that it has not asked for, and gives up none that was not acknowledged.
            let linux = config.growth == GrowthRule::Linux;
            match said.cookie.filter(|cookie| !cookie.is_request()) {
                Some(cookie) if opening.offered => {
                    cookies.learn_as(peer, cookie, mss, said.experiment);
                }
                Some(_) => {}
                // A server that knows one form of the option only leaves the other unanswered.
                None if opening.offered && opening.carried == 1 && !opening.repeated => {
                    cookies.unanswered(peer, opening.experiment);
                }
                None if refused && opening.carries > 1 && !linux => cookies.forget(peer),
                None => {}
            }
        } else if let Some(cookie) = said.cookie {
            //= rfc7413#section-4.1.2: a new cookie for who asks for one, or has a wrong one
            let good = memory.cookies.made_for(peer);
            // Where both ends open at once there is no server.
            let needed = !active && !memory.cookies.server_without && cookie != good;
            opening.grant = needed.then_some(good);
            opening.experiment = said.experiment;
        }
        opening.memory = Some(memory);
        let counted = opening.heard.is_some() && (!answer || opening.count.is_some());
        self.agreed.counts = counted;
    }

    // ---- a client

    /// What goes with our SYN, and what that says of it.
    pub(super) fn early_data(&mut self, segment: &mut Segment, again: bool) -> (Body, Cause) {
        let none = (Body::EMPTY, Cause::Control);
        let (peer, t_tcp, own) = (self.flow.dst, self.config.t_tcp, self.config.mss);
        let answering = segment.flags.has(Flags::ACK);
        let said = segment.options().opening;
        let Some((opening, mut memory)) = self.memory() else { return none };
        opening.carries = 1;
        let mss = match t_tcp {
            true => memory.counts.mss(peer),
            false => memory.cookies.known_mss(peer),
        };
        let without = !t_tcp && !again && memory.cookies.client_without;
        opening.memory = Some(memory);
        let cookie = said.cookie.is_some_and(|c| !c.is_request());
        if answering || !(said.count.is_some() || cookie || without) {
            return none;
        }
        let unknown = match self.config.growth {
            GrowthRule::Linux if !t_tcp => own,
            _ => DEFAULT_MSS.into(),
        };
        let room = mss.map_or(unknown, u32::from).min(own);
        // Linux leaves room for all options that a header can have.
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
        let more = [(whole, Flags::PSH), (fin, Flags::FIN)];
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

    /// A SYN went out: what it carried is in flight.
    pub(super) fn syn_carried(&mut self) {
        if let Some(opening) = &self.opening {
            let w = &mut self.tx.core.window;
            (w.nxt, w.max) = (opening.carries, opening.carries);
        }
    }

    /// How far an ACK reaches that came before we know the peer, if it acknowledges our SYN and is none of old.
    pub(super) fn acks_syn(&self, segment: &Segment) -> Option<u64> {
        let carried = self.opening.as_ref().map_or(1, |opening| opening.carried);
        let acked = segment.ack.unwrap_near(self.iss, 0)?;
        (1..=carried).contains(&acked).then_some(acked)
    }

    /// Whether a SYN-ACK answers a SYN of another connection.
    //= rfc1644#section-3.4: a CC.ECHO that is not the count that was sent belongs to an old duplicate
    pub(super) fn echoes_another(&self, segment: &Segment) -> bool {
        let Some(opening) = &self.opening else { return false };
        let echo = segment.options().opening.echo;
        self.config.t_tcp && echo.is_some() && echo != opening.count.map(Count::number)
    }

    /// Our SYN is acknowledged up to `acked`, before the connection counts as established.
    pub(super) fn syn_acked_to(&mut self, acked: u64) {
        let Some(opening) = &mut self.opening else { return };
        //= rfc1644#section-2.3: a server of this kind keeps the data until it knows that the SYN is new
        opening.kept = self.agreed.counts && acked == 1 && opening.carries > 1;
        opening.data_acked = !self.agreed.counts && opening.carried > 1 && acked >= opening.carried;
        let w = &mut self.tx.core.window;
        (w.una, w.nxt, w.max) = (acked, acked, acked);
    }

    /// The connection is established: what the SYN-ACK acknowledged beyond our SYN, and what it carried.
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
            self.go(Input::FinSent);
            self.fin_acked(now, out);
        }
        self.take_data(now, 1, segment, body, out);
    }

    // ---- a server

    /// A SYN came, and is taken in. Whether it opens the connection without a handshake; if not, T/TCP keeps its data.
    pub(super) fn open_early(
        &mut self,
        now: Time,
        segment: &Segment,
        body: Body,
        out: &mut Out,
    ) -> bool {
        let (peer, t_tcp) = (self.flow.dst, self.config.t_tcp);
        let said = segment.options().opening;
        let Some((opening, mut memory)) = self.memory() else { return false };
        opening.began = now;
        let accepted = if t_tcp {
            let count = said.count.filter(|_| opening.heard.is_some());
            memory.counts.accepts(peer, count)
        } else {
            // Without data too: the server may send before the handshake is over.
            let free = memory.cookies.server_without && (said.cookie.is_some() || !body.is_empty());
            free && memory.cookies.has_room()
                || said.cookie.is_some_and(|cookie| memory.cookies.accepts(peer, &cookie))
        };
        opening.data_acked = accepted && !t_tcp && !body.is_empty();
        if accepted && !t_tcp {
            memory.cookies.count_pending(true);
            opening.pending = true;
        }
        opening.half = if accepted { Half::Due } else { Half::No };
        let carries = !body.is_empty() || segment.flags.has(Flags::FIN);
        if !accepted && opening.heard.is_some() && carries {
            opening.queued = Some(Box::new((segment.clone(), body.clone())));
        }
        opening.memory = Some(memory);
        if !accepted {
            return false;
        }
        // As after the handshake; a SYN that is due has been sent as far as windows are concerned.
        self.tx.syn_sent(now, true);
        self.go(Input::SynAcked);
        self.establish(now, segment, out);
        let paused = self.rx.pause_quick_acks(!t_tcp);
        self.take_data(now, 1, segment, body, out);
        self.rx.resume_quick_acks(paused);
        if !t_tcp {
            // The answer does not wait for what the application may have to say.
            self.answer_syn(now, out);
        }
        self.flush(now, out);
        if self.owes_syn() {
            self.answer_syn(now, out);
        }
        true
    }

    /// Our SYN alone, which acknowledges what has come.
    fn answer_syn(&mut self, now: Time, out: &mut Out) {
        let segment = self.syn(now, true);
        self.originate(segment, Body::EMPTY, Cause::Control, out);
        self.rx.acked();
        self.note_syn_sent();
        if !self.tx.core.timers.rexmt.is_set() {
            self.tx.core.timers.rearm(now);
        }
    }

    fn note_syn_sent(&mut self) {
        if let Some(opening) = &mut self.opening {
            opening.half = Half::Sent;
        }
    }

    /// The peer's SYN again, or no answer to ours: it goes again, with the first data if there is any.
    pub(super) fn answer_again(&mut self, now: Time, out: &mut Out) {
        if self.tx.core.window.max == 1 {
            return self.answer_syn(now, out);
        }
        self.tx.core.window.repair = Some((1, Cause::TimeoutRetransmit));
        self.tx.core.timers.rearm(now);
        let room = self.room_beside_syn(now);
        if let Some(chunk) = self.poll_within(now, room) {
            self.send_chunk(now, chunk, out);
        }
        self.flush(now, out);
    }

    /// What a segment carries that begins with our SYN.
    //= rfc9293#section-3.7.1: what options take is no room for data
    fn room_beside_syn(&mut self, now: Time) -> u32 {
        let options = |segment: Segment| segment.header_len() - 20;
        let (syn, usual) =
            (options(self.syn(now, true)), options(self.segment(now, 1, Flags::ACK)));
        (self.tx.core.window.mss + usual).saturating_sub(syn).max(1)
    }

    /// The next piece to send, of at most `room` bytes.
    fn poll_within(&mut self, now: Time, room: u32) -> Option<Chunk> {
        let mss = self.tx.core.window.mss;
        self.tx.core.window.mss = room.clamp(1, mss);
        let chunk = self.tx.poll(now);
        self.tx.core.window.mss = mss;
        chunk
    }

    /// Whether our SYN is to go before anything else.
    pub(super) fn owes_syn(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.half == Half::Due)
    }

    /// Whether our SYN goes with `chunk`: with the first data the first time, and whenever that is sent again.
    pub(super) fn carries_syn(&self, chunk: &Chunk) -> bool {
        let Some(opening) = &self.opening else { return false };
        chunk.from == 1
            && match opening.half {
                Half::No => false,
                Half::Due => true,
                Half::Sent => chunk.cause != Cause::Data,
            }
    }

    /// The head of a segment that begins with our SYN and goes on with data.
    pub(super) fn syn_with(&mut self, now: Time, flags: Flags) -> Segment {
        let mut segment = self.syn(now, true);
        segment.flags = segment.flags | flags;
        self.note_syn_sent();
        segment
    }

    /// The peer has our SYN.
    pub(super) fn end_half(&mut self) {
        if let Some(opening) = self.opening.as_mut().filter(|opening| opening.half != Half::No) {
            opening.half = Half::No;
            let (w, timers) = (&self.tx.core.window, &mut self.tx.core.timers);
            if w.max == 1 {
                timers.rexmt = Due::NEVER;
            }
        }
    }

    /// The handshake is over that a SYN with data has waited for: the data comes now.
    pub(super) fn take_queued(&mut self, now: Time, out: &mut Out) {
        let peer = self.flow.dst;
        let Some(opening) = &mut self.opening else { return };
        if let (Some(memory), Some(heard), true) =
            (&mut opening.memory, opening.heard, self.config.t_tcp)
        {
            //= rfc1644#section-3.4: a handshake makes a cached count defined
            memory.counts.shown(peer, heard);
        }
        if let Some(queued) = opening.queued.take() {
            let (segment, body) = *queued;
            self.take_data(now, 1, &segment, body, out);
        }
    }

    // ---- both

    /// Sends the first data, where its size or fate depends on SYNs. Nothing else is in flight.
    pub(super) fn send_first(&mut self, now: Time, out: &mut Out) {
        let w = &self.tx.core.window;
        let (first, fresh) = (w.nxt == 1 && w.una == 1, w.max == 1);
        let Some(opening) = self.opening.as_mut().filter(|_| first) else { return };
        let (kept, half) = (core::mem::take(&mut opening.kept), opening.half);
        let carries = opening.carries;
        let room = match half {
            _ if kept => (carries - 1) as u32,
            Half::No => return,
            Half::Sent if fresh => return,
            Half::Due | Half::Sent => self.room_beside_syn(now),
        };
        match self.poll_within(now, room) {
            Some(chunk) if kept && chunk.end() <= carries => {
                // The peer has it, and acknowledges it once it knows that our SYN was new.
                if chunk.fin {
                    self.go(Input::FinSent);
                }
                self.rx.demand_ack();
            }
            Some(chunk) => self.send_chunk(now, chunk, out),
            None => {}
        }
    }

    /// Each segment has our count.
    pub(super) fn add_count(&self, segment: &mut Segment) {
        let count = self.opening.as_ref().and_then(|opening| opening.count);
        segment.options_mut().opening.count = count.map(|count| Count::Cc(count.number()));
    }

    /// Whether a segment belongs to another connection between these ports, by its count.
    pub(super) fn is_foreign(&self, segment: &Segment, body: &Body) -> bool {
        let opening = self.opening.as_ref();
        !segment.flags.has(Flags::RST)
            && opening.is_some_and(|opening| opening.is_of_another(segment, body.len()))
    }

    /// How long TIME-WAIT lasts that begins now.
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

    /// What a SYN for the ports of this connection means to it.
    //= rfc1644#section-3.4: LAST-ACK, CLOSING, TIME-WAIT: a greater CC acknowledges the FIN and opens anew
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
        let greater = opening.heard.is_some_and(|heard| Seq(heard).lt(Seq(count)));
        match self.state {
            TimeWait if long => Succession::Refused,
            _ if greater => Succession::Succeeded,
            _ => Succession::Refused,
        }
    }

    /// The peer's next SYN says that it has everything of ours.
    pub(in crate::tcp) fn succeed(&mut self, now: Time, out: &mut Out) {
        let w = &mut self.tx.core.window;
        (w.una, w.nxt, w.max) = (w.last(), w.last(), w.last());
        self.check_complete(out);
        self.fin_acked(now, out);
        if self.go(Input::Expired) {
            self.finish(out);
        }
        self.time_wait_until = Due::NEVER;
    }
}
