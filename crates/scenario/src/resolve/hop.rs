//! Medium access and the link layer of a radio hop, whose keys are next to `radio`.

use lasthop_proto::describe::{Descriptor, Keys};
use lasthop_proto::hop::HopConfig;
use lasthop_proto::link::fec::Coding;
use lasthop_proto::link::{self, LinkLayerConfig, RadioConfig};
use lasthop_proto::mac::{self, Chosen, HalfDuplexHops, MacConfig};

use crate::error::{Code, Diagnostic, Error, Noted};
use crate::parts::hop::fragment;
use crate::read::{Reader, not_a_choice};
use crate::reading::take;

/// Reads the keys next to `radio`: a hop with a link layer or medium access, packet radio over several hops, or neither.
pub(super) fn read(
    stage: &Reader<'_>,
    radio: &RadioConfig,
    notes: &mut Vec<Noted>,
) -> Result<(Option<Box<HopConfig>>, Option<HalfDuplexHops>), Error> {
    let macs: Vec<_> = mac::all_words().collect();
    let access = chosen(stage, "mac", &macs, notes, |read, k| read(k))?;
    if let Chosen::Hop(MacConfig::Granted(granted)) = &access {
        if granted.pattern.is_empty() && radio.half_duplex {
            return Err(refused(
                stage,
                "mac",
                "`granted` sends in both directions at once, and the radio shares one channel".to_owned(),
                "needs a radio for each direction",
                "write `duplex = \"full\"` in the radio's braces, or share it by `granted = { pattern = \"DDDSU\" }`"
                    .to_owned(),
            ));
        }
    } else if access != Chosen::Hop(MacConfig::Ideal) && !radio.half_duplex {
        let word = word(stage, "mac", &macs)?;
        return Err(refused(
            stage,
            "mac",
            format!("`{word}` shares one channel, and the radio has one for each direction"),
            "needs a half-duplex radio",
            "leave out `duplex = \"full\"`, or write `mac = \"ideal\"`".to_owned(),
        ));
    }
    let (fragment, _) = take(stage, fragment)?;
    let layers: Vec<_> = link::words().collect();
    let link = chosen(stage, "link-layer", &layers, notes, |read, k| read(k, fragment))?;
    let (coding, _) = take(stage, Coding::keys)?;
    let mac = match access {
        Chosen::Hop(mac) => mac,
        Chosen::Hops(hops) => {
            let none = HopConfig { link, fragment, coding, ..HopConfig::default() };
            return bare(stage, &none).map(|()| (None, Some(hops)));
        }
    };
    if matches!(&mac, MacConfig::Dcf(dcf) if dcf.power_save.is_some())
        && link != LinkLayerConfig::None
    {
        let word = word(stage, "link-layer", &layers)?;
        return Err(refused(
            stage,
            "link-layer",
            format!("`{word}` does not work with `power-save`, where frames wait for a beacon"),
            "its timers ignore this wait",
            "leave out `link-layer`, or write `dcf = { power-save = \"off\" }`".to_owned(),
        ));
    }
    let hop = HopConfig { mac, link, fragment, coding, mobiles: Vec::new() };
    Ok(((hop != HopConfig::default()).then(|| Box::new(hop)), None))
}

/// Rejects other parts of a hop next to packet radio over several hops.
fn bare(stage: &Reader<'_>, hop: &HopConfig) -> Result<(), Error> {
    let other = ["link-layer", "fragment", "coding"].into_iter().find(|key| stage.has(key));
    let Some(key) = other.filter(|_| *hop != HopConfig::default()) else { return Ok(()) };
    Err(refused(
        stage,
        key,
        format!("`{key}` and `mac = \"half-duplex-hops\"` exclude each other"),
        "not with this medium access",
        format!("leave out `{key}`, or write another medium access, for example `mac = \"ideal\"`"),
    ))
}

fn refused(stage: &Reader<'_>, key: &str, message: String, label: &str, help: String) -> Error {
    Diagnostic::new(Code::BadValue, stage.key(key), &stage.location(key))
        .message(message)
        .label(label)
        .help(help)
        .into()
}

/// The keyword at `key`; by default the first one of the registry.
fn word<R>(
    stage: &Reader<'_>,
    key: &str,
    registry: &[&'static Descriptor<R>],
) -> Result<&'static str, Error> {
    let names: Vec<&str> = registry.iter().map(|system| system.word).collect();
    let Some(node) = stage.node(key) else { return Ok(registry[0].word) };
    let found = registry.iter().find(|system| Some(system.word) == node.as_str());
    found.map(|system| system.word).ok_or_else(|| not_a_choice(node, &stage.key(key), &names))
}

/// The system that `key` selects from its registry. Options of other systems have no effect.
fn chosen<R: Copy, T>(
    stage: &Reader<'_>,
    key: &str,
    registry: &[&'static Descriptor<R>],
    notes: &mut Vec<Noted>,
    read: impl Fn(R, &mut Keys<'_>) -> T,
) -> Result<T, Error> {
    let word = word(stage, key, registry)?;
    let (mut config, mut uses, mut all) = (None, Vec::new(), Vec::new());
    // All options are read for every system: a wrong value is an error in every cell of a sweep.
    for system in registry {
        let (value, keys) = take(stage, |k| read(system.read, k))?;
        if system.word == word {
            (config, uses) = (Some(value), keys.clone());
        }
        all.push((system, keys));
    }
    for (system, own) in all {
        for option in own {
            if !stage.has(option) || uses.contains(&option) {
                continue;
            }
            let with = system.word;
            let help = format!("leave it out, or write `{key} = \"{with}\"`");
            uses.push(option);
            notes.push(stage.unused(option, "the hop does not use it", &help));
        }
    }
    config.ok_or_else(|| stage.missing(key, "one of the words", registry[0].word))
}
