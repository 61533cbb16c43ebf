//! TULIP over a hop with long propagation: effect of the window.

use crate::long_hop::{GIGABIT, PACKET, throughput};

/// The rate of the link times the share of packets in the transmitted bytes.
fn payload_share() -> f64 {
    let bytes = f64::from(PACKET);
    GIGABIT as f64 * bytes / (bytes + 7.0)
}

#[test]
fn one_gigabit_over_ten_milliseconds_with_one_percent_loss() {
    let clean = throughput(4096, 0.0, 1);
    assert!(clean > 0.999 * payload_share(), "{clean}");
    for seed in 1..=3 {
        let lossy = throughput(4096, 0.01, seed);
        let bound = payload_share() * 0.99;
        assert!(lossy <= bound * 1.005, "{lossy} of {bound}");
        assert!(lossy >= 0.95 * bound, "seed {seed}: {lossy} of {bound}");
        assert!(lossy >= 0.95 * clean * 0.99, "seed {seed}: {lossy} of {clean}");
    }
}

#[test]
fn a_window_fills_the_link_as_far_as_it_reaches() {
    // A window carries W packets in a round trip of 20 ms, a frame's duration, and the delay of its
    // acknowledgement.
    for window in [8, 64, 512] {
        let got = throughput(window, 0.0, 1);
        let at_most = f64::from(window) * f64::from(PACKET) * 8.0 / 0.020;
        assert!(got <= at_most && got > 0.9 * at_most, "W = {window}: {got} of {at_most}");
    }
}
