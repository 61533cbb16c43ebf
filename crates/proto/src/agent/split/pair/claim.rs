//! Attribution of packets to a pair, and evidence that a peer has continued without the base station.
//!
//! A third party with the addresses and ports can send arbitrary numbers. It receives no answer, so it must
//! guess: one packet in some thousands has numbers within the windows, and one in 2^32 has a certain number.
//! So a segment is evidence if it has the expected number, as for a reset (RFC 5961 section 3.2). It is
//! evidence too if it reports the byte of a probe as a duplicate (RFC 2883).

use super::{Half, Pair};
use crate::machine::{Out, Side};
use crate::tcp::connection::Evidence;
use crate::units::{Span, Time};
use crate::wire::{Flags, Packet, Segment, Seq};

/// Minimum time between probes.
//= rfc5961#section-7: challenges are limited in number; here two in a second, for each end
const PROBE_EVERY: Span = Span::millis(500);

/// Time limit of the answer to a probe.
const WITHIN: Span = Span::secs(10);

/// Age of a SYN of the far end from which its next copy replaces the opener's SYN. A host retransmits a SYN
/// after one second.
//= rfc6298#section-2: the initial timeout is one second
const REPEATED: Span = Span::millis(500);

/// Suspicion about a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubt {
    /// Time of the last probe.
    probed: Option<Time>,
}

fn is_recent(at: Option<Time>, now: Time, span: Span) -> bool {
    at.is_some_and(|at| now.since(at) < span)
}

impl Doubt {
    /// Whether an answer to a probe may arrive.
    pub(super) fn is_probed(&self, now: Time) -> bool {
        is_recent(self.probed, now, WITHIN)
    }

    /// Whether a probe may be sent now; the caller sends it.
    pub(super) fn may_probe(&mut self, now: Time) -> bool {
        let may = !is_recent(self.probed, now, PROBE_EVERY);
        if may {
            self.probed = Some(now);
        }
        may
    }
}

/// Attribution of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::agent) enum Claim {
    /// It belongs to the pair.
    Own,
    /// It belongs to the hosts themselves, or to a third party.
    Foreign,
    /// It is dropped without effect.
    Void,
    /// It proves that the hosts have continued without the pair.
    Bypassed,
}

impl Pair {
    /// Whether `syn` from `from` begins another connection than the pending handshake.
    pub(in crate::agent) fn is_stale(&self, from: Side, syn: &Segment) -> bool {
        let half = &self.halves[from.index()];
        let opens = syn.flags.has(Flags::SYN) && !syn.flags.any(Flags::ACK | Flags::RST);
        from == self.opener && opens && half.is_held() && half.peer_iss() != syn.seq
    }

    /// Whether the handshake waits for the answer of the far end.
    fn is_opening(&self) -> bool {
        self.halves[self.opener.index()].is_held()
    }

    /// Whether the handshake is pending, and `syn` from `from` is not its SYN.
    pub(in crate::agent) fn is_of_another(&self, from: Side, syn: &Segment) -> bool {
        self.is_opening() && (from != self.opener || self.is_stale(from, syn))
    }

    /// Whether `syn` from `from` repeats a SYN of the far end. If both hosts open at once, the far end answers
    /// the SYN of this pair and does not repeat its own. Otherwise the opener's SYN may be a third party's: a
    /// firewall of the far end drops it, and the far end opens the connection itself. Records the first copy.
    pub(in crate::agent) fn is_crossed(&mut self, now: Time, from: Side, syn: &Segment) -> bool {
        let opens = syn.flags.has(Flags::SYN) && !syn.flags.any(Flags::ACK | Flags::RST);
        let is_far = opens && from != self.opener && self.is_opening();
        let Some(waiting) = self.first.as_deref_mut().filter(|_| is_far) else { return false };
        match waiting.crossed {
            Some((seq, at)) if seq == syn.seq => now.since(at) >= REPEATED,
            _ => {
                waiting.crossed = Some((syn.seq, now));
                false
            }
        }
    }

