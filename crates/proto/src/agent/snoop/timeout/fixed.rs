//! A constant timeout, that before the first measurement, as in early link layers. A comparison with it shows
//! the value of measuring the local round trip.

use super::Rule;

pub(super) const RULE: Rule = Rule { word: "fixed", timeout: |_, config| config.initial_timeout };

#[cfg(test)]
mod tests {
    use super::super::super::SnoopConfig;
    use super::super::{Measured, TimeoutRule};
    use crate::units::Span;

    #[test]
    fn the_fixed_timeout_ignores_measurements() {
        let config = SnoopConfig { timeout: TimeoutRule::Fixed, ..SnoopConfig::west97() };
        for ms in [1, 50, 5000] {
            let measured = Measured { srtt: Span::millis(ms), rttvar: Span::millis(ms) };
            assert_eq!(config.timeout.timeout(measured, &config), config.initial_timeout);
        }
    }
}
