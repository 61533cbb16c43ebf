//! Bluetooth Low Energy: a peripheral with a permanent connection to a central that sends reports as
//! notifications.
//!
//! Central and peripheral meet in each connection interval, with or without data. The phases of such an event
//! are those measured by Kindt et al. A notification makes one packet longer; a report that exceeds one
//! packet adds exchanges to the same event.
//!
//! Not modelled: advertising and connecting, encryption, damaged packets, peripheral latency, and the
//! consumption of the central and its Internet access.

use super::{Part, States, Stretch, milliamperes};
use crate::units::{Power, Span};

/// Payload of one notification: the smallest MTU of ATT, 23 bytes, less its header of 3.
const NOTIFICATION: u64 = 20;
/// Bytes of a packet around the payload of the link layer: preamble, access address, header, CRC.
const AROUND: u64 = 10;
/// Bytes that L2CAP and ATT add to a notification.
const HEADERS: u64 = 7;
/// Duration of a byte on the 1 Mb/s physical layer.
const BYTE: Span = Span::micros(8);

/// A peripheral.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ble {
    /// Name of the preset.
    pub name: &'static str,
    /// Short description, for lists.
    pub about: &'static str,
    /// Source of its figures.
    pub source: &'static str,
    /// Connection interval.
    pub interval: Span,
    /// Phases of each event outside its packets: durations and powers.
    pub around: &'static [(Span, Power)],
    /// Time that the receiver is on before the first packet, and before later ones.
    pub before_receiving: [Span; 2],
    /// Time that the transmitter is on before a packet.
    pub before_sending: Span,
    /// Turnaround from receiving to sending.
    pub turn: (Span, Power),
    /// Turnaround from sending to receiving.
    pub turn_back: (Span, Power),
    /// Power while receiving.
    pub receive: Power,
    /// Power while sending.
    pub send: Power,
    /// Power while asleep.
    pub sleep: Power,
}

const VOLTS: f64 = 3.0;

/// Peripherals with published figures.
pub const BLES: [Ble; 1] = [Ble {
    name: "ble",
    about: "Bluetooth Low Energy peripheral (BLE112, 3 dBm), a connection event each second",
    source: "Kindt, Yunge, Diemer, Chakraborty, Precise Energy Modeling for the Bluetooth Low Energy Protocol: parameters \
             of the BLE112, as in erochester/GEPARD",
    interval: Span::secs(1),
    // Head, preprocessing, preamble of communication, transient, postprocessing, tail.
    around: &[
        (Span::micros(578), milliamperes(5.924, VOLTS)),
        (Span::micros(305), milliamperes(7.691, VOLTS)),
        (Span::micros(73), milliamperes(12.238, VOLTS)),
        (Span::micros(66), milliamperes(11.636, VOLTS)),
        (Span::micros(860), milliamperes(7.980, VOLTS)),
        (Span::micros(80), milliamperes(4.129, VOLTS)),
    ],
    // The first window is longer; 50 ppm of both clocks over a second extend it further.
    before_receiving: [Span::micros(388 + 100), Span::micros(123)],
    before_sending: Span::micros(53),
    turn: (Span::micros(80), milliamperes(14.128, VOLTS)),
    turn_back: (Span::micros(57), milliamperes(15.125, VOLTS)),
    receive: milliamperes(26.505, VOLTS),
    send: milliamperes(36.445, VOLTS),
    sleep: milliamperes(0.0009, VOLTS),
}];

impl Ble {
    /// One connection event in which the device sends `bytes` of reports. Everything except packets with data
    /// is charged to `part`.
    fn event(&self, states: &mut States, bytes: u64) {
        for (span, power) in self.around {
            states.add(Part::Reachable, *span, *power);
        }
        let packets = bytes.div_ceil(NOTIFICATION).max(1);
        for packet in 0..packets {
            let data = (bytes - packet * NOTIFICATION).min(NOTIFICATION);
            let first = usize::from(packet > 0);
            let (listen, sent) = if first == 0 && data == 0 {
                (Part::Reachable, Part::Reachable)
            } else {
                (Part::Listen, Part::Send)
            };
            states.add(listen, self.before_receiving[first] + Span(BYTE.0 * AROUND), self.receive);
            states.add(listen, self.turn.0, self.turn.1);
            let length = if data == 0 { AROUND } else { AROUND + HEADERS + data };
            states.add(sent, self.before_sending + Span(BYTE.0 * length), self.send);
            if packet + 1 < packets {
                states.add(listen, self.turn_back.0, self.turn_back.1);
            }
        }
    }

    /// States of the device from one report of `bytes` to the next, `period` later.
    pub fn states(&self, bytes: u64, period: Span) -> Vec<Stretch> {
        let mut states = States::default();
        self.event(&mut states, bytes);
        let mut empty = States::default();
        self.event(&mut empty, 0);
        // All other events are alike: they become one stretch of their mean power.
        let others = (period.0 / self.interval.0).saturating_sub(1);
        let joules: f64 = empty.0.iter().map(|s| (s.power * s.span).get()).sum();
        let event = empty.span();
        let power = Power::watts(joules / event.as_secs_f64()).unwrap_or(Power::ZERO);
        states.add(Part::Reachable, Span(event.0 * others), power);
        let rest = period.saturating_sub(states.span());
        states.add(Part::Sleep, rest, self.sleep);
        states.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::Joules;
    use super::*;

    #[test]
    fn an_empty_event_costs_the_sum_of_its_phases() {
        let mut states = States::default();
        BLES[0].event(&mut states, 0);
        // In uC: 3.424 + 2.346 + 0.893 + 0.768 + 6.863 + 0.330 around; 568 us x 26.505 mA received = 15.055; 1.130 for the
        // turn; 133 us x 36.445 mA sent = 4.847. The published correction of -1.2 uC for an exchange is left out.
        let joules = Joules::of(&states.0).total();
        assert!((joules / VOLTS * 1e6 - 35.656).abs() < 0.01, "{}", joules / VOLTS * 1e6);
        assert_eq!(states.span(), Span::micros(578 + 305 + 73 + 66 + 860 + 80 + 568 + 80 + 133));
        assert!(states.0.iter().all(|s| s.part == Part::Reachable));
    }

    #[test]
    fn larger_reports_add_bytes_and_exchanges() {
        let joules = |bytes| Joules::of(&BLES[0].states(bytes, Span::secs(10)));
        // 20 bytes: 27 additional bytes, 216 us x 36.445 mA x 3 V.
        let more = joules(20).total() - joules(0).total();
        assert!((more - 23.62e-6).abs() < 0.05e-6, "{more}");
        // 21 bytes: a second exchange.
        assert!(joules(21).part(Part::Listen) > 1.3 * joules(20).part(Part::Listen));
        let states = BLES[0].states(50, Span::secs(3600));
        assert_eq!(states.iter().fold(Span::ZERO, |sum, s| sum + s.span), Span::secs(3600));
    }
}
