//! Scripts that lasthop's TCP does not pass, with the reason. The list may only shrink.

/// The name of a script, and what is missing.
pub const FAILING: &[(&str, &str)] = &[];
