//! Bakshi, Krishna, Vaidya & Pradhan 1996: packet sizes, local recovery, and explicit bad state notification.
//!
//! One set of values serves all experiments on one network: see the `.toml` files in this folder.

mod assumed;
mod averages;
mod feedback;
mod lan;
mod range;
mod recovery;
mod size;
mod traces;
mod untested;

use lasthop_report::plot::LineSeries;
use lasthop_trace::metrics::RunMetrics;

use crate::figure::published_line;
use crate::{Bench, Claim, Interrupted, Paper, Runs};

pub(crate) const PAPER: Paper = Paper {
    key: "bakshi96",
    title: "B. Bakshi, P. Krishna, N. Vaidya, D. Pradhan: Improving Performance of TCP over Wireless Networks. \
            TR 96-014, Texas A&M, 1996",
    claims: &[
        traces::F3,
        traces::F4,
        traces::F5,
        size::F7,
        recovery::F8,
        recovery::F9,
        lan::F10,
        averages::DEVIATION,
        feedback::QUENCH,
        feedback::TICK,
        feedback::RECOVERY,
        recovery::LONGER,
    ],
    assumed: assumed::ASSUMED,
    untested: untested::UNTESTED,
};

const CLAIM: Claim = Claim { testbed: Some(&range::TESTBED), ..Claim::of("bakshi96") };

/// The wide-area network (3, Figure 2).
const WAN: &str = include_str!("wan.toml");
/// The local-area network (4.2.4).
const LAN: &str = include_str!("lan.toml");

/// Which node repairs losses of the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scheme {
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
    fn changes(self) -> &'static [&'static str] {
        match self {
            Scheme::Basic => &[],
            Scheme::Recovery => &["link-layer=local-recovery"],
            Scheme::Ebsn => &["link-layer=local-recovery", "agent=ebsn", "host.fixed.ebsn=true"],
            Scheme::Quench => {
                &["link-layer=local-recovery", "agent=source-quench", "host.fixed.quench=true"]
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Scheme::Basic => "basic TCP",
            Scheme::Recovery => "local recovery",
            Scheme::Ebsn => "EBSN",
            Scheme::Quench => "source quench",
        }
    }
}

/// Packet sizes of the sweeps in bytes, headers included (5.1: 128 to 1536).
const SIZES: [u32; 9] = [128, 256, 384, 512, 640, 768, 1024, 1280, 1536];
/// Mean bad periods of the wide-area network in seconds (3.1).
const BAD: [u32; 4] = [1, 2, 3, 4];

/// The window of the wide-area network in bytes (3.3).
const WINDOW: u32 = 4096;
/// Headers of a packet in bytes (3.3).
const HEADERS: u32 = 40;

/// The settings for packets of `size` bytes: the window of 4 KB is rounded to whole packets, as in the simulator of the
/// paper.
fn packet_size(size: u32) -> Vec<String> {
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
fn wan(
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
fn many(
    bench: &mut Bench<'_>,
    scheme: Scheme,
    size: u32,
    bad: u32,
    more: &[&str],
) -> Result<Runs, Interrupted> {
    bench.with_many(|bench| wan(bench, scheme, size, bad, more))
}

/// Retransmitted payload of the source, in KB.
fn sent_again(m: &RunMetrics) -> f64 {
    let sent: u64 =
        m.stages.iter().filter(|s| s.name == "wire").map(|stage| stage.data_bytes).sum();
    let delivered: u64 = m.flows.iter().map(|flow| flow.delivered).sum();
    sent.saturating_sub(delivered) as f64 / 1024.0
}

/// The bound of 5.1: the share of time with a good channel, times the maximum throughput.
fn bound(most: f64, good: f64, bad: f64) -> f64 {
    most * good / (good + bad)
}

/// Points from the paper's text: bad period, packet size and value. One series per bad period, in the order of the
/// measured ones, so that both have the same colour.
fn published(given: &[(u32, f64, f64)]) -> Vec<LineSeries> {
    let of = |bad: &u32| {
        let points = given.iter().filter(|(b, ..)| b == bad).map(|(_, x, y)| (*x, *y));
        published_line(format!("published, bad {bad} s"), points)
    };
    BAD.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    #[test]
    fn every_network_is_a_scenario_with_every_scheme() {
        for scheme in [Scheme::Basic, Scheme::Recovery, Scheme::Ebsn, Scheme::Quench] {
            for text in [WAN, LAN] {
                assert_eq!(scenario(text, scheme.changes()).path.len(), 3);
            }
            for size in SIZES {
                let fixed = &scenario(WAN, &packet_size(size)).hosts[0].tcp;
                assert_eq!(fixed.mss, size - 40);
                assert!(fixed.send_buffer <= 4096 && fixed.send_buffer > 4096 / 2);
            }
        }
    }

    /// The base station's link layer, its agent and the source work together.
    #[test]
    fn each_failed_attempt_reaches_the_source() {
        let mut bench = Bench::new(1, &());
        let bad = ["errors.deterministic=true"];
        let mut counts = |scheme| {
            let runs = wan(&mut bench, scheme, 576, 4, &bad).unwrap();
            let of = |of: fn(&lasthop_trace::metrics::FlowMetrics) -> u64| {
                runs.each(|m| m.sum(of) as f64)[0]
            };
            (of(|f| f.bad_state_notices), of(|f| f.quenches), of(|f| f.repeated.total()))
        };
        let (notices, quenches, repeated) = counts(Scheme::Ebsn);
        assert!(notices > 0.9 * repeated && quenches == 0.0, "{notices} of {repeated}");
        let (notices, quenches, repeated) = counts(Scheme::Quench);
        assert!(quenches > 0.0 && notices == 0.0 && repeated > 0.0);
    }
}
