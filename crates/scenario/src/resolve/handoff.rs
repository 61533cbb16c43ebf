//! The keys of hand-offs between two cells.

use lasthop_proto::describe::Keys;
use lasthop_proto::units::Span;

use crate::roaming::{Handoff, Policy, StateMoves};

/// Visits the keys of a hand-off.
pub(crate) fn handoff(k: &mut Keys<'_>) -> Handoff {
    let mut handoff = Handoff::default();
    let times = Span::ZERO..=Span::secs(3600);
    let what = "how long a host between two cells is in none";
    k.within("gap", &mut handoff.gap, times.clone(), what);
    let what = "how long it hears both; it sends by the new one";
    k.within("overlap", &mut handoff.overlap, times.clone(), what);
    if handoff.gap > Span::ZERO && handoff.overlap > Span::ZERO {
        let message = format!("`{}` beside a gap", k.path("overlap"));
        let help =
            "between two cells a host is in none (`gap`) or in both (`overlap`): leave one out";
        k.refuse("overlap", message, "which of them?", help);
    }
    let what = "whether the network knows when a host leaves, and for which cell; otherwise it learns so when the host \
                has arrived";
    k.flag("announced", &mut handoff.announced, what);
    let policies = [
        ("drop", Policy::Drop),
        ("keep", Policy::Keep),
        ("forward", Policy::Forward),
        ("multicast", Policy::Multicast),
    ];
    let what = "what a base station does, once it knows, with packets for a host that has left: drops them, keeps them \
                until it is back, forwards them to where it is, or drops them because the base stations beside it have \
                copies";
    k.word("packets", &mut handoff.packets, &policies, what);
    let what = "packets that a base station keeps for each host; the oldest go first";
    k.count("buffer", &mut handoff.buffer, 1..=100_000, what);
    let what =
        "how long after the network knows of a hand-off the wired side sends to the new cell";
    k.within("reroute", &mut handoff.reroute, times.clone(), what);
    let mut moves = false;
    let ways = [("lose", false), ("move", true)];
    let what = "whether what the old base station's agent knows of a host is lost, or moves to the new one's when the host \
                has arrived there";
    k.word("state", &mut moves, &ways, what);
    let mut state = StateMoves { delay: Span::millis(10), rate: None };
    let what = "with `state = \"move\"`: how long its first byte is under way";
    k.within("state-delay", &mut state.delay, times, what);
    k.maybe_rate(
        "state-rate",
        &mut state.rate,
        "with `state = \"move\"`: how fast the others follow; at once without it",
    );
    handoff.state = moves.then_some(state);
    handoff
}
