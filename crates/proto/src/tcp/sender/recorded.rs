//! A sender that keeps a record of each segment: what it makes of ACKs and timers, and what it sends next.

use crate::event::{Cause, TcpKind};
use crate::units::Time;

use super::growth::{Acked, Growth, Loss, Sample};
use super::recovery::Recovery;
use super::tlp::Probed;
use super::variant::AnyRecovery;
use super::{AckInfo, Chunk, Sender, Verdict};

impl Sender {
    /// An acknowledgement that is not beyond what was sent; the peer's window has been taken in.
    pub(super) fn on_recorded_ack(&mut self, now: Time, info: &AckInfo<'_>) -> Verdict {
        let notified = info.lost.is_some_and(|lost| self.notify(now, lost));
        let AnyRecovery::Rack(rack) = &mut self.recovery else { return None };
        let w = &mut self.window;
        if info.ack < w.una {
            return None;
        }
        let moved = info.ack > w.una;
        let acked = (info.ack - w.una) as u32;
        let pipe_before = rack.flight.pipe();
        let was_repairing = rack.active();
        let news = rack.hear(now, w, info.ack, info.sacked, info.echoed);
        let measured = news.oldest.map(|rtt| Time(now.0.saturating_sub(rtt.0)));
        if let Some(sent) = measured.or(info.echoed.filter(|_| moved)) {
            self.rtt.sample(sent, now);
        }
        if let (Some(pacer), Some(rtt)) = (&mut self.pacer, news.rtt) {
            pacer.sample(rtt);
        }
        if moved {
            w.una = info.ack;
            w.nxt = w.nxt.max(info.ack);
            self.dupacks = 0;
            self.ackp_run = 0;
            self.notices = 0;
            self.retries = 0;
            self.notified.retain(|position| *position >= info.ack);
            if rack.probe.due.is_some() && w.una >= w.nxt {
                rack.probe.cancel();
            }
        } else if news.reported {
            self.dupacks += 1;
        }
        let mut verdict = match (notified, moved) {
            (true, _) => Some(TcpKind::LossNotified),
            (_, true) => Some(TcpKind::Acked),
            _ => news.reported.then_some(TcpKind::DupAck),
        };
        let mut grows = moved && !rack.active();
        if rack.active() && rack.over(w) {
            rack.leave();
            verdict = Some(TcpKind::RecoveryEnded);
            if !self.growth.steers() {
                w.cwnd = w.ssthresh;
            }
        }
        let repeats = !moved && !news.reported && !info.carries;
        if rack.probe.on_ack(info.ack, news.duplicate, repeats) == Probed::Repaired
            && !rack.active()
        {
            w.ssthresh = self.growth.after_loss(now, w, Loss::Detected);
            if !self.growth.steers() {
                w.cwnd = w.ssthresh;
            }
            grows = false;
        }
        let lost = rack.detect(now, w, self.rtt.srtt());
        if lost > 0 && rack.may_enter(w) {
            w.ssthresh = self.growth.after_loss(now, w, Loss::Detected);
            rack.enter(w, self.dupacks);
            self.rexmt_at = Some(self.rtt.deadline(now, 1));
            verdict = Some(TcpKind::FastRetransmit);
            grows = false;
        }
        let rate = rack.flight.meter.sample(rack.min_rtt());
        if self.growth.steers() {
            let sample = Sample {
                now,
                delivered: news.delivered as u32,
                lost: lost as u32,
                pipe: (pipe_before, rack.flight.pipe()),
                rtt: news.rtt,
                rate,
                total: rack.flight.meter.total(),
                repair: rack.repair(w),
            };
            self.growth.on_sample(w, &sample);
        } else if rack.active() {
            if news.delivered > 0 || !was_repairing {
                rack.reduce(w, news.delivered);
            }
        } else if grows && rack.may_grow(w) {
            self.growth.on_ack(w, &Acked { now, bytes: acked, rtt: news.rtt });
        }
        if w.una >= w.last() {
            self.persist_at = None;
        }
        if w.una >= w.max {
            self.rexmt_at = None;
            rack.probe.cancel();
        } else if moved && self.persist_at.is_none() {
            self.rexmt_at = Some(self.rtt.deadline(now, 1));
            self.schedule_probe(now);
        } else if news.reported {
            // A probe is for when nothing comes back.
            rack.probe.cancel();
        }
        if self.rexmt_at.is_none() && self.persist_at.is_none() && self.window.una < self.window.nxt
        {
            self.rexmt_at = Some(self.rtt.deadline(now, 1));
        }
        verdict
    }

