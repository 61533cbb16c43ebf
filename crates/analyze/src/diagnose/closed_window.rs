//! A receiver's window that is closed for long.

use lasthop_proto::units::Time;

use crate::finding::{Confidence, Diagnosis, Finding};
use crate::reading::{Direction, StallCause};

/// Minimum time that users notice, in seconds, and minimum share of the transfer.
const NOTICED: f64 = 1.0;
const SHARE: f64 = 0.1;

const REMEDY: &str = "look at the receiving application: it does not read (blocked, paused, or out of memory); a larger buffer only \
    delays this";

/// Diagnoses the window of the receiver of `data`, whose connection ends at `ended` in the capture.
pub(super) fn diagnose(data: &Direction, ended: Time) -> Option<Diagnosis> {
    let stalls = || data.stalls.iter().filter(|stall| stall.cause == StallCause::ZeroWindow);
    let closed: f64 = stalls().map(|stall| stall.to.since(stall.from).as_secs_f64()).sum();
    let share = closed / data.duration.filter(|all| *all > 0.0)?;
    let to_end = data.ends_stalled && stalls().next_back().is_some_and(|last| last.to == ended);
    if closed < NOTICED || share < SHARE && !to_end {
        return None;
    }
    let times = match stalls().count() {
        1 => String::new(),
        n => format!(" in {n} times"),
    };
    let end = if to_end { ", the last time to the end of the capture" } else { "" };
    let evidence = format!(
        "the receiver's window was closed for {closed:.1} s{times} ({:.0} % of the time){end}",
        share * 100.0
    );
    let finding = Finding::ClosedWindow { closed, share, to_end };
    Some(Diagnosis::new(finding, Confidence::Certain, evidence, REMEDY))
}
