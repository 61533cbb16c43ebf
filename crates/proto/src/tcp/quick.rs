//! When a receiver acknowledges at once, as Linux does it: each of the first segments, and each one while the window
//! that it may offer still grows (`tcp_incr_quickack`, `tcp_grow_window`, `tcp_rcv_space_adjust`). Behind a hole the
//! first three ACKs are sent at once, later ones are put together (`tcp_ack_snd_check`).
//!
//! The window grows with what arrives in a round trip (`tcp_rcvbuf_grow`), up to the receiver's buffer.

mod interactive;

use crate::units::{Span, Time};
use interactive::Interactive;

/// ACKs at the start of a connection, and after a segment that came twice, that are sent at once.
const FIRST: u32 = 16;
/// The first window in bytes, 45 segments of 1448, and what the first buffer of 128 KiB bears of such segments.
const WINDOW: (u64, u64) = (65_160, 81_928);
/// What has just come is not read yet, and takes so much.
const SEGMENT: u64 = 1448;
/// A window is offered in such steps.
const STEP: u64 = 128;
/// Timestamps count in this unit, so that a round trip may be longer by one.
const TICK: Span = Span::millis(1);
/// Of a buffer, segments of 1448 bytes may fill so many 256ths: the rest is the kernel's own.
const PAYLOAD: u64 = 160;
/// The first measure of what arrives in a round trip: ten segments.
const SPACE: u64 = 10;
/// Duplicate ACKs that are sent at once.
const DUPLICATES: u32 = 3;
/// Later ones wait so long, or a twentieth of a round trip if that is shorter.
const COMPRESSED: Span = Span::millis(1);

/// What decides when an ACK goes.
#[derive(Clone, Debug, Default)]
pub(super) struct QuickAcks {
    /// ACKs that are sent at once.
    left: u32,
    /// The window that is offered, and how far it may grow.
    window: Option<(u64, u64)>,
    /// Since when, and from which position on, what arrives is measured.
    since: (Time, u64),
    /// Bytes of the last measure.
    space: u64,
    /// The round trip: down at once, up by an eighth (`tcp_rcv_rtt_update`), so that a measure covers a queue as well.
    rtt: Option<Span>,
    /// The last echo that was counted.
    echo: Option<u32>,
    /// The position behind which duplicate ACKs are counted, and how many there were.
    duplicates: (u64, u32),
    /// Whether ACKs wait for replies, and how long.
    interactive: Interactive,
}

impl QuickAcks {
    /// The handshake is over, with the first data: Linux ends it by an ACK of its own, a little earlier.
    pub(super) fn established(&mut self, now: Time, next: u64) {
        self.since = (Time(now.0.saturating_sub(TICK.0)), next);
    }

    /// A segment with data echoes `echo`, which was sent `rtt` ago. It may be the program that is slow where some of what came
    /// is not `read` yet: then a longer round trip says nothing.
    pub(super) fn sample(&mut self, echo: u32, rtt: Span, read: bool) {
        if self.echo == Some(echo) {
            return;
        }
        self.echo = Some(echo);
        match &mut self.rtt {
            Some(known) if rtt >= *known => {
                if read {
                    known.0 += rtt.0 / 8 - known.0 / 8;
                }
            }
            other => *other = Some(rtt),
        }
    }

    /// A segment has come: the window may grow, by two segments of `mss`. `held` bytes behind a hole fill the buffer;
    /// one that comes behind a hole, `ahead`, is counted there only afterwards.
    pub(super) fn arrived(&mut self, mss: u32, held: u64, ahead: bool) {
        let (offered, bound) = self.window.get_or_insert_with(|| {
            (self.left, self.space) = (FIRST, SPACE * u64::from(mss));
            WINDOW
        });
        // In the first buffer a segment in order finds itself counted; in a grown one it does not, as recorded runs show.
        let own = u64::from(mss);
        let most = *bound - if *bound == WINDOW.1 { own } else { 0 } + if ahead { own } else { 0 };
        let room = most.saturating_sub(*offered + held);
        if room > 0 {
            *offered += room.min(2 * u64::from(mss));
            self.left |= 1;
        }
    }

    /// A segment came behind a hole, and what waits reaches `held` bytes beyond that.
    pub(super) fn spread(&mut self, held: u64, buffer: u32) {
        self.bear(2 * self.space + held, buffer);
    }

    /// The buffer grows so far that it bears a window of `wanted` bytes, up to `largest`.
    fn bear(&mut self, wanted: u64, largest: u32) {
        if let Some((_, bound)) = &mut self.window {
            *bound = wanted.min(u64::from(largest) * PAYLOAD / 256).max(*bound);
        }
    }

    /// What has arrived up to `next` is read; `held` bytes beyond it wait for a hole to be filled.
    pub(super) fn read(&mut self, (now, next): (Time, u64), held: u64, buffer: u32) {
        let (since, from) = self.since;
        if self.rtt.is_none_or(|rtt| now.since(since) < rtt + TICK) {
            return;
        }
        let copied = next - from;
        if copied > self.space && self.space > 0 {
            let twice = 2 * copied;
            let grow = twice * (copied - self.space) / self.space;
            self.bear(twice + 2 * grow + held, buffer);
            self.space = copied;
        }
        self.since = (now, next);
    }

