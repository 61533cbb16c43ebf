//! Golden figures of the readers of files: each example, and each of its lines with a fault in it.

use std::collections::BTreeMap;
use std::fmt::Write;

use lasthop_scenario::{
    Argument, Comparison, Diagnostic, Grid, LivePath, PARTS, SchemeChoice, compare, parse,
    parse_station, parse_tunnel, schemes, schemes_of, sliders,
};

use super::cases::{At, Draft, settings};
use super::forms::{json, position};
use super::{Block, Digest, check, each, examples};

/// Maximum number of cells of a plan that are digested.
const CELLS: usize = 6;

fn positions(warnings: &[Diagnostic], text: &str) -> String {
    warnings.iter().map(|warning| position(warning, text) + "; ").collect()
}

#[test]
fn plans_of_examples() {
    let mut blocks = Vec::new();
    for example in examples() {
        let text = example.text;
        let mut block = Block::new(example.name);
        let (plan, warnings) = parse(text, example.name, &[]).expect("an example");
        block.put("cells", plan.cells.len());
        block.put("runs", plan.count());
        block.put("warnings", positions(&warnings, text));
        let mut digest = Digest::default();
        let _ = write!(digest, "{} {}", plan.name, json(&plan.axes));
        for (i, cell) in plan.cells.iter().enumerate().take(CELLS) {
            let _ = write!(digest, "{} {}", json(&cell.scenario), cell.title(&plan.axes));
            for run in cell.runs(i).take(2) {
                let _ = write!(digest, "{}", json(&run));
            }
        }
        block.put("digest of cells", digest.text());
        let mut digest = Digest::default();
        if let Ok((grid, warnings)) = Grid::parse(text, example.name, &[], None) {
            block.put("cells of the grid", grid.cells());
            let (axes, seeds, runs) = (json(&grid.axes()), grid.seeds(), grid.runs());
            let warnings = positions(&warnings, text);
            let _ = write!(digest, "{axes} {seeds} {runs} {} {warnings}", json(grid.first()));
            for i in [0, 1, grid.cells() / 2, grid.cells() - 1] {
                let cell = grid.cell(i.min(grid.cells() - 1)).expect("a cell of an example");
                let _ = write!(digest, "{}", json(&cell));
            }
        }
        block.put("digest of the grid", digest.text());
        let mut digest = Digest::default();
        match LivePath::of_scenario(text, example.name, &[]) {
            Ok((path, _)) => {
                for (i, stage) in path.stages().iter().enumerate() {
                    let lines = path.stage_lines(i);
                    let _ = write!(digest, "{} {}", json(stage), json(&lines));
                    for key in lines.iter().filter_map(|line| line.split_once(" = ")) {
                        let key = format!("path.{}.{}", i + 1, key.0);
                        let value = path.get(&key).expect("a key of the path");
                        let _ = write!(digest, "{}", value.unwrap_or_default());
                        let set = format!("{key}=3");
                        let _ = match path.set(core::slice::from_ref(&set)) {
                            Ok((other, settings, warnings)) => {
                                let back = json(&other.changes_to(&path));
                                let warnings = positions(&warnings, &set);
                                write!(digest, "{} {warnings} {back}", json(&settings))
                            }
                            Err(error) => write!(digest, "{}", position(&error, &set)),
                        };
                    }
                }
            }
            Err(error) => {
                let _ = write!(digest, "{}", position(&error, text));
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
        let _ = write!(digest, "{}", json(&all));
        block.put("digest", digest.text());
        blocks.push(block);
    }
    check("sliders.txt", &blocks);
}

fn write_comparison(comparison: &Comparison, text: &str, digest: &mut Digest) {
    let Comparison { plan, schemes, baseline, left_out, warnings } = comparison;
    let (axes, warnings) = (json(&plan.axes), positions(warnings, text));
    let _ = write!(digest, "{} {axes} {baseline} {} {warnings}", plan.name, json(left_out));
    for scheme in schemes {
        let _ = write!(digest, "{}", json(scheme));
        for (key, value) in scheme.settings() {
            let written = scheme.written(key).unwrap_or_default();
            let _ = write!(digest, "{key} {value} {written}");
        }
    }
    for cell in &plan.cells {
        let _ = write!(digest, "{} {}", json(&cell.scenario), cell.title(&plan.axes));
    }
}

/// A block for each scheme, over every second example, and one for each example with schemes of its own.
#[test]
fn comparisons_of_examples() {
    let every_second: Vec<_> = examples().into_iter().step_by(2).collect();
    let compared = |example: &lasthop_scenario::Example, choice: &SchemeChoice, label: &str| {
        let handoffs = "every=7s,gap=80ms".parse().expect("hand-offs");
        let errors = match label {
            "errors" => ["1%".to_owned(), "none".to_owned(), "0.05".to_owned()].to_vec(),
            _ => Vec::new(),
        };
        let handoffs = (label == "hand-offs").then_some(&handoffs);
        let (text, name) = (example.text, example.name);
        match compare(text, name, &[], choice, &errors, None, handoffs) {
            Ok(comparison) => {
                let mut digest = Digest::default();
                write_comparison(&comparison, text, &mut digest);
                let (schemes, points) = (comparison.schemes.len(), comparison.points());
                format!("{schemes} schemes, {points} points, {}", digest.text())
            }
            Err(error) => position(&error, text),
        }
    };
    let mut blocks = each(&schemes(), |scheme| {
        let mut block = Block::new(&scheme.name);
        let named = SchemeChoice::Named(vec!["as-is".to_owned(), scheme.name.clone()]);
        for example in &every_second {
            for label in ["plain", "errors", "hand-offs"] {
                let name = format!("{} {label}", example.name);
                block.put(&name, compared(example, &named, label));
            }
        }
        block
    });
    blocks.extend(each(&every_second, |example| {
        let mut block = Block::new(&format!("own schemes of {}", example.name));
        block.put("compared", compared(example, &SchemeChoice::Own, "plain"));
        block
    }));
    check("compared.txt", &blocks);
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
                let _ = writeln!(self.digest, "{}", position(&error, text));
            }
        }
    }

    fn block(self, name: &str) -> Block {
        let mut block = Block::new(name);
        block.put("accepted", self.accepted);
        for (code, count) in self.codes {
            block.put(&code, count);
        }
        block.put("digest of positions", self.digest.text());
        block
    }
}

