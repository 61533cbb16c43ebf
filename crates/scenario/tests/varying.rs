//! Links that vary, described inline, in a file, or by arguments; and their errors.

use lasthop_proto::link::varied::Pace;
use lasthop_scenario::files::{Named, located, named, with};
use lasthop_scenario::{Argument, Error, Plan, Source, StageKind, parse};

fn text(link: &str) -> String {
    format!(
        "transfer = {{ from = \"a\", to = \"b\", bytes = \"1MB\" }}\n[host.a]\n[host.b]\n\
         [[path]]\nlink = {{ {link} }}\n"
    )
}

fn plan(text: &str, arguments: &[Argument]) -> Result<Plan, Error> {
    parse(text, "test", arguments).map(|(plan, _)| plan)
}

fn pace(plan: &Plan, cell: usize) -> Pace {
    let StageKind::Varied(varied) = &plan.cells[cell].scenario.path[0].kind else {
        panic!("a link that varies")
    };
    varied.right.clone().unwrap()
}

#[test]
fn a_trace_is_read_from_the_files_of_the_text() {
    let scenario = with(text("trace = \"up\""), "up", "1\n5\n");
    let Pace::Trace(trace) = pace(&plan(&scenario, &[]).unwrap(), 0) else { panic!("a trace") };
    assert!(trace.times().eq([1, 5]));
    // By hand, and any name and content.
    let by_hand = text("trace-right = \"up\"") + "[files]\nup = '''\n3\n'''\n";
    let Pace::Trace(trace) = pace(&plan(&by_hand, &[]).unwrap(), 0) else { panic!("a trace") };
    assert!(trace.times().eq([3]));
    let odd = with(text("trace = 'a\"b\\\\c'"), "a\"b\\\\c", "1\r\n\"\"\"\\u{7}\u{7}");
    let error = plan(&odd, &[]).unwrap_err();
    assert!(
        error.message.starts_with("a\"b\\\\c: line 2: `\"\"\"\\u{7}\u{7}` is no time"),
        "{error}"
    );
}

