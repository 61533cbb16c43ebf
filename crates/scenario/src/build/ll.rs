//! Options of the link layers `ll` and `ll-sack`.

use lasthop_proto::link::ll::LlConfig;
use lasthop_proto::units::Span;

use crate::error::Error;
use crate::read::Reader;
use crate::schema;

/// Reads `ll` beside a radio.
pub(super) fn read(stage: &Reader<'_>) -> Result<LlConfig, Error> {
    let mut config = LlConfig::new(false);
    let Some(node) = stage.node("ll") else { return Ok(config) };
    let reader = Reader::open(node, &stage.key("ll"), schema::LL)?;
    let window = reader.within("window", u64::from(config.window), 1..=1024)?;
    config.window = window as u16;
    let times = Span(1)..=Span::secs(60);
    config.min_timeout = reader.within("min-timeout", config.min_timeout, times.clone())?;
    config.initial_timeout = reader.within("initial-timeout", config.initial_timeout, times)?;
    Ok(config)
}
