//! Plans of scenario files.

use std::collections::BTreeSet;

use lasthop_proto::agent::{AckpMode, AgentConfig, Router, SnoopAgent};
use lasthop_proto::channel::{ErrorModel, Exponential};
use lasthop_proto::energy::PRESETS;
use lasthop_proto::link::header_compression::Recovery;
use lasthop_proto::link::{LineConfig, LinkLayerConfig, RadioConfig};
use lasthop_proto::mac::{DcfConfig, FamaConfig, MacConfig};
use lasthop_proto::queue::{Discipline, Limit, RedConfig};
use lasthop_proto::tcp::config::{AckpReaction, Clock, DelayedAck, Prediction, TcpConfig, Variant};
use lasthop_proto::units::{Bytes, Probability, Rate, Span};
use lasthop_scenario::{Argument, HostSide, Plan, RadioStage, StageKind, example, parse};

fn example_plan(name: &str, arguments: &[Argument]) -> Plan {
    let text = example(name).map(|example| example.text).unwrap_or_default();
    let (plan, warnings) =
        parse(text, name, arguments).unwrap_or_else(|e| panic!("{e}: {}", e.help));
    assert!(warnings.is_empty(), "{warnings:?}");
    plan
}

fn set(text: &str) -> Argument {
    Argument::Set(text.to_owned())
}

fn vary(text: &str) -> Argument {
    Argument::Vary(text.to_owned())
}

#[test]
fn the_west97_testbed_matches_the_paper() {
    let plan = example_plan("west97-slow", &[]);
    let scenario = &plan.cells[2].scenario;
    assert_eq!(plan.cells[2].labels, ["snoop+ackp"]);
    assert_eq!((scenario.runs, scenario.first_seed), (20, 1));
    assert_eq!(scenario.hosts[0].side, HostSide::Left);
    assert_eq!(scenario.hosts[1].side, HostSide::Right);
    let offered = TcpConfig { ackp: AckpReaction::Rearm, ..TcpConfig::freebsd_2_1() };
    assert_eq!(scenario.hosts[0].tcp, offered);
    assert_eq!(scenario.transfers[0].bytes, Some(Bytes(2_000_000)));
    let [ethernet, verdi, brake, wavelan] = scenario.path.as_slice() else {
        panic!("four stages");
    };
    let fast = Rate::from_bps(10_000_000);
    assert_eq!(
        ethernet.kind,
        StageKind::Link(LineConfig {
            rate_right: fast,
            rate_left: fast,
            delay: Span::micros(200),
            framing: 18,
            queue: Limit::Packets(50),
            discipline_right: Discipline::Fifo,
            discipline_left: Discipline::Fifo,
        })
    );
    assert!(matches!(
        verdi.kind,
        StageKind::Agent(AgentConfig::Snoop(SnoopAgent { ackp: Some(AckpMode::Full), .. }))
    ));
    assert!(matches!(
        brake.kind,
        StageKind::Link(LineConfig { rate_right: Some(r), rate_left: None, .. }) if r.bps() == 119_603
    ));
    let StageKind::Radio(RadioStage { radio, errors_right, errors_left, hop: None, .. }) =
        &wavelan.kind
    else {
        panic!("a radio");
    };
    assert_eq!(
        Some(radio),
        Rate::from_bps(2_000_000)
            .map(|rate| RadioConfig {
                rate,
                delay: Span::micros(100),
                overhead: Span::micros(650),
                half_duplex: true,
                queue: Limit::Packets(50),
                discipline_right: Discipline::Fifo,
                discipline_left: Discipline::Fifo,
            })
            .as_ref()
    );
    let model = ErrorModel::Exponential(Exponential { mean: Bytes(65_536) });
    assert!(
        [errors_right, errors_left].iter().all(|e| e.as_ref().is_some_and(|e| e.model == model))
    );
}

