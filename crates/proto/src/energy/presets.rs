//! Hardware with published figures and their sources. See docs/how-to/energy.md for details.

use super::hardware::{Hardware, RadioPower};
use crate::units::{Energy, Power};

/// Hardware that a scenario can name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Preset {
    /// Its name in a scenario.
    pub name: &'static str,
    /// Short description, for lists.
    pub about: &'static str,
    /// Source of its figures.
    pub source: &'static str,
    /// Energy of the full battery.
    capacity: Energy,
    /// Power that the host draws all the time.
    base: Power,
    radio: RadioPower,
    segment: Energy,
}

impl Preset {
    /// Its hardware figures.
    pub fn hardware(&self) -> Hardware {
        Hardware {
            name: self.name.to_owned(),
            capacity: self.capacity,
            base: self.base,
            radio: self.radio,
            segment: self.segment,
        }
    }
}

pub(super) const fn joules(joules: f64) -> Energy {
    Energy::joules(joules).expect("an energy")
}

pub(super) const fn watts(watts: f64) -> Power {
    Power::watts(watts).expect("a power")
}

/// Doze, idle, receive and transmit current in milliamperes at `volts`.
const fn currents(volts: f64, ma: [f64; 4]) -> RadioPower {
    RadioPower {
        doze: watts(volts * ma[0] / 1e3),
        idle: watts(volts * ma[1] / 1e3),
        receive: watts(volts * ma[2] / 1e3),
        transmit: watts(volts * ma[3] / 1e3),
    }
}

/// Every preset; the first is the default of `lasthop energy`.
pub const PRESETS: [Preset; 5] = [
    Preset {
        name: "sens-800",
        about: "laptop of 1996 with a WaveLAN card of 1999, screen off (90 MHz Pentium)",
        source: "agarwal00 5: currents and the two lifetimes; Intel's data sheet of the Pentium for `segment`",
        // These two follow from the lifetimes: 223 min idle, 110 min sending. crates/sim/tests/calibration.rs
        // derives them again.
        capacity: joules(94_390.0),
        base: watts(6.155),
        // The card has no separate state for listening without a frame (agarwal00 5).
        radio: currents(5.0, [10.0, 180.0, 180.0, 280.0]),
        // Chosen on physical grounds before any experiment was run; docs/how-to/energy.md has the reasons.
        segment: joules(14e-3),
    },
    Preset {
        name: "laptop-wifi-n",
        about: "laptop with an 802.11n card, one antenna in use, screen off",
        source: "Halperin et al., Demystifying 802.11n Power Consumption (HotPower 2010): Intel Wi-Fi Link 5300",
        capacity: joules(50.0 * 3600.0),
        base: watts(4.0),
        radio: RadioPower {
            doze: watts(0.10),
            idle: watts(0.82),
            receive: watts(0.94),
            transmit: watts(1.28),
        },
        segment: joules(50e-6),
    },
    Preset {
        name: "phone-wifi",
        about: "smartphone with 802.11n or ac, screen off",
        source: "Sun et al., Modeling WiFi Active Power/Energy Consumption in Smartphones (ICDCS 2014), \
                 orders of magnitude",
        capacity: joules(15.0 * 3600.0),
        base: watts(0.30),
        radio: RadioPower {
            doze: watts(0.01),
            idle: watts(0.25),
            receive: watts(0.45),
            transmit: watts(0.85),
        },
        segment: joules(60e-6),
    },
    Preset {
        name: "lte-m-modem",
        about: "sensor with an LTE-M modem at 23 dBm, two AA cells of lithium",
        source: "Nordic Semiconductor, nRF9160 Product Specification (modem current consumption) \
                 and white paper nWP-034",
        capacity: joules(9.0 * 3600.0),
        // The application processor in operation.
        base: watts(3.7 * 0.0022),
        // While connected it listens; only power saving mode, modelled as doze, draws less.
        radio: currents(3.7, [0.0027, 45.0, 45.0, 300.0]),
        segment: joules(100e-6),
    },
    Preset {
        name: "esp32",
        about: "microcontroller with Wi-Fi (ESP32), one 18650 cell",
        source: "Espressif, ESP32 Series Datasheet: current consumption depending on RF modes and on power modes",
        capacity: joules(9.6 * 3600.0),
        // The processor at 80 MHz with the modem asleep, 20 mA; the radio's figures are those of the whole
        // chip less this current.
        base: watts(3.3 * 0.020),
        radio: currents(3.3, [0.0, 77.5, 77.5, 220.0]),
        segment: joules(150e-6),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_powers_are_in_order() {
        for (i, preset) in PRESETS.iter().enumerate() {
            assert!(PRESETS[..i].iter().all(|other| other.name != preset.name));
            let radio = preset.radio;
            assert!(radio.doze <= radio.idle && radio.idle <= radio.receive, "{}", preset.name);
            assert!(radio.receive < radio.transmit, "{}", preset.name);
        }
    }
}
