//! A limit of unsent data that follows the rate of a connection.

use std::net::TcpStream;
use std::os::fd::AsRawFd as _;

use lasthop_proto::units::{Span, Time};

use super::role::marks::BLOCK;
use crate::sys::calls;

/// Time that data may wait in the send buffer before its first transmission.
const WAIT: Span = Span::millis(10);

/// Interval of updates.
const INTERVAL: Span = Span::millis(100);

/// Bounds of the limit, bytes. Larger ones would make downloads longer than their granted time.
const LEAST: usize = 4 * BLOCK;
const MOST: usize = 128 * BLOCK;

/// Limits the unsent bytes in the kernel (TCP_NOTSENT_LOWAT) to those of [`WAIT`].
#[derive(Clone, Copy, Debug)]
pub(super) struct UnsentLimit {
    /// Start of the interval.
    since: Time,
    /// Number of bytes at its start.
    before: u64,
    limit: usize,
}

impl UnsentLimit {
    pub(super) fn new(stream: &TcpStream, now: Time) -> UnsentLimit {
        set(stream, LEAST);
        UnsentLimit { since: now, before: 0, limit: LEAST }
    }

    /// Bytes of a write; a multiple of [`BLOCK`].
    pub(super) fn bytes(&self) -> usize {
        self.limit
    }

    /// Number of writes, at most `most`, before the next wait. The kernel appends small writes to an unsent segment
    /// beyond its limit, so a slow connection waits after each.
    pub(super) fn writes(&self, most: usize) -> usize {
        if self.limit < MOST { 1 } else { most }
    }

    /// Updates the limit. `bytes` is the number of bytes that the kernel has accepted.
    pub(super) fn update(&mut self, stream: &TcpStream, now: Time, bytes: u64) {
        let time = now.since(self.since);
        if time < INTERVAL {
            return;
        }
        let sent = bytes.saturating_sub(self.before);
        (self.since, self.before) = (now, bytes);
        let limit = limit(sent, time);
        if limit != self.limit {
            self.limit = limit;
            set(stream, limit);
        }
    }
}

/// The limit after `bytes` in `time`.
fn limit(bytes: u64, time: Span) -> usize {
    let waiting = u128::from(bytes) * u128::from(WAIT.0) / u128::from(time.0.max(1));
    let waiting = usize::try_from(waiting).unwrap_or(MOST).clamp(LEAST, MOST);
    waiting / BLOCK * BLOCK
}

fn set(stream: &TcpStream, limit: usize) {
    let value = i32::try_from(limit).unwrap_or(i32::MAX).to_ne_bytes();
    // If this fails, data waits longer in the send buffer.
    let _ =
        calls::setsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_ten_milliseconds_of_data() {
        let second = Span::secs(1);
        for (bytes, expected) in
            [(0, LEAST), (100_000, LEAST), (1_024_000, 10_240), (1 << 40, MOST)]
        {
            assert_eq!(limit(bytes, second), expected, "{bytes}");
        }
        assert_eq!(limit(1_024_500, second) % BLOCK, 0);
    }
}
