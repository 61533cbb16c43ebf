//! Aggregates of frames (A-MPDU) with block acknowledgements (IEEE 802.11-2020, 9.7, 10.25).
//!
//! One access sends the frames for one station, within a number of bytes, a window of frames, and 5.484 ms. The
//! channel damages each frame separately. The block acknowledgement names the received ones; the others are
//! the first of the next aggregate, up to the retry limit. The receiver releases frames in order. A frame that
//! the sender gives up no longer holds back later ones.
//!
//! After a missed block acknowledgement the whole aggregate is sent again, without a request for the
//! acknowledgement.

use std::collections::VecDeque;

use super::super::ofdm::{LONGEST, Ofdm};
use super::super::{Air, Outcome};
use super::{Dcf, Job, Phase, Reception, Sending};
use crate::air::{FrameKind, Station};
use crate::event::Cause;
use crate::link::frame::Frame;
use crate::link::in_order::{Accepted, InOrder};
use crate::units::{Span, Time};

/// A frame that is not acknowledged.
#[derive(Clone, Debug)]
struct Mpdu {
    frame: Frame,
    number: u64,
    tries: u32,
    /// Whether the receiver has it.
    received: bool,
}

/// Frames from one station to another.
#[derive(Clone, Debug)]
struct Flow {
    /// Unacknowledged frames; the first `sent` are in the present aggregate.
    pending: VecDeque<Mpdu>,
    sent: usize,
    octets: u32,
    next_number: u64,
    /// Buffer of the receiver.
    buffer: InOrder<Frame>,
}

/// State that aggregates add to a medium.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    /// Limit of an aggregate, bytes.
    limit: u32,
    window: u64,
    /// Length and time of a block acknowledgement.
    block_ack: (u32, Span),
    stations: usize,
    /// By sender and receiver.
    flows: Vec<Flow>,
}

/// The aggregate that a station sends.
pub(super) struct Present {
    pub sent: usize,
    /// Time of its acknowledgement.
    pub block_ack: Span,
}

impl Aggregation {
    pub fn new(config: &super::AggregateConfig, window: u16, stations: u8) -> Aggregation {
        let stations = usize::from(stations);
        let flow = || Flow {
            pending: VecDeque::new(),
            sent: 0,
            octets: 0,
            next_number: 0,
            buffer: InOrder::new(config.order, u64::from(window)),
        };
        let length = Ofdm::block_ack(window);
        Aggregation {
            limit: config.bytes,
            window: window.into(),
            block_ack: (length, Ofdm::control(length)),
            stations,
            flows: (0..stations * stations).map(|_| flow()).collect(),
        }
    }

    fn flow(&mut self, s: usize, to: Station) -> &mut Flow {
        let i = s * self.stations + to.index();
        &mut self.flows[i]
    }
}

impl Dcf {
    /// Length and time of a block acknowledgement.
    pub(super) fn block_ack(&self) -> (u32, Span) {
        self.aggregation.as_ref().map_or((self.phy.ack, self.ack_time), |a| a.block_ack)
    }

    /// The aggregate of station `s`, if it sends one.
    pub(super) fn aggregate_of(&self, s: usize) -> Option<Present> {
        let aggregation = self.aggregation.as_ref()?;
        let Sending::Aggregate(to) = self.stations[s].job.as_ref()?.content else { return None };
        let flow = &aggregation.flows[s * aggregation.stations + to.index()];
        Some(Present { sent: flow.sent, block_ack: aggregation.block_ack.1 })
    }

    /// Accepts a frame of the link layer.
    pub(super) fn enqueue(&mut self, now: Time, frame: Frame) {
        let (s, to) = (frame.from.index(), frame.to);
        let Some(aggregation) = &mut self.aggregation else { return };
        aggregation.flow(s, to).push(frame);
        self.stations[s].polled = true;
        self.queue_job(s, to);
        self.advance(now, s);
    }

    /// Queues an aggregate for `to`, unless there is one.
    fn queue_job(&mut self, s: usize, to: Station) {
        let node = &mut self.stations[s];
        let mut jobs = node.job.iter().chain(&node.next);
        if !jobs.any(|job| matches!(job.content, Sending::Aggregate(other) if other == to)) {
            node.next.push_back(Job::new(Sending::Aggregate(to)));
        }
    }

    /// Chooses the frames of an aggregate. Returns its time on the air and its length.
    pub(super) fn gather(&mut self, s: usize, to: Station, air: &mut dyn Air) -> (Span, u32) {
        let header = self.phy.header;
        let own = self.own.get(s.max(to.index())).and_then(|own| own.mcs);
        let (Some(aggregation), Some(ofdm)) = (&mut self.aggregation, &self.phy.ofdm) else {
            return (Span::ZERO, 0);
        };
        let mcs = own.unwrap_or(ofdm.mcs);
        let (limit, window) = (aggregation.limit, aggregation.window);
        let flow = aggregation.flow(s, to);
        let first = flow.pending.front().map_or(flow.next_number, |mpdu| mpdu.number);
        let (mut octets, mut single, mut sent) = (0, 0, 0);
        loop {
            if sent == flow.pending.len() {
                if flow.next_number - first >= window {
                    break;
                }
                match air.more(Station(s as u8), to) {
                    Some(frame) => flow.push(frame),
                    None => break,
                }
            }
            let mpdu = &flow.pending[sent];
            let length = mpdu.frame.bytes + header;
            let joined = Ofdm::joined(octets, length);
            let fits = joined <= limit && ofdm.frame(mcs, joined) <= LONGEST;
            if mpdu.number - first >= window || sent > 0 && !fits {
                break;
            }
            (octets, single, sent) = (joined, ofdm.single(length), sent + 1);
        }
        flow.sent = sent;
        flow.octets = if sent == 1 { single } else { octets };
        (ofdm.frame(mcs, flow.octets), flow.octets)
    }

