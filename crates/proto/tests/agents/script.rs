//! Scripts of packets in virtual time, with no tolerance.
//!
//! A script is the complete record of the packets at a base station. Each line has a time, an actor, and an
//! action:
//!
//! ```text
//! 0ms    fixed   1+1460                        the fixed host sends bytes 1 to 1460; they are forwarded
//! 8ms    mobile  ack 1461                      the mobile host acknowledges them; the ACK is forwarded
//! 9ms    mobile  ack 1461 => suppressed-dup-ack   the base station drops this one, and why
//! 9ms    mobile  ack 1461 sack 2921-4381 => becomes ack 1461   ... or changes it to this
//! 9ms    base    1461+1460 => local-dup-ack       the base station sends its own packet, and its cause
//! 9ms    fixed   1+1460 => waits                  the packet waits at the base station
//! 9ms    base    1+1460 => sent                   ... until here
//! 9ms    note    sender-retransmission            the base station reports an event
//! 9ms    move                                  its state moves to another agent, with which the script
//! continues
//! 9ms    leave                                 the state leaves, and the script continues with an empty
//! agent
//! 20ms   arrive                                the state arrives there
//! 9ms    lose                                  the state is lost, and the script continues with an empty
//! agent
//! 500ms  end                                   nothing else happens until here
//! ```
//!
//! Lines of `fixed` and `mobile` up to `=>` are the input; everything else is the expected output. Numbers
//! count from the initial sequence number, which is 0. Further words: `syn`, `fin`, `rst`, `win N` (default
//! 16384), `at N` (the sequence number of a packet without data), `acks N` (acknowledgement of the mobile
//! host's data by the fixed host), `sack A-B` (a block), `caused A-` (SMART), `nack` (option permitted),
//! `missing A-B` (a negative acknowledgement), `ackp` and `eln` (options permitted), `partial`, `lost N`
//! (options on an ACK), `stamp N` (TSval of the fixed host), `ip-damage`, `tcp-damage`, and `port N` for another flow. The text after `#` is a
//! comment.

use crate::path::{FIXED, MOBILE};
use crate::record::{compare, lines, words};
use lasthop_proto::agent::{Agent, AgentConfig, BaseStation as _, Handover};
use lasthop_proto::event::{AgentNote, EventKind, Interest, Op};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{
    Ackp, Body, Damage, Eln, Flags, Nack, Packet, PacketId, Segment, Seq, Smart, Timestamps,
    Transport,
};

const MOBILE_SEQ: Seq = Seq(7000);
const WINDOW: u16 = 16_384;
const PORT: u16 = 5001;

/// Runs `script` through the agent of `config` and fails with both records if they differ. It runs with
/// several initial sequence numbers, so that every script also tests the wrap.
pub fn check(config: &AgentConfig, script: &str) {
    for isn in [0, u32::MAX - 3000, 1 << 31] {
        let got = play(config, script, Seq(isn));
        let want: Vec<String> = lines(script).map(|line| words(line).join(" ")).collect();
        compare(isn, &got, &want);
    }
}

fn play(config: &AgentConfig, script: &str, isn: Seq) -> Vec<String> {
    let mut agent = Agent::new(config);
    let mut out = Out::new(Interest::METRICS);
    let mut record = Vec::new();
    let mut next_id = 1;
    let mut moving = Moving::default();
    for line in lines(script) {
        let words = words(line);
        let at = Time::ZERO + words[0].parse::<Span>().unwrap_or_else(|e| panic!("{line}: {e}"));
        let side = match words[1] {
            "fixed" => Side::Left,
            "mobile" => Side::Right,
            "end" | "move" | "leave" | "arrive" | "lose" => {
                wake_until(&mut agent, &mut out, at, |out| drain(out, isn, &mut record));
                record.push(words.join(" "));
                moving.step(words[1], at, &mut agent, config, &mut out);
                drain(&mut out, isn, &mut record);
                continue;
            }
            _ => continue,
        };
        wake_until(&mut agent, &mut out, at, |out| drain(out, isn, &mut record));
        let put = words.iter().position(|w| *w == "=>").unwrap_or(words.len());
        let mut packet = packet(side, &words[2..put], isn);
        packet.id = PacketId(next_id);
        next_id += 1;
        let input = format!("{} {} {}", stamp(at), words[1], describe(&packet, isn));
        out.begin(Default::default(), at);
        let waiting = agent.holds();
        agent.on_packet(at, side, packet.clone(), &mut out);
        let fate = match agent.holds() > waiting {
            true => " => waits".to_owned(),
            false => fate_of(&packet, side, &mut out, isn),
        };
        record.push(format!("{input}{fate}"));
        let released = waiting.saturating_sub(agent.holds());
        let released = out.sends.split_off(out.sends.len() - released);
        drain(&mut out, isn, &mut record);
        for (_, packet) in released {
            record.push(format!("{} base {} => sent", stamp(at), describe(&packet, isn)));
        }
    }
    record
}

