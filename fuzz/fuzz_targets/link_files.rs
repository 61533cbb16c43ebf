//! Any text is a trace, a course of values over time, or an error, never a panic; and what is read can be asked at any time.
#![no_main]

use lasthop_proto::link::varied::measured::{self, Hints, Measured, Role};
use lasthop_proto::link::varied::{Course, Trace};
use lasthop_proto::units::{Rate, Span, Time};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, u64)| {
    let (text, now) = (input.0, Time(input.1 / 2));
    if let Ok(trace) = Trace::parse(text) {
        assert!(trace.times().is_sorted() && trace.period() > 0);
    }
    let _ = Measured::read(text, &Hints::default());
    let of_file = measured::course::<Option<Rate>>(text, Role::Rate, Some(Span::millis(10)));
    for course in [Course::<Option<Rate>>::parse(text), of_file].into_iter().flatten() {
        assert!(course.stretch(now).until > now);
        assert!(course.mean() >= 0.0);
    }
    if let Ok(course) = Course::<Span>::parse(text) {
        assert!(course.stretch(now).until > now);
    }
    if let Ok(outages) = Course::parse_outages(text) {
        assert!(outages.stretch(now).until > now);
    }
});
