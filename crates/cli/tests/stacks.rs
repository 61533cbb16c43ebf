//! Transfers between the kernel's TCP and lasthop's on real packets, in both directions, from handshake to
//! FIN. Every byte is compared.

use std::thread;

use serde_json::Value;

use crate::support::{User, World, is_root};

/// A path with short transfers.
const PATH: [&str; 4] =
    ["link.rate=100mbit", "radio.rate=20mbit", "radio.overhead=50us", "transfer.bytes=200kB"];

const EXPONENTIAL: &str =
    r#"errors={ model = "exponential", mean = "64KiB", on = ["data", "ack"] }"#;

fn user() -> User {
    if is_root() { User::Root } else { User::Unprivileged }
}

/// Runs the combinations of `vary`. Returns the runs, each with the labels of its cell.
fn runs(world: &World, set: &[&str], vary: &[&str]) -> Vec<(String, Value)> {
    let mut words = vec!["run", "west97-lan", "--world", "testbed", "--seeds", "1", "--json"];
    for set in PATH.iter().chain(set) {
        words.extend(["--set", *set]);
    }
    for vary in vary {
        words.extend(["--vary", *vary]);
    }
    let results: Value = serde_json::from_str(&world.good(&words)).expect("JSON");
    let cells = results["cells"].as_array().expect("cells");
    cells.iter().map(|cell| (cell["labels"].to_string(), cell["runs"][0].clone())).collect()
}

/// Asserts that every run is complete and every byte arrived unchanged.
fn all_equal(runs: &[(String, Value)], context: &str) {
    for (labels, run) in runs {
        assert_eq!(run["reason"], "finished", "{context} {labels}");
        assert_eq!(run["testbed"]["wrong"], serde_json::json!([]), "{context} {labels}");
        let flow = &run["metrics"]["flows"][0];
        assert_eq!(flow["delivered"], 200_000, "{context} {labels}: {flow}");
        assert_eq!(flow["aborted"], false, "{context} {labels}");
    }
}

/// Tests both address families; `ours` is the host with lasthop's TCP: the receiver or the sender.
fn both_families(ours: &str, theirs: &str) {
    let world = World::new(&format!("stacks-{ours}"), user());
    let stacks = [format!("host.{ours}.stack=lasthop"), format!("host.{theirs}.stack=kernel")];
    let kernel = format!("host.{theirs}.kernel=linux-cubic");
    thread::scope(|scope| {
        for (family, addresses) in [
            ("IPv4", ["host.fixed.addr=10.0.0.1", "host.mobile.addr=10.1.0.1"]),
            ("IPv6", ["host.fixed.addr=fd00::1", "host.mobile.addr=fd00:1::1"]),
        ] {
            let (world, stacks, kernel) = (&world, &stacks, &kernel);
            scope.spawn(move || {
                for errors in ["errors=none", EXPONENTIAL] {
                    let set = [&stacks[0], &stacks[1], kernel.as_str(), "agent=none", errors];
                    let set = [&set[..], &addresses].concat();
                    let variants = format!("host.{ours}.tcp=tahoe,reno,newreno,sack");
                    let found = runs(world, &set, &[&variants]);
                    assert_eq!(found.len(), 4);
                    all_equal(&found, &format!("{family} {errors} {ours}"));
                    let options = [
                        format!("host.{ours}.timestamps=true,false"),
                        format!("host.{ours}.window-scale=true,false"),
                    ];
                    let options = options.each_ref().map(String::as_str);
                    let found = runs(world, &set, &options);
                    assert_eq!(found.len(), 4);
                    all_equal(&found, &format!("{family} {errors} {ours}"));
                }
            });
        }
    });
}

#[test]
fn our_stack_receives_all_data_of_a_kernel_sender() {
    both_families("mobile", "fixed");
}

#[test]
fn a_kernel_receives_all_data_of_our_stack() {
    both_families("fixed", "mobile");
}

#[test]
fn quic_runs_on_kernel_sockets() {
    let world = World::new("stacks-quic", user());
    let quic = [
        "transfer.protocol=quic",
        "host.fixed.stack=kernel",
        "host.mobile.stack=kernel",
        "agent=none",
    ];
    let v6 = ["host.fixed.addr=fd00::1", "host.mobile.addr=fd00:1::1", "transfer.quic.streams=3"];
    let lossy = ["errors={ model = \"exponential\", mean = \"32KiB\", on = [\"data\", \"ack\"] }"];
    for (lossless, rest) in [(true, &["errors=none"][..]), (false, &v6[..])] {
        let set = [&quic[..], rest, if lossless { &[] } else { &lossy }].concat();
        let found = runs(&world, &set, &[]);
        all_equal(&found, "QUIC");
        let flow = &found[0].1["metrics"]["flows"][0];
        assert!(flow["complete"] == true && flow["throughput"].as_f64() > Some(0.0), "{flow}");
        let damaged = flow["dropped"]["tcp-checksum"].as_u64().unwrap_or(0) > 0;
        assert_ne!(damaged, lossless, "{flow}");
    }
}

#[test]
fn the_trace_has_the_timeout_count_of_the_kernel() {
    let world = World::new("stacks-counts", user());
    // Bursts destroy whole windows, so there are too few duplicate ACKs and the timer must expire.
    let bursts =
        r#"errors={ model = "packet-bursts", packets = 6, mean = "64KiB", on = ["data"] }"#;
    let set = [
        "agent=none",
        bursts,
        "host.fixed.stack=kernel",
        "host.mobile.stack=kernel",
        "host.mobile.kernel=linux-reno",
    ];
    let found = runs(&world, &set, &["host.fixed.kernel=linux-1997,linux-reno,linux-cubic"]);
    all_equal(&found, "bursts");
    let mut all = 0;
    for (labels, run) in &found {
        let kernel = &run["testbed"]["kernel"]["fixed"];
        let count = |name: &str| kernel[name].as_u64().expect("a counter");
        let flow = &run["metrics"]["flows"][0];
        let seen = |name: &str| flow[name].as_u64().expect("a count");
        assert_eq!(seen("timeouts"), count("TcpExtTCPTimeouts"), "{labels}: {flow} {kernel}");
        all += count("TcpExtTCPTimeouts");
        // The kernel counts each start of a recovery. A sample of its control block between two ACKs may miss
        // the end of one and the start of the next, but never adds one.
        let recoveries = count("TcpExtTCPRenoRecovery") + count("TcpExtTCPSackRecovery");
        let fast = seen("fast_retransmits");
        assert!(fast <= recoveries, "{labels}: {flow} {kernel}");
    }
    assert!(all > 0, "no timeout has put it to the test");
}
