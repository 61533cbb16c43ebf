//! The simulated Reno compared with PFTK (Padhye, Firoiu, Towsley and Kurose, SIGCOMM 1998), without any tuning.

use std::fmt::Write;

use lasthop_scenario::{Scenario, parse};
use lasthop_sim::runs::{RunResult, measure_all};
use lasthop_study::theory::{TcpPath, backoff, pftk, timeout_share};

const MSS: f64 = 1460.0;
/// The `rfc` preset: 65,535 bytes of buffer, an ACK for two segments, a timeout of at least one second.
const W_MAX: f64 = 44.0;
const B: f64 = 2.0;
const T0: f64 = 1.0;
const RTTS_MS: [u32; 5] = [10, 20, 50, 100, 200];
const LOSSES: [&str; 6] = ["0.1", "0.2", "0.5", "1", "2", "5"];
/// Runs of each cell, each with this many losses.
const SEEDS: u64 = 2;
const LOSSES_A_RUN: f64 = 200.0;

/// A long transfer over a line with random data losses, fast enough to add nothing to the round trip.
fn scenario(rtt_ms: u32, p: &str) -> Scenario {
    let packets = LOSSES_A_RUN * 100.0 / p.parse::<f64>().unwrap();
    let text = format!(
        r#"
        horizon = "2000000s"
        transfer = {{ from = "server", to = "client", bytes = {bytes} }}
        [host.server]
        preset = "rfc"
        tcp = "reno"
        [host.client]
        preset = "rfc"
        [[path]]
        link = {{ rate = "1gbit", delay = "{delay}us", queue = "1000p" }}
        [[path]]
        radio = {{ rate = "1gbit", delay = "0s", duplex = "full", queue = "1000p" }}
        errors = {{ model = "packet-loss", p = "{p}%", only = ["data"] }}
        "#,
        bytes = (packets * MSS) as u64,
        delay = rtt_ms * 500,
    );
    parse(&text, "pftk", &[]).unwrap().0.cells.swap_remove(0).scenario
}

/// The runs of a cell.
struct Cell {
    rtt_ms: u32,
    p: &'static str,
    /// Bytes of payload sent per second, retransmissions included, as in the formula.
    rate: f64,
    /// Loss indications per packet sent: recoveries, and timeout sequences.
    indications: f64,
    /// The share of timeout sequences among them.
    timeouts: f64,
}

impl Cell {
    fn of(rtt_ms: u32, p: &'static str, runs: &[Option<RunResult>]) -> Cell {
        let (mut packets, mut seconds, mut expired, mut fast) = (0.0, 0.0, 0.0, 0.0);
        for run in runs {
            let flow = &run.as_ref().unwrap().metrics.flows[0];
            assert!(flow.complete);
            packets += flow.wired_packets as f64;
            seconds += flow.transfer_time_s;
            expired += flow.timeouts as f64;
            fast += flow.fast_retransmits as f64;
        }
        // A sequence ends with a successful retransmission, so its mean length is 1 / (1 - p).
        let sequences = expired * (1.0 - p.parse::<f64>().unwrap() / 100.0);
        let indications = fast + sequences;
        Cell {
            rtt_ms,
            p,
            rate: packets * MSS / seconds,
            indications: indications / packets,
            timeouts: sequences / indications,
        }
    }

    fn path(&self) -> TcpPath {
        // Two transmissions of a full packet at 1 Gb/s.
        let rtt = f64::from(self.rtt_ms) / 1000.0 + 24e-6;
        TcpPath { mss: MSS, rtt, t0: T0, b: B, w_max: W_MAX }
    }

    /// E[W] of the model, equation 13.
    fn window(&self) -> f64 {
        let base = (2.0 + B) / (3.0 * B);
        let p = self.indications;
        (base + (8.0 * (1.0 - p) / (3.0 * B * p) + base * base).sqrt()).min(W_MAX)
    }

