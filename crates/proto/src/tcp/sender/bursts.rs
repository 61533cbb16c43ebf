//! Bursts of new data in Linux: their size, and their delay until the next ACK. A segment that the window permits
//! waits if a larger burst may soon be possible (`tcp_tso_autosize`, `tcp_tso_should_defer`).

use crate::event::Cause;
use crate::tcp::config::{GrowthRule, TcpConfig};
use crate::units::{Rate, Span, Time};

use super::buffers::{Buffers, LARGEST};
use super::{Chunk, Window};

/// Bursts per second at the pacing rate: a burst is the data of 1/1024 s, and at least two segments.
pub(super) const BURST: u64 = 1024;
/// Rate in bytes per second below which a paced burst is a single segment (`bbr_min_tso_segs`).
const SLOW: u64 = 1_200_000 / 8;
/// Maximum wait of a burst after the last one, and for the next expected ACK.
const SOON: Span = Span::millis(1);
/// Segments of the smallest burst.
const PAIR: u64 = 2;
/// Denominator of the part of the window that is sent at once.
const PART: u64 = 3;
/// On a path without delay a burst grows by the size of the largest buffer, and by half as much for each interval of this
/// many microseconds of the shortest round trip.
const HALVED_EACH: u64 = 512;

/// State of the last burst.
#[derive(Clone, Debug, Default)]
pub(super) struct Bursts {
    /// Time of the last transmission.
    last: Option<Time>,
    /// Time of the current call of the function that sends (`tcp_write_xmit`), and whether it has ended.
    call: Time,
    over: bool,
    /// Unsent segments of the current burst.
    left: u64,
    /// One past the data that was sent before the last ACK. The size of bursts follows the rate at that time
    /// (`tcp_update_pacing_rate`).
    nxt: u64,
    /// Written data.
    pub(super) buffers: Buffers,
    /// Whether the sender paces, the last rate of the congestion control in bytes per second, the bursts per second at this
    /// rate, and the segments of the smallest one.
    paced: bool,
    rate: u64,
    per_second: u64,
    least: u64,
    train: Train,
    /// Whether the last segment left in one buffer with the one before.
    pub(super) joined: bool,
    /// Whether a part of a buffer follows the last segment apart from it: the peer's window has cut it off, or a
    /// retransmission has divided the buffer. PSH stays with the rest (`tso_fragment`, `tcp_fragment`).
    pub(super) cut: bool,
}

/// Consecutive segments in one buffer, which Linux sends as one packet.
#[derive(Clone, Copy, Debug, Default)]
struct Train {
    /// End position.
    end: u64,
    /// Maximum number of further segments.
    left: u64,
    /// Whether it is a retransmission.
    again: bool,
}

/// Input of the decision whether a burst is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct BurstInput {
    pub(super) now: Time,
    /// Bytes in the network.
    pub(super) pipe: u64,
    pub(super) srtt: Span,
    /// The shortest round trip, if one was measured.
    pub(super) min_rtt: Option<Span>,
    /// When the oldest segment in flight was sent.
    pub(super) oldest: Option<Time>,
}

impl Bursts {
    /// Bursts of a sender with the rules of Linux; `None` for others.
    pub(super) fn of(config: &TcpConfig) -> Option<Box<Bursts>> {
        let paced = config.pacing || config.congestion.has_a_model();
        let (per_second, least) = (BURST, config.burst.into());
        (config.growth == GrowthRule::Linux)
            .then(|| Box::new(Bursts { paced, per_second, least, ..Bursts::default() }))
    }

    /// Ends the current call of the function that sends: the next segment starts another one, and another buffer.
    pub(super) fn end_call(&mut self) {
        self.end_train();
        self.over = true;
    }

    /// Ends the current buffer: the next segment starts another one.
    fn end_train(&mut self) {
        self.train.left = 0;
    }

    /// Transmission time of the last segment. In Linux the segments that one call sends have one time, and those of the next
    /// call a later one (`tcp_mstamp_refresh`), here by a nanosecond. Retransmissions and new data are separate calls.
    pub(super) fn moment(&mut self, now: Time) -> Time {
        let next = core::mem::take(&mut self.over);
        self.call = now.max(self.call + Span(next.into()));
        self.call
    }

