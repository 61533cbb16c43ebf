//! Runs a scenario in the simulator and draws what happened:
//! `cargo run --example transfer -- scenarios/west97-lan.toml DIR`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use lasthop_observe::Sink;
use lasthop_observe::metrics::{Metrics, RunMetrics};
use lasthop_observe::sequence::{Sequence, Watch};
use lasthop_proto::event::{Event, EventKind, Interest, TcpKind};
use lasthop_proto::wire::FlowKey;
use lasthop_report::plot::{Theme, TimeSequence};
use lasthop_report::table::{self, Look};

/// The first flow that opens: the ports are known only then.
#[derive(Default)]
struct First(Option<FlowKey>);

impl Sink for First {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        if let EventKind::Tcp(tcp) = &event.kind {
            self.0 = self.0.or((tcp.kind == TcpKind::Opening).then_some(tcp.flow));
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("which scenario?")?;
    let dir = PathBuf::from(arguments.next().ok_or("which directory?")?);
    let text = std::fs::read_to_string(&file)?;
    let (plan, _) =
        lasthop_scenario::parse(&text, "scenario", &[]).map_err(|e| format!("{e:?}"))?;
    std::fs::create_dir_all(&dir)?;
    let mut cases: BTreeMap<usize, (String, Vec<RunMetrics>)> = BTreeMap::new();
    for run in plan.runs() {
        let cell = &plan.cells[run.cell];
        let mut sink = (Metrics::new(lasthop_sim::layout(&cell.scenario)), First::default());
        let end = lasthop_sim::run(&cell.scenario, run.seed, &mut sink);
        let case = cases.entry(run.cell).or_insert_with(|| (cell.title(&plan.axes), Vec::new()));
        case.1.push(sink.0.finish(end.at));
        if let (true, Some(flow)) = (run.seed == cell.scenario.first_seed, sink.1.0) {
            let mut sequence = Sequence::new(flow, Watch::EndPoints);
            let end = lasthop_sim::run(&cell.scenario, run.seed, &mut sequence);
            let series = sequence.finish(end.at);
            let plot = TimeSequence { title: &case.0, series: &series, part: None }.plot();
            std::fs::write(dir.join(format!("{}.svg", run.cell)), plot.svg())?;
            std::fs::write(dir.join(format!("{}.png", run.cell)), plot.png(Theme::Light, 1.5)?)?;
        }
    }
    let cases: Vec<_> =
        cases.values().map(|(name, runs)| (name.clone(), runs.as_slice())).collect();
    println!("{}", table::render(&table::run_summary(&plan.name, &cases), Look::Terminal(140)));
    Ok(())
}
