//! What there is of a flow that carries data.

use std::collections::VecDeque;
use std::sync::Arc;

use lasthop_proto::units::Time;
use lasthop_proto::wire::PacketId;

use super::Marks;
use crate::histogram::Histogram;
use crate::layout::FlowInfo;
use crate::ranges::Ranges;
use crate::stalls::StallWatch;
use crate::stats::Moments;

/// How many packets that crossed the last link are remembered, should one be lost behind it after all.
const REMEMBERED: usize = 4;

/// The place of a packet that is not remembered any more: no packet is [called](short) so.
const FORGOTTEN: u32 = u32::MAX;

/// What the layout says of a flow.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Declared {
    pub(super) bytes: Option<u64>,
    pub(super) mss: Option<u32>,
    pub(super) split_mss: Option<[u32; 2]>,
    pub(super) cross: bool,
}

impl Declared {
    pub(super) fn of(info: &FlowInfo) -> Declared {
        let FlowInfo { bytes, mss, split_mss, cross, .. } = *info;
        Declared { bytes, mss, split_mss, cross }
    }
}

/// Four cache lines: what a packet that enters the path touches, what one that crosses the last link does, and two of data
/// that is delivered.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Carried {
    /// One past the highest position offered to the path.
    pub(super) offered: u64,
    /// Ends of packets offered and not yet delivered, with the time of the first offer. In order of both.
    waiting: VecDeque<(u64, Time)>,
    /// Packets put into the path with data that is sent for the first time: of all causes the one that nearly all have.
    pub(super) data: u64,
    pub(super) wired_packets: u64,
    pub(super) largest: u32,
    /// The place of the next in `recent`.
    crossing: u8,
    /// Which of `recent` held anything new: bits.
    news: u8,

    /// Positions that crossed the last link unharmed.
    crossed: Ranges,
    pub(super) wireless_packets: u64,
    /// The last packets that crossed, by their [short] names; a ring.
    recent: [u32; REMEMBERED],

    pub(super) delivered: u64,
    pub(super) delay: Moments,
    pub(super) delays: Histogram,

    pub(super) stalls: StallWatch,
    /// Bytes whose delivery completes it, if the layout names a number.
    pub(super) wanted: u64,
    pub(super) declared: Option<Arc<Declared>>,
    /// Packets that held no bytes, although they were to carry data.
    pub(super) empty: u64,
}

impl Default for Carried {
    fn default() -> Carried {
        Carried {
            offered: 0,
            waiting: VecDeque::new(),
            data: 0,
            wired_packets: 0,
            largest: 0,
            crossing: 0,
            news: 0,
            crossed: Ranges::default(),
            wireless_packets: 0,
            recent: [FORGOTTEN; REMEMBERED],
            delivered: 0,
            delay: Moments::default(),
            delays: Histogram::default(),
            stalls: StallWatch::default(),
            wanted: u64::MAX,
            declared: None,
            empty: 0,
        }
    }
}

impl Carried {
    /// A link with these marks has carried a packet of it.
    #[inline]
    pub(super) fn count(&mut self, marks: Marks) {
        self.wired_packets += u64::from(marks.has(Marks::WIRED));
        self.wireless_packets += u64::from(marks.has(Marks::WIRELESS));
    }

    /// Bytes up to position `end` entered the path in a packet with `len` of them. Whether they are the first.
    #[inline]
    pub(super) fn offer(&mut self, at: Time, end: u64, len: u32) -> bool {
        self.largest = self.largest.max(len);
        if end <= self.offered {
            return false;
        }
        self.waiting.push_back((end, at));
        core::mem::replace(&mut self.offered, end) == 0
    }

    /// Packets put into the path that held bytes never sent before: each waits for its delivery, or has a delay.
    pub(super) fn new_packets(&self) -> u64 {
        self.delay.n() + self.waiting.len() as u64 + self.empty
    }

    /// An unharmed packet with these positions crosses the last link. Whether it holds anything new.
    #[inline]
    pub(super) fn cross(&mut self, id: PacketId, start: u64, end: u64) -> bool {
        let new = self.crossed.insert(start, end);
        let at = self.crossing;
        self.recent[usize::from(at)] = short(id);
        self.news = self.news & !(1 << at) | u8::from(new) << at;
        self.crossing = (at + 1) % REMEMBERED as u8;
        new
    }

    /// This packet did not arrive after all. Whether it held anything new when it crossed; nothing if it is not one of the
    /// last that did.
    pub(super) fn forget(&mut self, id: PacketId) -> Option<bool> {
        let at = self.recent.iter().position(|recent| *recent == short(id))?;
        self.recent[at] = FORGOTTEN;
        Some(self.news >> at & 1 == 1)
    }

    /// These positions have not crossed.
    pub(super) fn uncross(&mut self, start: u64, end: u64) {
        self.crossed.remove(start, end);
    }

    /// So many bytes more were delivered. Whether that is all.
    #[inline]
    pub(super) fn deliver(&mut self, at: Time, bytes: u32) -> bool {
        self.delivered += u64::from(bytes);
        self.stalls.progress(at);
        while let Some((end, offered)) = self.waiting.front() {
            if *end > 1 + self.delivered {
                break;
            }
            self.delay.add(at.since(*offered).as_secs_f64());
            self.delays.add(at.since(*offered));
            self.waiting.pop_front();
        }
        self.delivered >= self.wanted
    }
}

/// A name that tells packets apart which cross one after the other: those of a run are numbered.
fn short(id: PacketId) -> u32 {
    (id.0 % u64::from(FORGOTTEN)) as u32
}
