//! RACK-TLP (RFC 8985): a segment is lost when one that was sent sufficiently later has arrived. Time takes the
//! place of counting duplicate ACKs, so lost retransmissions are noticed too.
//!
//! Recovery sends by proportional rate reduction (RFC 6937), a probe finds losses at the tail. Not modelled: what
//! Linux undoes when a reaction proves spurious (Eifel, F-RTO).

use crate::tcp::config::{Clock, TcpConfig};
use crate::units::{Span, Time};

use super::Window;
use super::flight::{Flight, Judgement, Sent};
use super::growth::Repair;
use super::prr::{Heard, Prr};
use super::recovery::{Progress, Recovery};
use super::tlp::TailProbe;

/// Recoveries for which a wider reordering window is kept.
const PERSIST: u32 = 16;

/// How long to wait for what may only be reordered.
#[derive(Clone, Debug)]
struct Reordering {
    /// The window is so many quarters of the shortest round trip.
    quarters: u64,
    /// Recoveries until it is one quarter again.
    persist: u32,
    /// Reports of duplicates count again once this is acknowledged.
    round: Option<u64>,
    /// Whether a segment that was sent once has arrived after later ones.
    seen: bool,
}

/// Loss detection by time, and recovery.
#[derive(Clone, Debug)]
pub struct Rack {
    /// What is in flight.
    pub flight: Flight,
    /// The tail loss probe.
    pub probe: TailProbe,
    /// Decides how much is sent in recovery.
    pub prr: Prr,
    /// When segments that may be reordered will count as lost.
    pub reorder_at: Option<Time>,
    /// The segment that was sent last among those that arrived: when, and one past its end.
    newest: (Time, u64),
    /// Its round trip.
    rtt: Span,
    /// The shortest round trip of the connection.
    min_rtt: Option<Span>,
    reordering: Reordering,
    /// One past the highest position that arrived.
    highest: u64,
    active: bool,
    /// One past the highest position sent when recovery began, or when the timer expired.
    recover: u64,
    /// Timestamps count in this unit.
    tick: Span,
    /// Whether the last thing sent was stopped by the congestion window.
    limited: bool,
    /// The most that was outstanding in this round trip, and where the round trip ends.
    most: (u64, u64),
}

/// What an ACK told about segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct News {
    /// Bytes newly acknowledged or reported.
    pub delivered: u64,
    /// Whether anything was reported.
    pub reported: bool,
    /// Round trip of the oldest segment that was sent once: a delayed ACK is part of it.
    pub oldest: Option<Span>,
    /// Round trip of the newest one.
    pub rtt: Option<Span>,
    /// The receiver got a segment twice.
    pub duplicate: bool,
}

impl Rack {
    /// Nothing is in flight.
    pub fn new(config: &TcpConfig) -> Rack {
        Rack {
            flight: Flight::default(),
            probe: TailProbe::default(),
            prr: Prr::default(),
            reorder_at: None,
            newest: (Time::ZERO, 0),
            rtt: Span::ZERO,
            min_rtt: None,
            reordering: Reordering { quarters: 1, persist: 0, round: None, seen: false },
            highest: 0,
            active: false,
            recover: 0,
            tick: match config.clock {
                Clock::Fine { granularity } => granularity.max(Span::millis(1)),
                Clock::Ticks { slow, .. } => slow,
            },
            limited: false,
            most: (0, 0),
        }
    }

    /// The shortest round trip so far; zero before the first.
    pub fn min_rtt(&self) -> Span {
        self.min_rtt.unwrap_or(Span::ZERO)
    }

    /// Whether the timer has expired and what was outstanding then is not acknowledged.
    pub fn after_timeout(&self, w: &Window) -> bool {
        !self.active && w.una < self.recover
    }

    /// Whether a loss is being repaired.
    pub fn repair(&self, w: &Window) -> Repair {
        match (self.active, w.una < self.recover) {
            (true, _) => Repair::Recovery,
            (_, true) => Repair::Timeout,
            _ => Repair::None,
        }
    }

