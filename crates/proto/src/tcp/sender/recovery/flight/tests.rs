use super::*;
use proptest::prelude::*;

fn flight(segments: u64) -> Flight {
    let mut flight = Flight::default();
    for i in 0..segments {
        flight.sent(Time(i), 1 + i * 1000, 1 + (i + 1) * 1000, Stamp::default());
    }
    flight
}

#[test]
fn a_segment_counts_as_sacked_only_when_fully_reported() {
    let mut f = flight(3);
    let mut reported = Vec::new();
    assert!(f.report(1001, 1500, |r| reported.push(r.from)));
    assert!(reported.is_empty());
    assert!(f.report(1500, 2001, |r| reported.push(r.from)));
    assert!(!f.report(1001, 2001, |r| reported.push(r.from)));
    assert_eq!((reported, f.pipe(), f.sacked_segments()), (vec![1001], 2000, 1));
}

/// A segment that ends at the limit stays whole. A segment beyond it is divided there, and its second part waits.
#[test]
fn a_lost_segment_beyond_the_limit_is_split_there() {
    let mut f = flight(3);
    f.judge(|r| if r.from < 2001 { Judgement::Lost } else { Judgement::Later });
    assert_eq!((f.next_lost(1), f.next_lost(1001)), (None, Some((1, 1001))));
    assert_eq!(f.records.len(), 3, "it ends at the limit, and no piece of nothing is left");
    f.sent(Time(50), 1, 1001, Stamp::default());
    assert_eq!(f.next_lost(u64::MAX), Some((1001, 2001)));
    assert_eq!((f.next_lost(1001), f.next_lost(1500)), (None, Some((1001, 1500))));
    f.sent(Time(51), 1001, 1500, Stamp::default());
    assert_eq!((f.next_lost(u64::MAX), f.lost()), (Some((1500, 2001)), 501));
}

#[test]
fn lost_segments_are_resent_lowest_first_and_counted_again() {
    let mut f = flight(4);
    let lost = f.judge(|r| if r.from < 2001 { Judgement::Lost } else { Judgement::Later });
    assert_eq!((lost, f.pipe(), f.next_lost(u64::MAX)), (2000, 2000, Some((1, 1001))));
    f.sent(Time(50), 1, 1001, Stamp::default());
    assert_eq!((f.lost(), f.pipe(), f.next_lost(u64::MAX)), (1000, 3000, Some((1001, 2001))));
    // The retransmission is judged by its own time.
    let times = |f: &mut Flight| {
        let mut seen = Vec::new();
        f.judge(|r| {
            seen.push((r.from, r.at.0));
            Judgement::Wait
        });
        seen
    };
    assert_eq!(times(&mut f), [(2001, 2), (3001, 3), (1, 50)]);
}

#[test]
fn a_lost_segment_is_split_to_fit_the_window() {
    let mut f = flight(2);
    f.expire(|_| true, |_| {});
    assert_eq!(f.next_lost(301), Some((1, 301)));
    f.sent(Time(9), 1, 301, Stamp::default());
    assert_eq!((f.next_lost(301), f.lost(), f.pipe()), (None, 1700, 300));
    assert_eq!(f.next_lost(5000), Some((301, 1001)));
}

#[test]
fn a_timeout_detects_a_receiver_that_reneged() {
    let mut f = flight(3);
    f.report(1001, 3001, |_| {});
    f.acknowledge(1001, |_, _, _| {});
    assert_eq!((f.pipe(), f.sacked_segments()), (0, 2));
    f.expire(|_| false, |_| {});
    assert_eq!((f.pipe(), f.sacked_segments(), f.lost()), (0, 0, 2000), "recent ones as well");
}

/// Two segments of 1000 bytes in one buffer: an ACK of a part of the first leaves one or two.
#[test]
fn a_part_of_a_segment_may_complete_one_of_its_buffer() {
    for (una, removed) in [(1, vec![]), (201, vec![0]), (1001, vec![1]), (1301, vec![1, 0])] {
        let mut f = flight(1);
        f.sent_as(Time(1), (1001, 2001), Stamp::default(), Way::Joined);
        let mut counts = Vec::new();
        f.acknowledge(una, |_, _, segments| counts.push(segments));
        assert_eq!(counts, removed, "{una}");
    }
    let mut f = flight(1);
    f.sent_as(Time(1), (1001, 1501), Stamp::default(), Way::Joined);
    let mut counts = Vec::new();
    f.acknowledge(501, |_, _, segments| counts.push(segments));
    assert_eq!((counts, f.segments(), f.first().unwrap().to()), (vec![1], 1, 1501));
}

