//! Any file is read to an end.
#![no_main]

use lasthop_trace::capture::open;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let Ok(capture) = open(file) else { return };
    for frame in capture.flatten() {
        let _ = frame.view(true);
    }
});
