//! The distributed coordination function of IEEE 802.11-1999 (clause 9): CSMA/CA.
//!
//! A station waits until the channel has been idle for a DIFS, then counts backoff slots down while the
//! channel stays idle. The count freezes while the channel is busy. The receiver of a data frame sends an ACK
//! after a SIFS. Without an ACK the sender doubles its window, draws again and retries, up to a retry limit.
//! Frames longer than a threshold are preceded by RTS and CTS, which set the network allocation vector (NAV)
//! of the stations that hear them. After each frame a station backs off, even without another frame
//! (post-backoff).
//!
//! With power saving (`dcf::power_save`) stations sleep, and the base station is an access point that sends
//! beacons.
//!
//! A station may reset its NAV when no frame follows an RTS for another station (`nav-reset`, 9.2.5.4).
//! Otherwise a station that does not answer silences the others for the duration of its data frame.
//!
//! With `phy` the frames are those of 802.11n, ac or ax ([`crate::mac::ofdm`]), and one access sends many
//! frames together (`dcf::aggregate`). Stations may have a modulation or a rate of their own.
//!
//! Not modelled: PCF, and fragmentation in the MAC. All stations hear each other, and no frame survives a
//! collision (no capture).

mod aggregate;
mod config;
mod power_save;
mod receive;
mod station;

use std::collections::VecDeque;

pub(super) use config::WORDS;
pub use config::{AggregateConfig, DcfConfig, StationRate};
pub use power_save::PowerSaveConfig;

use self::aggregate::Aggregation;
use self::config::OwnRate;
use self::power_save::PowerSave;
use self::station::{Job, Node, Phase, Sending};
use super::ether::{Ether, Flight, Reception};
use super::phy::Phy;
use super::{Access, Air, Mac, Outcome, side_of};
use crate::air::{FrameKind, Station};
use crate::event::Cause;
use crate::link::frame::{Frame, Timing};
use crate::link::varied::Sky;
use crate::rng::Stream;
use crate::units::{Span, Time};

/// The medium and its stations.
#[derive(Clone, Debug)]
pub struct Dcf {
    config: DcfConfig,
    phy: Phy,
    /// Times on the air of an RTS, a CTS and an ACK, and the space after an unreadable frame.
    rts_time: Span,
    cts_time: Span,
    ack_time: Span,
    eifs: Span,
    ether: Ether,
    stations: Vec<Node>,
    /// By station: when its timer expires; [`Time::NEVER`] if it does not run.
    timers: Vec<Time>,
    rng: Stream,
    power: Option<Box<PowerSave>>,
    aggregation: Option<Box<Aggregation>>,
    /// Of the stations that have a scheme or a rate of their own, by station.
    own: Vec<OwnRate>,
    /// Varying values, if there are any.
    sky: Option<Box<Sky>>,
}

impl Dcf {
    /// Creates a silent channel for `stations` stations with random draws from `rng`.
    pub fn new(config: DcfConfig, mut phy: Phy, stations: u8, mut rng: Stream) -> Dcf {
        if let Some(rate) = config.control_rate {
            phy.control_rate = rate.min(phy.data_rate);
        }
        let node = || Node {
            phase: Phase::Contend,
            job: None,
            next: VecDeque::new(),
            patience: None,
            cw: config.cw_min,
            slots: None,
            drawn: Time::ZERO,
            nav: Time::ZERO,
            reset: None,
            unreadable: false,
            answers_block: false,
            polled: false,
        };
        let power = config.power_save.as_ref().map(|save| PowerSave::new(save, stations, &mut rng));
        let aggregation = config.aggregation(stations).map(Box::new);
        Dcf {
            power: power.map(Box::new),
            aggregation,
            own: config.own_rates(stations),
            rts_time: phy.control_time(phy.rts),
            cts_time: phy.control_time(phy.cts),
            ack_time: phy.control_time(phy.ack),
            eifs: phy.eifs(),
            ether: Ether::new(stations, phy.propagation),
            timers: vec![Time::NEVER; usize::from(stations)],
            stations: (0..stations).map(|_| node()).collect(),
            config,
            phy,
            rng,
            sky: None,
        }
    }

    fn draw(&mut self, now: Time, s: usize) {
        let node = &mut self.stations[s];
        node.slots = Some(self.rng.below(u64::from(node.cw) + 1) as u32);
        node.drawn = now;
    }