#[test]
fn errors_on_data_follow_the_direction_of_the_transfers() {
    let errors = |plan: &Plan, cell: usize| match &plan.cells[cell].scenario.path[3].kind {
        StageKind::Radio(radio) => (radio.errors_right.is_some(), radio.errors_left.is_some()),
        _ => panic!("a radio"),
    };
    let plan = example_plan("west97-wan", &[]);
    assert_eq!(plan.axes[0].labels, ["none", "64KiB"]);
    assert_eq!(errors(&plan, 0), (false, false));
    assert_eq!(errors(&plan, 1), (true, true));
    // The mobile host, on the right, sends.
    let text = example("west97-wan").unwrap().text;
    let on_data = text.replace(r#"on = ["data", "ack"]"#, r#"on = ["data"]"#);
    assert_eq!(errors(&parse(&on_data, "wan", &[]).unwrap().0, 1), (false, true));
}

#[test]
fn the_first_axis_changes_slowest() {
    let plan = example_plan("many-flows", &[]);
    let labels: Vec<String> = plan.cells.iter().map(|cell| cell.title(&plan.axes)).collect();
    assert_eq!(labels[0], "transfer.count=2 agent=none");
    assert_eq!(labels[1], "transfer.count=2 agent=snoop");
    assert_eq!(labels[8], "transfer.count=32 agent=snoop+ackp");
    assert_eq!(plan.cells[8].scenario.transfers[0].count, 32);
}

#[test]
fn arguments_override_the_scenario_file() {
    let plan = example_plan(
        "west97-lan",
        &[set("agent=snoop"), set("tcp=sack"), set("runs=3"), set("radio.overhead=1ms")],
    );
    // The axis of the file is gone: the agent has been decided.
    assert_eq!((plan.axes.len(), plan.cells.len(), plan.count()), (0, 1, 3));
    let scenario = &plan.cells[0].scenario;
    assert!(scenario.hosts.iter().all(|host| host.tcp.variant == Variant::Sack && host.tcp.sack));
    assert!(
        matches!(&scenario.path[2].kind, StageKind::Radio(r) if r.radio.overhead == Span::millis(1))
    );

    let plan = example_plan(
        "west97-lan",
        &[vary("path.verdi.agent=none,snoop"), vary("errors.mean=16KiB,32KiB")],
    );
    let axes: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
    assert_eq!(axes, ["path.verdi.agent", "errors.mean"]);
    assert_eq!(plan.cells.len(), 4);
}

#[test]
fn all_forms_of_a_key_mean_the_same() {
    let by = |key: &str| {
        example_plan("west97-lan", &[set(&format!("{key}=32KiB")), set("agent=none")]).cells
    };
    let plain = by("errors.mean");
    assert_eq!(plain, by("path.3.errors.mean"));
    assert_eq!(plain, by("path.radio.errors.mean"));
    assert_eq!(plain, by("path.wavelan.errors.mean"));
    assert_eq!(plain, by("wavelan.errors.mean"));
    assert_eq!(plain, by("radio.errors.mean"));
    let rate = |key: &str| example_plan("quickstart", &[set(&format!("{key}=1mbit"))]).cells;
    assert_eq!(rate("radio.rate"), rate("path.3.radio.rate"));
    assert_eq!(rate("radio.rate"), rate("path.radio.rate"));
    let host = |key: &str| example_plan("quickstart", &[set(&format!("{key}=1000"))]).cells;
    assert_eq!(host("mss"), host("host.*.mss"));
}

#[test]
fn a_point_of_an_axis_can_set_several_keys() {
    let text = example("quickstart").map(|e| e.text).unwrap_or_default().replace(
        "agent = [\"none\", \"snoop\"]",
        "place = [\n { label = \"near\", link.delay = \"1ms\" },\n \
         { label = \"far\", \"link.delay\" = \"50ms\", host.server.initial-window = 10 },\n]",
    );
    let (plan, _) = parse(&text, "places", &[]).unwrap();
    assert_eq!(plan.axes[0].labels, ["near", "far"]);
    let far = &plan.cells[1].scenario;
    assert_eq!(far.hosts[0].tcp.initial_window, 10);
    assert!(matches!(&far.path[0].kind, StageKind::Link(line) if line.delay == Span::millis(50)));
}

#[test]
fn sides_follow_from_names_and_transfers() {
    let path = "[[path]]\nradio = { rate = \"1mbit\" }\n";
    let text = format!(
        "transfer = [\n {{ from = \"c\", to = \"b\", bytes = 1 }},\n {{ from = \"b\", to = \"a\", bytes = 1 }},\n]\n\
         [host.a]\n[host.b]\n[host.c]\n{path}"
    );
    let (plan, _) = parse(&text, "sides", &[]).unwrap();
    let sides: Vec<HostSide> = plan.cells[0].scenario.hosts.iter().map(|host| host.side).collect();
    assert_eq!(sides, [HostSide::Left, HostSide::Right, HostSide::Left]);

    let text = format!(
        "transfer = {{ from = \"mobile2\", to = \"x\", bytes = 1 }}\n[host.mobile2]\n[host.x]\n{path}"
    );
    let (plan, _) = parse(&text, "sides", &[]).unwrap();
    assert_eq!(plan.cells[0].scenario.hosts[0].side, HostSide::Right);
    assert_eq!(plan.cells[0].scenario.hosts[1].side, HostSide::Left);
}

#[test]
fn ticks_and_delayed_acks_agree() {
    let tcp = |arguments: &[Argument]| {
        let mut all = vec![set("agent=none")];
        all.extend_from_slice(arguments);
        example_plan("west97-lan", &all).cells[0].scenario.hosts[0].tcp.clone()
    };
    let slow = tcp(&[set("ticks={slow=\"100ms\",fast=\"50ms\"}")]);
    assert_eq!(slow.clock, Clock::Ticks { slow: Span::millis(100), fast: Span::millis(50) });
    assert_eq!(slow.delayed_ack.timeout, Span::millis(50));
    let acks = tcp(&[set("delayed-ack={timeout=\"500ms\"}")]);
    assert_eq!(acks.clock, Clock::Ticks { slow: Span::millis(500), fast: Span::millis(500) });
    assert_eq!(tcp(&[set("delayed-ack=off")]).delayed_ack.every, 1);
    let by_time = tcp(&[set("delayed-ack={every=\"none\",timeout=\"500ms\"}")]);
    assert_eq!(by_time.delayed_ack.every, DelayedAck::BY_TIME);
    assert_eq!(tcp(&[set("prediction=before-paws")]).prediction, Prediction::BeforePaws);
    assert_eq!(tcp(&[]).prediction, Prediction::Off);
    let fine = tcp(&[set("granularity=10ms")]);
    assert_eq!(fine.clock, Clock::Fine { granularity: Span::millis(10) });
}

#[test]
fn options_without_effect_cause_warnings() {
    let text = example("quickstart").map(|e| e.text).unwrap_or_default();
    let warnings = |arguments: &[Argument]| {
        let (_, warnings) = parse(text, "quickstart", arguments).unwrap();
        warnings.into_iter().map(|w| (w.key, w.help)).collect::<Vec<_>>()
    };
    let ackp = warnings(&[set("agent=snoop+ackp")]);
    assert_eq!(ackp.len(), 1);
    assert!(ackp[0].1.contains("ackp = \"rearm\"") && ackp[0].1.contains("[host.server]"));
    assert!(warnings(&[set("agent=snoop+ackp"), set("host.server.ackp=rearm")]).is_empty());
    // An option that one cell of the sweep uses is no slip; one that no cell uses is.
    assert!(warnings(&[set("agent.dupacks=2")]).is_empty());
    assert_eq!(warnings(&[set("dupacks=2"), set("agent=none")]).len(), 1);
    assert_eq!(warnings(&[set("host.server.tcp=sack")]).len(), 1);
    assert!(warnings(&[set("tcp=sack")]).is_empty());
    assert_eq!(warnings(&[set("host.laptop.recv-buffer=1MiB")]).len(), 1);
    assert_eq!(warnings(&[set("agent=seq-cache")]).len(), 1);
    assert!(warnings(&[set("agent=seq-cache"), set("eln=checksum")]).is_empty());
    for (agent, option) in [("ebsn", "ebsn"), ("source-quench", "quench")] {
        let reported = warnings(&[set(&format!("agent={agent}"))]);
        assert!(
            reported.len() == 1 && reported[0].1.contains(&format!("{option} = true")),
            "{reported:?}"
        );
        let heeded = [set(&format!("agent={agent}")), set(&format!("host.server.{option}=true"))];
        assert!(warnings(&heeded).is_empty());
    }
    assert!(warnings(&[set("agent=good-packet-size"), set("packet-size=576B")]).is_empty());
    assert_eq!(warnings(&[set("agent=good-packet-size"), set("spacing=1s")]).len(), 1);
    assert_eq!(warnings(&[set("agent=snoop"), set("packet-size=576B")]).len(), 1);
    // Each half of a split connection has its own peer.
    assert!(warnings(&[set("agent=split")]).is_empty());
    let old = set("split-preset=freebsd-2.1");
    assert!(warnings(&[set("agent=split"), old.clone()]).is_empty());
    assert_eq!(warnings(&[set("agent=split"), old.clone(), set("buffer=1MiB")]).len(), 1);
    assert!(warnings(&[set("agent=split"), set("buffer=1MiB")]).is_empty());
    assert_eq!(warnings(&[set("agent=split"), old.clone(), set("host.server.tcp=sack")]).len(), 1);
    assert!(warnings(&[set("agent=split"), set("host.server.tcp=sack")]).is_empty());
    assert_eq!(warnings(&[set("agent=split"), set("dupacks=2")]).len(), 1);
    assert_eq!(warnings(&[set("agent=snoop"), set("buffer=64KiB")]).len(), 1);
    let deaf = warnings(&[set("agent=split-sack"), old.clone()]);
    assert_eq!(deaf.len(), 1);
    assert!(deaf[0].1.contains("[host.laptop]"), "{deaf:?}");
    assert!(warnings(&[set("agent=split-sack"), old, set("host.laptop.sack=true")]).is_empty());
    assert_eq!(warnings(&[set("transfer.start=7200s"), set("agent=none")]).len(), 1);
    let back = [set("transfer.from=laptop"), set("transfer.to=server"), set("agent=snoop")];
    assert!(warnings(&back).iter().any(|(key, _)| key == "path.2.agent"));
    let back = [set("transfer.from=laptop"), set("transfer.to=server"), set("agent=split")];
    assert!(warnings(&back).is_empty());
    let nacked = |tcp: &str| {
        let nacks = [set("agent=snoop-nack"), set("host.laptop.nack=true")];
        let back = [set("transfer.from=laptop"), set("transfer.to=server")];
        let tcp = [set("sack=true"), set(&format!("host.laptop.tcp={tcp}"))];
        warnings(&[&nacks[..], &back, &tcp].concat())
    };
    assert!(nacked("sack").is_empty(), "{:?}", nacked("sack"));
    assert!(nacked("cubic")[0].1.contains("tcp = \"sack\""));
}

#[test]
fn run_keys_depend_only_on_settings_and_seed() {
    let keys = |plan: &Plan| plan.runs().map(|run| run.key).collect::<Vec<_>>();
    let plan = example_plan("west97-lan", &[]);
    let all = keys(&plan);
    assert_eq!(all.len(), 60);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 60);
    assert_eq!(all, keys(&example_plan("west97-lan", &[])));
    // More runs keep the results that are there.
    let more = keys(&example_plan("west97-lan", &[set("runs=30")]));
    assert_eq!(all[..20], more[..20]);
    // So does another first seed, where the seeds overlap.
    let later = keys(&example_plan("west97-lan", &[set("seed=11")]));
    assert_eq!(all[10..20], later[..10]);
    let other = keys(&example_plan("west97-lan", &[set("link.delay=0.3ms")]));
    assert!(all.iter().all(|key| !other.contains(key)));
}