    /// The SYN of the far end during the handshake.
    pub(in crate::agent) fn crossed(&self) -> Option<(Seq, Time)> {
        self.first.as_deref()?.crossed
    }

    /// Takes over the SYN of the far end from a pair that this one replaces.
    pub(in crate::agent) fn set_crossed(&mut self, crossed: Option<(Seq, Time)>) {
        if let Some(waiting) = self.first.as_deref_mut() {
            waiting.crossed = crossed;
        }
    }

    /// Takes the first of the contending SYNs.
    pub(in crate::agent) fn take_first(&mut self) -> Option<Box<Packet>> {
        let rival = self.rival.take();
        rival.or_else(|| self.first.take().map(|first| Box::new(first.syn)))
    }

    /// Stores a SYN that arrived before the SYN of this pair.
    pub(in crate::agent) fn set_rival(&mut self, rival: Option<Box<Packet>>) {
        self.rival = rival;
    }

    /// The earlier SYN, if `segment` of the far end answers it.
    pub(in crate::agent) fn take_answered(
        &mut self,
        from: Side,
        segment: &Segment,
    ) -> Option<Packet> {
        let answers = segment.flags.has(Flags::SYN | Flags::ACK) && from != self.opener;
        let held = self.halves[self.opener.index()].is_held();
        let seq = self.rival.as_deref()?.segment()?.seq;
        (answers && held && segment.ack == seq + 1).then(|| self.rival.take())?.map(|rival| *rival)
    }

    /// Attribution of `packet` from `from`.
    pub(in crate::agent) fn judge(
        &mut self,
        now: Time,
        from: Side,
        packet: &Packet,
        out: &mut Out,
    ) -> Claim {
        let Some(segment) = packet.segment() else { return Claim::Foreign };
        if self.is_opening() {
            return self.judge_handshake(from, segment);
        }
        let open = self.open_until.is_none();
        match open && self.is_bypassed(now, from, segment, packet.body.len(), out) {
            true => Claim::Bypassed,
            false => Claim::Own,
        }
    }

    /// Attribution during the handshake. Until the far end answers, its host and the opener may have an
    /// unsplit connection whose SYN a third party repeats. So only the answer to the SYN, and the opener's
    /// own reset, belong to this pair.
    fn judge_handshake(&self, from: Side, segment: &Segment) -> Claim {
        let half = &self.halves[from.index()];
        let flags = segment.flags;
        let own = match (from == self.opener, flags.has(Flags::SYN), flags.has(Flags::RST)) {
            (true, _, true) => segment.seq == half.peer_iss() + 1,
            (true, true, _) => true,
            (true, false, _) => false,
            // A simultaneous open, or a forgery. A host that opens too would answer this pair's SYN.
            (false, true, false) if !flags.has(Flags::ACK) => return Claim::Void,
            (false, ..) => half.is_answered_by(segment),
        };
        if own { Claim::Own } else { Claim::Foreign }
    }

    /// Whether `segment` from `from`, with `len` bytes of payload, proves that the ends have continued
    /// without the pair, and the pair has no acknowledged data that it must still deliver.
    fn is_bypassed(
        &mut self,
        now: Time,
        from: Side,
        segment: &Segment,
        len: u32,
        out: &mut Out,
    ) -> bool {
        let i = from.index();
        let (half, doubt) = (&mut self.halves[i], &mut self.doubts[i]);
        let evidence = half.evidence(segment, len, doubt.is_probed(now));
        if evidence == Evidence::None {
            return false;
        }
        if evidence == Evidence::Suspect {
            if doubt.may_probe(now)
                && let Some(probe) = half.probe(now)
            {
                half.send_probe(probe, 1, out);
            }
            return false;
        }
        // M-TCP has acknowledged no data that it still has to deliver.
        let dispensable = half.acks_end_to_end() || self.halves.iter().all(Half::has_delivered);
        if !dispensable {
            self.halves[i].accept_acks_beyond();
        }
        dispensable
    }
}
