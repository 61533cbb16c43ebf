//! Stored results of `run`, of `sweep` (`stores.rs`), and of `explore` (`exploration.rs`).

mod exploration;
mod stores;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A short transfer with errors: two cells of three runs.
const TINY: &str = "\
name = \"tiny\"
runs = 3
transfer = { from = \"fixed\", to = \"mobile\", bytes = \"50KB\" }
[host.fixed]
preset = \"rfc\"
[host.mobile]
preset = \"rfc\"
recv-buffer = \"16KiB\"
[[path]]
link = { rate = \"10mbit\", delay = \"1ms\" }
[[path]]
agent = \"none\"
[[path]]
radio = { rate = \"2mbit\", delay = \"1ms\" }
errors = { model = \"exponential\", mean = \"16KiB\" }
[vary]
agent = [\"none\", \"snoop\"]
";

struct Workdir(tempfile::TempDir);

impl Workdir {
    fn new() -> Workdir {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::write(dir.path().join("tiny.toml"), TINY).expect("written");
        Workdir(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
        command.args(arguments).current_dir(self.0.path()).env("NO_COLOR", "1");
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    fn good(&self, arguments: &[&str]) -> Output {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        output
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

/// Lines of finished runs.
fn stored_lines(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("runs.jsonl")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn store_lines(dir: &Path, lines: &[String]) {
    fs::write(dir.join("runs.jsonl"), lines.join("\n") + "\n").expect("written");
}

fn no_temporary_files(dir: &Path) {
    for file in files(dir) {
        assert_ne!(file.extension().and_then(|e| e.to_str()), Some("tmp"), "{}", file.display());
    }
}

#[test]
fn a_table_has_a_row_for_each_cell() {
    let text = text(&Workdir::new().good(&["run", "tiny.toml"]));
    for word in ["Mbit/s", "wireless goodput", "none", "snoop", "3 of 3"] {
        assert!(text.contains(word), "{word} is missing in\n{text}");
    }
}

#[test]
fn incomplete_runs_are_reported_with_exit_code_1() {
    let workdir = Workdir::new();
    let output = workdir.run(&["run", "tiny.toml", "--set", "horizon=100ms"]);
    let text = text(&output);
    assert!(text.contains("0 of 3") && text.contains("did not complete"), "{text}");
    assert_eq!(output.status.code(), Some(1), "nothing was brought across");
    // A transfer without end never completes, which is no failure.
    workdir.good(&[
        "run",
        "tiny.toml",
        "--set",
        "horizon=100ms",
        "--set",
        "transfer.bytes=unlimited",
    ]);
}

#[test]
fn json_does_not_depend_on_the_number_of_threads() {
    let workdir = Workdir::new();
    let one = workdir.good(&["run", "tiny.toml", "--json", "--jobs", "1"]);
    let two = workdir.good(&["run", "tiny.toml", "--json", "--jobs", "2"]);
    assert_eq!(one.stdout, two.stdout);
    let value = json(&one.stdout);
    assert_eq!(value["name"], "tiny");
    assert_eq!(value["axes"][0]["labels"], serde_json::json!(["none", "snoop"]));
    assert_eq!(value["cells"][1]["labels"][0], "snoop");
    assert_eq!(value["cells"][1]["runs"].as_array().map(Vec::len), Some(3));
    let throughput = &value["cells"][0]["summary"]["throughput"];
    assert_eq!((throughput["n"].as_u64(), &throughput["unit"]), (Some(3), &"B/s".into()));
    assert!(throughput["mean"].as_f64() > Some(0.0) && throughput["ci95"].is_f64());
}

#[test]
fn a_directory_of_results_is_complete_and_continues() {
    let workdir = Workdir::new();
    workdir.good(&["run", "tiny.toml", "-o", "out"]);
    let out = workdir.path("out");
    let printed = workdir.good(&["run", "tiny.toml", "--json"]).stdout;
    let stored = fs::read(out.join("results.json")).expect("results");
    assert_eq!(stored, printed, "results.json is what --json prints");
    assert!(fs::read_to_string(out.join("scenario.toml")).expect("scenario").ends_with(TINY));
    for cell in ["agent=none", "agent=snoop"] {
        for file in ["events.csv", "tcb.csv", "sequence-1.svg", "sequence-1.csv", "drops.pcapng"] {
            let path = out.join("trace").join(cell).join(file);
            assert!(path.is_file(), "{}", path.display());
        }
    }
    let captures = files(&out.join("trace/agent=none"));
    let captures = captures.iter().filter(|f| f.extension().is_some_and(|e| e == "pcapng"));
    assert_eq!(captures.count(), 3, "the link, the radio and the drops");
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("<svg") && !page.contains("http-equiv=\"refresh\""));
    no_temporary_files(&out);

    // A marker in a stored run shows whether it was read; a damaged and a missing run are repeated.
    let runs = stored_lines(&out);
    assert_eq!(runs.len(), 6);
    let mut marked = json(runs[0].as_bytes());
    marked["run"]["hops"] = 987_654_321.into();
    let mut spoilt = vec![marked.to_string(), runs[1][..40].to_owned()];
    spoilt.extend_from_slice(&runs[3..]);
    store_lines(&out, &spoilt);
    workdir.good(&["run", "tiny.toml", "-o", "out"]);
    let again = fs::read_to_string(out.join("results.json")).expect("results");
    assert!(again.contains("987654321"), "a stored run is read");
    let now = stored_lines(&out);
    assert_eq!((&now[..5], now.len()), (&spoilt[..], 7), "two are made again");
    store_lines(&out, &now[1..]);
    // As after a kill in the middle of a line.
    let whole = fs::read(out.join("runs.jsonl")).expect("lines");
    fs::write(out.join("runs.jsonl"), &whole[..whole.len() - 9]).expect("written");
    workdir.good(&["run", "tiny.toml", "-o", "out"]);
    assert_eq!(fs::read(out.join("results.json")).expect("results"), stored);
    let before = stored_lines(&out);
    workdir.good(&["run", "tiny.toml", "-o", "out"]);
    assert_eq!(stored_lines(&out), before, "all are there");
}

#[test]
fn runs_are_one_table() {
    let workdir = Workdir::new();
    workdir.good(&["run", "tiny.toml", "-o", "out", "--details", "none"]);
    let results = json(&fs::read(workdir.path("out/results.json")).expect("results"));
    let table = fs::read_to_string(workdir.path("out/runs.csv")).expect("a table");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 7);
    let column = |name: &str| rows[0].iter().position(|column| *column == name).expect("a column");
    for (i, row) in rows[1..].iter().enumerate() {
        let run = &results["cells"][i / 3]["runs"][i % 3];
        assert_eq!(row[column("agent")], ["none", "snoop"][i / 3]);
        let throughput = &run["metrics"]["aggregate_throughput"];
        assert_eq!(row[column("throughput")].parse().ok(), throughput.as_f64());
    }
    assert!(fs::read(workdir.path("out/runs.parquet")).expect("a table").starts_with(b"PAR1"));
    assert!(!workdir.path("out/trace").exists());
}

#[test]
fn the_trace_option_selects_the_traced_runs() {
    let workdir = Workdir::new();
    let traced = |which: &str| {
        let shown = text(&workdir.good(&["run", "tiny.toml", "-o", "out", "--details", which]));
        assert!(shown.contains("MB; see --details"), "{shown}");
        let folders = fs::read_dir(workdir.path("out/trace")).expect("traces");
        folders.count()
    };
    assert_eq!((traced("first"), traced("all")), (2, 6));
    assert!(workdir.path("out/trace/agent=snoop_seed-3/events.csv").is_file());
}

/// A second answer in the same directory leaves no files of the first, and none of the user's is touched.
#[test]
fn a_second_answer_replaces_the_files_of_the_first() {
    let workdir = Workdir::new();
    workdir.good(&["run", "tiny.toml", "-o", "out"]);
    fs::create_dir(workdir.path("out/trace/mine")).expect("a folder");
    fs::write(workdir.path("out/notes.txt"), "mine").expect("written");
    workdir.good(&["run", "tiny.toml", "--set", "mss=536", "-o", "small"]);
    let other = TINY.split("[vary]").next().expect("text");
    fs::write(workdir.path("other.toml"), other).expect("written");
    let made = ["overlay.html", "sweep.svg"].map(|name| workdir.path("out").join(name));
    workdir.good(&["report", "out", "small"]);
    workdir.good(&["plot", "sweep", "out"]);
    workdir.good(&["run", "tiny.toml", "-o", "out"]);
    assert!(made.iter().all(|file| file.is_file()), "they are of the same results");
    workdir.good(&["run", "other.toml", "-o", "out"]);
    assert!(!made.iter().any(|file| file.exists()));
    let names = |path: &str| {
        let names = fs::read_dir(workdir.path(path))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    assert_eq!(names("out/trace"), ["mine", "run"]);
    assert!(workdir.path("out/notes.txt").is_file());

    let captures = files(&workdir.path("out/trace/run")).into_iter();
    let captures: Vec<String> = captures
        .filter(|file| {
            file.extension().is_some_and(|e| e == "pcapng") && !file.ends_with("drops.pcapng")
        })
        .map(|file| file.to_str().expect("text").to_owned())
        .collect();
    workdir.good(&["analyze", &captures[0], &captures[1], "-o", "seen"]);
    assert!(workdir.path("seen/capture-1-connections.csv").is_file());
    workdir.good(&["analyze", &captures[0], "-o", "seen"]);
    let left = names("seen");
    assert!(left.iter().all(|name| !name.starts_with("capture-")), "{left:?}");
    assert!(left.contains(&"connections.csv".to_owned()), "{left:?}");
}

#[test]
fn the_page_is_rebuilt_from_files() {
    let workdir = Workdir::new();
    workdir.good(&["run", "tiny.toml", "-o", "out"]);
    let page = workdir.path("out/report.html");
    let first = fs::read(&page).expect("a page");
    fs::remove_file(&page).expect("removed");
    fs::remove_file(workdir.path("out/runs.jsonl")).expect("removed");
    workdir.good(&["report", "out"]);
    assert_eq!(fs::read(&page).expect("a page"), first);
}

/// Errors after a reference to a file, and in the file, have the positions of the text that the user wrote.
#[test]
fn errors_of_scenarios_with_files_name_file_and_line() {
    let workdir = Workdir::new();
    let scenario = "name = \"v\"\ntransfer = { from = \"a\", to = \"b\", bytes = \"1MB\" }\n\
        visits = { file = \"walks/walk.txt\" }\n[host.a]\n[host.b]\n[[path]]\n\
        link = { rate = \"10mbit\", rates-left = \"up.csv\" }\n[[cell]]\nname = \"west\"\n[[cell.path]]\n\
        radio = { rate = \"2mbit\", delay = \"1ms\" }\n";
    let scenario =
        scenario.replace("rate = \"10mbit\", rates-left", "rate-right = \"9mbit\", rates-left");
    fs::create_dir_all(workdir.path("conf/walks")).expect("a directory");
    let refused = |scenario: &str, walk: &str, rates: &str, set: &[&str]| {
        fs::write(workdir.path("conf/span.toml"), scenario).expect("written");
        fs::write(workdir.path("conf/walks/walk.txt"), walk).expect("written");
        fs::write(workdir.path("conf/up.csv"), rates).expect("written");
        let output = workdir.run(&[&["run", "conf/span.toml"], set].concat());
        assert_eq!(output.status.code(), Some(2), "{scenario}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!text.contains("[files") && !text.contains("table ="), "{text}");
        text
    };
    let (walk, rates) = ("0s west\n", "0s,1mbit\n1s,2mbit\n");
    let wrong = scenario.replace("delay = \"1ms\"", "delay = \"1xs\"");
    let found = refused(&wrong, walk, rates, &[]);
    assert!(found.contains("[conf/span.toml:11:"), "{found}");
    let found = refused(&scenario, "0s west\n\n9s wset\n", rates, &[]);
    assert!(found.contains("[conf/walks/walk.txt:3:1]") && found.contains("9s wset"), "{found}");
    let found = refused(&scenario, walk, "0s,1mbit\n1s,fast\n", &[]);
    assert!(found.contains("[conf/up.csv:2:1]") && found.contains("1s,fast"), "{found}");
    // A file of an argument belongs to the current directory.
    fs::write(workdir.path("other.txt"), "west\n").expect("written");
    let found = refused(&scenario, walk, rates, &["--set", "visits.file=other.txt"]);
    assert!(found.contains("[other.txt:1:1]"), "{found}");
}

#[test]
fn the_numbers_of_a_plot_are_those_of_its_series() {
    let workdir = Workdir::new();
    workdir.good(&["run", "tiny.toml", "-n", "1", "-o", "out"]);
    let folder = workdir.path("out/trace/agent=none");
    let csv = fs::read_to_string(folder.join("sequence-1.csv")).expect("numbers");
    let series = json(&fs::read(folder.join("sequence-1.json")).expect("a series"));
    let rows = |name: &str| csv.lines().filter(|line| line.split(',').nth(1) == Some(name)).count();
    let sent = |kind: &str| {
        let all = series["sent"].as_array().expect("a list").iter();
        all.filter(|sent| sent["kind"] == kind).count()
    };
    let list = |name: &str| series[name].as_array().expect("a list").len();
    assert_eq!(
        (rows("sent"), rows("fast"), rows("timeout")),
        (sent("first"), sent("fast"), sent("timeout"))
    );
    assert_eq!((rows("lost"), rows("ack")), (list("lost"), list("acked")));
    assert!(rows("sent") > 0 && rows("lost") > 0);
}

#[test]
fn results_of_two_directories_are_overlaid() {
    let workdir = Workdir::new();
    workdir.good(&["run", "tiny.toml", "-o", "one"]);
    workdir.good(&["run", "tiny.toml", "--set", "mss=536", "-o", "two"]);
    workdir.good(&["run", "tiny.toml", "--vary", "agent=snoop", "-o", "snoop"]);
    workdir.good(&["run", "tiny.toml", "--vary", "tcp=reno,sack", "-o", "senders"]);
    let page = |dirs: &[&str], name: &str| {
        let command = [&["report"][..], dirs, &["-o", name]].concat();
        workdir.good(&command);
        fs::read_to_string(workdir.path(name)).expect("a page")
    };
    let both = page(&["one", "two"], "both.html");
    for words in [">agent=none, one<", ">agent=snoop, two<", "--set mss=536", "acknowledged (KiB)"]
    {
        assert!(both.contains(words), "{words}");
    }
    // One row of the table per combination and directory.
    let cell = |name: &str| both.matches(&format!(">{name}</td>")).count();
    assert_eq!((cell("one"), cell("two")), (2, 2));
    let common = page(&["one", "snoop"], "common.html");
    assert!(common.contains(">snoop<") && !common.contains("agent=none, one"));
    workdir.good(&["report", "one", "two"]);
    assert!(workdir.path("one/overlay.html").is_file());
    for (dirs, why) in
        [(["one", "senders"], "varies agent, and senders varies"), (["one", "one"], "given twice")]
    {
        let output = workdir.run(&["report", dirs[0], dirs[1]]);
        assert_eq!(output.status.code(), Some(2));
        let errors = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        let errors = errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(errors.contains(why), "{errors}");
    }
}

#[test]
fn wrong_directories_are_refused() {
    let workdir = Workdir::new();
    fs::create_dir(workdir.path("empty")).expect("made");
    for arguments in [
        &["run", "tiny.toml", "-o", "tiny.toml"][..],
        &["report", "nowhere"],
        &["report", "empty"],
        &["report", "tiny.toml"],
        &["report", "empty", "nowhere"],
        &["analyze", "tiny.toml"],
    ] {
        let output = workdir.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_demonstration_prints_a_plot() {
    let text = text(&Workdir::new().good(&["run"]));
    let braille = |c: char| ('\u{2801}'..='\u{28ff}').contains(&c);
    assert!(text.chars().any(braille), "{text}");
    assert!(text.contains("lasthop run west97-lan -o out"));
    // In a pipe the table has its full width; all other text fits a terminal.
    let wide = |line: &&str| line.chars().count() > 84;
    assert!(text.lines().filter(wide).all(|line| line.contains(" of ") || line.contains("Mbit/s")));
}

#[test]
fn simulated_captures_can_be_analysed() {
    let workdir = Workdir::new();
    workdir.good(&["run", "tiny.toml", "-o", "out"]);
    let captures = files(&workdir.path("out/trace/agent=none"));
    let captures: Vec<&str> = captures
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "pcapng") && !f.ends_with("drops.pcapng"))
        .filter_map(|f| f.to_str())
        .collect();
    let output = workdir.good(&["analyze", captures[0], "-o", "seen"]);
    assert!(text(&output).contains("verdict"), "{}", text(&output));
    for file in ["analysis.json", "report.html", "connection-0-to-server.svg"] {
        assert!(workdir.path("seen").join(file).is_file(), "{file}");
    }
    let value = json(&workdir.good(&["analyze", captures[0], "--json"]).stdout);
    let direction = &value["captures"][0]["connections"][0]["to_server"];
    assert_eq!(direction["unique_bytes"], 50_000);
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_continues() {
    let workdir = Workdir::new();
    let long = ["run", "tiny.toml", "--seeds", "200000", "--jobs", "1", "-o", "out"];
    let mut child = workdir
        .command(&long)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let out = workdir.path("out");
    while stored_lines(&out).len() < 5 {
        assert!(child.try_wait().expect("its state").is_none(), "it ended before its time");
        std::thread::yield_now();
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains("the same command continues"), "{errors}");
    assert!(text(&output).contains("not run"), "cells without a run say so");
    no_temporary_files(&workdir.path("out"));
    assert!(!workdir.path("out/results.json").exists());

    // The results of the first seeds are stored, so a shorter sweep of the same scenario reads them.
    let before = stored_lines(&out);
    workdir.good(&["run", "tiny.toml", "-o", "out"]);
    let after = stored_lines(&out);
    assert_eq!(after[..before.len()], before, "no stored run is lost");
    let mut keys: Vec<String> =
        after.iter().map(|line| json(line.as_bytes())["key"].to_string()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), after.len(), "stored runs are not written again");
    let results = json(&fs::read(workdir.path("out/results.json")).expect("results"));
    let fresh = json(&workdir.good(&["run", "tiny.toml", "--json"]).stdout);
    assert_eq!(results, fresh);
}

/// Sends Ctrl-C to one process.
#[cfg(unix)]
fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// No known scenario causes this, so the stored result of a run is modified.
#[test]
fn a_stuck_run_has_its_own_exit_code() {
    let workdir = Workdir::new();
    let arguments = ["run", "tiny.toml", "-o", "out"];
    workdir.good(&arguments);
    let mut lines = stored_lines(&workdir.path("out"));
    let mut line = json(lines[0].as_bytes());
    line["run"]["stuck"] = "stage 5 (mobile) at 2.5s".into();
    lines[0] = line.to_string();
    store_lines(&workdir.path("out"), &lines);
    let run = &line["run"];
    let output = workdir.run(&arguments);
    assert_eq!(output.status.code(), Some(70));
    let (out, errors) = (text(&output), String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(
        out.contains("time stood still at stage 5 (mobile) at 2.5s: a fault of lasthop"),
        "{out}"
    );
    let agent = if errors.contains("snoop") { "snoop" } else { "none" };
    let line = format!(
        "scenario tiny (agent={agent}), seed {}, stage 5 (mobile) at 2.5s, lasthop {}",
        run["seed"],
        env!("CARGO_PKG_VERSION")
    );
    assert!(errors.contains(&line), "{errors}");
}
