//! TCP-INT (balakrishnan97 5.2): one congestion window and one loss detection over all connections of a host to one
//! other host. Each connection keeps its byte stream, its flow control and its closing for itself.
//!
//! The state of a pair of hosts is an [`Integrated`]. It lives in the host, by destination, and is lent to a
//! connection's sender for the time of a call; `sender/integrated.rs` is what the sender does with it. After the
//! paper and the network simulator of its authors (`TCP/Int` and `TCP/Session` of ns):
//!
//! - The combined congestion window bounds what all connections have in the network together. It opens with each ACK
//!   for new data as that of one connection would, and the connections take turns in filling it, a segment each.
//! - A segment is lost when the duplicate ACKs for it and the ACKs on other connections for segments sent later are
//!   three. A receiver may hold an ACK back, but not for two segments, nor for long: what no duplicate ACK speaks for
//!   is lost only if the next segment of the connection is missed as well, or a segment sent 400 ms later has
//!   arrived.
//! - The window is halved once for all losses among the segments that were in flight when the first was noticed.
//! - There is one retransmission timer: ACKs for new data on any connection start it again for all. When it expires,
//!   everything in flight counts as lost, on every connection, and the combined window begins anew with slow start.
//! - A connection that ends, or is given up, takes what it had in flight with it. The window stays for those that come
//!   later; after a time-out's worth of silence it is the initial window again.

use std::collections::{BTreeMap, VecDeque};

use crate::units::{Span, Time};
use crate::wire::Addr;

/// So many duplicate and later ACKs show a loss.
const EVIDENCE: u32 = 3;
/// Twice the longest time for which a receiver of BSD holds an ACK back.
const HELD_BACK: Span = Span::millis(400);
/// Transmissions in flight that one pair of hosts remembers; beyond that its connections wait.
const SEGMENTS_MAX: usize = 1 << 14;
/// Destinations without a connection whose window is remembered.
const IDLE_MAX: usize = 256;

/// A transmission that has not been acknowledged.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    /// Counts the transmissions of all connections.
    number: u64,
    owner: u32,
    from: u64,
    end: u64,
    at: Time,
    /// Duplicate ACKs, and later ACKs on other connections.
    evidence: u32,
    /// Of these the duplicate ACKs that tell of segments still counted as in flight.
    dupacks: u32,
    /// Whether a duplicate ACK spoke for it.
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
    /// It left the network, by the duplicate ACK that it caused.
    Arrived,
    /// To be sent again.
    Lost,
}

/// What all connections to one host share.
#[derive(Clone, Debug, Default)]
pub struct Integrated {
    /// The combined congestion window in bytes; 0 before the first connection is established.
    pub cwnd: u32,
    /// The combined slow-start threshold in bytes.
    pub ssthresh: u32,
    /// Transmissions in their order.
    sent: VecDeque<Transmission>,
    /// Bytes in flight, of all connections (`ownd`).
    flight: u64,
    /// The number of the next transmission.
    next: u64,
    /// Losses of transmissions before this one have been paid for.
    recover: u64,
    /// When the last of the segments that have arrived was sent.
    newest: Time,
    /// What the timer counts from.
    since: Time,
    /// Time-outs in a row without an ACK for new data.
    backoff: u32,
    /// Time-outs so far.
    timeouts: u64,
    /// When something was sent last.
    busy: Time,
    /// Connections that have something to send, in the order of their turns, each with how much.
    waiting: VecDeque<(u32, u32)>,
    /// The connection to which this is lent has the turn.
    turn: bool,
    /// Connections that hang on this.
    members: u32,
}

/// What an ACK for new data told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Whether the window had been used up.
    pub full: bool,
    /// Whether a segment of another connection may be lost.
    pub suspicious: bool,
    /// Whether a loss was found for which the window has to be halved.
    pub halve: bool,
}

impl Integrated {
    /// Bytes in flight, of all connections.
    pub fn flight(&self) -> u64 {
        self.flight
    }

    /// When the timer began that all connections share, and how often it has expired since something was acknowledged.
    pub fn timer(&self) -> (Time, u32) {
        (self.since, self.backoff)
    }

    /// Time-outs so far: whoever missed one goes back to its left edge.
    pub fn timeouts(&self) -> u64 {
        self.timeouts
    }

