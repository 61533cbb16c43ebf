//! One end of a TCP connection, from outside: short scripts for each mechanism, and what they cannot say in a
//! few lines.

use lasthop_proto::tcp::{TcpConfig, Variant};

mod acc;
mod acknowledging;
mod closing;
mod ecn;
mod eln;
mod flow_control;
mod handshake;
mod hosts;
mod nack;
mod notices;
mod prediction;
mod rack;
mod recovery;
mod scps_tp;
mod script;
mod smart;
mod sparse_acks;
mod timeouts;
mod vegas;
mod wireless;
mod work;

/// RFC 5681 and 6298 as written, with segments of 1000 bytes and an initial window of one.
fn fine() -> TcpConfig {
    TcpConfig { mss: 1000, initial_window: 1, recv_buffer: 32_000, ..TcpConfig::rfc() }
}

/// 4.4BSD's ticks, with segments of 1000 bytes.
fn bsd() -> TcpConfig {
    TcpConfig { mss: 1000, ..TcpConfig::freebsd_2_1() }
}

/// A sender whose window is `segments` segments from the start.
fn sender(variant: Variant, segments: u32) -> TcpConfig {
    TcpConfig { variant, initial_window: segments, sack: variant == Variant::Sack, ..fine() }
}
