//! The counts of tshark that ours are compared with, in one order.

use lasthop_analyze::WiresharkCounts;

/// Names behind `tcp.analysis.`.
pub const FIELDS: [&str; 13] = [
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "lost_segment",
    "ack_lost_segment",
    "duplicate_ack",
    "zero_window",
    "zero_window_probe",
    "zero_window_probe_ack",
    "keep_alive",
    "keep_alive_ack",
    "window_update",
];

/// Our counts in the order of [`FIELDS`].
pub fn counts(c: &WiresharkCounts) -> [u64; 13] {
    [
        c.retransmission,
        c.fast_retransmission,
        c.spurious_retransmission,
        c.out_of_order,
        c.lost_segment,
        c.ack_lost_segment,
        c.duplicate_ack,
        c.zero_window,
        c.zero_window_probe,
        c.zero_window_probe_ack,
        c.keep_alive,
        c.keep_alive_ack,
        c.window_update,
    ]
}
