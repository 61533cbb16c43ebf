//! The kernel's `TCP_INFO` of a connection, as a typed structure.
//!
//! The kernel appends fields at the end, so a field has a constant offset. A field beyond the length that the
//! kernel wrote is `None`, or zero if every kernel since 4.9 has it.

use std::io;
use std::os::fd::AsFd;

use lasthop_proto::event::Tcb;
use lasthop_proto::units::Span;

use crate::sys;

/// State of the kernel's congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaState {
    /// No anomaly.
    Open,
    /// Duplicate ACKs or SACK blocks, below the threshold of retransmission.
    Disorder,
    /// The window is being reduced because of ECN or a local queue.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
    /// A number unknown to this version.
    Unknown,
}

/// A snapshot of the used part of `struct tcp_info`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpInfo {
    /// State of congestion control.
    pub ca_state: CaState,
    /// Expirations of the retransmission timer since the last progress.
    pub retransmits: u8,
    /// Unanswered window or keep-alive probes.
    pub probes: u8,
    /// Number of doublings of the timeout.
    pub backoff: u8,
    /// Whether both ends agreed on SACK.
    pub sack: bool,
    /// Current retransmission timeout, with backoff.
    pub rto: Span,
    /// Largest payload of a sent segment, bytes.
    pub snd_mss: u32,
    /// Unacknowledged segments.
    pub unacked: u32,
    /// Unacknowledged segments that SACK reported; without SACK, duplicate ACKs.
    pub sacked: u32,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// Variation of the round-trip time.
    pub rttvar: Span,
    /// Slow-start threshold, segments; 2^31 - 1 before the first loss.
    pub ssthresh: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Total number of retransmitted segments.
    pub total_retrans: u32,
    /// Bytes that the peer acknowledged; the opener's SYN counts as one.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Time with data waiting or unacknowledged, in ticks of the kernel (4.10).
    pub busy: Option<Span>,
    /// Part of `busy` with a full peer's window (4.10).
    pub rwnd_limited: Option<Span>,
    /// Part of `busy` limited only by a full send buffer (4.10).
    pub sndbuf_limited: Option<Span>,
    /// Payload bytes sent, retransmissions included (4.19).
    pub bytes_sent: Option<u64>,
    /// Retransmitted payload bytes (4.19).
    pub bytes_retrans: Option<u64>,
    /// The peer's advertised window, bytes (5.4).
    pub snd_wnd: Option<u32>,
    /// Total number of retransmission timeouts (6.7).
    pub total_rto: Option<u16>,
}

