//! Scripts that lasthop's TCP does not pass, with the reason. The list may only shrink.

/// The name of a script, and the missing feature.
pub const FAILING: &[(&str, &str)] = &[];
