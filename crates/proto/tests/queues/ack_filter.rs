//! The rules of the ACK filter, one script each.

use lasthop_proto::queue::ack_filter::FLOWS;
use lasthop_proto::queue::{Discipline, Limit, RandomFilter};
use lasthop_proto::units::{Bytes, Probability};
use lasthop_proto::wire::{PacketId, Seq};

use super::script::{Bench, check, packet};

fn filter(script: &str) {
    check(Discipline::AckFilter, Limit::Packets(10), script);
}

//= balakrishnan97#4.2.2: all preceding ACKs of a connection go when one with a larger value enters
#[test]
fn a_newer_ack_clears_the_older_one_and_joins_the_tail() {
    filter(
        "ack 0                          # the first of a connection: it may be a duplicate
         ack 1000
         data 1+960
         ack 2000 => ends 1000
         ack 3000 => ends 2000
         leaves ack 0
         leaves data 1+960
         leaves ack 3000
         leaves nothing",
    );
}

#[test]
fn the_filter_ignores_acks_that_have_left() {
    filter(
        "ack 0
         ack 1000
         leaves ack 0
         leaves ack 1000
         ack 2000
         ack 3000 => ends 2000
         leaves ack 3000
         leaves nothing",
    );
}

#[test]
fn connections_do_not_clear_each_other() {
    filter(
        "port 7 ack 0
         port 8 ack 0
         port 7 ack 1000
         port 8 ack 2000
         port 7 ack 3000 => ends port 7 ack 1000
         port 8 ack 4000 => ends port 8 ack 2000
         leaves port 7 ack 0
         leaves port 8 ack 0
         leaves port 7 ack 3000
         leaves port 8 ack 4000",
    );
}

//= rfc3449#section-5.2.1: an ACK with data or with SYN, FIN, RST or URG set must not be deleted
#[test]
fn only_pure_acks_are_removed() {
    for line in ["data 1+100 ack 1000", "ack 1000 fin", "ack 1000 urg", "ack 1000 psh"] {
        filter(&format!(
            "ack 0
             {line}
             ack 2000
             leaves ack 0
             leaves {line}
             leaves ack 2000"
        ));
    }
}

#[test]
fn only_pure_acks_remove() {
    for other in ["data 1+100 ack 2000", "ack 2000 fin", "ack 2000 urg", "ack 2000 damaged"] {
        filter(&format!(
            "ack 0
             ack 1000
             {other}
             leaves ack 0
             leaves ack 1000
             leaves {other}"
        ));
    }
}

//= rfc3449#section-5.2.1: nor ACKs with SACK blocks, nor ECN feedback
#[test]
fn an_ack_with_extra_information_is_not_cleared() {
    for word in ["sack 3000-4000", "ece", "ce", "unknown", "lost 1000", "damaged"] {
        filter(&format!(
            "ack 0
             ack 1000 {word}
             ack 2000
             ack 3000 => ends 2000
             leaves ack 0
             leaves ack 1000 {word}
             leaves ack 3000"
        ));
    }
}

#[test]
fn extra_information_does_not_stop_an_ack_from_clearing() {
    for word in ["sack 3000-4000", "ece", "lost 2000"] {
        filter(&format!(
            "ack 0
             ack 1000
             ack 2000 {word} => ends 1000
             leaves ack 0
             leaves ack 2000 {word}"
        ));
    }
}

//= west97#3.4: a partial acknowledgement says nothing about the receiver
#[test]
fn a_partial_acknowledgement_neither_clears_nor_is_cleared() {
    filter(
        "ack 0
         ack 1000
         ack 2000 partial
         ack 3000 => ends 1000
         leaves ack 0
         leaves ack 2000 partial
         leaves ack 3000",
    );
}

#[test]
fn an_unknown_option_may_mean_anything_so_its_ack_clears_nothing() {
    filter(
        "ack 0
         ack 1000
         ack 2000 unknown
         ack 3000 => ends 1000
         leaves ack 0
         leaves ack 2000 unknown
         leaves ack 3000",
    );
}

