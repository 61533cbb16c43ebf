//! The three scenarios of partial acknowledgements (3.3, Figures 5 to 7), packet by packet.
//!
//! The base station's agent is driven directly: packets arrive at given times, and every partial acknowledgement is
//! compared with the paper's text.

use lasthop_proto::agent::{AckpMode, Agent, AgentConfig, SnoopAgent, SnoopConfig};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Machine, Out, Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Ackp, Addr, Body, Flags, Packet, Segment, Seq};
use lasthop_report::model::Figure;
use lasthop_report::plot::{Message, Messages};

use crate::table::{row, table};
use crate::{Bench, Finding, Interrupted};

const FIXED: Addr = Addr::v4(10, 0, 1, 1);
const MOBILE: Addr = Addr::v4(10, 0, 2, 1);
const MSS: u32 = 1460;
const MS: u64 = 1_000_000;

/// A message that arrives, for a diagram.
fn arrived(from: usize, to: usize, text: String) -> Message {
    Message { from, to, text, lost: false }
}

/// A base station with snoop and partial acknowledgements between two scripted hosts.
struct Script {
    agent: Agent,
    out: Out,
    /// Partial acknowledgements: time, and last packet acknowledged (from 1).
    partial: Vec<(u64, u32)>,
    /// Packets and acknowledgements in their order, for a diagram.
    drawn: Vec<Message>,
}

/// The parties of a diagram.
const PARTIES: [&str; 3] = ["fixed host", "base station", "mobile"];

impl Script {
    /// The handshake, with or without the sender's offer.
    fn new(offered: bool) -> Script {
        let snoop = SnoopConfig::west97();
        let agent =
            Agent::new(&AgentConfig::Snoop(SnoopAgent { snoop, ackp: Some(AckpMode::Full) }));
        let mut script = Script {
            agent,
            out: Out::new(Interest::NOTHING),
            partial: Vec::new(),
            drawn: Vec::new(),
        };
        let mut syn = Segment::new(1024, 9, Seq(0), Seq(0), Flags::SYN);
        if offered {
            syn.options_mut().ackp = Some(Ackp::Permitted);
        }
        script.pass(0, Side::Left, Packet::tcp(FIXED, MOBILE, syn, Body::EMPTY));
        let mut answer = Segment::new(9, 1024, Seq(7000), Seq(1), Flags::SYN | Flags::ACK);
        answer.window = 16_384;
        script.pass(0, Side::Right, Packet::tcp(MOBILE, FIXED, answer, Body::EMPTY));
        script
    }

    fn pass(&mut self, at_ms: u64, from: Side, packet: Packet) {
        self.advance(at_ms);
        let now = Time(at_ms * MS);
        self.out.begin(StageId(0), now);
        self.agent.on_packet(now, from, packet, &mut self.out);
        self.collect(at_ms);
    }

    /// Advances time to `at_ms`.
    fn advance(&mut self, at_ms: u64) {
        while let Some(at) = self.agent.next_wake().filter(|at| at.0 <= at_ms * MS) {
            self.out.begin(StageId(0), at);
            self.agent.on_wake(at, &mut self.out);
            self.collect(at.0 / MS);
        }
    }

    fn collect(&mut self, at_ms: u64) {
        for (side, packet) in self.out.sends.drain(..) {
            let Some(segment) = packet.segment() else { continue };
            if side == Side::Left && segment.options().ackp == Some(Ackp::Partial) {
                let n = (segment.ack.0 - 1) / MSS;
                self.partial.push((at_ms, n));
                self.drawn.push(arrived(1, 0, format!("{at_ms} ms: partial ACK {n}")));
            } else if side == Side::Right && !packet.body.is_empty() {
                let n = (segment.seq.0 - 1) / MSS + 1;
                self.drawn.push(arrived(1, 2, format!("{at_ms} ms: packet {n}")));
            } else if side == Side::Left && !segment.flags.has(Flags::SYN) {
                self.drawn.push(arrived(
                    1,
                    0,
                    format!("{at_ms} ms: ACK {}", (segment.ack.0 - 1) / MSS),
                ));
            }
        }
    }

    /// Data packet `n` is lost before the base station.
    fn lose(&mut self, n: u32) {
        self.drawn.push(Message { from: 0, to: 1, text: format!("packet {n}"), lost: true });
    }

