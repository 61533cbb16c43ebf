//! Scripts of split connections, packet by packet.
//!
//! A script is the complete record of the packets at a base station, similar to [`crate::script`]:
//!
//! ```text
//! 0ms  fixed S 0 => split-taken             a packet of the fixed host, and its fate
//! 0ms  right S 0 => split-control           the base station sends its own packet to the right, and its
//! cause
//! 5ms  fixed . 1 ack 1                      it passed unchanged
//! 9ms  note no-room                         the base station reports an event
//! 9ms  move                                 its state moves to the next base station, where the script
//! continues
//! 9ms  channel bad                          the radio reports that its channel is bad, or good
//! 9ms  kept fixed 1+1000 fixed 1001+200     its unacknowledged data of the fixed host
//! ```
//!
//! Flags are tcpdump's. Numbers count from the initial sequence number of their end: `SEQ` or `SEQ+LEN`, then
//! `ack N`. `win N` is the window. Its default is 16384 for the ends; for the base station it is shown if it
//! is not the whole buffer. `urg N` is the urgent pointer; `option KIND LEN` is one that the base station
//! does not know. `mss N`, `sackok` and `port N` are as elsewhere; a packet with `ce` was marked by a router.

use lasthop_proto::agent::{Agent, AgentConfig, BaseStation as _, SplitConfig};
use lasthop_proto::event::{AgentNote, EventKind, Interest, Op};
use lasthop_proto::machine::{Machine, Out, Side, Signal};
use lasthop_proto::tcp::{DelayedAck, TcpConfig};
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_proto::wire::{Body, CE, Damage, Flags, Packet, PacketId, Segment, Seq, Transport};

use crate::path::{FIXED, MOBILE};
use crate::record::{compare, flags, letters, lines, words};
use crate::script::{Moving, fate_of, stamp, wake_until};

pub const BUFFER: u64 = 4_000;
const PORT: u16 = 5001;

/// The base station acknowledges every segment, so that scripts need no delayed ACKs.
pub fn config() -> SplitConfig {
    let tcp = TcpConfig {
        mss: 1000,
        initial_window: 4,
        delayed_ack: DelayedAck { every: 1, timeout: Span::millis(100) },
        ..TcpConfig::rfc()
    };
    SplitConfig { buffer: Bytes(BUFFER), flows: 2, ..SplitConfig::new(tcp) }
}

#[track_caller]
pub fn check(config: &SplitConfig, script: &str) {
    for (fixed, mobile) in [(0, 7000), (u32::MAX - 500, u32::MAX), (1 << 31, u32::MAX - 1500)] {
        let got = play(config, script, [Seq(fixed), Seq(mobile)]);
        let want: Vec<String> = lines(script).map(|line| words(line).join(" ")).collect();
        compare(fixed, &got, &want);
    }
}

fn play(config: &SplitConfig, script: &str, isn: [Seq; 2]) -> Vec<String> {
    let mut agent = Agent::new(&AgentConfig::Split(config.clone()));
    let mut out = Out::new(Interest::METRICS.union(Interest::DETAIL));
    let mut record = Vec::new();
    let mut moving = Moving::default();
    for (n, line) in lines(script).enumerate() {
        let words = words(line);
        let at = Time::ZERO + words[0].parse::<Span>().unwrap_or_else(|e| panic!("{line}: {e}"));
        let side = match words[1] {
            "fixed" => Some(Side::Left),
            "mobile" => Some(Side::Right),
            "end" | "move" | "leave" | "arrive" | "lose" | "channel" | "kept" => None,
            _ => continue,
        };
        wake_until(&mut agent, &mut out, at, |out| drain(out, config, isn, &mut record));
        let Some(side) = side else {
            if words[1] == "kept" {
                record.push(unacknowledged(&agent, words[0], isn));
                continue;
            }
            record.push(words.join(" "));
            if words[1] == "channel" {
                let signal = Signal::ChannelGood(words[2] == "good");
                out.begin(Default::default(), at);
                agent.on_signal(at, Side::Right, signal, &mut out);
                assert_eq!(core::mem::take(&mut out.signals), [(Side::Left, signal)]);
            }
            moving.step(words[1], at, &mut agent, &AgentConfig::Split(config.clone()), &mut out);
            drain(&mut out, config, isn, &mut record);
            continue;
        };
        let put = words.iter().position(|w| *w == "=>").unwrap_or(words.len());
        let mut packet = packet(side, &words[2..put], isn);
        packet.id = PacketId(1 + n as u64);
        out.begin(Default::default(), at);
        agent.on_packet(at, side, packet.clone(), &mut out);
        let fate = fate_of(&packet, side, &mut out, isn[0]);
        record.push(format!("{}{fate}", words[..put].join(" ")));
        drain(&mut out, config, isn, &mut record);
        assert_eq!(agent.holds(), 0);
    }
    record
}

