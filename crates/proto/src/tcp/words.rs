//! The words for a TCP: what `tcp = "..."` of a host changes about its configuration. What a word means stands in the
//! file of its sender.

use super::sender::{
    bbr, cubic, eln, integrated, newreno, rack, reno, right_edge, sack, smart, snack, tahoe, vegas,
};
pub use super::word::Word;

/// Every TCP, in the order of the papers.
pub const TCPS: &[Word] = &[
    tahoe::WORD,
    reno::WORD,
    newreno::WORD,
    sack::WORD,
    integrated::WORD,
    smart::WORD,
    eln::WORD,
    eln::AT_ONCE,
    rack::WORD,
    cubic::WORD,
    bbr::WORD,
    right_edge::WORD,
    vegas::WORD,
    snack::WORD,
];
