//! Limits of a sender: the receiver's window, its application, or its congestion window.

use std::collections::VecDeque;

use lasthop_observe::stats::quantile;
use lasthop_proto::units::{Span, Time};

use super::{Confidence, Diagnosis, Finding};
use crate::over_time::MeasuredBy;
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

pub(super) const LINK_IS_FULL: &str = "the link is full: most round trips are longer than the shortest, since data waits in a queue; neither a larger \
                            window nor a larger buffer raises the rate";

/// Why a sender waits.
#[derive(Clone, Copy, Debug)]
enum Wait {
    ReceiveWindow,
    /// The receive window, while it is less than half of the largest so far: data waits in the receive buffer.
    Receiver,
    Application,
    CongestionWindow,
}

#[derive(Clone, Copy, Debug)]
struct Ack {
    /// When a packet that answers it can pass here.
    at: Time,
    ack: i64,
    window: Option<u64>,
    /// The window of a SYN has no scale.
    syn: bool,
}

/// The sender's state when it sends a packet that later passes the point of capture.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    next: i64,
    una: i64,
    window: Option<u64>,
    /// The largest window so far, without that of the SYN.
    largest: u64,
    /// The latest segment with new data was not full: the application had no more data.
    partial: bool,
    full: u32,
    /// Round trip between the point of capture and the sender.
    behind: Span,
    under_way: VecDeque<Ack>,
    since: Option<Time>,
    /// Waits in seconds by reason: since the last new data, and in total before it.
    pending: [f64; 4],
    total: [f64; 4],
}

/// Shares of the time in which a sender waited, by reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    pub(super) receive_window: f64,
    /// The part of it with less than half of the largest window.
    small_window: f64,
    application: f64,
    congestion_window: f64,
}

impl Flight {
    fn waits_for(&self) -> Wait {
        let flight = (self.next - self.una).max(0) as u64;
        //= rfc1122#section-4.2.3.4: the room for a full segment, or for half of the largest window, suffices to send
        let room = |window: u64| u64::from(self.full).min(self.largest.max(window) / 2).max(1);
        let limit = self.window.filter(|window| flight + room(*window) > *window);
        if let Some(window) = limit {
            if window * 2 < self.largest { Wait::Receiver } else { Wait::ReceiveWindow }
        } else if self.partial || flight == 0 {
            Wait::Application
        } else {
            Wait::CongestionWindow
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
        matches!(self.waits_for(), Wait::CongestionWindow)
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
            self.una = self.una.max(ack.ack);
            self.window = ack.window.or(self.window);
            if !ack.syn {
                self.largest = self.largest.max(ack.window.unwrap_or(0));
            }
        }
        self.pass(at);
    }

    /// Processes new or old data of `len` bytes up to `end`; `behind` is the round trip between the point of capture
    /// and the sender.
    pub(super) fn sent(&mut self, at: Time, behind: Span, end: i64, len: u32, full: u32) {
        (self.behind, self.full) = (behind, full);
        if self.since.is_none() {
            // Announcements before the first data count too.
            self.advance(at);
            self.since = Some(at);
        }
        self.advance(at);
        if end <= self.next {
            return;
        }
        self.next = end;
        self.partial = !len.is_multiple_of(full);
        for (total, pending) in self.total.iter_mut().zip(&mut self.pending) {
            *total += core::mem::take(pending);
        }
    }

    /// The peer acknowledges `ack` and announces `window` bytes, with or without a SYN.
    pub(super) fn acked(&mut self, at: Time, ack: i64, window: Option<u64>, syn: bool) {
        let at = Time(at.0.saturating_add(self.behind.0));
        if self.under_way.len() >= UNDER_WAY {
            self.under_way.pop_front();
        }
        self.under_way.push_back(Ack { at, ack, window, syn });
    }

    /// `None` if there was no wait, or the window is not known.
    pub(super) fn shares(&self) -> Option<Shares> {
        let all: f64 = self.total.iter().sum();
        self.window.filter(|_| all > 0.0)?;
        let [large, small_window, application, congestion_window] =
            self.total.map(|part| part / all);
        let receive_window = large + small_window;
        Some(Shares { receive_window, small_window, application, congestion_window })
    }
}

impl Shares {
    /// `data` is the sender's direction, `back` that of its peer; `near` is whether the capture is at the sender.
    pub(super) fn diagnose(
        &self,
        data: &Direction,
        back: &Direction,
        near: bool,
    ) -> Option<Diagnosis> {
        // If ACKs precede their data in the file, the flight is unknown.
        if data.data_packets < FEWEST || data.acked_before_seen * 10 > data.data_packets {
            return None;
        }
        let Shares { receive_window, small_window, application, congestion_window } = *self;
        let window = back.window_max;
        let finding = Finding::Limits {
            receive_window,
            small_window,
            application,
            congestion_window,
            window,
        };
        let shares = [receive_window, application, congestion_window].map(|share| share * 100.0);
        let of = window.map_or(String::new(), |window| format!(" of {window} B"));
        let evidence = format!(
            "the sender waited for the receiver's window{of} {:.0} % of the time, for its application {:.0} %, for its \
             congestion window or send buffer {:.0} %",
            shares[0], shares[1], shares[2]
        );
        let remedy = self.remedy(data, back, near);
        Some(Diagnosis::new(finding, Confidence::Likely, evidence, remedy))
    }

    fn remedy(&self, data: &Direction, back: &Direction, near: bool) -> &'static str {
        let Shares { receive_window, small_window, application, congestion_window } = *self;
        let by_window = receive_window >= application.max(congestion_window);
        let scaled = data.window_scale.is_some() && back.window_scale.is_some();
        let small = back.window_max.is_some_and(|window| window <= u16::MAX.into());
        if by_window && small_window * 2.0 > receive_window {
            "the receiving application reads too slowly: most of that time the window was less than half of its maximum; a larger \
             receive buffer does not help"
        } else if by_window && mostly_queued(data) {
            LINK_IS_FULL
        } else if by_window && small && !scaled {
            "a window above 65535 B needs window scaling at both ends (Linux: `net.ipv4.tcp_window_scaling=1`); then enlarge \
             the receive buffer to rate times round trip"
        } else if by_window {
            "enlarge the receive buffer (Linux: the maximum in `net.ipv4.tcp_rmem`) to rate times round trip"
        } else if application >= congestion_window {
            "the network is not the limit: look at the sending application"
        } else if data.retransmissions.total() > 0 {
            "look at the verdict on losses, and at needless retransmissions"
        } else if mostly_queued(data) {
            LINK_IS_FULL
        } else if near && !has_queue(data, SOME) {
            "neither a loss nor a queue limits it: enlarge the send buffer (Linux: `net.ipv4.tcp_wmem`), and look for a limit of the \
             sender's rate (pacing)"
        } else {
            "enlarge the send buffer (Linux: `net.ipv4.tcp_wmem`), unless the link is full: then round trips grow at the sender"
        }
    }
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
