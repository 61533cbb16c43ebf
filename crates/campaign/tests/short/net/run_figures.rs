//! Runs scenarios and adds up their figures, as one block of a golden file.

use std::collections::BTreeMap;
use std::fmt::Write;

use lasthop_observe::Sink;
use lasthop_observe::csv::{EventCsv, TcbCsv};
use lasthop_observe::metrics::Metrics;
use lasthop_proto::event::{Event, EventKind};
use lasthop_scenario::{Scenario, StageKind};
use lasthop_sim::{Session, layout};

use super::forms::{headers, json};
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
    /// Rows of the table of events, by event and cause.
    rows: BTreeMap<String, u64>,
    refusals: Digest,
    /// Seed and figures of each run.
    runs: Vec<(u64, String)>,
}

/// The parts of events that the tables of a run omit: headers of packets, and control blocks of split connections.
#[derive(Default)]
struct Headers(Digest);

impl Sink for Headers {
    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Packet { packet, .. } => headers(packet, &mut self.0),
            EventKind::Split(tcp) => self.0.bytes(json(&tcp.tcb).as_bytes()),
            _ => {}
        }
    }
}

fn add(to: &mut BTreeMap<String, u64>, name: String) {
    *to.entry(name).or_default() += 1;
}

impl RunFigures {
    /// Runs `scenario` until `most` events have happened.
    pub fn run(&mut self, scenario: &Scenario, seed: u64, most: u64) {
        let metrics = Metrics::new(layout(scenario));
        let tables = (EventCsv::new(&layout(scenario), Vec::new()), TcbCsv::new(Vec::new()));
        let mut sink = (tables, (Headers::default(), metrics));
        let mut session = Session::with_ends(scenario, seed, &lasthop_sim::quic::end, &sink);
        let events = session.run_bounded(most, &mut sink);
        let over = session.ended();
        let end = session.end();
        let ((table, blocks), (Headers(mut digest), metrics)) = sink;
        let table = table.finish().expect("it is written");
        let text = std::str::from_utf8(&table).expect("text");
        let mut rows = BTreeMap::<_, u64>::new();
        for row in text.lines().skip(1) {
            let mut fields = row.split(',').skip(1);
            *rows.entry((fields.next(), fields.next())).or_default() += 1;
        }
        for ((event, cause), count) in rows {
            let name = format!("{} {}", event.unwrap_or_default(), cause.unwrap_or_default());
            *self.rows.entry(name.trim_end().to_owned()).or_default() += count;
        }
        digest.bytes(&table);
        digest.bytes(&blocks.finish().expect("it is written"));
        self.events += events;
        self.wakes += end.wakes;
        self.end += end.at.as_secs_f64();
        let ended = over.map_or("cut off".to_owned(), |over| json(&over).replace('"', ""));
        add(&mut self.ended, ended.clone());
        for transfer in &end.transfers {
            self.delivered += transfer.delivered;
            self.acknowledged += transfer.acknowledged;
        }
        let metrics = metrics.finish(end.at);
        // A sink of metrics alone subscribes to fewer events; its results must be the same.
        let mut brief = Metrics::new(layout(scenario));
        let mut session = Session::with_ends(scenario, seed, &lasthop_sim::quic::end, &brief);
        session.run_until(end.at, &mut brief);
        let short = session.end();
        let same = short.at == end.at && over.is_some();
        assert!(!same || brief.finish(end.at) == metrics, "metrics depend on other sinks");
        let mut scalars = Digest::default();
        for stage in &scenario.path {
            if let StageKind::Agent(agent) = &stage.kind {
                let _ = write!(scalars, "{} {}", agent.word(), agent.plan());
            }
        }
        let _ = writeln!(scalars, "{} {}", json(&end), json(&metrics));
        let _ = writeln!(scalars, "{}", json(&metrics.scalars()));
        let (at, wakes) = (end.at.0, end.wakes);
        let digests = (digest.text(), scalars.text());
        let figures = format!(
            "{ended} at {at} ns, {events} events {}, {wakes} wakes, metrics {}",
            digests.0, digests.1
        );
        self.runs.push((seed, figures));
    }

    /// Counts a refused scenario, with its error.
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
        block.put("rows", list(&self.rows));
        block.put("digest of refusals", self.refusals.text());
        for (seed, figures) in self.runs {
            block.run(seed, figures);
        }
        block
    }
}
