//! FAMA-NCS: floor acquisition multiple access with non-persistent carrier sensing.
//!
//! Fullmer and Garcia-Luna-Aceves, "Solutions to Hidden Terminal Problems in Wireless Networks" (SIGCOMM
//! 1997), as TULIP uses it (parsa98 3.2, 3.3). A station acquires the channel by RTS and CTS before each
//! frame. A CTS lasts longer than an RTS and a round trip, so a station that sent an RTS meanwhile still
//! hears its end (CTS dominance). There is no acknowledgement. With MAC acceleration (parsa98 3.3) the
//! receiver of a frame may answer at once: short answers need no RTS and CTS, long ones begin with an RTS
//! without contention.
//!
//! [`table`] has the state machine. RTS collide only if they begin within one propagation delay of each
//! other. A failed handshake is retried without limit: the frame waits through a fade.

pub mod table;

use super::{Chosen, MacConfig, Read};
use crate::describe::{Descriptor, Keys, Kind, System};
use serde::Serialize;

use super::ether::{Ether, Flight, Reception};
use super::phy::Phy;
use super::{Access, Air, Mac, Outcome, side_of};
use crate::air::{FrameKind, Station};
use crate::link::frame::{Frame, Timing};
use crate::link::varied::Sky;
use crate::rng::Stream;
use crate::units::{Span, Time};
use table::{Action, Event, State, rule};

/// Longest 802.11 load in bytes; an unreadable CTS may have reserved the channel for it.
const LONGEST: u32 = 2304;

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "fama-ncs",
    system: System::new(
        Kind::Mac,
        "fama-ncs",
        "path: mac = \"fama-ncs\"",
        "acquires the floor by RTS and CTS before data; reports to the link layer when it transmits or waits",
        "parsa98 3.2, 3.3; Fullmer and Garcia-Luna-Aceves 1997",
    ),
    read: |k| Chosen::Hop(MacConfig::FamaNcs(FamaConfig::keys(k))),
}];

impl FamaConfig {
    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> FamaConfig {
        let mut c = FamaConfig::default();
        k.table("fama", "options of `fama-ncs`", |k| {
            k.flag("acceleration", &mut c.acceleration, "a link layer may answer at once");
            let doc = "the longest payload that such an answer carries without RTS and CTS";
            k.bytes("short-answer", &mut c.short_answer, 0..=65_535, doc);
            k.count(
                "backoff",
                &mut c.backoff,
                2..=100_000,
                "the longest backoff, in durations of an RTS",
            );
        });
        c
    }
}

/// Settings of FAMA-NCS.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FamaConfig {
    /// MAC acceleration (parsa98 3.3).
    pub acceleration: bool,
    /// Longest load, in bytes, of an accelerated answer without RTS and CTS; the link layer's header is
    /// extra.
    pub short_answer: u32,
    /// Longest backoff, in units of an RTS and a round trip; the shortest is one. At least 2: two stations
    /// that draw the same time collide again.
    pub backoff: u32,
}

impl Default for FamaConfig {
    /// Values of TULIP: acceleration for answers of at most 40 bytes. Backoffs of 1 to 10 RTS times, as in
    /// FAMA.
    fn default() -> FamaConfig {
        FamaConfig { acceleration: true, short_answer: 40, backoff: 10 }
    }
}

/// The medium and its stations.
#[derive(Clone, Debug)]
pub struct FamaNcs {
    config: FamaConfig,
    phy: Phy,
    /// Length of a CTS in bytes, which gives it dominance.
    cts: u32,
    /// Times on the air of an RTS and a CTS, and the time within which an answer must begin.
    rts_time: Span,
    cts_time: Span,
    answer: Span,
    ether: Ether,
    stations: Vec<Node>,
    /// By station: when its timer expires; [`Time::NEVER`] if it does not run.
    timers: Vec<Time>,
    rng: Stream,
    /// Varying values, if there are any.
    sky: Option<Box<Sky>>,
}

