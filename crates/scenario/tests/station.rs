//! Files of stations: their content and their errors.

use lasthop_proto::units::Bytes;
use lasthop_scenario::{LivePath, StationFile, SubscriberConfig, parse_station};

const LEAST: &str = "left = \"eth0\"\nright = \"wlan0\"\n[[path]]\nagent = \"snoop\"\n";

fn file(more: &str) -> StationFile {
    let text = format!("{LEAST}{more}");
    let (file, warnings) =
        parse_station(&text).unwrap_or_else(|e| panic!("{e}: {}\n{text}", e.help));
    assert!(warnings.is_empty(), "{warnings:?}");
    file
}

#[test]
fn a_minimal_station_file_has_defaults() {
    let file = file("");
    assert_eq!(
        (file.settings.left.as_str(), file.settings.right.as_str(), file.settings.seed),
        ("eth0", "wlan0", 1)
    );
    assert_eq!(
        (file.settings.socket, file.settings.metrics, file.settings.capture),
        (None, None, None)
    );
    assert_eq!(file.settings.subscribers, None);
    assert_eq!(file.path.stages().len(), 1);
    assert_eq!(file.path.get("agent").unwrap().as_deref(), Some("snoop"));
}

#[test]
fn every_key_is_read() {
    let file = file(
        "[[path]]\nlink = { rate = \"10mbit\" }\n[control]\nsocket = \"/run/x.sock\"\n[metrics]\n\
         listen = \"[::1]:9464\"\n[capture]\ndir = \"/tmp/x\"\npayload = 64\nfile-size = \"1MiB\"\nfiles = 2\n\
         [subscribers]\nprefix4 = 24\nprefix6 = 56\nmost = 7\nflows = 9\nmetrics = 0\n\
         [limits]\nflows = 2000\ncache = \"16MiB\"\n",
    );
    assert_eq!(file.settings.socket.as_deref(), Some("/run/x.sock"));
    assert_eq!(file.settings.metrics.map(|at| at.port()), Some(9464));
    let capture = file.settings.capture.unwrap();
    assert_eq!((capture.payload, capture.file_size, capture.files), (64, Bytes(1 << 20), 2));
    let view = SubscriberConfig { prefix4: 24, prefix6: 56, most: 7, flows: 9, metrics: 0 };
    assert_eq!(file.settings.subscribers, Some(view));
    assert_eq!((file.settings.limits.flows, file.settings.limits.cache), (2000, Bytes(16 << 20)));
}

#[test]
fn an_empty_subscribers_table_enables_the_view() {
    assert_eq!(file("[subscribers]\n").settings.subscribers, Some(SubscriberConfig::default()));
}

#[test]
fn an_error_points_at_the_line() {
    for (text, line, says) in [
        ("left = \"a\"\nrigth = \"b\"\n", 2, "a station's file"),
        ("right = \"b\"\n[[path]]\nagent = \"none\"", 1, "needs `left`"),
        ("left = \"a\"\nright = \"a\"\n[[path]]\nagent = \"none\"", 2, "both sides"),
        ("left = \"a/b\"\nright = \"a\"", 1, "cannot be the name"),
        ("left = \"an-interface-with-a-long-name\"", 1, "cannot be the name"),
        ("left = \"a\"\nright = \"b\"\npath = []", 3, "empty"),
        ("left = \"a\"\nright = \"b\"\n[[path]]\nagnet = \"snoop\"", 4, "agnet"),
        ("left = \"a\"\nright = \"b\"\n[[path]]\nagent = \"snop\"", 4, "snop"),
        ("left = \"a\"\nright = \"b\"\n[[path]]\nagent = \"snoop\"\n[host.x]", 5, "host"),
        (
            "left = \"a\"\nright = \"b\"\n[[path]]\nagent = \"none\"\n[metrics]\nlisten = \"0.0.0.0:1\"",
            6,
            "outside",
        ),
        (
            "left = \"a\"\nright = \"b\"\n[[path]]\nagent = \"none\"\n[metrics]\nlisten = \"9464\"",
            6,
            "address",
        ),
        (
            "left = \"a\"\nright = \"b\"\n[[path]]\nagent = \"none\"\n[control]\nsocket = \"x\"",
            6,
            "socket",
        ),
        ("left = \"a\"\nright = \"b\"\n[[path]]\nagent = \"none\"\n[control]\nport = 1", 6, "port"),
        ("left = \"a\"\nright = \"b\"\n[[path]]\nagent = \"none\"\n[capture]\nfiles = 1", 5, "dir"),
        ("left = \"a\"\nright = \"b\"\n[[path]]\nagent = \"snoop\"\ncache = \"1GB\"", 5, "cache"),
        (
            "left = \"a\"\nright = \"b\"\n[[path]]\nagent = \"snoop\"\n[limits]\nflows = 10",
            4,
            "flows",
        ),
    ] {
        let error = parse_station(text).unwrap_err();
        assert_eq!(error.at.line_column(text).0, line, "{text}\n{error}");
        assert!(error.message.contains(says), "{text}\n{error}");
        assert!(!error.help.is_empty(), "{text}");
    }
    let error = parse_station("left =").unwrap_err();
    assert!(error.help.contains("right = \"wlan0\""), "{}", error.help);
}

