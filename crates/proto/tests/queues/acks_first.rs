//! The two classes, with and without the filter.

use lasthop_proto::queue::{Discipline, Limit};

use super::script::check;

fn both(script: &str) {
    for discipline in [Discipline::AcksFirst, Discipline::AckFilterAcksFirst] {
        check(discipline, Limit::Packets(4), script);
    }
}

//= balakrishnan97#4.4.1: ACKs have priority
#[test]
fn acks_overtake_data_and_each_class_preserves_order() {
    both(
        "data 1+960
         data 961+960
         port 7 ack 0
         port 8 ack 0
         leaves port 7 ack 0
         leaves port 8 ack 0
         leaves data 1+960
         port 7 ack 0
         leaves port 7 ack 0
         leaves data 961+960
         leaves nothing",
    );
}

#[test]
fn control_segments_stay_in_the_order_of_the_data() {
    for other in ["ack 1000 fin", "ack 1000 syn", "ack 1000 rst", "ack 1000 urg"] {
        both(&format!(
            "data 1+960
             {other}
             ack 2000 sack 3000-4000
             leaves ack 2000 sack 3000-4000
             leaves data 1+960
             leaves {other}"
        ));
    }
}

#[test]
fn the_room_is_shared() {
    both(
        "data 1+960
         data 961+960
         data 1921+960
         data 2881+960
         ack 0 => full
         leaves data 1+960
         ack 0
         data 3841+960 => full
         leaves ack 0",
    );
}

#[test]
fn the_filter_makes_room_for_data() {
    check(
        Discipline::AckFilterAcksFirst,
        Limit::Packets(3),
        "ack 0
         data 1+960
         ack 1000
         ack 2000 => ends 1000
         data 961+960 => full
         leaves ack 0
         data 961+960
         leaves ack 2000
         leaves data 1+960
         leaves data 961+960",
    );
}

#[test]
fn a_syn_resets_the_filter_across_both_classes() {
    check(
        Discipline::AckFilterAcksFirst,
        Limit::Packets(10),
        "ack 5000
         ack 0 syn
         ack 1
         ack 1000
         ack 2000 => ends 1000
         leaves ack 5000
         leaves ack 1
         leaves ack 2000
         leaves ack 0 syn",
    );
}

/// The priority is strict: data waits as long as there are ACKs.
#[test]
fn data_starves_behind_a_stream_of_acks() {
    let mut script = String::from("data 1+960\nport 1 ack 0\n");
    for n in 2..50 {
        script.push_str(&format!("port {n} ack 0\nleaves port {} ack 0\n", n - 1));
    }
    script.push_str("leaves port 49 ack 0\nleaves data 1+960\n");
    both(&script);
}