proptest! {
    /// Every outstanding byte is in exactly one of three states, and the counters have the number of bytes in each.
    #[test]
    fn flight_counters_match_the_segment_records(steps in prop::collection::vec((0u8..6, 0u64..40, 1u64..9), 1..80)) {
        let mut f = Flight::default();
        let (mut una, mut nxt, mut now) = (1u64, 1u64, 0);
        for (action, at, len) in steps {
            now += 1;
            let from = una + at.min(nxt - una);
            match action {
                0 | 1 => {
                    f.sent(Time(now), nxt, nxt + len, Stamp::default());
                    nxt += len;
                }
                2 => { f.report(from, (from + len).min(nxt).max(from), |_| {}); }
                3 => {
                    una = una.max(from);
                    f.acknowledge(una, |_, _, _| {});
                }
                4 => { f.judge(|r| if r.at.0 + at < now { Judgement::Lost } else { Judgement::Later }); }
                _ if at % 3 == 0 => f.expire(|r| r.from % 2 == 0, |_| {}),
                _ => while let Some((from, to)) = f.next_lost(una + 30) {
                    f.sent(Time(now), from, to, Stamp::default());
                }
            }
            let sum = |which: &dyn Fn(&SentSegment) -> bool| -> u64 {
                f.records.iter().filter(|r| which(r)).map(|r| r.to() - r.from).sum()
            };
            prop_assert_eq!(sum(&|_| true), nxt - una);
            prop_assert_eq!(sum(&|r| r.lost), f.lost());
            prop_assert_eq!(sum(&|r| !r.lost && !r.sacked), f.pipe());
            prop_assert!(f.records.iter().all(|r| !(r.lost && r.sacked)));
            prop_assert_eq!(f.records.iter().filter(|r| r.sacked).count(), f.sacked_segments());
            let side_by_side = f.records.iter().zip(f.records.iter().skip(1)).all(|(a, b)| a.to() == b.from);
            prop_assert!(side_by_side);
        }
    }
}

/// Both parts of a divided segment have its state, and together its bytes.
#[test]
fn a_divided_segment_is_resent_in_two_parts() {
    let mut f = flight(2);
    f.judge(|r| if r.from < 1001 { Judgement::Lost } else { Judgement::Later });
    assert!(f.divide(1, 988) && f.divide(1, 988) && !f.divide(2, 10));
    assert_eq!((f.records.len(), f.lost(), f.next_lost(u64::MAX)), (3, 1000, Some((1, 989))));
    f.sent(Time(50), 1, 989, Stamp::default());
    assert_eq!((f.lost(), f.next_lost(u64::MAX)), (12, Some((989, 1001))));
}

/// A smaller segment size cuts a retransmission: the sent part is in the network, and the rest waits for its own.
#[test]
fn a_lost_segment_that_is_sent_in_part_advances() {
    let mut f = flight(2);
    f.expire(|_| true, |_| {});
    for (from, to) in [(1, 701), (701, 1001), (1001, 1701), (1701, 2001)] {
        assert_eq!(f.next_lost(u64::MAX).map(|(start, _)| start), Some(from));
        f.sent(Time(9), from, to, Stamp::default());
    }
    assert_eq!((f.next_lost(u64::MAX), f.lost(), f.pipe()), (None, 0, 2000));
}

/// Without room for another record the whole segment counts as sent.
#[test]
fn a_full_record_does_not_return_without_end() {
    let mut f = Flight::default();
    for i in 0..RECORDS_MAX as u64 {
        f.sent(Time(i), 1 + i * 10, 11 + i * 10, Stamp::default());
    }
    assert!(f.is_full());
    f.expire(|_| false, |_| {});
    f.sent(Time(99), 1, 6, Stamp::default());
    assert_eq!((f.next_lost(u64::MAX), f.lost(), f.segments()), (None, 0, RECORDS_MAX));
}

/// Four segments are lost and sent again, and one of these retransmissions is reported. If the losses are reverted, three
/// retransmissions are in flight next to their originals.
#[test]
fn a_reported_retransmission_is_not_in_flight_after_its_loss_is_reverted() {
    let mut f = Flight::default();
    for i in 0..5 {
        f.sent(Time(i), 1 + 1000 * i, 1001 + 1000 * i, Stamp::default());
    }
    f.expire(|_| true, |_| {});
    for i in 0..4 {
        f.sent(Time(9), 1 + 1000 * i, 1001 + 1000 * i, Stamp::default());
    }
    f.report(1001, 2001, |_| {});
    assert_eq!(f.pending(), 3, "the fifth segment is lost");
    f.revert_losses();
    assert_eq!((f.segments(), f.sacked_segments(), f.pending()), (5, 1, 7));
}

