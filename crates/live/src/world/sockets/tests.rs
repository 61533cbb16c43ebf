use std::cell::Cell;
use std::sync::{Arc, Mutex};

use lasthop_path::TransferState;
use lasthop_proto::event::{Tcb, TcpEvent};
use lasthop_proto::machine::Machine as Stages;
use lasthop_proto::units::{Span, Time};

use super::*;

const HERE: Addr = Addr::v4(127, 0, 0, 1);

fn flow(src_port: u16, dst_port: u16) -> FlowKey {
    FlowKey { src: HERE, dst: HERE, src_port, dst_port }
}

/// Packets that a [`Peer`] received.
#[derive(Clone, Debug, Default)]
struct ReceivedPackets(Arc<Mutex<Vec<(Packet, Side)>>>);

/// A host that records received packets, and emits the events and packets below at its timer.
#[derive(Debug, Default)]
struct Peer {
    received: ReceivedPackets,
    opened: Vec<TransferState>,
    /// Delivered bytes by the other end's port.
    delivered: BTreeMap<u16, u64>,
    unfinished: usize,
    wake: Option<Time>,
    /// Events to emit at its timer.
    emits: Vec<TcpKind>,
    /// Packets to send at its timer.
    sends: Vec<Packet>,
}

impl Stages for Peer {
    fn on_packet(&mut self, _: Time, from: Side, packet: Packet, _: &mut Out) {
        self.received.0.lock().unwrap().push((packet, from));
        self.unfinished = self.unfinished.saturating_sub(1);
    }

    fn on_wake(&mut self, _: Time, out: &mut Out) {
        self.wake = None;
        for kind in self.emits.drain(..) {
            let event = TcpEvent { flow: flow(1, 2), kind, tcb: Tcb::default() };
            out.event(EventKind::Tcp(event));
        }
        for packet in self.sends.drain(..) {
            out.send(Side::Right, packet);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.wake
    }
}

impl End for Peer {
    fn addr(&self) -> Addr {
        HERE
    }

    fn unfinished(&self) -> usize {
        self.unfinished
    }

    fn opened(&self) -> Vec<TransferState> {
        self.opened.clone()
    }

