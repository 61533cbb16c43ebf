//! Half-open split connections: the far end's answer is acknowledged after the opener has acknowledged its own, and
//! half-open connections leave room for others.

use lasthop_proto::agent::{BaseStation as _, Split, SplitConfig};
use lasthop_proto::event::{AgentNote, EventKind, Interest};
use lasthop_proto::machine::{Machine as _, Out, Side};
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq};

use crate::split_script::{after_opening, check, config};

/// Without the opener's ACK a server with SYN cookies would accept the connection (RFC 4987, section 3.6).
#[test]
fn a_forged_opener_opens_no_connection() {
    check(
        &config(),
        "
        0ms fixed S 0 mss 1000 => split-taken
        0ms right S 0 => split-control
        10ms mobile S. 0 ack 1 mss 1000 => split-taken
        10ms left S. 0 ack 1 => split-control
        20ms fixed P. 500+100 ack 1500 => split-taken   # a third party guesses
        20ms left R 0 => split-control
        21ms fixed P. 500+100 ack 1500 => split-taken
        21ms left R 0 => split-control
        500ms mobile S. 0 ack 1 mss 1000 => split-taken
        1010ms left S. 0 ack 1 => split-control
        3010ms left S. 0 ack 1 => split-control
        7010ms left S. 0 ack 1 => split-control
        15010ms left S. 0 ack 1 => split-control
        31010ms left S. 0 ack 1 => split-control
        63010ms left S. 0 ack 1 => split-control
        75000ms left R. 1 ack 1 => split-control
        75000ms right R. 1 ack 1 => split-control
        75000ms note forgotten
        100s end
        ",
    );
}

/// The owner of the forged address resets the connection.
#[test]
fn a_reset_of_a_half_open_connection_reaches_the_far_end() {
    check(
        &config(),
        "
        0ms fixed S 0 mss 1000 => split-taken
        0ms right S 0 => split-control
        10ms mobile S. 0 ack 1 mss 1000 => split-taken
        10ms left S. 0 ack 1 => split-control
        12ms fixed R 1 => split-taken
        12ms right R. 1 ack 1 => split-control
        12ms note forgotten
        10s end
        ",
    );
}

/// The first data comes from the opener, and from the far end; each time the last ACK of the handshake is lost, first
/// before the base station and then after it.
#[test]
fn a_lost_last_ack_is_repaired() {
    check(
        &config(),
        "
        0ms fixed S 0 mss 1000 => split-taken
        0ms right S 0 => split-control
        10ms mobile S. 0 ack 1 mss 1000 => split-taken
        10ms left S. 0 ack 1 => split-control
        13ms fixed P. 1+100 ack 1 => split-taken        # the ACK before it was lost
        13ms left . 1 ack 101 win 3900 => split-ack
        13ms right . 1 ack 1 => split-ack
        13ms right P. 1+100 ack 1 => split-data
        23ms mobile . 1 ack 101 => split-taken
        60s end
        ",
    );
    check(
        &config(),
        "
        0ms mobile S 0 mss 1000 => split-taken
        0ms left S 0 => split-control
        10ms fixed S. 0 ack 1 mss 1000 => split-taken
        10ms right S. 0 ack 1 => split-control          # its ACK is lost
        1010ms right S. 0 ack 1 => split-control
        1010ms fixed S. 0 ack 1 mss 1000 => split-taken
        1012ms mobile . 1 ack 1 => split-taken
        1012ms left . 1 ack 1 => split-ack              # lost as well
        3010ms fixed S. 0 ack 1 mss 1000 => split-taken
        3010ms left . 1 ack 1 => split-ack
        3020ms fixed P. 1+100 ack 1 => split-taken      # a banner
        3020ms left . 1 ack 101 win 3900 => split-ack
        3020ms right P. 1+100 ack 1 => split-data
        3022ms mobile . 1 ack 101 => split-taken
        60s end
        ",
    );
}

/// The base station offers no TCP Fast Open, so the opener repeats the data of its SYN.
#[test]
fn data_in_a_syn_is_left_to_the_opener() {
    check(
        &config(),
        "
        0ms fixed S 0+100 mss 1000 => split-taken
        0ms right S 0 => split-control
        10ms mobile S. 0 ack 1 mss 1000 => split-taken
        10ms left S. 0 ack 1 => split-control
        12ms fixed P. 1+100 ack 1 => split-taken
        12ms left . 1 ack 101 win 3900 => split-ack
        12ms right . 1 ack 1 => split-ack
        12ms right P. 1+100 ack 1 => split-data
        22ms mobile . 1 ack 101 => split-taken
        60s end
        ",
    );
}