/// A window of 20,000 bytes of written data, all sent, and a large window of the peer.
fn window(mss: u32) -> Window {
    let rfc = crate::tcp::config::TcpConfig::rfc();
    let mut w = Window::new(&crate::tcp::config::TcpConfig { mss, ..rfc });
    (w.una, w.nxt, w.max, w.end, w.peer) = (1, 20_001, 20_001, 20_001, 1 << 20);
    w
}

/// Ten segments of 1000 bytes, sent as five buffers of two.
#[test]
fn a_buffer_is_split_into_smaller_segments_when_it_is_sent_again() {
    let mut f = Flight::default();
    for i in 0..10 {
        let way = if i % 2 == 1 { Way::Joined } else { Way::Alone };
        f.sent_as(Time::ZERO, (1 + 1000 * i, 1001 + 1000 * i), Stamp::default(), way);
    }
    assert!(f.lose_larger(560) && !f.lose_larger(1000));
    let (mut sizes, mut joined) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let next = f.next_lost(u64::MAX).unwrap();
        let to = f.resegment(next, &window(560));
        joined.push(f.continues(next.0));
        let way = if f.continues(next.0) { Way::Joined } else { Way::Alone };
        f.sent_as(Time::ZERO, (next.0, to), Stamp::default(), way);
        sizes.push(to - next.0);
    }
    assert_eq!(sizes, [560, 560, 560, 320, 560, 560]);
    assert_eq!(joined, [false, true, true, true, false, true]);
    assert_eq!((f.lost_and_repeated(), f.segments()), ((14, 6), 14), "two buffers of four");
}

/// End of the first retransmission after a timeout of segments with these sizes. The third one and later ones are sent in
/// this way.
fn joined_again(sizes: &[u64], way: Way, w: &Window) -> u64 {
    let mut f = Flight::default();
    let mut from = 1;
    for (i, size) in sizes.iter().enumerate() {
        let way = if i > 1 { way } else { Way::Alone };
        f.sent_as(Time::ZERO, (from, from + size), Stamp::default(), way);
        from += size;
    }
    f.expire(|_| false, |_| {});
    let next = f.next_lost(u64::MAX).unwrap();
    let to = f.resegment(next, w);
    f.check();
    assert_eq!(f.pipe() + f.lost(), from - 1);
    to
}

/// A partial segment is sent again with the whole ones behind it that fit.
#[test]
fn partial_segments_are_joined_when_they_are_sent_again() {
    let w = window(1000);
    let mut near = window(1000);
    near.peer = 900;
    let mut records = window(1000);
    (records.nxt, records.max) = (1, 1);
    records.end_record(501);
    (records.nxt, records.max) = (20_001, 20_001);
    for (sizes, way, w, to) in [
        (&[500, 500, 500][..], Way::Alone, &w, 1001),
        (&[300, 300, 300, 200], Way::Alone, &w, 901),
        (&[500, 1000], Way::Alone, &w, 501),
        (&[1000, 500], Way::Alone, &w, 1001),
        (&[500, 500, 500], Way::Joined, &w, 501),
        (&[500, 500, 500], Way::Alone, &near, 501),
        (&[500, 500, 500], Way::Alone, &records, 501),
    ] {
        assert_eq!(joined_again(sizes, way, w), to, "{sizes:?} {way:?}");
    }
}

/// The FIN was sent alone behind the last byte. Their joint retransmission belongs to two records, and counts once.
#[test]
fn a_retransmission_that_reaches_the_next_record_ends_there() {
    let mut f = Flight::default();
    let w = Window::new(&crate::tcp::config::TcpConfig::rfc());
    let chunk = |from, len, fin| Chunk { from, len, fin, cause: crate::event::Cause::Data };
    for chunk in [chunk(2000, 1, false), chunk(2001, 0, true), chunk(2000, 1, true)] {
        f.put(Time(1), &w, &chunk, false);
    }
    f.check();
    let records: Vec<_> = f.records.iter().map(|r| (r.from, r.len)).collect();
    assert_eq!((records, f.pipe()), (vec![(2000, 1), (2001, 1)], 2));
}
