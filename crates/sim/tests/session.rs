//! A run in steps is the same run.

use lasthop_proto::units::{Span, Time};
use lasthop_sim::Session;
use lasthop_trace::Record;

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
        assert_eq!(session.finish(), end);
        assert_eq!(parts.events, whole.events);
    }
}