//= rfc3449#section-5.2.1: three duplicate ACKs must arrive; those above the threshold need not
#[test]
fn three_duplicates_stay_and_further_ones_go_when_the_hole_is_filled() {
    filter(
        "ack 0
         ack 1000
         ack 1000
         ack 1000
         ack 1000
         ack 1000                       # the fourth duplicate, which no sender counts
         ack 1000
         ack 2000 => ends 1000, ends 1000
         leaves ack 0
         leaves ack 1000
         leaves ack 1000
         leaves ack 1000
         leaves ack 1000
         leaves ack 2000
         leaves nothing",
    );
}

#[test]
fn duplicates_are_known_when_their_original_has_left() {
    filter(
        "ack 0
         ack 1000
         leaves ack 0
         leaves ack 1000
         ack 1000
         ack 2000                       # the duplicate may be the one that the sender waits for
         leaves ack 1000
         leaves ack 2000",
    );
}

#[test]
fn an_ack_is_no_longer_removed_once_it_has_a_duplicate() {
    filter(
        "ack 0
         ack 1000
         ack 1000
         ack 2000
         leaves ack 0
         leaves ack 1000
         leaves ack 1000
         leaves ack 2000",
    );
}

#[test]
fn duplicates_with_sack_blocks_count_as_well() {
    filter(
        "ack 0
         ack 1000
         ack 1000 sack 2000-3000
         ack 3000
         leaves ack 0
         leaves ack 1000
         leaves ack 1000 sack 2000-3000
         leaves ack 3000",
    );
}

//= rfc5681#section-2: a duplicate has the same window; another window is news
#[test]
fn window_updates_stay() {
    filter(
        "ack 0
         ack 1000 win 0
         ack 1000 win 8000
         ack 2000 win 8000
         leaves ack 0
         leaves ack 1000 win 0
         leaves ack 1000 win 8000
         leaves ack 2000 win 8000",
    );
}

//= rfc9293#section-3.10.7.4: a segment with an older sequence number does not set the window
#[test]
fn an_ack_that_could_not_set_the_window_clears_nothing() {
    filter(
        "ack 0
         ack 1000 at 500
         ack 2000 at 400
         ack 3000 at 500 => ends 2000 at 400, ends 1000 at 500
         leaves ack 0
         leaves ack 3000 at 500",
    );
}

//= rfc7323#section-5.2: a segment with an older timestamp than the last is dropped by its receiver
#[test]
fn the_newer_echo_survives_unless_its_segment_would_not() {
    filter(
        "ack 0 ts 10/5
         ack 1000 ts 11/6
         ack 2000 ts 12/7 => ends 1000 ts 11/6
         ack 3000 ts 11/8               # a clock that went back
         ack 4000                       # timestamps that vanished
         leaves ack 0 ts 10/5
         leaves ack 2000 ts 12/7
         leaves ack 3000 ts 11/8
         leaves ack 4000",
    );
}

#[test]
fn an_older_ack_that_comes_late_passes() {
    filter(
        "ack 0
         ack 2000
         ack 1000                       # no duplicate to a sender that sees 2000 before it
         ack 3000
         ack 4000 => ends 3000
         leaves ack 0
         leaves ack 2000
         leaves ack 1000
         leaves ack 4000",
    );
}

//= rfc7323#section-2.3: no window is larger than 2^30
#[test]
fn an_ack_of_an_old_incarnation_clears_nothing() {
    filter(
        "ack 0
         ack 1000
         ack 1500000000
         ack 2000
         leaves ack 0
         leaves ack 1000
         leaves ack 1500000000
         leaves ack 2000",
    );
}

