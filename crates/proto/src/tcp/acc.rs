//! ACK congestion control, the receiver's part (balakrishnan97 4.2.1): one ACK for every d data segments.
//!
//! A router marks ACKs when the way back fills up. The sender, which receives them, tells the receiver how many were
//! marked, by an option on its data ([`Acc::Window`](crate::wire::Acc::Window)). At a new mark d doubles; in each
//! later round trip without one it falls by one. So the receiver treats its ACKs as a TCP sender treats its data.
//!
//! **Bounds.** At least 1. At most what the sender's window bears, which the same option conveys: half of it, so
//! that at least two ACKs leave for each window and the sender is not left waiting. (The paper asks for one; the
//! authors' simulator kept the same safety factor of two.) [`AccConfig::most`] is a further bound.
//!
//! **Round trips** are told by the timestamp option, as in the paper: one is over when the sender echoes a time at or
//! after the last change of d. Without timestamps the option's own copy of the sender's left edge tells the same: one
//! is over when the sender has seen an acknowledgement of what came after the change.
//!
//! d changes once in a round trip at most, as a sender halves its window once for all marks of a window.

use crate::describe::{Kind, SIM, System};
use crate::units::Span;
use crate::wire::Seq;

use super::config::AccConfig;

/// What it is, for lists.
pub const ACC: System = System::new(
    Kind::Receiver,
    "acc",
    "host: acc = true, at both ends",
    "congestion control for ACKs: the receiver sends fewer when the way back is full",
    "balakrishnan97 4.2.1",
)
.runs(SIM);

/// What a segment's options and the connection's state tell about ACKs.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The sender's window in full segments.
    pub window: u16,
    /// How many marked ACKs the sender has seen, modulo 256.
    pub marks: u8,
    /// The sender's left edge.
    pub acked: Seq,
    /// The timestamp of ours that it echoes, if the connection has timestamps.
    pub echo: Option<u32>,
    /// Our timestamp clock.
    pub clock: u32,
    /// The number that the next ACK will carry.
    pub next: Seq,
}

/// The moment of a change of d.
#[derive(Clone, Copy, Debug)]
struct Change {
    clock: u32,
    next: Seq,
}

impl Change {
    /// Whether a round trip has passed since, as `report` tells.
    fn is_past(&self, report: &Report) -> bool {
        match report.echo {
            Some(echo) => echo.wrapping_sub(self.clock) as i32 >= 0,
            None => self.next.lt(report.acked),
        }
    }
}

/// The delayed-ACK factor and what it follows from.
#[derive(Clone, Debug)]
pub struct AckControl {
    config: AccConfig,
    factor: u32,
    /// What the sender's window bears.
    bound: u32,
    marks: u8,
    changed: Option<Change>,
}

impl AckControl {
    /// Acknowledge at the latest so long after an unacknowledged segment.
    pub fn timeout(&self) -> Span {
        self.config.timeout
    }

    /// Acknowledges every segment, until the first mark.
    pub fn new(config: AccConfig) -> AckControl {
        AckControl { config, factor: 1, bound: 1, marks: 0, changed: None }
    }

    /// An ACK is due after so many segments.
    pub fn every(&self) -> u32 {
        self.factor.min(self.bound)
    }

    /// A data segment came with the option; whether d changed.
    //= balakrishnan97#4.2.1: a mark increases d multiplicatively, each round trip without one decreases it linearly
    pub fn learn(&mut self, report: &Report) -> bool {
        let before = self.every();
        //= balakrishnan97#4.2.1: the maximum of d is determined by the sender's window size
        self.bound = (u32::from(report.window) / 2).clamp(1, self.config.most.max(1));
        // A segment that was overtaken tells of fewer marks than are known.
        let new = report.marks.wrapping_sub(self.marks);
        let marked = (1..128).contains(&new);
        let here = Change { clock: report.clock, next: report.next };
        if self.changed.get_or_insert(here).is_past(report) {
            if marked {
                self.marks = report.marks;
                self.factor = self.every().saturating_mul(2).min(self.bound.max(1));
            } else {
                self.factor = self.every().saturating_sub(1).max(1);
            }
            self.changed = Some(here);
        } else if marked {
            // Another mark of the round trip in which d was changed last.
            self.marks = report.marks;
        }
        self.every() != before
    }
}