    /// Data packet `n` arrives from the fixed host.
    fn data(&mut self, at_ms: u64, n: u32) {
        self.drawn.push(arrived(0, 1, format!("{at_ms} ms: packet {n}")));
        let seq = Seq(1 + (n - 1) * MSS);
        let segment = Segment::new(1024, 9, seq, Seq(7001), Flags::ACK);
        let body = Body::Pattern { stream: 1, len: MSS, offset: u64::from((n - 1) * MSS) };
        self.pass(at_ms, Side::Left, Packet::tcp(FIXED, MOBILE, segment, body));
    }

    /// The mobile acknowledges packets up to `n`.
    fn ack(&mut self, at_ms: u64, n: u32) {
        self.drawn.push(arrived(2, 1, format!("{at_ms} ms: ACK {n}")));
        let mut segment = Segment::new(9, 1024, Seq(7001), Seq(1 + n * MSS), Flags::ACK);
        segment.window = 16_384;
        self.pass(at_ms, Side::Right, Packet::tcp(MOBILE, FIXED, segment, Body::EMPTY));
    }

    /// The last packet of each partial acknowledgement, in order.
    fn answers(&self) -> Vec<u32> {
        self.partial.iter().map(|(_, n)| *n).collect()
    }
}

/// The three scenarios, and two without partial acknowledgement.
pub(super) fn run(_: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let mut rows = table(
        "Partial acknowledgements, packet by packet",
        "<scenario | <partial ACKs: at, for packet | <wanted",
    );
    let mut drawings = Vec::new();
    let mut check = |case: &str, script: &Script, expected: &[u32]| {
        let got = script.answers();
        let partial: Vec<String> =
            script.partial.iter().map(|(at, n)| format!("{at} ms: {n}")).collect();
        rows.rows.push(row(&[&case, &partial.join(", "), &format!("{expected:?}")]));
        let label = format!("partial ACKs, {case}");
        finding.compare(label, got.len() as f64, "", expected.len() as f64);
        finding.require(
            got == expected,
            format!("{case}: partial ACKs for {got:?}, wanted {expected:?}"),
        );
    };

    // Figure 5: packets 1 to 4 arrive in order, without answer by the mobile.
    let mut s = Script::new(true);
    (1..=4).for_each(|n| s.data(u64::from(n), n));
    s.advance(3000);
    check("1: in order, no answer from the mobile", &s, &[4]);
    drawings.push(diagram("Figure 5: packets in order, without an answer of the mobile", &s));

    // Figure 6: packet 1 was acknowledged; 2 and 3 were lost before the base station; 4 arrives.
    let mut s = Script::new(true);
    s.data(1, 1);
    s.ack(10, 1);
    s.lose(2);
    s.lose(3);
    s.data(20, 4);
    s.advance(5000);
    check("2: packets 2 and 3 lost to congestion", &s, &[]);
    drawings.push(diagram("Figure 6: packets 2 and 3 are lost before the base station", &s));

    // Figure 7: 2 arrives late, then 3 fills the hole; one partial ACK jumps to 4.
    let mut s = Script::new(true);
    s.data(1, 1);
    s.ack(10, 1);
    s.lose(2);
    s.lose(3);
    s.data(20, 4);
    s.data(40, 2);
    s.data(41, 3);
    s.advance(5000);
    check("3: the hole is filled", &s, &[4]);
    drawings.push(diagram("Figure 7: the hole is filled", &s));

    // No errors: the mobile answers before the local timer expires.
    let mut s = Script::new(true);
    for n in 1..=50 {
        s.data(u64::from(n) * 10, n);
        s.ack(u64::from(n) * 10 + 8, n);
    }
    s.advance(10_000);
    check("error-free operation", &s, &[]);

    // A sender that did not offer the option.
    let mut s = Script::new(false);
    (1..=4).for_each(|n| s.data(u64::from(n), n));
    s.advance(5000);
    check("the sender did not offer the option", &s, &[]);

    finding.tables.push(rows);
    finding.figures.extend(drawings);
    Ok(())
}

/// The first packets of a script as a diagram.
fn diagram(title: &str, script: &Script) -> Figure {
    const MOST: usize = 14;
    let messages = script.drawn.iter().take(MOST).cloned().collect();
    let parties = PARTIES.map(str::to_owned).to_vec();
    let plot = Messages { title: title.to_owned(), parties, messages };
    let caption =
        "Packets to the base station, those that it forwards or retransmits, and partial ACKs.";
    Figure::new(&plot.plot(), title, caption)
}
