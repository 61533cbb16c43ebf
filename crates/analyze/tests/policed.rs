//! Policers of the simulator are found with their rate; queues and radios that lose packets are none.

use std::io;

use lasthop_analyze::{Config, Direction, Finding, analyze_capture};
use lasthop_observe::pcapng::{CapturePoint, CaptureSink};
use lasthop_proto::machine::StageId;
use lasthop_scenario::{Argument, parse};

const PATH: &str = r#"
horizon = "60s"
transfer = { from = "server", to = "client", bytes = "8MB" }
[host.server]
preset = "linux"
[host.client]
preset = "linux"
[[path]]
link = { delay = "0ms" }
[[path]]
link = { rate = "200mbit", delay = "10ms", queue = "1000p" }
[[path]]
STAGE
[[path]]
agent = "none"
[[path]]
radio = { rate = "100mbit", delay = "10ms", queue = "500p", duplex = "full" }
errors = "none"
"#;

/// The server's packets, captured next to it, on a path with `stage` in its middle.
fn sent(stage: &str, set: &[&str], seed: u64) -> Direction {
    let text = PATH.replace("STAGE", stage);
    let set: Vec<Argument> = set.iter().map(|s| Argument::Set((*s).to_owned())).collect();
    let (plan, _) = parse(&text, "test", &set).unwrap();
    captured(&plan.cells[0].scenario, StageId(1), seed)
}

/// The server's packets at `stage`.
fn captured(scenario: &lasthop_scenario::Scenario, stage: StageId, seed: u64) -> Direction {
    let place = CapturePoint { stage, name: "here".to_owned(), is_link: true };
    let mut sink = CaptureSink::new(&[place], 0, |_| io::Result::Ok(Vec::new())).unwrap();
    lasthop_sim::run(scenario, seed, &mut sink);
    let file = sink.finish().unwrap().links.remove(0).1;
    let mut analysis = analyze_capture(&file, Config::default()).unwrap();
    analysis.connections.remove(0).to_server
}

/// Rate in Mbit/s and burst in bytes.
fn policer(sent: &Direction) -> Option<(f64, u64)> {
    sent.diagnoses.iter().find_map(|diagnosis| match diagnosis.finding {
        Finding::Policer { rate, burst, .. } => Some((rate / 1e6, burst)),
        _ => None,
    })
}

const POLICED: [(&str, f64); 4] = [
    ("police = { rate = \"5mbit\", burst = \"64KiB\", towards = \"right\" }", 5.0),
    ("police = { rate = \"10mbit\", burst = \"250kB\", towards = \"right\" }", 10.0),
    ("police = { rate = \"20mbit\", burst = \"128KiB\", towards = \"right\" }", 20.0),
    ("police = { rate = \"3mbit\", burst = \"1MB\", towards = \"right\" }", 3.0),
];

#[test]
fn policers_are_found_with_their_rate() {
    let mut wrong = Vec::new();
    for (stage, rate) in &POLICED {
        for tcp in ["cubic", "rack"] {
            for seed in 1..=2 {
                let bytes = format!("transfer.bytes={}MB", 4 * *rate as u32);
                let sent = sent(stage, &[&format!("host.server.tcp={tcp}"), &bytes], seed);
                let found = policer(&sent);
                // The policer counts Ethernet headers too.
                let near = found.is_some_and(|(found, _)| (found / rate - 1.0).abs() < 0.05);
                if !near {
                    wrong.push(format!(
                        "{stage} {tcp} {seed}: {found:?}, {} losses",
                        sent.losses.len()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn queues_and_random_losses_are_no_policers() {
    let through = "link = { delay = \"0ms\" }";
    let random =
        |p: &str| format!("errors={{ model = \"packet-loss\", p = \"{p}\", on = [\"data\"] }}");
    let bursts = "errors={ model = \"two-state\", good = \"2s\", bad = \"50ms\", ber-bad = 1e-4 }"
        .to_owned();
    let cases: Vec<Vec<String>> = vec![
        vec![random("0.2%")],
        vec![random("1%")],
        vec![random("3%")],
        vec![random("1%"), "host.client.recv-buffer=64KiB".to_owned()],
        vec!["radio.rate=10mbit".to_owned(), "radio.queue=10p".to_owned()],
        vec!["radio.rate=10mbit".to_owned(), "radio.queue=40p".to_owned()],
        vec!["radio.rate=10mbit".to_owned(), "radio.queue=200p".to_owned()],
        vec!["radio.rate=5mbit".to_owned(), "radio.queue=30p".to_owned(), random("1%")],
        vec![bursts],
    ];
    let mut wrong = Vec::new();
    let mut losses = 0;
    for set in &cases {
        for tcp in ["cubic", "rack", "bbr"] {
            let tcp = format!("host.server.tcp={tcp}");
            let set: Vec<&str> = set.iter().map(String::as_str).chain([tcp.as_str()]).collect();
            let sent = sent(through, &set, 3);
            losses += sent.losses.len();
            if policer(&sent).is_some() {
                wrong.push(format!("{set:?}: {:?}", policer(&sent)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(losses > 1000, "{losses}");
}

/// What exceeds the rate waits in a queue of some length: a shaper.
#[test]
fn a_shaper_is_no_policer() {
    for keys in [
        "rate = \"5mbit\", burst = \"64KiB\", limit = \"100KiB\"",
        "rate = \"10mbit\", burst = \"250KiB\", limit = \"60KiB\"",
    ] {
        let stage = format!("tbf = {{ {keys}, towards = \"right\" }}");
        let sent = sent(&stage, &[], 1);
        assert!(sent.losses.len() > 5, "{}", sent.losses.len());
        assert_eq!(policer(&sent), None, "{keys}: {:?}", sent.verdict.cause);
    }
}

/// Behind the queue of a slow radio no packet exceeds its rate, whatever its outages lose. Not for `split`, whose sender
/// finds the end of an outage by a few packets at once.
#[test]
fn outages_behind_a_queue_are_no_policer() {
    let text = lasthop_scenario::example("disconnections").unwrap().text;
    let (plan, _) = parse(text, "disconnections", &[]).unwrap();
    let radio = StageId(3);
    let cells = [4, 5, 7].map(|i| &plan.cells[i]);
    assert!(cells.iter().all(|cell| !cell.labels.contains(&"split".to_owned())));
    let found = cells.iter().map(|cell| captured(&cell.scenario, radio, 1));
    let found: Vec<_> = found.map(|sent| (sent.losses.len(), policer(&sent))).collect();
    assert!(found.iter().all(|(losses, policer)| *losses > 15 && policer.is_none()), "{found:?}");
}
