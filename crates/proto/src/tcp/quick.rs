//! Immediate ACKs of a receiver, as in Linux. It acknowledges each of the first segments at once, and each
//! segment while the window may still grow (`tcp_incr_quickack`, `tcp_grow_window`,
//! `tcp_rcv_space_adjust`). After a hole the first three ACKs are immediate, later ones are compressed
//! (`tcp_ack_snd_check`).
//!
//! The window grows with the data of a round trip (`tcp_rcvbuf_grow`), up to the receiver's buffer.
//!
//! **Not modelled:** since Linux 6.6, a full segment with PSH is acknowledged at once after a program has read it.
//! With programs that read at once, as on simulated hosts, this applies to a single partial segment too.

mod interactive;
mod space;

use crate::tcp::config::TcpConfig;
use crate::units::{Span, Time};
use interactive::Interactive;
use space::Space;

/// Number of immediate ACKs at the start of a connection, and after a duplicate segment.
const FIRST: u32 = 16;
/// Unit of timestamps: a round trip may be longer by one.
const TICK: Span = Span::millis(1);
/// Initial estimate of the data per round trip: ten segments.
const SPACE: u64 = 10;
/// Least size in bytes of a segment that lets the window grow.
const GROWS: u32 = 128;
/// Number of immediate duplicate ACKs.
const DUPLICATES: u32 = 3;
/// Delay of later ones, or a twentieth of a round trip if that is shorter; the slack of their timer, and the maximum
/// number of segments with one ACK (`tcp_comp_sack_delay_ns`, `tcp_comp_sack_slack_ns`, `tcp_comp_sack_nr`).
const COMPRESSED: Span = Span::millis(1);
const SLACK: Span = Span::micros(100);
const COMPRESSED_MAX: u32 = 44;
/// Number of immediate ACKs after a mark, and after a segment that may not be marked.
const MARKED: u32 = 2;
/// Assumed size in bytes of the peer's segments before a larger one has arrived, at most and at least (`TCP_MSS_DEFAULT`,
/// `TCP_MIN_MSS`).
const DEFAULT_SEGMENT: u32 = 536;
const SEGMENT_MIN: u32 = 88;

/// State that determines when an ACK is sent.
#[derive(Clone, Debug)]
pub(super) struct QuickAcks {
    /// Remaining number of immediate ACKs.
    left: u32,
    /// The receive buffer and its window.
    buffer: Space,
    /// Whether this end reports data behind a hole by SACK.
    sack: bool,
    /// Time and position at which the current measurement began.
    since: (Time, u64),
    /// Bytes of the last measurement.
    space: u64,
    /// The round-trip time: decreases at once and increases by an eighth (`tcp_rcv_rtt_update`), so that a
    /// measurement covers a queue as well.
    rtt: Option<Span>,
    /// The last counted echo.
    echo: Option<u32>,
    /// The position at which a window is filled, and the time at which its first byte was expected.
    filling: Option<(u64, Time)>,
    /// Position from which duplicate ACKs are counted, and their number.
    duplicates: (u64, u32),
    /// Number of segments that wait for a compressed ACK.
    compressed: u32,
    /// Size in bytes of the peer's full segments, as far as they are known, and of its last segment
    /// (`tcp_measure_rcv_mss`).
    segment: u32,
    last: u32,
    /// Size of the last segment if it was shorter and may be full nevertheless (`last_seg_size`), otherwise 0; and whether
    /// the next one ends a write.
    short: u32,
    pushed: bool,
    /// The largest segment that this end accepts.
    most: u32,
    /// Position of the last ACK, and number of partial segments since then, at most two (`ICSK_ACK_PUSHED2`).
    acknowledged: u64,
    partial: u8,
    /// Whether ACKs wait for replies, and how long.
    interactive: Interactive,
}

impl QuickAcks {
    /// The state before the handshake.
    pub(super) fn new(config: &TcpConfig) -> QuickAcks {
        QuickAcks {
            left: 0,
            buffer: Space::new(config),
            sack: false,
            since: (Time::ZERO, 0),
            space: 0,
            rtt: None,
            echo: None,
            filling: None,
            duplicates: (0, 0),
            compressed: 0,
            segment: DEFAULT_SEGMENT,
            short: 0,
            pushed: false,
            most: config.mss,
            last: 0,
            acknowledged: 0,
            partial: 0,
            interactive: Interactive::default(),
        }
    }