#[test]
fn a_syn_resets_the_filter_state() {
    filter(
        "ack 5000
         leaves ack 5000
         ack 0 syn
         ack 1                          # were it not for the SYN, this would be an old ACK for ever
         ack 1000
         ack 2000 => ends 1000
         leaves ack 0 syn
         leaves ack 1
         leaves ack 2000",
    );
}

#[test]
fn an_ack_takes_the_room_of_the_one_it_clears() {
    let script = "ack 0
         ack 1000
         data 1+960
         ack 2000 => ends 1000
         data 961+960 => full
         ack 3000 => ends 2000
         port 8 ack 1 => full
         leaves ack 0
         leaves data 1+960
         leaves ack 3000";
    check(Discipline::AckFilter, Limit::Packets(3), script);
    check(Discipline::AckFilter, Limit::Bytes(Bytes(1080)), script);
}

#[test]
fn an_ack_that_does_not_fit_clears_nothing() {
    // The one with the SACK block is twelve bytes longer.
    check(
        Discipline::AckFilter,
        Limit::Bytes(Bytes(85)),
        "ack 0
         ack 1000
         ack 2000 sack 3000-4000 => full
         leaves ack 0
         leaves ack 1000",
    );
}

fn random(share: f64) -> Discipline {
    Discipline::AckFilterRandom(RandomFilter { share: Probability::new(share).unwrap() })
}

//= balakrishnan97#4.2.2: the filter removes some fraction of the older ACKs, at random
#[test]
fn the_random_policy_removes_its_share() {
    let all = "ack 0
         ack 1000
         data 1+960
         ack 2000 => ends 1000
         ack 3000 => ends 2000
         leaves ack 0
         leaves data 1+960
         leaves ack 3000
         leaves nothing";
    check(random(1.0), Limit::Packets(10), all);
    let none = "ack 0
         ack 1000
         ack 2000
         leaves ack 0
         leaves ack 1000
         leaves ack 2000
         leaves nothing";
    check(random(0.0), Limit::Packets(10), none);
    let mut bench = Bench::new(random(0.5), Limit::Packets(100_000));
    let mut enqueue = |port: usize, ack: u32| {
        let mut packet = packet(&format!("port {port} ack {ack}"), Seq(0));
        packet.id = PacketId(port as u64);
        bench.enqueue(packet).len()
    };
    // One candidate for each of 400 connections: 200 with a deviation of 10.
    let mut removed = 0;
    for port in 1..=400 {
        enqueue(port, 0);
        enqueue(port, 1000);
        removed += enqueue(port, 2000);
    }
    assert!((160..240).contains(&removed), "{removed}");
    // Retained ACKs remain candidates: after ten more, hardly any of the early ones waits.
    for port in 1..=400 {
        removed += (3..13).map(|n| enqueue(port, n * 1000)).sum::<usize>();
    }
    // Of eleven candidates of each connection, one remains on average: 4000 are removed, with a deviation of 16.
    assert!((3930..4070).contains(&removed), "{removed}");
}

#[test]
fn a_forgotten_connection_is_not_filtered() {
    let mut bench = Bench::new(Discipline::AckFilter, Limit::Packets(100_000));
    let mut enqueue = |port: usize, ack: u32| {
        let mut packet = packet(&format!("port {port} ack {ack}"), Seq(0));
        packet.id = PacketId(port as u64);
        bench.enqueue(packet).len()
    };
    assert_eq!((enqueue(1, 0), enqueue(1, 1000), enqueue(1, 2000)), (0, 0, 1));
    // Enough other flows that it may still be stored, then enough that it cannot be.
    assert_eq!((2..FLOWS).map(|port| enqueue(port, 0)).sum::<usize>(), 0);
    assert_eq!(enqueue(1, 3000), 1);
    assert_eq!((2..3 * FLOWS).map(|port| enqueue(port, 1000)).sum::<usize>(), 0);
    assert_eq!((enqueue(1, 4000), enqueue(1, 5000), enqueue(1, 6000)), (0, 0, 1));
}