    /// Sets the timer of the tail loss probe, where one is of use.
    //= rfc8985#section-7.2: not while a loss is being repaired or segments are reported
    fn schedule_probe(&mut self, now: Time) {
        let AnyRecovery::Rack(rack) = &mut self.recovery else { return };
        let (w, Some(rto)) = (&self.window, self.rexmt_at) else { return };
        let flight = &rack.flight;
        let calm = !rack.active() && !rack.after_timeout(w) && flight.lost() == 0;
        if calm && flight.sacked_segments() == 0 && !flight.is_empty() && self.rtt.backoff() == 0 {
            rack.probe.schedule(now, self.rtt.srtt(), flight.segments(), rto);
        } else {
            rack.probe.cancel();
        }
    }

    /// A timer of the recovery may have expired. `None` if it was not one of those.
    pub(super) fn on_recorded_wake(&mut self, now: Time) -> Option<Verdict> {
        let AnyRecovery::Rack(rack) = &mut self.recovery else { return None };
        let w = &mut self.window;
        if rack.probe.expired(now) {
            //= rfc8985#section-7.3: the retransmission timer starts again with the probe
            self.rexmt_at = Some(self.rtt.deadline(now, 1));
            return Some(Some(TcpKind::TailLossProbe));
        }
        if rack.reorder_at.is_some_and(|at| at <= now) {
            let lost = rack.detect(now, w, self.rtt.srtt());
            let enters = lost > 0 && rack.may_enter(w);
            if enters {
                w.ssthresh = self.growth.after_loss(now, w, Loss::Detected);
                rack.enter(w, self.dupacks);
                self.rexmt_at = Some(self.rtt.deadline(now, 1));
            }
            if self.growth.steers() {
                let sample = Sample {
                    now,
                    delivered: 0,
                    lost: lost as u32,
                    pipe: (rack.flight.pipe() + lost, rack.flight.pipe()),
                    rtt: None,
                    rate: None,
                    total: rack.flight.meter.total(),
                    repair: rack.repair(w),
                };
                self.growth.on_sample(w, &sample);
            } else if rack.active() {
                rack.reduce(w, 0);
            }
            return Some(enters.then_some(TcpKind::FastRetransmit));
        }
        None
    }

