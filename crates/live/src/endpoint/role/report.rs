//! The receiver's report at the end of a role.

use lasthop_proto::units::Span;
use serde::Serialize;

use super::{MAGIC, VERSION};
use crate::endpoint::TcpInfo;

/// Length of a report, bytes.
pub const REPORT: usize = 128;

/// First bytes of a report.
const REPORT_MAGIC: &[u8; MAGIC] = b"\x8alasthop role report\r\n\x1a\n";

/// Number that means an unknown value.
const UNKNOWN: u64 = u64::MAX;

/// Counters of the receiver at the end of a role.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Report {
    /// Bytes received; in a download, bytes that the receiver's kernel accepted.
    pub bytes: u64,
    /// Time from the request to the report.
    pub time: Span,
    /// Payload bytes that the receiver's kernel sent, retransmissions included (Linux 4.19).
    pub bytes_sent: Option<u64>,
    /// Retransmitted payload bytes among them (Linux 4.19).
    pub bytes_retransmitted: Option<u64>,
    /// Segments that the receiver's kernel retransmitted.
    pub retransmissions: Option<u64>,
    /// Retransmission timeouts of the receiver's kernel (Linux 6.7).
    pub timeouts: Option<u64>,
    /// Minimum round-trip time of the receiver's kernel.
    pub min_rtt: Option<Span>,
    /// Smoothed round-trip time of the receiver's kernel.
    pub srtt: Option<Span>,
    /// Different datagrams received.
    pub datagrams: u64,
    /// Datagrams that arrived after one with a higher number.
    pub reordered: u64,
    /// Datagrams that arrived twice.
    pub duplicates: u64,
    /// Interarrival jitter (RFC 3550 section 6.4.1).
    pub jitter: Span,
}

impl Report {
    /// A report with the counters of a connection.
    pub fn of(bytes: u64, time: Span, info: Option<&TcpInfo>) -> Report {
        let span = |span: fn(&TcpInfo) -> Span| info.map(span).filter(|span| *span != Span::ZERO);
        Report {
            bytes,
            time,
            bytes_sent: info.and_then(|info| info.bytes_sent),
            bytes_retransmitted: info.and_then(|info| info.bytes_retrans),
            retransmissions: info.map(|info| info.total_retrans.into()),
            timeouts: info.and_then(|info| info.total_rto).map(u64::from),
            min_rtt: span(|info| info.min_rtt),
            srtt: span(|info| info.srtt),
            ..Report::default()
        }
    }

    fn numbers(&self) -> [u64; 12] {
        let span = |span: Option<Span>| span.map_or(UNKNOWN, |span| span.0);
        [
            self.bytes,
            self.time.0,
            self.bytes_sent.unwrap_or(UNKNOWN),
            self.bytes_retransmitted.unwrap_or(UNKNOWN),
            self.retransmissions.unwrap_or(UNKNOWN),
            self.timeouts.unwrap_or(UNKNOWN),
            span(self.min_rtt),
            span(self.srtt),
            self.datagrams,
            self.reordered,
            self.duplicates,
            self.jitter.0,
        ]
    }

    /// The message: the first bytes, the version, seven reserved bytes, and twelve numbers of 64 bits.
    pub fn encode(&self) -> [u8; REPORT] {
        let mut message = [0; REPORT];
        message[..MAGIC].copy_from_slice(REPORT_MAGIC);
        message[MAGIC] = VERSION;
        for (into, number) in message[32..].chunks_exact_mut(8).zip(self.numbers()) {
            into.copy_from_slice(&number.to_be_bytes());
        }
        message
    }

    /// Parses a report; `None` if it is none, or of another version.
    pub fn parse(message: &[u8]) -> Option<Report> {
        let message: &[u8; REPORT] = message.try_into().ok()?;
        if message[..MAGIC] != REPORT_MAGIC[..] || message[MAGIC] != VERSION {
            return None;
        }
        let mut numbers = [0; 12];
        for (number, bytes) in numbers.iter_mut().zip(message[32..].chunks_exact(8)) {
            *number = u64::from_be_bytes(bytes.try_into().ok()?);
        }
        let known = |number: u64| (number != UNKNOWN).then_some(number);
        let [bytes, time, sent, again, segments, timeouts, min_rtt, srtt, rest @ ..] = numbers;
        let [datagrams, reordered, duplicates, jitter] = rest;
        Some(Report {
            bytes,
            time: Span(time),
            bytes_sent: known(sent),
            bytes_retransmitted: known(again),
            retransmissions: known(segments),
            timeouts: known(timeouts),
            min_rtt: known(min_rtt).map(Span),
            srtt: known(srtt).map(Span),
            datagrams,
            reordered,
            duplicates,
            jitter: Span(jitter),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_encoding() {
        let none = Report::default();
        assert_eq!(Report::parse(&none.encode()), Some(none));
        let all = Report {
            bytes: 1,
            time: Span(2),
            bytes_sent: Some(3),
            bytes_retransmitted: Some(4),
            retransmissions: Some(5),
            timeouts: Some(6),
            min_rtt: Some(Span(7)),
            srtt: Some(Span(8)),
            datagrams: 9,
            reordered: 10,
            duplicates: 11,
            jitter: Span(12),
        };
        let message = all.encode();
        assert_eq!(Report::parse(&message), Some(all));
        assert_eq!(Report::parse(&message[1..]), None);
        for at in 0..=MAGIC {
            let mut other = message;
            other[at] ^= 1;
            assert_eq!(Report::parse(&other), None, "{at}");
        }
    }
}
