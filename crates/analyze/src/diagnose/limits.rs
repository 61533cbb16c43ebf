//! Limits of a sender: the receiver's window, its application, Nagle's algorithm, its send buffer, or its congestion
//! window.
//!
//! A wait that new data ends at once after an ACK was a wait for this ACK. A wait that ends at another time was a wait for
//! the application, unless the latest segment was full.

use std::collections::VecDeque;

use lasthop_observe::stats::quantile;
use lasthop_proto::units::{Span, Time};

use crate::finding::{Confidence, Diagnosis, Finding};
use crate::over_time::{InFlight, MeasuredBy};
use crate::reading::Direction;

/// Maximum number of stored ACKs on their way from the point of capture to the sender.
const UNDER_WAY: usize = 4096;
/// Minimum number of packets with data for a diagnosis.
const FEWEST: u64 = 20;
/// Minimum number of round trips that can show a queue.
const ENOUGH: usize = 20;
/// Quantiles of round trips: three of four are longer than the first one, one of ten is longer than the second one.
const MOST: f64 = 0.25;
const SOME: f64 = 0.9;
/// With a queue, the quantile exceeds the shortest round trip by this factor, and by this time in seconds.
const LONGER: f64 = 1.5;
const WAIT: f64 = 0.01;

/// Losses at a full link are at most one of this number of segments.
const FEW: u64 = 50;

pub(super) const LINK_IS_FULL: &str = "the link is full: data or its ACKs wait in a queue; neither a larger window nor a larger buffer raises the rate";

/// Maximum time from an ACK to the data that it released, also as a share of the wait, and of the round trip between the
/// point of capture and the sender.
const AT_ONCE: Span = Span::millis(1);
const OF_WAIT: u64 = 4;
const OF_BEHIND: u64 = 8;
/// Minimum number of waits that end at once after an ACK passed here, within this part of the wait. If most waits do, and
/// fewer than half as many end when the ACK can have reached the sender by the handshake, the capture is at the sender.
const NEAR: u64 = 3;
const OF_GAP: u64 = 16;
/// Minimum number of waits that show Nagle's algorithm, and that show a send buffer.
const HELD: u64 = 3;
const BUFFERED: u64 = 20;
/// Minimum share of the waits for ACKs with the same outstanding data that shows a send buffer.
const CONSTANT: f64 = 0.9;

/// Why a sender waits.
#[derive(Clone, Copy, Debug)]
enum Wait {
    ReceiveWindow,
    /// The receive window, while the receive buffer holds much unread data.
    Receiver,
    Application,
    CongestionWindow,
    /// The ACK of retransmitted data, or the timer before its retransmission.
    Repair,
    /// A small segment waits for the ACK of all others (RFC 9293, 3.7.4).
    Nagle,
}

const WAITS: usize = 6;

/// An ACK of new data at the sender.
#[derive(Clone, Copy, Debug)]
struct Freed {
    at: Time,
    /// Outstanding bytes before it.
    flight: i64,
    /// Unacknowledged segments before it that are not full, at most two.
    partial: usize,
}

/// The outstanding data while a sender waits for ACKs: the value that most of the time has, by a majority vote.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    flight: i64,
    votes: f64,
    /// Seconds at this value, and the number of waits.
    held: f64,
    waits: u64,
}

