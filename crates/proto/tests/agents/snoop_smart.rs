//! Selective snoop, mechanism by mechanism.

use lasthop_proto::agent::{AgentConfig, DupAcks, SnoopAgent, SnoopConfig};
use lasthop_proto::units::Span;

use crate::script::check;

fn config() -> SnoopConfig {
    SnoopConfig {
        initial_timeout: Span::millis(500),
        persist: Span::secs(5),
        ..SnoopConfig::west97()
    }
}

fn agent(snoop: SnoopConfig) -> AgentConfig {
    AgentConfig::Snoop(SnoopAgent { snoop, ackp: None })
}

/// Two of five packets are lost; the arguments are the reports in the duplicate ACKs.
fn two_holes(first: &str, second: &str, third: &str) -> String {
    format!(
        "
        0ms    fixed   1+1000
        1ms    fixed   1001+1000         # lost
        2ms    fixed   2001+1000
        3ms    fixed   3001+1000         # lost
        4ms    fixed   4001+1000
        8ms    mobile  ack 1001
        {first}
        {second}
        {third}
        5000ms end
        "
    )
}

#[test]
fn every_hole_is_filled_as_soon_as_it_shows() {
    let script = two_holes(
        "16ms  mobile  ack 1001 sack 2001-3001  => suppressed-dup-ack
         16ms  base    1001+1000                => local-dup-ack",
        "24ms  mobile  ack 1001 sack 4001-5001 sack 2001-3001  => suppressed-dup-ack
         24ms  base    3001+1000                => local-dup-ack",
        "40ms  mobile  ack 5001",
    );
    check(&agent(config().selective()), &script);
}

#[test]
fn plain_snoop_fills_one_hole_at_a_time() {
    // The same packets and reports: the second hole waits until the first one is filled.
    let script = two_holes(
        "16ms  mobile  ack 1001 sack 2001-3001  => suppressed-dup-ack
         16ms  base    1001+1000                => local-dup-ack",
        "24ms  mobile  ack 1001 sack 4001-5001 sack 2001-3001  => suppressed-dup-ack",
        "32ms  mobile  ack 3001
         33ms  mobile  ack 3001                 => suppressed-dup-ack
         33ms  base    3001+1000                => local-dup-ack
         45ms  mobile  ack 5001",
    );
    check(&agent(config()), &script);
}

#[test]
fn smart_reports_work_like_sack_blocks() {
    let script = two_holes(
        "16ms  mobile  ack 1001 caused 2001-    => suppressed-dup-ack
         16ms  base    1001+1000                => local-dup-ack",
        "24ms  mobile  ack 1001 caused 4001-    => suppressed-dup-ack
         24ms  base    3001+1000                => local-dup-ack",
        "40ms  mobile  ack 5001",
    );
    check(&agent(config().selective()), &script);
}

#[test]
fn a_lost_retransmission_shows_when_something_that_followed_it_arrives() {
    check(
        &agent(config().selective()),
        "
        0ms    fixed   1+1000
        1ms    fixed   1001+1000         # lost
        2ms    fixed   2001+1000
        8ms    mobile  ack 1001
        16ms   mobile  ack 1001 sack 2001-3001  => suppressed-dup-ack
        16ms   base    1001+1000                => local-dup-ack  # lost
        17ms   fixed   3001+1000
        30ms   mobile  ack 1001 sack 2001-4001  => suppressed-dup-ack
        30ms   base    1001+1000                => local-dup-ack
        40ms   mobile  ack 4001
        5000ms end
        ",
    );
}

#[test]
fn with_dup_acks_pass_duplicate_acks_reach_the_sender() {
    let passing = SnoopConfig { dup_acks: DupAcks::Pass, ..config().selective() };
    let script = two_holes(
        "16ms  mobile  ack 1001 sack 2001-3001
         16ms  base    1001+1000                => local-dup-ack",
        "24ms  mobile  ack 1001 sack 4001-5001 sack 2001-3001
         24ms  base    3001+1000                => local-dup-ack",
        "40ms  mobile  ack 5001",
    );
    check(&agent(passing), &script);
}

#[test]
fn congestive_losses_are_left_to_the_sender() {
    check(
        &agent(config().selective()),
        "
        0ms    fixed   1+1000
        2ms    fixed   2001+1000         # 1001 never came here
        2ms    note    congestion-hole
        8ms    mobile  ack 1001
        16ms   mobile  ack 1001 sack 2001-3001
        40ms   fixed   1001+1000
        40ms   note    sender-retransmission
        48ms   mobile  ack 3001
        5000ms end
        ",
    );
}

#[test]
fn sack_blocks_of_unsent_data_are_ignored() {
    check(
        &agent(config().selective()),
        "
        0ms    fixed   syn
        1ms    mobile  syn ack 1
        2ms    fixed   1+1000
        3ms    fixed   1001+1000
        4ms    mobile  ack 1 sack 5001-6001 sack 6001-5001   => suppressed-dup-ack
        4ms    base    1+1000                                => local-dup-ack   # as snoop does
        12ms   mobile  ack 2001
        5000ms end
        ",
    );
}
