//! Power saving of IEEE 802.11-1999 (clause 11.2.1): mobile stations sleep, and the access point buffers
//! their frames.
//!
//! Station 0 is the access point. It sends beacons at regular intervals with the list of stations that have
//! buffered frames (TIM). The others sleep, and wake for every n-th beacon. A station on the list requests
//! one frame at a time (PS-Poll) until a frame states that the buffer is empty (More Data). The access point
//! acknowledges a poll and sends the frame like any other. A station with a frame to send wakes at once, and
//! sleeps again after its acknowledgement; the reply waits for a beacon.
//!
//! With a timeout, stations behave as modern cards do. A station that is listed in a beacon, or has a frame
//! to send, stays awake until the timeout passes without a frame. It announces this by a bit in its frames
//! (Power Management), or by a frame without data. Meanwhile the access point sends its frames at once.
//!
//! Not modelled: broadcast traffic and its DTIM, the ageing of buffered frames at an access point, ProbeDelay
//! (a woken station waits for a DIFS instead of a frame that sets its NAV), and the power saving of ad-hoc
//! networks (clause 11.2.2). Clocks are synchronous, and a radio wakes instantly.

use std::collections::VecDeque;

use serde::Serialize;

use super::{Dcf, Job, Phase, Sending};
use crate::air::{FrameKind, Station};
use crate::event::Cause;
use crate::link::frame::Frame;
use crate::mac::ether::{Flight, Reception};
use crate::mac::{Air, Outcome};
use crate::rng::Stream;
use crate::units::{Span, Time};

/// Size of a beacon without the bitmap of its TIM: header and check sequence (28 bytes), time stamp, interval
/// and capabilities (12), a name of eight letters (10), four rates (6), the channel (3), the rest of the TIM
/// (5).
const BEACON: u32 = 64;
/// Size of a PS-Poll in bytes.
const PS_POLL: u32 = 20;
/// Size in bytes of a frame without data: header and check sequence.
const NULL: u32 = 28;

/// Power saving of mobile stations.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PowerSaveConfig {
    /// Beacon interval.
    pub beacon: Span,
    /// A station wakes for every n-th beacon, n being this number.
    pub listen: u16,
    /// Frames that the access point buffers for each station.
    pub buffer: u32,
    /// Time that a station stays awake after its last frame; `None` polls instead.
    pub timeout: Option<Span>,
}

impl Default for PowerSaveConfig {
    /// IEEE 802.11-1999: a beacon every 100 TU of 1024 us, received by all stations, and polls. An access
    /// point buffers 64 frames.
    fn default() -> PowerSaveConfig {
        PowerSaveConfig { beacon: Span::micros(102_400), listen: 1, buffer: 64, timeout: None }
    }
}

/// State that power saving adds to a medium.
#[derive(Clone, Debug)]
pub(super) struct PowerSave {
    config: PowerSaveConfig,
    /// Time and number of the next beacon.
    tbtt: Time,
    number: u64,
    /// Whether a beacon is due that has not been passed to medium access yet.
    due: bool,
    /// Stations listed in the last beacon.
    tim: Vec<bool>,
    dozers: Vec<Dozer>,
    /// When to check which stations may sleep: after the link layer's turn.
    rest_at: Option<Time>,
}

/// A station's power saving, from its own view and from that of the access point. The access point's entry is
/// unused.
#[derive(Clone, Debug, Default)]
struct Dozer {
    /// It is awake for a beacon.
    listens: bool,
    /// It is awake because the access point has frames for it.
    fetches: bool,
    /// It is awake until then unless frames are sent or received.
    active_until: Option<Time>,
    /// The access point assumes that it is awake until it announces otherwise.
    open: bool,
    /// Frames that the access point buffers for it.
    buffered: VecDeque<Job>,
    /// The access point is sending the polled frame.
    answering: bool,
}

impl PowerSave {
    pub(super) fn new(config: &PowerSaveConfig, stations: u8, rng: &mut Stream) -> PowerSave {
        let count = usize::from(stations);
        PowerSave {
            config: config.clone(),
            // A run does not begin with a beacon.
            tbtt: Time::ZERO + Span(rng.below(config.beacon.0.max(1))),
            number: 0,
            due: false,
            tim: vec![false; count],
            dozers: (0..count).map(|_| Dozer::default()).collect(),
            rest_at: Some(Time::ZERO),
        }
    }

