//! A base station's end of a split connection moves to another base station.
//!
//! What moves is what the peer relies on and what is worth knowing of the path: state, numbers, windows, round trips,
//! what the handshake agreed on, and bytes. How a loss is being repaired does not: what was in flight counts as sent
//! anew, and if it is lost, duplicate ACKs or the timer tell.

use std::sync::Arc;

use super::deputy::Deputy;
use super::{Agreed, Connection, Outbox};
use crate::machine::Side;
use crate::tcp::Settings;
use crate::tcp::accurate::Marks;
use crate::tcp::receiver::Inbound;
use crate::tcp::rope::Rope;
use crate::tcp::state::State;
use crate::travel::FAR;
use crate::travel::{Reader, Travels, Writer, travels};
use crate::units::{Due, Span, Time};
use crate::wire::{Body, FlowKey, Seq};

/// No window is larger (RFC 7323 section 2.3), nor what is held for one.
const WINDOW_MAX: u64 = 1 << 30;

/// A connection of an application, as another base station can go on with it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    state: State,
    iss: Seq,
    irs: Seq,
    agreed: Agreed,
    ts_recent: u32,
    marks: Marks,
    last_ack_sent: u64,
    active: bool,
    complete: bool,
    held: bool,
    urgent: [u64; 2],
    mss: u16,
    cwnd: u32,
    ssthresh: u32,
    peer: u32,
    peer_max: u32,
    una: u64,
    nxt: u64,
    max: u64,
    end: u64,
    fin: bool,
    srtt: Span,
    rttvar: Span,
    inbound: Inbound,
    deputy: Option<Box<Deputy>>,
    /// What was written and not acknowledged.
    outbound: Vec<Body>,
}

travels!(Agreed {
    send_scale,
    recv_scale,
    scaled,
    timestamps,
    sack,
    eln,
    marks,
    smart,
    snack,
    ecn,
    ..
});

travels!(Snapshot {
    state,
    iss,
    irs,
    agreed,
    ts_recent,
    marks,
    last_ack_sent,
    active,
    complete,
    held,
    urgent,
    mss,
    cwnd,
    ssthresh,
    peer,
    peer_max,
    una,
    nxt,
    max,
    end,
    fin,
    srtt,
    rttvar,
    inbound,
    deputy,
    outbound,
});

impl Travels for State {
    fn write(&self, to: &mut Writer) {
        let place = State::ALL.iter().position(|state| state == self);
        place.map_or(u8::MAX, |at| at as u8).write(to);
    }
    fn read(from: &mut Reader<'_>) -> Option<State> {
        State::ALL.get(usize::from(u8::read(from)?)).copied()
    }
}

impl Snapshot {
    /// Bytes that were written and not acknowledged.
    pub fn held(&self) -> u64 {
        self.outbound.iter().map(|body| u64::from(body.len())).sum()
    }

    /// Whether nothing more is written.
    pub fn has_ended(&self) -> bool {
        self.fin
    }

    /// Whether all of what the peer sends has come, its FIN too.
    pub fn has_heard_end(&self) -> bool {
        self.inbound.fin_at.is_some_and(|at| at < self.inbound.nxt)
    }

    /// Whether it acknowledges for another end.
    pub fn is_deputy(&self) -> bool {
        self.deputy.is_some()
    }

    /// Bytes that were delivered and that the other half has not freed.
    pub fn unread(&self) -> u64 {
        self.inbound.unread
    }

