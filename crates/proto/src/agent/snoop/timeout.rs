//! Rules of the local timeout.

use serde::Serialize;

use crate::units::Span;

/// Input of a rule: the smoothed round trip over the wireless link, and its variation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub srtt: Span,
    pub rttvar: Span,
}

/// Rule of the local timeout as a function of the local round trips.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutRule {
    /// Twice the smoothed round trip (parsa98 4, after the published description of snoop).
    TwiceSrtt,
    /// The smoothed round trip plus four times its variation, as in TCP (the Berkeley implementation).
    SrttPlusVar,
    /// A constant timeout, that before the first measurement, as in early link layers. A comparison with it shows
    /// the value of measuring the local round trip.
    Fixed,
}

impl TimeoutRule {
    /// Names of the rules.
    pub const WORDS: &'static [(&'static str, TimeoutRule)] = &[
        ("twice-srtt", TimeoutRule::TwiceSrtt),
        ("srtt-plus-var", TimeoutRule::SrttPlusVar),
        ("fixed", TimeoutRule::Fixed),
    ];

    /// The timeout before the configured minimum; `initial` is that before the first measurement.
    pub(super) fn timeout(self, measured: Measured, initial: Span) -> Span {
        match self {
            TimeoutRule::TwiceSrtt => measured.srtt * 2,
            TimeoutRule::SrttPlusVar => measured.srtt + measured.rttvar * 4,
            TimeoutRule::Fixed => initial,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_timeout_ignores_measurements() {
        for ms in [1, 50, 5000] {
            let measured = Measured { srtt: Span::millis(ms), rttvar: Span::millis(ms) };
            assert_eq!(TimeoutRule::Fixed.timeout(measured, Span::millis(7)), Span::millis(7));
        }
    }
}
