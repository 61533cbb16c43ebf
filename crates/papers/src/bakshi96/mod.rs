//! Bakshi, Krishna, Vaidya & Pradhan 1996: packet sizes, local recovery, and explicit bad state notification.
//!
//! One set of values serves every experiment on one network: see the `.toml` files beside this one.

mod feedback;
mod lan;
mod recovery;
mod size;
mod traces;

use lasthop_report::model::{Assumption, Figure};
use lasthop_report::plot::{LineSeries, Plot, Point};
use lasthop_trace::metrics::RunMetrics;
use lasthop_trace::stats::Summary;

use crate::assumed;
use crate::bench::{Bench, Runs};
use crate::west97::Experiment;

/// The wide-area network (3, Figure 2).
pub const WAN: &str = include_str!("wan.toml");
/// The local-area network (4.2.4).
pub const LAN: &str = include_str!("lan.toml");

/// Who repairs what the radio loses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scheme {
    /// The source alone.
    Basic,
    /// The base station as well.
    Recovery,
    /// The same, and it tells the source of each failed attempt.
    Ebsn,
    /// The same with ICMP source quench.
    Quench,
}

impl Scheme {
    /// What is set for it.
    pub(crate) fn changes(self) -> &'static [&'static str] {
        match self {
            Scheme::Basic => &[],
            Scheme::Recovery => &["link-layer=local-recovery"],
            Scheme::Ebsn => &["link-layer=local-recovery", "agent=ebsn", "host.fixed.ebsn=true"],
            Scheme::Quench => {
                &["link-layer=local-recovery", "agent=source-quench", "host.fixed.quench=true"]
            }
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Scheme::Basic => "basic TCP",
            Scheme::Recovery => "local recovery",
            Scheme::Ebsn => "EBSN",
            Scheme::Quench => "source quench",
        }
    }
}

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "B-F3" => traces::f3,
        "B-F4" => traces::f4,
        "B-F5" => traces::f5,
        "B-F7" => size::f7,
        "B-F8" => recovery::f8,
        "B-F9" => recovery::f9,
        "B-F10" => lan::f10,
        "B-QUENCH" => feedback::quench,
        "B-TICK" => feedback::tick,
        _ => return None,
    })
}

/// Packet sizes of the sweeps in bytes, headers included (5.1: 128 to 1536).
pub(crate) const SIZES: [u32; 9] = [128, 256, 384, 512, 640, 768, 1024, 1280, 1536];
/// Mean bad periods of the wide-area network in seconds (3.1).
pub(crate) const BAD: [u32; 4] = [1, 2, 3, 4];

/// The window of the wide-area network in bytes (3.3).
const WINDOW: u32 = 4096;
/// Headers of a packet in bytes (3.3).
const HEADERS: u32 = 40;

/// What is set for packets of `size` bytes: the window of 4 KB is a whole number of them, as the simulator counted it.
pub(crate) fn packet_size(size: u32) -> Vec<String> {
    let payload = size - HEADERS;
    let window = WINDOW / size * payload;
    vec![
        format!("mss={payload}"),
        format!("send-buffer={window}"),
        format!("recv-buffer={window}"),
        format!("host.fixed.initial-ssthresh={window}"),
    ]
}

/// The runs over the wide-area network with packets of `size` bytes, a mean bad period, and `more` set.
pub(crate) fn wan(
    bench: &mut Bench<'_>,
    scheme: Scheme,
    size: u32,
    bad: u32,
    more: &[&str],
) -> Result<Runs, crate::bench::Interrupted> {
    let mut changes = packet_size(size);
    changes.push(format!("errors.bad={bad}s"));
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    bench.runs(WAN, &[&changes, scheme.changes(), more].concat())
}

/// Payload delivered per second, in kb/s (5: "we take into account 40 bytes of header overhead").
pub(crate) fn kbps(m: &RunMetrics) -> f64 {
    m.aggregate_throughput * 8.0 / 1000.0
}

