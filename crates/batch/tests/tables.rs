//! Tables of results: columns, units, provenance, and values equal to those of the results.

use std::collections::BTreeSet;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, UInt64Type};
use lasthop_batch::tables::recorded::{SERIES_COLUMNS, recorded};
use lasthop_batch::tables::{self, PROVENANCE, RUN_COLUMNS, UNIT};
use lasthop_batch::{Done, Provenance, Work, files, run};
use lasthop_observe::metrics::SCALARS;
use lasthop_scenario::{Argument, Plan, example, examples, parse};

fn plan(name: &str, changes: &[&str]) -> (Plan, Provenance) {
    let text = example(name).expect("an example").text;
    let arguments: Vec<Argument> = changes
        .iter()
        .map(|change| match change.strip_prefix("vary ") {
            Some(vary) => Argument::Vary(vary.to_owned()),
            None => Argument::Set((*change).to_owned()),
        })
        .collect();
    let (plan, _) = parse(text, name, &arguments).expect("a plan");
    let provenance = Provenance::new(&plan, text, &arguments);
    (plan, provenance)
}

const TINY: [&str; 3] = ["runs=3", "transfer.bytes=50kB", "vary agent=none,snoop"];

fn names(table: &RecordBatch) -> Vec<String> {
    table.schema().fields().iter().map(|field| field.name().clone()).collect()
}

fn unit(table: &RecordBatch, column: &str) -> String {
    table.schema().field_with_name(column).expect("a column").metadata()[UNIT].clone()
}

#[test]
fn runs_have_the_numbers_of_the_results() {
    let (plan, provenance) = plan("west97-lan", &TINY);
    let results = run(&plan, "", &Work::new(2)).expect("results");
    let table = tables::runs(&plan, &results, &provenance).expect("a table");
    let first: Vec<String> = names(&table)[..11].to_vec();
    let mut expected: Vec<&str> = RUN_COLUMNS.to_vec();
    expected.insert(1, "agent");
    assert_eq!(first, expected);
    assert_eq!((unit(&table, "throughput"), unit(&table, "end_s")), ("B/s".into(), "s".into()));
    let runs: Vec<_> = plan.runs().collect();
    assert_eq!(table.num_rows(), 6);
    let text = |column: &str| table.column_by_name(column).expect("a column").as_string::<i32>();
    let (keys, agents) = (text("key"), text("agent"));
    let all = results.cells.iter().flat_map(|cell| &cell.runs);
    for (row, result) in all.enumerate() {
        assert_eq!(keys.value(row), runs[row].key.to_string());
        assert_eq!(agents.value(row), if row < 3 { "none" } else { "snoop" });
        for scalar in result.metrics.scalars() {
            let column = table.column_by_name(scalar.name).expect("a scalar has a column");
            let value = column.as_primitive::<Float64Type>().value(row);
            assert_eq!(value.to_bits(), scalar.value.to_bits(), "{}", scalar.name);
            assert_eq!(unit(&table, scalar.name), scalar.unit);
        }
    }
    let schema = table.schema();
    let metadata = &schema.metadata()[PROVENANCE];
    assert_eq!(serde_json::from_str::<Provenance>(metadata).expect("provenance"), provenance);
}

/// The provenance suffices to reproduce the table.
#[test]
fn a_table_is_reproducible_from_its_provenance() {
    let (plan, provenance) = plan("west97-lan", &TINY);
    let table = |plan: &Plan| {
        let results = run(plan, "", &Work::new(1)).expect("results");
        tables::runs(plan, &results, &provenance).expect("a table")
    };
    let arguments = provenance.arguments.iter().map(|[option, text]| match option.as_str() {
        "--set" => Argument::Set(text.clone()),
        _ => Argument::Vary(text.clone()),
    });
    let arguments: Vec<_> = arguments.collect();
    let (again, _) = parse(&provenance.text, &provenance.name, &arguments).expect("a plan");
    assert_eq!(table(&plan), table(&again));
}