#[test]
fn a_discipline_holds_in_both_directions_or_in_one() {
    let disciplines = |keys: &str| {
        let text = format!(
            "transfer = {{ from = \"fixed\", to = \"mobile\", bytes = \"1MB\" }}\n[host.fixed]\n[host.mobile]\n\
             [[path]]\nlink = {{ rate = \"1mbit\"{keys} }}\n[[path]]\nradio = {{ rate = \"1mbit\"{keys} }}\n"
        );
        let (plan, _) = parse(&text, "test", &[]).unwrap_or_else(|e| panic!("{e}: {}", e.help));
        match plan.cells[0].scenario.path.as_slice() {
            [link, radio] => match (&link.kind, &radio.kind) {
                (StageKind::Link(l), StageKind::Radio(RadioStage { radio: r, .. })) => {
                    let link = (l.discipline_right, l.discipline_left);
                    assert_eq!(link, (r.discipline_right, r.discipline_left));
                    link
                }
                other => panic!("{other:?}"),
            },
            _ => panic!("two stages"),
        }
    };
    let (fifo, filter) = (Discipline::Fifo, Discipline::AckFilter);
    assert_eq!(disciplines(""), (fifo, fifo));
    assert_eq!(disciplines(", discipline = \"ack-filter\""), (filter, filter));
    assert_eq!(disciplines(", discipline-left = \"ack-filter\""), (fifo, filter));
    let both = ", discipline-right = \"acks-first\", discipline-left = \"ack-filter+acks-first\"";
    assert_eq!(disciplines(both), (Discipline::AcksFirst, Discipline::AckFilterAcksFirst));
    // Idle time is counted in packets of 500 bytes at the link's rate of 1 Mb/s.
    let usual = RedConfig { packet_time: Span::millis(4), ..RedConfig::FLOYD93 };
    assert_eq!(disciplines(", discipline-left = \"red\""), (fifo, Discipline::Red(usual)));
    let more = ", discipline = \"red+acks-first\", red = { min = 2, max = 7.5, max-p = \"10%\", weight = 0.25, \
                typical = \"125B\", mark = false, gentle = true }";
    let red = RedConfig {
        min: 2.0,
        max: 7.5,
        max_p: 0.1,
        weight: 0.25,
        packet_time: Span::millis(1),
        mark: false,
        gentle: true,
    };
    assert_eq!(disciplines(more), (Discipline::RedAcksFirst(red), Discipline::RedAcksFirst(red)));
}

