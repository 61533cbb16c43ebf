//! Negative acknowledgements to a mobile host, mechanism by mechanism.

use lasthop_proto::agent::{AgentConfig, NackAgent, Router, SnoopConfig};
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::units::{Bytes, Span, Time};

use crate::path::{FIXED, Path, Wire};
use crate::script::check;

fn agent() -> AgentConfig {
    let snoop = SnoopConfig {
        initial_timeout: Span::millis(300),
        persist: Span::secs(5),
        max_retransmits: 3,
        ..SnoopConfig::west97()
    };
    AgentConfig::SnoopNack(NackAgent { snoop })
}

#[test]
fn a_hole_is_named_at_the_first_packet_behind_it() {
    check(
        &agent(),
        "
        0ms    mobile  syn ack 0 nack
        1ms    fixed   syn acks 1
        10ms   mobile  1+1000 ack 1
        14ms   fixed   at 1 acks 1001
        20ms   mobile  2001+1000 ack 1         # 1001 was lost
        20ms   base    at 1 acks 1001 missing 1001-2001   => loss-notification
        24ms   fixed   at 1 acks 1001          # the fixed host's duplicate ACK passes
        28ms   mobile  3001+1000 ack 1
        40ms   mobile  1001+1000 ack 1         # retransmitted
        44ms   fixed   at 1 acks 4001
        5000ms end
        ",
    );
}

#[test]
fn a_host_without_the_nack_option_gets_no_notification() {
    check(
        &agent(),
        "
        0ms    mobile  syn ack 0
        1ms    fixed   syn acks 1
        10ms   mobile  1+1000 ack 1
        14ms   fixed   at 1 acks 1001
        20ms   mobile  2001+1000 ack 1
        5000ms end
        ",
    );
}

#[test]
fn a_hole_is_reported_again_after_a_later_repair() {
    check(
        &agent(),
        "
        0ms    mobile  syn ack 0 nack
        1ms    fixed   syn acks 1
        10ms   mobile  1001+1000 ack 1
        10ms   base    at 1 acks 1 missing 1-1001   => loss-notification
        20ms   mobile  3001+1000 ack 1
        20ms   base    at 1 acks 1 missing 2001-3001   => loss-notification
        40ms   mobile  2001+1000 ack 1         # and 1 was lost again
        40ms   base    at 1 acks 1 missing 1-1001   => loss-notification
        60ms   mobile  1+1000 ack 1
        64ms   fixed   at 1 acks 4001
        5000ms end
        ",
    );
}

#[test]
fn silence_brings_a_bounded_number_of_repetitions() {
    check(
        &agent(),
        "
        0ms    mobile  syn ack 0 nack
        1ms    fixed   syn acks 1
        10ms   mobile  1001+1000 ack 1
        10ms   base    at 1 acks 1 missing 1-1001   => loss-notification
        310ms  base    at 1 acks 1 missing 1-1001   => loss-notification
        610ms  base    at 1 acks 1 missing 1-1001   => loss-notification
        910ms  base    at 1 acks 1 missing 1-1001   => loss-notification
        5000ms end
        ",
    );
}

/// A flow ends when its FIN is acknowledged, not at an earlier ACK: missing segments are requested until
/// then.
#[test]
fn a_flow_is_followed_until_its_fin_is_acknowledged() {
    check(
        &agent(),
        "
        0ms    mobile  syn ack 0 nack
        1ms    fixed   syn acks 1
        10ms   mobile  1+1000 ack 1
        11ms   mobile  fin 2001+1000 ack 1     # 1001 was lost
        11ms   base    at 1 acks 1 missing 1001-2001   => loss-notification
        14ms   fixed   at 1 acks 1001
        311ms  base    at 1 acks 1001 missing 1001-2001   => loss-notification
        320ms  mobile  1001+1000 ack 1
        330ms  fixed   at 1 acks 3001          # all but the FIN
        340ms  mobile  4003+1000 ack 1         # as if there were more, so that it shows who is followed
        340ms  base    at 1 acks 3001 missing 3002-4003   => loss-notification
        350ms  mobile  3002+1001 ack 1
        360ms  fixed   at 1 acks 5003
        360ms  note    flow-forgotten
        370ms  mobile  6003+1000 ack 1
        5000ms end
        ",
    );
}

#[test]
fn an_acknowledged_hole_is_not_reported_again() {
    check(
        &agent(),
        "
        0ms    mobile  syn ack 0 nack
        1ms    fixed   syn acks 1
        10ms   mobile  1001+1000 ack 1
        10ms   base    at 1 acks 1 missing 1-1001   => loss-notification
        20ms   fixed   at 1 acks 2001
        5000ms end
        ",
    );
}

/// Bytes that the fixed host received from the mobile host in ten seconds, over a radio that loses 3 %.
fn received(agent: &AgentConfig, nack: bool) -> u64 {
    let tcp = TcpConfig { nack, ..TcpConfig::freebsd_2_1() };
    let wired = Wire { byte: Span(800), delay: Span::micros(200), losses: 0 };
    let radio = Wire { byte: Span::micros(4), delay: Span::millis(1), losses: 30 };
    let mut path = Path::new([&TcpConfig::freebsd_2_1(), &tcp], agent, [wired, radio], 3);
    path.hosts[1].open(FIXED, 9, Time::ZERO, Some(Bytes(50_000_000)), 1);
    path.run_until(Time::ZERO + Span::secs(10));
    assert!(!path.corrupted);
    path.hosts[0].connections()[0].delivered()
}

#[test]
fn nacks_more_than_double_a_mobile_senders_progress() {
    let with = received(&agent(), true);
    // Neither the agent nor the option has an effect alone.
    for without in [received(&AgentConfig::None(Router), true), received(&agent(), false)] {
        assert!(with > 2 * without, "{with} {without}");
    }
}
