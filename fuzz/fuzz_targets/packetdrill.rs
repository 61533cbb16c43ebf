//! Any text is a script or one fault with its line, and its code and commands are understood or refused.
#![no_main]

use std::collections::BTreeMap;

use lasthop_packetdrill::eval;
use lasthop_packetdrill::script::{Action, Script, shell};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Script::parse(text) {
        Err(fault) => {
            let lines = text.matches('\n').count() as u32 + 1;
            assert!((1..=lines).contains(&fault.line), "{fault}");
        }
        Ok(script) => {
            for event in &script.events {
                match &event.action {
                    Action::Code(code) => drop(eval::run(code, &|_| Some(7), &mut BTreeMap::new())),
                    Action::Shell(text) => drop(shell::commands(text)),
                    _ => {}
                }
            }
        }
    }
});
