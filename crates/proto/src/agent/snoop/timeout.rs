//! The rules for the local time-out: one file and one line each.

use serde::Serialize;

use super::SnoopConfig;
use crate::units::Span;

/// What a rule knows: the smoothed round trip over the wireless link, and its variation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub srtt: Span,
    pub rttvar: Span,
}

/// A rule: its word, and the time-out before the floor of the configuration.
struct Rule {
    word: &'static str,
    timeout: fn(Measured, &SnoopConfig) -> Span,
}

/// Makes the enum of all rules from the list of their files.
macro_rules! rules {
    ($($file:ident::$Rule:ident,)*) => {
        $(mod $file;)*

        /// How the local time-out follows from the round trips measured over the wireless link.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
        #[serde(rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "each is described in its file")]
        pub enum TimeoutRule {
            $($Rule,)*
        }

        impl TimeoutRule {
            /// The words for a rule.
            pub const WORDS: &'static [(&'static str, TimeoutRule)] =
                &[$(($file::RULE.word, TimeoutRule::$Rule)),*];

            /// The time-out, before the floor of the configuration.
            pub(super) fn timeout(self, measured: Measured, config: &SnoopConfig) -> Span {
                match self {
                    $(TimeoutRule::$Rule => ($file::RULE.timeout)(measured, config),)*
                }
            }
        }
    };
}

rules! {
    twice_srtt::TwiceSrtt,
    srtt_plus_var::SrttPlusVar,
    fixed::Fixed,
}
