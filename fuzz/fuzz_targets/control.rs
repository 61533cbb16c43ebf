//! Any line is a request or an answer that says why not; any requests, one after the other, leave a path that is valid.
#![no_main]

use std::sync::LazyLock;

use lasthop_live::control::protocol::{Request, Trouble};
use lasthop_scenario::{LivePath, parse_station};
use libfuzzer_sys::fuzz_target;

static PATH: LazyLock<LivePath> = LazyLock::new(|| {
    let text = "left = \"a\"\nright = \"b\"\n[[path]]\nagent = \"snoop\"\n[[path]]\nlink = {}\n[[path]]\n\
                radio = { rate = \"2mbit\" }\nerrors = { model = \"exponential\", mean = \"64KiB\" }\n";
    parse_station(text).expect("a station").0.path
});

fuzz_target!(|lines: &[u8]| {
    // What was set before stays set.
    let mut path = PATH.clone();
    for line in lines.split(|byte| *byte == b'\n').take(64) {
        match Request::parse(line) {
            Ok(Request::Set { values, .. }) => {
                if let Ok((next, ..)) = path.set(&values) {
                    assert_eq!(next.differs_in_shape(&path), None);
                    path = next;
                }
            }
            Ok(Request::Get { key }) => {
                let _ = path.get(&key).map_err(Trouble::from);
            }
            Ok(Request::Status {} | Request::Subscribers { .. }) => {}
            Err(trouble) => assert!(!trouble.message.is_empty()),
        }
    }
});
