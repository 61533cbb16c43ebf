//! The tables of the page on T/TCP, from the built-in scenario.

use std::fmt::Write;

use lasthop_observe::metrics::Scalar;
use lasthop_observe::stats::Summary;
use lasthop_scenario::{Argument, Cell, example, parse};
use lasthop_sim::runs::measure_all;

const PAGE: &str = "docs/reference/systems/t-tcp.md";
const BEGIN: &str = "<!-- figures: transactions -->\n";

/// The mean over runs of a scalar by name.
type Means = Box<dyn Fn(&str) -> f64>;

fn means(cell: &Cell) -> Means {
    let jobs: Vec<_> = cell.seeds().map(|seed| (&cell.scenario, seed)).collect();
    let runs = measure_all(&jobs, &()).into_iter();
    let scalars: Vec<_> = runs.map(|run| run.expect("it ran").metrics.scalars()).collect();
    Box::new(move |name| {
        let value = |run: &Vec<Scalar>| run.iter().find(|s| s.name == name).map(|s| s.value);
        Summary::of(&scalars.iter().filter_map(value).collect::<Vec<_>>()).mean
    })
}

/// A row for each scheme: milliseconds and packets, with and without losses.
fn table() -> String {
    let text = example("transactions").expect("it is built in").text;
    let clean = Argument::Set("errors.mean=1GiB".to_owned());
    let plans = [&[][..], &[clean][..]]
        .map(|changes| parse(text, "transactions", changes).expect("it is without fault").0);
    let cells = plans[0].cells.iter().zip(&plans[1].cells);
    let mut table = "| scheme | median, ms | 95 %, ms | 99 %, ms | packets | without losses: median, ms | packets |\n\
                     |---|---|---|---|---|---|---|\n"
        .to_owned();
    for (lossy, clean) in cells {
        let (lossy, label) = (means(lossy), lossy.labels.concat());
        let clean = means(clean);
        let ms = |of: &Means, name: &str| format!("{:.0}", of(name) * 1e3);
        let packets = |of: &Means| format!("{:.1}", of("exchange_packets"));
        let row = [
            label,
            ms(&lossy, "exchange_time_p50"),
            ms(&lossy, "exchange_time_p95"),
            ms(&lossy, "exchange_time_p99"),
            packets(&lossy),
            ms(&clean, "exchange_time_p50"),
            packets(&clean),
        ];
        let _ = writeln!(table, "| {} |", row.join(" | "));
    }
    table
}

#[test]
fn the_figures_of_the_manual_on_transactions() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let text = std::fs::read_to_string(&page).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("where they begin");
    let (old, after) = rest.split_once("<!-- end -->").expect("where they end");
    let new = format!("\n{}\n", table());
    if std::env::var_os("LASTHOP_WRITE_FIGURES").is_some() {
        std::fs::write(&page, format!("{before}{BEGIN}{new}<!-- end -->{after}")).expect("written");
    } else {
        assert_eq!(old, new, "run `make figures`");
    }
}
