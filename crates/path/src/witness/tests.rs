//! The inferred events of a host, segment by segment.

use super::*;
use lasthop_proto::event::{Event, Interest};
use lasthop_proto::machine::StageId;
use lasthop_proto::wire::{Body, SackBlocks};

const HOST: Addr = Addr::v4(10, 0, 0, 1);
const PEER: Addr = Addr::v4(10, 1, 0, 1);
/// Initial sequence numbers of the host, shortly before the wrap, and of its peer.
const ISN: [Seq; 2] = [Seq(u32::MAX - 1500), Seq(9000)];
const WINDOW: u16 = 8192;

/// A host with its witness.
struct WatchedHost {
    witness: Witness,
    out: Out,
}

/// A segment: its sender and content. Positions count from the initial sequence number, which is 0.
#[derive(Clone)]
struct Line {
    ms: u64,
    from_host: bool,
    flags: Flags,
    seq: u32,
    len: u32,
    ack: u32,
    window: u16,
    sack: Option<(u32, u32)>,
    ackp: Option<Ackp>,
    scale: Option<u8>,
    permits_sack: bool,
    damage: Damage,
}

/// The host sends `len` bytes from `seq` on.
fn sends(ms: u64, seq: u32, len: u32) -> Line {
    let (flags, ack, window) = (Flags::ACK, 1, WINDOW);
    let (sack, ackp, scale, permits_sack, damage) = (None, None, None, false, Damage::None);
    let from_host = true;
    Line { ms, from_host, flags, seq, len, ack, window, sack, ackp, scale, permits_sack, damage }
}

/// The peer's ACK of everything below `ack` arrives.
fn receives(ms: u64, ack: u32) -> Line {
    Line { from_host: false, ack, ..sends(ms, 1, 0) }
}

impl Line {
    fn with(self, flags: Flags) -> Line {
        Line { flags: self.flags | flags, ..self }
    }
}

impl WatchedHost {
    fn new() -> WatchedHost {
        WatchedHost { witness: Witness::of_all(Side::Right), out: Out::new(Interest::EVERYTHING) }
    }

    /// A connection with a round trip of 20 ms.
    fn established() -> WatchedHost {
        let mut watched = WatchedHost::new();
        assert_eq!(watched.see(Line { flags: Flags::SYN, ..sends(0, 0, 0) }), "Control, Opening");
        let answer = Line { seq: 0, ..receives(20, 1) }.with(Flags::SYN);
        assert_eq!(watched.see(answer), "Established");
        assert_eq!(watched.see(sends(20, 1, 0)), "Ack");
        watched
    }

    /// The events of a segment: its cause if the host sends it, and its effects.
    fn see(&mut self, line: Line) -> String {
        let (own, other) = if line.from_host { (0, 1) } else { (1, 0) };
        let (src, dst) = if line.from_host { (HOST, PEER) } else { (PEER, HOST) };
        let (seq, ack) = (ISN[own] + line.seq, ISN[other] + line.ack);
        let mut segment = Segment::new(40 + own as u16, 40 + other as u16, seq, ack, line.flags);
        segment.window = line.window;
        if let Some((from, to)) = line.sack {
            let mut blocks = SackBlocks::default();
            blocks.push(ISN[other] + from, ISN[other] + to);
            segment.options_mut().sack = blocks;
        }
        segment.options_mut().ackp = line.ackp;
        segment.options_mut().window_scale = line.scale;
        segment.options_mut().sack_permitted = line.permits_sack;
        let mut packet = Packet::tcp(src, dst, segment, Body::copy_of(&vec![7; line.len as usize]));
        packet.damage = line.damage;
        let from = if line.from_host { Side::Left } else { Side::Right };
        let now = Time(line.ms * 1_000_000);
        self.out.begin(StageId(0), now);
        self.witness.on_packet(now, from, packet, &mut self.out);
        assert_eq!(self.out.sends.len(), 1, "it is passed on");
        self.out.sends.clear();
        let (mut first, mut effects) = (None, Vec::new());
        for Event { kind, .. } in self.out.events.drain(..) {
            match kind {
                EventKind::Packet { op: Op::Originated(cause), .. } => {
                    first = Some(format!("{cause:?}"))
                }
                EventKind::Packet { op: Op::Dropped(cause), .. } => {
                    effects.push(format!("{cause:?}"))
                }
                EventKind::Tcp(TcpEvent { kind: TcpKind::Delivered { bytes }, .. }) => {
                    effects.push(format!("Delivered {bytes}"));
                }
                EventKind::Tcp(TcpEvent { kind, .. }) => effects.push(format!("{kind:?}")),
                _ => {}
            }
        }
        first.into_iter().chain(effects).collect::<Vec<_>>().join(", ")
    }