/// The agent's unacknowledged data: sender and bytes of each piece.
fn unacknowledged(agent: &Agent, at: &str, isn: [Seq; 2]) -> String {
    let mut all = vec![at.to_owned(), "kept".to_owned()];
    agent.stored_segments(&mut |piece| {
        assert_eq!(piece.attempts, 0);
        let (whose, isn) =
            if piece.flow.src == FIXED { ("fixed", isn[0]) } else { ("mobile", isn[1]) };
        all.push(format!("{whose} {}+{}", piece.seq.0.wrapping_sub(isn.0), piece.len));
    });
    all.join(" ")
}

fn packet(from: Side, words: &[&str], isn: [Seq; 2]) -> Packet {
    let [own, other] = match from {
        Side::Left => isn,
        Side::Right => [isn[1], isn[0]],
    };
    let mut segment = Segment::new(PORT, 9, own, Seq(0), flags(words[0]));
    segment.window = 16_384;
    let (mut len, mut offset, mut damage, mut tos) = (0, 0, Damage::None, 0);
    let mut words = words[1..].iter();
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|w| w.parse::<u32>().ok()).expect(word);
        match *word {
            "ack" => segment.ack = other + number(),
            "urg" => {
                segment.flags = segment.flags | Flags::URG;
                segment.options_mut().urgent = number() as u16;
            }
            "win" => segment.window = number() as u16,
            "mss" => segment.options_mut().mss = Some(number() as u16),
            "option" => {
                let (kind, len) = (number() as u8, number() as u8);
                let value = vec![7; usize::from(len) - 2];
                segment.options_mut().unknown = [&[kind, len][..], &value].concat();
            }
            "sackok" => segment.options_mut().sack_permitted = true,
            "port" => segment.src_port = number() as u16,
            "ip-damage" => damage = Damage::Ip,
            "tcp-damage" => damage = Damage::Tcp,
            "ce" => tos = CE,
            span => {
                let (start, count) = span.split_once('+').unwrap_or((span, "0"));
                let start: u32 = start.parse().unwrap_or_else(|_| panic!("what is {span}?"));
                (len, offset) = (count.parse().unwrap(), u64::from(start.saturating_sub(1)));
                segment.seq = segment.seq + start;
            }
        }
    }
    let (mut src, mut dst) = (FIXED, MOBILE);
    if from == Side::Right {
        (src, dst) = (dst, src);
        (segment.src_port, segment.dst_port) = (segment.dst_port, segment.src_port);
    }
    let stream = 1 + from.index() as u32;
    let mut packet = Packet::tcp(src, dst, segment, Body::Pattern { stream, len, offset });
    (packet.damage, packet.tos) = (damage, tos);
    packet
}

