//! Links: lines of any kind, and lines of netem.

use lasthop_proto::describe::{Form, Keys, Need, Value};
use lasthop_proto::fates::Script;
use lasthop_proto::link::header_compression::CompressionConfig;
use lasthop_proto::link::tc::{DEFAULT_LIMIT, EmulatorConfig, Netem};
use lasthop_proto::link::varied::{Impairments, Varying};
use lasthop_proto::link::{Fate, LineConfig, SerialConfig};
use lasthop_proto::queue::{self, Discipline, Limit, Read};
use lasthop_proto::units::{Bytes, Probability, Rate, Span};

use crate::keys;
use crate::model::StageKind;

/// Maximum delay of a link: twice the distance to the sun at the speed of light.
pub(crate) const MAX_DELAY: Span = Span::secs(1000);
/// Bytes of an Ethernet header, which netem counts.
const ETHERNET: u32 = 14;
/// The default queue in front of a transmitter.
pub(crate) const QUEUE: Limit = Limit::Packets(50);

/// Visits the keys of `link`.
pub(crate) fn link(k: &mut Keys<'_>) -> StageKind {
    let netem = Netem::key(k);
    let emulated = k.has("netem");
    let (mut both, mut rate_right, mut rate_left) = (netem.rate, None, None);
    k.maybe_rate("rate", &mut both, "the rate in both directions; infinite by default");
    k.maybe_rate("rate-right", &mut rate_right, "the rate towards the right");
    k.maybe_rate("rate-left", &mut rate_left, "the rate towards the left");
    one_or_both(k, "rate", "leave one out if it is infinitely fast");
    let (rate_right, rate_left) = (rate_right.or(both), rate_left.or(both));
    let mut varying = Varying::keys(k);
    one_or_both(k, "light", "leave one out if it has no packet trains");
    let [mean_right, mean_left] = varying.mean_rates();
    let (discipline_right, discipline_left) =
        disciplines(k, mean_right.or(rate_right), mean_left.or(rate_left));
    let mut line = LineConfig {
        rate_right,
        rate_left,
        delay: netem.delay,
        framing: if emulated { ETHERNET } else { 0 },
        queue: if emulated { Limit::Packets(netem.limit.unwrap_or(DEFAULT_LIMIT)) } else { QUEUE },
        discipline_right,
        discipline_left,
    };
    k.within("delay", &mut line.delay, Span::ZERO..=MAX_DELAY, "the propagation delay");
    k.count("framing", &mut line.framing, 0..=10_000, "bytes added to each packet");
    k.limit("queue", &mut line.queue, "the limit of the queue in front of each transmitter");
    let compression = CompressionConfig::keys(k);
    let (mut frame_loss, mut loss_noticed) = (Probability::ZERO, true);
    k.probability("frame-loss", &mut frame_loss, "the probability that the line loses a frame");
    let frame_fates_right = frame_fates(k, "frame-fates-right");
    let frame_fates_left = frame_fates(k, "frame-fates-left");
    let description = "whether the far end of the line detects lost frames";
    k.flag("loss-noticed", &mut loss_noticed, description);
    let mut ack_size = None;
    let description = "the size of a pure ACK on the line, whatever its headers, as in simulators";
    k.maybe("ack-size", &mut ack_size, Bytes(1)..=Bytes(65_535), description);
    let ack_size = ack_size.map(|size: Bytes| size.0 as u32);
    let mut extras = netem.extras;
    let mut impairments = netem.impairments.keys(k);
    if k.has("loss") {
        extras.states = None;
    }
    let delayed = k.first(&["delays", "measured", "light", "light-right", "light-left"]).is_some()
        || line.delay > Span::ZERO;
    if k.has("reorder") && !delayed {
        let message = format!("`{}` without a delay", k.path("reorder"));
        k.refuse(
            "reorder",
            message,
            "nothing to overtake",
            "a reordered packet skips the delay: write `delay`",
        );
    }
    if emulated {
        not_of_netem(k);
        return StageKind::Netem(Box::new(EmulatorConfig { line, impairments, extras }));
    }
    if let Some(order) = varying.delays_order.take() {
        impairments.jitter_order = order;
        varying.impairments = Some(impairments);
    } else {
        varying.impairments = Some(impairments).filter(|i| *i != Impairments::default());
    }
    let plain = compression.is_none()
        && ack_size.is_none()
        && frame_loss == Probability::ZERO
        && frame_fates_right.is_none()
        && frame_fates_left.is_none();
    match varying.of(&line) {
        Some(varied) => {
            if let Some(key) = k.first(&SERIAL) {
                let message = format!("`{}` on a link that varies", k.path(key));
                let help = "write two links, one that varies or impairs packets as netem does, and one with this key; \
                            for losses on a link that varies, write `losses`";
                k.refuse(key, message, "not together", help);
            }
            StageKind::Varied(Box::new(varied))
        }
        // A plain line stays a plain line, which is faster.
        None if plain => StageKind::Link(line),
        None => StageKind::Serial(SerialConfig {
            line,
            compression,
            ack_size,
            frame_loss,
            frame_fates_right,
            frame_fates_left,
            loss_noticed,
        }),
    }
}

