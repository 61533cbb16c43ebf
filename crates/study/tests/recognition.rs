//! Recognition of the congestion control of a simulated modern sender, from a capture next to it.

use std::io;

use lasthop_analyze::{Analysis, Cause, Config, Finding, analyze_capture};
use lasthop_observe::pcapng::{CapturePoint, CaptureSink};
use lasthop_proto::machine::StageId;
use lasthop_scenario::{Argument, parse};
use lasthop_study::advise::Estimate;
use lasthop_study::capture::Capture;
use lasthop_study::capture::congestion::{Control, Recognition, congestion};

const PATH: &str = r#"
horizon = "15s"
transfer = { from = "server", to = "client", bytes = "12MB" }
[host.server]
preset = "linux"
[host.client]
preset = "linux"
[[path]]
link = { delay = "0ms" }
[[path]]
link = { rate = "200mbit", delay = "10ms", queue = "1000p" }
[[path]]
agent = "none"
[[path]]
radio = { rate = "20mbit", delay = "2ms", queue = "100p", duplex = "full" }
errors = "none"
"#;

/// A capture at the sender `tcp` on the path, changed by `set`.
fn captured(tcp: &str, set: &[&str], seed: u64) -> Analysis {
    let tcp = format!("host.server.tcp={tcp}");
    let set: Vec<Argument> =
        set.iter().chain([&tcp.as_str()]).map(|s| Argument::Set((*s).to_owned())).collect();
    let (plan, _) = parse(PATH, "test", &set).unwrap();
    let place = CapturePoint { stage: StageId(1), name: "sender".to_owned(), is_link: true };
    let mut sink = CaptureSink::new(&[place], 0, |_| io::Result::Ok(Vec::new())).unwrap();
    lasthop_sim::run(&plan.cells[0].scenario, seed, &mut sink);
    let file = sink.finish().unwrap().links.remove(0).1;
    analyze_capture(&file, Config::default()).unwrap()
}

/// The recognized sender for `tcp` on the path, changed by `set`.
fn recognized(tcp: &str, set: &[&str], seed: u64) -> Recognition {
    let analysis = captured(tcp, set, seed);
    let capture = Capture { file: "test".to_owned(), analysis, left_out: 0 };
    congestion(&capture.transfers()[0])
}

const RANDOM: &str = "errors={ model = \"packet-loss\", p = \"0.4%\", on = [\"data\"] }";
const FAR: [&str; 2] = [RANDOM, "path.2.link.delay=\"40ms\""];
const SLOW: [&str; 2] = ["radio.rate=\"6mbit\"", "radio.queue=\"30p\""];
const HALF: [&str; 2] = [RANDOM, "radio.duplex=\"half\""];

#[test]
fn modern_senders_are_distinguished() {
    let mut wrong = Vec::new();
    let mut all = 0;
    for set in [&[RANDOM][..], &FAR, &SLOW, &HALF] {
        for control in Control::ALL {
            for seed in 1..=3 {
                let found = recognized(control.word(), set, seed);
                all += 1;
                if found.control != Some(control) {
                    wrong.push(format!(
                        "{control:?} {set:?} {seed}: {:?} {:.2} {}",
                        found.control, found.confidence, found.evidence
                    ));
                }
            }
        }
    }
    assert!(wrong.len() * 12 <= all, "{} of {all}\n{}", wrong.len(), wrong.join("\n"));
}

/// Without losses Reno and CUBIC look the same: none is recognized.
#[test]
fn without_losses_no_congestion_control_is_recognized() {
    for tcp in ["rack", "cubic"] {
        let found = recognized(tcp, &["transfer.bytes=\"600kB\"", "radio.queue=\"1000p\""], 1);
        assert_eq!(found.control, None, "{found:?}");
        assert!(found.answers.is_empty() && found.confidence < 0.6);
    }
}

/// A queue that no sender overflows, on a line and on LTE, whose ACKs arrive in blocks.
const DEEP: [&str; 1] = ["radio.queue=\"2000p\""];
const LTE: [&str; 3] = [DEEP[0], "radio.mac=\"granted\"", "radio.link-layer=\"rlc\""];

/// BBR needs no loss: it drains the queue that it filled at its start. Other senders never reduce their flight without
/// one, unless their application pauses.
#[test]
fn bbr_is_recognized_without_losses() {
    for set in [&DEEP[..], &LTE] {
        let found = recognized("bbr", set, 1);
        assert_eq!(
            found.control,
            Some(Control::Bbr),
            "{set:?}: {} {}",
            found.confidence,
            found.evidence
        );
        assert!(found.answers.is_empty() && found.evidence.starts_with("without a loss"));
        let pauses = "transfer={ from = \"server\", to = \"client\", on-off = { on = \"400ms\", off = \"300ms\" } }";
        let mut paused = set.to_vec();
        paused.push(pauses);
        let others = [("rack", set), ("cubic", set), ("vegas", set), ("cubic", &paused)];
        for (tcp, set) in others {
            let found = recognized(tcp, set, 1);
            assert_eq!(found.control, None, "{tcp} {set:?}: {}", found.evidence);
        }
    }
}

