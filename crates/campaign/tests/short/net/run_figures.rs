//! Runs scenarios and adds up their figures, as one block of a golden file.

use std::collections::BTreeMap;
use std::fmt::Write;

use lasthop_observe::Sink;
use lasthop_observe::metrics::Metrics;
use lasthop_proto::event::{Event, EventKind, Interest, Op, TcpKind};
use lasthop_scenario::{Scenario, StageKind};
use lasthop_sim::{Session, layout};

use super::{Block, Digest};

/// The figures of the runs of one system.
#[derive(Default)]
pub struct RunFigures {
    refused: u64,
    events: u64,
    wakes: u64,
    delivered: u64,
    acknowledged: u64,
    end: f64,
    ended: BTreeMap<String, u64>,
    counts: Counts,
    refusals: Digest,
    /// Seed and figures of each run.
    runs: Vec<(u64, String)>,
}

/// Events by kind, and a digest of all events of a run.
#[derive(Default)]
struct Counts {
    packets: BTreeMap<String, u64>,
    tcp: BTreeMap<String, u64>,
    others: BTreeMap<String, u64>,
    digest: Digest,
}

/// The first word of the debug output.
fn word(of: &impl std::fmt::Debug) -> String {
    let text = format!("{of:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

fn add(to: &mut BTreeMap<String, u64>, name: String) {
    *to.entry(name).or_default() += 1;
}

impl Sink for Counts {
    fn interest(&self) -> Interest {
        Interest::EVERYTHING.union(Interest::WORK)
    }

    fn event(&mut self, event: &Event) {
        let _ = writeln!(self.digest, "{event:?}");
        match &event.kind {
            EventKind::Packet { op: Op::Received | Op::Transmitted, .. } => {}
            EventKind::Packet { op, .. } => add(&mut self.packets, format!("{op:?}")),
            EventKind::Tcp(tcp) | EventKind::Split(tcp) => match tcp.kind {
                TcpKind::Acked | TcpKind::Delivered { .. } => {}
                kind => add(&mut self.tcp, word(&kind)),
            },
            EventKind::Agent { note, .. } => add(&mut self.others, word(note)),
            EventKind::Link { note, .. } => add(&mut self.others, word(note)),
            EventKind::Air(_) | EventKind::Work(_) | EventKind::Channel { .. } => {}
            other => add(&mut self.others, word(other)),
        }
    }
}

impl RunFigures {
    /// Runs `scenario` until `most` events have happened.
    pub fn run(&mut self, scenario: &Scenario, seed: u64, most: u64) {
        self.counts.digest = Digest::default();
        let metrics = Metrics::new(layout(scenario));
        let mut sink = (core::mem::take(&mut self.counts), metrics);
        let mut session = Session::with_ends(scenario, seed, &lasthop_quic::end, &sink);
        let events = session.run_bounded(most, &mut sink);
        let over = session.ended();
        let end = session.finish();
        self.counts = sink.0;
        self.events += events;
        self.wakes += end.wakes;
        self.end += end.at.as_secs_f64();
        let ended = over.map_or("cut off".to_owned(), |over| word(&over).to_lowercase());
        add(&mut self.ended, ended.clone());
        for transfer in &end.transfers {
            self.delivered += transfer.delivered;
            self.acknowledged += transfer.acknowledged;
        }
        let metrics = sink.1.finish(end.at);
        // A sink of metrics alone subscribes to fewer events; its results must be the same.
        let mut brief = Metrics::new(layout(scenario));
        let mut session = Session::with_ends(scenario, seed, &lasthop_quic::end, &brief);
        session.run_until(end.at, &mut brief);
        let short = session.finish();
        let same = short.at == end.at && over.is_some();
        let alone = format!("{:?}", brief.finish(end.at));
        assert!(!same || alone == format!("{metrics:?}"), "metrics depend on other sinks");
        let mut scalars = Digest::default();
        for stage in &scenario.path {
            if let StageKind::Agent(agent) = &stage.kind {
                let _ = write!(scalars, "{} {}", agent.word(), agent.plan());
            }
        }
        let _ = writeln!(scalars, "{end:?} {metrics:?}");
        let _ = writeln!(scalars, "{:?}", metrics.scalars());
        let (at, wakes) = (end.at, end.wakes);
        let digests = (self.counts.digest.text(), scalars.text());
        let figures = format!(
            "{ended} at {at:?}, {events} events {}, {wakes} wakes, metrics {}",
            digests.0, digests.1
        );
        self.runs.push((seed, figures));
    }

    /// Counts a refused scenario, with the text of its error.
    pub fn refuse(&mut self, error: &str) {
        self.refused += 1;
        let _ = writeln!(self.refusals, "{error}");
    }

    /// No run and no refusal.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.refused == 0
    }

    pub fn block(self, name: &str) -> Block {
        let mut block = Block::new(name);
        let list = |counts: &BTreeMap<String, u64>| {
            let all: Vec<String> = counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
            all.join(", ")
        };
        block.put("scenarios", self.runs.len());
        block.put("refused", self.refused);
        block.put("ended", list(&self.ended));
        block.put("events", self.events);
        block.put("wakes", self.wakes);
        block.put("time of all ends", format!("{:.6} s", self.end));
        block.put("bytes delivered", self.delivered);
        block.put("bytes acknowledged", self.acknowledged);
        let Counts { packets, tcp, others, .. } = self.counts;
        for (name, counts) in [("packets", packets), ("connections", tcp), ("others", others)] {
            if !counts.is_empty() {
                block.put(name, list(&counts));
            }
        }
        block.put("digest of refusals", self.refusals.text());
        for (seed, figures) in self.runs {
            block.run(seed, figures);
        }
        block
    }
}