#[test]
fn all_example_scalars_are_in_the_list_in_order() {
    let mut seen = BTreeSet::new();
    for example in examples() {
        let short = [Argument::Set("runs=1".into()), Argument::Set("horizon=3s".into())];
        let Ok((plan, _)) = parse(example.text, example.name, &short) else { continue };
        let Some(cell) =
            plan.cells.iter().find(|c| c.scenario.world == lasthop_scenario::World::Sim)
        else {
            continue;
        };
        let scalars = lasthop_sim::runs::measure(&cell.scenario, 1).metrics.scalars();
        let place = |name: &str| SCALARS.iter().position(|known| known.name == name);
        let places: Vec<_> = scalars.iter().map(|s| place(s.name).expect("in the list")).collect();
        assert!(places.is_sorted(), "{}: {scalars:?}", example.name);
        assert!(scalars.iter().all(|s| SCALARS[place(s.name).unwrap_or(0)].unit == s.unit));
        seen.extend(scalars.iter().map(|s| s.name));
    }
    assert!(seen.len() > 30, "the examples show most of them: {seen:?}");
}

#[test]
fn flows_and_stages_have_a_row_for_each_of_each_run() {
    let (plan, provenance) = plan("west97-lan", &TINY);
    let results = run(&plan, "", &Work::new(1)).expect("results");
    let flows = tables::flows(&plan, &results, &provenance).expect("a table");
    let all: Vec<_> =
        results.cells.iter().flat_map(|c| &c.runs).flat_map(|r| &r.metrics.flows).collect();
    assert_eq!(flows.num_rows(), all.len());
    let column = |name: &str| {
        flows.column_by_name(name).unwrap_or_else(|| panic!("{name}: {:?}", names(&flows)))
    };
    for (row, flow) in all.iter().enumerate() {
        assert_eq!(column("delivered").as_primitive::<UInt64Type>().value(row), flow.delivered);
        assert_eq!(
            column("delay.p95_s").as_primitive::<Float64Type>().value(row),
            flow.delay.p95_s
        );
        assert_eq!(column("complete").as_boolean().value(row), flow.complete);
        // Omitted in the JSON where it is zero.
        let damaged = flow.dropped.get(lasthop_proto::event::Cause::TcpChecksum);
        assert_eq!(column("dropped.tcp-checksum").as_primitive::<UInt64Type>().value(row), damaged);
    }
    assert_eq!((unit(&flows, "delivered"), unit(&flows, "throughput")), ("B".into(), "B/s".into()));

    let stages = tables::stages(&plan, &results, &provenance).expect("a table");
    let all: Vec<_> =
        results.cells.iter().flat_map(|c| &c.runs).flat_map(|r| &r.metrics.stages).collect();
    assert_eq!(stages.num_rows(), all.len());
    let dropped = stages
        .columns()
        .iter()
        .zip(names(&stages))
        .filter(|(_, name)| name.starts_with("dropped."));
    let sum: u64 =
        dropped.map(|(c, _)| c.as_primitive::<UInt64Type>().values().iter().sum::<u64>()).sum();
    assert_eq!(sum, all.iter().map(|stage| stage.dropped.total()).sum::<u64>());
}

