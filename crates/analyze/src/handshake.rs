//! The handshake of a connection: its opener, its answer and its duration.

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Flags, Segment, Seq};

use crate::reading::{Opening, Signature};

/// Maximum number of SYNs with stored timestamps. The echo in a SYN-ACK shows which SYN it answers.
const SYNS: usize = 4;

/// Minimum initial timeout of a SYN or SYN-ACK (RFC 6298, 2.1).
const SYN_TIMEOUT: Span = Span::secs(1);

/// SYNs and SYN-ACKs until the connection opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attempts {
    /// The side that sent the SYN.
    pub(crate) opener: usize,
    pub(crate) syns: u64,
    pub(crate) syn_acks: u64,
    /// SYNs after the first SYN-ACK.
    pub(crate) late_syns: u64,
    /// The first and the latest SYN.
    pub(crate) syn: (Time, Time),
    /// The first and the latest SYN-ACK.
    pub(crate) syn_ack: (Time, Time),
    /// The SYN that was answered.
    pub(crate) answered: Time,
    /// When the other side refused, or a router rejected, the latest SYN.
    pub(crate) refused: Option<Time>,
    /// Whether the other side answered with an ACK of an old connection (RFC 5961, 4).
    pub(crate) challenged: bool,
    /// Whether a SYN with another number followed: that of the next connection, or of a PEP that splits this one.
    pub(crate) replaced: bool,
    /// The signature of the SYN.
    pub(crate) signature: Option<Signature>,
    /// The ICMP error that quotes a SYN.
    pub(crate) rejected: Option<Unreachable>,
}

/// Type and code of an ICMP error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unreachable {
    pub(crate) v6: bool,
    pub(crate) kind: u8,
    pub(crate) code: u8,
}

/// State of a handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
    attempts: Attempts,
    /// The opener acknowledges the SYN-ACK, or the other side continues behind it.
    opened: bool,
    /// The side that sent the SYN.
    opener: Option<usize>,
    /// Number behind the SYN and its data, and when it was captured last.
    syn: Option<(Seq, u32, Time)>,
    stamps: [Option<(u32, Time)>; SYNS],
    /// Number behind the SYN-ACK, and when it was captured last.
    answer: Option<(Seq, Time)>,
    /// The same for an earlier SYN-ACK with another number, and the time from the SYN to it.
    former: Option<(Seq, Time, Span)>,
    /// An ACK of the opener in the file before the SYN-ACK, or without a SYN-ACK.
    early: Option<(Seq, Time)>,
    refused: bool,
    /// Whether the other side sent anything.
    answered: bool,
    syn_ack: Option<Span>,
    rtt: Option<Span>,
}

impl Handshake {
    pub(crate) fn packet(&mut self, side: usize, at: Time, segment: &Segment, len: u32) {
        let flags = segment.flags;
        let (syn, ack) = (flags.has(Flags::SYN), flags.has(Flags::ACK));
        if self.opener.is_some_and(|opener| opener != side) {
            self.answered = true;
            if self.answer.is_none() && flags.has(Flags::RST) {
                self.refused = true;
                self.attempts.refused.get_or_insert(at);
            }
            self.attempts.challenged |= self.answer.is_none() && !syn && ack;
        }
        if !self.opened && !syn && !flags.has(Flags::RST) {
            self.opened = self.answer.is_some_and(|(next, _)| {
                let own = self.opener != Some(side);
                own && (segment.seq + len - next) > 0 || !own && ack && segment.ack - next >= 0
            });
        }
        match (syn, ack) {
            (true, false) => self.syn(side, at, segment, len),
            (true, true) => self.syn_ack(side, at, segment),
            (false, true) if !flags.has(Flags::RST) => self.ack(side, at, segment),
            _ => {}
        }
    }

    fn syn(&mut self, side: usize, at: Time, segment: &Segment, len: u32) {
        // A simultaneous open has two openers; the first one counts (RFC 9293, 3.5).
        if self.opener.is_some_and(|opener| opener != side) || self.rtt.is_some() {
            return;
        }
        let next = segment.seq + 1;
        if self.syn.is_none_or(|(known, ..)| known != next) {
            self.stamps = [None; SYNS];
            self.attempts = Attempts { opener: side, syn: (at, at), ..Attempts::default() };
        }
        self.attempts.syns += 1;
        self.attempts.late_syns += u64::from(self.attempts.syn_acks > 0);
        self.attempts.syn.1 = at;
        self.attempts.signature = Signature::of(segment);
        self.attempts.refused = None;
        if let Some(stamps) = segment.timestamps {
            self.stamps.rotate_right(1);
            self.stamps[0] = Some((stamps.value, at));
        }
        self.opener = Some(side);
        self.syn = Some((next, len, at));
        (self.answer, self.former, self.early, self.refused) = (None, None, None, false);
    }

