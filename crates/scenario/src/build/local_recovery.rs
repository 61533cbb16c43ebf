//! Options of the link layer `local-recovery`: `local-recovery = { max-retransmits = 13, backoff = "50ms" }`.

use lasthop_proto::link::local_recovery::LocalRecoveryConfig;
use lasthop_proto::units::{Bytes, Span};

use crate::error::Error;
use crate::read::Reader;
use crate::schema;

/// Reads the options beside `stage`'s link layer, whose frames carry pieces of at most `fragment` bytes.
pub(super) fn read(
    stage: &Reader<'_>,
    fragment: Option<u32>,
) -> Result<LocalRecoveryConfig, Error> {
    let base = LocalRecoveryConfig::bakshi96();
    let base = LocalRecoveryConfig { longest: fragment.unwrap_or(base.longest), ..base };
    let Some(node) = stage.node("local-recovery") else { return Ok(base) };
    let options = Reader::open(node, &stage.key("local-recovery"), schema::LOCAL_RECOVERY)?;
    let times = Span::ZERO..=Span::secs(3600);
    let backoff = options.within("backoff", base.backoff, times.clone())?;
    // A back-off that begins beyond the usual limit does not grow, unless the file says so.
    let most = options.within("backoff-max", base.backoff_max.max(backoff), times.clone())?;
    if most < backoff {
        return Err(options.out_of_range(
            "backoff-max",
            "the limit of the back-off grows from `backoff` to `backoff-max`, for example \
             `local-recovery = { backoff = \"50ms\", backoff-max = \"800ms\" }`",
        ));
    }
    let timeout = match options.has("timeout") {
        true => Some(options.within("timeout", Span::millis(100), Span(1)..=Span::secs(3600))?),
        false => None,
    };
    let ack = options.within("ack", Bytes(base.ack.into()), Bytes(1)..=Bytes(1500))?;
    Ok(LocalRecoveryConfig {
        max_retransmits: options.within(
            "max-retransmits",
            base.max_retransmits.into(),
            0..=1_000_000,
        )? as u32,
        backoff,
        backoff_max: most,
        timeout,
        ack: ack.0 as u32,
        ..base
    })
}
