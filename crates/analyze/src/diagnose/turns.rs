//! Think time: after the last byte of its peer an end is silent, until it sends a response or the next request.
//!
//! A retransmission whose original was lost before the point of capture looks the same. It comes alone, behind a packet that
//! was not captured, and only some turns have one.
//!
//! Requests that wait for the answer before them cost a round trip each.

use lasthop_proto::units::{Span, Time};

use super::Path;
use super::ecn::Position;
use crate::finding::{Confidence, Diagnosis, Finding};

/// Minimum silence of a turn, also as a part of the round trip: queues delay packets too.
const LEAST: Span = Span::millis(10);
const OF_ROUND_TRIP: u64 = 2;

/// Minimum total that users notice, and minimum share of the time of the connection.
const NOTICED: Span = Span::millis(200);
const SHARE: f64 = 0.25;

/// Minimum number of silences that no losses explain if most turns of the end have one.
const FEWEST: u64 = 3;

/// Minimum number of requests that wait for an answer each.
const EXCHANGES: u64 = 10;

/// Data, or the ACK that ends the handshake.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    side: usize,
    data: bool,
}

/// The silence before the latest data, and the side that ended it.
#[derive(Clone, Copy, Debug)]
struct Silence {
    side: usize,
    wait: Span,
    /// Whether no packet of this side was lost before the point of capture.
    sure: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    turns: u64,
    times: u64,
    total: Span,
    sure: Span,
    longest: Span,
}

/// Turns of both sides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    latest: Option<Sent>,
    /// Until the other side sends a packet.
    pending: Option<Silence>,
    waits: [Waits; 2],
}

impl Turns {
    /// Whether neither data nor the end of the handshake was captured.
    pub(super) fn is_empty(&self) -> bool {
        self.latest.is_none()
    }

    /// Whether the latest data is that of `side`.
    pub(super) fn continues(&self, side: usize) -> bool {
        self.latest.is_some_and(|sent| sent.data && sent.side == side)
    }

    /// A SYN or SYN-ACK: the handshake has not ended.
    pub(super) fn opens(&mut self) {
        self.latest = self.latest.filter(|sent| sent.data);
    }

    /// The opener acknowledges the SYN-ACK.
    pub(super) fn opened(&mut self, at: Time, side: usize) {
        self.latest = Some(Sent { at, side, data: false });
    }

    /// Side `side` sends a packet: the data of the other side has arrived.
    pub(super) fn answered(&mut self, side: usize) {
        if let Some(silence) = self.pending.take_if(|silence| silence.side != side) {
            let waits = &mut self.waits[silence.side];
            waits.times += 1;
            waits.total = waits.total + silence.wait;
            waits.sure = waits.sure + if silence.sure { silence.wait } else { Span::ZERO };
            waits.longest = waits.longest.max(silence.wait);
        }
    }

    /// Side `side` sends new data. `idle` is whether all data before it is acknowledged, and `next` whether its IP
    /// identification follows that of the packet before.
    pub(super) fn sent(&mut self, at: Time, side: usize, idle: bool, next: bool, path: &Path) {
        let before = self.latest.replace(Sent { at, side, data: true });
        let Some(before) = before else { return };
        if before.side == side && before.data {
            // After a timeout a sender has only one packet in flight.
            if let Some(silence) = self.pending.as_mut().filter(|_| !idle) {
                silence.sure = true;
            }
            return;
        }
        let away = if before.side == side { Some(Span::ZERO) } else { path.behind(side) };
        let (Some(away), Some(rtt)) = (away.filter(|_| idle), path.rtt) else { return };
        self.waits[side].turns += 1;
        let wait = at.since(before.at).saturating_sub(away);
        let sure = next || path.position(side) == Position::Sender;
        self.pending = Some(Silence { side, wait, sure })
            .filter(|silence| silence.wait >= LEAST.max(rtt / OF_ROUND_TRIP));
    }

    /// Side `side` sends old data again.
    pub(super) fn repeated(&mut self, at: Time, side: usize) {
        self.latest = Some(Sent { at, side, data: true });
    }

    /// Diagnoses requests of `side` that follow each other by round trips.
    pub(super) fn round_trips(&self, side: usize, path: &Path, began: Time) -> Option<Diagnosis> {
        let rtt = path.rtt.filter(|_| path.opener == Some(side))?;
        // The first request follows the handshake.
        let exchanges = self.waits[side].turns.saturating_sub(1);
        if exchanges < EXCHANGES {
            return None;
        }
        let waited = rtt * exchanges;
        let share = waited.as_secs_f64() / self.latest?.at.since(began).as_secs_f64().max(1e-9);
        if waited < NOTICED || share < SHARE {
            return None;
        }
        let waited = waited.as_secs_f64();
        let evidence = format!(
            "{exchanges} requests left only after the answer to the one before, at a round trip of {:.1} ms each: {waited:.2} s \
             ({:.0} % of the time)",
            rtt.as_secs_f64() * 1e3,
            share * 100.0
        );
        let remedy = "send requests without waiting for answers (pipelining, larger requests, several connections), or bring the ends \
            closer: a higher rate does not help";
        let finding = Finding::RoundTrips { exchanges, waited, share };
        Some(Diagnosis::new(finding, Confidence::Likely, evidence, remedy))
    }

    /// Diagnoses the think time of `side` in a connection that began at `began`.
    pub(super) fn diagnose(&self, side: usize, path: &Path, began: Time) -> Option<Diagnosis> {
        let Waits { turns, times, total, sure, longest } = self.waits[side];
        let all = self.latest?.at.since(began).as_secs_f64();
        let (waited, longest) = (total.as_secs_f64(), longest.as_secs_f64());
        let share = waited / all.max(1e-9);
        if total < NOTICED || share < SHARE {
            return None;
        }
        let client = path.opener? == side;
        let (who, what, remedy) = match client {
            true => (
                "the client let the server wait",
                "before a request, after the handshake or a response",
                "look at the client's application, or its user: the network is not the limit",
            ),
            false => (
                "the server let the client wait",
                "before the first byte of a response, after a request",
                "look at the server's application, and what it waits for: the network is not the limit",
            ),
        };
        let often = if times == 1 { "once".to_owned() } else { format!("{times} times") };
        let evidence = format!(
            "{who} for {waited:.2} s ({:.0} % of the time), without the round trip between them: {often} {what}; {longest:.2} s at most",
            share * 100.0
        );
        let finding = Finding::ThinkTime { client, times, waited, share, longest };
        let shown = sure + sure >= total || times >= FEWEST && 2 * times >= turns;
        let confidence = if shown { Confidence::Likely } else { Confidence::Possible };
        Some(Diagnosis::new(finding, confidence, evidence, remedy))
    }
}
