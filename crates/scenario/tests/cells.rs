//! Cells, visits and hand-offs: valid ones, and the faults of invalid ones.

use lasthop_proto::units::Span;
use lasthop_scenario::roaming::{Policy, Roaming, Stays};
use lasthop_scenario::{
    Argument, Code, Handoffs, LivePath, Scenario, SchemeChoice, Source, StageKind, World, compare,
    files, parse,
};

const HEAD: &str =
    "horizon = \"60s\"\ntransfer = { from = \"fixed\", to = \"mobile\", bytes = \"1MB\" }\n";
const REST: &str = "[host.fixed]\n[host.mobile]\n[[path]]\nlink = { rate = \"10mbit\" }\n";
const CELLS: &str = "[[cell]]\nname = \"west\"\n[[cell.path]]\nagent = \"snoop\"\n[[cell.path]]\n\
                     radio = { rate = \"2mbit\" }\n[[cell]]\nname = \"east\"\n[[cell.path]]\n\
                     link = { delay = \"3ms\" }\n[[cell.path]]\nradio = { rate = \"1mbit\" }\n";

fn text(visits: &str) -> String {
    format!("{HEAD}{visits}\n{REST}{CELLS}")
}

fn read(visits: &str, arguments: &[&str]) -> Scenario {
    let arguments: Vec<_> = arguments.iter().map(|a| Argument::Set((*a).to_owned())).collect();
    let (plan, warnings) = parse(&text(visits), "test", &arguments)
        .unwrap_or_else(|error| panic!("{error}: {}", error.help));
    assert!(warnings.is_empty(), "{warnings:?}");
    plan.cells[0].scenario.clone()
}

fn roaming(scenario: &Scenario) -> &Roaming {
    scenario.roaming.as_ref().expect("cells")
}

#[test]
fn cells_are_read_with_their_base_stations_and_names() {
    let scenario = read("visits = { every = \"8s\" }", &[]);
    let roaming = roaming(&scenario);
    let names: Vec<_> = roaming.cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names, ["west", "east"]);
    let stages: Vec<_> =
        roaming.cells.iter().flat_map(|c| c.path.iter().map(|s| s.name.as_str())).collect();
    assert_eq!(stages, ["west-agent", "west-radio", "east-link", "east-radio"]);
    assert_eq!(roaming.cells.iter().map(|cell| cell.base).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(roaming.tours[0].stays, Stays::Every(Span::secs(8)));
    assert_eq!(roaming.tours[0].host, 1);
    assert_eq!(roaming.handoff.packets, Policy::Drop);
}

#[test]
fn keys_are_addressed_by_cell_or_in_all_of_them() {
    let rate = |scenario: &Scenario, cell: usize| {
        let stage = roaming(scenario).cells[cell].path.last().unwrap();
        let StageKind::Radio(radio) = &stage.kind else { panic!() };
        radio.radio.rate.to_string()
    };
    let visits = "visits = { every = \"8s\" }";
    let rates = |set: &[&str]| {
        let scenario = read(visits, set);
        [rate(&scenario, 0), rate(&scenario, 1)]
    };
    assert_eq!(rates(&[]), ["2mbit", "1mbit"]);
    assert_eq!(rates(&["cell.east.path.radio.rate=3mbit"]), ["2mbit", "3mbit"]);
    assert_eq!(rates(&["cell.1.path.2.radio.rate=3mbit"]), ["3mbit", "1mbit"]);
    assert_eq!(rates(&["cell.*.path.radio.rate=3mbit"]), ["3mbit", "3mbit"]);
    assert_eq!(rates(&["radio.rate=3mbit"]), ["3mbit", "3mbit"]);
    let scenario = read(visits, &["agent=none", "handoff.gap=80ms", "visits.every=4s"]);
    assert_eq!(roaming(&scenario).handoff.gap, Span::millis(80));
    assert_eq!(roaming(&scenario).tours[0].stays, Stays::Every(Span::secs(4)));
    let set = |key: &str| {
        let arguments = [Argument::Set(format!("{key}=1"))];
        parse(&text(visits), "test", &arguments).expect_err("this should be refused")
    };
    let error = set("cell.wset.path.radio.rate");
    assert!(error.help.contains("did you mean `west`"), "{}", error.help);
    assert!(set("cell.west").help.contains("cell.west.path.radio.rate"));
}

#[test]
fn visits_are_part_of_the_run_key() {
    let key = |visits: &str| {
        let (plan, _) = parse(&text(visits), "test", &[]).unwrap();
        plan.runs().next().unwrap().key
    };
    assert_ne!(key("visits = { every = \"8s\" }"), key("visits = { every = \"9s\" }"));
    assert_eq!(key("visits = { every = \"8s\" }"), key("visits = { every = \"8s\" }"));
}

