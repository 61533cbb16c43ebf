//! T/TCP by exchange of segments: between a client and a server, and for one end against a script.

use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::tcp::opening::Memory;
use lasthop_proto::tcp::state::State;
use lasthop_proto::tcp::t_tcp::Counts;
use lasthop_proto::units::Span;

use crate::fine;
use crate::pair::{CLIENT, Pair, SERVER};
use crate::script::check_with;

fn config() -> TcpConfig {
    TcpConfig { t_tcp: true, ..fine() }
}

fn plain() -> TcpConfig {
    fine()
}

/// A client whose first count is 7, and a server whose first is 101.
fn pair(lose: fn(&str) -> bool) -> Pair {
    let mut pair = Pair::new(&config(), &config(), lose);
    pair.remember(0, |memory| memory.counts = Counts::new(6));
    pair.remember(1, |memory| memory.counts = Counts::new(100));
    pair
}

/// The first exchange of a pair, after which both have stored each other's state.
const FIRST: &str = "
    0ms C SFP 1+300 ccnew 7
    50ms S S. ack 1 cc 101 ccecho 7
    100ms C . ack 1 cc 7
    150ms S FP. 1+500 ack 302 cc 101
    200ms C . ack 502 cc 7
";

#[track_caller]
fn after_first_exchange(lose: fn(&str) -> bool) -> Pair {
    let mut pair = pair(lose);
    pair.ask("0ms", "4000ms", FIRST);
    pair
}

#[test]
fn from_the_second_exchange_on_there_is_no_handshake_and_three_segments_do() {
    //= rfc1644#section-2.2
    let mut pair = after_first_exchange(|_| false);
    pair.ask(
        "5000ms",
        "9000ms",
        "
        5000ms C SFP 1+300 cc 8
        5050ms S SFP. 1+500 ack 302 cc 102 ccecho 8
        5100ms C . ack 502 cc 8
        ",
    );
    assert_eq!(pair.times, [Span::millis(200), Span::millis(100)]);
    assert_eq!(pair.delivered, 600);
}

#[test]
fn a_lost_syn_goes_again_with_its_data_and_its_count() {
    let mut pair = after_first_exchange(|line| line.starts_with("5000ms C"));
    pair.ask(
        "5000ms",
        "9000ms",
        "
        5000ms C SFP 1+300 cc 8 x
        6000ms C SFP 1+300 cc 8
        6050ms S SFP. 1+500 ack 302 cc 102 ccecho 8
        6100ms C . ack 502 cc 8
        ",
    );
}

#[test]
fn a_lost_syn_ack_goes_again_with_the_answer() {
    let mut pair = after_first_exchange(|line| line.starts_with("5050ms S"));
    pair.ask(
        "5000ms",
        "9000ms",
        "
        5000ms C SFP 1+300 cc 8
        5050ms S SFP. 1+500 ack 302 cc 102 ccecho 8 x
        6000ms C SFP 1+300 cc 8
        6050ms S SFP. 1+500 ack 302 cc 102 ccecho 8
        6100ms C . ack 502 cc 8
        ",
    );
    assert_eq!(pair.delivered, 600, "once each");
}

#[test]
fn a_lost_syn_ack_of_a_handshake_goes_again_and_the_data_that_waits_does_not() {
    let mut pair = pair(|line| line.starts_with("50ms S"));
    pair.ask(
        "0ms",
        "4000ms",
        "
        0ms C SFP 1+300 ccnew 7
        50ms S S. ack 1 cc 101 ccecho 7 x
        1000ms C SFP 1+300 ccnew 7
        1050ms S S. ack 1 cc 101 ccecho 7
        1100ms C . ack 1 cc 7
        1150ms S FP. 1+500 ack 302 cc 101
        1200ms C . ack 502 cc 7
        ",
    );
    assert_eq!(pair.delivered, 300);
}

#[test]
fn a_retransmitted_fin_brings_the_lost_ack_again() {
    let mut pair = after_first_exchange(|line| line.starts_with("5100ms C"));
    pair.ask(
        "5000ms",
        "9000ms",
        "
        5000ms C SFP 1+300 cc 8
        5050ms S SFP. 1+500 ack 302 cc 102 ccecho 8
        5100ms C . ack 502 cc 8 x
        6050ms S SFP. 1+500 ack 302 cc 102 ccecho 8
        6100ms C . ack 502 cc 8
        ",
    );
}

#[test]
fn a_lost_fin_goes_again() {
    let mut pair = pair(|line| line.starts_with("150ms S"));
    pair.ask(
        "0ms",
        "4000ms",
        "
        0ms C SFP 1+300 ccnew 7
        50ms S S. ack 1 cc 101 ccecho 7
        100ms C . ack 1 cc 7
        150ms S FP. 1+500 ack 302 cc 101 x
        1100ms C FP. 1+300 ack 1 cc 7
        1150ms S . ack 302 cc 101
        1150ms S FP. 1+500 ack 302 cc 101
        1200ms C . ack 502 cc 7
        ",
    );
}

