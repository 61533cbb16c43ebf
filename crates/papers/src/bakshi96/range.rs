//! The testbed of the claims.

use super::setup::{LAN, WAN};
use crate::{Claim, Testbed};

pub(super) static TESTBED: Testbed =
    Testbed { key: "bakshi96", texts: &[WAN, LAN], open: "bakshi96", shorter: &[], seeds: 4 };

pub(super) const CLAIM: Claim = Claim { testbed: Some(&TESTBED), ..Claim::of("bakshi96") };
