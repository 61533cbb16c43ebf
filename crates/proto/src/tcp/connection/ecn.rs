//! Explicit congestion notification (RFC 3168), and congestion control of ACKs (balakrishnan97 4.2.1).
//!
//! ECN follows RFC 3168. The SYNs negotiate it, and only new data may be marked. The receiver echoes a mark until the
//! sender reports a reduced window. A retransmitted SYN offers no ECN, because some paths drop such SYNs.
//!
//! Accurate ECN (RFC 9768, [`accurate`](crate::tcp::accurate)) is negotiated in the same way with three flags instead
//! of two, and its counters replace the echoes. A peer without it falls back to classic ECN, or to none.
//!
//! With congestion control of ACKs, pure ACKs may be marked as well, which RFC 3168 forbids otherwise. A marked ACK
//! does not reduce the window for data.

use crate::event::{Cause, TcpKind};
use crate::machine::Out;
use crate::tcp::acc::Report;
use crate::tcp::accurate::{Accurate, OFFER};
use crate::tcp::sender::congestion_control::CongestionControl;
use crate::units::Time;
use crate::wire::{Acc, Body, CE, ECT, ECT1, Flags, Segment, options};

use super::Connection;

impl Connection {
    /// Offers and accepts ECN, although it is not configured. Only before the handshake.
    pub fn set_ecn(&mut self, on: bool) {
        self.ecn = on;
    }

    /// Uses ECN only if the other half of a split connection does, unless it is configured.
    pub fn limit_ecn(&mut self, other: &Connection) {
        self.agreed.ecn &= other.agreed.ecn || self.config.ecn || self.config.accurate_ecn.is_on();
    }

    /// Sets the DSCP (in the six upper bits) and the IPv6 flow label of all packets from now on.
    pub fn set_class(&mut self, dscp: u8, label: u32) {
        self.class = (dscp & !CE, label);
    }

    /// The flags by which a SYN offers ECN, or a SYN-ACK agrees to it.
    //= rfc3168#section-6.1.1: ECE and CWR on the SYN, ECE alone on the SYN-ACK
    pub(super) fn ecn_setup(&mut self, answering: bool, again: bool) -> Flags {
        if answering {
            return match &self.marks.accurate {
                Some(accurate) => accurate.answer(),
                None if self.agreed.ecn => Flags::ECE,
                None => Flags::NONE,
            };
        }
        let accurate = self.config.accurate_ecn.is_on();
        self.marks.offered = accurate && !again;
        match again {
            false if accurate => OFFER,
            false if self.config.ecn || self.ecn => Flags::ECE | Flags::CWR,
            _ => Flags::NONE,
        }
    }

    /// Negotiates ECN and ACK congestion control from the peer's SYN or SYN-ACK.
    pub(super) fn agree_ecn(&mut self, syn: &Segment) {
        let (mode, field, answer) =
            (self.config.accurate_ecn, syn.flags.ace(), syn.flags.has(Flags::ACK));
        let accurate = if answer {
            //= rfc9768#section-3.1.2: Table 2: the fields of a SYN-ACK that accepts
            self.marks.offered && matches!(field, 0b010 | 0b011 | 0b100 | 0b110)
        } else {
            //= rfc9768#section-3.1.3: an undefined combination counts as an offer
            mode.is_on() && !matches!(field, 0b000 | 0b011)
        };
        let classic = if answer {
            //= rfc3168#section-6.1.1: a SYN-ACK that reflects both flags comes from a host without ECN
            syn.flags.has(Flags::ECE) && !syn.flags.has(Flags::CWR)
        } else {
            syn.flags.has(Flags::ECE | Flags::CWR)
        };
        let may = self.config.ecn || self.ecn || mode.is_on();
        self.agreed.ecn = may && classic && !accurate;
        let bits = self.marks.arrived;
        self.marks.accurate = accurate.then(|| Box::new(Accurate::new(mode, bits, answer)));
        let acc = self.config.acc.filter(|_| syn.options().acc == Some(Acc::Permitted));
        self.agreed.acc = acc.is_some();
        if let Some(config) = acc {
            self.rx.control_acks(config);
        }
    }

    /// The ECN bits of a packet that is sent for `cause`.
    #[inline]
    pub(super) fn ecn_bits(&self, segment: &Segment, body: &Body, cause: Cause) -> u8 {
        if segment.flags.any(Flags::SYN | Flags::RST) {
            return 0;
        }
        let counted = self.marks.accurate.as_ref().is_some_and(|accurate| accurate.may_mark());
        if counted && self.tx.core.congestion_control.scalable() {
            //= rfc8311#section-4.3: experiments may mark retransmissions as well
            return if body.is_empty() { 0 } else { ECT1 };
        }
        let may = match cause {
            //= rfc3168#section-6.1.5: retransmitted data must not be marked
            //= rfc3168#section-6.1.6: neither must window probes
            Cause::Data => (self.agreed.ecn || counted) && !body.is_empty(),
            //= balakrishnan97#4.2.1: both data packets and ACKs are candidates for being marked
            Cause::Ack => self.agreed.acc,
            _ => false,
        };
        if may { ECT } else { 0 }
    }

