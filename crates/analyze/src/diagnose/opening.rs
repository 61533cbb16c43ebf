//! Losses and refusals before a connection opens.

use lasthop_proto::units::{Span, Time};

use crate::finding::{Confidence, Diagnosis, Finding};
use crate::handshake::{Attempts, Unreachable};
use crate::reading::{Opening, Signature};

/// Minimum time lost before the opening; less is the jitter of a busy host.
const LOST: Span = Span::millis(100);

/// Minimum time from the first of a few SYNs, or from an only SYN-ACK, to the end of the capture: most answers take less.
const ANSWERED: Span = Span::secs(1);
const FEW: u64 = 2;

/// Opening of a connection, and its time in the capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) opening: Opening,
    pub(crate) attempts: Attempts,
    pub(crate) began: Time,
    pub(crate) ended: Time,
    /// End of the capture.
    pub(crate) until: Time,
}

impl Open {
    /// The side to which the diagnosis belongs, and the diagnosis.
    pub(super) fn diagnose(&self) -> Option<(usize, Diagnosis)> {
        let Open { opening, attempts, .. } = *self;
        let Attempts { opener, syns, syn_acks, late_syns, replaced, .. } = attempts;
        let trying = attempts.syn.1.since(attempts.syn.0);
        let at = |waited: Span| format!("{:.1} s", waited.as_secs_f64());
        let transmissions = |n: u64, of: &str| match n {
            1 => format!("one {of}"),
            n => format!("{n} transmissions of its {of}"),
        };
        let (confidence, waited, evidence, remedy) = match opening {
            Opening::MidConnection => return None,
            Opening::Refused => {
                let after = attempts.refused?.since(attempts.syn.0);
                (
                    Confidence::Certain,
                    after,
                    format!(
                        "the connection was refused: a reset answered {} after {:.1} ms",
                        transmissions(syns, "SYN"),
                        after.as_secs_f64() * 1e3
                    ),
                    "start the program that listens on this port, or change the rule of the firewall that rejects it",
                )
            }
            Opening::Rejected => (
                Confidence::Certain,
                trying,
                format!(
                    "the connection was rejected: an ICMP error ({}) answered {}",
                    attempts.rejected.map_or("", Unreachable::name),
                    transmissions(syns, "SYN")
                ),
                "look at the host that sent the ICMP error: its routes, or the rule of its firewall",
            ),
            Opening::Unanswered
                if syns == 1 && replaced
                    || syns <= FEW && self.until.since(attempts.syn.0) < ANSWERED =>
            {
                return None;
            }
            Opening::Unanswered => (
                Confidence::Certain,
                self.ended.since(self.began),
                format!(
                    "the connection never opened: no answer to {}{} in {}, up to the end of the capture",
                    transmissions(syns, "SYN"),
                    attempts
                        .signature
                        .map_or(String::new(), |by| format!(", which is signed ({by}),")),
                    at(self.until.since(attempts.syn.0))
                ),
                match attempts.signature {
                    Some(Signature::Md5) => {
                        "compare the keys of both ends and their addresses: a host drops a SYN whose signature it \
                     cannot verify (Linux: `nstat -az TcpExtTCPMD5Failure TcpExtTCPMD5NotFound`)"
                    }
                    Some(Signature::Ao) => {
                        "compare the keys of both ends, their numbers and algorithms: a host drops a SYN whose signature \
                     it cannot verify (Linux: `nstat -az TcpExtTCPAOBad TcpExtTCPAOKeyNotFound`)"
                    }
                    None => {
                        "capture at the server too: SYNs that do not arrive are dropped by the path or a firewall; if they arrive, its host \
                 drops them, or its SYN-ACKs take another way"
                    }
                },
            ),
            Opening::Unconfirmed
                if syn_acks == 1 && self.until.since(attempts.syn_ack.0) < ANSWERED =>
            {
                return None;
            }
            Opening::Unconfirmed => {
                let remedy = if late_syns > 0 {
                    "the client repeats its SYN, so the SYN-ACKs are lost behind the point of capture: capture at the client too"
                } else if syn_acks > 1 {
                    "the client's ACK is lost before the point of capture, takes another way, or the client has vanished (a scan or SYN flood): \
                     capture at the client too"
                } else {
                    "one SYN-ACK without an ACK is usual for scans; otherwise capture at the client too"
                };
                (
                    Confidence::Certain,
                    self.ended.since(self.began),
                    format!(
                        "the connection never opened: no ACK of {} in {}, up to the end of the capture",
                        transmissions(syn_acks, "SYN-ACK"),
                        at(self.until.since(attempts.syn_ack.0))
                    ),
                    remedy,
                )
            }
            Opening::Handshake => {
                let by_syns = attempts.answered.since(attempts.syn.0);
                let by_syn_acks = attempts.syn_ack.1.since(attempts.syn_ack.0);
                let from = if syns > 1 { attempts.syn.0 } else { attempts.syn_ack.0 };
                let to = if syn_acks > 1 { attempts.syn_ack.1 } else { attempts.answered };
                let waited = to.since(from);
                if waited < LOST || attempts.challenged {
                    return None;
                }
                let evidence = format!(
                    "the connection opened late: {} of {} passed before it, with {} and {}",
                    at(waited),
                    at(self.ended.since(self.began)),
                    transmissions(syns, "SYN"),
                    transmissions(syn_acks, "SYN-ACK")
                );
                let remedy = if by_syns > by_syn_acks {
                    "the SYNs or their answers were lost: look for losses towards the server, its backlog of connections \
                     (Linux: `nstat -az TcpExtListenDrops`), and limits of SYNs in a firewall"
                } else {
                    "the SYN-ACKs or the ACK of the client were lost: look for losses between the point of capture and the client"
                };
                (Confidence::Likely, waited, evidence, remedy)
            }
        };
        let all = self.ended.since(self.began);
        let share = if all > Span::ZERO { waited.as_secs_f64() / all.as_secs_f64() } else { 1.0 };
        let (waited, share) = (waited.as_secs_f64(), share.min(1.0));
        let finding = Finding::Opening { opening, syns, syn_acks, waited, share };
        // An open connection lost the packets of the side that repeated them; all others belong to the side that tried.
        let repeated = opening == Opening::Handshake && syns <= 1;
        let side = if repeated { 1 - opener } else { opener };
        Some((side, Diagnosis::new(finding, confidence, evidence, remedy)))
    }
}

impl Unreachable {
    /// Meaning of the type and code (RFC 792, RFC 1812 and RFC 4443).
    fn name(self) -> &'static str {
        match (self.v6, self.kind, self.code) {
            (false, 3, 0) | (true, 1, 0) => "network unreachable",
            (false, 3, 1) | (true, 1, 3) => "host unreachable",
            (false, 3, 3) | (true, 1, 4) => "port unreachable",
            (false, 3, 9 | 10 | 13) | (true, 1, 1 | 5 | 6) => "prohibited by a firewall",
            (false, 3, 4) | (true, 2, _) => "packet too big",
            (false, 11, _) | (true, 3, _) => "hop limit exceeded, as in a routing loop",
            _ => "destination unreachable",
        }
    }
}