    /// Decides whether `chunk` leaves in one buffer with the segment before. `continues` is whether the two were not in
    /// different buffers before, and `most` the maximum number of segments of a buffer.
    pub(super) fn join(&mut self, w: &Window, chunk: &Chunk, continues: bool, most: u64) {
        let (train, again) = (self.train, chunk.cause != Cause::Data);
        self.over |= train.again != again;
        let follows = train.end == chunk.from && train.again == again;
        let to = chunk.end();
        // A retransmission in the peer's window takes whole segments along only (`__tcp_retransmit_skb`).
        let part = chunk.len < w.payload() && to == w.una + u64::from(w.peer);
        self.joined = train.left > 0 && follows && continues && !(again && part);
        let size = match self.joined {
            true => train.left,
            false if again => most,
            false => self.size(w, most),
        };
        self.cut = size > 1 && !again && to < w.end && to == w.una + u64::from(w.peer);
        // Only the last segment of a buffer is partial.
        let left = if chunk.len < w.payload() { 0 } else { size - 1 };
        self.train = Train { end: to, left, again };
    }

    /// Number of segments in the next buffer of new data, at most `most`.
    pub(super) fn size(&self, w: &Window, most: u64) -> u64 {
        if self.left > 0 { self.left } else { most.min(half(w)) }
    }

    /// Whether the current call has retransmitted up to `from`, in a buffer with room for more.
    pub(super) fn repeats_up_to(&self, from: u64) -> bool {
        self.train.again && self.train.left > 0 && self.train.end == from
    }

    /// Whether the rules for bursts permit a segment of new data now.
    pub(super) fn allow(&mut self, w: &Window, input: &BurstInput) -> bool {
        let (mss, payload) = (u64::from(w.mss.max(1)), u64::from(w.payload()));
        if self.paced && self.rate == 0 {
            return true;
        }
        if self.left == 0 {
            self.end_train();
        }
        self.buffers.fill(w);
        let room = u64::from(w.cwnd).saturating_sub(input.pipe) / mss;
        if self.left > 0 || room == 0 || w.nxt >= w.last() {
            return true;
        }
        let most = self.most(w, input.srtt, input.min_rtt);
        let quota = quota(w, input.pipe / mss, most);
        let head = self.buffers.head(w, quota * payload);
        // Nagle's rule decides on a single segment.
        if head.len <= payload {
            return true;
        }
        let allowed = (w.una + u64::from(w.peer)).saturating_sub(w.nxt).min(room * payload);
        let late = self.last.is_none_or(|last| input.now > last + SOON);
        let far = input
            .oldest
            .is_none_or(|sent| sent + input.srtt > input.now + SOON.min(Span(input.srtt.0 / 2)));
        let window = (u64::from(w.cwnd) / mss * payload).min(w.peer.into());
        let enough = (most * payload).min(window / PART);
        let whole = !head.last && allowed >= head.len;
        // Data that leaves during its write does not wait (`tcp_push_one`), nor does that before a FIN, or of a record.
        let pushed = self.buffers.is_ahead(w);
        let ends = head.last && w.is_closed() || w.ends_record(w.nxt + head.len);
        let go = pushed || late || far || whole || allowed >= enough || ends && allowed > head.len;
        self.left = if go { quota.min(head.len.div_ceil(payload)) } else { 0 };
        go
    }

    /// Permits the next buffer of new data, with a segment at least. Returns its end, or 0 if the pacer decides.
    pub(super) fn force(
        &mut self,
        w: &Window,
        pipe: u64,
        srtt: Span,
        min_rtt: Option<Span>,
    ) -> u64 {
        if self.paced && self.rate == 0 {
            return 0;
        }
        self.buffers.fill(w);
        let (mss, payload) = (u64::from(w.mss.max(1)), u64::from(w.payload()));
        let quota = quota(w, pipe / mss, self.most(w, srtt, min_rtt)).max(1);
        let len = self.buffers.head(w, quota * payload).len.min(quota * payload);
        self.left = len.div_ceil(payload);
        (w.nxt + len).min(w.una + u64::from(w.peer))
    }

    /// Maximum number of segments of a burst.
    pub(super) fn most(&self, w: &Window, srtt: Span, min_rtt: Option<Span>) -> u64 {
        if !self.paced {
            return largest(w, self.nxt.saturating_sub(w.una), srtt, min_rtt);
        }
        let least = match self.rate {
            0 => PAIR,
            1..SLOW => 1,
            _ => self.least,
        };
        burst(self.rate / self.per_second, min_rtt, w.mss).max(least)
    }

    /// Records a sent segment.
    #[inline]
    pub(super) fn sent(&mut self, now: Time, chunk: &Chunk, pace: Option<Rate>) {
        self.left = self.left.saturating_sub(1);
        self.last = Some(match pace {
            // The pacer permits the next segment only at this time.
            Some(pace) => self.last.unwrap_or(now).max(now) + pace.transmit(chunk.len.into()),
            None => now,
        });
    }

