//! Start and end of snoop's flows, their limits, and packets that do not belong to them.

use lasthop_proto::agent::SnoopConfig;
use lasthop_proto::units::Bytes;

use crate::script::check;
use crate::snoop::{config, snoop};

#[test]
fn damaged_segments_are_not_believed() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460 tcp-damage     # forwarded, but neither cached nor counted
        1ms    fixed   1461+1460 ip-damage   => ip-checksum
        2ms    mobile  ack 1 tcp-damage
        3ms    mobile  ack 1 ip-damage       => ip-checksum
        5000ms end
        ",
    );
}

#[test]
fn a_fin_is_repaired_like_data_and_ends_the_flow() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        1ms    fixed   fin at 1461           # lost
        8ms    mobile  ack 1461
        108ms  base    fin at 1461           => local-timeout
        116ms  mobile  ack 1462
        116ms  note    flow-forgotten
        117ms  mobile  fin ack 1462
        5000ms end
        ",
    );
}

#[test]
fn a_reset_ends_the_flow_at_once() {
    for side in ["fixed ", "mobile ack 0"] {
        let (who, rest) = side.split_once(' ').unwrap();
        check(
            &snoop(config()),
            &format!(
                "
                0ms    fixed   1+1460
                1ms    {who}   rst {rest}
                1ms    note    flow-forgotten
                5000ms end
                "
            ),
        );
    }
}

#[test]
fn a_new_connection_on_the_same_ports_starts_afresh() {
    check(
        &snoop(config()),
        "
        0ms    fixed   syn
        1ms    fixed   syn                   # the same SYN again
        2ms    fixed   1+1460
        3ms    fixed   syn at 500000
        3ms    note    flow-forgotten
        4ms    mobile  syn ack 500001
        5000ms end
        ",
    );
}

#[test]
fn an_ack_of_unsent_data_passes_without_effect() {
    check(
        &snoop(config()),
        "
        0ms    fixed   syn
        1ms    mobile  syn ack 1
        2ms    fixed   1+1460
        3ms    mobile  at 1 ack 900000       # not believed, and not ours to judge
        8ms    mobile  at 1 ack 1461
        5000ms end
        ",
    );
}

#[test]
fn a_full_cache_retains_the_oldest_packets() {
    check(
        &snoop(SnoopConfig { flow_packets: 2, ..config() }),
        "
        0ms    fixed   1+1460                # lost
        1ms    fixed   1461+1460
        2ms    fixed   2921+1460
        2ms    note    cache-evicted
        3ms    mobile  ack 1
        8ms    mobile  ack 1                 => suppressed-dup-ack
        8ms    base    1+1460                => local-dup-ack
        9ms    mobile  ack 2921
        16ms   mobile  ack 2921              # not cached: the sender's matter
        24ms   mobile  ack 4381
        5000ms end
        ",
    );
}

#[test]
fn the_least_recently_used_flow_makes_room() {
    let notes = "
        0ms    fixed   1+1460
        1ms    fixed   1+1460 port 6000
        2ms    fixed   1461+1460
        3ms    fixed   1+1460 port 7000
        3ms    note    flow-forgotten
        8ms    mobile  ack 2921
        9ms    mobile  ack 1461 port 6000
        10ms   mobile  ack 1461 port 7000
        5000ms end
        ";
    check(&snoop(SnoopConfig { flows: 2, ..config() }), notes);
    // Four packets of 1500 bytes exceed 5,999 bytes of cache.
    check(&snoop(SnoopConfig { cache: Bytes(5_999), ..config() }), notes);
}

#[test]
fn other_directions_and_protocols_pass() {
    check(
        &snoop(config()),
        "
        0ms    mobile  1+1460 ack 1
        1ms    fixed   at 1
        2ms    mobile  1461+1460 ack 1
        5000ms end
        ",
    );
}
