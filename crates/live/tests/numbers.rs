//! Both data planes treat connections alike for all initial sequence numbers, and read no field without its
//! flag.

mod common;

use common::ends::Hosts;
use common::*;
use lasthop_proto::wire::Flags;
use lasthop_trace::Nothing;

/// Boundaries of the sequence space and of its halves.
const BORDERS: [u32; 5] = [0, 1, (1 << 31) - 1, 1 << 31, u32::MAX];

const LEN: u32 = 100;

/// The mobile host, on the right, opens a connection and receives data with one lost segment. The agent
/// repairs the loss, and the fixed host does not notice. Then the same ports start another connection.
fn transfer(hosts: &Hosts, stray: u32) {
    let ack = Flags::ACK;
    hosts.pass(1, Flags::SYN, 0, stray, 0);
    hosts.pass(0, Flags::SYN | ack, 0, 1, 0);
    hosts.pass(1, ack, 1, 1, 0);
    for i in 0..10 {
        hosts.pass(0, ack, 1 + i * LEN, 1, LEN);
    }
    // The mobile host lacks the third of these segments.
    hosts.pass(1, ack, 1, 1 + LEN, 0);
    hosts.pass(1, ack, 1, 1 + 2 * LEN, 0);
    hosts.send(1, ack, 1, 1 + 2 * LEN, 0);
    let again = hosts.next(1);
    assert_eq!(again, Some((ack, 1 + 2 * LEN, 1, LEN)), "{:?}", hosts.isn);
    // The rest of the window causes duplicates too; the fixed host receives the next new ACK.
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
    // Without its flag a field is ignored.
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
            // The fixed host's number differs each time; otherwise agents would take its SYN for a duplicate.
            for right in &numbers {
                for left in &numbers {
                    hosts.isn = [*left, *right];
                    transfer(&hosts, numbers[connections % numbers.len()]);
                    // Queued work belongs to the present connection. The station reads the ring before each
                    // request except the first.
                    for _ in 0..2 {
                        assert_eq!(station.handle.ask(|_| ()), Some(()));
                    }
                    connections += 1;
                }
            }
            let counts = station.stop().1.plane.unwrap_or_default();
            if by == By::Kernel {
                // Only the duplicates of each connection.
                let judged = counts.diverted + counts.by_itself;
                assert_eq!(judged, 4 * connections as u64, "{counts:?}");
            }
            // Duplicate ACKs that a descheduled station did not divert in time.
            assert!(hosts.leaked.take() <= counts.by_itself, "{counts:?}");
        }
    });
}