/// At most half of the four connections are half-open. A flood neither ends a handshake in progress nor removes an
/// established connection.
#[test]
fn an_old_half_open_connection_gives_way() {
    check(
        &SplitConfig { flows: 4, ..config() },
        &after_opening(
            "
        20ms fixed S 0 port 1 => split-taken            # never answered
        20ms right S 0 port 1 => split-control
        30ms fixed S 0 port 2 mss 1000 => split-taken
        30ms right S 0 port 2 => split-control
        40ms mobile S. 0 ack 1 port 2 mss 1000 => split-taken
        40ms left S. 0 ack 1 port 2 => split-control
        50ms fixed S 0 port 3
        50ms note half-open-limit
        1020ms right S 0 port 1 => split-control
        1040ms left S. 0 ack 1 port 2 => split-control
        3019ms fixed S 0 port 4
        3019ms note half-open-limit
        3020ms right S 0 port 1 => split-control
        3020ms fixed S 0 port 5 => split-taken
        3020ms note half-open-evicted
        3020ms right R 0 port 1 => split-control        # its answer may be on its way
        3020ms note forgotten
        3020ms right S 0 port 5 => split-control
        3030ms fixed S 0 port 6 => split-taken
        3030ms note half-open-evicted
        3030ms left R. 1 ack 1 port 2 => split-control
        3030ms right R. 1 ack 1 port 2 => split-control
        3030ms note forgotten
        3030ms right S 0 port 6 => split-control
        3031ms fixed S 0 port 3                         # it has passed once
        3040ms mobile P. 1+100 ack 1 => split-taken
        3040ms right . 1 ack 101 win 3900 => split-ack
        3040ms left P. 1+100 ack 1 => split-data
        3041ms fixed . 1 ack 101 => split-taken
        ",
        ),
    );
}

/// A segment of the connection of an opener, with its number.
fn segment(from: Side, number: u32, flags: Flags, [seq, ack]: [u32; 2]) -> Packet {
    let [_, high, middle, low] = number.to_be_bytes();
    let (opener, server) = (Addr::v4(10, high, middle, low), Addr::v4(192, 0, 2, 1));
    let mut segment = Segment::new(9, 80, Seq(seq), Seq(ack), flags);
    segment.window = 60_000;
    let (src, dst) = if from == Side::Left { (opener, server) } else { (server, opener) };
    if from == Side::Right {
        (segment.src_port, segment.dst_port) = (80, 9);
    }
    Packet::tcp(src, dst, segment, Body::EMPTY)
}

/// 20,000 forged SYNs in 20 s, half of which a server answers, and one in 14 is genuine: only genuine ones are
/// acknowledged to the server, and those that are split remain.
#[test]
fn a_flood_of_syns_neither_opens_nor_ends_connections() {
    let config = SplitConfig { flows: 200, memory: Bytes(8 << 20), ..config() };
    let (mut split, mut out) = (Split::new(&config), Out::new(Interest::METRICS));
    let (mut now, mut split_open, mut evicted, mut limited) = (Time::ZERO, Vec::new(), 0, 0);
    for n in 0..20_000u32 {
        now += Span::millis(1);
        while split.next_wake().is_some_and(|at| at <= now) {
            split.on_wake(now, &mut out);
        }
        let genuine = n % 14 == 0;
        split.on_packet(now, Side::Left, segment(Side::Left, n, Flags::SYN, [5, 0]), &mut out);
        if n % 2 == 0 {
            let answer = segment(Side::Right, n, Flags::SYN | Flags::ACK, [700, 6]);
            split.on_packet(now, Side::Right, answer, &mut out);
        }
        for event in out.events.drain(..) {
            match event.kind {
                EventKind::Agent { note: AgentNote::HalfOpenEvicted, flow } => {
                    evicted += 1;
                    assert!(!split_open.contains(&flow.src), "{flow:?}");
                }
                EventKind::Agent { note: AgentNote::HalfOpenLimit, .. } => limited += 1,
                _ => {}
            }
        }
        let acks = |packet: &Packet| packet.segment().is_some_and(|s| s.flags == Flags::ACK);
        assert!(!out.sends.drain(..).any(|(side, packet)| side == Side::Right && acks(&packet)));
        if genuine {
            let before = split.flows();
            let ack = segment(Side::Left, n, Flags::ACK, [6, 701]);
            split.on_packet(now, Side::Left, ack.clone(), &mut out);
            assert!(acks(&out.sends[0].1) && out.sends[0].0 == Side::Right, "{:?}", out.sends);
            split_open.extend((out.sends[0].1.id != ack.id).then_some(ack.src));
            out.sends.clear();
            assert_eq!(split.flows(), before);
        }
        assert!(split.flows() <= 100 + split_open.len(), "{n}: {}", split.flows());
    }
    assert!(evicted > 100 && limited > 10_000, "{evicted} {limited}");
    assert!(split_open.len() > 20, "{split_open:?}");
    // All established connections have survived, and the others end.
    while split.next_wake().is_some_and(|at| at <= now + Span::secs(100)) {
        now = split.next_wake().unwrap_or(now);
        split.on_wake(now, &mut out);
    }
    assert_eq!(split.flows(), split_open.len());
}
