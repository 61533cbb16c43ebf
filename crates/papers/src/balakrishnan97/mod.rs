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
        snoop::F1,
        link_layers::F2_LAN,
        link_layers::F2_WAN,
        end_to_end::F3_LAN,
        end_to_end::F3_WAN,
        split::F4,
        semantics::ACKSPLIT,
        topologies::F6,
        acks::T1,
        acks::ASYMMETRY,
        acks::BOTH_WAYS,
        topologies::MAC,
        timeouts::CAUSES,
        web::F7,
        web::F8_F9,
        web::F11_F12,
        snoop::MOBILE_SENDER,
    ],
};
