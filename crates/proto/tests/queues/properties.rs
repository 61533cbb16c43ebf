//! For any input of a filtering queue: the output has all that a sender needs.

use std::collections::BTreeMap;

use lasthop_proto::event::Cause;
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::units::Bytes;
use lasthop_proto::wire::{Ackp, Flags, Packet, PacketId, Seq, Timestamps};
use proptest::prelude::*;

use super::script::{Bench, packet};

/// A step of a queue.
#[derive(Clone, Debug)]
enum Step {
    /// A packet of a connection enters.
    Enter { port: u8, kind: PacketKind },
    /// The transmitter is free.
    Leave,
}

#[derive(Clone, Debug)]
enum PacketKind {
    /// An ACK that advances by this amount, with these options.
    Ack(u32, Extra),
    /// An ACK below the last one by this amount.
    Late(u32),
    /// Data, with the last ACK.
    Data(u32),
    /// A partial acknowledgement.
    Partial(u32),
    Fin,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Extra {
    Nothing,
    Sack,
    Ece,
    Unknown,
    Window,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let extra = prop_oneof![
        6 => Just(Extra::Nothing),
        1 => Just(Extra::Sack),
        1 => Just(Extra::Ece),
        1 => Just(Extra::Unknown),
        1 => Just(Extra::Window),
    ];
    let ahead = prop_oneof![2 => Just(0u32), 3 => 1u32..3000];
    let kind = prop_oneof![
        12 => (ahead, extra).prop_map(|(ahead, extra)| PacketKind::Ack(ahead, extra)),
        1 => (1u32..5000).prop_map(PacketKind::Late),
        2 => (1u32..1500).prop_map(PacketKind::Data),
        1 => (0u32..5000).prop_map(PacketKind::Partial),
        1 => Just(PacketKind::Fin),
    ];
    let enter = (0u8..3, kind).prop_map(|(port, kind)| Step::Enter { port, kind });
    prop::collection::vec(prop_oneof![4 => enter, 1 => Just(Step::Leave)], 1..150)
}

fn disciplines() -> impl Strategy<Value = Discipline> {
    prop_oneof![Just(Discipline::AckFilter), Just(Discipline::AckFilterAcksFirst)]
}

/// A connection from the view of its receiver, which sends these packets.
struct Receiver {
    ack: Seq,
    seq: Seq,
    window: u16,
    clock: u32,
    timestamps: bool,
}

impl Receiver {
    fn packet(&mut self, port: u8, kind: &PacketKind) -> Packet {
        let mut made = packet(&format!("port {port}"), Seq(0));
        let lasthop_proto::wire::Transport::Tcp(segment) = &mut made.transport else {
            unreachable!()
        };
        self.clock = self.clock.wrapping_add(1);
        if let PacketKind::Ack(ahead, extra) = kind {
            self.ack = self.ack + *ahead;
            if *extra == Extra::Window {
                self.window ^= 4096;
            }
        }
        (segment.seq, segment.ack, segment.window) = (self.seq, self.ack, self.window);
        if self.timestamps {
            segment.timestamps = Some(Timestamps { value: self.clock, echo: self.clock });
        }
        match kind {
            PacketKind::Ack(_, Extra::Sack) => {
                segment.options_mut().sack.push(self.ack + 5000, self.ack + 6000);
            }
            PacketKind::Ack(_, Extra::Ece) => segment.flags = segment.flags | Flags::ECE,
            PacketKind::Ack(_, Extra::Unknown) => segment.options_mut().unknown = vec![30, 3, 1],
            PacketKind::Ack(..) => {}
            PacketKind::Late(back) => segment.ack = self.ack + back.wrapping_neg(),
            PacketKind::Data(bytes) => {
                self.seq = self.seq + *bytes;
                made.body =
                    lasthop_proto::wire::Body::Pattern { stream: 1, len: *bytes, offset: 0 };
            }
            PacketKind::Partial(ahead) => {
                segment.ack = self.ack + *ahead;
                segment.options_mut().ackp = Some(Ackp::Partial);
            }
            PacketKind::Fin => {
                segment.flags = segment.flags | Flags::FIN;
                self.seq = self.seq + 1;
            }
        }
        made
    }
}

/// Whether a sender processes a packet as a pure ACK, without the filter's logic.
fn counts(packet: &Packet) -> bool {
    let segment = packet.segment().unwrap();
    !packet.is_data()
        && !segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST)
        && segment.options().ackp.is_none()
}

/// Number of fast retransmits for each acknowledgement number of each connection, capped at one.
fn fast_retransmits<'a>(packets: impl Iterator<Item = &'a Packet>) -> Vec<(u16, Seq)> {
    let mut last: BTreeMap<u16, (Seq, u16, u32)> = BTreeMap::new();
    let mut begun = Vec::new();
    for packet in packets.filter(|p| counts(p)) {
        let s = packet.segment().unwrap();
        match last.get_mut(&s.dst_port) {
            Some((ack, window, dups)) if *ack == s.ack => {
                if *window == s.window {
                    *dups += 1;
                    if *dups == 3 {
                        begun.push((s.dst_port, s.ack));
                    }
                }
                *window = s.window;
            }
            Some((ack, ..)) if s.ack.lt(*ack) => {}
            _ => {
                last.insert(s.dst_port, (s.ack, s.window, 0));
            }
        }
    }
    begun.sort_by_key(|(port, ack)| (*port, ack.0));
    begun
}

