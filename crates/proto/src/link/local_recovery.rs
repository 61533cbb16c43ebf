//! Local recovery (bakshi96 4.2.1): each frame is acknowledged. It is retransmitted after a random backoff
//! until it is acknowledged, or has reached the limit of attempts.
//!
//! Stop-and-wait towards each station, in both directions. bakshi96 describes the protocol ("aggressive
//! retransmission with packet discards", after its reference 9) but not its waiting times. These follow CDPD,
//! which the paper cites for the number of retransmissions: the backoff is uniform, and its limit doubles
//! from 16 slots of 60 bits to 256 (50 ms to 800 ms at 19.2 kb/s).
//!
//! Not modelled: acknowledgements in data frames. Sequence numbers and checksums of data frames are part of
//! the link's overhead per packet (bakshi96 3.1: "framing, error correction, segmentation").

use std::collections::VecDeque;

use serde::Serialize;

use super::end::{Above, LinkEnd, MacSignal};
use super::frame::{ArqHeader, BitVector, Frame, Header, LinkAck, Load, Timing};
use super::{LinkLayerConfig, Read};
use crate::air::Station;
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::event::{Cause, LinkNote};
use crate::rng::Stream;
use crate::units::{Span, Time};

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "local-recovery",
    system: System::new(
        Kind::Link,
        "local-recovery",
        "path: link-layer = \"local-recovery\"",
        "retries with random backoff, a limited number of times",
        "bakshi96 4.2.1",
    ),
    read: |k, fragment| LinkLayerConfig::LocalRecovery(LocalRecoveryConfig::keys(k, fragment)),
}];

/// Configuration of local recovery.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LocalRecoveryConfig {
    /// `RT_max`: limit of retransmissions of a load, without the first transmission.
    pub max_retransmits: u32,
    /// Whether whole packets are retransmitted, without fragmentation by the hop.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub whole: bool,
    /// Limit of the uniform backoff before the first retransmission; it doubles with each further one.
    pub backoff: Span,
    /// Maximum of that limit.
    pub backoff_max: Span,
    /// Time limit of an acknowledgement after the end of the transmission; `None` computes it from the hop:
    /// the longest frames that may precede it, and the acknowledgements of all stations.
    pub timeout: Option<Span>,
    /// Length of the longest load that the peer may be sending, bytes; a longer one raises it.
    pub longest: u32,
    /// Length of an acknowledgement without coding, bytes.
    pub ack: u32,
}

impl LocalRecoveryConfig {
    /// Reads the keys; frames carry fragments of at most `fragment` bytes.
    pub fn keys(k: &mut Keys<'_>, fragment: Option<u32>) -> LocalRecoveryConfig {
        let mut c = LocalRecoveryConfig::bakshi96();
        c.longest = fragment.unwrap_or(c.longest);
        let times = Span::ZERO..=Span::secs(3600);
        k.table("local-recovery", "options of `local-recovery`", |k| {
            let doc = "retransmissions of a frame before it is dropped";
            k.count("max-retransmits", &mut c.max_retransmits, 0..=1_000_000, doc);
            let units = [("fragment", false), ("packet", true)];
            k.word("unit", &mut c.whole, &units, "the unit of acknowledgement and retransmission: fragments or whole packets");
            k.within("backoff", &mut c.backoff, times.clone(), "the initial limit of the random backoff");
            // A backoff that begins above the usual limit does not grow, unless the file sets the limit.
            c.backoff_max = c.backoff_max.max(c.backoff);
            k.within("backoff-max", &mut c.backoff_max, times.clone(), "the largest limit of the backoff, which doubles");
            if c.backoff_max < c.backoff {
                let help = "the limit of the backoff grows from `backoff` to `backoff-max`, for example \
                    `local-recovery = { backoff = \"50ms\", backoff-max = \"800ms\" }`";
                k.out_of_range("backoff-max", help);
            }
            let doc = "how long to wait for the acknowledgement of a frame; computed from the hop by default";
            k.maybe("timeout", &mut c.timeout, Span(1)..=Span::secs(3600), doc);
            k.bytes("ack", &mut c.ack, 1..=1500, "the length of an acknowledgement");
        });
        c
    }

    /// bakshi96 4.2.1, with the backoff of CDPD at 19.2 kb/s.
    pub fn bakshi96() -> LocalRecoveryConfig {
        LocalRecoveryConfig {
            max_retransmits: 13,
            whole: false,
            backoff: Span::millis(50),
            backoff_max: Span::millis(800),
            timeout: None,
            longest: 1500,
            ack: 8,
        }
    }
}

/// An end with local recovery.
#[derive(Clone, Debug)]
pub struct LocalRecovery {
    config: LocalRecoveryConfig,
    station: Station,
    timing: Timing,
    stream: Stream,
    /// Every station, including this one.
    peers: Vec<Peer>,
    /// Acknowledgements that wait for medium access; at most one per peer, since a peer waits for it.
    owed: VecDeque<(Station, LinkAck)>,
    /// Receiver of the data frame at medium access.
    sending: Option<Station>,
    /// Length of the longest load that was received or announced, bytes.
    longest: u32,
    /// Start of the search for the next peer to serve.
    turn: usize,
}