#[test]
fn one_run_is_recorded_as_it_is_measured() {
    let (plan, provenance) = plan("west97-lan", &TINY);
    let cell = &plan.cells[1];
    let seen = recorded(cell, 2, &provenance).expect("tables");
    assert_eq!(seen.recording.result, lasthop_sim::runs::measure(&cell.scenario, 2));
    assert_eq!(names(&seen.series), SERIES_COLUMNS);
    let series = &seen.recording.series[0];
    let points = series.sent.len() + series.acked.len() + series.lost.len() + series.timeouts.len();
    let others = series.windows.len() + series.stalls.len() + series.bad.len() + series.cells.len();
    let flows = seen.series.column_by_name("flow").expect("a column").as_string::<i32>();
    assert_eq!(
        flows.iter().filter(|flow| *flow == Some(series.flow.as_str())).count(),
        points + others
    );
    assert_eq!(names(&seen.events).join(",") + "\n", lasthop_observe::csv::EVENT_COLUMNS);
    assert_eq!(names(&seen.tcb).join(",") + "\n", lasthop_observe::csv::TCB_COLUMNS);
    let transmitted = seen.events.column_by_name("event").expect("a column").as_string::<i32>();
    let carried = transmitted.iter().filter(|event| *event == Some("transmitted")).count() as u64;
    assert!(carried > 50 && carried <= seen.recording.result.hops, "{carried}");
    assert_eq!(unit(&seen.events, "time_s"), "s");
    assert!(
        seen.events
            .column_by_name("id")
            .expect("a column")
            .as_primitive_opt::<UInt64Type>()
            .is_some()
    );
}

#[test]
fn equal_rows_give_equal_files() {
    let (plan, provenance) = plan("west97-lan", &TINY);
    let file = |jobs| {
        let results = run(&plan, "", &Work::new(jobs)).expect("results");
        let table = tables::runs(&plan, &results, &provenance).expect("a table");
        files::parquet(&table).expect("a file")
    };
    let (one, two) = (file(1), file(2));
    assert_eq!(one, two);
    assert_eq!((&one[..4], &one[one.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
}

#[test]
fn csv_has_the_exact_throughputs_of_the_results() {
    let (plan, provenance) =
        plan("west97-lan", &["runs=2", "transfer.bytes=50kB", "vary link.delay=1ms,5ms"]);
    let results = run(&plan, "", &Work::new(1)).expect("results");
    let table = tables::runs(&plan, &results, &provenance).expect("a table");
    let dir = tempfile::tempdir().expect("a directory");
    files::write(dir.path(), "runs", &table).expect("written");
    let text = std::fs::read_to_string(dir.path().join("runs.csv")).expect("text");
    let mut lines = text.lines();
    let place = lines
        .next()
        .expect("a heading")
        .split(',')
        .position(|name| name == "throughput")
        .expect("a column");
    let values: Vec<f64> = lines
        .map(|l| l.split(',').nth(place).expect("a field").parse().expect("a number"))
        .collect();
    let expected: Vec<f64> = results
        .cells
        .iter()
        .flat_map(|c| &c.runs)
        .map(|r| r.metrics.aggregate_throughput)
        .collect();
    assert_eq!(values, expected);
}

#[test]
fn an_axis_named_like_a_column_has_its_own() {
    let (plan, provenance) =
        plan("west97-lan", &["runs=1", "transfer.bytes=50kB", "vary seed=3,4"]);
    let results = run(&plan, "", &Work::new(1)).expect("results");
    let table = tables::runs(&plan, &results, &provenance).expect("a table");
    assert!(table.column_by_name("axis.seed").is_some() && table.column_by_name("seed").is_some());
}

#[test]
fn work_stops_on_request_and_reports_its_progress() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let (plan, _) = plan("west97-lan", &TINY);
    let seen = AtomicU64::new(0);
    let stop = || seen.load(Ordering::Relaxed) >= 2;
    let progress = |done: Done| {
        assert_eq!(done.of, plan.count());
        seen.fetch_max(done.runs, Ordering::Relaxed);
    };
    let work = Work { jobs: 1, stop: &stop, progress: &progress };
    let results = run(&plan, "", &work).expect("results");
    assert_eq!(results.cells.iter().map(|cell| cell.runs.len()).sum::<usize>(), 2);
    let (testbed, _) = self::plan("west97-lan", &["world=testbed"]);
    let refused = run(&testbed, "", &Work::new(1)).expect_err("no namespaces here").to_string();
    assert!(refused.contains("real packets"), "{refused}");
}