#[track_caller]
fn refused(text: &str, code: Code, key: &str, pointed: &str, expected: &[&str]) {
    let error = parse(text, "test", &[]).expect_err("this should be refused");
    let all = format!("{} | {} | {}", error.message, error.label, error.help);
    assert_eq!((error.code, error.key.as_str()), (code, key), "{all}");
    assert_eq!(error.at.source, Source::File);
    assert!(text[error.at.span.clone()].starts_with(pointed), "{:?}", &text[error.at.span.clone()]);
    for words in expected {
        assert!(all.contains(words), "`{words}` is not said in: {all}");
    }
}

#[track_caller]
fn visits_refused(visits: &str, key: &str, pointed: &str, expected: &[&str]) {
    refused(&text(visits), Code::BadVisit, key, pointed, expected);
}

#[test]
fn visits_of_unknown_cells_and_hosts() {
    let list = "visits = { list = [{ cell = \"weste\", from = \"0s\" }] }";
    visits_refused(
        list,
        "visits.list.1.cell",
        "\"weste\"",
        &["no cell `weste`", "did you mean `west`"],
    );
    let turn = "visits = { every = \"8s\", cells = [\"east\", \"south\"] }";
    visits_refused(turn, "visits.cells", "[", &["no cell `south`", "`[[cell]]`"]);
    let who = "visits = { host = \"mobil\", every = \"8s\" }";
    visits_refused(who, "visits.host", "\"mobil\"", &["no host `mobil`", "did you mean `mobile`"]);
    let left = "visits = { host = \"fixed\", every = \"8s\" }";
    visits_refused(left, "visits.host", "\"fixed\"", &["wired end", "`mobile`"]);
    let twice = "[[visits]]\nevery = \"8s\"\n[[visits]]\ndwell = \"8s\"\n";
    visits_refused(
        twice,
        "visits.2.host",
        "",
        &["defined twice", "one table of visits for each host"],
    );
}

#[test]
fn visits_that_overlap_need_an_overlap() {
    let list = "list = [{ cell = \"west\", from = \"0s\", until = \"10s\" }, { cell = \"east\", from = \"8s\" }]";
    let visits = format!("visits = {{ {list} }}");
    let expected = ["overlap", "moves to the next cell at 8s", "overlap = \"200ms\""];
    visits_refused(&visits, "visits.list.1.until", "\"10s\"", &expected);
    let allowed = format!("handoff = {{ overlap = \"1s\" }}\nvisits = {{ {list} }}");
    assert!(matches!(roaming(&read(&allowed, &[])).tours[0].stays, Stays::List(_)));
    let three = "handoff = { overlap = \"1s\" }\nvisits = { list = [{ cell = \"west\", from = \"0s\", until = \
                 \"20s\" }, { cell = \"east\", from = \"8s\" }, { cell = \"west\", from = \"16s\" }] }";
    visits_refused(three, "visits.list.1.until", "\"20s\"", &["three cells at once"]);
    let back = "visits = { list = [{ cell = \"west\", from = \"9s\" }, { cell = \"east\", from = \"8s\" }] }";
    visits_refused(
        back,
        "visits.list.2.from",
        "\"8s\"",
        &["does not begin after", "in their order"],
    );
    let both = "handoff = { gap = \"1s\", overlap = \"1s\" }\nvisits = { every = \"8s\" }";
    refused(
        &text(both),
        Code::BadValue,
        "handoff.overlap",
        "\"1s\"",
        &["`gap` exclude each other", "leave one out"],
    );
}

#[test]
fn visits_may_be_lines_of_a_file() {
    let table = "visits = { table = '''\n0s west    # at home\n\n8s east 20s\n25s west\n''' }";
    let list = "visits = { list = [{ cell = \"west\", from = \"0s\" }, { cell = \"east\", from = \"8s\", until = \
                \"20s\" }, { cell = \"west\", from = \"25s\" }] }";
    assert_eq!(read(table, &[]), read(list, &[]));
    let bad = Code::BadValue;
    let wrong = text("visits = { table = \"0s west\\n8 east\" }");
    refused(&wrong, bad, "visits.table", "\"0s", &["line 2 is no visit", "`8s east`"]);
    visits_refused("visits = { table = \"0s wset\" }", "visits.table", "\"0s", &["no cell `wset`"]);
    let named = text("[[visits]]\nhost = \"mobile\"\nfile = \"walk.txt\"");
    refused(&named, bad, "visits.1.file", "\"walk.txt\"", &["has not been read", "`table`"]);
    let with = |content: &str| files::with(named.clone(), "walk.txt", content);
    assert!(parse(&with("0s west\n"), "test", &[]).is_ok());
    // Errors in the file have its name and line, and those in the text the positions of the text.
    for (content, line, message) in [
        ("# a walk\n\n8 east\n", 3, "walk.txt, line 3: this is no visit"),
        ("0s west\n8s wset\n", 2, "there is no cell `wset`"),
        ("0s west\n8s east\n3s west\n", 2, "ends before its hand-off"),
    ] {
        let text = with(content);
        let error = parse(&text, "test", &[]).unwrap_err();
        assert_eq!(error.at.source, Source::Referenced(0), "{error}");
        let (name, found) = files::located(&error.at, "dir/a.toml", &text, &[]);
        assert_eq!((name.as_str(), found.as_str()), ("dir/walk.txt", content));
        assert_eq!(error.at.line_column(&found), (line, 1), "{error}");
        assert!(error.message.contains(message), "{error}");
    }
    let text = with("0s west\n").replace("[[cell]]\nname = \"east\"", "[[cell]]\nnmae = \"east\"");
    let error = parse(&text, "test", &[]).unwrap_err();
    let (name, found) = files::located(&error.at, "a.toml", &text, &[]);
    assert_eq!((name.as_str(), &found[error.at.span.clone()]), ("a.toml", "nmae"), "{error}");
    assert!(!found.contains("[files"), "{found}");
}