#[test]
fn options_of_an_absent_link_layer_cause_a_warning() {
    let text = |more: &str| {
        format!(
            "name = \"hop\"\ntransfer = {{ from = \"a\", to = \"b\", bytes = \"1MB\" }}\n[host.a]\n[host.b]\n[[path]]\n\
             radio = {{ rate = \"1mbit\" }}\n{more}"
        )
    };
    let read = |more: &str| parse(&text(more), "hop.toml", &[]);
    let hop = |plan: Plan| match &plan.cells[0].scenario.path[0].kind {
        StageKind::Radio(radio) => radio.hop.clone(),
        other => panic!("{other:?}"),
    };
    let (plain, _) = read("").unwrap();
    assert_eq!(hop(plain), None);
    let (plan, warnings) = read("link-layer = \"ll-sack\"\nll = { window = 8 }\n").unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let LinkLayerConfig::Ll(config) = hop(plan).unwrap().link else { panic!() };
    assert_eq!((config.window, config.selective), (8, true));
    let (_, warnings) = read("ll = { window = 8 }\n").unwrap();
    assert_eq!(warnings.len(), 1);
    let error = read("link-layer = \"tulpi\"\n").unwrap_err();
    assert!(error.help.contains("ll-sack"), "{}", error.help);
    assert!(read("link-layer = \"ll\"\nll = { window = 0 }\n").is_err());
}

