//! Events of a kernel sender, compared with the kernel's counters.

use crate::support::{User, World};

/// Losses of whole windows: there are too few duplicate ACKs, so the timer must expire.
const LOSSY: [&str; 9] = [
    "link.rate=100mbit",
    "radio.rate=20mbit",
    "radio.overhead=50us",
    "agent=none",
    "host.fixed.stack=kernel",
    "host.mobile.stack=kernel",
    "host.fixed.kernel=linux-reno",
    "transfer.bytes=200kB",
    r#"errors={ model = "packet-bursts", packets = 4, mean = "48KiB", on = ["data"] }"#,
];

#[test]
fn timeouts_match_the_kernels_counter() {
    let world = World::new("kernel-events", User::Unprivileged);
    let mut words = vec!["run", "west97-lan", "--world", "testbed", "--seeds", "1"];
    words.extend(LOSSY.iter().flat_map(|set| ["--set", set]));
    let run = world.json(&words)["cells"][0]["runs"][0].take();
    assert_eq!(run["reason"], "finished", "{run}");
    assert_eq!(run["testbed"]["wrong"], serde_json::json!([]), "{run}");
    let timeouts = &run["testbed"]["kernel"]["fixed"]["TcpExtTCPTimeouts"];
    assert_eq!(&run["metrics"]["flows"][0]["timeouts"], timeouts, "{run}");
}
