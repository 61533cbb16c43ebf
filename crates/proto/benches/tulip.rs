//! Throughput of a window over a long hop, and cost of a frame, from one end through the medium to the other.
//!
//! `cargo bench -p lasthop-proto --bench tulip`; docs/reference/systems/tulip.md has the first table.

#![expect(
    clippy::disallowed_methods,
    reason = "speed is measured by the wall clock, which no machine sees"
)]

use std::time::Instant;

#[path = "../tests/link/long_hop.rs"]
mod long_hop;

use long_hop::{PACKET, throughput};

const WINDOWS: [u16; 6] = [8, 64, 512, 1024, 2048, 4096];

fn main() {
    println!("| W | no loss | 1 % of the frames lost |\n|---|---|---|");
    for window in WINDOWS {
        let [clean, lossy] = [0.0, 0.01].map(|loss| throughput(window, loss, 1) / 1e6);
        println!("| {window} | {clean:.1} | {lossy:.1} |");
    }
    println!("\nns of wall time for each packet of 1 s at 1 Gb/s, medium and queue included:");
    for window in [8, 64, 4096] {
        for loss in [0.0, 0.01] {
            let begin = Instant::now();
            let packets = throughput(window, loss, 2) * 1.2 / f64::from(PACKET * 8);
            let each = begin.elapsed().as_nanos() as f64 / packets;
            println!("W = {window}, loss {loss}: {each:.0} ns");
        }
    }
}
