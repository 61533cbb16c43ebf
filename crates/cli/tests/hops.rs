//! Radio hops with medium access and link layers, explicit feedback and header compression on real packets.
//! Every byte is compared, and the operations on packets are counted.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use crate::support::{User, World, is_root};

/// A world that can read `scenario` as the file `FILE`.
fn world(test: &str, scenario: &str) -> (World, String) {
    let world = World::new(test, if is_root() { User::Root } else { User::Unprivileged });
    let file = world.base.join("scenario.toml");
    fs::write(&file, scenario).expect("written");
    let file = file.to_str().expect("text").to_owned();
    (world, file)
}

/// Runs the combinations of a scenario once each; all transfers must arrive unchanged. Returns the label, the
/// figures, and the flow's figures for each.
fn runs(world: &World, file: &str, set: &[&str]) -> Vec<(String, Value, Value)> {
    let mut words = vec!["run", file, "--world", "testbed", "--seeds", "1", "--json"];
    for set in set {
        words.extend(["--set", *set]);
    }
    let results: Value = serde_json::from_str(&world.good(&words)).expect("JSON");
    let cells = results["cells"].as_array().expect("cells").iter();
    cells
        .map(|cell| {
            let labels = cell["labels"].as_array().expect("labels").iter();
            let label = labels.map(|label| label.as_str().expect("text")).collect::<Vec<_>>();
            let run = &cell["runs"][0];
            let flow = &run["metrics"]["flows"][0];
            assert_eq!(run["reason"], "finished", "{label:?}");
            assert_eq!(run["testbed"]["wrong"], json!([]), "{label:?}");
            // A FIN that is retransmitted after a late ACK may reach a closed end and cause a reset.
            let whole = flow["complete"] == true || flow["aborted"] == false;
            assert!(count(&flow["delivered"]) > 0 && whole, "{label:?}: {flow}");
            let mut flow = flow.clone();
            flow["kernel"] = run["testbed"]["kernel"]["fixed"].clone();
            (label.join(" "), run["metrics"].clone(), flow)
        })
        .collect()
}

/// A count in the figures; most counts of zero are omitted.
fn count(of: &Value) -> u64 {
    of.as_u64().unwrap_or(0)
}

/// Number of retransmissions of data packets by the link layer.
fn repeated(flow: &Value) -> u64 {
    ["link-timeout", "link-nack"].iter().map(|cause| count(&flow["repeated"][cause])).sum()
}

/// Frames of this kind on the radio.
fn frames(metrics: &Value, kind: &str) -> u64 {
    let stages = metrics["stages"].as_array().expect("stages").iter();
    stages.map(|stage| count(&stage["air"][kind]["frames"])).sum()
}

#[test]
fn every_link_layer_carries_kernel_tcp() {
    let (world, file) = world("hops", include_str!("data/hops.toml"));
    thread::scope(|scope| {
        for addresses in [
            ["host.fixed.addr=10.0.0.1", "host.mobile.addr=10.1.0.1"],
            ["host.fixed.addr=fd00::1", "host.mobile.addr=fd00:1::1"],
        ] {
            let (world, file) = (&world, &file);
            scope.spawn(move || {
                let found = runs(world, file, &addresses);
                assert_eq!(found.len(), 13);
                for (label, metrics, flow) in found {
                    let context = format!("{label}, {}: {flow}", addresses[0]);
                    let with = |cause: &str| count(&flow["dropped"][cause]) > 0;
                    // The repair of the damage, or its effect.
                    match label.as_str() {
                        "none" => assert!(with("ip-checksum") || with("tcp-checksum"), "{context}"),
                        "snoop" => assert!(
                            count(&flow["originated"]["local-dup-ack"])
                                + count(&flow["originated"]["local-timeout"])
                                > 0,
                            "{context}"
                        ),
                        "pieces" => assert!(with("piece-lost"), "{context}"),
                        "fama" => assert!(with("frame-lost"), "{context}"),
                        "block code" | "dcf" | "tulip over dcf" => {
                            assert!(!with("frame-lost"), "{context}")
                        }
                        _ => assert!(repeated(&flow) > 0 && !with("frame-lost"), "{context}"),
                    }
                    let has = |kind| frames(&metrics, kind) > 0;
                    assert_eq!(has("rts") && has("cts"), label.ends_with("fama"), "{context}");
                    assert_eq!(has("mac_acks"), label.ends_with("dcf"), "{context}");
                }
            });
        }
    });
}