    /// The window to offer while `held` bytes wait behind a hole, in the steps of a window scale of seven.
    pub(super) fn offer(&self, held: u64) -> u64 {
        let (offered, bound) = self.window.unwrap_or(WINDOW);
        offered.min(bound.saturating_sub(held.max(SEGMENT))).next_multiple_of(STEP)
    }

    /// Whether an ACK goes at once.
    pub(super) fn at_once(&self) -> bool {
        self.left > 0 && !self.interactive.waits()
    }

    /// A segment came twice.
    pub(super) fn came_twice(&mut self) {
        self.left = self.left.max(FIRST);
        self.interactive.ends();
    }

    /// Data came; the smoothed round trip and the timeout of this end are these.
    pub(super) fn data_arrived(&mut self, now: Time, srtt: Span, rto: Span) {
        self.interactive.measured(srtt, rto);
        if self.interactive.arrived(now) {
            self.left = self.left.max(FIRST);
        }
    }

    /// This end sends data.
    pub(super) fn data_sent(&mut self, now: Time) {
        self.interactive.sent(now);
    }

    /// The timer of an ACK of data in order has expired.
    pub(super) fn missed(&mut self) {
        self.interactive.missed();
    }

    /// How much longer than at least an ACK of data in order waits.
    pub(super) fn longer(&self) -> Span {
        self.interactive.longer()
    }

    /// A segment came behind a hole at `next`: when its ACK goes, if not at once.
    pub(super) fn behind_hole(&mut self, now: Time, next: u64) -> Option<Time> {
        if self.at_once() {
            return None;
        }
        if self.duplicates.0 != next {
            self.duplicates = (next, 0);
        }
        if self.duplicates.1 < DUPLICATES {
            self.duplicates.1 += 1;
            return None;
        }
        let wait = self.rtt.map_or(COMPRESSED, |rtt| Span(rtt.0 / 20).min(COMPRESSED));
        Some(now + wait)
    }

    /// An ACK went out.
    pub(super) fn acked(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many segments in a row are acknowledged at once.
    fn quick(acks: &mut QuickAcks) -> usize {
        let count = (0..1000).take_while(|_| {
            acks.arrived(1448, 0, false);
            let quick = acks.at_once();
            acks.acked();
            quick
        });
        count.count()
    }

    #[test]
    fn the_first_acks_go_at_once_and_more_of_them_when_the_window_may_grow() {
        let mut acks = QuickAcks::default();
        acks.established(Time::ZERO, 1);
        assert_eq!(quick(&mut acks), 22);
        acks.sample(7, Span::millis(40), true);
        acks.read((Time::ZERO + Span::millis(39), 1 + 30 * 1448), 0, 6 << 20);
        assert_eq!(quick(&mut acks), 0);
        acks.read((Time::ZERO + Span::millis(41), 1 + 20 * 1448), 0, 6 << 20);
        // 4 * 20 segments would do; two more for each segment, from 56 on.
        assert_eq!(quick(&mut acks), (6 * 20 * 1448 - 80_384usize).div_ceil(2 * 1448));
    }

    /// A segment behind a hole is counted among what waits there only afterwards, so that it finds room for itself.
    #[test]
    fn behind_a_hole_there_is_room_for_one_segment_more() {
        let mut acks = QuickAcks::default();
        while quick(&mut acks) > 0 {}
        let mut grows = |held, ahead| {
            acks.arrived(1448, held, ahead);
            let grows = acks.at_once();
            while acks.at_once() {
                acks.acked();
            }
            grows
        };
        assert!(!grows(0, false), "in order the first buffer is full");
        assert!(!grows(1448, true), "as it is where a segment waits already");
        assert!(grows(0, true) && !grows(0, true), "one segment behind a hole, and no other");
    }

    #[test]
    fn the_round_trip_falls_at_once_and_rises_by_an_eighth_while_everything_is_read() {
        let mut acks = QuickAcks::default();
        let mut seen = |echo, ms, read| {
            acks.sample(echo, Span::millis(ms), read);
            acks.rtt.unwrap().0 / 1_000_000
        };
        assert_eq!([seen(1, 80, true), seen(2, 40, true)], [80, 40]);
        assert_eq!([seen(2, 120, true), seen(3, 120, false)], [40, 40], "an old echo; not read");
        assert_eq!([seen(4, 120, true), seen(5, 120, true)], [50, 58]);
    }

    #[test]
    fn behind_a_hole_the_fourth_ack_waits() {
        let mut acks = QuickAcks::default();
        let now = Time::ZERO + Span::millis(5);
        let waits: Vec<bool> = (0..5).map(|_| acks.behind_hole(now, 9).is_some()).collect();
        assert_eq!(waits, [false, false, false, true, true]);
        assert_eq!(acks.behind_hole(now, 10), None, "another hole");
        acks.came_twice();
        assert!(acks.at_once());
    }
}
