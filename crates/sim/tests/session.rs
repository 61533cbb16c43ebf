//! A run in steps equals the whole run; endless loops and runs with too many events end.

use lasthop_observe::Nothing;
use lasthop_path::{End, TransferState};
use lasthop_proto::event::Cause;
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, FlowKey, Packet, Segment, Seq};
use lasthop_scenario::StageKind;
use lasthop_sim::{Reason, Session, run_with};

use crate::record::Record;

#[test]
fn a_run_in_steps_has_the_same_events_and_the_same_end() {
    let text = lasthop_scenario::example("west97-lan").expect("it is built in").text;
    let set = lasthop_scenario::Argument::Set("transfer.bytes=50kB".to_owned());
    let (plan, _) = lasthop_scenario::parse(text, "west97-lan", &[set]).expect("it is right");
    let scenario = &plan.cells[1].scenario;
    let mut whole = Record::default();
    let end = lasthop_sim::run(scenario, 7, &mut whole);
    for step in [Span::millis(1), Span::millis(37), Span::secs(1000)] {
        let mut parts = Record::default();
        let mut session = Session::new(scenario, 7, &parts);
        let mut until = Time::ZERO;
        while session.ended().is_none() {
            until += step;
            session.run_until(until, &mut parts);
            assert!(session.now() <= until);
            assert!(session.control_block(0).is_some());
        }
        let last = session.transfer(0).expect("there is one");
        assert_eq!((last.delivered, last.complete), (50_000, true));
        assert_eq!(session.end(), end);
        assert!(parts.events().eq(whole.events()));
    }
}

#[test]
fn a_bounded_run_is_the_beginning_of_the_run() {
    let text = lasthop_scenario::example("west97-lan").expect("it is built in").text;
    let (plan, _) = lasthop_scenario::parse(text, "west97-lan", &[]).expect("it is right");
    let scenario = &plan.cells[0].scenario;
    let mut whole = Record::default();
    let end = lasthop_sim::run(scenario, 3, &mut whole);
    let bounded = |most| {
        let mut seen = Record::default();
        let mut session = Session::new(scenario, 3, &seen);
        let events = session.run_bounded(most, &mut seen);
        assert_eq!(events as usize, seen.events().len());
        assert!(whole.events().take(seen.events().len()).eq(seen.events()));
        (events, session.ended(), session.end())
    };
    let total = whole.events().len() as u64;
    for most in [1, 1000, total / 2] {
        let (events, reason, cut) = bounded(most);
        // Events of one deadline are not separated.
        assert!((most..most + 100).contains(&events), "{events} events of at most {most}");
        assert_eq!((reason, cut.reason), (None, Reason::Horizon));
        assert!(cut.at < end.at);
    }
    assert_eq!(bounded(u64::MAX), (total, Some(end.reason), end.clone()));
}

/// If the caller checks after each deadline, or after each millisecond, a radio hop cannot run ahead: the result is the
/// same.
#[test]
fn a_radio_hop_running_ahead_gives_the_same_events() {
    for (name, cell) in [("tulip", 0), ("tulip", 2), ("contention", 0), ("power-save", 0)] {
        let text = lasthop_scenario::example(name).expect("it is built in").text;
        let set = |set: &str| lasthop_scenario::Argument::Set(set.to_owned());
        let arguments = [set("horizon=2s")];
        let (plan, _) = lasthop_scenario::parse(text, name, &arguments).expect("it is right");
        let scenario = &plan.cells[cell].scenario;
        let mut alone = Record::default();
        let end = lasthop_sim::run(scenario, 5, &mut alone);
        assert!(alone.events().map(|event| event.at).is_sorted(), "{name}");
        let mut looked = Record::default();
        let mut session = Session::new(scenario, 5, &looked);
        session.run_bounded(u64::MAX, &mut looked);
        // The number of deadlines is part of the end.
        assert_eq!(session.end(), end, "{name}");
        assert!(looked.events().eq(alone.events()), "{name}");
        let mut parts = Record::default();
        let mut session = Session::new(scenario, 5, &parts);
        for step in 1.. {
            session.run_until(Time::ZERO + Span::millis(1) * step, &mut parts);
            assert!(session.now() <= Time::ZERO + Span::millis(1) * step, "{name}");
            if session.ended().is_some() {
                break;
            }
        }
        assert_eq!(session.end(), end, "{name}");
        assert!(parts.events().eq(alone.events()), "{name}");
    }
}

