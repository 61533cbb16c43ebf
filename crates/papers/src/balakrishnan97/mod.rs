//! Balakrishnan and others 1997: snoop and its rivals (2, 3), asymmetric paths (4), and short transfers (5).
//!
//! Two sets of parameters: the testbed of sections 2 and 3, and the simulations of sections 4 and 5.

mod acks;
mod end_to_end;
mod link_layers;
mod semantics;
mod simulations;
mod snoop;
mod split;
mod testbed;
mod topologies;
mod web;

use lasthop_report::model::Assumption;

use crate::assumed;
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    snoop::experiment(id)
        .or_else(|| link_layers::experiment(id))
        .or_else(|| end_to_end::experiment(id))
        .or_else(|| split::experiment(id))
        .or_else(|| semantics::experiment(id))
        .or_else(|| topologies::experiment(id))
        .or_else(|| acks::experiment(id))
        .or_else(|| web::experiment(id))
}

/// What is assumed where the paper is silent, by section.
pub fn assumptions() -> Vec<Assumption> {
    let sections = [
        testbed::ASSUMPTIONS,
        simulations::ASSUMED,
        topologies::ASSUMED,
        acks::ASSUMED,
        web::ASSUMPTIONS,
    ];
    sections.into_iter().flat_map(assumed).collect()
}
