//! The three scenarios of partial acknowledgements (3.3, Figures 5 to 7), packet by packet.
//!
//! The base station's agent is driven directly: packets arrive at given times, and every partial acknowledgement is
//! compared with the paper's text.

use lasthop_proto::agent::{AckpMode, Agent, AgentConfig, SnoopAgent, SnoopConfig};
use lasthop_proto::event::Wants;
use lasthop_proto::machine::{Machine, Out, Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Ackp, Addr, Body, Flags, Packet, Segment, Seq};

use crate::table::{row, table};
use crate::{Bench, Claim, Finding, Interrupted};

const FIXED: Addr = Addr::v4(10, 0, 1, 1);
const MOBILE: Addr = Addr::v4(10, 0, 2, 1);
const MSS: u32 = 1460;
const MS: u64 = 1_000_000;

/// A base station with snoop and partial acknowledgements between two scripted hosts.
struct Script {
    agent: Agent,
    out: Out,
    /// Partial acknowledgements: time, and last packet acknowledged (from 1).
    partial: Vec<(u64, u32)>,
}

impl Script {
    /// The handshake, with or without the sender's offer.
    fn new(offered: bool) -> Script {
        let snoop = SnoopConfig::west97();
        let agent =
            Agent::new(&AgentConfig::Snoop(SnoopAgent { snoop, ackp: Some(AckpMode::Full) }));
        let mut script = Script { agent, out: Out::new(Wants::NOTHING), partial: Vec::new() };
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
                self.partial.push((at_ms, (segment.ack.0 - 1) / MSS));
            }
        }
    }

    /// Data packet `n` arrives from the fixed host.
    fn data(&mut self, at_ms: u64, n: u32) {
        let seq = Seq(1 + (n - 1) * MSS);
        let segment = Segment::new(1024, 9, seq, Seq(7001), Flags::ACK);
        let body = Body::Pattern { stream: 1, len: MSS, offset: u64::from((n - 1) * MSS) };
        self.pass(at_ms, Side::Left, Packet::tcp(FIXED, MOBILE, segment, body));
    }

    /// The mobile acknowledges packets up to `n`.
    fn ack(&mut self, at_ms: u64, n: u32) {
        let mut segment = Segment::new(9, 1024, Seq(7001), Seq(1 + n * MSS), Flags::ACK);
        segment.window = 16_384;
        self.pass(at_ms, Side::Right, Packet::tcp(MOBILE, FIXED, segment, Body::EMPTY));
    }

    /// The last packet of each partial acknowledgement, in order.
    fn answers(&self) -> Vec<u32> {
        self.partial.iter().map(|(_, n)| *n).collect()
    }
}

pub(super) const ACKP_SCENARIOS: Claim = Claim {
    id: "W-ACKP-SCENARIOS",
    place: "3.3, Figures 5-7",
    setup: "the full base-station algorithm: delayed-ACK timer, lastackp, SYN option negotiation; (1) \
            in-order, (2) hole from congestion, (3) hole filled",
    published: "(1) partial ACK for the highest contiguous packet; (2) none; (3) one partial ACK that \
            jumps to the highest contiguous packet; no partial ACK in error-free operation or to a sender \
            that did not offer the option",
    cost: 0,
    run: Some(run),
    ..Claim::of("west97")
};

/// The three scenarios, and two without partial acknowledgement.
fn run(_: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let mut rows = table(
        "Partial acknowledgements, packet by packet",
        "<scenario | <partial ACKs: at, for packet | <wanted",
    );
    let mut check = |what: &str, script: &Script, wanted: &[u32]| {
        let got = script.answers();
        let told: Vec<String> =
            script.partial.iter().map(|(at, n)| format!("{at} ms: {n}")).collect();
        rows.rows.push(row(&[&what, &told.join(", "), &format!("{wanted:?}")]));
        let label = format!("partial ACKs, {what}");
        finding.compare(label, got.len() as f64, "", wanted.len() as f64);
        finding
            .require(got == wanted, format!("{what}: partial ACKs for {got:?}, wanted {wanted:?}"));
    };

    // Figure 5: packets 1 to 4 arrive in order, without answer by the mobile.
    let mut s = Script::new(true);
    (1..=4).for_each(|n| s.data(u64::from(n), n));
    s.advance(3000);
    check("1: in order, no answer from the mobile", &s, &[4]);

    // Figure 6: packet 1 was acknowledged; 2 and 3 were lost before the base station; 4 arrives.
    let mut s = Script::new(true);
    s.data(1, 1);
    s.ack(10, 1);
    s.data(20, 4);
    s.advance(5000);
    check("2: packets 2 and 3 lost to congestion", &s, &[]);

    // Figure 7: 2 arrives late, then 3 fills the hole; one partial ACK jumps to 4.
    let mut s = Script::new(true);
    s.data(1, 1);
    s.ack(10, 1);
    s.data(20, 4);
    s.data(40, 2);
    s.data(41, 3);
    s.advance(5000);
    check("3: the hole is filled", &s, &[4]);

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
    Ok(())
}
