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
struct EventCounter<'a, T> {
    sink: &'a mut T,
    events: u64,
}

impl<T: Sink> Sink for EventCounter<'_, T> {
    fn interest(&self) -> Interest {
        self.sink.interest()
    }
    #[inline]
    fn event(&mut self, event: &Event) {
        self.events += 1;
        self.sink.event(event);
    }
    #[inline]
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        self.events += 1;
        self.sink.packet(at, stage, op, side, packet);
    }
    #[inline]
    fn delivered(&mut self, at: Time, stage: StageId, flow: FlowKey, bytes: u32) {
        self.events += 1;
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
pub struct Session<S: Borrow<Scenario>>(Engine<S>);

impl<S: Borrow<Scenario>> Session<S> {
    /// Creates the run of `scenario` with `seed`, before its first event. `sink` selects the events.
    pub fn new(scenario: S, seed: u64, sink: &impl Sink) -> Session<S> {
        Session::with_ends(scenario, seed, &no_ends, sink)
    }

    /// Like [`Session::new`]; `ends` creates the hosts with other protocol stacks, such as QUIC.
    pub fn with_ends(scenario: S, seed: u64, ends: Ends<'_>, sink: &impl Sink) -> Session<S> {
        Session(Engine::new(scenario, seed, ends, sink.interest()))
    }

    /// Runs up to and including `until`, or to the end of the run. Passes every event to `sink`.
    pub fn run_until<T: Sink>(&mut self, until: Time, sink: &mut T) {
        self.0.run_while(until, sink, None::<fn(&T, &Path) -> bool>);
    }

    /// Runs until the end, or until the first deadline after which `most` events have happened. Returns their number.
    /// This limits the computing time, which a horizon does not.
    pub fn run_bounded<T: Sink>(&mut self, most: u64, sink: &mut T) -> u64 {
        let mut counted = EventCounter { sink, events: 0 };
        let continues = |counted: &EventCounter<'_, T>, _: &Path| counted.events < most;
        self.0.run_while(Time::NEVER, &mut counted, Some(continues));
        counted.events
    }

    /// Dispatches at most `most` deadlines.
    pub fn run_wakes<T: Sink>(&mut self, most: u64, sink: &mut T) {
        let left = Cell::new(most);
        let continues = |_: &T, _: &Path| {
            left.set(left.get() - 1);
            left.get() > 0
        };
        if most > 0 {
            self.0.run_while(Time::NEVER, sink, Some(continues));
        }
    }

    /// Number of deadlines dispatched by the run loop, without those inside hops.
    pub fn wakes(&self) -> u64 {
        self.0.wakes()
    }

    /// Runs until a deadline has decided the fate of at least one packet. Returns the choice point of each decided
    /// packet and its number there, in the order of the decisions; empty at the end of the run.
    pub fn run_past_choice<T: Sink>(&mut self, sink: &mut T) -> Vec<(ChoicePoint, u64)> {
        let before: Vec<(ChoicePoint, u64)> = self.0.path().choices().collect();
        let sum = |path: &Path| path.choices().map(|(_, decided)| decided).sum::<u64>();
        let decided = sum(self.0.path());
        self.0.run_while(Time::NEVER, sink, Some(|_: &T, path: &Path| sum(path) == decided));
        let path = self.0.path();
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
        self.0.path().can_meet(point, fate)
    }

    /// Sets the fate of packet `number` at `point`, before the packet arrives there.
    pub fn set_fate(&mut self, point: ChoicePoint, number: u64, fate: Fate) {
        self.0.path_mut().set_fate(point, number, fate);
    }

    /// A copy in the same state; `None` if a host has another protocol stack.
    pub fn fork(&self) -> Option<Session<S>>
    where
        S: Clone,
    {
        self.0.fork().map(Session)
    }

    /// Continues after the end of the transfers until no deadline is left, for at most `patience`. Returns whether none
    /// is left.
    pub fn settle<T: Sink>(&mut self, patience: Span, sink: &mut T) -> bool {
        self.0.settle(patience, sink)
    }

    /// Results of the run up to now.
    pub fn end(&self) -> RunEnd {
        self.0.end()
    }

    /// The reason for the end of the run; `None` while it continues.
    pub fn ended(&self) -> Option<Reason> {
        self.0.ended()
    }

    /// Simulated time up to which the run has advanced.
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// A time not after the next deadline.
    pub fn next_wake(&self) -> Option<Time> {
        self.0.next_wake()
    }

    /// The control block of the sender of transfer `index`, in the order of [`RunEnd::transfers`]; `None` without one,
    /// or with another protocol.
    pub fn control_block(&self, index: usize) -> Option<Tcb> {
        self.0.transfers().get(index)?.control_block()
    }

    /// The stages of the path, in their current state.
    pub fn stages(&self) -> &[Stage] {
        self.0.stages()
    }

    /// The current state of transfer `index`, as in [`Session::control_block`].
    pub fn transfer(&self, index: usize) -> Option<TransferEnd> {
        self.0.transfers().get(index).map(Transfer::end)
    }

    /// Results of the run; an unfinished run is cut off at the current time.
    pub fn finish(self) -> RunEnd {
        self.0.end()
    }
}