/// An agent's state in transit to the next one.
#[derive(Default)]
pub struct Moving(Option<Handover>);

impl Moving {
    /// Executes a line without a packet.
    pub fn step(
        &mut self,
        action: &str,
        at: Time,
        agent: &mut Agent,
        config: &AgentConfig,
        out: &mut Out,
    ) {
        out.begin(Default::default(), at);
        if matches!(action, "move" | "leave") {
            let state = agent.give_away(at, MOBILE, out).expect("something to give away");
            assert_eq!(agent.flows(), 0);
            assert!(agent.give_away(at, MOBILE, out).is_none());
            self.0 = Some(state);
        }
        if matches!(action, "move" | "leave" | "lose") {
            *agent = Agent::new(config);
            agent.await_state(MOBILE, action == "leave");
        }
        if matches!(action, "move" | "arrive") {
            let state = self.0.take().expect("state under way");
            agent.take_over(at, state, out).expect("an agent of its kind");
        }
    }
}

/// Removes the fate of the input packet from `out` and returns it; empty if the packet passed unchanged.
pub fn fate_of(packet: &Packet, from: Side, out: &mut Out, isn: Seq) -> String {
    if let Some(at) = out.sends.iter().position(|(_, p)| p.id == packet.id) {
        let (to, sent) = out.sends.remove(at);
        assert_eq!(to, from.other());
        if sent == *packet {
            return String::new();
        }
        return format!(" => becomes {}", describe(&sent, isn));
    }
    let dropped = |content: &EventKind| match content {
        EventKind::Packet { op: Op::Dropped(cause), packet: p, .. } if p.id == packet.id => {
            Some(*cause)
        }
        _ => None,
    };
    let at = out.events.iter().position(|e| dropped(&e.kind).is_some());
    let event = out.events.remove(at.expect("the packet vanished without a cause"));
    format!(" => {}", dropped(&event.kind).unwrap().name())
}

/// Calls the agent at each of its deadlines until `at`; `drain` processes the output of each call.
pub fn wake_until(agent: &mut Agent, out: &mut Out, at: Time, mut drain: impl FnMut(&mut Out)) {
    while let Some(wake) = agent.next_wake().filter(|w| *w <= at) {
        out.begin(Default::default(), wake);
        agent.on_wake(wake, out);
        assert!(agent.next_wake().is_none_or(|w| w > wake), "woken at {wake} again and again");
        drain(out);
    }
}

