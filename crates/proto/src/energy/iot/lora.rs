//! LoRaWAN end devices of class A.
//!
//! A device may send at any time. It opens two receive windows, one second after the end of its frame and one
//! second later. It sleeps in between and until the next report. Two limits apply: the longest payload of a
//! data rate, and the duty cycle of the band.
//!
//! Not modelled: joining, confirmed frames and retransmissions, network commands, adaptive data rate,
//! collisions, and downlinks: both windows stay empty.

use super::{Part, States, Stretch, milliamperes};
use crate::units::{Power, Span};

/// Spreading factor: each step doubles a symbol and adds about 2.5 dB of range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Spreading(u8);

impl Spreading {
    /// Spreading factors of EU868 at 125 kHz, 7 to 12.
    pub const fn new(factor: u8) -> Option<Spreading> {
        if factor >= 7 && factor <= 12 { Some(Spreading(factor)) } else { None }
    }

    /// The factor as a number.
    pub fn get(self) -> u8 {
        self.0
    }

    /// Duration of a symbol at 125 kHz: 2^SF / 125 kHz.
    pub fn symbol(self) -> Span {
        Span::micros(8 << self.0)
    }

    /// Longest application payload in bytes: LoRaWAN regional parameters RP002, EU868, without repeaters and
    /// options.
    pub fn longest(self) -> u64 {
        match self.0 {
            7 | 8 => 222,
            9 => 115,
            _ => 51,
        }
    }

    /// Time on air of `bytes` of the physical layer with explicit header, CRC, coding rate 4/5 and a preamble
    /// of 8 symbols: Semtech AN1200.13, section 4. Symbols longer than 16 ms use the low data rate
    /// optimisation.
    pub fn airtime(self, bytes: u64) -> Span {
        let sf = i64::from(self.0);
        let optimised = i64::from(self.symbol() > Span::millis(16));
        let bits = 8 * i64::try_from(bytes).unwrap_or(i64::MAX / 8) - 4 * sf + 28 + 16;
        let each = 4 * (sf - 2 * optimised);
        let groups = if bits > 0 { (bits + each - 1) / each } else { 0 };
        // The preamble has 12.25 symbols: quarters of a symbol are whole nanoseconds.
        let quarters = 49 + 4 * (8 + 5 * groups.unsigned_abs());
        Span(self.symbol().0 / 4 * quarters)
    }

    /// Duration of a receive window without a preamble: 12 symbols, 8 from SF11 on (Casals et al., table 4).
    fn window(self) -> Span {
        Span(self.symbol().0 * if self.0 >= 11 { 8 } else { 12 })
    }
}

/// Bytes of MHDR, FHDR, FPort and MIC around a payload (LoRaWAN 1.0.4, 4).
pub const OVERHEAD: u64 = 13;
/// Maximum share of time on the air in most bands of EU868 (ETSI EN 300 220).
pub const DUTY_CYCLE: f64 = 0.01;

/// A device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lora {
    /// Name of the preset.
    pub name: &'static str,
    /// Short description, for lists.
    pub about: &'static str,
    /// Source of its figures.
    pub source: &'static str,
    /// Its spreading factor.
    pub spreading: Spreading,
    /// Phases before sending: durations and powers.
    pub before: &'static [(Span, Power)],
    /// Power while sending.
    pub send: Power,
    /// Power until a window opens.
    pub wait: Power,
    /// Power in the first and in the second window.
    pub windows: [Power; 2],
    /// Phases after the second window: durations and powers.
    pub behind: &'static [(Span, Power)],
    /// Power while asleep.
    pub sleep: Power,
}

const fn spreading(factor: u8) -> Spreading {
    Spreading::new(factor).expect("7 to 12")
}