#[test]
fn a_host_that_never_enters_a_cell() {
    visits_refused("", "visits", "[[cell]]", &["`mobile` never enters a cell", "every = \"8s\""]);
    visits_refused("visits = {}", "visits.every", "{}", &["never enters a cell", "`dwell`"]);
    let late = "visits = { list = [{ cell = \"west\", from = \"60s\" }] }";
    visits_refused(
        late,
        "visits.list.1.from",
        "\"60s\"",
        &["never enters a cell", "raise `horizon`"],
    );
    let gap = "handoff = { gap = \"8s\" }\nvisits = { every = \"8s\" }";
    visits_refused(gap, "handoff", "\"8s\"", &["moves every 8s", "a hand-off takes 8s", "longer"]);
    let short = "handoff = { gap = \"2s\" }\nvisits = { list = [{ cell = \"west\", from = \"0s\" }, \
                 { cell = \"east\", from = \"5s\" }, { cell = \"west\", from = \"7s\" }] }";
    visits_refused(short, "visits.list.2.from", "\"5s\"", &["ends before its hand-off", "longer"]);
}

#[test]
fn a_cell_without_visits_is_reported() {
    let (_, warnings) =
        parse(&text("visits = { every = \"8s\", cells = [\"west\"] }"), "test", &[]).unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].message, "no host visits the cell `east`");
    // For a list, the cells that it contains.
    for (cells, missing) in [
        (["west", "west"], Some("east")),
        (["east", "east"], Some("west")),
        (["west", "east"], None),
    ] {
        let [first, second] = cells;
        let list = format!(
            "visits = {{ list = [{{ cell = \"{first}\", from = \"0s\", until = \"3s\" }}, \
             {{ cell = \"{second}\", from = \"5s\" }}] }}"
        );
        let (_, warnings) = parse(&text(&list), "test", &[]).unwrap();
        let found: Vec<_> = warnings.iter().map(|warning| warning.message.clone()).collect();
        let expected = missing.map(|cell| format!("no host visits the cell `{cell}`"));
        assert_eq!(found, Vec::from_iter(expected), "{cells:?}");
    }
}

#[test]
fn invalid_cells_are_refused() {
    let none = format!("{HEAD}visits = {{ every = \"8s\" }}\n{REST}");
    refused(&none, Code::BadVisit, "visits", "{", &["without cells", "`[[cell]]`"]);
    let none = format!("{HEAD}handoff = {{ gap = \"1s\" }}\n{REST}");
    refused(&none, Code::BadVisit, "handoff", "{", &["without cells"]);
    let visits = "visits = { every = \"8s\" }\n";
    let empty = format!("{HEAD}{visits}{REST}[[cell]]\nname = \"west\"\n");
    refused(
        &empty,
        Code::BadPath,
        "cell.1.path",
        "[[cell]]",
        &["has no stages", "`[[cell.path]]`"],
    );
    let unnamed = format!("{HEAD}{visits}{REST}[[cell]]\n[[cell.path]]\nlink = {{}}\n");
    refused(&unnamed, Code::MissingKey, "cell.1.name", "[[cell]]", &["`name`"]);
    let twice = format!("{HEAD}{visits}{REST}{CELLS}{}", CELLS.replace("east", "south"));
    refused(
        &twice,
        Code::BadName,
        "cell.3.name",
        "\"west\"",
        &["cannot be the cell's name", "must differ"],
    );
    let table = format!("{HEAD}{visits}{REST}[cell.west]\npath = []\n");
    refused(&table, Code::BadPath, "cell", "", &["a list of cells", "double brackets"]);
    let agents = CELLS.replacen("radio =", "agent = \"none\"\n[[cell.path]]\nradio =", 1);
    let agents = format!("{HEAD}{visits}{REST}{agents}");
    refused(
        &agents,
        Code::BadPath,
        "cell.1.path.2.agent",
        "\"none\"",
        &["two agents where one fits"],
    );
}

