//! TCP-INT (balakrishnan97 5.2): one congestion window and one loss detection for all connections of a host
//! to one other host. Each connection retains its byte stream, its flow control and its closing.
//!
//! The state of a pair of hosts is an [`Integrated`]. The host stores it by destination and lends it to a
//! connection's sender for the time of a call; `sender/systems/integrated.rs` has the behaviour of the sender. It
//! follows the paper and the network simulator of its authors (`TCP/Int` and `TCP/Session` of ns):
//!
//! - The combined congestion window bounds the data of all connections in the network. It opens with each ACK
//!   for new data as that of one connection would. The connections take turns in filling it, a segment each.
//! - A segment is lost when its duplicate ACKs, and the ACKs on other connections for later segments, number
//!   three. A receiver may delay an ACK, but not for two segments, nor for long. So a segment without a
//!   duplicate ACK counts as lost only under a further condition. Either the next segment of the connection
//!   is missing as well, or a segment sent 400 ms later has arrived.
//! - The window is halved once for all losses among the segments in flight when the first was detected.
//! - There is one retransmission timer: ACKs for new data on any connection restart it for all. When it
//!   expires, everything in flight counts as lost, on every connection, and the combined window restarts with
//!   slow start.
//! - The data in flight of a connection that ends or is aborted is discarded. The window remains for later
//!   connections; after silence of a timeout it is the initial window again.

use std::collections::{BTreeMap, VecDeque};

use crate::units::{Span, Time};
use crate::wire::Addr;

/// Number of duplicate and later ACKs that show a loss.
const EVIDENCE: u32 = 3;
/// Twice the longest ACK delay of a BSD receiver.
const HELD_BACK: Span = Span::millis(400);
/// Maximum number of transmissions in flight for a pair of hosts; beyond it the connections wait.
const SEGMENTS_MAX: usize = 1 << 14;
/// Maximum number of stored destinations without a connection.
const IDLE_MAX: usize = 256;

/// An unacknowledged transmission.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    /// Number among the transmissions of all connections.
    number: u64,
    owner: u32,
    from: u64,
    end: u64,
    at: Time,
    /// Duplicate ACKs, and later ACKs on other connections.
    evidence: u32,
    /// Duplicate ACKs among them that report segments still counted as in flight.
    dupacks: u32,
    /// Whether a duplicate ACK indicates its loss.
    duplicate: bool,
    /// Whether its bytes had been sent before.
    again: bool,
    fate: Fate,
}

impl Transmission {
    fn len(&self) -> u64 {
        self.end - self.from
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    InFlight,
    /// It left the network, as its duplicate ACK shows.
    Arrived,
    /// It must be retransmitted.
    Lost,
}

/// State shared by all connections to one host.
#[derive(Clone, Debug, Default)]
pub struct Integrated {
    /// The combined congestion window in bytes; 0 before the first connection is established.
    pub cwnd: u32,
    /// The combined slow-start threshold in bytes.
    pub ssthresh: u32,
    /// Transmissions in order.
    sent: VecDeque<Transmission>,
    /// Bytes in flight, of all connections (`ownd`).
    flight: u64,
    /// Number of the next transmission.
    next: u64,
    /// Transmissions before this number are covered by an earlier reduction of the window.
    recover: u64,
    /// Send time of the latest segment that has arrived.
    newest: Time,
    /// Start of the timer.
    since: Time,
    /// Consecutive timeouts without an ACK for new data.
    backoff: u32,
    /// Number of timeouts.
    timeouts: u64,
    /// Time of the last transmission.
    busy: Time,
    /// Connections with data to send, in the order of their turns, each with its amount.
    waiting: VecDeque<(u32, u32)>,
    /// Whether the connection that borrows this has the turn.
    turn: bool,
    /// Number of connections that use this state.
    members: u32,
}

/// Result of an ACK for new data.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckResult {
    /// Whether the window was full.
    pub full: bool,
    /// Whether a segment of another connection may be lost.
    pub suspicious: bool,
    /// Whether a loss was found that requires halving the window.
    pub halve: bool,
}

impl Integrated {
    /// Bytes in flight of all connections.
    pub fn flight(&self) -> u64 {
        self.flight
    }

    /// Start of the shared timer, and the number of expirations since the last acknowledgement.
    pub fn timer(&self) -> (Time, u32) {
        (self.since, self.backoff)
    }

    /// Number of timeouts; a connection that missed one returns to its left edge.
    pub fn timeouts(&self) -> u64 {
        self.timeouts
    }

    /// Time of the last transmission, if no data is in flight.
    pub fn idle_since(&self) -> Option<Time> {
        (self.flight == 0).then_some(self.busy)
    }

