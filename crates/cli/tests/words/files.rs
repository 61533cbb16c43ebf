//! Files of another kind or encoding, files that do not exist, and outputs that are full.

use std::fs;
use std::process::Command;

use super::Workdir;

#[test]
fn missing_files_have_a_suggestion() {
    let workdir = Workdir::new();
    workdir.refused("run godo.toml", &["did you mean `good.toml`?"]);
    workdir.refused("run good.TOML", &["did you mean `good.toml`?"]);
    workdir.write("slow.pcap", b"");
    workdir.refused("analyze slwo.pcap", &["no such file", "did you mean `slow.pcap`?"]);
    workdir.refused("analyze folder/slow.pcap", &["no such file"]);
    let output = workdir.run("plot sequence good.toml");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("did you mean"));
    workdir.refused("run scenarios/quickstart", &["built-in scenario `quickstart`"]);
    workdir.refused("run https://example.org/x.toml", &["`curl -LO https://example.org/x.toml`"]);
    workdir.refused("analyze http://example.org/x.pcap", &["`curl -LO http://example.org/x.pcap`"]);
}

#[test]
fn files_in_another_language_or_encoding() {
    let workdir = Workdir::new();
    workdir.write("x.json", b"{\"runs\": 1}\n");
    workdir.refused("run x.json", &["it begins as JSON", "write it in TOML"]);
    workdir.write("page.toml", b"<!DOCTYPE html>\n<title>x</title>\n");
    workdir.refused("run page.toml", &["web page", "download the file itself"]);
    workdir.write("wide.toml", b"\xff\xfe\0\0r\0\0\0u\0\0\0");
    workdir.refused("run wide.toml", &["UTF-32", "`iconv -f UTF-32 -t UTF-8`"]);
    workdir.write("packed.toml", b"\x1f\x8b\x08\0\0\0\0\0\xff\xfe");
    workdir.refused("run packed.toml", &["compressed", "`gunzip packed.toml`"]);
    workdir.refused("analyze good.toml", &["neither pcap nor pcapng", "`lasthop run good.toml`"]);
    workdir.refused("trace show good.toml", &["`lasthop run good.toml`"]);
    workdir.refused("sweep good.toml --store s --points good.toml", &["no key of this scenario"]);
    let output = workdir.run("sweep good.toml --store s --points good.toml");
    assert!(String::from_utf8_lossy(&output.stderr).contains("[good.toml:2:1]"));
    workdir.write("empty.pkt", b"\n");
    workdir.refused("packetdrill empty.pkt", &["the script is empty"]);
}

#[cfg(live)]
#[test]
fn files_of_another_command() {
    let workdir = Workdir::new();
    workdir.refused("station good.toml", &["keys of a scenario", "`lasthop run FILE`"]);
    workdir.refused("link good.toml", &["keys of a scenario"]);
    let station = "left = \"eth0\"\nright = \"wlan0\"\n[[path]]\nagent = \"snoop\"\n";
    workdir.write("base.toml", station.as_bytes());
    workdir.refused("run base.toml", &["a station's file", "`lasthop station FILE`"]);
}

#[test]
fn errors_of_toml_have_a_remedy() {
    let workdir = Workdir::new();
    let good = fs::read_to_string(workdir.path().join("good.toml")).unwrap();
    for (old, new, remedy) in [
        ("runs = 1", "runs = 1;", "semicolon"),
        ("runs = 1", "runs = 01", "leading zero"),
        ("runs = 1", "// one\nruns = 1", "begins with `#`"),
        ("runs = 1", "runs =", "write a value"),
        ("runs = 1", "runs\u{a0}= 1", "U+00A0"),
        ("[host.a]", "[host.a]\nsack = True", "write `true`"),
        ("[host.a]", "[host.a]\nsack = yes", "write `true`"),
        ("[host.a]", "[host.a]\nsack = null", "leave the key out"),
        ("[host.a]", "[host.a", "`[host.a]`"),
        ("\"10ms\" }", "\"10ms\"", "brace `}` is missing"),
        ("[[path]]", "[[path]]\nagent = \"none\"\n[path]", "`[[path]]`"),
    ] {
        workdir.write("bad.toml", good.replace(old, new).as_bytes());
        workdir.refused("run bad.toml", &["this is not TOML", remedy]);
    }
}

/// Names of files need not be UTF-8. Commands that report them as JSON do not panic, and answer with valid JSON.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf_8() {
    use std::os::unix::ffi::OsStrExt as _;
    let workdir = Workdir::new();
    let odd = std::ffi::OsStr::from_bytes(b"na\xffme");
    fs::write(workdir.path().join(odd), "0\n5\n10\n").unwrap();
    let results = std::ffi::OsStr::from_bytes(b"re\xffsults");
    let commands: [(&[&str], _); 13] = [
        (&["analyze"], odd),
        (&["advise", "--capture"], odd),
        (&["advise", "--measured"], odd),
        (&["advise", "--station"], odd),
        (&["trace", "show"], odd),
        (&["run"], odd),
        (&["run", "good.toml", "--details", "all", "-o"], results),
        (&["report"], results),
        (&["plot", "cdf"], results),
        (&["packetdrill"], odd),
        (&["link", "--check"], odd),
        (&["link", "--keygen"], odd),
        (&["station", "--check"], odd),
    ];
    for (words, name) in commands {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
        command.args(words).arg(name).args(["--json", "-q"]).current_dir(workdir.path());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0..=2)), "{words:?}: {text}");
        for line in [&output.stdout, &output.stderr] {
            let is_json = serde_json::from_slice::<serde_json::Value>(line).is_ok();
            assert!(line.is_empty() || is_json, "{words:?}: {text}");
        }
    }
    assert!(workdir.path().join(results).join("trace").join("run").is_dir());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_in_words() {
    let workdir = Workdir::new();
    for (json, remedy) in [(false, "help:"), (true, "\"help\"")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
        command.args(["list", "scenarios"]).current_dir(workdir.path());
        if json {
            command.arg("--json");
        }
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command.stdout(full).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("the disk is full") && text.contains(remedy), "{text}");
        assert!(!text.contains("os error"), "{text}");
    }
}
