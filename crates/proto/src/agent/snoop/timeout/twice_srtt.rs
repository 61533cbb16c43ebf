//! Twice the smoothed round trip (parsa98 4, after the published description of snoop).

use super::Rule;

pub(super) const RULE: Rule = Rule { word: "twice-srtt", timeout: |measured, _| measured.srtt * 2 };
