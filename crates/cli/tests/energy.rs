//! `lasthop energy` from a file to its answer.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

const HEAD: &str = "horizon = \"4s\"\nruns = 3\n\
                    transfer = { from = \"sender\", to = \"receiver\", bytes = \"unlimited\" }\n\
                    [host.receiver]\nside = \"left\"\npreset = \"linux-2.2\"\n\
                    [host.sender]\nside = \"right\"\npreset = \"linux-2.2\"\n";
const HOP: &str =
    "[[path]]\nradio = { rate = \"11mbit\", delay = \"1us\", queue = \"100p\" }\nmac = \"dcf\"\n";

fn lasthop(text: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my.toml");
    std::fs::write(&file, text).expect("a file");
    Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .arg("energy")
        .arg(&file)
        .args(arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

fn json(output: &Output) -> Value {
    let shown = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {shown}"))
}

fn change<'v>(document: &'v Value, name: &str) -> &'v Value {
    let rows = document["changes"].as_array().expect("rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn both_hosts_have_batteries_and_their_power_is_itemised() {
    let output = lasthop(&format!("{HEAD}{HOP}"), &["--json"]);
    assert_eq!(output.status.code(), Some(0));
    let document = json(&output);
    let hosts = document["hosts"].as_array().expect("hosts");
    assert_eq!(hosts.len(), 2);
    for host in hosts {
        assert_eq!((&host["hardware"], &host["assumed"]), (&"sens-800".into(), &true.into()));
        let parts = host["parts"].as_array().expect("parts");
        let sum: f64 = parts.iter().filter_map(|part| part["power_w"]["mean"].as_f64()).sum();
        let power = host["power_w"]["mean"].as_f64().expect("a power");
        assert!((sum / power - 1.0).abs() < 1e-9, "{sum} {power}");
        let shares: f64 = parts.iter().filter_map(|part| part["share"].as_f64()).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    }
    assert_eq!(document["ranked_by"], "sender");
    assert_eq!(document["anything_helps"], true);
    assert_eq!(change(&document, "as-is")["judgement"], "baseline");
    assert_eq!(change(&document, "larger-mss")["judgement"], "better");
    assert_eq!(change(&document, "rts")["judgement"], "worse");
    // Both changes together are better than each alone.
    let mean = |name: &str| change(&document, name)["value"]["mean"].as_f64().expect("a mean");
    assert!(mean("together") > mean("larger-mss") && mean("together") > mean("no-timestamps"));
    let left: Vec<_> =
        document["left_out"].as_array().expect("a list").iter().map(|left| &left["name"]).collect();
    assert_eq!(left, ["no-rts"]);
}

#[test]
fn other_hardware_gives_another_answer() {
    let with = |hardware: &str| {
        let output = lasthop(&format!("{HEAD}{HOP}"), &["--json", "--hardware", hardware]);
        let document = json(&output);
        let share = document["hosts"][1]["parts"][5]["share"].as_f64().expect("a share");
        let times = change(&document, "no-timestamps")["ratio"]["mean"].as_f64().expect("a ratio");
        assert_eq!(document["hosts"][1]["assumed"], false);
        (share, times)
    };
    let (then, now) = (with("sens-800"), with("laptop-wifi-n"));
    // Consumption of the stack, and savings by less work.
    assert!(then.0 > 0.4 && now.0 < 0.02, "{then:?} {now:?}");
    assert!(then.1 > now.1, "{then:?} {now:?}");
}

#[test]
fn with_all_changes_applied_no_further_change_helps() {
    let text = format!("{HEAD}[[path]]\nradio = {{ rate = \"2mbit\" }}\n");
    let fixed = "{ preset = \"rfc\", mss = 2256, timestamps = false, sack = false, tcp = \"newreno\", window-scale = false, \
                 delayed-ack = { every = \"none\", timeout = \"500ms\" } }";
    let text = text.replacen("preset = \"linux-2.2\"\n", "", 2);
    let mut text = text.replace("[host.receiver]\n", "").replace("[host.sender]\n", "");
    text = text.replace("side = \"left\"\n", "").replace("side = \"right\"\n", "");
    let hosts = format!("[host]\nreceiver = {fixed}\nsender = {fixed}\n");
    let text = text.replace("[[path]]", &format!("{hosts}[[path]]"));
    let output = lasthop(&text, &[]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    assert!(shown.contains("nothing would help"), "{shown}");
    assert!(shown.contains("larger-mss: segments are as large already"), "{shown}");
}

#[test]
fn a_page_with_pictures_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let out_text = out.to_string_lossy().into_owned();
    let output = lasthop(&format!("{HEAD}{HOP}"), &["-o", &out_text, "--host", "receiver"]);
    assert_eq!(output.status.code(), Some(0));
    let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
    for words in ["Where the joules go", "What would save most", "larger-mss", "<svg"] {
        assert!(page.contains(words), "{words}");
    }
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("`--set horizon=600s` is more accurate"), "{shown}");
    for picture in ["where.svg", "changes.svg"] {
        assert!(std::fs::read_to_string(out.join(picture)).expect(picture).contains("</svg>"));
    }
    let saved = std::fs::read_to_string(out.join("energy.json")).expect("numbers");
    let document: Value = serde_json::from_str(&saved).expect("JSON");
    assert_eq!(document["ranked_by"], "receiver");
}

#[test]
fn a_part_of_a_battery_needs_no_battery_in_the_file() {
    let set = ["--json", "--seeds", "2", "--set", "host.sender.battery.base=0W"];
    let document = json(&lasthop(&format!("{HEAD}{HOP}"), &set));
    assert_eq!(document["hosts"][1]["parts"][0]["power_w"]["mean"], 0.0);
    assert_eq!(document["hosts"][0]["parts"][0]["power_w"]["mean"], 6.155);
    let output = lasthop(&format!("{HEAD}{HOP}"), &["--host", "nobody"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("receiver, sender"), "{message}");
}
