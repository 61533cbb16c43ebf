//! Any file is read to an end: every format, link layer and tunnel, with fragments of all of its frames.
#![no_main]

use lasthop_observe::capture::{Decoder, open};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let Ok(capture) = open(file) else { return };
    let mut decoder = Decoder::new(true);
    for frame in capture.flatten() {
        decoder.frame(&frame, |_| {});
    }
    decoder.finish(|_| {});
});