    /// Sets the pacing rate of the congestion control, if it has one, and the number of bursts per second.
    #[inline]
    pub(super) fn set_pace(&mut self, pace: Option<Rate>, per_second: u64) {
        (self.rate, self.per_second) = (pace.map_or(0, |pace| pace.bps() / 8), per_second);
    }

    /// Ends the burst at an ACK, with all data up to `nxt` sent: data sent now is a separate burst.
    pub(super) fn end(&mut self, nxt: u64) {
        (self.left, self.nxt) = (0, nxt);
    }

    /// The partial segment up to the end of the peer's window. It leaves in one buffer with a full segment before it
    /// (`tcp_mss_split_point`), and only during its write (`tcp_push_one`) or if no other partial segment is in flight
    /// (`tcp_minshall_check`).
    pub(super) fn remainder(&self, w: &Window, pipe: u64) -> Option<Chunk> {
        let (mss, end) = (u64::from(w.mss), w.una + u64::from(w.peer));
        let len = end.saturating_sub(w.nxt);
        let part = 0 < len && len < mss && end < w.last();
        let room = pipe + mss <= u64::from(w.cwnd);
        let joins = self.train.left > 0 && self.train.end == w.nxt && !self.train.again;
        let waits = w.small > w.una && !self.buffers.is_ahead(w);
        let goes = joins && part && room && !waits;
        goes.then_some(Chunk { from: w.nxt, len: len as u32, fin: false, cause: Cause::Data })
    }
}

/// Number of new segments in the next buffer, with `pipe` segments in the network and at most `most` in a buffer.
pub(super) fn quota(w: &Window, pipe: u64, most: u64) -> u64 {
    let room = u64::from(w.cwnd / w.mss.max(1)).saturating_sub(pipe);
    room.min(most).min(half(w))
}

/// Maximum number of new segments in a buffer: two buffers at least fit the window (`tcp_cwnd_test`).
fn half(w: &Window) -> u64 {
    u64::from(w.cwnd / w.mss.max(1) / 2).max(1)
}

/// Segments in the largest burst, at a rate of twice the window or the `flight` per round trip in slow start and of 1.2
/// times that later.
fn largest(w: &Window, flight: u64, srtt: Span, min_rtt: Option<Span>) -> u64 {
    let percent: u64 = if w.cwnd < w.ssthresh / 2 { 200 } else { 120 };
    let window = flight.max(w.cwnd.into());
    let rate = window * percent / 100 * 1_000_000_000 / srtt.0.max(1);
    burst(rate / BURST, min_rtt, w.mss).max(PAIR)
}

/// Additional bytes of a burst on a short path.
fn more_when_near(min_rtt: Option<Span>) -> u64 {
    let halvings = min_rtt.map_or(u64::MAX, |rtt| rtt.0 / 1000 / HALVED_EACH);
    if halvings < u64::from(u64::BITS) { LARGEST >> halvings } else { 0 }
}

/// Segments of `mss` bytes in a burst of `bytes`, and of more on a short path (`tcp_tso_autosize`, `tcp_tso_rtt_log`).
fn burst(bytes: u64, min_rtt: Option<Span>, mss: u32) -> u64 {
    (bytes + more_when_near(min_rtt)).min(LARGEST) / u64::from(mss.max(1))
}