    /// Takes in what an ACK says about segments: `ack` and the SACK blocks; `echoed` is when the segment was sent
    /// that brought it forth.
    //= rfc8985#section-6.2: steps 1 to 3
    pub fn hear(
        &mut self,
        now: Time,
        w: &Window,
        ack: u64,
        blocks: &[(u64, u64)],
        echoed: Option<Time>,
    ) -> News {
        let before = self.flight.meter.total();
        let mut news = News { duplicate: is_duplicate(ack, blocks), ..News::default() };
        let mut arrived = Arrived { now, echoed, rack: Facts::of(self), news: &mut news };
        self.flight.acknowledge(now, ack, |sent| arrived.take(sent));
        let mut reported = false;
        // Lowest first, or several new blocks in one ACK would look like reordering.
        let mut blocks: [(u64, u64); 4] =
            core::array::from_fn(|i| blocks.get(i).copied().unwrap_or_default());
        blocks.sort_unstable();
        for (from, to) in blocks {
            if to > from && from >= ack && to <= w.nxt {
                reported |= self.flight.report(now, from, to, |sent| arrived.take(sent));
            }
        }
        arrived.rack.tell(self);
        news.reported = reported;
        news.delivered = self.flight.meter.total() - before;
        self.adapt(w, ack, news.duplicate);
        news
    }

    /// The reordering window widens with each round trip in which a retransmission proved needless.
    //= rfc8985#section-6.2: step 4: RACK_update_reo_wnd
    fn adapt(&mut self, w: &Window, ack: u64, duplicate: bool) {
        let r = &mut self.reordering;
        if r.round.is_some_and(|round| ack >= round) {
            r.round = None;
        }
        if duplicate && r.round.is_none() {
            r.round = Some(w.nxt);
            r.quarters += 1;
            r.persist = PERSIST;
        }
    }

    /// Whether all that was outstanding when recovery began is acknowledged.
    pub fn over(&self, w: &Window) -> bool {
        w.una >= self.recover
    }

    /// A recovery is over, by an ACK of all that was outstanding when it began.
    pub fn leave(&mut self) {
        self.active = false;
        let r = &mut self.reordering;
        r.persist = r.persist.saturating_sub(1);
        if r.persist == 0 {
            r.quarters = 1;
        }
    }

    /// How much earlier than one that arrived a segment must have been sent to be lost.
    fn reordering_window(&self, w: &Window, srtt: Span) -> Span {
        let r = &self.reordering;
        //= rfc8985#section-6.2: no waiting before reordering is seen, once a loss is likely
        let likely = w.una < self.recover || self.flight.sacked_segments() >= 3;
        if !r.seen && likely {
            return Span::ZERO;
        }
        (self.min_rtt() * r.quarters / 4).min(srtt)
    }

    /// Marks what is lost, and sets the timer for what may be. Returns how many bytes are newly lost.
    //= rfc8985#section-6.2: step 5: RACK_detect_loss
    pub fn detect(&mut self, now: Time, w: &Window, srtt: Span) -> u64 {
        self.reorder_at = None;
        if self.newest.1 == 0 {
            return 0;
        }
        let patience = self.rtt + self.reordering_window(w, srtt);
        let (newest, mut latest) = (self.newest, None);
        let lost = self.flight.judge(|sent| {
            //= rfc8985#section-6.2: RACK_sent_after
            if (sent.at, sent.to) >= newest {
                return Judgement::Later;
            }
            let due = sent.at + patience;
            if due <= now {
                return Judgement::Lost;
            }
            latest = latest.max(Some(due));
            Judgement::Wait
        });
        self.reorder_at = latest;
        lost
    }

    /// Brings the window down in step with `delivered` bytes that have arrived.
    pub fn reduce(&mut self, w: &mut Window, delivered: u64) {
        let (pipe, ssthresh, mss) = (self.flight.pipe(), w.ssthresh.into(), w.mss.into());
        let heard = Heard { delivered, pipe, ssthresh, mss };
        w.cwnd = self.prr.window(&heard).min(u32::MAX.into()) as u32;
    }

    /// Whether more would be sent if the congestion window allowed it; remembered for the growth of the window.
    pub fn note_limit(&mut self, w: &Window, by_window: bool) {
        let out = w.nxt - w.una;
        if w.una >= self.most.1 || by_window || (!self.limited && out > self.most.0) {
            self.limited = by_window;
            self.most = (out, w.nxt);
        }
    }

