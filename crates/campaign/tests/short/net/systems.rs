//! Golden figures of each system of the registries, and of each key.

use lasthop_proto::tcp::presets::PRESETS;
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::{agent, channel, link, mac, queue};
use lasthop_scenario::keys::{Listed, list};
use lasthop_scenario::{PARTS, keys_of_hosts, parse};

use super::cases::{At, Draft, Size, any_rate, belongs_to_a_system, vary};
use super::run_figures::RunFigures;
use super::{Block, check, each, examples};

const SIZE: Size = Size { single: 4_000, drawn: 12_000, draws: 12 };

fn part(name: &str) -> &'static [Listed] {
    &PARTS.iter().find(|part| part.name == name).expect("a part").keys
}

/// Runs all drafts, each for at most `most` events.
fn runs(name: &str, drafts: &[Draft], most: u64) -> Block {
    let mut figures = RunFigures::default();
    for (draft, seed) in drafts.iter().zip(1..) {
        match draft.scenario() {
            Ok(scenario) => figures.run(&scenario, seed, most),
            Err(why) => panic!("{name}: {why}\n{}", draft.text()),
        }
    }
    figures.block(name)
}

fn environments() -> [Draft; 3] {
    [Draft::lossy(), Draft::dead(), Draft::crowded()]
}

#[test]
fn senders() {
    let both = |draft: Draft, line: &str| draft.with(At::Fixed, line).with(At::Mobile, line);
    let word = |word: &str| {
        let line = format!("tcp = \"{word}\"");
        let mut drafts: Vec<Draft> = environments().map(|draft| both(draft, &line)).into();
        drafts.extend(environments().map(|draft| both(both(draft, "preset = \"linux\""), &line)));
        // As the sender of a base station, where one exists.
        for agent in ["split", "split-sack", "m-tcp"] {
            let draft = Draft::lossy().with(At::Between, &format!("agent = \"{agent}\""));
            let draft = draft.with(At::Between, &format!("split-tcp = \"{word}\""));
            drafts.extend(draft.scenario().is_ok().then_some(draft));
        }
        runs(&format!("tcp {word}"), &drafts, 20_000)
    };
    check("senders.txt", &each(TCPS, |tcp| word(tcp.key)));
}

#[test]
fn presets() {
    let preset = |name: &str| {
        let line = format!("preset = \"{name}\"");
        let drafts = environments().map(|d| d.with(At::Fixed, &line).with(At::Mobile, &line));
        runs(&format!("preset {name}"), &drafts, 20_000)
    };
    check("presets.txt", &PRESETS.map(|(name, _)| preset(name)));
}

/// A block for each key of a host with one sender.
fn host(file: &str, preset: &str, tcp: &str, at: At, draft: Draft) {
    let mut keys = keys_of_hosts();
    keys.retain(|listed| !matches!(listed.key.name, "preset" | "tcp"));
    let blocks = each(&keys, |listed| {
        let mut figures = RunFigures::default();
        let mut draft = draft.clone();
        for host in [At::Fixed, At::Mobile] {
            draft.set(host, &format!("preset = \"{preset}\""));
            draft.set(host, &format!("tcp = \"{tcp}\""));
        }
        let size = Size { single: 3_000, drawn: 3_000, draws: 0 };
        vary(&mut figures, &draft, core::slice::from_ref(listed), "", at, size);
        figures.block(&format!("host {}", listed.key.name))
    });
    check(file, &blocks);
}

#[test]
fn keys_of_hosts_with_newreno() {
    host("host-newreno.txt", "freebsd-2.1", "newreno", At::Fixed, Draft::lossy());
}

#[test]
fn keys_of_hosts_with_sack() {
    host("host-sack.txt", "freebsd-2.1", "sack", At::Mobile, Draft::lossy());
}

#[test]
fn keys_of_hosts_with_rack() {
    host("host-rack.txt", "linux", "rack", At::Fixed, Draft::dead());
}

#[test]
fn keys_of_hosts_together() {
    let hosts = [
        ("freebsd-2.1", "reno"),
        ("freebsd-2.1", "sack"),
        ("linux", "rack"),
        ("linux", "cubic"),
        ("linux", "bbr"),
    ];
    let blocks = each(&hosts, |(preset, tcp)| {
        let mut figures = RunFigures::default();
        for at in [At::Fixed, At::Mobile] {
            let mut draft = Draft::lossy();
            for host in [At::Fixed, At::Mobile] {
                draft.set(host, &format!("preset = \"{preset}\""));
                draft.set(host, &format!("tcp = \"{tcp}\""));
            }
            let mut keys = keys_of_hosts();
            keys.retain(|listed| !matches!(listed.key.name, "preset" | "tcp"));
            let size = Size { single: 0, drawn: 5_000, draws: 60 };
            vary(&mut figures, &draft, &keys, "", at, size);
        }
        figures.block(&format!("{preset} {tcp}"))
    });
    check("host-together.txt", &blocks);
}

