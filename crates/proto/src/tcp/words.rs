//! The keywords of TCPs: changes of `tcp = "..."` to a host's configuration. The file of each sender defines
//! its keyword.

use super::sender::{
    bbr, bbr3, cubic, eln, htcp, hybla, integrated, newreno, prague, rack, reno, right_edge, sack,
    smart, snack, tahoe, vegas, veno, westwood,
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
    bbr3::WORD,
    htcp::WORD,
    hybla::WORD,
    westwood::WORD,
    veno::WORD,
    prague::WORD,
    right_edge::WORD,
    vegas::WORD,
    snack::WORD,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_has_a_name_of_its_own_a_sentence_and_a_source() {
        for (i, word) in TCPS.iter().enumerate() {
            assert!(TCPS[..i].iter().all(|other| other.key != word.key), "{}", word.key);
            assert!(!word.what.is_empty() && !word.source.is_empty(), "{}", word.key);
        }
    }
}
