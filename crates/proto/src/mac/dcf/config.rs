//! Settings of the distributed coordination function, and their keys.

use serde::Serialize;

use super::super::ofdm::{Ofdm, Standard};
use super::super::phy::Phy;
use super::super::{Chosen, MacConfig, Read};
use super::aggregate::Aggregation;
use super::power_save::PowerSaveConfig;
use crate::describe::{Descriptor, Form, Keys, Kind, Need, System, Value};
use crate::link::RadioConfig;
use crate::link::fec::Coding;
use crate::link::in_order::Order;
use crate::units::{Bytes, Rate, Span};

pub(in super::super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "dcf",
    system: System::new(
        Kind::Mac,
        "dcf",
        "path: mac = \"dcf\"",
        "802.11: listen, back off, acknowledge, retry, RTS above a threshold",
        "IEEE 802.11-1999, clause 9",
    ),
    read: |k| Chosen::Hop(MacConfig::Dcf(DcfConfig::keys(k))),
}];

/// Settings of the distributed coordination function.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DcfConfig {
    /// Smallest contention window: a backoff has from 0 to this number of slots.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Frames above this size in bytes, MAC header included, are preceded by RTS and CTS.
    pub rts_threshold: u32,
    /// Attempts at an RTS, or at a frame without RTS, before the frame is dropped; `None` is unlimited.
    pub short_retries: Option<u32>,
    /// Attempts at a frame after an RTS.
    pub long_retries: Option<u32>,
    /// Whether a station waits for an EIFS instead of a DIFS after an unreadable frame.
    pub eifs: bool,
    /// Time that a station waits for a CTS or ACK after its own frame; `None` is a SIFS, the awaited frame, a
    /// slot and a round trip.
    pub timeout: Option<Span>,
    /// Rate of RTS, CTS and ACK, if it differs from that of [`Phy`]; never above the data
    /// rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_rate: Option<Rate>,
    /// Whether a station resets its NAV when no frame follows an RTS for another station.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub nav_reset: bool,
    /// Power saving of mobile stations; `None` keeps them awake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_save: Option<PowerSaveConfig>,
    /// Frames of 802.11n, ac or ax; `None` is DSSS at the radio's rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ofdm: Option<Ofdm>,
    /// Aggregates; `None` sends each frame alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<AggregateConfig>,
    /// Mobile stations with a modulation or a rate of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stations: Vec<StationRate>,
}

/// Settings of aggregates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct AggregateConfig {
    /// Limit of an aggregate, bytes.
    pub bytes: u32,
    /// Frames from the first unacknowledged one on.
    pub window: u16,
    /// Whether frames are released in order.
    pub order: Order,
}

/// A mobile station with a modulation or a rate of its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StationRate {
    /// The host at the station.
    pub host: String,
    /// The number of the station, from 1; 0 if the host is not known yet.
    pub station: u8,
    /// Modulation and coding scheme, with `phy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcs: Option<u8>,
    /// Rate of data frames, without `phy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// The modulation or the rate of a station.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct OwnRate {
    pub mcs: Option<u8>,
    pub rate: Option<Rate>,
}

impl Default for DcfConfig {
    /// IEEE 802.11-1999: windows of DSSS, retry limits 7 and 4, no RTS.
    fn default() -> DcfConfig {
        DcfConfig {
            cw_min: 31,
            cw_max: 1023,
            rts_threshold: 2347,
            short_retries: Some(7),
            long_retries: Some(4),
            eifs: true,
            timeout: None,
            control_rate: None,
            nav_reset: false,
            power_save: None,
            ofdm: None,
            aggregate: None,
            stations: Vec::new(),
        }
    }
}

/// Size of the shortest frame with a packet: 36 bytes of 802.11, LLC and SNAP, and the headers of IP and TCP.
const ACK_FRAME: Bytes = Bytes(76);

impl DcfConfig {
    /// The physical layer of a radio.
    pub(in super::super) fn phy(&self, radio: &RadioConfig, coding: Coding) -> Phy {
        match self.ofdm {
            Some(ofdm) => Phy::ofdm(radio, ofdm),
            None => Phy::dsss(radio, coding),
        }
    }

    pub(super) fn aggregation(&self, stations: u8) -> Option<Aggregation> {
        self.aggregate.as_ref().map(|config| Aggregation::new(config, config.window, stations))
    }

