//! Agents whose state moves to the next base station: the result is the same as without a move, except that a
//! cache is retransmitted. Each script transfers the state as bytes.

use lasthop_proto::agent::{
    Agent, AgentConfig, BaseStation as _, Handover, NackAgent, Router, SeqCacheAgent, SnoopAgent,
    SnoopConfig,
};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Machine as _, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Body, Eln, Flags, Nack, Packet, Segment, Seq};

use crate::path::{FIXED, MOBILE};
use crate::script;
use crate::split_script::{after_opening, check, config};

fn snoop() -> AgentConfig {
    let snoop = SnoopConfig {
        initial_timeout: Span::millis(100),
        persist: Span::secs(1),
        ..SnoopConfig::west97()
    };
    AgentConfig::Snoop(SnoopAgent { snoop, ackp: None })
}

#[test]
fn the_next_base_station_repairs_from_the_cache_that_the_old_one_filled() {
    script::check(
        &snoop(),
        "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460         # lost on the wireless link
        2ms    fixed   2921+1460
        3ms    fixed   4381+1460
        8ms    mobile  ack 1461
        10ms   move
        10ms   note flow-forgotten
        10ms   base    1461+1460         => handoff-repeated
        10ms   base    2921+1460         => handoff-repeated
        16ms   mobile  ack 1461          => suppressed-dup-ack
        24ms   mobile  ack 1461          => suppressed-dup-ack
        32ms   mobile  ack 5841
        5000ms end
        ",
    );
}

#[test]
fn without_the_state_the_loss_is_left_to_the_sender() {
    script::check(
        &snoop(),
        "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460         # lost on the wireless link
        2ms    fixed   2921+1460
        3ms    fixed   4381+1460
        8ms    mobile  ack 1461
        10ms   lose
        16ms   mobile  ack 1461
        24ms   mobile  ack 1461
        32ms   mobile  ack 1461
        50ms   fixed   1461+1460         # the sender's fast retransmission: cached from here on
        70ms   mobile  ack 5841
        5000ms end
        ",
    );
}

/// Packets that pass the next base station before the state arrives are included in it.
#[test]
fn packets_cached_before_the_state_arrives_are_merged() {
    script::check(
        &snoop(),
        "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460         # lost on the wireless link
        2ms    fixed   2921+1460
        8ms    mobile  ack 1461
        10ms   leave
        10ms   note flow-forgotten
        12ms   fixed   4381+1460         # lost as well
        16ms   mobile  ack 1461          # nobody knows of a hole here
        20ms   arrive
        20ms   note flow-forgotten       # what was begun here goes into what came
        20ms   base    1461+1460         => handoff-repeated
        20ms   base    2921+1460         => handoff-repeated
        24ms   mobile  ack 1461          => suppressed-dup-ack
        32ms   mobile  ack 4381
        132ms  base    4381+1460         => local-timeout
        140ms  mobile  ack 5841
        5000ms end
        ",
    );
}

#[test]
fn local_timers_restart_at_the_next_base_station() {
    script::check(
        &snoop(),
        "
        0ms    fixed   1+1460            # lost
        60ms   move
        60ms   note flow-forgotten
        60ms   base    1+1460            => handoff-repeated # lost as well
        160ms  base    1+1460            => local-timeout
        170ms  mobile  ack 1461
        5000ms end
        ",
    );
}

#[test]
fn the_number_cache_remembers_reported_losses() {
    script::check(
        &AgentConfig::SeqCache(SeqCacheAgent { flows: 10 }),
        "
        0ms    fixed   syn eln
        1ms    mobile  syn ack 1
        2ms    fixed   at 1
        3ms    fixed   1+1000            # lost
        4ms    fixed   1001+1000
        5ms    fixed   2001+1000
        10ms   mobile  ack 1             => suppressed-dup-ack
        10ms   base    at 1 ack 1 lost 1 => loss-notification
        12ms   move
        12ms   note flow-forgotten
        18ms   mobile  ack 1             => suppressed-dup-ack
        20ms   fixed   1+1000
        20ms   note sender-retransmission
        30ms   mobile  ack 3001
        5000ms end
        ",
    );
}