    /// Records that `owner` sends positions `from` to `end`.
    pub fn sent(&mut self, now: Time, owner: u32, from: u64, end: u64, again: bool) {
        // Retransmitted data is in flight once.
        self.remove(|t| t.owner == owner && from <= t.from && t.end <= end);
        if self.sent.is_empty() {
            self.since = now;
        }
        let number = self.next;
        self.next += 1;
        self.busy = now;
        self.flight += end - from;
        let (evidence, dupacks, duplicate, fate) = (0, 0, false, Fate::InFlight);
        self.sent.push_back(Transmission {
            number,
            owner,
            from,
            end,
            at: now,
            evidence,
            dupacks,
            duplicate,
            again,
            fate,
        });
    }

    fn remove(&mut self, which: impl Fn(&Transmission) -> bool) -> Option<(u64, Time)> {
        let mut last = None;
        let flight = &mut self.flight;
        self.sent.retain(|t| {
            let gone = which(t);
            if gone {
                *flight -= if t.fate == Fate::InFlight { t.len() } else { 0 };
                last = Some((t.number, t.at));
            }
            !gone
        });
        last
    }

    /// Records that the left edge of `owner` moved to `una`; `mss` is its segment size.
    pub fn acked(&mut self, now: Time, owner: u32, una: u64, mss: u32) -> AckResult {
        let full = self.flight + u64::from(mss) > self.cwnd.into();
        self.since = now;
        self.backoff = 0;
        let last = self.remove(|t| t.owner == owner && t.end <= una);
        for t in self.sent.iter_mut().filter(|t| t.owner == owner && t.from < una) {
            if t.fate == Fate::InFlight {
                self.flight -= una - t.from;
            }
            t.from = una;
        }
        let suspicious = last.is_some_and(|(number, at)| self.later(owner, number, at));
        AckResult { full, suspicious, halve: self.find_losses() }
    }

    /// Records that transmission `number`, sent at `at`, has arrived: evidence against earlier transmissions
    /// of other connections.
    fn later(&mut self, owner: u32, number: u64, at: Time) -> bool {
        self.newest = self.newest.max(at);
        let mut suspicious = false;
        for t in self.sent.iter_mut().take_while(|t| t.number < number) {
            if t.owner != owner && t.fate != Fate::Lost {
                t.evidence += 1;
                suspicious |= t.evidence >= EVIDENCE;
            }
        }
        suspicious
    }

    /// Processes a duplicate ACK of `una` for `owner`, and returns whether to halve the window. `counts` is
    /// whether it may indicate a loss; after a timeout it can be the response to a retransmission.
    pub fn duplicate(&mut self, owner: u32, una: u64, counts: bool) -> bool {
        let recover = self.recover;
        let left = self.sent.iter_mut().find(|t| t.owner == owner && t.from == una);
        let mut nth = 0;
        let mut now = true;
        // Duplicates after its retransmission indicate the same loss.
        if let Some(left) = left.filter(|left| counts && !left.again) {
            left.duplicate = true;
            left.evidence += 1;
            // As in Reno, the duplicates make room only from the third one on.
            if left.number >= recover {
                nth = left.dupacks as usize;
                left.dupacks += 1;
                now = false;
            }
        }
        let above =
            |t: &&mut Transmission| t.owner == owner && t.from > una && t.fate == Fate::InFlight;
        if let Some(cause) = self.sent.iter_mut().filter(above).nth(nth) {
            if now {
                cause.fate = Fate::Arrived;
                self.flight -= cause.len();
            }
            let (number, at) = (cause.number, cause.at);
            self.later(owner, number, at);
        }
        self.find_losses()
    }

    /// Records that an ACK during a recovery of `owner` shows the segment at `una` missing as well. Returns
    /// whether to halve the window.
    pub fn missing(&mut self, owner: u32, una: u64) -> bool {
        let found = self.sent.iter().position(|t| t.owner == owner && t.from == una && !t.again);
        found.is_some_and(|i| self.lose(i))
    }

    /// Searches for losses, and returns whether to halve the window.
    fn find_losses(&mut self) -> bool {
        let mut halve = false;
        for i in 0..self.sent.len() {
            let t = self.sent[i];
            if t.evidence < EVIDENCE || t.fate == Fate::Lost {
                continue;
            }
            let own = || self.sent.iter().filter(|o| o.owner == t.owner);
            let leftmost = own().all(|o| o.from >= t.from);
            let next_too = || own().any(|o| o.from > t.from && o.evidence >= EVIDENCE);
            if leftmost && (t.duplicate || self.newest >= t.at + HELD_BACK || next_too()) {
                halve |= self.lose(i);
            }
        }
        halve
    }

    /// Marks transmission `i` lost, and returns whether this is a new loss, for which to halve the window.
    fn lose(&mut self, i: usize) -> bool {
        let lost = self.sent[i];
        self.sent[i].fate = Fate::Lost;
        let mut arrived = lost.dupacks;
        match lost.fate {
            Fate::InFlight => self.flight -= lost.len(),
            // Another segment caused the duplicate ACK.
            Fate::Arrived => arrived += 1,
            Fate::Lost => {}
        }
        let above = |t: &&mut Transmission| {
            t.owner == lost.owner && t.from > lost.from && t.fate == Fate::InFlight
        };
        for t in self.sent.iter_mut().filter(above).take(arrived as usize) {
            t.fate = Fate::Arrived;
            self.flight -= t.len();
        }
        let new = lost.number >= self.recover;
        if new {
            self.recover = self.next;
        }
        new
    }

