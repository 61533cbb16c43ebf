//! Every result that the papers published: its name, its place, what was run and what was found.
//!
//! Figures are the papers' own. What is measured against them, and when it counts as found again, stands with
//! the experiments of each paper.

mod agarwal00;
mod bakshi96;
mod balakrishnan97;
mod parsa98;
mod west97;

use serde::Serialize;

/// A published result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Claim {
    /// Stable name.
    pub id: &'static str,
    /// Key of the paper.
    pub paper: &'static str,
    /// Table, figure or section.
    #[serde(rename = "where")]
    pub place: &'static str,
    /// What was run.
    pub setup: &'static str,
    /// What was found.
    pub published: &'static str,
}

/// A paper: its key, and what a reader would look it up by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Paper {
    /// Key.
    pub key: &'static str,
    /// Authors, title, year.
    pub title: &'static str,
}

/// The papers, in the order in which their results stand in [`claims`].
pub const PAPERS: [Paper; 5] = [
    Paper {
        key: "west97",
        title: "S. West, N. Vaidya: TCP Enhancements for Heterogeneous Networks. TR 97-003, Texas A&M, 1997",
    },
    Paper {
        key: "parsa98",
        title: "C. Parsa, J. J. Garcia-Luna-Aceves: Improving TCP Performance over Wireless Networks at the Link Layer, 1998",
    },
    Paper {
        key: "bakshi96",
        title: "B. Bakshi, P. Krishna, N. Vaidya, D. Pradhan: Improving Performance of TCP over Wireless Networks. TR 96-014, Texas A&M, 1996",
    },
    Paper {
        key: "balakrishnan97",
        title: "H. Balakrishnan, V. Padmanabhan, S. Seshan, M. Stemm, E. Amir, R. Katz: TCP Improvements for Heterogeneous Networks: The Daedalus Approach, 1997",
    },
    Paper {
        key: "agarwal00",
        title: "S. Agarwal: Conserving Energy in TCP for Mobile Ad-Hoc Networks. Thesis, Oregon State University, 2000",
    },
];

/// Every claim, paper by paper.
pub fn claims() -> impl Iterator<Item = &'static Claim> {
    [west97::CLAIMS, parsa98::CLAIMS, bakshi96::CLAIMS, balakrishnan97::CLAIMS, agarwal00::CLAIMS]
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_claim_has_a_name_of_its_own_and_a_known_paper() {
        let ids: BTreeSet<&str> = claims().map(|c| c.id).collect();
        assert_eq!(ids.len(), claims().count());
        assert_eq!(ids.len(), 63);
        assert!(claims().all(|c| PAPERS.iter().any(|p| p.key == c.paper)));
    }
}
