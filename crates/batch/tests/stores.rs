//! Stores: after crashes, damage, full disks or foreign results, the table is the same or the error is reported.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_batch::merge::{MergeSummary, merge};
use lasthop_batch::store::{Directory, MARK, Store};
use lasthop_batch::sweep::{Batches, Shard, SweepSummary, sweep};
use lasthop_batch::{Provenance, Work, run, tables};
use lasthop_scenario::{Argument, Grid, parse};

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

/// A store in memory, similar to a bucket.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl Store for Memory {
    fn title(&self) -> String {
        "memory".to_owned()
    }
    fn has(&self, name: &str) -> io::Result<bool> {
        Ok(self.0.lock().expect("a lock").contains_key(name))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().expect("a lock").keys().cloned().collect())
    }
    fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().expect("a lock").get(name).cloned())
    }
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let mut all = self.0.lock().expect("a lock");
        if all.contains_key(name) {
            return Ok(false);
        }
        all.insert(name.to_owned(), bytes.to_vec());
        Ok(true)
    }
}

fn arguments() -> Vec<Argument> {
    vec![Argument::Vary("link.delay=1ms,2ms,3ms".to_owned())]
}

fn made(
    store: &dyn Store,
    shard: &str,
    work: &Work<'_>,
) -> Result<SweepSummary, lasthop_batch::Error> {
    let (grid, _) = Grid::parse(TEXT, "tiny", &arguments(), None).expect("a grid");
    let provenance = Provenance::of_grid(&grid, TEXT, &arguments(), None);
    let batches = Batches::new(&grid, provenance)?;
    assert!(batches.count() > 3, "several batches: {}", batches.count());
    sweep(&batches, store, shard.parse().expect("a shard"), work)
}

fn whole(store: &dyn Store) -> MergeSummary {
    made(store, "1/1", &Work::new(2)).expect("made");
    merge(&[store], None, false).expect("merged")
}

fn names(store: &dyn Store) -> Vec<String> {
    let names = store.list().expect("names");
    names.into_iter().filter(|name| name.ends_with(".parquet")).collect()
}

#[test]
fn a_sweep_has_the_rows_of_a_run() {
    let store = Memory::default();
    let merged = whole(&store);
    assert_eq!((merged.rows, merged.of), (54, 54));
    let dir = tempfile::tempdir().expect("a directory");
    merge(&[&store], Some(dir.path()), true).expect("merged");
    let (plan, _) = parse(TEXT, "tiny", &arguments()).expect("a plan");
    let results = run(&plan, "", &Work::new(1)).expect("results");
    let (grid, _) = Grid::parse(TEXT, "tiny", &arguments(), None).expect("a grid");
    let table =
        tables::runs(&plan, &results, &Provenance::of_grid(&grid, TEXT, &arguments(), None))
            .expect("a table");
    lasthop_batch::files::write(&dir.path().join("."), "plain", &table).expect("written");
    let numbers = tables::AxisNumbers::of(&plan.axes).apply(&table).expect("numbers");
    lasthop_batch::files::write(&dir.path().join("."), "numbers", &numbers).expect("written");
    let bytes = |name: &str| fs::read(dir.path().join(name)).expect("a file");
    assert_eq!(bytes("runs.csv"), bytes("plain.csv"));
    assert_eq!(bytes("runs.parquet"), bytes("numbers.parquet"));
}

#[test]
fn shards_in_any_order_and_stores_of_their_own_give_the_same_digest() {
    let expected = whole(&Memory::default());
    let together = Memory::default();
    for shard in ["3/3", "1/3", "2/3"] {
        let swept = made(&together, shard, &Work::new(1)).expect("made");
        assert!(swept.is_complete() && swept.found == 0 && swept.made > 0);
    }
    assert_eq!(merge(&[&together], None, false).expect("merged"), expected);
    let apart = [Memory::default(), Memory::default()];
    made(&apart[0], "1/2", &Work::new(1)).expect("made");
    made(&apart[1], "2/2", &Work::new(1)).expect("made");
    let half = merge(&[&apart[0]], None, false).expect("merged");
    assert!(half.rows < half.of && half.digest != expected.digest);
    assert_eq!(merge(&[&apart[1], &apart[0]], None, false).expect("merged"), expected);
    // Batches in both stores count once.
    made(&apart[0], "1/1", &Work::new(1)).expect("made");
    assert_eq!(merge(&[&apart[1], &apart[0]], None, false).expect("merged"), expected);
}

#[test]
fn a_stopped_sweep_resumes_without_repeating_batches() {
    let store = Memory::default();
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
    assert_eq!(merge(&[&store], None, false).expect("merged"), whole(&Memory::default()));
}

#[test]
fn concurrent_sweeps_of_one_directory_agree() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Directory::create(dir.path()).expect("a store");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| made(&store, "1/1", &Work::new(1)).expect("made"));
        }
    });
    assert_eq!(merge(&[&store], None, false).expect("merged"), whole(&Memory::default()));
    let left = fs::read_dir(dir.path()).expect("a directory").filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"))
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_file_that_a_killed_process_left_is_no_batch() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join(".abc.parquet.1-0.tmp"), "half").expect("written");
    let store = Directory::create(dir.path()).expect("a store");
    assert_eq!(whole(&store), whole(&Memory::default()));
}

