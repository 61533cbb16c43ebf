//! Runs every command in README.md and the book successfully, in a directory with the files that the pages
//! name. The table below lists exceptions. A test next to the definition of the arguments parses all
//! commands, including those.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::doc_commands::{DocCommand, commands, root};
use serde_json::Value;

/// Parts of commands that cannot run here, with reasons.
const NOT_RUN: &[(&str, &str)] = &[
    ("sudo ", "as root, on interfaces of a router: tests/station, tests/link"),
    ("lasthop ctl ", "needs a running station: tests/station"),
    ("--station ", "needs a running station: tests/station"),
    ("lasthop testbed", "real time, in namespaces: tests/testbed.rs, tests/cpu.rs"),
    ("--world ", "real time, in namespaces: tests/testbed.rs, tests/hops.rs, tests/stacks.rs"),
    ("lasthop shell", "real time, in namespaces, and any program: tests/shell.rs"),
    (
        "lasthop packetdrill",
        "scripts that are not there: tests/packetdrill.rs, crates/packetdrill/tests",
    ),
    ("--measured ", "reads a file of another program: crates/study/src/advise/measured.rs"),
    ("lasthop lab", "serves until it is ended: tests/lab"),
    ("lasthop explain", "minutes: tests/explain.rs runs it with fewer sets"),
    ("lasthop reproduce", "minutes without optimisation: tests/reproduce.rs, crates/papers/tests"),
    (
        "lasthop run modern-links",
        "minutes without optimisation: docs/explanation/what-helps.md has its figures",
    ),
    ("--port 443", "the captures here are of another port: tests/analyze.rs"),
];

/// Page whose commands another test runs: `the_six_links_have_the_places_of_their_page`.
const SIX_LINKS: &str = "docs/explanation/advice-links.md";

/// Reduces the number of seeds: to one, or two where runs are compared in pairs; the packets of `explore`; and the bytes of `advise`.
fn scaled(command: &str) -> String {
    let starts =
        |words: &[&str]| words.iter().any(|w| command.starts_with(&format!("lasthop {w} ")));
    let most = if starts(&["run", "sweep"]) { 1 } else { 2 };
    let (few, advise) = (starts(&["run", "compare", "advise", "energy"]), starts(&["advise"]));
    let scaled = at_most(command, "--seeds ", most, few);
    let mut scaled = at_most(&scaled, "--first ", 4, starts(&["explore"]));
    for (option, unless) in [(" --quick", "--quick"), (" --bytes 300kB", "--duration ")] {
        if advise && !command.contains(unless) && !command.contains("--bytes ") {
            scaled += option;
        }
    }
    scaled
}

/// The command with at most `most` for an option with a number, which is added if it is missing and `needed`.
fn at_most(command: &str, option: &str, most: u32, needed: bool) -> String {
    match command.split_once(option) {
        Some((before, after)) => {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = after.split_at(digits);
            let number = number.parse().map_or(most, |number: u32| number.min(most));
            format!("{before}{option}{number}{rest}")
        }
        None if needed => format!("{command} {option}{most}"),
        None => command.to_owned(),
    }
}

/// Whether the command may answer that nothing would help. Two seeds seldom show an improvement.
fn may_say_no(command: &str) -> bool {
    command.starts_with("lasthop advise") || command.starts_with("lasthop energy")
}