#[test]
fn a_compressing_or_lossy_line_is_a_serial_stage() {
    let path = |more: &str| {
        let text = format!(
            "transfer = {{ from = \"a\", to = \"b\", bytes = \"1MB\" }}\n[host.a]\n[host.b]\n\
             [[path]]\nlink = {{ rate = \"1mbit\"{more} }}\n"
        );
        let (plan, _) = parse(&text, "x", &[]).unwrap();
        plan.cells[0].scenario.path[0].kind.clone()
    };
    for plain in ["", ", header-compression = \"none\"", ", frame-loss = 0, compression-slots = 3"]
    {
        assert!(matches!(path(plain), StageKind::Link(_)), "{plain}");
    }
    let StageKind::Serial(vj) = path(", header-compression = \"vj\"") else { panic!("serial") };
    let compression = vj.compression.unwrap();
    assert_eq!((compression.slots, compression.recovery), (16, Recovery::Retransmission));
    assert!(vj.loss_noticed && vj.frame_loss == Probability::ZERO);
    let StageKind::Serial(all) = path(
        ", header-compression = \"vj+feedback\", compression-slots = 256, frame-loss = \"2%\", \
         loss-noticed = false",
    ) else {
        panic!("serial")
    };
    let compression = all.compression.unwrap();
    assert_eq!((compression.slots, compression.recovery), (256, Recovery::Feedback));
    assert!(!all.loss_noticed && all.frame_loss.get() == 0.02);
    let StageKind::Serial(lossy) = path(", frame-loss = 0.5") else { panic!("serial") };
    assert_eq!(lossy.compression, None);
}

