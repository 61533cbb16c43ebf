//! The segment size of a sender whose path MTU is smaller than the handshake allows.
//!
//! After path MTU discovery (RFC 1191, RFC 8201) a sender sends smaller segments than both ends announced. Such a
//! segment is full, but looks like a small write of an application. If several of these segments leave at once, the
//! application is not the limit.

use lasthop_proto::units::{Span, Time};

/// Smaller packets are messages of an application: few paths pass less than the 1,280 bytes of IPv6.
const LEAST: u32 = 1200;

/// Number of consecutive packets that show a size.
const ROW: u32 = 3;

/// Maximum time of such a row.
const AT_ONCE: Span = Span::millis(1);

/// The same as a share of the round trip, behind a slow link.
const OF_ROUND_TRIP: u64 = 16;

/// The latest packets with new data of one side, and the size that they show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentSize {
    began: Time,
    count: u32,
    /// Greatest common divisor of their payloads: a super-segment is a multiple of the segment size.
    common: u32,
    found: Option<u32>,
}

impl SegmentSize {
    /// New data of `len` bytes passes; the handshake allows packets of `full` bytes.
    pub(super) fn sent(&mut self, at: Time, len: u32, full: u32, round_trip: Span) {
        let larger = len < full && self.found.is_some_and(|size| len > size);
        if larger || len.is_multiple_of(full) {
            self.found = None;
        }
        let common = greatest_common_divisor(self.common, len);
        let size = size(common, full);
        let longest = AT_ONCE.max(round_trip / OF_ROUND_TRIP);
        if size.is_none() || at.since(self.began) > longest {
            (self.began, self.count, self.common) = (at, 1, len);
            return;
        }
        (self.count, self.common) = (self.count.saturating_add(1), common);
        if self.count >= ROW {
            self.found = size;
        }
    }

    /// The largest payload of a packet, where the handshake allows `full` bytes.
    pub(super) fn full(&self, full: u32) -> u32 {
        self.found.unwrap_or(full).min(full)
    }
}

/// The largest divisor of `common` that is a segment size below `full`.
fn size(common: u32, full: u32) -> Option<u32> {
    let mut parts = common.div_ceil(full).max(1)..=common / LEAST;
    let parts = parts.find(|parts| common.is_multiple_of(*parts))?;
    Some(common / parts).filter(|size| *size < full)
}

fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(packets: &[(u64, u32)]) -> u32 {
        let mut size = SegmentSize::default();
        for (at, len) in packets {
            size.sent(Time(1_000_000_000 + at * 1000), *len, 1460, Span::millis(40));
        }
        size.full(1460)
    }

    #[test]
    fn packets_of_one_size_at_once_are_full() {
        assert_eq!(full(&[(0, 1400), (10, 1400), (20, 1400)]), 1400);
        assert_eq!(full(&[(0, 14_000), (10, 2800), (20, 7000)]), 1400);
        assert_eq!(full(&[(0, 1400), (10, 1400), (20, 1400), (30, 200)]), 1400);
        for others in [
            &[(0, 1400), (10, 1400)][..],
            &[(0, 1000), (10, 1000), (20, 1000)],
            &[(0, 1316), (2000, 1316), (4000, 1316)],
            &[(0, 1400), (10, 1400), (20, 1400), (30, 1460)],
            &[(0, 1400), (10, 1400), (20, 1400), (30, 1450)],
            &[(0, 14_600), (10, 14_600), (20, 14_600)],
        ] {
            assert_eq!(full(others), 1460, "{others:?}");
        }
    }
}
