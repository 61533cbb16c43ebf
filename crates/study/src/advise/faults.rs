//! Faults that a capture shows: what to repair before any scheme is tried.

use lasthop_analyze::{Diagnosis, Weight};
use serde::Serialize;

use crate::capture::{Capture, Transfer};

/// Faults of transfers other than the one that the link is estimated from; more are only counted.
const OTHERS: usize = 3;

/// A diagnosis that explains why a transfer is slow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fault {
    /// The transfer; `None` if it is the one that the link is estimated from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<String>,
    /// The rate of that transfer is the fault's and says nothing of the link.
    pub decides: bool,
    /// Name, evidence and remedy.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

/// Diagnoses of a capture by their weight.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Those that explain why a transfer is slow.
    pub(super) faults: Vec<Fault>,
    /// All others of the transfer, as text.
    pub(super) notes: Vec<String>,
}

/// The diagnoses of `transfer`, and what decides the rate of other transfers of `capture`.
pub(super) fn find(capture: &Capture, transfer: &Transfer<'_>) -> Findings {
    let mut found = Findings::default();
    // Of the other direction only what concerns this one: who answers the data.
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

/// Whether the rate of the transfer that the link is estimated from is that of a fault.
pub fn is_decided(faults: &[Fault]) -> bool {
    faults.iter().any(|fault| fault.decides && fault.transfer.is_none())
}