/// In the middle of a transfer in each direction, with data unacknowledged on both halves.
#[test]
fn a_split_connection_resumes_at_the_next_base_station() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+1000 ack 1 => split-taken
        20ms left . 1 ack 1001 win 3000 => split-ack
        20ms right P. 1+1000 ack 1 => split-data
        21ms mobile P. 1+500 ack 1 => split-taken
        21ms right . 1001 ack 501 win 3500 => split-ack
        21ms left P. 1+500 ack 1001 win 3000 => split-data
        25ms move
        25ms note forgotten
        30ms mobile . 501 ack 1001 => split-taken       # as if it had stayed
        31ms fixed . 1001 ack 501 => split-taken
        40ms fixed P. 1001+1000 ack 501 => split-taken  # lost over the air
        40ms left . 501 ack 2001 win 3000 => split-ack
        40ms right P. 1001+1000 ack 501 win 3500 => split-data
        45ms move
        45ms note forgotten
        1045ms right P. 1001+1000 ack 501 win 3500 => local-timeout
        1050ms mobile . 501 ack 2001 => split-taken
        60s end
        ",
        ),
    );
}

/// A split connection's data is lost with its base station: no end can retransmit acknowledged data. The
/// numbers agree on both sides, so no other data is delivered in its place.
#[test]
fn without_the_state_a_split_connection_has_a_hole() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+1000 ack 1 => split-taken
        20ms left . 1 ack 1001 win 3000 => split-ack
        20ms right P. 1+1000 ack 1 => split-data        # lost over the air
        25ms lose
        30ms fixed P. 1001+1000 ack 1                   # beyond the hole
        40ms mobile . 1 ack 1                           # the fixed host has been told otherwise
        60s end
        ",
        ),
    );
}

/// Both have closed and the fixed host is gone: no more is sent to it, and the mobile host receives the rest.
#[test]
fn ends_reset_while_closing_get_nothing_after_hand_off() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed FP. 1+1000 ack 1 => split-taken
        20ms left . 1 ack 1002 win 2999 => split-ack
        20ms right P. 1+1000 ack 1 => split-data        # lost over the air
        20ms right F. 1001 ack 1 => split-control       # as well
        25ms mobile FP. 1+500 ack 1 => split-taken
        25ms right . 1002 ack 502 win 3499 => split-ack
        25ms left P. 1+500 ack 1002 win 2999 => split-data
        25ms left F. 501 ack 1002 win 2999 => split-control
        30ms fixed R 1002 => split-taken
        35ms move
        35ms note forgotten
        1035ms right P. 1+1000 ack 502 win 3499 => local-timeout
        1040ms mobile . 502 ack 1002 => split-taken     # all of it
        1040ms note forgotten
        60s end
        ",
        ),
    );
}

#[test]
fn a_half_close_with_a_fin_in_flight_resumes() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed FP. 1+100 ack 1 => split-taken
        20ms left . 1 ack 102 win 3899 => split-ack
        20ms right P. 1+100 ack 1 => split-data
        20ms right F. 101 ack 1 => split-control
        25ms move
        25ms note forgotten
        30ms mobile . 1 ack 102 => split-taken
        35ms move
        35ms note forgotten
        40ms mobile P. 1+500 ack 102 => split-taken     # the other direction is still open
        40ms right . 102 ack 501 win 3500 => split-ack
        40ms left P. 1+500 ack 102 win 3899 => split-data
        45ms move
        45ms note forgotten
        50ms fixed . 102 ack 501 => split-taken
        60ms mobile F. 501 ack 102 => split-taken
        60ms right . 102 ack 502 win 3499 => split-ack
        60ms left F. 501 ack 102 win 3899 => split-control
        65ms move
        65ms note forgotten
        70ms fixed . 102 ack 502 => split-taken
        70ms note forgotten
        1000s end
        ",
        ),
    );
}

#[test]
fn the_urgent_pointer_and_bytes_behind_a_hole_move_as_well() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 501+500 ack 1 => split-taken      # behind a hole
        20ms left . 1 ack 1 => split-ack
        22ms mobile . 1 ack 1 win 0 => split-taken      # and nothing may be sent
        25ms move
        25ms note forgotten
        30ms fixed P. 1+500 ack 1 urg 700 => split-taken
        30ms left . 1 ack 1001 win 3000 => split-ack
        35ms move
        35ms note forgotten
        40ms mobile . 1 ack 1 => split-taken
        40ms right P. 1+1000 ack 1 urg 700 => split-data
        50ms mobile . 1 ack 1001 => split-taken
        60s end
        ",
        ),
    );
}

#[test]
fn a_handshake_resumes_at_the_next_base_station() {
    check(
        &config(),
        "
        0ms fixed S 0 mss 1000 => split-taken
        0ms right S 0 => split-control
        5ms move
        5ms note forgotten
        10ms mobile S. 0 ack 1 mss 1000 => split-taken
        10ms left S. 0 ack 1 => split-control
        11ms move
        11ms note forgotten
        12ms fixed . 1 ack 1 => split-taken
        12ms right . 1 ack 1 => split-ack
        20ms fixed P. 1+100 ack 1 => split-taken
        20ms left . 1 ack 101 win 3900 => split-ack
        20ms right P. 1+100 ack 1 => split-data
        25ms mobile . 1 ack 101 => split-taken
        60s end
        ",
    );
}

