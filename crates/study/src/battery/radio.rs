//! The available radios with the paths of their packets, and the timers that a network sets.

use lasthop_proto::energy::iot::{
    Activity, BLES, Ble, CELLULARS, Cellular, LORAS, Lora, Rest, Stretch, WIFIS, Wifi,
};
use lasthop_proto::units::Span;

use super::traffic::Path;

/// A radio, by family.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Cellular(Cellular, Path),
    Lora(Lora),
    Ble(Ble),
    Wifi(Wifi, Path),
}

#[derive(Clone, Copy, Debug)]
pub struct Radio(pub(super) Kind);

/// The path of LTE-M: the rate at which the modem's current is specified, and a round trip of 0.15 s.
const LTE_M: Path = Path {
    sets: &[
        "coverage=normal",
        "air.link.rate-left=180kbit",
        "air.link.rate-right=180kbit",
        "air.link.delay=50ms",
        "air.link.jitter=10ms",
    ],
};
/// A path over Wi-Fi at its lowest OFDM rate.
const WIFI: Path = Path {
    sets: &[
        "coverage=normal",
        "air.link.rate-left=6mbit",
        "air.link.rate-right=6mbit",
        "air.link.delay=2ms",
        "air.link.jitter=1ms",
    ],
};
const NB_IOT: Path = Path { sets: &["coverage=normal"] };
const NB_IOT_EDGE: Path = Path { sets: &["coverage=edge"] };

impl Radio {
    pub fn all() -> Vec<Radio> {
        let path = |modem: &Cellular| match modem.name {
            "lte-m" => LTE_M,
            "nb-iot-edge" => NB_IOT_EDGE,
            _ => NB_IOT,
        };
        let mut all: Vec<Kind> = CELLULARS.iter().map(|m| Kind::Cellular(*m, path(m))).collect();
        all.extend(LORAS.map(Kind::Lora));
        all.extend(WIFIS.map(|station| Kind::Wifi(station, WIFI)));
        all.extend(BLES.map(Kind::Ble));
        all.into_iter().map(Radio).collect()
    }

    /// Name, description, source of the figures.
    pub(super) fn words(&self) -> [&'static str; 3] {
        match &self.0 {
            Kind::Cellular(r, _) => [r.name, r.about, r.source],
            Kind::Lora(r) => [r.name, r.about, r.source],
            Kind::Ble(r) => [r.name, r.about, r.source],
            Kind::Wifi(r, _) => [r.name, r.about, r.source],
        }
    }

    pub fn name(&self) -> &'static str {
        self.words()[0]
    }

    /// The path of its packets, if they are IP.
    pub(super) fn path(&self) -> Option<Path> {
        match &self.0 {
            Kind::Cellular(_, path) | Kind::Wifi(_, path) => Some(*path),
            Kind::Lora(_) | Kind::Ble(_) => None,
        }
    }

    /// The states of one period, for the packets `air` of a report of `bytes`.
    pub(super) fn states(&self, air: &[Activity], bytes: u64, period: Span) -> Vec<Stretch> {
        match &self.0 {
            Kind::Cellular(modem, _) => modem.states(air, period),
            Kind::Wifi(station, _) => station.states(air, period),
            Kind::Lora(lora) => lora.states(bytes, period),
            Kind::Ble(ble) => ble.states(bytes, period),
        }
    }
}

/// Timers of cellular networks that replace the defaults.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Network {
    /// From the last packet to the release of a connection.
    pub inactivity: Option<Span>,
    /// How long a device can be paged afterwards.
    pub active: Option<Span>,
    pub rest: Option<Rest>,
    /// Release immediately after a report.
    pub release_assistance: bool,
}

/// Parses how a modem rests: `psm`, `drx:1.28s` or `edrx:81.92s`.
pub fn rest(word: &str) -> Option<Rest> {
    let cycle = |time: &str| time.parse::<Span>().ok().filter(|cycle| *cycle >= Span::millis(10));
    match word.split_once(':') {
        None if word == "psm" => Some(Rest::Psm),
        Some(("drx", time)) => cycle(time).map(Rest::Drx),
        Some(("edrx", time)) => cycle(time).map(Rest::Edrx),
        _ => None,
    }
}

impl Network {
    pub(super) fn applied(&self, radio: Radio) -> Radio {
        let Kind::Cellular(mut modem, path) = radio.0 else { return radio };
        let timers = &mut modem.timers;
        timers.inactivity = self.inactivity.unwrap_or(timers.inactivity);
        timers.active = self.active.unwrap_or(timers.active);
        timers.rest = self.rest.unwrap_or(timers.rest);
        timers.release_assistance |= self.release_assistance;
        Radio(Kind::Cellular(modem, path))
    }
}