    /// Whether a connection can be so that holds at most so many bytes: of what comes in, and of what goes out.
    pub fn is_sound(&self, [inbound, outbound]: [u64; 2]) -> bool {
        let (a, synchronised) = (&self.agreed, self.state.is_synchronised());
        let edges =
            self.una <= self.nxt && self.nxt <= self.max && self.max < FAR && self.end < FAR;
        let sent = self.max <= (self.end + u64::from(self.fin)).max(1) && self.end >= 1;
        let opened = !synchronised || self.una >= 1 && self.inbound.nxt >= 1;
        // The SYN of a half that waits has come, or none of its own is acknowledged.
        let heard = matches!(self.state, State::Closed | State::SynSent) || self.inbound.nxt >= 1;
        let low = self.una.clamp(1, self.end.max(1));
        let scales = a.send_scale <= 14 && a.recv_scale <= 14;
        let windows = [self.cwnd, self.peer, self.peer_max].map(u64::from);
        edges
            && sent
            && opened
            && heard
            && scales
            && windows.into_iter().all(|bytes| bytes <= WINDOW_MAX)
            && self.mss > 0
            && self.urgent.into_iter().chain([self.last_ack_sent]).all(|at| at < FAR)
            && self.inbound.nxt < FAR
            && self.inbound.edge < FAR
            && self.outbound.iter().all(|body| !body.is_empty())
            && self.held() == self.end.saturating_sub(low)
            && self.held() <= outbound
            && self.inbound.is_sound(inbound)
            && self.deputy.as_ref().is_none_or(|deputy| deputy.is_sound(self.inbound.nxt))
    }
}

impl Connection {
    /// What another base station needs to go on with it.
    pub fn snapshot(&self) -> Snapshot {
        let (w, rtt) = (&self.tx.core.window, &self.tx.core.timers.rtt);
        let outbound = self.outbox.as_ref().map(|outbox| outbox.rope.bodies().collect());
        Snapshot {
            state: self.state,
            iss: self.iss,
            irs: self.irs,
            agreed: self.agreed,
            ts_recent: self.ts_recent,
            marks: self.marks.clone(),
            last_ack_sent: self.last_ack_sent,
            active: self.active,
            complete: self.complete,
            held: self.held,
            urgent: self.urgent(),
            mss: w.mss.min(u16::MAX.into()) as u16,
            cwnd: w.cwnd,
            ssthresh: w.ssthresh,
            peer: w.peer,
            peer_max: w.peer_max,
            una: w.una,
            nxt: w.nxt,
            max: w.max,
            end: w.end,
            fin: w.fin,
            srtt: rtt.srtt(),
            rttvar: rtt.rttvar(),
            inbound: self.rx.inbound(),
            deputy: self.deputy.clone(),
            outbound: outbound.unwrap_or_default(),
        }
    }

