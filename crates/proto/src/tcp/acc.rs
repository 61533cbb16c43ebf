//! ACK congestion control, the receiver's part (balakrishnan97 4.2.1): one ACK for every d data segments.
//!
//! A router marks ACKs when the reverse path fills up. The sender, which receives them, reports the number of
//! marked ACKs to the receiver, by an option on its data ([`Acc::Window`](crate::wire::Acc::Window)). At a
//! new mark d doubles; in each later round trip without a mark it decreases by one. The receiver thus treats
//! its ACKs as a TCP sender treats its data.
//!
//! **Bounds.** d is at least 1 and at most half of the sender's window, which the same option conveys. So
//! the receiver sends at least two ACKs for each window, and the sender does not stall. (The paper requires
//! one; the authors' simulator had the same safety factor of two.) [`AccConfig::most`] is a further bound.
//!
//! **Round trips** are measured by the timestamp option, as in the paper. A round trip is over when the
//! sender echoes a time at or after the last change of d. Without timestamps, it is over when the sender has
//! received an acknowledgement sent after the change. The option's copy of the sender's left edge shows
//! this.
//!
//! d changes once in a round trip at most, as a sender halves its window once for all marks of a window.

use crate::describe::{Kind, SIM, System};
use crate::units::Span;
use crate::wire::Seq;

use super::config::AccConfig;

/// Description of the system, for lists.
pub const ACC: System = System::new(
    Kind::Receiver,
    "acc",
    "host: acc = true, at both ends",
    "congestion control for ACKs: the receiver sends fewer when the return path is full",
    "balakrishnan97 4.2.1",
)
.runs(SIM);

/// Input of ACK congestion control from a segment's options and the connection's state.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The sender's window in full segments.
    pub window: u16,
    /// Number of marked ACKs that the sender has received, modulo 256.
    pub marks: u8,
    /// The sender's left edge.
    pub acked: Seq,
    /// This end's timestamp that the segment echoes, if the connection has timestamps.
    pub echo: Option<u32>,
    /// Timestamp clock of this end.
    pub clock: u32,
    /// Acknowledgement number of the next ACK.
    pub next: Seq,
}

/// Time and position of a change of d.
#[derive(Clone, Copy, Debug)]
struct Change {
    clock: u32,
    next: Seq,
}

impl Change {
    /// Whether a round trip has passed since, according to `report`.
    fn is_past(&self, report: &Report) -> bool {
        match report.echo {
            Some(echo) => echo.wrapping_sub(self.clock) as i32 >= 0,
            None => self.next.lt(report.acked),
        }
    }
}

/// The delayed-ACK factor and its inputs.
#[derive(Clone, Debug)]
pub struct AckControl {
    config: AccConfig,
    factor: u32,
    /// Bound of the factor from the sender's window.
    bound: u32,
    marks: u8,
    changed: Option<Change>,
}

impl AckControl {
    /// Longest delay of an ACK after an unacknowledged segment.
    pub fn timeout(&self) -> Span {
        self.config.timeout
    }

    /// Acknowledges every segment, until the first mark.
    pub fn new(config: AccConfig) -> AckControl {
        AckControl { config, factor: 1, bound: 1, marks: 0, changed: None }
    }

    /// Number of segments after which the receiver must send an ACK.
    pub fn every(&self) -> u32 {
        self.factor.min(self.bound)
    }

    /// Processes the option of a data segment, and returns whether d changed.
    //= balakrishnan97#4.2.1: a mark increases d multiplicatively, each round trip without one decreases it linearly
    pub fn learn(&mut self, report: &Report) -> bool {
        let before = self.every();
        //= balakrishnan97#4.2.1: the maximum of d is determined by the sender's window size
        self.bound = (u32::from(report.window) / 2).clamp(1, self.config.most.max(1));
        // A reordered segment has an older, smaller number of marks.
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