/// A station.
#[derive(Clone, Debug)]
struct Node {
    state: State,
    /// The frame to be sent.
    frame: Option<Box<Frame>>,
    /// Receiver of the frame on the air.
    sending: Option<Station>,
    /// Receiver of a CTS, and the duration of the data frame that follows.
    clear_for: (Station, Span),
    /// Kind of answer allowed to the last frame.
    grace: Grace,
    /// Whether the frame to be sent is an accelerated answer.
    answers: bool,
}

/// Kind of answer that a receiver may send at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Grace {
    /// No answer.
    None,
    /// A short answer: the frame was itself an answer, and the pair must not occupy the channel for ever.
    Short,
    /// Any answer.
    Any,
}

impl FamaNcs {
    /// Creates a silent channel for `stations` stations with random draws from `rng`.
    pub fn new(config: FamaConfig, phy: Phy, stations: u8, rng: Stream) -> FamaNcs {
        // A CTS lasts longer than an RTS, a round trip and a radio turnaround.
        let least = phy.control_time(phy.rts) + phy.answer();
        let bits =
            least.saturating_sub(phy.preamble).0 as u128 * u128::from(phy.control_rate.bps());
        let cts = phy.cts.max((bits / 8_000_000_000) as u32 + 1);
        let node = || Node {
            state: State::Passive,
            frame: None,
            sending: None,
            clear_for: (Station::BASE, Span::ZERO),
            grace: Grace::None,
            answers: false,
        };
        let (rts_time, cts_time) = (phy.control_time(phy.rts), phy.control_time(cts));
        FamaNcs {
            config,
            cts,
            rts_time,
            cts_time,
            answer: phy.answer(),
            ether: Ether::new(stations, phy.propagation),
            phy,
            timers: vec![Time::NEVER; usize::from(stations)],
            stations: (0..stations).map(|_| node()).collect(),
            rng,
            sky: None,
        }
    }

    /// Time on the air of a frame of station `s` that begins at `now`.
    fn data_time(&self, now: Time, s: usize, bytes: u32) -> Span {
        let varied = self.sky.as_ref().and_then(|sky| sky.rate(now, side_of(s)).flatten());
        self.phy.data_time_at(varied.unwrap_or(self.phy.data_rate), bytes)
    }

    /// State of `station`.
    pub fn state(&self, station: Station) -> State {
        self.stations[station.index()].state
    }

    /// Handles an event at station `s`; `reception` is the received transmission.
    fn on(
        &mut self,
        now: Time,
        s: usize,
        event: Event,
        reception: Option<&mut Reception>,
        air: &mut dyn Air,
    ) {
        let Some((next, action)) = rule(self.stations[s].state, event) else { return };
        self.stations[s].state = next;
        self.act(now, s, action, reception, air);
        // The timer runs only while the channel is quiet. A carrier that was inaudible while sending is heard
        // now.
        let node = &mut self.stations[s];
        let listens = matches!(node.state, State::Passive | State::Backoff | State::Remote);
        if listens && self.ether.carriers(s) > 0 {
            node.state = State::Remote;
            self.timers[s] = Time::NEVER;
        }
    }