    /// The first window for segments of `mss` bytes.
    pub(super) fn first_window(&self, mss: u32) -> u64 {
        self.buffer.first_window(mss)
    }

    /// Starts with segments of `mss` bytes and a window in multiples of `unit`; `sack` is whether both ends agreed on it.
    pub(super) fn open(&mut self, mss: u32, unit: u64, sack: bool) {
        self.buffer.open(mss, unit);
        self.sack = sack;
        self.most = mss;
        self.space = (SPACE * u64::from(mss)).min(self.buffer.advertised());
    }

    /// Bounds the assumed size of the peer's segments by `mss` (`tcp_initialize_rcv_mss`).
    pub(super) fn assume(&mut self, mss: u32) {
        let half = (self.buffer.advertised() / 2).min(DEFAULT_SEGMENT.into()) as u32;
        self.segment = half.min(mss).max(SEGMENT_MIN);
    }

    /// Fixes the size of the buffer in bytes.
    pub(super) fn fix_buffer(&mut self, bytes: u32) {
        self.buffer.fix(bytes.into());
    }

    /// The memory of the buffer.
    pub(super) fn buffer(&mut self) -> &mut Space {
        &mut self.buffer
    }

    /// Whether the buffer has memory for a segment from position `from` on; `predicted` are its length, and the memory of data
    /// to send, if it is the expected one. If memory must be found, the immediate ACKs end (`tcp_prune_queue`), and the
    /// second result is the end of the remaining data behind holes, if some was dropped.
    pub(super) fn finds_memory(
        &mut self,
        from: u64,
        predicted: Option<(u32, u64)>,
    ) -> (bool, Option<u64>) {
        let predicts = |(len, sending)| self.buffer.predicts(len, sending);
        if self.buffer.admits() || predicted.is_some_and(predicts) {
            return (true, None);
        }
        self.left = 0;
        self.buffer.find_memory(from)
    }

    /// Records the end of the handshake, with the first data: Linux ends it by a separate ACK, a little
    /// earlier.
    pub(super) fn established(&mut self, now: Time, next: u64) {
        (self.since, self.acknowledged) = ((Time(now.0.saturating_sub(TICK.0)), next), next);
        self.interactive.begin(now);
    }

    /// Records a data segment that echoes `echo`, sent `rtt` ago. If some data is not `read`, the program may
    /// be slow, and a longer round trip is ignored.
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

    /// Ends the immediate ACKs if the buffer is half full, as Linux does when it computes a window (`__tcp_select_window`).
    fn end_quick_acks(&mut self) {
        if self.buffer.is_half_full(self.last) {
            self.left = 0;
        }
    }

    /// Rounds an advertised window of `window` bytes up to the unit of the header, and records it.
    pub(super) fn advertise(&mut self, window: u64) -> u64 {
        self.end_quick_acks();
        self.buffer.advertise(window)
    }

    /// The last advertised window.
    pub(super) fn last_window(&self) -> u64 {
        self.buffer.advertised()
    }

    /// Whether more than a full segment is not acknowledged up to `next`, and an ACK would not offer less than the last
    /// advertised window (`__tcp_ack_snd_check`).
    pub(super) fn owes_ack(&mut self, next: u64) -> bool {
        if !self.is_full(next) {
            return false;
        }
        self.end_quick_acks();
        self.offer() >= self.buffer.advertised()
    }

    /// Records data in order up to `next`. The peer needs at least a round trip to fill a window, and this is the only
    /// sample without timestamps (`tcp_rcv_rtt_measure`). Its excess over a round trip is unknown, so only a smaller
    /// sample counts.
    pub(super) fn filled(&mut self, now: Time, next: u64) {
        if let Some((end, since)) = self.filling {
            if next < end {
                return;
            }
            let sample = now.since(since);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
        }
        self.filling = Some((next + self.buffer.advertised(), now));
    }

    /// Records a segment of `len` bytes in order (`tcp_event_data_recv`). The window may grow.
    pub(super) fn arrived(&mut self, now: Time, len: u32) {
        self.measure(len);
        self.received(now);
        if len >= GROWS && self.buffer.grow_in_order(len, self.segment) {
            self.left |= 1;
        }
    }

