//! Faults that a capture shows, to be fixed before any scheme is tried.

use lasthop_analyze::{Diagnosis, Weight};
use serde::Serialize;

use crate::capture::{Capture, Transfer};

/// Maximum number of listed faults of other transfers than the estimated one; more are only counted.
const OTHERS: usize = 3;

/// A diagnosis that explains why a transfer is slow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fault {
    /// The transfer; `None` for the transfer from which the link is estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<String>,
    /// Whether the fault alone determines the rate of the transfer, which then does not describe the link.
    pub decides: bool,
    /// Name, evidence and remedy.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

/// Diagnoses of a capture by their weight.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Diagnoses that explain why a transfer is slow.
    pub(super) faults: Vec<Fault>,
    /// All other diagnoses of the transfer, as text.
    pub(super) notes: Vec<String>,
}

/// The diagnoses of `transfer`, and faults that determine the rate of other transfers of `capture`.
pub(super) fn find(capture: &Capture, transfer: &Transfer<'_>) -> Findings {
    let mut found = Findings::default();
    // Of the other direction, only diagnoses of the host that answers this data count.
    let answers = transfer.back.diagnoses.iter().filter(|diagnosis| diagnosis.is_of_answers());
    for diagnosis in transfer.data.diagnoses.iter().chain(answers) {
        match diagnosis.weight() {
            Weight::Informs => found.notes.push(diagnosis.to_string()),
            weight => found.faults.push(Fault {
                transfer: None,
                decides: weight == Weight::Decides,
                diagnosis: diagnosis.clone(),
            }),
        }
    }
    found.faults.sort_by_key(|fault| !fault.decides);
    let others = capture.transfers().into_iter().chain(capture.silent());
    let others = others.filter(|other| !core::ptr::eq(other.data, transfer.data));
    let decided = others.flat_map(|other| {
        let deciding = other.data.diagnoses.iter().filter(|d| d.weight() == Weight::Decides);
        deciding.map(move |diagnosis| Fault {
            transfer: Some(other.title()),
            decides: true,
            diagnosis: diagnosis.clone(),
        })
    });
    let mut decided: Vec<Fault> = decided.collect();
    let more = decided.split_off(decided.len().min(OTHERS));
    found.faults.extend(decided);
    if !more.is_empty() {
        let text = format!(
            "{} more transfers have such a fault: `lasthop analyze` lists them",
            more.len()
        );
        found.notes.push(text);
    }
    found
}

/// Whether a fault determines the rate of the transfer from which the link is estimated.
pub fn is_decided(faults: &[Fault]) -> bool {
    faults.iter().any(|fault| fault.decides && fault.transfer.is_none())
}