impl Level {
    fn add(&mut self, flight: i64, full: u32, seconds: f64) {
        if (flight - self.flight).abs() <= i64::from(full) {
            self.votes += seconds;
            self.held += seconds;
            self.waits += 1;
        } else if self.votes > seconds {
            self.votes -= seconds;
        } else {
            *self = Level { flight, votes: seconds, held: seconds, waits: 1 };
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Ack {
    /// When it passed here, and when a packet that answers it can pass here.
    passed: Time,
    at: Time,
    ack: i64,
    window: Option<u64>,
    /// The window of a SYN has no scale.
    syn: bool,
    plain: bool,
}

/// Evidence for the point of capture from the waits that end after an ACK of new data passed here.
#[derive(Clone, Copy, Debug, Default)]
struct CapturePoint {
    /// The latest packet with data, and the latest ACK of new data without payload since then.
    data: Time,
    passed: Option<Time>,
    /// Such waits, those that ended at once after the ACK passed here, and those at once after it reached the sender.
    waits: u64,
    here: u64,
    there: u64,
}

impl CapturePoint {
    /// Adds the wait that a packet at `at` ends; the sender has received its latest ACK at `freed`.
    fn add(&mut self, at: Time, freed: Option<Time>) {
        let gap = at.since(core::mem::replace(&mut self.data, at));
        let Some(passed) = self.passed.take() else { return };
        let at_once = |from: Time| at.since(from) * OF_GAP <= gap;
        self.waits += 1;
        self.here += u64::from(at_once(passed));
        self.there += u64::from(freed.is_some_and(at_once));
    }

    fn is_sender(&self) -> bool {
        self.here >= NEAR && 2 * self.here > self.waits && self.here > 2 * self.there
    }
}

/// The sender's state when it sends a packet that later passes the point of capture.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    next: i64,
    una: i64,
    window: Option<u64>,
    /// The largest window so far, without that of the SYN.
    largest: u64,
    /// End of the data that was outstanding when the latest retransmission left: until its ACK the sender repairs.
    repaired: i64,
    /// The latest segment with new data was not full: the application had no more data.
    partial: bool,
    full: u32,
    /// Ends of the latest two segments that were not full.
    partials: [i64; 2],
    freed: Option<Freed>,
    /// The largest flight, and the flight after the latest new data.
    most: i64,
    peak: i64,
    level: Level,
    /// Small segments that left at once after the ACK of all others, and those that left without it.
    held: u64,
    unheld: u64,
    /// Round trip between the point of capture and the sender.
    behind: Span,
    point: CapturePoint,
    under_way: VecDeque<Ack>,
    since: Option<Time>,
    /// Waits in seconds by reason: since the last new data, and in total before it.
    pending: [f64; WAITS],
    total: [f64; WAITS],
}

/// Shares of the time in which a sender waited, by reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    pub(super) receive_window: f64,
    /// The part of it with unread data.
    small_window: f64,
    application: f64,
    congestion_window: f64,
    /// The part of it with constant outstanding data.
    send_buffer: f64,
    /// Constant outstanding data in bytes.
    buffer: i64,
    nagle: f64,
}

impl Flight {
    /// The limit of the sender, if no loss is being repaired.
    fn limit(&self) -> Wait {
        let flight = (self.next - self.una).max(0) as u64;
        //= rfc1122#section-4.2.3.4: the room for a full segment, or for half of the largest window, suffices to send
        let room = |window: u64| u64::from(self.full).min(self.largest.max(window) / 2).max(1);
        let limit = self.window.filter(|window| flight + room(*window) > *window);
        if let Some(window) = limit {
            // An application that reads at once leaves at most the segments of a delayed ACK.
            let unread = self.largest.saturating_sub(window);
            let much = u64::from(2 * self.full).max(self.largest / 4);
            if unread > much { Wait::Receiver } else { Wait::ReceiveWindow }
        } else if self.partial || flight == 0 {
            Wait::Application
        } else {
            Wait::CongestionWindow
        }
    }

    fn waits_for(&self) -> Wait {
        match self.limit() {
            Wait::Application | Wait::CongestionWindow if self.una < self.repaired => Wait::Repair,
            limit => limit,
        }
    }

    /// Number of ACKs on their way to the sender.
    pub(super) fn pending(&self) -> usize {
        self.under_way.len()
    }

    /// Forgets these ACKs.
    pub(super) fn release(&mut self) {
        self.under_way = VecDeque::new();
    }

    /// Whether there was more to send, and the receiver's window had room for it.
    pub(super) fn has_more(&self) -> bool {
        matches!(self.limit(), Wait::CongestionWindow)
    }

    /// Adds the time up to `at` to the waits of the present reason.
    fn pass(&mut self, at: Time) {
        let Some(since) = self.since else { return };
        if at > since {
            self.pending[self.waits_for() as usize] += at.since(since).as_secs_f64();
            self.since = Some(at);
        }
    }

