//! A capture behind the bottleneck: packets wait before it.

use crate::finding::{Confidence, Diagnosis, Finding};
use crate::reading::{Direction, StallCause};

/// Minimum share of the transfer.
const SHARE: f64 = 0.1;

const REMEDY: &str = "the link before the point of capture stalls, not the application: look at this link; capture before it, at the \
    sender, to see the losses, the queue, and the sender's limits";

pub(super) fn diagnose(data: &Direction) -> Option<Diagnosis> {
    let stalls = data.stalls.iter().filter(|stall| stall.cause == StallCause::HeldBack);
    let times: Vec<f64> = stalls.map(|stall| stall.to.since(stall.from).as_secs_f64()).collect();
    let waited: f64 = times.iter().sum();
    let share = waited / data.duration.filter(|all| *all > 0.0)?;
    let longest = data.held_back?.as_secs_f64();
    if share < SHARE {
        return None;
    }
    let evidence = format!(
        "the capture is behind the bottleneck, which stalled: packets after silences ({} of them, {waited:.1} s, {:.0} % of the time) were \
         sent earlier by their timestamps, by up to {longest:.1} s",
        times.len(),
        share * 100.0
    );
    let finding = Finding::HeldBack { stalls: times.len() as u64, waited, share, longest };
    Some(Diagnosis::new(finding, Confidence::Likely, evidence, REMEDY))
}
