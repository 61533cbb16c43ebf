//! Requests and responses over paths without losses, with exactly known times.

use lasthop_observe::metrics::{Exchanges, RunMetrics};

use crate::parsed::{self, scenario};

/// A round trip of 100 ms without transmission times.
fn text(transfer: &str, hosts: &str) -> String {
    format!(
        "{transfer}\n[host.mobile]\npreset = \"rfc\"\n{hosts}\n[host.server]\npreset = \"rfc\"\nside = \"left\"\n{hosts}\n\
         [[path]]\nlink = {{ delay = \"50ms\" }}\n"
    )
}

fn metrics(text: &str) -> RunMetrics {
    parsed::metrics(&scenario(text), 1)
}

fn run_exchanges(keys: &str, hosts: &str) -> Exchanges {
    let transfer = format!(
        "transfer = {{ from = \"mobile\", to = \"server\", request = \"300B\", response = \"1000B\", {keys} }}"
    );
    let metrics = metrics(&text(&transfer, hosts));
    assert!(metrics.flows.is_empty() && metrics.complete(), "exchanges are reported together");
    assert_eq!(metrics.corrupted, 0);
    let [exchanges] = &metrics.exchanges[..] else { panic!("{:?}", metrics.exchanges) };
    exchanges.clone()
}

/// Equal times, up to binary fractions.
#[track_caller]
fn same(measured: f64, ms: f64) {
    assert!((measured * 1e3 - ms).abs() < 1e-6, "{} ms and not {ms}", measured * 1e3);
}

#[test]
fn a_connection_for_each_exchange_takes_two_round_trips() {
    let exchanges = run_exchanges("exchanges = 5, think = \"1s\"", "");
    same(exchanges.time_p50_s, 200.0);
    same(exchanges.time_max_s, 200.0);
    assert_eq!((exchanges.asked, exchanges.answered, exchanges.connections), (5, 5, 5));
    // SYN, SYN-ACK, request with FIN, answer with FIN, ACK; the run is over before the last ACK is sent.
    assert_eq!((exchanges.delivered, exchanges.packets), (5000, 24));
    same(exchanges.time_mean_s, 200.0);
}

#[test]
fn a_connection_that_stays_open_takes_one_from_the_second_exchange_on() {
    let exchanges = run_exchanges("exchanges = 5, think = \"1s\", persistent = true", "");
    same(exchanges.time_max_s, 200.0);
    same(exchanges.time_p50_s, 100.0);
    same(exchanges.time_mean_s, 120.0);
    assert_eq!((exchanges.answered, exchanges.connections, exchanges.delivered), (5, 1, 5000));
}

#[test]
fn requests_may_be_sent_before_earlier_responses() {
    // Every 30 ms, with answers after 200 ms and, on an open connection, 100 ms.
    let each = run_exchanges("exchanges = 10, every = \"30ms\"", "");
    same(each.time_max_s, 200.0);
    assert_eq!((each.answered, each.connections), (10, 10));
    let one =
        run_exchanges("exchanges = 10, every = \"30ms\", persistent = true", "initial-window = 10");
    // The first waits for the handshake, and so do those made during the handshake.
    same(one.time_max_s, 200.0);
    same(one.time_p50_s, 100.0);
    assert_eq!((one.answered, one.connections, one.aborted), (10, 1, 0));
}

#[test]
fn clients_continue_until_they_are_stopped() {
    // An exchange and a second: start at 0, 1.2 s, 2.4 s and so on.
    let exchanges = run_exchanges("stop = \"6s\", think = \"1s\", count = 3", "");
    assert_eq!((exchanges.asked, exchanges.answered, exchanges.connections), (15, 15, 15));
    let persistent =
        run_exchanges("stop = \"6s\", every = \"1s\", count = 2, persistent = true", "");
    assert_eq!((persistent.asked, persistent.answered, persistent.connections), (12, 12, 2));
}

#[test]
fn tables_between_the_same_hosts_are_distinguished() {
    let transfers = "[[transfer]]\nfrom = \"mobile\"\nto = \"server\"\nrequest = \"1B\"\nresponse = \"1B\"\n\
                     exchanges = 3\nthink = \"0s\"\n\
                     [[transfer]]\nfrom = \"mobile\"\nto = \"server\"\nrequest = \"2000B\"\nresponse = \"50kB\"\n\
                     exchanges = 2\npersistent = true\n\
                     [[transfer]]\nfrom = \"server\"\nto = \"mobile\"\nbytes = \"10kB\"\n";
    let metrics = metrics(&text(transfers, ""));
    let [small, large] = &metrics.exchanges[..] else { panic!("{:?}", metrics.exchanges) };
    assert_eq!((small.answered, small.delivered), (3, 3));
    assert_eq!((large.answered, large.delivered), (2, 100_000));
    assert_eq!(metrics.flows.len(), 1, "the bulk transfer is reported separately");
    let of = |name| metrics.scalars().iter().find(|s| s.name == name).unwrap().value;
    assert_eq!(of("exchanges"), 5.0);
    assert_eq!(of("exchange_time_p50"), large.time_p50_s);
}

#[test]
fn think_time_exchanges_alone_define_the_throughput() {
    let keys = "exchanges = 5, think = \"1s\"";
    let transfer = format!(
        "transfer = {{ from = \"mobile\", to = \"server\", request = \"300B\", response = \"1000B\", {keys} }}"
    );
    let metrics = metrics(&text(&transfer, ""));
    assert!((metrics.aggregate_throughput - 1000.0 / 0.2).abs() < 1e-6);
}

#[test]
fn t_tcp_saves_a_round_trip_from_the_second_exchange_on() {
    let exchanges = run_exchanges("exchanges = 5, think = \"1s\"", "t-tcp = true");
    same(exchanges.time_max_s, 200.0);
    same(exchanges.time_p50_s, 100.0);
    same(exchanges.time_mean_s, 120.0);
    // Five segments for the first, then three for each, without the last ACK.
    assert_eq!((exchanges.answered, exchanges.connections, exchanges.packets), (5, 5, 16));
}

#[test]
fn fast_open_saves_a_round_trip_with_more_segments() {
    let exchanges = run_exchanges("exchanges = 5, think = \"1s\"", "fast-open = true");
    same(exchanges.time_max_s, 200.0);
    same(exchanges.time_p50_s, 100.0);
    // Five for the first, then SYN with the request, SYN-ACK, answer with FIN, FIN, and an ACK of each of them.
    assert_eq!((exchanges.answered, exchanges.connections, exchanges.packets), (5, 5, 29));
}

#[test]
fn t_tcp_and_fast_open_need_both_ends() {
    for keys in ["t-tcp", "fast-open"] {
        let transfer = "transfer = { from = \"mobile\", to = \"server\", request = \"300B\", response = \"1000B\", \
                        exchanges = 5, think = \"1s\" }";
        let client =
            text(transfer, "").replace("[host.mobile]", &format!("[host.mobile]\n{keys} = true"));
        let server =
            text(transfer, "").replace("[host.server]", &format!("[host.server]\n{keys} = true"));
        for text in [client, server] {
            same(metrics(&text).exchanges[0].time_p50_s, 200.0);
        }
    }
}