    /// Applies the ACKs that the sender has received before a packet of `at` left it.
    fn advance(&mut self, at: Time) {
        while let Some(ack) = self.under_way.front().copied().filter(|ack| ack.at <= at) {
            self.under_way.pop_front();
            self.pass(ack.at);
            if ack.ack > self.una {
                let partial = self.partials.iter().filter(|end| **end > self.una).count();
                let flight = self.next - self.una;
                self.freed = Some(Freed { at: ack.at, flight, partial });
            }
            // The application may answer data of its peer.
            self.freed = self.freed.filter(|_| ack.plain);
            self.una = self.una.max(ack.ack);
            self.window = ack.window.or(self.window);
            if !ack.syn {
                self.largest = self.largest.max(ack.window.unwrap_or(0));
            }
        }
        self.pass(at);
    }

    /// A retransmission ended the latest wait: the sender waited for an ACK of lost data, or for its timer.
    fn repairs(&mut self) {
        self.repaired = self.next;
        for wait in [Wait::Application, Wait::CongestionWindow] {
            let waited = core::mem::take(&mut self.pending[wait as usize]);
            self.pending[Wait::Repair as usize] += waited;
        }
    }

    /// Processes data of `len` bytes up to `end`, which is `old` if it or its original was sent before; `behind` is the
    /// round trip between the point of capture and the sender.
    pub(super) fn sent(
        &mut self,
        at: Time,
        behind: Span,
        end: i64,
        len: u32,
        full: u32,
        old: bool,
    ) {
        self.full = full;
        if !self.point.is_sender() {
            self.behind = behind;
        }
        if self.since.is_none() {
            // Announcements before the first data count too.
            self.advance(at);
            self.since = Some(at);
        }
        self.advance(at);
        if self.behind > AT_ONCE {
            self.point.add(at, self.freed.map(|freed| freed.at));
            if self.point.is_sender() {
                self.behind = Span::ZERO;
                self.under_way.iter_mut().for_each(|ack| ack.at = ack.passed);
                self.advance(at);
                (self.peak, self.most, self.level) = (self.next - self.una, 0, Level::default());
                (self.pending, self.total) = Default::default();
            }
        }
        if old || end <= self.next {
            self.repairs();
        }
        if end <= self.next {
            return;
        }
        if !old {
            self.waited(at, len);
        }
        let unacked = self.partials[1] > self.una;
        self.next = end;
        self.partial = !len.is_multiple_of(full);
        if self.partial {
            self.unheld += u64::from(unacked && len < full);
            self.partials = [self.partials[1], end];
        }
        self.peak = self.next - self.una;
        self.most = self.most.max(self.peak);
        self.take();
    }

    /// Assigns the wait before new data of `len` bytes at `at` by whether an ACK ended it.
    fn waited(&mut self, at: Time, len: u32) {
        let pending = &mut self.pending;
        let [_, _, application, congestion_window, ..] = *pending;
        let open = application + congestion_window;
        let soon = AT_ONCE.max(self.behind / OF_BEHIND).min(Span::from_secs_f64(open) / OF_WAIT);
        let freed = self.freed.filter(|freed| open > 0.0 && at.since(freed.at) <= soon);
        let Some(freed) = freed else {
            return;
        };
        let full = i64::from(self.full);
        let small = len < self.full && freed.flight + i64::from(len) <= self.most.max(2 * full);
        if small && self.una >= self.next && freed.flight > 0 {
            self.held += 1;
            pending[Wait::Nagle as usize] += open;
            pending[Wait::Application as usize] = 0.0;
            pending[Wait::CongestionWindow as usize] = 0.0;
        } else if freed.flight >= 2 * full
            && (freed.partial <= 1
                || len >= self.full
                    && self.peak + full > self.most
                    && at.since(freed.at) * OF_GAP <= Span::from_secs_f64(open))
        {
            pending[Wait::CongestionWindow as usize] = open;
            pending[Wait::Application as usize] = 0.0;
            self.level.add(self.peak, self.full, open);
        }
    }

    /// The connection ends at `at` in the capture. The sender still waits for a window if it probes it.
    pub(super) fn end(&mut self, at: Time, probes: bool) {
        self.advance(at);
        if probes && self.window == Some(0) {
            self.take();
        }
    }

    /// Adds the waits since the last new data to the total.
    fn take(&mut self) {
        for (total, pending) in self.total.iter_mut().zip(&mut self.pending) {
            *total += core::mem::take(pending);
        }
    }

