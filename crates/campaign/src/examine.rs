//! Runs a scenario and checks its result: delivered bytes equal sent bytes, every packet is accounted for, time
//! advances, and every transfer ends.

use lasthop_explore::oracle::{self, Watch};
use lasthop_observe::Sink;
use lasthop_observe::conservation::Conservation;
use lasthop_observe::layout::{Layout, Role};
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op};
use lasthop_proto::link::Fate;
use lasthop_proto::wire::Transport;
use lasthop_scenario::{Scenario, StageKind};
use lasthop_sim::{Reason, Session, layout};

/// Conservation of packets. A packet that a host first receives and then refuses counts once. A copy that a link layer
/// retransmits may have arrived already, with only its acknowledgement lost.
struct Books(Conservation, Layout);

impl Sink for Books {
    fn interest(&self) -> Interest {
        self.0.interest()
    }
    fn event(&mut self, event: &Event) {
        let refused = Op::Dropped(Cause::NoSuchConnection);
        let role = self.1.stages[usize::from(event.stage.0)].role;
        match &event.kind {
            EventKind::Packet { op, packet, .. }
                if *op == refused
                    && role == Role::Host
                    && !matches!(packet.transport, Transport::Icmp(_)) => {}
            EventKind::Packet { op: Op::Repeated(_) | Op::Transmitted | Op::Damaged, .. } => {}
            _ => self.0.event(event),
        }
    }
}

/// Limits of an examined run.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum number of events; `u64::MAX` for no limit.
    pub events: u64,
    /// Check conservation of packets; finds more faults and takes longer.
    pub books: bool,
}

/// The end of an examined run.
#[derive(Clone, Copy, Debug)]
pub struct Examined {
    /// Why it ended; `None` if it reached [`Bounds::events`].
    pub reason: Option<Reason>,
    pub events: u64,
}

/// Whether a host of `scenario` falls silent.
fn is_silenced(scenario: &Scenario) -> bool {
    let cells = scenario.roaming.iter().flat_map(|roaming| &roaming.cells);
    let stages = scenario.path.iter().chain(cells.flat_map(|cell| &cell.path));
    let mut fates = stages.filter_map(|stage| match &stage.kind {
        StageKind::Cross(cross) => cross.fates.as_deref(),
        _ => None,
    });
    fates.any(|fates| fates.named().any(|fate| matches!(fate, Fate::Silent(_))))
}

/// Runs `scenario` with `seed` within `bounds`.
///
/// # Errors
///
/// A sentence that describes the fault.
pub fn examine(scenario: &Scenario, seed: u64, bounds: Bounds) -> Result<Examined, String> {
    let books = Books(Conservation::default(), layout(scenario));
    let mut watch = (Watch::default(), books);
    let ends = &lasthop_sim::quic::end;
    let mut session = match bounds.books {
        true => Session::with_ends(scenario, seed, ends, &watch),
        false => Session::with_ends(scenario, seed, ends, &watch.0),
    };
    let events = session.run_bounded(bounds.events, &mut watch);
    let (watch, books) = watch;
    let reason = session.ended();
    let end = session.end();
    // Where a path loses resets, a client does not notice that its server gave up, and waits forever.
    let silent = is_silenced(scenario);
    let waits = (watch.abandoned || silent) && scenario.exchanges().next().is_some();
    oracle::check(&end, &watch, oracle::splits(scenario), waits, silent)?;
    if bounds.books {
        books.0.check(end.stages.iter().map(|(_, count)| count.held).sum())?;
    }
    Ok(Examined { reason, events })
}
