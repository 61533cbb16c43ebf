use super::*;

const MSS: u64 = 1000;

fn at(ms: u64) -> Time {
    Time::ZERO + Span::millis(ms)
}

/// `count` segments of each of `owners`, alternating, a millisecond apart.
fn in_turns(owners: &[u32], count: u64) -> Integrated {
    let mut shared = Integrated { cwnd: 20_000, ssthresh: 20_000, ..Integrated::default() };
    let mut now = 0;
    for n in 0..count {
        for owner in owners {
            let from = 1 + n * MSS;
            shared.sent(at(now), *owner, from, from + MSS, false);
            now += 1;
        }
    }
    shared
}

fn ack(shared: &mut Integrated, owner: u32, segments: u64) -> AckResult {
    shared.acked(at(100), owner, 1 + segments * MSS, MSS as u32)
}

#[test]
fn two_segments_with_three_later_acks_show_a_loss() {
    let mut shared = in_turns(&[0, 1, 2], 3);
    // No segment of connection 0 arrives.
    assert!(!ack(&mut shared, 1, 1).halve);
    assert!(!ack(&mut shared, 2, 1).halve);
    assert!(!ack(&mut shared, 1, 2).halve);
    assert_eq!(shared.due(), None, "its second segment has too little against it");
    assert!(!ack(&mut shared, 2, 2).halve);
    assert!(ack(&mut shared, 1, 3).halve);
    assert_eq!(shared.due(), Some(0));
    assert_eq!(shared.take_lost(0), Some(1));
    assert_eq!(shared.due(), None);
    assert_eq!(shared.flight(), 3 * MSS, "two of connection 0 and one of 2");
}

#[test]
fn single_loss_detection_by_later_acks_waits_400_ms() {
    let mut shared = in_turns(&[0], 1);
    for n in 0..20 {
        let from = 1 + n * MSS;
        let sent = 1 + n * 50;
        shared.sent(at(sent), 1, from, from + MSS, false);
        let verdict = shared.acked(at(sent + 40), 1, from + MSS, MSS as u32);
        assert_eq!(verdict.halve, sent >= 400 && shared.due() == Some(0), "{sent}");
        if verdict.halve {
            assert_eq!(sent, 401);
            return;
        }
    }
    panic!("never found");
}

#[test]
fn one_duplicate_and_two_later_acks_show_a_loss() {
    let mut shared = in_turns(&[0, 1], 3);
    assert!(!shared.duplicate(0, 1, true));
    assert!(!ack(&mut shared, 1, 1).halve);
    assert!(ack(&mut shared, 1, 2).halve);
    assert_eq!(shared.take_lost(0), Some(1));
    // The duplicate ACK represents one segment that is no longer in flight.
    assert_eq!(shared.flight(), 2 * MSS);
}

#[test]
fn further_duplicate_acks_reduce_the_flight() {
    let mut shared = in_turns(&[0], 10);
    assert!((0..3).any(|_| shared.duplicate(0, 1, true)));
    assert_eq!(shared.take_lost(0), Some(1));
    assert_eq!(shared.flight(), 6 * MSS, "ten, less the lost one and three that have arrived");
    shared.sent(at(20), 0, 1, 1 + MSS, true);
    for n in 1..=6 {
        assert!(!shared.duplicate(0, 1, true));
        assert_eq!(shared.flight(), (7 - n) * MSS);
    }
    assert_eq!(shared.due(), None, "a retransmission is not lost again");
}

#[test]
fn the_losses_of_one_window_halve_it_once() {
    let mut shared = in_turns(&[0, 1, 2], 4);
    for segments in 1..=4 {
        ack(&mut shared, 2, segments);
    }
    assert_eq!(shared.take_lost(0), Some(1));
    assert_eq!(shared.take_lost(1), Some(1));
    assert_eq!(shared.recover, 12);
    // A loss among the following transmissions is a new one.
    for owner in [0, 1] {
        shared.sent(at(200), owner, 1, 1 + MSS, true);
    }
    for n in 4..8 {
        shared.sent(at(201 + n), 2, 1 + n * MSS, 1 + (n + 1) * MSS, false);
    }
    let halved = (5..=8).filter(|n| ack(&mut shared, 2, *n).halve).count();
    assert_eq!(halved, 1);
}