    #[track_caller]
    fn expect<const N: usize>(&mut self, lines: [(Line, &str); N]) {
        for (line, expected) in lines {
            let case = format!("{} ms, {} + {} ack {}", line.ms, line.seq, line.len, line.ack);
            assert_eq!(self.see(line), expected, "{case}");
        }
    }

    fn tcb(&self) -> Tcb {
        let i = (0..self.witness.flows.slots()).find(|i| self.witness.flows[*i].sent.is_some());
        self.witness.flows[i.expect("a connection")].tcb()
    }
}

/// Four segments of 1000 bytes are in flight.
fn four() -> WatchedHost {
    let mut watched = WatchedHost::established();
    for i in 0..4 {
        assert_eq!(watched.see(sends(30, 1 + 1000 * i, 1000)), "Data");
    }
    watched
}

#[test]
fn bytes_are_sent_again_by_three_duplicate_acks_or_by_a_timer() {
    let mut three = four();
    three.expect([
        (receives(50, 1001), "Acked"),
        (receives(51, 1001), "DupAck"),
        (receives(52, 1001), "DupAck"),
        (receives(53, 1001), "DupAck"),
        (sends(53, 1001, 1000), "FastRetransmit, FastRetransmit"),
        (sends(53, 4001, 1000), "Data"),
    ]);
    let mut two = four();
    two.expect([
        (receives(50, 1001), "Acked"),
        (receives(51, 1001), "DupAck"),
        (receives(52, 1001), "DupAck"),
        (sends(53, 1001, 1000), "TimeoutRetransmit, Timeout"),
    ]);
    let mut block = four();
    let with_sack = Line { sack: Some((2001, 3001)), ..receives(51, 1001) };
    block.expect([
        (receives(50, 1001), "Acked"),
        (with_sack, "DupAck"),
        (sends(52, 1001, 1000), "FastRetransmit, FastRetransmit"),
    ]);
}

/// Silence ends with a transmission or an ACK for new data; duplicate ACKs do not end it.
#[test]
fn a_retransmission_after_silence_is_a_timeout() {
    for (ms, expected) in [
        (199, "FastRetransmit, FastRetransmit"),
        (200, "TimeoutRetransmit, Timeout"),
        (201, "TimeoutRetransmit, Timeout"),
    ] {
        let mut watched = four();
        watched.expect([(receives(50, 1001), "Acked")]);
        for i in 0..3 {
            assert_eq!(watched.see(receives(51 + i, 1001)), "DupAck");
        }
        assert_eq!(watched.see(sends(ms, 1001, 1000)), expected, "at {ms} ms");
    }
    // The last transmission counts as well.
    let mut watched = four();
    watched.expect([
        (receives(50, 1001), "Acked"),
        (sends(100, 4001, 1000), "Data"),
        (receives(101, 1001), "DupAck"),
        (receives(102, 1001), "DupAck"),
        (receives(103, 1001), "DupAck"),
        (sends(249, 1001, 1000), "FastRetransmit, FastRetransmit"),
    ]);
}

