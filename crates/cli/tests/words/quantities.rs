//! Quantities out of range, lists in place of values, and words of netem.

use super::Workdir;

#[test]
fn quantities_out_of_range_are_refused() {
    let workdir = Workdir::new();
    for setting in ["link.rate=99999999999999999999999mbit", "link.delay=99999999999999999999999s"]
    {
        let typed = format!("run good.toml --set {setting}");
        workdir.refused(&typed, &["is out of range", "for example"]);
        let text = workdir.run(&typed).stderr;
        assert!(!String::from_utf8_lossy(&text).contains("did you mean"), "{setting}");
    }
    workdir.refused("run good.toml --set link.queue=-1", &["-1 is negative"]);
    workdir.refused("run good.toml --set link.queue=inf", &["`inf` is no length of a queue"]);
    workdir.refused("run good.toml --set runs=1.5", &["`1.5` is not a whole number"]);
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