#[test]
fn a_damaged_batch_is_named_and_made_again_once_removed() {
    let store = Memory::default();
    let expected = whole(&store);
    let name = names(&store)[0].clone();
    for spoil in [
        |bytes: &mut Vec<u8>| bytes.truncate(100),
        |bytes: &mut Vec<u8>| {
            let end = bytes.len();
            bytes[4..end / 4].fill(0);
        },
    ] {
        store.0.lock().expect("a lock").get_mut(&name).map(spoil);
        let error = merge(&[&store], None, false).expect_err("damaged").to_string();
        assert!(error.contains(&name) && error.contains("damaged"), "{error}");
        store.0.lock().expect("a lock").remove(&name);
        assert_eq!(whole(&store), expected);
    }
}

#[test]
fn versions_do_not_mix() {
    let store = Memory::default();
    whole(&store);
    store
        .0
        .lock()
        .expect("a lock")
        .insert(MARK.to_owned(), br#"{"lasthop":"0.0.9","results":7}"#.to_vec());
    for error in [made(&store, "1/1", &Work::new(1)).err(), merge(&[&store], None, false).err()] {
        let text = error.expect("another version").to_string();
        let ours = format!("lasthop {} (results", env!("CARGO_PKG_VERSION"));
        assert!(text.contains("lasthop 0.0.9 (results 7)") && text.contains(&ours), "{text}");
    }
    let none = merge(&[&Memory::default()], None, false).expect_err("no store").to_string();
    assert!(none.contains("is no store"), "{none}");
}

/// Results of another machine under the same name.
fn forged(store: &Memory) -> (String, Vec<u8>) {
    let name = names(store)[0].clone();
    let (grid, _) = Grid::parse(TEXT, "tiny", &arguments(), None).expect("a grid");
    let mut provenance = Provenance::of_grid(&grid, TEXT, &arguments(), None);
    provenance.text.push('#');
    let other = Memory::default();
    let batches = Batches::new(&grid, provenance).expect("batches");
    sweep(&batches, &other, Shard::ALL, &Work::new(1)).expect("made");
    let bytes = other.get(&names(&other)[1]).expect("read").expect("a batch");
    (name, bytes)
}

#[test]
fn equal_keys_with_other_results_are_an_error_when_putting_and_when_merging() {
    let store = Memory::default();
    whole(&store);
    // Rows of another batch under this name represent a machine with other results.
    let (name, bytes) = forged(&store);
    let liar = Memory::default();
    for (other, stored) in store.0.lock().expect("a lock").iter() {
        let stored = if *other == name { bytes.clone() } else { stored.clone() };
        liar.0.lock().expect("a lock").insert(other.clone(), stored);
    }
    let error = merge(&[&store, &liar], None, false).expect_err("they differ").to_string();
    assert!(error.contains("different results") && error.contains(&name), "{error}");

    /// A store in which another process has just written different content.
    struct Late<'a>(&'a Memory);
    impl Store for Late<'_> {
        fn title(&self) -> String {
            "late".to_owned()
        }
        fn has(&self, name: &str) -> io::Result<bool> {
            Ok(!name.ends_with(".parquet") && self.0.has(name)?)
        }
        fn list(&self) -> io::Result<Vec<String>> {
            Ok(Vec::new())
        }
        fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
            self.0.get(name)
        }
        fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
            self.0.put_if_absent(name, bytes)
        }
    }
    let error = made(&Late(&liar), "1/1", &Work::new(1)).expect_err("they differ").to_string();
    assert!(error.contains("different results") && error.contains(&name), "{error}");
    // Equal rows are no conflict, whichever process is first.
    made(&Late(&store), "1/1", &Work::new(1)).expect("the same");
}

#[test]
fn a_full_store_reports_an_error_and_retains_batches() {
    /// A store with room for a number of objects.
    struct Full(Memory, usize);
    impl Store for Full {
        fn title(&self) -> String {
            "full".to_owned()
        }
        fn has(&self, name: &str) -> io::Result<bool> {
            self.0.has(name)
        }
        fn list(&self) -> io::Result<Vec<String>> {
            self.0.list()
        }
        fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
            self.0.get(name)
        }
        fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
            if self.0.list()?.len() >= self.1 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.0.put_if_absent(name, bytes)
        }
    }
    let full = Full(Memory::default(), 4);
    let error = made(&full, "1/1", &Work::new(1)).expect_err("no room").to_string();
    assert!(error.contains("full"), "{error}");
    assert_eq!(names(&full.0).len(), 2, "the mark, the sweep and two batches");
    assert_eq!(whole(&full.0), whole(&Memory::default()));
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_written_to_is_named() {
    let error =
        Directory::create(Path::new("/dev/null/store")).expect_err("no directory").to_string();
    assert!(error.contains("/dev/null/store"), "{error}");
    let gone = Directory::open(Path::new("/nowhere/at/all")).expect_err("no directory").to_string();
    assert!(gone.contains("/nowhere/at/all"), "{gone}");
    let dir = tempfile::tempdir().expect("a directory");
    let store = Directory::create(&dir.path().join("store")).expect("a store");
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
