//! Making, reading and running traces.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::can_run::can_run;

struct Workdir(tempfile::TempDir);

impl Workdir {
    fn new() -> Workdir {
        Workdir(tempfile::tempdir().expect("a temporary directory"))
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
        command.args(arguments).current_dir(self.0.path()).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).output().expect("the program starts")
    }

    fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn bad(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.0.path().join(name), content).expect("written");
    }
}

/// A path of one link with additional keys.
fn scenario(link: &str) -> String {
    format!(
        "horizon = \"20s\"\ntransfer = {{ from = \"a\", to = \"b\", bytes = \"unlimited\" }}\n\
         [host.a]\npreset = \"linux\"\nside = \"left\"\n[host.b]\npreset = \"linux\"\n\
         [[path]]\nlink = {{ {link}, delay = \"10ms\", queue = \"100p\" }}\n"
    )
}

#[test]
fn a_trace_is_made_shown_converted_and_run_over() {
    let workdir = Workdir::new();
    workdir.good(&[
        "trace",
        "make",
        "constant",
        "--rate",
        "6mbit",
        "--duration",
        "10s",
        "-o",
        "up",
    ]);
    let text = workdir.good(&["trace", "show", "up"]);
    assert!(
        text.starts_with("up: 4987 lines in 10s\n") && text.contains("longest outage  3ms"),
        "{text}"
    );
    let shown: Value =
        serde_json::from_str(&workdir.good(&["trace", "show", "up", "--json", "--svg", "up.svg"]))
            .expect("JSON");
    assert_eq!(shown["opportunities"], 4987);
    assert!(
        fs::read_to_string(workdir.0.path().join("up.svg")).expect("a picture").starts_with("<svg")
    );
    workdir.good(&["trace", "convert", "up", "-o", "rates.csv"]);

    // The same capacity from the trace and from the rates, and TCP's share of it.
    workdir.write("by-trace.toml", scenario("trace = \"up\""));
    workdir.write("by-rates.toml", scenario("rates = \"rates.csv\""));
    let throughput = |arguments: &[&str]| {
        let found: Value = serde_json::from_str(&workdir.good(arguments)).expect("JSON");
        found["cells"][0]["runs"][0]["metrics"]["flows"][0]["throughput"]
            .as_f64()
            .unwrap_or_else(|| panic!("{found:#}"))
    };
    let by_trace = throughput(&["run", "by-trace.toml", "--json"]);
    let by_rates = throughput(&["run", "by-rates.toml", "--json"]);
    // Bytes per second: at most 1448 of 1504 bytes at 6 Mbit/s.
    assert!((0.9..=1.0).contains(&(by_trace / (750_000.0 * 1448.0 / 1504.0))), "{by_trace}");
    assert!((by_trace / by_rates - 1.0).abs() < 0.05, "{by_trace} {by_rates}");
    // From arguments, whose paths are relative to the current directory.
    let varied = workdir.good(&["run", "quickstart", "--vary", "link.trace=up", "--dry-run"]);
    assert!(varied.contains("varies"), "{varied}");
}

#[test]
fn hostile_files_are_refused_with_line_and_remedy() {
    let workdir = Workdir::new();
    workdir.write("my.toml", scenario("trace = \"up\""));
    for (content, message) in [
        (&b""[..], "up: it is empty"),
        (b"5\n-4\n", "up: line 2: `-4` is no time"),
        (b"5\n4\n", "up: line 2: 4 comes after 5; times never fall, sort the lines"),
        (b"5\n\n6\n", "up: line 2 is empty"),
        (b"5\n\xff\xfe\n", "up: line 2 is not text in UTF-8"),
    ] {
        workdir.write("up", content);
        let error = workdir.bad(&["run", "my.toml"]);
        // The message may be wrapped.
        let words = error.replace(['│', '×'], " ");
        let error: Vec<&str> = words.split_whitespace().collect();
        assert!(error.join(" ").contains(message), "{error:?}");
        workdir.bad(&["trace", "show", "up"]);
    }
    // A file of zeros without space on the disk.
    let huge = fs::File::create(workdir.0.path().join("up")).expect("created");
    huge.set_len((128 << 20) + 1).expect("it grows");
    let error = workdir.bad(&["run", "my.toml"]);
    assert!(error.contains("larger than 128 MiB"), "{error}");
    fs::remove_file(workdir.0.path().join("up")).expect("removed");
    let error = workdir.bad(&["run", "my.toml"]);
    assert!(error.contains("up") && error.contains("help"), "{error}");
    assert!(
        workdir
            .bad(&["trace", "make", "constant", "--rate", "100gbit"])
            .contains("more than 100000000 lines")
    );
}