#[test]
fn connections_fill_the_window_round_robin() {
    let mut shared = Integrated { cwnd: 4000, ..Integrated::default() };
    // All three have data, with room for four segments.
    let mut next = [1u64; 3];
    let mut order = Vec::new();
    let mut send = |shared: &mut Integrated, owner: u32| {
        shared.begin(owner);
        while shared.may_send(owner, MSS as u32) {
            let from = &mut next[owner as usize];
            shared.sent(at(0), owner, *from, *from + MSS, false);
            *from += MSS;
            order.push(owner);
        }
    };
    send(&mut shared, 0);
    send(&mut shared, 1);
    send(&mut shared, 2);
    for _ in 0..9 {
        let first = shared.sent[0];
        shared.acked(at(10), first.owner, first.end, MSS as u32);
        while let Some(due) = shared.due() {
            send(&mut shared, due);
        }
    }
    assert_eq!(order, [0, 0, 0, 0, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_timeout_clears_the_flight_and_wakes_all_connections() {
    let mut shared = in_turns(&[0, 1, 2], 2);
    shared.time_out(at(500), 1);
    assert_eq!((shared.flight(), shared.timeouts(), shared.timer()), (0, 1, (at(500), 1)));
    assert_eq!(shared.due(), Some(0));
    shared.begin(0);
    shared.pass(0);
    assert_eq!(shared.due(), Some(2));
}

#[test]
fn waiting_connections_remain_queued_after_a_timeout() {
    let mut shared = in_turns(&[0, 1], 1);
    shared.cwnd = 1000;
    assert!(!shared.may_send(2, 1000));
    shared.time_out(at(500), 0);
    assert!(shared.may_send(0, 1000), "whose timer expired comes first");
    shared.sent(at(500), 0, 1, 1 + MSS, true);
    assert_eq!(shared.due(), None);
    shared.leave(0);
    assert_eq!(shared.due(), Some(2));
    shared.begin(2);
    shared.pass(2);
    assert_eq!(shared.due(), Some(1), "it had lost something");
}

#[test]
fn a_leaving_connection_removes_its_data_in_flight() {
    let mut shared = in_turns(&[0, 1], 2);
    shared.cwnd = 2000;
    assert!(!shared.may_send(1, 1000));
    shared.leave(0);
    assert_eq!(shared.flight(), 2 * MSS);
    assert_eq!(shared.due(), None);
    shared.leave(1);
    assert_eq!((shared.flight(), shared.due()), (0, None));
}

#[test]
fn windows_of_idle_destinations_are_bounded() {
    let mut pairs = Pairs::default();
    for n in 0..1000u16 {
        let [high, low] = n.to_be_bytes();
        let to = Addr::v4(10, 2, high, low);
        let mut state = pairs.lend(to);
        state.cwnd = 5000;
        pairs.put_back(to, state);
    }
    assert_eq!(pairs.0.len(), IDLE_MAX);
    assert_eq!(pairs.lend(Addr::v4(10, 2, 3, 231)).cwnd, 5000, "the newest is kept");
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// For any events, the bytes in flight are those of the segments in flight, and memory is bounded.
        #[test]
        fn the_flight_is_the_sum_of_segments_in_flight(steps in prop::collection::vec((0u8..7, 0u32..4, 0u64..12), 0..200)) {
            let mut shared = Integrated { cwnd: 8000, ..Integrated::default() };
            let mut una = [1u64; 4];
            let mut nxt = [1u64; 4];
            for (i, (action, owner, n)) in steps.into_iter().enumerate() {
                let now = at(i as u64 * 30);
                let o = owner as usize;
                match action {
                    0 | 1 => {
                        shared.begin(owner);
                        if shared.may_send(owner, MSS as u32) {
                            shared.sent(now, owner, nxt[o], nxt[o] + MSS, false);
                            nxt[o] += MSS;
                        }
                    }
                    2 => {
                        una[o] = (una[o] + n * 500).min(nxt[o]);
                        shared.acked(now, owner, una[o], MSS as u32);
                    }
                    3 => {
                        shared.duplicate(owner, una[o], n != 0);
                    }
                    4 => {
                        if let Some(from) = shared.take_lost(owner) {
                            prop_assert!(from >= una[o]);
                            shared.sent(now, owner, from, (from + MSS).min(nxt[o]), true);
                        }
                    }
                    5 if n == 0 => {
                        shared.time_out(now, owner);
                        nxt = una;
                    }
                    6 if n == 0 => {
                        shared.leave(owner);
                        una[o] = nxt[o];
                    }
                    _ => {
                        shared.missing(owner, una[o]);
                    }
                }
                let sum: u64 =
                    shared.sent.iter().filter(|t| t.fate == Fate::InFlight).map(Transmission::len).sum();
                prop_assert_eq!(sum, shared.flight());
                prop_assert!(shared.waiting.len() <= 4);
                let mut numbers = shared.sent.iter().map(|t| t.number);
                prop_assert!(numbers.by_ref().zip(shared.sent.iter().skip(1)).all(|(a, b)| a < b.number));
            }
        }
    }
}

#[test]
fn a_connection_retains_a_turn_it_did_not_use() {
    let mut shared = in_turns(&[0], 20);
    assert!(!shared.may_send(1, MSS as u32), "the window is full");
    assert!(!shared.may_send(2, MSS as u32));
    // Called for another reason, such as a damaged ACK: no segment is sent.
    shared.begin(1);
    shared.end(1, false);
    ack(&mut shared, 0, 1);
    assert_eq!(shared.due(), Some(1));
    shared.begin(1);
    assert!(shared.may_send(1, MSS as u32));
    shared.end(1, false);
    assert_eq!(shared.due(), Some(2), "a turn is one segment");
    // Called without data that it may send: the next one has the turn.
    assert!(!shared.may_send(3, MSS as u32));
    shared.begin(2);
    shared.end(2, true);
    assert_eq!(shared.due(), Some(3));
}

/// A destination with connections is never removed; of the others, the least recently used one.
#[test]
fn idle_destinations_are_evicted_least_recently_used_first() {
    let to = |i: usize| Addr::v4(10, 0, (i >> 8) as u8, i as u8);
    let mut pairs = Pairs::default();
    for i in 0..IDLE_MAX {
        let mut state = pairs.lend(to(i));
        state.join();
        state.busy = at(1000 - i as u64);
        // The first and the last retain a connection, and the second has lost one of two.
        if i == 1 {
            state.join();
        }
        if i > 0 && i + 1 < IDLE_MAX {
            state.leave(7);
        }
        pairs.put_back(to(i), state);
    }
    for n in 0..3 {
        let state = pairs.lend(to(5000 + n));
        pairs.put_back(to(5000 + n), state);
    }
    let known = |i: usize| pairs.0.contains_key(&to(i));
    assert!(known(0) && known(1) && known(IDLE_MAX - 1), "connections use them");
    assert_eq!(pairs.0.len(), IDLE_MAX);
    assert!(!known(IDLE_MAX - 2), "idle, and used longest ago");
}

#[test]
fn the_window_is_used_up_when_another_segment_would_not_fit() {
    for (cwnd, full) in [(2999, true), (3000, false), (3001, false)] {
        let mut shared = in_turns(&[0], 2);
        shared.cwnd = cwnd;
        assert_eq!(ack(&mut shared, 0, 1).full, full, "{cwnd}");
    }
    for (cwnd, bytes, may) in [(3000, 1000, true), (3000, 1001, false), (2999, 1000, false)] {
        let mut shared = in_turns(&[0], 2);
        shared.cwnd = cwnd;
        assert_eq!(shared.may_send(0, bytes), may, "{bytes} in {cwnd}");
    }
    let mut small = Integrated { cwnd: 500, ..Integrated::default() };
    assert!(small.may_send(0, 1000), "nothing is in flight: it would wait for ever");
}

#[test]
fn an_ack_within_a_segment_leaves_the_rest_in_flight() {
    let mut shared = in_turns(&[0, 1], 2);
    for (una, flight) in
        [(1, 4000), (501, 3500), (1000, 3001), (1001, 3000), (1501, 2500), (2001, 2000)]
    {
        shared.acked(at(100), 0, una, MSS as u32);
        assert_eq!(shared.flight(), flight, "{una}");
    }
    shared.sent(at(200), 1, 1, 1001, true);
    assert_eq!(shared.flight(), 2000, "a retransmission is in flight once");
    assert_eq!(shared.idle_since(), None);
    ack(&mut shared, 1, 2);
    assert_eq!((shared.flight(), shared.idle_since()), (0, Some(at(200))));
}

#[test]
fn the_timer_begins_with_the_first_segment_and_again_with_each_ack_of_new_data() {
    let mut shared = Integrated { cwnd: 9000, ..Integrated::default() };
    shared.sent(at(10), 0, 1, 1001, false);
    shared.sent(at(20), 1, 1, 1001, false);
    assert_eq!(shared.timer(), (at(10), 0));
    shared.acked(at(50), 1, 1001, MSS as u32);
    assert_eq!(shared.timer(), (at(50), 0));
    for n in 1..4 {
        shared.time_out(at(1000 * n), 0);
        assert_eq!((shared.timer(), shared.timeouts()), ((at(1000 * n), n as u32), n));
    }
    shared.sent(at(5000), 0, 1, 1001, true);
    assert_eq!(shared.timer(), (at(5000), 3), "only an ACK ends the backoff");
    shared.acked(at(5100), 0, 1001, MSS as u32);
    assert_eq!((shared.timer(), shared.timeouts()), ((at(5100), 0), 3));
}

#[test]
fn three_duplicate_acks_halve_the_window_once_per_flight() {
    let mut shared = in_turns(&[0], 6);
    // They make room from the third one on, including the lost segment.
    for (halve, flight) in [(false, 6), (false, 6), (true, 2)] {
        assert_eq!(shared.duplicate(0, 1, true), halve);
        assert_eq!(shared.flight(), flight * MSS);
    }
    // Found in the same flight: no new loss.
    assert!(!shared.missing(0, 1001));
    assert_eq!(shared.take_lost(0), Some(1));
    assert_eq!(shared.take_lost(0), Some(1001));
    assert_eq!(shared.take_lost(0), None);
    shared.sent(at(50), 0, 6001, 7001, false);
    assert!(!shared.missing(0, 5001), "sent before the first was noticed");
    assert!(shared.missing(0, 6001), "sent after it");
    shared.sent(at(60), 0, 6001, 7001, true);
    assert!(!shared.missing(0, 6001), "it is on its way again");
    let mut other = in_turns(&[0], 6);
    assert!((0..9).all(|_| !other.duplicate(0, 1, false)), "ACKs of data that was sent twice");
}