#[test]
fn an_old_syn_is_not_taken_for_a_new_one() {
    //= rfc1644#section-2.3
    let mut pair = after_first_exchange(|_| false);
    pair.ask(
        "5000ms",
        "20000ms",
        "
        5000ms C SFP 1+300 cc 8
        5050ms S SFP. 1+500 ack 302 cc 102 ccecho 8
        5100ms C . ack 502 cc 8
        ",
    );
    pair.again("5000ms C SFP 1+300 cc 8");
    pair.wait(
        "30000ms",
        "
        20000ms S S. ack 1 cc 103 ccecho 8
        20050ms C R
        ",
    );
    assert_eq!(pair.delivered, 600, "the application did not see it again");
    pair.ask(
        "31000ms",
        "40000ms",
        "
        31000ms C SFP 1+300 cc 9
        31050ms S SFP. 1+500 ack 302 cc 104 ccecho 9
        31100ms C . ack 502 cc 9
        ",
    );
}

#[test]
fn a_syn_that_another_has_overtaken_opens_by_a_handshake() {
    let mut pair = after_first_exchange(|line| line.starts_with("5000ms C"));
    pair.ask("5000ms", "5010ms", "5000ms C SFP 1+300 cc 8 x");
    pair.ask(
        "5020ms",
        "9000ms",
        "
        5020ms C SFP 1+300 cc 9
        5070ms S SFP. 1+500 ack 302 cc 102 ccecho 9
        5120ms C . ack 502 cc 9
        6000ms C SFP 1+300 cc 8
        6050ms S S. ack 1 cc 103 ccecho 8
        6100ms C . ack 1 cc 8
        6150ms S FP. 1+500 ack 302 cc 103
        6200ms C . ack 502 cc 8
        ",
    );
}