/// Keys that make a line serial.
const SERIAL: [&str; 5] =
    ["header-compression", "frame-loss", "frame-fates-right", "frame-fates-left", "ack-size"];

/// Visits a key with fates of frames.
fn frame_fates(k: &mut Keys<'_>, key: &'static str) -> Option<Script> {
    const EXAMPLE: &str = "\"5 drop, 7 drop\"";
    let description = "frames that the line loses in this direction, by their number; with an empty text, `lasthop explore` tries fates here";
    let value = k.value(key, Form::Text(EXAMPLE), Need::Else("none"), Value::Absent, description);
    let Value::Text(text) = value else { return None };
    let dropped = |script: &Script| script.fates().all(|fate| fate == Fate::Dropped);
    let script = Script::parse(&text).filter(dropped);
    if script.is_none() {
        let message = format!("`{text}` at `{}` does not list frames and fates", k.path(key));
        let help =
            format!("number frames from 1, in ascending order, for example `{key} = {EXAMPLE}`");
        k.refuse(key, message, "expected numbers and `drop`", help);
    }
    script
}

/// Rejects keys of links for which netem has no setting.
fn not_of_netem(k: &mut Keys<'_>) {
    const FOREIGN: [&str; 28] = [
        "rates",
        "rates-right",
        "rates-left",
        "trace",
        "trace-right",
        "trace-left",
        "light",
        "light-right",
        "light-left",
        "measured",
        "delays",
        "delays-step",
        "delays-order",
        "losses",
        "outages",
        "outage-packets",
        "discipline",
        "discipline-right",
        "discipline-left",
        "jitter-order",
        "header-compression",
        "compression-slots",
        "frame-loss",
        "frame-fates-right",
        "frame-fates-left",
        "loss-noticed",
        "ack-size",
        "red",
    ];
    if let Some(key) = k.first(&FOREIGN) {
        let message = format!("`{}` and `netem` exclude each other", k.path(key));
        let help = format!("write two links, one with `netem` and one with `{key}`");
        k.refuse(key, message, "not together", help);
    }
}

/// Visits the keys of a host's own link to the path.
pub(crate) fn access(k: &mut Keys<'_>) -> LineConfig {
    let mut rate = None;
    k.maybe_rate("rate", &mut rate, "the rate in both directions; infinite by default");
    let mut line = LineConfig {
        rate_right: rate,
        rate_left: rate,
        delay: Span::ZERO,
        framing: 0,
        queue: QUEUE,
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    };
    k.within("delay", &mut line.delay, Span::ZERO..=MAX_DELAY, "the propagation delay");
    k.limit("queue", &mut line.queue, "the limit of the queue in front of each transmitter");
    line
}

/// Checks that a key for both directions does not occur together with its variants `-right` and `-left`.
fn one_or_both(k: &mut Keys<'_>, key: &str, missing: &str) {
    if !(k.has(key) && ["right", "left"].iter().any(|side| k.has(&format!("{key}-{side}")))) {
        return;
    }
    let message = format!("`{}` and a {key} of one direction exclude each other", k.path(key));
    let help = format!(
        "`{key}` sets both directions; if they differ, write `{key}-right` and `{key}-left` instead, and {missing}"
    );
    k.refuse(key, message, "which of them?", help);
}

/// The disciplines of the queues towards the right and towards the left.
pub(crate) fn disciplines(
    k: &mut Keys<'_>,
    rate_right: Option<Rate>,
    rate_left: Option<Rate>,
) -> (Discipline, Discipline) {
    let registry: Vec<_> = queue::words().collect();
    let table: Vec<_> = registry.iter().map(|discipline| (discipline.word, *discipline)).collect();
    let description = "the discipline of the queues in both directions; `fifo` by default";
    let both = k.maybe_word("discipline", &table, description).unwrap_or(registry[0]);
    let right =
        k.maybe_word("discipline-right", &table, "the same towards the right").unwrap_or(both);
    let left = k.maybe_word("discipline-left", &table, "the same towards the left").unwrap_or(both);
    one_or_both(k, "discipline", "leave one out if it is `fifo`");
    let options = |read: Read| keys::names(&keys::list(|k| read(k, None)));
    let used = [options(right.read), options(left.read)].concat();
    for discipline in &registry {
        let own = options(discipline.read);
        if let Some(option) = k.first(&own).filter(|option| !used.contains(option)) {
            let message = format!("the discipline does not use `{}`", k.path(option));
            let word = discipline.word;
            let help = format!("write `discipline = \"{word}\"`, or leave it out");
            k.refuse(option, message, "nothing uses it", help);
        }
        (discipline.read)(k, None);
    }
    ((right.read)(k, rate_right), (left.read)(k, rate_left))
}