    /// The position that `owner` must retransmit at once.
    pub fn take_lost(&mut self, owner: u32) -> Option<u64> {
        let lost = self.sent.iter().find(|t| t.owner == owner && t.fate == Fate::Lost).copied()?;
        self.remove(|t| t.number == lost.number);
        Some(lost.from)
    }

    /// The timer of `owner` expired: all data in flight is lost. The turns are: `owner`, then the waiting
    /// connections, then the others with losses.
    pub fn time_out(&mut self, now: Time, owner: u32) {
        self.pass(owner);
        self.turn = true;
        let mut others: Vec<(u32, u64)> =
            self.sent.iter().filter(|t| t.owner != owner).map(|t| (t.owner, t.len())).collect();
        others.sort_unstable();
        others.dedup_by_key(|other| other.0);
        for (other, len) in others {
            if !self.waiting.iter().any(|(waits, _)| *waits == other) {
                self.waiting.push_back((other, len as u32));
            }
        }
        self.sent.clear();
        self.flight = 0;
        self.recover = self.next;
        self.since = now;
        self.backoff += 1;
        self.timeouts += 1;
    }

    fn room(&self, bytes: u32) -> bool {
        let fits = self.flight + u64::from(bytes) <= self.cwnd.into() || self.flight == 0;
        fits && self.sent.len() < SEGMENTS_MAX
    }

    /// Lends the state to `owner`, which is about to act.
    pub fn begin(&mut self, owner: u32) {
        self.turn = self.is_first(owner);
    }

    fn is_first(&self, owner: u32) -> bool {
        self.waiting.front().is_some_and(|(first, _)| *first == owner)
    }

    /// Takes the state back from `owner`. An unused turn remains its own, unless it is `at_rest`: then the
    /// next connection gets the turn.
    pub fn end(&mut self, owner: u32, at_rest: bool) {
        if self.turn && at_rest {
            self.pass(owner);
        }
    }

    /// Whether `owner` may send `bytes` of new data now. If not, it will be called when it may.
    pub fn may_send(&mut self, owner: u32, bytes: u32) -> bool {
        let turn = core::mem::take(&mut self.turn);
        if turn && self.is_first(owner) {
            self.waiting.pop_front();
        }
        if (turn || self.waiting.is_empty()) && self.room(bytes) {
            return true;
        }
        if turn {
            self.waiting.push_front((owner, bytes));
        } else if !self.waiting.iter().any(|(other, _)| *other == owner) {
            self.waiting.push_back((owner, bytes));
        }
        false
    }

    /// Records that `owner` has no data to send.
    pub fn pass(&mut self, owner: u32) {
        self.turn = false;
        self.waiting.retain(|(other, _)| *other != owner);
    }

    /// The connection to call now: one with losses, or the next one in order if there is room.
    pub fn due(&self) -> Option<u32> {
        let lost = self.sent.iter().find(|t| t.fate == Fate::Lost).map(|t| t.owner);
        let first = self.waiting.front().filter(|(_, bytes)| self.room(*bytes));
        lost.or(first.map(|(owner, _)| *owner))
    }

    /// Adds a connection to this state.
    pub fn join(&mut self) {
        self.members += 1;
    }

    /// Removes `owner`, which has ended, and its data in flight.
    pub fn leave(&mut self, owner: u32) {
        self.pass(owner);
        self.remove(|t| t.owner == owner);
        self.members = self.members.saturating_sub(1);
    }
}

/// The shared states of a host, by destination. A lent state is `None`.
#[derive(Clone, Debug, Default)]
pub struct Pairs(BTreeMap<Addr, Option<Box<Integrated>>>);

impl Pairs {
    /// Takes the state for `to` out, to be lent.
    pub fn lend(&mut self, to: Addr) -> Box<Integrated> {
        match self.0.get_mut(&to) {
            Some(state) => state.take().unwrap_or_default(),
            None => {
                self.make_room();
                self.0.insert(to, None);
                Box::default()
            }
        }
    }

    /// Returns a lent state.
    pub fn put_back(&mut self, to: Addr, state: Box<Integrated>) {
        self.0.insert(to, Some(state));
    }

    /// Removes the destination with the longest idle time, if there are many without a connection.
    fn make_room(&mut self) {
        if self.0.len() < IDLE_MAX {
            return;
        }
        let idle = self.0.iter().filter_map(|(to, state)| Some((to, state.as_ref()?)));
        let idle = idle.filter(|(_, state)| state.members == 0);
        if let Some(oldest) = idle.min_by_key(|(_, state)| state.busy).map(|(to, _)| *to) {
            self.0.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