    /// The flags of a segment that report congestion to the peer.
    pub(super) fn congestion_flags(&mut self) -> Flags {
        match &mut self.marks.accurate {
            //= rfc9768#section-3.2.2.2: every segment but SYNs carries the count
            Some(accurate) => accurate.segment_flags(),
            //= rfc3168#section-6.1.3: ECE on all ACKs until a segment with CWR arrives
            None if self.marks.echo => Flags::ECE,
            None => Flags::NONE,
        }
    }

    /// Adds the counters of marked bytes to a pure ACK.
    pub(super) fn add_counts(&mut self, ack: &mut Segment) {
        if let Some(accurate) = &mut self.marks.accurate {
            accurate.complete(ack, (20 + options::MAX_LEN as u32).saturating_sub(ack.header_len()));
        }
    }

    /// Adds the counters of bytes to a SYN-ACK, if there is room.
    pub(super) fn add_first_counts(&self, answer: &mut Segment) {
        let room = (20 + options::MAX_LEN as u32).saturating_sub(answer.header_len());
        if let Some(counts) = self.marks.accurate.as_ref().and_then(|a| a.counts(room)) {
            answer.options_mut().ecn = Some(counts);
        }
    }

    /// Sends a pure ACK of the SYN-ACK before any data: only this ACK reports the ECN bits with which the SYN-ACK
    /// arrived.
    //= rfc9768#section-3.2.2.1: a client should first send a pure ACK
    pub(super) fn reflect(&mut self, now: Time, out: &mut Out) {
        let reflects = self.marks.accurate.as_ref().is_some_and(|accurate| accurate.reflects());
        if reflects && self.tx.has_work() && !self.acks_end_to_end() {
            self.rx.demand_ack();
            self.send_ack(now, out);
        }
    }

    /// Adds the sender's report for ACK congestion control to a data segment, if agreed on.
    pub(super) fn add_ack_report(&self, segment: &mut Segment) {
        if self.agreed.acc {
            let window = &self.tx.core.window;
            let segments = (window.allowed() / u64::from(window.mss)).min(u16::MAX.into()) as u16;
            let acked = self.iss + window.una as u32;
            let report = Acc::Window { segments, marks: self.marked_acks, acked };
            segment.options_mut().acc = Some(report);
        }
    }

    /// Records the ECN mark of an acceptable segment with `len` bytes of payload, and the report for ACK congestion
    /// control.
    pub(super) fn take_marks(&mut self, now: Time, segment: &Segment, len: u32, out: &mut Out) {
        let (data, bits) = (len > 0, self.marks.arrived);
        let marked = bits == CE;
        if let Some(accurate) = &mut self.marks.accurate {
            if accurate.arrived(bits, len) {
                self.rx.demand_ack();
            }
        } else if self.agreed.ecn {
            if segment.flags.has(Flags::CWR) {
                self.marks.echo = false;
            }
            let fresh = marked && data && !self.marks.echo;
            self.marks.echo |= marked && data;
            if data {
                self.hurry_acks(segment, fresh);
            }
        }
        if !self.agreed.acc {
            return;
        }
        if marked && !data {
            self.marked_acks = self.marked_acks.wrapping_add(1);
        }
        if let (true, Some(Acc::Window { segments, marks, acked })) = (data, segment.options().acc)
        {
            let report = Report {
                window: segments,
                marks,
                acked,
                echo: segment.timestamps.filter(|_| self.agreed.timestamps).map(|ts| ts.echo),
                clock: self.timestamp(now),
                next: self.irs + self.rx.nxt as u32,
            };
            if let Some(every) = self.rx.on_ack_report(&report) {
                self.report(TcpKind::AckFactor { every }, out);
            }
        }
    }

    /// Sends ACKs at once if the peer may have a small window, as Linux does: after a `fresh` mark, and after CWR.
    /// Also after data without ECT from a peer that uses ECT, since this data is probably retransmitted
    /// (`tcp_data_ecn_check`, `tcp_ecn_accept_cwr`).
    fn hurry_acks(&mut self, segment: &Segment, fresh: bool) {
        let bits = self.marks.arrived;
        let again = bits == 0 && self.marks.seen;
        self.marks.seen |= bits != 0;
        let Some(quick) = self.rx.timed() else { return };
        if fresh || again {
            quick.marked();
        }
        if segment.flags.has(Flags::CWR) {
            self.rx.demand_ack();
        }
    }

    /// Bytes that an ACK newly reports as marked.
    pub(super) fn take_counts(&mut self, segment: &Segment, ack: u64, carries: bool) -> u32 {
        let (newly, w) = (self.tx.newly_reported(ack), &self.tx.core.window);
        match &mut self.marks.accurate {
            //= rfc9768#section-3.2.2.2: a superseded ACK is ignored
            Some(accurate) if ack >= w.una => accurate.on_ack(segment, !carries, newly, w.mss),
            _ => 0,
        }
    }

    /// Reacts to an ACK of `ack` that echoes a mark, or that newly reports `ce_bytes` as marked.
    pub(super) fn take_echo(
        &mut self,
        now: Time,
        segment: &Segment,
        (ack, ce_bytes): (u64, u32),
        out: &mut Out,
    ) {
        let echoes =
            self.agreed.ecn && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::SYN);
        if (echoes || ce_bytes > 0)
            && let Some(kind) = self.tx.on_congestion_echo(now, ack, ce_bytes > 0)
        {
            self.report(kind, out);
        }
    }
}