/// A host that answers each packet with another one at once.
#[derive(Debug)]
struct Parrot {
    addr: Addr,
    inward: Side,
    /// Destination of its first packet, until it is sent.
    first: Option<Addr>,
}

impl Parrot {
    fn say(&self, to: Addr, out: &mut Out) {
        let segment = Segment::new(1, 1, Seq(0), Seq(0), Flags::ACK);
        let packet = Packet::tcp(self.addr, to, segment, Body::copy_of(b"and you"));
        out.originate(self.inward, packet, Cause::Data);
    }
}

impl Machine for Parrot {
    fn on_packet(&mut self, _: Time, _: Side, packet: Packet, out: &mut Out) {
        self.say(packet.src, out);
    }
    fn on_wake(&mut self, _: Time, out: &mut Out) {
        if let Some(to) = self.first.take() {
            self.say(to, out);
        }
    }
    fn next_wake(&self) -> Option<Time> {
        self.first.map(|_| Time(5))
    }
}

impl End for Parrot {
    fn addr(&self) -> Addr {
        self.addr
    }
    fn unfinished(&self) -> usize {
        1
    }
    fn opened(&self) -> Vec<TransferState> {
        Vec::new()
    }
    fn delivered(&self, _: FlowKey) -> u64 {
        0
    }
}

/// In a row of stages, with an access link at another host, and on a path with cells.
#[test]
fn hosts_that_answer_each_other_for_ever_end_the_run() {
    let row = "[host.fixed]\npreset = \"rfc\"\n[host.other]\npreset = \"rfc\"\n[host.mobile]\npreset = \"rfc\"\n[[path]]\nlink = { rate = \"1mbit\" }\n\
               [[path]]\nagent = \"snoop\"\n";
    let access = row.replace(
        "[host.other]\npreset = \"rfc\"\n",
        "[host.other]\npreset = \"rfc\"\naccess = { delay = \"1ms\" }\n",
    );
    let cells = format!(
        "{row}[[cell]]\nname = \"a\"\n[[cell.path]]\nlink = {{ rate = \"1mbit\" }}\n[[cell]]\nname = \"b\"\n\
         [[cell.path]]\nlink = {{ rate = \"1mbit\" }}\n[visits]\nevery = \"5s\"\n"
    );
    for (text, peer) in [(row, "mobile"), (&access, "mobile"), (&cells, "mobile")] {
        let text = format!(
            "transfer = {{ from = \"fixed\", to = \"{peer}\", bytes = \"1MB\", protocol = \"quic\" }}\n{text}"
        );
        let (plan, _) = lasthop_scenario::parse(&text, "parrots", &[])
            .unwrap_or_else(|e| panic!("{e}: {}\n{text}", e.help));
        let mut scenario = plan.cells[0].scenario.clone();
        // The reader refuses a path without delay; there may be other ways to one.
        scenario.path.retain(|stage| matches!(stage.kind, StageKind::Agent(_)));
        for cell in scenario.roaming.iter_mut().flat_map(|roaming| &mut roaming.cells) {
            cell.path.clear();
            cell.base = 0;
        }
        let parrots = |scenario: &lasthop_scenario::Scenario, i: usize, _: u64| {
            let [from, to] = [scenario.transfers[0].from, scenario.transfers[0].to];
            let inward = if i == from { Side::Right } else { Side::Left };
            let first = (i == from).then(|| scenario.hosts[to].addr);
            let addr = scenario.hosts[i].addr;
            Some(Box::new(Parrot { addr, inward, first }) as Box<dyn End>)
        };
        let end = run_with(&scenario, 1, &parrots, &mut Nothing);
        assert_eq!((end.reason, end.at), (Reason::Stuck, Time(5)), "{text}");
        assert!(end.stuck.is_some());
    }
}