    /// When something was sent last, if nothing is in flight.
    pub fn idle_since(&self) -> Option<Time> {
        (self.flight == 0).then_some(self.busy)
    }

    /// `owner` sends positions `from` to `end`.
    pub fn sent(&mut self, now: Time, owner: u32, from: u64, end: u64, again: bool) {
        // What is sent again is in flight once.
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

    /// The left edge of `owner` moved to `una`; `mss` is its segment size.
    pub fn acked(&mut self, now: Time, owner: u32, una: u64, mss: u32) -> Told {
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
        Told { full, suspicious, halve: self.judge() }
    }

    /// The transmission `number`, sent at `at`, has arrived: that speaks against what other connections sent before.
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

    /// A duplicate ACK of `una` came for `owner`. `counts` says whether it may tell of a loss; after a time-out it
    /// can be the answer to something sent twice. Whether the window has to be halved.
    pub fn duplicate(&mut self, owner: u32, una: u64, counts: bool) -> bool {
        let recover = self.recover;
        let left = self.sent.iter_mut().find(|t| t.owner == owner && t.from == una);
        let mut nth = 0;
        let mut now = true;
        // Those that come after it has been sent again speak of the same loss.
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
        self.judge()
    }

    /// An ACK in the midst of a recovery of `owner` shows that what begins at `una` is missing as well. Whether the
    /// window has to be halved.
    pub fn missing(&mut self, owner: u32, una: u64) -> bool {
        let found = self.sent.iter().position(|t| t.owner == owner && t.from == una && !t.again);
        found.is_some_and(|i| self.lose(i))
    }

    /// Looks for losses; whether the window has to be halved.
    fn judge(&mut self) -> bool {
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

    /// Transmission `i` is lost; whether that is a new loss, for which the window has to be halved.
    fn lose(&mut self, i: usize) -> bool {
        let lost = self.sent[i];
        self.sent[i].fate = Fate::Lost;
        let mut arrived = lost.dupacks;
        match lost.fate {
            Fate::InFlight => self.flight -= lost.len(),
            // The duplicate ACK came from another one.
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

    /// What `owner` has to send again at once.
    pub fn take_lost(&mut self, owner: u32) -> Option<u64> {
        let lost = self.sent.iter().find(|t| t.owner == owner && t.fate == Fate::Lost).copied()?;
        self.remove(|t| t.number == lost.number);
        Some(lost.from)
    }

    /// The timer of `owner` expired: all that is in flight is lost. `owner` has the turn, then whoever waits, then
    /// whoever has lost something as well.
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

    /// Lent to `owner`, which is about to act.
    pub fn begin(&mut self, owner: u32) {
        self.turn = self.is_first(owner);
    }

    fn is_first(&self, owner: u32) -> bool {
        self.waiting.front().is_some_and(|(first, _)| *first == owner)
    }

    /// `owner` gives back what was lent. A turn that it has not used stays its own, unless it is `at_rest`: then
    /// whoever comes next has it.
    pub fn end(&mut self, owner: u32, at_rest: bool) {
        if self.turn && at_rest {
            self.pass(owner);
        }
    }

    /// Whether `owner` may send `bytes` of new data now. If not, it will be woken when it may.
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

    /// `owner` has nothing to send.
    pub fn pass(&mut self, owner: u32) {
        self.turn = false;
        self.waiting.retain(|(other, _)| *other != owner);
    }

    /// Who has to be woken now: who has lost something, or whose turn it is if there is room.
    pub fn due(&self) -> Option<u32> {
        let lost = self.sent.iter().find(|t| t.fate == Fate::Lost).map(|t| t.owner);
        let first = self.waiting.front().filter(|(_, bytes)| self.room(*bytes));
        lost.or(first.map(|(owner, _)| *owner))
    }

    /// A connection hangs on this from now on.
    pub fn join(&mut self) {
        self.members += 1;
    }

    /// `owner` has ended: what it had in flight is forgotten.
    pub fn leave(&mut self, owner: u32) {
        self.pass(owner);
        self.remove(|t| t.owner == owner);
        self.members = self.members.saturating_sub(1);
    }
}

/// The shared states of a host, by destination. One that is lent stands here as `None`.
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

    /// Puts it back.
    pub fn put_back(&mut self, to: Addr, state: Box<Integrated>) {
        self.0.insert(to, Some(state));
    }

    /// Forgets the destination that has been idle longest, if there are many without a connection.
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
