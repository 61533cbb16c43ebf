//! Sweeps whose cells are built one at a time.

use lasthop_scenario::{Argument, Grid, Source, example, parse};

fn text() -> &'static str {
    example("west97-lan").expect("an example").text
}

fn vary(text: &str) -> Argument {
    Argument::Vary(text.to_owned())
}

#[test]
fn cells_and_keys_are_those_of_the_plan() {
    let arguments = [vary("errors.mean=16KiB,64KiB,none"), vary("host.fixed.tcp=reno,sack")];
    let arguments = &arguments[1..];
    let (plan, _) = parse(text(), "west97-lan", arguments).expect("a plan");
    let (grid, _) = Grid::parse(text(), "west97-lan", arguments, None).expect("a grid");
    assert_eq!((grid.cells(), grid.runs()), (plan.cells.len(), plan.count()));
    assert_eq!(grid.axes(), plan.axes.iter().map(|axis| axis.name.clone()).collect::<Vec<_>>());
    for (i, cell) in plan.cells.iter().enumerate() {
        let own = grid.cell(i).expect("a cell");
        assert_eq!(&own, cell);
    }
    let keys: Vec<_> =
        (0..grid.cells()).flat_map(|i| grid.cell(i).expect("a cell").runs(i)).collect();
    assert_eq!(keys, plan.runs().collect::<Vec<_>>());
}

#[test]
fn a_grid_is_larger_than_a_plan_may_be() {
    let many = |key: &str| {
        let values: Vec<String> = (1..=1000).map(|i| format!("{i}ms")).collect();
        vary(&format!("{key}={}", values.join(",")))
    };
    let arguments = [many("link.delay"), many("radio.delay"), vary("agent=none")];
    let refused = parse(text(), "w", &arguments).expect_err("too many to hold");
    assert!(refused.help.contains("lasthop sweep"), "{}", refused.help);
    let (grid, _) = Grid::parse(text(), "w", &arguments, None).expect("a grid");
    assert_eq!(grid.cells(), 1_000_000);
    assert_eq!(grid.cell(999_999).expect("the last").labels, ["1000ms", "1000ms", "none"]);
}

#[test]
fn points_replace_the_axes_of_the_same_keys() {
    let csv = "errors.mean,agent,host.fixed.tcp\n16KiB,none,reno\n\"64KiB\",snoop,sack\r\n";
    let (grid, _) = Grid::parse(text(), "w", &[], Some(csv)).expect("a grid");
    assert_eq!(
        (grid.cells(), grid.axes().join(" ")),
        (2, "errors.mean agent host.fixed.tcp".into())
    );
    let cell = grid.cell(1).expect("a cell");
    assert_eq!(cell.labels, ["64KiB", "snoop", "sack"]);
    let set = ["errors.mean=64KiB", "agent=snoop", "host.fixed.tcp=sack"];
    let set: Vec<_> = set.iter().map(|set| Argument::Set((*set).to_owned())).collect();
    let (plan, _) = parse(text(), "w", &set).expect("a plan");
    assert_eq!(cell.scenario, plan.cells[0].scenario);
    // The axis `agent` of the file stays where the points do not set it.
    let (grid, _) =
        Grid::parse(text(), "w", &[], Some("errors.mean\n16KiB\n64KiB\n")).expect("a grid");
    assert_eq!(
        (grid.cells(), grid.cell(4).expect("a cell").labels.join(" ")),
        (6, "64KiB snoop".into())
    );
}

#[test]
fn errors_in_points_have_their_location() {
    for (csv, at, says) in [
        ("", "", "empty"),
        ("agent\n", "agent\n", "no rows"),
        ("agnet\nnone\n", "agnet", "agnet"),
        ("agent,errors.mean\nnone\n", "none", "1 values and the heading 2"),
        ("agent,errors.mean\nnone,\n", "", "missing"),
        ("agent\n\"none\n", "none", "not closed"),
    ] {
        let error = Grid::parse(text(), "w", &[], Some(csv)).expect_err(csv);
        assert_eq!(error.at.source, Source::Points, "{csv}: {error}");
        assert_eq!(&csv[error.at.span.clone()], at, "{csv}: {error}");
        assert!(error.message.contains(says), "{csv}: {error}");
    }
    let (grid, _) =
        Grid::parse(text(), "w", &[], Some("errors.mean\n16KiB\n5 apples\n")).expect("a grid");
    let error = grid.cell(3).expect_err("no size");
    assert_eq!((error.at.source, error.at.span.clone()), (Source::Points, 18..26));
    let error = Grid::parse(text(), "w", &[], Some("runs\n3\n5\n"))
        .expect("a grid")
        .0
        .cell(3)
        .expect_err("seeds");
    assert!(error.message.contains("5 seeds"), "{error}");
}
