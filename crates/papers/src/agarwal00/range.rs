//! The testbed of the claims.

use super::setup::{self, TESTBED as TEXT};
use crate::{Claim, Testbed};

/// Steady state: ten seconds give the same result as a hundred, except for rare events.
static STEADY: Testbed = Testbed { shorter: &["horizon=10s"], ..WHOLE };
/// For experiments that need the whole run.
static WHOLE_RUNS: Testbed = WHOLE;

const WHOLE: Testbed =
    Testbed { key: "agarwal00", texts: &[TEXT], open: "agarwal00", shorter: &[], seeds: 2 };

/// A claim about the testbed.
pub(super) const CLAIM: Claim = Claim { testbed: Some(&STEADY), ..setup::CLAIM };
/// A claim whose runs cannot be shorter: an emptied battery, intermittent interference, rare events.
pub(super) const LONG: Claim = Claim { testbed: Some(&WHOLE_RUNS), ..setup::CLAIM };