#[test]
fn contending_hosts_have_stations_of_their_own() {
    let plan = example_plan("contention", &[]);
    let macs: Vec<MacConfig> = plan
        .cells
        .iter()
        .map(|cell| {
            let radio = cell.scenario.path.last().map(|stage| &stage.kind);
            let Some(StageKind::Radio(RadioStage { hop: Some(hop), .. })) = radio else {
                // `ideal` and nothing else is a plain radio.
                return MacConfig::Ideal;
            };
            let phones: Vec<_> = cell.scenario.hosts[1..].iter().map(|host| host.addr).collect();
            assert_eq!(hop.mobiles, phones);
            hop.mac.clone()
        })
        .collect();
    let (fama, dcf) = (FamaConfig::default(), DcfConfig::default());
    assert_eq!(macs, [MacConfig::Ideal, MacConfig::FamaNcs(fama), MacConfig::Dcf(dcf)]);
}

#[test]
fn medium_access_has_options_of_its_own() {
    let text = example("quickstart").map(|example| example.text).unwrap_or_default();
    let hop = |arguments: &[&str]| {
        let arguments: Vec<Argument> = arguments.iter().map(|text| set(text)).collect();
        let (plan, warnings) = parse(text, "quickstart", &arguments).unwrap();
        let radio = plan.cells[0].scenario.path.iter().find_map(|stage| match &stage.kind {
            StageKind::Radio(radio) => radio.hop.clone(),
            _ => None,
        });
        let keys: Vec<String> = warnings.into_iter().map(|w| w.key).collect();
        (radio.map(|hop| hop.mac), keys)
    };
    let (mac, warned) = hop(&["mac=dcf", "dcf.rts-threshold=500B", "dcf.cw-min=15"]);
    let want = DcfConfig { rts_threshold: 500, cw_min: 15, ..DcfConfig::default() };
    assert_eq!((mac, warned), (Some(MacConfig::Dcf(want)), vec![]));
    let (mac, warned) = hop(&["mac=fama-ncs", "fama.acceleration=false", "fama.backoff=4"]);
    let want = FamaConfig { acceleration: false, backoff: 4, ..FamaConfig::default() };
    assert_eq!((mac, warned), (Some(MacConfig::FamaNcs(want)), vec![]));
    // An option without effect causes a warning.
    let (_, warned) = hop(&["mac=fama-ncs", "dcf.cw-min=15"]);
    assert_eq!(warned.len(), 1);
    assert!(warned[0].ends_with(".dcf"), "{warned:?}");
    let duplex = [set("mac=dcf"), set("radio.duplex=full")];
    let error = parse(text, "quickstart", &duplex).unwrap_err();
    assert!(error.message.contains("one channel"), "{error}");
}

