//! The end of the base station: windows, timers, and the choice of codes, for each mobile host.

use crate::air::Station;
use crate::event::LinkNote;
use crate::link::end::Above;
use crate::link::frame::{Frame, Load, Timing};
use crate::units::{Span, Time};

use super::AirmailConfig;
use super::header::{AirmailHeader, Status};
use super::levels::Levels;
use super::parity::{Amount, Parity};
use super::window::{Incoming, Outgoing, after};

/// Length of a status for timers, bytes.
const STATUS: u32 = 40;
/// Length of a long packet for timers, bytes.
const LONG: u32 = 1500;
/// Limit of doublings of a timer.
const DOUBLINGS: u32 = 3;

/// The end of the base station.
#[derive(Clone, Debug)]
pub struct Base {
    window: u16,
    timing: Timing,
    status_period: Span,
    poll_timeout: Span,
    /// Every station, including this one.
    peers: Vec<Peer>,
    /// The frame at medium access: its receiver, whether it polls, and whether it contains a status.
    sending: Option<(usize, bool, bool)>,
    /// Start of the search for the next peer to serve.
    turn: usize,
}

/// Progress of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ask {
    /// Data frames precede the poll.
    NotYet,
    /// The polling frame is at medium access.
    Asking,
    /// The deadline of the status.
    Waiting(Time),
    /// A poll in a frame without data is due.
    Alone,
}

#[derive(Clone, Debug)]
struct Peer {
    // Downwards.
    outgoing: Outgoing,
    /// Whether the window accepts no more packets.
    closed: bool,
    ask: Ask,
    /// Number of the last polling transmission.
    polled_in: u32,
    /// Successive polls without a status.
    silent: u32,
    /// Remaining and total number of the window's parity packets.
    parity: (u8, u8),
    /// Whether this is the first round of a long window, with at least a quarter of the packets that it could
    /// have.
    first_round: bool,
    /// Values of the last status: transmissions heard, and received frames.
    reported: (u32, u8),
    amount: Amount,
    down: Levels,
    // Upwards.
    incoming: Incoming,
    /// Time of the next status; `None` while it is to be sent.
    status_at: Option<Time>,
    /// Successive statuses without new information.
    idle: u32,
    /// Values of the last sent status: transmissions heard, and received frames.
    sent_status: (u32, u32),
    up: Levels,
}

impl Peer {
    fn new(config: &AirmailConfig, status_at: Time) -> Peer {
        Peer {
            outgoing: Outgoing::default(),
            closed: false,
            ask: Ask::NotYet,
            polled_in: 0,
            silent: 0,
            parity: (0, 0),
            first_round: false,
            reported: (0, 0),
            amount: Amount::new(config.packet_fec),
            down: Levels::new(config.byte_fec),
            incoming: Incoming::new(config.order, config.window),
            status_at: Some(status_at),
            idle: 0,
            sent_status: (0, 0),
            up: Levels::new(config.byte_fec),
        }
    }

    /// Handles the status of a mobile host.
    fn take_in(&mut self, from: Station, status: &Status, above: &mut dyn Above) {
        let Status { ack, came, .. } = status;
        if !self.outgoing.take_in(ack) {
            return above.note(from, LinkNote::BadAck);
        }
        let (last_received, before) = self.reported;
        if after(ack.last_received, last_received) {
            let sent = ack.last_received.wrapping_sub(last_received);
            let lost = sent.saturating_sub(u32::from(came.wrapping_sub(before)));
            self.reported = (ack.last_received, *came);
            self.down.learn(sent, lost);
            if core::mem::take(&mut self.first_round) {
                self.amount.learn(lost);
            }
        }
        if self.ask != Ask::NotYet
            && self.ask != Ask::Asking
            && !after(self.polled_in, ack.last_received)
        {
            (self.ask, self.silent) = (Ask::NotYet, 0);
        }
        if self.closed && self.outgoing.slots.is_empty() {
            (self.closed, self.parity) = (false, (0, 0));
            self.ask = Ask::NotYet;
        }
    }

    /// The status for the data of the mobile host.
    fn status(&mut self) -> Status {
        let Incoming { last_received, came, .. } = &self.incoming;
        let (last_received, came) = (*last_received, *came);
        let sent = last_received.wrapping_sub(self.sent_status.0);
        self.idle = match sent == 0 && !self.incoming.has_gap() {
            true => (self.idle + 1).min(DOUBLINGS),
            false => 0,
        };
        self.up.learn(sent, sent.saturating_sub(came.wrapping_sub(self.sent_status.1)));
        self.sent_status = (last_received, came);
        Status { ack: self.incoming.ack(), came: came as u8, strength: self.up.strength() }
    }

