//! Stores: after crashes, damage or foreign results, the files are the same or the error is reported.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_batch::store::{MARK, Store};
use lasthop_batch::sweep::{Batches, Shard, SweepSummary, sweep};
use lasthop_batch::{Provenance, Work};
use lasthop_scenario::{Argument, Grid};
use tempfile::TempDir;

/// Runs that could carry 375 MB, but do not with these errors: ten form a batch, so a few cells form several.
const TEXT: &str = "\
name = \"tiny\"
runs = 9
horizon = \"300ms\"
transfer = { from = \"fixed\", to = \"mobile\", bytes = \"1GB\" }
[host.fixed]
preset = \"rfc\"
[host.mobile]
preset = \"rfc\"
[[path]]
link = { rate = \"10gbit\", delay = \"1ms\" }
[[path]]
agent = \"none\"
[[path]]
radio = { rate = \"10gbit\", delay = \"1ms\" }
errors = { model = \"exponential\", mean = \"16KiB\" }
[vary]
agent = [\"none\", \"snoop\"]
";

fn arguments() -> Vec<Argument> {
    vec![Argument::Vary("link.delay=1ms,2ms,3ms".to_owned())]
}

fn made(store: &Store, shard: &str, work: &Work<'_>) -> Result<SweepSummary, lasthop_batch::Error> {
    let (grid, _) = Grid::parse(TEXT, "tiny", &arguments(), None).expect("a grid");
    let provenance = Provenance::of_grid(&grid, TEXT, &arguments(), None);
    let batches = Batches::new(&grid, provenance)?;
    assert!(batches.count() > 3, "several batches: {}", batches.count());
    sweep(&batches, store, shard.parse().expect("a shard"), work)
}

/// A directory of its own.
fn store() -> (TempDir, Store) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path()).expect("a store");
    (dir, store)
}

/// The batches by name.
fn batches(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("a file"));
    let name = |entry: &fs::DirEntry| entry.file_name().into_string().expect("a name");
    let batch = |entry: fs::DirEntry| (name(&entry), fs::read(entry.path()).expect("read"));
    entries.filter(|entry| name(entry).ends_with(".parquet")).map(batch).collect()
}

/// The batches of an undisturbed sweep.
fn whole() -> BTreeMap<String, Vec<u8>> {
    let (dir, store) = store();
    made(&store, "1/1", &Work::new(2)).expect("made");
    batches(dir.path())
}

#[test]
fn shards_in_any_order_give_the_same_files() {
    let expected = whole();
    let (dir, together) = store();
    for shard in ["3/3", "1/3", "2/3"] {
        let swept = made(&together, shard, &Work::new(1)).expect("made");
        assert!(swept.is_complete() && swept.found == 0 && swept.made > 0);
    }
    assert_eq!(batches(dir.path()), expected);
}

#[test]
fn a_stopped_sweep_resumes_without_repeating_batches() {
    let (dir, store) = store();
    let seen = AtomicU64::new(0);
    let stop = || seen.load(Ordering::Relaxed) >= 25;
    let progress = |_| {
        seen.fetch_add(1, Ordering::Relaxed);
    };
    let swept =
        made(&store, "1/1", &Work { jobs: 1, stop: &stop, progress: &progress }).expect("made");
    assert!(!swept.is_complete() && swept.made > 0, "{swept:?}");
    let rest = made(&store, "1/1", &Work::new(1)).expect("made");
    assert_eq!((rest.found, rest.found + rest.made), (swept.made, rest.batches));
    let again = made(&store, "1/1", &Work::new(1)).expect("made");
    assert_eq!((again.made, again.runs), (0, 0));
    assert_eq!(batches(dir.path()), whole());
}

#[test]
fn concurrent_sweeps_of_one_directory_agree() {
    let (dir, store) = store();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| made(&store, "1/1", &Work::new(1)).expect("made"));
        }
    });
    assert_eq!(batches(dir.path()), whole());
    let left = fs::read_dir(dir.path()).expect("a directory").filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"))
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_file_that_a_killed_process_left_is_no_batch() {
    let (dir, store) = store();
    fs::write(dir.path().join(".abc.parquet.1-0.tmp"), "half").expect("written");
    made(&store, "1/1", &Work::new(1)).expect("made");
    assert_eq!(batches(dir.path()), whole());
}