#[test]
fn a_changed_setting_preserves_the_others() {
    let before = file("dupacks = 2\n").path;
    let (after, settings, _) =
        before.set(&["dupacks=3".to_owned(), "persist=1s".to_owned()]).unwrap();
    assert_eq!((settings[0].old.as_deref(), settings[0].new.as_str()), (Some("2"), "3"));
    assert_eq!(settings[1].old, None);
    assert_eq!(before.get("dupacks").unwrap().as_deref(), Some("2"));
    let changes = before.changes_to(&after);
    let shown = changes.iter().map(|c| format!("{}: {:?} -> {}", c.key, c.old, c.new));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        ["path.1.dupacks: Some(\"2\") -> 3", "path.1.persist: None -> 1s"]
    );
    assert_eq!(after.changes_to(&before)[1].new, "(default)");
    assert_eq!(before.changes_to(&before), []);
    let (back, ..) = after.set(&["dupacks=2".to_owned()]).unwrap();
    assert_ne!(back.stages(), before.stages());
    assert_eq!(back.get("agent").unwrap().as_deref(), Some("snoop"));
}

#[test]
fn limits_apply_to_an_agent_not_yet_enabled() {
    let (none, _) = parse_station(&LEAST.replace("snoop", "none")).unwrap();
    for (value, key) in [("cache=99GiB", "path.1.cache"), ("flows=5000", "path.1.flows")] {
        let error = none.path.set(&[value.to_owned()]).unwrap_err();
        assert_eq!((error.key.as_str(), error.at.span.start), (key, value.find('=').unwrap() + 1));
        assert!(error.help.contains("`[limits]` allows"), "{}", error.help);
    }
    assert!(none.path.set(&["cache=1MiB".to_owned()]).is_ok());
}

#[test]
fn the_path_of_a_scenario_is_that_of_its_first_combination() {
    let text = lasthop_scenario::example("west97-lan").unwrap().text;
    let (path, scenario) = LivePath::of_scenario(text, "west97-lan", &[]).unwrap();
    assert_eq!(path.stages(), scenario.path);
    let (changed, ..) = path.set(&["agent=snoop".to_owned(), "errors=none".to_owned()]).unwrap();
    assert_ne!(changed.stages(), path.stages());
    let error = path.set(&["tcp=sack".to_owned()]).unwrap_err();
    assert!(error.message.contains("not part of the path"), "{error}");
}

#[test]
fn the_example_and_manual_station_files_are_valid() {
    let example = include_str!("../../../deploy/station.example.toml");
    let (file, warnings) = parse_station(example).unwrap();
    assert!(warnings.is_empty());
    assert_eq!(file.settings.right, "wlan0");
    // The commented-out parts are valid too.
    let keys = example.lines().filter_map(|line| {
        let key =
            line.strip_prefix("# ").filter(|rest| rest.contains(" = ") || rest.starts_with('['));
        if line.starts_with('#') { key } else { Some(line) }
    });
    let all: Vec<&str> = keys.collect();
    let (all, _) = parse_station(&all.join("\n")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(all.path.stages().len(), 2);
    let all = all.settings;
    assert!(all.socket.is_some() && all.metrics.is_some() && all.capture.is_some());

    let manual = include_str!("../../../docs/reference/station.md");
    let block = manual.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(parse_station(block).unwrap().0.settings.limits.cache, Bytes(32 << 20));
}
