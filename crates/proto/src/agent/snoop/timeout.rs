//! Rules of the local timeout: one file and one line each.

use serde::Serialize;

use super::config::SnoopConfig;
use crate::units::Span;

/// Input of a rule: the smoothed round trip over the wireless link, and its variation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub srtt: Span,
    pub rttvar: Span,
}

/// A rule: its name, and the timeout before the configured minimum.
struct Rule {
    word: &'static str,
    timeout: fn(Measured, &SnoopConfig) -> Span,
}

/// Generates the enum of all rules from the list of their files.
macro_rules! rules {
    ($($file:ident::$Rule:ident,)*) => {
        $(mod $file;)*

        /// Rule of the local timeout as a function of the local round trips.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
        #[serde(rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "each is described in its file")]
        pub enum TimeoutRule {
            $($Rule,)*
        }

        impl TimeoutRule {
            /// Names of the rules.
            pub const WORDS: &'static [(&'static str, TimeoutRule)] =
                &[$(($file::RULE.word, TimeoutRule::$Rule)),*];

            /// The timeout before the configured minimum.
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
