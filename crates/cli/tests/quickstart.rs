//! The quick start of an ordinary user: a built-in scenario on real packets. It leaves nothing behind,
//! however it ends.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{NOBODY, User, World, text_of};

const RUN: [&str; 6] = ["run", "west97-lan", "--world", "testbed", "--set", "transfer.bytes=300kB"];

/// An ordinary user with a directory for results.
fn ordinary(test: &str) -> (World, PathBuf) {
    let world = World::new(test, User::Unprivileged);
    let home = world.base.join("home");
    fs::create_dir(&home).expect("a directory");
    if world.drops() {
        chown(&home, Some(NOBODY), Some(NOBODY)).expect("chown to nobody");
    }
    let out = home.join("out");
    (world, out)
}

/// Processes of this test's program, with their arguments.
fn processes(world: &World) -> Vec<String> {
    let program = world.program().display().to_string();
    let entries = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(&program)).map(|line| line.replace('\0', " ")).collect()
}

/// All files below `dir`, including hidden ones.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

fn halves(out: &Path) -> Vec<PathBuf> {
    files(out).into_iter().filter(|file| file.display().to_string().contains(".tmp")).collect()
}

#[expect(clippy::disallowed_methods, reason = "waits for programs")]
fn nap() {
    thread::sleep(Duration::from_millis(10));
}

/// Waits for a condition that must become true.
fn until(condition: &str, mut there: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if there() {
            return;
        }
        nap();
    }
    panic!("{condition} has not come within five minutes");
}

fn assert_nothing_left(world: &World) {
    assert_eq!(processes(world), [""; 0]);
    let known = files(&world.runtime());
    assert!(known.iter().all(|file| file.ends_with(".lock")), "{known:?}");
    // Names of namespaces exist only in the mount namespaces of their testbeds, and end with the processes
    // inside.
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.contains("lasthop-hosts"), "{mounts}");
    for name in ["station", "fixed", "mobile"] {
        assert!(!Path::new("/run/netns").join(name).exists(), "{name}");
        assert!(!Path::new("/sys/class/net").join(name).exists(), "{name}");
    }
    assert_eq!(world.good(&["testbed", "clean"]), "nothing is left of earlier testbeds\n");
}

/// Processes of testbeds: each cell of a sweep has one, and between two cells there is none.
fn testbeds(world: &World) -> usize {
    processes(world).iter().filter(|line| line.contains("testbed-run")).count()
}

/// Starts a sweep that stores its results. Returns when it has a result and the testbed of another run.
fn start_sweep_in_progress(world: &World, out: &Path) -> Child {
    let arguments = [&RUN[..], &["--seeds", "2", "-o", out.to_str().expect("text")]].concat();
    let mut child = world
        .command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    until("the midst of a sweep", || {
        assert!(child.try_wait().expect("its state").is_none(), "it ended before its time");
        finished_runs(out).len() >= 2 && !halves(out).is_empty() && testbeds(world) > 0
    });
    child
}

/// Lines of finished runs.
fn finished_runs(out: &Path) -> Vec<String> {
    let text = fs::read_to_string(out.join("runs.jsonl")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_scenario_runs_and_leaves_nothing() {
    let (world, _) = ordinary("quick");
    let table = world.good(&[&RUN[..], &["--seeds", "1"]].concat());
    for agent in ["none", "snoop", "snoop+ackp"] {
        assert!(table.contains(agent), "{table}");
    }
    assert_eq!(table.matches("1 of 1").count(), 3, "{table}");
    // The limiting factors of the kernel's senders are no fault.
    let mut notes = table.lines().filter(|line| line.starts_with("note:"));
    assert!(notes.all(|note| note.contains(" limited senders ")), "{table}");
    assert_nothing_left(&world);
}

#[test]
fn an_interrupted_sweep_resumes_without_repeating_runs() {
    let (world, out) = ordinary("interrupted");
    let child = start_sweep_in_progress(&world, &out);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it is there");
    let output = child.wait_with_output().expect("ended");
    let (table, err) = text_of(&output);
    assert_eq!(output.status.code(), Some(130), "{table}{err}");
    assert!(err.contains("the same command continues from there"), "{err}");
    assert!(halves(&out).is_empty(), "{:?}", halves(&out));
    assert_nothing_left(&world);

    let before = finished_runs(&out);
    assert!((2..6).contains(&before.len()), "{before:?}");
    world.good(&[&RUN[..], &["--seeds", "2", "-o", out.to_str().expect("text")]].concat());
    let after = finished_runs(&out);
    assert_eq!(after[..before.len()], before, "stored runs are not made again");
    assert_eq!(after.len(), 6);
    assert!(out.join("report.html").exists());
    assert_nothing_left(&world);
}

#[test]
fn a_killed_sweep_ends_its_testbed() {
    let (world, out) = ordinary("killed-run");
    let mut child = start_sweep_in_progress(&world, &out);
    child.kill().expect("it is there");
    child.wait().expect("ended");
    // The testbed's process notices only the end of its input.
    until("the end of the testbed", || processes(&world).is_empty());
    assert!(halves(&out).is_empty(), "{:?}", halves(&out));
    assert_nothing_left(&world);
}
