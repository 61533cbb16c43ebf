//! Runs a scenario and checks its result: delivered bytes equal sent bytes, every packet is accounted for, time
//! advances, and every transfer ends.

use lasthop_proto::agent::AgentConfig;
use lasthop_proto::event::{Cause, Event, Op, TcpKind, Wants, What};
use lasthop_proto::wire::Transport;
use lasthop_scenario::{Scenario, Stage, StageKind};
use lasthop_sim::{Reason, RunEnd, Session, layout};
use lasthop_trace::Sink;
use lasthop_trace::conservation::Conservation;
use lasthop_trace::layout::{Layout, Role};

/// Detects corrupted bytes, and servers (or base stations that act for them) that gave up.
#[derive(Default)]
struct Watch {
    corrupted: bool,
    abandoned: bool,
}

impl Sink for Watch {
    fn wants(&self) -> Wants {
        Wants::METRICS
    }
    fn event(&mut self, event: &Event) {
        if let What::Tcp(tcp) | What::Split(tcp) = &event.what {
            self.corrupted |= tcp.kind == TcpKind::Corrupted;
            self.abandoned |= tcp.kind == TcpKind::Aborted;
        }
    }
}

/// Conservation of packets. A packet that a host first receives and then refuses counts once. A copy that a link layer
/// retransmits may have arrived already, with only its acknowledgement lost.
struct Books(Conservation, Layout);

impl Sink for Books {
    fn wants(&self) -> Wants {
        self.0.wants()
    }
    fn event(&mut self, event: &Event) {
        let refused = Op::Dropped(Cause::NoSuchConnection);
        let role = self.1.stages[usize::from(event.stage.0)].role;
        match &event.what {
            What::Packet { op, packet, .. }
                if *op == refused
                    && role == Role::Host
                    && !matches!(packet.transport, Transport::Icmp(_)) => {}
            What::Packet { op: Op::Repeated(_) | Op::Transmitted | Op::Damaged, .. } => {}
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

fn demand(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

fn splits(scenario: &Scenario) -> bool {
    let split = |stage: &Stage| matches!(stage.kind, StageKind::Agent(AgentConfig::Split(_)));
    let cells = scenario.roaming.iter().flat_map(|roaming| &roaming.cells);
    scenario.path.iter().chain(cells.flat_map(|cell| &cell.path)).any(split)
}

/// Runs `scenario` with `seed` within `bounds`.
///
/// # Errors
///
/// A sentence that describes the fault.
pub fn examine(scenario: &Scenario, seed: u64, bounds: Bounds) -> Result<Examined, String> {
    let books = Books(Conservation::default(), layout(scenario));
    let mut watch = (Watch::default(), books);
    let ends = &lasthop_quic::end;
    let mut session = match bounds.books {
        true => Session::with_ends(scenario, seed, ends, &watch),
        false => Session::with_ends(scenario, seed, ends, &watch.0),
    };
    let events = session.run_bounded(bounds.events, &mut watch);
    let (watch, books) = watch;
    let reason = session.ended();
    let end = session.finish();
    demand(end.reason != Reason::Stuck, || format!("stuck at {}", end.at))?;
    if bounds.books {
        books.0.check(end.stages.iter().map(|(_, count)| count.held).sum())?;
    }
    demand(!watch.corrupted, || "a wrong byte was delivered".into())?;
    for (stage, count) in &end.stages {
        demand(count.is_conserved(), || format!("stage {}: {count:?}", stage.0))?;
    }
    // Where a path loses resets, a client does not notice that its server gave up, and waits forever.
    let waits = watch.abandoned && scenario.exchanges().next().is_some();
    check_transfers(&end, splits(scenario), waits)?;
    Ok(Examined { reason, events })
}

fn check_transfers(end: &RunEnd, split: bool, waits: bool) -> Result<(), String> {
    for (i, transfer) in end.transfers.iter().enumerate() {
        let demand = |holds, what| demand(holds, || format!("transfer {i}: {what}: {transfer:?}"));
        let wanted = transfer.wanted.map_or(u64::MAX, |bytes| bytes.0);
        demand(transfer.delivered <= wanted, "more than was sent")?;
        // A base station that splits connections acknowledges data before delivery. Data that it cannot deliver ends
        // with a reset at both ends.
        let honest = !split;
        let ahead = transfer.acknowledged > transfer.delivered;
        demand(!honest || !ahead, "acknowledged but not delivered")?;
        let waits = waits && transfer.wanted.is_none() && end.reason == Reason::Idle;
        demand(
            !ahead || transfer.aborted || waits || end.reason == Reason::Horizon,
            "acknowledged, not delivered, and no reset told",
        )?;
        if transfer.complete && !(split && ahead) {
            demand(transfer.delivered == wanted, "complete but not delivered")?;
            demand(transfer.acknowledged == wanted, "complete but not acknowledged")?;
        }
        let settled = transfer.complete || transfer.aborted || waits;
        demand(settled || end.reason == Reason::Horizon, "neither complete nor given up")?;
    }
    Ok(())
}