#[test]
fn arguments_vary_over_files_and_inline_series() {
    let vary = |text: &str| [Argument::Vary(text.to_owned())];
    let scenario = text("rate = \"1mbit\"");
    let arguments = vary("link.losses=\"0s 0%, 5s 1%\",loss.csv");
    let found = named(&scenario, &arguments);
    assert_eq!(found, [Named { name: "loss.csv".to_owned(), by_argument: true }]);
    let scenario = with(scenario, "loss.csv", "time (s),loss (%)\n10,0\n11,2.5\n");
    assert_eq!(named(&scenario, &arguments), []);
    let plan = plan(&scenario, &arguments).unwrap();
    let means: Vec<f64> = plan
        .cells
        .iter()
        .map(|cell| {
            let StageKind::Varied(varied) = &cell.scenario.path[0].kind else { panic!("varies") };
            varied.losses.as_ref().unwrap().points().last().unwrap().1.get()
        })
        .collect();
    assert_eq!(means, [0.01, 0.025]);
    let keys: Vec<_> = plan.runs().map(|run| run.key).collect();
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn a_byte_order_mark_is_no_heading() {
    let of = |lines: &str| {
        let scenario = with(text("rates = \"f.csv\""), "f.csv", lines);
        format!("{:?}", pace(&plan(&scenario, &[]).unwrap(), 0))
    };
    let lines = "0s,1mbit\n1s,2mbit\n";
    assert_eq!(of(&format!("\u{feff}{lines}")), of(lines));
}

#[test]
fn files_are_found_where_the_text_names_them() {
    let scenario = text("trace-right = \"down\", rates-left = \"up.csv\"")
        + "[vary]\nlink.delays = [\"0s 1ms\", \"delay.csv\"]\n";
    let names: Vec<String> = named(&scenario, &[]).into_iter().map(|named| named.name).collect();
    assert_eq!(names, ["down", "up.csv", "delay.csv"]);
}

#[test]
fn invalid_variations_are_reported_with_file_and_line() {
    let error = |link: &str, file: Option<&str>| {
        let scenario = text(link);
        let scenario = file.map_or(scenario.clone(), |lines| with(scenario, "f.csv", lines));
        plan(&with(scenario, "lte.up", "1\n"), &[]).unwrap_err()
    };
    let unread = error("trace = \"up\"", None);
    assert!(unread.message.contains("`up` at `path.1.link.trace` has not been read"), "{unread}");
    let falls = error("trace = \"f.csv\"", Some("4\n3\n"));
    assert_eq!(
        falls.message,
        "f.csv: line 2: 3 comes after 4; times never fall, sort the lines by `sort -n`"
    );
    let line = error("rates = \"f.csv\"", Some("0s,1mbit\n1s,fast\n"));
    assert!(line.message.starts_with("f.csv, line 2: `fast`"), "{line}");
    // The location is the line in the file, also for each other kind of file and for a file that an argument names.
    for (link, content, line) in [
        ("trace = \"f.csv\"", "4\n3\n", 2),
        ("trace-left = \"f.csv\"", "4\nx\n", 2),
        ("rates = \"f.csv\"", "0s,1mbit\n1s,fast\n", 2),
        ("delays = \"f.csv\"", "time,delay\n0,1ms\n1,1xs\n", 3),
        ("losses = \"f.csv\"", "0s,1%\n\n2s,120%\n", 3),
        ("trace = \"lte.up\", light = \"f.csv\"", "0 30 0 1\n5 30 0 x\n", 2),
        ("trace = \"lte.up\", light-left = \"f.csv\"", "0 30 0 1\n\n", 2),
        ("trace = \"lte.up\", light = \"f.csv\"", "9 30 0\n5 30 0\n", 2),
        ("trace = \"lte.up\", light = \"f.csv\"", "0 30 2 1\n5 30 0\n", 1),
        ("trace = \"lte.up\", light = \"f.csv\"", "0 30\n5 30 0\n", 1),
        ("trace = \"lte.up\", light = \"f.csv\"", "0 4294967295 0\n5 30 0\n", 1),
    ] {
        let error = error(link, Some(content));
        assert_eq!(error.at.source, Source::Referenced(0), "{link}: {error}");
        assert_eq!(error.at.line_column(content), (line, 1), "{link}: {error}");
    }
    let arguments = [Argument::Set("link.rates=f.csv".to_owned())];
    let set = with(text("rate = \"1mbit\""), "f.csv", "0s,1mbit\n1s,fast\n");
    let set_error = plan(&set, &arguments).unwrap_err();
    let (name, content) = located(&set_error.at, "dir/a.toml", &set, &arguments);
    assert_eq!((name.as_str(), set_error.at.line_column(&content)), ("f.csv", (2, 1)));
    let both = error("rates = \"0s 1mbit\", trace = \"f.csv\"", Some("1\n"));
    assert_eq!(both.message, "`path.1.link.trace` and `rates` exclude each other");
    let ends = error("trace = \"lte.up\", light = \"f.csv\"", Some("0 30 0 1\n"));
    assert!(ends.message.starts_with("f.csv: it has no second line"), "{ends}");
    let trains = "0 30 0 1\n5 30 0\n";
    let twice = error("trace = \"lte.up\", light = \"f.csv\", delays = \"0s 5ms\"", Some(trains));
    assert_eq!(twice.message, "`path.1.link.light` and `delays` exclude each other");
    let sides =
        error("trace = \"lte.up\", light = \"f.csv\", light-left = \"f.csv\"", Some(trains));
    assert!(sides.message.contains("exclude each other"), "{sides}");
    for link in [
        "rates = \"0s 1mbit\", rates-left = \"0s 1mbit\"",
        "outage-packets = \"drop\"",
        "rate = \"1mbit\", light = \"lte.up\"",
        "trace-left = \"lte.up\", light-right = \"lte.up\"",
        "losses = \"0s 1%\", frame-loss = \"1%\"",
        "rates = \"10mbit\"",
        "outages = \"5s-4s\"",
        "losses = \"0s 120%\"",
    ] {
        error(link, None);
    }
}