    /// Time from which station `s` counts slots, given that it hears nothing.
    fn counts_from(&self, s: usize) -> Time {
        let node = &self.stations[s];
        let space = match node.unreadable && self.config.eifs {
            true => self.eifs,
            false => self.phy.difs,
        };
        // An unreadable frame does not extend the NAV.
        let idle = self.ether.quiet_since(s) + space;
        idle.max(node.nav + self.phy.difs).max(node.drawn)
    }

    /// Sets the timer of station `s` for its access, if it may contend.
    fn contend(&mut self, now: Time, s: usize) {
        if self.stations[s].phase != Phase::Contend || self.ether.is_asleep(s) {
            return;
        }
        let at = self.counts_from(s);
        let quiet = self.ether.carriers(s) == 0;
        let node = &self.stations[s];
        self.timers[s] = match (&node.job, node.slots) {
            (None, None) => Time::NEVER,
            _ if !quiet => Time::NEVER,
            (_, slots) => (at + self.phy.slot * u64::from(slots.unwrap_or(0))).max(now),
        };
    }

    /// Station `s` begins to hear a transmission.
    fn busy(&mut self, now: Time, s: usize) {
        self.stations[s].reset = None;
        if self.stations[s].phase != Phase::Contend || self.timers[s] == Time::NEVER {
            return;
        }
        let counted = now.since(self.counts_from(s).min(now)).0 / self.phy.slot.0.max(1);
        self.timers[s] = Time::NEVER;
        let node = &mut self.stations[s];
        match node.slots {
            Some(slots) => node.slots = Some(slots.saturating_sub(counted.min(1 << 30) as u32)),
            // The station found the channel busy.
            None => self.draw(now, s),
        }
    }

    /// Time on the air of a frame between station `s` and `to` that begins at `now`.
    fn data_time(&self, now: Time, s: usize, to: Station, bytes: u32) -> Span {
        let own = self.own.get(s.max(to.index())).copied().unwrap_or_default();
        if let Some(ofdm) = &self.phy.ofdm {
            return ofdm.frame(own.mcs.unwrap_or(ofdm.mcs), ofdm.single(bytes + self.phy.header));
        }
        let varied = self.sky.as_ref().and_then(|sky| sky.rate(now, side_of(s)).flatten());
        self.phy.data_time_at(own.rate.or(varied).unwrap_or(self.phy.data_rate), bytes)
    }

    /// If no frame of station `s` may begin at `now`, it draws a new backoff from the end of the outage on.
    fn waits_for_sky(&mut self, now: Time, s: usize) -> bool {
        let opens = self.sky.as_ref().map_or(now, |sky| sky.opens(now, side_of(s)));
        if opens == Time::NEVER {
            self.timers[s] = Time::NEVER;
        } else if opens > now {
            self.draw(opens, s);
            self.contend(now, s);
        }
        opens > now
    }

    /// The backoff of station `s` has ended.
    fn access(&mut self, now: Time, s: usize, air: &mut dyn Air) {
        if self.sky.is_some() && self.stations[s].job.is_some() && self.waits_for_sky(now, s) {
            return;
        }
        self.stations[s].slots = None;
        let Some(job) = &self.stations[s].job else { return };
        let (to, data, octets) = match &job.content {
            Sending::Frame(frame) => {
                let data = self.data_time(now, s, frame.to, frame.bytes);
                (frame.to, data, frame.bytes.saturating_add(self.phy.header))
            }
            Sending::Aggregate(to) => {
                let to = *to;
                let (data, octets) = self.gather(s, to, air);
                (to, data, octets)
            }
            _ => return self.send_management(now, s, air),
        };
        if octets <= self.config.rts_threshold {
            return self.send_job(now, s, air);
        }
        let answers = self.cts_time + self.answer_time(s);
        let spaces = (self.phy.sifs + self.phy.propagation) * 3;
        let airtime = self.rts_time;
        let claim = spaces + answers + data;
        self.send(now, s, to, FrameKind::Rts, self.phy.rts, airtime, claim, air);
        self.stations[s].phase = Phase::AwaitCts;
        self.timers[s] = now + airtime + self.timeout(self.cts_time);
    }

    /// Time on the air of the acknowledgement of the frames of station `s`.
    fn answer_time(&self, s: usize) -> Span {
        match self.aggregate_of(s) {
            Some(aggregate) if aggregate.sent > 1 => aggregate.block_ack,
            _ => self.ack_time,
        }
    }

    /// Timeout for an answer with this time on the air.
    fn timeout(&self, answer: Span) -> Span {
        self.config.timeout.unwrap_or_else(|| self.phy.answer() + answer + self.phy.slot)
    }

