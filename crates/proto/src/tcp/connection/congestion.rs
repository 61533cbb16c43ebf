//! Marks of routers: explicit congestion notification (RFC 3168), and what a sender tells its receiver about marked
//! ACKs (balakrishnan97 4.2.1).
//!
//! ECN as in RFC 3168: offered and agreed on by the SYNs; data sent for the first time may be marked; a mark is
//! echoed until the sender says that it has reduced its window. A SYN that has to be sent again offers nothing, for
//! the sake of paths that swallow such SYNs.
//!
//! With congestion control of acknowledgements pure ACKs may be marked too, which RFC 3168 forbids otherwise. A mark
//! on an ACK says nothing about the data: no window is reduced for it.

use crate::event::{Cause, TcpKind};
use crate::machine::Out;
use crate::tcp::acc::Report;
use crate::units::Time;
use crate::wire::{Acc, Body, ECT, Flags, Packet, Segment};

use super::Connection;

impl Connection {
    /// The flags by which a SYN offers ECN, or a SYN-ACK agrees to it.
    //= rfc3168#section-6.1.1: ECE and CWR on the SYN, ECE alone on the SYN-ACK
    pub(super) fn ecn_setup(&self, answering: bool, again: bool) -> Flags {
        match (answering, again) {
            (true, _) if self.agreed.ecn => Flags::ECE,
            (false, false) if self.config.ecn => Flags::ECE | Flags::CWR,
            _ => Flags::NONE,
        }
    }

    /// Takes in what the peer's SYN or SYN-ACK says of ECN and of ACK congestion control.
    pub(super) fn agree(&mut self, syn: &Segment) {
        let flags = syn.flags;
        let offered = if flags.has(Flags::ACK) {
            //= rfc3168#section-6.1.1: a SYN-ACK that reflects both flags comes from a host that knows nothing of ECN
            flags.has(Flags::ECE) && !flags.has(Flags::CWR)
        } else {
            flags.has(Flags::ECE | Flags::CWR)
        };
        self.agreed.ecn = self.config.ecn && offered;
        let acc = self.config.acc.filter(|_| syn.options().acc == Some(Acc::Permitted));
        self.agreed.acc = acc.is_some();
        if let Some(config) = acc {
            self.rx.control_acks(config);
        }
    }

    /// The ECN bits of a packet that goes out for `cause`.
    pub(super) fn ecn_bits(&self, segment: &Segment, body: &Body, cause: Cause) -> u8 {
        if segment.flags.any(Flags::SYN | Flags::RST) {
            return 0;
        }
        let may = match cause {
            //= rfc3168#section-6.1.5: retransmitted data must not be marked
            //= rfc3168#section-6.1.6: neither must window probes
            Cause::Data => self.agreed.ecn && !body.is_empty(),
            //= balakrishnan97#4.2.1: both data packets and ACKs are candidates for being marked
            Cause::Ack => self.agreed.acc,
            _ => false,
        };
        if may { ECT } else { 0 }
    }

    /// What the peer must hear of congestion goes with every segment.
    pub(super) fn congestion_flags(&self) -> Flags {
        //= rfc3168#section-6.1.3: ECE on all ACKs until a segment with CWR comes
        if self.echo { Flags::ECE } else { Flags::NONE }
    }

    /// What data tells its receiver about ACKs, if that is agreed on.
    pub(super) fn tell_of_acks(&self, segment: &mut Segment) {
        if self.agreed.acc {
            let window = &self.tx.core.window;
            let segments = (window.allowed() / u64::from(window.mss)).min(u16::MAX.into()) as u16;
            let acked = self.iss + window.una as u32;
            let told = Acc::Window { segments, marks: self.marked_acks, acked };
            segment.options_mut().acc = Some(told);
        }
    }

    /// An acceptable segment of the peer came, marked by a router or not.
    pub(super) fn take_marks(
        &mut self,
        now: Time,
        segment: &Segment,
        data: bool,
        marked: bool,
        out: &mut Out,
    ) {
        if self.agreed.ecn {
            if segment.flags.has(Flags::CWR) {
                self.echo = false;
            }
            self.echo |= marked && data;
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

    /// An ACK of the peer echoes a mark.
    pub(super) fn take_echo(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        if self.agreed.ecn
            && segment.flags.has(Flags::ECE)
            && !segment.flags.has(Flags::SYN)
            && let Some(kind) = self.tx.on_congestion_echo(now)
        {
            self.report(kind, out);
        }
    }

    /// A packet of this connection.
    pub(super) fn packet(&self, segment: Segment, body: Body, cause: Cause) -> Packet {
        let tos = self.ecn_bits(&segment, &body, cause);
        Packet { tos, ..Packet::tcp(self.flow.src, self.flow.dst, segment, body) }
    }
}