/// The next new segment with `pipe` bytes in the network. The congestion window limits these bytes; the other windows
/// limit positions.
pub(super) fn new_data(w: &mut Window, pipe: u64) -> Option<Chunk> {
    w.chunk_within(u64::from(w.cwnd).saturating_sub(pipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remaining part of the peer's window, from zero to a full segment.
    #[test]
    fn a_buffer_takes_a_part_of_a_segment_along_and_nothing_else() {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.una, w.nxt, w.end) = (30_000, 1, 5001, 1 << 20);
        let train = Train { end: 5001, left: 1, again: false };
        let bursts = Bursts { train, ..Bursts::default() };
        for (peer, len) in
            [(4999, None), (5000, None), (5001, Some(1)), (5999, Some(999)), (6000, None)]
        {
            w.peer = peer;
            let chunk = bursts.remainder(&w, 5000);
            assert_eq!(
                chunk.map(|chunk| (chunk.from, chunk.len)),
                len.map(|len| (5001, len)),
                "{peer}"
            );
        }
        w.peer = 5500;
        let goes = |train: Train, w: &Window, pipe| {
            Bursts { train, ..Bursts::default() }.remainder(w, pipe).is_some()
        };
        assert!(!goes(Train { left: 0, ..train }, &w, 5000), "the buffer is full");
        assert!(!goes(Train { end: 4001, ..train }, &w, 5000), "it has ended before");
        assert!(goes(train, &w, 29_000) && !goes(train, &w, 29_001), "room for a whole one");
        w.small = 2;
        assert!(!goes(train, &w, 5000), "another is on its way");
        w.small = 1;
        assert!(goes(train, &w, 5000), "that one has come");
        w.end = 5501;
        assert!(!goes(train, &w, 5000), "all the data there is goes by itself");
    }

    #[test]
    fn a_segment_alone_waits_for_the_next_ack() {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.peer, w.una, w.nxt, w.end) = (30_000, 1 << 20, 1, 29_001, 1 << 20);
        let input = |now, pipe| BurstInput {
            now: Time::ZERO + Span::micros(now),
            pipe,
            srtt: Span::millis(40),
            min_rtt: Some(Span::millis(40)),
            oldest: Some(Time::ZERO),
        };
        let segment = Chunk { from: 28_001, len: 1000, fin: false, cause: Cause::Data };
        let mut bursts = Bursts::default();
        assert!(bursts.allow(&w, &input(40_000, 29_000)), "nothing was sent before");
        bursts.sent(Time::ZERO + Span::micros(40_000), &segment, None);
        assert!(!bursts.allow(&w, &input(40_600, 29_000)), "0.6 ms after the last burst");
        assert!(bursts.allow(&w, &input(40_600, 28_000)), "two segments");
        bursts.end(29_001);
        assert!(bursts.allow(&w, &input(41_100, 29_000)), "1.1 ms after it");
        bursts.end(29_001);
        assert!(bursts.allow(&w, &input(30_000, 29_000)), "the next ACK is 10 ms away");
    }

    /// The rate that determines the size of a burst is that of the flight at the last ACK.
    #[test]
    fn a_burst_follows_the_rate_at_the_last_ack() {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.una, w.nxt, w.ssthresh) = (10_000, 1, 40_001, u32::MAX);
        let mut bursts = Bursts::default();
        let most = |bursts: &Bursts, w: &Window| bursts.most(w, Span::millis(10), None);
        assert_eq!(most(&bursts, &w), 2, "ten segments in 5 ms");
        bursts.end(w.nxt);
        assert_eq!(most(&bursts, &w), 7, "forty segments in 5 ms");
        w.una = 30_001;
        assert_eq!(most(&bursts, &w), 2, "a quarter of them is left");
    }

    /// A probe is a whole buffer up to the peer's window, and a segment where the congestion window has no room.
    #[test]
    fn a_probe_permits_a_buffer() {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.peer, w.peer_max, w.una, w.end) = (20_000, 30_000, 30_000, 1, 1 << 20);
        (w.nxt, w.max) = (10_001, 10_001);
        let mut bursts = Bursts { nxt: 40_001, ..Bursts::default() };
        let mut force = |w: &Window, pipe| {
            let end = bursts.force(w, pipe, Span::millis(10), None);
            (end, bursts.left)
        };
        assert_eq!(force(&w, 20_000), (11_001, 1), "no room");
        assert_eq!(force(&w, 15_000), (15_001, 5), "five segments of room");
        w.peer = 12_000;
        assert_eq!(force(&w, 15_000), (12_001, 5));
        bursts.paced = true;
        assert_eq!(bursts.force(&w, 15_000, Span::millis(10), None), 0, "the pacer decides");
    }

    /// A short path adds up to 65 KB to a burst.
    #[test]
    fn the_shorter_the_path_the_larger_the_burst() {
        for (micros, segments) in
            [(0, 65), (511, 65), (512, 33), (1024, 17), (2048, 5), (3072, 2), (40_000, 1)]
        {
            assert_eq!(burst(1220, Some(Span::micros(micros)), 1000), segments, "{micros}");
        }
        assert_eq!(burst(1220, None, 1000), 1, "no round trip is known");
        assert_eq!(burst(u64::MAX >> 1, None, 1000), 65, "never more than 65 KB");
    }

    /// BBR sends pairs from 1.2 Mb/s on, and the data of 1/1024 s if that is more.
    #[test]
    fn a_paced_burst_follows_the_rate() {
        let w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        let most = |rate, per_second| {
            let bursts = Bursts { paced: true, rate, per_second, least: 2, ..Bursts::default() };
            bursts.most(&w, Span::millis(40), Some(Span::millis(40)))
        };
        for (mbps, segments) in [(0.0, 2), (1.1, 1), (1.2, 2), (16.0, 2), (25.0, 3), (100.0, 12)] {
            assert_eq!(most((mbps * 1e6 / 8.0) as u64, 1024), segments, "{mbps} Mb/s");
        }
        assert_eq!(most(100_000_000 / 8, 4096), 3, "a quarter of the time");
    }
}
