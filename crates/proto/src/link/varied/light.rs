//! Packet trains of CellReplay (NSDI 2025): a cellular link grants a short burst other opportunities than a
//! long transfer.
//!
//! A line is a time, a base delay, and the opportunities of a train after its first packet, in milliseconds.
//! A packet that arrives at an idle link starts a train and leaves at once. Packets that wait behind it use the
//! train's opportunities, then those of the heavy trace. All of them have the base delay of the train's start,
//! which is linear between two lines. The last line ends the period.
//!
//! A train carries whole packets: one that does not fit into the rest of an opportunity takes the next one.
//! Differently from CellReplay, a link is idle when its last packet has left, not when none arrives, and
//! packets have the delay after the opportunity, as on each link.
//!
//! Not modelled: the offset of the delay by packet size, and a link that counts as busy for some time after
//! its last packet. Both are options of CellReplay that are off by default.

use core::ops::Range;
use std::sync::Arc;

use super::course::Wrong;
use crate::units::{Span, Time};

/// Bytes per opportunity in both traces of CellReplay, with the header of a TUN device.
pub(super) const OPPORTUNITY: u32 = 1400;
/// Limit of opportunities.
const MOST: usize = 4_000_000;
/// Limit of delays and of times within a train, milliseconds.
const LONGEST: u32 = 1_000_000;
const MS: u64 = 1_000_000;

/// Trains over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Light {
    rows: Arc<[Row]>,
    /// Opportunities of all trains, milliseconds after the start of their train.
    offsets: Arc<[u32]>,
}

/// A measured train.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row {
    /// Milliseconds.
    at: u32,
    /// Milliseconds.
    delay: u32,
    /// Index of its first opportunity; the next row's is the end.
    first: usize,
}

impl Light {
    /// Parses a light trace.
    ///
    /// # Errors
    /// The first invalid line, with the remedy.
    pub fn parse(text: &str) -> Result<Light, Wrong> {
        let (mut rows, mut offsets) = (Vec::<Row>::new(), Vec::new());
        for (i, line) in text.lines().enumerate() {
            let wrong = |message: String| wrong(Some(i + 1), message);
            let mut cells = line.split_whitespace().map(|cell| {
                let number = cell.parse().ok().filter(|_| cell.bytes().all(|b| b.is_ascii_digit()));
                let brief = || cell.chars().take(20).collect::<String>();
                number.ok_or_else(|| wrong(format!("`{}` is no number of milliseconds", brief())))
            });
            let few = || wrong("it has fewer than three numbers".to_owned());
            let (at, delay): (u32, u32) =
                (cells.next().ok_or_else(few)??, cells.next().ok_or_else(few)??);
            if let Some(last) = rows.last().filter(|last| last.at > at) {
                return Err(wrong(format!("the time {at} comes after {}", last.at)));
            }
            let (first, mut last) = (offsets.len(), 0);
            rows.push(Row { at, delay, first });
            for cell in cells {
                let offset = cell?;
                if offset < last {
                    return Err(wrong(format!("the opportunity {offset} comes after {last}")));
                }
                if offsets.len() == MOST {
                    return Err(wrong(format!("more than {MOST} opportunities")));
                }
                last = offset;
                // The first packet leaves at once.
                offsets.push(if offsets.len() == first { 0 } else { offset });
            }
            if offsets.len() == first {
                return Err(few());
            }
            if delay.max(last) > LONGEST {
                return Err(wrong(format!("{} ms are more than 1000 s", delay.max(last))));
            }
        }
        if rows.len() < 2 || rows.last().is_some_and(|last| last.at == 0) {
            return Err(wrong(
                None,
                "it has no second line with a later time, which ends it".to_owned(),
            ));
        }
        Ok(Light { rows: rows.into(), offsets: offsets.into() })
    }

    /// Base delay and opportunities of a train that starts at `now`.
    fn train(&self, now: Time) -> (Span, Range<usize>) {
        let ns = |row: Row| u64::from(row.at) * MS;
        let local = now.0 % ns(self.rows[self.rows.len() - 1]);
        // The last row is later than `local`.
        let index = self.rows.partition_point(|row| ns(*row) <= local).saturating_sub(1);
        let (here, next) = (self.rows[index], self.rows[index + 1]);
        let length = (ns(next) - ns(here)).max(1);
        let passed = local.saturating_sub(ns(here));
        let weighted = u128::from(here.delay) * u128::from(length - passed)
            + u128::from(next.delay) * u128::from(passed);
        let delay = weighted * u128::from(MS) / u128::from(length);
        (Span(delay as u64), here.first..next.first)
    }

    /// Its content, for digests.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        let rows = self.rows.iter().flat_map(|row| [row.at, row.delay, row.first as u32]);
        rows.chain(self.offsets.iter().copied()).flat_map(u32::to_le_bytes)
    }
}

fn wrong(line: Option<usize>, message: String) -> Wrong {
    let help = "each line has a time, a base delay and the opportunities of a train, in ascending milliseconds: \
                `500 32 0 1 3`";
    Wrong { line, message, help: help.to_owned() }
}

/// The present train of a link.
#[derive(Clone, Debug)]
pub(super) struct Train {
    light: Light,
    start: Time,
    /// Base delay.
    pub delay: Span,
    /// Unused opportunities.
    left: Range<usize>,
    /// Bytes of the next opportunity: it may be partly used by packets of the same instant.
    pub room: u32,
    /// The last used opportunity of either trace.
    pub last: Option<Time>,
}

impl Train {
    /// Before the first train.
    pub fn new(light: Light) -> Train {
        Train {
            light,
            start: Time::ZERO,
            delay: Span::ZERO,
            left: 0..0,
            room: OPPORTUNITY,
            last: None,
        }
    }

    /// Handles a packet that finds no other one waiting: it starts a train, unless others left at this instant.
    pub fn arrive(&mut self, now: Time) {
        if self.last.is_none_or(|last| last < now) {
            (self.delay, self.left) = self.light.train(now);
            (self.start, self.room) = (now, OPPORTUNITY);
        }
    }

    /// Time of the next opportunity, if the train has one.
    pub fn next(&self) -> Option<Time> {
        let offset = self.light.offsets[self.left.clone()].first()?;
        Some(self.start + Span(u64::from(*offset) * MS))
    }

    /// Consumes the next opportunity.
    pub fn take(&mut self) -> Option<Time> {
        let at = self.next()?;
        self.left.start += 1;
        (self.room, self.last) = (OPPORTUNITY, Some(at));
        Some(at)
    }

    /// Returns an opportunity with this room for packets of the same instant.
    pub fn put_back(&mut self, room: u32) {
        self.left.start -= 1;
        self.room = room;
    }
}
