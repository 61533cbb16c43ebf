//! Wrong command lines: one message with problem and remedy, exit code 2, and the same as JSON.

mod files;
mod quantities;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const GOOD: &str = r#"
runs = 1
transfer = { from = "a", to = "b", bytes = "20kB" }
[host.a]
[host.b]
[[path]]
link = { rate = "1mbit", delay = "10ms" }
"#;

struct Workdir(tempfile::TempDir);

impl Workdir {
    fn new() -> Workdir {
        let workdir = Workdir(tempfile::tempdir().expect("a directory"));
        workdir.write("good.toml", GOOD.as_bytes());
        workdir.write("binary.bin", b"\x7fELF\x02\x01\xff\xfe");
        fs::create_dir(workdir.path().join("folder")).expect("a folder");
        workdir
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path().join(name), bytes).expect("written");
    }

    /// A scenario with these keys in place of its link's rate.
    fn link(&self, keys: &str) {
        let text = GOOD.replace(r#"rate = "1mbit", delay = "10ms""#, keys);
        self.write("link.toml", text.as_bytes());
    }

    fn run(&self, words: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_lasthop"))
            .args(words.split_whitespace())
            .current_dir(self.path())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .output()
            .expect("the program starts")
    }

    /// Checks that the message of a wrong command contains all of `wanted`, as text and as JSON.
    fn refused(&self, words: &str, wanted: &[&str]) {
        let output = self.run(words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}: {text}");
        assert!(output.stdout.is_empty(), "{words}");
        // Lines may be wrapped anywhere.
        let plain = |text: &str| {
            text.replace(['│', '×', '╭', '╰'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let shown = plain(&text);
        for part in wanted {
            assert!(shown.contains(part), "{words}: no `{part}` in\n{text}");
        }
        for ugly in ["os error", "entity not found", "found in string", "RUST_BACKTRACE"] {
            assert!(!shown.contains(ugly), "{words}: {text}");
        }
        let output = self.run(&format!("--json {words}"));
        assert_eq!(output.status.code(), Some(2), "--json {words}");
        let text = String::from_utf8_lossy(&output.stderr);
        let value: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("--json {words}: {error}: {text}"));
        assert_eq!(value["format"], "lasthop-error", "{words}");
        assert_eq!(value["format_version"], 1, "{words}");
        let error = &value["error"];
        assert!(error["code"].is_string(), "{words}: {value}");
        let of = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        assert!(!of("message").is_empty() && !of("help").is_empty(), "{words}: {value}");
        let message = plain(&format!("{} {} {}", of("message"), of("label"), of("help")));
        for part in wanted {
            assert!(message.contains(part), "--json {words}: no `{part}` in {value}");
        }
    }
}

#[test]
fn unknown_commands_are_refused_with_a_suggestion() {
    let workdir = Workdir::new();
    workdir.write("link.pcapng", b"");
    workdir.refused("rnu good.toml", &["no command `rnu`", "did you mean `lasthop run`?"]);
    workdir.refused("good.toml", &["did you mean `lasthop run good.toml`?"]);
    workdir.refused("west97-lan", &["did you mean `lasthop run west97-lan`?"]);
    workdir.refused("link.pcapng", &["did you mean `lasthop analyze link.pcapng`?"]);
    workdir.refused("west97", &["did you mean the scenario `west97-lan`"]);
    workdir.refused("run west97", &["did you mean the built-in scenario `west97-lan`?"]);
    workdir.refused("run good", &["did you mean `good.toml`?"]);
    workdir.refused("reproduce w-f10", &["did you mean `W-F10`?"]);
    workdir.refused("trace convrt x", &["'convrt'", "did you mean `convert`?"]);
    workdir.refused("frobnicate", &["`lasthop --help`"]);
    workdir.refused("", &["needs a command", "`lasthop run`", "`lasthop --version`"]);
    workdir.refused("-v", &["needs a command", "`lasthop --version`"]);
    workdir.refused("trace", &["`lasthop trace` needs a command", "show, make, convert"]);
    workdir.refused("generate man run", &["`run` is a command", "`lasthop help run`"]);
    assert!(!workdir.path().join("run").exists());
}

#[test]
fn words_of_other_programs_are_aliases() {
    let workdir = Workdir::new();
    for words in [
        "version",
        "simulate good.toml --dry-run",
        "run good.toml --dry-run --threads 2 --repetitions 3",
        "ls schemes",
        "analyse --help",
    ] {
        let output = workdir.run(words);
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    }
    workdir.refused("advise --bandwidth 2", &["'2'", "2mbit"]);
    workdir.refused("advise --rate 2mbit --latency 5", &["'5'", "5ms"]);
}

#[test]
fn wrong_options_are_refused_with_a_remedy() {
    let workdir = Workdir::new();
    workdir.refused("run good.toml --sedes 2", &["'--sedes'", "did you mean `--seeds`?"]);
    workdir.refused("run good.toml -x", &["'-x'", "`lasthop run --help`"]);
    workdir.refused("run good.toml --force", &["'--force'", "`lasthop run --help`"]);
    workdir
        .refused("--seeds 3 run good.toml", &["'--seeds'", "options of a command come after it"]);
    workdir.refused("run good.toml --dry-run=yes", &["'yes'", "'--dry-run'"]);
    workdir.refused("run good.toml other.toml", &["'other.toml'", "`lasthop run --help`"]);
    workdir.refused("run good.toml --world kernel", &["'kernel'", "sim, testbed, both"]);
    workdir
        .refused("run good.toml --details frist", &["did you mean `first`?", "none, first, all"]);
    workdir.refused("run good.toml --seeds", &["'--seeds <N>'"]);
    workdir.refused("run --color pink", &["'pink'", "auto, always, never"]);
    workdir.refused("run --quiet --verbose", &["cannot be used with"]);
}

#[test]
fn invalid_numbers_are_refused_with_a_remedy() {
    let workdir = Workdir::new();
    for seeds in ["-1", "1-5", "abc", "0", "99999999999999999999", "1.5"] {
        workdir.refused(
            &format!("run good.toml --seeds {seeds}"),
            &[
                &format!("'{seeds}'"),
                "--seeds",
                "a whole number from 1 to 1000000",
                "`--seeds 5` makes runs with the seeds 1 to 5",
            ],
        );
    }
    workdir.refused("run good.toml --jobs many", &["'many'", "not a whole number"]);
    workdir.refused("advise --rate 2mbit --mtu 1", &["'1'", "296", "9000"]);
    workdir.refused("advise --rate 2mbit --mtu -5", &["'-5'", "296"]);
    workdir.refused("advise --rate 2mbit --gain x", &["'x'", "a percentage from 0 to 1000"]);
    workdir.refused("advise --rate 20", &["20mbit"]);
    workdir.refused("advise --rate 10M", &["20mbit"]);
    workdir.refused("advise --rate 2mbit --loss 1", &["every packet would be lost", "`1%`"]);
    workdir.refused("advise --rate 2mbit --loss 101%", &["2%"]);
    workdir.refused("advise --rate 2mbit --delay -5ms", &["'-5ms'"]);
    workdir.refused("advise --rate 2mbit --queue 20packets", &["50p"]);
    workdir.refused("advise --rate 2mbit --sender Cubic", &["did you mean `cubic`?"]);
    workdir.refused("battery --reports often", &["'often'"]);
    workdir.refused("lab --port 70000", &["'70000'", "65535"]);
    workdir.refused("trace make lte --seed -1", &["'-1'", "--seed"]);
    workdir.refused("analyze x.pcap --address 10.0.0.0/8", &["'10.0.0.0/8'", "IP address"]);
}

#[test]
fn synonyms_of_keys_are_refused_with_the_right_key() {
    let workdir = Workdir::new();
    for (key, meant) in [
        ("bandwidth = \"1mbit\"", "`rate`"),
        ("bw = \"1mbit\"", "`rate`"),
        ("latency = \"5ms\"", "`delay`"),
        ("buffer = \"9p\"", "`queue`"),
        ("jitter_ms = 5", "`jitter`"),
        ("qdisc = \"codel\"", "`discipline`"),
    ] {
        workdir.link(key);
        let wanted = format!("did you mean {meant}?");
        let key = key.split(' ').next().unwrap_or_default();
        workdir.refused("run link.toml", &[&format!("no key `{key}`"), &wanted]);
        workdir.refused(&format!("run good.toml --set link.{key}=1"), &[&wanted]);
    }
    workdir.link("rtt = \"5ms\"");
    workdir.refused("run link.toml", &["did you mean `delay`?", "half of the round trip"]);
}

#[test]
fn values_with_units() {
    let workdir = Workdir::new();
    workdir.link("rate = \"0mbit\"");
    workdir.refused("run link.toml", &["link.rate", "a rate is at least `1bit`"]);
    workdir.link("rate = \"10MB/s\"");
    workdir.refused("run link.toml", &["bytes per second", "`80mbit`"]);
    for rate in ["10 Mbit/s", "10Mb/s", "10mbit"] {
        workdir.link(&format!("rate = \"{rate}\", delay = \"10ms\""));
        let output = workdir.run("run link.toml --dry-run");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("10mbit"), "{rate}: {text}");
    }
    workdir.link("netem = \"tbf rate 1mbit\"");
    workdir.refused("run link.toml", &["`tbf` is a separate stage", "tbf = { rate ="]);
    for line in [
        "limit 1000mbit",
        "limit 100k",
        "limit 0",
        "rate 1mbit -20",
        "delay 1ms 1ms distribution experimental",
        "delay 1e-3s",
    ] {
        workdir.link(&format!("netem = \"{line}\""));
        let output = workdir.run("run link.toml --dry-run");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn files_that_cannot_be_read() {
    let workdir = Workdir::new();
    for command in [
        "run",
        "compare",
        "energy",
        "analyze",
        "report",
        "station",
        "link",
        "trace show",
        "trace convert",
        "packetdrill",
    ] {
        let missing = match command {
            "run" | "compare" | "energy" => "neither a file nor a built-in scenario `nothing.x`",
            "report" => "there is no such directory",
            _ => "there is no such file",
        };
        workdir.refused(&format!("{command} nothing.x"), &["nothing.x", missing]);
        if command != "report" && command != "packetdrill" {
            workdir.refused(&format!("{command} folder"), &["folder", "this is a directory"]);
        }
    }
    for command in ["run", "station", "link", "packetdrill"] {
        workdir.refused(&format!("{command} binary.bin"), &["binary.bin", "text"]);
    }
    // The remedy is that of the command, not of scenarios.
    workdir.refused("packetdrill binary.bin", &["not a text file", "name a script"]);
    workdir.refused("station binary.bin", &["not a text file", "give a station's file"]);
    let utf16: Vec<u8> = GOOD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    workdir.write("utf16.toml", &utf16);
    workdir.refused("run utf16.toml", &["text in UTF-16", "`iconv -f UTF-16 -t UTF-8`"]);
    workdir.write("marked.toml", &[&b"\xff\xfe"[..], &utf16].concat());
    workdir.refused("run marked.toml", &["text in UTF-16"]);
    workdir.write("latin.toml", &[&b"\n# caf\xe9"[..], GOOD.as_bytes()].concat());
    workdir.refused("run latin.toml", &["latin.toml: line 2 is not in UTF-8", "iconv -f LATIN1"]);
    let head = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x01\0\0\0";
    workdir.write("capture.toml", head);
    workdir.refused("run capture.toml", &["but a capture", "`lasthop analyze capture.toml`"]);
    workdir.refused("run good.toml -o good.toml", &["good.toml: this is a file", "a directory"]);
    workdir.refused("link --keygen folder", &["folder: this is a directory", "choose a file"]);
    workdir.refused("link --keygen no/x.key", &["no/x.key: there is no directory no"]);
    workdir.refused("trace make lte -o no/x.up", &["no/x.up: there is no directory no"]);
    workdir.refused("analyze binary.bin", &["neither pcap nor pcapng"]);
    workdir.write("words.txt", b"# A page of words\n");
    workdir.refused("analyze words.txt", &["the file begins with `# A `"]);
    workdir.refused("run good.toml --set link.trace=folder", &["folder", "this is a directory"]);
    workdir.refused(
        "sweep good.toml --store s --points nothing.csv",
        &["nothing.csv", "no such file"],
    );
    workdir.refused("advise --capture nothing.pcap", &["nothing.pcap", "no such file"]);
    workdir.refused("run good.toml -o good.toml", &["good.toml"]);
}

/// Losses of a wire are not those of a radio, where agents repair them.
#[test]
fn losses_lead_to_the_radio() {
    let workdir = Workdir::new();
    workdir.refused("run quickstart --loss 1%", &["`--set KEY=VALUE`"]);
    let help = ["losses of the radio are", "packet-loss", "of a wire `link.loss=1%`"];
    workdir.refused("run quickstart --set loss=1%", &help);
    workdir.refused("run good.toml --set loss=1%", &["did you mean"]);
    workdir.refused("advise --rate 2mbit --scenario mine.toml", &["-o DIR", "scenario.toml"]);
}

/// A column without name and unit may hold rates, delays or losses.
#[test]
fn tables_without_names_need_a_unit_or_a_quantity() {
    let workdir = Workdir::new();
    workdir.write("bare.csv", b"0,42\n1,55\n2,48\n");
    let wanted = ["`42` in `column 2` has no unit", "--unit", "--quantity"];
    workdir.refused("trace convert bare.csv", &wanted);
    let converted = |words: &str| {
        let output = workdir.run(&format!("trace convert bare.csv {words}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    assert!(converted("--quantity round-trip").contains("21"));
    assert!(converted("--quantity delay").contains("42"));
    assert!(converted("--unit mbit --to csv").contains("rate"));
}

#[test]
fn tables_of_times() {
    let workdir = Workdir::new();
    let csv = |name: &str, text: &str| workdir.write(name, text.as_bytes());
    csv(
        "clock.csv",
        "2019.12.16_11.49.59,4000\n2019.12.16_11.50.00,3000\n2019.12.16_11.50.01,2000\n",
    );
    csv(
        "named.csv",
        "Timestamp,DL_bitrate\n2019.12.16_11.49.59,4000\n2019.12.16_11.50.00,3000\n2019.12.16_11.50.02,20\n",
    );
    let output = workdir.run("trace show named.csv");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    workdir.refused(
        "run good.toml --set link.rates=clock.csv",
        &["line 1", "`lasthop trace convert`"],
    );
}

#[test]
fn a_link_of_the_shell_is_checked_before_the_program_is_started() {
    let workdir = Workdir::new();
    workdir.refused(
        "shell --dealy 20ms -- true",
        &["'--dealy'", "did you mean `--delay`?", "options of your program come after `--`"],
    );
    workdir.refused("shell --uplink-queue=droptail -- true", &["`droptail`", "50p"]);
    workdir.refused(
        "shell --loss 1 -- true",
        &["`--loss 1` would lose every packet", "`--loss 1%`", "`--loss 100%`"],
    );
    workdir.refused("shell good.toml", &["did you mean `lasthop shell --scenario good.toml`?"]);
    workdir.refused("shell --rate 10M -- true", &["`--rate 10M`", "20mbit"]);
    workdir.refused("shell --delay 20 -- true", &["`--delay 20`", "20ms"]);
}

#[test]
fn colours_follow_the_color_option() {
    let workdir = Workdir::new();
    let has = |words: &str| {
        let output = workdir.run(words);
        [output.stdout, output.stderr].concat().contains(&0x1b)
    };
    assert!(
        !has("list schemes")
            && has("--color always list schemes")
            && has("list schemes --color=always")
    );
    assert!(!has("rnu") && has("--color always rnu") && !has("--color never --help"));
}

#[test]
fn notes_follow_verbose_and_quiet() {
    let workdir = Workdir::new();
    workdir.write("plain.toml", GOOD.as_bytes());
    let notes = |words: &str| {
        let output = workdir.run(words);
        assert!(output.status.success(), "{words}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(notes("run plain.toml"), "");
    let verbose = notes("run plain.toml -v -o out");
    for part in ["scenario plain.toml", "1 runs: 0 stored, 1 to simulate", "wrote out/results.json"]
    {
        assert!(verbose.contains(part), "no `{part}` in {verbose}");
    }
    fs::copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/warning.toml"),
        workdir.path().join("warning.toml"),
    )
    .expect("copied");
    assert_ne!(notes("run warning.toml --dry-run"), "");
    assert_eq!(notes("run warning.toml --dry-run -q"), "");
}

/// As with `--loss`: `tc` reads a bare 1 as 1 %.
#[test]
fn a_loss_of_one_in_a_scenario_must_say_whether_it_is_a_percentage() {
    let workdir = Workdir::new();
    for word in ["1", "1.0"] {
        let typed = format!("run good.toml --set link.frame-loss={word}");
        workdir.refused(&typed, &["would lose every packet", "`frame-loss = \"1%\"`", "100%"]);
    }
    for word in ["1%", "100%", "0.01"] {
        let typed = format!("run good.toml --dry-run --set link.frame-loss={word}");
        let output = workdir.run(&typed);
        assert!(output.status.success(), "{word}: {output:?}");
    }
}

#[test]
fn measurements_of_links() {
    let workdir = Workdir::new();
    workdir.write("other.json", br#"{"format": "lasthop-run", "format_version": 1}"#);
    workdir.refused(
        "advise --measured nothing.json",
        &["nothing.json", "no such file", "iperf3 -c HOST"],
    );
    workdir.refused("advise --measured good.toml", &["good.toml", "no JSON"]);
    workdir
        .refused("advise --measured other.json", &["no result of iperf3, flent or networkQuality"]);
    workdir.refused("advise --measured other.json --station x", &["cannot be used with"]);
}
