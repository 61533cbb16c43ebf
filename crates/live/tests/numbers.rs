//! Both data planes treat a connection alike wherever its numbers begin, and none reads a number without its flag.

mod common;

use common::ends::Hosts;
use common::*;
use lasthop_proto::wire::Flags;
use lasthop_trace::Nothing;

/// The borders of the number space, and of its halves.
const BORDERS: [u32; 5] = [0, 1, (1 << 31) - 1, 1 << 31, u32::MAX];

const LEN: u32 = 100;

/// The mobile host, on the right, opens a connection and receives data of which a segment is lost: the agent repairs
/// it, and the fixed host learns nothing of that. Then the ports begin another connection.
fn transfer(hosts: &Hosts, stray: u32) {
    let ack = Flags::ACK;
    hosts.pass(1, Flags::SYN, 0, stray, 0);
    hosts.pass(0, Flags::SYN | ack, 0, 1, 0);
    hosts.pass(1, ack, 1, 1, 0);
    for i in 0..10 {
        hosts.pass(0, ack, 1 + i * LEN, 1, LEN);
    }
    // Of these the mobile host lacks the third.
    hosts.pass(1, ack, 1, 1 + LEN, 0);
    hosts.pass(1, ack, 1, 1 + 2 * LEN, 0);
    hosts.send(1, ack, 1, 1 + 2 * LEN, 0);
    let again = hosts.next(1);
    assert_eq!(again, Some((ack, 1 + 2 * LEN, 1, LEN)), "{:?}", hosts.isn);
    // The others of the window cause duplicates as well; what comes to the fixed host next is new.
    for _ in 0..3 {
        hosts.send(1, ack, 1, 1 + 2 * LEN, 0);
    }
    hosts.send(1, ack, 1, 1 + 10 * LEN, 0);
    let mut came = hosts.next(0);
    while came == Some((ack, 1, 1 + 2 * LEN, 0)) {
        hosts.leaked.set(hosts.leaked.get() + 1);
        came = hosts.next(0);
    }
    assert_eq!(came, Some((ack, 1, 1 + 10 * LEN, 0)), "{:?}", hosts.isn);
    // Without a flag a segment says nothing.
    hosts.pass(1, Flags::PSH, 1, stray, 0);
    hosts.pass(0, ack, 1 + 10 * LEN, 1, LEN);
    hosts.pass(1, ack, 1, 1 + 11 * LEN, 0);
}

#[test]
fn both_planes_treat_connections_alike_wherever_their_numbers_begin() {
    alone_as_root("both_planes_treat_connections_alike_wherever_their_numbers_begin", || {
        wire(Wires::default());
        let mut random = [0; 4];
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").unwrap(), &mut random)
            .unwrap();
        let random = u32::from_ne_bytes(random);
        println!("random initial number: {random}");
        let numbers = [&BORDERS[..], &[random]].concat();
        let mut hosts = Hosts::new();
        for by in [By::Kernel, By::Sockets] {
            let station = station_by(by, Nothing, || vec![snoop()]);
            let mut connections = 0;
            // The fixed host's number is another one each time, else agents would take its SYN for a repeated one.
            for right in &numbers {
                for left in &numbers {
                    hosts.isn = [*left, *right];
                    transfer(&hosts, numbers[connections % numbers.len()]);
                    // What waits for a decision is of this connection. The station reads the ring before each errand but
                    // the first.
                    for _ in 0..2 {
                        assert_eq!(station.handle.ask(|_| ()), Some(()));
                    }
                    connections += 1;
                }
            }
            let counts = station.stop().1.plane.unwrap_or_default();
            if by == By::Kernel {
                // The duplicates of each connection, and nothing else.
                let judged = counts.diverted + counts.by_itself;
                assert_eq!(judged, 4 * connections as u64, "{counts:?}");
            }
            // Those that a station without a processor did not get in time.
            assert!(hosts.leaked.take() <= counts.by_itself, "{counts:?}");
        }
    });
}