fn lasthop(dir: &Path, command: &str) -> Result<(), String> {
    let program = Path::new(env!("CARGO_BIN_EXE_lasthop"));
    let place = program.parent().expect("it lies in a directory").display();
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .env("PATH", format!("{place}:/usr/bin:/bin"))
        .stdin(Stdio::null())
        .output()
        .expect("a shell starts");
    let code = output.status.code().unwrap_or(-1);
    if code == 0 || (code == 1 && may_say_no(command) && output.stderr.is_empty()) {
        return Ok(());
    }
    Err(format!("exit code {code}\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// The scenario in README.md, which pages call `my.toml`.
fn my_toml() -> String {
    let readme = fs::read_to_string(root().join("README.md")).expect("it can be read");
    let (_, rest) = readme.split_once("```toml\n").expect("it shows a scenario");
    rest.split("```").next().expect("the block ends").to_owned()
}

/// Prepares a directory with the files that pages name: a scenario, captures, measurements, and results of a
/// run.
fn prepare(dir: &Path) {
    fs::create_dir(dir).expect("a directory");
    fs::write(dir.join("my.toml"), my_toml()).expect("written");
    let table = "Timestamp,DL_bitrate,UL_bitrate\n2026.05.04_10.00.00,8000,900\n2026.05.04_10.00.01,7000,800\n2026.05.04_10.00.02,9000,700\n";
    fs::write(dir.join("drive-test.csv"), table).expect("written");
    fs::write(dir.join("bw.csv"), "time (s),rate (bit)\n0,32000000\n1,16000000\n2,again\n")
        .expect("written");
    fs::write(dir.join("cooked.txt"), "0 800\n1 700\n2 900\n").expect("written");
    // FILE on a page means any scenario with one point.
    let varied = my_toml();
    let point = varied.split("[vary]").next().expect("a part before it");
    fs::write(dir.join("FILE"), point).expect("written");
    // Captures have several connections, on both sides of the base station.
    let run = "lasthop run quickstart --seeds 1 --set transfer.count=4 --set agent=none -o DIR";
    lasthop(dir, run).expect("the demonstration runs");
    for (capture, made) in [
        ("slow.pcap", "link"),
        ("trace.pcap", "link"),
        ("file.pcap", "link"),
        ("left.pcap", "link"),
        ("right.pcap", "radio"),
    ] {
        let made = dir.join(format!("DIR/trace/run/{made}.pcapng"));
        fs::copy(made, dir.join(capture)).expect("copied");
    }
    ring(&fs::read(dir.join("slow.pcap")).expect("read"), dir);
}

/// Divides a pcapng file into the three files of a ring buffer.
fn ring(mut capture: &[u8], dir: &Path) {
    let mut blocks = Vec::new();
    while let Some(len) = capture.get(4..8) {
        let len = u32::from_le_bytes(len.try_into().expect("four bytes"));
        let (block, rest) = capture.split_at(len as usize);
        blocks.push(block);
        capture = rest;
    }
    let packets = blocks.iter().position(|block| block[0] == 6).expect("an enhanced packet block");
    let (head, packets) = blocks.split_at(packets);
    for (i, part) in packets.chunks(packets.len().div_ceil(3)).enumerate() {
        let file = [head, part].concat().concat();
        fs::write(dir.join(format!("ring_{:05}.pcap", i + 1)), file).expect("written");
    }
}

#[test]
fn every_command_of_the_documentation_runs() {
    let mut pages: BTreeMap<String, Vec<DocCommand>> = BTreeMap::new();
    let (out, run): (Vec<_>, Vec<_>) = commands()
        .into_iter()
        .filter(|example| example.page != SIX_LINKS)
        .partition(|example| NOT_RUN.iter().any(|(part, _)| example.command.contains(part)));
    for (part, why) in NOT_RUN {
        assert!(out.iter().any(|s| s.command.contains(part)), "no page has `{part}` ({why})");
    }
    assert!(run.len() > 50, "only {} commands were found", run.len());
    for example in run {
        pages.entry(example.page.clone()).or_default().push(example);
    }
    let mut failed = String::new();
    // A command without files has the same effect on each page, so it runs once.
    let has_file = |command: &str| command.contains(['.', '>']) || command.contains(" -o ");
    let mut done = BTreeSet::new();
    let all = tempfile::tempdir().expect("a temporary directory");
    prepare(&all.path().join("files"));
    for (i, examples) in pages.values().enumerate() {
        let dir = all.path().join(i.to_string());
        let copied = Command::new("cp").arg("-r").arg(all.path().join("files")).arg(&dir).status();
        assert!(copied.is_ok_and(|status| status.success()), "the files are copied");
        for DocCommand { page, line, command } in examples {
            if !has_file(command) && !done.insert(command) {
                continue;
            }
            if let Err(error) = lasthop(&dir, &scaled(command)) {
                failed += &format!("{page}:{line}: {command}\n{error}\n");
            }
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

/// Means over the runs of each point of a scenario: KB/s, timeouts and fast retransmits.
fn means_of(scenario: &str, arguments: &[&str]) -> Vec<[f64; 3]> {
    let mut run = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    let output = run.args(["run", scenario, "--json"]).args(arguments).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let of = |cell: &Value| {
        let runs = cell["runs"].as_array().expect("runs");
        let mean = |key: &str| {
            let flow = |run: &Value| run["metrics"]["flows"][0][key].as_f64().expect("a number");
            runs.iter().map(flow).sum::<f64>() / runs.len() as f64
        };
        [mean("throughput") / 1024.0, mean("timeouts"), mean("fast_retransmits")]
    };
    value["cells"].as_array().expect("cells").iter().map(of).collect()
}

fn means(arguments: &[&str]) -> Vec<[f64; 3]> {
    means_of("quickstart", arguments)
}

#[test]
fn snoop_harms_in_the_scenario_of_the_readme_and_snoop_smart_does_not() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("my.toml");
    fs::write(&file, my_toml()).expect("written");
    let agents = means_of(file.to_str().expect("UTF-8"), &[]);
    let [none, snoop, smart] = [0, 1, 2].map(|agent| agents[agent][0]);
    assert!(snoop < 0.9 * none && smart > 1.1 * none, "{none} {snoop} {smart} KB/s");
    // The answer names the cause from counts, for that cell only.
    let run = Command::new(env!("CARGO_BIN_EXE_lasthop")).arg("run").arg(&file).output();
    let text = String::from_utf8(run.expect("it runs").stdout).expect("text");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let [before, after] = text.split("agent=snoop: ").collect::<Vec<_>>()[..] else {
        panic!("{text}")
    };
    let (snoop, smart) = after.split_once("agent=snoop-smart: ").expect("a paragraph for each");
    assert!(!before.contains("Slower") && !smart.contains("Slower"), "{text}");
    let (_, why) = snoop.split_once("Slower than without it: ").expect("a reason");
    let number = |before: &str| {
        let word = why.split_once(before).and_then(|(text, _)| text.split(' ').next_back());
        let digits: String = word.expect("a number").chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().expect("a number")
    };
    let (lost, queue) = (number(" more packets lost"), number(" of them in a full queue"));
    assert!(2 * queue > lost && why.contains("hid the drops of the queue"), "{why}");
    // The cause is the queue: without radio errors snoop harms as well.
    let queue = means_of(file.to_str().expect("UTF-8"), &["--set", "errors.mean=100GiB"]);
    assert!(queue[1][0] < 0.9 * queue[0][0], "{queue:?}");
}

/// Results for docs/tutorial/lecture.md, by the number of the exercise.
#[test]
fn the_answers_of_the_lecture_are_those_of_the_program() {
    let [kb, timeouts, fast] = [0, 1, 2].map(|metric| move |mean: &[f64; 3]| mean[metric]);
    let alone = ["--set", "agent=none"];
    let with = |more: &[&str]| means(&[&alone[..], more].concat());
    let one = [with(&["--set", "errors=none"])[0], with(&[])[0]].map(|mean| kb(&mean));
    assert!((232.0..235.0).contains(&one[0]) && (110.0..122.0).contains(&one[1]), "1: {one:?}");

    let three = with(&["--vary", "host.server.rto-min=1s,500ms,200ms"]);
    assert!(three.windows(2).all(|pair| kb(&pair[0]) < kb(&pair[1])), "3: {three:?}");
    assert!(three.iter().all(|mean| (6.5..8.0).contains(&timeouts(mean))), "3: {three:?}");

    let four = with(&["--vary", "host.laptop.recv-buffer=4KiB,8KiB,16KiB,32KiB"]);
    assert!(fast(&four[0]) == 0.0 && timeouts(&four[0]) > 25.0, "4: {four:?}");
    assert!(kb(&four[3]) < 1.15 * kb(&four[2]), "4: {four:?}");

    let senders = ["--vary", "tcp=tahoe,reno,newreno,sack"];
    let five = with(&senders);
    let [tahoe, reno, newreno, sack] = [0, 1, 2, 3].map(|at| timeouts(&five[at]));
    assert!(reno > tahoe && reno > newreno && sack < tahoe.min(newreno), "5: {five:?}");

    let bursts = "errors={ model = \"packet-bursts\", packets = 3, mean = \"64KiB\" }";
    let six = with(&[&senders[..], &["--set", bursts]].concat());
    assert!(six.iter().all(|mean| kb(mean) >= kb(&six[1])), "6: {six:?}");
    assert!((0.4..0.7).contains(&(kb(&six[1]) / kb(&six[0]))), "6: {six:?}");

    let seven = with(&["--vary", "tcp=reno,right-edge,rack,cubic,bbr"]);
    assert!(seven[2..].iter().all(|mean| timeouts(mean) < 1.0), "7: {seven:?}");
    assert!((0.4..0.7).contains(&(timeouts(&seven[1]) / timeouts(&seven[0]))), "7: {seven:?}");

    let ten = means(&["--vary", "tcp=reno,sack,cubic,bbr"]);
    let gains = [0, 1, 2, 3].map(|at| kb(&ten[at + 4]) / kb(&ten[at]));
    assert!((1.7..2.1).contains(&gains[0]) && (1.2..1.5).contains(&gains[1]), "10: {gains:?}");
    assert!(gains[2..].iter().all(|gain| (1.0..1.1).contains(gain)), "10: {gains:?}");

    let wider =
        ["radio.rate=20mbit", "link.rate=100mbit", "link.delay=20ms", "transfer.bytes=20MB"];
    let hosts = ["host.*.preset=linux", "host.laptop.recv-buffer=6MiB"];
    let sets = wider.iter().chain(&hosts).flat_map(|set| ["--set", *set]);
    let mut eleven = vec!["--vary", "tcp=reno,cubic,bbr", "--seeds", "10"];
    eleven.extend(sets);
    let found: Vec<f64> = means(&eleven).iter().map(|mean| (kb(mean) / 10.0).round()).collect();
    // Without agent and with snoop, rounded to tens like the page.
    assert_eq!(found, [18.0, 21.0, 218.0, 111.0, 166.0, 148.0], "11");
    eleven.extend(["--set", "host.server.send-buffer=65535B"]);
    let found: Vec<f64> = means(&eleven).iter().map(|mean| (kb(mean) / 10.0).round()).collect();
    assert_eq!(found, [18.0, 21.0, 91.0, 131.0, 131.0, 128.0], "11 with a small buffer");

    let twelve = means(&["--set", "agent=snoop", "--vary", "flow-packets=1,2,4,8,16"]);
    assert!(timeouts(&twelve[4]) == 0.0 && fast(&twelve[4]) == 0.0, "12: {twelve:?}");
    assert!(twelve.windows(2).all(|pair| kb(&pair[0]) < kb(&pair[1])), "12: {twelve:?}");

    let thirteen = means(&["--vary", "radio.delay=1ms,50ms,150ms"]);
    let gains = [0, 1, 2].map(|at| kb(&thirteen[at + 3]) / kb(&thirteen[at]));
    assert!(gains.iter().all(|gain| (1.6..2.4).contains(gain)), "13: {gains:?}");

    let fourteen = means(&["--set", "errors=none", "--set", "radio.queue=6p"]);
    assert!(kb(&fourteen[1]) < 0.97 * kb(&fourteen[0]), "14: {fourteen:?}");
}

/// The two cells of docs/explanation/advice-links.md for a command: the best scheme, and the scheme with the
/// shortest queue.
fn places(command: &str) -> [String; 2] {
    let arguments = command.split_whitespace().skip(1);
    let mut run = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    let output = run.args(arguments).arg("--json").output().expect("it runs");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let advice = &value["advice"];
    let number = |value: &Value| value.as_f64().expect("a number");
    let first = advice["helps"][0].as_str().map(|name| {
        let rows = advice["comparison"]["points"][0]["schemes"].as_array().expect("schemes");
        let row = rows.iter().find(|row| row["name"] == name).expect("it is one of them");
        format!("`{name}`, {:.2} times", number(&row["ratio"]["mean"]))
    });
    let waiting = &advice["waiting"];
    let ms = |value: &Value| (number(value) * 1e3).round();
    let shortest = &waiting["shorter"][0];
    let queue = shortest["name"].as_str().map(|name| {
        format!("`{name}`, {} in place of {} ms", ms(&shortest["delay"]), ms(&waiting["delay"]))
    });
    [first.unwrap_or("nothing".to_owned()), queue.unwrap_or("–".to_owned())]
}

#[test]
fn the_six_links_have_the_places_of_their_page() {
    let text = fs::read_to_string(root().join(SIX_LINKS)).expect("it can be read");
    let rows: Vec<[String; 2]> = text
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .map_while(|line| line.strip_prefix("| "))
        .map(|line| line.trim_end_matches(" |").split(" | ").collect::<Vec<&str>>())
        .map(|cells| [cells[1].to_owned(), cells[2].to_owned()])
        .collect();
    let examples = commands().into_iter().filter(|example| example.page == SIX_LINKS);
    let advise_commands: Vec<String> = examples
        .map(|example| example.command)
        .filter(|command| command.starts_with("lasthop advise"))
        .collect();
    assert_eq!((rows.len(), advise_commands.len()), (6, 6), "{rows:?} {advise_commands:?}");
    // Each takes several seconds of a processor, so that only `make figures` checks all.
    let all = std::env::var_os("LASTHOP_WRITE_FIGURES").is_some();
    for (i, (command, row)) in advise_commands.iter().zip(&rows).enumerate() {
        if all || i == 3 {
            assert_eq!(places(command), *row, "{command}");
        }
    }
}
