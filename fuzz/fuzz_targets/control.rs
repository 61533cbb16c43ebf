//! Any line is a request or an answer that says why not; any request leaves a path that is valid.
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

fuzz_target!(|line: &[u8]| {
    match Request::parse(line) {
        Ok(Request::Set { values, .. }) => {
            if let Ok((path, ..)) = PATH.set(&values) {
                assert_eq!(path.differs_in_shape(&PATH), None);
            }
        }
        Ok(Request::Get { key }) => {
            let _ = PATH.get(&key).map_err(Trouble::from);
        }
        Ok(Request::Status {}) => {}
        Err(trouble) => assert!(!trouble.message.is_empty()),
    }
});