    fn send_job(&mut self, now: Time, s: usize, air: &mut dyn Air) {
        let Some(job) = &mut self.stations[s].job else { return };
        let (to, kind, bytes) = match &job.content {
            Sending::Frame(frame) => (frame.to, frame.kind(), frame.bytes),
            Sending::Aggregate(to) => {
                let to = *to;
                return self.send_aggregate(now, s, to, air);
            }
            _ => return self.send_management(now, s, air),
        };
        job.more = self.power.as_ref().is_some_and(|power| power.has_buffered_frames(to));
        let airtime = self.data_time(now, s, to, bytes);
        self.send_data(now, s, to, kind, bytes, airtime, air);
    }

    /// Sends data, and waits for the acknowledgement.
    #[expect(clippy::too_many_arguments, reason = "the parts of a transmission")]
    fn send_data(
        &mut self,
        now: Time,
        s: usize,
        to: Station,
        kind: FrameKind,
        bytes: u32,
        airtime: Span,
        air: &mut dyn Air,
    ) {
        air.outcome(Outcome::Trans { station: Station(s as u8), to, airtime });
        let answer = self.answer_time(s);
        let claim = self.phy.sifs + self.phy.propagation + answer;
        self.send(now, s, to, kind, bytes, airtime, claim, air);
        self.stations[s].phase = Phase::AwaitAck;
        self.timers[s] = now + airtime + self.timeout(answer);
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
        air: &mut dyn Air,
    ) {
        let (from, answers, frame) = (Station(s as u8), false, None);
        let is_data = matches!(kind, FrameKind::Data | FrameKind::Ack | FrameKind::LinkAck);
        let aggregate = is_data && self.aggregate_of(s).is_some();
        let flight =
            Flight { from, to, kind, bytes, start, airtime, claim, answers, aggregate, frame };
        self.ether.send(flight, air);
    }

    /// Station `s` received no CTS or ACK.
    fn failed(&mut self, now: Time, s: usize, air: &mut dyn Air) {
        let awaited_cts = self.stations[s].phase == Phase::AwaitCts;
        self.stations[s].phase = Phase::Contend;
        let patience = self.stations[s].patience;
        let Some(job) = &mut self.stations[s].job else { return };
        if let Sending::Aggregate(to) = job.content {
            return self.aggregate_failed(now, s, to, air);
        }
        let bytes = job.frame().map_or(0, |frame| frame.bytes.saturating_add(self.phy.header));
        let long = !awaited_cts && bytes > self.config.rts_threshold;
        let (tries, limit) = match long {
            true => (&mut job.long_tries, self.config.long_retries),
            false => (&mut job.short_tries, self.config.short_retries),
        };
        *tries = tries.saturating_add(1);
        if limit.into_iter().chain(patience).any(|limit| *tries >= limit) {
            self.end(now, s, false, air);
        } else {
            let node = &mut self.stations[s];
            node.cw = (2 * node.cw + 1).min(self.config.cw_max);
            self.draw(now, s);
        }
        self.advance(now, s);
    }

    /// The frame of station `s` is finished.
    fn end(&mut self, now: Time, s: usize, acked: bool, air: &mut dyn Air) {
        let station = Station(s as u8);
        self.stations[s].cw = self.config.cw_min;
        self.draw(now, s);
        let Some(Job { content, delivered, .. }) = self.stations[s].job.take() else { return };
        self.job_ended(now, s, &content, acked);
        let Sending::Frame(frame) = content else { return };
        let to = frame.to;
        if !acked {
            air.outcome(Outcome::Failed { frame, cause: Cause::RetryLimit, delivered });
        }
        air.outcome(Outcome::Done { station, to, acked: Some(acked) });
    }

    /// A station with a NAV reset due by `now`.
    fn resets_by(&self, now: Time) -> Option<usize> {
        let due = |node: &Node| node.reset.is_some_and(|(_, at)| at <= now);
        if self.config.nav_reset { self.stations.iter().position(due) } else { None }
    }

