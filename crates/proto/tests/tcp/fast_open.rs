//! TCP Fast Open by exchange of segments.

use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::units::Span;
use lasthop_proto::wire::opening::Cookie;

use crate::fine;
use crate::pair::{Pair, SERVER};

fn config() -> TcpConfig {
    TcpConfig { fast_open: true, ..fine() }
}

const FIRST: &str = "
    0ms C S ask
    50ms S S. ack 1 cookie
    100ms C FP. 1+300 ack 1
    150ms S FP. 1+500 ack 302
    200ms C . ack 502
";

#[track_caller]
fn after_first_exchange(lose: fn(&str) -> bool) -> Pair {
    let mut pair = Pair::new(&config(), &config(), lose);
    pair.ask("0ms", "4000ms", FIRST);
    pair
}

const SECOND: &str = "
    5000ms C SP 1+300 cookie
    5050ms S S. ack 301
    5050ms S FP. 1+500 ack 301
    5100ms C F. ack 1
    5100ms C . ack 502
    5150ms S . ack 302
";

#[test]
fn with_a_cookie_data_goes_with_the_syn() {
    //= rfc7413#section-4.2.2
    let mut pair = after_first_exchange(|_| false);
    pair.ask("5000ms", "9000ms", SECOND);
    assert_eq!(pair.times, [Span::millis(200), Span::millis(100)]);
    assert_eq!(pair.delivered, 600);
}

#[test]
fn a_wrong_cookie_costs_the_handshake_and_is_replaced() {
    //= rfc7413#section-4.1.2
    let mut pair = Pair::new(&config(), &config(), |_| false);
    pair.remember(0, |memory| {
        memory.cookies.learn(SERVER, Cookie::new(&[9; 8]).unwrap(), 1000, false)
    });
    pair.ask(
        "0ms",
        "4000ms",
        "
        0ms C SP 1+300 cookie
        50ms S S. ack 1 cookie
        100ms C FP. 1+300 ack 1
        150ms S FP. 1+500 ack 302
        200ms C . ack 502
        ",
    );
    pair.ask("5000ms", "9000ms", SECOND);
    assert_eq!(pair.delivered, 600);
}

#[test]
fn a_lost_syn_goes_again_without_option_and_data() {
    let mut pair = after_first_exchange(|line| line.starts_with("5000ms C"));
    pair.ask(
        "5000ms",
        "9000ms",
        "
        5000ms C SP 1+300 cookie x
        6000ms C S
        6050ms S S. ack 1
        6100ms C FP. 1+300 ack 1
        6150ms S FP. 1+500 ack 302
        6200ms C . ack 502
        ",
    );
}

#[test]
fn a_lost_syn_ack_is_retransmitted_with_following_data() {
    let mut pair = after_first_exchange(|line| line.starts_with("5050ms S S"));
    pair.ask(
        "5000ms",
        "9000ms",
        "
        5000ms C SP 1+300 cookie
        5050ms S S. ack 301 x
        5050ms S FP. 1+500 ack 301
        6000ms C S
        6050ms S SFP. 1+500 ack 301
        6100ms C F. ack 502
        6150ms S . ack 302
        ",
    );
    assert_eq!(pair.delivered, 600, "once each");
}

#[test]
fn a_server_without_fast_open_gets_no_further_cookies() {
    let mut pair = Pair::new(&config(), &fine(), |_| false);
    pair.remember(0, |memory| {
        memory.cookies.learn(SERVER, Cookie::new(&[9; 8]).unwrap(), 1000, false)
    });
    for (at, until, syn) in [(0, "4000ms", "SP 1+300 cookie"), (5000, "9000ms", "S ask")] {
        let lines = format!(
            "
            {at}ms C {syn}
            {}ms S S. ack 1
            {}ms C FP. 1+300 ack 1
            {}ms S FP. 1+500 ack 302
            {}ms C . ack 502
            ",
            at + 50,
            at + 100,
            at + 150,
            at + 200
        );
        pair.ask(&format!("{at}ms"), until, &lines);
    }
}

#[test]
fn a_server_with_another_key_gives_a_new_cookie() {
    let mut pair = after_first_exchange(|_| false);
    pair.restart_server();
    pair.remember(1, |memory| {
        memory.cookies = lasthop_proto::tcp::fast_open::Cookies::new([1, 2]);
    });
    pair.ask(
        "5000ms",
        "9000ms",
        "
        5000ms C SP 1+300 cookie
        5050ms S S. ack 1 cookie
        5100ms C FP. 1+300 ack 1
        5150ms S FP. 1+500 ack 302
        5200ms C . ack 502
        ",
    );
}

#[test]
fn a_duplicate_of_a_syn_is_another_request() {
    //= rfc7413#section-2.1: which is why applications must bear it
    let mut pair = after_first_exchange(|_| false);
    pair.ask("5000ms", "200000ms", SECOND);
    pair.again("5000ms C SP 1+300 cookie");
    pair.wait(
        "201000ms",
        "
        200000ms S S. ack 301
        200000ms S FP. 1+500 ack 301
        200050ms C R
        200050ms C R
        ",
    );
    assert_eq!(pair.delivered, 900, "the application saw it twice");
}