    /// The modulations and rates of all stations.
    pub(super) fn own_rates(&self, stations: u8) -> Vec<OwnRate> {
        if self.stations.is_empty() {
            return Vec::new();
        }
        let mut own = vec![OwnRate::default(); usize::from(stations)];
        for StationRate { station, mcs, rate, .. } in &self.stations {
            if let Some(own) = own.get_mut(usize::from(*station)) {
                *own = OwnRate { mcs: *mcs, rate: *rate };
            }
        }
        own
    }

    /// Reads `phy` and the keys that depend on it.
    fn ofdm_keys(&mut self, k: &mut Keys<'_>) {
        let doc = "frames of 802.11n, ac or ax, many of them for one access; by default those of 802.11 DSSS";
        let standard = k.maybe_word("phy", &Standard::WORDS, doc);
        let base = standard.unwrap_or(Standard::Ax);
        let mut ofdm = Ofdm { standard: base, width: 20, streams: 1, mcs: base.highest_mcs() };
        k.count("width", &mut ofdm.width, 20..=160, "the width of the channel in MHz");
        k.count("streams", &mut ofdm.streams, 1..=4, "spatial streams");
        k.count("mcs", &mut ofdm.mcs, 0..=11, "the modulation and coding scheme");
        let mut aggregate =
            AggregateConfig { bytes: base.aggregate(), window: base.window(), order: Order::Kept };
        let form = Form::or(vec!["none"], Bytes(256)..=Bytes(4_194_304));
        let doc = "the limit of frames sent for one access; `none` sends each frame alone";
        let size = Value::Size(Bytes(aggregate.bytes.into()));
        let alone = match k.value("aggregate", form, Need::Default, size, doc) {
            Value::Size(bytes) => {
                aggregate.bytes = bytes.0 as u32;
                false
            }
            _ => true,
        };
        let doc = "frames from the first unacknowledged one to the last one of an aggregate";
        k.count("window", &mut aggregate.window, 1..=1024, doc);
        aggregate.order.key(k);
        if standard.is_none() {
            const OWN: [&str; 6] = ["width", "streams", "mcs", "aggregate", "window", "order"];
            if let Some(key) = k.first(&OWN) {
                let message = format!("`{}` without `phy`", k.path(key));
                k.refuse(key, message, "nothing uses it", "add `phy = \"ax\"`, or leave it out");
            }
            return;
        }
        if !ofdm.is_valid() {
            let message =
                format!("802.11{} has no MCS {} at {} MHz", word(base), ofdm.mcs, ofdm.width);
            let help = "widths are 20 and 40, from `ac` on also 80 and 160; the MCS is at most 7 with `n`, 9 with `ac`";
            let key = k.first(&["mcs", "width"]).unwrap_or("phy");
            k.refuse(key, message, "not in the standard", help);
            return;
        }
        // The windows of best effort traffic. Colliding preambles are not detected, so no station waits longer.
        (self.cw_min, self.cw_max, self.eifs) = (15, 1023, false);
        self.rts_threshold = u32::MAX;
        self.ofdm = Some(ofdm);
        self.aggregate = Some(aggregate).filter(|_| !alone);
    }