/// The sender whose signals the agent serves.
fn partner(agent: &str) -> &'static str {
    match agent {
        "eln" | "eln-rxmt" => "eln",
        "snoop-smart" => "smart",
        _ => "reno",
    }
}

#[test]
fn agents() {
    let words: Vec<_> = agent::words().collect();
    let blocks = each(&words, |word| {
        let mut figures = RunFigures::default();
        for mut draft in [Draft::lossy(), Draft::dead()] {
            draft.set(At::Between, &format!("agent = \"{}\"", word.word));
            draft.set(At::Fixed, &format!("tcp = \"{}\"", partner(word.word)));
            let size = Size { single: 2_000, drawn: 6_000, draws: 6 };
            vary(&mut figures, &draft, &list(word.read), "", At::Between, size);
        }
        for mut draft in environments() {
            draft.set(At::Between, &format!("agent = \"{}\"", word.word));
            draft.set(At::Fixed, "preset = \"linux\"");
            draft.set(At::Mobile, "preset = \"linux\"");
            if let Ok(scenario) = draft.scenario() {
                figures.run(&scenario, 3, 6_000);
            }
        }
        // Its state moves to another base station.
        for state in ["move", "drop"] {
            let mut draft = Draft::moving().with(At::Rest, "[handoff]");
            draft.set(At::Rest, &format!("state = \"{state}\""));
            draft.set(At::Between, &format!("agent = \"{}\"", word.word));
            match draft.scenario() {
                Ok(scenario) => figures.run(&scenario, 3, 6_000),
                Err(why) => figures.refuse(&why),
            }
        }
        figures.block(&format!("agent {}", word.word))
    });
    check("agents.txt", &blocks);
}

#[test]
fn link_layers() {
    let words: Vec<_> = link::words().collect();
    let mut blocks = each(&words, |word| {
        let mut figures = RunFigures::default();
        for environment in environments() {
            let draft = environment.with(At::Radio, &format!("link-layer = \"{}\"", word.word));
            let keys = list(|k| (word.read)(k, None));
            vary(&mut figures, &draft, &keys, "", At::Radio, SIZE);
        }
        figures.block(&format!("link layer {}", word.word))
    });
    let macs = mac::all_words().map(|mac| mac.word);
    let pairs = macs.flat_map(|mac| words.iter().map(move |word| (mac, word.word)));
    blocks.extend(each(&pairs.collect::<Vec<_>>(), |(mac, layer)| {
        let mut figures = RunFigures::default();
        let mut draft = Draft::lossy().with(At::Radio, &format!("mac = \"{mac}\""));
        draft.set(At::Radio, &format!("link-layer = \"{layer}\""));
        match draft.scenario() {
            Ok(scenario) => figures.run(&scenario, 5, 4_000),
            Err(why) => figures.refuse(&why),
        }
        figures.block(&format!("link layer {layer}, medium access {mac}"))
    }));
    check("link-layers.txt", &blocks);
}

#[test]
fn medium_access() {
    let blocks = each(&mac::all_words().collect::<Vec<_>>(), |word| {
        let mut figures = RunFigures::default();
        for environment in [Draft::lossy(), Draft::crowded()] {
            let draft = environment.with(At::Radio, &format!("mac = \"{}\"", word.word));
            vary(&mut figures, &draft, &list(word.read), "", At::Radio, SIZE);
        }
        figures.block(&format!("medium access {}", word.word))
    });
    check("medium-access.txt", &blocks);
}

#[test]
fn queues() {
    let blocks = each(&queue::words().collect::<Vec<_>>(), |word| {
        let mut figures = RunFigures::default();
        for (environment, at, of) in
            [(Draft::crowded(), At::Wire, "link"), (Draft::lossy(), At::Radio, "radio")]
        {
            let mut draft = environment.with(at, &format!("{of}.discipline = \"{}\"", word.word));
            draft.set(At::Fixed, "preset = \"linux\"");
            let keys = list(|k| (word.read)(k, None));
            vary(&mut figures, &draft, &keys, &format!("{of}."), at, SIZE);
            let marked = draft.with(At::Fixed, "ecn = true").with(At::Mobile, "ecn = true");
            if let Ok(scenario) = marked.scenario() {
                figures.run(&scenario, 3, 6_000);
            }
        }
        figures.block(&format!("queue {}", word.word))
    });
    check("queues.txt", &blocks);
}

