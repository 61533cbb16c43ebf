//! The handshake of a connection: its opener, its answer and its duration.

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Flags, Segment, Seq};

use crate::reading::Opening;

/// Maximum number of SYNs with stored timestamps. The echo in a SYN-ACK shows which SYN it answers.
const SYNS: usize = 4;

/// State of a handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
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
            self.refused |= self.answer.is_none() && flags.has(Flags::RST);
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
        if self.syn.is_some_and(|(known, ..)| known != next) {
            self.stamps = [None; SYNS];
        }
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
        if self.answer.is_none_or(|(known, _)| known != next) {
            let former = self.answer.zip(self.syn_ack);
            self.former = former.map(|((known, at), after)| (known, at, after));
            let echo = segment.timestamps.map(|stamps| stamps.echo);
            let echoed = self.stamps.iter().flatten().rfind(|(value, _)| Some(*value) == echo);
            let sent = echoed.map_or(sent, |(_, at)| *at);
            self.syn_ack = Some(at.since(sent));
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

    /// The side that opened the connection, if a part of the handshake was captured.
    pub(crate) fn opener(&self) -> Option<usize> {
        self.opener
    }

    /// The opening of a connection that begins with a SYN.
    pub(crate) fn opening(&self) -> Opening {
        match (self.answer, self.early) {
            (None, None) if self.refused => Opening::Refused,
            (None, None) => Opening::Unanswered,
            _ => Opening::Handshake,
        }
    }
}