fn drain(out: &mut Out, isn: Seq, record: &mut Vec<String>) {
    for event in out.events.drain(..) {
        let at = stamp(event.at);
        match event.kind {
            EventKind::Packet { op: Op::Originated(cause), side, packet } => {
                let sent = out.sends.remove(0);
                assert_eq!(sent, (side, packet));
                record.push(format!("{at} base {} => {}", describe(&sent.1, isn), cause.name()));
            }
            // The start of tracking is omitted, and round trips have separate tests.
            EventKind::Agent { note: AgentNote::FlowSeen | AgentNote::LocalRtt { .. }, .. } => {}
            EventKind::Agent { note, .. } => {
                let name = match note {
                    AgentNote::FlowForgotten => "flow-forgotten",
                    AgentNote::CacheEvicted => "cache-evicted",
                    AgentNote::SenderRetransmission => "sender-retransmission",
                    AgentNote::CongestionHole => "congestion-hole",
                    AgentNote::BlocksHidden => "blocks-hidden",
                    AgentNote::LossLeft => "loss-left",
                    AgentNote::FlowLeftAlone => "flow-left-alone",
                    AgentNote::FlowRepaired => "flow-repaired",
                    _ => unreachable!(),
                };
                record.push(format!("{at} note {name}"));
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!(out.sends.is_empty(), "sent without saying why: {:?}", out.sends);
}

pub fn stamp(at: Time) -> String {
    if at.0.is_multiple_of(1_000_000) {
        format!("{}ms", at.0 / 1_000_000)
    } else {
        format!("{}us", at.0 / 1000)
    }
}

/// The packet of a script line.
fn packet(from: Side, words: &[&str], isn: Seq) -> Packet {
    let ack = if from == Side::Left { MOBILE_SEQ } else { isn };
    let seq = if from == Side::Left { isn } else { MOBILE_SEQ };
    let mut segment = Segment::new(PORT, 9, seq, ack, Flags::ACK);
    segment.window = WINDOW;
    let (mut len, mut offset, mut damage) = (0, 0, Damage::None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|w| w.parse::<u32>().ok()).expect(word);
        match *word {
            "syn" => segment.flags = segment.flags | Flags::SYN,
            "fin" => segment.flags = segment.flags | Flags::FIN,
            "rst" => segment.flags = segment.flags | Flags::RST,
            "ack" => segment.ack = isn + number(),
            "at" => segment.seq = segment.seq + number(),
            "win" => segment.window = number() as u16,
            "port" => segment.src_port = number() as u16,
            "ackp" => segment.options_mut().ackp = Some(Ackp::Permitted),
            "partial" => segment.options_mut().ackp = Some(Ackp::Partial),
            "stamp" => segment.timestamps = Some(Timestamps { value: number(), echo: 0 }),
            "acks" => segment.ack = MOBILE_SEQ + number(),
            "sack" | "caused" => {
                let word = *word;
                let (from, to) = words.next().and_then(|w| w.split_once('-')).expect(word);
                let place = |n: &str| isn + n.parse::<u32>().expect(word);
                let options = segment.options_mut();
                if word == "sack" {
                    options.sack.push(place(from), place(to));
                } else {
                    options.smart = Some(Smart::Caused(place(from)));
                }
            }
            "nack" => segment.options_mut().nack = Some(Nack::Permitted),
            "eln" => segment.options_mut().eln = Some(Eln::Permitted),
            "ip-damage" => damage = Damage::Ip,
            "tcp-damage" => damage = Damage::Tcp,
            span => {
                let (start, count) =
                    span.split_once('+').unwrap_or_else(|| panic!("what is {span}?"));
                let start: u32 = start.parse().unwrap();
                (len, offset) = (count.parse().unwrap(), u64::from(start));
                segment.seq = segment.seq + start;
            }
        }
    }
    let (mut src, mut dst) = (FIXED, MOBILE);
    if from == Side::Right {
        (src, dst) = (dst, src);
        (segment.src_port, segment.dst_port) = (segment.dst_port, segment.src_port);
    }
    let mut packet = Packet::tcp(src, dst, segment, Body::Pattern { stream: 1, len, offset });
    packet.damage = damage;
    packet
}

/// The line of a packet, in the syntax and order of scripts.
fn describe(packet: &Packet, isn: Seq) -> String {
    let Transport::Tcp(s) = &packet.transport else { panic!("not TCP") };
    let to_mobile = packet.dst == MOBILE;
    let mut words = Vec::new();
    for (flag, word) in [(Flags::SYN, "syn"), (Flags::FIN, "fin"), (Flags::RST, "rst")] {
        if s.flags.has(flag) {
            words.push(word.to_owned());
        }
    }
    let offset = s.seq - if to_mobile { isn } else { MOBILE_SEQ };
    if !packet.body.is_empty() {
        words.push(format!("{offset}+{}", packet.body.len()));
    } else if offset != 0 {
        words.push(format!("at {offset}"));
    }
    if !to_mobile {
        words.push(format!("ack {}", s.ack - isn));
    }
    if s.window != WINDOW {
        words.push(format!("win {}", s.window));
    }
    let port = if to_mobile { s.src_port } else { s.dst_port };
    if port != PORT {
        words.push(format!("port {port}"));
    }
    words.extend(s.options().ackp.map(|o| match o {
        Ackp::Permitted => "ackp".to_owned(),
        Ackp::Partial => "partial".to_owned(),
    }));
    if to_mobile && s.ack != MOBILE_SEQ {
        words.push(format!("acks {}", s.ack - MOBILE_SEQ));
    }
    words
        .extend(s.timestamps.filter(|_| to_mobile).map(|stamps| format!("stamp {}", stamps.value)));
    for (left, right) in s.options().sack.as_slice() {
        words.push(format!("sack {}-{}", *left - isn, *right - isn));
    }
    if let Some(Smart::Caused(seq)) = s.options().smart {
        words.push(format!("caused {}-", seq - isn));
    }
    match &s.options().nack {
        None => {}
        Some(Nack::Permitted) => words.push("nack".to_owned()),
        Some(Nack::Missing(ranges)) => words.extend(
            ranges
                .as_slice()
                .iter()
                .map(|(l, r)| format!("missing {}-{}", *l - MOBILE_SEQ, *r - MOBILE_SEQ)),
        ),
    }
    words.extend(s.options().eln.map(|o| match o {
        Eln::Permitted => "eln".to_owned(),
        Eln::MarksPermitted => "marks".to_owned(),
        Eln::Marked => "marked".to_owned(),
        Eln::Lost(seq) => format!("lost {}", seq - isn),
    }));
    match packet.damage {
        Damage::None => {}
        Damage::Ip => words.push("ip-damage".to_owned()),
        Damage::Tcp => words.push("tcp-damage".to_owned()),
    }
    words.join(" ")
}