#[test]
fn a_bare_number_is_text_only_in_arguments() {
    const ROUTER: &str = "path.1.cross.drop-data";
    let text = "transfer = { from = \"a\", to = \"b\", bytes = \"1kB\" }\n[host.a]\nside = \"left\"\n\
                [host.b]\n[[path]]\ncross = { drop-data = \"3\" }\n\
                [[path]]\nlink = { rate = \"9mbit\" }\n";
    let dropped = |arguments: &[Argument]| {
        let (plan, _) = parse(text, "drops", arguments).unwrap();
        let router = |stage: &StageKind| match stage {
            StageKind::Cross(cross) => (1..100).filter(|n| cross.drop_data.has(*n)).collect(),
            _ => Vec::new(),
        };
        plan.cells.iter().map(|c| router(&c.scenario.path[0].kind)).collect::<Vec<Vec<u64>>>()
    };
    assert_eq!(dropped(&[set(&format!("{ROUTER}=31"))]), [[31]]);
    assert_eq!(dropped(&[set(&format!("{ROUTER}=31-32"))]), [[31, 32]]);
    assert_eq!(dropped(&[vary(&format!("{ROUTER}=31,7"))]), [[31], [7]]);
    let error = parse(&text.replace("\"3\"", "3"), "drops", &[]).unwrap_err();
    assert!(error.to_string().contains("this is an integer"), "{error}");
}

#[test]
fn a_set_key_overrides_labelled_points() {
    let cells = |arguments: &[Argument]| example_plan("west97-wan", arguments).cells.len();
    assert_eq!(cells(&[]), 2 * cells(&[set("errors=none")]), "the axis of errors is dropped");
    // A point that sets more keeps the rest.
    let plan = example_plan("satellite-dialup", &[set("agent=none")]);
    assert_eq!(plan.cells.len(), 3);
    let agents = plan.cells.iter().filter(|cell| {
        let reconstructs = |stage: &lasthop_scenario::Stage| {
            matches!(&stage.kind, StageKind::Agent(agent) if *agent != AgentConfig::None(Router))
        };
        cell.scenario.path.iter().any(reconstructs)
    });
    assert_eq!(agents.count(), 0);
}

#[test]
fn points_of_a_labelled_axis_are_chosen_by_their_labels() {
    let hops = |arguments: &[Argument]| {
        let plan = example_plan("energy-hops", arguments);
        plan.cells.into_iter().map(|cell| cell.labels.concat()).collect::<Vec<_>>()
    };
    assert_eq!(hops(&[]), ["1", "2", "3"]);
    assert_eq!(hops(&[set("hops=2")]), ["2"]);
    assert_eq!(hops(&[vary("hops=3,1")]), ["1", "3"]);
    let text = example("energy-hops").map(|e| e.text).unwrap_or_default();
    let error = parse(text, "energy-hops", &[set("hops=4")]).unwrap_err();
    assert!(error.message.contains("no point `4`"), "{error}");
}

