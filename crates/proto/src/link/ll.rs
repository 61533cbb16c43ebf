//! LL: a link layer with cumulative acknowledgements and timers, without order (balakrishnan97 3.1.1).
//!
//! Every packet has a sequence number and a separate timer. The receiver delivers packets as they arrive,
//! each once, and acknowledges the last one in order. A packet whose timer expires is retransmitted. A packet
//! behind a gap is retransmitted even if it has arrived, since a cumulative acknowledgement cannot report it.
//!
//! `ll-sack` is the variant with selective acknowledgements.

use serde::Serialize;

use super::end::{Above, LinkEnd, MacSignal};
use super::frame::{ArqHeader, Frame, Header, Load};
use super::ll_peer::{Peer, PendingPacket};
use super::ll_sack;
use super::{LinkLayerConfig, Read};
use crate::air::Station;
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::event::{Cause, LinkNote};
use crate::units::{Span, Time};

/// Length of the header, bytes: sequence number, transmission number, acknowledgement, and a check.
const HEADER: u32 = 12;

pub(super) const WORDS: &[Descriptor<Read>] = &[
    Descriptor {
        word: "ll",
        system: System::new(
            Kind::Link,
            "ll",
            "path: link-layer = \"ll\"",
            "link-layer retransmission with cumulative ACKs and timers, in no particular order",
            "balakrishnan97 3.1.1",
        ),
        read: |k, _| LinkLayerConfig::Ll(LlConfig::keys(k)),
    },
    ll_sack::WORD,
];

/// Configuration of `ll` and of `ll-sack`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LlConfig {
    /// Limit of unacknowledged packets to one station.
    pub window: u16,
    /// Minimum timeout.
    pub min_timeout: Span,
    /// Timeout before the first measurement of a round trip.
    pub initial_timeout: Span,
    /// Whether acknowledgements are selective.
    pub selective: bool,
}

impl LlConfig {
    /// Reads the keys, which `ll` and `ll-sack` share.
    pub fn keys(k: &mut Keys<'_>) -> LlConfig {
        let mut c = LlConfig::new(false);
        k.table("ll", "options of `ll` and `ll-sack`", |k| {
            k.count("window", &mut c.window, 1..=1024, "packets in flight to one station");
            let times = Span(1)..=Span::secs(60);
            k.within("min-timeout", &mut c.min_timeout, times.clone(), "the minimum timeout");
            let doc = "the timeout before the first measurement of a round trip";
            k.within("initial-timeout", &mut c.initial_timeout, times, doc);
        });
        c
    }

    /// 32 packets, and a timeout of at least 200 ms: well below the 500 ms ticks of the TCPs above.
    pub const fn new(selective: bool) -> LlConfig {
        LlConfig {
            window: 32,
            min_timeout: Span::millis(200),
            initial_timeout: Span::millis(500),
            selective,
        }
    }
}

/// The end at one station.
#[derive(Clone, Debug)]
pub struct Ll {
    config: LlConfig,
    station: Station,
    peers: Vec<Peer>,
    /// The packet at medium access: its receiver and its sequence number.
    sending: Option<(Station, u32)>,
}

impl Ll {
    /// The end at `station` of a hop with `stations` stations.
    pub fn new(config: &LlConfig, station: Station, stations: u8) -> Ll {
        let peers = (0..stations).map(|_| Peer::new()).collect();
        Ll { config: config.clone(), station, peers, sending: None }
    }

    /// A frame for `to` that carries packet `seq`, at index `i` of the unacknowledged ones.
    fn frame(&mut self, to: Station, i: usize) -> Frame {
        let peer = &mut self.peers[to.index()];
        peer.transmission = peer.transmission.wrapping_add(1);
        let transmission = peer.transmission;
        let seq = peer.una.wrapping_add(i as u32);
        let ack = peer.owes_ack.then(|| peer.ack(self.config.selective));
        let sent = &mut peer.sent[i];
        sent.transmission = transmission;
        sent.tries += 1;
        (sent.deadline, sent.again) = (None, None);
        let load = sent.load.clone();
        self.sending = Some((to, seq));
        let bytes = HEADER + load.bytes() + ack.as_ref().map_or(0, ll_sack::vector_bytes);
        let header = Header::Arq(ArqHeader { seq: Some(seq), transmission, ack });
        Frame { from: self.station, to, header, load, bytes, stored: true }
    }