    fn act(
        &mut self,
        now: Time,
        s: usize,
        action: Action,
        reception: Option<&mut Reception>,
        air: &mut dyn Air,
    ) {
        let answer = self.answer;
        // A carrier is sensed within one slot.
        let leave = answer + self.phy.slot;
        let station = Station(s as u8);
        let after = match action {
            Action::Nothing => return,
            Action::Rest => {
                self.timers[s] = Time::NEVER;
                return;
            }
            Action::DrawBackoff => {
                // Time in which one handshake can collide with another: an RTS, and a frame that is not
                // audible yet.
                let unit = self.rts_time + answer;
                let more = u64::from(self.config.backoff.max(2) - 1) * unit.0;
                unit + Span(self.rng.below(more + 1))
            }
            Action::TurnRound => self.phy.sifs,
            Action::TellWait => {
                if let Some(reception) = reception {
                    let Flight { from, claim, .. } = reception.flight;
                    self.stations[s].clear_for = (from, claim);
                    // The time is longer than a short answer that replaces the RTS.
                    let short = self.phy.data_time(self.config.short_answer);
                    let short = short.saturating_sub(self.rts_time);
                    let rest = answer + self.cts_time + self.phy.sifs + claim;
                    let hold = rest.saturating_sub(short);
                    air.outcome(Outcome::Wait { station, from, hold });
                }
                self.phy.sifs
            }
            Action::SendRts => {
                let Some(frame) = &self.stations[s].frame else { return };
                let opens = self.sky.as_ref().map_or(now, |sky| sky.opens(now, side_of(s)));
                if opens > now {
                    // As after an unsuccessful RTS, from the end of the outage on.
                    self.stations[s].state = State::Backoff;
                    let more = self.rng.below((self.rts_time + answer).0 + 1);
                    let wait = opens.since(now) + self.rts_time + answer + Span(more);
                    self.timers[s] = if opens == Time::NEVER { opens } else { now + wait };
                    return;
                }
                let (to, claim) = (frame.to, self.data_time(now, s, frame.bytes));
                let (bytes, airtime) = (self.phy.rts, self.rts_time);
                self.send(now, s, to, FrameKind::Rts, bytes, airtime, claim, None, air);
                airtime + answer + self.cts_time
            }
            Action::SendCts => {
                let (to, claim) = self.stations[s].clear_for;
                let (bytes, airtime) = (self.cts, self.cts_time);
                self.send(now, s, to, FrameKind::Cts, bytes, airtime, claim, None, air);
                airtime
            }
            Action::SendData => {
                let Some(frame) = self.stations[s].frame.take() else { return };
                let (to, kind, bytes) = (frame.to, frame.kind(), frame.bytes);
                let airtime = self.data_time(now, s, bytes);
                self.stations[s].sending = Some(to);
                air.outcome(Outcome::Trans { station, to, airtime });
                self.send(now, s, to, kind, bytes, airtime, Span::ZERO, Some(frame), air);
                airtime
            }
            Action::Finish => {
                if let Some(to) = self.stations[s].sending.take() {
                    air.outcome(Outcome::Done { station, to, acked: None });
                }
                leave
            }
            Action::HandUp => {
                if let Some(reception) = reception {
                    self.hand_up(s, reception, air);
                }
                leave
            }
            Action::LeaveAnswer => leave,
            Action::LeaveCts => leave + self.cts_time,
            Action::LeaveData => leave + reception.map_or(Span::ZERO, |data| data.flight.claim),
            Action::LeaveLongest => leave + self.phy.data_time(LONGEST),
        };
        self.timers[s] = now + after;
    }

    /// Delivers the frame that has reached its receiver, station `s`.
    fn hand_up(&mut self, s: usize, reception: &mut Reception, air: &mut dyn Air) {
        let Some(frame) = reception.flight.frame.take() else { return };
        let short = frame.load.bytes() <= self.config.short_answer;
        self.stations[s].grace = match reception.flight.answers {
            _ if !self.config.acceleration => Grace::None,
            true if short => Grace::None,
            true => Grace::Short,
            false => Grace::Any,
        };
        let may_reply = self.stations[s].grace != Grace::None;
        air.outcome(Outcome::Arrived { frame: *frame, intact: true, may_reply });
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a transmission")]
    fn send(
        &mut self,
        start: Time,
        s: usize,
        to: Station,
        kind: FrameKind,
        bytes: u32,
        airtime: Span,
        claim: Span,
        frame: Option<Box<Frame>>,
        air: &mut dyn Air,
    ) {
        let from = Station(s as u8);
        let answers = self.stations[s].answers;
        let aggregate = false;
        let flight =
            Flight { from, to, kind, bytes, start, airtime, claim, answers, aggregate, frame };
        self.ether.send(flight, air);
    }

    /// A transmission is over: each station processes it.
    fn take_in(&mut self, now: Time, mut reception: Reception, air: &mut dyn Air) {
        let Flight { from, to, kind, airtime, .. } = reception.flight;
        let long = airtime > self.rts_time + self.phy.propagation;
        for s in (0..self.stations.len()).filter(|s| *s != from.index()) {
            let mine = s == to.index();
            let readable =
                self.ether.is_clear(&reception, Station(s as u8)) && (reception.spared || !mine);
            let event = match kind {
                FrameKind::Rts if readable && mine => Event::Rts,
                FrameKind::Rts if readable => Event::OtherRts,
                FrameKind::Cts if readable && mine => Event::Cts,
                FrameKind::Cts if readable => Event::OtherCts,
                FrameKind::Data | FrameKind::Ack | FrameKind::LinkAck if readable && mine => {
                    Event::Data
                }
                FrameKind::Data | FrameKind::Ack | FrameKind::LinkAck if readable => {
                    Event::OtherData
                }
                // A failed frame for this station is not a CTS that others obey.
                _ if long && !mine => Event::LongNoise,
                _ => Event::Noise,
            };
            self.on(now, s, event, Some(&mut reception), air);
            // The hop needs the end of every frame, unreadable ones included.
            if mine && let Some(frame) = reception.flight.frame.take() {
                air.outcome(Outcome::Arrived { frame: *frame, intact: false, may_reply: false });
            }
        }
    }
}

impl Mac for FamaNcs {
    fn check(&self) {
        self.ether.check();
        debug_assert_eq!(self.timers.len(), self.stations.len(), "a timer for each station");
        debug_assert!(
            self.stations.iter().all(|node| node
                .sending
                .is_none_or(|to| to.index() < self.stations.len() || to == Station::ALL)),
            "a frame to an unknown station"
        );
    }