    /// The next piece to send: what is lost first, then what is new.
    pub(super) fn choose_recorded(&mut self, now: Time) -> Option<Chunk> {
        let AnyRecovery::Rack(rack) = &mut self.recovery else { return None };
        let w = &mut self.window;
        if let Some((position, cause)) = w.repair.take() {
            if position >= w.una && position < w.nxt {
                return Some(w.chunk_at(position, cause));
            }
        }
        if self.probe_now {
            self.probe_now = false;
            if let Some(probe) = w.probe() {
                if probe.cause == Cause::WindowProbe {
                    let factor = 1 << self.persist_backoff;
                    self.persist_at = Some(self.rtt.deadline(now, factor));
                }
                return Some(probe);
            }
        }
        if rack.probe.now {
            rack.probe.now = false;
            //= rfc8985#section-7.3: new data if there is some, else the last segment again
            let congestion = core::mem::replace(&mut w.cwnd, u32::MAX);
            let new = if rack.flight.is_full() { None } else { w.next_chunk() };
            w.cwnd = congestion;
            if let Some(new) = new {
                rack.probe.sent(new.from + u64::from(new.len) + u64::from(new.fin), false);
                return Some(new);
            }
            if let Some((from, to)) = rack.flight.last().map(|r| (r.from, r.to)) {
                rack.probe.sent(w.nxt, true);
                return Some(piece(w.chunk_at(from, Cause::TailLossProbe), to));
            }
        }
        let pipe = rack.flight.pipe();
        // What is lost goes out again as far as the peer's window allows, should it have been taken back.
        if rack.flight.lost() > 0 && w.peer > 0 {
            let limit = w.una + u64::from(w.peer);
            if let Some((from, to)) = rack.flight.next_lost(limit) {
                if pipe > 0 && pipe + (to - from) > u64::from(w.cwnd) {
                    rack.note_limit(w, true);
                    return None;
                }
                let cause = match rack.after_timeout(w) {
                    true => Cause::TimeoutRetransmit,
                    false => Cause::FastRetransmit,
                };
                return Some(piece(w.chunk_at(from, cause), to));
            }
        }
        let chunk = if rack.flight.is_full() { None } else { new_data(w, pipe) };
        if chunk.is_some() {
            return chunk;
        }
        let unsent = w.nxt < w.last();
        let full = pipe + u64::from(w.mss) > u64::from(w.cwnd);
        rack.note_limit(w, unsent && full);
        if !unsent && !full && rack.flight.lost() == 0 {
            rack.flight.meter.app_limited(pipe);
        }
        //= rfc9293#section-3.8.6: a sender must be robust against a window that shrinks
        let blocked = (w.nxt == w.una && unsent && (w.una == w.max || w.peer == 0))
            || (w.peer == 0 && rack.flight.lost() > 0);
        if blocked && (self.rexmt_at.is_none() || w.peer == 0) && self.persist_at.is_none() {
            self.rexmt_at = None;
            rack.probe.cancel();
            self.persist_at = Some(self.rtt.deadline(now, 1));
        } else if w.una < w.nxt && self.rexmt_at.is_none() && self.persist_at.is_none() {
            // Whatever is outstanding has a timer.
            self.rexmt_at = Some(self.rtt.deadline(now, 1));
        }
        None
    }

    /// Keeps a record of a segment that leaves now, up to the position `end`.
    pub(super) fn record(&mut self, now: Time, chunk: &Chunk, end: u64) {
        let AnyRecovery::Rack(rack) = &mut self.recovery else { return };
        let w = &self.window;
        if chunk.cause == Cause::WindowProbe || chunk.from == 0 {
            return;
        }
        if rack.flight.is_empty() {
            self.growth.restart(now, rack.flight.meter.is_app_limited());
        }
        if rack.active() {
            rack.prr.sent(end - chunk.from);
        }
        let new = rack.flight.last().is_none_or(|last| end > last.to);
        rack.flight.sent(now, chunk.from, end);
        if new {
            self.schedule_probe(now);
        } else if chunk.from == w.una {
            self.rexmt_at = Some(self.rtt.deadline(now, 1));
        }
    }
}

/// The part of `chunk` below the position `to`, where its record ends.
fn piece(mut chunk: Chunk, to: u64) -> Chunk {
    chunk.len = chunk.len.min(to.saturating_sub(chunk.from) as u32);
    chunk.fin &= chunk.from + u64::from(chunk.len) < to;
    chunk
}

/// New data with `pipe` bytes in the network: the congestion window speaks of those, the other windows of positions.
fn new_data(w: &mut super::Window, pipe: u64) -> Option<Chunk> {
    let congestion = w.cwnd;
    let room = u64::from(congestion).saturating_sub(pipe);
    w.cwnd = (w.nxt - w.una + room).min(u32::MAX.into()) as u32;
    let chunk = w.next_chunk();
    w.cwnd = congestion;
    chunk
}