/// The final state of each connection's sender: number, window, and highest sequence number.
fn last_words<'a>(packets: impl Iterator<Item = &'a Packet>) -> BTreeMap<u16, (Seq, u16)> {
    let mut last: BTreeMap<u16, (Seq, u16)> = BTreeMap::new();
    for packet in packets.filter(|p| counts(p)) {
        let s = packet.segment().unwrap();
        if last.get(&s.dst_port).is_none_or(|(ack, _)| ack.le(s.ack)) {
            last.insert(s.dst_port, (s.ack, s.window));
        }
    }
    last
}

/// Whether a packet must be delivered, independent of later ones.
fn indispensable(packet: &Packet) -> bool {
    let segment = packet.segment().unwrap();
    !counts(packet) || segment.flags != Flags::ACK || segment.options().wire_len() > 0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The queue never fills: every drop is due to the filter.
    #[test]
    fn nothing_that_a_sender_needs_is_lost(
        steps in steps(),
        discipline in disciplines(),
        isn in any::<u32>(),
        timestamps in any::<bool>(),
    ) {
        let mut bench = Bench::new(discipline, Limit::Packets(1000));
        let receiver = || Receiver { ack: Seq(isn), seq: Seq(7), window: 9000, clock: isn, timestamps };
        let mut receivers = [receiver(), receiver(), receiver()];
        let (mut sent, mut arrived, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        for step in &steps {
            match step {
                Step::Leave => arrived.extend(bench.dequeue()),
                Step::Enter { port, kind } => {
                    let mut packet = receivers[usize::from(*port)].packet(*port, kind);
                    packet.id = PacketId(sent.len() as u64);
                    sent.push(packet.clone());
                    for (ended, cause) in bench.enqueue(packet) {
                        prop_assert_eq!(cause, Cause::SupersededAck);
                        removed.push(ended);
                    }
                }
            }
        }
        arrived.extend(std::iter::from_fn(|| bench.dequeue()));
        prop_assert_eq!(sent.len(), arrived.len() + removed.len());

        // Every SACK block, ECN echo, unknown option, partial ACK, FIN and byte of data arrives.
        for packet in sent.iter().filter(|p| indispensable(p)) {
            prop_assert!(arrived.contains(packet), "{:?}", packet);
        }
        // Each sender ends with the same number and window, and has started the same fast retransmits.
        prop_assert_eq!(last_words(arrived.iter()), last_words(sent.iter()));
        prop_assert_eq!(fast_retransmits(arrived.iter()), fast_retransmits(sent.iter()));
        // A removed ACK is followed by a higher one of the same connection.
        for gone in &removed {
            let more = |p: &&Packet| {
                counts(p) && p.flow() == gone.flow() && p.id > gone.id
                    && gone.segment().unwrap().ack.lt(p.segment().unwrap().ack)
            };
            prop_assert!(arrived.iter().any(|p| more(&p)), "{:?}", gone);
        }
        // Order is preserved, except that ACKs may overtake segments with sequence numbers.
        for overtaking in [false, true] {
            let numbered = |p: &&Packet| p.is_data() || p.segment().unwrap().flags.has(Flags::FIN);
            let class = |p: &&Packet| discipline == Discipline::AckFilter || numbered(p) != overtaking;
            prop_assert!(arrived.iter().filter(class).map(|p| p.id).is_sorted());
        }
    }

    /// In a queue of any size: conservation (in the bench), and newer information is never replaced by older.
    #[test]
    fn a_small_queue_still_ends_with_the_best_ack_that_it_took_in(
        steps in steps(),
        discipline in disciplines(),
        limit in prop_oneof![
            (0u32..8).prop_map(Limit::Packets),
            (0u64..3000).prop_map(|n| Limit::Bytes(Bytes(n))),
        ],
        isn in any::<u32>(),
    ) {
        let mut bench = Bench::new(discipline, limit);
        let receiver = || Receiver { ack: Seq(isn), seq: Seq(7), window: 9000, clock: isn, timestamps: true };
        let mut receivers = [receiver(), receiver(), receiver()];
        let (mut taken, mut arrived) = (Vec::new(), Vec::new());
        for (id, step) in steps.iter().enumerate() {
            match step {
                Step::Leave => arrived.extend(bench.dequeue()),
                Step::Enter { port, kind } => {
                    let mut packet = receivers[usize::from(*port)].packet(*port, kind);
                    packet.id = PacketId(id as u64);
                    let ended = bench.enqueue(packet.clone());
                    let refused = ended.iter().any(|(p, cause)| {
                        prop_assert_eq_or_panic(p.id == packet.id, *cause == Cause::QueueFull)
                    });
                    if refused {
                        assert_eq!(ended.len(), 1, "a refused packet removes no others");
                    } else {
                        taken.push(packet);
                    }
                }
            }
        }
        arrived.extend(std::iter::from_fn(|| bench.dequeue()));
        prop_assert_eq!(last_words(arrived.iter()), last_words(taken.iter()));
        prop_assert_eq!(fast_retransmits(arrived.iter()), fast_retransmits(taken.iter()));
    }
}

/// Only the packet that enters can find the queue full.
fn prop_assert_eq_or_panic(is_new: bool, is_full: bool) -> bool {
    assert_eq!(
        is_new, is_full,
        "a full queue refuses what comes, and only the filter removes what waits"
    );
    is_new
}
