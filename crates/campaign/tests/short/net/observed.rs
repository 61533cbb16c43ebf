//! Runs a scenario and adds what happened to the figures of a system.

use std::collections::BTreeMap;
use std::fmt::Write;

use lasthop_proto::event::{Event, Op, TcpKind, Wants, What};
use lasthop_scenario::{Scenario, StageKind};
use lasthop_sim::{Session, layout};
use lasthop_trace::Sink;
use lasthop_trace::metrics::Metrics;

use super::{Block, Digest};

/// What happened in the runs of one system.
#[derive(Default)]
pub struct Observed {
    cases: u64,
    refused: u64,
    events: u64,
    wakes: u64,
    delivered: u64,
    acknowledged: u64,
    end: f64,
    ended: BTreeMap<String, u64>,
    counts: Counts,
    scalars: Digest,
    refusals: Digest,
}

/// Counts of events, and a digest of all of them.
#[derive(Default)]
struct Counts {
    packets: BTreeMap<String, u64>,
    tcp: BTreeMap<String, u64>,
    others: BTreeMap<String, u64>,
    digest: Digest,
}

/// The first word of how something is printed.
fn word(of: &impl std::fmt::Debug) -> String {
    let text = format!("{of:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

fn add(to: &mut BTreeMap<String, u64>, name: String) {
    *to.entry(name).or_default() += 1;
}

impl Sink for Counts {
    fn wants(&self) -> Wants {
        Wants::EVERYTHING.union(Wants::WORK)
    }

    fn event(&mut self, event: &Event) {
        let _ = writeln!(self.digest, "{event:?}");
        match &event.what {
            What::Packet { op: Op::Received | Op::Transmitted, .. } => {}
            What::Packet { op, .. } => add(&mut self.packets, format!("{op:?}")),
            What::Tcp(tcp) | What::Split(tcp) => match tcp.kind {
                TcpKind::Acked | TcpKind::Delivered { .. } => {}
                kind => add(&mut self.tcp, word(&kind)),
            },
            What::Agent { note, .. } => add(&mut self.others, word(note)),
            What::Link { note, .. } => add(&mut self.others, word(note)),
            What::Air(_) | What::Work(_) | What::Channel { .. } => {}
            what => add(&mut self.others, word(what)),
        }
    }
}

impl Observed {
    /// Runs `scenario` until `most` events have happened.
    pub fn run(&mut self, scenario: &Scenario, seed: u64, most: u64) {
        let metrics = Metrics::new(layout(scenario));
        let mut sink = (core::mem::take(&mut self.counts), metrics);
        let mut session = Session::with_ends(scenario, seed, &lasthop_quic::end, &sink);
        self.events += session.run_bounded(most, &mut sink);
        let over = session.ended();
        let end = session.finish();
        self.counts = sink.0;
        self.cases += 1;
        self.wakes += end.wakes;
        self.end += end.at.as_secs_f64();
        add(&mut self.ended, over.map_or("cut off".to_owned(), |over| word(&over).to_lowercase()));
        for transfer in &end.transfers {
            self.delivered += transfer.delivered;
            self.acknowledged += transfer.acknowledged;
        }
        let metrics = sink.1.finish(end.at);
        // Who wants metrics alone is told in fewer words.
        let mut brief = Metrics::new(layout(scenario));
        let mut session = Session::with_ends(scenario, seed, &lasthop_quic::end, &brief);
        session.run_until(end.at, &mut brief);
        let short = session.finish();
        let same = short.at == end.at && over.is_some();
        let told = format!("{:?}", brief.finish(end.at));
        assert!(!same || told == format!("{metrics:?}"), "metrics depend on who else looks");
        for stage in &scenario.path {
            if let StageKind::Agent(agent) = &stage.kind {
                let _ = write!(self.scalars, "{} {}", agent.word(), agent.plan());
            }
        }
        let _ = writeln!(self.scalars, "{end:?} {metrics:?}");
        let _ = writeln!(self.scalars, "{:?}", metrics.scalars());
    }

    /// Notes that a scenario was refused, and with what words.
    pub fn refuse(&mut self, why: &str) {
        self.refused += 1;
        let _ = writeln!(self.refusals, "{why}");
    }

    /// Whether nothing was tried.
    pub fn is_empty(&self) -> bool {
        self.cases + self.refused == 0
    }

    /// What happened, as the figures of the system called `name`.
    pub fn block(self, name: &str) -> Block {
        let mut block = Block::new(name);
        let list = |counts: &BTreeMap<String, u64>| {
            let all: Vec<String> = counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
            all.join(", ")
        };
        block.put("scenarios", self.cases);
        block.put("refused", self.refused);
        block.put("ended", list(&self.ended));
        block.put("events", self.events);
        block.put("wakes", self.wakes);
        block.put("time of all ends", format!("{:.6} s", self.end));
        block.put("bytes delivered", self.delivered);
        block.put("bytes acknowledged", self.acknowledged);
        let Counts { packets, tcp, others, digest } = self.counts;
        for (name, counts) in [("packets", packets), ("connections", tcp), ("others", others)] {
            if !counts.is_empty() {
                block.put(name, list(&counts));
            }
        }
        block.put("digest of events", digest.text());
        block.put("digest of metrics", self.scalars.text());
        block.put("digest of refusals", self.refusals.text());
        block
    }
}