    /// Sends the chosen aggregate.
    pub(super) fn send_aggregate(&mut self, now: Time, s: usize, to: Station, air: &mut dyn Air) {
        let own = self.own.get(s.max(to.index())).and_then(|own| own.mcs);
        let (Some(aggregation), Some(ofdm)) = (&mut self.aggregation, &self.phy.ofdm) else {
            return;
        };
        let flow = aggregation.flow(s, to);
        let Some(first) = flow.pending.front() else { return };
        self.stations[s].polled = false;
        let (kind, octets) = (first.frame.kind(), flow.octets);
        let airtime = ofdm.frame(own.unwrap_or(ofdm.mcs), octets);
        self.send_data(now, s, to, kind, octets, airtime, air);
    }

    /// Station `s` has received an aggregate: it accepts the intact frames, and answers if there are any.
    pub(super) fn aggregate_read(
        &mut self,
        now: Time,
        s: usize,
        reception: &Reception,
        air: &mut dyn Air,
    ) {
        let (from, to) = (reception.flight.from, Station(s as u8));
        let (mut at, total) = (reception.flight.start, reception.flight.airtime);
        let Some(aggregation) = &mut self.aggregation else { return };
        let flow = aggregation.flow(from.index(), to);
        let (sent, octets) = (flow.sent, flow.octets.max(1));
        let mut any = false;
        for mpdu in flow.pending.iter_mut().take(sent) {
            let bytes = mpdu.frame.bytes;
            let span = Span(total.0 * u64::from(bytes) / u64::from(octets));
            let damaged = air.damages(from, to, mpdu.frame.kind(), bytes, at, span);
            at += span;
            if damaged {
                continue;
            }
            (any, mpdu.received) = (true, true);
            let accepted = flow.buffer.accept(mpdu.number, mpdu.frame.clone());
            if accepted == Accepted::Waits {
                air.waits_for_order(&mpdu.frame);
            }
            while let Some(frame) = flow.buffer.take_next() {
                air.outcome(Outcome::Arrived { frame, intact: true, may_reply: false });
            }
        }
        if any {
            self.stations[s].answers_block = sent > 1;
            self.stations[s].phase = Phase::Answer(FrameKind::MacAck, from, Span::ZERO);
            self.timers[s] = now + self.phy.sifs;
        }
    }

    /// The acknowledgement has arrived: missing frames are the first of the next aggregate.
    pub(super) fn aggregate_acked(&mut self, now: Time, s: usize, to: Station, air: &mut dyn Air) {
        self.settle(s, to, true, air);
        self.finish(now, s, to, true, air);
    }

    /// No acknowledgement or CTS has arrived.
    pub(super) fn aggregate_failed(&mut self, now: Time, s: usize, to: Station, air: &mut dyn Air) {
        if self.settle(s, to, false, air) {
            let node = &mut self.stations[s];
            node.cw = (2 * node.cw + 1).min(self.config.cw_max);
            self.draw(now, s);
        } else {
            self.finish(now, s, to, false, air);
        }
        self.advance(now, s);
    }

    /// Removes frames that are acknowledged or tried too often. Returns whether any of the aggregate remain.
    fn settle(&mut self, s: usize, to: Station, acked: bool, air: &mut dyn Air) -> bool {
        let limit = self.config.short_retries;
        let Some(aggregation) = &mut self.aggregation else { return false };
        let flow = aggregation.flow(s, to);
        let (mut remain, sent) = (VecDeque::new(), flow.sent);
        for mut mpdu in flow.pending.drain(..sent) {
            mpdu.tries += 1;
            if acked && mpdu.received {
                continue;
            }
            if limit.is_none_or(|limit| mpdu.tries < limit) {
                if !mpdu.received {
                    air.repeated(&mpdu.frame, Cause::FrameRepeated);
                }
                remain.push_back(mpdu);
            } else {
                let (frame, delivered) = (mpdu.frame, mpdu.received);
                air.outcome(Outcome::Failed { frame, cause: Cause::RetryLimit, delivered });
            }
        }
        flow.sent = 0;
        let any = !remain.is_empty();
        remain.append(&mut flow.pending);
        flow.pending = remain;
        // The sender moves the window, so nothing waits for frames before it.
        let first = flow.pending.front().map_or(flow.next_number, |mpdu| mpdu.number);
        flow.buffer.give_up_before(first);
        while let Some(frame) = flow.buffer.take_next() {
            air.outcome(Outcome::Arrived { frame, intact: true, may_reply: false });
        }
        any
    }

    /// Ends the access of station `s`.
    fn finish(&mut self, now: Time, s: usize, to: Station, acked: bool, air: &mut dyn Air) {
        self.stations[s].cw = self.config.cw_min;
        self.draw(now, s);
        self.stations[s].job = None;
        let Some(aggregation) = &mut self.aggregation else { return };
        if !aggregation.flow(s, to).pending.is_empty() {
            self.queue_job(s, to);
        }
        let station = Station(s as u8);
        air.outcome(Outcome::Done { station, to, acked: Some(acked) });
    }
}

impl Flow {
    fn push(&mut self, frame: Frame) {
        let number = self.next_number;
        self.next_number += 1;
        self.pending.push_back(Mpdu { frame, number, tries: 0, received: false });
    }
}
