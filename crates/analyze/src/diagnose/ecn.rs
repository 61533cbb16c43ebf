//! ECN: agreed on, marked, or bleached (RFC 3168).

use lasthop_proto::wire::{Flags, Segment};

use crate::finding::{Confidence, Diagnosis, EcnState, Finding};

/// Minimum number of packets with data for a diagnosis.
const FEWEST: u64 = 10;

/// Minimum number of marks, and of ACKs, that prove a missing report: fewer may be the last packets of the capture.
const UNREPORTED: u64 = 3;

/// Codepoints of the traffic class.
const ECN: u8 = 3;
const NOT_ECT: u8 = 0;
const CE: u8 = 3;

/// Point of capture relative to a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Position {
    /// Next to the sender.
    Sender,
    /// Behind a part of the path.
    Behind,
    Unknown,
}

/// ECN fields of the packets of one side whose SYN or SYN-ACK has ECN flags.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ecn {
    /// Flags of its SYN or SYN-ACK.
    opened: Flags,
    /// Packets with new data by codepoint.
    codepoints: [u64; 4],
    /// Packets with an ACK.
    acks: u64,
    /// Packets by which it reports congestion to its peer.
    echoes: u64,
    /// Packets by which it confirms a smaller window.
    reduced: u64,
    /// The counter of CE marks in its latest packet with accurate ECN, and the marks that it has reported.
    ace: Option<u8>,
    marks: u64,
    /// Packets with the AccECN option, its latest counter of bytes with CE, and the bytes that it has reported.
    options: u64,
    ce_counter: u32,
    ce_bytes: u64,
}

/// First value of the counter of CE marks (RFC 9768, 3.2.1).
const FIRST_ACE: u8 = 5;

/// Maximum step of the counter of bytes, which has 24 bits; a larger one is a packet out of order.
const CE_STEP: u32 = 1 << 23;

/// Maximum step of the counter, which has three bits; a larger one is a packet out of order.
const ACE_STEP: u8 = 5;

impl Ecn {
    /// The state after a SYN or SYN-ACK with these flags, from that before.
    pub(super) fn opened(before: Option<Box<Ecn>>, opened: Flags) -> Option<Box<Ecn>> {
        let mut ecn = before.unwrap_or_default();
        ecn.opened = opened;
        opened.any(Flags::ECE | Flags::CWR | Flags::AE).then_some(ecn)
    }

    /// Processes a packet with the traffic class `tos`; `fresh` is whether it has new data.
    pub(super) fn packet(&mut self, segment: &Segment, tos: u8, fresh: bool) {
        let bits = [(Flags::AE, 4), (Flags::CWR, 2), (Flags::ECE, 1)];
        let ace = bits
            .iter()
            .map(|(flag, bit)| if segment.flags.has(*flag) { *bit } else { 0 })
            .sum::<u8>();
        let client = !self.opened.has(Flags::ACK);
        //= rfc9768#section-3.2.2.1: the first ACK of a client reports the codepoint of the SYN-ACK instead
        let first = client && self.acks == 0;
        let step = ace.wrapping_sub(self.ace.unwrap_or(FIRST_ACE)) & 7;
        if !first && step <= ACE_STEP {
            self.marks += u64::from(step);
            self.ace = Some(ace);
        }
        if let Some(counts) = segment.options().ecn {
            self.options += 1;
            let ce = counts.ce().unwrap_or(self.ce_counter);
            let more = ce.wrapping_sub(self.ce_counter) & 0xff_ffff;
            if more <= CE_STEP {
                (self.ce_counter, self.ce_bytes) = (ce, self.ce_bytes + u64::from(more));
            }
        }
        self.acks += u64::from(segment.flags.has(Flags::ACK));
        self.echoes += u64::from(segment.flags.has(Flags::ECE));
        self.reduced += u64::from(segment.flags.has(Flags::CWR));
        if fresh {
            self.codepoints[usize::from(tos & ECN)] += 1;
        }
    }

