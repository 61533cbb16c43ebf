//! Schemes on one scenario: the same channel for all of them, and its benefit.

use lasthop_observe::stats::Summary;
use lasthop_scenario::{Argument, Comparison, Scenario, SchemeChoice, compare, example};
use lasthop_sim::runs::{Results, RunResult, Setup, measure, measure_all};
use lasthop_study::Source;
use lasthop_study::compare::{Options, answer, lay_out, pictures};
use lasthop_study::ranking::{Judgement, standings};

fn of(name: &str, choice: &SchemeChoice, set: &[&str]) -> Comparison {
    let text = example(name).unwrap().text;
    let arguments: Vec<Argument> = set.iter().map(|s| Argument::Set((*s).to_owned())).collect();
    compare(text, name, &arguments, choice, &[], None, None).unwrap()
}

fn run(comparison: &Comparison) -> Vec<Vec<RunResult>> {
    let cells = &comparison.plan.cells;
    let jobs: Vec<(&Scenario, u64)> =
        cells.iter().flat_map(|cell| cell.seeds().map(|seed| (&cell.scenario, seed))).collect();
    let mut results = measure_all(&jobs, &()).into_iter().flatten();
    cells.iter().map(|cell| results.by_ref().take(cell.scenario.runs as usize).collect()).collect()
}

fn throughputs(runs: &[RunResult]) -> Vec<f64> {
    runs.iter().map(|run| run.metrics.aggregate_throughput).collect()
}

/// The variance of a difference of pairs; unpaired it would be the sum of both variances.
#[test]
fn the_same_channel_for_all_makes_differences_sharper() {
    let named = ["newreno", "sack", "limited-transmit"].map(str::to_owned).to_vec();
    let comparison = of("rivals", &SchemeChoice::Named(named), &["runs=40"]);
    let cells: Vec<Vec<f64>> = run(&comparison).iter().map(|runs| throughputs(runs)).collect();
    let spread = |values: &[f64]| {
        let sd = Summary::of(values).sd;
        sd * sd
    };
    for (scheme, values) in comparison.schemes.iter().zip(&cells).skip(1) {
        let paired = Summary::of_differences(values, &cells[0]).unwrap().sd;
        let unpaired = spread(values) + spread(&cells[0]);
        assert!(
            paired * paired < 0.6 * unpaired,
            "{}: {} of {unpaired}",
            scheme.name,
            paired * paired
        );
        // With other seeds for one of the two there is no benefit.
        let shifted: Vec<f64> = values[1..].iter().chain(&values[..1]).copied().collect();
        let strangers = Summary::of_differences(&shifted, &cells[0]).unwrap().sd;
        assert!(strangers > 1.2 * paired, "{}: {strangers} {paired}", scheme.name);
    }
}

/// A channel by packets: the n-th data packet has the same fate under every scheme.
#[test]
fn the_nth_packet_has_one_fate_under_all_schemes() {
    let named = ["tahoe", "sack"].map(str::to_owned).to_vec();
    let set = [
        "runs=1",
        "errors={ model = \"packet-loss\", p = \"5%\", only = [\"data\"], on = [\"data\"] }",
    ];
    let comparison = of("rivals", &SchemeChoice::Named(named), &set);
    let fates: Vec<Vec<bool>> = comparison
        .plan
        .cells
        .iter()
        .map(|cell| {
            let mut fates = Fates::default();
            lasthop_sim::runs::simulate(&cell.scenario, 1, &mut fates);
            fates.0
        })
        .collect();
    let common = fates.iter().map(Vec::len).min().unwrap();
    assert!(common > 1000 && fates[0].iter().any(|lost| *lost));
    for other in &fates[1..] {
        assert_eq!(fates[0][..common], other[..common]);
    }
}

/// Which data packets the radio damaged, in the order of their output.
#[derive(Default)]
struct Fates(Vec<bool>);

impl lasthop_observe::Sink for Fates {
    fn event(&mut self, event: &lasthop_proto::event::Event) {
        use lasthop_proto::event::{EventKind, Op};
        use lasthop_proto::machine::{Side, StageId};
        // Host, link, agent, radio.
        if event.stage != StageId(3) {
            return;
        }
        let EventKind::Packet { op, side: Side::Right, packet } = &event.kind else { return };
        match op {
            Op::Transmitted if !packet.body.is_empty() => {
                self.0.push(packet.damage != lasthop_proto::wire::Damage::None);
            }
            _ => {}
        }
    }

    fn interest(&self) -> lasthop_proto::event::Interest {
        lasthop_proto::event::Interest::METRICS
    }
}

#[test]
fn every_scheme_of_the_table_runs_to_the_end() {
    let comparison = of("rivals", &SchemeChoice::All, &["runs=2", "transfer.bytes=300kB"]);
    assert!(comparison.schemes.len() > 15);
    for (scheme, runs) in comparison.schemes.iter().zip(run(&comparison)) {
        for run in runs {
            assert!(run.metrics.complete(), "{} seed {}", scheme.name, run.seed);
            assert_eq!(run.reason, "finished", "{} seed {}", scheme.name, run.seed);
        }
    }
}

/// Each of the paper's four kinds has its effect on this channel.
#[test]
fn local_schemes_are_better_than_the_baseline() {
    let comparison = of("rivals", &SchemeChoice::Own, &["runs=8"]);
    let cells: Vec<Vec<f64>> = run(&comparison).iter().map(|runs| throughputs(runs)).collect();
    let standings = standings(&cells, 0);
    for name in ["ll-sack", "tulip", "split", "snoop", "seq-cache"] {
        let i = comparison.schemes.iter().position(|scheme| scheme.name == name).unwrap();
        assert_eq!(standings[i].judgement, Judgement::Better, "{name}");
    }
    assert_eq!(standings[0].judgement, Judgement::Baseline);
}