/// State of one peer.
#[derive(Clone, Debug, Default)]
struct Peer {
    /// The load being sent to it.
    current: Option<Outstanding>,
    /// Sequence number of the next load.
    next_seq: u32,
    /// Number of the next transmission.
    transmission: u32,
    /// Expected sequence number from it.
    expected: u32,
    /// The last transmission number received from it.
    last_received: u32,
}

/// An unacknowledged load.
#[derive(Clone, Debug)]
struct Outstanding {
    load: Load,
    seq: u32,
    /// Number of transmissions.
    tries: u32,
    stage: Stage,
}

/// Stage of an unacknowledged load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It may be sent.
    Ready,
    /// It is at medium access.
    Sending,
    /// Deadline of its acknowledgement.
    Waiting(Time),
    /// Time of its retransmission.
    BackingOff(Time),
}

impl LocalRecovery {
    /// The end at `station` of a hop with `stations` stations.
    pub fn new(
        config: &LocalRecoveryConfig,
        station: Station,
        stations: u8,
        timing: Timing,
        stream: Stream,
    ) -> LocalRecovery {
        LocalRecovery {
            config: config.clone(),
            station,
            timing,
            stream,
            peers: (0..stations).map(|_| Peer::default()).collect(),
            owed: VecDeque::new(),
            sending: None,
            longest: config.longest,
            turn: 0,
        }
    }

    /// Time limit of an acknowledgement, from the end of the frame on.
    fn timeout(&self) -> Span {
        let timing = &self.timing;
        self.config.timeout.unwrap_or_else(|| {
            // It waits for a frame that its sender has already passed to medium access. Where stations share
            // the medium, each other one may send a frame before that and another after it. The additional
            // byte is for rounding.
            let stations = self.peers.len() as u64;
            let frames = 1 + 2 * stations.saturating_sub(2);
            timing.on_air(self.longest.saturating_add(1)) * frames
                + timing.on_air(self.config.ack) * stations
                + (timing.propagation + timing.turnaround + timing.processing) * 2
        })
    }

    /// The backoff after `tries` transmissions.
    fn backoff(&mut self, tries: u32) -> Span {
        let LocalRecoveryConfig { backoff, backoff_max, .. } = self.config;
        let doubled = 1u64.checked_shl(tries.saturating_sub(1)).unwrap_or(u64::MAX);
        let limit = backoff.0.saturating_mul(doubled).min(backoff_max.0);
        Span(self.stream.below(limit.saturating_add(1)))
    }

    /// Handles a missing acknowledgement of peer `i`.
    fn failed(&mut self, now: Time, i: usize, above: &mut dyn Above) {
        let to = Station(i as u8);
        let Some(mut current) = self.peers[i].current.take() else { return };
        //= bakshi96#4.2.1
        // At most RT_max successive retransmissions, then the packet is discarded.
        let discarded = current.tries > self.config.max_retransmits;
        //= bakshi96#4.2.3
        // The source is notified "after every unsuccessful attempt".
        above.attempt_failed(&current.load, current.tries, discarded);
        if discarded {
            above.give_up(to, current.load, Cause::LinkGaveUp);
        } else {
            current.stage = Stage::BackingOff(now + self.backoff(current.tries));
            self.peers[i].current = Some(current);
        }
    }

    /// Handles an acknowledgement from `from`.
    fn acknowledged(&mut self, from: Station, ack: &LinkAck, above: &mut dyn Above) {
        let peer = &mut self.peers[from.index()];
        let current = peer.current.as_ref().map(|current| current.seq);
        if current == Some(ack.cumulative) {
            peer.current = None;
        } else if is_at_least(ack.cumulative, peer.next_seq) {
            above.note(from, LinkNote::BadAck);
        }
    }

    /// The frame with the current load of peer `i`.
    fn send(&mut self, i: usize, above: &mut dyn Above) -> Option<Frame> {
        let to = Station(i as u8);
        let peer = &mut self.peers[i];
        let current = peer.current.as_mut()?;
        if current.tries > 0 {
            above.repeat(to, &current.load, Cause::LinkTimeout);
        }
        current.tries += 1;
        current.stage = Stage::Sending;
        self.sending = Some(to);
        let header =
            ArqHeader { seq: Some(current.seq), transmission: peer.transmission, ack: None };
        peer.transmission = peer.transmission.wrapping_add(1);
        Some(Frame {
            from: self.station,
            to,
            header: Header::Arq(header),
            load: current.load.clone(),
            bytes: current.load.bytes(),
            stored: true,
        })
    }

