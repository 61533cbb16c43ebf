//! One end of a TCP connection, from outside: short scripts for each mechanism, and tests that need more than
//! a few lines.

use lasthop_proto::tcp::{TcpConfig, Variant};

mod acc;
mod acceptable;
mod accurate_ecn;
mod acknowledging;
mod bsd;
mod closing;
mod ecn;
mod eln;
mod fast_open;
mod flow_control;
mod handoff;
mod handshake;
mod hosts;
mod nack;
mod notices;
mod pair;
mod prediction;
mod presets;
mod rack;
#[path = "../support/record.rs"]
mod record;
mod recovery;
mod scps_tp;
mod script;
mod smart;
mod sparse_acks;
mod t_tcp;
mod timeouts;
mod undo;
mod vegas;
mod wireless;
mod work;

/// RFC 5681 and 6298 without deviations, with segments of 1000 bytes and an initial window of one.
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

/// The peer has not agreed to `option`, so that option on its ACKs is ignored: `config`, a sender of four
/// segments, waits for the third duplicate ACK. `reports` are the options for 1001, 2001 and 3001. The test
/// is repeated with SACK, to which the peer has agreed.
#[track_caller]
fn falls_back_without_consent(config: &TcpConfig, option: &str, reports: [&str; 3]) {
    for sack in [false, true] {
        let [offer, blocks] = match sack {
            true => ["sackok", " sack 1001-"],
            false => [""; 2],
        };
        let ends = if sack { ["2001", "3001", "4001"] } else { [""; 3] };
        let acks = [0, 1, 2].map(|i| format!("< . ack 1{blocks}{} {}", ends[i], reports[i]));
        let script = format!(
            "
            10ms   established {offer} {option} / {offer}
            10ms   > . 1+1000 x4 ack 1
            20ms   {}
            21ms   {}
            22ms   {}
            22ms   note FastRetransmit
            22ms   > . 1+1000 ack 1 => fast-retransmit
            22ms   > . 4001+1000 ack 1
            30ms   end
            ",
            acks[0], acks[1], acks[2],
        );
        script::check(&TcpConfig { sack, ..config.clone() }, &script);
    }
}
