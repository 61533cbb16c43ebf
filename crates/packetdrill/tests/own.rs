//! The scripts of this repository against lasthop's TCP.

use std::collections::BTreeMap;
use std::path::Path;

use lasthop_packetdrill::run::own::Own;
use lasthop_packetdrill::run::{Outcome, Rules, Verdict, play};
use lasthop_packetdrill::script::Script;

mod failing;
use failing::FAILING;

/// The scripts by name.
fn scripts() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        all.insert(name, std::fs::read_to_string(path).unwrap());
    }
    all
}

fn run(text: &str) -> Outcome {
    let script = Script::parse(text).unwrap_or_else(|fault| panic!("{fault}"));
    play(&script, &mut Own::default(), &Rules::default())
}

/// Scripts that lasthop's TCP does not pass are listed with a reason, and those alone: the list may only shrink.
#[test]
fn every_script_passes_but_for_those_that_are_listed() {
    let scripts = scripts();
    assert!(scripts.len() >= 60, "{} scripts", scripts.len());
    let mut wrong = Vec::new();
    for (name, text) in &scripts {
        let listed = FAILING.iter().find(|(listed, _)| listed == name);
        match (run(text).verdict, listed) {
            (Verdict::Pass, None) => {}
            (Verdict::Pass, Some(_)) => wrong.push(format!("{name} passes: take it off the list")),
            (_, Some((_, reason))) => assert!(!reason.is_empty(), "{name}"),
            (verdict, None) => wrong.push(format!("{name}: {verdict:?}")),
        }
    }
    for (name, _) in FAILING {
        assert!(scripts.contains_key(*name), "{name} is listed and not there");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Virtual time: the same run twice has the same trace.
#[test]
fn a_run_is_exact() {
    for name in ["fast-retransmit-sack", "rto-backoff", "syn-retries"] {
        let text = &scripts()[name];
        assert_eq!(run(text), run(text), "{name}");
    }
}

/// A script with one number changed does not pass: what it expects is compared.
#[test]
fn a_wrong_expectation_fails_at_its_line() {
    let good = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                +.1 < S 0:0(0) win 32792 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n\
                +.1 < . 1:1(0) ack 1 win 4000\n+0 accept(3, ..., ...) = 4\n\
                +0 write(4, ..., 2000) = 2000\n+0 > P. 1:2001(2000) ack 1\n+.3 > . 1:1001(1000) ack 1\n\
                +0 %{ assert tcpi_snd_cwnd == 1, tcpi_snd_cwnd }%\n+0 close(4) = 0\n";
    assert_eq!(run(good).verdict, Verdict::Pass);
    for (line, from, to) in [
        (5, "ack 1 <mss 1460>", "ack 1 <mss 1461>"),
        (5, "S. 0:0(0) ack 1", "S. 0:0(0) ack 2"),
        (7, ", ...) = 4", ", ...) = 5 EAGAIN"),
        (8, "2000) = 2000", "2000) = 1999"),
        (9, "P. 1:2001(2000)", "P. 1:3001(3000)"),
        (9, "+0 > P. 1:2001", "+.1 > P. 1:2001"),
        (10, "+.3 > . 1:1001", "+.9 > . 1:1001"),
        (10, ". 1:1001(1000) ack 1\n+0 %", "F. 1:1001(1000) ack 1\n+0 %"),
        (11, "cwnd == 1", "cwnd == 2"),
        (12, "close(4) = 0", "close(9) = 0"),
    ] {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good, "{from}");
        match run(&changed).verdict {
            Verdict::Fail { line: at, .. } => assert_eq!(at, line, "{from} -> {to}"),
            other => panic!("{from} -> {to}: {other:?}"),
        }
    }
}

/// What cannot be run is named with its line.
#[test]
fn a_missing_feature_is_named() {
    for (text, feature) in [
        ("0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3", "sockets other than SOCK_STREAM"),
        ("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 splice(3, 4) = 0", "the call splice()"),
        (
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 setsockopt(3, SOL_SOCKET, SO_RCVLOWAT, [1], 4) = 0",
            "setsockopt SO_RCVLOWAT",
        ),
    ] {
        match run(text).verdict {
            Verdict::Unsupported { feature: named, .. } => assert_eq!(named, feature),
            other => panic!("{text}: {other:?}"),
        }
    }
}

/// Settings and commands without an effect are reported with their line.
#[test]
fn what_is_not_applied_is_reported() {
    let outcome = run(
        "`sysctl -q net.ipv4.tcp_mtu_probing=2\nrm -rf /tmp/x`\n0 socket(..., SOCK_STREAM, 0) = 3",
    );
    let notes = [(1, "tcp_mtu_probing=2".to_owned()), (1, "`rm -rf /tmp/x`".to_owned())];
    assert_eq!(outcome.notes, notes);
}
