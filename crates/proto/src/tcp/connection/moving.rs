//! Transfer of a base station's end of a split connection to another base station.
//!
//! Transferred are the connection's state, sequence numbers, windows, negotiated options and data, which the peer
//! relies on, and the estimates of round-trip times. The state of loss recovery is not transferred. Data in flight
//! counts as newly sent; duplicate ACKs or the timer reveal its loss.

use std::sync::Arc;

use super::end_to_end_acks::EndToEndAcks;
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

/// Maximum window in bytes (RFC 7323 section 2.3), which also bounds the buffers.
const WINDOW_MAX: u64 = 1 << 30;

/// The transferred state of a connection, from which another base station continues it.
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
    end_to_end: Option<Box<EndToEndAcks>>,
    /// Unacknowledged data.
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
    end_to_end,
    outbound,
});

impl Travels for State {
    fn write(&self, to: &mut Writer) {
        let index = State::ALL.iter().position(|state| state == self);
        index.map_or(u8::MAX, |at| at as u8).write(to);
    }
    fn read(from: &mut Reader<'_>) -> Option<State> {
        State::ALL.get(usize::from(u8::read(from)?)).copied()
    }
}

impl Snapshot {
    /// Number of unacknowledged bytes.
    pub fn held(&self) -> u64 {
        self.outbound.iter().map(|body| u64::from(body.len())).sum()
    }

    /// Whether a FIN follows the written data.
    pub fn has_ended(&self) -> bool {
        self.fin
    }

    /// Whether all data of the peer and its FIN were received.
    pub fn has_received_fin(&self) -> bool {
        self.inbound.fin_at.is_some_and(|at| at < self.inbound.nxt)
    }

    /// Whether this end acknowledges only data which the far end has acknowledged (M-TCP).
    pub fn acks_end_to_end(&self) -> bool {
        self.end_to_end.is_some()
    }

    /// Delivered bytes that the other half has not freed.
    pub fn unread(&self) -> u64 {
        self.inbound.unread
    }

    /// Whether this state is possible for a connection with these buffer sizes in bytes, inbound and outbound.
    pub fn is_sound(&self, [inbound, outbound]: [u64; 2]) -> bool {
        let (a, synchronised) = (&self.agreed, self.state.is_synchronised());
        let edges =
            self.una <= self.nxt && self.nxt <= self.max && self.max < FAR && self.end < FAR;
        let sent = self.max <= (self.end + u64::from(self.fin)).max(1) && self.end >= 1;
        let opened = !synchronised || self.una >= 1 && self.inbound.nxt >= 1;
        // In any other state the peer's SYN has arrived.
        let has_peer_syn =
            matches!(self.state, State::Closed | State::SynSent) || self.inbound.nxt >= 1;
        let low = self.una.clamp(1, self.end.max(1));
        let scales = a.send_scale <= 14 && a.recv_scale <= 14;
        let windows = [self.cwnd, self.peer, self.peer_max].map(u64::from);
        edges
            && sent
            && opened
            && has_peer_syn
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
            && self.end_to_end.as_ref().is_none_or(|acks| acks.is_sound(self.inbound.nxt))
    }
}