#[test]
fn a_recovery_lasts_until_all_prior_data_is_acknowledged() {
    let mut watched = four();
    watched.expect([
        (Line { sack: Some((1001, 4001)), ..receives(50, 1) }, "DupAck"),
        (sends(51, 1, 1000), "FastRetransmit, FastRetransmit"),
        (sends(52, 1001, 1000), "FastRetransmit"),
        (receives(70, 2001), "Acked"),
        (sends(71, 2001, 1000), "FastRetransmit"),
    ]);
    assert!(watched.tcb().in_recovery);
    watched.expect([
        (receives(90, 4000), "Acked"),
        (sends(90, 4000, 1), "FastRetransmit"),
        (receives(91, 4001), "RecoveryEnded, Acked"),
    ]);
    assert!(!watched.tcb().in_recovery);
    watched.expect([
        (sends(100, 4001, 1000), "Data"),
        (sends(300, 4001, 1000), "TimeoutRetransmit, Timeout"),
        (sends(301, 4001, 1000), "TimeoutRetransmit"),
        (receives(320, 5001), "Acked"),
    ]);
    // A timer may end an episode of duplicate ACKs.
    let mut watched = four();
    watched.expect([
        (Line { sack: Some((1001, 4001)), ..receives(50, 1) }, "DupAck"),
        (sends(51, 1, 1000), "FastRetransmit, FastRetransmit"),
        (sends(201, 1, 1000), "TimeoutRetransmit, Timeout"),
    ]);
}

#[test]
fn acks_without_update_are_duplicates_with_data_in_flight() {
    let mut watched = four();
    watched.expect([
        (Line { window: 4096, ..receives(50, 1) }, ""),
        (Line { window: 4096, ..receives(51, 1) }, "DupAck"),
        (Line { window: 4096, len: 10, ..receives(52, 1) }, "Delivered 10"),
        (Line { seq: 11, window: 4096, ..receives(53, 4001) }, "Acked"),
        (Line { seq: 11, window: 4096, ..receives(54, 4001) }, ""),
        // Data never sent is not acknowledged.
        (Line { seq: 11, window: 4096, ..receives(55, 4002) }, ""),
        (Line { seq: 11, window: 4096, ..receives(56, 1) }, ""),
    ]);
    assert_eq!((watched.tcb().snd_una, watched.tcb().snd_max), (4001, 4001));
    // With a SACK block it is a duplicate, whatever its window.
    let mut watched = four();
    let block = Line { window: 4096, sack: Some((1001, 2001)), ..receives(50, 1) };
    watched.expect([(block, "DupAck")]);
}

#[test]
fn probes_differ_from_data() {
    let mut watched = four();
    watched.expect([
        (Line { window: 0, ..receives(50, 4001) }, "Acked"),
        (sends(60, 4001, 1), "WindowProbe"),
        (sends(70, 4002, 2), "Data"),
        (Line { window: 1, ..receives(80, 4004) }, "Acked"),
        (sends(90, 4004, 1), "Data"),
        (receives(95, 4005), "Acked"),
        // A keep-alive has a byte that was acknowledged.
        (sends(9000, 4004, 1), "WindowProbe"),
    ]);
}

#[test]
fn a_transfer_completes_with_all_data_acked_and_fin() {
    // The FIN comes with the last data.
    let mut with_data = WatchedHost::established();
    with_data.expect([
        (sends(30, 1, 1000).with(Flags::FIN), "Data"),
        (receives(50, 1000), "Acked"),
        (receives(51, 1001), "Acked, Complete"),
        (receives(52, 1002), "Acked"),
    ]);
    // The data is acknowledged before the FIN comes.
    let mut later = WatchedHost::established();
    later.expect([
        (sends(30, 1, 1000), "Data"),
        (receives(50, 1001), "Acked"),
        (sends(60, 1001, 0).with(Flags::FIN), "Control, Complete"),
        (receives(80, 1002), "Acked"),
    ]);
    // Without data only the FIN can be acknowledged.
    let mut empty = WatchedHost::established();
    empty.expect([
        (sends(30, 1, 0).with(Flags::FIN), "Control"),
        (receives(50, 1), "DupAck"),
        (receives(51, 2), "Acked, Complete"),
    ]);
}