    /// The peer acknowledges `ack` and announces `window` bytes, with or without a SYN; `plain` is whether it only
    /// acknowledges.
    pub(super) fn acked(
        &mut self,
        at: Time,
        ack: i64,
        window: Option<u64>,
        syn: bool,
        plain: bool,
    ) {
        let (passed, at) = (at, Time(at.0.saturating_add(self.behind.0)));
        if plain && ack > self.under_way.back().map_or(self.una, |ack| ack.ack) {
            self.point.passed = Some(passed);
        }
        if self.under_way.len() >= UNDER_WAY {
            self.under_way.pop_front();
        }
        self.under_way.push_back(Ack { passed, at, ack, window, syn, plain });
    }

    /// Number and seconds of the waits for Nagle's algorithm.
    fn nagle(&self) -> Option<(u64, f64)> {
        let shown = self.held >= HELD && self.held > 2 * self.unheld;
        shown.then_some((self.held, self.total[Wait::Nagle as usize]))
    }

    /// Diagnoses Nagle's algorithm.
    pub(super) fn held(&self) -> Option<Diagnosis> {
        let (times, waited) = self.nagle()?;
        let share = waited / self.total.iter().sum::<f64>();
        let evidence = format!(
            "Nagle's algorithm held back a small segment {times} times until the ACK of the data before, for {waited:.2} s in total \
             ({:.0} % of the time; {:.0} ms each)",
            share * 100.0,
            waited / times as f64 * 1e3
        );
        let remedy = "set TCP_NODELAY at the sender, or write each message with one call; an ACK that comes late is delayed by the \
            receiver (RFC 1122, 4.2.3.2)";
        let finding = Finding::Nagle { times, waited, share };
        Some(Diagnosis::new(finding, Confidence::Likely, evidence, remedy))
    }

    /// `None` if there was no wait, or the window is not known.
    pub(super) fn shares(&self) -> Option<Shares> {
        let all: f64 = self.total.iter().sum();
        self.window.filter(|_| all > 0.0)?;
        let [large, small_window, mut application, by_acks, repair, mut nagle] =
            self.total.map(|part| part / all);
        let congestion_window = by_acks + repair;
        if self.nagle().is_none() {
            application += core::mem::take(&mut nagle);
        }
        let receive_window = large + small_window;
        let Level { flight: buffer, held, waits, .. } = self.level;
        let bounds = waits >= BUFFERED && self.most <= buffer + i64::from(self.full);
        let held = held / all;
        let constant = bounds && held >= CONSTANT * by_acks;
        let send_buffer = if constant { held.min(by_acks) } else { 0.0 };
        Some(Shares {
            receive_window,
            small_window,
            application,
            congestion_window,
            send_buffer,
            buffer,
            nagle,
        })
    }
}

impl Shares {
    /// Whether the sender mostly had nothing to send.
    pub(super) fn is_idle(&self) -> bool {
        let Shares { receive_window, application, congestion_window, nagle, .. } = *self;
        application > receive_window.max(congestion_window).max(nagle)
    }

    /// `data` is the sender's direction, `back` that of its peer; `near` is whether the capture is at the sender, and `marked`
    /// whether its peer reports ECN marks.
    pub(super) fn diagnose(
        &self,
        data: &Direction,
        back: &Direction,
        near: bool,
        marked: bool,
    ) -> Option<Diagnosis> {
        // If ACKs precede their data in the file, the flight is unknown.
        if data.data_packets < FEWEST || data.acked_before_seen * 10 > data.data_packets {
            return None;
        }
        let Shares {
            receive_window,
            small_window,
            application,
            congestion_window,
            mut send_buffer,
            buffer,
            nagle,
            ..
        } = *self;
        if mostly_queued(data) {
            send_buffer = 0.0;
        }
        let window = back.window_max;
        let finding = Finding::Limits {
            receive_window,
            small_window,
            application,
            congestion_window,
            send_buffer,
            nagle,
            window,
        };
        let of = window.map_or(String::new(), |window| format!(" of {window} B"));
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let own = if send_buffer > 0.0 {
            let rest = percent(congestion_window - send_buffer);
            format!(
                "for its send buffer {} (always {buffer} B outstanding), for its congestion window {rest}",
                percent(send_buffer)
            )
        } else {
            format!("for its congestion window or send buffer {}", percent(congestion_window))
        };
        let nagle = if nagle > 0.0 {
            format!(", for Nagle's algorithm {}", percent(nagle))
        } else {
            String::new()
        };
        let evidence = format!(
            "the sender waited for the receiver's window{of} {} of the time, for its application {}, {own}{nagle}",
            percent(receive_window),
            percent(application)
        );
        let remedy = self.remedy(data, back, near, marked);
        Some(Diagnosis::new(finding, Confidence::Likely, evidence, remedy))
    }