    /// Whether the last frame of the round is the next to be sent.
    fn is_last(&self) -> bool {
        self.closed && self.parity.0 == 0 && self.outgoing.again().is_none()
    }
}

impl Base {
    /// Asserts the invariants of both directions of each station.
    pub fn check(&self) {
        for peer in &self.peers {
            peer.outgoing.check(self.window);
            debug_assert!(peer.parity.0 <= peer.parity.1, "parity packets: {:?}", peer.parity);
        }
        debug_assert!(self.turn <= self.peers.len(), "the turn of an unknown station");
        debug_assert!(
            self.sending.is_none_or(|(peer, ..)| peer < self.peers.len()),
            "a frame to an unknown station"
        );
    }

    /// Reports stored packets for all stations.
    pub(super) fn stored_loads(&self, each: &mut dyn FnMut(&Load, bool)) {
        self.peers.iter().for_each(|peer| peer.outgoing.stored_loads(each));
    }

    /// The end for a hop with `stations` stations.
    pub(super) fn new(config: &AirmailConfig, stations: u8, timing: Timing) -> Base {
        let there_and_back = (timing.propagation + timing.turnaround + timing.processing) * 2;
        let quarter = timing.on_air(LONG) * u64::from(config.window).div_ceil(4);
        let apart = there_and_back * 2 + timing.on_air(STATUS);
        let status_period = config.status_period.unwrap_or(quarter).max(apart);
        let poll_timeout = config.poll_timeout.unwrap_or_else(|| {
            // The mobile host may be sending a frame, and each other station may be before it and after it.
            let frames = 1 + 2 * u64::from(stations).saturating_sub(2);
            timing.on_air(LONG) * frames
                + timing.on_air(STATUS) * u64::from(stations)
                + there_and_back
                + timing.turn * 2
        });
        Base {
            window: config.window,
            timing,
            status_period,
            poll_timeout,
            peers: (0..stations).map(|_| Peer::new(config, Time::ZERO + status_period)).collect(),
            sending: None,
            turn: 0,
        }
    }

    pub(super) fn on_frame(
        &mut self,
        now: Time,
        from: Station,
        header: AirmailHeader,
        load: Load,
        above: &mut dyn Above,
    ) {
        let latest = now + self.status_period;
        let Some(peer) = self.peers.get_mut(from.index()) else { return };
        peer.incoming.record_transmission(header.transmission);
        if let Some(status) = &header.status {
            peer.take_in(from, status, above);
        }
        if let Some(seq) = header.seq {
            peer.incoming.receive(from, seq, load, above);
            peer.idle = 0;
            peer.status_at = peer.status_at.map(|at| at.min(latest));
        }
    }

    pub(super) fn on_sent(&mut self, now: Time) {
        let Some((i, asks, has_status)) = self.sending.take() else { return };
        let peer = &mut self.peers[i];
        if asks && peer.ask == Ask::Asking {
            let patience = self.poll_timeout * (1 << peer.silent.min(DOUBLINGS));
            peer.ask = Ask::Waiting(now + patience);
        }
        if has_status {
            peer.status_at = Some(now + self.status_period * (1 << peer.idle));
        }
    }

    //= ayanoglu95: base stations send periodic status messages
    pub(super) fn on_wake(&mut self, now: Time) {
        for peer in &mut self.peers {
            if matches!(peer.ask, Ask::Waiting(at) if at <= now) {
                peer.ask = Ask::Alone;
                peer.silent += 1;
            }
            peer.status_at = peer.status_at.filter(|at| *at > now);
        }
    }

    pub(super) fn next_wake(&self) -> Option<Time> {
        let times = self.peers.iter().skip(1).flat_map(|peer| {
            let poll_at = if let Ask::Waiting(at) = peer.ask { Some(at) } else { None };
            poll_at.into_iter().chain(peer.status_at)
        });
        times.min()
    }

    /// A frame for peer `i` that carries `load`.
    fn frame(&mut self, i: usize, header: AirmailHeader, load: Load) -> Frame {
        let peer = &mut self.peers[i];
        let status = peer.status_at.is_none().then(|| peer.status());
        if header.poll {
            (peer.ask, peer.polled_in) = (Ask::Asking, header.transmission);
        }
        self.sending = Some((i, header.poll, status.is_some()));
        self.turn = i + 1;
        let strength = peer.down.strength();
        let header = AirmailHeader { status, strength, ..header };
        header.frame(Station::BASE, Station(i as u8), load)
    }

