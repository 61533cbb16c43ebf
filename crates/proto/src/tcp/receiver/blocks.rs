//! Reports about data behind a hole: SACK, D-SACK and SNACK (RFC 2018, RFC 2883, SCPS-TP). The peer's FIN has a
//! sequence number, so blocks include it.

use crate::wire::{SackBlocks, Seq, Snack};

use super::{OutOfOrder, Receiver};

/// Number of blocks that Linux remembers (`TCP_NUM_SACKS`).
const FOUR: usize = 4;
/// Number of blocks that it expects (`TCP_SACK_BLOCKS_EXPECTED`).
const EXPECTED: usize = 2;

impl OutOfOrder {
    /// Records a segment with positions `from` to `to` as Linux does: it extends the first block that it touches, which
    /// becomes the newest, or is a block of its own (`tcp_sack_new_ofo_skb`).
    pub(super) fn note_as_linux(&mut self, (from, to): (u64, u64)) {
        let touches = |block: &(u64, u64)| from <= block.1 && block.0 <= to;
        let mut newest = (from, to);
        if let Some(at) = self.four.iter().position(touches) {
            let block = self.four.remove(at);
            newest = (block.0.min(from), block.1.max(to));
            self.four.retain(|other| {
                let joins = other.0 <= newest.1 && newest.0 <= other.1;
                if joins {
                    newest = (newest.0.min(other.0), newest.1.max(other.1));
                }
                !joins
            });
        }
        self.four.truncate(FOUR - 1);
        self.four.insert(0, newest);
    }

    /// The block that contains a position. Adjacent pieces form one block, and `fin` extends the block before it.
    fn block_at(&self, at: u64, fin: Option<u64>) -> Option<(u64, u64)> {
        let i = self.pieces.partition_point(|p| p.to <= at);
        let Some(piece) = self.pieces.get(i).filter(|p| p.from <= at) else {
            // No data follows a FIN, so only the last piece can touch it.
            let fin = fin.filter(|fin| *fin == at)?;
            let touches = self.pieces.last().is_some_and(|last| last.to == fin);
            return if touches { self.block_at(fin - 1, Some(fin)) } else { Some((fin, fin + 1)) };
        };
        let (mut start, mut end) = (piece.from, piece.to);
        for before in self.pieces[..i].iter().rev() {
            if before.to != start {
                break;
            }
            start = before.from;
        }
        for after in &self.pieces[i + 1..] {
            if after.from != end {
                break;
            }
            end = after.to;
        }
        Some((start, end + u64::from(fin == Some(end))))
    }
}

impl Receiver {
    /// Records that positions `from` to `to` were stored: their block is the newest.
    pub(super) fn note_recent(&mut self, from: u64, to: u64) {
        let (nxt, fin) = (self.nxt, self.fin_at);
        let Some(stored) = self.out_of_order.as_mut().filter(|_| self.quick.is_none()) else {
            return;
        };
        let grows = core::mem::replace(&mut stored.grew_to, to) == from;
        if grows && stored.recent[0] < from && stored.recent[0] >= nxt {
            return;
        }
        let (start, end) = stored.block_at(from, fin).unwrap_or((from, to));
        let mut others = stored.recent.into_iter().filter(|at| !(start..end).contains(at));
        stored.recent =
            core::array::from_fn(|i| if i == 0 { from } else { others.next().unwrap_or(u64::MAX) });
    }

    /// Whether a compressed ACK must be sent before the segment from `from` to `to` is stored. This is necessary if
    /// the segment extends neither of the two newest blocks, since the next ACK would not report these blocks any
    /// more (`TCP_SACK_BLOCKS_EXPECTED`). The ACK reports another block as extended, in its old position, and the duplicates
    /// in the segment.
    #[inline]
    pub fn crowds(&mut self, from: u64, to: u64) -> bool {
        let compresses = self.quick.as_ref().is_some_and(|quick| quick.compresses());
        let crowds = compresses && self.leaves_block(from, to);
        let count = if crowds { self.pieces().len() } else { 0 };
        for i in 0..count {
            let piece = &self.pieces()[i];
            let (first, end) = (piece.from.max(from), piece.to.min(to));
            self.report_duplicate(first, end);
        }
        crowds
    }

    fn leaves_block(&mut self, from: u64, to: u64) -> bool {
        let next = self.nxt;
        let Some(stored) = self.out_of_order.as_mut().filter(|_| from > next) else {
            return false;
        };
        let mut blocks = stored.four.iter_mut().filter(|block| block.0 > next).enumerate();
        match blocks.find(|(_, block)| from <= block.1 && block.0 <= to) {
            Some((at, block)) => {
                *block = (block.0.min(from), block.1.max(to));
                at >= EXPECTED
            }
            None => stored.four.iter().filter(|block| block.0 > next).count() >= EXPECTED,
        }
    }