/// Westwood continues at its measured rate: neither half nor 0.7 of its window, and not all of it.
#[test]
fn westwood_is_not_recognized_as_another_sender() {
    let found = recognized("westwood", &FAR, 1);
    assert_eq!(found.control, None, "{found:?}");
}

/// A queue of a tenth of the path's capacity: it overflows before round trips show it.
const SHORT: [&str; 3] =
    ["radio.rate=\"27mbit\"", "radio.queue=\"20p\"", "path.2.link.delay=\"50ms\""];

/// Kernel senders with BBR were not recognized where the radio loses much.
#[test]
fn bbr_is_recognized_by_its_gain_cycle() {
    let lossy = "errors={ model = \"packet-loss\", p = \"1.2%\", on = [\"data\"] }";
    let deep = [lossy, "radio.queue=\"250p\""];
    for seed in 1..=3 {
        let found = recognized("bbr", &deep, seed);
        assert_eq!(found.control, Some(Control::Bbr), "{seed}: {}", found.evidence);
    }
}

/// BBR takes a short queue for a policer and stops its cycle for 48 round trips. Three of four captures of the kernel
/// on this path are not recognized either.
#[test]
fn bbr_in_a_short_queue_is_not_taken_for_another() {
    let found = recognized("bbr", &SHORT, 1);
    assert!(matches!(found.control, None | Some(Control::Bbr)), "{}", found.evidence);
    assert!(found.evidence.ends_with("it paces its segments"), "{}", found.evidence);
}

#[test]
fn the_end_of_slow_start_in_a_short_queue_is_no_lossy_link() {
    for tcp in ["rack", "cubic"] {
        let analysis = captured(tcp, &SHORT, 1);
        let lost = analysis.connections[0].to_server.losses.len();
        assert!(lost > 10, "{tcp}: {lost}");
        let capture = Capture { file: "test".to_owned(), analysis, left_out: 0 };
        let estimate = Estimate::of(&capture, "").unwrap();
        let (loss, how) = estimate.loss.unwrap();
        assert!(loss.get() < 0.001, "{tcp}: {loss:?} {how}");
    }
}

/// The capture that the tutorial analyses, of run `seed`: the link in front of the radio, where only the radio loses
/// packets. The sender is Reno.
fn quickstart(seed: u64) -> Analysis {
    let text = lasthop_scenario::example("quickstart").unwrap().text;
    let (plan, _) = parse(text, "quickstart", &[]).unwrap();
    let place = CapturePoint { stage: StageId(1), name: "link".to_owned(), is_link: true };
    let mut sink = CaptureSink::new(&[place], 0, |_| io::Result::Ok(Vec::new())).unwrap();
    lasthop_sim::run(&plan.cells[0].scenario, seed, &mut sink);
    let file = sink.finish().unwrap().links.remove(0).1;
    analyze_capture(&file, Config::default()).unwrap()
}

/// Each printed finding is true: no copies, no missing bytes, no queue as the cause, no other sender, no pacing, no
/// application limit.
#[test]
fn findings_of_the_tutorial_are_true() {
    for seed in 1..=12 {
        let analysis = quickstart(seed);
        assert_eq!(analysis.copied_packets, 0, "{seed}");
        let capture = Capture { file: "test".to_owned(), analysis, left_out: 0 };
        let transfers = capture.transfers();
        let data = transfers[0].data;
        assert_eq!(data.missed_bytes, 0, "{seed}");
        assert!(data.lost_segments > 10, "{seed}: {}", data.lost_segments);
        let verdict = &data.verdict;
        assert!(matches!(verdict.cause, Cause::Radio | Cause::Unclear), "{seed}: {verdict:?}");
        let found = congestion(&transfers[0]);
        assert!(matches!(found.control, None | Some(Control::Reno)), "{seed}: {found:?}");
        assert!(!found.evidence.contains("paces"), "{seed}: {}", found.evidence);
        for diagnosis in &data.diagnoses {
            let right = match diagnosis.finding {
                Finding::Timeouts { total, .. } => total == data.retransmissions.timeout,
                Finding::TailLoss { .. } => data.retransmissions.timeout > 0,
                Finding::Limits { application, nagle, send_buffer, .. } => {
                    application < 0.1 && nagle == 0.0 && send_buffer == 0.0
                }
                _ => false,
            };
            assert!(right, "{seed}: {diagnosis:?}");
        }
    }
}
