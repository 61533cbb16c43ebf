//! Medium access and the link layer of a radio hop, which stand beside `radio`.

use lasthop_proto::hop::HopConfig;
use lasthop_proto::link::fec::{self, Coding};
use lasthop_proto::link::ll::LlConfig;
use lasthop_proto::link::{LinkLayerConfig, RadioConfig};
use lasthop_proto::mac::MacConfig;
use lasthop_proto::units::Bytes;

use super::{Noted, ll, local_recovery, mac, tulip};
use crate::error::{Code, Diagnostic, Error};
use crate::read::{Reader, not_a_choice};
use crate::schema;

/// Reads what stands beside `radio`; `None` if the hop has neither link layer nor medium access.
pub(super) fn read(
    stage: &Reader<'_>,
    radio: &RadioConfig,
    notes: &mut Vec<Noted>,
) -> Result<Option<Box<HopConfig>>, Error> {
    let mac = mac::read(stage, radio, notes)?;
    let fragment = fragment(stage)?;
    // All options are read whatever the protocol is: a wrong one is wrong in every cell of a sweep.
    let basic = ll::read(stage)?;
    let recovery = local_recovery::read(stage, fragment)?;
    let tulip = tulip::read(stage)?;
    let word = word(stage, "link-layer", &schema::words(&schema::LINK_LAYERS), "none")?;
    let link = match word {
        "none" => LinkLayerConfig::None,
        "ll" => LinkLayerConfig::Ll(basic),
        "ll-sack" => LinkLayerConfig::Ll(LlConfig { selective: true, ..basic }),
        "local-recovery" => LinkLayerConfig::LocalRecovery(recovery),
        "tulip" => LinkLayerConfig::Tulip(tulip),
        other => unreachable!("`{other}` is in the list of link layers"),
    };
    // Where the options of each protocol stand.
    let options = |protocol| if protocol == "ll-sack" { "ll" } else { protocol };
    for key in ["ll", "local-recovery", "tulip"] {
        if stage.has(key) && options(word) != key {
            notes.push(unused(stage, key, &format!("link-layer = \"{key}\"")));
        }
    }
    if matches!(&mac, MacConfig::Dcf(dcf) if dcf.power_save.is_some())
        && link != LinkLayerConfig::None
    {
        return Err(Diagnostic::new(
            Code::BadValue,
            stage.key("link-layer"),
            &stage.place("link-layer"),
        )
        .message(format!("`{word}` stands beside `power-save`, where frames wait for a beacon"))
        .label("its timers do not know of that")
        .help("leave out `link-layer`, or write `dcf = { power-save = \"off\" }`")
        .into());
    }
    let hop = HopConfig { mac, link, fragment, coding: coding(stage)?, mobiles: Vec::new() };
    Ok((hop != HopConfig::default()).then(|| Box::new(hop)))
}

/// The note on options of a protocol that the hop does not have.
fn unused(stage: &Reader<'_>, key: &str, with: &str) -> Noted {
    Noted {
        warning: Diagnostic::new(Code::NoEffect, stage.key(key), &stage.place(key))
            .message(format!("`{key}` has no effect"))
            .label("the hop does not use it")
            .help(format!("leave it out, or write `{with}`")),
        in_every_cell: true,
    }
}

/// The word at `key`, one of `words`.
fn word<'t>(
    stage: &Reader<'t>,
    key: &str,
    words: &[&str],
    default: &'t str,
) -> Result<&'t str, Error> {
    let Some(node) = stage.node(key) else { return Ok(default) };
    match node.as_str() {
        Some(word) if words.contains(&word) => Ok(word),
        _ => Err(not_a_choice(node, &stage.key(key), words)),
    }
}

/// The longest piece of a packet that a frame carries.
fn fragment(stage: &Reader<'_>) -> Result<Option<u32>, Error> {
    if stage.node("fragment").and_then(|node| node.as_str()) == Some("none")
        || !stage.has("fragment")
    {
        return Ok(None);
    }
    let bytes = stage.within("fragment", Bytes(128), Bytes(16)..=Bytes(65_535))?;
    Ok(Some(bytes.0 as u32))
}

/// What is done to the bytes of a frame: a number of bytes for each, or a block code.
fn coding(stage: &Reader<'_>) -> Result<Coding, Error> {
    if let Some(node) = stage.node("coding").filter(|node| node.as_table().is_some()) {
        return block_code(&Reader::open(node, &stage.key("coding"), schema::CODING)?);
    }
    let factor = stage.or("coding", 1.0)?;
    if (1.0..=100.0).contains(&factor) {
        return Ok(Coding::Overhead(factor));
    }
    Err(stage.out_of_range(
        "coding",
        "bytes on the air for each byte of a frame, from 1 to 100, for example `coding = 1.5`",
    ))
}

/// A Reed-Solomon code, or another one that corrects `corrects` bytes.
fn block_code(reader: &Reader<'_>) -> Result<Coding, Error> {
    let block = reader.within("block", 255_u64, 1..=255)? as u8;
    let data = reader.within("data", 223_u64, 1..=255)? as u8;
    let corrects = u64::from(block.saturating_sub(data) / 2);
    let corrects = reader.within("corrects", corrects, 0..=127)? as u8;
    let code = fec::Code::new(block, data, corrects)
        .map_err(|error| reader.out_of_range("data", &error.to_string()))?;
    let interleaved = reader.or("interleaved", false)?;
    Ok(Coding::Block(if interleaved { code.interleaved() } else { code }))
}