    /// A peer to which a new load may be sent.
    fn next_fresh(&self, above: &dyn Above) -> Option<Station> {
        let free = |s: &Station| {
            self.peers.get(s.index()).is_some_and(|peer| peer.current.is_none()) && above.waits(*s)
        };
        let count = self.peers.len();
        let others = (0..count).map(|k| Station(((self.turn + k) % count) as u8));
        above.next_destination().into_iter().chain(others).find(free)
    }

    fn ack_frame(&self, to: Station, ack: LinkAck) -> Frame {
        let header = ArqHeader { seq: None, transmission: 0, ack: Some(ack) };
        Frame {
            from: self.station,
            to,
            header: Header::Arq(header),
            load: Load::None,
            bytes: self.config.ack,
            stored: false,
        }
    }
}

/// Whether `seq` is `other` or after it; numbers wrap.
fn is_at_least(seq: u32, other: u32) -> bool {
    seq.wrapping_sub(other) < 1 << 31
}

impl LinkEnd for LocalRecovery {
    fn check(&self) {
        let most = self.config.max_retransmits.saturating_add(1);
        for peer in &self.peers {
            let Some(current) = &peer.current else { continue };
            debug_assert!(current.tries <= most, "attempt {} of {most}", current.tries);
            debug_assert!(
                current.seq < peer.next_seq || peer.next_seq == 0,
                "packet {} was not numbered",
                current.seq
            );
        }
        debug_assert!(self.turn < self.peers.len().max(1), "the turn of an unknown station");
        debug_assert!(
            self.sending.is_none_or(|to| to != self.station && to.index() < self.peers.len()),
            "a frame to an unknown station"
        );
    }

    fn on_frame(&mut self, _: Time, frame: Frame, above: &mut dyn Above) {
        let from = frame.from;
        if self.peers.get(from.index()).is_none() {
            return;
        }
        let Header::Arq(header) = frame.header else {
            return above.release(from, frame.load);
        };
        if let Some(ack) = &header.ack {
            self.acknowledged(from, ack, above);
        }
        let Some(seq) = header.seq else { return };
        self.longest = self.longest.max(frame.bytes);
        let peer = &mut self.peers[from.index()];
        peer.last_received = header.transmission;
        let last_received = peer.last_received;
        // Numbers are skipped after the peer gives up a load.
        if is_at_least(seq, peer.expected) {
            peer.expected = seq.wrapping_add(1);
            above.release(from, frame.load);
        } else {
            above.note(from, LinkNote::Duplicate);
        }
        let ack = LinkAck { cumulative: seq, vector: BitVector::default(), last_received };
        self.owed.retain(|(to, _)| *to != from);
        self.owed.push_back((from, ack));
    }

    fn on_mac(&mut self, now: Time, signal: MacSignal, _: &mut dyn Above) {
        let MacSignal::Done { .. } = signal else { return };
        let Some(to) = self.sending.take() else { return };
        let deadline = now + self.timeout();
        if let Some(current) = &mut self.peers[to.index()].current
            && current.stage == Stage::Sending
        {
            current.stage = Stage::Waiting(deadline);
        }
    }

    fn on_wake(&mut self, now: Time, above: &mut dyn Above) {
        for i in 0..self.peers.len() {
            let Some(current) = &mut self.peers[i].current else { continue };
            match current.stage {
                Stage::Waiting(at) if at <= now => self.failed(now, i, above),
                Stage::BackingOff(at) if at <= now => current.stage = Stage::Ready,
                _ => {}
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let stages = self.peers.iter().filter_map(|peer| Some(peer.current.as_ref()?.stage));
        let due = stages.filter_map(|stage| match stage {
            Stage::Waiting(at) | Stage::BackingOff(at) => Some(at),
            Stage::Ready | Stage::Sending => None,
        });
        due.min()
    }

    fn next_frame(&mut self, _: Time, above: &mut dyn Above) -> Option<Frame> {
        // An acknowledgement precedes data: the peer waits for it, and there is at most one per frame.
        if let Some((to, ack)) = self.owed.pop_front() {
            return Some(self.ack_frame(to, ack));
        }
        let count = self.peers.len();
        let ready = |i: &usize| {
            let current = &self.peers[*i].current;
            current.as_ref().is_some_and(|current| current.stage == Stage::Ready)
                && above.is_open(Station(*i as u8))
        };
        let again = (0..count).map(|k| (self.turn + k) % count).find(ready);
        let i = match again {
            Some(i) => i,
            None => {
                let to = self.next_fresh(above)?;
                let load = above.take(to)?;
                let peer = &mut self.peers[to.index()];
                let seq = peer.next_seq;
                peer.next_seq = seq.wrapping_add(1);
                peer.current = Some(Outstanding { load, seq, tries: 0, stage: Stage::Ready });
                to.index()
            }
        };
        self.turn = (i + 1) % count;
        self.send(i, above)
    }

    fn reply(&mut self, _: Time, to: Station, _: &mut dyn Above) -> Option<Frame> {
        let i = self.owed.iter().position(|(peer, _)| *peer == to)?;
        let (to, ack) = self.owed.remove(i)?;
        Some(self.ack_frame(to, ack))
    }
}