    /// Whether frames for `to` are buffered.
    pub(super) fn has_buffered_frames(&self, to: Station) -> bool {
        self.dozers.get(to.index()).is_some_and(|dozer| !dozer.buffered.is_empty())
    }

    pub(super) fn next_wake(&self) -> Time {
        let active = self.dozers.iter().filter_map(|dozer| dozer.active_until);
        active.chain(self.rest_at).fold(self.tbtt, Time::min)
    }
}

impl Dcf {
    /// Handles one event that is due at `now`, and returns whether there was one.
    pub(super) fn power_wake(&mut self, now: Time, air: &mut dyn Air) -> bool {
        let Some(power) = &mut self.power else { return false };
        if power.tbtt <= now {
            self.beacon_due(now, air);
            return true;
        }
        let expired = |dozer: &Dozer| dozer.active_until.is_some_and(|until| until <= now);
        if let Some(s) = power.dozers.iter().position(expired) {
            power.dozers[s].active_until = None;
            self.say(now, s, Sending::Null { sleeps: true });
            return true;
        }
        // The link layer may hand over its next frame first, at the same time.
        match power.rest_at.take() {
            None if (1..self.stations.len()).any(|s| self.may_rest(s)) => {
                if let Some(power) = &mut self.power {
                    power.rest_at = Some(now);
                }
            }
            None => {}
            Some(_) => {
                for s in 1..self.stations.len() {
                    if self.may_rest(s) {
                        self.doze(now, s, air);
                    }
                }
            }
        }
        false
    }

    /// A beacon is due.
    fn beacon_due(&mut self, now: Time, air: &mut dyn Air) {
        let Some(power) = &mut self.power else { return };
        let listen = power.number.is_multiple_of(power.config.listen.max(1).into());
        power.number += 1;
        power.tbtt += power.config.beacon;
        power.due = true;
        for s in (1..self.stations.len()).filter(|_| listen) {
            if let Some(power) = &mut self.power {
                power.dozers[s].listens = true;
            }
            self.rouse(now, s, air);
        }
        self.advance(now, Station::BASE.index());
    }

    /// Chooses the next frame of station `s`, and returns whether there is a new one. A beacon precedes all
    /// other frames.
    pub(super) fn choose(&mut self, s: usize) -> bool {
        let node = &mut self.stations[s];
        if let Some(power) = self.power.as_mut().filter(|power| power.due)
            && s == Station::BASE.index()
            && node.phase == Phase::Contend
        {
            power.due = false;
            match node.job.replace(Job::new(Sending::Beacon)) {
                // The previous one has not been sent yet.
                Some(Job { content: Sending::Beacon, .. }) | None => {}
                Some(job) => node.next.push_front(job),
            }
            return true;
        }
        if node.job.is_none() {
            node.job = node.next.pop_front();
            return node.job.is_some();
        }
        false
    }

    /// Accepts `frame` from the link layer: returns it if it goes to medium access now, and buffers it
    /// otherwise. A frame that exceeds the buffer fails.
    pub(super) fn keep(&mut self, now: Time, frame: Frame, air: &mut dyn Air) -> Option<Frame> {
        let s = frame.from.index();
        let Some(power) = &mut self.power else { return Some(frame) };
        if frame.from != Station::BASE {
            self.rouse(now, s, air);
            self.stay_awake(now, s);
            return Some(frame);
        }
        let dozer = &mut power.dozers[frame.to.index()];
        if dozer.open {
            return Some(frame);
        }
        if dozer.buffered.len() < power.config.buffer as usize {
            dozer.buffered.push_back(Job::new(Sending::Frame(frame)));
        } else {
            let (station, to, acked) = (frame.from, frame.to, Some(false));
            air.outcome(Outcome::Failed { frame, cause: Cause::PowerSaveFull, delivered: false });
            air.outcome(Outcome::Done { station, to, acked });
        }
        None
    }

