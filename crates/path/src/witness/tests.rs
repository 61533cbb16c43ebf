//! What is told of a host, segment by segment.

use super::*;
use lasthop_proto::event::{Event, Wants};
use lasthop_proto::machine::StageId;
use lasthop_proto::wire::{Body, SackBlocks};

const HOST: Addr = Addr::v4(10, 0, 0, 1);
const PEER: Addr = Addr::v4(10, 1, 0, 1);
/// Initial sequence numbers of the host, shortly before the wrap, and of its peer.
const ISN: [Seq; 2] = [Seq(u32::MAX - 1500), Seq(9000)];
const WINDOW: u16 = 8192;

/// A host and what its witness says.
struct Watched {
    witness: Witness,
    out: Out,
}

/// A segment: who sends it, and what stands in it. Positions count from the initial sequence number, which is 0.
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
    damage: Damage,
}

/// The host sends `len` bytes from `seq` on.
fn sends(ms: u64, seq: u32, len: u32) -> Line {
    let (flags, ack, window) = (Flags::ACK, 1, WINDOW);
    let (sack, ackp, scale, damage) = (None, None, None, Damage::None);
    Line { ms, from_host: true, flags, seq, len, ack, window, sack, ackp, scale, damage }
}

/// The peer's ACK of everything below `ack` comes.
fn hears(ms: u64, ack: u32) -> Line {
    Line { from_host: false, ack, ..sends(ms, 1, 0) }
}

impl Line {
    fn with(self, flags: Flags) -> Line {
        Line { flags: self.flags | flags, ..self }
    }
}

impl Watched {
    fn new() -> Watched {
        Watched { witness: Witness::of_all(Side::Right), out: Out::new(Wants::EVERYTHING) }
    }

    /// A connection with a round trip of 20 ms.
    fn established() -> Watched {
        let mut watched = Watched::new();
        assert_eq!(watched.see(Line { flags: Flags::SYN, ..sends(0, 0, 0) }), "Control, Opening");
        let answer = Line { seq: 0, ..hears(20, 1) }.with(Flags::SYN);
        assert_eq!(watched.see(answer), "Established");
        assert_eq!(watched.see(sends(20, 1, 0)), "Ack");
        watched
    }

    /// What is told of a segment: of one that the host sends why, of both what it means.
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
        let mut packet = Packet::tcp(src, dst, segment, Body::copy_of(&vec![7; line.len as usize]));
        packet.damage = line.damage;
        let from = if line.from_host { Side::Left } else { Side::Right };
        let now = Time(line.ms * 1_000_000);
        self.out.begin(StageId(0), now);
        self.witness.on_packet(now, from, packet, &mut self.out);
        assert_eq!(self.out.sends.len(), 1, "it is passed on");
        self.out.sends.clear();
        let (mut first, mut told) = (None, Vec::new());
        for Event { what, .. } in self.out.events.drain(..) {
            match what {
                What::Packet { op: Op::Originated(cause), .. } => {
                    first = Some(format!("{cause:?}"))
                }
                What::Packet { op: Op::Dropped(cause), .. } => told.push(format!("{cause:?}")),
                What::Tcp(TcpEvent { kind: TcpKind::Delivered { bytes }, .. }) => {
                    told.push(format!("Delivered {bytes}"));
                }
                What::Tcp(TcpEvent { kind, .. }) => told.push(format!("{kind:?}")),
                _ => {}
            }
        }
        first.into_iter().chain(told).collect::<Vec<_>>().join(", ")
    }

    #[track_caller]
    fn tells<const N: usize>(&mut self, lines: [(Line, &str); N]) {
        for (line, told) in lines {
            let what = format!("{} ms, {} + {} ack {}", line.ms, line.seq, line.len, line.ack);
            assert_eq!(self.see(line), told, "{what}");
        }
    }

    fn tcb(&self) -> Tcb {
        let i = (0..self.witness.flows.slots()).find(|i| self.witness.flows[*i].sent.is_some());
        self.witness.flows[i.expect("a connection")].tcb()
    }
}

/// Four segments of 1000 bytes are out.
fn four() -> Watched {
    let mut watched = Watched::established();
    for i in 0..4 {
        assert_eq!(watched.see(sends(30, 1 + 1000 * i, 1000)), "Data");
    }
    watched
}

#[test]
fn bytes_are_sent_again_by_three_duplicate_acks_or_by_a_timer() {
    let mut three = four();
    three.tells([
        (hears(50, 1001), "Acked"),
        (hears(51, 1001), "DupAck"),
        (hears(52, 1001), "DupAck"),
        (hears(53, 1001), "DupAck"),
        (sends(53, 1001, 1000), "FastRetransmit, FastRetransmit"),
        (sends(53, 4001, 1000), "Data"),
    ]);
    let mut two = four();
    two.tells([
        (hears(50, 1001), "Acked"),
        (hears(51, 1001), "DupAck"),
        (hears(52, 1001), "DupAck"),
        (sends(53, 1001, 1000), "TimeoutRetransmit, Timeout"),
    ]);
    let mut block = four();
    let told = Line { sack: Some((2001, 3001)), ..hears(51, 1001) };
    block.tells([
        (hears(50, 1001), "Acked"),
        (told, "DupAck"),
        (sends(52, 1001, 1000), "FastRetransmit, FastRetransmit"),
    ]);
}