#[test]
fn channels() {
    let blocks = each(&channel::words().collect::<Vec<_>>(), |word| {
        let mut figures = RunFigures::default();
        for mac in ["", "mac = \"dcf\""] {
            let mut draft = Draft::crowded();
            if !mac.is_empty() {
                draft.set(At::Radio, mac);
            }
            draft.set(At::Radio, &format!("errors.model = \"{}\"", word.word));
            let keys = list(|k| (word.read)(k, any_rate()));
            // Required keys.
            let mut required = Vec::new();
            super::cases::settings(&keys, "errors.", &mut required);
            let mut whole = draft.clone();
            for lines in &required {
                if whole.scenario().is_ok() {
                    break;
                }
                whole.set(At::Radio, &lines[0]);
            }
            let draft = if whole.scenario().is_ok() { whole } else { draft };
            vary(&mut figures, &draft, &keys, "errors.", At::Radio, SIZE);
        }
        figures.block(&format!("channel {}", word.word))
    });
    check("channels.txt", &blocks);
}

/// A block for each key of some parts of the file.
fn keys(file: &str, parts: &[(&str, &str, At, Draft)]) {
    let mut blocks = Vec::new();
    for (name, before, at, draft) in parts {
        for listed in part(name).iter().filter(|listed| !belongs_to_a_system(listed)) {
            let mut figures = RunFigures::default();
            vary(&mut figures, draft, core::slice::from_ref(listed), before, *at, SIZE);
            if !figures.is_empty() {
                blocks.push(figures.block(&format!("{name} {}", listed.key.name)));
            }
        }
    }
    check(file, &blocks);
}

#[test]
fn keys_of_links() {
    keys("links.txt", &[("link", "link.", At::Wire, Draft::crowded())]);
}

#[test]
fn keys_of_radios_and_cross_traffic() {
    let cross = Draft { between: vec!["cross.loss = 0.01".to_owned()], ..Draft::crowded() };
    let radio = ("radio", "radio.", At::Radio, Draft::lossy());
    keys("radios.txt", &[radio, ("cross", "cross.", At::Between, cross)]);
}

#[test]
fn keys_of_hops() {
    let dcf = Draft::lossy().with(At::Radio, "mac = \"dcf\"");
    let layer = Draft::dead().with(At::Radio, "link-layer = \"ll\"");
    keys("hops.txt", &[("hop", "", At::Radio, dcf), ("hop", "", At::Radio, layer)]);
}

#[test]
fn keys_of_scenarios_and_transfers() {
    let moving = Draft::moving().with(At::Rest, "[handoff]");
    keys(
        "transfers.txt",
        &[
            ("scenario", "", At::Top, Draft::lossy()),
            ("transfer", "", At::Transfer, Draft::lossy()),
            ("handoff", "", At::Rest, moving.clone()),
        ],
    );
}

/// Schedules of moving hosts, with agents that signal to senders.
#[test]
fn moves() {
    let ways = [
        "every = \"700ms\"",
        "dwell = \"2s\"",
        "dwell = \"300ms\"",
        "table = \"0s west, 2s -, 3s north, 5s east\"",
        "every = \"2s\", cells = [\"north\", \"west\"]",
        "list = [{ cell = \"east\", from = \"0s\", until = \"3s\" }, { cell = \"west\", from = \"4s\" }]",
    ];
    let keys: Vec<Listed> = part("handoff").to_vec();
    let mut blocks = Vec::new();
    for agent in ["none", "ebsn", "snoop", "split", "eln-rxmt", "source-quench", "m-tcp", "ackp"] {
        let mut figures = RunFigures::default();
        for way in ways {
            let mut draft = Draft::moving().with(At::Rest, "[handoff]");
            draft.set(At::Top, &format!("visits = {{ {way} }}"));
            draft.set(At::Between, &format!("agent = \"{agent}\""));
            if draft.scenario().is_err() {
                figures.refuse(way);
                continue;
            }
            let size = Size { single: 0, drawn: 6_000, draws: 6 };
            vary(&mut figures, &draft, &keys, "", At::Rest, size);
        }
        if !figures.is_empty() {
            blocks.push(figures.block(&format!("moves, agent {agent}")));
        }
    }
    check("moves.txt", &blocks);
}

/// Each example in some of its combinations, with more events than the cases of single keys.
#[test]
fn runs_of_examples() {
    let blocks = each(&examples(), |example| {
        let (plan, _) = parse(example.text, example.name, &[]).expect("an example");
        let mut figures = RunFigures::default();
        let step = plan.cells.len().div_ceil(6);
        for cell in plan.cells.iter().step_by(step) {
            figures.run(&cell.scenario, 2, 12_000);
        }
        figures.block(example.name)
    });
    check("runs.txt", &blocks);
}
