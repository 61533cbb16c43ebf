//! Both data planes treat connections alike for all initial sequence numbers, and read no field without its
//! flag.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;

use crate::common::ends::Hosts;
use crate::common::losses::Losses;
use crate::common::*;
use lasthop_observe::Nothing;
use lasthop_proto::wire::Flags;
use nix::time::{ClockId, clock_gettime};

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

/// Bytes of a transfer, of a write, and of a segment. A write each millisecond limits the rate to 100 Mbit/s,
/// so that no segment overtakes another.
const BULK: usize = 8_000_000;
const WRITE: usize = 10 * SEGMENT;
const SEGMENT: usize = 1448;

/// Sends `BULK` bytes to the first client that sends a byte.
fn serve(listener: &TcpListener) {
    let piece = vec![7; WRITE];
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        if stream.read(&mut [0]).unwrap() == 0 {
            continue;
        }
        let mut left = BULK;
        while left > 0 {
            let len = left.min(WRITE);
            stream.write_all(&piece[..len]).unwrap();
            left -= len;
            pause(1);
        }
        return;
    }
}

/// Receives `BULK` bytes over a connection whose sender's initial number is above the middle or not.
fn fetch(server: SocketAddr, high: bool) {
    let tap = socket("mh", "mr");
    loop {
        let mut stream = TcpStream::connect(server).unwrap();
        let numbers = initial_numbers(&tap, server.port());
        if numbers.is_none_or(|(_, number)| (number >= 1 << 31) != high) {
            continue;
        }
        drop(tap);
        stream.write_all(&[1]).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), BULK);
        return;
    }
}

/// Cost of transfers.
#[derive(Default, Debug)]
struct Cost {
    /// Diverted ACKs of each transfer.
    diverted: Vec<u64>,
    /// CPU time of the station in each transfer, ns.
    cpu: Vec<u64>,
}

fn median(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values[values.len() / 2]
}

impl Cost {
    /// Seconds for each Gbit: the median.
    fn cpu(&self) -> f64 {
        median(&self.cpu) as f64 / (8 * BULK) as f64
    }
}

/// Initial numbers in the lower and the upper half of the sequence space cost the same: diverted ACKs, and CPU
/// time of the station.
#[test]
fn low_and_high_numbers_cost_the_same() {
    alone_as_root("low_and_high_numbers_cost_the_same", || {
        let rounds = std::env::var("NUMBERS_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
        wire(Wires::default());
        for lossy in [false, true] {
            let station = station_by(By::Kernel, Nothing, || vec![snoop()]);
            let state = || {
                let ask = station.handle.ask(|station| {
                    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
                    let time = time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
                    let counts = station.plane().unwrap().counts();
                    (counts.diverted + counts.by_itself, time)
                });
                ask.unwrap()
            };
            let mut costs = [Cost::default(), Cost::default()];
            for round in 0..2 * rounds {
                let high = round % 2 == 1;
                let losses = lossy.then(|| Losses::start("mh", "mr"));
                let (sender, addresses) = channel();
                let server = within("fh", move || {
                    let listener = TcpListener::bind("10.9.0.1:0").unwrap();
                    sender.send(listener.local_addr().unwrap()).unwrap();
                    serve(&listener);
                });
                let address = addresses.recv().unwrap();
                let before = state();
                inside("mh", move || fetch(address, high));
                server.join().unwrap();
                let after = state();
                drop(losses);
                let cost = &mut costs[usize::from(high)];
                cost.diverted.push(after.0 - before.0);
                cost.cpu.push(after.1 - before.1);
            }
            let counts = station.stop().1.plane.unwrap();
            let packets = rounds * BULK.div_ceil(SEGMENT) as u64;
            let [low, high] = &costs;
            let cpu = [low.cpu(), high.cpu()];
            println!(
                "losses {lossy}, {rounds} transfers each: diverted for 1000 packets, and seconds of CPU for 1 Gbit"
            );
            for (name, cost, cpu) in [("low", low, cpu[0]), ("high", high, cpu[1])] {
                let diverted = cost.diverted.iter().sum::<u64>() as f64;
                println!("{name:5} {:8.3} {cpu:8.4}", diverted * 1000.0 / packets as f64);
            }
            println!("high / low: CPU {:.3}; {counts:?}", cpu[1] / cpu[0]);
            // A busy machine diverts a few ACKs without a loss, and repairs a loss later: a timeout in one transfer
            // diverts hundreds. If one half took the slow path, each ACK of each of its transfers would be
            // diverted. So only halves that are far apart differ.
            let few = packets / rounds / 1000;
            for (less, more) in [(low, high), (high, low)] {
                let (most, least) = (less.diverted.iter().max(), more.diverted.iter().min());
                let (most, least) = (*most.unwrap(), *least.unwrap());
                assert!(least <= few + 2 * most, "from {least} and up to {most}: {costs:?}");
            }
        }
    });
}
