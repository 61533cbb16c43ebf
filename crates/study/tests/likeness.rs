//! Which congestion control a simulated sender of today looks like, at a capture beside it.

use std::io;

use lasthop_analyze::{Config, analyze_capture};
use lasthop_proto::machine::StageId;
use lasthop_scenario::{Argument, parse};
use lasthop_study::capture::congestion::{Control, Likeness, congestion};
use lasthop_trace::pcapng::{CaptureSink, Place};

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

/// What the sender `tcp` looks like on the path, changed by `set`.
fn likeness(tcp: &str, set: &[&str], seed: u64) -> Likeness {
    let tcp = format!("host.server.tcp={tcp}");
    let set: Vec<Argument> =
        set.iter().chain([&tcp.as_str()]).map(|s| Argument::Set((*s).to_owned())).collect();
    let (plan, _) = parse(PATH, "test", &set).unwrap();
    let place = Place { stage: StageId(1), name: "sender".to_owned(), is_link: true };
    let mut sink = CaptureSink::new(&[place], 0, |_| io::Result::Ok(Vec::new())).unwrap();
    lasthop_sim::run(&plan.cells[0].scenario, seed, &mut sink);
    let file = sink.finish().unwrap().links.remove(0).1;
    let analysis = analyze_capture(&file, Config::default()).unwrap();
    let connection = &analysis.connections[0];
    congestion(&connection.to_server, &connection.to_client)
}

const RANDOM: &str = "errors={ model = \"packet-loss\", p = \"0.4%\", on = [\"data\"] }";
const FAR: [&str; 2] = [RANDOM, "path.2.link.delay=\"40ms\""];
const SLOW: [&str; 2] = ["radio.rate=\"6mbit\"", "radio.queue=\"30p\""];
const HALF: [&str; 2] = [RANDOM, "radio.duplex=\"half\""];

#[test]
fn senders_of_today_are_told_apart() {
    let mut wrong = Vec::new();
    let mut all = 0;
    for set in [&[RANDOM][..], &FAR, &SLOW, &HALF] {
        for control in Control::ALL {
            for seed in 1..=3 {
                let found = likeness(control.word(), set, seed);
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

/// Without losses nothing tells Reno from CUBIC: none is named.
#[test]
fn without_losses_nothing_is_named() {
    for tcp in ["rack", "cubic"] {
        let found = likeness(tcp, &["transfer.bytes=\"600kB\"", "radio.queue=\"1000p\""], 1);
        assert_eq!(found.control, None, "{found:?}");
        assert!(found.answers.is_empty() && found.confidence < 0.6);
    }
}

/// Westwood goes on with what it measured: neither half nor 0.7 of its window, and not all of it.
#[test]
fn another_sender_is_none_of_them() {
    let found = likeness("westwood", &FAR, 1);
    assert_eq!(found.control, None, "{found:?}");
}
