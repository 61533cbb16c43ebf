//! Networks, schemes, runs and measurements that the experiments share.

use lasthop_observe::metrics::RunMetrics;
use lasthop_report::plot::Curve;

use crate::figure::published_line;
use crate::{Bench, Interrupted, Runs};

/// The wide-area network (3, Figure 2).
pub(super) const WAN: &str = include_str!("wan.toml");
/// The local-area network (4.2.4).
pub(super) const LAN: &str = include_str!("lan.toml");

/// The reading of "the total data received by the end user and the connection time" (1) where a result has several runs.
pub(super) const AVERAGING_KEY: &str = "reading.averaging";

/// The limit of retransmissions in the example of 4.2.1.
pub(super) const RT_MAX: &str = "local-recovery.max-retransmits=13";

/// Which node repairs losses of the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scheme {
    /// The source only.
    Basic,
    /// The base station as well.
    Recovery,
    /// The base station notifies the source of each failed attempt by EBSN.
    Ebsn,
    /// The same by ICMP source quench.
    Quench,
}

impl Scheme {
    pub(super) fn changes(self) -> &'static [&'static str] {
        match self {
            Scheme::Basic => &[],
            Scheme::Recovery => &["link-layer=local-recovery"],
            Scheme::Ebsn => &["link-layer=local-recovery", "agent=ebsn", "host.fixed.ebsn=true"],
            Scheme::Quench => {
                &["link-layer=local-recovery", "agent=source-quench", "host.fixed.quench=true"]
            }
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Scheme::Basic => "basic TCP",
            Scheme::Recovery => "local recovery",
            Scheme::Ebsn => "EBSN",
            Scheme::Quench => "source quench",
        }
    }
}

/// Packet sizes of the sweeps in bytes, headers included (5.1: 128 to 1536).
pub(super) const SIZES: [u32; 9] = [128, 256, 384, 512, 640, 768, 1024, 1280, 1536];
/// Mean bad periods of the wide-area network in seconds (3.1).
pub(super) const BAD: [u32; 4] = [1, 2, 3, 4];

/// The window of the wide-area network in bytes (3.3).
const WINDOW: u32 = 4096;
/// Headers of a packet in bytes (3.3).
const HEADERS: u32 = 40;

/// The settings for packets of `size` bytes: the window of 4 KB is rounded to whole packets, as in the simulator of the
/// paper.
pub(super) fn packet_size(size: u32) -> Vec<String> {
    let payload = size - HEADERS;
    let window = WINDOW / size * payload;
    vec![
        format!("mss={payload}"),
        format!("send-buffer={window}"),
        format!("recv-buffer={window}"),
        format!("host.fixed.initial-ssthresh={window}"),
    ]
}

/// The runs over the wide-area network with packets of `size` bytes, a mean bad period and the settings `more`.
pub(super) fn wan(
    bench: &mut Bench<'_>,
    scheme: Scheme,
    size: u32,
    bad: u32,
    more: &[&str],
) -> Result<Runs, Interrupted> {
    let mut changes = packet_size(size);
    changes.push(format!("errors.bad={bad}s"));
    changes.extend([scheme.changes(), more].concat().into_iter().map(str::to_owned));
    bench.runs(WAN, &changes)
}

/// Ten times as many runs as usual, for a comparison that 20 seeds cannot decide.
pub(super) fn many(
    bench: &mut Bench<'_>,
    scheme: Scheme,
    size: u32,
    bad: u32,
    more: &[&str],
) -> Result<Runs, Interrupted> {
    bench.with_many(|bench| wan(bench, scheme, size, bad, more))
}

/// Retransmitted payload of the source, in KB.
pub(super) fn sent_again(m: &RunMetrics) -> f64 {
    let sent: u64 =
        m.stages.iter().filter(|s| s.name == "wire").map(|stage| stage.data_bytes).sum();
    let delivered: u64 = m.flows.iter().map(|flow| flow.delivered).sum();
    sent.saturating_sub(delivered) as f64 / 1024.0
}

/// The bound of 5.1: the share of time with a good channel, times the maximum throughput.
pub(super) fn bound(most: f64, good: f64, bad: f64) -> f64 {
    most * good / (good + bad)
}

/// Points from the paper's text: bad period, packet size and value. One series per bad period, in the order of the
/// measured ones, so that both have the same colour.
pub(super) fn published(given: &[(u32, f64, f64)]) -> Vec<Curve> {
    let of = |bad: &u32| {
        let points = given.iter().filter(|(b, ..)| b == bad).map(|(_, x, y)| (*x, *y));
        published_line(format!("published, bad {bad} s"), points)
    };
    BAD.iter().map(of).collect()
}