    /// The SACK blocks to report: the block of the newest piece first, then the other recent ones.
    //= rfc2018#section-4: the first block holds the segment that triggered the ACK
    pub fn sack(&self, irs: Seq, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let most = most.min(4);
        let most = match self.duplicate.as_deref().copied() {
            //= rfc2883#section-4: the duplicate comes first, and once
            Some((from, to)) => {
                blocks.push(irs + from as u32, irs + to as u32);
                most - most.min(1)
            }
            None => most,
        };
        let Some(stored) = &self.out_of_order else { return blocks };
        if self.quick.is_some() {
            let four = stored.four.iter().filter(|block| block.0 > self.nxt);
            for block in four.take(most) {
                blocks.push(irs + block.0 as u32, irs + block.1 as u32);
            }
            return blocks;
        }
        let mut reported: [(u64, u64); 4] = [(0, 0); 4];
        let mut count = 0;
        for start in stored.recent {
            let Some(block) = stored.block_at(start, self.fin_at) else { continue };
            if reported[..count].contains(&block) || count >= most {
                continue;
            }
            reported[count] = block;
            count += 1;
            blocks.push(irs + block.0 as u32, irs + block.1 as u32);
        }
        blocks
    }

    /// Drops the report of a duplicate before data at `from` is stored: Linux reports only one of the newest segment
    /// (`tcp_data_queue`). Its fast path for data in order does not drop the report.
    #[inline]
    pub fn renew_duplicate(&mut self, from: u64) {
        if self.quick.is_some() && (from > self.nxt || self.out_of_order.is_some()) {
            self.duplicate = None;
        }
    }

    /// Records that positions `from` to `to` arrived twice. The next ACK reports the first such range, or in Linux the
    /// last.
    //= rfc2883#section-4
    pub fn note_duplicate(&mut self, from: u64, to: u64) {
        if let Some(quick) = self.quick.as_mut().filter(|_| from < to && from > 0) {
            quick.came_twice();
            self.duplicate = None;
        }
        self.report_duplicate(from, to);
    }

    /// Records that the positions `from` to `to` of a segment arrived twice; its other bytes are new. Linux
    /// acknowledges such a segment like other data (`tcp_data_queue`).
    pub fn note_overlap(&mut self, from: u64, to: u64) {
        if let Some(quick) = &mut self.quick {
            quick.buffer().repeats((to - from) as u32);
            self.report_duplicate(from, to);
        } else {
            self.note_duplicate(from, to);
            self.demand_ack();
        }
    }

    /// Records that positions `from` to `to` arrived twice, in segments that also had new data. A range that begins
    /// at the end of the reported one extends it.
    pub(super) fn report_duplicate(&mut self, from: u64, to: u64) {
        if !self.settings.dsack || from >= to || from == 0 {
            return;
        }
        match self.duplicate.as_deref_mut() {
            Some((_, end)) if *end == from => *end = to,
            Some(_) => {}
            None => self.duplicate = Some(Box::new((from, to))),
        }
    }

    /// Records that a range of positions behind a hole arrived twice.
    pub(super) fn report_twice(&mut self, range: Option<(u64, u64)>) {
        range.into_iter().for_each(|(from, to)| self.report_duplicate(from, to));
    }

    /// Records that the SYN arrived twice.
    pub(in crate::tcp) fn report_syn_again(&mut self) {
        if self.settings.dsack && self.duplicate.is_none() {
            self.duplicate = Some(Box::new((0, 1)));
        }
    }

    /// Records that a segment from `from` on arrived twice with the FIN at `fin`. The report of its data includes the
    /// FIN.
    pub(super) fn note_fin_again(&mut self, from: u64, fin: u64) {
        match self.duplicate.as_deref_mut() {
            Some((_, to)) if from < fin && *to == fin => *to += 1,
            _ => self.note_duplicate(fin, fin + 1),
        }
    }

    /// The holes below the stored data, in units of the segment size, with at most `most` bytes of bit vector. A unit
    /// that contains the end of a short segment counts as missing.
    pub fn snack(&self, most: usize) -> Option<Snack> {
        let fin = self.fin_at.filter(|at| *at > self.nxt);
        let first = self.pieces().first().map(|first| first.from).or(fin)?;
        let unit = u64::from(self.mss.max(1));
        let size = u16::try_from((first - self.nxt).div_ceil(unit)).unwrap_or(u16::MAX);
        let start = self.nxt + u64::from(size) * unit;
        let most = most.min(Snack::BYTES_MAX);
        let mut vector = [0u8; Snack::BYTES_MAX];
        let mut used = 0;
        // A unit has arrived when adjacent pieces contain all of it.
        let mut run = (0, 0);
        for piece in self.pieces() {
            run = if piece.from == run.1 { (run.0, piece.to) } else { (piece.from, piece.to) };
            let units =
                run.0.saturating_sub(start).div_ceil(unit)..run.1.saturating_sub(start) / unit;
            for at in units.take_while(|at| *at < 8 * most as u64) {
                vector[at as usize / 8] |= 0x80 >> (at % 8);
                used = at as usize / 8 + 1;
            }
        }
        Some(Snack::new(0, size, &vector[..used]))
    }
}