    /// Goes on with a connection that a base station has given away, with buffers of `room` bytes. Nothing is sent
    /// yet.
    pub fn resume(
        now: Time,
        snapshot: Snapshot,
        config: Arc<Settings>,
        (flow, side): (FlowKey, Side),
        room: u32,
    ) -> Connection {
        let it = snapshot;
        let mut c = Connection::new(config.clone(), flow, side, it.iss, 0);
        c.set_relay();
        c.attach(room);
        c.set_inbox(room);
        (c.state, c.irs, c.agreed, c.ts_recent) = (it.state, it.irs, it.agreed, it.ts_recent);
        (c.marks, c.last_ack_sent, c.active) = (it.marks, it.last_ack_sent, it.active);
        (c.complete, c.held) = (it.complete, it.held);
        if it.urgent != [0; 2] {
            c.rare().urgent = it.urgent;
        }
        (c.deputy, c.resumed) = (it.deputy, true);
        let mss = u32::from(it.mss);
        if it.inbound.nxt > 0 {
            let whole = mss + if it.agreed.timestamps { 12 } else { 0 };
            c.rx.synchronise(&config, mss, whole);
            c.rx.resume(now, it.inbound);
        }
        c.tx.core.window.mss = mss;
        if it.state.is_synchronised() {
            c.tx.core.window.largest = 0xffff << it.agreed.send_scale;
            let variant = c.agreed_variant();
            c.tx.established(&config, mss, it.peer, variant);
            if !c.marks.is_accurate() {
                c.tx.without_counts(&config);
            }
        }
        let (w, timers) = (&mut c.tx.core.window, &mut c.tx.core.timers);
        (w.cwnd, w.ssthresh, w.peer, w.peer_max) =
            (it.cwnd.max(1), it.ssthresh, it.peer, it.peer_max);
        (w.una, w.end, w.fin) = (it.una, it.end, it.fin);
        timers.rtt.adopt(it.srtt, it.rttvar);
        let mut rope = Rope::starting_at(it.una.clamp(1, it.end.max(1)) - 1);
        it.outbound.into_iter().for_each(|body| rope.push(body));
        c.outbox = Some(Box::new(Outbox::new(rope, room)));
        if it.una == 0 {
            // The handshake goes on: a SYN is its own segment.
            let w = &mut c.tx.core.window;
            (w.nxt, w.max) = (it.nxt, it.max);
            if it.max > 0 {
                c.tx.core.timers.rearm(now);
            }
        } else {
            c.tx.adopt(now, it.max);
            if !c.tx.keeps_records() {
                c.tx.core.window.nxt = it.nxt;
            }
        }
        if it.state == State::Closed && it.una > 0 {
            // A reset that came after both FINs: nothing is sent or expected any more.
            c.tx.stop();
            c.rx.stop();
        }
        if it.state == State::TimeWait {
            c.time_wait_until = Due::at(now + config.time_wait);
        }
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of a connection that has sent 20 of 30 bytes, of which 10 are acknowledged, and expects position 51.
    fn sound() -> Snapshot {
        Snapshot {
            state: State::Established,
            iss: Seq(1),
            irs: Seq(2),
            agreed: Agreed::default(),
            ts_recent: 0,
            marks: Marks::default(),
            last_ack_sent: 51,
            active: false,
            complete: false,
            held: false,
            urgent: [0; 2],
            mss: 1000,
            cwnd: 4000,
            ssthresh: 8000,
            peer: 5000,
            peer_max: 6000,
            una: 11,
            nxt: 21,
            max: 21,
            end: 31,
            fin: false,
            srtt: Span::millis(10),
            rttvar: Span::millis(5),
            inbound: Inbound { nxt: 51, edge: 151, ..Inbound::default() },
            deputy: None,
            outbound: vec![Body::copy_of(&[1; 15]), Body::copy_of(&[2; 5])],
        }
    }

    const ROOM: [u64; 2] = [100, 20];

    /// One fact changed, named.
    type Change = (&'static str, fn(&mut Snapshot));

    /// What is at a bound, and still can be.
    #[test]
    fn what_is_at_its_bounds_is_sound() {
        let all: [Change; 17] = [
            ("as it is", |_| {}),
            ("all is sent", |it| (it.nxt, it.max) = (31, 31)),
            ("the FIN too", |it| (it.nxt, it.max, it.fin) = (32, 32, true)),
            ("what is sent goes back to what is acknowledged", |it| it.nxt = 11),
            ("largest window", |it| it.cwnd = 1 << 30),
            ("largest of the peer", |it| (it.peer, it.peer_max) = (1 << 30, 1 << 30)),
            ("largest scales", |it| (it.agreed.send_scale, it.agreed.recv_scale) = (14, 14)),
            ("smallest segment", |it| it.mss = 1),
            ("no window", |it| (it.cwnd, it.peer) = (0, 0)),
            ("urgent far away", |it| it.urgent = [FAR - 1; 2]),
            ("told far away", |it| it.last_ack_sent = FAR - 1),
            ("far away", |it| {
                (it.una, it.nxt, it.max, it.end) = (FAR - 21, FAR - 20, FAR - 1, FAR - 1);
            }),
            ("expected far away", |it| (it.inbound.nxt, it.inbound.edge) = (FAR - 2, FAR - 1)),
            ("a SYN of its own that is not acknowledged", |it| {
                (it.state, it.una, it.nxt, it.max) = (State::SynReceived, 0, 1, 1);
                (it.end, it.outbound) = (21, it.outbound.clone());
            }),
            ("nothing has come", |it| {
                (it.state, it.una, it.nxt, it.max) = (State::SynSent, 0, 1, 1);
                (it.end, it.inbound) = (21, Inbound::default());
            }),
            ("nothing was written", |it| {
                (it.una, it.nxt, it.max, it.end) = (1, 1, 1, 1);
                it.outbound.clear();
            }),
            ("the far end has all", |it| {
                it.deputy = Some(Box::new(Deputy::at(FAR - 1, 51)));
            }),
        ];
        for (what, change) in all {
            let mut snapshot = sound();
            change(&mut snapshot);
            assert!(snapshot.is_sound(ROOM), "{what}");
        }
    }

    /// What no connection can be: each alone makes it unsound.
    #[test]
    fn what_cannot_be_is_not_sound() {
        let all: [Change; 25] = [
            ("acknowledged beyond what is sent", |it| it.nxt = 10),
            ("next beyond the most", |it| it.nxt = 22),
            ("more sent than written", |it| (it.nxt, it.max) = (32, 32)),
            ("a FIN twice", |it| (it.nxt, it.max, it.fin) = (33, 33, true)),
            ("window of the sender", |it| it.cwnd = (1 << 30) + 1),
            ("window of the peer", |it| it.peer = (1 << 30) + 1),
            ("largest window of the peer", |it| it.peer_max = (1 << 30) + 1),
            ("scale of what it sends", |it| it.agreed.send_scale = 15),
            ("scale of what it receives", |it| it.agreed.recv_scale = 15),
            ("no segment size", |it| it.mss = 0),
            ("urgent", |it| it.urgent = [FAR, 0]),
            ("urgent of the peer", |it| it.urgent = [0, FAR]),
            ("told", |it| it.last_ack_sent = FAR),
            ("too far", |it| (it.una, it.nxt, it.max, it.end) = (FAR - 20, FAR, FAR, FAR)),
            ("expected too far", |it| (it.inbound.nxt, it.inbound.edge) = (FAR, FAR)),
            ("edge too far", |it| (it.inbound.nxt, it.inbound.edge) = (FAR - 1, FAR)),
            ("open without a SYN of its own", |it| (it.una, it.end) = (0, 21)),
            ("open without one of the peer", |it| it.inbound = Inbound::default()),
            ("a half that waits and has heard nothing", |it| {
                (it.state, it.una, it.nxt, it.max, it.end) = (State::SynReceived, 0, 1, 1, 21);
                it.inbound = Inbound::default();
            }),
            ("a piece of nothing", |it| it.outbound.push(Body::EMPTY)),
            ("bytes that are missing", |it| it.outbound.truncate(1)),
            ("bytes that nobody has written", |it| it.outbound.push(Body::copy_of(&[3]))),
            ("nothing written, not even a SYN's place", |it| {
                (it.state, it.una, it.nxt, it.max, it.end) = (State::SynSent, 0, 0, 0, 0);
                it.outbound.clear();
            }),
            ("a far end that is too far", |it| it.deputy = Some(Box::new(Deputy::at(FAR, 51)))),
            ("told of more than came", |it| it.deputy = Some(Box::new(Deputy::at(1, 52)))),
        ];
        for (what, change) in all {
            let mut snapshot = sound();
            change(&mut snapshot);
            assert!(!snapshot.is_sound(ROOM), "{what}");
        }
        assert!(!sound().is_sound([99, 20]), "more may come than there is room for");
        assert!(!sound().is_sound([100, 19]), "more is held than there is room for");
        let unread = |it: &mut Snapshot| it.inbound.unread = 1;
        let mut snapshot = sound();
        unread(&mut snapshot);
        assert!(!snapshot.is_sound(ROOM), "a byte that is not read takes room");
        assert!(snapshot.is_sound([101, 20]));
    }
}