#[test]
fn a_server_without_counts_gets_the_request_after_the_handshake() {
    //= rfc1644#section-2.5
    let mut pair = Pair::new(&config(), &plain(), |_| false);
    pair.remember(0, |memory| memory.counts = Counts::new(6));
    for (at, until, count) in [(0, "4000ms", 7), (5000, "9000ms", 8)] {
        let lines = format!(
            "
            {at}ms C SFP 1+300 ccnew {count}
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
    assert_eq!(pair.times, [Span::millis(200); 2], "as ever");
}

#[test]
fn a_client_without_counts_is_served_after_a_handshake() {
    let mut pair = Pair::new(&plain(), &config(), |_| false);
    pair.ask(
        "0ms",
        "4000ms",
        "
        0ms C S
        50ms S S. ack 1
        100ms C FP. 1+300 ack 1
        150ms S FP. 1+500 ack 302
        200ms C . ack 502
        ",
    );
}

#[test]
fn a_server_without_cached_counts_requires_one_handshake() {
    let mut pair = after_first_exchange(|_| false);
    pair.restart_server();
    pair.remember(1, |memory| memory.counts = Counts::new(100));
    pair.ask(
        "5000ms",
        "9000ms",
        "
        5000ms C SFP 1+300 cc 8
        5050ms S S. ack 1 cc 101 ccecho 8
        5100ms C . ack 1 cc 8
        5150ms S FP. 1+500 ack 302 cc 101
        5200ms C . ack 502 cc 8
        ",
    );
    pair.ask(
        "10000ms",
        "14000ms",
        "
        10000ms C SFP 1+300 cc 9
        10050ms S SFP. 1+500 ack 302 cc 102 ccecho 9
        10100ms C . ack 502 cc 9
        ",
    );
}

#[test]
fn a_client_with_lost_counts_resets_the_server_cache() {
    let mut pair = after_first_exchange(|_| false);
    pair.remember(0, |memory| memory.counts = Counts::new(0));
    pair.ask(
        "5000ms",
        "9000ms",
        "
        5000ms C SFP 1+300 ccnew 1
        5050ms S S. ack 1 cc 102 ccecho 1
        5100ms C . ack 1 cc 1
        5150ms S FP. 1+500 ack 302 cc 102
        5200ms C . ack 502 cc 1
        ",
    );
    pair.ask(
        "10000ms",
        "14000ms",
        "
        10000ms C SFP 1+300 cc 2
        10050ms S SFP. 1+500 ack 302 cc 103 ccecho 2
        10100ms C . ack 502 cc 2
        ",
    );
}

#[test]
fn counts_wrap() {
    let mut pair = pair(|_| false);
    pair.remember(0, |memory| memory.counts = Counts::new(u32::MAX - 1));
    pair.ask(
        "0ms",
        "4000ms",
        "
        0ms C SFP 1+300 ccnew 4294967295
        50ms S S. ack 1 cc 101 ccecho 4294967295
        100ms C . ack 1 cc 4294967295
        150ms S FP. 1+500 ack 302 cc 101
        200ms C . ack 502 cc 4294967295
        ",
    );
    pair.ask(
        "5000ms",
        "9000ms",
        "
        5000ms C SFP 1+300 cc 1
        5050ms S SFP. 1+500 ack 302 cc 102 ccecho 1
        5100ms C . ack 502 cc 1
        ",
    );
}

/// The memory of a host that knows its peer: the last count received was 5, and the peer has confirmed one
/// count of this host.
fn memory_with_peer_counts() -> Memory {
    let mut memory = Memory::new(&mut lasthop_proto::rng::Stream::new(1, "test"));
    memory.counts = Counts::new(40);
    // In scripts the peer always has the same address.
    memory.counts.validate(CLIENT, 5);
    memory.counts.echoed(CLIENT, Some(40));
    assert_ne!(CLIENT, SERVER);
    memory
}

#[test]
fn segments_with_another_connection_count_are_rejected() {
    //= rfc1644#section-3.4
    check_with(
        &config(),
        Some(&memory_with_peer_counts()),
        "
        0ms    < S mss 1000 cc 6
        0ms    note Established
        0ms    > S. ack 1 mss 1000 cc 41 ccecho 6
        10ms   < . ack 1 cc 6
        20ms   < . 1+500 ack 1 cc 5         # a segment of the connection before
        20ms   > . ack 1 cc 41
        30ms   < . 1+500 ack 1              # or one from before there were counts
        30ms   > . ack 1 cc 41
        40ms   < . 1+500 ack 1 cc 6
        40ms   note Delivered { bytes: 500 }
        200ms  end
        ",
    );
}

#[test]
fn a_syn_ack_echoing_another_count_is_ignored() {
    check_with(
        &config(),
        Some(&memory_with_peer_counts()),
        "
        0ms    open 300
        0ms    > SFP 1+300 mss 1000 cc 41
        10ms   < S. ack 1 mss 1000 cc 9 ccecho 40
        20ms   < S. ack 302 mss 1000 cc 9 ccecho 41
        20ms   note Established
        20ms   note Complete
        20ms   > . at 302 ack 1 cc 41
        90ms   end
        ",
    );
}

#[test]
fn a_multi_segment_request_continues_after_the_syn() {
    check_with(
        &TcpConfig { initial_window: 4, ..config() },
        Some(&memory_with_peer_counts()),
        "
        0ms    open 2000
        0ms    > S 1+524 mss 1000 cc 41     # nothing is known of the peer's segments: 536, less the options
        10ms   < S. ack 525 mss 1000 cc 9 ccecho 41
        10ms   note Established
        10ms   > . 525+992 ack 1 cc 41
        10ms   > FP. 1517+484 ack 1 cc 41
        90ms   end
        ",
    );
}

#[test]
fn time_wait_lasts_eight_time_outs_after_a_short_connection() {
    //= rfc1644#section-2.4
    let state = |pair: &Pair| pair.client().connections()[1].state();
    let mut pair = after_first_exchange(|_| false);
    let lines = "
        5000ms C SFP 1+300 cc 8
        5050ms S SFP. 1+500 ack 302 cc 102 ccecho 8
        5100ms C . ack 502 cc 8
    ";
    // The timeout is the minimum, a second.
    pair.ask("5000ms", "13090ms", lines);
    assert_eq!(state(&pair), State::TimeWait);
    pair.wait("13100ms", "");
    assert_eq!(state(&pair), State::Closed);
    assert!(config().time_wait > Span::secs(8));
}

#[test]
fn the_next_syn_acknowledges_the_fin_before_it() {
    //= rfc1644#section-3.4: LAST-ACK
    let mut pair = after_first_exchange(|line| line.starts_with("5100ms C"));
    pair.ask(
        "5000ms",
        "5200ms",
        "
        5000ms C SFP 1+300 cc 8
        5050ms S SFP. 1+500 ack 302 cc 102 ccecho 8
        5100ms C . ack 502 cc 8 x
        ",
    );
    assert_eq!(pair.server().connections()[1].state(), State::LastAck);
    // A client that reuses its ports at once, first with an old count, then with the next one.
    pair.forge("5000ms C SFP 1+300 cc 8", 5);
    pair.wait("5200ms", "5200ms S . ack -99698 cc 102");
    assert_eq!(pair.server().connections()[1].state(), State::LastAck, "it changes nothing");
    pair.forge("5000ms C SFP 1+300 cc 8", 9);
    pair.wait("5200ms", "5200ms S SFP. 1+500 ack 302 cc 103 ccecho 9");
    assert_eq!(pair.server().connections()[1].state(), State::Closed);
    assert!(pair.server().connections()[1].is_complete());
    assert_eq!(pair.delivered, 900);
}
