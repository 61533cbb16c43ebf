//! Accurate ECN (RFC 9768): the handshake's table, counters, and a sender's reaction.

use lasthop_proto::tcp::{AccurateEcn, DelayedAck, TcpConfig, Variant};
use lasthop_proto::units::Span;

use crate::script::check;
use crate::{fine, sender};

fn accurate(config: TcpConfig) -> TcpConfig {
    TcpConfig {
        accurate_ecn: AccurateEcn::Ace,
        delayed_ack: DelayedAck { every: 1, timeout: Span::ZERO },
        ..config
    }
}

fn with_option(config: TcpConfig) -> TcpConfig {
    TcpConfig { accurate_ecn: AccurateEcn::Option, ..accurate(config) }
}

//= rfc9768#section-3.1.2: Table 2, the rows of a client that offers accurate ECN
#[test]
fn the_client_mode_follows_the_syn_ack_flags() {
    // AE, CWR and ECE of the SYN-ACK; those of the ACK of a SYN-ACK without ECT, and of data; may data be marked?
    for (answer, ack, data, ect) in [
        ("S.W", ".W", "P.Ee", " ect"),
        ("S.EW", ".W", "P.Ee", " ect"),
        ("S.e", ".W", "P.Ee", " ect"),
        ("S.We", ".W", "P.Ee", " ect"),
        // Classic ECN, a nonce, none, and a host that reflects unknown flags.
        ("S.E", "", "P.", " ect"),
        ("S.Ee", "", "P.", " ect"),
        ("S.", "", "P.", ""),
        ("S.EWe", "", "P.", ""),
    ] {
        let reflected = if ack.is_empty() { String::new() } else { format!("10ms > {ack} ack 1") };
        check(
            &accurate(fine()),
            &format!(
                "
                0ms    open 1000
                0ms    > SEWe mss 1000
                10ms   < {answer} ack 1 mss 1000
                10ms   note Established
                {reflected}
                10ms   > {data} 1+1000 ack 1{ect}
                15ms   end
                "
            ),
        );
    }
}

//= rfc9768#section-3.1.2: Table 2, by the IP header of the SYN
//= rfc9768#section-3.1.3: what means nothing yet is taken for the offer
#[test]
fn the_server_mode_follows_the_syn_flags() {
    for (offer, answer, counts) in [
        ("SEWe mss 1000", "S.W", true),
        ("SEWe mss 1000 ect1", "S.EW", true),
        ("SEWe mss 1000 ect", "S.e", true),
        // The answer reports the mark of a SYN, which is not counted.
        ("SEWe mss 1000 ce", "S.We", true),
        ("SE mss 1000", "S.W", true),
        ("Se mss 1000", "S.W", true),
        ("SW mss 1000", "S.W", true),
        ("SEe mss 1000", "S.W", true),
        ("SWe mss 1000", "S.W", true),
        ("SEW mss 1000", "S.E", false),
        ("S mss 1000", "S.", false),
    ] {
        let ack = if counts { ".Ee" } else { "." };
        check(
            &accurate(fine()),
            &format!(
                "
                0ms    < {offer}
                0ms    > {answer} ack 1 mss 1000
                10ms   < .W ack 1
                10ms   note Established
                20ms   < {ack} 1+1000 ack 1
                20ms   note Delivered {{ bytes: 1000 }}
                20ms   > {ack} ack 1001
                30ms   end
                "
            ),
        );
    }
}

//= rfc3168#section-6.1.1.1: a host may send the SYN again without ECN
#[test]
fn an_unanswered_syn_is_retransmitted_without_accurate_ecn() {
    check(
        &accurate(fine()),
        "
        0ms    open 1000
        0ms    > SEWe mss 1000
        1000ms note Timeout
        1000ms > S mss 1000
        1010ms < S.W ack 1 mss 1000        # the answer to the first one, perhaps
        1010ms note Established
        1010ms > P. 1+1000 ack 1
        1020ms end
        ",
    );
}

//= rfc9768#section-3.2.2.1: Table 4: a server whose first ACK has a field of zero sends without ECT
//= rfc9768#section-3.2.2.2: CE on the SYN-ACK counts at both ends
#[test]
fn marked_syn_acks_are_reported_twice_and_counted_once() {
    check(
        &accurate(fine()),
        "
        0ms    open 1000
        0ms    > SEWe mss 1000
        10ms   < S.W ack 1 mss 1000 ce
        10ms   note Established
        10ms   > .We ack 1
        10ms   > P.We 1+1000 ack 1 ect
        15ms   end
        ",
    );
}