    fn remedy(&self, data: &Direction, back: &Direction, near: bool, marked: bool) -> &'static str {
        let Shares { receive_window, small_window, application, congestion_window, .. } = *self;
        if self.nagle > receive_window.max(application).max(congestion_window) {
            return "set TCP_NODELAY at the sender, or write each message with one call";
        }
        let by_window = receive_window >= application.max(congestion_window);
        let scaled = data.window_scale.is_some() && back.window_scale.is_some();
        let small = back.window_max.is_some_and(|window| window <= u16::MAX.into());
        if by_window && small_window * 2.0 > receive_window {
            "the receiving application reads too slowly: most of that time the window was smaller than its maximum, since the buffer \
             held unread data; a larger receive buffer does not help"
        } else if by_window && mostly_queued(data) {
            LINK_IS_FULL
        } else if by_window && small && !scaled {
            "a window above 65535 B needs window scaling at both ends (Linux: `net.ipv4.tcp_window_scaling=1`); then enlarge \
             the receive buffer to rate times round trip"
        } else if by_window {
            "enlarge the receive buffer (Linux: the maximum in `net.ipv4.tcp_rmem`) to rate times round trip"
        } else if application >= congestion_window {
            "the network is not the limit: look at the sending application"
        } else if mostly_queued(data) && data.lost_segments * FEW < data.data_segments {
            LINK_IS_FULL
        } else if data.retransmissions.total() > 0 {
            "look at the verdict on losses, and at needless retransmissions"
        } else if is_growing(data) {
            "the window grew until the end, as in slow start: the transfer is short for this round trip; transfer more over one \
             connection, or enlarge the initial window"
        } else if self.send_buffer > 0.0 {
            "enlarge the send buffer to rate times round trip (SO_SNDBUF of the application; Linux: `net.ipv4.tcp_wmem`)"
        } else if marked {
            LINK_IS_FULL
        } else if near && !has_queue(data, SOME) {
            "neither a loss nor a queue limits it: enlarge the send buffer (Linux: `net.ipv4.tcp_wmem`), and look for a limit of the \
             sender's rate: its application, or pacing"
        } else {
            "enlarge the send buffer (Linux: `net.ipv4.tcp_wmem`), unless the link is full: then round trips grow at the sender"
        }
    }
}

/// Whether the outstanding data grew until the end of the transfer: half of its largest value came in the last half.
fn is_growing(data: &Direction) -> bool {
    let flights = &data.over_time.in_flight.kept;
    let most = |samples: &[InFlight]| samples.iter().map(|sample| sample.outstanding).max();
    let ends = flights.first().zip(flights.last());
    let middle = ends.map_or(Time::ZERO, |(a, b)| Time(a.at.0.midpoint(b.at.0)));
    let early = flights.partition_point(|sample| sample.at < middle);
    most(&flights[..early]).zip(most(flights)).is_some_and(|(early, all)| 2 * early < all)
}

/// Whether data waits in a queue for most of the time.
pub(super) fn mostly_queued(data: &Direction) -> bool {
    has_queue(data, MOST)
}

/// Whether data waits in a queue, by the round trips of segments from quantile `from` on. Then the link carries its full
/// rate.
fn has_queue(data: &Direction, from: f64) -> bool {
    let trips = data.over_time.round_trips.kept.iter();
    let times: Vec<f64> =
        trips.filter(|trip| trip.by == MeasuredBy::Segment).map(|trip| trip.rtt).collect();
    let (Some(least), Some(long)) = (quantile(&times, 0.0), quantile(&times, from)) else {
        return false;
    };
    times.len() >= ENOUGH && long - least > WAIT && long > LONGER * least
}
