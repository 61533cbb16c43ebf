//! Metrics of a flow that carries data.

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

/// Number of stored packets after the last link, in case one is dropped behind it.
const REMEMBERED: usize = 4;

/// Marks a removed entry; it is no [`short`] name.
const FORGOTTEN: u32 = u32::MAX;

/// The layout's description of a flow.
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

/// Four cache lines: one for a packet that enters the path, one for a packet that crosses the last link, one
/// for delivered data, and one for the delays of packets.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Carried {
    /// One past the highest position offered to the path.
    pub(super) offered: u64,
    /// Ends of offered packets that are not delivered yet, with the time of their first offer. Sorted by
    /// both.
    waiting: VecDeque<(u64, Time)>,
    /// Packets of first transmissions of data, the most common cause.
    pub(super) data: u64,
    pub(super) wired_packets: u64,
    pub(super) largest: u32,
    /// Index of the next entry in `recent`.
    crossing: u8,
    /// Bit set over `recent`: whether the packet contained new data.
    news: u8,

    /// Positions that crossed the last link undamaged.
    crossed: Ranges,
    pub(super) wireless_packets: u64,
    /// Ring of the latest packets after the last link, by their [short] names.
    recent: [u32; REMEMBERED],

    pub(super) delivered: u64,
    pub(super) stalls: StallWatch,
    /// Number of bytes of the complete transfer, if the layout names it.
    pub(super) size: u64,

    pub(super) delay: Moments,
    pub(super) delays: Histogram,
    pub(super) declared: Option<Arc<Declared>>,
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
            stalls: StallWatch::default(),
            size: u64::MAX,
            delay: Moments::default(),
            delays: Histogram::default(),
            declared: None,
        }
    }
}

impl Carried {
    /// Counts a packet carried by a link with these marks.
    #[inline]
    pub(super) fn count(&mut self, marks: Marks) {
        self.wired_packets += u64::from(marks.has(Marks::WIRED));
        self.wireless_packets += u64::from(marks.has(Marks::WIRELESS));
    }

    /// Records that a packet of `len` bytes up to position `end` entered the path. In `brief` its delay is not
    /// measured. Returns whether it is the first.
    #[inline]
    pub(super) fn offer(&mut self, at: Time, end: u64, len: u32, brief: bool) -> bool {
        self.largest = self.largest.max(len);
        if end <= self.offered {
            return false;
        }
        if !brief {
            self.waiting.push_back((end, at));
        }
        core::mem::replace(&mut self.offered, end) == 0
    }

    /// Number of packets with new bytes: each waits for its delivery or has a delay. Zero in brief.
    pub(super) fn new_packets(&self) -> u64 {
        self.delay.n() + self.waiting.len() as u64
    }

    /// Records an undamaged packet that crosses the last link. Returns whether it contains new data.
    #[inline]
    pub(super) fn cross(&mut self, id: PacketId, start: u64, end: u64) -> bool {
        let new = self.crossed.insert(start, end);
        let at = self.crossing;
        self.recent[usize::from(at)] = short(id);
        self.news = self.news & !(1 << at) | u8::from(new) << at;
        self.crossing = (at + 1) % REMEMBERED as u8;
        new
    }

    /// Removes a packet that was dropped after the last link. Returns whether it contained new data; `None`
    /// if it is no longer stored.
    pub(super) fn forget(&mut self, id: PacketId) -> Option<bool> {
        let at = self.recent.iter().position(|recent| *recent == short(id))?;
        self.recent[at] = FORGOTTEN;
        Some(self.news >> at & 1 == 1)
    }

    /// Removes positions from those that crossed the last link.
    pub(super) fn uncross(&mut self, start: u64, end: u64) {
        self.crossed.remove(start, end);
    }

    /// Records a delivery of `bytes` bytes. Returns whether the transfer is complete.
    #[inline]
    pub(super) fn deliver(&mut self, at: Time, bytes: u32, brief: bool) -> bool {
        self.delivered += u64::from(bytes);
        self.stalls.advance(at, brief);
        while let Some((end, offered)) = self.waiting.front().filter(|_| !brief) {
            if *end > 1 + self.delivered {
                break;
            }
            self.delay.add(at.since(*offered).as_secs_f64());
            self.delays.add(at.since(*offered));
            self.waiting.pop_front();
        }
        self.delivered >= self.size
    }
}

/// A short name that distinguishes packets in close succession: the low part of their consecutive numbers.
fn short(id: PacketId) -> u32 {
    (id.0 % u64::from(FORGOTTEN)) as u32
}