    /// Queues `content`, a power-saving frame of station `s`, unless the same one is pending.
    fn say(&mut self, now: Time, s: usize, content: Sending) {
        let node = &mut self.stations[s];
        let kind = core::mem::discriminant(&content);
        let same = |job: &&mut Job| core::mem::discriminant(&job.content) == kind;
        if let Some(job) = node.job.iter_mut().chain(&mut node.next).find(same) {
            if !node.phase.is_sent() {
                job.content = content;
            }
        } else {
            node.next.push_back(Job::new(content));
            self.advance(now, s);
        }
    }

    /// Cancels the poll of station `s`.
    fn hush(&mut self, now: Time, s: usize) {
        let node = &mut self.stations[s];
        node.next.retain(|job| !matches!(job.content, Sending::PsPoll));
        let polls = matches!(&node.job, Some(Job { content: Sending::PsPoll, .. }));
        if polls && !node.phase.is_sent() {
            node.job = None;
            self.advance(now, s);
        }
    }

    /// Wakes the radio of station `s` if it sleeps.
    fn rouse(&mut self, now: Time, s: usize, air: &mut dyn Air) {
        if !self.ether.is_asleep(s) {
            return;
        }
        self.ether.wake(now, s);
        let node = &mut self.stations[s];
        node.unreadable = false;
        // The station has not heard earlier transmissions.
        node.drawn = node.drawn.max(now + self.phy.difs);
        air.outcome(Outcome::Doze { station: Station(s as u8), asleep: false });
    }

    /// Puts the radio of station `s` to sleep. An unfinished backoff continues when it wakes.
    fn doze(&mut self, now: Time, s: usize, air: &mut dyn Air) {
        self.busy(now, s);
        self.ether.sleep(s);
        air.outcome(Outcome::Doze { station: Station(s as u8), asleep: true });
    }

    /// Whether station `s` has no reason to stay awake.
    fn may_rest(&self, s: usize) -> bool {
        let Some(power) = &self.power else { return false };
        let (dozer, node) = (&power.dozers[s], &self.stations[s]);
        let engaged = node.phase != Phase::Contend || node.job.is_some() || !node.next.is_empty();
        let awake = dozer.listens || dozer.fetches || dozer.active_until.is_some();
        !engaged && !awake && !self.ether.is_asleep(s)
    }

    /// Restarts the timeout of station `s`, if any, after a frame from it or for it.
    fn stay_awake(&mut self, now: Time, s: usize) {
        if let Some(power) = &mut self.power
            && let Some(timeout) = power.config.timeout
        {
            power.dozers[s].active_until = Some(now + timeout);
        }
    }

    /// Sends a management frame.
    pub(super) fn send_management(&mut self, now: Time, s: usize, air: &mut dyn Air) {
        let Some(job) = &self.stations[s].job else { return };
        let count = self.stations.len() as u32;
        let (to, kind, bytes) = match job.content {
            Sending::Frame(_) | Sending::Aggregate(_) => return,
            Sending::Beacon => (Station::ALL, FrameKind::Beacon, BEACON + count / 8 + 1),
            Sending::PsPoll => (Station::BASE, FrameKind::PsPoll, PS_POLL),
            Sending::Null { .. } => (Station::BASE, FrameKind::Null, NULL),
        };
        let airtime = self.phy.control_time(bytes);
        let claim = self.phy.sifs + self.phy.propagation + self.ack_time;
        if to != Station::ALL {
            self.send(now, s, to, kind, bytes, airtime, claim, air);
            self.stations[s].phase = Phase::AwaitAck;
            self.timers[s] = now + airtime + self.timeout(self.ack_time);
            return;
        }
        if let Some(power) = &mut self.power {
            let dozers = power.dozers.iter();
            power.tim = dozers.map(|d| d.answering || !d.open && !d.buffered.is_empty()).collect();
        }
        self.send(now, s, to, kind, bytes, airtime, Span::ZERO, air);
        self.stations[s].phase = Phase::Broadcasting;
        self.timers[s] = now + airtime;
    }

