//! The sequence cache (west97 7.0).

use lasthop_proto::agent::{AgentConfig, SeqCacheAgent};

use crate::script::check;

const AGENT: AgentConfig = AgentConfig::SeqCache(SeqCacheAgent { flows: 8 });

const OPEN: &str = "
        0ms    fixed   syn eln
        1ms    mobile  syn ack 1
        2ms    fixed   at 1
        3ms    fixed   1+1000
        11ms   mobile  at 1 ack 1001
";

#[test]
fn a_wireless_loss_is_notified_once_and_its_duplicate_acks_are_hidden() {
    check(
        &AGENT,
        &format!(
            "{OPEN}
            12ms   fixed   1001+1000              # lost
            13ms   fixed   2001+1000
            14ms   fixed   3001+1000
            20ms   mobile  at 1 ack 1001          => suppressed-dup-ack
            20ms   base    at 1 ack 1001 lost 1001  => loss-notification
            28ms   mobile  at 1 ack 1001          => suppressed-dup-ack
            30ms   fixed   1001+1000
            30ms   note    sender-retransmission
            38ms   mobile  at 1 ack 4001
            5000ms end
            "
        ),
    );
}

#[test]
fn a_lost_retransmission_is_a_new_loss() {
    check(
        &AGENT,
        &format!(
            "{OPEN}
            12ms   fixed   1001+1000              # lost
            13ms   fixed   2001+1000
            20ms   mobile  at 1 ack 1001          => suppressed-dup-ack
            20ms   base    at 1 ack 1001 lost 1001  => loss-notification
            30ms   fixed   1001+1000              # lost again
            30ms   note    sender-retransmission
            31ms   fixed   3001+1000
            39ms   mobile  at 1 ack 1001          => suppressed-dup-ack
            39ms   base    at 1 ack 1001 lost 1001  => loss-notification
            45ms   fixed   1001+1000              # and again, with nothing behind it
            45ms   note    sender-retransmission
            145ms  base    at 1 ack 1001 lost 1001  => loss-notification
            150ms  fixed   1001+1000
            150ms  note    sender-retransmission
            158ms  mobile  at 1 ack 4001
            5000ms end
            "
        ),
    );
}

#[test]
fn a_local_timeout_is_notified() {
    check(
        &AGENT,
        &format!(
            "{OPEN}
            12ms   fixed   1001+1000              # lost
            112ms  base    at 1 ack 1001 lost 1001  => loss-notification
            120ms  fixed   1001+1000
            120ms  note    sender-retransmission
            128ms  mobile  at 1 ack 2001
            5000ms end
            "
        ),
    );
}

#[test]
fn a_congestive_loss_is_the_senders_matter() {
    check(
        &AGENT,
        &format!(
            "{OPEN}
            13ms   fixed   2001+1000
            13ms   note    congestion-hole
            20ms   mobile  at 1 ack 1001
            21ms   mobile  at 1 ack 1001
            30ms   fixed   1001+1000
            30ms   note    sender-retransmission
            31ms   mobile  at 1 ack 1001          # the sender retransmitted by itself and expects it
            38ms   mobile  at 1 ack 3001
            5000ms end
            "
        ),
    );
}

#[test]
fn without_the_option_it_is_a_router() {
    check(
        &AGENT,
        "
        0ms    fixed   syn
        1ms    mobile  syn ack 1
        12ms   fixed   1+1000                     # lost
        13ms   fixed   1001+1000
        20ms   mobile  at 1 ack 1
        21ms   mobile  at 1 ack 1
        22ms   mobile  at 1 ack 1 ip-damage       => ip-checksum
        5000ms end
        ",
    );
}

#[test]
fn old_acks_and_answers_to_old_data() {
    check(
        &AGENT,
        &format!(
            "{OPEN}
            12ms   fixed   1001+1000
            20ms   mobile  at 1 ack 2001
            21ms   mobile  at 1 ack 1001          => spurious-ack
            30ms   fixed   1001+1000
            30ms   note    sender-retransmission
            38ms   mobile  at 1 ack 2001
            40ms   fixed   fin at 2001
            48ms   mobile  at 1 ack 2002
            48ms   note    flow-forgotten
            5000ms end
            "
        ),
    );
}
