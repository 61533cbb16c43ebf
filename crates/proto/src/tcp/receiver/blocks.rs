//! What a receiver reports of what it keeps behind a hole (RFC 2018, RFC 2883).

use crate::wire::{SackBlocks, Seq};

use super::{Kept, Receiver};

impl Kept {
    /// The block that holds a position: neighbouring pieces make one.
    fn block_at(&self, at: u64) -> Option<(u64, u64)> {
        let i = self.pieces.partition_point(|p| p.to <= at);
        let piece = self.pieces.get(i).filter(|p| p.from <= at)?;
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
        Some((start, end))
    }
}

impl Receiver {
    /// Positions `from` to `to` are kept: their block is the newest.
    pub(super) fn note_recent(&mut self, from: u64, to: u64) {
        let nxt = self.nxt;
        let Some(kept) = &mut self.kept else { return };
        let grows = core::mem::replace(&mut kept.grew_to, to) == from;
        if grows && kept.recent[0] < from && kept.recent[0] >= nxt {
            return;
        }
        let (start, end) = kept.block_at(from).unwrap_or((from, to));
        let mut others = kept.recent.into_iter().filter(|at| !(start..end).contains(at));
        kept.recent =
            core::array::from_fn(|i| if i == 0 { from } else { others.next().unwrap_or(u64::MAX) });
    }

    /// Whether a segment from `from` to `to` adds to none of the two newest blocks while an ACK waits to be put together with
    /// others: then that goes first, or it would not tell of them (`TCP_SACK_BLOCKS_EXPECTED`).
    pub fn crowds(&self, from: u64, to: u64) -> bool {
        if self.quick.is_none() || !self.ack_at.is_set() || from <= self.nxt {
            return false;
        }
        let Some(kept) = &self.kept else { return false };
        let blocks = kept.recent.iter().filter_map(|at| kept.block_at(*at));
        let mut others = 0;
        for (start, end) in blocks {
            if others < 2 && (end == from || to == start) {
                return false;
            }
            others += 1;
        }
        others >= 2
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
        let Some(kept) = &self.kept else { return blocks };
        let mut told: [(u64, u64); 4] = [(0, 0); 4];
        let mut count = 0;
        for start in kept.recent {
            let Some(block) = kept.block_at(start) else { continue };
            if told[..count].contains(&block) || count >= most {
                continue;
            }
            told[count] = block;
            count += 1;
            blocks.push(irs + block.0 as u32, irs + block.1 as u32);
        }
        blocks
    }
}