#[test]
fn received_data_is_counted_once_and_in_order() {
    let data = |ms, seq, len| Line { seq, len, ..receives(ms, 1) };
    let mut watched = WatchedHost::established();
    watched.expect([
        (data(30, 1, 100), "Delivered 100"),
        (data(31, 1, 100), ""),
        (data(32, 51, 100), "Delivered 50"),
        (data(33, 251, 100), ""),
        (data(34, 351, 50), ""),
        (data(35, 500, 100), ""),
        (data(36, 151, 100), "Delivered 250"),
        (data(37, 401, 300).with(Flags::FIN), "Delivered 300"),
        (data(38, 401, 300).with(Flags::FIN), ""),
    ]);
    assert_eq!(watched.tcb().rcv_nxt, 702, "with the FIN");
    // The host acknowledges data that the witness missed.
    let mut unseen = WatchedHost::established();
    unseen.expect([
        (data(30, 101, 100), ""),
        (Line { ack: 101, ..sends(31, 1, 0) }, "Ack, Delivered 100"),
        (Line { ack: 101, ..sends(32, 1, 0) }, "Ack"),
    ]);
}

#[test]
fn openings_and_ends_are_reported_once() {
    let syn = |ms| Line { flags: Flags::SYN, ..sends(ms, 0, 0) };
    let mut watched = WatchedHost::new();
    watched.expect([
        // No event for an unknown connection.
        (sends(0, 5, 0).with(Flags::RST), "Control"),
        (syn(0), "Control, Opening"),
        (syn(149), "Control"),
        (syn(299), "Control, Timeout"),
        (Line { seq: 0, ..receives(310, 1) }.with(Flags::SYN), "Established"),
        (Line { seq: 1, ..receives(320, 1) }.with(Flags::RST), "Aborted"),
        (sends(330, 1, 0).with(Flags::RST), "Control"),
        // The ports are reused.
        (Line { seq: 77, ..syn(400) }, "Control, Opening"),
        (sends(410, 78, 0).with(Flags::RST), "Control, Aborted"),
    ]);
}

/// A host without support of partial acknowledgements treats them as ordinary ones, and so does its witness.
#[test]
fn hosts_that_support_partial_acknowledgements_ignore_them() {
    for (offers, expected) in [(Some(Ackp::Permitted), ""), (None, "Acked")] {
        let mut watched = WatchedHost::new();
        watched.see(Line { flags: Flags::SYN, ackp: offers, ..sends(0, 0, 0) });
        watched.see(Line { seq: 0, ..receives(20, 1) }.with(Flags::SYN));
        watched.see(sends(30, 1, 1000));
        let partial = Line { ackp: Some(Ackp::Partial), ..receives(40, 1001) };
        assert_eq!(watched.see(partial), expected, "{offers:?}");
    }
}

#[test]
fn the_peers_window_is_scaled_by_fourteen_at_most() {
    for (scale, window) in [(None, 8192), (Some(3), 8192 << 3), (Some(15), 8192 << 14)] {
        let mut watched = WatchedHost::new();
        watched.see(Line { flags: Flags::SYN, ..sends(0, 0, 0) });
        watched.see(Line { seq: 0, scale, ..receives(20, 1) }.with(Flags::SYN));
        assert_eq!(watched.tcb().snd_wnd, window, "{scale:?}");
    }
}

#[test]
fn damaged_packets_are_reported_and_have_no_effect() {
    let mut watched = four();
    watched.expect([
        (Line { damage: Damage::Ip, ..receives(50, 4001) }, "IpChecksum"),
        (Line { damage: Damage::Tcp, ..receives(51, 4001) }, "TcpChecksum"),
        (Line { damage: Damage::Tcp, ..sends(52, 4001, 1000) }, ""),
        (receives(53, 4001), "Acked"),
    ]);
    assert_eq!(watched.tcb().snd_max, 4001);
}

#[test]
fn a_witness_serves_its_addresses_or_all_addresses() {
    let one = Witness::of_host(vec![HOST], Side::Right, false);
    assert!(one.serves(HOST) && !one.serves(PEER));
    assert!(Witness::of_all(Side::Left).serves(PEER));
}