    /// Records a segment of `len` bytes behind a hole, at positions `range`, a `fin` included (`tcp_data_queue_ofo`). The
    /// window may grow, but not without SACK, so that the peer receives duplicate ACKs. Returns the positions that have
    /// arrived before.
    pub(super) fn arrived_ahead(
        &mut self,
        range: (u64, u64),
        len: u32,
        fin: bool,
    ) -> Option<(u64, u64)> {
        self.measure(len);
        let segment = self.sack.then_some(self.segment);
        let (grown, twice) = self.buffer.store_ahead(range, len, fin, segment);
        self.left |= u32::from(grown);
        twice
    }

    /// Records data in order. The first data and that after a long gap have immediate ACKs.
    pub(super) fn received(&mut self, now: Time) {
        if self.interactive.arrived(now) {
            self.raise(FIRST);
        }
    }

    /// Records a segment after a hole; the stored data reaches `held` bytes beyond it.
    pub(super) fn spread(&mut self, held: u64) {
        self.buffer.enlarge(2 * self.space + held);
    }

    /// Records that data up to `next` is read; `held` bytes beyond it wait for a hole to be filled.
    pub(super) fn read(&mut self, (now, next): (Time, u64), held: u64) {
        let (since, from) = self.since;
        if self.rtt.is_none_or(|rtt| now.since(since) < rtt + TICK) {
            return;
        }
        let copied = next.saturating_sub(from);
        if copied > self.space && self.space > 0 {
            let twice = 2 * copied;
            let grow = twice * (copied - self.space) / self.space;
            self.buffer.enlarge(twice + 2 * grow + held);
            self.space = copied;
        }
        self.since = (now, next);
    }

    /// The window to offer.
    pub(super) fn offer(&self) -> u64 {
        self.buffer.window(self.segment, self.last)
    }

    /// Position of the last ACK.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Whether an ACK of `next` is due now (`__tcp_ack_snd_check`).
    pub(super) fn acks_now(&mut self, next: u64) -> bool {
        self.owes_ack(next) || self.at_once()
    }

    /// Whether the next ACK is immediate.
    pub(super) fn at_once(&self) -> bool {
        self.left > 0 && !self.interactive.waits()
    }

    /// Records a duplicate segment.
    pub(super) fn came_twice(&mut self) {
        self.hurry(FIRST);
    }

    /// Records that the peer may have reduced its window: it has a mark to react to, or repeats a segment.
    pub(super) fn marked(&mut self) {
        self.hurry(MARKED);
    }

    /// Sends the next `count` ACKs at once (`tcp_enter_quickack_mode`).
    fn hurry(&mut self, count: u32) {
        self.raise(count);
        self.interactive.ends();
    }

    /// Raises the number of immediate ACKs to `count`, but not beyond those for half of the window
    /// (`tcp_incr_quickack`).
    fn raise(&mut self, count: u32) {
        let half = self.buffer.advertised() / (2 * u64::from(self.segment));
        let quick = if half == 0 { 2 } else { half.min(count.into()) as u32 };
        self.left = self.left.max(quick.min(count));
    }

    /// Records whether the next segment has PSH, FIN or URG.
    pub(super) fn pushed(&mut self, pushed: bool) {
        self.pushed = pushed;
    }

    /// Records the size of a segment of `len` bytes. Two equal sizes in sequence may be those of full segments on a path
    /// with a smaller MTU, unless the segments are small and end a write.
    fn measure(&mut self, len: u32) {
        if self.segment < len.min(self.most) {
            self.buffer.measured(len);
        }
        self.last = len;
        let before = core::mem::take(&mut self.short);
        if len >= self.segment {
            self.segment = len.min(self.most);
            return;
        }
        if len >= DEFAULT_SEGMENT || len >= SEGMENT_MIN && !self.pushed {
            self.short = len;
            if len == before {
                self.segment = len;
                return;
            }
        }
        self.partial = (self.partial + 1).min(2);
    }

    /// Whether more than a full segment has arrived since the last ACK, if `next` is the expected position.
    pub(super) fn is_full(&self, next: u64) -> bool {
        next > self.acknowledged + u64::from(self.segment)
    }