#[test]
fn faults_in_examples() {
    let blocks = each(&examples(), |example| {
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
        faults.block(example.name)
    });
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
            let path = json(&plan.cells[0].scenario.path);
            let _ = write!(faults.digest, "{path} {}", positions(warnings, &text));
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
                // Those of the program are compared in `compared.txt`.
                let own =
                    schemes.iter().filter(|scheme| own.contains(&format!("{} = {{", scheme.name)));
                for scheme in own {
                    let _ = write!(digest, "{}", json(scheme));
                    for (key, value) in scheme.settings() {
                        let written = scheme.written(key).unwrap_or_default();
                        let _ = write!(digest, "{key} {value} {written}");
                    }
                }
            }
            Err(error) => block.put("error", position(&error, &text)),
        }
        let named =
            SchemeChoice::Named(vec!["eager".to_owned(), "big".to_owned(), "bad".to_owned()]);
        for (choice, baseline) in [(SchemeChoice::Own, None), (named, Some("big"))] {
            match compare(&text, name, &[], &choice, &[], baseline, None) {
                Ok(comparison) => write_comparison(&comparison, &text, &mut digest),
                Err(error) => {
                    let _ = write!(digest, "{}", position(&error, &text));
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
                    let (axes, cells) = (json(&plan.axes), plan.cells.len());
                    let warnings = positions(warnings, given.text());
                    let _ = write!(faults.digest, "{axes} {cells} {warnings}");
                    for cell in plan.cells.iter().take(3) {
                        let _ = write!(faults.digest, "{}", json(&cell.scenario));
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
                    let (tun, listen, window) = (&file.tun, file.listen, file.window);
                    let (queue, addresses) = (file.queue, json(&file.addresses));
                    let _ = write!(faults.digest, "{tun} {addresses} {listen} {window} {queue}");
                }
                faults.note(text, read);
            } else {
                let read = parse_station(text);
                if let Ok((file, warnings)) = &read {
                    let (left, right, seed) =
                        (&file.settings.left, &file.settings.right, file.settings.seed);
                    let (stages, warnings) = (json(&file.path.stages()), positions(warnings, text));
                    let _ = write!(faults.digest, "{left} {right} {seed} {stages} {warnings}");
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
    check("live-files.txt", &blocks);
}
