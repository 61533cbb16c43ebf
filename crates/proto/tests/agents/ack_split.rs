//! Acknowledgement of undelivered data (balakrishnan97 3.2). In mid-transfer the base station is replaced by
//! a fresh one. The test counts the bytes that were acknowledged to the sender and are never delivered.

use lasthop_proto::agent::{
    AckpMode, Agent, AgentConfig, NackAgent, Router, SeqCacheAgent, SnoopAgent, SnoopConfig,
    SplitConfig,
};
use lasthop_proto::tcp::{AckpReaction, ElnMode, TcpConfig};
use lasthop_proto::units::{Bytes, Span, Time};

use crate::path::{MOBILE, Path, Wire};

const BYTES: u64 = 400_000;

fn hosts() -> TcpConfig {
    TcpConfig { ackp: AckpReaction::Rearm, eln: ElnMode::Checksum, sack: true, ..TcpConfig::rfc() }
}

fn split() -> AgentConfig {
    AgentConfig::Split(SplitConfig::new(TcpConfig::rfc()))
}

/// Bytes acknowledged to the sender and never delivered, if the base station is replaced at `replaced`; and
/// bytes delivered.
fn missing(config: &AgentConfig, replaced: Option<Span>) -> (u64, u64) {
    // A fast wire, then a slow radio with losses: the data waits at the base station.
    let wired = Wire { byte: Span::micros(1), delay: Span::millis(1), losses: 0 };
    let radio = Wire { byte: Span::micros(8), delay: Span::millis(3), losses: 30 };
    let mut path = Path::new([&hosts(), &hosts()], config, [wired, radio], 5);
    path.hosts[0].open(MOBILE, 9, Time::ZERO, Some(Bytes(BYTES)), 1);
    if let Some(at) = replaced {
        path.run_until(Time::ZERO + at);
        path.agent = Agent::new(config);
    }
    // Long enough for every connection to abort.
    path.run_until(Time::ZERO + Span::secs(3000));
    assert!(!path.corrupted);
    let sender = path.hosts[0].opened().next().unwrap();
    let delivered = path.hosts[1].connections()[0].delivered();
    (sender.acknowledged() - delivered.min(sender.acknowledged()), delivered)
}

#[test]
fn only_split_connections_acknowledge_undelivered_data() {
    let snoop = |ackp| AgentConfig::Snoop(SnoopAgent { snoop: SnoopConfig::west97(), ackp });
    let honest = [
        ("none", AgentConfig::None(Router)),
        ("snoop", snoop(None)),
        ("snoop+ackp", snoop(Some(AckpMode::Full))),
        (
            "snoop-smart",
            AgentConfig::Snoop(SnoopAgent { snoop: SnoopConfig::west97().selective(), ackp: None }),
        ),
        ("snoop-nack", AgentConfig::SnoopNack(NackAgent { snoop: SnoopConfig::west97() })),
        ("seq-cache", AgentConfig::SeqCache(SeqCacheAgent { flows: 8 })),
    ];
    let selective = SplitConfig::new(TcpConfig::rfc()).selective();
    let splits = [("split", split()), ("split-sack", AgentConfig::Split(selective))];
    let middle = Some(Span::millis(1500));
    for (name, config) in &honest {
        let (lost, delivered) = missing(config, middle);
        assert_eq!((lost, delivered), (0, BYTES), "{name}");
    }
    for (name, config) in &splits {
        let (lost, delivered) = missing(config, middle);
        println!("{name}: {lost} bytes acknowledged and never delivered, {delivered} delivered");
        assert!(lost > 0 && delivered < BYTES, "{name}: {lost}, {delivered}");
        // At most the capacity of the base station.
        assert!(lost <= 64 << 10, "{name}: {lost}");
    }
}

#[test]
fn a_split_loses_nothing_unless_replaced_mid_transfer() {
    assert_eq!(missing(&split(), None), (0, BYTES));
    // Replaced after the end.
    assert_eq!(missing(&split(), Some(Span::secs(1000))), (0, BYTES));
    // Replaced before the start.
    assert_eq!(missing(&split(), Some(Span::ZERO)), (0, BYTES));
}