#[test]
fn versions_do_not_mix() {
    let (dir, store) = store();
    made(&store, "1/1", &Work::new(1)).expect("made");
    fs::write(dir.path().join(MARK), br#"{"lasthop":"0.0.9","results":7}"#).expect("written");
    let text = made(&store, "1/1", &Work::new(1)).expect_err("another version").to_string();
    let ours = format!("lasthop {} (results", env!("CARGO_PKG_VERSION"));
    assert!(text.contains("lasthop 0.0.9 (results 7)") && text.contains(&ours), "{text}");
}

/// Seeds and axes are columns of a store. Another scenario, or another value, is none.
#[test]
fn sweeps_whose_rows_would_mix_do_not_share_a_store() {
    let (dir, store) = store();
    let sweep = |text: &str, arguments: &[Argument]| {
        let (grid, _) = Grid::parse(text, "tiny", arguments, None).expect("a grid");
        let provenance = Provenance::of_grid(&grid, text, arguments, None);
        Batches::new(&grid, provenance)?.missing(&store, Shard::ALL)
    };
    let set = |text: &str| Argument::Set(text.to_owned());
    sweep(TEXT, &[]).expect("the first one");
    sweep(TEXT, &[set("seed=1001"), set("runs=20")]).expect("more seeds");
    sweep(TEXT, &[Argument::Vary("link.delay=4ms,5ms".to_owned())]).expect("more values");
    let names = || fs::read_dir(dir.path()).expect("a directory").count();
    let before = names();
    let other = TEXT.replace("16KiB", "64KiB");
    for (text, arguments, difference) in [
        (other.as_str(), vec![], "another scenario"),
        (TEXT, vec![set("errors.mean=64KiB")], "other values of `--set`"),
    ] {
        let error = sweep(text, &arguments).expect_err("a second scenario").to_string();
        assert!(error.contains(difference) && error.contains("`tiny`"), "{error}");
    }
    assert_eq!(names(), before);
}

/// Another process that writes first is simulated by a batch that appears while its runs are made.
#[test]
fn equal_names_with_other_results_are_an_error() {
    let (dir, store) = store();
    made(&store, "1/1", &Work::new(1)).expect("made");
    let all = batches(dir.path());
    let (name, right) = all.first_key_value().expect("a batch");
    let late = |bytes: Vec<u8>| {
        let path = dir.path().join(name);
        fs::remove_file(&path).expect("removed");
        let progress = |_| {
            if !path.exists() {
                fs::write(&path, &bytes).expect("written");
            }
        };
        made(&store, "1/1", &Work { jobs: 1, stop: &|| false, progress: &progress })
    };
    let wrong = all.values().last().expect("another batch").clone();
    let error = late(wrong).expect_err("they differ").to_string();
    assert!(error.contains("other results") && error.contains(name), "{error}");
    late(right.clone()).expect("equal bytes are no conflict");
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_written_to_is_named() {
    let error = Store::create(Path::new("/dev/null/store")).expect_err("no directory").to_string();
    assert!(error.contains("/dev/null/store"), "{error}");
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(&dir.path().join("store")).expect("a store");
    fs::remove_dir(dir.path().join("store")).expect("removed");
    let error = made(&store, "1/1", &Work::new(1)).expect_err("nowhere to write").to_string();
    assert!(error.contains("store"), "{error}");
}

#[test]
fn shard_arguments_are_parsed_or_refused() {
    assert_eq!("1/1".parse(), Ok(Shard::ALL));
    for wrong in ["0/3", "4/3", "3", "a/b", "1/0", ""] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
}

#[test]
fn each_run_is_made_once_and_its_result_stored() {
    let (plan, _) = lasthop_scenario::parse(TEXT, "tiny", &[]).expect("a scenario");
    let runs: Vec<_> = plan.runs().collect();
    let (made, stored) = (AtomicU64::new(0), AtomicU64::new(0));
    let keep = |_: &lasthop_scenario::Run, _: &lasthop_sim::runs::RunResult| {
        stored.fetch_add(1, Ordering::Relaxed);
        Ok::<(), lasthop_batch::Error>(())
    };
    let make = |scenario: &lasthop_scenario::Scenario, run: &lasthop_scenario::Run| {
        made.fetch_add(1, Ordering::Relaxed);
        if run.seed == 3 {
            let (message, help) = ("no room".to_owned(), String::new());
            return Err(lasthop_batch::Error::Input { message, help });
        }
        Ok(lasthop_sim::runs::measure(scenario, run.seed))
    };
    let work = Work::new(1);
    let results = lasthop_batch::measure(&plan, &runs[..2], &work, &keep, &make).expect("results");
    assert!(results.iter().all(Option::is_some));
    assert_eq!((made.load(Ordering::Relaxed), stored.load(Ordering::Relaxed)), (2, 2));
    // A run that cannot be written ends the work, and is not stored.
    assert!(lasthop_batch::measure(&plan, &runs, &work, &keep, &make).is_err());
    assert_eq!((made.load(Ordering::Relaxed), stored.load(Ordering::Relaxed)), (5, 4));
}
