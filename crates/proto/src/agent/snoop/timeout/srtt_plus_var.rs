//! The smoothed round trip plus four times its variation, as in TCP (the Berkeley implementation).

use super::Rule;

pub(super) const RULE: Rule =
    Rule { word: "srtt-plus-var", timeout: |measured, _| measured.srtt + measured.rttvar * 4 };
