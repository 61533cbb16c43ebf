//! Output and exit codes of the program.
//!
//! Snapshots contain stdout, stderr and the exit code. After an intended change, run the tests with
//! `INSTA_UPDATE=always` and review the difference.

mod lab;
#[cfg(live)]
use std::process::{Command, Output, Stdio};

fn lasthop(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

fn shown(output: &Output) -> String {
    let text = format!(
        "exit code {}\n----- stdout\n{}\n----- stderr\n{}",
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    // If sudo would not find the program, its file is named.
    text.replace(concat!("sudo ", env!("CARGO_BIN_EXE_lasthop")), "sudo lasthop")
}

macro_rules! snapshot {
    ($($name:ident: $($argument:literal),*;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(shown(&lasthop(&[$($argument),*])));
        }
    )*};
}

snapshot! {
    help: "--help";
    help_run: "run", "--help";
    help_compare: "compare", "--help";
    help_advise: "advise", "--help";
    compare_unknown_scheme: "compare", "west97-lan", "--schemes", "snop";
    compare_nothing: "compare", "slow-return", "--schemes", "snoop";
    advise_without_rate: "advise", "--loss", "2%";
    list_schemes: "list", "schemes";
    help_energy: "energy", "--help";
    help_battery: "battery", "--help";
    battery_unknown_radio: "battery", "sigfox";
    battery_of_nothing: "battery", "--capacity", "0Wh";
    list_hardware: "list", "hardware";
    energy_of_a_sweep: "energy", "slow-return", "--seeds", "2";
    energy_unknown_hardware: "energy", "quickstart", "--hardware", "sens";
    help_reproduce: "reproduce", "--help";
    help_explain: "explain", "--help";
    help_analyze: "analyze", "--help";
    help_report: "report", "--help";
    help_list: "list", "--help";
    help_doctor: "doctor", "--help";
    help_shell: "shell", "--help";
    help_testbed: "testbed", "--help";
    help_testbed_up: "testbed", "up", "--help";
    help_testbed_exec: "testbed", "exec", "--help";
    help_station: "station", "--help";
    help_ctl: "ctl", "--help";
    station_without_file: "station", "no-such-file.toml";
    unknown_key: "run", "unknown-key.toml";
    unknown_key_json: "run", "unknown-key.toml", "--json";
    wrong_unit: "run", "wrong-unit.toml";
    negative_rate: "run", "negative-rate.toml";
    empty_path: "run", "empty-path.toml";
    two_agents: "run", "two-agents.toml";
    syntax: "run", "syntax.toml";
    missing_file: "run", "no-such-file.toml";
    missing_name: "run", "west97-lna";
    bad_set: "run", "west97-lan", "--set", "host.fixd.tcp=sack", "--dry-run";
    bad_vary: "run", "west97-lan", "--vary", "agent=none,snop", "--dry-run";
    bad_seeds: "run", "west97-lan", "--seeds", "0";
    warning: "run", "warning.toml", "--dry-run";
    plan: "run", "west97-lan", "--vary", "tcp=reno,sack", "--seeds", "5", "--dry-run";
    list_scenarios: "list", "scenarios";
    list_presets: "list", "presets";
    list_systems: "list", "systems";
    list_nothing: "list", "scenarios", "--show", "satelite";
}

fn code(arguments: &[&str]) -> Option<i32> {
    lasthop(arguments).status.code()
}

#[test]
fn exit_codes() {
    assert_eq!(code(&["list", "systems"]), Some(0));
    assert_eq!(code(&["doctor"]), Some(0));
    assert_eq!(code(&["doctor", "-o", "/proc/nowhere"]), Some(1));
    assert_eq!(code(&[]), Some(2));
    assert_eq!(code(&["frobnicate"]), Some(2));
    assert_eq!(code(&["run", "two-agents.toml"]), Some(2));
    assert_eq!(code(&["analyze", "no-such.pcap"]), Some(2));
    assert_eq!(code(&["report", "no-such-directory"]), Some(2));
}

#[test]
fn json_output_is_valid_json() {
    for arguments in [
        &["list", "systems", "--json"][..],
        &["list", "scenarios", "--json"],
        &["list", "presets", "--json"],
        &["list", "schemes", "--json"],
        &["list", "hardware", "--json"],
        &["doctor", "--json"],
        &["run", "satellite", "--dry-run", "--json"],
    ] {
        let output = lasthop(arguments);
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(!value.is_null(), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}");
    }
    let output = lasthop(&["run", "wrong-unit.toml", "--json"]);
    assert!(output.stdout.is_empty());
    let value: serde_json::Value = serde_json::from_slice(&output.stderr).expect("JSON");
    assert_eq!(value["error"]["line"], 8);
    assert_eq!(value["error"]["code"], "bad-value");
}

#[test]
fn a_scenario_may_come_from_a_pipe() {
    use std::io::Write as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .args(["run", "-", "--dry-run"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let text = include_str!("../../../scenarios/quickstart.toml");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("quickstart: 2 cells, 40 runs"));
}

#[test]
fn completions_contain_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = lasthop(&["generate", "completions", shell]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("reproduce"), "{shell}");
    }
}

