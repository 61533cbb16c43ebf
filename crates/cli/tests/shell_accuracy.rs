//! Accuracy and cost of a shell's link on this machine. Needs a minute, iperf3 and an idle machine:
//!
//! ```text
//! cargo test --release -p lasthop --test cli shell_accuracy:: -- --ignored --nocapture
//! ```
use std::process::Command;

use serde_json::Value;

/// Runs a program behind a link. Returns its output and the summary of the link.
fn behind(link: &[&str], program: &[&str]) -> (String, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .args(["shell", "--local", "--json", "--queue", "200p"])
        .args(link)
        .arg("--")
        .args(program)
        .output()
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let mut summary = err.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let summary = summary.rfind(|value| value.get("down").is_some());
    (out, summary.unwrap_or_else(|| panic!("{err}")))
}

/// Processor use of the station, percent of one processor.
fn cpu(summary: &Value) -> f64 {
    let of = |key: &str| summary[key].as_f64().expect("a number");
    100.0 * of("cpu_seconds") / of("seconds")
}

/// Rate that iperf3 receives behind a link of `mbit` Mb/s, relative to the maximum of 1448 per 1500 bytes.
fn share(mbit: u32) -> (f64, Value) {
    let rate = format!("{mbit}mbit");
    let link = ["--rate", &rate, "--delay", "1ms", "--serve", "exec iperf3 -s >/dev/null"];
    // CUBIC fills a queue; BBR would leave the link idle for 2 % of the time to measure the RTT.
    let client = ["iperf3", "-4", "-C", "cubic", "-c", "far", "-R", "-J", "-O", "3", "-t", "8"];
    let (out, summary) = behind(&link, &client);
    let json: Value = serde_json::from_str(&out).expect("JSON of iperf3");
    let got = json["end"]["sum_received"]["bits_per_second"].as_f64().expect("a rate");
    (got / (f64::from(mbit) * 1e6 * 1448.0 / 1500.0), summary)
}

/// Round-trip times that ping measured behind a delay, ms.
fn round_trips(delay: &str, count: &str) -> Vec<f64> {
    let ping = ["ping", "-4", "-n", "-i", "0.005", "-c", count, "far"];
    let (out, _) = behind(&["--delay", delay], &ping);
    let times = out.lines().filter_map(|line| line.split("time=").nth(1)?.split(' ').next());
    let mut times: Vec<f64> = times.map(|ms| ms.parse().expect("a time")).collect();
    times.sort_by(f64::total_cmp);
    times
}

#[test]
#[ignore = "it measures this machine, which must be quiet"]
fn how_exact_a_link_is() {
    let load = std::fs::read_to_string("/proc/loadavg").expect("the load");
    println!("load before: {}", load.trim());
    println!("| rate | measured / requested | station, % of a processor | lost by the machine |");
    for mbit in [1, 5, 12, 50, 100, 200] {
        let (share, summary) = share(mbit);
        println!("| {mbit} Mb/s | {share:.4} | {:.1} | {} |", cpu(&summary), summary["overrun"]);
        assert!((0.5..1.1).contains(&share), "this is no accuracy: {share}");
    }
    println!("| delay | round trips | off at the median, ms | 99 % | max |");
    for (delay, twice) in [("1ms", 2.0), ("20ms", 40.0), ("150ms", 300.0)] {
        let times = round_trips(delay, "1000");
        let off = |q: f64| times[((times.len() - 1) as f64 * q) as usize] - twice;
        println!(
            "| {delay} | {} | {:.3} | {:.3} | {:.3} |",
            times.len(),
            off(0.5),
            off(0.99),
            off(1.0)
        );
        assert!(off(0.0) > -0.05, "a packet came too early");
    }
    println!("| loss | packets | lost | expected, 95 % |");
    for p in [0.001, 0.01, 0.1] {
        let (n, loss) = (5000u32, format!("{p}"));
        let ping = ["ping", "-4", "-n", "-q", "-i", "0.002", "-c", "5000", "-W", "1", "far"];
        let (_, summary) = behind(&["--loss", &loss, "--delay", "1ms"], &ping);
        // Lost requests; some answers are lost too.
        let lost = summary["up"]["lost"]["frame-lost"].as_u64().unwrap_or(0);
        let (mean, n) = (f64::from(n) * p, f64::from(n));
        let half = 1.96 * (n * p * (1.0 - p)).sqrt();
        println!("| {p} | {n} | {lost} | {:.0} to {:.0} |", mean - half, mean + half);
        // Five standard deviations: once in two million runs.
        assert!((lost as f64 - mean).abs() < half * 2.55 + 1.0);
    }
}
