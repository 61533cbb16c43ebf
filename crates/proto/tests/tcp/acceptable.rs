//! An unacceptable segment changes no state: later segments are accepted as before.

use lasthop_proto::tcp::{GrowthRule, TcpConfig, Variant};
use lasthop_proto::units::Span;

use crate::script::check;
use crate::{fine, sender};

/// Each segment carries a timestamp far ahead of the peer's clock, and none is acceptable.
#[test]
fn the_timestamp_of_a_segment_that_is_not_accepted_is_not_stored() {
    let answer = "500ms > . at 989 ack 1 ts 500 5001\n";
    for (bad, answer) in [
        // An ACK of data that was never sent, on segments in sequence.
        ("< . ack 9999", answer),
        ("< F. ack 9999", answer),
        ("< . 1+700 ack 9999", answer),
        ("< P. 1+700 ack 990", answer),
        // An ACK from before the largest window.
        ("< . 1+700 ack 4294900000", answer),
        // Data without an ACK, outside the window, or behind it.
        ("< P 1+700", ""),
        ("< . 40001+100 ack 989", answer),
        ("< . at 0 ack 989", answer),
        ("< . at 32002 ack 989", answer),
        // A SYN or an RST inside the window.
        ("< S at 5", answer),
        ("< R. at 5 ack 989", answer),
    ] {
        check(
            &TcpConfig { timestamps: true, ..fine() },
            &format!(
                "
                100ms  established ts 0 0 / ts 5000 0
                100ms  > . 1+988 ack 1 ts 100 5000
                200ms  < . ack 989 ts 5001 100
                200ms  > . 989+988 ack 1 ts 200 5001
                200ms  > . 1977+988 ack 1 ts 200 5001
                210ms  < . ack 2965 ts 5001 200
                210ms  > . 2965+988 x3 ack 1 ts 210 5001
                220ms  < . ack 5929 ts 5001 210 win 0
                500ms  {} ts 1000000000 210
                {}
                800ms  < . 1+700 ack 5929 win 0 ts 5700 210
                800ms  note Delivered {{ bytes: 700 }}
                900ms  end
                ",
                bad.replace("ack 989", "ack 5929").replace("ack 990", "ack 5930"),
                answer.replace("at 989", "at 5929"),
            ),
        );
    }
}

/// Windows of eight segments, and RACK, by the rules of `growth`.
fn rack(growth: GrowthRule) -> TcpConfig {
    let rto_min = Span::millis(200);
    TcpConfig { sack: true, timestamps: true, growth, rto_min, ..sender(Variant::Rack, 8) }
}

/// ACKs that others have overtaken have older timestamps. Each of these reports three segments, and begins a recovery if it
/// is accepted.
fn overtaken(growth: GrowthRule, last: &str, late: &str, answer: &str) {
    let pairs = if growth == GrowthRule::Linux { "pairs " } else { "" };
    check(
        &rack(growth),
        &format!(
            "
            100ms  established 7904 sackok ts 0 0
            100ms  > . 1+988 x7 {pairs}ack 1 ts 100 0
            100ms  > P. 6917+988 ack 1 ts 100 0
            200ms  {last}
            200ms  {late}
            {answer}
            201ms  end
            "
        ),
    );
}

/// What Linux 6.18 accepts (`tcp_disordered_ack_check`): a duplicate ACK in sequence that leaves the window as it is and is no
/// older than 1.2 timeouts, here of 300 ms. One unit of time is no difference.
#[test]
fn linux_accepts_duplicate_acks_that_others_have_overtaken() {
    let last = "< . ack 1 ts 1000 100";
    let repairs = "200ms  note FastRetransmit
                   200ms  > . 1+988 ack 1 ts 200 1000 => fast-retransmit";
    let challenged = "200ms  > . at 7905 ack 1 ts 200 1000";
    let linux = GrowthRule::Linux;
    for (late, answer) in [
        ("< . ack 1 sack 989-3953 ts 990 100", repairs),
        ("< . ack 1 sack 989-3953 ts 650 100", repairs),
        ("< . ack 1 win 31999 sack 989-3953 ts 990 100", repairs),
        ("< . ack 1 win 32001 sack 989-3953 ts 999 100", repairs),
        ("< . ack 1 sack 989-3953 ts 600 100", challenged),
        ("< . ack 1 win 32001 sack 989-3953 ts 990 100", challenged),
        ("< . ack 1 win 0 sack 989-3953 ts 990 100", challenged),
        ("< . at 2 ack 1 sack 989-3953 ts 990 100", challenged),
        ("< . 1+100 ack 1 sack 989-3953 ts 990 100", challenged),
        ("< . ack 989 sack 1977-4941 ts 990 100", challenged),
    ] {
        overtaken(linux, last, late, answer);
    }
    // RFC 7323 has no such exception.
    overtaken(GrowthRule::Rfc5681, last, "< . ack 1 sack 989-3953 ts 990 100", challenged);
    overtaken(GrowthRule::Rfc5681, last, "< . ack 1 sack 989-3953 ts 999 100", challenged);
}

/// The timestamp that is echoed, and the window, do not go back with a late ACK.
#[test]
fn a_late_ack_takes_neither_the_timestamp_nor_the_window_back() {
    check(
        &rack(GrowthRule::Linux),
        "
        100ms  established 20000 sackok ts 0 0
        100ms  > . 1+988 x8 pairs ack 1 ts 100 0
        200ms  < . ack 989 win 8892 ts 1000 100
        200ms  > . 7905+988 ack 1 ts 200 1000
        200ms  > P. 8893+988 ack 1 ts 200 1000
        201ms  < . ack 989 win 2000 ts 990 100     # the window of before
        202ms  < . ack 1977 win 8892 ts 1001 100
        202ms  > . 9881+988 ack 1 ts 202 1001
        203ms  end
        ",
    );
}