    /// Whether to send an ACK when the program has read all data: after two partial segments, or after one if
    /// no reply will carry the ACK (`__tcp_cleanup_rbuf`).
    pub(super) fn acks_reading(&self) -> bool {
        self.partial >= 2 || self.partial == 1 && !self.interactive.waits()
    }

    /// Records the peer's FIN: this end's own FIN is a reply that will carry the ACK. Returns whether the ACK has a
    /// delay. That of a FIN without data before it has none. Neither has that of more than a segment, unless unread data has
    /// reduced the window. `next` is the position behind the FIN.
    pub(super) fn delays_fin(&mut self, next: u64) -> bool {
        self.interactive.expects_reply() && !self.owes_ack(next)
    }

    /// Records the smoothed round-trip time and the timeout of this end.
    pub(super) fn measured(&mut self, srtt: Span, rto: Span) {
        self.interactive.measured(srtt, rto);
    }

    /// Records that this end sends data.
    pub(super) fn data_sent(&mut self, now: Time) {
        self.interactive.sent(now);
    }

    /// Records that the delayed-ACK timer expired.
    pub(super) fn missed(&mut self) {
        self.interactive.missed();
    }

    /// Records a segment after a hole at `next`, and returns the deadline of its ACK; `None` for an immediate ACK
    /// (`__tcp_ack_snd_check`).
    pub(super) fn behind_hole(&mut self, now: Time, next: u64) -> Option<Time> {
        if self.acks_now(next) || !self.sack || self.compressed >= COMPRESSED_MAX {
            return None;
        }
        if self.duplicates.0 != next {
            self.duplicates = (next, 0);
        }
        if self.duplicates.1 < DUPLICATES {
            self.duplicates.1 += 1;
            return None;
        }
        self.compressed += 1;
        let rtt = self.rtt.unwrap_or_default();
        let rtt = self.interactive.srtt().map_or(rtt, |srtt| srtt.min(rtt));
        Some(now + Span(rtt.0 / 20).min(COMPRESSED) + SLACK)
    }

    /// Whether a compressed ACK waits.
    pub(super) fn compresses(&self) -> bool {
        self.compressed > 0
    }

    /// Delay of an ACK that the timer sends, with the minimum delay `least`.
    pub(super) fn delay(&self, least: Span) -> Span {
        least + self.interactive.longer()
    }

    /// Withdraws a compressed ACK.
    pub(super) fn withdraw(&mut self) {
        self.compressed = 0;
    }