    /// The oldest packet with a pending retransmission.
    fn again(&self, above: &dyn Above) -> Option<(Station, usize, Cause)> {
        let waiting = |(k, peer): (usize, &Peer)| {
            if peer.sent.is_empty() || !above.is_open(Station(k as u8)) {
                return None;
            }
            let sent = peer.sent.iter().enumerate();
            let mut due = sent.filter_map(|(i, s)| Some((i, s.again?)));
            due.next().map(|(i, cause)| (Station(k as u8), i, cause))
        };
        self.peers.iter().enumerate().find_map(waiting)
    }

    /// A station with a waiting packet and room in its window.
    fn has_room(&self, above: &dyn Above) -> Option<Station> {
        let window = usize::from(self.config.window);
        let room = |to: &Station| self.peers[to.index()].sent.len() < window;
        let others = (0..self.peers.len() as u8).map(Station).filter(|to| above.waits(*to));
        above.next_destination().into_iter().chain(others).find(room)
    }
}

impl LinkEnd for Ll {
    fn check(&self) {
        debug_assert!(
            self.sending.is_none_or(|(to, _)| to.index() < self.peers.len()),
            "a packet for an unknown station"
        );
        for peer in &self.peers {
            debug_assert!(
                peer.sent.len() <= usize::from(self.config.window),
                "{} unacknowledged packets exceed the window",
                peer.sent.len()
            );
        }
    }

    fn stored_loads(&self, each: &mut dyn FnMut(&Load, bool)) {
        let sent = self.peers.iter().flat_map(|peer| &peer.sent).filter(|sent| !sent.acked);
        sent.for_each(|sent| each(&sent.load, sent.tries > 1 || sent.again.is_some()));
    }

    fn on_frame(&mut self, now: Time, frame: Frame, above: &mut dyn Above) {
        let Header::Arq(header) = frame.header else { return };
        let (from, selective) = (frame.from, self.config.selective);
        let Some(peer) = self.peers.get_mut(from.index()) else { return };
        if let Some(ack) = &header.ack {
            let sane = peer.acknowledge(now, ack.cumulative);
            if !sane || (selective && !ll_sack::acknowledge(peer, ack)) {
                above.note(from, LinkNote::BadAck);
            }
        }
        let Some(seq) = header.seq else { return };
        match peer.receive(seq, header.transmission, self.config.window) {
            Ok(()) => above.release(from, frame.load),
            Err(note) => above.note(from, note),
        }
    }

    fn on_mac(&mut self, now: Time, signal: MacSignal, _: &mut dyn Above) {
        let MacSignal::Done { .. } = signal else { return };
        let Some((to, seq)) = self.sending.take() else { return };
        let peer = &mut self.peers[to.index()];
        let deadline = now + peer.timeout(self.config.initial_timeout, self.config.min_timeout);
        let i = seq.wrapping_sub(peer.una) as usize;
        if let Some(sent) = peer.sent.get_mut(i).filter(|sent| !sent.acked) {
            sent.deadline = Some(deadline);
            sent.left = (sent.tries == 1).then_some(now);
        }
    }

    fn on_wake(&mut self, now: Time, _: &mut dyn Above) {
        for sent in self.peers.iter_mut().flat_map(|peer| &mut peer.sent) {
            if sent.deadline.is_some_and(|at| at <= now) {
                sent.deadline = None;
                sent.again = Some(Cause::LinkTimeout);
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.peers.iter().flat_map(|peer| &peer.sent).filter_map(|sent| sent.deadline).min()
    }

    fn next_frame(&mut self, _: Time, above: &mut dyn Above) -> Option<Frame> {
        if let Some((to, i, cause)) = self.again(above) {
            above.repeat(to, &self.peers[to.index()].sent[i].load, cause);
            return Some(self.frame(to, i));
        }
        if let Some(to) = self.has_room(above)
            && let Some(load) = above.take(to)
        {
            let peer = &mut self.peers[to.index()];
            peer.sent.push_back(PendingPacket {
                load,
                transmission: 0,
                deadline: None,
                left: None,
                tries: 0,
                acked: false,
                again: None,
            });
            let i = peer.sent.len() - 1;
            return Some(self.frame(to, i));
        }
        let k = self.peers.iter().position(|peer| peer.owes_ack)?;
        let ack = self.peers[k].ack(self.config.selective);
        let bytes = HEADER + ll_sack::vector_bytes(&ack);
        let header = Header::Arq(ArqHeader { seq: None, transmission: 0, ack: Some(ack) });
        let to = Station(k as u8);
        Some(Frame { from: self.station, to, header, load: Load::None, bytes, stored: false })
    }
}
