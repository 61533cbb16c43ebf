//! Balakrishnan et al. 1997: snoop and its alternatives (2, 3), asymmetric paths (4), and short transfers (5).
//!
//! Two sets of parameters: the testbed of sections 2 and 3, and the simulations of sections 4 and 5.

mod acks;
mod end_to_end;
mod link_layers;
mod range;
mod semantics;
mod simulations;
mod snoop;
mod split;
mod testbed;
mod timeouts;
mod topologies;
mod web;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    key: "balakrishnan97",
    title: "H. Balakrishnan, V. Padmanabhan, S. Seshan, M. Stemm, E. Amir, R. Katz: TCP Improvements for \
            Heterogeneous Networks: The Daedalus Approach, 1997",
    claims: &[
        range::CLAIM.named("D-F1", snoop::f1),
        range::CLAIM.named("D-F2-LAN", link_layers::lan),
        range::CLAIM.named("D-F2-WAN", link_layers::wan),
        range::CLAIM.named("D-F3-LAN", end_to_end::lan),
        range::CLAIM.named("D-F3-WAN", end_to_end::wan),
        range::CLAIM.named("D-F4", split::f4),
        range::KILLED.named("D-ACKSPLIT", semantics::acksplit),
        range::SIMULATED.named("D-F6", topologies::f6),
        range::SIMULATED.named("D-T1", acks::table_1),
        range::SIMULATED.named("D-K", acks::asymmetry),
        range::SIMULATED.named("D-2WAY", acks::both_ways),
        range::SIMULATED.named("D-MAC", topologies::mac),
        range::WEB.named("D-TIMEOUTS", timeouts::causes),
        range::WEB.named("D-F7", web::f7),
        range::WEB.named("D-F8-F9", web::f8_f9),
        range::WEB.named("D-F11-F12", web::f11_f12),
        range::CLAIM.named("D-MOBILE-SENDER", snoop::mobile_sender),
    ],
};
