//! The testbed of the claims.

use super::setup::TESTBED as TEXT;
use crate::{Claim, Testbed};

pub(super) static TESTBED: Testbed = Testbed {
    key: "parsa98",
    texts: &[TEXT],
    open: "parsa98",
    shorter: &["transfer.bytes=1000000"],
    seeds: 2,
};

pub(super) const CLAIM: Claim = Claim { testbed: Some(&TESTBED), ..Claim::of("parsa98") };
