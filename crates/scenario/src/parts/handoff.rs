//! The keys of hand-offs between two cells.

use lasthop_proto::describe::Keys;
use lasthop_proto::units::Span;

use crate::roaming::{Handoff, Policy, StateMoves};

/// Visits the keys of a hand-off.
pub(crate) fn handoff(k: &mut Keys<'_>) -> Handoff {
    let mut handoff = Handoff::default();
    let times = Span::ZERO..=Span::secs(3600);
    let description = "how long a host is in no cell between two cells";
    k.within("gap", &mut handoff.gap, times.clone(), description);
    let description = "how long it hears both cells; it sends by the new one";
    k.within("overlap", &mut handoff.overlap, times.clone(), description);
    if handoff.gap > Span::ZERO && handoff.overlap > Span::ZERO {
        let message = format!("`{}` and `gap` exclude each other", k.path("overlap"));
        let help =
            "between two cells a host is in none (`gap`) or in both (`overlap`): leave one out";
        k.refuse("overlap", message, "which of them?", help);
    }
    let description = "whether the network is notified of the next cell before a host leaves; if not, it is notified when \
                the host has arrived";
    k.flag("announced", &mut handoff.announced, description);
    let policies = [
        ("drop", Policy::Drop),
        ("keep", Policy::Keep),
        ("forward", Policy::Forward),
        ("multicast", Policy::Multicast),
    ];
    let description = "how a base station handles packets for a host that is known to have left: drop them, store them until \
                it returns, forward them to its new cell, or drop them because the neighbouring base stations have \
                copies";
    k.word("packets", &mut handoff.packets, &policies, description);
    let description =
        "packets that a base station stores for each host; the oldest are dropped first";
    k.count("buffer", &mut handoff.buffer, 1..=100_000, description);
    let description =
        "the time from a hand-off's notification until the wired side sends to the new cell";
    k.within("reroute", &mut handoff.reroute, times.clone(), description);
    let mut moves = false;
    let ways = [("lose", false), ("move", true)];
    let description = "whether the old base station's agent loses its state of a host, or moves it to the new one when the host \
                has arrived there";
    k.word("state", &mut moves, &ways, description);
    let mut state = StateMoves { delay: Span::millis(10), rate: None };
    let description = "with `state = \"move\"`: the delay of its first byte";
    k.within("state-delay", &mut state.delay, times, description);
    k.maybe_rate(
        "state-rate",
        &mut state.rate,
        "with `state = \"move\"`: the rate of the other bytes; infinite by default",
    );
    handoff.state = moves.then_some(state);
    handoff
}
