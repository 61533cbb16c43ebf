//! Scripts for a queue: arrivals, drops that they cause, and departures.
//!
//! ```text
//! ack 1000                       a pure ACK enters and waits
//! ack 2000 => ends 1000          this one enters and removes the ACK with the number 1000
//! ack 3000 => full               there is no room for it
//! data 1+960                     bytes 1 to 960 enter
//! leaves ack 2000                the next departing packet is this one
//! ```
//!
//! The text up to `=>` is the input; everything else is the expected output. Numbers count from the initial
//! one. Further words: `port N` for another connection, `win N`, `at N` (the sequence number of an ACK),
//! `ts V/E` (timestamps), `sack L-R`, `ece`, `ce` (marked by a router), `psh`, `syn`, `fin`, `rst`, `urg`,
//! `unknown` (an unassigned option), `partial`, `lost N`, `damaged`. The clock advances only by
//! [`Bench::wait`].

use lasthop_proto::event::{Cause, EventKind, Interest, Op};
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::queue::{Discipline, Limit, Queue};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{
    Ackp, Addr, Body, Damage, Eln, Flags, Packet, PacketId, Segment, Seq, Timestamps,
};

const MOBILE: Addr = Addr::v4(10, 1, 0, 1);
const FIXED: Addr = Addr::v4(10, 0, 0, 1);

/// A queue with a record of each packet's fate.
pub struct Bench {
    queue: Queue,
    out: Out,
    now: Time,
    pub stored: usize,
    /// Packets that were marked.
    pub marked: usize,
    /// Causes of the marks, where the queue reports them.
    pub marks: Vec<Cause>,
    /// Packets dropped at the last departure.
    pub ended: Vec<(Packet, Cause)>,
}

impl Bench {
    pub fn new(discipline: Discipline, limit: Limit) -> Bench {
        Bench::seeded(discipline, limit, 1)
    }

