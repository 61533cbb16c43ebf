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
use crate::travel::{Travels, travels};
use crate::units::{Due, Span, Time};
use crate::wire::{Body, FlowKey, Seq};

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
    fn size(&self) -> u64 {
        1
    }
}

impl Snapshot {
    /// Whether this end acknowledges only data which the far end has acknowledged (M-TCP).
    pub fn acks_end_to_end(&self) -> bool {
        self.end_to_end.is_some()
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