    fn syn_ack(&mut self, side: usize, at: Time, segment: &Segment) {
        let next = segment.seq + 1;
        let Some((syn, len, sent)) = self.syn else {
            // Its SYN was not captured.
            self.opener.get_or_insert(1 - side);
            self.answered = true;
            self.answer = Some((next, at));
            return;
        };
        let covered = segment.ack - syn;
        if self.opener == Some(side) || self.rtt.is_some() {
            return;
        }
        if covered < 0 || i64::from(covered) > i64::from(len) {
            return;
        }
        self.refused = false;
        if self.attempts.syn_acks == 0 {
            self.attempts.syn_ack.0 = at;
        }
        self.attempts.syn_acks += u64::from(!self.opened);
        self.attempts.syn_ack.1 = at;
        if self.answer.is_none_or(|(known, _)| known != next) {
            let former = self.answer.zip(self.syn_ack);
            self.former = former.map(|((known, at), after)| (known, at, after));
            let echo = segment.timestamps.map(|stamps| stamps.echo);
            let echoed = self.stamps.iter().flatten().rfind(|(value, _)| Some(*value) == echo);
            let (latest, sent) = (sent, echoed.map_or(sent, |(_, at)| *at));
            // A repeated SYN-ACK echoes the first SYN as well: the round trip is unknown.
            let again = sent < latest && at.since(sent) >= SYN_TIMEOUT;
            let lost = again && self.attempts.syn_acks <= 1;
            self.attempts.answered = if lost { latest } else { sent };
            self.syn_ack = (!again).then(|| at.since(sent));
            if let Some((_, ack)) = self.early.filter(|(ack, _)| *ack == next) {
                self.finish(Some(ack.since(sent)));
            }
        }
        self.answer = Some((next, at));
    }

    fn ack(&mut self, side: usize, at: Time, segment: &Segment) {
        let Some((syn, len, sent)) = self.syn.filter(|_| self.opener == Some(side)) else { return };
        let covered = segment.seq - syn;
        if self.rtt.is_some() || covered < 0 || i64::from(covered) > i64::from(len) {
            return;
        }
        // If the clock of the answer differs, as between taps or in a damaged record, only the times of the opener
        // count.
        let whole = |first: Span, answered: Time| match at >= answered {
            true => first + at.since(answered),
            false => at.since(sent),
        };
        match (self.answer, self.syn_ack) {
            (Some((next, answered)), Some(first)) if segment.ack == next => {
                self.finish(Some(whole(first, answered)));
            }
            // An old duplicate, or another server, has answered as well.
            _ if self.former.is_some_and(|(next, ..)| segment.ack == next) => {
                if let Some((_, answered, first)) = self.former {
                    self.syn_ack = Some(first);
                    self.finish(Some(whole(first, answered)));
                }
            }
            (Some(_), _) => {}
            (None, _) => {
                self.early.get_or_insert((segment.ack, at));
            }
        }
    }

    fn finish(&mut self, rtt: Option<Span>) {
        self.rtt = rtt.filter(|rtt| *rtt > Span::ZERO);
        self.syn_ack = self.syn_ack.filter(|part| self.rtt.is_none_or(|rtt| *part <= rtt));
    }

    /// From the SYN to the ACK that ends the handshake.
    pub(crate) fn rtt(&self) -> Option<Span> {
        // If only the opener was captured, its ACK proves an answer.
        let alone = || {
            let ((_, at), (.., syn)) = self.early.filter(|_| !self.answered).zip(self.syn)?;
            Some(at.since(syn)).filter(|rtt| *rtt > Span::ZERO)
        };
        self.rtt.or_else(alone)
    }

    /// Round trip between the point of capture and the peer of `side`.
    pub(crate) fn feedback(&self, side: usize) -> Option<Span> {
        let there = self.syn_ack?;
        if self.opener == Some(side) { Some(there) } else { Some(self.rtt?.saturating_sub(there)) }
    }

    /// From the SYN to the SYN-ACK.
    pub(crate) fn syn_ack_after(&self) -> Option<Span> {
        self.syn_ack
    }

    /// Another connection between the same ports follows.
    pub(crate) fn replaced(&mut self) {
        self.attempts.replaced = true;
    }

    /// An ICMP error quotes a packet of the connection.
    pub(crate) fn unreachable(&mut self, error: Unreachable) {
        if self.answer.is_none() && self.syn.is_some() {
            self.attempts.rejected = Some(error);
        }
    }

    /// The SYNs, and those that were repeated in addition, the latest at `at`.
    pub(crate) fn attempts(&self, more: u64, at: Time) -> Attempts {
        let mut attempts = self.attempts;
        attempts.syns += more;
        attempts.syn.1 = if more > 0 { attempts.syn.1.max(at) } else { attempts.syn.1 };
        attempts
    }

    /// The side that opened the connection, if a part of the handshake was captured.
    pub(crate) fn opener(&self) -> Option<usize> {
        self.opener
    }

    /// The opening of a connection that begins with a SYN.
    pub(crate) fn opening(&self) -> Opening {
        match (self.answer, self.early) {
            (None, None) if self.refused => Opening::Refused,
            (None, None) if self.attempts.rejected.is_some() => Opening::Rejected,
            (None, None) => Opening::Unanswered,
            (Some(_), None) if !self.opened && self.syn.is_some() => Opening::Unconfirmed,
            _ => Opening::Handshake,
        }
    }
}