    fn delivered(&self, flow: FlowKey) -> u64 {
        self.delivered.get(&flow.dst_port).copied().unwrap_or(0)
    }
}

fn datagram(flow: FlowKey, payload: &[u8], tos: u8) -> Packet {
    let bytes = [&[0; udp::HEADER as usize], payload].concat();
    udp::packet(flow, bytes).with(|packet| packet.tos = tos)
}

/// A machine with one socket, and that socket's port.
fn machine(end: Peer) -> (Machine, u16) {
    let socket = Socket::bind(SocketAddr::new(HERE.ip(), 0)).unwrap();
    let port = socket.socket.local_addr().unwrap().port();
    let sockets = BTreeMap::from([(port, socket)]);
    let out = Out::new(Interest::METRICS);
    (Machine { end: Box::new(end), sockets, right: true, out, stage: StageId(3) }, port)
}

/// Each datagram reaches the machine as a separate packet with addresses, payload and ECN codepoint, however
/// many arrive at once.
#[test]
fn each_datagram_reaches_the_machine_unchanged() {
    let received = ReceivedPackets::default();
    let (mut machine, port) = machine(Peer { received: received.clone(), ..Peer::default() });
    let from = UdpSocket::bind((HERE.ip(), 0)).unwrap();
    let from_port = from.local_addr().unwrap().port();
    let state = UdpSocketState::new((&from).into()).unwrap();
    let all: Vec<(Vec<u8>, u8)> =
        (0..2 * BATCH as u8 + 3).map(|i| (vec![i; usize::from(i) + 1], i % 4)).collect();
    for (bytes, mark) in &all {
        let transmit = Transmit {
            destination: SocketAddr::new(HERE.ip(), port),
            ecn: EcnCodepoint::from_bits(*mark),
            contents: bytes,
            segment_size: None,
            src_ip: None,
        };
        state.send((&from).into(), &transmit).unwrap();
    }
    let mut buf = vec![0; LARGEST * BATCH];
    machine.receive(Clock::start(), &mut buf, &mut |_| ()).unwrap();
    let datagrams = received.0.lock().unwrap();
    assert_eq!(datagrams.len(), all.len());
    for ((packet, side), (bytes, mark)) in datagrams.iter().zip(&all) {
        assert_eq!(packet.datagram_flow(), Some(flow(from_port, port)));
        assert_eq!(udp::payload(packet), Some(&bytes[..]));
        assert_eq!((packet.tos, *side), (*mark, Side::Right));
    }
}

/// A packet leaves from the port of its flow, with its ECN codepoint. A packet without a socket is dropped,
/// and so is one that the socket refuses.
#[test]
fn outgoing_packets_leave_with_their_ecn_codepoint() {
    let to = UdpSocket::bind((HERE.ip(), 0)).unwrap();
    let to_port = to.local_addr().unwrap().port();
    let state = UdpSocketState::new((&to).into()).unwrap();
    let (mut machine, port) = machine(Peer::default());
    let packets = [
        datagram(flow(port, to_port), b"one", 2),
        datagram(flow(port.wrapping_add(1), to_port), b"from nowhere", 0),
        // Longer than any datagram.
        datagram(flow(port, to_port), &[7; LARGEST], 0),
        datagram(flow(port, to_port), b"three", 3),
    ];
    for packet in packets {
        machine.out.send(Side::Right, packet);
    }
    machine.drain(&mut |_| ()).unwrap();
    assert!(machine.out.sends.is_empty());
    let mut buf = vec![0; LARGEST * 4];
    let mut came = Vec::new();
    for _ in 0..2 {
        let mut metas = [RecvMeta::default(); 4];
        let mut slices: Vec<IoSliceMut<'_>> =
            buf.chunks_exact_mut(LARGEST).map(IoSliceMut::new).collect();
        let count = state.recv((&to).into(), &mut slices, &mut metas).unwrap_or(0);
        for (meta, piece) in metas.iter().zip(buf.chunks_exact(LARGEST)).take(count) {
            let mark = meta.ecn.map_or(0, |ecn| ecn as u8);
            came.push((piece[..meta.len].to_vec(), mark, meta.addr.port()));
        }
    }
    assert_eq!(came, [(b"one".to_vec(), 2, port), (b"three".to_vec(), 3, port)]);
}

/// The machine runs at its deadline and not before, reports the events of its connections, calls `idle` once,
/// and continues until it is stopped.
#[test]
fn a_machine_runs_at_its_deadline_and_reports_idle() {
    for (emits, right) in [
        (vec![TcpKind::Opening, TcpKind::Complete], true),
        (vec![TcpKind::Opening, TcpKind::Corrupted, TcpKind::Complete], false),
    ] {
        let (at, bytes) = (Time::ZERO + Span::millis(20), b"to itself".to_vec());
        let received = ReceivedPackets::default();
        let (mut machine, port) = machine(Peer::default());
        // It receives its own packet and has no more work.
        let own = datagram(flow(port, port), &bytes, 0);
        machine.end = Box::new(Peer {
            received: received.clone(),
            unfinished: 1,
            wake: Some(at),
            emits: emits.clone(),
            sends: vec![own],
            ..Peer::default()
        });
        let clock = Clock::start();
        let (events, idle) = (Cell::new(Vec::new()), Cell::new(0));
        let report = |news| {
            let HostReport::Event(event) = news else { panic!("only events are reported") };
            let mut all = events.take();
            all.push(event);
            events.set(all);
        };
        // Two more rounds after it has become idle.
        let rounds = Cell::new(0);
        let stopped = || {
            rounds.set(rounds.get() + u32::from(idle.get() > 0));
            rounds.get() > 2
        };
        let stood = machine.run(clock, stopped, || idle.set(idle.get() + 1), report).unwrap();
        assert_eq!((stood.right, idle.get()), (right, 1));
        assert_eq!(received.0.lock().unwrap().len(), 1, "one packet from itself");
        let events = events.take();
        for (event, kind) in events.iter().zip(&emits) {
            let EventKind::Tcp(tcp) = &event.kind else { panic!("{event:?}") };
            assert_eq!((tcp.kind, event.stage), (*kind, StageId(3)));
            assert!(event.at >= at, "it woke too early: {:?}", event.at);
        }
        assert_eq!(events.len(), emits.len());
    }
}

fn sent(port: u16, bytes: u64) -> TransferState {
    TransferState {
        flow: flow(port, DISCARD),
        wanted: Some(Bytes(bytes)),
        acknowledged: bytes,
        complete: true,
        aborted: false,
    }
}

/// Transfers of two hosts with their own stacks, with one of TCP between them. Each problem is reported with
/// its transfer's number.
#[test]
fn each_failed_transfer_is_reported_by_its_number() {
    let text = "[host.a]\n[host.b]\n[host.c]\nside = \"right\"\n[host.d]\nside = \"right\"\n\
                [[path]]\nlink = { rate = \"1mbit\", delay = \"1ms\" }\n"
        .to_owned()
        + &[
            ("a", "c", "count = 2\nprotocol = \"quic\""),
            ("b", "d", "count = 2"),
            ("a", "c", "protocol = \"quic\""),
        ]
        .map(|(from, to, more)| {
            format!("[[transfer]]\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = 1000\n{more}\n")
        })
        .concat();
    let (plan, _) = lasthop_scenario::parse(&text, "t", &[]).unwrap_or_else(|e| panic!("{e}"));
    let scenario = &plan.cells[0].scenario;
    let of = |name: &str| scenario.hosts.iter().position(|host| host.name == name).unwrap();
    let (from, to) = (of("a"), of("c"));
    let right = || {
        let opened = vec![sent(1, 1000), sent(2, 1000), sent(3, 1000)];
        let sender = Peer { opened, ..Peer::default() };
        let delivered = BTreeMap::from([(1, 1000), (2, 1000), (3, 1000)]);
        [sender, Peer { delivered, ..Peer::default() }]
    };
    let stood = |end: Peer, right| Ok(FinalState { end: Box::new(end), right });
    let faults = |change: &dyn Fn(&mut [Peer; 2]), all: bool| {
        let mut ends = right();
        change(&mut ends);
        let [sender, receiver] = ends;
        let both = BTreeMap::from([(from, stood(sender, true)), (to, stood(receiver, all))]);
        wrong(scenario, &both)
    };
    let none = [""; 0];
    assert_eq!(faults(&|_| (), true), none);
    let numbers = [1, 2, 5];
    let each = |message: &str| numbers.map(|n| format!("transfer {n} from a to c: {message}"));
    for (nth, number) in numbers.into_iter().enumerate() {
        let one = |message: &str| vec![format!("transfer {number} from a to c: {message}")];
        let port = nth as u16 + 1;
        let aborts = |ends: &mut [Peer; 2]| ends[0].opened[nth].aborted = true;
        assert_eq!(faults(&aborts, true), one("the connection was given up"));
        for bytes in [999, 1001] {
            let other = |ends: &mut [Peer; 2]| {
                ends[1].delivered.insert(port, bytes);
            };
            assert_eq!(faults(&other, true), one(&format!("{bytes} of 1000 bytes arrived")));
        }
        let fewer = |ends: &mut [Peer; 2]| ends[0].opened.truncate(nth);
        assert_eq!(faults(&fewer, true), each("it was not opened")[nth..]);
    }
    assert_eq!(faults(&|_| (), false), each("other bytes arrived than were sent"));
    let [sender, receiver] = right();
    let lone = BTreeMap::from([(from, stood(sender, true))]);
    assert_eq!(wrong(scenario, &lone), each("a host did not run"));
    let failed = || Err(io::Error::other("its socket is gone"));
    let first = BTreeMap::from([(from, failed()), (to, stood(receiver, true))]);
    assert_eq!(wrong(scenario, &first), each("its socket is gone"));
    let [sender, _] = right();
    let second = BTreeMap::from([(from, stood(sender, true)), (to, failed())]);
    assert_eq!(wrong(scenario, &second), each("its socket is gone"));
}