    /// Like [`Bench::new`], in the run with `seed`.
    pub fn seeded(discipline: Discipline, limit: Limit, seed: u64) -> Bench {
        Bench {
            queue: Queue::new(limit, discipline, || Stream::new(seed, "queue")),
            out: Out::new(Interest::METRICS),
            now: Time::ZERO,
            stored: 0,
            marked: 0,
            marks: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Advances the clock.
    pub fn wait(&mut self, span: Span) {
        self.now += span;
    }

    /// The average of random early detection.
    pub fn average(&self) -> f64 {
        self.queue.average().unwrap()
    }

    /// Enqueues a packet; returns the dropped packets in order, with causes.
    pub fn enqueue(&mut self, packet: Packet) -> Vec<(Packet, Cause)> {
        let bytes = packet.wire_len();
        self.queue.enqueue(self.now, Side::Left, packet, bytes, &mut self.out);
        self.stored += 1;
        let ended = self.take_drops();
        self.stored -= ended.len();
        assert_eq!(self.queue.len(), self.stored, "conservation");
        ended
    }

    /// Takes the queue's events: dropped packets with causes; marks are counted.
    fn take_drops(&mut self) -> Vec<(Packet, Cause)> {
        let mut ended = Vec::new();
        for event in self.out.events.drain(..) {
            match event.kind {
                EventKind::Packet { op: Op::Marked, side: Side::Left, packet } => {
                    assert!(packet.is_marked());
                    self.marked += 1;
                }
                EventKind::Packet { op: Op::MarkedBy(cause), side: Side::Left, packet } => {
                    assert!(packet.is_marked());
                    self.marks.push(cause);
                }
                EventKind::Packet { op: Op::Dropped(cause), packet, side: Side::Left } => {
                    ended.push((packet, cause));
                }
                other => panic!("a queue only drops: {other:?}"),
            }
        }
        assert_eq!(self.out.take_tally().discarded, ended.len() as u64);
        ended
    }

    pub fn dequeue(&mut self) -> Option<Packet> {
        let left = self.queue.dequeue(self.now, Side::Left, &mut self.out);
        let packet = left.map(|waiting| waiting.packet);
        self.ended = self.take_drops();
        self.stored -= self.ended.len() + usize::from(packet.is_some());
        assert_eq!(self.queue.len(), self.stored, "conservation");
        packet
    }
}

/// Runs `script` through a queue, with initial numbers that wrap at different positions.
pub fn check(discipline: Discipline, limit: Limit, script: &str) {
    for isn in [0, u32::MAX - 2500, 1 << 31] {
        let mut bench = Bench::new(discipline, limit);
        let mut names: Vec<String> = Vec::new();
        let lines = script.lines().map(|l| l.split('#').next().unwrap().trim());
        for line in lines.filter(|l| !l.is_empty()) {
            let got = match line.split_once(' ') {
                Some(("leaves", _)) => match bench.dequeue() {
                    Some(packet) => format!("leaves {}", names[packet.id.0 as usize]),
                    None => "leaves nothing".to_owned(),
                },
                _ => {
                    let input = line.split("=>").next().unwrap().trim();
                    let mut packet = packet(input, Seq(isn));
                    packet.id = PacketId(names.len() as u64);
                    names.push(input.to_owned());
                    let ended = bench.enqueue(packet);
                    let mut got = input.to_owned();
                    for (i, (packet, cause)) in ended.iter().enumerate() {
                        got.push_str(if i == 0 { " => " } else { ", " });
                        got.push_str(&match cause {
                            Cause::QueueFull => "full".to_owned(),
                            Cause::SupersededAck => {
                                let name = &names[packet.id.0 as usize];
                                format!("ends {}", name.strip_prefix("ack ").unwrap_or(name))
                            }
                            other => panic!("{other:?}"),
                        });
                    }
                    got
                }
            };
            let want = line.split_whitespace().collect::<Vec<_>>().join(" ");
            let got = got.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(got, want, "isn {isn}, in\n{script}");
        }
    }
}

/// The packet of a script line.
pub fn packet(line: &str, isn: Seq) -> Packet {
    let mut words = line.split_whitespace();
    let mut segment = Segment::new(9, 5001, isn + 1, isn, Flags::ACK);
    segment.window = 16_384;
    let (mut len, mut damage, mut tos) = (0, Damage::None, 0);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|n| n.parse::<u32>().ok()).expect(line);
        match word {
            "ack" => segment.ack = isn + number(),
            "win" => segment.window = number() as u16,
            "at" => segment.seq = isn + number(),
            "port" => segment.dst_port = number() as u16,
            "lost" => segment.options_mut().eln = Some(Eln::Lost(isn + number())),
            "partial" => segment.options_mut().ackp = Some(Ackp::Partial),
            "unknown" => segment.options_mut().unknown = vec![30, 4, 1, 2],
            "ece" => segment.flags = segment.flags | Flags::ECE,
            "psh" => segment.flags = segment.flags | Flags::PSH,
            "syn" => segment.flags = segment.flags | Flags::SYN,
            "fin" => segment.flags = segment.flags | Flags::FIN,
            "rst" => segment.flags = segment.flags | Flags::RST,
            "urg" => segment.flags = segment.flags | Flags::URG,
            "damaged" => damage = Damage::Tcp,
            "ce" => tos = 0b11,
            "data" => {
                let (at, bytes) = words.next().and_then(|w| w.split_once('+')).expect(line);
                segment.seq = isn + at.parse::<u32>().expect(line);
                len = bytes.parse().expect(line);
            }
            "ts" => {
                let (value, echo) = words.next().and_then(|w| w.split_once('/')).expect(line);
                let number = |n: &str| n.parse::<u32>().expect(line).wrapping_add(isn.0);
                segment.timestamps = Some(Timestamps { value: number(value), echo: number(echo) });
            }
            "sack" => {
                let (left, right) = words.next().and_then(|w| w.split_once('-')).expect(line);
                let number = |n: &str| isn + n.parse::<u32>().expect(line);
                segment.options_mut().sack.push(number(left), number(right));
            }
            _ => panic!("what is `{word}` in `{line}`?"),
        }
    }
    let body = Body::Pattern { stream: 1, len, offset: 0 };
    let body = if len == 0 { Body::EMPTY } else { body };
    let mut packet = Packet::tcp(MOBILE, FIXED, segment, body);
    (packet.damage, packet.tos) = (damage, tos);
    packet
}
