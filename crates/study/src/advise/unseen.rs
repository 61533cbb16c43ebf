//! Losses that a capture cannot show, and the additional capture that shows them.

use lasthop_analyze::{Diagnosis, LossLocation, Opening};
use lasthop_report::number::plural;

use super::estimate::Estimate;
use crate::capture::Transfer;

/// Removes losses from `estimate` that the capture does not prove, and notes the capture that would prove them.
pub(super) fn note(transfer: &Transfer<'_>, estimate: &mut Estimate) {
    let Transfer { data, back, connection, .. } = transfer;
    let losses = &data.losses;
    let unseen = losses.iter().filter(|loss| loss.seen == LossLocation::Never).count();
    let guessed = data.order_evidence.age_alone;
    let no_loss = |estimate: &mut Estimate| {
        (estimate.loss, estimate.burst) = (None, None);
        if let Some(captured) = &mut estimate.captured {
            captured.loss = 0.0;
        }
    };
    if data.diagnoses.iter().any(Diagnosis::explains_losses) {
        no_loss(estimate);
        estimate.notes.push("the missing segments were not lost by the link".to_owned());
        return;
    }
    let at_sender = "capture at the sender, with both directions and the handshake";
    if back.packets == 0 {
        no_loss(estimate);
        estimate.notes.push(format!(
            "only one direction was captured, so the losses are unknown; {at_sender}"
        ));
    } else if unseen > 0 && guessed > 0 {
        no_loss(estimate);
        estimate.notes.push(format!(
            "{} filled gaps, without evidence of either loss or reordering: no loss is assumed; {at_sender}",
            plural(guessed, "packet")
        ));
    } else if !losses.is_empty() && losses.iter().all(|loss| !loss.reported) {
        no_loss(estimate);
        estimate.notes.push(format!(
            "{} retransmitted after a silence, without a report of the receiver that shows whether data or ACKs were \
             lost: no loss is assumed; capture at the receiver as well (`lasthop analyze SENDER RECEIVER`), or turn on SACK at both ends",
            plural(losses.len() as u64, "segment")
        ));
    } else if unseen * 2 > losses.len() {
        estimate.notes.push(format!(
            "{unseen} of {} were lost before the point of capture, and losses after it are not visible; {at_sender}",
            plural(losses.len() as u64, "packet")
        ));
    } else if connection.opening == Opening::MidConnection && losses.is_empty() {
        estimate
            .notes
            .push(format!("the capture began in the middle of the connection; {at_sender}"));
    }
}