/// Silence is what passes without a transmission and without an ACK for new data; duplicate ACKs do not break it.
#[test]
fn what_follows_a_silence_is_a_timers() {
    for (ms, told) in [
        (199, "FastRetransmit, FastRetransmit"),
        (200, "TimeoutRetransmit, Timeout"),
        (201, "TimeoutRetransmit, Timeout"),
    ] {
        let mut watched = four();
        watched.tells([(hears(50, 1001), "Acked")]);
        for i in 0..3 {
            assert_eq!(watched.see(hears(51 + i, 1001)), "DupAck");
        }
        assert_eq!(watched.see(sends(ms, 1001, 1000)), told, "at {ms} ms");
    }
    // The last transmission counts as well.
    let mut watched = four();
    watched.tells([
        (hears(50, 1001), "Acked"),
        (sends(100, 4001, 1000), "Data"),
        (hears(101, 1001), "DupAck"),
        (hears(102, 1001), "DupAck"),
        (hears(103, 1001), "DupAck"),
        (sends(249, 1001, 1000), "FastRetransmit, FastRetransmit"),
    ]);
}

#[test]
fn what_follows_belongs_to_the_same_episode_until_all_before_it_is_acknowledged() {
    let mut watched = four();
    watched.tells([
        (Line { sack: Some((1001, 4001)), ..hears(50, 1) }, "DupAck"),
        (sends(51, 1, 1000), "FastRetransmit, FastRetransmit"),
        (sends(52, 1001, 1000), "FastRetransmit"),
        (hears(70, 2001), "Acked"),
        (sends(71, 2001, 1000), "FastRetransmit"),
    ]);
    assert!(watched.tcb().in_recovery);
    watched.tells([
        (hears(90, 4000), "Acked"),
        (sends(90, 4000, 1), "FastRetransmit"),
        (hears(91, 4001), "RecoveryEnded, Acked"),
    ]);
    assert!(!watched.tcb().in_recovery);
    watched.tells([
        (sends(100, 4001, 1000), "Data"),
        (sends(300, 4001, 1000), "TimeoutRetransmit, Timeout"),
        (sends(301, 4001, 1000), "TimeoutRetransmit"),
        (hears(320, 5001), "Acked"),
    ]);
    // A timer may end what began by duplicate ACKs.
    let mut watched = four();
    watched.tells([
        (Line { sack: Some((1001, 4001)), ..hears(50, 1) }, "DupAck"),
        (sends(51, 1, 1000), "FastRetransmit, FastRetransmit"),
        (sends(201, 1, 1000), "TimeoutRetransmit, Timeout"),
    ]);
}

#[test]
fn an_ack_is_a_duplicate_only_while_something_is_out_and_says_nothing_else() {
    let mut watched = four();
    watched.tells([
        (Line { window: 4096, ..hears(50, 1) }, ""),
        (Line { window: 4096, ..hears(51, 1) }, "DupAck"),
        (Line { window: 4096, len: 10, ..hears(52, 1) }, "Delivered 10"),
        (Line { seq: 11, window: 4096, ..hears(53, 4001) }, "Acked"),
        (Line { seq: 11, window: 4096, ..hears(54, 4001) }, ""),
        // What was never sent is not acknowledged.
        (Line { seq: 11, window: 4096, ..hears(55, 4002) }, ""),
        (Line { seq: 11, window: 4096, ..hears(56, 1) }, ""),
    ]);
    assert_eq!((watched.tcb().snd_una, watched.tcb().snd_max), (4001, 4001));
    // With a block it is one whatever its window is.
    let mut watched = four();
    let block = Line { window: 4096, sack: Some((1001, 2001)), ..hears(50, 1) };
    watched.tells([(block, "DupAck")]);
}

#[test]
fn probes_are_told_from_data() {
    let mut watched = four();
    watched.tells([
        (Line { window: 0, ..hears(50, 4001) }, "Acked"),
        (sends(60, 4001, 1), "WindowProbe"),
        (sends(70, 4002, 2), "Data"),
        (Line { window: 1, ..hears(80, 4004) }, "Acked"),
        (sends(90, 4004, 1), "Data"),
        (hears(95, 4005), "Acked"),
        // A keep-alive has a byte that was acknowledged.
        (sends(9000, 4004, 1), "WindowProbe"),
    ]);
}

