//! Partial acknowledgements, packet for packet (west97 3.3).

use lasthop_proto::agent::{AckpMode, AgentConfig, SeqCacheAgent, SnoopAgent, SnoopConfig};
use lasthop_proto::units::Span;

use crate::script::check;

fn ackp(mode: AckpMode) -> AgentConfig {
    let snoop = SnoopConfig {
        initial_timeout: Span::millis(100),
        persist: Span::secs(1),
        ..SnoopConfig::west97()
    };
    AgentConfig::Snoop(SnoopAgent { snoop, ackp: Some(mode) })
}

/// A connection whose sender requests partial acknowledgements, with packets 1 to 4 of 1000 bytes to follow.
const OPEN: &str = "
        0ms    fixed   syn ackp
        1ms    mobile  syn ack 1
        2ms    fixed   at 1
";

#[test]
fn without_errors_no_partial_ack_is_sent() {
    check(
        &ackp(AckpMode::Full),
        &format!(
            "{OPEN}
            10ms   fixed   1+1000
            11ms   fixed   1001+1000
            18ms   mobile  at 1 ack 1001
            26ms   mobile  at 1 ack 2001
            5000ms end
            "
        ),
    );
}

#[test]
fn scenario_1_the_highest_packet_in_order_is_acknowledged() {
    // Figure 5: packets 1 to 3 are acknowledged, packet 4 is delayed.
    check(
        &ackp(AckpMode::Full),
        &format!(
            "{OPEN}
            10ms   fixed   1+1000
            11ms   fixed   1001+1000
            12ms   fixed   2001+1000
            20ms   mobile  at 1 ack 3001
            21ms   fixed   3001+1000              # lost
            121ms  base    3001+1000              => local-timeout
            121ms  base    at 1 ack 4001 partial  => partial-ack
            221ms  base    3001+1000              => local-timeout    # no news since: lastackp
            230ms  mobile  at 1 ack 4001
            5000ms end
            "
        ),
    );
}

#[test]
fn one_partial_ack_covers_all_cached_packets() {
    check(
        &ackp(AckpMode::Full),
        &format!(
            "{OPEN}
            10ms   fixed   1+1000                 # lost, with all that follow
            11ms   fixed   1001+1000
            12ms   fixed   2001+1000
            110ms  base    1+1000                 => local-timeout
            110ms  base    at 1 ack 3001 partial  => partial-ack
            150ms  fixed   3001+1000
            210ms  base    1+1000                 => local-timeout
            210ms  base    at 1 ack 4001 partial  => partial-ack
            220ms  mobile  at 1 ack 4001
            5000ms end
            "
        ),
    );
}

#[test]
fn scenario_2_no_partial_ack_behind_a_congestive_loss() {
    // Figure 6: packet 4 arrives, packets 2 and 3 were lost before the base station.
    check(
        &ackp(AckpMode::Full),
        &format!(
            "{OPEN}
            10ms   fixed   1+1000
            18ms   mobile  at 1 ack 1001
            20ms   fixed   3001+1000
            20ms   note    congestion-hole
            300ms  fixed   1001+1000              # the sender's timer
            300ms  note    sender-retransmission
            301ms  fixed   2001+1000
            301ms  note    sender-retransmission
            310ms  mobile  at 1 ack 4001
            5000ms end
            "
        ),
    );
}

#[test]
fn scenario_3_one_partial_ack_covers_a_filled_hole() {
    // Figure 7: packet 3 fills the hole before packet 4.
    check(
        &ackp(AckpMode::Full),
        &format!(
            "{OPEN}
            10ms   fixed   1+1000
            11ms   fixed   1001+1000
            20ms   mobile  at 1 ack 2001
            21ms   fixed   3001+1000
            21ms   note    congestion-hole
            29ms   mobile  at 1 ack 2001          # the sender sees it
            30ms   fixed   2001+1000              # lost on the wireless link this time
            30ms   note    sender-retransmission
            130ms  base    2001+1000              => local-timeout
            130ms  base    at 1 ack 4001 partial  => partial-ack
            140ms  mobile  at 1 ack 4001
            5000ms end
            "
        ),
    );
}

#[test]
fn a_sender_without_the_option_gets_no_partial_acks() {
    let lossy = "
        0ms    fixed   syn
        1ms    mobile  syn ack 1
        10ms   fixed   1+1000                     # lost
        110ms  base    1+1000                     => local-timeout
        120ms  mobile  at 1 ack 1001
        5000ms end
        ";
    check(&ackp(AckpMode::Full), lossy);
    // Neither does a connection with an unseen SYN.
    let unseen: String =
        lossy.lines().filter(|l| !l.contains("syn")).collect::<Vec<_>>().join("\n");
    check(&ackp(AckpMode::Full), &unseen);
}

#[test]
fn the_first_implementation_sends_a_partial_ack_per_packet() {
    check(
        &ackp(AckpMode::EveryPacket),
        "
        0ms    fixed   syn
        1ms    mobile  syn ack 1
        10ms   fixed   1+1000
        10ms   base    at 1 ack 1001 partial      => partial-ack
        11ms   fixed   1001+1000
        11ms   base    at 1 ack 2001 partial      => partial-ack
        18ms   mobile  at 1 ack 1001
        26ms   mobile  at 1 ack 2001
        5000ms end
        ",
    );
}

#[test]
fn partial_acks_of_other_stations_pass_and_are_ignored() {
    // A case of the integrity test: an agent closer to the sender took it for the receiver's acknowledgement.
    let script = "
        0ms    fixed   syn ackp eln
        1ms    mobile  syn ack 1 eln
        10ms   fixed   1+1000
        11ms   mobile  at 1 ack 1001 partial
        12ms   mobile  at 1 ack 1001 partial
        18ms   mobile  at 1 ack 1001              # neither old nor a duplicate
        5000ms end
        ";
    check(&ackp(AckpMode::Full), script);
    check(&AgentConfig::SeqCache(SeqCacheAgent { flows: 4 }), script);
}