impl TcpInfo {
    /// Reads the `TCP_INFO` of a socket.
    ///
    /// # Errors
    ///
    /// Errors of the system; an unknown layout is `InvalidData`.
    pub fn of(socket: &impl AsFd) -> io::Result<TcpInfo> {
        let mut room = [0; sys::tcp_info::ROOM];
        let length = sys::tcp_info::tcp_info(socket.as_fd(), &mut room)?;
        TcpInfo::parse(&room[..length]).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{length} bytes of TCP_INFO"))
        })
    }

    /// Parses the kernel's structure; `None` below 104 bytes, the length since Linux 2.6.
    pub fn parse(bytes: &[u8]) -> Option<TcpInfo> {
        let fields = Fields(bytes);
        let micros = |at| fields.u32(at).map(|n| Span::micros(n.into()));
        let long_micros = |at| fields.u64(at).map(|n| Span(n.saturating_mul(1000)));
        let total_retrans = fields.u32(100)?;
        Some(TcpInfo {
            ca_state: ca_state(fields.u8(1)?),
            retransmits: fields.u8(2)?,
            probes: fields.u8(3)?,
            backoff: fields.u8(4)?,
            sack: fields.u8(5)? & 2 != 0,
            rto: micros(8)?,
            snd_mss: fields.u32(16)?,
            unacked: fields.u32(24)?,
            sacked: fields.u32(28)?,
            srtt: micros(68)?,
            rttvar: micros(72)?,
            ssthresh: fields.u32(76)?,
            cwnd: fields.u32(80)?,
            total_retrans,
            bytes_acked: fields.u64(120).unwrap_or(0),
            bytes_received: fields.u64(128).unwrap_or(0),
            busy: long_micros(168),
            rwnd_limited: long_micros(176),
            sndbuf_limited: long_micros(184),
            bytes_sent: fields.u64(200),
            bytes_retrans: fields.u64(208),
            snd_wnd: fields.u32(228),
            total_rto: fields.u16(240),
        })
    }

    /// Congestion window, bytes.
    pub fn cwnd_bytes(&self) -> u32 {
        self.cwnd.saturating_mul(self.snd_mss)
    }

    /// The control block in the form of the simulator's trace, for the end that opened the connection. The
    /// kernel never moves `snd_nxt` back, so it equals `snd_max`; a FIN is not counted. `dupacks` is valid
    /// only without SACK. `ssthresh` is the largest number before the first loss; an unknown `snd_wnd` is
    /// zero.
    pub fn tcb(&self) -> Tcb {
        let sent = self.bytes_sent.zip(self.bytes_retrans);
        let snd_max = match sent {
            Some((sent, again)) => sent.saturating_sub(again).saturating_add(1),
            // Full segments assumed: accurate to one segment.
            None => {
                let flight = u64::from(self.unacked) * u64::from(self.snd_mss);
                self.bytes_acked.saturating_add(flight)
            }
        }
        .max(self.bytes_acked);
        Tcb {
            snd_una: self.bytes_acked,
            snd_nxt: snd_max,
            snd_max,
            rcv_nxt: self.bytes_received.saturating_add(1),
            cwnd: self.cwnd_bytes(),
            ssthresh: self.ssthresh.saturating_mul(self.snd_mss),
            snd_wnd: self.snd_wnd.unwrap_or(0),
            dupacks: if self.sack { 0 } else { self.sacked },
            srtt: self.srtt,
            rttvar: self.rttvar,
            rto: self.rto,
            backoff: self.backoff.into(),
            in_recovery: self.ca_state == CaState::Recovery,
        }
    }
}

/// Numbers at constant offsets, in the machine's byte order.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn at<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }
    fn u8(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }
    fn u16(&self, at: usize) -> Option<u16> {
        self.at(at).map(u16::from_ne_bytes)
    }
    fn u32(&self, at: usize) -> Option<u32> {
        self.at(at).map(u32::from_ne_bytes)
    }
    fn u64(&self, at: usize) -> Option<u64> {
        self.at(at).map(u64::from_ne_bytes)
    }
}