#[test]
fn a_transfer_is_complete_when_all_its_data_is_acknowledged_and_the_end_is_known() {
    // The FIN comes with the last data.
    let mut with_data = Watched::established();
    with_data.tells([
        (sends(30, 1, 1000).with(Flags::FIN), "Data"),
        (hears(50, 1000), "Acked"),
        (hears(51, 1001), "Acked, Complete"),
        (hears(52, 1002), "Acked"),
    ]);
    // The data is acknowledged before the FIN comes.
    let mut later = Watched::established();
    later.tells([
        (sends(30, 1, 1000), "Data"),
        (hears(50, 1001), "Acked"),
        (sends(60, 1001, 0).with(Flags::FIN), "Control, Complete"),
        (hears(80, 1002), "Acked"),
    ]);
    // Without data the FIN is all that can be acknowledged.
    let mut empty = Watched::established();
    empty.tells([
        (sends(30, 1, 0).with(Flags::FIN), "Control"),
        (hears(50, 1), "DupAck"),
        (hears(51, 2), "Acked, Complete"),
    ]);
}

#[test]
fn what_arrives_is_counted_once_and_in_order() {
    let data = |ms, seq, len| Line { seq, len, ..hears(ms, 1) };
    let mut watched = Watched::established();
    watched.tells([
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
    // The host acknowledges what was not seen here.
    let mut unseen = Watched::established();
    unseen.tells([
        (data(30, 101, 100), ""),
        (Line { ack: 101, ..sends(31, 1, 0) }, "Ack, Delivered 100"),
        (Line { ack: 101, ..sends(32, 1, 0) }, "Ack"),
    ]);
}

#[test]
fn openings_and_ends_are_told_once() {
    let syn = |ms| Line { flags: Flags::SYN, ..sends(ms, 0, 0) };
    let mut watched = Watched::new();
    watched.tells([
        // Of an unknown connection nothing ends.
        (sends(0, 5, 0).with(Flags::RST), "Control"),
        (syn(0), "Control, Opening"),
        (syn(149), "Control"),
        (syn(299), "Control, Timeout"),
        (Line { seq: 0, ..hears(310, 1) }.with(Flags::SYN), "Established"),
        (Line { seq: 1, ..hears(320, 1) }.with(Flags::RST), "Aborted"),
        (sends(330, 1, 0).with(Flags::RST), "Control"),
        // The same ports are used again.
        (Line { seq: 77, ..syn(400) }, "Control, Opening"),
        (sends(410, 78, 0).with(Flags::RST), "Control, Aborted"),
    ]);
}

/// Who has not offered to understand a partial acknowledgement takes it for any other, and so does who watches.
#[test]
fn partial_acknowledgements_say_nothing_to_who_knows_them() {
    for (offers, told) in [(Some(Ackp::Permitted), ""), (None, "Acked")] {
        let mut watched = Watched::new();
        watched.see(Line { flags: Flags::SYN, ackp: offers, ..sends(0, 0, 0) });
        watched.see(Line { seq: 0, ..hears(20, 1) }.with(Flags::SYN));
        watched.see(sends(30, 1, 1000));
        let partial = Line { ackp: Some(Ackp::Partial), ..hears(40, 1001) };
        assert_eq!(watched.see(partial), told, "{offers:?}");
    }
}

#[test]
fn the_peers_window_is_scaled_by_fourteen_at_most() {
    for (scale, window) in [(None, 8192), (Some(3), 8192 << 3), (Some(15), 8192 << 14)] {
        let mut watched = Watched::new();
        watched.see(Line { flags: Flags::SYN, ..sends(0, 0, 0) });
        watched.see(Line { seq: 0, scale, ..hears(20, 1) }.with(Flags::SYN));
        assert_eq!(watched.tcb().snd_wnd, window, "{scale:?}");
    }
}

#[test]
fn what_is_damaged_is_told_and_means_nothing() {
    let mut watched = four();
    watched.tells([
        (Line { damage: Damage::Ip, ..hears(50, 4001) }, "IpChecksum"),
        (Line { damage: Damage::Tcp, ..hears(51, 4001) }, "TcpChecksum"),
        (Line { damage: Damage::Tcp, ..sends(52, 4001, 1000) }, ""),
        (hears(53, 4001), "Acked"),
    ]);
    assert_eq!(watched.tcb().snd_max, 4001);
}

#[test]
fn it_stands_for_its_own_addresses_or_for_all() {
    let one = Witness::of_host(vec![HOST], Side::Right, false);
    assert!(one.stands_for(HOST) && !one.stands_for(PEER));
    assert!(Witness::of_all(Side::Left).stands_for(PEER));
}

/// Where somebody else tells what its TCP does, only deliveries are told here.
#[test]
fn a_host_that_tells_of_itself_is_not_told_of_twice() {
    let witness = Witness::of_host(vec![HOST], Side::Right, true);
    let mut watched = Watched { witness, out: Out::new(Wants::EVERYTHING) };
    watched.tells([
        (Line { flags: Flags::SYN, ..sends(0, 0, 0) }, "Control"),
        (Line { seq: 0, ..hears(20, 1) }.with(Flags::SYN), ""),
        (sends(30, 1, 1000), "Data"),
        (Line { len: 10, ..hears(50, 1001) }, "Delivered 10"),
        (sends(300, 1, 2000), "TimeoutRetransmit"),
    ]);
}

/// The connection that was silent longest makes room.
#[test]
fn the_oldest_connection_is_forgotten_first() {
    let mut witness = Witness::of_all_within(Side::Right, 2);
    let mut out = Out::new(Wants::NOTHING);
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
