//! Any first bytes of a connection are plain data, a prefix or a request. Requests, answers and reports survive encoding.
#![no_main]

use lasthop_live::endpoint::{Recognition, Reply, Report, recognize};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match recognize(bytes) {
        Recognition::Request(request) => {
            assert_eq!(recognize(&request.encode()), Recognition::Request(request));
        }
        Recognition::Plain => {
            // More bytes do not turn plain data into a request.
            assert_eq!(recognize(&[bytes, &[0]].concat()), Recognition::Plain);
        }
        Recognition::Incomplete | Recognition::Refused(_) => {}
    }
    if let Some(answer) = Reply::parse(bytes) {
        assert_eq!(Reply::parse(&answer.encode()), Some(answer));
    }
    if let Some(report) = Report::parse(bytes) {
        assert_eq!(Report::parse(&report.encode()), Some(report));
    }
});
