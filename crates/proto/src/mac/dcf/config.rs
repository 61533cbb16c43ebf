//! Settings of the distributed coordination function, and their keys.

use serde::Serialize;

use super::super::{Chosen, MacConfig, Read};
use super::power_save::PowerSaveConfig;
use crate::describe::{Descriptor, Form, Keys, Kind, System, Value};
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
    /// Rate of RTS, CTS and ACK, if it differs from that of [`Phy`](crate::mac::Phy); never above the data
    /// rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_rate: Option<Rate>,
    /// Whether a station resets its NAV when no frame follows an RTS for another station.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub nav_reset: bool,
    /// Power saving of mobile stations; `None` keeps them awake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_save: Option<PowerSaveConfig>,
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
        }
    }
}

/// Size of the shortest frame with a packet: 36 bytes of 802.11, LLC and SNAP, and the headers of IP and TCP.
const ACK_FRAME: Bytes = Bytes(76);

impl DcfConfig {
    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> DcfConfig {
        let mut c = DcfConfig::default();
        k.table("dcf", "options of `dcf`", |k| {
            let doc =
                "frames of more bytes than this, headers included, are preceded by RTS and CTS";
            k.bytes("rts-threshold", &mut c.rts_threshold, 0..=100_000, doc);
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
        });
        c
    }
}

/// Time that a modern station stays awake after its last frame: the default of Linux's mac80211.
const DYNAMIC: Span = Span::millis(100);

/// Power saving of mobile stations: a keyword, or a table of options.
fn power_save(k: &mut Keys<'_>) -> Option<PowerSaveConfig> {
    let base = PowerSaveConfig::default();
    let mut table = None;
    let words = Form::Word(vec!["off", "ps-poll", "dynamic"]);
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
        Value::Word("ps-poll") => Some(base),
        Value::Word("dynamic") => Some(PowerSaveConfig { timeout: Some(DYNAMIC), ..base }),
        Value::Word(_) => None,
        _ => table.filter(|_| k.has("power-save")),
    }
}
