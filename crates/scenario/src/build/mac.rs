//! Medium access of a radio hop, and its options.

use lasthop_proto::hop::HopConfig;
use lasthop_proto::link::RadioConfig;
use lasthop_proto::mac::{DcfConfig, FamaConfig, HalfDuplexHops, MacConfig, PowerSaveConfig};
use lasthop_proto::units::{Bytes, Span};

use super::Noted;
use crate::error::{Code, Diagnostic, Error};
use crate::read::{Reader, not_a_choice};
use crate::schema;

/// Reads `mac` and the tables of options beside it.
pub(super) fn read(
    stage: &Reader<'_>,
    radio: &RadioConfig,
    notes: &mut Vec<Noted>,
) -> Result<MacConfig, Error> {
    let words = schema::words(&schema::MACS);
    let word = match stage.node("mac") {
        None => "ideal",
        Some(node) => match node.as_str() {
            Some(word) if words.contains(&word) => word,
            _ => return Err(not_a_choice(node, &stage.key("mac"), &words)),
        },
    };
    // All options are read whatever medium access is: a wrong one is wrong in every cell of a sweep.
    let (fama, dcf) = (fama(stage)?, dcf(stage)?);
    for (key, user) in
        [("fama", "fama-ncs"), ("dcf", "dcf"), ("half-duplex-hops", "half-duplex-hops")]
    {
        if stage.has(key) && word != user {
            notes.push(Noted {
                warning: Diagnostic::new(Code::NoEffect, stage.key(key), &stage.place(key))
                    .message(format!("`{key}` has no effect"))
                    .label("medium access does not use it")
                    .help(format!("leave it out, or write `mac = \"{user}\"`")),
                in_every_cell: true,
            });
        }
    }
    if word != "ideal" && !radio.half_duplex {
        return Err(Diagnostic::new(Code::BadValue, stage.key("mac"), &stage.place("mac"))
            .message(format!(
                "`{word}` shares one channel, and the radio has one for each direction"
            ))
            .label("needs a half-duplex radio")
            .help("leave out `duplex = \"full\"`, or write `mac = \"ideal\"`")
            .into());
    }
    Ok(match word {
        "fama-ncs" => MacConfig::FamaNcs(fama),
        "dcf" => MacConfig::Dcf(dcf),
        _ => MacConfig::Ideal,
    })
}

/// The options of FAMA-NCS.
fn fama(stage: &Reader<'_>) -> Result<FamaConfig, Error> {
    let base = FamaConfig::default();
    let Some(node) = stage.node("fama") else { return Ok(base) };
    let table = Reader::open(node, &stage.key("fama"), schema::FAMA)?;
    let short = Bytes(base.short_answer.into());
    Ok(FamaConfig {
        acceleration: table.or("acceleration", base.acceleration)?,
        short_answer: table.within("short-answer", short, Bytes(0)..=Bytes(65_535))?.0 as u32,
        backoff: table.within("backoff", u64::from(base.backoff), 2..=100_000)? as u32,
    })
}

/// The shortest frame that carries a packet: 36 bytes of 802.11, LLC and SNAP, and the headers of IP and TCP.
const ACK_FRAME: Bytes = Bytes(76);

/// The options of DCF.
fn dcf(stage: &Reader<'_>) -> Result<DcfConfig, Error> {
    let base = DcfConfig::default();
    let Some(node) = stage.node("dcf") else { return Ok(base) };
    let table = Reader::open(node, &stage.key("dcf"), schema::DCF)?;
    let number = |key, default: u32, range| {
        Ok::<_, Error>(table.within(key, u64::from(default), range)? as u32)
    };
    let threshold = Bytes(base.rts_threshold.into());
    let cw_min = number("cw-min", base.cw_min, 1..=32_767)?;
    let rts_threshold = table.within("rts-threshold", threshold, Bytes(0)..=Bytes(100_000))?;
    if rts_threshold < ACK_FRAME {
        let help = format!(
            "even the frame of an ACK has {ACK_FRAME}, headers included, so RTS and CTS would stand before \
             every frame; write at least `rts-threshold = \"{ACK_FRAME}\"`, for example \"1000\" for frames with data alone"
        );
        return Err(table.out_of_range("rts-threshold", &help));
    }
    Ok(DcfConfig {
        cw_min,
        cw_max: number("cw-max", base.cw_max.max(cw_min), u64::from(cw_min)..=32_767)?,
        rts_threshold: rts_threshold.0 as u32,
        short_retries: Some(number("short-retries", base.short_retries.unwrap_or(7), 1..=255)?),
        long_retries: Some(number("long-retries", base.long_retries.unwrap_or(4), 1..=255)?),
        control_rate: table.optional("control-rate")?,
        power_save: power_save(&table)?,
        ..base
    })
}

