//! Links that emulate netem, sources of datagrams, and hosts with separate links: accepted and refused files.

use lasthop_proto::link::tc::By;
use lasthop_proto::queue::Limit;
use lasthop_proto::units::{Rate, Span};
use lasthop_scenario::{Code, StageKind, Warning, parse};

use crate::errors::{HEAD, HOSTS, path_refused, refused};

const PATH: &str = "[[path]]\nlink = { rate = \"10mbit\", delay = \"1ms\" }\n";

#[test]
fn invalid_netem_combinations_are_refused() {
    let link = |keys: &str| format!("[[path]]\nlink = {{ {keys} }}\n");
    let text = link("netem = \"delay 20ms jitter 5ms\"");
    let pointed = "\"delay 20ms jitter 5ms\"";
    let expected = ["netem has no `jitter`", "second value of `delay`"];
    path_refused(&text, Code::BadValue, "path.1.link.netem", pointed, &expected);
    let text = link("netem = \"delay 20ms seed 7\"");
    path_refused(
        &text,
        Code::BadValue,
        "path.1.link.netem",
        "\"delay 20ms seed 7\"",
        &["`seed` is not modelled", "seed` of the scenario"],
    );
    let text = link("netem = \"delay 20ms\", trace = \"lte.up\"");
    path_refused(
        &format!("{text}[files]\n\"lte.up\" = \"1\\n2\\n\"\n"),
        Code::BadValue,
        "path.1.link.trace",
        "\"lte.up\"",
        &["`path.1.link.trace` and `netem`", "write two links"],
    );
    let text = link("rate = \"1mbit\", jitter-order = \"kept\"");
    path_refused(
        &text,
        Code::BadValue,
        "path.1.link.jitter-order",
        "\"kept\"",
        &["without `jitter`"],
    );
    let text = link("rate = \"1mbit\", reorder = \"1%\"");
    path_refused(&text, Code::BadValue, "path.1.link.reorder", "\"1%\"", &["without a delay"]);
    let text = link("loss = { p = \"1%\" }, loss-correlation = \"25%\"");
    path_refused(
        &text,
        Code::BadValue,
        "path.1.link.loss-correlation",
        "\"25%\"",
        &["the chain of `loss`"],
    );
    let text = link("loss = \"1%\", frame-loss = \"1%\"");
    path_refused(&text, Code::BadValue, "path.1.link.frame-loss", "\"1%\"", &["two links"]);
}

/// The first stage of a path.
fn first(path: &str) -> (StageKind, Vec<Warning>) {
    let text = format!("{HEAD}{HOSTS}{path}");
    let (plan, warnings) = parse(&text, "test", &[]).unwrap_or_else(|e| panic!("{e}: {}", e.help));
    (plan.cells[0].scenario.path[0].kind.clone(), warnings)
}

#[test]
fn a_netem_line_follows_tc_and_keys_override_it() {
    let netem = |keys: &str| match first(&format!("[[path]]\nlink = {{ {keys} }}\n")).0 {
        StageKind::Netem(netem) => netem,
        other => panic!("{other:?}"),
    };
    let plain = netem("netem = \"rate 5mbit delay 30ms\"");
    assert_eq!(plain.line.queue, Limit::Packets(1000), "the limit of `tc`");
    assert_eq!((plain.line.framing, plain.line.delay), (14, Span::millis(30)));
    assert_eq!(plain.line.rate_right, plain.line.rate_left);
    let limits = ["limit 100k", "limit 1000mbit", "limit 0"];
    let limits = limits.map(|limit| netem(&format!("netem = \"delay 1ms {limit}\"")).line.queue);
    assert_eq!(limits, [102_400, 131_072_000, 0].map(Limit::Packets));
    // Keys next to the line override it.
    let with_keys = netem(
        "netem = \"delay 20ms loss state 1% rate 2mbit -20 limit 9\", delay = \"30ms\", loss = \"2%\", \
         rate-right = \"1mbit\", queue = \"50p\", framing = 0",
    );
    assert_eq!((with_keys.line.delay, with_keys.line.framing), (Span::millis(30), 0));
    assert_eq!((with_keys.line.queue, with_keys.extras.states), (Limit::Packets(50), None));
    assert_eq!(with_keys.line.rate_right.map(Rate::bps), Some(1_000_000));
    assert_eq!(with_keys.line.rate_left.map(Rate::bps), Some(2_000_000));
    assert_eq!(with_keys.extras.overhead, -20);
}

#[test]
fn differences_from_tc_are_reported() {
    let warning = |line: &str| {
        let (_, warnings) = first(&format!("[[path]]\nlink = {{ netem = \"{line}\" }}\n"));
        let found: Vec<_> = warnings.iter().filter(|w| w.code == Code::Differs).collect();
        assert_eq!(found.len(), 1, "{line}: {warnings:?}");
        found[0].message.clone()
    };
    assert!(warning("delay 20ms").contains("super-packet"));
    assert!(!warning("delay 20ms").contains("seed"));
    assert!(warning("delay 20ms loss 1%").contains("draws come from the scenario's seed"));
    assert!(warning("corrupt 1%").contains("a wrong bit is anywhere in the IP packet"));
}

