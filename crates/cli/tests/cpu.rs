//! `lasthop testbed cpu`, as root and without. Times are not tested.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::support::{NOBODY, User, World, each, text_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Numbers of this world's measuring processes.
fn measuring(world: &World) -> Vec<i32> {
    let own = world.program().display().to_string();
    let is_ours = |number: &i32| {
        let read = |file| fs::read(format!("/proc/{number}/{file}")).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).into_owned();
        line.contains("measure-cpu") && line.contains(&own)
    };
    numbers().filter(is_ours).collect()
}

fn numbers() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").expect("read").filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The kernel's receiving threads of a measurement, with their CPU time in nanoseconds.
fn threads(of: i32) -> Vec<(String, u64)> {
    let name = format!("napi/w{of}");
    let read = |number, file| fs::read_to_string(format!("/proc/{number}/{file}"));
    let thread = |number: i32| {
        let comm = read(number, "comm").ok()?;
        let text = read(number, "schedstat").ok()?;
        comm.starts_with(&name).then_some(())?;
        Some((comm.trim().to_owned(), text.split(' ').next()?.parse().ok()?))
    };
    numbers().filter_map(thread).collect()
}

#[expect(clippy::disallowed_methods, reason = "a test waits for what another process does")]
fn wait_for(condition: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{condition}");
}

fn array<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("{key} in {value}"))
}

#[test]
fn every_case_has_its_medians() {
    each("cpu", |world| {
        let output =
            world.json(&["testbed", "cpu", "--mss", "500,1460,500", "-n", "6", "--bytes", "100KB"]);
        assert_eq!((output["bytes"].as_u64(), output["rounds"].as_u64()), (Some(100_000), Some(6)));
        assert_eq!(
            output["kernel_threads_pinned"],
            world.user == User::Root && crate::support::is_root()
        );
        let (results, samples) = (array(&output, "results"), array(&output, "samples"));
        assert_eq!((results.len(), samples.len()), (2 * 14, 6 * 2 * 14));
        assert!(samples.iter().all(|sample| sample["bytes"] == 100_000));
        for row in results {
            let apart = matches!(row["wire"].as_str(), Some("plain" | "offloads"));
            for key in ["sender", "receiver", "sender_ratio", "receiver_ratio"] {
                assert_eq!(row[key].is_null(), !apart, "{key} in {row}");
            }
            for key in ["both", "both_ratio"] {
                let median = row[key]["median"].as_f64().expect("a number");
                let interval = array(&row[key], "interval");
                let ends = [&interval[0], &interval[1]].map(|end| end.as_f64().expect("a number"));
                assert!(0.0 < ends[0] && ends[0] <= median && median <= ends[1], "{row}");
            }
            if row["change"] == "base" {
                assert_eq!(row["both_ratio"]["median"], 1.0, "{row}");
            }
        }
        let text = world.good(&["testbed", "cpu", "--mss", "1460", "-n", "1", "--bytes", "50KB"]);
        for words in
            ["offloads on", "quick ACKs", "intervals need 6 complete rounds", "14 transfers"]
        {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert_eq!(measuring(world), [0; 0]);
    });
}

#[test]
fn ctrl_c_prints_finished_samples_and_leaves_no_process() {
    each("cpu-stop", |world| {
        let arguments =
            ["testbed", "cpu", "--mss", "1460", "-n", "10000", "--bytes", "4MB", "--json"];
        let child = world
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut inner = Vec::new();
        wait_for("nothing measures", || {
            inner = measuring(world);
            !inner.is_empty()
        });
        // The trials take a tenth of that, so some transfers are done then.
        wait_for("the kernel's threads do nothing", || {
            threads(inner[0]).iter().map(|(_, ns)| ns).sum::<u64>() > 150_000_000
        });
        let names = threads(inner[0]);
        assert_eq!(names.len(), 4, "{names:?}");
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("a signal");
        let output = child.wait_with_output().expect("ended");
        let (out, err) = text_of(&output);
        assert_eq!(output.status.code(), Some(130), "{out}{err}");
        let answer: Value = serde_json::from_str(&out).expect("JSON");
        let count = array(&answer, "samples").len();
        assert!((1..140_000).contains(&count), "{count}");
        assert_eq!(measuring(world), [0; 0]);
        // The kernel removes namespaces with a delay.
        wait_for("the kernel's threads are left", || threads(inner[0]).is_empty());
    });
}

#[test]
fn a_missing_testbed_is_reported_with_the_reason() {
    let world = World::new("cpu-forbidden", User::Unprivileged);
    let run = |arguments: &str| {
        let script = format!(
            "echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_net_namespaces \
             && exec {} {arguments}",
            world.program().display()
        );
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--user", "sh", "-c", &script]).current_dir("/");
        command.env("NO_COLOR", "1");
        if world.drops() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().expect("started")
    };
    let output = run("testbed cpu");
    let (out, err) = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    assert!(err.contains("sysctl user.max_user_namespaces is 0"), "{err}");

    // A claim that cannot run does not count as failed.
    let output = run("reproduce A-LIVE --json");
    let (out, err) = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(answer["claims"][0]["verdict"], "not-run");
    let reason = answer["claims"][0]["reason"].as_str().expect("text");
    assert!(reason.starts_with("not measured here: "), "{reason}");
    assert!(reason.contains("sysctl user.max_user_namespaces is 0"), "{reason}");
}

#[test]
fn invalid_measurement_options_are_refused() {
    let world = World::new("cpu-refused", User::Unprivileged);
    for (arguments, words) in [
        (["--bytes", "0"], "a transfer of no bytes"),
        (["--mss", "40"], "from 88 to 8960"),
        (["--mss", "500,9000"], "from 88 to 8960"),
        (["--repetitions", "0"], "from 1 to 10000"),
    ] {
        let message = world.refused(&[&["testbed", "cpu"][..], &arguments].concat());
        assert!(message.contains(words), "{message}");
    }
}