    /// Records that a segment with an ACK of `next` was sent; `due` is whether an ACK was due. The last immediate ACK ends
    /// its mode (`tcp_dec_quickack_mode`).
    pub(super) fn acked(&mut self, next: u64, due: bool) {
        if due && self.left > 0 {
            self.left -= 1;
            if self.left == 0 {
                self.interactive.deflate();
            }
        }
        (self.acknowledged, self.partial, self.compressed) = (next, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection of Linux' defaults with segments of 1448 bytes.
    fn fresh() -> QuickAcks {
        let mut acks = QuickAcks::new(&TcpConfig { mss: 1460, ..TcpConfig::linux() });
        acks.open(1448, 128, true);
        acks
    }

    /// Number of consecutive segments that are acknowledged at once.
    fn quick(acks: &mut QuickAcks) -> usize {
        let count = (0..1000).take_while(|_| {
            acks.arrived(Time::ZERO, 1448);
            let quick = acks.at_once();
            acks.acked(0, true);
            quick
        });
        count.count()
    }

    #[test]
    fn the_first_acks_go_at_once_and_more_of_them_when_the_window_may_grow() {
        let mut acks = fresh();
        acks.established(Time::ZERO, 1);
        assert_eq!(quick(&mut acks), 22);
        acks.sample(7, Span::millis(40), true);
        acks.read((Time::ZERO + Span::millis(39), 1 + 30 * 1448), 0);
        assert_eq!(quick(&mut acks), 0);
        acks.read((Time::ZERO + Span::millis(41), 1 + 20 * 1448), 0);
        // 4 * 20 segments would suffice; two more for each segment, from 56 on.
        assert_eq!(quick(&mut acks), (6 * 20 * 1448 - 80_480usize).div_ceil(2 * 1460));
    }

    /// A segment after a hole is counted there only later, so there is room for it.
    #[test]
    fn behind_a_hole_there_is_room_for_one_segment_more() {
        let mut acks = fresh();
        while quick(&mut acks) > 0 {}
        let mut grows = |held: u64, ahead: bool| {
            acks.buffer.discard_ahead();
            acks.buffer.resume_ahead(9000, 9000 + held);
            match ahead {
                true => _ = acks.arrived_ahead((1, 1449), 1448, false),
                false => acks.arrived(Time::ZERO, 1448),
            }
            let grows = acks.at_once();
            while acks.at_once() {
                acks.acked(0, true);
            }
            grows
        };
        assert!(!grows(0, false), "in order the first buffer is full");
        assert!(!grows(1448, true), "as it is where a segment waits already");
        assert!(grows(0, true) && !grows(0, true), "one segment behind a hole, and no other");
    }

    #[test]
    fn without_timestamps_a_round_trip_is_the_least_time_in_which_a_window_is_filled() {
        let mut acks = fresh();
        acks.advertise(1000);
        let mut rtt = |ms, next| {
            acks.filled(Time::ZERO + Span::millis(ms), next);
            acks.rtt.map(|rtt| rtt.0 / 1_000_000)
        };
        assert_eq!([rtt(100, 501), rtt(150, 1524), rtt(180, 1525)], [None, None, Some(80)]);
        assert_eq!([rtt(300, 2549), rtt(350, 3573)], [Some(80), Some(50)]);
    }

    #[test]
    fn the_round_trip_falls_at_once_and_rises_by_an_eighth_while_everything_is_read() {
        let mut acks = fresh();
        let mut seen = |echo, ms, read| {
            acks.sample(echo, Span::millis(ms), read);
            acks.rtt.unwrap().0 / 1_000_000
        };
        assert_eq!([seen(1, 80, true), seen(2, 40, true)], [80, 40]);
        assert_eq!([seen(2, 120, true), seen(3, 120, false)], [40, 40], "an old echo; not read");
        assert_eq!([seen(4, 120, true), seen(5, 120, true)], [50, 58]);
    }

    /// The size of a full segment follows larger segments, and two equal ones of at least 536 bytes.
    #[test]
    fn more_than_a_full_segment_or_two_partial_ones_owe_an_ack() {
        let cases: [(&[u32], u32, bool, bool); 6] = [
            (&[1448], 1448, false, false),
            (&[1448, 100], 1448, true, true),
            (&[100], 536, false, true),
            (&[100, 100, 400], 536, true, true),
            (&[1448, 700, 700], 700, true, true),
            (&[9000], 1448, true, false),
        ];
        for (sizes, segment, full, read) in cases {
            let mut acks = fresh();
            acks.pushed(true);
            sizes.iter().for_each(|len| acks.measure(*len));
            let next = sizes.iter().map(|len| u64::from(*len)).sum();
            let seen = (acks.segment, acks.is_full(next), acks.acks_reading());
            assert_eq!(seen, (segment, full, read), "{sizes:?}");
            acks.acked(next, true);
            assert!(!acks.is_full(next) && !acks.acks_reading(), "{sizes:?}");
        }
    }

    #[test]
    fn the_ack_of_a_fin_waits_after_data_of_at_most_a_segment() {
        let mut acks = fresh();
        assert!(!acks.delays_fin(1), "no data before it");
        acks.received(Time::ZERO);
        acks.measure(1000);
        assert!(acks.delays_fin(1001), "the window would shrink");
        acks.advertise(1000);
        assert!(!acks.delays_fin(1001) && acks.delays_fin(1000));
        acks.left = 0;
        acks.marked();
        assert_eq!(acks.left, MARKED);
    }

    #[test]
    fn behind_a_hole_the_fourth_ack_waits() {
        let mut acks = fresh();
        let now = Time::ZERO + Span::millis(5);
        let waits: Vec<bool> = (0..5).map(|_| acks.behind_hole(now, 9).is_some()).collect();
        assert_eq!(waits, [false, false, false, true, true]);
        assert_eq!(acks.behind_hole(now, 10), None, "another hole");
        acks.came_twice();
        assert!(acks.at_once());
    }
}