#[test]
fn numbers_without_a_unit_are_reported() {
    let warning = |line: &str| {
        let (_, warnings) = first(&format!("[[path]]\nlink = {{ netem = \"{line}\" }}\n"));
        let found = warnings.iter().find(|w| w.code == Code::BareNumber);
        found.map(|w| format!("{}; {}", w.message, w.help))
    };
    let delay = "`delay 20` is 20 microseconds; did you mean `delay 20ms`?";
    assert_eq!(warning("delay 20").as_deref(), Some(delay));
    assert_eq!(
        warning("tc qdisc add dev eth0 root netem delay 20 loss 1%").as_deref(),
        Some(delay)
    );
    let jitter = warning("delay 20ms 5");
    assert_eq!(jitter.as_deref(), Some("`delay 5` is 5 microseconds; did you mean `delay 5ms`?"));
    let rate = warning("delay 20ms rate 10");
    assert_eq!(rate.as_deref(), Some("`rate 10` is 10 bit/s; did you mean `rate 10mbit`?"));
    for line in ["delay 20ms 5ms 25", "delay 0", "loss 1 25", "rate 1000000", "limit 100"] {
        assert_eq!(warning(line), None, "{line}");
    }
}

#[test]
fn token_buckets_and_policers_are_read_from_keys() {
    let stage = |text: &str| {
        first(&format!("[[path]]\n{text}\n[[path]]\nlink = {{ rate = \"9mbit\" }}\n")).0
    };
    let tbf = |text: &str| match stage(&format!("tbf = {{ {text} }}")) {
        StageKind::Tbf(tbf) => tbf,
        other => panic!("{other:?}"),
    };
    let keys = tbf("rate = \"1mbit\", burst = \"10KiB\", latency = \"50ms\"");
    // 6250 bytes in 50 ms, and a burst.
    assert_eq!((keys.burst, keys.limit), (10_240, 16_490));
    let peak = tbf(
        "rate = \"1mbit\", burst = \"10KiB\", limit = \"20KiB\", peak-rate = \"2mbit\", mtu = 2000, overhead = 4, mpu = 64, atm = true",
    );
    assert_eq!(
        (peak.peak.map(|(rate, mtu)| (rate.bps(), mtu)), peak.limit),
        (Some((2_000_000, 2000)), 20_480)
    );
    assert_eq!((peak.measure.overhead, peak.measure.least, peak.measure.atm), (4, 64, true));
    let police = |text: &str| match stage(&format!("police = {{ {text} }}")) {
        StageKind::Police(police) => police,
        other => panic!("{other:?}"),
    };
    let keys = police("rate = \"1mbit\", burst = \"10KiB\", towards = \"right\"");
    assert_eq!(keys.mtu, 2040);
    let packets = police("packet-rate = 1000, packet-burst = 5");
    assert_eq!((packets.by, packets.mtu), (By::Packets { rate: 1000, burst: 5 }, u32::MAX));
}

#[test]
fn invalid_token_buckets_and_policers_are_refused() {
    let refused = |kind: &str, keys: &str, code: Code, key: &str, expected: &[&str]| {
        let path = format!("[[path]]\n{kind} = {{ {keys} }}\n{PATH}");
        let text = format!("{HEAD}{HOSTS}{path}");
        let error = parse(&text, "test", &[]).expect_err(keys);
        let all = format!("{} | {} | {}", error.message, error.label, error.help);
        assert_eq!((error.code, error.key.as_str()), (code, key), "{all}");
        expected
            .iter()
            .for_each(|expected| assert!(all.contains(expected), "`{expected}` is not in {all}"));
    };
    let bad = Code::BadValue;
    let missing = Code::MissingKey;
    refused("tbf", "burst = 5000, latency = \"5ms\"", missing, "path.1.tbf.rate", &["rate"]);
    refused("tbf", "rate = \"1mbit\", latency = \"5ms\"", missing, "path.1.tbf.burst", &[]);
    refused("tbf", "rate = \"1mbit\", burst = 5000", missing, "path.1.tbf.latency", &[]);
    let both = "rate = \"1mbit\", burst = 5000, latency = \"5ms\", limit = 5000";
    refused("tbf", both, bad, "path.1.tbf.latency", &["which of them"]);
    let low =
        "rate = \"1mbit\", burst = 5000, latency = \"5ms\", peak-rate = \"1mbit\", mtu = 2000";
    refused("tbf", low, bad, "path.1.tbf.peak-rate", &["does not exceed the rate"]);
    let two = "rate = \"1mbit\", burst = 5000, packet-rate = 5, packet-burst = 5";
    refused("police", two, bad, "path.1.police.packet-rate", &["bytes or packets"]);
}

#[test]
fn invalid_udp_transfers_are_refused() {
    let text = |transfer: &str, top: &str| {
        format!(
            "{top}transfer = {{ from = \"fixed\", to = \"mobile\", {transfer} }}\n{HOSTS}{PATH}"
        )
    };
    let udp = "udp = { rate = \"1mbit\" }";
    let endless = text(udp, "");
    refused(
        &endless,
        Code::MissingKey,
        "horizon",
        "{ rate = \"1mbit\" }",
        &["`udp` needs a `horizon`"],
    );
    let both = text(&format!("{udp}, bytes = \"1MB\""), "horizon = \"9s\"\n");
    refused(&both, Code::BadTransfer, "transfer.bytes", "\"1MB\"", &["exclude each other"]);
    let bare = text("udp = { size = 500 }", "horizon = \"9s\"\n");
    let error = parse(&bare, "test", &[]).expect_err("a rate is missing");
    assert!(error.key.ends_with("udp.rate"), "{}: {error}", error.key);
}
