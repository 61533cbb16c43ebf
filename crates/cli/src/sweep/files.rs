//! Complete traces of the first run of each cell: events, control blocks, captures, time-sequence plots.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lasthop_observe::Sink;
use lasthop_observe::csv::{EventCsv, TcbCsv};
use lasthop_observe::layout::Layout;
use lasthop_observe::pcapng::{CapturePoint, CaptureSink};
use lasthop_observe::sequence::Series;
use lasthop_proto::machine::StageId;
use lasthop_report::plot::{Theme, TimeSequence};
use lasthop_scenario::{Plan, Run};
use lasthop_sim::runs::{Recording, Results};
use lasthop_study::sweep::{CellSeries, heading};

use super::bound::{self, Bounded, CountedFile};
use crate::failure::Failure;

/// File with the key of a folder's run. A folder of another run is replaced.
const KEY: &str = "run";
/// Bytes of each packet's body in captures: headers only, since bodies are zeros.
const PAYLOAD: u32 = 0;

/// Folders of traces in a directory of results, one per cell, in the order of the cells.
pub fn folders(dir: &Path, titles: impl Iterator<Item = String>) -> Vec<PathBuf> {
    let mut names: Vec<String> = Vec::new();
    for title in titles {
        let mut name = file_name(&title);
        if names.contains(&name) {
            name += &format!("-{}", names.len() + 1);
        }
        names.push(name);
    }
    names.into_iter().map(|name| dir.join("trace").join(name)).collect()
}

/// A valid name on every file system: `agent=snoop_tcp=reno`.
fn file_name(title: &str) -> String {
    let safe = |c: char| match c {
        ' ' => '_',
        c if c.is_ascii_alphanumeric() || "=.+-%".contains(c) => c,
        _ => '-',
    };
    let name: String = title.chars().map(safe).take(120).collect();
    if name.is_empty() { "run".to_owned() } else { name }
}

/// Whether the folder contains the trace of `run`, as complete as `most` allows.
pub fn is_there(folder: &Path, run: &Run, most: Option<u64>) -> bool {
    let key = run.key.to_string();
    let found = fs::read_to_string(folder.join(KEY)).is_ok_and(|found| found.trim() == key);
    found && bound::is_enough(folder, most)
}

/// The title of the plots of `run`.
pub fn title(plan: &Plan, run: &Run) -> String {
    let title = format!("{} {}", plan.name, plan.cells[run.cell].title(&plan.axes));
    format!("{}, seed {}", title.trim(), run.seed)
}