/// Completions of bash for the last of `words`.
fn offered(words: &[&str]) -> Vec<String> {
    let script =
        String::from_utf8(lasthop(&["generate", "completions", "bash"]).stdout).expect("text");
    let line = ["lasthop"].iter().chain(words).map(|word| format!("'{word}'"));
    let line = line.collect::<Vec<_>>().join(" ");
    let (last, before) = (words[words.len() - 1], words.get(words.len().wrapping_sub(2)));
    let ask = format!(
        "{script}\nCOMP_WORDS=({line}); COMP_CWORD={}; _lasthop lasthop '{last}' '{}'; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.len(),
        before.unwrap_or(&"lasthop")
    );
    let output = Command::new("bash").args(["--norc", "-c", &ask]).output().expect("bash");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn completions_offer_the_scenarios() {
    assert_eq!(offered(&["run", "west97-w"]), ["west97-wan"]);
    assert_eq!(offered(&["compare", "quick"]), ["quickstart"]);
    assert!(offered(&["run", "no-such"]).iter().all(String::is_empty), "then it is a file");
    assert_eq!(offered(&["reproduce", "W-F9"]), ["W-F9"]);
    assert_eq!(offered(&["compare", "quickstart", "--baseline", "snoop-s"]), ["snoop-smart"]);
    assert_eq!(offered(&["advise", "--link", "star"]), ["starlink"]);
    assert!(offered(&["shell-"]).iter().all(String::is_empty), "an internal command");
    let zsh = lasthop(&["generate", "completions", "zsh"]);
    let zsh = String::from_utf8_lossy(&zsh.stdout);
    assert!(
        zsh.contains("_alternative \"scenarios:scenario:(") && zsh.contains("files:file:_files")
    );
}

#[test]
fn a_manual_page_has_the_lines_of_its_examples() {
    let dir = tempfile::tempdir().expect("a directory");
    let pages = dir.path().to_str().expect("UTF-8");
    assert!(lasthop(&["generate", "man", pages]).status.success());
    let page = std::fs::read_to_string(dir.path().join("lasthop-run.1")).expect("a page");
    let (_, examples) = page.split_once(".SH EXAMPLES\n.nf\n").expect("lines that are not filled");
    let (lines, text) = examples.split_once(".fi\n").expect("then text");
    assert!(lines.lines().count() > 5 && lines.contains("lasthop run west97\\-lan"), "{lines}");
    assert!(text.contains("Keys are dotted"), "{text}");
}

#[test]
fn a_report_names_a_missing_or_invalid_directory() {
    let output = lasthop(&["report", "no-such-directory"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("no-such-directory: there is no such directory"), "{text}");
    let text = lasthop(&["report", "syntax.toml"]);
    assert!(String::from_utf8_lossy(&text.stderr).contains("syntax.toml: not a directory"));
}

#[test]
fn the_demonstration_needs_no_arguments() {
    let output = lasthop(&["run", "--dry-run"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("quickstart:"));
}