/// One chip at two spreading factors, at 3.3 V, processor included. The data sheet does not cover other work
/// of the processor.
const SAM_R34: Lora = Lora {
    name: "lora-sf7",
    about: "LoRaWAN class A, EU868, 14 dBm (SAM R34), SF7: near the gateway",
    source: "Microchip, SAM R34/R35 data sheet, current consumption (868 MHz, power setting 15; 125 kHz; standby)",
    spreading: spreading(7),
    before: &[],
    send: milliamperes(41.54, 3.3),
    wait: milliamperes(0.001608, 3.3),
    windows: [milliamperes(12.68, 3.3); 2],
    behind: &[],
    sleep: milliamperes(0.001608, 3.3),
};

/// Devices with published figures.
pub const LORAS: [Lora; 3] = [
    SAM_R34,
    Lora {
        name: "lora-sf12",
        about: "the same with SF12: far from the gateway",
        spreading: spreading(12),
        ..SAM_R34
    },
    Lora {
        name: "lora-mdot",
        about: "LoRaWAN class A as measured on a development platform (MultiConnect mDot), SF7",
        source: "Casals, Mir, Vidal, Gomez, Modeling the Energy Performance of LoRaWAN, Sensors 2017, 17, 2364: states of \
                 tables 2 to 4, as quoted in lkrzak/ijet2023; sleep: 45 uA, peteryej/LoRaWAN-NBIoTEnergyModels",
        spreading: spreading(7),
        before: &[
            (Span::micros(168_200), milliamperes(22.1, 3.3)),
            (Span::micros(83_800), milliamperes(13.3, 3.3)),
        ],
        send: milliamperes(83.0, 3.3),
        wait: milliamperes(27.0, 3.3),
        windows: [milliamperes(38.1, 3.3), milliamperes(35.0, 3.3)],
        behind: &[
            (Span::micros(147_400), milliamperes(13.2, 3.3)),
            (Span::millis(268), milliamperes(21.0, 3.3)),
            (Span::micros(38_600), milliamperes(13.3, 3.3)),
        ],
        sleep: milliamperes(0.045, 3.3),
    },
];