    /// The frame with the packet at index `at` of the window to peer `i`.
    fn send(&mut self, i: usize, at: usize) -> Frame {
        let peer = &mut self.peers[i];
        let (seq, transmission, load) = peer.outgoing.send(at);
        let poll = peer.is_last();
        let header =
            AirmailHeader { seq: Some(seq), transmission, poll, ..AirmailHeader::default() };
        self.frame(i, header, load)
    }

    /// The next frame to complete the window of peer `i`: a retransmission, parity, or a poll.
    fn complete(&mut self, i: usize, above: &mut dyn Above) -> Option<Frame> {
        let to = Station(i as u8);
        let peer = &mut self.peers[i];
        if peer.ask == Ask::Alone {
            let transmission = peer.outgoing.count();
            let header = AirmailHeader { transmission, poll: true, ..AirmailHeader::default() };
            return Some(self.frame(i, header, Load::None));
        }
        if peer.ask != Ask::NotYet {
            return None;
        }
        if let Some((at, cause)) = peer.outgoing.again() {
            above.repeat(to, &peer.outgoing.slots[at].load, cause);
            return Some(self.send(i, at));
        }
        if peer.parity.0 > 0 {
            peer.parity.0 -= 1;
            let index = peer.parity.1 - 1 - peer.parity.0;
            let packets = peer.outgoing.slots.iter().map(|slot| slot.load.clone()).collect();
            let parity = Some(Box::new(Parity { first: peer.outgoing.first, packets, index }));
            let transmission = peer.outgoing.count();
            let poll = peer.is_last();
            let header = AirmailHeader { transmission, poll, parity, ..AirmailHeader::default() };
            return Some(self.frame(i, header, Load::None));
        }
        // The packet that waited when the last one was taken is gone, so there was no poll yet.
        if !peer.closed && !peer.outgoing.slots.is_empty() && !above.waits(to) {
            (peer.closed, peer.ask) = (true, Ask::Alone);
            return self.complete(i, above);
        }
        None
    }

    /// A frame with a new packet for peer `i`.
    fn fresh(&mut self, i: usize, above: &mut dyn Above) -> Option<Frame> {
        let to = Station(i as u8);
        let (window, timing) = (usize::from(self.window), self.timing);
        let peer = self.peers.get_mut(i)?;
        if peer.closed || peer.ask != Ask::NotYet || !above.waits(to) {
            return None;
        }
        let at = peer.outgoing.push(above.take(to)?);
        peer.closed = at + 1 == window || !above.waits(to);
        peer.first_round = peer.closed && at + 1 >= window.div_ceil(4).max(2);
        if peer.first_round {
            let there_and_back = (timing.propagation + timing.turnaround + timing.processing) * 2;
            let round = there_and_back + timing.turn + timing.on_air(STATUS);
            let longest = peer.outgoing.slots.iter().map(|slot| slot.load.bytes()).max();
            let count = peer.amount.choose(timing.on_air(longest.unwrap_or(0)), round);
            peer.parity = (count, count);
        }
        Some(self.send(i, at))
    }

    pub(super) fn next_frame(&mut self, above: &mut dyn Above) -> Option<Frame> {
        let count = self.peers.len();
        let turns: Vec<usize> = (0..count).map(|k| (self.turn + k) % count).collect();
        let open = |i: &usize, above: &dyn Above| above.is_open(Station(*i as u8));
        for i in turns.iter().copied().filter(|i| *i > 0) {
            if open(&i, above)
                && let Some(frame) = self.complete(i, above)
            {
                return Some(frame);
            }
        }
        let first = above.next_destination().map(Station::index);
        for i in first.into_iter().chain(turns.iter().copied()).filter(|i| *i > 0) {
            if let Some(frame) = self.fresh(i, above) {
                return Some(frame);
            }
        }
        let due = |i: &usize| *i > 0 && self.peers[*i].status_at.is_none() && open(i, above);
        let i = turns.into_iter().find(due)?;
        let transmission = self.peers[i].outgoing.count();
        let header = AirmailHeader { transmission, ..AirmailHeader::default() };
        Some(self.frame(i, header, Load::None))
    }
}
