//! Golden figures of the readers of files: each example, and each of its lines with a fault in it.

use std::collections::BTreeMap;
use std::fmt::Write;

use lasthop_scenario::{
    Argument, Comparison, File, Grid, LivePath, PARTS, SchemeChoice, compare, examples,
    json_schema, parse, parse_station, parse_tunnel, schemes_of, sliders,
};

use super::cases::{At, Draft, settings};
use super::{Block, Digest, check};

/// Maximum number of cells of a plan that are digested.
const CELLS: usize = 6;

#[test]
fn plans_of_examples() {
    let mut blocks = Vec::new();
    for example in examples() {
        let mut block = Block::new(example.name);
        let (plan, warnings) = parse(example.text, example.name, &[]).expect("an example");
        block.put("cells", plan.cells.len());
        block.put("runs", plan.count());
        block.put("warnings", warnings.len());
        let mut digest = Digest::default();
        let _ = write!(digest, "{} {:?} {warnings:?}", plan.name, plan.axes);
        for (i, cell) in plan.cells.iter().enumerate().take(CELLS) {
            let _ = write!(digest, "{:?} {}", cell.scenario, cell.title(&plan.axes));
            for run in cell.runs(i).take(2) {
                let _ = write!(digest, "{run:?}");
            }
        }
        block.put("digest of cells", digest.text());
        let mut digest = Digest::default();
        if let Ok((grid, warnings)) = Grid::parse(example.text, example.name, &[], None) {
            block.put("cells of the grid", grid.cells());
            let (axes, seeds, runs) = (grid.axes(), grid.seeds(), grid.runs());
            let _ = write!(digest, "{axes:?} {seeds} {runs} {:?} {warnings:?}", grid.first());
            for i in [0, 1, grid.cells() / 2, grid.cells() - 1] {
                let _ = write!(digest, "{:?}", grid.cell(i.min(grid.cells() - 1)));
            }
        }
        block.put("digest of the grid", digest.text());
        let mut digest = Digest::default();
        match LivePath::of_scenario(example.text, example.name, &[]) {
            Ok((path, _)) => {
                for (i, stage) in path.stages().iter().enumerate() {
                    let lines = path.stage_lines(i);
                    let _ = write!(digest, "{stage:?} {lines:?}");
                    for key in lines.iter().filter_map(|line| line.split_once(" = ")) {
                        let key = format!("path.{}.{}", i + 1, key.0);
                        let _ = write!(digest, "{:?}", path.get(&key));
                        let set = path.set(&[format!("{key}=3")]);
                        let _ = match set {
                            Ok((other, settings, warnings)) => {
                                let back = other.changes_to(&path);
                                write!(digest, "{settings:?} {warnings:?} {back:?}")
                            }
                            Err(error) => write!(digest, "{error} {}", error.help),
                        };
                    }
                }
            }
            Err(error) => {
                let _ = write!(digest, "{error} {}", error.help);
            }
        }
        block.put("digest of the live path", digest.text());
        blocks.push(block);
    }
    check("examples.txt", &blocks);
}

#[test]
fn sliders_of_examples() {
    let mut blocks = Vec::new();
    for example in examples() {
        let mut block = Block::new(example.name);
        let all = sliders(example.text, &[]).expect("its sliders");
        block.put("sliders", all.len());
        block.put("to show first", all.iter().filter(|slider| slider.first).count());
        let mut digest = Digest::default();
        let _ = write!(digest, "{all:?}");
        block.put("digest", digest.text());
        blocks.push(block);
    }
    check("sliders.txt", &blocks);
}

fn write_comparison(comparison: &Comparison, digest: &mut Digest) {
    let Comparison { plan, schemes, baseline, left_out, warnings } = comparison;
    let _ = write!(digest, "{} {:?} {baseline} {left_out:?} {warnings:?}", plan.name, plan.axes);
    for scheme in schemes {
        let _ = write!(digest, "{scheme:?}");
        for (key, value) in scheme.settings() {
            let _ = write!(digest, "{key} {value} {:?}", scheme.written(key));
        }
    }
    for cell in &plan.cells {
        let _ = write!(digest, "{:?} {}", cell.scenario, cell.title(&plan.axes));
    }
}

