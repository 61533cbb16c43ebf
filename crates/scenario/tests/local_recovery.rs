//! The options of local recovery: read, refused, and noted where they change nothing.

use lasthop_proto::link::LinkLayerConfig;
use lasthop_proto::link::local_recovery::LocalRecoveryConfig;
use lasthop_proto::units::Span;
use lasthop_scenario::{Argument, Code, StageKind, parse};

const FILE: &str = r#"
transfer = { from = "fixed", to = "mobile", bytes = "100KiB" }
[host.fixed]
[host.mobile]
[[path]]
radio = { rate = "19.2kbit", duplex = "full" }
link-layer = "local-recovery"
"#;

fn set(changes: &[&str]) -> Vec<Argument> {
    changes.iter().map(|change| Argument::Set((*change).to_owned())).collect()
}

fn recovery(changes: &[&str]) -> LocalRecoveryConfig {
    let (plan, notes) = parse(FILE, "test", &set(changes)).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let StageKind::Radio(radio) = &plan.cells[0].scenario.path[0].kind else { panic!() };
    match &radio.hop.as_ref().unwrap().link {
        LinkLayerConfig::LocalRecovery(recovery) => recovery.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_options_it_is_that_of_the_paper() {
    assert_eq!(recovery(&[]), LocalRecoveryConfig::bakshi96());
    assert_eq!(recovery(&["fragment=128B"]).longest, 128);
}

#[test]
fn each_option_can_be_set_alone() {
    let base = LocalRecoveryConfig::bakshi96();
    let tries = recovery(&["local-recovery.max-retransmits=3"]);
    assert_eq!(tries, LocalRecoveryConfig { max_retransmits: 3, ..base.clone() });
    let timeout = recovery(&["local-recovery.timeout=120ms"]);
    assert_eq!(timeout.timeout, Some(Span::millis(120)));
    // A backoff that begins beyond the usual limit does not grow.
    let long = recovery(&["local-recovery.backoff=3s"]);
    assert_eq!((long.backoff, long.backoff_max), (Span::secs(3), Span::secs(3)));
}

#[test]
fn limits_that_shrink_are_refused() {
    let changes = set(&["local-recovery={ backoff = \"1s\", backoff-max = \"50ms\" }"]);
    let error = parse(FILE, "test", &changes).unwrap_err();
    assert_eq!(error.code, Code::OutOfRange);
    assert!(error.help.contains("backoff-max"), "{}", error.help);
}

#[test]
fn options_of_a_hop_without_it_are_noted() {
    let changes = set(&["link-layer=none", "local-recovery.ack=6B", "fragment=128B"]);
    let (_, notes) = parse(FILE, "test", &changes).unwrap();
    assert!(notes.iter().any(|n| n.code == Code::NoEffect && n.key.ends_with("local-recovery")));
}