/// Published tables become links, and their interpretation is reported.
#[test]
fn measured_tables_and_results_become_links() {
    let workdir = Workdir::new();
    let mut drive = "Timestamp,Speed,NetworkMode,RSRP,DL_bitrate,UL_bitrate\n".to_owned();
    for i in 0..60 {
        let rate = if i == 30 { "-".to_owned() } else { (6000 + 100 * (i % 7)).to_string() };
        // Two rows per second.
        drive += &format!("2024.03.04_10.20.{:02},12,LTE,-90,{rate},500\n", i / 2);
    }
    workdir.write("drive.csv", &drive);
    let text = workdir.good(&["trace", "convert", "drive.csv", "-o", "down"]);
    for expected in
        ["`DL_bitrate` in kbit/s", "back: `UL_bitrate`", "30 rows share", "1 rows without"]
    {
        assert!(text.contains(expected), "`{expected}` is not in {text}");
    }
    let shown: Value =
        serde_json::from_str(&workdir.good(&["trace", "show", "drive.csv", "--json"]))
            .expect("JSON");
    assert!((shown["mean_bps"].as_f64().expect("a mean") / 6.3e6 - 1.0).abs() < 0.01, "{shown}");
    assert!(shown["understood"].as_array().is_some_and(|lines| lines.len() > 3), "{shown}");
    workdir.good(&[
        "trace",
        "convert",
        "drive.csv",
        "--direction",
        "up",
        "--to",
        "csv",
        "-o",
        "up.csv",
    ]);
    workdir.write("my.toml", scenario("rates-right = \"up.csv\", trace-left = \"down\""));
    let plan = workdir.good(&["run", "my.toml", "--dry-run"]);
    assert!(plan.contains("varies"), "{plan}");
    let error = workdir.bad(&["trace", "show", "drive.csv", "--column", "SNR"]);
    assert!(error.contains("drive.csv") && error.contains("SNR"), "{error}");
    workdir.write("drive.csv", drive.replace("6300", "fast"));
    let error = workdir.bad(&["trace", "show", "drive.csv"]);
    assert!(error.contains("line 5") && error.contains("fast"), "{error}");
    let both = r#"{"start":{"tcp_mss_default":1448,"test_start":{"bidir":1}},"intervals":[
        {"sum":{"start":0,"end":5,"bits_per_second":5e6},
         "sum_bidir_reverse":{"start":0,"end":5,"bits_per_second":9e6}}]}"#;
    workdir.write("both.json", both);
    assert!(workdir.bad(&["trace", "show", "both.json"]).contains("--direction"));
    let text = workdir.good(&["trace", "show", "both.json", "--direction", "down", "--json"]);
    let shown: Value = serde_json::from_str(&text).expect("JSON");
    let mean = shown["mean_bps"].as_f64().expect("a mean");
    assert!((mean / (9e6 * 1500.0 / 1448.0) - 1.0).abs() < 0.01, "{mean}");
}

/// The scripts of the manual make tables of JSON, and compute the energy of compression.
#[test]
fn scripts_of_the_manual_read_json() {
    let docs = |page: &str| format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let runs = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !can_run(runs("python3", "-ctomllib=__import__('tomllib')"), "Python 3.11")
        || !can_run(runs("jq", "--version"), "jq")
    {
        return;
    }
    let workdir = Workdir::new();
    let table = |name: &str, content: &str| {
        workdir.write(name, content);
        let mut python = Command::new("python3");
        python.args([&docs("reference/json-traces.py"), name]).current_dir(workdir.0.path());
        let output = python.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        workdir.write("table.csv", &output.stdout);
        workdir.good(&["trace", "convert", "table.csv", "--to", "csv"])
    };
    let rates = table(
        "bw.json",
        r#"{"RepeatedBwPatternConfig": {"count": 0, "pattern": [
            {"StaticBwConfig": {"bw": "32Mbps", "duration": "1s"}},
            {"RepeatedBwPatternConfig": {"count": 2, "pattern": [
                {"TraceBwConfig": {"pattern": [["100ms", ["16Mbps", "0bps"]]]}}]}},
            {"StaticBwConfig": {"bw": {"gbps": 1, "bps": 200000000}, "duration": {"secs": 0, "nanos": 500000000}}}]}}"#,
    );
    let expected = "time (s),rate (bit)\n0,32000000\n1,16000000\n1.1,0\n1.2,16000000\n1.3,0\n1.4,1200000000\n1.9,again\n";
    assert_eq!(rates, expected);
    let losses = table(
        "loss.toml",
        "[RepeatedLossPatternConfig]\n[[RepeatedLossPatternConfig.pattern]]\n\
         [RepeatedLossPatternConfig.pattern.StaticLossConfig]\nloss = [0.1]\nduration = \"1s 500ms\"\n",
    );
    assert_eq!(losses, "time (s),loss\n0,0.1\n1.5,again\n");
    let alphartc = table(
        "webrtc.json",
        r#"{"downlink":{},"uplink":{"trace_pattern":[{"duration":60000,"capacity":300,"loss":0,"rtt":50},
            {"duration":30000,"capacity":500,"loss":0.01,"rtt":80}]}}"#,
    );
    assert!(alphartc.contains("60,500000,40,0.01\n90,again"), "{alphartc}");
    let irtt = table(
        "irtt.json",
        r#"{"round_trips":[{"timestamps":{"client":{"send":{"wall":1000000000}}},"delay":{"rtt":20000000}},
            {"timestamps":{"client":{"send":{"wall":1200000000}}},"delay":{}},
            {"timestamps":{"client":{"send":{"wall":1400000000}}},"delay":{"rtt":40000000}}]}"#,
    );
    assert!(irtt.contains("0,10\n0.4,20\n"), "{irtt}");

    // Compression to half of the bytes, without processor time: half of the energy is saved.
    let run = workdir.good(&["run", "energy-today", "--seeds", "1", "--json"]);
    workdir.write("run.json", run);
    let mut jq = Command::new("jq");
    jq.args(["--argjson", "ratio", "0.5", "--argjson", "c", "0", "--argjson", "P", "0", "-f"]);
    let output =
        jq.arg(docs("explanation/compress.jq")).arg("run.json").current_dir(workdir.0.path());
    let saved = String::from_utf8(output.output().expect("it starts").stdout).expect("UTF-8");
    let saved: f64 = saved.trim().parse().expect("a number");
    assert!((saved - 0.5).abs() < 1e-9, "{saved}");
}