/// Every fourth example, from `first`.
fn comparisons(file: &str, first: usize) {
    let mut blocks = Vec::new();
    for example in examples().iter().skip(first).step_by(4) {
        let mut block = Block::new(example.name);
        let schemes = schemes_of(example.text).expect("its schemes");
        block.put("schemes", schemes.len());
        let handoffs = "every=7s,gap=80ms".parse().expect("hand-offs");
        let errors = ["1%".to_owned(), "none".to_owned(), "0.05".to_owned()];
        let named =
            SchemeChoice::Named(vec!["snoop".to_owned(), "as-is".to_owned(), "sack".to_owned()]);
        let comparisons = [
            ("own", SchemeChoice::Own, &errors[..0], None),
            ("all", SchemeChoice::All, &errors[..0], None),
            ("all with errors", SchemeChoice::All, &errors[..], None),
            ("all with hand-offs", SchemeChoice::All, &errors[..1], Some(&handoffs)),
            ("named", named, &errors[..2], None),
        ];
        for (label, choice, errors, handoffs) in comparisons {
            let mut digest = Digest::default();
            let done = compare(example.text, example.name, &[], &choice, errors, None, handoffs);
            match done {
                Ok(comparison) => {
                    let (compared, left) = (comparison.schemes.len(), comparison.left_out.len());
                    let points = comparison.points();
                    write_comparison(&comparison, &mut digest);
                    let digest = digest.text();
                    let value = format!("{compared}, left out {left}, points {points}, {digest}");
                    block.put(label, value);
                }
                Err(error) => {
                    block.put(label, format!("{error}: {}", error.help).replace('\n', " "));
                }
            }
        }
        blocks.push(block);
    }
    check(file, &blocks);
}

#[test]
fn comparisons_of_examples() {
    comparisons("compared.txt", 0);
}

#[test]
fn comparisons_of_other_examples() {
    comparisons("compared-others.txt", 2);
}

/// The line with fault number `which`; `None` if it has no key.
fn faulty(line: &str, which: usize) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    Some(match which {
        0 => format!("{key}= [] "),
        1 => format!("{key}= -7"),
        2 => format!("{key}= \"nothing that it knows\""),
        3 => format!("x{line}"),
        4 => format!("{line}\n{line}"),
        5 => String::new(),
        6 => format!("{key}= 99999999999"),
        7 => format!("{key}= {{ zzz = 1 }}"),
        8 => format!("{key}= \"7.5\""),
        9 => value.replace('"', "").trim().to_owned(),
        10 => format!("{key}= \"-3ms\""),
        _ => format!("{key}= 0.123456789"),
    })
}

/// Errors by code, and a digest of their messages.
#[derive(Default)]
struct Faults {
    codes: BTreeMap<String, u64>,
    accepted: u64,
    digest: Digest,
}

impl Faults {
    fn note<T>(&mut self, text: &str, read: Result<T, lasthop_scenario::Error>) {
        match read {
            Ok(_) => self.accepted += 1,
            Err(error) => {
                *self.codes.entry(error.code.to_string()).or_default() += 1;
                let position = error.at.line_column(text);
                let _ = writeln!(self.digest, "{position:?} {} {error}: {}", error.key, error.help);
                let _ = writeln!(self.digest, "{:?}", *error);
            }
        }
    }

    fn block(self, name: &str) -> Block {
        let mut block = Block::new(name);
        block.put("accepted", self.accepted);
        for (code, count) in self.codes {
            block.put(&code, count);
        }
        block.put("digest of messages", self.digest.text());
        block
    }
}

#[test]
fn faults_in_examples() {
    let mut blocks = Vec::new();
    for example in examples() {
        let mut faults = Faults::default();
        let lines: Vec<&str> = example.text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            for which in 0..12 {
                let Some(line) = faulty(line, which) else { continue };
                let mut lines = lines.clone();
                lines[i] = &line;
                let text = lines.join("\n");
                faults.note(&text, LivePath::of_scenario(&text, example.name, &[]));
            }
        }
        blocks.push(faults.block(example.name));
    }
    check("faults.txt", &blocks);
}