#[test]
fn a_scheme_that_does_not_apply_is_left_out_with_a_reason() {
    let reason = |comparison: &Comparison, name: &str| {
        let left = comparison.left_out.iter().find(|left| left.name == name);
        left.unwrap_or_else(|| panic!("{name} is not left out")).reason.clone()
    };
    let wired = compare(
        "transfer = { from = \"a\", to = \"b\", bytes = \"1MB\" }\n[host.a]\npreset = \"rfc\"\n[host.b]\npreset = \"rfc\"\n\
         [[path]]\nlink = { delay = \"5ms\" }\n",
        "wired",
        &[],
        &SchemeChoice::All,
        &[],
        None,
        None,
    )
    .unwrap();
    assert!(reason(&wired, "snoop").contains("no radio"));
    assert!(reason(&wired, "tulip").contains("no radio"));
    assert!(reason(&wired, "ack-filter").contains("has a rate"));
    // The mobile sends: no base station is before the losses.
    let up = of("west97-wan", &SchemeChoice::All, &[]);
    assert!(reason(&up, "snoop").contains("towards the radio"));
    assert!(reason(&up, "reno").contains("same as the scenario"));
    // The base station had no agent and gets one; the axis of errors is separate from the schemes.
    assert!(up.schemes.iter().any(|scheme| scheme.name == "split"));
    assert_eq!(up.points(), 2);
    let again = measure(&up.plan.cells[0].scenario, 1);
    assert!(again.metrics.complete());
}

/// Schemes for the ACK path are inserted on the right side of the slow stage, and have an effect.
#[test]
fn ack_schemes_are_applied_to_a_slow_return_path() {
    use lasthop_proto::event::Cause;
    let comparison = of("slow-return", &SchemeChoice::All, &["horizon=10s"]);
    let results = run(&comparison);
    let of_scheme = |name: &str| {
        let i = comparison.schemes.iter().position(|scheme| scheme.name == name);
        &results[i.unwrap_or_else(|| panic!("{name}: {:?}", comparison.left_out))][0].metrics
    };
    let forged = |name: &str| of_scheme(name).flows[0].originated_acks.get(Cause::ReconstructedAck);
    assert_eq!(forged("ack-filter"), 0);
    assert!(forged("ack-filter+reconstruction") > 100, "{}", forged("ack-filter+reconstruction"));
    let marked = |name: &str| of_scheme(name).flows[0].marked_acks;
    assert_eq!((marked("as-is"), marked("red+acks-first")), (0, 0));
    assert!(marked("acc") > 10, "{}", marked("acc"));
    let dropped = |name: &str| of_scheme(name).flows[0].dropped_acks.get(Cause::EarlyDrop);
    assert!(dropped("red+acks-first") > 10, "{}", dropped("red+acks-first"));
    // A single connection has no other one to share with.
    let left = comparison.left_out.iter().find(|left| left.name == "tcp-int").unwrap();
    assert!(left.reason.contains("several connections"), "{}", left.reason);
    let four =
        of("rivals", &SchemeChoice::Named(vec!["tcp-int".to_owned()]), &["transfer.count=4"]);
    assert_eq!(four.schemes.len(), 2, "{:?}", four.left_out);
}

/// A base station with an agent cannot be a gateway as well.
#[test]
fn a_gateway_replaces_only_an_idle_base_station() {
    let named = SchemeChoice::Named(vec!["ack-filter+reconstruction".to_owned()]);
    let idle = of("rivals", &named, &[]);
    assert_eq!(idle.schemes.len(), 2, "{:?}", idle.left_out);
    let text = example("west97-lan").unwrap().text;
    let set = [Argument::Set("agent=snoop".to_owned())];
    let busy = compare(text, "west97-lan", &set, &named, &[], None, None).unwrap();
    assert!(busy.left_out[0].reason.contains("two agents"), "{:?}", busy.left_out);
}

/// The schemes of `starlink` are eight senders; each is drawn by throughput and delay.
#[test]
fn senders_over_a_low_orbit_are_drawn_by_throughput_and_delay() {
    let sets = ["horizon=20s", "runs=2"];
    let arguments: Vec<Argument> = sets.iter().map(|s| Argument::Set((*s).to_owned())).collect();
    let text = example("starlink").unwrap().text;
    let source = Source { text, name: "starlink", origin: "starlink" };
    let options = Options { baseline: Some("cubic"), ..Options::default() };
    let comparison = lay_out(&source, &arguments, &options).unwrap();
    let document = answer::<lasthop_study::Error>(&comparison, &mut |plan| {
        Ok(Results::simulated(plan, Setup::new(String::new(), plan)))
    })
    .unwrap();
    let place = &document.results.points[0];
    let delay = |name: &str| place.scheme(name).unwrap().measured.delay.unwrap().mean;
    // Vegas takes the delays after a change of the satellite for a queue, so that it hardly has one.
    assert!(delay("vegas") < delay("cubic"), "{} {}", delay("vegas"), delay("cubic"));
    let drawn = pictures(&document);
    let crosses = &drawn.iter().find(|(name, _)| name == "delay-1.svg").unwrap().1;
    for row in &place.schemes {
        assert!(crosses.contains(&format!(">{}<", row.name())), "{}", row.name());
    }
    assert_eq!(place.schemes.len(), 8);
}