/// The words for power saving.
const POWER_SAVE: [&str; 3] = ["off", "ps-poll", "dynamic"];
/// How long a station of today stays awake after its last frame: the default of Linux's mac80211.
const DYNAMIC: Span = Span::millis(100);

/// How mobile stations sleep: a word, or a table of options.
fn power_save(dcf: &Reader<'_>) -> Result<Option<PowerSaveConfig>, Error> {
    let base = PowerSaveConfig::default();
    let Some(node) = dcf.node("power-save") else { return Ok(None) };
    if node.as_table().is_some() {
        let table = Reader::open(node, &dcf.key("power-save"), schema::POWER_SAVE)?;
        let second = Span::millis(1)..=Span::secs(10);
        let timeout =
            table.has("timeout").then(|| table.within("timeout", DYNAMIC, second.clone()));
        return Ok(Some(PowerSaveConfig {
            beacon: table.within("beacon", base.beacon, Span::millis(10)..=Span::secs(10))?,
            listen: table.within("listen", u64::from(base.listen), 1..=1000)? as u16,
            buffer: table.within("buffer", u64::from(base.buffer), 1..=100_000)? as u32,
            timeout: timeout.transpose()?,
        }));
    }
    match node.as_str() {
        Some("off") => Ok(None),
        Some("ps-poll") => Ok(Some(base)),
        Some("dynamic") => Ok(Some(PowerSaveConfig { timeout: Some(DYNAMIC), ..base })),
        _ => Err(not_a_choice(node, &dcf.key("power-save"), &POWER_SAVE)),
    }
}

/// Most hops in a row.
const MAX_HOPS: u64 = 16;

/// Packet radio over several hops, if that is the medium access; `hop` is what stands beside it.
pub(super) fn half_duplex_hops(
    stage: &Reader<'_>,
    hop: Option<&HopConfig>,
) -> Result<Option<HalfDuplexHops>, Error> {
    const KEY: &str = "half-duplex-hops";
    let base = HalfDuplexHops::default();
    let config = match stage.node(KEY) {
        None => base,
        Some(node) => {
            let table = Reader::open(node, &stage.key(KEY), schema::HALF_DUPLEX_HOPS)?;
            let unit = Span::micros(1)..=Span::secs(60);
            let poll = Bytes(base.poll.into());
            HalfDuplexHops {
                hops: table.within("hops", u64::from(base.hops), 1..=MAX_HOPS)? as u8,
                turnaround: table.within(
                    "turnaround",
                    base.turnaround,
                    Span::ZERO..=Span::secs(60),
                )?,
                backoff: table.within("backoff", base.backoff, unit)?,
                poll: table.within("poll", poll, Bytes(1)..=Bytes(65_535))?.0 as u32,
            }
        }
    };
    if stage.node("mac").and_then(|node| node.as_str()) != Some(KEY) {
        return Ok(None);
    }
    let beside = ["link-layer", "fragment", "coding"].into_iter().find(|key| stage.has(key));
    let Some(key) = beside.filter(|_| hop.is_some()) else { return Ok(Some(config)) };
    Err(Diagnostic::new(Code::BadValue, stage.key(key), &stage.place(key))
        .message(format!("`{key}` is set beside `mac = \"{KEY}\"`, whose stations have none"))
        .label("not with this medium access")
        .help(format!(
            "leave out `{key}`, or write another medium access, for example `mac = \"ideal\"`"
        ))
        .into())
}
