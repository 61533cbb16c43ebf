//! Works that the five papers cite, as far as their texts were available: mostly abstracts.
//!
//! These claims are separate from those of the papers. Less is published of them: where figures were not available, a
//! claim is only about the behaviour given in the abstract, an RFC or one of the five papers. The experiments are
//! built-in scenarios, so `lasthop run` shows each.

mod airmail;
mod disconnection;
mod hand_off;
mod scheduling;
mod setup;
mod transaction;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    key: "related",
    title: "Work that the papers cite, as far as it could be read (not among their claims)",
    claims: &[
        setup::CLAIM.named("C-HANDOFF", hand_off::hand_off),
        setup::CLAIM.named("C-DISCONNECTION", disconnection::disconnection),
        setup::CLAIM.named("C-SCHEDULING", scheduling::scheduling),
        setup::CLAIM.named("C-TRANSACTION", transaction::transaction),
        setup::CLAIM.named("C-AIRMAIL", airmail::airmail),
    ],
};

#[cfg(test)]
mod tests {
    use super::PAPER;

    #[test]
    fn ids_of_related_work_have_their_own_prefix() {
        assert!(PAPER.claims.iter().all(|claim| claim.id.starts_with("C-")));
        assert!(crate::claims().all(|claim| !claim.id.starts_with("C-")));
    }
}