    /// Whether the window has been used, so that it may grow.
    //= rfc7661: a window that is not used says nothing about the path; the rule is Linux' tcp_is_cwnd_limited
    pub fn may_grow(&self, w: &Window) -> bool {
        self.limited || (w.cwnd < w.ssthresh && u64::from(w.cwnd) < 2 * self.most.0)
    }
}

/// Whether the first block reports a segment that came twice.
//= rfc2883#section-4: it lies below the acknowledged position, or within the second block
fn is_duplicate(ack: u64, blocks: &[(u64, u64)]) -> bool {
    match blocks {
        [first, ..] if first.0 < ack && first.1 <= ack => first.0 < first.1,
        [first, second, ..] => first.0 >= second.0 && first.1 <= second.1,
        _ => false,
    }
}

/// What RACK knows while the segments of an ACK are taken in.
struct Facts {
    newest: (Time, u64),
    rtt: Span,
    min_rtt: Option<Span>,
    highest: u64,
    reordered: bool,
    tick: Span,
}

impl Facts {
    fn of(rack: &Rack) -> Facts {
        Facts {
            newest: rack.newest,
            rtt: rack.rtt,
            min_rtt: rack.min_rtt,
            highest: rack.highest,
            reordered: rack.reordering.seen,
            tick: rack.tick,
        }
    }

    fn tell(self, rack: &mut Rack) {
        rack.newest = self.newest;
        rack.rtt = self.rtt;
        rack.min_rtt = self.min_rtt;
        rack.highest = self.highest;
        rack.reordering.seen = self.reordered;
    }
}

/// Takes in the segments of one ACK.
struct Arrived<'a> {
    now: Time,
    echoed: Option<Time>,
    rack: Facts,
    news: &'a mut News,
}

impl Arrived<'_> {
    fn take(&mut self, sent: &Sent) {
        let rack = &mut self.rack;
        let rtt = self.now.since(sent.at);
        if sent.again {
            //= rfc8985#section-6.2: step 2: which transmission arrived? The echo tells, or the time that it took
            let older = self.echoed.is_some_and(|echoed| echoed + rack.tick <= sent.at);
            if older || rack.min_rtt.is_some_and(|min| rtt < min) {
                return;
            }
        } else {
            rack.min_rtt = Some(rack.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.news.oldest = self.news.oldest.max(Some(rtt));
            self.news.rtt = Some(self.news.rtt.map_or(rtt, |least| least.min(rtt)));
            //= rfc8985#section-6.2: step 3: sent once, and arrived after later positions
            rack.reordered |= sent.to < rack.highest;
        }
        rack.highest = rack.highest.max(sent.to);
        if (sent.at, sent.to) > rack.newest {
            rack.newest = (sent.at, sent.to);
            rack.rtt = rtt;
        }
    }
}

impl Recovery for Rack {
    fn active(&self) -> bool {
        self.active
    }
    fn may_enter(&self, w: &Window) -> bool {
        !self.active && w.una >= self.recover
    }
    fn enter(&mut self, w: &mut Window, _: u32) {
        self.active = true;
        self.recover = w.nxt;
        self.prr = Prr::new(w.nxt - w.una);
        self.probe.cancel();
    }
    fn on_dup_ack(&mut self, _: &mut Window) {}
    fn on_ack(&mut self, w: &mut Window, _: u32) -> Progress {
        if w.una < self.recover { Progress::Partial { rearm: true } } else { Progress::Over }
    }
    fn on_timeout(&mut self, w: &mut Window) {
        self.active = false;
        self.recover = w.nxt;
        self.probe.reset();
        self.reorder_at = None;
    }
    //= rfc8985#section-6.3: RACK_mark_losses_on_RTO
    fn expired(&mut self, now: Time, w: &mut Window, srtt: Span) {
        let patience = self.rtt + self.reordering_window(w, srtt);
        self.flight.expire(|sent| sent.at + patience <= now);
        self.on_timeout(w);
    }
    fn selective(&self) -> bool {
        true
    }
    fn has_work(&self) -> bool {
        self.active || self.flight.lost() > 0 || self.probe.now
    }
    fn next_wake(&self) -> Option<Time> {
        [self.reorder_at, self.probe.due].into_iter().flatten().min()
    }
    fn stop(&mut self) {
        self.probe.reset();
        self.reorder_at = None;
    }
}
