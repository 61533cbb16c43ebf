//! A run that a caller advances in steps, and can inspect or change between them.

use core::borrow::Borrow;
use core::cell::Cell;

use lasthop_observe::Sink;
use lasthop_path::{ChoicePoint, Ends, Path, Stage, no_ends};
use lasthop_proto::event::{Event, Interest, Op, Tcb};
use lasthop_proto::link::Fate;
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{FlowKey, Packet};
use lasthop_scenario::Scenario;

use crate::end::{Reason, RunEnd, TransferEnd};
use crate::engine::{Engine, Transfer};

/// Counts events.
struct EventCounter<'a> {
    sink: &'a mut dyn Sink,
    events: &'a Cell<u64>,
}

impl EventCounter<'_> {
    fn count(&self) {
        self.events.set(self.events.get() + 1);
    }
}

impl Sink for EventCounter<'_> {
    fn interest(&self) -> Interest {
        self.sink.interest()
    }
    fn event(&mut self, event: &Event) {
        self.count();
        self.sink.event(event);
    }
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        self.count();
        self.sink.packet(at, stage, op, side, packet);
    }
    fn delivered(&mut self, at: Time, stage: StageId, flow: FlowKey, bytes: u32) {
        self.count();
        self.sink.delivered(at, stage, flow, bytes);
    }
}

/// A run of a scenario that pauses between steps. The number and size of the steps have no effect on the result.
///
/// ```
/// use lasthop_proto::units::{Span, Time};
/// use lasthop_sim::Session;
/// use lasthop_observe::Nothing;
///
/// let text = lasthop_scenario::example("west97-lan").map(|example| example.text).unwrap_or_default();
/// let (plan, _) = lasthop_scenario::parse(text, "west97-lan", &[])?;
/// let mut session = Session::new(&plan.cells[0].scenario, 1, &Nothing);
/// session.run_until(Time::ZERO + Span::secs(1), &mut Nothing);
/// let sender = session.control_block(0).expect("its transfer has begun");
/// assert!(sender.snd_una > 0 && session.ended().is_none());
/// # Ok::<(), lasthop_scenario::Error>(())
/// ```
pub struct Session<S: Borrow<Scenario>> {
    scenario: S,
    engine: Engine,
}

impl<S: Borrow<Scenario>> Session<S> {
    /// Creates the run of `scenario` with `seed`, before its first event. `sink` selects the events.
    pub fn new(scenario: S, seed: u64, sink: &impl Sink) -> Session<S> {
        Session::with_ends(scenario, seed, &no_ends, sink)
    }

    /// Like [`Session::new`]; `ends` creates the hosts with other protocol stacks, such as QUIC.
    pub fn with_ends(scenario: S, seed: u64, ends: Ends<'_>, sink: &impl Sink) -> Session<S> {
        let engine = Engine::new(scenario.borrow(), seed, ends, sink.interest());
        Session { scenario, engine }
    }

    /// Runs up to and including `until`, or to the end of the run. Passes every event to `sink`.
    pub fn run_until(&mut self, until: Time, sink: &mut dyn Sink) {
        self.engine.run_while(until, sink, None);
    }

    /// Runs until the end, or until the first deadline after which `most` events have happened. Returns their number.
    /// This limits the computing time, which a horizon does not.
    pub fn run_bounded(&mut self, most: u64, sink: &mut dyn Sink) -> u64 {
        let events = Cell::new(0);
        let mut counted = EventCounter { sink, events: &events };
        self.engine.run_while(Time::NEVER, &mut counted, Some(&|_| events.get() < most));
        events.get()
    }

    /// Dispatches at most `most` deadlines.
    pub fn run_wakes(&mut self, most: u64, sink: &mut dyn Sink) {
        let left = Cell::new(most);
        let continues = |_: &Path| {
            left.set(left.get() - 1);
            left.get() > 0
        };
        if most > 0 {
            self.engine.run_while(Time::NEVER, sink, Some(&continues));
        }
    }

    /// Number of deadlines dispatched by the run loop, without those inside hops.
    pub fn wakes(&self) -> u64 {
        self.engine.wakes
    }

    /// Runs until a deadline has decided the fate of at least one packet. Returns the choice point of each decided
    /// packet and its number there, in the order of the decisions; empty at the end of the run.
    pub fn run_past_choice(&mut self, sink: &mut dyn Sink) -> Vec<(ChoicePoint, u64)> {
        let before: Vec<(ChoicePoint, u64)> = self.engine.path.choices().collect();
        let sum = |path: &Path| path.choices().map(|(_, decided)| decided).sum::<u64>();
        let decided = sum(&self.engine.path);
        self.engine.run_while(Time::NEVER, sink, Some(&|path: &Path| sum(path) == decided));
        let path = &self.engine.path;
        let before =
            |point| before.iter().find(|(at, _)| *at == point).map_or(0, |(_, decided)| *decided);
        let new = path.choices().flat_map(|(point, decided)| {
            (before(point) + 1..=decided).map(move |number| (point, number))
        });
        let mut new: Vec<(ChoicePoint, u64)> = new.collect();
        new.sort_by_key(|(point, number)| (path.start_of(*point, *number), *point, *number));
        new
    }

    /// Whether `fate` is possible for a packet at `point`.
    pub fn can_meet(&self, point: ChoicePoint, fate: Fate) -> bool {
        self.engine.path.can_meet(point, fate)
    }

    /// Sets the fate of packet `number` at `point`, before the packet arrives there.
    pub fn set_fate(&mut self, point: ChoicePoint, number: u64, fate: Fate) {
        self.engine.path.set_fate(point, number, fate);
    }

    /// A copy in the same state; `None` if a host has another protocol stack.
    pub fn fork(&self) -> Option<Session<S>>
    where
        S: Clone,
    {
        Some(Session { engine: self.engine.fork()?, scenario: self.scenario.clone() })
    }

    /// Continues after the end of the transfers until no deadline is left, for at most `patience`. Returns whether none
    /// is left.
    pub fn settle(&mut self, patience: Span, sink: &mut dyn Sink) -> bool {
        self.engine.settle(patience, sink)
    }

    /// Results of the run; an unfinished run is cut off at the current time.
    pub fn end(&self) -> RunEnd {
        self.engine.end(self.scenario.borrow())
    }

    /// The reason for the end of the run; `None` while it continues.
    pub fn ended(&self) -> Option<Reason> {
        self.engine.ended
    }

    /// Simulated time up to which the run has advanced.
    pub fn now(&self) -> Time {
        self.engine.now
    }

    /// A time not after the next deadline.
    pub fn next_wake(&self) -> Option<Time> {
        self.engine.path.next_stage().map(|(at, _)| at)
    }

    /// The control block of the sender of transfer `index`, in the order of [`RunEnd::transfers`]; `None` without one,
    /// or with another protocol.
    pub fn control_block(&self, index: usize) -> Option<Tcb> {
        self.engine.transfers(self.scenario.borrow()).get(index)?.control_block()
    }

    /// The stages of the path, in their current state.
    pub fn stages(&self) -> &[Stage] {
        self.engine.path.stages()
    }

    /// The current state of transfer `index`, as in [`Session::control_block`].
    pub fn transfer(&self, index: usize) -> Option<TransferEnd> {
        self.engine.transfers(self.scenario.borrow()).get(index).map(Transfer::end)
    }
}