fn drain(out: &mut Out, config: &SplitConfig, isn: [Seq; 2], record: &mut Vec<String>) {
    for event in out.events.drain(..) {
        let at = stamp(event.at);
        match event.kind {
            EventKind::Packet { op: Op::Originated(cause), side, packet } => {
                assert_eq!(out.sends.remove(0), (side, packet.clone()));
                let line = describe(side, &packet, config, isn);
                record.push(format!("{at} {line} => {}", cause.name()));
            }
            EventKind::Split(_) | EventKind::Agent { note: AgentNote::FlowSeen, .. } => {}
            EventKind::Agent { note: AgentNote::FlowForgotten, .. } => {
                record.push(format!("{at} note forgotten"));
            }
            EventKind::Agent { note: AgentNote::HostGone, .. } => {
                record.push(format!("{at} note gone"))
            }
            EventKind::Agent { note: AgentNote::HostBack, .. } => {
                record.push(format!("{at} note back"))
            }
            EventKind::Agent { note: AgentNote::Bypassed, .. } => {
                record.push(format!("{at} note bypassed"));
            }
            EventKind::Agent { note: AgentNote::NoRoom, .. } => {
                record.push(format!("{at} note no-room"))
            }
            EventKind::Agent { note: AgentNote::HalfOpenLimit, .. } => {
                record.push(format!("{at} note half-open-limit"));
            }
            EventKind::Agent { note: AgentNote::HalfOpenEvicted, .. } => {
                record.push(format!("{at} note half-open-evicted"));
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!(out.sends.is_empty(), "sent without saying why");
}

fn describe(to: Side, packet: &Packet, config: &SplitConfig, isn: [Seq; 2]) -> String {
    let Transport::Tcp(s) = &packet.transport else { panic!("not TCP") };
    let ([own, other], name, ends) = match to {
        Side::Right => (isn, "right", [FIXED, MOBILE]),
        Side::Left => ([isn[1], isn[0]], "left", [MOBILE, FIXED]),
    };
    assert_eq!([packet.src, packet.dst], ends, "in the name of the real ends");
    let mut words = vec![name.to_owned(), letters(s.flags)];
    // A reset in response to a SYN has neither number nor window.
    let refusal = s.flags.has(Flags::RST) && s.window == 0;
    let at = if refusal { 0 } else { s.seq - own };
    words.push(if packet.body.is_empty() {
        at.to_string()
    } else {
        format!("{at}+{}", packet.body.len())
    });
    if s.flags.has(Flags::ACK) {
        words.push(format!("ack {}", s.ack - other));
    }
    if u64::from(s.window) != config.buffer.0 && !refusal {
        words.push(format!("win {}", s.window));
    }
    if s.flags.has(Flags::URG) {
        words.push(format!("urg {}", s.options().urgent));
    }
    words.extend(s.options().sack_permitted.then(|| "sackok".to_owned()));
    let port = if to == Side::Right { s.src_port } else { s.dst_port };
    if port != PORT {
        words.push(format!("port {port}"));
    }
    words.join(" ")
}

/// Both ends have completed a handshake with the base station.
const OPEN: &str = "
    0ms fixed S 0 mss 1000 => split-taken
    0ms right S 0 => split-control
    10ms mobile S. 0 ack 1 mss 1000 => split-taken
    10ms left S. 0 ack 1 => split-control
    12ms fixed . 1 ack 1 => split-taken
    12ms right . 1 ack 1 => split-ack
";

pub fn after_opening(script: &str) -> String {
    format!("{OPEN}{script}")
}

/// A server that closes with unread data sends a FIN and a reset in one batch. The client must receive both.
#[test]
fn a_fin_precedes_the_reset_of_the_same_batch() {
    let mut agent = Agent::new(&AgentConfig::Split(config()));
    let mut out = Out::new(Interest::METRICS);
    let mut sent = Vec::new();
    for (from, segment) in [
        (Side::Right, &["S", "0"][..]),
        (Side::Left, &["S.", "0", "ack", "1"]),
        (Side::Right, &[".", "1", "ack", "1"]),
        (Side::Left, &["F.", "1", "ack", "1"]),
        (Side::Left, &["R.", "2", "ack", "1"]),
    ] {
        out.set_bulk(true);
        out.begin(Default::default(), Time::ZERO);
        agent.on_packet(Time::ZERO, from, packet(from, segment, [Seq(0), Seq(7000)]), &mut out);
        let right = out.sends.drain(..).filter(|(to, _)| *to == Side::Right);
        sent.extend(right.map(|(_, packet)| letters(packet.segment().unwrap().flags)));
    }
    assert_eq!(sent, ["S.", "F.", "R."]);
}
