//! The keys of radios and of routers with cross traffic.

use lasthop_proto::describe::{Form, Keys, Need, Value};
use lasthop_proto::link::varied::Varying;
use lasthop_proto::link::{Fates, Ordinals, RadioConfig};
use lasthop_proto::units::Span;

use super::errors;
use super::link::{MAX_DELAY, QUEUE, disciplines};
use crate::model::CrossTraffic;

/// Visits the keys of `radio`.
pub(crate) fn radio(k: &mut Keys<'_>) -> (RadioConfig, Option<Box<Varying>>) {
    let need = Need::Required("\"2mbit\"");
    let rate = match k.value("rate", Form::Rate, need, Value::Absent, "the rate of the medium") {
        Value::Rate(rate) => rate,
        _ => errors::any_rate(),
    };
    let varying = Varying::of_radio(k);
    let [mean_right, mean_left] = varying.as_ref().map_or([None; 2], |v| v.mean_rates());
    let (discipline_right, discipline_left) =
        disciplines(k, mean_right.or(Some(rate)), mean_left.or(Some(rate)));
    let mut radio = RadioConfig {
        rate,
        delay: Span::ZERO,
        overhead: Span::ZERO,
        half_duplex: true,
        queue: QUEUE,
        discipline_right,
        discipline_left,
    };
    k.within("delay", &mut radio.delay, Span::ZERO..=MAX_DELAY, "the propagation delay");
    let description = "the time that each frame takes in addition to its bits";
    k.within("overhead", &mut radio.overhead, Span::ZERO..=Span::secs(60), description);
    let duplex = [("half", true), ("full", false)];
    k.word("duplex", &mut radio.half_duplex, &duplex, "whether the directions share the medium");
    k.limit("queue", &mut radio.queue, "the limit of the queue in front of each transmitter");
    (radio, varying)
}

/// Visits the keys of `cross`.
pub(crate) fn cross(k: &mut Keys<'_>) -> CrossTraffic {
    let mut cross = CrossTraffic::default();
    k.probability(
        "loss",
        &mut cross.loss,
        "the probability that the router loses a packet with data",
    );
    let description = "the longest time by which other packets delay one";
    k.within("jitter", &mut cross.jitter, Span::ZERO..=Span::secs(60), description);
    let description = "packets with data that are lost, by their number in their direction";
    ordinals(k, "drop-data", &mut cross.drop_data, description);
    let description =
        "TCP segments without data and SYN that are lost, by their number in their direction";
    ordinals(k, "drop-acks", &mut cross.drop_acks, description);
    cross.fates = fates(k);
    cross
}

/// The keys of [`Fates`]. Without `fates` the router has none.
fn fates(k: &mut Keys<'_>) -> Option<Box<Fates>> {
    const EXAMPLE: &str = "\"5 drop, 7 late\"";
    let description = "what happens to packets, by their number among all that arrive here: drop, duplicate, late, very-late, damage, a forged segment \
                after it, or the start of a silence (`lasthop explore --help` lists them); \
                with an empty text, `lasthop explore` tries fates here";
    let mut fates = Fates::default();
    let text =
        k.value("fates", Form::Text(EXAMPLE), Need::Else("none"), Value::Absent, description);
    let description = "the delay of a late packet; others overtake it";
    k.within("late", &mut fates.late, Span::ZERO..=Span::secs(600), description);
    let description = "the delay of a very late packet";
    k.within("very-late", &mut fates.very_late, Span::ZERO..=Span::secs(600), description);
    let Value::Text(text) = text else { return None };
    if fates.parse_named(&text).is_none() {
        let message = format!("`{text}` at `{}` does not list packets and fates", k.path("fates"));
        let help =
            format!("number packets from 1, in ascending order, for example `fates = {EXAMPLE}`");
        k.refuse("fates", message, "expected numbers and fates", help);
    }
    Some(Box::new(fates))
}

/// Visits a key with positions of packets in their order of arrival.
fn ordinals(k: &mut Keys<'_>, key: &'static str, slot: &mut Ordinals, description: &'static str) {
    const EXAMPLE: &str = "\"3, 8-10\"";
    if let Value::Text(text) =
        k.value(key, Form::Text(EXAMPLE), Need::Else("none"), Value::Absent, description)
    {
        match Ordinals::parse(&text) {
            Some(read) => *slot = read,
            None => {
                let message = format!("`{text}` at `{}` does not list packets", k.path(key));
                let help = format!(
                    "number packets from 1, in ascending order, for example `{key} = {EXAMPLE}`"
                );
                k.refuse(key, message, "expected numbers of packets", help);
            }
        }
    }
}