    /// The formula as published.
    fn formula(&self) -> f64 {
        pftk(&self.path(), self.indications)
    }

    /// The same with the observed share of timeouts instead of `Q`, which assumes losses of a whole round. Equation 28,
    /// whose window is not limited here: `E[W]` is below 44 in every cell.
    fn with_own_timeouts(&self) -> f64 {
        let (p, w, share) = (self.indications, self.window(), self.timeouts);
        assert!(w < W_MAX);
        let packets = (1.0 - p) / p + w + share / (1.0 - p);
        let seconds = self.path().rtt * (B / 2.0 * w + 1.0) + share * T0 * backoff(p) / (1.0 - p);
        MSS * packets / seconds
    }
}

fn cells() -> Vec<Cell> {
    let all = || RTTS_MS.iter().flat_map(|rtt| LOSSES.iter().map(move |p| (*rtt, *p)));
    let scenarios: Vec<Scenario> = all().map(|(rtt, p)| scenario(rtt, p)).collect();
    let jobs: Vec<(&Scenario, u64)> =
        scenarios.iter().flat_map(|s| (1..=SEEDS).map(move |seed| (s, seed))).collect();
    let runs = measure_all(&jobs, &());
    all().zip(runs.chunks(SEEDS as usize)).map(|((rtt, p), runs)| Cell::of(rtt, p, runs)).collect()
}

fn table(cells: &[Cell]) -> String {
    let mut text = String::from(
        "| round trip | lost | loss indications | timeouts among them | `Q` of the model | \
         sent, Mbit/s | PFTK | difference | with the timeouts that were | difference |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for cell in cells {
        let off = |want: f64| 100.0 * (cell.rate / want - 1.0);
        let (formula, own) = (cell.formula(), cell.with_own_timeouts());
        let _ = writeln!(
            text,
            "| {} ms | {} % | {:.2} % | {:.1} % | {:.1} % | {:.3} | {:.3} | {:+.1} % | {:.3} | {:+.1} % |",
            cell.rtt_ms,
            cell.p,
            100.0 * cell.indications,
            100.0 * cell.timeouts,
            100.0 * timeout_share(cell.indications, cell.window()),
            cell.rate * 8e-6,
            formula * 8e-6,
            off(formula),
            own * 8e-6,
            off(own),
        );
    }
    text
}

#[test]
fn reno_matches_pftk_where_its_assumptions_hold() {
    let cells = cells();
    let table = table(&cells);
    println!("{table}");
    for cell in &cells {
        let rare = cell.p.parse::<f64>().unwrap() < 1.0;
        let within = if rare { 0.10 } else { 0.25 };
        let name = format!("{} ms, {} %", cell.rtt_ms, cell.p);
        let own = cell.rate / cell.with_own_timeouts() - 1.0;
        assert!(own.abs() < within, "{name}: {own:+.3} against the formula with its own timeouts");
        // As published, as long as a timeout costs at most ten round trips.
        let printed = cell.rate / cell.formula() - 1.0;
        if f64::from(cell.rtt_ms) / 1000.0 >= T0 / 10.0 {
            assert!(printed.abs() < within, "{name}: {printed:+.3} against the formula");
        }
        // Larger deviations are due to timeouts that the formula predicts and that do not happen.
        if printed > within {
            let expected = timeout_share(cell.indications, cell.window());
            assert!(cell.timeouts < expected / 2.0, "{name}: {printed:+.3} for another reason");
        }
    }
    is_recorded(&table);
}

/// Asserts that `pftk.txt` is the table; with `LASTHOP_BLESS=1` it is written there.
fn is_recorded(table: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pftk.txt");
    if std::env::var_os("LASTHOP_BLESS").is_some() {
        std::fs::write(path, table).expect("it can be written");
    } else {
        let recorded = std::fs::read_to_string(path).expect("the record is there");
        assert_eq!(recorded, table, "set LASTHOP_BLESS=1 to write tests/pftk.txt");
    }
}