    /// Diagnoses ECN of this side's data; `peer` sends the reports.
    //= rfc3168#section-6.1.1: a SYN with ECE and CWR offers ECN, a SYN-ACK with ECE alone accepts it
    pub(super) fn diagnose(&self, peer: &Ecn, position: Position) -> Option<Diagnosis> {
        let (own, other) = (self.opened, peer.opened);
        let (syn, answer) = if own.has(Flags::ACK) { (other, own) } else { (own, other) };
        let all: u64 = self.codepoints.iter().sum();
        //= rfc9768#section-3.1.2: a SYN-ACK with ECE alone accepts classic ECN, also of a SYN that offers AccECN
        let accepts = answer.has(Flags::ECE) && !answer.has(Flags::CWR);
        let offers = syn.has(Flags::ECE | Flags::CWR);
        let accurate = offers
            && syn.has(Flags::AE)
            && match (answer.has(Flags::AE), answer.has(Flags::CWR), answer.has(Flags::ECE)) {
                (false, true, _) | (true, _, false) => true,
                (false, false, _) | (true, _, true) => false,
            };
        let agreed = accurate || offers && accepts && !answer.has(Flags::AE);
        if !agreed || all < FEWEST {
            return None;
        }
        let offered = match (accurate, syn.has(Flags::AE)) {
            (true, _) if peer.options > 0 => {
                format!(
                    " (AccECN: the receiver counts marks, and its option reports {} B with CE)",
                    peer.ce_bytes
                )
            }
            (true, _) => " (AccECN without its option: the receiver counts marks)".to_owned(),
            (false, true) => " (the client offered AccECN, the server has classic ECN)".to_owned(),
            (false, false) => String::new(),
        };
        let ce = self.codepoints[usize::from(CE)];
        let not_ect = self.codepoints[usize::from(NOT_ECT)];
        let echoes = if accurate { peer.marks } else { peer.echoes };
        let mut confidence = Confidence::Certain;
        let (state, evidence, remedy) = if not_ect == all && echoes == 0 {
            if position != Position::Behind {
                return None;
            }
            confidence = Confidence::Likely;
            (
                EcnState::Bleached,
                format!(
                    "ECN is bleached on the path: both ends agreed on it, and none of {all} packets with data has ECT"
                ),
                "find the router that clears the two ECN bits with the DSCP (a rule for the whole TOS byte), by captures along the path",
            )
        } else if ce >= UNREPORTED && echoes == 0 && peer.acks >= UNREPORTED {
            confidence = Confidence::Likely;
            (
                EcnState::Marked,
                format!(
                    "ECN marks without effect: {ce} of {all} packets with data carry CE here, and no packet of the receiver \
                     reports congestion"
                ),
                "look for a router that sets both ECN bits of all packets, or a firewall that clears ECE, by captures along the path",
            )
        } else if ce + echoes > 0 && accurate {
            (
                EcnState::Marked,
                format!(
                    "ECN marks: {ce} of {all} packets with data carry CE here, the receiver reports {echoes} or more"
                ),
                "none needed: a queue signals congestion without losses; where marks are many at a low rate, raise its marking threshold",
            )
        } else if ce + echoes > 0 {
            (
                EcnState::Marked,
                format!(
                    "ECN marks: {ce} of {all} packets with data carry CE here, {echoes} packets of the receiver report congestion, \
                     {} of the sender confirm a smaller window",
                    self.reduced
                ),
                "none needed: a queue signals congestion without losses; where marks are many at a low rate, raise its marking threshold",
            )
        } else if not_ect * 2 > all {
            return None;
        } else {
            (
                EcnState::Unmarked,
                format!(
                    "ECN is agreed on and used: {} of {all} packets with data have ECT, none is marked",
                    all - not_ect
                ),
                "none needed; where a queue of the path overflows nevertheless, turn on marking there (fq_codel, CAKE)",
            )
        };
        let evidence = evidence + &offered;
        let finding = Finding::Ecn { state, accurate, data: all, ect: all - not_ect, ce, echoes };
        Some(Diagnosis::new(finding, confidence, evidence, remedy))
    }
}
