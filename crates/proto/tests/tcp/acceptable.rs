//! An unacceptable segment changes no state: later segments are accepted as before.

use lasthop_proto::tcp::TcpConfig;

use crate::fine;
use crate::script::check;

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
