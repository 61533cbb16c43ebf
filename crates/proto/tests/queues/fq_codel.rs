//! A queue for each flow: service order, drops, and collisions of the hash.

use lasthop_proto::event::Cause;
use lasthop_proto::queue::{Discipline, FqCodelConfig, Limit, Share};
use lasthop_proto::units::{Bytes, Span};

use super::codel::{PLENTY, data};
use super::script::Bench;

fn fq(config: FqCodelConfig, limit: Limit) -> Bench {
    Bench::new(Discipline::FqCodel(config), limit)
}

/// Ports of the departing packets until the queue is empty.
fn ports(bench: &mut Bench) -> Vec<u16> {
    let port = |packet: lasthop_proto::wire::Packet| packet.segment().unwrap().dst_port;
    std::iter::from_fn(|| bench.dequeue()).map(port).collect()
}

//= rfc8290: new queues first, each a quantum; then the old ones in turn
#[test]
fn flows_take_turns_by_bytes_and_new_ones_go_first() {
    let mut bench = fq(FqCodelConfig { quantum: Bytes(1000), ..FqCodelConfig::default() }, PLENTY);
    for id in 0..4 {
        bench.enqueue(data(1, id, false));
    }
    for id in 4..6 {
        bench.enqueue(data(2, id, false));
    }
    let first: Vec<_> =
        (0..3).map(|_| bench.dequeue().unwrap().segment().unwrap().dst_port).collect();
    assert_eq!(first, [1, 2, 1]);
    bench.enqueue(data(3, 6, false));
    // The third flow is new: it precedes the waiting packets of the others.
    assert_eq!(ports(&mut bench), [3, 2, 1, 1]);
}

#[test]
fn a_flow_that_sends_little_waits_for_one_packet_of_the_others() {
    let mut bench = fq(FqCodelConfig::default(), PLENTY);
    let mut longest = 0;
    for now in 0..5000 {
        for port in 1..=8 {
            bench.enqueue(data(port, now, false));
        }
        if now % 100 == 50 {
            bench.enqueue(data(99, now, false));
        }
        let packet = bench.dequeue().unwrap();
        if packet.segment().unwrap().dst_port == 99 {
            longest = longest.max(now - packet.id.0);
        }
        bench.wait(Span::millis(1));
    }
    assert!(longest <= 2, "{longest} ms behind eight flows of eight times the rate");
}

#[test]
fn a_full_queue_drops_the_head_of_the_longest() {
    let mut bench = fq(FqCodelConfig::default(), Limit::Packets(10));
    for id in 0..9 {
        assert!(bench.enqueue(data(1, id, false)).is_empty());
    }
    assert!(bench.enqueue(data(2, 9, false)).is_empty());
    let ended = bench.enqueue(data(2, 10, false));
    assert_eq!(ended.len(), 1);
    assert_eq!((ended[0].0.id.0, ended[0].1), (0, Cause::QueueFull));
    // A packet too large for an empty queue drops only itself.
    let mut small = fq(FqCodelConfig::default(), Limit::Bytes(Bytes(900)));
    let ended = small.enqueue(data(1, 0, false));
    assert_eq!((ended.len(), ended[0].0.id.0), (1, 0));
}

#[test]
fn with_one_queue_it_is_first_in_first_out() {
    let mut bench = fq(FqCodelConfig { flows: 1, ..FqCodelConfig::default() }, PLENTY);
    for port in [3, 1, 2, 1, 3] {
        bench.enqueue(data(port, 0, false));
    }
    assert_eq!(ports(&mut bench), [3, 1, 2, 1, 3]);
}

#[test]
fn a_host_does_not_gain_by_many_connections() {
    let shares = |by: Share| {
        let mut bench = fq(FqCodelConfig { by, ..FqCodelConfig::default() }, PLENTY);
        let mut got = [0, 0];
        for now in 0..2000 {
            for port in 1..=9 {
                // Packets to the left share by their source: the mobile host.
                let mut packet = data(port, now, false);
                if port == 9 {
                    packet.src = lasthop_proto::wire::Addr::v4(10, 1, 0, 2);
                }
                bench.enqueue(packet);
            }
            let packet = bench.dequeue().unwrap();
            got[usize::from(packet.segment().unwrap().dst_port == 9)] += 1;
            bench.wait(Span::millis(1));
        }
        f64::from(got[1]) / f64::from(got[0] + got[1])
    };
    assert!((shares(Share::Flow) - 1.0 / 9.0).abs() < 0.01, "{}", shares(Share::Flow));
    assert!((shares(Share::Host) - 0.5).abs() < 0.01, "{}", shares(Share::Host));
}

#[test]
fn which_flows_share_a_queue_depends_on_the_seed() {
    let order = |seed: u64| {
        let config = FqCodelConfig { flows: 4, quantum: Bytes(1000), ..FqCodelConfig::default() };
        let mut bench = Bench::seeded(Discipline::FqCodel(config), PLENTY, seed);
        for id in 0..3 {
            for port in 1..=8 {
                bench.enqueue(data(port, id, false));
            }
        }
        ports(&mut bench)
    };
    assert_eq!(order(1), order(1));
    assert!((2..10).any(|seed| order(seed) != order(1)));
}
