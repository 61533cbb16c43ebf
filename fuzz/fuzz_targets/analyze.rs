//! Any capture is analysed, and the sums add up.
#![no_main]

use lasthop_analyze::{Config, analyze_capture};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let Ok(analysis) = analyze_capture(file, Config::default()) else { return };
    for connection in &analysis.connections {
        for direction in [&connection.to_server, &connection.to_client] {
            assert!(direction.unique_bytes <= direction.bytes);
        }
    }
});
