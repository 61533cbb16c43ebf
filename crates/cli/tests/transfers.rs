//! `lasthop send` and `lasthop discard` over loopback.
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

fn lasthop(state: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).env("NO_COLOR", "1").env("XDG_STATE_HOME", state.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A receiver on a port that it selects, with its address.
fn receiver(state: &TempDir, arguments: &[&str]) -> (Child, BufReader<ChildStderr>, String) {
    let all = [&["discard", "--listen", "127.0.0.1:0"], arguments].concat();
    let mut child = lasthop(state, &all).spawn().expect("the program starts");
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    errors.read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("listening on ").expect("an address").to_owned();
    (child, errors, address)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ended(child: Child) -> Output {
    child.wait_with_output().expect("it ends")
}

#[test]
fn both_ends_agree() {
    let state = tempfile::tempdir().expect("a directory");
    let (child, _errors, to) = receiver(&state, &["--verify", "--json", "--count", "2"]);
    let trace = state.path().join("tcb.csv");
    let debug = ["--debug", trace.to_str().expect("a path")];
    let arguments = [&["send", &to, "--bytes", "300KB", "--json"], &debug[..]].concat();
    let send = || {
        let output = lasthop(&state, &arguments).output().expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    let sent = [send(), send()];
    let received = ended(child);
    assert!(received.status.success());
    let lines: Vec<serde_json::Value> = text(&received.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert_eq!(line["bytes"], 300_000);
        assert_eq!(line["sha256"], sent[0]["transfers"][0]["sha256"]);
        assert!(line["wrong"].is_null() && line["end"]["how"] == "closed", "{line}");
    }
    let rows = fs::read_to_string(&trace).expect("a trace");
    assert!(rows.starts_with("time_s,flow,kind,snd_una"), "{rows}");
    assert_eq!(rows.matches(",closed,").count(), 1);
}

#[test]
fn a_wrong_byte_is_reported() {
    let state = tempfile::tempdir().expect("a directory");
    let (child, _errors, to) = receiver(&state, &["--once", "--verify"]);
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.write_all(b"not the pattern").expect("written");
    drop(stream);
    let output = ended(child);
    assert_eq!(output.status.code(), Some(1), "a wrong byte is a no");
    assert!(text(&output.stdout).contains("WRONG at byte 0: 0x6e"), "{}", text(&output.stdout));
}

#[test]
fn errors_include_a_remedy() {
    let state = tempfile::tempdir().expect("a directory");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let taken = listener.local_addr().expect("an address").to_string();
    for (arguments, message) in [
        (&["send"][..], "not provided: <HOST[:PORT]>"),
        (&["send", "nosuch.invalid"], "spelled right"),
        (&["send", "127.0.0.1", "--congestion", "carrier"], "available: "),
        (&["send", "127.0.0.1", "--mss", "1"], "--mss 512"),
        (&["send", "127.0.0.1", "--bytes", "2mbit"], "`2MB`"),
        (&["discard", "--listen", &taken], "is in use"),
        (&["discard", "--listen", "192.0.2.1:0"], "ip address"),
        (&["discard", "--listen", "nowhere"], "10.0.1.1:9009"),
    ] {
        let output = lasthop(&state, arguments).output().expect("the program starts");
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(message), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    drop(listener);
    let output = lasthop(&state, &["send", &taken]).output().expect("the program starts");
    let errors = text(&output.stderr);
    assert!(errors.contains("refused") && errors.contains("lasthop discard"), "{errors}");
}

#[test]
fn ctrl_c_prints_incomplete_transfers_at_both_ends() {
    let state = tempfile::tempdir().expect("a directory");
    let (mut receiving, mut errors, to) = receiver(&state, &[]);
    let sender = lasthop(&state, &["send", &to, "--bytes", "1000GB"]).spawn().expect("it starts");
    // The receiver prints nothing before the end, so wait until the sender is connected.
    let port = format!(
        ":{:04X}",
        to.rsplit(':').next().and_then(|p| p.parse::<u16>().ok()).expect("a port")
    );
    let established = || {
        fs::read_to_string("/proc/net/tcp").expect("connections").lines().any(|line| {
            let mut words = line.split_whitespace().skip(2);
            words.next().is_some_and(|peer| peer.ends_with(&port)) && words.next() == Some("01")
        })
    };
    while !established() {
        std::thread::yield_now();
    }
    let interrupt = |child: &Child| {
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("a signal");
    };
    interrupt(&sender);
    let output = ended(sender);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("stopped"), "{}", text(&output.stdout));
    // It has noticed the sender's abort before it is interrupted itself.
    let mut seen = BufReader::new(receiving.stdout.take().expect("a pipe"));
    let mut line = String::new();
    seen.read_line(&mut line).expect("a line");
    assert!(line.starts_with("1  127.0.0.1:"), "{line}");
    interrupt(&receiving);
    let output = ended(receiving);
    assert_eq!(output.status.code(), Some(130));
    let mut rest = String::new();
    errors.read_to_string(&mut rest).expect("text");
    assert!(rest.contains("1 transfer,") && rest.contains("1 of them incomplete"), "{rest}");
}
