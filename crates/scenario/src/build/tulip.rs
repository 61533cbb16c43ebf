//! The options of TULIP: the table `tulip` beside `radio`.

use lasthop_proto::link::tulip::{Opaque, Pacing, Reliable, Rule, TulipConfig, WINDOW_MAX};
use lasthop_proto::units::{Bytes, Span};

use crate::error::Error;
use crate::read::Reader;
use crate::schema;

const PACINGS: [(&str, Pacing); 2] =
    [("half-duplex", Pacing::HalfDuplex), ("full-duplex", Pacing::FullDuplex)];
const RELIABLE: [(&str, Reliable); 2] = [("tcp", Reliable::Tcp), ("all", Reliable::All)];
const OPAQUE: [(&str, Opaque); 3] = [
    ("by-size", Opaque::BySize),
    ("reliable", Opaque::Reliable),
    ("unreliable", Opaque::Unreliable),
];

/// Reads the options of `stage`; what is not said is as in the paper.
pub(super) fn read(stage: &Reader<'_>) -> Result<TulipConfig, Error> {
    let Some(node) = stage.node("tulip") else { return Ok(TulipConfig::default()) };
    let reader = Reader::open(node, &stage.key("tulip"), schema::TULIP)?;
    let base = TulipConfig::default();
    let within = 1..=u64::from(WINDOW_MAX);
    let default_every = u64::from(base.window);
    let lack_every = reader.within("lack-every", default_every, within.clone())? as u16;
    let lack_delay =
        reader.within("lack-delay", Span::micros(100), Span::micros(1)..=Span::secs(60))?;
    let size = u64::from(base.rule.ack_size);
    Ok(TulipConfig {
        window: reader.within("window", u64::from(base.window), within)? as u16,
        acceleration: reader.or("acceleration", base.acceleration)?,
        pacing: reader.choice("pacing", &PACINGS)?.unwrap_or_default(),
        rule: Rule {
            reliable: reader.choice("reliable", &RELIABLE)?.unwrap_or_default(),
            opaque: reader.choice("encrypted", &OPAQUE)?.unwrap_or_default(),
            ack_size: reader.within("ack-size", Bytes(size), Bytes(20)..=Bytes(65_535))?.0 as u32,
        },
        lack_every: reader.has("lack-every").then_some(lack_every),
        lack_delay: reader.has("lack-delay").then_some(lack_delay),
    })
}