/// Options of netem, alone and combined, valid and invalid.
#[test]
fn lines_of_netem() {
    let options = [
        "delay 10ms",
        "delay 20ms 5ms",
        "delay 20ms 5ms 25%",
        "latency 3000",
        "delay 2s",
        "delay 1001s",
        "delay 7 msec",
        "delay 4usecs 1ns",
        "loss 1%",
        "loss random 2% 30%",
        "loss gemodel 1% 20% 80% 3%",
        "loss gemodel 2%",
        "loss state 1%",
        "loss 101%",
        "loss",
        "corrupt 0.1% 5%",
        "corrupt x",
        "duplicate 3% 10%",
        "reorder 25% 50% gap 5",
        "reorder 20%",
        "gap 4",
        "gap x",
        "distribution normal",
        "distribution pareto",
        "distribution none",
        "limit 40",
        "limit 0",
        "rate 2mbit",
        "rate 100kbps 18",
        "rate 1gibit 10001",
        "rate 3mibps 20 48",
        "rate 5kibit",
        "rate 7x",
        "rate 500",
        "seed 7",
        "slot 1ms",
        "ecn",
        "nothing",
        "del 9ms",
        "d 9ms",
        "",
        "tc qdisc add dev x root netem delay 9ms",
    ];
    let mut faults = Faults::default();
    let with = ["", " loss 3%", " delay 10ms 2ms", " reorder 10%", " rate 1mbit"];
    for line in options.iter().flat_map(|one| with.map(|other| format!("{one}{other}"))) {
        let mut draft = Draft::lossy();
        draft.wire.retain(|line| !line.contains("delay") && !line.contains("queue"));
        if line.contains("rate") {
            draft.wire.retain(|line| !line.contains("rate"));
        }
        let text = draft.with(At::Wire, &format!("link.netem = \"{line}\"")).text();
        let read = parse(&text, "netem", &[]);
        if let Ok((plan, warnings)) = &read {
            let _ = write!(faults.digest, "{:?} {warnings:?}", plan.cells[0].scenario.path);
        }
        faults.note(&text, read);
    }
    check("netem.txt", &[faults.block("link.netem")]);
}

/// Schemes of a file, with values of every form.
#[test]
fn schemes_of_a_file() {
    let own = "[schemes]\n\
        eager = { change = [\"base station\"], what = \"snoop\", set = { agent = \"snoop\", dupacks = 1 } }\n\
        big = { change = [\"receiver\"], set = { receiver.recv-buffer = \"256KiB\", receiver.sack = true } }\n\
        bad = { change = [\"link\", \"router\"], run = \"station\", set = { errors = { model = \"packet-loss\", \
        loss = 0.02, on = [\"data\", \"ack\"] } } }\n\
        none = { set = { nothing = [1, 2.5, \"x\", [true]] } }\n\
        slow = { change = [\"gateway\"], set = { return.rate = \"9600bit\", sender.mss = 536 } }\n";
    let mut blocks = Vec::new();
    for name in ["west97-lan", "slow-return", "wisp", "quickstart"] {
        let text = format!("{}\n{own}", lasthop_scenario::example(name).expect("it is there").text);
        let mut block = Block::new(name);
        let mut digest = Digest::default();
        match schemes_of(&text) {
            Ok(schemes) => {
                for scheme in &schemes {
                    let _ = write!(digest, "{scheme:?}");
                    for (key, value) in scheme.settings() {
                        let _ = write!(digest, "{key} {value} {:?}", scheme.written(key));
                    }
                }
                block.put("schemes", schemes.len());
            }
            Err(error) => block.put("error", format!("{error}: {}", error.help).replace('\n', " ")),
        }
        let named =
            SchemeChoice::Named(vec!["eager".to_owned(), "big".to_owned(), "bad".to_owned()]);
        for (choice, baseline) in
            [(SchemeChoice::Own, None), (SchemeChoice::All, Some("eager")), (named, Some("big"))]
        {
            match compare(&text, name, &[], &choice, &[], baseline, None) {
                Ok(comparison) => write_comparison(&comparison, &mut digest),
                Err(error) => {
                    let _ = write!(digest, "{error} {}", error.help);
                }
            }
        }
        block.put("digest", digest.text());
        blocks.push(block);
    }
    check("own-schemes.txt", &blocks);
}