impl Connection {
    /// The state from which another base station continues this connection.
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
            end_to_end: self.end_to_end.clone(),
            outbound: outbound.unwrap_or_default(),
        }
    }

    /// Continues a connection that another base station has exported, with buffers of `room` bytes. Sends no segment.
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
        (c.state, c.irs, c.agreed) = (it.state, it.irs, it.agreed);
        (c.ts_recent, c.ts_recent_at) = (it.ts_recent, now);
        (c.marks, c.last_ack_sent, c.active) = (it.marks, it.last_ack_sent, it.active);
        (c.complete, c.held) = (it.complete, it.held);
        if it.urgent != [0; 2] {
            c.rare().urgent = it.urgent;
        }
        (c.end_to_end, c.resumed) = (it.end_to_end, true);
        let mss = u32::from(it.mss);
        if it.inbound.nxt > 0 {
            let whole = mss + if it.agreed.timestamps { 12 } else { 0 };
            c.rx.synchronise(&config, mss, whole);
            // Any segment from now on may update the window.
            c.window_from = it.irs + (it.inbound.nxt as u32).wrapping_sub(1);
            c.rx.resume(now, it.inbound);
            // As before the move, timeouts double once the peer has answered.
            c.tx.core.syn_linear = 0;
        }
        c.tx.core.window.set_mss(mss);
        if it.state.is_synchronised() {
            c.tx.core.window.largest = 0xffff << it.agreed.send_scale;
            let variant = c.agreed_variant();
            c.tx.established(&config, mss, it.peer, variant, c.agreed.sack);
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
            // The handshake continues, and its SYN is a separate segment.
            let w = &mut c.tx.core.window;
            (w.nxt, w.max) = (it.nxt, it.max);
            if matches!(it.state, State::SynSent | State::SynReceived) {
                c.opening_until = config.opening_deadline(now);
            }
            if it.max > 0 {
                c.tx.core.timers.rearm(now);
            }
        } else {
            c.tx.adopt(now, it.max);
            if !c.tx.records_segments() {
                c.tx.core.window.nxt = it.nxt;
            }
        }
        if it.state == State::Closed && it.una > 0 {
            // A reset arrived after both FINs: this end neither sends nor expects segments.
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
            end_to_end: None,
            outbound: vec![Body::copy_of(&[1; 15]), Body::copy_of(&[2; 5])],
        }
    }

    const ROOM: [u64; 2] = [100, 20];

    /// A name and a change of the sound snapshot.
    type Change = (&'static str, fn(&mut Snapshot));

    #[test]
    fn values_at_their_bounds_are_sound() {
        let all: [Change; 17] = [
            ("unchanged", |_| {}),
            ("all data is sent", |it| (it.nxt, it.max) = (31, 31)),
            ("the FIN is sent", |it| (it.nxt, it.max, it.fin) = (32, 32, true)),
            ("retransmission from the acknowledged position", |it| it.nxt = 11),
            ("largest window", |it| it.cwnd = 1 << 30),
            ("largest window of the peer", |it| (it.peer, it.peer_max) = (1 << 30, 1 << 30)),
            ("largest scales", |it| (it.agreed.send_scale, it.agreed.recv_scale) = (14, 14)),
            ("smallest segment", |it| it.mss = 1),
            ("no window", |it| (it.cwnd, it.peer) = (0, 0)),
            ("largest urgent positions", |it| it.urgent = [FAR - 1; 2]),
            ("largest acknowledged position", |it| it.last_ack_sent = FAR - 1),
            ("largest sent positions", |it| {
                (it.una, it.nxt, it.max, it.end) = (FAR - 21, FAR - 20, FAR - 1, FAR - 1);
            }),
            ("largest expected position", |it| {
                (it.inbound.nxt, it.inbound.edge) = (FAR - 2, FAR - 1);
            }),
            ("its SYN is unacknowledged", |it| {
                (it.state, it.una, it.nxt, it.max) = (State::SynReceived, 0, 1, 1);
                (it.end, it.outbound) = (21, it.outbound.clone());
            }),
            ("nothing was received", |it| {
                (it.state, it.una, it.nxt, it.max) = (State::SynSent, 0, 1, 1);
                (it.end, it.inbound) = (21, Inbound::default());
            }),
            ("nothing was written", |it| {
                (it.una, it.nxt, it.max, it.end) = (1, 1, 1, 1);
                it.outbound.clear();
            }),
            ("the far end has all data", |it| {
                it.end_to_end = Some(Box::new(EndToEndAcks::at(FAR - 1, 51)));
            }),
        ];
        for (case, change) in all {
            let mut snapshot = sound();
            change(&mut snapshot);
            assert!(snapshot.is_sound(ROOM), "{case}");
        }
    }

    /// Each single one of these changes makes the snapshot unsound.
    #[test]
    fn impossible_values_are_not_sound() {
        let all: [Change; 25] = [
            ("next position below the acknowledged one", |it| it.nxt = 10),
            ("next position above the highest sent one", |it| it.nxt = 22),
            ("more sent than written", |it| (it.nxt, it.max) = (32, 32)),
            ("a FIN twice", |it| (it.nxt, it.max, it.fin) = (33, 33, true)),
            ("window of the sender", |it| it.cwnd = (1 << 30) + 1),
            ("window of the peer", |it| it.peer = (1 << 30) + 1),
            ("largest window of the peer", |it| it.peer_max = (1 << 30) + 1),
            ("send scale", |it| it.agreed.send_scale = 15),
            ("receive scale", |it| it.agreed.recv_scale = 15),
            ("no segment size", |it| it.mss = 0),
            ("urgent position", |it| it.urgent = [FAR, 0]),
            ("urgent position of the peer", |it| it.urgent = [0, FAR]),
            ("acknowledged position too large", |it| it.last_ack_sent = FAR),
            ("sent positions too large", |it| {
                (it.una, it.nxt, it.max, it.end) = (FAR - 20, FAR, FAR, FAR);
            }),
            ("expected position too large", |it| (it.inbound.nxt, it.inbound.edge) = (FAR, FAR)),
            ("edge too large", |it| (it.inbound.nxt, it.inbound.edge) = (FAR - 1, FAR)),
            ("established without its own SYN", |it| (it.una, it.end) = (0, 21)),
            ("established without the peer's SYN", |it| it.inbound = Inbound::default()),
            ("SYN-RECEIVED without the peer's SYN", |it| {
                (it.state, it.una, it.nxt, it.max, it.end) = (State::SynReceived, 0, 1, 1, 21);
                it.inbound = Inbound::default();
            }),
            ("an empty piece of data", |it| it.outbound.push(Body::EMPTY)),
            ("missing bytes", |it| it.outbound.truncate(1)),
            ("more bytes than were written", |it| it.outbound.push(Body::copy_of(&[3]))),
            ("no position for the SYN", |it| {
                (it.state, it.una, it.nxt, it.max, it.end) = (State::SynSent, 0, 0, 0, 0);
                it.outbound.clear();
            }),
            ("position of the far end too large", |it| {
                it.end_to_end = Some(Box::new(EndToEndAcks::at(FAR, 51)));
            }),
            ("more acknowledged to the peer than received", |it| {
                it.end_to_end = Some(Box::new(EndToEndAcks::at(1, 52)));
            }),
        ];
        for (case, change) in all {
            let mut snapshot = sound();
            change(&mut snapshot);
            assert!(!snapshot.is_sound(ROOM), "{case}");
        }
        assert!(!sound().is_sound([99, 20]), "the window exceeds the inbound buffer");
        assert!(!sound().is_sound([100, 19]), "the data exceeds the outbound buffer");
        let unread = |it: &mut Snapshot| it.inbound.unread = 1;
        let mut snapshot = sound();
        unread(&mut snapshot);
        assert!(!snapshot.is_sound(ROOM), "an unread byte occupies the inbound buffer");
        assert!(snapshot.is_sound([101, 20]));
    }
}