#[test]
fn our_senders_react_to_feedback_and_kernels_ignore_it() {
    let (world, file) = world("feedback", include_str!("data/feedback.toml"));
    let [ours, kernels] = thread::scope(|scope| {
        let started = ["lasthop", "kernel"].map(|stack| {
            let (world, file) = (&world, &file);
            scope.spawn(move || runs(world, file, &[&format!("host.fixed.stack={stack}")]))
        });
        started.map(|one| one.join().expect("it ran"))
    });
    let causes = ["", "bad-state-notification", "source-quench"];
    let notified = |flow: &Value, i: usize| count(&flow["originated_acks"][causes[i]]);
    for (i, (label, _, flow)) in ours.iter().enumerate() {
        assert!(repeated(flow) > 0, "{label}: {flow}");
        assert_eq!(notified(flow, i) > 0, i > 0, "{label}: {flow}");
        assert_eq!(count(&flow["bad_state_notices"]) > 0, i == 1, "{label}: {flow}");
        assert_eq!(count(&flow["quenches"]) > 0, i == 2, "{label}: {flow}");
    }
    let timeouts = |i: usize| count(&ours[i].2["timeouts"]);
    assert!(timeouts(1) < timeouts(0), "{:#?}", [timeouts(0), timeouts(1)]);
    for (i, (label, _, flow)) in kernels.iter().enumerate() {
        let kernel = &flow["kernel"];
        assert_eq!(notified(flow, i) > 0, i > 0, "{label}: {flow}");
        // The kernel received each of them with a correct checksum, and did not react.
        assert!(count(&kernel["IcmpInMsgs"]) >= notified(flow, i), "{label}: {flow}");
        assert_eq!(kernel["IcmpInCsumErrors"], 0, "{label}: {flow}");
        assert_eq!(
            count(&flow["bad_state_notices"]) + count(&flow["quenches"]),
            0,
            "{label}: {flow}"
        );
    }
}

#[test]
fn kernel_tcp_works_over_compressed_headers() {
    let (world, file) = world("compression", include_str!("data/compression.toml"));
    let found = runs(&world, &file, &[]);
    let both = |flow: &Value, cause: &str| {
        count(&flow["dropped"][cause]) + count(&flow["dropped_acks"][cause])
    };
    for (label, _, flow) in &found {
        let losses = label.contains("losses");
        assert_eq!(both(flow, "frame-lost") > 0, losses, "{label}: {flow}");
        // The decompressor restores the original headers.
        assert!(losses || both(flow, "desynchronised") == 0, "{label}: {flow}");
        assert_eq!(both(flow, "tcp-checksum"), 0, "{label}: {flow}");
    }
    // Only differences can desynchronise.
    assert!(both(&found[2].2, "desynchronised") > 0, "{}", found[2].2);
}

#[test]
fn kernel_acks_are_filtered_and_reconstructed() {
    let (world, file) = world("return", include_str!("data/return.toml"));
    let found = runs(&world, &file, &[]);
    assert_eq!(found.len(), 4);
    let dropped = |i: usize, cause: &str| count(&found[i].2["dropped_acks"][cause]);
    let forged = |i: usize| count(&found[i].2["originated_acks"]["reconstructed-ack"]);
    for (i, (label, _, flow)) in found.iter().enumerate() {
        assert_eq!(dropped(i, "superseded-ack") > 0, i >= 2, "{label}: {flow}");
        assert_eq!(forged(i) > 0, i == 3, "{label}: {flow}");
    }
    // The filter reduces the queue.
    assert!(dropped(0, "queue-full") > 0, "{}", found[0].2);
    assert!(dropped(2, "queue-full") < dropped(0, "queue-full"), "{}", found[2].2);
}

#[test]
fn kernel_tcp_works_over_packet_radio() {
    let scenario = concat!(
        r#"
        transfer = { from = "fixed", to = "mobile", bytes = "60KB" }
        host.fixed = {}
        host.mobile = {}
        path = [{ radio = { rate = "10mbit" }, mac = "half-duplex-hops", "#,
        r#"half-duplex-hops = { hops = 3, turnaround = "200us", backoff = "400us" } }]
        [vary]
        radio.discipline-left = ["fifo", "ack-filter"]
    "#
    );
    let (world, file) = world("packet-radio", scenario);
    for (label, metrics, flow) in runs(&world, &file, &[]) {
        let has = |kind| frames(&metrics, kind) > 0;
        assert!(has("rts") && has("cts") && has("data"), "{label}: {metrics}");
        let filtered = count(&flow["dropped_acks"]["superseded-ack"]) > 0;
        assert!(label == "ack-filter" || !filtered, "{label}: {flow}");
    }
}