    /// Reads the stations with a modulation or a rate of their own.
    fn station_keys(&mut self, k: &mut Keys<'_>) {
        let ofdm = self.ofdm;
        let mut stations = Vec::new();
        k.tables("stations", "mobile stations with a modulation or a rate of their own", |k| {
            let (host, mut mcs, mut rate) = (String::new(), None, None);
            let form = Form::Text("\"far\"");
            let need = Need::Required("\"far\"");
            let host = match k.value("host", form, need, Value::Absent, "the host at the station") {
                Value::Text(host) => host,
                _ => host,
            };
            k.maybe_count("mcs", &mut mcs, 0..=11, "its modulation and coding scheme, with `phy`");
            k.maybe_rate("rate", &mut rate, "the rate of its data frames, without `phy`");
            let wrong = match (&ofdm, mcs, rate) {
                (Some(_), _, Some(_)) => Some(("rate", "`phy` sets rates by `mcs`")),
                (None, Some(_), _) => Some(("mcs", "without `phy` a station has a `rate`")),
                (Some(ofdm), Some(mcs), _) if !(Ofdm { mcs, ..*ofdm }).is_valid() => {
                    Some(("mcs", "the standard has no such scheme"))
                }
                _ => None,
            };
            if let Some((key, why)) = wrong {
                let message = format!("`{}`: {why}", k.path(key));
                k.refuse(
                    key,
                    message,
                    "not with this physical layer",
                    "write the other key, or another value",
                );
            }
            stations.push(StationRate { host, station: 0, mcs, rate });
        });
        self.stations = stations;
    }

    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> DcfConfig {
        let mut c = DcfConfig::default();
        k.table("dcf", "options of `dcf`", |k| {
            c.ofdm_keys(k);
            c.station_keys(k);
            let doc =
                "frames of more bytes than this, headers included, are preceded by RTS and CTS";
            let form = Form::or(vec!["none"], Bytes(0)..=Bytes(100_000));
            let default = match c.rts_threshold {
                u32::MAX => Value::Keyword("none"),
                bytes => Value::Size(Bytes(bytes.into())),
            };
            match k.value("rts-threshold", form, Need::Default, default, doc) {
                Value::Size(bytes) => c.rts_threshold = bytes.0 as u32,
                _ => c.rts_threshold = u32::MAX,
            }
            if u64::from(c.rts_threshold) < ACK_FRAME.0 {
                let help = format!(
                    "even the frame of an ACK has {ACK_FRAME}, headers included, so RTS and CTS would precede \
                     every frame; write at least `rts-threshold = \"{ACK_FRAME}\"`, for example \"1000\" for frames \
                     with data alone"
                );
                k.out_of_range("rts-threshold", help);
            }
            k.count("cw-min", &mut c.cw_min, 1..=32_767, "the smallest contention window");
            c.cw_max = c.cw_max.max(c.cw_min);
            let least = u64::from(c.cw_min);
            k.count("cw-max", &mut c.cw_max, least..=32_767, "the largest contention window");
            let doc = "attempts at an RTS, or at a frame without RTS, before the frame is dropped";
            k.maybe_count("short-retries", &mut c.short_retries, 1..=255, doc);
            k.maybe_count("long-retries", &mut c.long_retries, 1..=255, "attempts at a frame after an RTS");
            k.maybe_rate("control-rate", &mut c.control_rate, "the rate of RTS, CTS and ACK; 1 Mb/s by default");
            let doc =
                "whether a station that hears nothing after an RTS for another one may send again";
            k.flag("nav-reset", &mut c.nav_reset, doc);
            c.power_save = power_save(k);
            if c.ofdm.is_some() && c.power_save.is_some() {
                let message = format!("`{}` with `phy`", k.path("power-save"));
                let help = "leave out one of the two: stations with aggregates do not sleep";
                k.refuse("power-save", message, "not together", help);
            }
        });
        c
    }
}

/// The keyword of a standard.
fn word(standard: Standard) -> &'static str {
    let word = Standard::WORDS.iter().find(|(_, other)| *other == standard);
    word.map_or("ax", |(word, _)| word)
}

/// Time that a modern station stays awake after its last frame: the default of Linux's mac80211.
const DYNAMIC: Span = Span::millis(100);

/// Power saving of mobile stations: a keyword, or a table of options.
fn power_save(k: &mut Keys<'_>) -> Option<PowerSaveConfig> {
    let base = PowerSaveConfig::default();
    let mut table = None;
    let words = Form::Keyword(vec!["off", "ps-poll", "dynamic"]);
    let doc = "how mobile stations save power: not at all, by polling for each frame, or by sleep after the last one";
    let word = k.table_or("power-save", words, doc, |k| {
        let mut c = base.clone();
        let beacons = Span::millis(10)..=Span::secs(10);
        k.within("beacon", &mut c.beacon, beacons, "the beacon interval");
        k.count("listen", &mut c.listen, 1..=1000, "beacons from one wake-up to the next");
        k.count(
            "buffer",
            &mut c.buffer,
            1..=100_000,
            "frames that the access point buffers for each station",
        );
        let doc = "how long a station stays awake after its last frame; by default it polls";
        k.maybe("timeout", &mut c.timeout, Span::millis(1)..=Span::secs(10), doc);
        table = Some(c);
    });
    match word {
        Value::Keyword("ps-poll") => Some(base),
        Value::Keyword("dynamic") => Some(PowerSaveConfig { timeout: Some(DYNAMIC), ..base }),
        Value::Keyword(_) => None,
        _ => table.filter(|_| k.has("power-save")),
    }
}
