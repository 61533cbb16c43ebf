//! The testbed of sections 2 and 3, and the simulations of 4 and 5.

use super::simulations::{ASYMMETRIC, FIGURE_5, RADIO as PACKET_RADIO};
use super::testbed::{LAN, WAN};
use super::web;
use crate::testbed::WEST97_LAN;
use crate::{Claim, Testbed};

const PLAIN: Claim = Claim::of("balakrishnan97");

/// A claim about the testbed of sections 2 and 3.
pub(super) const CLAIM: Claim = Claim { testbed: Some(&DAEDALUS), ..PLAIN };

/// One about the simulations of section 4.
pub(super) const SIMULATED: Claim = Claim { testbed: Some(&ASYMMETRY), ..PLAIN };
/// One about those of section 5.
pub(super) const WEB: Claim = Claim { testbed: Some(&ROUTER), ..PLAIN };
/// A claim about a base station that is killed.
pub(super) const KILLED: Claim = Claim { testbed: Some(&SEMANTICS), ..PLAIN };

static DAEDALUS: Testbed = Testbed {
    key: "daedalus",
    texts: &[LAN, WAN],
    open: "daedalus",
    shorter: &["transfer.bytes=1048576"],
    seeds: 2,
};

static ASYMMETRY: Testbed = Testbed {
    key: "daedalus-asymmetric",
    texts: &[ASYMMETRIC, FIGURE_5, PACKET_RADIO],
    open: "daedalus-asymmetric",
    shorter: &[],
    seeds: 2,
};

static ROUTER: Testbed = Testbed {
    key: "daedalus-web",
    texts: &[web::TESTBED],
    open: "daedalus-web",
    shorter: &[],
    seeds: 3,
};

static SEMANTICS: Testbed = Testbed {
    key: "daedalus-killed",
    texts: &[WEST97_LAN],
    open: "daedalus-killed",
    shorter: &[],
    seeds: 2,
};