/// What the source sent more than once, in KB of payload.
pub(crate) fn sent_again(m: &RunMetrics) -> f64 {
    let sent: u64 =
        m.stages.iter().filter(|s| s.name == "wire").map(|stage| stage.data_bytes).sum();
    let delivered: u64 = m.flows.iter().map(|flow| flow.delivered).sum();
    sent.saturating_sub(delivered) as f64 / 1024.0
}

/// The bound of 5.1: the share of time in which the channel is good, of the largest throughput.
pub(crate) fn bound(most: f64, good: f64, bad: f64) -> f64 {
    most * good / (good + bad)
}

/// Whether a series of means rises as far as its intervals can tell: no step falls by more than both intervals, and
/// the last stands above the first.
pub(crate) fn rises(means: &[Summary]) -> bool {
    let steps = means.windows(2).all(|w| w[1].mean + w[1].ci95 >= w[0].mean - w[0].ci95);
    let ends = means.first().zip(means.last());
    steps && ends.is_some_and(|(first, last)| last.mean > first.mean)
}

/// A line of means.
pub(crate) fn line(name: &str, points: impl IntoIterator<Item = (f64, Summary)>) -> LineSeries {
    let points = points.into_iter().map(|(x, s)| Point { x, y: s.mean, ci: s.ci95 }).collect();
    LineSeries { name: name.to_owned(), published: false, points }
}

/// Points that the paper's text gives, as bad period, packet size and value: a series for each bad period, in the order
/// of the measured ones, so that both have the same colour.
pub(crate) fn published(given: &[(u32, f64, f64)]) -> Vec<LineSeries> {
    let of = |bad: &u32| {
        let points = given.iter().filter(|(b, ..)| b == bad);
        let points = points.map(|(_, x, y)| Point { x: *x, y: *y, ci: 0.0 }).collect();
        LineSeries { name: format!("published, bad {bad} s"), published: true, points }
    };
    BAD.iter().map(of).collect()
}

/// A plot with words around it.
pub(crate) fn figure(plot: &Plot, title: &str, caption: &str) -> Figure {
    Figure { svg: plot.inline(), title: title.to_owned(), caption: caption.to_owned() }
}