    /// The timer of station `s` has expired.
    fn expired(&mut self, now: Time, s: usize, air: &mut dyn Air) {
        match self.stations[s].phase {
            Phase::Contend => self.access(now, s, air),
            Phase::AwaitCts | Phase::AwaitAck => self.failed(now, s, air),
            Phase::Cleared => self.send_job(now, s, air),
            Phase::Answer(kind, to, claim) => {
                let (bytes, airtime) = match kind {
                    FrameKind::Cts => (self.phy.cts, self.cts_time),
                    _ if self.stations[s].answers_block => self.block_ack(),
                    _ => (self.phy.ack, self.ack_time),
                };
                self.send(now, s, to, kind, bytes, airtime, claim, air);
                self.stations[s].phase = Phase::Answering;
                self.timers[s] = now + airtime;
            }
            Phase::Answering => {
                self.stations[s].phase = Phase::Contend;
                self.advance(now, s);
            }
            Phase::Broadcasting => {
                self.stations[s].phase = Phase::Contend;
                self.end(now, s, true, air);
                self.advance(now, s);
            }
        }
    }

    /// Station `s` begins to contend for its next frame.
    fn advance(&mut self, now: Time, s: usize) {
        if self.choose(s) {
            let claimed = self.stations[s].nav > now || self.ether.carriers(s) > 0;
            let engaged = self.stations[s].phase != Phase::Contend;
            if (claimed || engaged) && self.stations[s].slots.is_none() {
                self.draw(now, s);
            }
        }
        self.contend(now, s);
    }
}

impl Mac for Dcf {
    fn check(&self) {
        self.ether.check();
        debug_assert_eq!(self.timers.len(), self.stations.len(), "a timer for each station");
        for node in &self.stations {
            debug_assert!(
                (self.config.cw_min..=self.config.cw_max).contains(&node.cw),
                "contention window: {}",
                node.cw
            );
            debug_assert!(node.slots.is_none_or(|slots| slots <= node.cw.max(self.config.cw_max)));
            debug_assert!(
                node.job.is_some() || !matches!(node.phase, Phase::AwaitCts | Phase::AwaitAck),
                "an answer is awaited without a frame"
            );
            debug_assert!(
                node.job.is_some() || node.next.is_empty(),
                "frames wait behind no frame"
            );
        }
    }

    fn request(&mut self, now: Time, frame: Frame, _: Access, air: &mut dyn Air) {
        let s = frame.from.index();
        if self.aggregation.is_some() {
            return self.enqueue(now, frame);
        }
        if let Some(frame) = self.keep(now, frame, air) {
            self.stations[s].next.push_back(Job::new(Sending::Frame(frame)));
            self.advance(now, s);
        }
    }

    fn on_wake(&mut self, now: Time, air: &mut dyn Air) {
        // Order within an instant: ends of transmissions, timers, then beginnings. A station that begins to
        // send in the same slot as another has not heard it.
        loop {
            if let Some(reception) = self.ether.ended(now, air) {
                self.take_in(now, &reception, air);
            } else if let Some(s) = self.timers.iter().position(|at| *at <= now) {
                self.timers[s] = Time::NEVER;
                self.expired(now, s, air);
            } else if let Some(s) = self.resets_by(now) {
                if let Some((before, _)) = self.stations[s].reset.take() {
                    self.stations[s].nav = before;
                    self.contend(now, s);
                }
            } else if let Some(from) = self.ether.begun(now) {
                for s in (0..self.stations.len()).filter(|s| *s != from.index()) {
                    self.busy(now, s);
                }
            } else if !self.power_wake(now, air) {
                return;
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let mut first = self.timers.iter().fold(self.ether.next(), |first, at| first.min(*at));
        if self.config.nav_reset {
            let resets = self.stations.iter().filter_map(|node| node.reset);
            first = resets.fold(first, |first, (_, at)| first.min(at));
        }
        if let Some(power) = &self.power {
            first = first.min(power.next_wake());
        }
        first.or_none()
    }

    fn hand_back(&mut self, station: Station, attempts: u32) {
        self.stations[station.index()].patience = Some(attempts);
    }

    fn is_idle(&self, station: Station) -> bool {
        let node = &self.stations[station.index()];
        match &self.aggregation {
            None => node.job.is_none() && node.next.is_empty(),
            // Each aggregate makes room for one frame, which may be for a receiver that has had no turn yet.
            Some(_) => !node.polled,
        }
    }

    fn reports_idle(&self) -> bool {
        // Beacons, polls and announcements produce no outcome.
        self.power.is_none()
    }

    fn vary(&mut self, sky: Sky) {
        self.sky = Some(Box::new(sky));
    }

    fn timing(&self) -> Timing {
        // Access on a quiet channel: a DIFS, half of the smallest window, and the ACK.
        let window = self.phy.slot * u64::from(self.config.cw_min / 2);
        let ack = self.phy.answer() + self.ack_time;
        self.phy.timing((self.phy.difs + window + ack) * 2)
    }
}