#[test]
fn persistent_testbeds_and_batteries_exclude_cells() {
    let live = read("world = \"testbed\"\nvisits = { every = \"8s\" }", &[]);
    assert_eq!((live.world, roaming(&live).cells.len()), (World::Testbed, 2));
    let standing = LivePath::of_scenario(&text("visits = { every = \"8s\" }"), "walk", &[]);
    let error = standing.expect_err("a testbed that stays up has no cells");
    let found = format!("{error} {}", error.help);
    assert!(found.contains("one base station") && found.contains("--world testbed"), "{found}");
    let battery = text("visits = { every = \"8s\" }")
        .replace("[host.mobile]", "[host.mobile]\nbattery = \"esp32\"");
    let expected = ["a host that visits cells has no battery"];
    refused(&battery, Code::BadValue, "host.mobile.battery", "\"esp32\"", &expected);
}

#[test]
fn given_hand_offs_make_two_cells_of_the_last_base_station() {
    let text = "transfer = { from = \"a\", to = \"b\", bytes = \"1MB\" }\n[host.a]\n[host.b]\n[[path]]\nlink = {}\n\
                [[path]]\nname = \"base\"\nagent = \"none\"\n[[path]]\nname = \"air\"\nradio = { rate = \"2mbit\" }\n";
    let handoffs = "every=15s,gap=80ms,packets=forward".parse().unwrap();
    let choice =
        |names: &[&str]| SchemeChoice::Named(names.iter().map(|n| (*n).to_owned()).collect());
    let lay_out = |names: &[&str], handoffs: Option<&Handoffs>| {
        compare(text, "x", &[], &choice(names), &["2%".to_owned()], None, handoffs)
            .unwrap_or_else(|error| panic!("{error}: {}", error.help))
    };
    let found = lay_out(&["snoop", "snoop+state", "fast-rtx-handoff", "ll"], Some(&handoffs));
    assert_eq!(
        found.plan.axes[0].labels,
        ["as-is", "snoop", "snoop+state", "fast-rtx-handoff", "ll"]
    );
    for (cell, name) in found.plan.cells.iter().zip(&found.plan.axes[0].labels) {
        let all = roaming(&cell.scenario);
        assert_eq!(all.cells.len(), 2, "{name}");
        assert_eq!(all.tours[0].stays, Stays::Every(Span::secs(15)));
        assert_eq!((all.handoff.gap, all.handoff.packets), (Span::millis(80), Policy::Forward));
        assert_eq!(all.handoff.state.is_some(), name == "snoop+state");
        // Both cells have the scheme and the losses.
        for at in &all.cells {
            let [agent, air] = &at.path[..] else { panic!("{:?}", at.path) };
            let StageKind::Agent(agent) = &agent.kind else { panic!("{agent:?}") };
            assert_eq!(format!("{agent:?}").starts_with("Snoop"), name.starts_with("snoop"));
            let StageKind::Radio(radio) = &air.kind else { panic!("{air:?}") };
            assert!(radio.errors_right.is_some() && radio.hop.is_some() == (name == "ll"));
        }
    }
    let still = lay_out(&["snoop", "snoop+state"], None);
    assert_eq!(still.left_out[0].reason, "it helps hosts that move, and none does");
}

#[test]
fn handoff_arguments_round_trip_or_explain_their_error() {
    for (word, expected) in [
        ("every", "no KEY=VALUE; for example every=15s,gap=80ms"),
        ("gap=80ms", "`every` or `dwell`; for example"),
        ("every=15s,gpa=80ms", "no `gpa`"),
        ("every=15s,gpa=80ms", "gap"),
        ("every=15s,every=9s", "given twice"),
        ("every=15s,dwell=9s", "dwell"),
        ("every=15s,gap=soon", "handoff.gap"),
        ("every=15s,gap=1s,overlap=1s", "leave one out"),
        ("every=15s,packets=lose", "forward"),
        ("", "no KEY=VALUE"),
    ] {
        let error = word.parse::<Handoffs>().expect_err(word);
        assert!(error.contains(expected), "{word}: {error}");
    }
    for word in
        ["every=15s,gap=80ms", "dwell=10s,announced=true,packets=forward,buffer=20,state=move"]
    {
        assert_eq!(word.parse::<Handoffs>().map(|all| all.to_string()), Ok(word.to_owned()));
    }
    // Transfers of advice last for several stays, so the time must not be lost.
    for word in ["every=15s,gap=80ms", "every=\"15s\"", "gap=80ms,dwell='15s'"] {
        assert_eq!(word.parse::<Handoffs>().map(|all| all.stay()), Ok(Span::secs(15)), "{word}");
    }
}