impl Lora {
    /// Frames for `bytes` of an application.
    pub fn frames(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.spreading.longest()).max(1)
    }

    /// Time on air of a report.
    pub fn airtime(&self, bytes: u64) -> Span {
        let longest = self.spreading.longest();
        let full = self.frames(bytes) - 1;
        let last = self.spreading.airtime(bytes - full * longest + OVERHEAD);
        Span(full * self.spreading.airtime(longest + OVERHEAD).0 + last.0)
    }

    /// Maximum number of reports per day within the duty cycle.
    pub fn most_a_day(&self, bytes: u64) -> f64 {
        86_400.0 * DUTY_CYCLE / self.airtime(bytes).as_secs_f64()
    }

    /// States of the device from one report of `bytes` to the next, `period` later.
    pub fn states(&self, bytes: u64, period: Span) -> Vec<Stretch> {
        let mut states = States::default();
        let longest = self.spreading.longest();
        let frames = self.frames(bytes);
        for frame in 0..frames {
            let left = bytes - frame * longest;
            self.frame(&mut states, left.min(longest));
        }
        let rest = period.saturating_sub(states.span());
        states.add(Part::Sleep, rest, self.sleep);
        states.0
    }

    /// One frame and its two windows, the second with SF12 (RP002: data rate 0).
    fn frame(&self, states: &mut States, payload: u64) {
        for (span, power) in self.before {
            states.add(Part::Connect, *span, *power);
        }
        states.add(Part::Send, self.spreading.airtime(payload + OVERHEAD), self.send);
        let second = Span::secs(1);
        let window = self.spreading.window();
        states.add(Part::Tail, second, self.wait);
        states.add(Part::Listen, window, self.windows[0]);
        states.add(Part::Tail, second.saturating_sub(window), self.wait);
        // Casals et al. measured 33 ms, one symbol of SF12.
        states.add(Part::Listen, spreading(12).symbol(), self.windows[1]);
        for (span, power) in self.behind {
            states.add(Part::Connect, *span, *power);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Joules;
    use super::*;

    #[test]
    fn airtimes_match_published_calculators() {
        // The Things Network's spreadsheet of AN1200.13: 13 bytes with SF9, 164.864 ms. RF Wireless World: 10 bytes with
        // SF7, 41.216 ms; with SF11, 577.536 ms. By hand: 20 bytes with SF7 make ceil(176 / 28) = 7 groups, so 43 symbols
        // and 12.25 of preamble, 56.576 ms; with SF12 ceil(156 / 40) = 4 groups, 28 symbols, 1318.912 ms, which that
        // spreadsheet gives for 28 symbols of SF12 as well.
        for (factor, bytes, us) in [
            (9, 13, 164_864),
            (7, 10, 41_216),
            (11, 10, 577_536),
            (7, 20, 56_576),
            (12, 20, 1_318_912),
        ] {
            assert_eq!(spreading(factor).airtime(bytes), Span::micros(us), "SF{factor}, {bytes}");
        }
    }

    #[test]
    fn valid_spreading_factors_have_their_payload_limit_and_window() {
        let made: Vec<u8> = (0..=20).filter_map(Spreading::new).map(Spreading::get).collect();
        assert_eq!(made, [7, 8, 9, 10, 11, 12]);
        let longest = [7, 8, 9, 10, 11, 12].map(|factor| spreading(factor).longest());
        assert_eq!(longest, [222, 222, 115, 51, 51, 51]);
        // Twelve symbols up to SF10, eight from SF11 on.
        let windows = [7, 10, 11, 12].map(|factor| spreading(factor).window());
        assert_eq!(windows, [12_288, 98_304, 131_072, 262_144].map(Span::micros));
    }

    #[test]
    fn a_report_is_one_frame_and_two_empty_windows() {
        let lora = LORAS[0];
        // 7 bytes are 20 with the overhead: 56.576 ms at 41.54 mA, 12 x 1.024 + 32.768 ms at 12.68 mA, both
        // at 3.3 V.
        let states = lora.states(7, Span::secs(60));
        let joules = Joules::of(&states);
        assert!((joules.part(Part::Send) - 7.7556e-3).abs() < 1e-6, "{joules:?}");
        assert!((joules.part(Part::Listen) - 1.8854e-3).abs() < 1e-6, "{joules:?}");
        let span = states.iter().fold(Span::ZERO, |sum, s| sum + s.span);
        assert_eq!(span, Span::secs(60));
    }

    #[test]
    fn the_duty_cycle_and_the_payload_limit_are_applied() {
        // 864 s a day on the air: 655 frames of 1318.912 ms.
        assert_eq!(LORAS[1].most_a_day(7).floor(), 655.0);
        assert_eq!([1, 51, 52, 102, 103].map(|b| LORAS[1].frames(b)), [1, 1, 2, 2, 3]);
        // 52 bytes: two frames, of 64 and 14 bytes of the physical layer.
        let both = spreading(12).airtime(64).0 + spreading(12).airtime(14).0;
        assert_eq!(LORAS[1].airtime(52), Span(both));
        assert_eq!(Spreading::new(6), None);
    }

    #[test]
    fn the_measured_platform_lifetime_matches_the_paper() {
        // Abstract of Casals et al.: 2400 mAh last a year with a message each 5 minutes, and 6 years with
        // almost none. The second figure follows from 45 uA alone; the first tests all states.
        let mdot = LORAS[2];
        let years = |period: Span| {
            let watts = Joules::of(&mdot.states(7, period)).total() / period.as_secs_f64();
            2.4 * 3.3 * 3600.0 / watts / (365.25 * 86_400.0)
        };
        assert!((years(Span::secs(300)) - 1.0).abs() < 0.2, "{}", years(Span::secs(300)));
        assert!((years(Span::secs(86_400 * 30)) - 6.0).abs() < 0.2);
    }
}