/// The arriving connection would miss the packets that the ends exchanged meanwhile.
#[test]
fn packets_are_dropped_until_the_connection_state_arrives() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+1000 ack 1 => split-taken
        20ms left . 1 ack 1001 win 3000 => split-ack
        20ms right P. 1+1000 ack 1 => split-data
        25ms leave
        25ms note forgotten
        30ms mobile . 1 ack 1001 => no-such-connection
        31ms fixed P. 1001+1000 ack 1 => no-such-connection
        35ms arrive
        40ms fixed P. 1001+1000 ack 1 => split-taken
        40ms left . 1 ack 2001 win 2000 => split-ack
        40ms right P. 1001+1000 ack 1 => split-data
        50ms mobile . 1 ack 2001 => split-taken
        50ms left . 1 ack 2001 => split-ack
        60s end
        ",
        ),
    );
}

/// If they passed nevertheless, an end has more data than the arriving connection sent, which must not block
/// the connection.
#[test]
fn an_ack_beyond_the_arrived_state_does_not_block() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+1000 ack 1 => split-taken
        20ms left . 1 ack 1001 win 3000 => split-ack
        20ms right P. 1+1000 ack 1 => split-data
        25ms move
        25ms note forgotten
        30ms mobile . 1 ack 1501 => split-taken
        40ms fixed P. 1001+1000 ack 1 => split-taken
        40ms left . 1 ack 2001 win 3000 => split-ack
        40ms right P. 1001+1000 ack 1 => split-data
        50ms mobile . 1 ack 2001 => split-taken
        60s end
        ",
        ),
    );
}

#[test]
fn state_of_another_kind_is_given_back() {
    let mut out = Out::new(Interest::NOTHING);
    let state = state_of(&AgentConfig::Split(config()));
    let before = state.bytes();
    let mut agent = Agent::new(&snoop());
    let back = agent.take_over(Time::ZERO, state, &mut out).expect_err("another kind");
    assert_eq!((back.bytes(), back.host(), back.flows()), (before, MOBILE, 1));
    assert_eq!(agent.flows(), 0);
    let state = state_of(&snoop());
    let mut agent = Agent::new(&AgentConfig::None(Router));
    assert!(agent.take_over(Time::ZERO, state, &mut out).is_err());
}

/// The exported state of an agent after a thousand bytes of unacknowledged data to the mobile host.
fn state_of(config: &AgentConfig) -> Handover {
    let mut agent = Agent::new(config);
    let mut out = Out::new(Interest::NOTHING);
    for (side, packet) in opening() {
        agent.on_packet(Time::ZERO, side, packet, &mut out);
    }
    agent.give_away(Time::ZERO, MOBILE, &mut out).expect("a flow")
}

/// A handshake and a segment of a thousand bytes.
fn opening() -> [(Side, Packet); 4] {
    let packet = |side, flags, len| {
        let [src, dst] = if side == Side::Left { [FIXED, MOBILE] } else { [MOBILE, FIXED] };
        let [from, to] = if side == Side::Left { [5001, 9] } else { [9, 5001] };
        let begun = u32::from(!Flags::has(flags, Flags::SYN));
        let mut segment = Segment::new(from, to, Seq(begun), Seq(1), flags);
        segment.window = 10_000;
        if flags.has(Flags::SYN) {
            let options = segment.options_mut();
            options.mss = Some(1460);
            options.eln = Some(Eln::Permitted);
            options.nack = Some(Nack::Permitted);
        }
        (side, Packet::tcp(src, dst, segment, Body::Pattern { stream: 1, len, offset: 0 }))
    };
    [
        packet(Side::Left, Flags::SYN, 0),
        packet(Side::Right, Flags::SYN | Flags::ACK, 0),
        packet(Side::Left, Flags::ACK, 0),
        packet(Side::Left, Flags::ACK, 1000),
    ]
}

/// Payload counts in full, and so do the headers of its packets.
#[test]
fn the_bytes_of_a_hand_over_are_those_on_the_wire() {
    for config in [snoop(), AgentConfig::Split(config())] {
        let bytes = state_of(&config).bytes();
        assert!((1100..1700).contains(&bytes), "{bytes}");
    }
}

pub fn agents() -> [AgentConfig; 4] {
    [
        snoop(),
        AgentConfig::SnoopNack(NackAgent { snoop: SnoopConfig::west97() }),
        AgentConfig::SeqCache(SeqCacheAgent { flows: 10 }),
        AgentConfig::Split(config()),
    ]
}