#[test]
fn arguments_of_examples() {
    let arguments = [
        "path.1.link.delay=7ms",
        "path.1.link.rate=3mbit",
        "path.2.radio.rate=1mbit",
        "seed=9",
        "runs=3",
        "host.*.mss=700",
        "transfer.bytes=5kB",
        "transfer.1.bytes=unlimited",
        "path.9.link.rate=1mbit",
        "nothing=1",
        "host.nobody.mss=3",
        "path.1=3",
        "errors=none",
        "path.2.errors.mean=9KiB",
        "agent=snoop",
        "tcp=sack,reno",
        "horizon=3s,5s",
        "path.1.link.queue=3p,9p",
        "seed=1..4",
        "runs=1..9..2",
        "=",
        "a=b=c",
        "path.radio.rate=1mbit",
        "radio.rate=1mbit",
        "link.delay=1ms,2ms,3ms",
        "horizon=",
        "tcp=",
        "mss=0",
    ];
    let mut blocks = Vec::new();
    for name in ["west97-lan", "west97-wan", "handoff-wavelan", "web", "quickstart", "energy-today"]
    {
        let example = lasthop_scenario::example(name).expect("an example");
        let mut faults = Faults::default();
        for argument in arguments {
            for given in [Argument::Set(argument.to_owned()), Argument::Vary(argument.to_owned())] {
                let read = parse(example.text, name, core::slice::from_ref(&given));
                if let Ok((plan, warnings)) = &read {
                    let cells = plan.cells.len();
                    let _ = write!(faults.digest, "{:?} {cells} {warnings:?}", plan.axes);
                    for cell in plan.cells.iter().take(3) {
                        let _ = write!(faults.digest, "{:?}", cell.scenario);
                    }
                }
                faults.note(given.text(), read);
            }
        }
        blocks.push(faults.block(name));
    }
    check("arguments.txt", &blocks);
}

fn is_accepted(is_tunnel: bool, text: &str) -> bool {
    if is_tunnel { parse_tunnel(text).is_ok() } else { parse_station(text).is_ok() }
}

#[test]
fn files_of_stations_and_tunnels() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("an example");
    // Commented keys and tables are enabled as well.
    let without_marks = |text: String| -> String {
        let bare = |line: &str| match line.strip_prefix("# ") {
            Some(key) if key.starts_with('[') || key.contains(" = ") => key.to_owned(),
            _ => line.to_owned(),
        };
        text.lines().map(|line| bare(line) + "\n").collect()
    };
    let station = without_marks(read("station.example.toml"));
    let mut blocks = Vec::new();
    for (name, text) in [
        ("station.example.toml", read("station.example.toml")),
        ("station.example.toml without marks", station),
        ("link.example.toml", read("link.example.toml")),
    ] {
        let mut faults = Faults::default();
        let is_tunnel = name.contains("link.");
        let lines: Vec<&str> = text.lines().collect();
        let mut note = |text: &str| {
            if is_tunnel {
                let read = parse_tunnel(text);
                if let Ok(file) = &read {
                    let _ = write!(faults.digest, "{file:?}");
                }
                faults.note(text, read);
            } else {
                let read = parse_station(text);
                if let Ok((file, warnings)) = &read {
                    let _ = write!(faults.digest, "{file:?} {warnings:?}");
                }
                faults.note(text, read);
            }
        };
        note(&text);
        assert!(is_accepted(is_tunnel, &text), "{name}");
        let part = if is_tunnel { "tunnel" } else { "station" };
        let part = PARTS.iter().find(|known| known.name == part).expect("a part");
        let mut all = Vec::new();
        settings(&part.keys, "", &mut all);
        for line in all.iter().flatten() {
            note(&format!("{line}\n{text}"));
        }
        for (i, line) in lines.iter().enumerate() {
            for which in 0..12 {
                let Some(line) = faulty(line, which) else { continue };
                let mut lines = lines.clone();
                lines[i] = &line;
                note(&lines.join("\n"));
            }
        }
        blocks.push(faults.block(name));
    }
    let mut block = Block::new("schemas");
    for (name, file) in
        [("scenario", File::Scenario), ("station", File::Station), ("tunnel", File::Tunnel)]
    {
        let mut digest = Digest::default();
        let _ = write!(digest, "{}", json_schema(file));
        block.put(name, digest.text());
    }
    blocks.push(block);
    check("live-files.txt", &blocks);
}