/// Temporary path of an incomplete trace.
pub fn temporary(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

/// Simulates a run and writes its trace to `folder`.
pub fn record(
    folder: &Path,
    plan: &Plan,
    run: &Run,
    most: Option<u64>,
) -> Result<Recording, Failure> {
    let scenario = &plan.cells[run.cell].scenario;
    let temporary = temporary(folder);
    let layout = lasthop_sim::runs::layout(scenario);
    let mut recording = None;
    let traced = contents(&temporary, &layout, &title(plan, run), most, |mut sink| {
        let made = lasthop_sim::runs::record(scenario, run.seed, &mut sink);
        recording.insert(made).series.clone()
    });
    keep(folder, &temporary, run, traced)?;
    Ok(recording.expect("a trace without error has its run"))
}

/// Moves a trace from `temporary` to its folder, or removes it after an error.
pub fn keep(
    folder: &Path,
    temporary: &Path,
    run: &Run,
    traced: io::Result<()>,
) -> Result<(), Failure> {
    let help = "finished runs are stored; is there room, and may you write there?";
    let key = run.key.to_string();
    // The key comes last: a folder without it is not complete.
    let written =
        traced.and_then(|()| fs::write(temporary.join(KEY), format!("{key}\n"))).and_then(|()| {
            if folder.exists() {
                fs::remove_dir_all(folder)?;
            }
            fs::rename(temporary, folder)
        });
    if written.is_err() {
        let _ = fs::remove_dir_all(temporary);
    }
    written.map_err(|error| Failure::file(folder, error, help))
}

/// Removes traces of an earlier scenario in the same directory: of other runs, or of cells with other titles.
pub fn remove_former(dir: &Path, plan: &Plan) -> Result<(), Failure> {
    let keys: BTreeSet<String> = plan.runs().map(|run| run.key.to_string()).collect();
    let cells = folders(dir, plan.cells.iter().map(|cell| cell.title(&plan.axes)));
    for folder in fs::read_dir(dir.join("trace")).into_iter().flatten().flatten() {
        let folder = folder.path();
        let Ok(key) = fs::read_to_string(folder.join(KEY)) else { continue };
        let name = folder.to_string_lossy();
        let cell = name.rsplit_once("_seed-").map_or(&*name, |(cell, _)| cell);
        let is_cell = cells.iter().any(|known| known.to_string_lossy() == cell);
        if !is_cell || !keys.contains(key.trim()) {
            fs::remove_dir_all(&folder)
                .map_err(|error| Failure::file(&folder, error, "it is of an earlier scenario"))?;
        }
    }
    Ok(())
}

/// Makes a run and writes its events immediately, so memory does not grow with the run. `run` passes every
/// event to the given sink, and returns the series of its flows. Events, control blocks and captures end at `most` bytes
/// in total.
pub fn contents(
    dir: &Path,
    layout: &Layout,
    title: &str,
    most: Option<u64>,
    run: impl FnOnce(&mut dyn Sink) -> Vec<Series>,
) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let bytes = Rc::new(Cell::new(0));
    let create = |name: &str| {
        let file = File::create(dir.join(name)).map(BufWriter::new)?;
        Ok::<_, io::Error>(CountedFile { file, bytes: bytes.clone() })
    };
    let stages = layout.stages.iter().enumerate().map(|(i, stage)| CapturePoint {
        stage: StageId(i as u16),
        name: stage.name.clone(),
        is_link: stage.role.is_link(),
    });
    let mut taken = vec!["drops".to_owned()];
    let captures = CaptureSink::new(&stages.collect::<Vec<_>>(), PAYLOAD, |point| {
        let Some(point) = point else { return create("drops.pcapng") };
        let mut name = file_name(&point.name);
        if taken.contains(&name) {
            name += &format!("-{}", point.stage.0);
        }
        taken.push(name.clone());
        create(&format!("{name}.pcapng"))
    })?;
    let events_csv = EventCsv::new(layout, create("events.csv")?);
    let sink = ((events_csv, TcbCsv::new(create("tcb.csv")?)), captures);
    let mut sinks = Bounded { sink, bytes: bytes.clone(), most, ends: None };
    let series = run(&mut sinks);
    sinks.note(dir)?;
    let ((events_csv, tcb_csv), captures) = sinks.sink;
    events_csv.finish()?.flush()?;
    tcb_csv.finish()?.flush()?;
    let mut captures = captures.finish()?;
    captures.drops.flush()?;
    captures.links.iter_mut().try_for_each(|(_, file)| file.flush())?;

    let series_count = series.len();
    for (i, series) in series.iter().enumerate() {
        let n = i + 1;
        let plot =
            TimeSequence { title: &heading(title, n, series_count), series, part: None }.plot();
        fs::write(dir.join(format!("sequence-{n}.svg")), plot.svg())?;
        #[cfg(feature = "png")]
        fs::write(
            dir.join(format!("sequence-{n}.png")),
            plot.png(Theme::Light, 2.0).map_err(io::Error::other)?,
        )?;
        fs::write(dir.join(format!("sequence-{n}.csv")), plot.data().csv())?;
        let points = serde_json::to_vec(series).map_err(io::Error::other)?;
        fs::write(dir.join(format!("sequence-{n}.json")), points)?;
    }
    Ok(())
}

/// The page about `results`. Series of cells that are not in `known` are read from `dir`.
pub fn page(
    dir: &Path,
    results: &Results,
    known: BTreeMap<usize, Vec<Series>>,
) -> Result<String, Failure> {
    Ok(lasthop_study::sweep::page(results, &recorded(dir, results, known)?))
}

/// Time-sequence series of the first run of each cell: those of `known`, else those in `dir`.
pub fn recorded(
    dir: &Path,
    results: &Results,
    mut known: BTreeMap<usize, Vec<Series>>,
) -> Result<Vec<CellSeries>, Failure> {
    let titles = results.cells.iter().map(|cell| results.title(cell));
    let recorded = folders(dir, titles).into_iter().enumerate().map(|(cell, path)| {
        let folder = path.strip_prefix(dir).unwrap_or(&path).display().to_string();
        let series = known.remove(&cell).map_or_else(|| read_series(&path), Ok)?;
        Ok(CellSeries { folder, series })
    });
    recorded.collect()
}

/// Time-sequence series in a folder; empty if it does not exist.
fn read_series(folder: &Path) -> Result<Vec<Series>, Failure> {
    let mut all = Vec::new();
    loop {
        let path = folder.join(format!("sequence-{}.json", all.len() + 1));
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(all),
            Err(error) => return Err(Failure::file(&path, error, "")),
        };
        let series = serde_json::from_slice(&text).map_err(|error| {
            Failure::file(&path, error.into(), "remove its folder and run the scenario again")
        })?;
        all.push(series);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_are_safe_everywhere() {
        assert_eq!(file_name("agent=snoop+ackp tcp=reno"), "agent=snoop+ackp_tcp=reno");
        assert_eq!(file_name("../:x"), "..--x");
        assert_eq!(file_name(""), "run");
    }
}
