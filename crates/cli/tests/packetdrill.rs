//! `lasthop packetdrill`: verdicts, locations, exit codes and JSON.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn lasthop(dir: &Path, args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_lasthop");
    Command::new(program).args(["packetdrill"]).args(args).current_dir(dir).output().unwrap()
}

const GOOD: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                    +.1 < S 0:0(0) win 100 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n";

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("a")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("a/good.pkt", GOOD);
    write("a/bad.pkt", &GOOD.replace("ack 1 <mss 1460>", "ack 2 <mss 1460>"));
    write("none.pkt", &GOOD.replace("bind(3, ..., ...)", "splice(3, 4)"));
    write("broken.txt", "0 socket(\n");
    write("broken.pkt", "\n+0 > . 1:1(0) ack x\n");
    write("empty.pkt", "");
    std::fs::write(dir.path().join("latin1.pkt"), b"// \xe9\n").unwrap();
    dir
}

#[test]
fn a_passing_script_is_reported_as_pass() {
    let dir = folder();
    let output = lasthop(dir.path(), &["a/good.pkt"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("pass a/good.pkt\n"));
}

#[test]
fn a_failure_names_file_line_expected_and_got() {
    let dir = folder();
    let output = lasthop(dir.path(), &["a/bad.pkt"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("FAIL a/bad.pkt:5\n  expected S. 0:0(0) ack 2"), "{text}");
    assert!(text.contains("the acknowledgement is 1 instead of 2"), "{text}");
}

#[test]
fn a_folder_is_walked_and_counted() {
    let dir = folder();
    let output = lasthop(dir.path(), &[".", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verdicts: Vec<&str> = value["scripts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|script| script["self"]["verdict"].as_str().unwrap())
        .collect();
    let unsupported = ["unsupported"; 4];
    assert_eq!(verdicts, [&["fail", "pass"][..], &unsupported].concat());
    assert_eq!(value["folders"]["self"]["./a"]["pass"], 1);
    let reason = |script: usize| value["scripts"][script]["self"]["feature"].as_str().unwrap();
    assert_eq!(value["scripts"][2]["self"]["line"], 2);
    assert_eq!(reason(3), "the script is empty");
    assert!(reason(4).contains("UTF-8"), "{}", reason(4));
    assert_eq!(reason(5), "the call splice()");
}

#[test]
fn bad_input_exits_with_code_2_and_the_reason() {
    let dir = folder();
    for (args, expected) in [
        (&["broken.txt"][..], "broken.txt: line"),
        (&["broken.pkt"][..], "broken.pkt: line 2"),
        (&["empty.pkt"][..], "empty.pkt: the script is empty"),
        (&["missing.pkt"][..], "missing.pkt"),
        (&["a/good.pkt", "--against", "bsd"][..], "self, kernel, both"),
    ] {
        let output = lasthop(dir.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(expected), "{args:?}: {text}");
    }
}