//= rfc9768#section-3.2.2: the field is the count of CE packets, modulo 8; no CWR ends it
//= rfc9768#section-3.2.2.5.1: the first CE after none is reported at once, then every second
#[test]
fn a_receiver_counts_marks() {
    let lazy = TcpConfig {
        delayed_ack: DelayedAck { every: 100, timeout: Span::millis(500) },
        ..accurate(fine())
    };
    check(
        &lazy,
        "
        0ms    < SEWe mss 1000
        0ms    > S.W ack 1 mss 1000
        10ms   < .W ack 1
        10ms   note Established
        20ms   < .Ee 1+1000 ack 1 ect
        20ms   note Delivered { bytes: 1000 }
        21ms   < .Ee 1001+1000 ack 1 ce
        21ms   note Delivered { bytes: 1000 }
        21ms   > .We ack 2001
        22ms   < .Ee 2001+1000 ack 1 ce
        22ms   note Delivered { bytes: 1000 }
        23ms   < .Ee 3001+1000 ack 1 ce
        23ms   note Delivered { bytes: 1000 }
        23ms   > . ack 4001                # 5 + 3 is 0
        24ms   < .Ee 4001+1000 ack 1 ect
        24ms   note Delivered { bytes: 1000 }
        25ms   < .Ee 5001+1000 ack 1 ce
        25ms   note Delivered { bytes: 1000 }
        25ms   > .E ack 6001
        30ms   end
        ",
    );
}

//= rfc9768#section-3.2.3: bytes with ECT(0), CE and ECT(1), from 1, 0 and 1 on
#[test]
fn a_receiver_counts_bytes_where_there_is_room() {
    check(
        &TcpConfig { sack: true, timestamps: true, ..with_option(fine()) },
        "
        0ms    < SEWe mss 1000 sackok ts 100 0
        0ms    > S.W ack 1 mss 1000 sackok ts 0 100 counts ect0[1, 0, 1]
        10ms   < .W ack 1 ts 110 0
        10ms   note Established
        20ms   < .Ee 1+1000 ack 1 ts 120 0 ect
        20ms   note Delivered { bytes: 1000 }
        20ms   > .Ee ack 1001 ts 20 120 counts ect0[1001, 0, 1]
        21ms   < .Ee 2001+1000 ack 1 ts 120 0 ect
        21ms   > .Ee ack 1001 ts 21 120 sack 2001-3001 counts ect0[2001, 0, 1]
        22ms   < .Ee 4001+1000 ack 1 ts 120 0 ce
        22ms   > .We ack 1001 ts 22 120 sack 4001-5001 sack 2001-3001 counts ect0[2001, 1000]
        23ms   < .Ee 6001+1000 ack 1 ts 120 0 ce
        23ms   > .EWe ack 1001 ts 23 120 sack 6001-7001 sack 4001-5001 sack 2001-3001
        30ms   end
        ",
    );
}

/// Without proportional reduction, any number of marks acts as one loss per window; reports do not end with
/// CWR.
#[test]
fn a_sender_halves_its_window_for_a_count() {
    check(
        &accurate(sender(Variant::Reno, 8)),
        "
        0ms    open
        0ms    > SEWe mss 1000
        10ms   < S.W ack 1 mss 1000
        10ms   note Established
        10ms   > .W ack 1
        10ms   > .Ee 1+1000 x8 ack 1 ect
        20ms   < .We ack 1001
        20ms   note CongestionEchoed
        20ms   tcb cwnd 3000 ssthresh 3000
        21ms   < .EWe ack 2001             # of the same window
        21ms   tcb cwnd 4000 ssthresh 3000
        22ms   < .EWe ack 5001             # nothing new
        22ms   > .Ee 8001+1000 ack 1 ect
        23ms   < .EWe ack 8001
        23ms   > .Ee 9001+1000 x3 ack 1 ect
        24ms   < . ack 9001                # 8 is 0: one more
        24ms   note CongestionEchoed
        30ms   end
        ",
    );
}

/// The acknowledgements of two windows are lost, and one arrives that may mean eight marks: it counts as
/// some.
#[test]
fn a_lost_ack_loses_no_count() {
    check(
        &accurate(sender(Variant::Reno, 8)),
        "
        0ms    open
        0ms    > SEWe mss 1000
        10ms   < S.W ack 1 mss 1000
        10ms   note Established
        10ms   > .W ack 1
        10ms   > .Ee 1+1000 x8 ack 1 ect
        20ms   < .Ee ack 8001              # the field is where it was, but eight packets may have moved it round
        20ms   note CongestionEchoed
        20ms   > .Ee 8001+1000 x2 ack 1 ect
        30ms   end
        ",
    );
}

//= rfc9768#section-3.2.2.1: Table 4: zero on the first ACK
#[test]
fn after_a_zero_ace_a_server_still_counts_marks() {
    check(
        &accurate(fine()),
        "
        0ms    < SEWe mss 1000
        0ms    > S.W ack 1 mss 1000
        10ms   < . ack 1
        10ms   note Established
        20ms   < . 1+1000 ack 1 ce
        20ms   note Delivered { bytes: 1000 }
        20ms   > .We ack 1001              # it goes on counting
        30ms   end
        ",
    );
}