    /// Station `s` has received a complete beacon.
    pub(super) fn beacon_read(
        &mut self,
        now: Time,
        s: usize,
        reception: &Reception,
        air: &mut dyn Air,
    ) {
        let Flight { from, kind, bytes, start, airtime, .. } = reception.flight;
        if air.damages(from, Station(s as u8), kind, bytes, start, airtime) {
            return;
        }
        let Some(power) = &mut self.power else { return };
        let polls = power.config.timeout.is_none();
        let (named, several) = (power.tim[s], power.tim.iter().filter(|named| **named).count() > 1);
        power.dozers[s].listens = false;
        power.dozers[s].fetches = named;
        if !named {
            return self.hush(now, s);
        }
        // Stations that are listed together do not poll at the same time.
        if several && self.stations[s].slots.is_none() {
            self.draw(now, s);
        }
        if polls {
            self.say(now, s, Sending::PsPoll);
        } else {
            self.stay_awake(now, s);
            self.say(now, s, Sending::Null { sleeps: false });
        }
    }

    /// The access point has read a poll or a frame without data of station `from`.
    pub(super) fn management_read(&mut self, now: Time, from: Station) {
        let s = from.index();
        let Some(Job { content, .. }) = &self.stations[s].job else { return };
        match content {
            Sending::PsPoll => self.answer_poll(now, s),
            Sending::Null { sleeps: false } => self.open(now, s),
            Sending::Null { sleeps: true } => self.close(s),
            Sending::Frame(_) | Sending::Aggregate(_) | Sending::Beacon => {}
        }
    }

    /// Handles a poll of station `s`: one frame is sent, unless one is in transmission.
    fn answer_poll(&mut self, now: Time, s: usize) {
        let Some(power) = &mut self.power else { return };
        let dozer = &mut power.dozers[s];
        if dozer.answering {
            return;
        }
        let Some(job) = dozer.buffered.pop_front() else { return };
        dozer.answering = true;
        self.stations[0].next.push_back(job);
        self.advance(now, 0);
    }

    /// Station `s` has announced that it is awake.
    fn open(&mut self, now: Time, s: usize) {
        let Some(power) = &mut self.power else { return };
        let dozer = &mut power.dozers[s];
        dozer.open = true;
        self.stations[0].next.extend(dozer.buffered.drain(..));
        self.advance(now, 0);
    }

    /// Station `s` will sleep: its pending frames return to the buffer.
    fn close(&mut self, s: usize) {
        let Some(power) = &mut self.power else { return };
        let dozer = &mut power.dozers[s];
        dozer.open = false;
        let node = &mut self.stations[0];
        let mine = |job: &Job| job.frame().is_some_and(|frame| frame.to.index() == s);
        let waiting = node.job.take_if(|job| mine(job)).into_iter().chain(node.next.drain(..));
        let (mut buffered, rest): (VecDeque<Job>, VecDeque<Job>) = waiting.partition(mine);
        node.next = rest;
        // The station may announce it twice: later frames follow.
        buffered.append(&mut dozer.buffered);
        dozer.buffered = buffered;
    }

    /// Station `s` has read a frame of the link layer from `from`.
    pub(super) fn frame_read(&mut self, now: Time, s: usize, from: Station) {
        let Some(power) = &mut self.power else { return };
        let polls = power.config.timeout.is_none();
        if s == Station::BASE.index() {
            // The sender is awake, if its frames state that.
            if !polls {
                self.open(now, from.index());
            }
            return;
        }
        let more = self.stations[from.index()].job.as_ref().is_some_and(|job| job.more);
        power.dozers[s].fetches = polls && more;
        self.stay_awake(now, s);
        if polls && more {
            self.say(now, s, Sending::PsPoll);
        } else if polls {
            self.hush(now, s);
        }
    }

    /// The frame `content` of station `s` is finished.
    pub(super) fn job_ended(&mut self, now: Time, s: usize, content: &Sending, acked: bool) {
        let Some(power) = &mut self.power else { return };
        match content {
            Sending::Frame(frame) if s == Station::BASE.index() => {
                power.dozers[frame.to.index()].answering = false;
            }
            Sending::Frame(_) => self.stay_awake(now, s),
            // It has been received, or it will be repeated.
            Sending::Null { sleeps } => {
                let dozer = &mut power.dozers[s];
                dozer.fetches = false;
                if *sleeps && acked {
                    dozer.active_until = None;
                } else {
                    self.stay_awake(now, s);
                }
            }
            // A frame is on its way, or the next beacon shows an empty buffer.
            Sending::PsPoll => power.dozers[s].fetches |= acked,
            Sending::Beacon | Sending::Aggregate(_) => {}
        }
    }
}