/// Numbers of `enum tcp_ca_state` in `linux/tcp.h`.
fn ca_state(number: u8) -> CaState {
    match number {
        0 => CaState::Open,
        1 => CaState::Disorder,
        2 => CaState::Cwr,
        3 => CaState::Recovery,
        4 => CaState::Loss,
        _ => CaState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structure of `length` bytes with some fields set.
    fn raw(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[..6].copy_from_slice(&[1, 3, 2, 1, 2, 1 | 4]);
        for (at, value) in [
            (8, 800_000_u32),
            (16, 1448),
            (24, 10),
            (28, 3),
            (68, 40_000),
            (76, 0x7fff_ffff),
            (80, 20),
            (100, 7),
            (228, 65_535),
        ] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        for (at, value) in [(120, 14_481_u64), (200, 43_440), (208, 14_480)] {
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[240..242].copy_from_slice(&5_u16.to_ne_bytes());
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn a_full_structure() {
        let info = TcpInfo::parse(&raw(248)).unwrap();
        assert_eq!((info.ca_state, info.backoff, info.total_retrans), (CaState::Recovery, 2, 7));
        assert_eq!((info.total_rto, info.snd_wnd), (Some(5), Some(65_535)));
        assert!(!info.sack);
        let tcb = info.tcb();
        assert_eq!((tcb.snd_una, tcb.snd_nxt, tcb.snd_max), (14_481, 28_961, 28_961));
        assert_eq!((tcb.cwnd, tcb.ssthresh), (28_960, u32::MAX));
        assert_eq!((tcb.srtt, tcb.rto), (Span::millis(40), Span::millis(800)));
        assert!(tcb.in_recovery);
        assert_eq!(tcb.dupacks, 3, "without SACK the kernel counts duplicate ACKs there");
    }

    #[test]
    fn a_short_tcp_info_lacks_fields_or_is_rejected() {
        let info = TcpInfo::parse(&raw(192)).unwrap();
        assert_eq!((info.bytes_sent, info.snd_wnd, info.total_rto), (None, None, None));
        assert_eq!(info.tcb().snd_max, 14_481 + 10 * 1448);
        let info = TcpInfo::parse(&raw(104)).unwrap();
        assert_eq!((info.bytes_acked, info.busy), (0, None));
        // Truncated within a field.
        assert_eq!(TcpInfo::parse(&raw(230)).unwrap().snd_wnd, None);
        for length in 0..104 {
            assert_eq!(TcpInfo::parse(&raw(length)), None);
        }
    }

    /// Sets each field alone: its value is read, and no other field changes.
    #[test]
    fn each_field_is_read_from_its_own_offset() {
        let zero = TcpInfo::parse(&[0; 256]).unwrap();
        let ms = Span::millis;
        type Word = fn(&mut TcpInfo, u32);
        type Long = fn(&mut TcpInfo, u64);
        let words: [(usize, Word); 12] = [
            (8, |i, n| i.rto = Span::micros(n.into())),
            (16, |i, n| i.snd_mss = n),
            (24, |i, n| i.unacked = n),
            (28, |i, n| i.sacked = n),
            (68, |i, n| i.srtt = Span::micros(n.into())),
            (72, |i, n| i.rttvar = Span::micros(n.into())),
            (76, |i, n| i.ssthresh = n),
            (80, |i, n| i.cwnd = n),
            (100, |i, n| i.total_retrans = n),
            (228, |i, n| i.snd_wnd = Some(n)),
            (4, |i, n| i.backoff = n.to_ne_bytes()[0]),
            (240, |i, n| {
                i.total_rto = Some(u16::from_ne_bytes([n.to_ne_bytes()[0], n.to_ne_bytes()[1]]))
            }),
        ];
        for (at, set) in words {
            let mut bytes = [0; 256];
            let number = if at == 4 { 7_u32.to_le() } else { 1_234_567 };
            bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
            let mut expected = zero;
            set(&mut expected, number);
            assert_eq!(TcpInfo::parse(&bytes), Some(expected), "at {at}");
        }
        let long: [(usize, Long); 7] = [
            (120, |i, n| i.bytes_acked = n),
            (128, |i, n| i.bytes_received = n),
            (168, |i, n| i.busy = Some(Span(n * 1000))),
            (176, |i, n| i.rwnd_limited = Some(Span(n * 1000))),
            (184, |i, n| i.sndbuf_limited = Some(Span(n * 1000))),
            (200, |i, n| i.bytes_sent = Some(n)),
            (208, |i, n| i.bytes_retrans = Some(n)),
        ];
        for (at, set) in long {
            let mut bytes = [0; 256];
            bytes[at..at + 8].copy_from_slice(&(1_u64 << 40).to_ne_bytes());
            let mut expected = zero;
            set(&mut expected, 1 << 40);
            assert_eq!(TcpInfo::parse(&bytes), Some(expected), "at {at}");
        }
        use CaState::{Cwr, Disorder, Loss, Open, Recovery, Unknown};
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(ca_state),
            [Open, Disorder, Cwr, Recovery, Loss, Unknown]
        );
        assert_eq!(TcpInfo { rto: ms(3), ..zero }.tcb().rto, ms(3));
    }
}