/// With another source of events, only deliveries are reported.
#[test]
fn events_of_a_host_with_another_source_are_not_reported_twice() {
    let witness = Witness::of_host(vec![HOST], Side::Right, true);
    let mut watched = WatchedHost { witness, out: Out::new(Interest::EVERYTHING) };
    watched.expect([
        (Line { flags: Flags::SYN, ..sends(0, 0, 0) }, "Control"),
        (Line { seq: 0, ..receives(20, 1) }.with(Flags::SYN), ""),
        (sends(30, 1, 1000), "Data"),
        (Line { len: 10, ..receives(50, 1001) }, "Delivered 10"),
        (sends(300, 1, 2000), "TimeoutRetransmit"),
    ]);
}

/// The connection with the longest silence is forgotten first.
#[test]
fn the_oldest_connection_is_forgotten_first() {
    let mut witness = Witness::of_all_within(Side::Right, 2);
    let mut out = Out::new(Interest::NOTHING);
    for (ms, port) in [(0, 1), (1, 2), (2, 1), (3, 3), (4, 1)] {
        let segment = Segment::new(port, 80, Seq(7), Seq(1), Flags::ACK);
        let packet = Packet::tcp(HOST, PEER, segment, Body::copy_of(&[1]));
        out.begin(StageId(0), Time(ms));
        witness.on_packet(Time(ms), Side::Left, packet, &mut out);
    }
    assert_eq!(witness.connections(), 2);
    let is_known = |port| {
        let segment = Segment::new(port, 80, Seq(7), Seq(1), Flags::ACK);
        let packet = Packet::tcp(HOST, PEER, segment, Body::copy_of(&[]));
        packet.flow().and_then(|flow| witness.flows.find(flow)).is_some()
    };
    assert_eq!([1, 2, 3].map(is_known), [true, false, true]);
}

/// A current host, and a connection with SACK if both ends permit it.
fn of_a_current_host(permits_sack: [bool; 2]) -> WatchedHost {
    let mut watched = WatchedHost::new();
    watched.witness = Witness::of_host(vec![HOST], Side::Right, false);
    let [own, peers] = permits_sack;
    watched.see(Line { flags: Flags::SYN, permits_sack: own, ..sends(0, 0, 0) });
    let answer = Line { seq: 0, permits_sack: peers, ..receives(20, 1) };
    watched.see(answer.with(Flags::SYN));
    watched
}

/// The last segment is sent again after two round trips, and again after a timeout.
#[test]
fn one_tail_loss_probe_precedes_a_timeout() {
    for (permits, first) in [
        ([true, true], "TailLossProbe, TailLossProbe"),
        ([true, false], "TimeoutRetransmit, Timeout"),
        ([false, true], "TimeoutRetransmit, Timeout"),
    ] {
        let mut watched = of_a_current_host(permits);
        watched.expect([
            (sends(30, 1, 1000), "Data"),
            (sends(290, 1, 1000), first),
            (sends(600, 1, 1000), "TimeoutRetransmit, Timeout"),
            (receives(620, 1001), "Acked"),
        ]);
    }
    let mut two = of_a_current_host([true; 2]);
    two.expect([
        (sends(30, 1, 1000), "Data"),
        (sends(30, 1001, 1000), "Data"),
        (sends(80, 1001, 1000), "TailLossProbe, TailLossProbe"),
        (sends(300, 1, 1000), "TimeoutRetransmit, Timeout"),
        (receives(320, 2001), "Acked"),
        (sends(330, 2001, 1000), "Data"),
        (sends(600, 2001, 1000), "TailLossProbe, TailLossProbe"),
    ]);
    let mut head = of_a_current_host([true; 2]);
    head.expect([
        (sends(30, 1, 1000), "Data"),
        (sends(30, 1001, 1000), "Data"),
        (sends(300, 1, 1000), "TimeoutRetransmit, Timeout"),
    ]);
}

/// An ACK that moves the left edge and reports data above it shows another loss.
#[test]
fn an_ack_of_new_data_with_blocks_shows_a_loss() {
    let mut watched = of_a_current_host([true; 2]);
    for i in 0..4 {
        assert_eq!(watched.see(sends(30, 1 + 1000 * i, 1000)), "Data");
    }
    watched.expect([
        (Line { sack: Some((2001, 3001)), ..receives(60, 1001) }, "Acked"),
        (sends(61, 1001, 1000), "FastRetransmit, FastRetransmit"),
    ]);
}