#[test]
fn an_axis_called_like_a_stage_is_chosen_by_its_labels() {
    let text = example("daedalus-lan").map(|e| e.text).unwrap_or_default();
    let labels = |arguments: &[Argument]| {
        let (plan, _) = parse(text, "daedalus-lan", arguments).unwrap();
        plan.cells.into_iter().map(|cell| cell.labels.concat()).collect::<Vec<_>>()
    };
    assert_eq!(labels(&[set("base=none")]), ["none"]);
    assert_eq!(labels(&[vary("base=snoop,LL")]), ["LL", "snoop"]);
    // Only a whole stage would be valid there instead.
    let stage = "base={ name = \"base\", agent = \"snoop\" }";
    assert!(parse(text, "daedalus-lan", &[set(stage)]).is_ok());
}

#[test]
fn a_battery_combines_a_preset_with_file_overrides() {
    let text = "horizon = \"1s\"\ntransfer = { from = \"fixed\", to = \"mobile\", bytes = \"unlimited\" }\n\
                [host.fixed]\nbattery = { capacity = \"2Ah\", supply = \"5V\", base = \"6W\", doze = \"0W\", \
                idle = \"180mA\", receive = \"180mA\", transmit = \"1.4W\", segment = \"12mJ\" }\n\
                [host.mobile]\nbattery = \"sens-800\"\n[[path]]\nradio = { rate = \"1mbit\" }\n";
    let scenario = |arguments: &[Argument]| {
        let (plan, warnings) = parse(text, "test", arguments).unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        plan.cells.into_iter().map(|cell| cell.scenario).collect::<Vec<_>>()
    };
    let of = |scenario: &lasthop_scenario::Scenario, host: usize| {
        scenario.hosts[host].battery.clone().expect("a battery")
    };
    let plain = &scenario(&[])[0];
    let own = of(plain, 0);
    assert_eq!((own.name.as_str(), own.capacity.watt_hours()), ("custom", 10.0));
    assert!((own.radio.receive.get() - 0.9).abs() < 1e-12, "{own:?}");
    assert_eq!(own.radio.transmit.get(), 1.4);
    let preset = PRESETS.iter().find(|p| p.name == "sens-800").expect("a preset").hardware();
    assert_eq!(of(plain, 1), preset);
    // A plain radio reports no frames on the air.
    let StageKind::Radio(radio) = &plain.path[0].kind else { panic!("a radio") };
    assert!(radio.hop.is_some());

    let set_one = scenario(&[set("host.mobile.battery.capacity=30Wh")]);
    assert_eq!(of(&set_one[0], 1).capacity.watt_hours(), 30.0);
    assert_eq!(of(&set_one[0], 1).radio, preset.radio);
    let varied = scenario(&[vary("host.mobile.battery.base=3W,9W")]);
    let bases: Vec<f64> = varied.iter().map(|s| of(s, 1).base.get()).collect();
    assert_eq!(bases, [3.0, 9.0]);
    let swapped = scenario(&[vary("host.mobile.battery=esp32,sens-800")]);
    assert_eq!(of(&swapped[0], 1).name, "esp32");
}

#[test]
fn a_block_code_without_bit_errors_causes_a_warning() {
    let text = |errors: &str| {
        format!(
            "transfer = {{ from = \"a\", to = \"b\", bytes = \"1MB\" }}\n[host.a]\n[host.b]\n[[path]]\n\
             radio = {{ rate = \"2mbit\" }}\ncoding = {{ block = 255, data = 223 }}\nerrors = {{ {errors} }}\n"
        )
    };
    let noted = |errors: &str| {
        let (_, notes) = parse(&text(errors), "test", &[]).unwrap();
        notes.iter().any(|note| note.key == "path.1.coding")
    };
    assert!(noted("model = \"packet-loss\", p = \"1%\""));
    assert!(!noted("model = \"bit-errors\", ber = \"1e-5\""));
}