    fn request(&mut self, now: Time, frame: Frame, access: Access, air: &mut dyn Air) {
        let s = frame.from.index();
        let short = frame.load.bytes() <= self.config.short_answer;
        let node = &mut self.stations[s];
        let grace = core::mem::replace(&mut node.grace, Grace::None);
        let event = match access {
            Access::Reply if short && grace != Grace::None => Event::ShortAnswer,
            Access::Reply if grace == Grace::Any => Event::LongAnswer,
            _ => Event::Request,
        };
        // Another station may already be audible, if the propagation delay is long.
        let event = if self.ether.carriers(s) > 0 { Event::Request } else { event };
        node.answers = event != Event::Request;
        node.frame = Some(Box::new(frame));
        self.on(now, s, event, None, air);
    }

    fn on_wake(&mut self, now: Time, air: &mut dyn Air) {
        // Order within an instant: ends of transmissions, timers, then beginnings. A station cannot sense a
        // transmission that begins when it begins to send itself.
        loop {
            if let Some(reception) = self.ether.ended(now, air) {
                self.take_in(now, reception, air);
            } else if let Some(s) = self.timers.iter().position(|at| *at <= now) {
                self.timers[s] = Time::NEVER;
                let waits = self.stations[s].frame.is_some();
                let event = if waits { Event::Expired } else { Event::ExpiredEmpty };
                self.on(now, s, event, None, air);
            } else if let Some(from) = self.ether.begun(now) {
                for s in (0..self.stations.len()).filter(|s| *s != from.index()) {
                    self.stations[s].grace = Grace::None;
                    self.on(now, s, Event::Carrier, None, air);
                }
            } else {
                return;
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.timers.iter().fold(self.ether.next(), |first, at| first.min(*at)).or_none()
    }

    fn is_idle(&self, station: Station) -> bool {
        let node = &self.stations[station.index()];
        node.frame.is_none() && node.sending.is_none()
    }

    fn waiting(&mut self, station: Station) -> Option<&mut Frame> {
        let node = &mut self.stations[station.index()];
        node.frame.as_deref_mut().filter(|_| node.state == State::Remote)
    }

    fn hurry(&mut self, now: Time, station: Station, air: &mut dyn Air) {
        if let Some(frame) = self.stations[station.index()].frame.take() {
            self.request(now, *frame, Access::Reply, air);
        }
    }

    fn vary(&mut self, sky: Sky) {
        self.sky = Some(Box::new(sky));
    }

    fn timing(&self) -> Timing {
        // Without acceleration an answer needs a separate RTS and CTS after a backoff.
        let rts = self.rts_time;
        let access = match self.config.acceleration {
            true => Span::ZERO,
            false => {
                let handshake = rts + self.cts_time + self.answer * 2;
                handshake + rts * u64::from(self.config.backoff)
            }
        };
        let backoff = rts * u64::from(self.config.backoff);
        let turn = self.answer + self.phy.slot + backoff + rts + self.phy.propagation;
        Timing { turn, ..self.phy.timing(access) }
    }
}