/// What the paper leaves open, the same for all of its experiments.
pub fn assumptions() -> Vec<Assumption> {
    let table: [(&str, &str); 15] = [
        (
            "Throughput is payload over time; headers do not count. kb/s means 1000 bit/s, a file of 100 KB 102,400 \
             bytes, one of 4 MB 4,194,304.",
            "5: \"we take into account 40 bytes of header overhead while measuring connection throughput\". With \
             headers counted, throughput could not rise with the packet size as in Figure 8. The printed 9.0 kb/s \
             beside the bound of 9.14 agrees: a transfer begins in the good state, which lifts the mean share of \
             good time in its 90 s from 71.4 to 72.3 %, and 12.8 x 0.723 x 1496 / 1536 is 9.02.",
        ),
        (
            "Both directions of the radio are good and bad together, and the connection begins in the good state.",
            "4.2.1: acknowledgements are lost in the same bad period; the bound of 5.1 counts one share of good \
             time; the example begins good.",
        ),
        (
            "In the example of 4.2.1 (Figures 3 to 5) the good state loses nothing and the bad state everything.",
            "Its bit errors are constant: at 1e-6 the first one would come after 78 s of sending, at 1e-2 every \
             frame has several. \"During the bad periods, all packets transmitted over the wireless link are \
             lost.\" The file is that of 5.1.",
        ),
        (
            "Bit error rates hold for the bits before coding.",
            "3.1: the rate of the good state is what is left with the assumed error correction.",
        ),
        (
            "The MTU of 128 bytes counts the packet's bytes; headers of fragments are part of the factor 1.5.",
            "3.1: a packet of W bytes becomes 1.5 W after framing, error correction, segmentation and \
             synchronization.",
        ),
        (
            "Links delay by 10 ms (56 kb/s) and 0.1 ms (radio), in the local-area network by 0.2 and 0.1 ms; 50 \
             packets fit each queue.",
            "The paper gives no delays; those of a leased line, a cell and an Ethernet. No queue ever fills: the \
             window is smaller.",
        ),
        (
            "The window of 4 KB is a whole number of packets, headers included: 2 of 1536 bytes, 7 of 576, 32 of 128.",
            "The simulator counts windows in packets; Figure 3 shows seven packets lost at once.",
        ),
        (
            "The window of 64 KB is 65,535 bytes; radio frames of the local-area network have no coding overhead.",
            "The largest window without an option; 5.2 puts the throughput without errors at 2 Mb/s.",
        ),
        (
            "TCP is the Tahoe of the preset `bakshi96`: first time-out 6 s, then srtt + 4 rttvar, at least two ticks \
             of 100 ms and at most 64 s; one packet timed at a time; every packet acknowledged; three duplicate ACKs.",
            "The paper names Tahoe and the tick; the rest is ns as of 1996, whose defaults later versions kept.",
        ),
        ("With another tick the smallest time-out is two of those ticks.", "As ns had it."),
        (
            "Local recovery is stop-and-wait in both directions, fragment by fragment, each acknowledged by a frame \
             of 8 bytes; the link is full duplex.",
            "4.2.1 names an acknowledgement for each packet and retransmission \"similar to the protocol in [9]\", \
             which works on single packets and their acknowledgements. 3.1: the bandwidth is symmetrical. 8 bytes \
             are room for addresses, a number and a checksum.",
        ),
        (
            "RT_max = 13 counts retransmissions: a fragment is sent 14 times. With it its whole packet is given up.",
            "4.2.1: \"a maximum of RT_max successive retransmissions are allowed before a packet is discarded\".",
        ),
        (
            "The random back-off is uniform from zero to a limit that doubles from 50 ms to 800 ms, on both networks.",
            "The paper says only \"random\". For RT_max it follows CDPD, whose back-off doubles from 16 to 256 slots \
             of 60 bits: 50 and 800 ms at 19.2 kb/s. 5.2 changes rates and window for the local-area network and \
             nothing else.",
        ),
        (
            "An acknowledgement is waited for from the end of the frame until the longest frame of the other \
             direction, two acknowledgements and the way there and back have passed.",
            "Then none is still to come. The base station sees a failed attempt at that moment.",
        ),
        (
            "EBSN and source quench are sent after each failed attempt to bring data across, and quote the packet.",
            "4.2.3: \"after every unsuccessful attempt\". A source that reacts to source quench closes its \
             congestion window to one packet, as 4.4BSD did.",
        ),
    ];
    assumed(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario;
    use crate::claims::claims;

    #[test]
    fn every_network_is_a_scenario_with_every_scheme() {
        for scheme in [Scheme::Basic, Scheme::Recovery, Scheme::Ebsn, Scheme::Quench] {
            for text in [WAN, LAN] {
                assert_eq!(scenario(text, scheme.changes()).path.len(), 3);
            }
            for size in SIZES {
                let changes = packet_size(size);
                let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
                let fixed = &scenario(WAN, &changes).hosts[0].tcp;
                assert_eq!(fixed.mss, size - 40);
                assert!(fixed.send_buffer <= 4096 && fixed.send_buffer > 4096 / 2);
            }
        }
    }

    #[test]
    fn every_claim_of_the_paper_has_an_experiment() {
        for claim in claims().filter(|c| c.paper == "bakshi96") {
            assert!(experiment(claim.id).is_some(), "{}", claim.id);
        }
    }

    #[test]
    fn a_series_rises_within_its_intervals() {
        let at = |mean: f64, ci95: f64| Summary { mean, ci95, ..Summary::of(&[mean]) };
        assert!(rises(&[at(1.0, 0.2), at(0.9, 0.2), at(2.0, 0.1)]));
        assert!(!rises(&[at(1.0, 0.1), at(0.5, 0.1), at(2.0, 0.1)]));
        assert!(!rises(&[at(1.0, 2.0), at(0.9, 2.0)]));
    }

    /// The base station's link layer, its agent and the source find each other.
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
