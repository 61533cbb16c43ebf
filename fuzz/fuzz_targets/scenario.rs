//! Any text is a plan or one error that points into it, never a panic.
#![no_main]

use lasthop_scenario::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = parse(text, "fuzz", &[]) {
        let span = &error.0.at.span;
        assert!(span.start <= span.end && span.end <= text.len(), "{span:?}: {error}");
    }
});
