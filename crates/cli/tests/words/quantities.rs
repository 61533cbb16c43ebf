//! Quantities: units of another kind, commas, characters of other keyboards, and values out of range.

use super::Workdir;

#[test]
fn a_unit_of_another_quantity_is_named() {
    let workdir = Workdir::new();
    for (setting, problem) in [
        ("link.rate=10ms", "`10ms` is a time"),
        ("link.delay=10mbit", "`10mbit` is a rate"),
        ("link.delay=50%", "`50%` is a percentage"),
        ("link.queue=50ms", "`50ms` is a time"),
        ("link.frame-loss=1ms", "`1ms` is a time"),
        ("link.rate=20p", "`20p` is a number of packets"),
    ] {
        workdir.refused(&format!("run good.toml --set {setting}"), &[problem]);
    }
    workdir.refused("advise --rate 10ms", &["`10ms` is a time"]);
    workdir.refused("advise --rate 2mbit --delay 10mbit", &["`10mbit` is a rate"]);
}

#[test]
fn a_comma_with_two_readings_is_shown_with_both() {
    let workdir = Workdir::new();
    workdir.refused(
        "run good.toml --set link.rate=10,000kbit",
        &["`rate = \"10.000kbit\"` or `rate = \"10000kbit\"`"],
    );
    workdir.refused("run good.toml --set link.rate=10,000,000bit", &["`rate = \"10mbit\"`"]);
    workdir.refused("advise --rate 1,000mbit", &["`--rate 1gbit`"]);
}

#[test]
fn suggestions_are_in_range() {
    let workdir = Workdir::new();
    for setting in ["link.rate=1e30mbit", "link.delay=1e300s"] {
        let typed = format!("run good.toml --set {setting}");
        workdir.refused(&typed, &["is out of range", "for example"]);
        let text = workdir.run(&typed).stderr;
        assert!(!String::from_utf8_lossy(&text).contains("did you mean"), "{setting}");
    }
    workdir.refused("run good.toml --set link.frame-loss=500ppm", &["`frame-loss = \"0.05%\"`"]);
    workdir.refused(
        "run good.toml --set transfer.bytes=1mbit",
        &["`bytes = \"125kB\"`", "Or `unlimited`"],
    );
    workdir.refused("run good.toml --set link.queue=-1", &["-1 is negative"]);
    workdir.refused("run good.toml --set link.queue=inf", &["`inf` is no length of a queue"]);
    workdir.refused("run good.toml --set runs=1.5", &["`1.5` is not a whole number"]);
}

#[test]
fn numbers_and_addresses_of_options() {
    let workdir = Workdir::new();
    workdir.refused("trace make lte --seed -1", &["`--seed -1` is out of range", "from 0 on"]);
    workdir.refused("replay --drop-data 3-", &["`--drop-data 3-`: not a list", "3,8-10"]);
    workdir.refused(
        "trace make lte --seed 99999999999999999999",
        &["is out of range", "the number is too large"],
    );
    workdir.refused(
        "analyze x.pcap --address 10.0.0.0/8",
        &["is not an IP address", "without mask and name"],
    );
}

#[test]
fn times_of_clocks_and_characters_of_other_keyboards() {
    let workdir = Workdir::new();
    for (word, meant) in [
        ("00:01:30", "90s"),
        ("1m30s", "90s"),
        ("1s500ms", "1.5s"),
        ("\u{ff11}0ms", "10ms"),
        ("10\u{200b}ms", "10ms"),
    ] {
        workdir.link(&format!("delay = \"{word}\""));
        workdir.refused("run link.toml", &[&format!("did you mean `delay = \"{meant}\"`?")]);
    }
    workdir.link("delay = 00:01:30");
    workdir.refused("run link.toml", &["this is a date", "did you mean `delay = \"90s\"`?"]);
}

#[test]
fn lists_in_place_of_values_lead_to_an_axis() {
    let workdir = Workdir::new();
    workdir.link("rate = [\"1mbit\", \"2mbit\"]");
    workdir.refused("run link.toml", &["this is a list", "`[vary]`"]);
    let text = String::from_utf8(std::fs::read(workdir.path().join("good.toml")).unwrap()).unwrap();
    let with = |tail: &str| workdir.write("axis.toml", format!("{text}\n{tail}").as_bytes());
    with("[[vary]]\ntcp = [\"reno\"]\n");
    workdir.refused("run axis.toml", &["`vary` is a list", "`[vary]` in single brackets"]);
    with("[vary]\ntcp = []\n");
    workdir.refused("run axis.toml", &["`tcp` under `[vary]` is an empty list"]);
    workdir.write("same.toml", text.replace("to = \"b\"", "to = \"a\"").as_bytes());
    workdir.refused("run same.toml", &["cannot send to itself", "name a host at the other end"]);
    let name = format!("name = \"{}\"\n{text}", "x".repeat(5000));
    workdir.write("long.toml", name.as_bytes());
    assert!(workdir.run("--json run long.toml").stderr.len() < 1000);
}

#[test]
fn words_of_netem_lines() {
    let workdir = Workdir::new();
    for (line, meant) in [
        ("dealy 20ms", "did you mean `delay`?"),
        ("delay 20ms jitter 5ms", "`delay 20ms 5ms`"),
        ("delay 1,5ms", "did you mean `1.5ms`?"),
        ("htb rate 1mbit", "`rate 10mbit` in this line"),
        ("fq_codel limit 100", "`netem`: `link = {"),
        ("rate 1mbit overhead 20", "second value of `rate`"),
    ] {
        workdir.link(&format!("netem = \"{line}\""));
        workdir.refused("run link.toml", &[meant]);
    }
}
